//! Watchers of a simulated log, which keeps its promise; and the same with one answer changed.
//!
//! Writers and watchers ask at random moments and are answered at random moments later; between the two, in a
//! moment of its own, each has its effect. Answers are lost, positions are resumed from again, watchers begin
//! late, and writes of unknown fate happen or not.

use std::collections::BTreeMap;

use super::{PATIENCE_NS, Promised, check};
use crate::chance::Chance;
use crate::history::{Event, EventKind, Function, History, Value};
use crate::verdict::{CheckResult, Verdict};

const KEYS: u64 = 2;
const WATCHERS: u64 = 3;

/// What a world is like.
#[derive(Clone, Copy)]
struct Terms {
    promised: Promised,
    versions: bool,
    steps: u64,
}

/// A request under way.
enum Asked {
    Write { key: u64, value: i64, effect: bool },
    Watch { watcher: u64, told: Option<Vec<i64>> },
}

struct World {
    terms: Terms,
    chance: Chance,
    now: u64,
    logs: Vec<Vec<i64>>,
    events: Vec<Event>,
    /// By process.
    open: BTreeMap<u64, Asked>,
    /// Of each watcher: the position that it goes on from.
    from: Vec<Option<i64>>,
    next_value: i64,
    next_process: u64,
}

fn key_of(watcher: u64) -> u64 {
    watcher % KEYS
}

impl World {
    fn new(seed: u64, terms: Terms) -> Self {
        Self {
            terms,
            chance: Chance(seed),
            now: 0,
            logs: vec![Vec::new(); usize::try_from(KEYS).expect("small")],
            events: Vec::new(),
            open: BTreeMap::new(),
            from: vec![None; usize::try_from(KEYS * WATCHERS).expect("small")],
            next_value: 1,
            next_process: 100,
        }
    }

    fn log(&mut self, key: u64) -> &mut Vec<i64> {
        &mut self.logs[usize::try_from(key).expect("small")]
    }

    fn line(&mut self, process: u64, kind: EventKind, f: Function, key: u64, value: Value) -> &mut Event {
        self.now += 1 + self.chance.below(1_000_u64);
        self.events.push(Event::new(process, kind, f, key, value, self.now));
        self.events.last_mut().expect("pushed")
    }

    fn watch_value(&self, watcher: u64) -> Value {
        let from = self.from[usize::try_from(watcher).expect("small")];
        Value::Pair(from, i64::try_from(watcher).expect("small"))
    }

    /// Somebody asks, what was asked has its effect, or somebody is answered.
    fn step(&mut self) {
        let open: Vec<u64> = self.open.keys().copied().collect();
        if open.len() < 4 || self.chance.percent(20) {
            return self.ask();
        }
        let process = open[self.chance.below(open.len())];
        match self.chance.below(2_u64) {
            0 => self.effect(process),
            _ => self.answer(process),
        }
    }

    fn ask(&mut self) {
        if self.chance.percent(50) {
            let (key, value) = (self.chance.below(KEYS), self.next_value);
            self.next_value += 1;
            self.next_process += 1;
            let process = self.next_process;
            self.line(process, EventKind::Invoke, Function::WRITE, key, Value::One(value));
            self.open.insert(process, Asked::Write { key, value, effect: false });
            return;
        }
        let watcher = self.chance.below(KEYS * WATCHERS);
        if self.open.contains_key(&watcher) {
            return;
        }
        let value = self.watch_value(watcher);
        self.line(watcher, EventKind::Invoke, Function::WATCH, key_of(watcher), value);
        self.open.insert(watcher, Asked::Watch { watcher, told: None });
    }

    fn effect(&mut self, process: u64) {
        match self.open.remove(&process) {
            Some(Asked::Write { key, value, effect }) => {
                if !effect {
                    self.log(key).push(value);
                }
                self.open.insert(process, Asked::Write { key, value, effect: true });
            }
            Some(Asked::Watch { watcher, told: None }) => {
                let told = Some(self.told(watcher));
                self.open.insert(process, Asked::Watch { watcher, told });
            }
            Some(asked) => {
                self.open.insert(process, asked);
            }
            None => {}
        }
    }

    /// What the log tells from a position on: the position, and each value with its version. Where the latest
    /// change is promised some are left out; and now and then it does not know of the newest ones yet.
    fn told(&mut self, watcher: u64) -> Vec<i64> {
        let from = self.from[usize::try_from(watcher).expect("small")];
        let log = self.log(key_of(watcher)).clone();
        let end = log.len();
        let from = from.map_or(end, |from| usize::try_from(from).expect("small"));
        let end = if self.chance.percent(30) { from + self.chance.below(end - from + 1) } else { end };
        let mut events = Vec::new();
        for (at, value) in log.iter().enumerate().take(end).skip(from) {
            let is_last = at + 1 == end;
            if self.terms.promised == Promised::Latest && !is_last && self.chance.percent(50) {
                continue;
            }
            let version = if self.terms.versions { i64::try_from(at).expect("small") } else { -1 };
            events.extend([*value, version]);
        }
        [i64::try_from(end).expect("small")].into_iter().chain(events).collect()
    }

    fn answer(&mut self, process: u64) {
        let lost = self.chance.percent(15);
        match self.open.remove(&process) {
            Some(Asked::Write { key, value, effect }) => {
                let kind = match (lost, effect) {
                    (false, true) => EventKind::Ok,
                    (false, false) => EventKind::Fail,
                    (true, _) => EventKind::Info,
                };
                let place = self.log(key).iter().position(|one| *one == value);
                let version = place.map(|place| i64::try_from(place).expect("small"));
                let version = version.filter(|_| self.terms.versions && kind == EventKind::Ok);
                self.line(process, kind, Function::WRITE, key, Value::One(value)).version = version;
                // What nobody knows may yet happen.
                if kind == EventKind::Info && !effect && self.chance.percent(50) {
                    self.log(key).push(value);
                }
            }
            Some(Asked::Watch { watcher, told: Some(told) }) if !lost => {
                self.from[usize::try_from(watcher).expect("small")] = told.first().copied();
                self.line(process, EventKind::Ok, Function::WATCH, key_of(watcher), Value::List(told.into()));
            }
            Some(Asked::Watch { watcher, .. }) => {
                let value = self.watch_value(watcher);
                self.line(process, EventKind::Fail, Function::WATCH, key_of(watcher), value);
            }
            None => {}
        }
    }

    /// All is read, and watchers are asked for as long as they are waited for.
    fn end(&mut self) {
        for process in self.open.keys().copied().collect::<Vec<_>>() {
            self.effect(process);
            self.answer(process);
        }
        for key in 0..KEYS {
            let Some(last) = self.log(key).last().copied() else { continue };
            self.line(50, EventKind::Invoke, Function::READ, key, Value::Null);
            self.line(50, EventKind::Ok, Function::READ, key, Value::One(last));
        }
        for round in 0..8 {
            self.now += PATIENCE_NS / 4;
            for watcher in 0..KEYS * WATCHERS {
                let value = self.watch_value(watcher);
                self.line(watcher, EventKind::Invoke, Function::WATCH, key_of(watcher), value);
                let told = self.told(watcher);
                // A re-ask from the same position at another member tells the same again.
                if round % 2 == 0 {
                    self.from[usize::try_from(watcher).expect("small")] = told.first().copied();
                }
                self.line(watcher, EventKind::Ok, Function::WATCH, key_of(watcher), Value::List(told.into()));
            }
        }
    }
}

fn events(seed: u64, terms: Terms) -> Vec<Event> {
    let mut world = World::new(seed, terms);
    for _ in 0..terms.steps {
        world.step();
    }
    world.end();
    world.events
}

fn judged(events: Vec<Event>, promised: Promised) -> CheckResult {
    check(&History::from_events(events).expect("a history"), promised, Some(0))
}

const EVERY: Terms = Terms { promised: Promised::EveryChange, versions: false, steps: 400 };

fn all_terms() -> [Terms; 4] {
    let with_versions = Terms { versions: true, ..EVERY };
    let latest = Terms { promised: Promised::Latest, ..EVERY };
    [EVERY, with_versions, latest, Terms { versions: true, ..latest }]
}

#[test]
fn a_log_that_keeps_its_promise_is_never_accused_and_told_much() {
    let mut told = 0;
    for seed in 0..400 {
        for terms in all_terms() {
            let result = judged(events(seed, terms), terms.promised);
            assert_ne!(result.verdict, Verdict::Invalid, "{seed}: {:?}", result.counterexample);
            told += result.evidence["told"].as_u64().unwrap_or_default();
        }
    }
    assert!(told > 20_000, "{told}");
}

#[test]
fn what_tells_every_change_also_tells_the_latest_one() {
    for seed in 0..100 {
        let result = judged(events(seed, EVERY), Promised::Latest);
        assert_ne!(result.verdict, Verdict::Invalid, "{seed}: {:?}", result.counterexample);
    }
}

/// Changes one answer of a watcher, if there is one that can be changed so.
fn planted(
    seed: u64,
    terms: Terms,
    change: impl Fn(&mut Vec<i64>, &mut Chance) -> bool,
) -> Option<CheckResult> {
    let mut events = events(seed, terms);
    let mut chance = Chance(seed ^ 0x5eed);
    let number = events.len();
    for _ in 0..200 {
        let event = &mut events[chance.below(number)];
        if event.f != Function::WATCH || event.kind != EventKind::Ok {
            continue;
        }
        let Some(list) = event.value.list() else { continue };
        let mut list = list.to_vec();
        if change(&mut list, &mut chance) {
            event.value = Value::List(list.into());
            return Some(judged(events, terms.promised));
        }
    }
    None
}

/// How many of the planted faults are convicted, of how many.
fn convicted(terms: Terms, change: impl Fn(&mut Vec<i64>, &mut Chance) -> bool) -> (usize, usize) {
    let results: Vec<CheckResult> = (0..300).filter_map(|seed| planted(seed, terms, &change)).collect();
    let accused = results.iter().filter(|result| result.verdict == Verdict::Invalid);
    (accused.count(), results.len())
}

#[test]
fn planted_faults_are_convicted() {
    let lost = |list: &mut Vec<i64>, chance: &mut Chance| {
        let events = (list.len() - 1) / 2;
        let at = 1 + 2 * chance.below(events);
        events > 0 && list.drain(at..at + 2).count() > 0
    };
    let doubled = |list: &mut Vec<i64>, chance: &mut Chance| {
        let events = (list.len() - 1) / 2;
        let at = 1 + 2 * chance.below(events);
        if events > 0 {
            list.extend([list[at], list[at + 1]]);
        }
        events > 0
    };
    let swapped = |list: &mut Vec<i64>, _: &mut Chance| {
        let is_long = list.len() >= 5;
        if is_long {
            list.swap(1, 3);
            list.swap(2, 4);
        }
        is_long
    };
    let invented = |list: &mut Vec<i64>, _: &mut Chance| {
        list.extend([-7, -1]);
        true
    };
    let early = |list: &mut Vec<i64>, _: &mut Chance| {
        list.extend([40, -1]);
        list.len() == 3 && list[0] < 5
    };
    // What is lost can't be seen where nobody knows whether it happened, and nobody else was told it.
    for terms in [EVERY, Terms { versions: true, ..EVERY }] {
        for (name, (accused, of), least) in [
            ("lost", convicted(terms, lost), 85),
            ("doubled", convicted(terms, doubled), 100),
            ("swapped", convicted(terms, swapped), 85),
            ("invented", convicted(terms, invented), 100),
            ("early", convicted(terms, early), 90),
        ] {
            assert!(of >= 20 && accused * 100 >= of * least, "{name}: {accused} of {of}");
        }
    }
    let latest = Terms { promised: Promised::Latest, versions: true, ..EVERY };
    let (accused, of) = convicted(latest, swapped);
    assert!(of >= 20 && accused == of, "versions tell: {accused} of {of}");
}
