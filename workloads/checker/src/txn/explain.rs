//! Says in a sentence what was found, and which transactions to draw.
//!
//! It stays apart from the explanations of other objects: an anomaly is a cycle of transactions or a read
//! that can't be, not an operation without a place, so it is named by what was read and appended, and drawn
//! by whole transactions.

use super::condition::{Anomaly, Condition};
use super::graph::Kind;
use super::hop::{Hop, Reason, members};
use super::intern::NONE;
use super::load::{History, What};
use super::local::Why;
use super::recheck;
use crate::budget::Budget;
use crate::history::{Datum, NEVER, Outcome};
use crate::verdict::{Counterexample, OpView};

/// Elements of a list that are written out; of a longer one the end is, where lists differ.
const MOST_ELEMENTS: usize = 6;
/// Elements of a list that a drawn transaction carries.
const MOST_CARRIED: usize = 64;
/// Steps of a cycle that a sentence tells.
const MOST_HOPS: usize = 8;

/// The counterexample that shows an anomaly.
pub(super) fn counterexample(
    history: &History,
    anomaly: Anomaly,
    why: &Why,
    condition: Condition,
    budget: &Budget,
) -> Counterexample {
    let Shown { members, culprit } = shown(history, why);
    let garbage = garbage(history, why);
    let tell = Tell { history, members: &members };
    let sentence = format!("{anomaly}: {}", tell.why(why));
    let view = |(number, &txn): (usize, &u32)| tell.view(number, txn, culprit == Some(txn));
    Counterexample {
        sentence,
        ops: members.iter().enumerate().map(view).collect(),
        of_ops: history.txns.len() as u64,
        rechecked: recheck::is_violation(history, &members, &garbage, condition, budget),
    }
}

struct Shown {
    /// The transactions to show, sorted.
    members: Vec<u32>,
    /// The one whose answer cannot be.
    culprit: Option<u32>,
}

fn shown(history: &History, why: &Why) -> Shown {
    let writer = |element: u32| history.elements[element as usize].writer;
    let (mut members, culprit) = match *why {
        Why::Garbage { reader, .. } => (vec![reader], Some(reader)),
        Why::Aborted { reader, element }
        | Why::Intermediate { reader, element }
        | Why::Twice { reader, element } => (vec![reader, writer(element)], Some(reader)),
        Why::Built { reader, aborted, committed } => {
            (vec![reader, writer(aborted), writer(committed)], Some(reader))
        }
        Why::Internal { txn, at } => {
            let mut members = vec![txn];
            members.extend(expected(history, txn, at).1.map(writer));
            (members, Some(txn))
        }
        Why::Future { txn, .. } => (vec![txn], Some(txn)),
        Why::Forked { one, other, key } => {
            let mut members = vec![one, other];
            members.extend(fork(history, one, other, key).into_iter().map(writer));
            (members, Some(other))
        }
        Why::Reordered { reader, first, .. } => (vec![reader, writer(first)], Some(reader)),
        Why::Lost { one, other, .. } => (vec![one, other], None),
        Why::Cycle(ref hops) => {
            let mut shown = members(hops);
            shown.extend(hops.iter().filter_map(|hop| evidence(history, hop).and_then(|known| known.reader)));
            let overtaken = hops.iter().find(|hop| hop.why == Reason::Data(Kind::ReadWrite));
            let reads = hops.iter().find(|hop| hop.why == Reason::Data(Kind::WriteRead));
            (shown, overtaken.map(|hop| hop.from).or(reads.map(|hop| hop.to)))
        }
    };
    members.retain(|&txn| txn != NONE);
    members.sort_unstable();
    members.dedup();
    Shown { members, culprit: culprit.filter(|&txn| txn != NONE) }
}

/// Elements without a writer that an anomaly is about.
fn garbage(history: &History, why: &Why) -> Vec<u32> {
    let mut elements = match *why {
        Why::Garbage { element, .. } | Why::Twice { element, .. } => vec![element],
        Why::Forked { one, other, key } => fork(history, one, other, key),
        Why::Internal { txn, at } => expected(history, txn, at).1.into_iter().collect(),
        _ => Vec::new(),
    };
    elements.retain(|&element| history.elements[element as usize].writer == NONE);
    elements
}

/// The elements in which two reads of a key differ first.
fn fork(history: &History, one: u32, other: u32, key: u32) -> Vec<u32> {
    for left in history.micros(one).iter().filter(|micro| micro.key == key) {
        for right in history.micros(other).iter().filter(|micro| micro.key == key) {
            let (Some(left), Some(right)) = (history.read(left), history.read(right)) else { continue };
            if let Some((&left, &right)) = left.iter().zip(right).find(|(left, right)| left != right) {
                return vec![left, right];
            }
        }
    }
    Vec::new()
}

/// What a transaction should have read at a position by what it did before, and an element in which that
/// differs.
fn expected(history: &History, txn: u32, at: u32) -> (Vec<u32>, Option<u32>) {
    let micros = history.micros(txn);
    let at = at as usize;
    let key = micros[at].key;
    let mut known: Option<Vec<u32>> = None;
    let mut own = Vec::new();
    for micro in micros[..at].iter().filter(|micro| micro.key == key) {
        match micro.what {
            What::Append(element) => own.push(element),
            _ => (known, own) = (history.read(micro).map(<[u32]>::to_vec), Vec::new()),
        }
    }
    let actual = history.read(&micros[at]).unwrap_or_default();
    let start = match &known {
        Some(_) => 0,
        None => actual.len().saturating_sub(own.len()),
    };
    let mut expected = known.unwrap_or_default();
    expected.append(&mut own);
    let actual = &actual[start..];
    let length = expected.len().max(actual.len());
    let differs = (0..length).find(|&place| expected.get(place) != actual.get(place));
    // Own elements need no other transaction to be missed.
    let element = differs.and_then(|place| actual.get(place).or(expected.get(place)).copied());
    (expected, element)
}

/// What stands behind a step of a cycle.
struct Evidence {
    key: u32,
    /// What the first one appended, or how much it read.
    before: Before,
    /// The element of the second one.
    after: u32,
    /// Who saw the two elements in their order.
    reader: Option<u32>,
}

enum Before {
    Appended(u32),
    Read(u32),
}

fn evidence(history: &History, hop: &Hop) -> Option<Evidence> {
    let Hop { from, to, why: Reason::Data(kind) } = *hop else { return None };
    match kind {
        Kind::WriteWrite => history.micros(to).iter().find_map(|micro| {
            let What::Append(after) = micro.what else { return None };
            let list = &history.lists[micro.key as usize];
            let place = history.elements[after as usize].place;
            let until = if place == NONE { list.order.len() } else { place as usize };
            let mut earlier =
                list.order[..until].iter().rev().filter(|&&element| history.writer(element).is_some());
            let &before = earlier.next()?;
            let reader = if place == NONE { list.longest_reader() } else { list.witness(until) };
            (history.writer(before) == Some(from)).then_some(Evidence {
                key: micro.key,
                before: Before::Appended(before),
                after,
                reader,
            })
        }),
        Kind::WriteRead => history.micros(to).iter().find_map(|micro| {
            let What::Read(length) = micro.what else { return None };
            let last = length.checked_sub(1)?;
            let after = history.lists[micro.key as usize].order[last as usize];
            (history.writer(after) == Some(from)).then_some(Evidence {
                key: micro.key,
                before: Before::Read(length),
                after,
                reader: None,
            })
        }),
        Kind::ReadWrite => history.micros(from).iter().find_map(|read| {
            let What::Read(length) = read.what else { return None };
            let order = &history.lists[read.key as usize].order;
            let after = history.micros(to).iter().find_map(|micro| match micro.what {
                What::Append(element) if micro.key == read.key => {
                    let place = history.elements[element as usize].place;
                    let follows = place == length || (place == NONE && length as usize == order.len());
                    follows.then_some(element)
                }
                _ => None,
            })?;
            Some(Evidence { key: read.key, before: Before::Read(length), after, reader: None })
        }),
        Kind::Via => None,
    }
}

/// Words for transactions that are numbered among those shown.
struct Tell<'a> {
    history: &'a History,
    members: &'a [u32],
}

impl Tell<'_> {
    fn name(&self, txn: u32) -> String {
        match self.members.binary_search(&txn) {
            Ok(number) => format!("T{}", number + 1),
            Err(_) => "a transaction".to_owned(),
        }
    }

    /// A number alone would be taken for an element.
    fn key(&self, key: u32) -> String {
        match self.history.key(key) {
            Datum::Int(number) => format!("list {number}"),
            name => name.to_string(),
        }
    }

    fn list(&self, list: &[u32]) -> String {
        let left_out = list.len().saturating_sub(MOST_ELEMENTS);
        let shown: Vec<String> =
            list[left_out..].iter().map(|&element| self.history.datum(element).to_string()).collect();
        format!("[{}{}]", if left_out > 0 { "… " } else { "" }, shown.join(" "))
    }

    fn longest(&self, key: u32, until: usize) -> String {
        let order = &self.history.lists[key as usize].order;
        self.list(&order[..until.min(order.len())])
    }

    fn why(&self, why: &Why) -> String {
        let datum = |element: u32| self.history.datum(element);
        let key = |element: u32| self.key(self.history.elements[element as usize].key);
        let writer = |element: u32| self.name(self.history.elements[element as usize].writer);
        let name = |txn: u32| self.name(txn);
        match *why {
            Why::Garbage { reader, element } => {
                format!("{} read {} in {}, which nobody appended", name(reader), datum(element), key(element))
            }
            Why::Aborted { reader, element } => format!(
                "{} read {} in {}, which {} appended, and that transaction failed",
                name(reader),
                datum(element),
                key(element),
                writer(element)
            ),
            Why::Built { reader, aborted, committed } => format!(
                "{} read {} in {} behind {}: {} built on what {} appended, and that one failed",
                name(reader),
                datum(committed),
                key(committed),
                datum(aborted),
                writer(committed),
                writer(aborted)
            ),
            Why::Intermediate { reader, element } => format!(
                "{} read {} at the end of {}, after which {} appended more to it in the same transaction",
                name(reader),
                datum(element),
                key(element),
                writer(element)
            ),
            Why::Internal { txn, at } => self.internal(txn, at),
            Why::Future { txn, at } => {
                let micro = self.history.micros(txn)[at as usize];
                let What::Append(element) = micro.what else { return String::new() };
                format!(
                    "{} read {} in {} before it appended that itself",
                    name(txn),
                    datum(element),
                    key(element)
                )
            }
            Why::Twice { reader, element } => {
                format!("{} read {} twice in {}", name(reader), datum(element), key(element))
            }
            Why::Forked { one, other, key } => self.forked(one, other, key),
            Why::Reordered { reader, first, second } => format!(
                "{} read {} in {} without {} before it, although {} appended them in that order",
                name(reader),
                datum(second),
                key(second),
                datum(first),
                writer(first)
            ),
            Why::Lost { one, other, key, length } => format!(
                "{} and {} both read {} from {} and both appended to it: one of them did not see the other",
                name(one),
                name(other),
                self.longest(key, length as usize),
                self.key(key)
            ),
            Why::Cycle(ref hops) => self.cycle(hops),
        }
    }

    /// A read that does not fit what its own transaction did before.
    fn internal(&self, txn: u32, at: u32) -> String {
        let micro = self.history.micros(txn)[at as usize];
        let list = self.history.read(&micro).unwrap_or_default();
        let expected = expected(self.history, txn, at).0;
        format!(
            "{} read {} from {}, but by what it had read and appended itself that list ends with {}",
            self.name(txn),
            self.list(list),
            self.key(micro.key),
            self.list(&expected)
        )
    }

    /// Two reads of a key of which neither is a beginning of the other.
    fn forked(&self, one: u32, other: u32, key: u32) -> String {
        let datum = |element: u32| self.history.datum(element);
        let elements = match fork(self.history, one, other, key)[..] {
            [left, right] => format!(": {} where the other has {}", datum(right), datum(left)),
            _ => String::new(),
        };
        format!(
            "neither is what {} read from {} a beginning of what {} read, nor the other way round{elements}",
            self.name(other),
            self.key(key),
            self.name(one)
        )
    }

    fn cycle(&self, hops: &[Hop]) -> String {
        let mut told: Vec<String> = hops.iter().take(MOST_HOPS).map(|hop| self.hop(hop)).collect();
        if hops.len() > MOST_HOPS {
            told.push(format!("and so on through {} transactions", hops.len()));
        }
        let first = hops.first().map_or(NONE, |hop| hop.from);
        format!("{}: so {} would have to come before itself", told.join("; "), self.name(first))
    }

    fn hop(&self, hop: &Hop) -> String {
        let (from, to) = (self.name(hop.from), self.name(hop.to));
        let txn = |txn: u32| &self.history.txns[txn as usize];
        match (hop.why, evidence(self.history, hop)) {
            (Reason::Process, _) => {
                format!("process {} did {from} before {to}", txn(hop.from).process)
            }
            (Reason::Realtime, _) => format!(
                "{from} had returned at {}, before {to} was invoked at {}",
                seconds(txn(hop.from).complete_ns),
                seconds(txn(hop.to).invoke_ns)
            ),
            (Reason::Data(kind), Some(known)) => self.data(kind, &from, &to, &known),
            (Reason::Data(_), None) => format!("{from} has to come before {to}"),
        }
    }

    fn data(&self, kind: Kind, from: &str, to: &str, known: &Evidence) -> String {
        let after = self.history.datum(known.after);
        let key = self.key(known.key);
        let place = self.history.elements[known.after as usize].place;
        match known.before {
            Before::Appended(before) => {
                let before = self.history.datum(before);
                let reader = known.reader.map_or_else(|| "somebody".to_owned(), |reader| self.name(reader));
                let until = if place == NONE { usize::MAX } else { place as usize + 1 };
                let list = self.longest(known.key, until);
                let seen = match place {
                    NONE => format!("the longest list, read by {reader}, is {list}"),
                    _ => format!("the list read by {reader} is {list}"),
                };
                format!("{from} appended {before} to {key} before {to} appended {after} ({seen})")
            }
            Before::Read(_) if kind == Kind::WriteRead => {
                format!("{to} read {after} at the end of {key}, which {from} appended")
            }
            Before::Read(length) => {
                let list = self.longest(known.key, length as usize);
                format!("{from} read {list} from {key} without {after}, which {to} appended")
            }
        }
    }

    fn view(&self, number: usize, txn: u32, impossible: bool) -> OpView {
        let known = &self.history.txns[txn as usize];
        let micros = self.history.micros(txn);
        let call: Vec<String> = micros
            .iter()
            .map(|micro| {
                let key = match self.history.key(micro.key) {
                    Datum::Int(number) => format!("k{number}"),
                    name => name.to_string(),
                };
                match micro.what {
                    What::Append(element) => format!("append {key} {}", self.history.datum(element)),
                    _ => match self.history.read(micro) {
                        Some(list) => format!("r {key} {}", self.list(list)),
                        None => format!("r {key}"),
                    },
                }
            })
            .collect();
        OpView {
            index: known.index,
            process: known.process,
            f: "txn".to_owned(),
            key: Datum::Nil,
            value: Datum::List(micros.iter().map(|micro| self.value(micro)).collect()),
            call: format!("T{}: {}", number + 1, call.join(", ")),
            changes: micros.iter().any(|micro| matches!(micro.what, What::Append(_))),
            invoke_ns: known.invoke_ns,
            complete_ns: (known.ret != NEVER && known.outcome != Outcome::Info).then_some(known.complete_ns),
            outcome: known.outcome,
            node: None,
            session: None,
            version: None,
            impossible,
        }
    }

    /// The micro-operation as the history has it, the beginning of a long list left out.
    fn value(&self, micro: &super::load::Micro) -> Datum {
        let (f, value) = match micro.what {
            What::Append(element) => ("append", self.history.datum(element)),
            _ => match self.history.read(micro) {
                Some(list) => {
                    let end = &list[list.len().saturating_sub(MOST_CARRIED)..];
                    ("r", Datum::List(end.iter().map(|&element| self.history.datum(element)).collect()))
                }
                None => ("r", Datum::Nil),
            },
        };
        Datum::List(vec![Datum::text(f), self.history.key(micro.key).clone(), value])
    }
}

/// Nanoseconds as seconds with four decimals.
fn seconds(ns: u64) -> String {
    let tenths_of_ms = ns / 100_000;
    format!("{}.{:04} s", tenths_of_ms / 10_000, tenths_of_ms % 10_000)
}
