//! Page bytes and drawing time against operations, faults and members: `cargo run --release -p reports
//! --example measure`. Each row is twice the one above it, so a time that grows by much more than two is one
//! that grows faster than the run.

#[path = "invented/mod.rs"]
mod invented;

use std::time::Instant;

use invented::{Ending, Invented};
use reports::{html, junit, terminal};
use runs::results::{FaultRecord, MemberSpan};
use runs::{latency, operations, outages};

/// Draws everything and says what it took.
fn measure(what: &str, mut run: Invented) {
    let mut times = Vec::new();
    let mut lap = |name: &str, since: Instant| {
        times.push(format!("{name} {:.1} ms", since.elapsed().as_secs_f64() * 1e3))
    };
    let began = Instant::now();
    operations::count_around_faults(&run.history, &mut run.faults);
    run.results.operations = operations::counts(&run.history);
    let (faults, elections) = (&run.faults, &run.results.elections);
    run.results.election_kinds = runs::election_kinds::by_kind(elections, faults);
    let context = outages::Context { faults, elections, load_end_ns: None };
    run.results.outages = outages::from_history(&run.history, context, outages::MINIMUM_NS);
    run.results.latency = latency::summaries(&run.history, &run.faults, &[]);
    lap("counted", began);
    let began = Instant::now();
    let page = html::render(&run.run, &run.results, &run.faults, &run.history);
    lap("drawn", began);
    let began = Instant::now();
    let style = terminal::Style { colour: false, width: 80 };
    let rest = junit::render(&run.run, &run.results, &run.faults).len()
        + terminal::render(&run.run, &run.results, &run.faults, None, style).len();
    lap("screen and junit", began);
    println!("{what}: page {} bytes, rest {rest} bytes, {}", page.len(), times.join(", "));
}

/// `n` faults in place of the run's own, evenly over its time, each with an election.
fn with_faults(n: u64) -> Invented {
    let mut run = invented::run(Ending::Valid, 200);
    let (faults, elections) = (run.faults.clone(), run.results.elections.clone());
    let step = 28_000_000_000 / n;
    let moved = |fault: &FaultRecord, i: u64| {
        let asked = 1_000_000_000 + i * step;
        let at = |share: u64| Some(asked + step * share / 100);
        FaultRecord {
            id: format!("F{}", i + 1),
            asked_ns: asked,
            injected_ns: at(1),
            verified_ns: at(5),
            heal_asked_ns: at(60),
            healed_ns: at(61),
            verified_healed_ns: at(70),
            ..fault.clone()
        }
    };
    run.faults = (0..n).zip(faults.iter().cycle()).map(|(i, fault)| moved(fault, i)).collect();
    run.results.elections = (0..n)
        .zip(elections.iter().cycle())
        .map(|(i, election)| {
            let mut election = election.clone();
            election.id = format!("E{}", i + 1);
            election.fault = Some(format!("F{}", i + 1));
            election
        })
        .collect();
    run
}

/// `n` members, each of which changes `changes` times.
fn with_spans(n: u64, changes: u64) -> Invented {
    let mut run = invented::run(Ending::Valid, 200);
    let span = run.results.member_spans[0].clone();
    let step = 30_000_000_000 / changes;
    run.results.member_spans = (1..=n)
        .flat_map(|node| (0..changes).map(move |i| (node, i)))
        .map(|(node, i)| MemberSpan { node, from_ns: i * step, to_ns: (i + 1) * step, ..span.clone() })
        .collect();
    run
}

fn main() {
    for rate in [1_000, 2_000, 4_000, 8_000, 16_000, 33_334] {
        let run = invented::run(Ending::Valid, rate);
        measure(&format!("{} operations", run.history.ops().len()), run);
    }
    for faults in [60, 120, 240, 480, 960, 1920] {
        measure(&format!("{faults} faults"), with_faults(faults));
    }
    for members in [8, 16, 32, 64] {
        measure(&format!("{members} members with 100 changes each"), with_spans(members, 100));
    }
}
