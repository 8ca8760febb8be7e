//! Measures the portfolio for registers, and each search of it:
//! `register_searches [--members] [--witness] [--steps N] [--memory MIB] FILE...`.
//!
//! One line for each file: operations, verdict, who decided, seconds of processor time for checking (the best
//! of some runs when it is quick), the most memory that the process has held, and how small the
//! counterexample is. With `--members` both searches judge each file alone as well.

#![expect(clippy::print_stdout, reason = "a program that prints")]

use std::fs::File;
use std::io::BufReader;
use std::time::{Duration, Instant};

use checker::budget::Meter;
use checker::history::{History, load};
use checker::register::{Problem, dfs, frontier};
use checker::verdict::Judged;
use checker::{Budget, confirm, linearizable};

/// A quick check is repeated, because the machine is shared.
const QUICK: Duration = Duration::from_millis(100);
const REPEATS: u32 = 7;
const TICKS: Duration = Duration::from_millis(20);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (mut members, mut budget, mut witness) = (false, Budget::default(), false);
    let mut arguments = std::env::args().skip(1);
    let (mut total, mut files) = (Duration::ZERO, 0_u32);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--members" => members = true,
            "--witness" => witness = true,
            "--memory" => {
                budget.memory_bytes = arguments.next().ok_or("--memory MIB")?.parse::<usize>()? << 20
            }
            "--steps" => budget = budget.with_steps(arguments.next().ok_or("--steps N")?.parse()?),
            file => {
                let loaded = load(BufReader::with_capacity(1 << 20, File::open(file)?));
                let history = match loaded {
                    Ok(loaded) => loaded.history,
                    Err(error) => {
                        println!("{file}\t{error}");
                        continue;
                    }
                };
                total += judge(file, &history, &budget, witness);
                files += 1;
                if members {
                    each_member(&history, &budget);
                }
            }
        }
    }
    println!("{files} files\t{:.6} s of checking in sum", total.as_secs_f64());
    Ok(())
}

fn timed<T>(run: impl Fn() -> T) -> (T, Duration) {
    let once = || {
        let (start, wall) = (on_processor(), Instant::now());
        let result = run();
        let (took, wall) = (on_processor().saturating_sub(start), wall.elapsed());
        // The system counts in ticks; what takes less than a few is seldom interrupted.
        (result, if took > TICKS { took } else { wall })
    };
    let (mut result, mut best) = once();
    for _ in 0..if best < QUICK { REPEATS } else { 0 } {
        let (again, took) = once();
        if took < best {
            (result, best) = (again, took);
        }
    }
    (result, best)
}

fn judge(file: &str, history: &History, budget: &Budget, witness: bool) -> Duration {
    let before = peak_mib();
    let (Judged { result, witness }, took) = timed(|| linearizable::judge(history, budget, 1, witness));
    let name = file.rsplit('/').next().unwrap_or(file);
    let shown = result.counterexample.as_ref().map_or(String::new(), |shown| {
        format!("{} operations, rechecked {}: {}", shown.ops.len(), shown.rechecked, shown.sentence)
    });
    let confirmed = witness.iter().all(|part| {
        let ops = history.ops().iter().filter(|op| Some(op.key) == part.part);
        confirm::register(ops, &part.order).is_ok()
    });
    println!(
        "{name}\t{}\t{}\t{}\t{:.6} s\t{before} to {} MiB\t{} witnesses, confirmed {confirmed}\t{}{shown}",
        history.ops().len(),
        result.verdict,
        result.decided_by.unwrap_or_default(),
        took.as_secs_f64(),
        peak_mib(),
        witness.len(),
        if shown.is_empty() { &result.summary } else { "" },
    );
    took
}

fn each_member(history: &History, budget: &Budget) {
    for (key, ops) in history.by_key() {
        let problem = Problem::of(&ops);
        let (found, took) = timed(|| frontier::search_for(&problem, false, &mut Meter::new(budget)));
        println!("  key {key} frontier\t{:?}\t{:.6} s\t{}", found.found, took.as_secs_f64(), found.reached);
        let (found, took) = timed(|| dfs::search(&problem, &mut Meter::new(budget)));
        println!(
            "  key {key} depth first\t{:?}\t{:.6} s\t{}",
            found.found,
            took.as_secs_f64(),
            found.reached
        );
    }
}

/// Time that this process was on a processor, where the system tells: waiting for others is not counted.
fn on_processor() -> Duration {
    let text = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    Duration::from_nanos(text.split(' ').next().and_then(|ns| ns.parse().ok()).unwrap_or(0))
}

/// The most memory that this process has held, where the system tells.
fn peak_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().split(' ').next()?.parse::<u64>().ok()).unwrap_or(0) / 1024
}
