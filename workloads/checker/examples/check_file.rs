//! Judges history files and says how long it took and what it held:
//! `check_file [--stream] [--threads N] FILE...`.
//!
//! For measuring; `harness check` is what a user runs. With `--stream` the file is checked while it is read,
//! and read again when a violation is to be explained.

#![expect(clippy::print_stdout, reason = "a program that prints")]

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::process::ExitCode;
use std::time::Instant;

use checker::history::{EventLines, Op, load};
use checker::register::{self, Problem};
use checker::stream::{self, Answer};
use checker::verdict::{Counterexample, Verdict};
use checker::{Budget, linearizable, sessions, versions};

type Outcome = Result<Verdict, Box<dyn std::error::Error>>;

fn main() -> ExitCode {
    let (mut streamed, mut threads) = (false, 2);
    let mut worst = Verdict::Valid;
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--stream" => streamed = true,
            "--threads" => threads = arguments.next().and_then(|count| count.parse().ok()).unwrap_or(2),
            name => match if streamed { stream_file(name, threads) } else { judge(name) } {
                Ok(verdict) => worst = worst.merge(verdict),
                Err(error) => {
                    println!("{name}: {error}");
                    return ExitCode::from(254);
                }
            },
        }
    }
    ExitCode::from(match worst {
        Verdict::Valid => 0,
        Verdict::Invalid => 1,
        Verdict::Unknown => 2,
    })
}

fn judge(name: &str) -> Outcome {
    let start = Instant::now();
    let loaded = load(BufReader::with_capacity(1 << 20, File::open(name)?))?;
    let loading = start.elapsed();
    let mut verdict = loaded.extent.limit(Verdict::Valid);
    println!("{name}: {} operations loaded in {loading:.3?}", loaded.history.ops().len());
    let start = Instant::now();
    let orders: Vec<Option<bool>> = loaded.history.by_key().iter().map(|(_, ops)| has_order(ops)).collect();
    let telling = start.elapsed();
    let start = Instant::now();
    let mut results = vec![linearizable::check(&loaded.history, &Budget::default())];
    let searching = start.elapsed();
    results.push(versions::check(&loaded.history));
    results.push(sessions::check(&loaded.history));
    let undecided = orders.iter().filter(|order| order.is_none()).count();
    println!("  the verdict alone took {telling:.3?}; {undecided} of {} keys undecided", orders.len());
    println!("  linearizable took {searching:.3?}, everything {:.3?}{}", start.elapsed(), peak());
    for result in results {
        verdict = verdict.merge(result.verdict);
        let by = result.decided_by.map(|by| format!(" (by {by})")).unwrap_or_default();
        println!("  {}: {}: {}{by}", result.name, result.verdict, result.summary);
        if let Some(counterexample) = result.counterexample {
            show(&counterexample);
        }
    }
    Ok(verdict)
}

fn has_order(ops: &[&Op]) -> Option<bool> {
    register::has_order(&Problem::of(ops), &Budget::default())
}

fn stream_file(name: &str, threads: usize) -> Outcome {
    let start = Instant::now();
    let checked = stream::check_reader(File::open(name)?, &Budget::default(), threads)?;
    println!("{name}: {} records read and checked in {:.3?}{}", checked.records, start.elapsed(), peak());
    let mut verdict = Verdict::Valid;
    if let Some(problem) = checked.seal.as_ref().and_then(|seal| seal.problem.as_ref()) {
        println!("  {problem}");
        verdict = Verdict::Unknown;
    }
    let undecided: Vec<String> = checked
        .undecided()
        .filter_map(|key| match &key.answer {
            Answer::NeedsSearch(why) => Some(format!("key {}: {why}", key.key)),
            _ => None,
        })
        .collect();
    if let Some(first) = undecided.first() {
        println!("  {} of {} keys need a search; {first}", undecided.len(), checked.keys.len());
        verdict = Verdict::Unknown;
    }
    if let Some(alarm) = &checked.alarm {
        println!("  found at record {}: {alarm}", alarm.at_record);
        let start = Instant::now();
        let mut reader = BufReader::with_capacity(1 << 20, File::open(name)?);
        let (mut lines, mut line) = (EventLines::default(), Vec::new());
        let mut collector = stream::Collector::new(alarm);
        while reader.read_until(b'\n', &mut line)? > 0 {
            lines.line(&line)?.into_iter().for_each(|event| collector.take(event));
            line.clear();
        }
        match collector.finish(&Budget::default()) {
            Some(counterexample) => show(&counterexample),
            None => println!("    not explained by a part"),
        }
        println!("    explained in {:.3?}{}", start.elapsed(), peak());
        verdict = Verdict::Invalid;
    }
    println!("  linearizable: {verdict}");
    Ok(verdict)
}

fn show(counterexample: &Counterexample) {
    let Counterexample { sentence, ops, of_ops, rechecked } = counterexample;
    println!("    {sentence}");
    println!("    {} of {of_ops} operations, rechecked: {rechecked}", ops.len());
}

/// The most memory that the process held so far, where the system tells.
fn peak() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.map(|held| format!(", at most {} held", held.trim())).unwrap_or_default()
}
