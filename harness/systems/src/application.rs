//! What an application of the bench is told, and what it answers: lines of JSON.
//!
//! An application is a process of its own that holds something by the system's word: a lock, or a lead. It is
//! the client that is broken, beside the members that are: it may be stopped, cut off and killed. The bench
//! writes to its standard input and reads its standard output. It says [`Hello`] first; then each [`Asked`]
//! is answered by one [`Answered`], one after the other. When its input ends it gives up what it holds, and
//! ends.
//!
//! It writes to a store that a token guards, which is the bench's own: a [`Guarded`] write, and what became
//! of it, [`Judged`], are lines of JSON too, over TCP. The store is no member, and no fault reaches it.
//!
//! Moments are in ns of this machine's monotonic clock ([`monotonic_ns`]), which no fault shifts.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use checker::history::{EventKind, Function, Value};
use runs::notices::End;
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use workloads::Applications;

use crate::mutant::ClientMutant;
use crate::program::Program as UsersProgram;

/// The number of this protocol.
pub const PROTOCOL: u32 = 1;

/// What the applications of a workload run.
#[derive(Clone, Debug)]
pub enum Runs {
    /// This executable's own subcommand.
    Own,
    /// The client of a file. It speaks the lines of [`crate::external::lines`].
    Program(Arc<UsersProgram>),
}

/// What an application is started with.
#[derive(Clone, Debug)]
pub struct Program {
    /// What it holds, and how it stands in line.
    pub holds: Applications,
    /// Where it finds the members.
    pub members: Vec<SocketAddr>,
    /// Where it finds the store.
    pub store: SocketAddr,
    /// How long its session is to outlive its silence.
    pub session_timeout: Duration,
    /// Its planted bug.
    pub mutant: Option<ClientMutant>,
}

/// The first line: it is ready to be asked.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Hello {
    /// `hello`.
    pub f: String,
    /// [`PROTOCOL`].
    pub protocol: u32,
    /// What it can do.
    pub functions: Vec<Function>,
}

impl Hello {
    /// Of an application that does this.
    #[must_use]
    pub fn of(holds: Applications) -> Self {
        let functions = match holds {
            Applications::Lock | Applications::Election | Applications::Standby => {
                vec![Function::ACQUIRE, Function::STORE, Function::RELEASE]
            }
            Applications::Queue => vec![Function::ENQUEUE, Function::DEQUEUE, Function::ACKNOWLEDGE],
            Applications::Barrier => vec![Function::ENTER, Function::LEAVE],
        };
        Self { f: "hello".to_owned(), protocol: PROTOCOL, functions }
    }
}

/// What it is asked to do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Asked {
    /// Its answer says it again.
    pub id: u64,
    /// What.
    pub f: Function,
    /// With which lock.
    pub key: u64,
    /// As the line of the history has it.
    pub value: Value,
    /// How long it may wait for somebody else.
    pub timeout_ms: u64,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Answered {
    /// Of what.
    pub id: u64,
    /// Ok, fail or info.
    #[serde(rename = "type")]
    pub kind: EventKind,
    /// Of an acquire: token, since and until; of a guarded write: token, value, looked and until; of a
    /// dequeue: element, token, since and until.
    #[serde(default)]
    pub value: Value,
    /// Why not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// What the store said of a write that it took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judged: Option<Judged>,
    /// Which of the members it was connected to when it was asked, or had tried last, counted from 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub member: Option<usize>,
    /// Its session, in hexadecimal as members print it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// What it was told of its line since the last answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<Noticed>,
}

impl Answered {
    /// The answer to a question, with nothing beside it.
    #[must_use]
    pub fn of(asked: &Asked, kind: EventKind, value: Value) -> Self {
        Self {
            id: asked.id,
            kind,
            value,
            error: None,
            judged: None,
            member: None,
            session: None,
            notices: Vec::new(),
        }
    }
}

/// What an application was told of the line that it stands in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Noticed {
    /// When.
    pub at: u64,
    /// Of which lock.
    pub key: u64,
    /// Of what.
    pub of: End,
}

/// A write to the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Guarded {
    /// To what.
    pub key: u64,
    /// By which token.
    pub token: i64,
    /// What; nothing where the store is only to see the token.
    pub value: Option<i64>,
}

/// What became of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Judged {
    /// Whether the store took it.
    pub admitted: bool,
    /// Its place among all that the store took for this key, from 1.
    pub place: i64,
    /// When, on the clock of the run, in ns.
    pub at: u64,
}

/// This machine's monotonic clock, in ns.
#[must_use]
pub fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    let (seconds, nanoseconds) = (now.tv_sec.unsigned_abs(), now.tv_nsec.unsigned_abs());
    seconds.saturating_mul(1_000_000_000).saturating_add(nanoseconds)
}

/// A moment of this process on that clock.
#[must_use]
pub fn monotonic_of(moment: Instant) -> u64 {
    let nanoseconds = |span: Duration| u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
    let (clock, now) = (monotonic_ns(), Instant::now());
    match moment.checked_duration_since(now) {
        Some(ahead) => clock.saturating_add(nanoseconds(ahead)),
        None => clock.saturating_sub(nanoseconds(now.duration_since(moment))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_as_they_are_documented() {
        let asked =
            Asked { id: 7, f: Function::STORE, key: 3, value: Value::Pair(Some(4), 9), timeout_ms: 1000 };
        let line = r#"{"id":7,"f":"store","key":3,"value":[4,9],"timeout_ms":1000}"#;
        assert_eq!(serde_json::to_string(&asked).unwrap(), line);
        let answered: Answered =
            serde_json::from_str(r#"{"id":7,"type":"fail","error":"uncertain"}"#).unwrap();
        assert_eq!((answered.kind, answered.error.as_deref()), (EventKind::Fail, Some("uncertain")));
        let hello = serde_json::to_string(&Hello::of(Applications::Lock)).unwrap();
        assert_eq!(hello, r#"{"f":"hello","protocol":1,"functions":["acquire","store","release"]}"#);
    }

    #[test]
    fn moments_of_this_process_lie_on_the_monotonic_clock() {
        let before = monotonic_ns();
        let moment = Instant::now();
        let of = monotonic_of(moment);
        assert!(of.abs_diff(before) < 1_000_000_000, "{before} {of}");
        let later = monotonic_of(moment + Duration::from_secs(5));
        assert!(later.abs_diff(of + 5_000_000_000) < 1_000_000_000);
    }
}
