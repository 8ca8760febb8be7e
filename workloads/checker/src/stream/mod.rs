//! Linearizability of registers while the history is still being read or made.
//!
//! A [`Checker`] is fed line by line, by a reader of a file or by a run that goes on, and holds what is open
//! and nothing else: ten million operations take no more memory than ten thousand. It raises an [`Alarm`] at
//! the line that makes a violation certain. At the end, and at any time, each key has an [`Answer`]: valid, a
//! violation, or that this test can't decide, which is so where a value was written again while it was still
//! there, or where no place was found for a compare-and-set that was refused. Then [`crate::register::check`]
//! decides, on the whole history of the key.
//!
//! - [`crate::register::blocks`]: the test of one register, with its proof; here it is fed `online`.
//! - [`check_reader`]: a file, read in one thread and checked in another.
//! - [`explain`]: from an alarm to a counterexample of few operations, by reading the same lines again.
//!
//! **Time.** The order is that of the stamps, as in [`crate::history::Pairing`], and lines may come a little
//! late: the last [`HELD_LINES`] lines are held back and put in order. A line that comes later than that
//! makes the answer of its key undecided. Whoever feeds a run that goes on calls [`Checker::advance`] with a
//! time before which nothing will come any more, so that an alarm does not wait for more lines.

mod alarm;
mod explain;
#[cfg(test)]
mod fuzz;
mod reader;

use std::collections::VecDeque;

pub use crate::register::blocks::Contradiction;
pub use crate::register::blocks::terms::{Shown, Undecided};
pub use alarm::Alarm;
pub use explain::{Collector, explain};
pub use reader::{Checked, check_reader};

use crate::hash::FastMap;
use crate::history::{BAD_VERSION, Event, EventKind, Function, PairError, Pairs, Stamp, Value};
use crate::register::blocks;
use crate::register::blocks::online::Blocks;
use crate::register::blocks::terms::{Asked, Call, Halt};

/// Lines that are held back to be put in the order of time.
pub const HELD_LINES: usize = 1024;

/// What is known about one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// An order exists of all that was seen.
    Valid,
    /// None exists.
    Violation(Alarm),
    /// This test can't decide.
    NeedsSearch(Why),
}

/// Why a search is needed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Why {
    /// The values leave it open.
    Values(Undecided),
    /// A line came too late to be put in its place.
    Late {
        /// Its record.
        record: u64,
    },
}

impl std::fmt::Display for Why {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Values(undecided) => undecided.fmt(f),
            Self::Late { record } => write!(f, "record {record} came more than {HELD_LINES} lines too late"),
        }
    }
}

/// The answer about one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyAnswer {
    /// The key.
    pub key: u64,
    /// The answer.
    pub answer: Answer,
    /// Operations of the key.
    pub ops: u64,
    /// Changes among them whose fate is unknown.
    pub open: u64,
    /// Operations that say something: neither failed nor reads without an answer.
    pub telling: u64,
}

/// One key's part of the history.
#[derive(Clone, Debug)]
struct Key {
    key: u64,
    blocks: Blocks,
    /// Set when the key is decided or can't be.
    settled: Option<Answer>,
    ops: u64,
    open: u64,
    telling: u64,
}

impl Key {
    fn answer(&self) -> Answer {
        let in_doubt = |record| Answer::NeedsSearch(Why::Values(Undecided::Refused(record)));
        self.settled.clone().or_else(|| self.blocks.doubt().map(in_doubt)).unwrap_or(Answer::Valid)
    }
}

/// One operation under way.
#[derive(Clone, Copy, Debug)]
struct UnderWay {
    record: u64,
    called: Stamp,
    f: Function,
    asked: Asked,
    key: usize,
    /// Once its invocation has been put in order.
    call: Option<Call>,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Call,
    Done(Shown),
    Denied { refused: bool },
    Unknown,
}

/// A line in its place of time: stamp and record.
#[derive(Clone, Copy, Debug)]
struct Held {
    when: (u64, u64),
    op: usize,
    step: Step,
}

/// Checks a history of registers while it is made.
#[derive(Clone, Debug, Default)]
pub struct Checker {
    keys: Vec<Key>,
    by_key: FastMap<u64, usize>,
    /// For each process its operation under way.
    pairs: Pairs<usize>,
    ops: Vec<UnderWay>,
    free: Vec<usize>,
    held: VecDeque<Held>,
    /// The last line that was put in its place.
    passed: (u64, u64),
    now: blocks::Moment,
    records: u64,
    untimed: bool,
}

impl Checker {
    /// A history that begins here.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next line, in the order of the lines. `event.index` is what alarms name it by.
    ///
    /// # Errors
    /// [`PairError`] when it does not fit what came before, or is not about a register.
    pub fn push(&mut self, event: &Event) -> Result<Option<Alarm>, PairError> {
        self.untimed |= event.time.is_none();
        let stamp = if self.untimed { self.passed.0 } else { event.time.unwrap_or(0) };
        let (op, step) = match event.kind {
            EventKind::Invoke => (self.invoke(event, (stamp, 0))?, Step::Call),
            _ => self.complete(event, (stamp, 0))?,
        };
        self.records += 1;
        self.hold(Held { when: (stamp, event.index), op, step });
        if self.held.len() > HELD_LINES { Ok(self.pass_one()) } else { Ok(None) }
    }

    /// Nothing stamped before `now_ns` will come any more.
    pub fn advance(&mut self, now_ns: u64) -> Vec<Alarm> {
        let mut alarms = Vec::new();
        while self.held.front().is_some_and(|held| held.when.0 < now_ns) {
            alarms.extend(self.pass_one());
        }
        alarms
    }

    /// Everything was pushed. What still waits for an answer stays open.
    #[must_use]
    pub fn finish(mut self) -> Vec<KeyAnswer> {
        while !self.held.is_empty() {
            self.pass_one();
        }
        self.answers()
    }

    /// The answers as far as the history goes, keys ascending; lines that are held back do not count yet.
    #[must_use]
    pub fn answers(&self) -> Vec<KeyAnswer> {
        let mut waiting = vec![0_u64; self.keys.len()];
        for &op in self.pairs.under_way() {
            let op = &self.ops[op];
            waiting[op.key] += u64::from(op.asked != Asked::Read);
        }
        let mut answers: Vec<KeyAnswer> = self
            .keys
            .iter()
            .zip(waiting)
            .map(|(key, waiting)| KeyAnswer {
                key: key.key,
                answer: key.answer(),
                ops: key.ops,
                open: key.open + waiting,
                telling: key.telling + waiting,
            })
            .collect();
        answers.sort_unstable_by_key(|answer| answer.key);
        answers
    }

    /// Operations that wait for an answer.
    #[must_use]
    pub fn open(&self) -> usize {
        self.pairs.open()
    }

    /// Lines taken.
    #[must_use]
    pub fn records(&self) -> u64 {
        self.records
    }

    /// Bytes held, about.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let keys: usize = self.keys.iter().map(|key| key.blocks.memory_bytes() + size_of::<Key>()).sum();
        keys + self.ops.capacity() * size_of::<UnderWay>()
            + self.held.capacity() * size_of::<Held>()
            + self.pairs.memory_bytes()
            + self.by_key.capacity() * size_of::<(u64, usize)>()
    }

    fn invoke(&mut self, event: &Event, called: Stamp) -> Result<usize, PairError> {
        let asked = match (event.f, &event.value) {
            (Function::READ, _) => Asked::Read,
            (Function::WRITE, &Value::One(value)) => Asked::Write(value),
            (Function::CAS, &Value::Pair(from, to)) => Asked::Cas { from, to },
            (f, _) => return Err(PairError::Shape(f)),
        };
        let next = self.keys.len();
        let key = *self.by_key.entry(event.key).or_insert(next);
        if key == next {
            let blocks = Blocks::default();
            self.keys.push(Key { key: event.key, blocks, settled: None, ops: 0, open: 0, telling: 0 });
        }
        let op = UnderWay { record: event.index, called, f: event.f, asked, key, call: None };
        let place = self.free.pop().unwrap_or(self.ops.len());
        self.pairs.invoke(event.process, place)?;
        if place == self.ops.len() {
            self.ops.push(op);
        } else {
            self.ops[place] = op;
        }
        Ok(place)
    }

    fn complete(&mut self, event: &Event, returned: Stamp) -> Result<(usize, Step), PairError> {
        let place = self.pairs.complete(event.process)?;
        let op = &self.ops[place];
        self.pairs.in_time(event.process, op.called, returned)?;
        let key = self.keys[op.key].key;
        if (event.f, event.key) != (op.f, key) {
            return Err(PairError::Mismatch {
                process: event.process,
                invoked: format!("{} of key {key}", op.f),
                completed: format!("{} of key {}", event.f, event.key),
            });
        }
        let step = match (event.kind, op.asked) {
            (EventKind::Ok, asked) => Step::Done(told(asked, &event.value).ok_or(PairError::Shape(event.f))?),
            (EventKind::Fail, Asked::Cas { .. }) => {
                Step::Denied { refused: event.error.as_deref().is_none_or(|error| error == BAD_VERSION) }
            }
            (EventKind::Fail, _) | (_, Asked::Read) => Step::Denied { refused: false },
            _ => Step::Unknown,
        };
        Ok((place, step))
    }

    /// Puts a line in its place among those that are held back.
    fn hold(&mut self, line: Held) {
        let mut place = self.held.len();
        while place > 0 && self.held[place - 1].when > line.when {
            place -= 1;
        }
        if place == self.held.len() { self.held.push_back(line) } else { self.held.insert(place, line) }
    }

    /// The first of the lines that are held back takes effect.
    fn pass_one(&mut self) -> Option<Alarm> {
        let Held { when, op: place, step } = self.held.pop_front()?;
        self.now += 1;
        let now = self.now;
        let op = &mut self.ops[place];
        let key = &mut self.keys[op.key];
        if when < self.passed {
            // An answer that is counted too late only makes the test weaker, but then a valid one proves
            // nothing.
            let why = Why::Late { record: when.1 };
            key.settled.get_or_insert(Answer::NeedsSearch(why));
        } else {
            self.passed = when;
        }
        let outcome = match (step, op.call) {
            (Step::Call, _) => {
                key.ops += 1;
                if key.settled.is_some() {
                    return None;
                }
                key.blocks.call(op.asked, op.record, now).map(|call| op.call = Some(call))
            }
            (step, call) => {
                self.free.push(place);
                key.open += u64::from(matches!(step, Step::Unknown));
                key.telling += u64::from(!matches!(step, Step::Denied { refused: false }));
                match (step, call) {
                    _ if key.settled.is_some() => return None,
                    (Step::Done(read), Some(call)) => key.blocks.done(call, read, now),
                    (Step::Denied { refused }, Some(call)) => key.blocks.denied(call, refused, now),
                    (_, Some(call)) => {
                        key.blocks.over(call, now);
                        Ok(())
                    }
                    (_, None) => Ok(()),
                }
            }
        };
        let answer = match outcome {
            Ok(()) => return None,
            Err(Halt::Search(undecided)) => Answer::NeedsSearch(Why::Values(undecided)),
            Err(Halt::Violation(contradiction, mut values)) => {
                values.sort_unstable();
                values.dedup();
                let (at_ns, at_record) = when;
                Answer::Violation(Alarm { key: key.key, at_record, at_ns, contradiction, values })
            }
        };
        key.blocks = Blocks::default();
        let key = key.settled.insert(answer);
        if let Answer::Violation(alarm) = key { Some(alarm.clone()) } else { None }
    }
}

/// What an operation turned out to show; none if its answer does not fit what was asked.
fn told(asked: Asked, value: &Value) -> Option<Shown> {
    match (asked, value) {
        (Asked::Read, &Value::One(value)) => Some(Some(value)),
        (Asked::Read, Value::Null) => Some(None),
        (Asked::Write(_) | Asked::Cas { .. }, Value::Null) => Some(None),
        (Asked::Write(asked), &Value::One(told)) if told == asked => Some(None),
        (Asked::Cas { from, to }, &Value::Pair(f, t)) if (f, t) == (from, to) => Some(None),
        _ => None,
    }
}
