//! Registers, any number of them under one order: what each operation needs and leaves, and which of those
//! whose fate is unknown take part.
//!
//! Values are numbered per register; the first numbers are the registers as nobody wrote them.
//!
//! **Operations of unknown fate.** One whose value was seen by an operation that happened, and that nobody
//! else wrote, happened. One whose value nobody needs is left out: in an order with it, no read stands
//! between it and the next write of its register, so without it every answer stays right. That fails when a
//! compare-and-set on its register was refused, for it may be the reason; then, and when its value has
//! several writers, it may be placed or left out.

use std::collections::HashMap;

use super::graph::{Span, at, number};
use super::mutate::{Mutation, broken};
use super::search::Object;
use crate::hash::wide;
use crate::history::{History, NEVER, Op, OpKind, Outcome};
use crate::register::problem::Action;

/// A value of one register.
pub(super) type Val = u32;

/// One operation that takes part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// The register.
    pub(super) key: u32,
    /// What it does or says.
    pub(super) action: Action,
    /// When, and whose.
    pub(super) span: Span,
    /// The version that the system reported with it.
    pub(super) version: Option<i64>,
    /// The zxid of the state that it made or saw.
    pub(super) zxid: Option<u64>,
    /// Where the operation stands in the list that this was made from.
    pub(super) op: usize,
}

/// Operations on registers.
#[derive(Clone, Debug, Default)]
pub(super) struct Registers {
    /// How many there are; values below are the unwritten ones.
    pub(super) keys: usize,
    /// The operations that take part, by call.
    pub(super) entries: Vec<Entry>,
    /// For each entry whether it may be left out.
    pub(super) optional: Vec<bool>,
    /// For each value who writes it.
    pub(super) sources: Vec<Vec<u32>>,
}

/// Whose order an operation stands in: its session where that is known, else its process.
pub(super) fn group_of(op: &Op, groups: &mut HashMap<(bool, u64), u64>) -> u64 {
    let next = u64::try_from(groups.len()).unwrap_or(u64::MAX);
    let group = op.session.map_or((false, op.process), |session| (true, session));
    *groups.entry(group).or_insert(next)
}

impl Registers {
    /// The part of `history` that says something about registers.
    pub(super) fn of(history: &History) -> Self {
        let mut groups = HashMap::new();
        let mut keys: HashMap<u64, u32> = HashMap::new();
        for op in history.ops() {
            let next = number(keys.len());
            keys.entry(op.key).or_insert(next);
        }
        let mut values: HashMap<(u32, i64), Val> = HashMap::new();
        let nils = keys.len();
        let mut value = |key: u32, value: Option<i64>| match value {
            None => key,
            Some(value) => {
                let next = number(nils + values.len());
                *values.entry((key, value)).or_insert(next)
            }
        };
        let entries = history.ops().iter().enumerate().filter_map(|(at, op)| {
            let key = keys[&op.key];
            let action = match (op.kind(), op.outcome) {
                (OpKind::Read { value: seen }, Outcome::Ok) => Action::Read(value(key, seen)),
                (OpKind::Write { value: to }, Outcome::Ok | Outcome::Info) => {
                    Action::Write(value(key, Some(to)))
                }
                (OpKind::Cas { from, to }, Outcome::Ok | Outcome::Info) => {
                    Action::Cas { from: value(key, from), to: value(key, Some(to)) }
                }
                (OpKind::Cas { from, .. }, Outcome::Fail) if op.is_refused_cas() => {
                    Action::Refused(value(key, from))
                }
                _ => return None,
            };
            let span = Span {
                call: op.call,
                ret: op.ret,
                group: group_of(op, &mut groups),
                // A refusal is an update: the system orders it among the others.
                update: op.is_change(),
            };
            // The header of a change's reply names its own transaction; that of a read only where the member
            // stood.
            let header = if op.is_change() { op.zxid } else { None };
            Some(Entry { key, action, span, version: op.version, zxid: op.mzxid.or(header), op: at })
        });
        Self::new(nils, entries.collect())
    }

    /// Decides which of these take part.
    pub(super) fn new(keys: usize, entries: Vec<Entry>) -> Self {
        let taking_part = Self::taking_part(keys, &entries);
        let mut kept: Vec<(Entry, bool)> = entries
            .into_iter()
            .zip(taking_part)
            .filter_map(|(entry, part)| Some((entry, part? == Part::May)))
            .collect();
        kept.sort_by_key(|(entry, _)| entry.span.call);
        let (entries, optional): (Vec<Entry>, Vec<bool>) = kept.into_iter().unzip();
        let sources = sources(keys, &entries);
        Self { keys, entries, optional, sources }
    }

    fn taking_part(keys: usize, entries: &[Entry]) -> Vec<Option<Part>> {
        let sources = sources(keys, entries);
        let mut refused = vec![false; keys];
        for entry in entries {
            refused[at(entry.key)] |= matches!(entry.action, Action::Refused(_));
        }
        let is_open = |entry: &Entry| entry.span.ret == NEVER;
        let mut parts: Vec<Option<Part>> = entries
            .iter()
            .map(|entry| match is_open(entry) {
                false => Some(Part::Must),
                true if broken(Mutation::OpenHappened) => Some(Part::Must),
                true if refused[at(entry.key)] && !broken(Mutation::SparesDropped) => Some(Part::May),
                true => None,
            })
            .collect();
        if broken(Mutation::OpenDropped) {
            return parts;
        }
        // Whatever somebody who takes part needs takes part: for certain if that one does and nobody else
        // wrote it.
        let mut raised: Vec<usize> = (0..entries.len()).filter(|&entry| parts[entry].is_some()).collect();
        while let Some(entry) = raised.pop() {
            let Some(needed) = entries[entry].action.required().filter(|&needed| at(needed) >= keys) else {
                continue;
            };
            for &source in &sources[at(needed)] {
                let source = at(source);
                let only = sources[at(needed)].len() == 1;
                let raise = if only && parts[entry] == Some(Part::Must) { Part::Must } else { Part::May };
                if parts[source] < Some(raise) {
                    parts[source] = Some(raise);
                    raised.push(source);
                }
            }
        }
        parts
    }

    /// Whether this value can only come from one place.
    pub(super) fn is_single_source(&self, value: Val) -> bool {
        let ways = self.sources[at(value)].len() + usize::from(at(value) < self.keys);
        ways == 1 || (ways > 1 && broken(Mutation::FirstSource))
    }

    /// The entry that this one saw the value of, when that is certain.
    pub(super) fn source_of(&self, entry: usize) -> Option<u32> {
        let needed = self.entries[entry].action.required()?;
        if self.optional[entry] || !self.is_single_source(needed) {
            return None;
        }
        self.sources[at(needed)].first().copied().filter(|&source| !self.optional[at(source)])
    }

    /// Somebody who happened and saw a value that nobody wrote.
    pub(super) fn unexplained(&self) -> Option<usize> {
        (0..self.entries.len()).find(|&entry| {
            let needed = self.entries[entry].action.required();
            !self.optional[entry]
                && needed.is_some_and(|value| at(value) >= self.keys && self.sources[at(value)].is_empty())
        })
    }

    /// The spans of all entries.
    pub(super) fn spans(&self) -> Vec<Span> {
        self.entries.iter().map(|entry| entry.span).collect()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    May,
    Must,
}

fn sources(keys: usize, entries: &[Entry]) -> Vec<Vec<u32>> {
    let named = entries.iter().map(|entry| match entry.action {
        Action::Read(v) | Action::Write(v) | Action::Refused(v) => v,
        Action::Cas { from, to } => from.max(to),
    });
    let values = named.max().map_or(keys, |highest| keys.max(at(highest) + 1));
    let mut sources = vec![Vec::new(); values];
    for (entry, at_entry) in entries.iter().zip(0_u32..) {
        if let Some(written) = entry.action.written() {
            sources[at(written)].push(at_entry);
        }
    }
    sources
}

/// The registers as the object of a search.
///
/// **A value is replaced only when its last certain reader has gone by**, where it has a single source: once
/// replaced it never comes back, and the reader would have no place. **An unseen write is placed only when
/// somebody may be refused for it**: nobody reads it, so in any order it can be moved to just before the
/// first operation that is refused what was there before it, or out of the order if there is none; it never
/// returned, so nothing is after it.
pub(super) struct Held<'a> {
    registers: &'a Registers,
    careful: bool,
    holds: Vec<Val>,
    /// For each value with a single source how many certain readers are not placed.
    readers_left: Vec<u32>,
    /// For each value how many that were refused it are not placed.
    refusals_left: Vec<u32>,
    needed: Vec<bool>,
    fingerprint: u128,
}

impl<'a> Held<'a> {
    /// The registers as nobody wrote them. Without care nothing but the answers is looked at.
    pub(super) fn new(registers: &'a Registers, careful: bool) -> Self {
        let values = registers.sources.len();
        let (mut readers_left, mut refusals_left) = (vec![0; values], vec![0; values]);
        let mut needed = vec![false; values];
        for (entry, of) in registers.entries.iter().enumerate() {
            if let Some(value) = of.action.required() {
                needed[at(value)] = true;
                readers_left[at(value)] += u32::from(registers.counts(entry, value));
            }
            if let Action::Refused(value) = of.action {
                refusals_left[at(value)] += 1;
            }
        }
        let holds: Vec<Val> = (0..number(registers.keys)).collect();
        let fingerprint = holds.iter().fold(0, |all, &value| all ^ value_number(value));
        Self { registers, careful, holds, readers_left, refusals_left, needed, fingerprint }
    }

    fn is_useless(&self, op: usize, held: Val, written: Val) -> bool {
        let someone = self.refusals_left[at(held)] > 0;
        self.registers.optional[op]
            && !self.needed[at(written)]
            && someone == broken(Mutation::SparesReversed)
    }

    fn hold(&mut self, key: u32, value: Val) {
        let held = std::mem::replace(&mut self.holds[at(key)], value);
        self.fingerprint ^= value_number(held) ^ value_number(value);
    }

    /// Counts a reader or a refusal as placed, or no longer.
    fn count(&mut self, op: usize, placed: bool) {
        let change = |count: &mut u32| *count = if placed { *count - 1 } else { *count + 1 };
        match self.registers.entries[op].action {
            Action::Read(value) | Action::Cas { from: value, .. } if self.registers.counts(op, value) => {
                change(&mut self.readers_left[at(value)]);
            }
            Action::Refused(value) => change(&mut self.refusals_left[at(value)]),
            Action::Read(_) | Action::Cas { .. } | Action::Write(_) => {}
        }
    }
}

impl Registers {
    /// Whether an entry is a certain reader of a value with a single source.
    fn counts(&self, entry: usize, value: Val) -> bool {
        (!self.optional[entry] || broken(Mutation::OptionalReaders)) && self.is_single_source(value)
    }
}

fn value_number(value: Val) -> u128 {
    wide(u64::from(value), 0x3c6e_f372_fe94_f82b)
}

impl Object for Held<'_> {
    type Undo = Val;

    fn place(&mut self, op: usize) -> Option<Val> {
        let Entry { key, action, .. } = self.registers.entries[op];
        let held = self.holds[at(key)];
        let then = action.apply(held)?;
        if let Some(written) = action.written().filter(|_| self.careful) {
            let own = action.required().is_some_and(|value| self.registers.counts(op, value));
            if self.readers_left[at(held)] > u32::from(own) || self.is_useless(op, held, written) {
                return None;
            }
        }
        self.count(op, true);
        self.hold(key, then);
        Some(held)
    }

    fn take_back(&mut self, op: usize, held: Val) {
        self.count(op, false);
        self.hold(self.registers.entries[op].key, held);
    }

    fn fingerprint(&self) -> u128 {
        self.fingerprint
    }

    fn changes_nothing(&self, op: usize) -> bool {
        // A refusal is an update to real time, but it leaves the register as it is in every state that allows
        // it.
        matches!(self.registers.entries[op].action, Action::Read(_) | Action::Refused(_))
    }
}
