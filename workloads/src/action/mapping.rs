//! What an answer means.

use std::fmt;
use std::sync::Arc;

use checker::history::{BAD_VERSION, EventKind, Function, Value};
use node_wire::client::ErrorCode;
use node_wire::ids::Zxid;

use super::values::{number_behind, read_data, read_name};
use super::{Action, Answer, Completion, CreateMode, Invocation, Reading};

/// The value recorded for data that no write of this workload can have left: it reads as a value that nobody
/// wrote, so that corruption is judged as the violation it is.
pub const UNREADABLE: i64 = -1;

/// The error of an [`Answer::Expired`].
pub const SESSION_EXPIRED: &str = "session-expired";

/// What `answer` to `invocation` means.
///
/// An answer of another kind than the request asks for is treated as lost: the operation was sent, and what came
/// back says nothing about it.
#[must_use]
pub fn completion(invocation: &Invocation, answer: &Answer) -> Completion {
    match (&invocation.action, answer) {
        (Action::Create { path, mode, .. }, Answer::Created { path: made, zxid }) => {
            created(invocation, (path, *mode), made, *zxid)
        }
        (Action::Write { .. } | Action::CasWrite { .. }, Answer::Written { version, mzxid, zxid }) => {
            acknowledged(invocation, *version, *mzxid, *zxid)
        }
        (Action::SyncRead { .. }, Answer::Read { data, version, mzxid, zxid }) => {
            let read = read_data(invocation.reading, data.as_deref());
            Completion {
                version: Some(i64::from(*version)),
                mzxid: Some(*mzxid),
                error: read.is_none().then(|| UNREADABLE_DATA.to_owned()),
                ..Completion::told(read.unwrap_or_else(|| unreadable(invocation.reading)), Some(*zxid))
            }
        }
        (Action::SyncChildren { .. }, Answer::Children { names, zxid }) => {
            let mut list: Vec<i64> =
                names.iter().map(|name| read_name(invocation.reading, name).unwrap_or(UNREADABLE)).collect();
            list.sort_unstable();
            Completion::told(Value::List(list.into()), Some(*zxid))
        }
        (Action::SyncExists { .. }, Answer::Exists { present, zxid }) => {
            let name = match invocation.value {
                Value::One(name) => Some(name),
                _ => None,
            };
            Completion::told(Value::Pair(name, i64::from(*present)), Some(*zxid))
        }
        (Action::Delete { .. }, Answer::Deleted { zxid }) => {
            Completion::told(invocation.value.clone(), Some(*zxid))
        }
        (_, Answer::Opened { timeout_ms }) if invocation.f == Function::Open => {
            Completion::told(Value::One(i64::from(*timeout_ms)), None)
        }
        (Action::Close, Answer::Closed { zxid }) => Completion::told(Value::Null, Some(*zxid)),
        (Action::Abandon, Answer::Abandoned) => Completion::told(Value::Null, None),
        (Action::Abandon, Answer::Expired) => {
            Completion { error: Some(SESSION_EXPIRED.to_owned()), ..Completion::told(Value::Null, None) }
        }
        // A place that is not there holds nothing: that is an answer, and after an element was acknowledged a wrong one.
        (_, Answer::Refused { code: ErrorCode::NoNode, zxid }) if reads_elements(invocation) => Completion {
            error: Some(error_name(ErrorCode::NoNode)),
            ..Completion::told(Value::List(Arc::from([])), *zxid)
        },
        (action, Answer::Refused { code, zxid }) => {
            let definite = is_definite(*code) && !is_own_doing(invocation, *code);
            let kind = if definite { EventKind::Fail } else { unknown_fate(action) };
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
        (
            action,
            Answer::Created { .. }
            | Answer::Read { .. }
            | Answer::Children { .. }
            | Answer::Exists { .. }
            | Answer::Written { .. }
            | Answer::Deleted { .. }
            | Answer::Closed { .. }
            | Answer::Abandoned
            | Answer::Expired
            | Answer::Opened { .. },
        ) => Completion::without_result(unknown_fate(action), invocation, "wrong-answer".to_owned()),
    }
}

fn reads_elements(invocation: &Invocation) -> bool {
    invocation.f == Function::Read && invocation.reading != Reading::Integer
}

/// What is recorded of data that no write of the workload can have left: never asked for, and so a violation.
fn unreadable(reading: Reading) -> Value {
    match reading {
        Reading::Integer => Value::One(UNREADABLE),
        Reading::Integers | Reading::Names | Reading::Numbers => Value::List(Arc::from([UNREADABLE])),
    }
}

/// The error beside a read whose data no write of the workload can have left.
const UNREADABLE_DATA: &str = "unreadable-data";

fn acknowledged(invocation: &Invocation, version: i32, mzxid: Zxid, zxid: Zxid) -> Completion {
    Completion {
        version: Some(i64::from(version)),
        mzxid: Some(mzxid),
        ..Completion::told(invocation.value.clone(), Some(zxid))
    }
}

/// A create that was answered. Of a numbered one the reply must name the number behind the name that was asked for;
/// a reply that names anything else says that something was made, and not what.
fn created(invocation: &Invocation, (asked, mode): (&str, CreateMode), made: &str, zxid: Zxid) -> Completion {
    let wrong = || Completion::without_result(EventKind::Info, invocation, "wrong-answer".to_owned());
    match (&invocation.value, mode.is_sequential()) {
        (Value::One(name), true) if invocation.f == Function::Create => {
            let number = made.strip_prefix(asked).and_then(number_behind);
            number.map_or_else(wrong, |number| Completion::told(Value::Pair(Some(*name), number), Some(zxid)))
        }
        (_, true) => wrong(),
        (_, false) if made != asked => wrong(),
        // The first write of a register.
        (_, false) if invocation.f == Function::Write => acknowledged(invocation, 0, zxid, zxid),
        (_, false) => Completion::told(invocation.value.clone(), Some(zxid)),
    }
}

/// A refusal that a unique name can only get from its own request. It was sent once; should it have arrived twice,
/// then it happened.
fn is_own_doing(invocation: &Invocation, code: ErrorCode) -> bool {
    let unique = matches!(invocation.f, Function::Add | Function::Create) && invocation.value != Value::Null;
    unique && code == ErrorCode::NodeExists
}

/// How an operation ends whose reply never came.
fn unknown_fate(action: &Action) -> EventKind {
    if action.is_change() { EventKind::Info } else { EventKind::Fail }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::action::{decode, encode};
    use bytes::Bytes;
    use bytestring::ByteString;

    fn write() -> Invocation {
        Invocation {
            f: Function::Write,
            key: 0,
            value: Value::One(5),
            expect: None,
            action: Action::Write { path: "/r0".into(), data: encode(5) },
            reading: Reading::Integer,
        }
    }

    fn cas() -> Invocation {
        Invocation {
            f: Function::Cas,
            key: 0,
            value: Value::Pair(Some(4), 5),
            expect: Some(7),
            action: Action::CasWrite { path: "/r0".into(), data: encode(5), expect: 7 },
            reading: Reading::Integer,
        }
    }

    fn read() -> Invocation {
        Invocation {
            f: Function::Read,
            key: 0,
            value: Value::Null,
            expect: None,
            action: Action::SyncRead { path: "/r0".into() },
            reading: Reading::Integer,
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
        let answer = Answer::Created { path: "/r0".into(), zxid: Zxid(1) };
        assert_eq!(kind(&write(), &answer), EventKind::Info);
        assert_eq!(kind(&read(), &answer), EventKind::Fail);
    }

    fn of(f: Function, value: Value, action: Action, reading: Reading) -> Invocation {
        Invocation { f, key: 2, value, expect: None, action, reading }
    }

    fn create(f: Function, mode: CreateMode) -> Invocation {
        let action = Action::Create { path: "/q2/n5-".into(), data: Bytes::new(), mode };
        of(f, Value::One(5), action, Reading::Integer)
    }

    #[test]
    fn a_numbered_create_tells_its_number_and_anything_else_tells_nothing() {
        let sequential = create(Function::Create, CreateMode::EphemeralSequential);
        let made = |path: &str| Answer::Created { path: path.into(), zxid: Zxid(3) };
        let told = completion(&sequential, &made("/q2/n5-0000000017"));
        assert_eq!((told.kind, told.value), (EventKind::Ok, Value::Pair(Some(5), 17)));
        for path in ["/q2/n5-", "/q2/n5-17", "/q2/n6-0000000017", "/q2/n5-00000000017"] {
            assert_eq!(kind(&sequential, &made(path)), EventKind::Info, "{path}");
        }
        let plain = create(Function::Add, CreateMode::Persistent);
        assert_eq!(completion(&plain, &made("/q2/n5-")).value, Value::One(5));
        assert_eq!(kind(&plain, &made("/q2/n5-0000000017")), EventKind::Info);
    }

    #[test]
    fn a_unique_name_that_is_taken_was_taken_by_its_own_request() {
        let taken = Answer::Refused { code: ErrorCode::NodeExists, zxid: None };
        assert_eq!(kind(&create(Function::Add, CreateMode::Persistent), &taken), EventKind::Info);
        assert_eq!(kind(&create(Function::Create, CreateMode::Ephemeral), &taken), EventKind::Info);
        let place = Invocation { value: Value::Null, ..create(Function::Create, CreateMode::Persistent) };
        assert_eq!(kind(&place, &taken), EventKind::Fail, "somebody else may have made the place");
    }

    #[test]
    fn a_listing_is_sorted_and_what_it_can_not_read_is_no_element() {
        let action = Action::SyncChildren { path: "/s2".into() };
        let listing = of(Function::Read, Value::Null, action, Reading::Names);
        let names = ["n7", "x", "n3"].map(ByteString::from).to_vec();
        let told = completion(&listing, &Answer::Children { names, zxid: Zxid(1) });
        assert_eq!(told.value, Value::List([UNREADABLE, 3, 7].into()));
        let gone = completion(&listing, &Answer::Refused { code: ErrorCode::NoNode, zxid: Some(Zxid(9)) });
        assert_eq!((gone.kind, gone.value), (EventKind::Ok, Value::List([].into())));
    }

    #[test]
    fn a_look_at_a_name_says_whether_it_is_there() {
        let action = Action::SyncExists { path: "/e2/n5".into() };
        let look = of(Function::Exists, Value::One(5), action, Reading::Integer);
        let told = completion(&look, &Answer::Exists { present: false, zxid: Zxid(1) });
        assert_eq!((told.kind, told.value), (EventKind::Ok, Value::Pair(Some(5), 0)));
        assert_eq!(kind(&look, &Answer::Lost { reason: "reset".into() }), EventKind::Fail);
    }

    #[test]
    fn a_session_s_end_is_certain_only_with_its_acknowledgement() {
        let lost = Answer::Lost { reason: "reset".into() };
        assert_eq!(kind(&Invocation::close(), &lost), EventKind::Info);
        assert_eq!(kind(&Invocation::close(), &Answer::Closed { zxid: Zxid(1) }), EventKind::Ok);
        let told = completion(&Invocation::abandon(), &Answer::Expired);
        assert_eq!((told.kind, told.error.as_deref()), (EventKind::Ok, Some(SESSION_EXPIRED)));
        assert_eq!(
            completion(&Invocation::open(), &Answer::Opened { timeout_ms: 4000 }).value,
            Value::One(4000)
        );
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
