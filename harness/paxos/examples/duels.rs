//! Duels: two members are asked at about the same time. How many proposals do the two make until something is
//! chosen, without the random wait between two tries, and with it?
//!
//! ```text
//! cargo run --release --package harness-paxos --example duels
//! ```
//!
//! All messages of a duel take about as long. Nothing is lost, and nobody crashes. What goes wrong the two do
//! to each other.

use harness_paxos::single::{Message, Paxos, Retry};
use harness_protocols::{Configuration, Id, Request, Step};
use harness_world::dice::Dice;
use harness_world::time::{Queue, Time};
use workloads::Op;
use workloads::op::{Body, Object};

/// Duels of each kind.
const DUELS: u64 = 2_000;
/// Proposals after which a duel is given up.
const MOST: usize = 50;

/// What happens to the two.
enum Event {
    Ask(Id),
    Arrive(Id, Id, Message),
    /// By number, so that a timer which was set anew meanwhile is known.
    Fire(Id, u64),
}

/// How many proposals a duel took; none where it has not ended.
fn proposals(backs_off: bool, seed: u64) -> Option<usize> {
    let mut dice = Dice::new(seed);
    let mut configuration = Configuration::new(Paxos { backs_off, ..Paxos::default() }, 3, true);
    let mut queue = Queue::default();
    let mut timers = [0; 3];
    let takes_us = dice.between(10_000, 100_000);
    Id::all(3).for_each(|id| drop(configuration.apply(&Step::Start(id), 0, &mut |_| 0)));
    for id in [1, 2] {
        queue.plan(Time(dice.between(0, 200_000)), Event::Ask(Id(id)));
    }
    let mut proposals = 0;
    while let Some((now, event)) = queue.pop() {
        let step = match event {
            Event::Ask(id) => {
                let body = Body::Write { value: i64::from(id.0) };
                Step::Ask(id, Request(id.0.into()), Op::new(Object::REGISTER, 0, body))
            }
            Event::Arrive(from, to, message) => Step::Deliver(from, to, message),
            Event::Fire(id, set) if timers[id.place()] == set => Step::Fire(id, Retry),
            Event::Fire(..) => continue,
        };
        let came = configuration.apply(&step, now.0, &mut |bound| dice.between(0, bound - 1));
        if configuration.look() != "nothing chosen" {
            return Some(proposals);
        }
        for (from, to, message) in came.sent {
            let takes = if from == to { 1 } else { dice.between(takes_us * 9 / 10, takes_us * 11 / 10) };
            queue.plan(now + takes, Event::Arrive(from, to, message));
        }
        // Whoever proposes waits for the end of its patience.
        for (id, Retry, after_us) in came.set {
            proposals += 1;
            timers[id.place()] += 1;
            queue.plan(now + after_us, Event::Fire(id, timers[id.place()]));
        }
        if proposals > MOST {
            return None;
        }
    }
    None
}

/// The row of a number of proposals.
fn row(proposals: Option<usize>) -> usize {
    match proposals {
        None => ROWS.len() - 1,
        Some(count) => ROWS.iter().position(|(last, _)| count <= *last).unwrap_or(ROWS.len() - 2),
    }
}

/// Proposals of a row, at most.
const ROWS: [(usize, &str); 9] = [
    (1, "1"),
    (2, "2"),
    (3, "3"),
    (4, "4"),
    (6, "5 to 6"),
    (10, "7 to 10"),
    (20, "11 to 20"),
    (MOST, "21 to 50"),
    (usize::MAX, "not ended"),
];

/// Duels by the row that they end in.
fn counted(backs_off: bool) -> [u64; ROWS.len()] {
    let mut counts = [0; ROWS.len()];
    (0..DUELS).for_each(|seed| counts[row(proposals(backs_off, seed))] += 1);
    counts
}

/// Both kinds side by side.
pub(crate) fn histogram() -> String {
    let (without, with) = (counted(false), counted(true));
    let bar = |count: u64| "#".repeat(usize::try_from(count.div_ceil(50)).unwrap_or_default());
    let mut text =
        format!("{:<10} {:>17}{:26}{:>14}\n", "proposals", "without back-off", "", "with back-off");
    for (at, (_, name)) in ROWS.iter().enumerate() {
        let line = format!(
            "{name:<10} {:>5} {:<37} {:>5} {}",
            without[at],
            bar(without[at]),
            with[at],
            bar(with[at])
        );
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

#[allow(dead_code, reason = "tests have this as a module")]
fn main() {
    print!("{}", histogram());
}
