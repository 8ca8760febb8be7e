//! What watchers of one register were told, as far as each answer says something by itself or together with
//! the others: who wrote a value, and what was told next to what.

use std::collections::BTreeMap;

use super::{Broken, Counts, GONE, Places, Promised};
use crate::history::{NEVER, Op, OpKind, Outcome, Rank, describe};

/// A write, and what is known of its effect.
pub(super) struct Change<'a> {
    /// What was written.
    pub(super) value: i64,
    /// The write.
    pub(super) write: &'a Op,
    /// The earliest return of anybody who knows that it happened; [`NEVER`] where nobody does.
    pub(super) known: Rank,
    /// Who that is.
    pub(super) witness: &'a Op,
    /// Its version, where one is told.
    pub(super) version: Option<i64>,
    /// What was told right before it, and right after it, and by which answer.
    pub(super) before: Option<(usize, &'a Op)>,
    pub(super) after: Option<(usize, &'a Op)>,
    /// Beginnings of watchers whose first change it is.
    pub(super) begins: Vec<&'a Op>,
}

/// Up to where a watcher was told.
#[derive(Clone, Copy)]
enum Place<'a> {
    /// Behind this change.
    Behind(usize),
    /// From where it began, by this answer.
    Begun(&'a Op),
}

/// A watcher.
pub(super) struct Watcher<'a> {
    /// Its number.
    pub(super) number: i64,
    /// All its requests, in the order of their calls.
    pub(super) requests: Vec<&'a Op>,
    /// The first answer.
    pub(super) began: Option<&'a Op>,
    /// The changes that it was told, each with the first answer that told it, and when it was told in the
    /// order of what it was told.
    pub(super) told: BTreeMap<usize, (&'a Op, usize)>,
    /// What it was told last.
    pub(super) last: Option<usize>,
    at: BTreeMap<i64, Place<'a>>,
    first: BTreeMap<u64, usize>,
}

impl Watcher<'_> {
    /// Whether it was told that its position is gone, and is asked no more.
    pub(super) fn is_gone(&self) -> bool {
        self.requests.iter().any(|op| op.error.as_deref() == Some(GONE))
    }
}

/// What watchers of one register were told.
pub(super) struct Told<'a> {
    pub(super) changes: Vec<Change<'a>>,
    pub(super) watchers: BTreeMap<i64, Watcher<'a>>,
    /// Where the latest change is promised: which one was told before which other.
    pub(super) later: Vec<(usize, usize, &'a Op)>,
    /// By version.
    pub(super) versions: BTreeMap<i64, usize>,
    by_value: Places,
}

impl<'a> Told<'a> {
    /// What the operations on one key say.
    pub(super) fn of(ops: &[&'a Op], promised: Promised) -> Result<Self, Broken<'a>> {
        let mut told = Self {
            changes: Vec::new(),
            watchers: BTreeMap::new(),
            later: Vec::new(),
            versions: BTreeMap::new(),
            by_value: Places::new(),
        };
        for &op in ops {
            told.written(op)?;
            if let OpKind::Watch { watcher, .. } = op.kind() {
                told.watchers.entry(watcher).or_insert_with(|| Watcher::new(watcher)).requests.push(op);
            }
        }
        let is_answer = |op: &&&Op| op.outcome == Outcome::Ok && matches!(op.kind(), OpKind::Watch { .. });
        let mut answers: Vec<&Op> = ops.iter().filter(is_answer).copied().collect();
        answers.sort_unstable_by_key(|op| op.ret);
        for answer in answers {
            told.answered(answer, promised)?;
        }
        Ok(told)
    }

    /// Adds what was told to the counts.
    pub(super) fn count(&self, counts: &mut Counts) {
        counts.acknowledged += self.changes.iter().filter(|one| one.write.outcome == Outcome::Ok).count();
        for watcher in self.watchers.values() {
            counts.told += watcher.told.len();
            counts.watchers += usize::from(watcher.began.is_some());
            counts.gone += usize::from(watcher.is_gone());
            let mut before: Option<&Op> = None;
            for op in &watcher.requests {
                let elsewhere = |before: &Op| {
                    before.outcome != Outcome::Ok || (before.node, before.process) != (op.node, op.process)
                };
                if op.outcome == Outcome::Ok && before.is_some_and(elsewhere) {
                    counts.resumed += 1;
                }
                before = Some(op);
            }
        }
    }

    /// The change that wrote a value.
    pub(super) fn wrote(&self, value: i64) -> Option<usize> {
        self.by_value.get(&value).copied()
    }

    fn written(&mut self, op: &'a Op) -> Result<(), Broken<'a>> {
        let OpKind::Write { value } = op.kind() else { return Ok(()) };
        let is_done = op.outcome == Outcome::Ok;
        let change = Change {
            value,
            write: op,
            known: if is_done { op.ret } else { NEVER },
            witness: op,
            version: op.version.filter(|_| is_done),
            before: None,
            after: None,
            begins: Vec::new(),
        };
        let at = match self.by_value.get(&value).copied() {
            None => {
                self.by_value.insert(value, self.changes.len());
                self.changes.push(change);
                self.changes.len() - 1
            }
            Some(at) => {
                let other = self.changes[at].write;
                match (other.outcome, op.outcome) {
                    // What certainly did not happen may be asked for again.
                    (_, Outcome::Fail) => return Ok(()),
                    (Outcome::Fail, _) => self.changes[at] = change,
                    (_, _) => {
                        let why =
                            format!("{} and {}: a value is written once only", describe(other), describe(op));
                        let ops = vec![other, op];
                        return Err(Broken { kind: "a value was written twice", why, ops });
                    }
                }
                at
            }
        };
        match self.changes[at].version {
            Some(version) => self.counts_as(at, version, op),
            None => Ok(()),
        }
    }

    /// A change has one version, and a version is one change's.
    fn counts_as(&mut self, at: usize, version: i64, by: &'a Op) -> Result<(), Broken<'a>> {
        let change = &mut self.changes[at];
        if let Some(before) = change.version.filter(|before| *before != version) {
            let why = format!(
                "{} has version {before}, and {} told it with version {version}",
                describe(change.write),
                describe(by)
            );
            return Err(Broken { kind: "a change has two versions", why, ops: vec![change.write, by] });
        }
        change.version = Some(version);
        let other = *self.versions.entry(version).or_insert(at);
        if other == at {
            return Ok(());
        }
        let (other, change) = (self.changes[other].write, self.changes[at].write);
        let why = format!("{} and {} have the version {version} both", describe(other), describe(change));
        Err(Broken { kind: "two changes have one version", why, ops: vec![other, change, by] })
    }

    fn answered(&mut self, op: &'a Op, promised: Promised) -> Result<(), Broken<'a>> {
        let OpKind::Watch { watcher, from } = op.kind() else { return Ok(()) };
        let Some((position, events)) = op.list().map(|list| &list[..]).and_then(<[i64]>::split_first) else {
            return Ok(());
        };
        let known = self.watchers.get(&watcher);
        let begun = Place::Begun(op);
        let mut place = from.and_then(|from| known?.at.get(&from).copied()).unwrap_or(begun);
        for event in events.chunks_exact(2) {
            let at = self.see(op, event[0], event[1])?;
            match promised {
                Promised::EveryChange => self.is_next(watcher, place, at, op)?,
                Promised::Latest => self.is_later(place, at, op),
            }
            place = Place::Behind(at);
            if let Some(watcher) = self.watchers.get_mut(&watcher) {
                let seen = watcher.told.len();
                watcher.told.entry(at).or_insert((op, seen));
                watcher.last = Some(at);
            }
        }
        let Some(watcher) = self.watchers.get_mut(&watcher) else { return Ok(()) };
        watcher.began.get_or_insert(op);
        match (watcher.at.get(position).copied(), place) {
            (Some(Place::Behind(one)), Place::Behind(other))
                if one != other && promised == Promised::EveryChange =>
            {
                Err(self.disagree(one, other, op, *position))
            }
            // Who begins there says less than who was told up to there.
            (Some(Place::Behind(_)), Place::Begun(_)) => Ok(()),
            _ => {
                watcher.at.insert(*position, place);
                Ok(())
            }
        }
    }

    /// The change that a value names.
    fn see(&mut self, op: &'a Op, value: i64, version: i64) -> Result<usize, Broken<'a>> {
        let Some(&at) = self.by_value.get(&value) else {
            let why = format!("{}, and nobody wrote {value}", describe(op));
            return Err(Broken { kind: "a change was invented", why, ops: vec![op] });
        };
        let change = &mut self.changes[at];
        let write = change.write;
        if write.call > op.ret {
            let why = format!("{}, but {} only afterwards", describe(op), describe(write));
            return Err(Broken { kind: "a change was told too early", why, ops: vec![op, write] });
        }
        if write.outcome == Outcome::Fail {
            let why =
                format!("{}, but {} and was told that it did not happen", describe(op), describe(write));
            return Err(Broken { kind: "what did not happen was told", why, ops: vec![write, op] });
        }
        if op.ret < change.known {
            (change.known, change.witness) = (op.ret, op);
        }
        if version >= 0 {
            self.counts_as(at, version, op)?;
        }
        Ok(at)
    }

    fn is_later(&mut self, place: Place<'a>, at: usize, op: &'a Op) {
        match place {
            Place::Behind(before) if before != at => self.later.push((before, at, op)),
            _ => {}
        }
    }

    /// A change was told right behind a place.
    fn is_next(&mut self, watcher: i64, place: Place<'a>, at: usize, op: &'a Op) -> Result<(), Broken<'a>> {
        self.is_not_doubled(watcher, place, at, op)?;
        let before = match place {
            Place::Begun(began) => return self.is_first(watcher, began, at, op),
            Place::Behind(before) => before,
        };
        if let Some((other, by)) = self.changes[before].after.filter(|(other, _)| *other != at) {
            return Err(self.forked(before, (other, by), (at, op)));
        }
        if let Some((other, by)) = self.changes[at].before.filter(|(other, _)| *other != before) {
            return Err(self.joined(at, (other, by), (before, op)));
        }
        self.changes[before].after.get_or_insert((at, op));
        self.changes[at].before.get_or_insert((before, op));
        Ok(())
    }

    fn is_first(&mut self, watcher: i64, began: &'a Op, at: usize, op: &'a Op) -> Result<(), Broken<'a>> {
        let first = self.watchers.get_mut(&watcher).map(|watcher| &mut watcher.first);
        let other = first.map_or(at, |first| *first.entry(began.index).or_insert(at));
        if other != at {
            return Err(self.disagree(other, at, op, began.list().map_or(0, |list| list[0])));
        }
        let begins = &mut self.changes[at].begins;
        if begins.last().is_none_or(|last| last.index != began.index) {
            begins.push(began);
        }
        Ok(())
    }

    fn is_not_doubled(
        &self,
        watcher: i64,
        place: Place<'a>,
        at: usize,
        op: &'a Op,
    ) -> Result<(), Broken<'a>> {
        let Some(watcher) = self.watchers.get(&watcher) else { return Ok(()) };
        let Place::Behind(before) = place else { return Ok(()) };
        let (Some((first, told)), Some((_, here))) = (watcher.told.get(&at), watcher.told.get(&before))
        else {
            return Ok(());
        };
        if told > here {
            return Ok(());
        }
        let why = format!(
            "{}, and behind that it was told {} again: {}",
            describe(first),
            self.changes[at].value,
            describe(op)
        );
        Err(Broken { kind: "a change was told twice", why, ops: vec![self.changes[at].write, first, op] })
    }

    /// Of one change two successors were told.
    fn forked(&self, before: usize, one: (usize, &'a Op), other: (usize, &'a Op)) -> Broken<'a> {
        let value = |at: usize| self.changes[at].value;
        let why = format!(
            "right behind {} watchers were told {} and {}, and both can't be: {}; one of them was left out",
            value(before),
            value(one.0),
            value(other.0),
            both(one.1, other.1)
        );
        self.left_out(why, [before, one.0, other.0], [one.1, other.1])
    }

    /// Of one change two predecessors were told.
    fn joined(&self, at: usize, one: (usize, &'a Op), other: (usize, &'a Op)) -> Broken<'a> {
        let value = |at: usize| self.changes[at].value;
        let why = format!(
            "right before {} watchers were told {} and {}, and both can't be: {}; something was left out",
            value(at),
            value(one.0),
            value(other.0),
            both(one.1, other.1)
        );
        self.left_out(why, [one.0, other.0, at], [one.1, other.1])
    }

    fn left_out(&self, why: String, changes: [usize; 3], by: [&'a Op; 2]) -> Broken<'a> {
        let mut ops: Vec<&Op> = changes.into_iter().map(|at| self.changes[at].write).collect();
        ops.sort_unstable_by_key(|op| op.call);
        ops.extend(by);
        Broken { kind: "a change was lost", why, ops }
    }

    /// Two answers tell different changes up to one position.
    fn disagree(&self, one: usize, other: usize, op: &'a Op, position: i64) -> Broken<'a> {
        let why = format!(
            "at position {position} this watcher was told {} once, and another time {}: {}",
            self.changes[one].value,
            self.changes[other].value,
            describe(op)
        );
        let ops = vec![self.changes[one].write, self.changes[other].write, op];
        Broken { kind: "a change was lost", why, ops }
    }
}

fn both(one: &Op, other: &Op) -> String {
    format!("{}, and {}", describe(one), describe(other))
}

impl Watcher<'_> {
    fn new(number: i64) -> Self {
        Self {
            number,
            requests: Vec::new(),
            began: None,
            told: BTreeMap::new(),
            last: None,
            at: BTreeMap::new(),
            first: BTreeMap::new(),
        }
    }
}
