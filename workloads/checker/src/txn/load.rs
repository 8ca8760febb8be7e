//! Records to transactions.
//!
//! Lists are long and read often, so a read is not kept: what is kept for each key is the longest list that
//! anybody read, and of a read that is a beginning of it only how long it was. A read that is no beginning of
//! it is a violation already; a bounded number of these is kept to show it.
//!
//! Micro-operations take their place when a transaction is invoked, and reads are filled in when it
//! completes, so that nothing of the records is held in between. Real time is the order of the stamps, and of
//! the records where stamps are equal or absent, as everywhere in this crate.

use super::intern::{Atom, NONE, Names, to_u32};
use super::rule::{Rule, broken};
use crate::budget::{Exhausted, Interrupt};
use crate::hash::FastMap;
use crate::history::{Datum, EventKind, LoadError, NEVER, Outcome, Pairs, Rank, Record, Stamp, ranks};

/// More parts than this of anything are refused, so that numbers of four bytes suffice with two bits to
/// spare.
const MAX_PARTS: usize = 1 << 29;
/// Reads that contradict the longest one, kept for each history.
const MAX_ODD: usize = 1000;
/// Elements of such reads, in sum.
const MAX_ODD_ELEMENTS: usize = 1 << 20;
/// Records between two looks at the interrupt.
const LOOK_EVERY: u64 = 1 << 12;

/// A transaction.
#[derive(Clone, Debug)]
pub(super) struct Txn {
    pub(super) process: u64,
    pub(super) index: u64,
    pub(super) invoke_ns: u64,
    pub(super) complete_ns: u64,
    pub(super) call: Rank,
    pub(super) ret: Rank,
    pub(super) first: u32,
    pub(super) count: u32,
    pub(super) outcome: Outcome,
}

/// What a transaction did to one key.
#[derive(Clone, Copy, Debug)]
pub(super) struct Micro {
    pub(super) key: u32,
    pub(super) what: What,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// This element was appended.
    Append(u32),
    /// So many elements of the longest list were read.
    Read(u32),
    /// A list that is no beginning of the longest one was read; its number.
    Odd(u32),
    /// A read without an answer, or one more that contradicts.
    Unread,
}

/// An element of a key's list.
#[derive(Clone, Debug)]
pub(super) struct Element {
    pub(super) atom: Atom,
    pub(super) key: u32,
    /// Who appended it, or [`NONE`].
    pub(super) writer: u32,
    /// Its place in the longest list, or [`NONE`].
    pub(super) place: u32,
    /// Its writer appended to the same list again.
    pub(super) intermediate: bool,
}

/// The longest list of a key.
#[derive(Debug, Default)]
pub(super) struct List {
    pub(super) order: Vec<u32>,
    atoms: Vec<Atom>,
    /// Who was the first to read so many elements, lengths ascending.
    seen_by: Vec<(u32, u32)>,
    /// It holds an element twice: nothing is inferred from it.
    pub(super) tainted: bool,
}

impl List {
    /// Who showed the element at a place.
    pub(super) fn witness(&self, place: usize) -> Option<u32> {
        let at = self.seen_by.partition_point(|&(length, _)| length as usize <= place);
        self.seen_by.get(at).map(|&(_, reader)| reader)
    }

    /// Who read all of it.
    pub(super) fn longest_reader(&self) -> Option<u32> {
        self.seen_by.last().map(|&(_, reader)| reader)
    }
}

/// A read that contradicts the longest one.
#[derive(Debug)]
pub(super) struct Odd {
    pub(super) reader: u32,
    pub(super) key: u32,
    pub(super) list: Vec<u32>,
}

/// A history of transactions, sorted by their calls.
#[derive(Debug, Default)]
pub(super) struct History {
    pub(super) txns: Vec<Txn>,
    pub(super) micros: Vec<Micro>,
    pub(super) elements: Vec<Element>,
    pub(super) lists: Vec<List>,
    pub(super) odd: Vec<Odd>,
    /// Reads that contradict and were not kept.
    pub(super) odd_dropped: u64,
    /// Who may have taken effect: what was acknowledged, and what of unknown fate was seen.
    pub(super) happened: Vec<bool>,
    pub(super) reads: u64,
    keys: Names,
    others: Names,
    /// Why reading ended before the records did.
    pub(super) cut: Option<Exhausted>,
}

impl History {
    pub(super) fn micros(&self, txn: u32) -> &[Micro] {
        let Txn { first, count, .. } = self.txns[txn as usize];
        &self.micros[first as usize..(first + count) as usize]
    }

    pub(super) fn key(&self, key: u32) -> &Datum {
        self.keys.name(key)
    }

    pub(super) fn datum(&self, element: u32) -> Datum {
        match self.elements[element as usize].atom {
            Atom::Int(value) => Datum::Int(value),
            Atom::Other(number) => self.others.name(number).clone(),
        }
    }

    /// The elements that a read returned; none for one that is not known.
    pub(super) fn read<'a>(&'a self, micro: &Micro) -> Option<&'a [u32]> {
        match micro.what {
            What::Read(length) => Some(&self.lists[micro.key as usize].order[..length as usize]),
            What::Odd(odd) => Some(&self.odd[odd as usize].list),
            What::Append(_) | What::Unread => None,
        }
    }

    /// Who appended the element, if that took effect.
    pub(super) fn writer(&self, element: u32) -> Option<u32> {
        let writer = self.elements[element as usize].writer;
        (writer != NONE && self.happened[writer as usize]).then_some(writer)
    }
}

/// Reads transactions from records.
///
/// # Errors
/// [`LoadError`] names the line that is malformed or contradicts those before it.
pub(super) fn load(
    records: impl IntoIterator<Item = Result<Record, LoadError>>,
    interrupt: &Interrupt,
) -> Result<History, LoadError> {
    let mut loading = Loading::default();
    for (record, count) in records.into_iter().zip(0_u64..) {
        if count % LOOK_EVERY == 0 && interrupt.rung().is_some() {
            loading.history.cut = interrupt.rung();
            break;
        }
        let record = record?;
        match record.kind {
            EventKind::Invoke => loading.invoke(&record)?,
            _ => loading.complete(&record)?,
        }
    }
    Ok(loading.settle())
}

#[derive(Default)]
struct Loading {
    history: History,
    atoms: FastMap<(u32, Atom), u32>,
    pairs: Pairs<u32>,
    /// For each key who appended last, and what.
    last_append: Vec<(u32, u32)>,
    latest: u64,
    unsorted: bool,
    odd_elements: usize,
}

fn malformed(record: &Record, reason: impl Into<String>) -> LoadError {
    LoadError::Malformed { line: record.line, reason: reason.into() }
}

/// A micro-operation as it is written: `[append x 1]`, `[r x nil]`.
enum Written<'a> {
    Append(&'a Datum, &'a Datum),
    Read(&'a Datum, &'a Datum),
}

fn written<'a>(record: &Record, micro: &'a Datum) -> Result<Written<'a>, LoadError> {
    let Some([f, key, value]) = micro.as_list() else {
        return Err(malformed(record, format!("{micro} is not [append key element] or [r key list]")));
    };
    match f.as_text() {
        Some("append") => Ok(Written::Append(key, value)),
        Some("r" | "read") => Ok(Written::Read(key, value)),
        _ => Err(malformed(record, format!("{f} in a transaction is neither append nor r"))),
    }
}

fn micro_operations(record: &Record) -> Result<&[Datum], LoadError> {
    if &*record.f != "txn" {
        return Err(malformed(
            record,
            format!("f is {}, but a history of transactions has txn only", record.f),
        ));
    }
    record.value.as_list().ok_or_else(|| malformed(record, "the value of a transaction is not a list"))
}

impl Loading {
    /// Notes the order of time and gives the stamp of the next line, whose position is its rank.
    fn stamp(&mut self, record: &Record) -> Result<Stamp, LoadError> {
        let refuse = |source| LoadError::Pair { line: record.line, source };
        let stamp = self.pairs.stamp(record.time).map_err(refuse)?;
        let (time, rank) = stamp;
        self.unsorted |= time < self.latest;
        self.latest = self.latest.max(time);
        let parts = [rank as usize, self.history.micros.len(), self.history.elements.len()];
        if parts.into_iter().any(|count| count >= MAX_PARTS) {
            return Err(malformed(record, format!("more than {MAX_PARTS} records, operations or elements")));
        }
        Ok(stamp)
    }

    fn invoke(&mut self, record: &Record) -> Result<(), LoadError> {
        let called = self.stamp(record)?;
        let txn = to_u32(self.history.txns.len());
        let refuse = |source| LoadError::Pair { line: record.line, source };
        self.pairs.invoke(record.process, txn).map_err(refuse)?;
        let first = to_u32(self.history.micros.len());
        for micro in micro_operations(record)? {
            let micro = match written(record, micro)? {
                Written::Append(key, element) => self.append(record, txn, key, element)?,
                Written::Read(key, _) => Micro { key: self.key(key), what: What::Unread },
            };
            self.history.micros.push(micro);
        }
        self.history.txns.push(Txn {
            process: record.process,
            index: record.index,
            invoke_ns: record.time.unwrap_or(record.index),
            complete_ns: u64::MAX,
            call: called.1,
            ret: NEVER,
            first,
            count: to_u32(self.history.micros.len()) - first,
            outcome: Outcome::Info,
        });
        Ok(())
    }

    fn key(&mut self, key: &Datum) -> u32 {
        let key = self.history.keys.number(key);
        if self.history.lists.len() < self.history.keys.len() {
            self.history.lists.push(List::default());
            self.last_append.push((NONE, NONE));
        }
        key
    }

    fn atom(&mut self, element: &Datum) -> Atom {
        element.as_int().map_or_else(|| Atom::Other(self.history.others.number(element)), Atom::Int)
    }

    fn element(&mut self, key: u32, atom: Atom) -> u32 {
        let next = to_u32(self.history.elements.len());
        let number = *self.atoms.entry((key, atom)).or_insert(next);
        if number == next {
            let element = Element { atom, key, writer: NONE, place: NONE, intermediate: false };
            self.history.elements.push(element);
        }
        number
    }

    fn append(
        &mut self,
        record: &Record,
        txn: u32,
        name: &Datum,
        element: &Datum,
    ) -> Result<Micro, LoadError> {
        let key = self.key(name);
        let atom = self.atom(element);
        let number = self.element(key, atom);
        let known = &mut self.history.elements[number as usize];
        if known.writer != NONE {
            let reason =
                format!("{element} is appended to {name} again: nothing could be told from reading it");
            return Err(malformed(record, reason));
        }
        known.writer = txn;
        let (last_writer, earlier) = std::mem::replace(&mut self.last_append[key as usize], (txn, number));
        if last_writer == txn {
            self.history.elements[earlier as usize].intermediate = true;
        }
        Ok(Micro { key, what: What::Append(number) })
    }

    fn complete(&mut self, record: &Record) -> Result<(), LoadError> {
        let returned = self.stamp(record)?;
        let refuse = |source| LoadError::Pair { line: record.line, source };
        let txn = self.pairs.complete(record.process).map_err(refuse)?;
        let known = &mut self.history.txns[txn as usize];
        self.pairs.in_time(record.process, (known.invoke_ns, known.call), returned).map_err(refuse)?;
        let ret = returned.1;
        match record.kind {
            EventKind::Ok => {
                (known.outcome, known.ret) = (Outcome::Ok, ret);
                known.complete_ns = record.time.unwrap_or(record.index);
                self.answered(record, txn)
            }
            EventKind::Fail => {
                (known.outcome, known.ret) = (Outcome::Fail, ret);
                known.complete_ns = record.time.unwrap_or(record.index);
                Ok(())
            }
            EventKind::Info | EventKind::Invoke => Ok(()),
        }
    }

    fn answered(&mut self, record: &Record, txn: u32) -> Result<(), LoadError> {
        let Txn { first, count, .. } = self.history.txns[txn as usize];
        let answers = micro_operations(record)?;
        if answers.len() != count as usize {
            let reason = format!(
                "{} operations completed, but {count} were asked for in one transaction",
                answers.len()
            );
            return Err(malformed(record, reason));
        }
        for (answer, at) in answers.iter().zip(first..) {
            let asked = self.history.micros[at as usize];
            let same = match (written(record, answer)?, asked.what) {
                (Written::Append(key, element), What::Append(number)) => {
                    self.history.key(asked.key) == key && self.history.datum(number) == *element
                }
                (Written::Read(key, list), What::Unread) if self.history.key(asked.key) == key => {
                    let list = match list {
                        Datum::Nil => &[],
                        list => list
                            .as_list()
                            .ok_or_else(|| malformed(record, format!("{list} was read, which is no list")))?,
                    };
                    self.history.micros[at as usize].what = self.listed(txn, asked.key, list);
                    true
                }
                _ => false,
            };
            if !same {
                let reason = format!("{answer} completed, which is not what was asked for in that place");
                return Err(malformed(record, reason));
            }
        }
        Ok(())
    }

    /// Compares a list with the longest one, and makes it the longest where it goes on.
    fn listed(&mut self, txn: u32, key: u32, list: &[Datum]) -> What {
        self.history.reads += 1;
        let others = &self.history.others;
        let longest = &self.history.lists[key as usize].atoms;
        let is = |atom: &Atom, datum: &Datum| match (*atom, datum) {
            (Atom::Int(known), Datum::Int(read)) => known == *read,
            (Atom::Other(number), datum) => others.name(number) == datum,
            _ => false,
        };
        if list.len() >= MAX_PARTS || !longest.iter().zip(list).all(|(atom, datum)| is(atom, datum)) {
            return self.odd(txn, key, list);
        }
        let known = longest.len();
        for datum in list.iter().skip(known) {
            let atom = self.atom(datum);
            let element = self.element(key, atom);
            let longest = &mut self.history.lists[key as usize];
            longest.order.push(element);
            longest.atoms.push(atom);
        }
        let length = to_u32(list.len());
        if list.len() > known {
            self.history.lists[key as usize].seen_by.push((length, txn));
        }
        What::Read(length)
    }

    fn odd(&mut self, reader: u32, key: u32, list: &[Datum]) -> What {
        self.odd_elements = self.odd_elements.saturating_add(list.len());
        if self.history.odd.len() >= MAX_ODD || self.odd_elements > MAX_ODD_ELEMENTS {
            self.history.odd_dropped += 1;
            return What::Unread;
        }
        let mut elements = Vec::with_capacity(list.len());
        for datum in list {
            let atom = self.atom(datum);
            elements.push(self.element(key, atom));
        }
        self.history.odd.push(Odd { reader, key, list: elements });
        What::Odd(to_u32(self.history.odd.len() - 1))
    }

    /// Sorts by real time, places the elements and decides what took effect.
    fn settle(self) -> History {
        let Self { mut history, pairs, unsorted, atoms, .. } = self;
        drop(atoms);
        let (_, untimed) = pairs.finish();
        if unsorted && !untimed {
            sort(&mut history);
        }
        history.happened = history.txns.iter().map(|txn| txn.outcome == Outcome::Ok).collect();
        let History { lists, elements, happened, txns, odd, .. } = &mut history;
        let mut seen = |writer: u32| {
            if writer != NONE && txns[writer as usize].outcome == Outcome::Info {
                happened[writer as usize] = !broken(Rule::SeenMeansHappened);
            }
        };
        for list in lists.iter_mut() {
            list.atoms = Vec::new();
            for (&element, place) in list.order.iter().zip(0..) {
                let element = &mut elements[element as usize];
                list.tainted |= element.place != NONE;
                if element.place == NONE {
                    element.place = place;
                }
                seen(element.writer);
            }
        }
        for &element in odd.iter().flat_map(|odd| &odd.list) {
            seen(elements[element as usize].writer);
        }
        history
    }
}

/// Gives ranks by stamps, and transactions their numbers by their calls.
fn sort(history: &mut History) {
    let returned = |txn: &Txn| (txn.ret != NEVER).then_some((txn.complete_ns, txn.ret));
    let ranks = ranks(history.txns.iter().map(|txn| ((txn.invoke_ns, txn.call), returned(txn))), false);
    for (txn, (call, ret)) in history.txns.iter_mut().zip(ranks) {
        (txn.call, txn.ret) = (call, ret);
    }
    let mut by_call: Vec<u32> = (0..to_u32(history.txns.len())).collect();
    by_call.sort_unstable_by_key(|&number| history.txns[number as usize].call);
    let mut renamed = vec![NONE; by_call.len()];
    for (&old, new) in by_call.iter().zip(0..) {
        renamed[old as usize] = new;
    }
    history.txns.sort_unstable_by_key(|txn| txn.call);
    let rename = |txn: &mut u32| {
        if *txn != NONE {
            *txn = renamed[*txn as usize];
        }
    };
    history.elements.iter_mut().for_each(|element| rename(&mut element.writer));
    history.odd.iter_mut().for_each(|odd| rename(&mut odd.reader));
    for list in &mut history.lists {
        list.seen_by.iter_mut().for_each(|(_, reader)| rename(reader));
    }
}
