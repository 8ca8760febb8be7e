//! Terms, as a history tells of them: who held what, by which token, from when to when.
//!
//! A holder that never says until when it is certain is certain of the moment of its acquire alone. It holds
//! for as long as it acts as if it did: to its last write. That is one too which the store refused because
//! somebody with a larger token had come meanwhile.

use std::collections::BTreeMap;

use checker::history::{History, Op, OpKind, Outcome};

use crate::outcome::STALE_TOKEN;

/// One term. Its moments are on the history's clock, in ns.
#[derive(Clone, Copy, Debug)]
pub struct Term<'a> {
    /// Its token.
    pub token: i64,
    /// Since when the holder was certain that nobody else held.
    pub since: u64,
    /// Until when it was, by the last that it said.
    until: u64,
    /// When it was asked to release.
    released: Option<u64>,
    /// How it began.
    pub acquired: &'a Op,
    /// The write that shows that it lasted until then; none where the acquire said so.
    pub shown: Option<&'a Op>,
}

impl Term<'_> {
    /// Until when nobody else may hold: as long as it was certain, and not any more once it was asked to
    /// release.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.released.map_or(self.until, |released| released.min(self.until))
    }

    /// Whether its holder said until when it was certain.
    #[must_use]
    pub fn tells_its_end(&self) -> bool {
        self.acquired.list().is_some_and(|told| told.get(1) != told.get(2))
    }

    /// Until when its holder was certain.
    #[must_use]
    pub fn certain_until(&self) -> u64 {
        self.until
    }
}

/// A write that the store took.
#[derive(Clone, Copy, Debug)]
pub struct Write<'a> {
    /// By which token.
    pub token: i64,
    /// When the holder looked at its clock before.
    pub looked: u64,
    /// Until when it was certain, as it knew then.
    pub until: u64,
    /// Its place in the order of what the store took.
    pub place: i64,
    /// When the store took it.
    pub stored: u64,
    /// How it was asked for.
    pub op: &'a Op,
}

/// What a history tells of one key.
#[derive(Debug, Default)]
pub struct Held<'a> {
    /// Terms by their beginnings.
    pub terms: Vec<Term<'a>>,
    /// Writes in the order of the store.
    pub writes: Vec<Write<'a>>,
}

/// What a history tells, by key.
#[must_use]
pub fn by_key(history: &History) -> BTreeMap<u64, Held<'_>> {
    let mut held: BTreeMap<u64, Held<'_>> = BTreeMap::new();
    for op in history.ops().iter().filter(|op| op.outcome == Outcome::Ok) {
        let told: Vec<u64> =
            op.list().into_iter().flat_map(|list| list.iter().map(|number| number.unsigned_abs())).collect();
        match (op.kind(), told.as_slice()) {
            (OpKind::Acquire { token: Some(token) }, &[_, since, until]) => {
                let term = Term { token, since, until, released: None, acquired: op, shown: None };
                held.entry(op.key).or_default().terms.push(term);
            }
            (OpKind::Store { token, .. }, &[_, _, looked, until, stored]) => {
                let place = op.version.unwrap_or_default();
                held.entry(op.key).or_default().writes.push(Write {
                    token,
                    looked,
                    until,
                    place,
                    stored,
                    op,
                });
            }
            _ => {}
        }
    }
    for held in held.values_mut() {
        held.terms.sort_by_key(|term| term.since);
        held.writes.sort_by_key(|write| write.place);
    }
    note_ends(history, &mut held);
    held
}

/// Whether it is a write that the store refused, because it had seen a larger token.
#[must_use]
pub fn is_stale(op: &Op) -> bool {
    let is_refused = op.outcome == Outcome::Fail && op.error.as_deref() == Some(STALE_TOKEN);
    is_refused && matches!(op.kind(), OpKind::Store { .. })
}

/// What is known of a term's end.
#[derive(Clone, Copy, Default)]
struct End<'a> {
    /// Until when its holder was certain, by the write that says so.
    until: Option<(u64, &'a Op)>,
    /// When it was asked to release.
    released: Option<u64>,
    /// When which write of its was refused.
    refused: Option<(u64, &'a Op)>,
}

/// The later of two moments.
fn later<'a>(one: Option<(u64, &'a Op)>, other: (u64, &'a Op)) -> Option<(u64, &'a Op)> {
    one.filter(|one| one.0 >= other.0).or(Some(other))
}

/// A write tells of its term's certainty too. A release ends the term, whatever came of it.
fn note_ends<'a>(history: &'a History, held: &mut BTreeMap<u64, Held<'a>>) {
    for (key, held) in held.iter_mut() {
        let mut ends: BTreeMap<i64, End<'a>> = BTreeMap::new();
        for write in &held.writes {
            let end = ends.entry(write.token).or_default();
            end.until = later(end.until, (write.until, write.op));
        }
        for op in history.ops().iter().filter(|op| op.key == *key) {
            match op.kind() {
                OpKind::Release { token } => {
                    let end = ends.entry(token).or_default();
                    end.released = Some(end.released.map_or(op.invoke_ns, |before| before.min(op.invoke_ns)));
                }
                OpKind::Store { token, .. } if is_stale(op) => {
                    let end = ends.entry(token).or_default();
                    end.refused = later(end.refused, (op.complete_ns.unwrap_or_default(), op));
                }
                _ => {}
            }
        }
        for term in &mut held.terms {
            let Some(end) = ends.get(&term.token) else { continue };
            let says_nothing = term.until == term.since;
            for (until, op) in end.until.into_iter().chain(end.refused.filter(|_| says_nothing)) {
                if until > term.until {
                    (term.until, term.shown) = (until, Some(op));
                }
            }
            term.released = end.released;
        }
    }
}
