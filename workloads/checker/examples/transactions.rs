//! Makes a history of transactions, judges it and says how long that took:
//! `transactions COUNT [PROCESSES [valid|stale|window]]`.
//!
//! For measuring. The records are made while they are judged, so that the memory is the checker's own; the
//! time of making them is measured by itself first. `stale` falsifies one read in the middle; `window` lets
//! 200 transactions in the middle read what was there when they were invoked.

#![expect(clippy::print_stdout, reason = "a program that prints")]

use std::time::Instant;

use checker::Budget;
use checker::history::{Datum, EventKind, LoadError, Record};
use checker::txn::{Condition, check};

/// Keys in use at once, and appends to each before it is given up.
const KEYS: usize = 10;
const APPENDS: usize = 100;

struct Store {
    seed: u64,
    left: usize,
    middle: usize,
    fault: String,
    records: u64,
    lists: Vec<Vec<i64>>,
    running: Vec<Option<Running>>,
    names: (Datum, Datum),
    active: [usize; KEYS],
}

struct Running {
    ops: Vec<(usize, Option<i64>)>,
    /// Lengths at the invocation.
    start: Vec<usize>,
    answer: Option<Datum>,
}

impl Store {
    fn new(count: usize, processes: usize, fault: &str) -> Self {
        Self {
            seed: 7,
            left: count,
            middle: count / 2,
            fault: fault.to_owned(),
            records: 0,
            lists: vec![Vec::new(); KEYS],
            running: (0..processes).map(|_| None).collect(),
            names: (Datum::text("append"), Datum::text("r")),
            active: std::array::from_fn(|at| at),
        }
    }

    fn below(&mut self, bound: usize) -> usize {
        self.seed = self.seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.seed >> 33).unwrap_or(0) % bound
    }

    fn int(number: usize) -> Datum {
        Datum::Int(i64::try_from(number).unwrap_or(0))
    }

    fn record(&mut self, process: usize, kind: EventKind, value: Datum) -> Record {
        let mut record = Record::new(u64::try_from(process).unwrap_or(0), kind, "txn", Datum::Nil, value);
        record.index = self.records;
        record.line = self.records + 1;
        record.time = Some(self.records * 1000);
        self.records += 1;
        record
    }

    fn invoke(&mut self, process: usize) -> Record {
        let mut ops: Vec<(usize, Option<i64>)> = Vec::new();
        let mut value = Vec::new();
        for _ in 0..1 + self.below(4) {
            let slot = self.below(KEYS);
            let key = self.active[slot];
            let (append, read) = self.names.clone();
            if self.below(2) == 0 {
                ops.push((key, None));
                value.push(Datum::List(vec![read, Self::int(key), Datum::Nil]));
                continue;
            }
            // Elements are numbered by key; those that other running transactions will append are counted
            // too.
            let element = self.records * 4 + u64::try_from(ops.len()).unwrap_or(0);
            let element = i64::try_from(element).unwrap_or(0);
            ops.push((key, Some(element)));
            value.push(Datum::List(vec![append, Self::int(key), Datum::Int(element)]));
        }
        let start = ops.iter().map(|&(key, _)| self.lists[key].len()).collect();
        self.running[process] = Some(Running { ops, start, answer: None });
        self.record(process, EventKind::Invoke, Datum::List(value))
    }

    fn apply(&mut self, running: &mut Running) {
        let in_window = self.left.abs_diff(self.middle) < 100 && self.fault == "window";
        let stale = self.left <= self.middle && self.fault == "stale" && running.ops.len() == 1;
        let mut value = Vec::new();
        for (&(key, element), &start) in running.ops.iter().zip(&running.start) {
            let (append, read) = self.names.clone();
            let list = &mut self.lists[key];
            let Some(element) = element else {
                let mut seen = if in_window { &list[..start] } else { &list[..] };
                if stale && seen.len() > 20 {
                    seen = &seen[..seen.len() - 20];
                    self.fault.clear();
                }
                let seen = seen.iter().copied().map(Datum::Int).collect();
                value.push(Datum::List(vec![read, Self::int(key), Datum::List(seen)]));
                continue;
            };
            list.push(element);
            if list.len() == APPENDS {
                let next = self.lists.len();
                self.active.iter_mut().filter(|active| **active == key).for_each(|active| *active = next);
                self.lists.push(Vec::new());
            }
            value.push(Datum::List(vec![append, Self::int(key), Datum::Int(element)]));
        }
        running.answer = Some(Datum::List(value));
    }
}

impl Iterator for Store {
    type Item = Result<Record, LoadError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let process = self.below(self.running.len());
            match self.running[process].take() {
                None if self.left > 0 => {
                    self.left -= 1;
                    return Some(Ok(self.invoke(process)));
                }
                None if self.running.iter().all(Option::is_none) => return None,
                None => {}
                Some(Running { answer: Some(answer), .. }) => {
                    return Some(Ok(self.record(process, EventKind::Ok, answer)));
                }
                Some(mut running) => {
                    self.apply(&mut running);
                    self.running[process] = Some(running);
                }
            }
        }
    }
}

/// The most memory that this process ever held, where the system says so.
fn peak() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or("VmHWM: unknown");
    line.trim_start_matches("VmHWM:").trim().to_owned()
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let mut number = |default: usize| arguments.next().and_then(|text| text.parse().ok()).unwrap_or(default);
    let (count, processes) = (number(100_000), number(10));
    let fault = arguments.next().unwrap_or_else(|| "valid".to_owned());
    let start = Instant::now();
    let made = Store::new(count, processes, &fault).count();
    let making = start.elapsed();
    println!("{made} records made in {making:.3?}, peak {}", peak());
    let start = Instant::now();
    let store = Store::new(count, processes, &fault);
    match check(store, Condition::StrictSerializable, &Budget::new(2_000_000_000, 4 << 30)) {
        Ok(judged) => {
            let took = start.elapsed();
            let judging = took.saturating_sub(making);
            let rate = f64::from(u32::try_from(count).unwrap_or(u32::MAX)) / judging.as_secs_f64();
            println!("judged in {judging:.3?} ({took:.3?} with making), {rate:.0} a second, peak {}", peak());
            println!("{}: {}", judged.result.verdict, judged.result.summary);
            println!("{}", judged.result.evidence);
            if let Some(shown) = judged.result.counterexample {
                println!("{} (rechecked: {})", shown.sentence, shown.rechecked);
                shown.ops.iter().for_each(|op| println!("  process {} {}", op.process, op.call));
            }
        }
        Err(error) => println!("{error}"),
    }
}
