//! What a client of lines answers that holds a lock. Pure.
//!
//! ```text
//! -> {"id":1,"f":"acquire","of":"lock","key":3,"value":null,"member":"127.0.0.1:10257","timeout_ms":500}
//! <- {"id":1,"type":"ok","value":41}
//! -> {"id":2,"f":"store","of":"lock","key":3,"value":[41,7],"member":"127.0.0.1:10257","timeout_ms":500}
//! <- {"id":2,"type":"ok","value":{"admitted":true,"place":1,"at":5120000000}}
//! -> {"id":3,"f":"release","of":"lock","key":3,"value":41,"member":"127.0.0.1:10257","timeout_ms":500}
//! <- {"id":3,"type":"ok"}
//! ```
//!
//! An acquire tells the token of the lock. A guarded write goes to the bench's own store, and tells what that
//! said. Beside either a client may say `until_ns`: until when it is certain that nobody else holds, on this
//! machine's monotonic clock.
//!
//! A client that does not say so holds for as long as it acts as if it did: from the answer to its acquire to
//! its last write, whether the store took that or not. The acquire of such a client is certain of its own
//! moment alone, and so are its writes. All moments come on the clock of the run. That of an acquire is when
//! the answer was read here, which is later than when the lock was given: this errs towards the innocent.

use checker::history::{EventKind, Value};
use serde::Deserialize;
use workloads::op::Body;
use workloads::{Claims, Op, Outcome, Refusal, STALE_TOKEN};

use super::integer::integer;
use super::lines::{self, Answered};
use crate::application::Judged;

/// How the moments of an answer are told.
pub struct Clock<'a> {
    /// When the answer was read, on the clock of the run.
    pub read_ns: u64,
    /// A moment of the monotonic clock on that of the run.
    pub run_ns: &'a dyn Fn(u64) -> u64,
}

/// What an answer means.
///
/// # Errors
/// The line is no answer to this request: the client's failure, never the system's.
pub fn outcome(op: &Op, id: u64, line: &[u8], clock: &Clock<'_>) -> Result<Outcome, String> {
    let answered = lines::answered(id, line)?;
    if answered.kind != EventKind::Ok {
        return Ok(lines::without_effect(op, &answered));
    }
    let wrong = |wanted: &str| format!("{} answers {wanted}, and not {}", op.function(), answered.value);
    let until = answered.until_ns.map(clock.run_ns);
    match op.body {
        Body::Acquire => {
            let token = integer(&answered.value).filter(|token| *token >= 0);
            let token = token.ok_or_else(|| wrong("its token, an integer from 0 to 2^53"))?;
            let list = [token, moment(clock.read_ns), moment(until.unwrap_or(clock.read_ns))];
            Ok(Outcome::told(Value::List(list.into()), None))
        }
        Body::Store { token, value } => {
            let judged = judged(&answered).ok_or_else(|| wrong("what the store said"))?;
            if !judged.admitted {
                return Ok(stale(op));
            }
            // Whoever says until when it was certain looked before that; nobody else looked at all.
            let until = until.unwrap_or(judged.at.saturating_add(1));
            let looked = judged.at.min(until.saturating_sub(1));
            let list = [token, value, moment(looked), moment(until), moment(judged.at)];
            let claims = Claims { version: Some(judged.place), ..Claims::default() };
            Ok(Outcome { claims, ..Outcome::told(Value::List(list.into()), None) })
        }
        _ => Ok(Outcome::told(op.value(), None)),
    }
}

fn moment(ns: u64) -> i64 {
    i64::try_from(ns).unwrap_or(i64::MAX)
}

fn judged(answered: &Answered) -> Option<Judged> {
    Judged::deserialize(&answered.value).ok().filter(|judged| judged.place >= 0)
}

/// A write that the store did not take: somebody has held since by a larger token.
fn stale(op: &Op) -> Outcome {
    Outcome {
        refusal: Some(Refusal::Other),
        ..Outcome::without_result(EventKind::Fail, op, STALE_TOKEN.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use workloads::op::Object;

    fn said(body: Body, line: &str) -> Result<Outcome, String> {
        let clock = Clock { read_ns: 100, run_ns: &|monotonic| monotonic - 1000 };
        outcome(&Op::new(Object::LOCK, 3, body), 7, line.as_bytes(), &clock)
    }

    fn list(body: Body, line: &str) -> Vec<i64> {
        let value = said(body, line).expect("an answer").value;
        value.list().expect("a list").to_vec()
    }

    const STORE: Body = Body::Store { token: 41, value: 9 };

    #[test]
    fn an_acquire_is_certain_of_its_moment_and_of_what_it_says() {
        assert_eq!(list(Body::Acquire, r#"{"id":7,"type":"ok","value":41}"#), [41, 100, 100]);
        let told = r#"{"id":7,"type":"ok","value":41,"until_ns":1900}"#;
        assert_eq!(list(Body::Acquire, told), [41, 100, 900]);
    }

    #[test]
    fn a_write_is_what_the_store_says() {
        let taken = r#"{"id":7,"type":"ok","value":{"admitted":true,"place":2,"at":500}}"#;
        let outcome = said(STORE, taken).expect("an answer");
        assert_eq!(outcome.claims.version, Some(2));
        assert_eq!(list(STORE, taken), [41, 9, 500, 501, 500]);
        // It was certain until 400, and its write took longer than that.
        let late = r#"{"id":7,"type":"ok","value":{"admitted":true,"place":2,"at":500},"until_ns":1400}"#;
        assert_eq!(list(STORE, late), [41, 9, 399, 400, 500]);
        let refused = r#"{"id":7,"type":"ok","value":{"admitted":false,"place":2,"at":500}}"#;
        let refused = said(STORE, refused).expect("an answer");
        assert_eq!((refused.kind, refused.error.as_deref()), (EventKind::Fail, Some(STALE_TOKEN)));
        assert!(refused.refusal.is_some());
    }

    #[test]
    fn a_moment_beyond_all_others_breaks_nothing() {
        let last = r#"{"id":7,"type":"ok","value":{"admitted":true,"place":1,"at":18446744073709551615}}"#;
        assert_eq!(list(STORE, last)[2..], [i64::MAX, i64::MAX, i64::MAX]);
    }

    #[test]
    fn a_release_and_what_was_not_done_are_as_of_any_client() {
        let release = Body::Release { token: 41 };
        assert_eq!(
            said(release.clone(), r#"{"id":7,"type":"ok"}"#).map(|told| told.value),
            Ok(Value::One(41))
        );
        let lost = said(release, r#"{"id":7,"type":"info"}"#).expect("an answer");
        assert_eq!(lost.kind, EventKind::Info);
        let failed = said(Body::Acquire, r#"{"id":7,"type":"fail","error":"timeout"}"#).expect("an answer");
        assert_eq!((failed.kind, failed.error.as_deref()), (EventKind::Fail, Some("timeout")));
    }

    #[test]
    fn what_is_no_answer_is_the_clients_failure() {
        for (body, line, word) in [
            (Body::Acquire, r#"{"id":7,"type":"ok"}"#, "its token"),
            (Body::Acquire, r#"{"id":7,"type":"ok","value":-1}"#, "its token"),
            (Body::Acquire, r#"{"id":6,"type":"ok","value":1}"#, "it answers 6"),
            (STORE, r#"{"id":7,"type":"ok"}"#, "what the store said"),
            (STORE, r#"{"id":7,"type":"ok","value":{"admitted":true,"place":-1,"at":5}}"#, "the store said"),
            (STORE, r#"{"id":7,"type":"ok","value":{"admitted":true,"place":1,"at":-5}}"#, "the store said"),
            (STORE, "ok", "no answer"),
        ] {
            assert!(said(body, line).expect_err(line).contains(word), "{line}");
        }
    }
}
