//! Anomalies that need no cycle: what one list, one transaction or two of them show by themselves.

use std::collections::BTreeMap;

use super::condition::Anomaly;
use super::hop::Hop;
use super::intern::{NONE, to_u32};
use super::load::{History, What};
use super::rule::{Rule, broken};
use crate::budget::{Exhausted, Meter};
use crate::history::Outcome;

/// Why something is an anomaly.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Why {
    /// The reader saw an element that nobody appended.
    Garbage { reader: u32, element: u32 },
    /// The reader saw an element of a failed transaction.
    Aborted { reader: u32, element: u32 },
    /// The second element was appended after the first, of a failed transaction.
    Built { reader: u32, aborted: u32, committed: u32 },
    /// The reader saw a list ending with an element after which its writer appended another.
    Intermediate { reader: u32, element: u32 },
    /// The transaction's operation at that position does not fit those before it.
    Internal { txn: u32, at: u32 },
    /// The transaction's append at that position was in a list that it had read before.
    Future { txn: u32, at: u32 },
    /// The reader saw an element twice.
    Twice { reader: u32, element: u32 },
    /// Two reads of a key of which neither is a beginning of the other.
    Forked { one: u32, other: u32, key: u32 },
    /// The reader saw the second append of a transaction without the first before it.
    Reordered { reader: u32, first: u32, second: u32 },
    /// Both read so many elements of a key and appended.
    Lost { one: u32, other: u32, key: u32, length: u32 },
    /// Each has to come before the next, and the last before the first.
    Cycle(Vec<Hop>),
}

/// What was found, with the first or smallest example of each.
#[derive(Debug, Default)]
pub(super) struct Findings(pub(super) BTreeMap<Anomaly, (u64, Why)>);

impl Findings {
    pub(super) fn note(&mut self, anomaly: Anomaly, why: impl FnOnce() -> Why) {
        self.0.entry(anomaly).and_modify(|(count, _)| *count += 1).or_insert_with(|| (1, why()));
    }

    /// Notes a cycle, and keeps it as the example if it is smaller.
    pub(super) fn note_cycle(&mut self, anomaly: Anomaly, hops: Vec<Hop>) {
        let (count, why) = self.0.entry(anomaly).or_insert_with(|| (0, Why::Cycle(hops.clone())));
        *count += 1;
        if let Why::Cycle(known) = why
            && known.len() > hops.len()
        {
            *known = hops;
        }
    }
}

/// Looks for all of them.
///
/// # Errors
/// Why it gave up.
pub(super) fn find(history: &History, meter: &mut Meter) -> Result<Findings, Exhausted> {
    let mut findings = Findings::default();
    for key in 0..to_u32(history.lists.len()) {
        meter.step()?;
        list(history, key, &mut findings);
    }
    for (odd, number) in history.odd.iter().zip(0..) {
        meter.step()?;
        odd_list(history, number, &mut findings);
        if !broken(Rule::OneOrder) {
            let other = history.lists[odd.key as usize].witness(agreed(history, number));
            let other = other.or_else(|| history.lists[odd.key as usize].longest_reader());
            findings.note(Anomaly::IncompatibleOrder, || Why::Forked {
                one: other.unwrap_or(odd.reader),
                other: odd.reader,
                key: odd.key,
            });
        }
    }
    let mut walk = Walk::new(history.lists.len());
    for txn in 0..to_u32(history.txns.len()) {
        meter.step()?;
        if history.txns[txn as usize].outcome == Outcome::Ok {
            walk.operations(history, txn, &mut findings);
        }
        if history.happened[txn as usize] {
            walk.own_order(history, txn, &mut findings);
        }
    }
    walk.lost_updates(history, &mut findings);
    Ok(findings)
}

/// How many elements a contradicting read has in common with the longest.
fn agreed(history: &History, odd: u32) -> usize {
    let odd = &history.odd[odd as usize];
    let order = &history.lists[odd.key as usize].order;
    odd.list.iter().zip(order).take_while(|(one, other)| one == other).count()
}

/// Elements of the longest list of a key.
fn list(history: &History, key: u32, findings: &mut Findings) {
    let list = &history.lists[key as usize];
    let reader = |place: u32| list.witness(place as usize).unwrap_or(NONE);
    let mut aborted = None;
    for (&element, place) in list.order.iter().zip(0..) {
        let known = &history.elements[element as usize];
        if known.place != place && !broken(Rule::NoDuplicates) {
            findings.note(Anomaly::DuplicateElements, || Why::Twice { reader: reader(place), element });
        }
        origin(history, element, || reader(place), findings);
        if known.writer != NONE && history.txns[known.writer as usize].outcome == Outcome::Fail {
            aborted = aborted.or(Some(element));
        } else if let Some(aborted) = aborted
            && known.writer != NONE
            && !broken(Rule::NoAbortedRead)
        {
            let reader = reader(place);
            findings.note(Anomaly::DirtyUpdate, || Why::Built { reader, aborted, committed: element });
        }
    }
}

fn origin(history: &History, element: u32, reader: impl FnOnce() -> u32, findings: &mut Findings) {
    let writer = history.elements[element as usize].writer;
    if writer == NONE {
        if !broken(Rule::NoGarbage) {
            findings.note(Anomaly::GarbageRead, || Why::Garbage { reader: reader(), element });
        }
    } else if history.txns[writer as usize].outcome == Outcome::Fail && !broken(Rule::NoAbortedRead) {
        findings.note(Anomaly::G1a, || Why::Aborted { reader: reader(), element });
    }
}

fn odd_list(history: &History, number: u32, findings: &mut Findings) {
    let odd = &history.odd[number as usize];
    let mut seen = std::collections::HashSet::new();
    for &element in &odd.list {
        origin(history, element, || odd.reader, findings);
        if !seen.insert(element) && !broken(Rule::NoDuplicates) {
            findings.note(Anomaly::DuplicateElements, || Why::Twice { reader: odd.reader, element });
        }
    }
}

/// What a transaction knows of a key.
#[derive(Clone, Copy)]
struct Seen {
    /// Whose knowledge this is.
    txn: u32,
    /// The length last read, or [`NONE`].
    length: u32,
    /// Own appends since then.
    appended: u32,
    /// The place of the first and the last of these; [`NONE`] when they are not adjacent.
    first: u32,
    last: u32,
    /// A read was not understood: nothing is known.
    lost: bool,
}

struct Walk {
    seen: Vec<Seen>,
    /// Reads that were followed by an append which did not take the next place: key, length, reader.
    unplaced: Vec<(u32, u32, u32)>,
    /// For each key the last own append, and whose that is.
    own: Vec<(u32, u32)>,
}

impl Walk {
    fn new(keys: usize) -> Self {
        let nothing = Seen { txn: NONE, length: NONE, appended: 0, first: NONE, last: NONE, lost: false };
        Self { seen: vec![nothing; keys], unplaced: Vec::new(), own: vec![(NONE, NONE); keys] }
    }

    fn operations(&mut self, history: &History, txn: u32, findings: &mut Findings) {
        for (micro, at) in history.micros(txn).iter().zip(0..) {
            let seen = &mut self.seen[micro.key as usize];
            if seen.txn != txn {
                *seen = Seen { txn, length: NONE, appended: 0, first: NONE, last: NONE, lost: false };
            }
            let list = &history.lists[micro.key as usize];
            match micro.what {
                _ if list.tainted => {}
                What::Append(element) => {
                    let place = history.elements[element as usize].place;
                    if seen.length != NONE && place < seen.length {
                        findings.note(Anomaly::FutureRead, || Why::Future { txn, at });
                    }
                    if seen.length != NONE && seen.appended == 0 && !seen.lost && place != seen.length {
                        self.unplaced.push((micro.key, seen.length, txn));
                    }
                    let follows = seen.last != NONE && place == seen.last + 1;
                    if seen.appended == 0 {
                        (seen.first, seen.last) = (place, place);
                    } else {
                        seen.last = if follows { place } else { NONE };
                    }
                    seen.appended += 1;
                }
                What::Read(length) => {
                    if !seen.lost && !fits(seen, length) {
                        findings.note(Anomaly::Internal, || Why::Internal { txn, at });
                    }
                    (seen.length, seen.appended, seen.lost) = (length, 0, false);
                    if let Some(&element) =
                        length.checked_sub(1).and_then(|last| list.order.get(last as usize))
                        && history.elements[element as usize].intermediate
                        && history.writer(element).is_some_and(|writer| writer != txn)
                        && !broken(Rule::NoIntermediateRead)
                    {
                        findings.note(Anomaly::G1b, || Why::Intermediate { reader: txn, element });
                    }
                }
                What::Odd(_) | What::Unread => seen.lost = true,
            }
        }
    }

    /// A transaction's appends to a key are in the list in its own order.
    fn own_order(&mut self, history: &History, txn: u32, findings: &mut Findings) {
        for micro in history.micros(txn) {
            let What::Append(second) = micro.what else { continue };
            let list = &history.lists[micro.key as usize];
            let (before, first) = std::mem::replace(&mut self.own[micro.key as usize], (txn, second));
            let place = |element: u32| history.elements[element as usize].place;
            if before == txn && place(second) != NONE && !list.tainted && place(first) > place(second) {
                let reader = list.witness(place(second) as usize).unwrap_or(NONE);
                findings.note(Anomaly::IncompatibleOrder, || Why::Reordered { reader, first, second });
            }
        }
    }

    /// Whoever reads a list and appends to it takes the next place, or loses an update or has one lost.
    fn lost_updates(&mut self, history: &History, findings: &mut Findings) {
        if broken(Rule::NoUpdateIsLost) {
            return;
        }
        self.unplaced.sort_unstable();
        for group in self.unplaced.chunk_by(|one, other| (one.0, one.1) == (other.0, other.1)) {
            let (key, length, one) = group[0];
            let order = &history.lists[key as usize].order;
            let winner = order.get(length as usize).and_then(|&element| history.writer(element));
            let winner = winner.filter(|&winner| {
                let mut on_key = history.micros(winner).iter().filter(|micro| micro.key == key);
                let read = What::Read(length);
                let reads_before = on_key.by_ref().take_while(|micro| !matches!(micro.what, What::Append(_)));
                winner != one && reads_before.last().is_some_and(|micro| micro.what == read)
            });
            let other = group.get(1).map(|&(.., other)| other).filter(|&other| other != one).or(winner);
            if let Some(other) = other {
                findings.note(Anomaly::LostUpdate, || Why::Lost { one, other, key, length });
            }
        }
    }
}

/// Whether a read of this length fits what the transaction read and appended before.
fn fits(seen: &Seen, length: u32) -> bool {
    if seen.appended == 0 {
        return seen.length == NONE || seen.length == length || broken(Rule::ReadsRepeat);
    }
    if broken(Rule::OwnAppendsAreSeen) {
        return true;
    }
    seen.last != NONE
        && seen.last + 1 == length
        && seen.first != NONE
        && (seen.length == NONE || seen.length == seen.first)
}
