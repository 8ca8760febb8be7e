//! What an operation did, in the terms of the objects that this crate judges.

use std::sync::Arc;

use super::function::{Effect, Function, Vocabulary};
use super::micro::{Micro, is_answered};
use super::pair::PairError;
use super::{Op, Value};

/// What an operation did, with its result when it has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OpKind {
    /// A read; the value is meaningful only when it ended ok. None is a register that nobody wrote.
    Read {
        /// What was read.
        value: Option<i64>,
    },
    /// A write.
    Write {
        /// What was written.
        value: i64,
    },
    /// A compare-and-set.
    Cas {
        /// What the register had to hold; none is a register that nobody wrote.
        from: Option<i64>,
        /// What it was to hold afterwards.
        to: i64,
    },
    /// A unique element put into a set.
    Add {
        /// The element.
        value: i64,
    },
    /// A unique element put at the end of a list.
    Append {
        /// The element.
        value: i64,
    },
    /// A place made, in which others are made.
    Make,
    /// A named node made.
    Create {
        /// Its name.
        name: i64,
        /// The number that it got, when numbers are given.
        number: Option<i64>,
    },
    /// A named node deleted.
    Delete {
        /// Its name.
        name: i64,
    },
    /// A look whether a named node is there.
    Exists {
        /// Its name.
        name: i64,
        /// Whether it was; meaningful only when it ended ok.
        present: bool,
    },
    /// A session opened.
    Open {
        /// Its time-out in milliseconds, once it is known.
        timeout_ms: Option<i64>,
    },
    /// The session closed.
    Close,
    /// The session left to expire.
    Abandon,
    /// A lock or a lead acquired. The moments of its term are in the operation's list.
    Acquire {
        /// Its token, once it is known.
        token: Option<i64>,
    },
    /// A write to a store that a token guards. The moments are in the operation's list.
    Store {
        /// The token.
        token: i64,
        /// What was written.
        value: i64,
    },
    /// What was acquired given up.
    Release {
        /// The token of what was given up.
        token: i64,
    },
    /// A unique element put at the end of a queue.
    Enqueue {
        /// The element.
        value: i64,
    },
    /// The first element of a queue handed out. Where it is claimed, the moments of the claim are in the
    /// operation's list.
    Dequeue {
        /// The element, once it is known; none where there was nothing.
        value: Option<i64>,
    },
    /// An element that was handed out done.
    Acknowledge {
        /// The element.
        value: i64,
    },
    /// A round of a barrier entered.
    Enter {
        /// The round.
        round: i64,
    },
    /// A round of a barrier left.
    Leave {
        /// The round.
        round: i64,
    },
    /// A transaction, whose micro-operations are the operation's.
    Txn {
        /// Whether one of them is an append.
        changes: bool,
    },
    /// How the register changed. What was told is in the operation's list.
    Watch {
        /// Who is told: each has a number.
        watcher: i64,
        /// The position up to which it was told before; none where it begins.
        from: Option<i64>,
    },
    /// Anything else. What was asked and what was told is in the operation.
    Other,
}

impl OpKind {
    /// The value that the register holds if this operation takes effect; none for what writes no register.
    #[must_use]
    pub fn written(&self) -> Option<i64> {
        match *self {
            Self::Write { value } => Some(value),
            Self::Cas { to, .. } => Some(to),
            _ => None,
        }
    }
}

/// Numbers in the answer of an acquire: token, since, until.
const TERM: usize = 3;
/// Numbers in the answer of a dequeue that hands out: the element.
const HANDED_OUT: usize = 1;
/// Numbers in the answer of a dequeue that claims: element, token, since, until.
const CLAIM: usize = 4;
/// Numbers in the answer of a guarded write: token, value, looked, until, stored.
const STORED: usize = 5;
/// Numbers for a change in the answer of a watch, behind the position: value, version.
const EVENT: usize = 2;

impl Op {
    /// What it did.
    #[must_use]
    pub fn kind(&self) -> OpKind {
        match (self.f, &self.asked) {
            (Function::READ, _) => OpKind::Read { value: self.told.integer() },
            (Function::WRITE, &Value::One(value)) => OpKind::Write { value },
            (Function::CAS, &Value::Pair(from, to)) => OpKind::Cas { from, to },
            (Function::ADD, &Value::One(value)) => OpKind::Add { value },
            (Function::APPEND, &Value::One(value)) => OpKind::Append { value },
            (Function::TXN, Value::Txn(_)) => OpKind::Txn { changes: self.changes },
            (Function::CREATE, Value::Null) => OpKind::Make,
            (Function::CREATE, &Value::One(name)) => OpKind::Create { name, number: self.told.second() },
            (Function::DELETE, &Value::One(name)) => OpKind::Delete { name },
            (Function::EXISTS, &Value::One(name)) => {
                OpKind::Exists { name, present: self.told.second().is_some_and(|present| present != 0) }
            }
            (Function::OPEN, _) => OpKind::Open { timeout_ms: self.told.integer() },
            (Function::CLOSE, _) => OpKind::Close,
            (Function::ABANDON, _) => OpKind::Abandon,
            (Function::ACQUIRE, _) => OpKind::Acquire { token: self.first_told() },
            (Function::STORE, &Value::Pair(Some(token), value)) => OpKind::Store { token, value },
            (Function::RELEASE, &Value::One(token)) => OpKind::Release { token },
            (Function::ENQUEUE, &Value::One(value)) => OpKind::Enqueue { value },
            (Function::DEQUEUE, _) => {
                OpKind::Dequeue { value: self.told.integer().or_else(|| self.first_told()) }
            }
            (Function::ACKNOWLEDGE, &Value::One(value)) => OpKind::Acknowledge { value },
            (Function::ENTER, &Value::One(round)) => OpKind::Enter { round },
            (Function::LEAVE, &Value::One(round)) => OpKind::Leave { round },
            (Function::WATCH, &Value::Pair(from, watcher)) => OpKind::Watch { watcher, from },
            _ => OpKind::Other,
        }
    }

    /// The elements that a read of a set or a list returned; of a lock and of a watch, what the answer told.
    #[must_use]
    pub fn list(&self) -> Option<&Arc<[i64]>> {
        if let Value::List(list) = &self.told { Some(list) } else { None }
    }

    /// The micro-operations of a transaction: with what was read, once it is known.
    #[must_use]
    pub fn micros(&self) -> Option<&Arc<[Micro]>> {
        match (&self.told, &self.asked) {
            (Value::Txn(micros), _) | (_, Value::Txn(micros)) => Some(micros),
            _ => None,
        }
    }

    fn first_told(&self) -> Option<i64> {
        self.list()?.first().copied()
    }
}

/// Whether an operation that asks for this may change something.
///
/// # Errors
/// [`PairError::Shape`] where a word that this crate knows asks for what it can't.
pub(super) fn changes(f: Function, asked: &Value, vocabulary: &Vocabulary) -> Result<bool, PairError> {
    let fits = match (f, asked) {
        (Function::TXN, Value::Txn(micros)) => return Ok(micros.iter().any(Micro::is_append)),
        (Function::CAS | Function::WATCH, Value::Pair(..))
        | (Function::STORE, Value::Pair(Some(_), _))
        | (Function::CREATE, Value::Null | Value::One(_))
        | (
            Function::OPEN | Function::CLOSE | Function::ABANDON | Function::ACQUIRE | Function::DEQUEUE,
            Value::Null,
        )
        | (
            Function::WRITE
            | Function::ADD
            | Function::APPEND
            | Function::DELETE
            | Function::EXISTS
            | Function::RELEASE
            | Function::ENQUEUE
            | Function::ACKNOWLEDGE
            | Function::ENTER
            | Function::LEAVE,
            Value::One(_),
        ) => true,
        (f, _) => f == Function::READ || !Function::KNOWN.contains(&f),
    };
    if fits { Ok(vocabulary.effect(f) == Effect::Change) } else { Err(PairError::Shape(f)) }
}

/// What an operation that happened was told. A change is what was asked; a completion that names another
/// value would make the recorder a liar, so it is refused rather than believed.
///
/// # Errors
/// [`PairError::Shape`].
pub(super) fn told(op: &Op, value: Value) -> Result<Value, PairError> {
    // Two integers in brackets are a list where a list is told.
    let value = match op.f {
        Function::READ | Function::ACQUIRE | Function::STORE | Function::DEQUEUE | Function::WATCH => {
            value.list().map_or(value, Value::List)
        }
        _ => value,
    };
    let same = value == op.asked;
    let fits = match (op.f, &value) {
        (Function::READ, Value::Txn(_) | Value::Pair(..)) => false,
        (Function::READ, _) | (Function::OPEN, Value::One(_)) => true,
        (Function::WRITE | Function::CAS | Function::CLOSE | Function::ABANDON, Value::Null) => true,
        (Function::CREATE | Function::EXISTS, &Value::Pair(Some(name), _)) => op.asked == Value::One(name),
        (Function::CREATE, _) => same,
        (Function::ACQUIRE, Value::List(told)) => told.len() == TERM,
        (Function::STORE, Value::List(told)) => {
            told.len() == STORED && op.asked == Value::Pair(Some(told[0]), told[1])
        }
        (Function::DEQUEUE, Value::List(told)) => matches!(told.len(), HANDED_OUT | CLAIM),
        (Function::DEQUEUE, Value::Null | Value::One(_)) => true,
        (Function::TXN, Value::Txn(told)) => op.micros().is_some_and(|asked| is_answered(asked, told)),
        (Function::WATCH, Value::List(told)) => told.len() % EVENT == 1,
        (
            Function::WRITE
            | Function::CAS
            | Function::ADD
            | Function::APPEND
            | Function::DELETE
            | Function::RELEASE
            | Function::ENQUEUE
            | Function::ACKNOWLEDGE
            | Function::ENTER
            | Function::LEAVE,
            _,
        ) => same,
        (f, _) => !Function::KNOWN.contains(&f),
    };
    if fits { Ok(value) } else { Err(PairError::Shape(op.f)) }
}
