//! Makes a regression script of a failing seed: `shrink --seed N [--mutant NAME] [--outside] [--budget N] >
//! FILE`, or carries one out and tells what it does: `shrink --replay FILE [--clean]`.
//!
//! Ends with status 1 when a promise was broken, 2 when a seed could not be shrunk.

use std::process::ExitCode;
use std::time::Instant;

use lab_mutants::Mutant;
use lab_sim::{Options, Script, replay, shrink, write_down};

/// Worlds that are lived through at most, mostly.
const BUDGET: u32 = 40_000;

const USAGE: &str =
    "usage: shrink --seed N [--mutant NAME] [--outside] [--budget N] [--whole] | --replay FILE [--clean]";

#[derive(Default)]
struct Arguments {
    seed: Option<u64>,
    options: Options,
    budget: Option<u32>,
    whole: bool,
    file: Option<String>,
    clean: bool,
}

fn main() -> ExitCode {
    let outcome = parse(std::env::args().skip(1)).and_then(|arguments| {
        // A member's panic is a finding and reported as one.
        std::panic::set_hook(Box::new(|_| {}));
        match (&arguments.file, arguments.seed) {
            (Some(file), _) => tell(file, arguments.clean),
            (None, Some(seed)) => make(seed, &arguments),
            (None, None) => Err(format!("a seed or a file is wanted\n{USAGE}")),
        }
    });
    outcome.unwrap_or_else(|message| {
        eprintln!("{message}");
        ExitCode::from(254)
    })
}

fn parse(mut words: impl Iterator<Item = String>) -> Result<Arguments, String> {
    let mut arguments = Arguments::default();
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or_else(|| format!("{word} wants a value"));
        match word.as_str() {
            "--seed" => arguments.seed = Some(number(&value()?)?),
            "--budget" => arguments.budget = u32::try_from(number(&value()?)?).ok(),
            "--mutant" => {
                let name = value()?;
                arguments.options.mutant =
                    Some(Mutant::named(&name).ok_or_else(|| format!("no bug is called {name}"))?);
            }
            "--outside" => arguments.options.look_inside = false,
            "--whole" => arguments.whole = true,
            "--replay" => arguments.file = Some(value()?),
            "--clean" => arguments.clean = true,
            _ => return Err(format!("{word} is not an argument\n{USAGE}")),
        }
    }
    Ok(arguments)
}

fn number(word: &str) -> Result<u64, String> {
    word.parse().map_err(|_| format!("{word} is not a number"))
}

fn make(seed: u64, arguments: &Arguments) -> Result<ExitCode, String> {
    if arguments.whole {
        let (script, violation) =
            write_down(seed, arguments.options).ok_or_else(|| format!("seed {seed} breaks no promise"))?;
        print!("{script}");
        eprintln!("{violation}");
        return Ok(ExitCode::from(1));
    }
    let begin = Instant::now();
    let budget = arguments.budget.unwrap_or(BUDGET);
    let Some(shrunk) = shrink(seed, arguments.options, budget) else {
        eprintln!("seed {seed} breaks no promise, or none that a script of it breaks");
        return Ok(ExitCode::from(2));
    };
    print!("{}", shrunk.script);
    eprintln!(
        "{} transitions, {} members, {} operations, after {} worlds and {:.1} s",
        shrunk.events,
        shrunk.members,
        shrunk.operations,
        shrunk.replays,
        begin.elapsed().as_secs_f64()
    );
    Ok(ExitCode::from(1))
}

fn tell(file: &str, clean: bool) -> Result<ExitCode, String> {
    let text = std::fs::read_to_string(file).map_err(|error| format!("failed to read {file}: {error}"))?;
    let script: Script = text.parse().map_err(|error| format!("{file}: {error}"))?;
    let replayed = replay(&script, script.mutant.filter(|_| !clean));
    for line in &replayed.trace {
        println!("{line}");
    }
    println!("{} lines were not possible", replayed.skipped);
    match &replayed.violation {
        None => println!("no promise was broken"),
        Some(violation) => println!("VIOLATION {violation}"),
    }
    Ok(if replayed.violation.is_some() { ExitCode::from(1) } else { ExitCode::SUCCESS })
}
