//! Judges history files by a model and says how long reading and judging took, and what the process held:
//! `judge_file MODEL THREADS FILE...`.
//!
//! For measuring beside other checkers; `harness check` is what a user runs. Judging is the verdict with its
//! smallest counterexample; reading is also to find which answer belongs to which question, save for
//! registers. Beside the models of the command line there are `kv-whole` and `set-whole`: a map and a set
//! that are searched as one object, although their keys and elements could be judged one by one.

#![expect(clippy::print_stdout, reason = "a program that prints")]

#[path = "shared/processor.rs"]
mod processor;

use std::fs::File;
use std::io::BufReader;
use std::num::NonZeroUsize;
use std::process::ExitCode;
use std::time::Instant;

use checker::Budget;
use checker::catalogue::{self, ModelName, Question};
use checker::history::{LoadError, Record, records};
use checker::model::counter::Counter;
use checker::model::keyed::Keyed;
use checker::model::kv::Kv;
use checker::model::mutex::Mutex;
use checker::model::queue::Queue;
use checker::model::set::Set;
use checker::model::{Model, pair};
use checker::search;
use checker::verdict::CheckResult;
use processor::cpu_seconds;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [model, threads, files @ ..] = arguments.as_slice() else { return ExitCode::from(254) };
    let Ok(threads) = threads.parse::<NonZeroUsize>() else { return ExitCode::from(254) };
    for file in files {
        match judge(model, threads, file) {
            Ok(line) => println!("{line}"),
            Err(why) => println!("{file}: {why}"),
        }
    }
    ExitCode::SUCCESS
}

fn judge(model: &str, threads: NonZeroUsize, file: &str) -> Result<String, Box<dyn std::error::Error>> {
    let begun = Instant::now();
    let read: Vec<_> = records(BufReader::new(File::open(file)?))?.collect();
    let reading = begun.elapsed();
    let count = read.len();
    let begun = Clock::now();
    let (judged, since) = match model {
        "kv" => object(&Keyed::new(Kv::default()), read, threads)?,
        "kv-whole" => object(&Keyed::whole(Kv::default()), read, threads)?,
        "mutex" => object(&Mutex, read, threads)?,
        "set" => object(&Set::default(), read, threads)?,
        "set-whole" => object(&Set::whole(), read, threads)?,
        "queue" => object(&Queue::default(), read, threads)?,
        "counter" => object(&Counter, read, threads)?,
        model => {
            let model = ModelName::from_name(model).ok_or("there is no such model")?;
            let condition = model.usual_condition();
            let question = Question { model, condition, budget: Budget::default(), threads, witness: false };
            (catalogue::judge(&mut read.into_iter(), &question)?.result, begun)
        }
    };
    let pairing = since.clock - begun.clock;
    let (judging, processor) = (since.clock.elapsed(), cpu_seconds() - since.processor);
    let by = judged.decided_by.unwrap_or_default();
    let counterexample = judged.counterexample.map_or(0, |found| found.ops.len());
    let name = file.rsplit('/').next().unwrap_or(file);
    Ok(format!(
        "{name}\t{}\t{count} records\tread {:.4} s\tjudged {:.6} s\tprocessor {processor:.6} \
            s\t{by}\t{counterexample} shown\tpeak {} MiB",
        judged.verdict,
        (reading + pairing).as_secs_f64(),
        judging.as_secs_f64(),
        peak_mib(),
    ))
}

/// A moment, by the clock and by what this thread has had of processors.
#[derive(Clone, Copy)]
struct Clock {
    clock: Instant,
    processor: f64,
}

impl Clock {
    fn now() -> Self {
        Self { clock: Instant::now(), processor: cpu_seconds() }
    }
}

/// The verdict, and since when operations were judged that had been paired from records.
fn object<M>(
    model: &M,
    read: Vec<Result<Record, LoadError>>,
    threads: NonZeroUsize,
) -> Result<(CheckResult, Clock), LoadError>
where
    M: Model<Op: Send + Sync> + Sync,
{
    let calls = pair(model, read)?;
    let since = Clock::now();
    Ok((search::judge(model, &calls, &Budget::default(), threads.get(), false).result, since))
}

/// The most that this process ever held, where the system tells.
fn peak_mib() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or_default();
    line.split_ascii_whitespace().next().and_then(|kib| kib.parse::<u64>().ok()).unwrap_or_default() / 1024
}
