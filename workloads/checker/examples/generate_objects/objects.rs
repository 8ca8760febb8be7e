//! Histories of objects of all kinds, linearizable by construction: clients ask one operation at a time of
//! one object that carries them out one by one, each at some moment between its call and its return.

use std::collections::{BTreeSet, VecDeque};

use checker::catalogue::ModelName;
use checker::chance::Chance;
use checker::history::{Datum, EventKind, Record};

/// What is made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    /// Of what: kv, mutex, set, queue, counter or multi-register.
    pub(crate) model: ModelName,
    /// Whether a set is also read as a whole.
    pub(crate) read_whole: bool,
    /// How many operations.
    pub(crate) operations: u64,
    /// By how many clients.
    pub(crate) clients: u64,
    /// The same number makes the same history.
    pub(crate) seed: u64,
    /// Whether one answer in the middle is made one that cannot be.
    pub(crate) falsified: bool,
}

/// Keys of a map, registers, and elements of a set.
const KEYS: u64 = 10;
const ELEMENTS: u64 = 100;

enum Client {
    Idle,
    Asked { f: &'static str, key: Datum, value: Datum },
    Done { f: &'static str, key: Datum, answer: Datum },
}

/// Who asks about an element of a set.
#[derive(Clone, Copy, Default)]
struct Interest {
    now: u64,
    /// Whoever asks now has been alone all the time.
    alone: bool,
}

#[derive(Default)]
struct Held {
    texts: Vec<String>,
    lock: Option<u64>,
    elements: BTreeSet<u64>,
    queue: VecDeque<u64>,
    sum: i64,
    registers: Vec<u64>,
    given: u64,
    interest: Vec<Interest>,
}

impl Held {
    fn at_first() -> Self {
        Self {
            texts: vec![String::new(); index(KEYS)],
            interest: vec![Interest::default(); index(ELEMENTS)],
            registers: vec![0; index(KEYS)],
            ..Self::default()
        }
    }

    /// Whether somebody holds the lock and does not give it up for now.
    fn is_kept(&self, clients: &[Client]) -> bool {
        self.lock.is_some_and(|holder| matches!(clients[index(holder)], Client::Idle))
    }

    /// Somebody begins to ask about an element, or ends. Says whether nobody else has asked about it
    /// meanwhile.
    fn asks(&mut self, element: &Datum, begins: bool) -> bool {
        let element = match element {
            Datum::List(pair) => pair.first().and_then(Datum::as_int),
            element => element.as_int(),
        };
        let at = element.and_then(|element| usize::try_from(element).ok());
        let Some(interest) = at.and_then(|at| self.interest.get_mut(at)) else { return false };
        if begins {
            interest.now += 1;
            interest.alone = interest.now == 1;
        } else {
            interest.now -= 1;
        }
        interest.alone
    }
}

/// The records of a history.
pub(crate) fn records(wanted: Wanted) -> Vec<Record> {
    let mut chance = Chance(wanted.seed);
    let mut held = Held::at_first();
    let mut clients: Vec<Client> = (0..wanted.clients).map(|_| Client::Idle).collect();
    let mut records = written_at_first(wanted.model);
    let (mut begun, mut falsified) = (0, !wanted.falsified);
    let mut running = 0;
    while begun < wanted.operations || running > 0 {
        let process = chance.below(wanted.clients);
        let is_held = held.is_kept(&clients);
        let client = &mut clients[index(process)];
        let mut note = |kind, f: &str, key: &Datum, value: &Datum| {
            let mut record = Record::new(process, kind, f, key.clone(), value.clone());
            record.index = u64::try_from(records.len()).unwrap_or(u64::MAX);
            record.line = record.index + 1;
            records.push(record);
        };
        *client = match std::mem::replace(client, Client::Idle) {
            Client::Idle if begun < wanted.operations => {
                let (f, key, value) = ask(wanted, process, &mut held, &mut chance);
                note(EventKind::Invoke, f, &key, &value);
                if wanted.model == ModelName::Set && f != "read" {
                    held.asks(&value, true);
                }
                begun += 1;
                running += 1;
                Client::Asked { f, key, value }
            }
            Client::Idle => Client::Idle,
            Client::Asked { f: "acquire", key, value }
                if is_held && !falsified && begun > wanted.operations / 2 =>
            {
                note(EventKind::Ok, "acquire", &key, &value);
                falsified = true;
                running -= 1;
                Client::Idle
            }
            Client::Asked { f, key, value } => {
                match carry_out(wanted.model, process, (f, &key, &value), &mut held) {
                    Some(answer) => Client::Done { f, key, answer },
                    None => Client::Asked { f, key, value },
                }
            }
            Client::Done { f, key, mut answer } => {
                let of_element = wanted.model == ModelName::Set && f != "read";
                let alone = !of_element || held.asks(&answer, false);
                if !falsified && alone && begun > wanted.operations / 2 {
                    falsified = falsify(f, &mut answer);
                }
                note(EventKind::Ok, f, &key, &answer);
                running -= 1;
                Client::Idle
            }
        };
        // Nobody takes a lock any more whose holder has stopped asking.
        if begun >= wanted.operations && held.is_kept(&clients) {
            held.lock = None;
            break;
        }
    }
    records
}

/// Writes all registers, so that nobody has to guess what they held at first. Other objects need no such
/// lines.
fn written_at_first(model: ModelName) -> Vec<Record> {
    if model != ModelName::MultiRegister {
        return Vec::new();
    }
    let written = Datum::List((0..KEYS).map(|key| micro("w", int(key), int(0))).collect());
    let lines = [(0, EventKind::Invoke), (1, EventKind::Ok)].map(|(at, kind)| {
        let mut record = Record::new(0, kind, "txn", Datum::Nil, written.clone());
        (record.index, record.line) = (at, at + 1);
        record
    });
    lines.into()
}

fn int(value: u64) -> Datum {
    Datum::Int(i64::try_from(value).unwrap_or(i64::MAX))
}

/// One read or write of a transaction.
fn micro(f: &str, key: Datum, value: Datum) -> Datum {
    Datum::List(vec![Datum::text(f), key, value])
}

/// One to four reads and writes; the values that it writes are its own.
fn transaction(given: u64, chance: &mut Chance) -> Datum {
    let micros = (0..=chance.below(4)).map(|at| {
        let key = int(chance.below(KEYS));
        if chance.below(2) == 0 { micro("r", key, Datum::Nil) } else { micro("w", key, int(10 * given + at)) }
    });
    Datum::List(micros.collect())
}

fn ask(wanted: Wanted, process: u64, held: &mut Held, chance: &mut Chance) -> (&'static str, Datum, Datum) {
    let dice = chance.below(100);
    held.given += 1;
    let given = held.given;
    match wanted.model {
        ModelName::MultiRegister => ("txn", Datum::Nil, transaction(given, chance)),
        ModelName::Mutex if held.lock == Some(process) => ("release", Datum::Nil, Datum::Nil),
        ModelName::Mutex => ("acquire", Datum::Nil, Datum::Nil),
        ModelName::Set if wanted.read_whole && dice >= 90 => ("read", Datum::Nil, Datum::Nil),
        ModelName::Set => {
            let f = if dice < 35 {
                "add"
            } else if dice < 60 {
                "remove"
            } else {
                "contains"
            };
            (f, Datum::Nil, int(chance.below(ELEMENTS)))
        }
        ModelName::Queue if dice < 50 => ("enqueue", Datum::Nil, int(given)),
        ModelName::Queue => ("dequeue", Datum::Nil, Datum::Nil),
        ModelName::Counter if dice < 50 => ("add", Datum::Nil, int(1 + chance.below(5))),
        ModelName::Counter => ("read", Datum::Nil, Datum::Nil),
        _ => {
            let key = int(chance.below(KEYS));
            match dice {
                0..45 => ("get", key, Datum::Nil),
                45..90 => ("append", key, Datum::text(&format!("{given} "))),
                _ => ("put", key, Datum::text(&format!("{given} "))),
            }
        }
    }
}

/// What comes of it; none while it has to wait.
fn carry_out(
    model: ModelName,
    process: u64,
    (f, key, value): (&str, &Datum, &Datum),
    held: &mut Held,
) -> Option<Datum> {
    let number =
        |datum: &Datum| datum.as_int().and_then(|value| u64::try_from(value).ok()).unwrap_or_default();
    let text = value.as_text().unwrap_or_default();
    Some(match f {
        "acquire" if held.lock.is_some() => return None,
        "acquire" => {
            held.lock = Some(process);
            Datum::Nil
        }
        "release" => {
            held.lock = None;
            Datum::Nil
        }
        "enqueue" => {
            held.queue.push_back(number(value));
            value.clone()
        }
        "dequeue" => {
            held.queue.pop_front().map_or(Datum::Nil, |head| Datum::Int(i64::try_from(head).unwrap_or(0)))
        }
        "get" => Datum::text(&held.texts[index(number(key))]),
        "put" => {
            text.clone_into(&mut held.texts[index(number(key))]);
            value.clone()
        }
        "append" => {
            held.texts[index(number(key))].push_str(text);
            value.clone()
        }
        "contains" => Datum::List(vec![value.clone(), Datum::Bool(held.elements.contains(&number(value)))]),
        "remove" => Datum::List(vec![value.clone(), Datum::Bool(held.elements.remove(&number(value)))]),
        "add" => {
            held.sum += value.as_int().unwrap_or_default();
            held.elements.insert(number(value));
            value.clone()
        }
        "txn" => {
            let micros = value.as_list().unwrap_or_default().iter().filter_map(Datum::as_list);
            let done = micros.map(|one| {
                let register = &mut held.registers[index(number(&one[1]))];
                if one[0].as_text() == Some("w") {
                    *register = number(&one[2]);
                }
                Datum::List(vec![one[0].clone(), one[1].clone(), int(*register)])
            });
            Datum::List(done.collect())
        }
        _ if model == ModelName::Set => {
            Datum::List(held.elements.iter().map(|element| int(*element)).collect())
        }
        _ => Datum::Int(held.sum),
    })
}

/// Makes an answer another one, if it is one that says something.
fn falsify(f: &str, answer: &mut Datum) -> bool {
    match (f, &mut *answer) {
        ("get", Datum::Text(text)) => *answer = Datum::text(&format!("{text}and more")),
        ("read", Datum::Int(sum)) => *sum += 1_000_000,
        ("dequeue", Datum::Int(head)) => *head += 1_000_000_000,
        ("txn", Datum::List(micros)) => {
            let read = micros.iter_mut().find_map(|micro| match micro {
                Datum::List(parts) if parts[0].as_text() == Some("r") => parts.last_mut(),
                _ => None,
            });
            let Some(Datum::Int(read)) = read else { return false };
            *read += 1_000_000_000;
        }
        ("remove" | "contains", Datum::List(pair)) => match pair.as_mut_slice() {
            [_, Datum::Bool(found)] => *found = !*found,
            _ => return false,
        },
        _ => return false,
    }
    true
}

fn index(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}
