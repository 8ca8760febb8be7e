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

/// A history that keeps ordered sequential consistency (and is linearizable without lag).
fn made(shape: &Shape, seed: u64) -> History {
    let mut chance = Chance(seed);
    let keys = usize::try_from(shape.keys).unwrap();
    // All states, one after each update: (key, value), with the versions of all keys kept beside.
    let mut log: Vec<(usize, i64, i64)> = Vec::new();
    let mut at_key: Vec<Vec<usize>> = vec![Vec::new(); keys];
    let mut clients: Vec<Client> =
        (0..shape.processes).map(|process| Client { process, running: None, seen: 0 }).collect();
    let mut events = Vec::new();
    let (mut asked, mut value, mut time) = (0, 0, 0);
    let mut broken = !shape.broken;
    while asked < shape.ops || clients.iter().any(|client| client.running.is_some()) {
        time += 1 + chance.below(1_000);
        let which = usize::try_from(chance.below(shape.processes)).unwrap();
        let session = shape.told.then_some(0x100 + u64::try_from(which).unwrap());
        let client = &mut clients[which];
        match client.running.take() {
            None if asked < shape.ops => {
                asked += 1;
                value += 1;
                let key = usize::try_from(chance.below(shape.keys)).unwrap();
                let held = at_key[key].last().map(|&at| log[at].1);
                let (f, argument) = match chance.below(100) {
                    roll if roll < shape.write_percent => (Function::Write, Value::One(value)),
                    roll if roll < shape.write_percent + shape.cas_percent => (
                        Function::Cas,
                        Value::Pair(if chance.percent(70) { held } else { Some(value / 2) }, value),
                    ),
                    _ => (Function::Read, Value::Null),
                };
                let key = u64::try_from(key).unwrap();
                let mut invoke = Event::new(client.process, EventKind::Invoke, f, key, argument, time);
                invoke.session = session;
                events.push(invoke.clone());
                client.running = Some((invoke, None));
            }
            None => {}
            Some((invoke, None)) => {
                let key = usize::try_from(invoke.key).unwrap();
                let mut answer = invoke.clone();
                answer.kind = EventKind::Ok;
                let held = at_key[key].last().map(|&at| log[at]);
                match invoke.value {
                    Value::Null => {
                        let lag = usize::try_from(chance.below(shape.lag + 1)).unwrap();
                        let mut upto = log.len().saturating_sub(lag).max(client.seen);
                        if !broken && asked > shape.ops / 2 && client.seen > 400 {
                            (broken, upto) = (true, client.seen - 300);
                        }
                        client.seen = upto.max(client.seen);
                        let known = at_key[key].partition_point(|&at| at < upto);
                        let state = known.checked_sub(1).map(|last| log[at_key[key][last]]);
                        answer.value = state.map_or(Value::Null, |state| Value::One(state.1));
                        show(
                            &mut answer,
                            shape,
                            state.map(|state| state.2),
                            known.checked_sub(1).map(|last| at_key[key][last]),
                        );
                    }
                    Value::Pair(from, _) if from != held.map(|held| held.1) => {
                        answer.kind = EventKind::Fail;
                        answer.error = Some("bad-version".into());
                        client.seen = log.len();
                    }
                    Value::One(to) | Value::Pair(_, to) => {
                        let version = held.map_or(1, |held| held.2 + 1);
                        at_key[key].push(log.len());
                        log.push((key, to, version));
                        client.seen = log.len();
                        show(&mut answer, shape, Some(version), Some(log.len() - 1));
                    }
                    Value::List(_) => unreachable!("no lists are written"),
                }
                if answer.f.is_change() && chance.percent(shape.open_percent) {
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
        for condition in Condition::ALL {
            let result = check_registers(&history, condition, &Budget::default()).result;
            assert_eq!(result.verdict, expected, "{name}, {}: {}", condition.as_str(), result.summary);
            if let Some(shown) = result.counterexample {
                assert!(shown.ops.len() <= 8 && shown.rechecked, "{name}: {}", shown.sentence);
            }
        }
    }
}
