//! Which of etcd's requests an operation is, and what its answers mean. Pure.
//!
//! Versions count from 0 here and from 1 in etcd: how often a key was changed since it was made.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use checker::history::{BAD_VERSION, EventKind, Value};
use serde::Deserialize;
use serde_json::json;
use workloads::op::{Body, Object, Op};
use workloads::{Claims, Outcome, Refusal, UNREADABLE, text};

use super::gateway::Reply;

/// A request: where it is posted, and what.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Asked {
    /// The path.
    pub(super) path: &'static str,
    /// The JSON.
    pub(super) body: serde_json::Value,
}

const RANGE: &str = "/v3/kv/range";
const PUT: &str = "/v3/kv/put";
const TXN: &str = "/v3/kv/txn";

/// The error of an operation that this client does not know.
const UNSUPPORTED: &str = "etcd has no such operation here";
/// The error of a register that is not there.
const NO_KEY: &str = "no-key";

/// Errors by which etcd refuses before anything is proposed. A full store is none of them: the change that
/// finds it full may be made, and is answered with that error all the same.
const DEFINITE: [&str; 2] = ["etcdserver: too many requests", "etcdserver: request is too large"];

/// The key that stands for an object.
fn key(object: Object, key: u64) -> String {
    let letter = match object {
        Object::REGISTER => 'r',
        Object::LIST => 'l',
        Object::SET => 's',
        _ => '-',
    };
    format!("{letter}{key}")
}

/// What stands between a set's key and an element, and what follows it in the order of bytes.
const BELOW: char = '/';
const BEHIND: char = '0';

fn encoded(text: impl AsRef<[u8]>) -> String {
    STANDARD.encode(text)
}

fn decoded(text: &str) -> Option<Vec<u8>> {
    STANDARD.decode(text).ok()
}

/// The request that does this; none for what etcd has no request for.
pub(super) fn asked(op: &Op) -> Option<Asked> {
    let own = encoded(key(op.object, op.key));
    let create = |value: String| {
        let compare = json!([{"key": own, "target": "CREATE", "result": "EQUAL", "create_revision": "0"}]);
        transaction(compare, &own, &value)
    };
    let replace = |basis: i64, value: String| {
        let version = basis.saturating_add(1).to_string();
        let compare = json!([{"key": own, "target": "VERSION", "result": "EQUAL", "version": version}]);
        transaction(compare, &own, &value)
    };
    Some(match (&op.body, op.object) {
        (Body::MakeRegister { value }, _) => create(text::of_value(*value)),
        (Body::MakePlace, Object::SET | Object::LIST) => create(String::new()),
        (Body::Read, Object::REGISTER | Object::LIST) => Asked { path: RANGE, body: json!({"key": own}) },
        (Body::Read, Object::SET) => {
            let (from, to) = (key(op.object, op.key) + &BELOW.to_string(), key(op.object, op.key));
            let body = json!({
                "key": encoded(from), "range_end": encoded(format!("{to}{BEHIND}")), "keys_only": true,
            });
            Asked { path: RANGE, body }
        }
        (Body::Write { value }, _) => {
            let body = json!({"key": own, "value": encoded(text::of_value(*value)), "prev_kv": true});
            Asked { path: PUT, body }
        }
        (Body::Cas { to, basis, .. }, _) => replace((*basis)?, text::of_value(*to)),
        (Body::Append { element, onto, basis }, _) => {
            replace((*basis)?, text::of_list(onto.iter().copied().chain([*element])))
        }
        (Body::Add { element }, _) => {
            let element = format!("{}{BELOW}{element}", key(op.object, op.key));
            Asked { path: PUT, body: json!({"key": encoded(element), "value": ""}) }
        }
        (
            Body::MakePlace
            | Body::Read
            | Body::Next { .. }
            | Body::Delete { .. }
            | Body::Create { .. }
            | Body::Exists { .. }
            | Body::Open
            | Body::Close
            | Body::Abandon
            | Body::Acquire
            | Body::Store { .. }
            | Body::Release { .. }
            | Body::Enqueue { .. }
            | Body::Dequeue
            | Body::Acknowledge { .. }
            | Body::Enter { .. }
            | Body::Leave { .. }
            | Body::Txn { .. }
            | Body::Watch { .. }
            | Body::Said { .. },
            _,
        ) => return None,
    })
}

fn transaction(compare: serde_json::Value, key: &str, value: &str) -> Asked {
    let put = json!([{"request_put": {"key": key, "value": encoded(value)}}]);
    Asked { path: TXN, body: json!({"compare": compare, "success": put}) }
}

/// What etcd answers, as far as a workload asks.
#[derive(Debug, Default, Deserialize)]
struct Answer {
    #[serde(default)]
    header: Header,
    #[serde(default)]
    kvs: Vec<KeyValue>,
    #[serde(default)]
    succeeded: bool,
    prev_kv: Option<KeyValue>,
}

#[derive(Debug, Default, Deserialize)]
struct Header {
    #[serde(default)]
    revision: String,
}

#[derive(Debug, Default, Deserialize)]
struct KeyValue {
    #[serde(default)]
    key: String,
    #[serde(default)]
    value: String,
    #[serde(default)]
    mod_revision: String,
    #[serde(default)]
    version: String,
}

impl KeyValue {
    fn claims(&self, seen: u64) -> Option<Claims> {
        let version: i64 = self.version.parse().ok()?;
        let changed_at = self.mod_revision.parse().ok()?;
        let version = Some(version - 1);
        Some(Claims { version, changed_at: Some(changed_at), seen: Some(seen), by: None })
    }
}

/// What an answer that is no success says. Members before 3.6 say it twice, newer ones by `message` alone.
#[derive(Debug, Deserialize)]
struct Complaint {
    #[serde(default)]
    error: String,
    #[serde(default)]
    message: String,
}

impl Complaint {
    fn words(self) -> Option<String> {
        [self.message, self.error].into_iter().find(|words| !words.is_empty())
    }
}

/// What a reply to an operation means.
pub(super) fn outcome(op: &Op, reply: &Reply) -> Outcome {
    match reply {
        Reply::NotSent(why) => Outcome::not_sent(op, why),
        Reply::Lost(why) => Outcome::lost(op, why),
        Reply::Answered { is_ok: false, body } => complaint(op, body),
        Reply::Answered { is_ok: true, body } => {
            let answer = serde_json::from_slice::<Answer>(body).ok();
            answer.and_then(|answer| answered(op, &answer)).unwrap_or_else(|| Outcome::wrong_answer(op))
        }
    }
}

/// What is recorded of an operation that etcd has no request for. It is refused before a run starts.
pub(super) fn unsupported(op: &Op) -> Outcome {
    Outcome::not_sent(op, UNSUPPORTED)
}

fn complaint(op: &Op, body: &[u8]) -> Outcome {
    let complaint = serde_json::from_slice::<Complaint>(body).ok();
    let Some(words) = complaint.and_then(Complaint::words) else { return Outcome::wrong_answer(op) };
    let definite = DEFINITE.contains(&words.as_str());
    let kind = if definite { EventKind::Fail } else { op.unknown_fate() };
    Outcome { refusal: Some(Refusal::Other), ..Outcome::without_result(kind, op, words) }
}

/// What a success says; none when it does not answer the request.
fn answered(op: &Op, answer: &Answer) -> Option<Outcome> {
    let seen: u64 = answer.header.revision.parse().ok()?;
    let changed = |version: i64| {
        let claims = Claims { version: Some(version), changed_at: Some(seen), seen: Some(seen), by: None };
        Outcome { claims, ..Outcome::told(op.value(), Some(seen)) }
    };
    let refused = |refusal, error: &str| Outcome {
        claims: Claims { seen: Some(seen), ..Claims::default() },
        refusal: Some(refusal),
        ..Outcome::without_result(EventKind::Fail, op, error.to_owned())
    };
    Some(match &op.body {
        Body::MakeRegister { .. } | Body::MakePlace if !answer.succeeded => {
            refused(Refusal::Exists, "exists")
        }
        Body::MakeRegister { .. } => changed(0),
        Body::MakePlace | Body::Add { .. } => Outcome::told(op.value(), Some(seen)),
        Body::Cas { .. } | Body::Append { .. } if !answer.succeeded => refused(Refusal::Other, BAD_VERSION),
        Body::Cas { basis, .. } | Body::Append { basis, .. } => changed((*basis)?.saturating_add(1)),
        // etcd tells what was there before, and counts from 1.
        Body::Write { .. } => match &answer.prev_kv {
            Some(before) => changed(before.version.parse().ok()?),
            None => changed(0),
        },
        Body::Read if op.object == Object::SET => {
            let prefix = key(op.object, op.key) + &BELOW.to_string();
            let element = |kv: &KeyValue| {
                let key = decoded(&kv.key)?;
                text::value(key.strip_prefix(prefix.as_bytes())?)
            };
            let mut list: Vec<i64> = answer.kvs.iter().map(|kv| element(kv).unwrap_or(UNREADABLE)).collect();
            list.sort_unstable();
            Outcome::told(Value::List(list.into()), Some(seen))
        }
        Body::Read => match answer.kvs.first() {
            Some(kv) => {
                let claims = kv.claims(seen)?;
                match read_value(op.object, kv) {
                    Some(value) => Outcome { claims, ..Outcome::told(value, Some(seen)) },
                    None => Outcome { claims, ..Outcome::unreadable(op, Some(seen)) },
                }
            }
            None if op.object == Object::REGISTER => refused(Refusal::Missing, NO_KEY),
            None => Outcome {
                refusal: Some(Refusal::Missing),
                ..Outcome::told(Value::List(Arc::from([])), Some(seen))
            },
        },
        Body::Next { .. }
        | Body::Delete { .. }
        | Body::Create { .. }
        | Body::Exists { .. }
        | Body::Open
        | Body::Close
        | Body::Abandon
        | Body::Acquire
        | Body::Store { .. }
        | Body::Release { .. }
        | Body::Enqueue { .. }
        | Body::Dequeue
        | Body::Acknowledge { .. }
        | Body::Enter { .. }
        | Body::Leave { .. }
        | Body::Txn { .. }
        | Body::Watch { .. }
        | Body::Said { .. } => return None,
    })
}

fn read_value(object: Object, kv: &KeyValue) -> Option<Value> {
    let data = decoded(&kv.value)?;
    match object {
        Object::LIST => Some(Value::List(text::list(&data)?.into())),
        _ => Some(Value::One(text::value(&data)?)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn register(body: Body) -> Op {
        Op::new(Object::REGISTER, 0, body)
    }

    fn ok(text: &str) -> Reply {
        Reply::Answered { is_ok: true, body: text.as_bytes().to_vec().into() }
    }

    fn error(text: &str) -> Reply {
        let body = json!({"error": text, "message": text, "code": 14}).to_string();
        Reply::Answered { is_ok: false, body: body.into_bytes().into() }
    }

    const CAS: Body = Body::Cas { from: 1, to: 2, basis: Some(0) };

    #[test]
    fn a_read_tells_value_version_and_revisions() {
        let reply = ok(r#"{"header":{"revision":"12"},"kvs":[{"key":"cjA=","create_revision":"2",
            "mod_revision":"9","version":"4","value":"MTc="}],"count":"1"}"#);
        let outcome = outcome(&register(Body::Read), &reply);
        assert_eq!((outcome.kind, outcome.value), (EventKind::Ok, Value::One(17)));
        let claims = Claims { version: Some(3), changed_at: Some(9), seen: Some(12), by: None };
        assert_eq!(outcome.claims, claims);
    }

    #[test]
    fn a_write_counts_on_from_what_was_there() {
        let reply =
            ok(r#"{"header":{"revision":"13"},"prev_kv":{"key":"cjA=","version":"4","mod_revision":"9"}}"#);
        let outcome = outcome(&register(Body::Write { value: 5 }), &reply);
        assert_eq!(outcome.claims.version, Some(4));
        assert_eq!(outcome.claims.changed_at, Some(13));
    }

    #[test]
    fn a_comparison_that_fails_is_a_refusal_and_says_up_to_where_it_was_seen() {
        let refused = outcome(&register(CAS), &ok(r#"{"header":{"revision":"13"}}"#));
        assert_eq!((refused.kind, refused.error.as_deref()), (EventKind::Fail, Some(BAD_VERSION)));
        assert_eq!(refused.claims.seen, Some(13));
        let done = outcome(&register(CAS), &ok(r#"{"header":{"revision":"14"},"succeeded":true}"#));
        assert_eq!((done.kind, done.claims.version), (EventKind::Ok, Some(1)));
    }

    #[test]
    fn only_what_was_refused_before_a_proposal_is_definite() {
        let kind = |body, reply: &Reply| outcome(&register(body), reply).kind;
        for words in [
            "etcdserver: request timed out",
            "etcdserver: leader changed",
            "context deadline exceeded",
            "etcdserver: mvcc: database space exceeded",
        ] {
            assert_eq!(kind(CAS, &error(words)), EventKind::Info, "{words}");
            assert_eq!(kind(Body::Read, &error(words)), EventKind::Fail, "{words}");
        }
        assert_eq!(kind(CAS, &error("etcdserver: too many requests")), EventKind::Fail);
        let newer = br#"{"code":8,"message":"etcdserver: too many requests"}"#.to_vec();
        assert_eq!(kind(CAS, &Reply::Answered { is_ok: false, body: newer.into() }), EventKind::Fail);
        assert_eq!(kind(CAS, &Reply::NotSent("closed".to_owned())), EventKind::Fail);
        assert_eq!(kind(CAS, &Reply::Lost("reset".to_owned())), EventKind::Info);
        for nonsense in ["", "{}", "[]", "<html>", r#"{"header":{"revision":"x"}}"#] {
            assert_eq!(kind(CAS, &ok(nonsense)), EventKind::Info, "{nonsense}");
        }
    }

    #[test]
    fn sets_are_keys_below_a_prefix_and_foreign_ones_read_as_nobodys() {
        let set = |body| Op::new(Object::SET, 1, body);
        let asked = asked(&set(Body::Read)).expect("a request");
        assert_eq!(asked.body["key"], encoded("s1/"));
        assert_eq!(asked.body["range_end"], encoded("s10"));
        let keys = [encoded("s1/7"), encoded("s1/x"), encoded("s1/3")];
        let kvs: Vec<_> = keys.iter().map(|key| json!({"key": key})).collect();
        let reply = ok(&json!({"header": {"revision": "3"}, "kvs": kvs}).to_string());
        assert_eq!(outcome(&set(Body::Read), &reply).value, Value::List(vec![UNREADABLE, 3, 7].into()));
        let nothing = outcome(&set(Body::Read), &ok(r#"{"header":{"revision":"3"}}"#));
        assert_eq!(nothing.value, Value::List(Arc::from([])));
    }

    #[test]
    fn a_list_is_compared_as_it_was_shown_and_read_as_it_was_written() {
        let list = |body| Op::new(Object::LIST, 2, body);
        let append = Body::Append { element: 9, onto: Arc::from([4, 5]), basis: Some(2) };
        let asked = asked(&list(append)).expect("a request");
        assert_eq!(asked.body["compare"][0]["version"], "3");
        assert_eq!(asked.body["success"][0]["request_put"]["value"], encoded("4,5,9"));
        let kv =
            json!({"key": encoded("l2"), "value": encoded("4,5,9"), "version": "4", "mod_revision": "8"});
        let reply = ok(&json!({"header": {"revision": "8"}, "kvs": [kv]}).to_string());
        assert_eq!(outcome(&list(Body::Read), &reply).value, Value::List(vec![4, 5, 9].into()));
    }

    #[test]
    fn what_etcd_has_no_request_for_is_not_sent() {
        for body in [Body::Next { name: 1, lasts: true }, Body::Exists { name: 1 }, Body::Close] {
            let op = Op::new(Object::NAMES, 0, body);
            assert_eq!(asked(&op), None);
            assert_eq!(unsupported(&op).kind, EventKind::Fail);
        }
    }
}
