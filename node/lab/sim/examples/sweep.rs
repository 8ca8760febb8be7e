//! Many worlds from the command line: `sweep --seeds A..B [--mutant NAME] [--outside]`, or one of them with
//! its trace: `sweep --seed N --trace [--mutant NAME]`. `--only membership`: all ensembles change.
//! `--only applications [--mutant-recipe NAME]`: applications stand in line, with a bug of their recipe or
//! without.
//!
//! Threads live here and not in the simulator: each seed is one world on one thread, so the number of threads
//! changes nothing but the time it takes. Ends with status 1 when a promise was broken.

use std::ops::Range;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use lab_mutants::Mutant;
use lab_sim::recipe_mutants::OF_ELECTIONS;
use lab_sim::{Drawn, Only, Options, Sweep, Traffic, simulate};

/// Worlds at a time.
const THREADS: usize = 2;

/// Violations printed; the rest are only counted.
const MAX_SHOWN: usize = 20;

/// Seeds between two lines of progress.
const PROGRESS: u64 = 2000;

const USAGE: &str = "usage: sweep --seeds A..B | --seed N [--trace]  [--mutant NAME] [--outside] \
                     [--only WHAT [--mutant-recipe NAME]]";

struct Arguments {
    seeds: Range<u64>,
    options: Options,
    repeat: String,
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
    let found =
        if arguments.seeds.end - arguments.seeds.start == 1 { one(&arguments) } else { many(&arguments) };
    if found { ExitCode::from(1) } else { ExitCode::SUCCESS }
}

fn parse(mut words: impl Iterator<Item = String>) -> Result<Arguments, String> {
    let mut seeds = 0..1000;
    let mut options = Options::default();
    let mut repeat = String::new();
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or_else(|| format!("{word} wants a value"));
        match word.as_str() {
            "--seeds" => {
                let range = value()?;
                let (from, to) = range.split_once("..").ok_or("--seeds wants A..B")?;
                seeds = number(from)?..number(to)?;
            }
            "--seed" => {
                let seed = number(&value()?)?;
                seeds = seed..seed + 1;
            }
            "--mutant" => {
                let name = value()?;
                options.mutant =
                    Some(Mutant::named(&name).ok_or_else(|| format!("no bug is called {name}"))?);
                repeat.push_str(" --mutant ");
                repeat.push_str(&name);
            }
            "--outside" => {
                options.look_inside = false;
                repeat.push_str(" --outside");
            }
            "--only" => {
                let name = value()?;
                options.only =
                    Some(Only::from_name(&name).ok_or_else(|| format!("no world has only {name}"))?);
                repeat.push_str(" --only ");
                repeat.push_str(&name);
            }
            "--mutant-recipe" => {
                let name = value()?;
                let named = OF_ELECTIONS.into_iter().find(|mutant| mutant.name == name);
                options.recipe = Some(named.ok_or_else(|| format!("no bug of a recipe is called {name}"))?);
                repeat.push_str(" --mutant-recipe ");
                repeat.push_str(&name);
            }
            "--trace" => options.trace = true,
            _ => return Err(format!("{word} is not an argument")),
        }
    }
    if seeds.is_empty() {
        return Err("no seeds".to_owned());
    }
    Ok(Arguments { seeds, options, repeat })
}

fn number(word: &str) -> Result<u64, String> {
    word.parse().map_err(|_| format!("{word} is not a number"))
}

/// One world, told in full.
fn one(arguments: &Arguments) -> bool {
    let seed = arguments.seeds.start;
    println!("{}\n  {}", Drawn::of(seed, arguments.options.only), Traffic::of_seed(seed));
    let outcome = simulate(seed, arguments.options);
    for line in &outcome.trace {
        println!("{line}");
    }
    println!("{}\ntrace hash {:016x}", outcome.counters, outcome.trace_hash);
    match &outcome.violation {
        None => println!("no promise was broken"),
        Some(violation) => println!("VIOLATION {violation}"),
    }
    outcome.violation.is_some()
}

/// Many worlds, told in figures.
fn many(arguments: &Arguments) -> bool {
    let begin = Instant::now();
    let next = AtomicU64::new(arguments.seeds.start);
    let mut total = Sweep::default();
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..THREADS).map(|_| scope.spawn(|| work(arguments, &next, begin))).collect();
        for worker in workers {
            total.merge(worker.join().expect("a world catches its own panics"));
        }
    });
    let seconds = begin.elapsed().as_secs_f64();
    println!("{} seeds in {seconds:.1} s", total.seeds);
    println!("{}", total.counters);
    let (slowest_ms, slowest_seed) = total.slowest_election_ms;
    println!(
        "slowest election after healing {slowest_ms} ms (seed {slowest_seed}); all traces {:016x}",
        total.trace_hash
    );
    if total.undecided > 0 {
        println!("{} registers were too much for the checker", total.undecided);
    }
    for (seed, violation) in total.violations.iter().take(MAX_SHOWN) {
        println!("seed {seed}: {violation}\n  again: sweep --seed {seed} --trace{}", arguments.repeat);
    }
    println!("{} violations", total.violations.len());
    !total.violations.is_empty()
}

fn work(arguments: &Arguments, next: &AtomicU64, begin: Instant) -> Sweep {
    let mut sweep = Sweep::default();
    loop {
        let seed = next.fetch_add(1, Ordering::Relaxed);
        if seed >= arguments.seeds.end {
            return sweep;
        }
        sweep.add(simulate(seed, arguments.options));
        if seed > arguments.seeds.start && (seed - arguments.seeds.start).is_multiple_of(PROGRESS) {
            eprintln!(
                "{seed}: {:.0} s, {} violations here",
                begin.elapsed().as_secs_f64(),
                sweep.violations.len()
            );
        }
    }
}
