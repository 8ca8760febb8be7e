//! What came of an operation, as a system's mapping says it.

use std::sync::Arc;
use std::time::Duration;

use checker::history::{Event, EventKind, Function, NOT_SENT, Value};

use crate::op::{Object, Op};

/// The value recorded for data that no write of a workload can have left: it reads as a value that nobody
/// wrote, so that corruption is judged as the violation it is.
pub const UNREADABLE: i64 = -1;

/// The error beside the end of a session of which somebody said that it expired.
pub const SESSION_EXPIRED: &str = "session-expired";

/// Beside the success of an operation that was never sent, because the system needs no such thing: nobody
/// acknowledged it.
pub const NOT_NEEDED: &str = "not-needed";

/// Why an operation was never sent: every client had another one until this one had waited for too long.
pub const NO_CLIENT_FREE: &str = "no client was free in time";
/// The same: its client's process was being replaced, which has nothing to do with any member.
pub const CLIENT_REPLACED: &str = "its client was being replaced";
/// The same: its client has no process.
pub const NO_PROCESS: &str = "no process of the client";
/// The same: no member took its client.
pub const NO_MEMBER_TOOK: &str = "no member took the client's session in time";

/// The error of a guarded write that the store refused, because it had taken one with a larger token.
pub const STALE_TOKEN: &str = "stale-token";

/// What an answer claims about order. A claim is a witness and never trusted alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Claims {
    /// How often the object had been changed, in the state that the answer speaks of.
    pub version: Option<i64>,
    /// The place, in the order of all changes of the system, of the change that made that state.
    pub changed_at: Option<u64>,
    /// The place up to which whoever answered had seen that order; of a change, its own place.
    pub seen: Option<u64>,
    /// Who did it, where a member may send a client on, or ask another one itself.
    pub by: Option<u64>,
}

/// Why there was no effect, where a workload goes on by that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// What was to be made is there already.
    Exists,
    /// What it was about is not there.
    Missing,
    /// Any other reason.
    Other,
}

/// What came of an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Ok, fail (certainly no effect) or info (nobody knows).
    pub kind: EventKind,
    /// The value of the completion's line.
    pub value: Value,
    /// What the answer claims about order.
    pub claims: Claims,
    /// The error's name.
    pub error: Option<String>,
    /// Why the system refused it; none where it did not.
    pub refusal: Option<Refusal>,
}

impl Outcome {
    /// An answer that tells a value.
    #[must_use]
    pub fn told(value: Value, seen: Option<u64>) -> Self {
        let claims = Claims { seen, ..Claims::default() };
        Self { kind: EventKind::Ok, value, claims, error: None, refusal: None }
    }

    /// An end without a result: a failure, or an unknown fate.
    #[must_use]
    pub fn without_result(kind: EventKind, op: &Op, error: String) -> Self {
        let value = if op.function() == Function::READ { Value::Null } else { op.value() };
        Self { kind, value, claims: Claims::default(), error: Some(error), refusal: None }
    }

    /// An operation that never left the client.
    #[must_use]
    pub fn not_sent(op: &Op, why: &str) -> Self {
        Self::without_result(EventKind::Fail, op, format!("{NOT_SENT}: {why}"))
    }

    /// An operation that is not sent, because what it makes is there from the beginning.
    #[must_use]
    pub fn not_needed(op: &Op) -> Self {
        Self { error: Some(NOT_NEEDED.to_owned()), ..Self::told(op.value(), None) }
    }

    /// An operation whose answer never came.
    #[must_use]
    pub fn lost(op: &Op, why: &str) -> Self {
        Self::without_result(op.unknown_fate(), op, format!("lost: {why}"))
    }

    /// An operation whose answer says nothing about it.
    #[must_use]
    pub fn wrong_answer(op: &Op) -> Self {
        Self::without_result(op.unknown_fate(), op, "wrong-answer".to_owned())
    }

    /// A read of what no write of a workload can have left: never asked for, and so a violation.
    #[must_use]
    pub fn unreadable(op: &Op, seen: Option<u64>) -> Self {
        let value = match op.object {
            Object::REGISTER => Value::One(UNREADABLE),
            _ => Value::List(Arc::from([UNREADABLE])),
        };
        Self { error: Some("unreadable-data".to_owned()), ..Self::told(value, seen) }
    }

    /// The opening of a session with this time-out.
    #[must_use]
    pub fn opened(timeout: Duration) -> Self {
        let timeout_ms = i64::try_from(timeout.as_millis()).unwrap_or(i64::MAX);
        Self::told(Value::One(timeout_ms), None)
    }

    /// The abandonment of a session: its client is silent from here on.
    #[must_use]
    pub fn abandoned() -> Self {
        Self::told(Value::Null, None)
    }

    /// The end of a session by somebody's word that it expired.
    #[must_use]
    pub fn expired() -> Self {
        Self { error: Some(SESSION_EXPIRED.to_owned()), ..Self::abandoned() }
    }

    /// Whether the process must never be used again: its operation may take effect at any later moment.
    #[must_use]
    pub fn retires(&self) -> bool {
        self.kind == EventKind::Info
    }

    /// Whether what was to be made is certainly there.
    #[must_use]
    pub fn is_there(&self) -> bool {
        self.kind == EventKind::Ok || self.refusal == Some(Refusal::Exists)
    }

    /// The completion's line; the caller adds member and session.
    #[must_use]
    pub fn event(&self, op: &Op, process: u64, time_ns: u64) -> Event {
        let mut event = Event::new(process, self.kind, op.function(), op.key, self.value.clone(), time_ns);
        event.version = self.claims.version;
        event.mzxid = self.claims.changed_at;
        event.zxid = self.claims.seen;
        event.by = self.claims.by;
        event.error = self.error.as_deref().map(Into::into);
        event
    }
}
