//! How fast the simulator is: simulated seconds per real second, and seeds per minute, on one core.
//!
//! `cargo bench -p lab-sim`. The worlds are those of the default swarm that drew five members; nothing
//! else about them is chosen. A plain program and no statistics: the aims are far away from noise.

use std::time::Instant;

use lab_sim::{Drawn, Options, sweep};

/// Members of the worlds that are measured.
const MEMBERS: usize = 5;

/// Worlds that are measured.
const SEEDS: usize = 400;

/// Worlds before them, so that caches and the allocator are warm.
const WARM_UP: usize = 20;

/// Simulated seconds per real second that are aimed at.
const AIM_SPEED: f64 = 1_000.0;

/// Seeds per minute that are aimed at.
const AIM_SEEDS: f64 = 600.0;

fn main() {
    let mut seeds = (0..).filter(|seed| Drawn::of_seed(*seed).members == MEMBERS);
    sweep(seeds.by_ref().take(WARM_UP), Options::default());
    let chosen: Vec<u64> = seeds.take(SEEDS).collect();
    let (begin, begin_cpu) = (Instant::now(), cpu_seconds());
    let swept = sweep(chosen, Options::default());
    let elapsed = begin.elapsed().as_secs_f64();
    // On a shared machine the clock on the wall measures the neighbours.
    let seconds = cpu_seconds().zip(begin_cpu).map_or(elapsed, |(end, begin)| end - begin);
    let milliseconds = u32::try_from(swept.counters.virtual_ms).expect("some hours at most");
    let speed = f64::from(milliseconds) / 1000.0 / seconds;
    let seeds = f64::from(u32::try_from(swept.seeds).expect("few")) * 60.0 / seconds;
    println!(
        "{} worlds of {MEMBERS} members in {elapsed:.2} s, {seconds:.2} s of them on a core",
        swept.seeds
    );
    println!("{speed:.0} simulated seconds per second of a core (aim: {AIM_SPEED:.0})");
    println!("{seeds:.0} seeds per minute of a core (aim: {AIM_SEEDS:.0})");
    println!("{}", swept.counters);
    assert_eq!(swept.violations, []);
}

/// The time that this thread has spent on a core, where the kernel tells.
fn cpu_seconds() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let nanoseconds: f64 = text.split_whitespace().next()?.parse().ok()?;
    Some(nanoseconds / 1e9)
}
