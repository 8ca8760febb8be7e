//! Judges history files and says how long it took: `check_file FILE...`.
//!
//! For measuring; `harness check` is what a user runs.

#![expect(clippy::print_stdout, reason = "a program that prints")]

use std::fs::File;
use std::io::BufReader;
use std::process::ExitCode;
use std::time::Instant;

use checker::history::load;
use checker::verdict::Verdict;
use checker::{Budget, linearizable, sessions, versions};

fn main() -> ExitCode {
    let mut worst = Verdict::Valid;
    for name in std::env::args().skip(1) {
        match judge(&name) {
            Ok(verdict) => worst = worst.merge(verdict),
            Err(error) => {
                println!("{name}: {error}");
                return ExitCode::from(254);
            }
        }
    }
    ExitCode::from(match worst {
        Verdict::Valid => 0,
        Verdict::Invalid => 1,
        Verdict::Unknown => 2,
    })
}

fn judge(name: &str) -> Result<Verdict, Box<dyn std::error::Error>> {
    let start = Instant::now();
    let loaded = load(BufReader::with_capacity(1 << 20, File::open(name)?))?;
    let loading = start.elapsed();
    let mut verdict = loaded.limit(Verdict::Valid);
    println!("{name}: {} operations loaded in {loading:.3?}", loaded.history.ops().len());
    let start = Instant::now();
    let mut results = vec![linearizable::check(&loaded.history, Budget::default())];
    let searching = start.elapsed();
    results.push(versions::check(&loaded.history));
    results.push(sessions::check(&loaded.history));
    println!("  linearizable took {searching:.3?}, everything {:.3?}", start.elapsed());
    for result in results {
        verdict = verdict.merge(result.verdict);
        let by = result.decided_by.map(|by| format!(" (by {by})")).unwrap_or_default();
        println!("  {}: {}: {}{by}", result.name, result.verdict, result.summary);
        if let Some(counterexample) = result.counterexample {
            println!("    {}", counterexample.sentence);
            println!(
                "    {} of {} operations, rechecked: {}",
                counterexample.ops.len(),
                counterexample.of_ops,
                counterexample.rechecked
            );
        }
    }
    Ok(verdict)
}
