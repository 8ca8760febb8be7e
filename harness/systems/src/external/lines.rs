//! What a client is asked and what it answers: a line of JSON each. Pure.
//!
//! ```text
//! <- {"f":"hello","protocol":1,"functions":["read","write","cas"]}
//! -> {"id":7,"f":"cas","of":"register","key":3,"value":[4,9],"member":"127.0.0.1:10257","timeout_ms":500}
//! <- {"id":7,"type":"ok"}
//! -> {"id":8,"f":"read","of":"register","key":3,"value":null,"member":"127.0.0.1:10257","timeout_ms":500}
//! <- {"id":8,"type":"ok","value":9}
//! ```
//!
//! The hello is the client's first line, when it is ready. Then it is asked one thing at a time, and
//! answers each with its id and what became of it: `ok`; `fail`, which says that there was *certainly* no
//! effect, with an error; or `info`, where it does not know. The error `mismatch` of a compare-and-set is
//! an observation as well, and is judged as one; the error `not-sent` says that the member can't be
//! reached, and the client is sent to another. Where a system tells how often a value has been changed,
//! an answer may say it as `"version"`; and where the member that is asked may not be the one that served,
//! which one did, as `"by"`.
//!
//! A dequeue is answered by the element, where that is taken for good, by `[element]`, where it was handed
//! out and is to be acknowledged, or by null, where there is none.
//!
//! A transaction is answered by the micro-operations that were asked for, with what was read. What a client
//! answers that holds a lock is in [`super::holder`]; what a watch is asked and answers is in
//! `lines/watch.rs`. What only one workload asks for is answered as that workload's
//! [`Word`](workloads::op::Word) reads it.
//!
//! `create`, the making of an object that is empty, is asked of a client that says it in its hello, and of no
//! other. Keys and values are integers below 2^53. A line has 1 MiB at most.

mod watch;

use std::sync::Arc;
use std::time::Duration;

use checker::history::{BAD_VERSION, EventKind, Function, NOT_SENT, Value};
use runs::clock::whole_milliseconds;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use workloads::op::{Body, Object};
use workloads::{Claims, Op, Outcome, Refusal, STALE_TOKEN};

use super::integer::integer;
use super::transaction;

/// The number of this protocol.
pub const PROTOCOL: u32 = 1;
/// The longest line.
pub const MAX_LINE_BYTES: usize = 1 << 20;

/// The first line.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Hello {
    /// `hello`.
    pub f: String,
    /// [`PROTOCOL`].
    pub protocol: u32,
    /// What it can do.
    pub functions: Vec<String>,
}

/// A request.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Asked<'a> {
    /// Its answer says it again.
    pub id: u64,
    /// What.
    pub f: Function,
    /// Of what: `register`, `set`, `list`, `queue`, `lock`, `lists`, or what a workload's keys stand for.
    pub of: &'static str,
    /// Of which of them.
    pub key: u64,
    /// As the line of the history has it.
    pub value: Value,
    /// Where.
    pub member: &'a str,
    /// How long the answer is waited for.
    pub timeout_ms: u64,
    /// How long a watch waits for news.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait_ms: Option<u64>,
}

/// An answer.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Answered {
    id: u64,
    /// Ok, fail or info.
    #[serde(rename = "type", deserialize_with = "ending")]
    pub(super) kind: EventKind,
    #[serde(default)]
    pub(super) value: serde_json::Value,
    #[serde(default)]
    error: Option<String>,
    #[serde(default)]
    version: Option<i64>,
    /// From where a watch goes on.
    #[serde(default)]
    position: Option<i64>,
    /// Until when a holder is certain, on the monotonic clock.
    #[serde(default)]
    pub(super) until_ns: Option<u64>,
}

/// How an operation may end.
fn ending<'de, D: Deserializer<'de>>(deserializer: D) -> Result<EventKind, D::Error> {
    match EventKind::deserialize(deserializer)? {
        EventKind::Invoke => Err(D::Error::custom("type: ok, fail or info")),
        kind => Ok(kind),
    }
}

/// What the hello of a client says that it can do.
///
/// # Errors
/// What is wrong with the line.
pub fn functions(line: &[u8]) -> Result<Vec<Function>, String> {
    let advice = r#"say {"f":"hello","protocol":1,"functions":["read","write"]} first"#;
    let hello: Hello =
        serde_json::from_slice(line).map_err(|error| format!("it is no hello ({error}); {advice}"))?;
    if hello.f != "hello" {
        return Err(format!("it begins with {:?}; {advice}", hello.f));
    }
    if hello.protocol != PROTOCOL {
        return Err(format!("it speaks protocol {}, and this harness {PROTOCOL}", hello.protocol));
    }
    named(&hello.functions).map_err(|why| format!("it has {why}"))
}

/// The functions of these names.
///
/// # Errors
/// Which of them nobody knows.
pub fn named(names: &[String]) -> Result<Vec<Function>, String> {
    let all = workloads::workload::functions();
    let known = |name: &String| {
        all.iter().copied().find(|function| function.as_str() == name).ok_or_else(|| {
            let words: Vec<&str> = all.iter().map(|function| function.as_str()).collect();
            format!("a function {name:?} that no workload has; those of workloads are {}", words.join(", "))
        })
    };
    names.iter().map(known).collect()
}

/// The line that asks for this.
#[must_use]
pub fn asked(op: &Op, id: u64, member: &str, patience: Duration) -> Vec<u8> {
    let asked = Asked {
        id,
        f: op.function(),
        of: op.object.as_str(),
        key: op.key,
        value: watch::asked(op).unwrap_or_else(|| op.value()),
        member,
        timeout_ms: whole_milliseconds(patience),
        wait_ms: watch::wait_ms(op, patience),
    };
    // A struct of numbers and words always becomes JSON.
    let mut line = serde_json::to_vec(&asked).unwrap_or_default();
    line.push(b'\n');
    line
}

/// Whether the client is told to do this: nothing is sent for what it need not know.
#[must_use]
pub fn is_sent(op: &Op, functions: &[Function]) -> bool {
    match op.body {
        Body::MakePlace => functions.contains(&Function::CREATE),
        Body::Open | Body::Close | Body::Abandon => false,
        _ => true,
    }
}

/// What an answer means.
///
/// # Errors
/// The line is no answer to this request: the client's failure, never the system's.
pub fn outcome(op: &Op, id: u64, functions: &[Function], line: &[u8]) -> Result<Outcome, String> {
    let answered = answered(id, line)?;
    if answered.kind != EventKind::Ok {
        return Ok(without_effect(op, &answered));
    }
    let told = match op.body {
        Body::Watch { .. } => Some(watch::told(&answered)?),
        _ => told(op, functions, &answered.value)?,
    };
    let claims = Claims { version: answered.version, ..Claims::default() };
    Ok(match told {
        Some(value) => Outcome { claims, ..Outcome::told(value, None) },
        None => Outcome { claims, ..Outcome::unreadable(op, None) },
    })
}

/// Which member served, as an answer calls it: by its name, or by its address as requests have it. None where
/// the answer does not say.
///
/// # Errors
/// It is no text: the client's failure.
pub fn served_by(line: &[u8]) -> Result<Option<String>, String> {
    #[derive(Deserialize)]
    struct Served {
        #[serde(default)]
        by: Option<serde_json::Value>,
    }
    let served: Served = serde_json::from_slice(line).map_err(|error| format!("it is no answer: {error}"))?;
    match served.by {
        None | Some(serde_json::Value::Null) => Ok(None),
        Some(serde_json::Value::String(member)) => Ok(Some(member)),
        Some(other) => Err(format!("by is a member's name or address, as \"n1\", and not {other}")),
    }
}

/// The answer to a request.
pub(super) fn answered(id: u64, line: &[u8]) -> Result<Answered, String> {
    let answered: Answered =
        serde_json::from_slice(line).map_err(|error| format!("it is no answer: {error}"))?;
    if answered.id != id {
        return Err(format!("it answers {}, and {id} is what was asked", answered.id));
    }
    Ok(answered)
}

/// What an answer means that is not ok.
pub(super) fn without_effect(op: &Op, answered: &Answered) -> Outcome {
    let error = answered.error.as_deref();
    match answered.kind {
        EventKind::Info => Outcome::lost(op, error.unwrap_or("the client does not know")),
        _ => failed(op, error.unwrap_or("refused")),
    }
}

fn failed(op: &Op, error: &str) -> Outcome {
    let (refusal, error) = match (error, &op.body) {
        ("mismatch", Body::Cas { .. } | Body::Append { .. }) => (Refusal::Other, BAD_VERSION.to_owned()),
        ("exists", _) => (Refusal::Exists, "exists".to_owned()),
        (watch::GONE, Body::Watch { .. }) => (Refusal::Missing, watch::GONE.to_owned()),
        // The store's word alone.
        (BAD_VERSION | STALE_TOKEN, _) => (Refusal::Other, "refused".to_owned()),
        (NOT_SENT, _) => return Outcome::not_sent(op, "the client can't reach the member"),
        (error, _) => (Refusal::Other, error.to_owned()),
    };
    Outcome { refusal: Some(refusal), ..Outcome::without_result(EventKind::Fail, op, error) }
}

/// The value of a success; none for what no write of a workload can have left.
fn told(op: &Op, functions: &[Function], value: &serde_json::Value) -> Result<Option<Value>, String> {
    let wrong = |wanted: &str| Err(format!("a {} answers {wanted}, and not {value}", op.function()));
    match op.body {
        Body::Read => {}
        Body::Dequeue => {
            return dequeued(functions, value).map_or_else(wrong, |told| Ok(Some(told)));
        }
        Body::Said { word, .. } => {
            return (word.read)(op, value).map_or_else(wrong, |told| Ok(Some(told)));
        }
        Body::Txn { ref micros } => {
            return transaction::told(micros, value)
                .map_or_else(|wanted| wrong(&wanted), |told| Ok(Some(told)));
        }
        _ => return Ok(Some(op.value())),
    }
    match (op.object, value) {
        (Object::REGISTER, serde_json::Value::Null) => Ok(None),
        (Object::REGISTER, value) => match integer(value) {
            Some(value) => Ok(Some(Value::One(value))),
            None => wrong("an integer below 2^53, or null where there is none"),
        },
        (_, serde_json::Value::Null) => Ok(Some(Value::List(Arc::from([])))),
        (object, serde_json::Value::Array(list)) => {
            match list.iter().map(integer).collect::<Option<Vec<i64>>>() {
                Some(mut list) => {
                    if object == Object::SET {
                        list.sort_unstable();
                    }
                    Ok(Some(Value::List(list.into())))
                }
                None => wrong("a list of integers below 2^53"),
            }
        }
        _ => wrong("a list of integers"),
    }
}

/// What a dequeue tells; else what it should have told.
fn dequeued(functions: &[Function], value: &serde_json::Value) -> Result<Value, &'static str> {
    let acknowledges = functions.contains(&Function::ACKNOWLEDGE);
    match value {
        serde_json::Value::Null => Ok(Value::Null),
        serde_json::Value::Array(_) if !acknowledges => {
            Err("an element, as its hello does not say that it can acknowledge")
        }
        serde_json::Value::Array(list) => {
            let one = list.first().filter(|_| list.len() == 1).and_then(integer);
            one.map(|element| Value::List([element].into())).ok_or("[element] where it is handed out")
        }
        value => integer(value).map(Value::One).ok_or("an integer below 2^53, or null where there is none"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const READ: Op = Op::new(Object::REGISTER, 3, Body::Read);

    fn said(op: &Op, line: &str) -> Result<Outcome, String> {
        outcome(op, 7, &[], line.as_bytes())
    }

    #[test]
    fn a_request_is_a_line() {
        let cas = Op::new(Object::REGISTER, 3, Body::Cas { from: 4, to: 9, basis: None });
        let line = asked(&cas, 7, "h:1", Duration::from_millis(9));
        let text =
            r#"{"id":7,"f":"cas","of":"register","key":3,"value":[4,9],"member":"h:1","timeout_ms":9}"#;
        assert_eq!(String::from_utf8(line).unwrap(), format!("{text}\n"));
    }

    #[test]
    fn a_hello_says_what_a_client_can_do_or_what_is_wrong_with_it() {
        let of = |line: &str| functions(line.as_bytes());
        let hello = r#"{"f":"hello","protocol":1,"functions":["read","cas"]}"#;
        assert_eq!(of(hello), Ok(vec![Function::READ, Function::CAS]));
        for (line, word) in [
            ("ready", "no hello"),
            (r#"{"f":"hi","protocol":1,"functions":[]}"#, "\"hi\""),
            (r#"{"f":"hello","protocol":2,"functions":[]}"#, "protocol 2"),
            (r#"{"f":"hello","protocol":1,"functions":["get"]}"#, "\"get\""),
        ] {
            assert!(of(line).expect_err(line).contains(word), "{line}");
        }
    }

    #[test]
    fn an_answer_says_what_became_of_it() {
        let kind = |op: &Op, line: &str| said(op, line).map(|outcome| (outcome.kind, outcome.value));
        assert_eq!(kind(&READ, r#"{"id":7,"type":"ok","value":9}"#), Ok((EventKind::Ok, Value::One(9))));
        let lost = said(&READ, r#"{"id":7,"type":"ok","value":null}"#).expect("an outcome");
        assert_eq!((lost.kind, lost.value), (EventKind::Ok, Value::One(workloads::UNREADABLE)));
        let set = Op::new(Object::SET, 3, Body::Read);
        let list = |elements: &[i64]| Ok((EventKind::Ok, Value::List(elements.into())));
        assert_eq!(kind(&set, r#"{"id":7,"type":"ok","value":[3,1]}"#), list(&[1, 3]));
        assert_eq!(kind(&set, r#"{"id":7,"type":"ok"}"#), list(&[]));
        let write = Op::new(Object::REGISTER, 3, Body::Write { value: 4 });
        assert_eq!(kind(&write, r#"{"id":7,"type":"info"}"#), Ok((EventKind::Info, Value::One(4))));
        assert_eq!(kind(&READ, r#"{"id":7,"type":"info"}"#), Ok((EventKind::Fail, Value::Null)));
    }

    #[test]
    fn an_answer_may_say_who_served() {
        let by = |line: &str| served_by(line.as_bytes());
        assert_eq!(by(r#"{"id":7,"type":"ok","by":"n2"}"#), Ok(Some("n2".to_owned())));
        assert_eq!(by(r#"{"id":7,"type":"ok"}"#), Ok(None));
        assert!(by(r#"{"id":7,"type":"ok","by":2}"#).expect_err("no text").contains("and not 2"));
    }

    #[test]
    fn only_a_mismatch_is_an_observation() {
        let cas = Op::new(Object::REGISTER, 3, Body::Cas { from: 4, to: 9, basis: None });
        let error = |line: &str| said(&cas, line).expect("an outcome").error.expect("an error");
        assert_eq!(error(r#"{"id":7,"type":"fail","error":"mismatch"}"#), BAD_VERSION);
        assert_eq!(error(r#"{"id":7,"type":"fail"}"#), "refused");
        assert_eq!(error(r#"{"id":7,"type":"fail","error":"bad-version"}"#), "refused");
        assert!(error(r#"{"id":7,"type":"fail","error":"not-sent"}"#).starts_with("not-sent"));
    }

    #[test]
    fn a_dequeue_says_whether_the_element_is_to_be_acknowledged() {
        let dequeue = Op::new(Object::QUEUE, 3, Body::Dequeue);
        let said = |functions: &[Function], value: &str| {
            let line = format!(r#"{{"id":7,"type":"ok","value":{value}}}"#);
            outcome(&dequeue, 7, functions, line.as_bytes()).map(|outcome| outcome.value)
        };
        assert_eq!(said(&[], "9"), Ok(Value::One(9)));
        assert_eq!(said(&[], "null"), Ok(Value::Null));
        assert_eq!(said(&[Function::ACKNOWLEDGE], "[9]"), Ok(Value::List([9].into())));
        assert!(said(&[], "[9]").expect_err("nobody could acknowledge").contains("hello"));
        for wrong in ["[9,8]", "[]", "\"9\"", "true"] {
            said(&[Function::ACKNOWLEDGE], wrong).expect_err(wrong);
        }
    }

    #[test]
    fn what_is_no_answer_is_the_clients_failure() {
        for (line, word) in [
            ("ok", "no answer"),
            (r#"{"id":6,"type":"ok","value":9}"#, "it answers 6"),
            (r#"{"id":7,"type":"yes"}"#, "no answer"),
            (r#"{"id":7,"type":"ok","value":"9"}"#, "an integer"),
            (r#"{"id":7,"type":"ok","value":9007199254740993}"#, "below 2^53"),
            (r#"{"id":7,"type":"ok","value":1.5}"#, "an integer"),
        ] {
            assert!(said(&READ, line).expect_err(line).contains(word), "{line}");
        }
        assert_eq!(
            said(&READ, r#"{"id":7,"type":"ok","value":9,"more":[]}"#).expect("more is no harm").kind,
            EventKind::Ok
        );
    }

    #[test]
    fn an_empty_place_is_made_by_those_who_say_so() {
        let make = Op::new(Object::SET, 3, Body::MakePlace);
        assert!(!is_sent(&make, &[Function::READ, Function::ADD]));
        assert!(is_sent(&make, &[Function::CREATE]));
        assert!(is_sent(&READ, &[]) && !is_sent(&Op::close(), &Function::KNOWN));
    }
}
