//! Operations as workloads ask for them: in terms that no system owns.
//!
//! An operation says what is to happen to which object, and nothing of how a system does it: there are no
//! paths, no versions of a protocol and no errors here. A system's mapping turns it into requests, and what
//! comes back into an [`Outcome`](crate::Outcome). The line of the history follows from the operation and its
//! outcome alone, so a history of one system reads like one of any other.

use std::sync::Arc;

use checker::history::{Effect, Event, EventKind, Function, Micro, Value};

/// What a key stands for, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Object(&'static str);

impl Object {
    /// One integer.
    pub const REGISTER: Self = Self("register");
    /// Unique elements, in no order.
    pub const SET: Self = Self("set");
    /// Elements in the order in which they were put there.
    pub const LIST: Self = Self("list");
    /// Numbers that are given once, under names.
    pub const NUMBERS: Self = Self("numbers");
    /// Names that live as long as the session that made them.
    pub const NAMES: Self = Self("names");
    /// The client's own session.
    pub const SESSION: Self = Self("session");
    /// What one holds at a time, a lock or a lead, and beside it a store that its token guards.
    pub const LOCK: Self = Self("lock");
    /// Elements that are handed out, the first one first.
    pub const QUEUE: Self = Self("queue");
    /// Where some wait for each other, round after round.
    pub const BARRIER: Self = Self("barrier");
    /// Lists that transactions append to and read. The key is that of the first one that is touched.
    pub const LISTS: Self = Self("lists");

    /// What a workload's keys stand for that none of these names.
    #[must_use]
    pub const fn named(name: &'static str) -> Self {
        Self(name)
    }

    /// The name, as clients that speak lines are told it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        self.0
    }
}

/// A function that one workload has: what it asks for, and how an answer is read. It stands in the workload's
/// file.
#[derive(Debug)]
pub struct Word {
    /// The word.
    pub function: Function,
    /// Whether it asks for a change.
    pub effect: Effect,
    /// What a client's answer tells, as the history has it, or what should have been answered.
    pub read: fn(&Op, &serde_json::Value) -> Result<Value, &'static str>,
}

impl PartialEq for Word {
    fn eq(&self, other: &Self) -> bool {
        self.function == other.function
    }
}

impl Eq for Word {}

/// What is to happen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// Make the register, with its first value. In the history this is a write like any other, so that the
    /// history alone says where each register began.
    MakeRegister {
        /// The value.
        value: i64,
    },
    /// Make the empty set, list, or whatever holds numbers or names.
    MakePlace,
    /// Read the whole object, as it is now.
    Read,
    /// Overwrite the register.
    Write {
        /// The value.
        value: i64,
    },
    /// Replace what some answer has shown, if it is still there.
    Cas {
        /// The value that was shown.
        from: i64,
        /// The value that replaces it.
        to: i64,
        /// The version that was shown with it, where the system tells and compares one.
        basis: Option<i64>,
    },
    /// Put an element into the set.
    Add {
        /// The element.
        element: i64,
    },
    /// Put an element at the end of the list, if that is still as some answer has shown it.
    Append {
        /// The element.
        element: i64,
        /// The list that was shown.
        onto: Arc<[i64]>,
        /// The version that was shown with it, where the system tells and compares one.
        basis: Option<i64>,
    },
    /// Take the next number, under a name.
    Next {
        /// The name; every attempt has its own.
        name: i64,
        /// Whether the number's place stays when the session ends.
        lasts: bool,
    },
    /// Give a number's place back.
    Delete {
        /// The name that it was taken under.
        name: i64,
        /// The number that was given.
        number: i64,
    },
    /// Make a name that lives as long as the session.
    Create {
        /// The name.
        name: i64,
    },
    /// Look whether a name is there.
    Exists {
        /// The name.
        name: i64,
    },
    /// The opening of the session, which whoever drives the client does by itself; it is only written down.
    Open,
    /// Close the session. Whatever comes of it, the client goes on with a new one.
    Close,
    /// Fall silent: the client drops its connection and goes on with a new session.
    Abandon,
    /// Wait until the lock is one's own, or the lead.
    Acquire,
    /// Write to the store that the lock's token guards.
    Store {
        /// The token that was given.
        token: i64,
        /// The value.
        value: i64,
    },
    /// Give up what was acquired.
    Release {
        /// The token that was given.
        token: i64,
    },
    /// Put an element at the end of the queue.
    Enqueue {
        /// The element.
        element: i64,
    },
    /// Be handed the first element of the queue.
    Dequeue,
    /// Say that an element is done.
    Acknowledge {
        /// The element.
        element: i64,
    },
    /// Enter a round of the barrier together with others.
    Enter {
        /// The round.
        round: i64,
    },
    /// Leave it together with them.
    Leave {
        /// The round.
        round: i64,
    },
    /// Do all of these at once, or none of them. There is at least one.
    Txn {
        /// What, in this order.
        micros: Arc<[Micro]>,
    },
    /// Be told how the register changed.
    Watch {
        /// Who: each watcher has a number.
        watcher: i64,
        /// The position up to which it was told before; none where it begins.
        from: Option<i64>,
        /// How long it waits for news.
        wait_ms: u64,
    },
    /// What only one workload asks for.
    Said {
        /// What.
        word: &'static Word,
        /// Its argument.
        value: Value,
    },
}

/// An operation that a process is to do now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Op {
    /// What the key stands for.
    pub object: Object,
    /// The key.
    pub key: u64,
    /// What is to happen.
    pub body: Body,
}

impl Op {
    /// An operation on an object.
    #[must_use]
    pub const fn new(object: Object, key: u64, body: Body) -> Self {
        Self { object, key, body }
    }

    /// What only one workload asks for.
    #[must_use]
    pub const fn said(object: Object, key: u64, word: &'static Word, value: Value) -> Self {
        Self::new(object, key, Body::Said { word, value })
    }

    /// A transaction. Of none at all there is no key.
    #[must_use]
    pub fn txn(micros: impl Into<Arc<[Micro]>>) -> Self {
        let micros = micros.into();
        Self::new(Object::LISTS, micros.first().map_or(0, |micro| micro.key), Body::Txn { micros })
    }

    /// The opening of a session.
    #[must_use]
    pub const fn open() -> Self {
        Self::new(Object::SESSION, 0, Body::Open)
    }

    /// The closing of the session.
    #[must_use]
    pub const fn close() -> Self {
        Self::new(Object::SESSION, 0, Body::Close)
    }

    /// The abandonment of the session.
    #[must_use]
    pub const fn abandon() -> Self {
        Self::new(Object::SESSION, 0, Body::Abandon)
    }

    /// The function, as the history names it.
    #[must_use]
    pub const fn function(&self) -> Function {
        match self.body {
            Body::MakeRegister { .. } | Body::Write { .. } => Function::WRITE,
            Body::MakePlace | Body::Next { .. } | Body::Create { .. } => Function::CREATE,
            Body::Read => Function::READ,
            Body::Cas { .. } => Function::CAS,
            Body::Add { .. } => Function::ADD,
            Body::Append { .. } => Function::APPEND,
            Body::Delete { .. } => Function::DELETE,
            Body::Exists { .. } => Function::EXISTS,
            Body::Open => Function::OPEN,
            Body::Close => Function::CLOSE,
            Body::Abandon => Function::ABANDON,
            Body::Acquire => Function::ACQUIRE,
            Body::Store { .. } => Function::STORE,
            Body::Release { .. } => Function::RELEASE,
            Body::Enqueue { .. } => Function::ENQUEUE,
            Body::Dequeue => Function::DEQUEUE,
            Body::Acknowledge { .. } => Function::ACKNOWLEDGE,
            Body::Enter { .. } => Function::ENTER,
            Body::Leave { .. } => Function::LEAVE,
            Body::Txn { .. } => Function::TXN,
            Body::Watch { .. } => Function::WATCH,
            Body::Said { word, .. } => word.function,
        }
    }

    /// The value, as the invocation's line has it.
    #[must_use]
    pub fn value(&self) -> Value {
        match self.body {
            Body::MakeRegister { value } | Body::Write { value } => Value::One(value),
            Body::Cas { from, to, .. } => Value::Pair(Some(from), to),
            Body::Add { element }
            | Body::Append { element, .. }
            | Body::Enqueue { element }
            | Body::Acknowledge { element } => Value::One(element),
            Body::Next { name, .. }
            | Body::Delete { name, .. }
            | Body::Create { name }
            | Body::Exists { name } => Value::One(name),
            Body::Store { token, value } => Value::Pair(Some(token), value),
            Body::Release { token } => Value::One(token),
            Body::Enter { round } | Body::Leave { round } => Value::One(round),
            Body::Txn { ref micros } => Value::Txn(Arc::clone(micros)),
            Body::Watch { watcher, from, .. } => Value::Pair(from, watcher),
            Body::Said { ref value, .. } => value.clone(),
            Body::MakePlace
            | Body::Read
            | Body::Open
            | Body::Close
            | Body::Abandon
            | Body::Acquire
            | Body::Dequeue => Value::Null,
        }
    }

    /// The version that it asks for.
    #[must_use]
    pub const fn basis(&self) -> Option<i64> {
        match self.body {
            Body::Cas { basis, .. } | Body::Append { basis, .. } => basis,
            _ => None,
        }
    }

    /// Whether it may change something: then a lost answer leaves it open for ever.
    #[must_use]
    pub fn is_change(&self) -> bool {
        match &self.body {
            Body::Txn { micros } => micros.iter().any(Micro::is_append),
            Body::Said { word, .. } => word.effect == Effect::Change,
            body => !matches!(body, Body::Read | Body::Exists { .. } | Body::Abandon | Body::Watch { .. }),
        }
    }

    /// Whether its answer tells what changed, and not what is there.
    #[must_use]
    pub const fn is_watch(&self) -> bool {
        matches!(self.body, Body::Watch { .. })
    }

    /// How it ends whose answer never came: a look has no effect, so a lost one is simply over; a change may
    /// have happened.
    #[must_use]
    pub fn unknown_fate(&self) -> EventKind {
        if self.is_change() { EventKind::Info } else { EventKind::Fail }
    }

    /// Whether the client's session is over for it afterwards, however it ends.
    #[must_use]
    pub const fn ends_session(&self) -> bool {
        matches!(self.body, Body::Close | Body::Abandon)
    }

    /// Whether it makes something that was not there, and that others may have made.
    #[must_use]
    pub const fn makes_a_place(&self) -> bool {
        matches!(self.body, Body::MakePlace)
    }

    /// The invocation's line; the caller adds where the client is connected and when the operation was due.
    #[must_use]
    pub fn event(&self, process: u64, time_ns: u64) -> Event {
        let mut event =
            Event::new(process, EventKind::Invoke, self.function(), self.key, self.value(), time_ns);
        event.expect = self.basis();
        event
    }
}
