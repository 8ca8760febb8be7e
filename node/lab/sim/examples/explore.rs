//! Exhaustive exploration from the command line: `explore --model election|zab|whole [--start NAME]
//! [--members N] [--crashes C] [--timeouts T] [--losses L] [--elections E] [--proposals P] [--mutant NAME]
//! [--max-states N]`.
//!
//! Ends with status 1 when a promise was broken, and with 2 when the search gave up before it was through.

use std::process::ExitCode;
use std::time::Instant;

use lab_mutants::Mutant;
use lab_sim::{Bounds, Explored, Model, explore_from, starts};

const USAGE: &str = "usage: explore --model election|zab|whole [--start NAME] [--members N] [--crashes C] \
                     [--timeouts T] [--losses L] [--elections E] [--proposals P] [--mutant NAME] \
                     [--max-states N]";

struct Arguments {
    model: Model,
    bounds: Bounds,
    mutant: Option<Mutant>,
    start: Option<String>,
}

/// A row of the table. `took`: seconds, and seconds of processors.
fn tell(model: Model, name: &str, bounds: Bounds, explored: &Explored, took: (f64, Option<u64>)) {
    let end = match (&explored.violation, explored.exhausted) {
        (Some(counterexample), _) => counterexample.rule.name(),
        (None, true) => "exhausted",
        (None, false) => "gave up",
    };
    println!(
        "{:10} {name:10} {:>2} {:>2} {:>2} {:>2} {:>2} {:>2} {:>12} {:>13} {:>9} {:>5} {:>8.1} {:>6} \
            {:>6}  {end}",
        model.name(),
        bounds.members,
        bounds.crashes,
        bounds.timeouts,
        bounds.losses,
        bounds.elections,
        bounds.proposals,
        explored.states,
        explored.transitions,
        explored.quiet,
        explored.deepest,
        took.0,
        shown(took.1),
        shown(peak_megabytes()),
    );
}

fn main() -> ExitCode {
    let arguments = match parse(std::env::args().skip(1)) {
        Ok(arguments) => arguments,
        Err(message) => {
            eprintln!("{message}\n{USAGE}");
            return ExitCode::from(254);
        }
    };
    // A member's panic is a finding and reported as one; only where it was is told here.
    std::panic::set_hook(Box::new(|panic| {
        if let Some(place) = panic.location() {
            eprintln!("panicked at {place}");
        }
    }));
    let Arguments { model, bounds, mutant, start } = arguments;
    println!(
        "{:10} {:10} {:>2} {:>2} {:>2} {:>2} {:>2} {:>2} {:>12} {:>13} {:>9} {:>5} {:>8} {:>6} {:>6}  end",
        "model",
        "start",
        "N",
        "C",
        "T",
        "L",
        "E",
        "P",
        "states",
        "transitions",
        "quiet",
        "depth",
        "seconds",
        "cpu",
        "MB"
    );
    let mut status = 0;
    for name in starts(model).filter(|name| start.as_ref().is_none_or(|start| start == name)) {
        let (begin, worked) = (Instant::now(), processor_time());
        let explored = explore_from(model, bounds, mutant, |start| start == name);
        let worked = processor_time().zip(worked).map(|(now, before)| (now - before) / 100);
        tell(model, name, bounds, &explored, (begin.elapsed().as_secs_f64(), worked));
        if let Some(counterexample) = explored.violation {
            println!("\n{}: {}", counterexample.rule.name(), counterexample.sentence);
            for (number, line) in counterexample.path.iter().enumerate() {
                println!("{:3}. {line}", number + 1);
            }
            return ExitCode::from(1);
        }
        if !explored.exhausted {
            status = 2;
        }
    }
    ExitCode::from(status)
}

fn shown(figure: Option<u64>) -> String {
    figure.map_or_else(|| "?".to_owned(), |figure| figure.to_string())
}

fn parse(mut words: impl Iterator<Item = String>) -> Result<Arguments, String> {
    let (mut model, mut bounds, mut mutant, mut start) = (Model::Election, Bounds::default(), None, None);
    while let Some(word) = words.next() {
        let value = words.next().ok_or_else(|| format!("{word} wants a value"))?;
        match word.as_str() {
            "--model" => {
                model = Model::from_name(&value).ok_or_else(|| format!("no model is called {value}"))?
            }
            "--mutant" => {
                mutant = Some(Mutant::named(&value).ok_or_else(|| format!("no bug is called {value}"))?);
            }
            "--start" => start = Some(value),
            "--members" => {
                bounds.members = number(&value)?;
                if !(2..=4).contains(&bounds.members) {
                    return Err("members are two to four".to_owned());
                }
            }
            "--crashes" => bounds.crashes = number(&value)?,
            "--timeouts" => bounds.timeouts = number(&value)?,
            "--losses" => bounds.losses = number(&value)?,
            "--elections" => bounds.elections = number(&value)?,
            "--proposals" => bounds.proposals = number(&value)?,
            "--max-states" => bounds.max_states = number(&value)?,
            _ => return Err(format!("{word} is not an argument")),
        }
    }
    if start.as_ref().is_some_and(|start| !starts(model).any(|name| name == start)) {
        return Err(format!(
            "no start is called so; there are {}",
            starts(model).collect::<Vec<_>>().join(", ")
        ));
    }
    Ok(Arguments { model, bounds, mutant, start })
}

fn number<T: std::str::FromStr>(word: &str) -> Result<T, String> {
    word.parse().map_err(|_| format!("{word} is not a number, or too large"))
}

/// Processor time of this process in hundredths of a second, where the system tells: a busy machine does not
/// stretch it.
fn processor_time() -> Option<u64> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The name in brackets may hold anything; user and system time are the 12th and 13th field behind it.
    let (_, fields) = stat.rsplit_once(')')?;
    fields.split_whitespace().skip(11).take(2).map(|field| field.parse::<u64>().ok()).sum()
}

/// The most memory that this process has had, where the system tells.
fn peak_megabytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok().map(|kilobytes| kilobytes / 1024)
}
