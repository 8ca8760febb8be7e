//! `node-fuzz`: random mutation of a target's corpus, for as long as is asked.
//!
//! ```text
//! node-fuzz TARGET [--seconds 60] [--seed S]     the corpus, then mutations; 0 seconds: the corpus alone
//! node-fuzz --list                               the targets
//! node-fuzz --write-seeds                        makes the seeds of every corpus anew
//! ```
//!
//! An input that breaks a promise is written to `broken-TARGET-SEED` in the working directory, and the exit
//! status is 1. So it is for one that takes longer than ten seconds: nothing here takes a millisecond.

use std::cell::RefCell;
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use node_fuzz::{TARGETS, Target, corpus, mutate::mutate, seeds, target};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

/// An input that takes longer hangs.
const PATIENCE: Duration = Duration::from_secs(10);

/// Inputs that did something new can't be told without coverage: a few of those made last are kept at random,
/// so that steps add up.
const KEPT: usize = 64;

const USAGE: &str = "usage: node-fuzz TARGET [--seconds N] [--seed S] | --list | --write-seeds";

struct Asked {
    target: Target,
    time: Duration,
    seed: u64,
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.first().map(String::as_str) {
        Some("--list") => {
            TARGETS.iter().for_each(|target| println!("{}", target.name));
            ExitCode::SUCCESS
        }
        Some("--write-seeds") => match seeds::write_all() {
            Ok(count) => {
                println!("{count} seeds");
                ExitCode::SUCCESS
            }
            Err(error) => fail(&format!("failed to write the seeds: {error}")),
        },
        _ => match asked(&words) {
            Ok(asked) => run(&asked),
            Err(reason) => fail(&format!("{reason}\n{USAGE}")),
        },
    }
}

fn fail(reason: &str) -> ExitCode {
    eprintln!("{reason}");
    ExitCode::from(2)
}

fn asked(words: &[String]) -> Result<Asked, String> {
    let [name, options @ ..] = words else { return Err("no target".to_owned()) };
    let target = target(name).ok_or_else(|| format!("no target is called {name}: see --list"))?;
    let mut asked = Asked { target, time: Duration::from_secs(60), seed: 0 };
    for option in options.chunks(2) {
        let [name, value] = option else { return Err(format!("no value for {}", option[0])) };
        let number = value.parse().map_err(|_| format!("{value} is no number"))?;
        match name.as_str() {
            "--seconds" => asked.time = Duration::from_secs(number),
            "--seed" => asked.seed = number,
            _ => return Err(format!("no option is called {name}")),
        }
    }
    Ok(asked)
}

/// What is being run, for the hook of a panic and for the watchdog.
#[derive(Default)]
struct Present {
    input: Mutex<Vec<u8>>,
    count: AtomicU64,
}

thread_local! {
    static SAID: RefCell<String> = const { RefCell::new(String::new()) };
}

fn run(asked: &Asked) -> ExitCode {
    let name = asked.target.name;
    let mut inputs = match read_all(&corpus(name)) {
        Ok(inputs) => inputs,
        Err(error) => return fail(&format!("failed to read {}: {error}", corpus(name).display())),
    };
    let present = Arc::new(Present::default());
    watch(&present, asked);
    std::panic::set_hook(Box::new(|panic| SAID.set(panic.to_string())));
    let mut rng = ChaCha8Rng::seed_from_u64(asked.seed);
    let started = Instant::now();
    let seeds = inputs.clone();
    for input in &seeds {
        if let Err(said) = run_input(asked, &present, input) {
            return broken(asked, input, &said);
        }
    }
    while started.elapsed() < asked.time {
        // The clock is looked at now and then: an input takes microseconds.
        for _ in 0..100 {
            let input = mutate(&mut rng, &inputs);
            if let Err(said) = run_input(asked, &present, &input) {
                return broken(asked, &input, &said);
            }
            keep(&mut inputs, seeds.len(), &present, input);
        }
    }
    let count = present.count.load(Ordering::Relaxed);
    println!("{name}: {count} inputs in {:.1} s, seed {}", started.elapsed().as_secs_f64(), asked.seed);
    ExitCode::SUCCESS
}

/// Runs the target on one input, which is kept where a hang or a crash is reported from. The error is what a
/// panic said.
fn run_input(asked: &Asked, present: &Present, input: &[u8]) -> Result<(), String> {
    input.clone_into(&mut present.input.lock().unwrap_or_else(PoisonError::into_inner));
    present.count.fetch_add(1, Ordering::Relaxed);
    std::panic::catch_unwind(|| (asked.target.run)(input)).map_err(|_| SAID.take())
}

fn keep(inputs: &mut Vec<Vec<u8>>, seeds: usize, present: &Present, input: Vec<u8>) {
    let count = present.count.load(Ordering::Relaxed);
    if !count.is_multiple_of(97) {
        return;
    }
    if inputs.len() < seeds + KEPT {
        inputs.push(input);
    } else {
        let place = usize::try_from(count / 97).unwrap_or(0) % KEPT;
        inputs[seeds + place] = input;
    }
}

fn broken(asked: &Asked, input: &[u8], said: &str) -> ExitCode {
    let file = format!("broken-{}-{}", asked.target.name, asked.seed);
    eprintln!("{}: {said}", asked.target.name);
    match std::fs::write(&file, input) {
        Ok(()) => eprintln!("the input is in {file}; put it into {}", corpus(asked.target.name).display()),
        Err(error) => eprintln!("failed to write {file}: {error}; the input: {input:?}"),
    }
    ExitCode::FAILURE
}

/// Ends the process when one input takes too long.
fn watch(present: &Arc<Present>, asked: &Asked) {
    let (present, target, seed) = (Arc::clone(present), asked.target, asked.seed);
    std::thread::spawn(move || {
        let mut last = None;
        loop {
            std::thread::sleep(PATIENCE);
            let count = present.count.load(Ordering::Relaxed);
            if last == Some(count) && count > 0 {
                let input = present.input.lock().unwrap_or_else(PoisonError::into_inner).clone();
                let asked = Asked { target, time: Duration::ZERO, seed };
                broken(&asked, &input, &format!("an input takes longer than {PATIENCE:?}"));
                std::process::exit(1);
            }
            last = Some(count);
        }
    });
}

fn read_all(folder: &Path) -> std::io::Result<Vec<Vec<u8>>> {
    let mut paths: Vec<_> =
        std::fs::read_dir(folder)?.map(|entry| entry.map(|entry| entry.path())).collect::<Result<_, _>>()?;
    // The order of a folder is nobody's promise.
    paths.sort();
    paths.iter().map(std::fs::read).collect()
}
