//! Histories as an ensemble makes them whose members lag behind.
//!
//! Clients take turns, writes take effect once between call and return, and reads look at the newest state
//! or, in the stale kind, at what a member knows that lags behind while its session has seen no more.

use super::{Condition, check_registers};
use crate::budget::Budget;
use crate::chance::Chance;
use crate::history::{Event, EventKind, Function, History, Value};
use crate::verdict::Verdict;

/// What is made.
#[derive(Clone, Copy)]
struct Shape {
    ops: u64,
    processes: u64,
    keys: u64,
    /// How many updates a read may lag behind.
    lag: u64,
    /// Of a hundred operations how many write, and how many compare and set.
    write_percent: u64,
    cas_percent: u64,
    /// Of a hundred updates how many are never answered.
    open_percent: u64,
    /// Whether replies show versions, zxids and sessions.
    told: bool,
    /// Whether one read, in the middle, shows a session the past.
    broken: bool,
}

const PLAIN: Shape = Shape {
    ops: 2_000,
    processes: 10,
    keys: 5,
    lag: 0,
    write_percent: 50,
    cas_percent: 0,
    open_percent: 0,
    told: false,
    broken: false,
};

struct Client {
    process: u64,
    /// The operation in flight: its lines' beginning, and whether it took effect.
    running: Option<(Event, Option<Event>)>,
    seen: usize,
}

/// What the members know together.
struct Ensemble<'a> {
    shape: &'a Shape,
    chance: Chance,
    /// All states, one after each update: (key, value), with the versions of all keys kept beside.
    log: Vec<(usize, i64, i64)>,
    at_key: Vec<Vec<usize>>,
    /// How many operations were asked for.
    asked: u64,
    /// Whether the read that shows the past is done, or none is wanted.
    broken: bool,
}

impl Ensemble<'_> {
    /// A random operation on a random key; what it writes is its own.
    fn ask(&mut self, process: u64, time: u64) -> Event {
        self.asked += 1;
        let value = i64::try_from(self.asked).unwrap();
        let Shape { keys, write_percent, cas_percent, .. } = *self.shape;
        let key = usize::try_from(self.chance.below(keys)).unwrap();
        let held = self.at_key[key].last().map(|&at| self.log[at].1);
        let (f, argument) = match self.chance.below(100) {
            roll if roll < write_percent => (Function::WRITE, Value::One(value)),
            roll if roll < write_percent + cas_percent => (
                Function::CAS,
                Value::Pair(if self.chance.percent(70) { held } else { Some(value / 2) }, value),
            ),
            _ => (Function::READ, Value::Null),
        };
        Event::new(process, EventKind::Invoke, f, u64::try_from(key).unwrap(), argument, time)
    }

    /// Carries an operation out, for a session that has seen so many updates.
    fn answer(&mut self, invoke: &Event, seen: &mut usize) -> Event {
        let key = usize::try_from(invoke.key).unwrap();
        let mut answer = invoke.clone();
        answer.kind = EventKind::Ok;
        let held = self.at_key[key].last().map(|&at| self.log[at]);
        match invoke.value {
            Value::Null => {
                let up_to = self.read_up_to(seen);
                let known = self.at_key[key].partition_point(|&at| at < up_to);
                let at = known.checked_sub(1).map(|last| self.at_key[key][last]);
                let state = at.map(|at| self.log[at]);
                answer.value = state.map_or(Value::Null, |state| Value::One(state.1));
                show(&mut answer, self.shape, state.map(|state| state.2), at);
            }
            Value::Pair(from, _) if from != held.map(|held| held.1) => {
                answer.kind = EventKind::Fail;
                answer.error = Some("bad-version".into());
                *seen = self.log.len();
            }
            Value::One(to) | Value::Pair(_, to) => {
                let version = held.map_or(1, |held| held.2 + 1);
                self.at_key[key].push(self.log.len());
                self.log.push((key, to, version));
                *seen = self.log.len();
                show(&mut answer, self.shape, Some(version), Some(self.log.len() - 1));
            }
            Value::List(_) | Value::Txn(_) => unreachable!("no lists are written"),
        }
        answer
    }

    /// How many updates a read shows: not fewer than its session has seen, except for the one that shows the
    /// past.
    fn read_up_to(&mut self, seen: &mut usize) -> usize {
        let lag = usize::try_from(self.chance.below(self.shape.lag + 1)).unwrap();
        let mut up_to = self.log.len().saturating_sub(lag).max(*seen);
        if !self.broken && self.asked > self.shape.ops / 2 && *seen > 400 {
            (self.broken, up_to) = (true, *seen - 300);
        }
        *seen = up_to.max(*seen);
        up_to
    }
}

/// A history that keeps ordered sequential consistency (and is linearizable without lag).
fn made(shape: &Shape, seed: u64) -> History {
    let mut ensemble = Ensemble {
        shape,
        chance: Chance(seed),
        log: Vec::new(),
        at_key: vec![Vec::new(); usize::try_from(shape.keys).unwrap()],
        asked: 0,
        broken: !shape.broken,
    };
    let mut clients: Vec<Client> =
        (0..shape.processes).map(|process| Client { process, running: None, seen: 0 }).collect();
    let mut events = Vec::new();
    let mut time = 0;
    while ensemble.asked < shape.ops || clients.iter().any(|client| client.running.is_some()) {
        time += 1 + ensemble.chance.below(1_000);
        let which = usize::try_from(ensemble.chance.below(shape.processes)).unwrap();
        let session = shape.told.then_some(0x100 + u64::try_from(which).unwrap());
        let client = &mut clients[which];
        match client.running.take() {
            None if ensemble.asked < shape.ops => {
                let mut invoke = ensemble.ask(client.process, time);
                invoke.session = session;
                events.push(invoke.clone());
                client.running = Some((invoke, None));
            }
            None => {}
            Some((invoke, None)) => {
                let answer = ensemble.answer(&invoke, &mut client.seen);
                if answer.f != Function::READ && ensemble.chance.percent(shape.open_percent) {
                    client.process += shape.processes;
                    if !shape.told {
                        client.seen = 0;
                    }
                } else {
                    client.running = Some((invoke, Some(answer)));
                }
            }
            Some((_, Some(mut answer))) => {
                answer.time = Some(time);
                events.push(answer);
            }
        }
    }
    (0..).zip(&mut events).for_each(|(index, event)| event.index = index);
    History::from_events(events).unwrap()
}

fn show(answer: &mut Event, shape: &Shape, version: Option<i64>, at: Option<usize>) {
    if shape.told {
        answer.version = version;
        answer.mzxid = at.map(|at| u64::try_from(at).unwrap() + 1);
    }
}

const SHAPES: [(&str, Shape); 8] = [
    ("linearizable", PLAIN),
    ("stale reads", Shape { lag: 200, ..PLAIN }),
    ("stale, mostly reads", Shape { lag: 200, write_percent: 10, ..PLAIN }),
    ("stale, cas, open", Shape { lag: 200, write_percent: 30, cas_percent: 20, open_percent: 1, ..PLAIN }),
    ("stale, told", Shape { lag: 200, told: true, ..PLAIN }),
    (
        "stale, told, cas, open",
        Shape { lag: 200, told: true, write_percent: 30, cas_percent: 20, open_percent: 1, ..PLAIN },
    ),
    ("stale, broken", Shape { lag: 200, broken: true, ..PLAIN }),
    ("stale, told, broken", Shape { lag: 200, told: true, broken: true, ..PLAIN }),
];

#[test]
fn histories_of_members_that_lag_behind_are_judged_as_they_were_made() {
    for (name, shape) in SHAPES {
        let history = made(&shape, 7);
        let expected = if shape.broken { Verdict::Invalid } else { Verdict::Valid };
        // Which one of the guarantees of a session is broken is up to chance.
        for condition in [Condition::OrderedSequential, Condition::Sequential, Condition::SessionGuarantees] {
            let result = check_registers(&history, condition, &Budget::default()).result;
            assert_eq!(result.verdict, expected, "{name}, {}: {}", condition.as_str(), result.summary);
            if let Some(shown) = result.counterexample {
                assert!(shown.ops.len() <= 8 && shown.rechecked, "{name}: {}", shown.sentence);
            }
        }
    }
}
