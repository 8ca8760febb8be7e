//! Something to shift: a process that waits until its standard input is closed, and watches its clocks
//! meanwhile.
//!
//! `clock-target [idle|loops|sleeps] [threads] [offset_ns ...]` prints `ready`, and at the end `ok` with how
//! often it looked, or `bad` with what it saw. `loops` asks for the time without pause: each time must be the
//! monotonic clock's plus one of the offsets. `sleeps` sleeps 2 ms over and over: no sleep may be shorter,
//! and the monotonic clock must never go back.

use std::io::{Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// What the base may be off by, and what the kernel may slew while it runs, in nanoseconds.
const SLACK_NS: i128 = 2_000_000;

fn wall() -> i128 {
    match SystemTime::now().duration_since(UNIX_EPOCH) {
        Ok(since) => i128::try_from(since.as_nanos()).unwrap_or(i128::MAX),
        Err(before) => -i128::try_from(before.duration().as_nanos()).unwrap_or(i128::MAX),
    }
}

/// The wall clock minus the monotonic one lies between these two.
fn difference(start: Instant) -> (i128, i128) {
    let nanos = |instant: Instant| i128::try_from((instant - start).as_nanos()).unwrap_or(i128::MAX);
    let before = nanos(Instant::now());
    let wall = wall();
    let after = nanos(Instant::now());
    (wall - after, wall - before)
}

fn look_at_wall(start: Instant, base: i128, allowed: &[i128]) -> Result<(), String> {
    let (low, high) = difference(start);
    let (low, high) = (low - base - SLACK_NS, high - base + SLACK_NS);
    if allowed.iter().any(|offset| (low..=high).contains(offset)) {
        return Ok(());
    }
    Err(format!("an offset between {low} and {high} ns"))
}

fn look_at_sleep() -> Result<(), String> {
    let (before, asked) = (Instant::now(), Duration::from_millis(2));
    thread::sleep(asked);
    let after = Instant::now();
    let slept = after.checked_duration_since(before).ok_or("the monotonic clock went back")?;
    if slept < asked || slept > Duration::from_secs(5) {
        return Err(format!("a sleep of {slept:?} instead of {asked:?}"));
    }
    Ok(())
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let mode = arguments.first().cloned().unwrap_or_else(|| "idle".to_owned());
    let threads = arguments.get(1).and_then(|count| count.parse::<usize>().ok()).unwrap_or(0);
    let mut allowed: Vec<i128> = arguments.iter().skip(2).filter_map(|offset| offset.parse().ok()).collect();
    allowed.push(0);
    let start = Instant::now();
    let base =
        (0..1000).map(|_| difference(start)).min_by_key(|(low, high)| high - low).map_or(0, |(low, _)| low);
    let (over, looks) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let workers: Vec<_> = (0..threads)
        .map(|_| {
            let (over, looks, allowed, mode) =
                (Arc::clone(&over), Arc::clone(&looks), allowed.clone(), mode.clone());
            thread::spawn(move || {
                while !over.load(Ordering::Relaxed) {
                    match mode.as_str() {
                        "loops" => look_at_wall(start, base, &allowed)?,
                        "sleeps" => look_at_sleep()?,
                        _ => thread::park_timeout(Duration::from_secs(3600)),
                    }
                    looks.fetch_add(1, Ordering::Relaxed);
                }
                Ok::<(), String>(())
            })
        })
        .collect();
    println!("ready");
    let _ = std::io::stdout().flush();
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
    over.store(true, Ordering::Relaxed);
    let mut outcome = Ok(());
    for worker in workers {
        worker.thread().unpark();
        match worker.join() {
            Ok(done) => outcome = outcome.and(done),
            Err(_) => outcome = Err("a panic".to_owned()),
        }
    }
    match outcome {
        Ok(()) => println!("ok {}", looks.load(Ordering::Relaxed)),
        Err(seen) => {
            println!("bad: {seen}");
            std::process::exit(1);
        }
    }
}
