//! Judges history files by a model and says how long reading and judging took, and what the process held:
//! `judge_file MODEL THREADS FILE...`.
//!
//! For measuring beside other checkers; `harness check` is what a user runs. Judging is the verdict with its smallest
//! counterexample.

#![expect(clippy::print_stdout, reason = "a program that prints")]

use std::fs::File;
use std::io::BufReader;
use std::num::NonZeroUsize;
use std::process::ExitCode;
use std::time::Instant;

use checker::Budget;
use checker::catalogue::{self, ModelName, Question};
use checker::history::records;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [model, threads, files @ ..] = arguments.as_slice() else { return ExitCode::from(254) };
    let (Some(model), Ok(threads)) = (ModelName::from_name(model), threads.parse::<NonZeroUsize>()) else {
        return ExitCode::from(254);
    };
    for file in files {
        match judge(model, threads, file) {
            Ok(line) => println!("{line}"),
            Err(why) => println!("{file}: {why}"),
        }
    }
    ExitCode::SUCCESS
}

fn judge(model: ModelName, threads: NonZeroUsize, file: &str) -> Result<String, Box<dyn std::error::Error>> {
    let begun = Instant::now();
    let read: Vec<_> = records(BufReader::new(File::open(file)?))?.collect();
    let reading = begun.elapsed();
    let count = read.len();
    let question = Question {
        model,
        condition: model.usual_condition(),
        budget: Budget::default(),
        threads,
        witness: false,
    };
    let begun = Instant::now();
    let judged = catalogue::judge(&mut read.into_iter(), &question)?.result;
    let judging = begun.elapsed();
    let by = judged.decided_by.unwrap_or_default();
    let counterexample = judged.counterexample.map_or(0, |found| found.ops.len());
    let name = file.rsplit('/').next().unwrap_or(file);
    Ok(format!(
        "{name}\t{}\t{count} records\tread {:.4} s\tjudged {:.4} s\t{by}\t{counterexample} shown\tpeak {} MiB",
        judged.verdict,
        reading.as_secs_f64(),
        judging.as_secs_f64(),
        peak_mib(),
    ))
}

/// The most that this process ever held, where the system tells.
fn peak_mib() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or_default();
    line.split_ascii_whitespace().next().and_then(|kib| kib.parse::<u64>().ok()).unwrap_or_default() / 1024
}
