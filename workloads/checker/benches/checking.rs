//! What checking costs, on histories that are made here: `cargo bench -p checker --bench checking`.
//!
//! Ten thousand operations each, so that the whole takes a minute; how cost grows is the bench `growth`.
//! Reading is apart from judging, because whoever streams does both at once.

#[path = "../examples/generate/simulation.rs"]
#[expect(dead_code, reason = "shared with the example, which falsifies in more ways")]
mod simulation;

use checker::history::{Event, History, HistoryWriter, load};
use checker::order::{self, Condition};
use checker::stream::Checker;
use checker::verdict::Verdict;
use checker::{Budget, linearizable};
use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use simulation::{Corruption, Options, Simulation};

/// Operations of each history.
const OPS: u64 = 10_000;

/// Histories that differ in kind: what is done, by how many, and whether it is right.
const KINDS: [(&str, Options); 8] = [
    ("read/write, 5 processes", Options { conc: 5, ..PLAIN }),
    ("read/write, 50 processes", Options { conc: 50, ..PLAIN }),
    ("with cas, 10 processes", Options { write: 0.3, cas: 0.2, ..PLAIN }),
    ("with cas, 50 processes", Options { write: 0.3, cas: 0.2, conc: 50, ..PLAIN }),
    ("mostly reads", Options { write: 0.1, ..PLAIN }),
    ("100 keys", Options { keys: 100, ..PLAIN }),
    ("1 % never answered, with cas", Options { write: 0.3, cas: 0.2, info: 0.01, ..PLAIN }),
    ("one stale read", Options { corrupt: Some((Corruption::Stale, 0.5)), ..PLAIN }),
];

const PLAIN: Options = Options { ops: OPS, seed: 7, ..Options::USUAL };

fn main() {
    divan::main();
}

fn names() -> impl Iterator<Item = &'static str> {
    KINDS.iter().map(|(name, _)| *name)
}

fn options(name: &str) -> Options {
    KINDS.iter().find(|(kind, _)| *kind == name).expect("one of the kinds").1.clone()
}

fn events(name: &str) -> Vec<Event> {
    Simulation::new(options(name)).collect()
}

/// What the check has to answer, so that no figure is of a wrong one.
fn expected(name: &str) -> Verdict {
    if options(name).corrupt.is_some() { Verdict::Invalid } else { Verdict::Valid }
}

#[divan::bench(args = names())]
fn linearizable_register(bencher: Bencher<'_, '_>, name: &str) {
    let history = History::from_events(events(name)).expect("sound");
    bencher.counter(ItemsCount::new(OPS)).bench_local(|| {
        let result = linearizable::check(black_box(&history), &Budget::default());
        assert_eq!(result.verdict, expected(name), "{}", result.summary);
    });
}

#[divan::bench(args = names())]
fn stream(bencher: Bencher<'_, '_>, name: &str) {
    let events = events(name);
    bencher.counter(ItemsCount::new(OPS)).bench_local(|| {
        let mut checker = Checker::new();
        for event in black_box(&events) {
            checker.push(event).expect("sound");
        }
        checker.finish()
    });
}

#[divan::bench(args = ["read/write, 5 processes", "with cas, 10 processes", "100 keys"])]
fn sequential_register(bencher: Bencher<'_, '_>, name: &str) {
    let history = History::from_events(events(name)).expect("sound");
    bencher.counter(ItemsCount::new(OPS)).bench_local(|| {
        order::check_registers(black_box(&history), Condition::Sequential, &Budget::default())
    });
}

#[divan::bench]
fn read_lines(bencher: Bencher<'_, '_>) {
    let mut writer = HistoryWriter::new(Vec::new());
    for mut event in events("with cas, 10 processes") {
        writer.write(&mut event).expect("memory");
    }
    let bytes = writer.finish().expect("memory").into_inner;
    bencher.counter(ItemsCount::new(OPS)).bench_local(|| load(black_box(bytes.as_slice())).expect("sound"));
}
