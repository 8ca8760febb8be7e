//! How often the rules cry for nothing, and how soon they find what is there: 200 synthetic series of 75
//! nights each, run night after night as they would come.
//!
//! The noise of a night is log-normal, 6 %, and 3 % of the nights are disturbed by a factor of 1.3 to 2.5.
//! What is planted begins at night 45. Seeds are fixed, so the tables are always the same:
//! `cargo run --release --example synthetic`.

use std::collections::BTreeMap;

use nights::change_points::change_points;
use nights::fence::{Direction, alarm};
use nights::paired::{Level, Paired, Verdict};
use nights::quantiles::median;
use runs::numbers::len_f64;

#[path = "../src/noise.rs"]
mod noise;
use noise::Noise;

const NIGHTS: usize = 75;
const PLANTED: usize = 45;
const REPETITIONS: u64 = 200;
/// Milliseconds of a usual night.
const USUAL_MS: f64 = 10.0;
/// Noise of a night's value.
const NIGHT_NOISE: f64 = 0.06;
/// Share of disturbed nights.
const DISTURBED: f64 = 0.03;
/// How much slower the second machine is than the first.
const MACHINES: [f64; 2] = [1.0, 1.4];

/// Pairs of runs that confirm an alarm.
const PAIRS: usize = 8;
/// Elections of a run.
const ELECTIONS: usize = 15;
/// Noise of one election. The ratios of pairs then scatter by 11.5 %, as in the comparisons that were
/// measured.
const ELECTION_NOISE: f64 = 0.25;
/// What both runs of a pair drift together.
const DRIFT: f64 = 0.06;
/// Comparisons for a share.
const COMPARISONS: u32 = 2_000;

/// A change point this near to one that was told before is the same one.
const SAME_POINT: usize = 3;
/// A change point this near to what was planted names the right night.
const RIGHT_NIGHT: usize = 2;

/// What a synthetic series holds.
struct Series {
    name: &'static str,
    /// What the build of a night takes as a multiple of the usual.
    build: fn(usize) -> f64,
    /// Share of disturbed nights.
    disturbed: f64,
    /// The machine of a night, which is part of the key of a series: a new machine begins a new one.
    machine: fn(usize) -> usize,
}

const STEADY: Series = Series { name: "", build: |_| 1.0, disturbed: DISTURBED, machine: |_| 0 };
/// Those with nothing to be found.
const UNCHANGED: [Series; 3] = [
    Series { name: "outliers only", ..STEADY },
    Series { name: "no change, no outliers", disturbed: 0.0, ..STEADY },
    Series { name: "new machine ×1.4", machine: |night| usize::from(night >= PLANTED), ..STEADY },
];
const CHANGED: [Series; 4] = [
    Series { name: "+10 %", build: |night| stepped(night, 1.1), ..STEADY },
    Series { name: "+20 %", build: |night| stepped(night, 1.2), ..STEADY },
    Series { name: "+50 %", build: |night| stepped(night, 1.5), ..STEADY },
    Series { name: "drift of 1 % a night", build: drifting, ..STEADY },
];

fn stepped(night: usize, factor: f64) -> f64 {
    if night < PLANTED { 1.0 } else { factor }
}

fn drifting(night: usize) -> f64 {
    1.01_f64.powf(len_f64((night + 1).saturating_sub(PLANTED)))
}

const FENCE: &str = "fence";
const POINTS: &str = "change points";
const PLACED: &str = "change points within two nights of it";
const CHAIN_99: &str = "fence, then A/B at 99 %";
const CHAIN_95: &str = "fence, then A/B at 95 %";
const ROUGH_99: &str = "the same at 99 %, 3 % of its runs disturbed";
const ROUGH_95: &str = "the same at 95 %, 3 % of its runs disturbed";
const RULES: [&str; 7] = [FENCE, POINTS, PLACED, CHAIN_99, CHAIN_95, ROUGH_99, ROUGH_95];

/// The nights on which each rule cries, by rule, in one series.
type Cries = BTreeMap<&'static str, Vec<usize>>;

fn main() {
    let repeated = |first: u64, all: &[Series]| -> Vec<Vec<Cries>> {
        let seeds = |number: u64| (0..REPETITIONS).map(move |run| (first + number) * 10_000 + run);
        (0..)
            .zip(all)
            .map(|(number, series)| seeds(number).map(|seed| cries(series, seed)).collect())
            .collect()
    };
    let (unchanged, changed) = (repeated(0, &UNCHANGED), repeated(100, &CHANGED));
    println!("False alarms per 100 nights (those before night {PLANTED} where something is planted):\n");
    let names: Vec<&str> = UNCHANGED.iter().map(|series| series.name).collect();
    println!("| rule | {} | before what is planted |\n|---|---|---|---|---|", names.join(" | "));
    for rule in RULES.iter().filter(|rule| **rule != PLACED) {
        let mut cells: Vec<String> = unchanged.iter().map(|runs| false_alarms(runs, rule, NIGHTS)).collect();
        cells.push(false_alarms(&changed.concat(), rule, PLANTED));
        println!("| {rule} | {} |", cells.join(" | "));
    }
    println!("\nFound, and the median of the nights until then:\n");
    let names: Vec<&str> = CHANGED.iter().map(|series| series.name).collect();
    println!("| rule | {} |\n|---|---|---|---|---|", names.join(" | "));
    for rule in RULES {
        let cells: Vec<String> = changed.iter().map(|runs| found(runs, rule)).collect();
        println!("| {rule} | {} |", cells.join(" | "));
    }
    comparisons();
}

fn false_alarms(runs: &[Cries], rule: &str, nights: usize) -> String {
    let wrong =
        |run: &Cries| run.get(rule).map_or(0, |cries| cries.iter().filter(|at| **at < nights).count());
    let wrong: usize = runs.iter().map(wrong).sum();
    format!("{:.2}", 100.0 * len_f64(wrong) / len_f64(nights * runs.len()))
}

fn found(runs: &[Cries], rule: &str) -> String {
    let first = |run: &Cries| run.get(rule)?.iter().copied().find(|night| *night >= PLANTED);
    let nights: Vec<f64> = runs.iter().filter_map(first).map(|night| len_f64(night + 1 - PLANTED)).collect();
    let share = 100.0 * len_f64(nights.len()) / len_f64(runs.len());
    format!("{share:.0} %, {}", median(&nights).map_or("–".to_owned(), |nights| format!("{nights:.0}")))
}

/// The nights on which the rules cry, each night with what was known then.
fn cries(of: &Series, seed: u64) -> Cries {
    let (mut nights, mut runs) = (Noise(seed), Noise(seed ^ 0xa5a5_5a5a_0f0f_f0f0));
    let mut series: BTreeMap<usize, (Vec<Option<f64>>, Vec<usize>)> = BTreeMap::new();
    let mut cries = Cries::new();
    for night in 0..NIGHTS {
        let machine = (of.machine)(night);
        let (values, told) = series.entry(machine).or_default();
        let noise = nights.factor(NIGHT_NOISE) * disturbed(of.disturbed, &mut nights);
        values.push(Some(USUAL_MS * MACHINES[machine] * (of.build)(night) * noise));
        let first = night + 1 - values.len();
        let mut cry = |rule| cries.entry(rule).or_default().push(night);
        if let Some(alarm) = alarm(values, Direction::LowerIsBetter) {
            cry(FENCE);
            let builds = [(of.build)(first + alarm.before), (of.build)(night)];
            for (share, rules) in [(0.0, [CHAIN_99, CHAIN_95]), (DISTURBED, [ROUGH_99, ROUGH_95])] {
                let pairs = compared(builds, PAIRS, share, &mut runs);
                let confirmed = [Level::P99, Level::P95].map(|level| told_slower(pairs, level));
                rules.into_iter().zip(confirmed).filter(|(_, yes)| *yes).for_each(|(rule, _)| cry(rule));
            }
        }
        let mut points: Vec<usize> = change_points(values).iter().map(|point| point.at).collect();
        points.retain(|at| told.iter().all(|before| before.abs_diff(*at) > SAME_POINT));
        if !points.is_empty() {
            cry(POINTS);
        }
        if points.iter().any(|at| (first + at).abs_diff(PLANTED) <= RIGHT_NIGHT) {
            cry(PLACED);
        }
        told.extend(points);
    }
    cries
}

/// A factor of 1.3 to 2.5 with this probability, else one.
fn disturbed(probability: f64, noise: &mut Noise) -> f64 {
    if noise.uniform() < probability { 1.3 + 1.2 * noise.uniform() } else { 1.0 }
}

/// Pairs of runs of two builds, in turn.
fn compared(builds: [f64; 2], pairs: usize, share: f64, noise: &mut Noise) -> Option<Paired> {
    let pair = |_| {
        let drift = noise.factor(DRIFT);
        let [first, second] = builds.map(|build| build * drift * run(share, noise));
        (first, second)
    };
    Paired::of(&(0..pairs).map(pair).collect::<Vec<_>>()).ok()
}

/// The median of the elections of one run.
fn run(share: f64, noise: &mut Noise) -> f64 {
    let outlier = disturbed(share, noise);
    let elections: Vec<f64> = (0..ELECTIONS).map(|_| outlier * noise.factor(ELECTION_NOISE)).collect();
    median(&elections).unwrap_or(1.0)
}

fn told_slower(pairs: Option<Paired>, level: Level) -> bool {
    pairs.is_some_and(|pairs| pairs.verdict(Direction::LowerIsBetter, level) == Verdict::Slower)
}

/// The comparison alone: how often it tells a difference.
fn comparisons() {
    println!("\nOf 100 comparisons of two builds tell a difference, or that the second is slower:\n");
    println!("| pairs | level | equal builds | +10 % | +20 % | +50 % |\n|---|---|---|---|---|---|");
    for (disturbed, rough) in [(0.0, ""), (DISTURBED, ", 3 % of the runs disturbed")] {
        for pairs in [8, 12, 16] {
            for (name, level) in [("95 %", Level::P95), ("99 %", Level::P99)] {
                let cells = [1.0, 1.1, 1.2, 1.5].map(|factor| told(factor, pairs, disturbed, level));
                println!("| {pairs}{rough} | {name} | {} |", cells.join(" | "));
            }
        }
    }
}

fn told(factor: f64, pairs: usize, disturbed: f64, level: Level) -> String {
    let mut noise = Noise(7);
    let told = (0..COMPARISONS).filter(|_| {
        let pairs = compared([1.0, factor], pairs, disturbed, &mut noise);
        let faster = pairs.is_some_and(|p| p.verdict(Direction::LowerIsBetter, level) == Verdict::Faster);
        told_slower(pairs, level) || (factor == 1.0 && faster)
    });
    format!("{:.1}", 100.0 * len_f64(told.count()) / f64::from(COMPARISONS))
}
