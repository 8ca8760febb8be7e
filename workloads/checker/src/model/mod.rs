//! What an object does when operations come one at a time: the specification that histories are judged by.
//!
//! A [`Model`] is a state, what an operation makes of it, and how an operation is read from the lines of a
//! history. Twenty lines are enough for a new one; everything else (searches, partition, witnesses,
//! shrinking, drawing) works on any of them.
//!
//! **Answers are part of an operation.** [`Model::apply`] is given what was asked together with what was
//! answered, and says none when the answer can't be. An operation whose fate is unknown has no answer, and
//! may do whatever the object allows in that state. The object is deterministic: a state and an operation
//! give one next state.
//!
//! A model of one's own, and a history judged by it:
//!
//! ```
//! use checker::history::{Datum, EventKind, Record};
//! use checker::model::{Model, pair};
//! use checker::{Budget, search};
//!
//! /// A counter: `add` is answered with the sum.
//! struct Counter;
//!
//! impl Model for Counter {
//!     /// What is added, and the sum where it is known.
//!     type Op = (i64, Option<i64>);
//!     type State = i64;
//!
//!     fn name(&self) -> &'static str {
//!         "counter"
//!     }
//!     fn initial(&self) -> i64 {
//!         0
//!     }
//!     fn apply(&self, sum: &i64, &(n, answer): &Self::Op) -> Option<i64> {
//!         let next = sum + n;
//!         answer.is_none_or(|answer| answer == next).then_some(next)
//!     }
//!     fn decode(&self, invoked: &Record, completed: Option<&Record>) -> Result<Option<Self::Op>, String> {
//!         let n = invoked.value.as_int().ok_or("add needs a number")?;
//!         let failed = completed.is_some_and(|completed| completed.kind == EventKind::Fail);
//!         Ok((!failed).then(|| (n, completed.and_then(|completed| completed.value.as_int()))))
//!     }
//!     fn changes(&self, _op: &Self::Op) -> bool {
//!         true
//!     }
//! }
//!
//! let line = |process, kind, value| Ok(Record::new(process, kind, "add", Datum::Nil, Datum::Int(value)));
//! let history = [
//!     line(0, EventKind::Invoke, 1),
//!     line(1, EventKind::Invoke, 2),
//!     line(1, EventKind::Ok, 2),
//!     line(0, EventKind::Ok, 1),
//! ];
//! let calls = pair(&Counter, history).unwrap();
//! let judged = search::judge(&Counter, &calls, &Budget::default(), 1, false);
//! assert_eq!(judged.result.verdict, checker::verdict::Verdict::Invalid, "who adds last sees 3");
//! ```

pub mod counter;
pub mod keyed;
pub mod kv;
pub mod multi_register;
pub mod mutex;
mod names;
mod pair;
pub mod queue;
mod queue_op;
mod queue_order;
pub mod register;
pub mod set;

use std::fmt::Debug;
use std::hash::Hash;

use crate::history::{Datum, NEVER, Outcome, Rank, Record};

pub use pair::pair;

/// An object, as a sequential specification.
pub trait Model {
    /// One operation: what was asked and, where it is known, what was answered.
    type Op: Clone + Debug;
    /// What the object holds.
    type State: Clone + Eq + Hash + Send;

    /// The name in results and on the command line.
    fn name(&self) -> &'static str;

    /// What it holds at first.
    fn initial(&self) -> Self::State;

    /// What it holds after `op`, or none if that answer is impossible in `state`.
    fn apply(&self, state: &Self::State, op: &Self::Op) -> Option<Self::State>;

    /// What an invocation and its completion (none: it never came, or its fate is unknown) mean; none for
    /// what says nothing about the object, such as a read without an answer, or what definitely did not
    /// happen.
    ///
    /// # Errors
    /// What is wrong with these lines, as a fragment that fits after "line 7: ".
    fn decode(&self, invoked: &Record, completed: Option<&Record>) -> Result<Option<Self::Op>, String>;

    /// The independent part of the object that an operation is about: a key. Parts are judged by themselves,
    /// because linearizability is local. None when the object is one whole. All operations of a history have
    /// a part, or none has.
    fn part(&self, _op: &Self::Op) -> Option<u64> {
        None
    }

    /// Whether it asks for a change. What does not ask for one must leave every state as it is.
    fn changes(&self, op: &Self::Op) -> bool;

    /// What was asked and what was answered, as it is drawn: `dequeue → 7`.
    fn describe(&self, op: &Self::Op) -> String {
        format!("{op:?}")
    }

    /// The same of an operation of which only this is `left` among a few others, see [`Model::without`]: what
    /// was answered, where what is left of it would look like another answer.
    fn describe_left(&self, _op: &Self::Op, left: &Self::Op) -> String {
        self.describe(left)
    }

    /// Whether, given how it was answered, it leaves every state as it is in which that answer is possible. A
    /// search places such an operation as soon as its answer is right. A refused compare-and-set is one
    /// although it asked for a change; a write of the value that is there already is none, because elsewhere
    /// it would change something.
    fn observes(&self, op: &Self::Op) -> bool {
        !self.changes(op)
    }

    /// Whether its answer says something about what the object held: whether there is a state in which it
    /// can't be. Of a history of which no answer does nothing was observed.
    fn tells(&self, _op: &Self::Op) -> bool {
        true
    }

    /// Whether two operations do the same in every state. A search then tries one of them only.
    fn same(&self, _one: &Self::Op, _other: &Self::Op) -> bool {
        false
    }

    /// What the operation is about, as numbers: values, elements, keys. A counterexample is made small by
    /// leaving out whole elements, see [`Model::without`].
    fn elements(&self, _op: &Self::Op) -> Vec<u64> {
        Vec::new()
    }

    /// What remains of an operation when some elements are taken out of the history; none when nothing does.
    /// If the whole history has an order, then what remains of it must have one too.
    fn without(&self, op: &Self::Op, _gone: &dyn Fn(u64) -> bool) -> Option<Self::Op> {
        Some(op.clone())
    }

    /// Observations that must go too when some elements are taken out of these operations, by place: what
    /// goes may be the reason for their answers. What is left must have an order if these have one.
    fn unfair(&self, _calls: &[&Call<Self::Op>], _gone: &dyn Fn(u64) -> bool) -> Vec<usize> {
        Vec::new()
    }

    /// Whether a counterexample has to be one beside all changes that it leaves out, too: then an observation
    /// that is the reason why a change can be left out is not left out itself.
    fn shows_reasons(&self) -> bool {
        false
    }

    /// Bytes that this state holds for itself, beside its own size and what it shares with others.
    fn held_bytes(&self, _state: &Self::State) -> usize {
        0
    }

    /// What the object holds, for a sentence: "it could hold ...".
    fn show(&self, _state: &Self::State) -> Option<String> {
        None
    }

    /// What a part is called: a key.
    fn part_name(&self, part: u64) -> Datum {
        i64::try_from(part).map_or(Datum::Nil, Datum::Int)
    }

    /// The same object as far as these operations can tell: states that no answer of theirs tells apart, now
    /// or later, may be one. Searches go through it; what they find is confirmed and explained by the object
    /// itself.
    fn as_seen_by(&self, _calls: &[&Call<Self::Op>]) -> Option<Self>
    where
        Self: Sized,
    {
        None
    }

    /// What remains of a history when what had returned before `moment` is told as one operation; none where
    /// that can't be said, or nothing had returned. If the whole history has an order, then what remains of
    /// it must have one too.
    fn since(&self, _calls: &[&Call<Self::Op>], _moment: Rank) -> Option<Since<Self::Op>> {
        None
    }

    /// What this object knows of its own, before any search: a few operations that contradict each other, or
    /// an order worth trying. Neither is believed: the operations are judged again, the order is confirmed.
    fn shortcut(&self, _calls: &[&Call<Self::Op>]) -> Shortcut {
        Shortcut::None
    }
}

/// What remains of a history whose past is told as one operation.
#[derive(Clone, Debug)]
pub struct Since<O> {
    /// The operation that stands for the past, by its place in the history.
    pub past: usize,
    /// All that remains, that one among it, with their places in the history.
    pub rest: Vec<(usize, Call<O>)>,
}

/// What a model can say of a history without a search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shortcut {
    /// Nothing.
    None,
    /// No order exists, because of these operations.
    Refuted {
        /// The elements that they are about. Without all others the history has no order either.
        elements: Vec<u64>,
        /// Why, as a sentence without its full stop.
        sentence: String,
        /// The operation whose answer can't be.
        culprit: usize,
    },
    /// An order to try.
    Order(Vec<usize>),
}

/// One operation in real time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call<O> {
    /// What was asked and answered.
    pub op: O,
    /// Rank of the call.
    pub call: Rank,
    /// Rank of the return, or [`NEVER`]: then it need not have happened.
    pub ret: Rank,
    /// The logical process.
    pub process: u64,
    /// Index of the invocation's record.
    pub index: u64,
    /// When it was invoked, ns since the start of the run.
    pub invoke_ns: u64,
    /// When it completed; none when its fate stayed unknown.
    pub complete_ns: Option<u64>,
}

impl<O> Call<O> {
    /// Whether its fate is unknown.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.ret == NEVER
    }

    /// How it ended, for drawing.
    #[must_use]
    pub fn outcome(&self) -> Outcome {
        if self.is_open() { Outcome::Info } else { Outcome::Ok }
    }
}
