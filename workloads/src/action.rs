//! Requests, answers, and what an answer means.
//!
//! The one question that matters after a failure is whether the operation may have happened. It is answered here
//! and nowhere else. An error that came as a reply from a member is definite when that member refuses before
//! anything is proposed, or when the refusal itself was ordered; everything else that is not a success may have
//! happened. Reads have no effect, so a failed read is simply over.

use std::fmt;

use bytes::Bytes;
use checker::history::{BAD_VERSION, Event, EventKind, Function, Value};
use node_wire::client::ErrorCode;
use node_wire::ids::Zxid;

/// The value recorded for data that no write of this workload can have left: it reads as a value that nobody
/// wrote, so that corruption is judged as the violation it is.
pub const UNREADABLE: i64 = -1;

/// A request, described. Whoever drives a client sends it exactly once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Create a persistent node. Part of the setup only.
    Create {
        /// Where.
        path: String,
        /// With what.
        data: Bytes,
    },
    /// `sync`, then `getData`, on one connection: one operation, void when the connection breaks in between.
    SyncRead {
        /// Of which node.
        path: String,
    },
    /// `setData` with version -1.
    Write {
        /// Where.
        path: String,
        /// What.
        data: Bytes,
    },
    /// `setData` with an expected version.
    CasWrite {
        /// Where.
        path: String,
        /// What.
        data: Bytes,
        /// The version that the node must have.
        expect: i32,
    },
}

/// What came of an [`Action`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The node was created; its version is 0.
    Created {
        /// The zxid in the reply's header.
        zxid: Zxid,
    },
    /// The read was answered.
    Read {
        /// The node's data.
        data: Option<Bytes>,
        /// The version in its Stat.
        version: i32,
        /// The mzxid in its Stat.
        mzxid: Zxid,
        /// The zxid in the reply's header.
        zxid: Zxid,
    },
    /// The write was acknowledged.
    Written {
        /// The version in the Stat of the reply.
        version: i32,
        /// The mzxid in the Stat of the reply.
        mzxid: Zxid,
        /// The zxid in the reply's header.
        zxid: Zxid,
    },
    /// A member replied with an error.
    Refused {
        /// Which.
        code: ErrorCode,
        /// The zxid in the reply's header.
        zxid: Option<Zxid>,
    },
    /// The request never left the client.
    NotSent {
        /// Why.
        reason: String,
    },
    /// The request left and no reply came: a broken connection, a time-out, an expired session.
    Lost {
        /// Why.
        reason: String,
    },
}

/// An operation that a process is to do now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invocation {
    /// The function, as the history names it.
    pub f: Function,
    /// The key.
    pub key: u64,
    /// The value, as the invocation's line has it.
    pub value: Value,
    /// The version that a compare-and-set asks for.
    pub expect: Option<i32>,
    /// The request.
    pub action: Action,
}

impl Invocation {
    /// The invocation's line; the caller adds where the client is connected and when the operation was due.
    #[must_use]
    pub fn event(&self, process: u64, time_ns: u64) -> Event {
        let mut event = Event::new(process, EventKind::Invoke, self.f, self.key, self.value, time_ns);
        event.expect = self.expect.map(i64::from);
        event
    }
}

/// An answer as the history has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Completion {
    /// Ok, fail or info.
    pub kind: EventKind,
    /// The value of the completion's line.
    pub value: Value,
    /// The version that the reply showed.
    pub version: Option<i64>,
    /// The mzxid that the reply showed.
    pub mzxid: Option<Zxid>,
    /// The zxid in the reply's header.
    pub zxid: Option<Zxid>,
    /// The error's name.
    pub error: Option<String>,
}

impl Completion {
    /// Whether the process must never be used again: its operation may take effect at any later moment.
    #[must_use]
    pub fn retires(&self) -> bool {
        self.kind == EventKind::Info
    }

    /// The completion's line; the caller adds member and session.
    #[must_use]
    pub fn event(&self, invocation: &Invocation, process: u64, time_ns: u64) -> Event {
        let mut event = Event::new(process, self.kind, invocation.f, invocation.key, self.value, time_ns);
        event.version = self.version;
        event.mzxid = self.mzxid.map(|zxid| zxid.0);
        event.zxid = self.zxid.map(|zxid| zxid.0);
        event.error.clone_from(&self.error);
        event
    }

    fn without_result(kind: EventKind, invocation: &Invocation, error: String) -> Self {
        let value = if invocation.f == Function::Read { Value::Null } else { invocation.value };
        Self { kind, value, version: None, mzxid: None, zxid: None, error: Some(error) }
    }
}

/// What `answer` to `invocation` means.
///
/// An answer of another kind than the request asks for is treated as lost: the operation was sent, and what came
/// back says nothing about it.
#[must_use]
pub fn completion(invocation: &Invocation, answer: &Answer) -> Completion {
    match (&invocation.action, answer) {
        (Action::Create { .. }, Answer::Created { zxid }) => acknowledged(invocation, 0, *zxid, *zxid),
        (Action::Write { .. } | Action::CasWrite { .. }, Answer::Written { version, mzxid, zxid }) => {
            acknowledged(invocation, *version, *mzxid, *zxid)
        }
        (Action::SyncRead { .. }, Answer::Read { data, version, mzxid, zxid }) => {
            let read = data.as_deref().and_then(decode);
            Completion {
                kind: EventKind::Ok,
                value: Value::One(read.unwrap_or(UNREADABLE)),
                version: Some(i64::from(*version)),
                mzxid: Some(*mzxid),
                zxid: Some(*zxid),
                error: read.is_none().then(|| "unreadable-data".to_owned()),
            }
        }
        (action, Answer::Refused { code, zxid }) => {
            let kind = if is_definite(*code) { EventKind::Fail } else { unknown_fate(action) };
            let mut completion = Completion::without_result(kind, invocation, error_name(*code));
            completion.zxid = *zxid;
            completion
        }
        (_, Answer::NotSent { reason }) => {
            Completion::without_result(EventKind::Fail, invocation, format!("not-sent: {reason}"))
        }
        (action, Answer::Lost { reason }) => {
            Completion::without_result(unknown_fate(action), invocation, format!("lost: {reason}"))
        }
        (action, Answer::Created { .. } | Answer::Read { .. } | Answer::Written { .. }) => {
            Completion::without_result(unknown_fate(action), invocation, "wrong-answer".to_owned())
        }
    }
}

fn acknowledged(invocation: &Invocation, version: i32, mzxid: Zxid, zxid: Zxid) -> Completion {
    Completion {
        kind: EventKind::Ok,
        value: invocation.value,
        version: Some(i64::from(version)),
        mzxid: Some(mzxid),
        zxid: Some(zxid),
        error: None,
    }
}

/// How an operation ends whose reply never came.
fn unknown_fate(action: &Action) -> EventKind {
    match action {
        Action::SyncRead { .. } => EventKind::Fail,
        Action::Create { .. } | Action::Write { .. } | Action::CasWrite { .. } => EventKind::Info,
    }
}

/// Whether a member that replies with `code` has certainly not changed anything, then or later.
///
/// Only errors that are decided before a proposal, or by the ordered refusal itself, are in the list. What a
/// client makes up about a broken connection (connection loss, time-outs) is not, and neither is anything that a
/// confused server might say after the fact.
#[must_use]
pub fn is_definite(code: ErrorCode) -> bool {
    matches!(
        code,
        ErrorCode::BadVersion
            | ErrorCode::NoNode
            | ErrorCode::NodeExists
            | ErrorCode::NotEmpty
            | ErrorCode::NoAuth
            | ErrorCode::NoChildrenForEphemerals
            | ErrorCode::BadArguments
            | ErrorCode::InvalidAcl
            | ErrorCode::Unimplemented
            | ErrorCode::SessionExpired
            | ErrorCode::SessionMoved
            | ErrorCode::NotReadOnly
            | ErrorCode::QuotaExceeded
    )
}

/// The error's name in the history: words in lower case, joined by hyphens.
#[must_use]
pub fn error_name(code: ErrorCode) -> String {
    struct Kebab(String);
    impl fmt::Write for Kebab {
        fn write_str(&mut self, text: &str) -> fmt::Result {
            for c in text.chars() {
                if c.is_ascii_uppercase() && !self.0.is_empty() {
                    self.0.push('-');
                }
                self.0.push(c.to_ascii_lowercase());
            }
            Ok(())
        }
    }
    if code == ErrorCode::BadVersion {
        return BAD_VERSION.to_owned();
    }
    let mut name = Kebab(String::new());
    // Formatting into a String does not fail.
    let _ = fmt::write(&mut name, format_args!("{code:?}"));
    name.0
}

/// A value as a node's data: decimal text.
#[must_use]
pub fn encode(value: i64) -> Bytes {
    Bytes::from(value.to_string())
}

/// The value that a node's data stands for, if it was written by [`encode`].
#[must_use]
pub fn decode(data: &[u8]) -> Option<i64> {
    let value: i64 = std::str::from_utf8(data).ok()?.parse().ok()?;
    (encode(value) == data).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write() -> Invocation {
        Invocation {
            f: Function::Write,
            key: 0,
            value: Value::One(5),
            expect: None,
            action: Action::Write { path: "/r0".into(), data: encode(5) },
        }
    }

    fn cas() -> Invocation {
        Invocation {
            f: Function::Cas,
            key: 0,
            value: Value::Pair(Some(4), 5),
            expect: Some(7),
            action: Action::CasWrite { path: "/r0".into(), data: encode(5), expect: 7 },
        }
    }

    fn read() -> Invocation {
        Invocation {
            f: Function::Read,
            key: 0,
            value: Value::Null,
            expect: None,
            action: Action::SyncRead { path: "/r0".into() },
        }
    }

    fn kind(invocation: &Invocation, answer: &Answer) -> EventKind {
        completion(invocation, answer).kind
    }

    #[test]
    fn a_lost_reply_leaves_a_change_open_and_ends_a_read() {
        let lost = Answer::Lost { reason: "connection reset".into() };
        assert_eq!(kind(&write(), &lost), EventKind::Info);
        assert_eq!(kind(&cas(), &lost), EventKind::Info);
        assert_eq!(kind(&read(), &lost), EventKind::Fail);
        assert!(completion(&write(), &lost).retires());
        assert!(!completion(&read(), &lost).retires());
    }

    #[test]
    fn what_was_never_sent_did_not_happen() {
        let unsent = Answer::NotSent { reason: "not connected".into() };
        assert_eq!(kind(&write(), &unsent), EventKind::Fail);
    }

    #[test]
    fn a_refused_version_is_the_observation_that_the_checker_knows() {
        let refused = Answer::Refused { code: ErrorCode::BadVersion, zxid: Some(Zxid(9)) };
        let completion = completion(&cas(), &refused);
        assert_eq!((completion.kind, completion.error.as_deref()), (EventKind::Fail, Some(BAD_VERSION)));
        assert_eq!(completion.zxid, Some(Zxid(9)));
    }

    #[test]
    fn only_errors_that_exclude_a_later_effect_are_definite() {
        let refused = |code| Answer::Refused { code, zxid: None };
        for code in [ErrorCode::NoNode, ErrorCode::SessionExpired, ErrorCode::SessionMoved] {
            assert_eq!(kind(&write(), &refused(code)), EventKind::Fail, "{code:?}");
        }
        for code in [
            ErrorCode::ConnectionLoss,
            ErrorCode::OperationTimeout,
            ErrorCode::RequestTimeout,
            ErrorCode::SystemError,
            ErrorCode::RuntimeInconsistency,
        ] {
            assert_eq!(kind(&write(), &refused(code)), EventKind::Info, "{code:?}");
        }
        assert_eq!(error_name(ErrorCode::NoNode), "no-node");
    }

    #[test]
    fn data_that_no_write_left_reads_as_a_value_that_nobody_wrote() {
        for data in
            [None, Some(Bytes::new()), Some(Bytes::from_static(b"07")), Some(Bytes::from_static(b"x"))]
        {
            let answer = Answer::Read { data, version: 1, mzxid: Zxid(1), zxid: Zxid(1) };
            let completion = completion(&read(), &answer);
            assert_eq!((completion.kind, completion.value), (EventKind::Ok, Value::One(UNREADABLE)));
        }
        assert_eq!(decode(&encode(42)), Some(42));
    }

    #[test]
    fn an_answer_to_another_question_says_nothing() {
        let answer = Answer::Created { zxid: Zxid(1) };
        assert_eq!(kind(&write(), &answer), EventKind::Info);
        assert_eq!(kind(&read(), &answer), EventKind::Fail);
    }

    #[test]
    fn lines_carry_what_was_asked_and_what_was_shown() {
        let event = cas().event(3, 10);
        assert_eq!((event.process, event.expect, event.value), (3, Some(7), Value::Pair(Some(4), 5)));
        let written = Answer::Written { version: 8, mzxid: Zxid(2), zxid: Zxid(2) };
        let event = completion(&cas(), &written).event(&cas(), 3, 20);
        assert_eq!((event.kind, event.version, event.mzxid), (EventKind::Ok, Some(8), Some(2)));
    }
}
