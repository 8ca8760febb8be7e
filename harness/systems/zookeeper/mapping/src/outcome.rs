//! What an answer means.

use std::fmt;
use std::sync::Arc;

use bytestring::ByteString;
use checker::history::{BAD_VERSION, EventKind, Function, Value};
use node_wire::client::ErrorCode;
use node_wire::ids::Zxid;
use workloads::op::{Body, Object, Op};
use workloads::{Claims, Outcome, Refusal, UNREADABLE};

use crate::action::{Action, Answer};
use crate::request::{is_in_data, request};
use crate::values::{is_listed, number_behind, read_data, read_name};

/// What `answer` to an operation means.
///
/// An answer of another kind than the request asks for is treated as lost: the operation was sent, and what
/// came back says nothing about it.
#[must_use]
pub fn outcome(op: &Op, answer: &Answer) -> Outcome {
    match (&op.body, answer) {
        (
            Body::MakeRegister { .. }
            | Body::MakePlace
            | Body::Add { .. }
            | Body::Next { .. }
            | Body::Create { .. },
            Answer::Created { path, zxid },
        ) => created(op, path, *zxid),
        (
            Body::Write { .. } | Body::Cas { .. } | Body::Append { .. },
            Answer::Written { version, mzxid, zxid },
        ) => acknowledged(op, *version, *mzxid, *zxid),
        (Body::Read, Answer::Read { data, version, mzxid, zxid }) if is_in_data(op.object) => {
            let claims = claims(*version, *mzxid, *zxid);
            match read_data(op.object, data.as_deref()) {
                Some(value) => Outcome { claims, ..told(value, *zxid) },
                None => Outcome { claims, ..Outcome::unreadable(op, Some(zxid.0)) },
            }
        }
        (Body::Read, Answer::Children { names, zxid }) if !is_in_data(op.object) => {
            let read = |name: &ByteString| read_name(op.object, name).unwrap_or(UNREADABLE);
            let mut list: Vec<i64> =
                names.iter().filter(|name| is_listed(op.object, name)).map(read).collect();
            list.sort_unstable();
            told(Value::List(list.into()), *zxid)
        }
        (Body::Exists { name }, Answer::Exists { present, zxid }) => {
            told(Value::Pair(Some(*name), i64::from(*present)), *zxid)
        }
        (Body::Delete { .. }, Answer::Deleted { zxid }) => told(op.value(), *zxid),
        (Body::Open, Answer::Opened { timeout_ms }) => {
            Outcome::told(Value::One(i64::from(*timeout_ms)), None)
        }
        (Body::Open | Body::Close, Answer::Closed { zxid }) => told(Value::Null, *zxid),
        (Body::Abandon, Answer::Abandoned) => Outcome::abandoned(),
        (Body::Abandon, Answer::Expired) => Outcome::expired(),
        (_, Answer::Refused { code, zxid }) => refused(op, *code, *zxid),
        (_, Answer::NotSent { reason }) => Outcome::not_sent(op, reason),
        (_, Answer::Lost { reason }) => Outcome::lost(op, reason),
        (
            _,
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
        ) => Outcome::wrong_answer(op),
    }
}

fn refused(op: &Op, code: ErrorCode, zxid: Option<Zxid>) -> Outcome {
    let seen = zxid.map(|zxid| zxid.0);
    let refusal = Some(match code {
        ErrorCode::NodeExists => Refusal::Exists,
        ErrorCode::NoNode => Refusal::Missing,
        _ => Refusal::Other,
    });
    // A place that is not there holds nothing: that is an answer, and after an element was acknowledged a
    // wrong one.
    if code == ErrorCode::NoNode && op.function() == Function::READ && op.object != Object::REGISTER {
        let nothing = Outcome::told(Value::List(Arc::from([])), seen);
        return Outcome { error: Some(error_name(code)), refusal, ..nothing };
    }
    let definite = is_definite(code) && !is_own_doing(op, code);
    let kind = if definite { EventKind::Fail } else { op.unknown_fate() };
    let claims = Claims { seen, ..Claims::default() };
    Outcome { claims, refusal, ..Outcome::without_result(kind, op, error_name(code)) }
}

fn told(value: Value, zxid: Zxid) -> Outcome {
    Outcome::told(value, Some(zxid.0))
}

fn claims(version: i32, mzxid: Zxid, zxid: Zxid) -> Claims {
    Claims {
        version: Some(i64::from(version)),
        changed_at: Some(mzxid.0),
        seen: Some(zxid.0),
        ..Claims::default()
    }
}

fn acknowledged(op: &Op, version: i32, mzxid: Zxid, zxid: Zxid) -> Outcome {
    Outcome { claims: claims(version, mzxid, zxid), ..told(op.value(), zxid) }
}

/// A create that was answered. Of a numbered one the reply must name the number behind the name that was
/// asked for; a reply that names anything else says that something was made, and not what.
fn created(op: &Op, made: &str, zxid: Zxid) -> Outcome {
    let wrong = || Outcome::wrong_answer(op);
    let Action::Create { path: asked, .. } = request(op) else { return wrong() };
    match &op.body {
        Body::Next { name, .. } => {
            let number = made.strip_prefix(asked.as_str()).and_then(number_behind);
            number.map_or_else(wrong, |number| told(Value::Pair(Some(*name), number), zxid))
        }
        _ if made != asked => wrong(),
        // The first write of a register.
        Body::MakeRegister { .. } => acknowledged(op, 0, zxid, zxid),
        _ => told(op.value(), zxid),
    }
}

/// A refusal that a unique name can only get from its own request. It was sent once; should it have arrived
/// twice, then it happened.
fn is_own_doing(op: &Op, code: ErrorCode) -> bool {
    let unique = matches!(op.body, Body::Add { .. } | Body::Next { .. } | Body::Create { .. });
    unique && code == ErrorCode::NodeExists
}

/// Whether a member that replies with `code` has certainly not changed anything, then or later.
///
/// Only errors that are decided before a proposal, or by the ordered refusal itself, are in the list. What a
/// client makes up about a broken connection (connection loss, time-outs) is not, and neither is anything
/// that a confused server might say after the fact.
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
    use bytes::Bytes;
    use bytestring::ByteString;

    fn register(body: Body) -> Op {
        Op::new(Object::REGISTER, 0, body)
    }

    fn write() -> Op {
        register(Body::Write { value: 5 })
    }

    fn cas() -> Op {
        register(Body::Cas { from: 4, to: 5, basis: Some(7) })
    }

    fn read() -> Op {
        register(Body::Read)
    }

    fn kind(op: &Op, answer: &Answer) -> EventKind {
        outcome(op, answer).kind
    }

    #[test]
    fn a_lost_reply_leaves_a_change_open_and_ends_a_read() {
        let lost = Answer::Lost { reason: "connection reset".into() };
        assert_eq!(kind(&write(), &lost), EventKind::Info);
        assert_eq!(kind(&cas(), &lost), EventKind::Info);
        assert_eq!(kind(&read(), &lost), EventKind::Fail);
        assert!(outcome(&write(), &lost).retires());
        assert!(!outcome(&read(), &lost).retires());
    }

    #[test]
    fn what_was_never_sent_did_not_happen() {
        let unsent = Answer::NotSent { reason: "not connected".into() };
        assert_eq!(kind(&write(), &unsent), EventKind::Fail);
    }

    #[test]
    fn a_refused_version_is_the_observation_that_the_checker_knows() {
        let refused = Answer::Refused { code: ErrorCode::BadVersion, zxid: Some(Zxid(9)) };
        let outcome = outcome(&cas(), &refused);
        assert_eq!((outcome.kind, outcome.error.as_deref()), (EventKind::Fail, Some(BAD_VERSION)));
        assert_eq!(outcome.claims.seen, Some(9));
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
            let outcome = outcome(&read(), &answer);
            assert_eq!((outcome.kind, outcome.value), (EventKind::Ok, Value::One(UNREADABLE)));
        }
    }

    #[test]
    fn an_answer_to_another_question_says_nothing() {
        let answer = Answer::Created { path: "/r0".into(), zxid: Zxid(1) };
        assert_eq!(kind(&write(), &answer), EventKind::Info);
        assert_eq!(kind(&read(), &answer), EventKind::Fail);
    }

    #[test]
    fn a_numbered_create_tells_its_number_and_anything_else_tells_nothing() {
        let next = Op::new(Object::NUMBERS, 2, Body::Next { name: 5, lasts: false });
        let made = |path: &str| Answer::Created { path: path.into(), zxid: Zxid(3) };
        let told = outcome(&next, &made("/q2/n5-0000000017"));
        assert_eq!((told.kind, told.value), (EventKind::Ok, Value::Pair(Some(5), 17)));
        for path in ["/q2/n5-", "/q2/n5-17", "/q2/n6-0000000017", "/q2/n5-00000000017"] {
            assert_eq!(kind(&next, &made(path)), EventKind::Info, "{path}");
        }
        let add = Op::new(Object::SET, 2, Body::Add { element: 5 });
        assert_eq!(outcome(&add, &made("/s2/n5")).value, Value::One(5));
        assert_eq!(kind(&add, &made("/s2/n5-0000000017")), EventKind::Info);
        let delete = Op::new(Object::NUMBERS, 2, Body::Delete { name: 5, number: 17 });
        assert_eq!(request(&delete), Action::Delete { path: "/q2/n5-0000000017".to_owned() });
    }

    #[test]
    fn a_unique_name_that_is_taken_was_taken_by_its_own_request() {
        let taken = Answer::Refused { code: ErrorCode::NodeExists, zxid: None };
        let add = Op::new(Object::SET, 2, Body::Add { element: 5 });
        assert_eq!(kind(&add, &taken), EventKind::Info);
        assert_eq!(kind(&Op::new(Object::NAMES, 2, Body::Create { name: 5 }), &taken), EventKind::Info);
        let place = outcome(&Op::new(Object::SET, 2, Body::MakePlace), &taken);
        assert_eq!(place.kind, EventKind::Fail, "somebody else may have made the place");
        assert!(place.is_there());
    }

    #[test]
    fn a_listing_is_sorted_and_what_it_can_not_read_is_no_element() {
        let listing = Op::new(Object::SET, 2, Body::Read);
        let names = ["n7", "x", "n3"].map(ByteString::from).to_vec();
        let told = outcome(&listing, &Answer::Children { names, zxid: Zxid(1) });
        assert_eq!(told.value, Value::List([UNREADABLE, 3, 7].into()));
        let gone = outcome(&listing, &Answer::Refused { code: ErrorCode::NoNode, zxid: Some(Zxid(9)) });
        assert_eq!((gone.kind, gone.value), (EventKind::Ok, Value::List([].into())));
    }

    #[test]
    fn a_look_at_a_name_says_whether_it_is_there() {
        let look = Op::new(Object::NAMES, 2, Body::Exists { name: 5 });
        let told = outcome(&look, &Answer::Exists { present: false, zxid: Zxid(1) });
        assert_eq!((told.kind, told.value), (EventKind::Ok, Value::Pair(Some(5), 0)));
        assert_eq!(kind(&look, &Answer::Lost { reason: "reset".into() }), EventKind::Fail);
    }

    #[test]
    fn a_session_s_end_is_certain_only_with_its_acknowledgement() {
        let lost = Answer::Lost { reason: "reset".into() };
        assert_eq!(kind(&Op::close(), &lost), EventKind::Info);
        assert_eq!(kind(&Op::close(), &Answer::Closed { zxid: Zxid(1) }), EventKind::Ok);
        let told = outcome(&Op::abandon(), &Answer::Expired);
        assert_eq!((told.kind, told.error.as_deref()), (EventKind::Ok, Some(workloads::SESSION_EXPIRED)));
        assert_eq!(outcome(&Op::open(), &Answer::Opened { timeout_ms: 4000 }).value, Value::One(4000));
    }

    #[test]
    fn lines_carry_what_was_asked_and_what_was_shown() {
        let event = cas().event(3, 10);
        assert_eq!((event.process, event.expect, event.value), (3, Some(7), Value::Pair(Some(4), 5)));
        let written = Answer::Written { version: 8, mzxid: Zxid(2), zxid: Zxid(2) };
        let event = outcome(&cas(), &written).event(&cas(), 3, 20);
        assert_eq!((event.kind, event.version, event.mzxid), (EventKind::Ok, Some(8), Some(2)));
    }
}
