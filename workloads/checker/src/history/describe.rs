//! Operations in words: in a sentence, on a drawing, and as the value of a line.

use super::micro::elements;
use super::{Datum, Op, OpKind, Outcome, Rank, Value};

/// What an operation did, and when.
#[must_use]
pub fn describe(op: &Op) -> String {
    let who = format!("process {}", op.process);
    let at_node = op.node.map(|node| format!(" at member {node}")).unwrap_or_default();
    let when = match op.complete_ns {
        Some(_) if op.outcome != Outcome::Info => format!("({} to {})", called(op), returned(op)),
        _ => format!("(from {}, never answered)", called(op)),
    };
    let nil = |value: Option<i64>| value.map_or_else(|| "nothing".to_owned(), |value| value.to_string());
    let what = match op.kind() {
        OpKind::Read { .. } if op.list().is_some() => listed(op),
        OpKind::Read { value } => format!("read {} from key {}", nil(value), op.key),
        OpKind::Write { value } => format!("wrote {value} to key {}", op.key),
        OpKind::Cas { from, to } if op.outcome == Outcome::Fail => {
            format!("was refused to replace {} by {to} in key {}", nil(from), op.key)
        }
        OpKind::Cas { from, to } => format!("replaced {} by {to} in key {}", nil(from), op.key),
        _ => describe_other(op),
    };
    format!("{who} {what}{at_node} {when}")
}

/// What was done to anything but a register.
fn describe_other(op: &Op) -> String {
    let session = || op.session.map_or_else(|| "its session".to_owned(), |id| format!("session {id:#x}"));
    let (happened, key) = (op.outcome == Outcome::Ok, op.key);
    let verb = |done: &'static str, tried: &'static str| if happened { done } else { tried };
    match op.kind() {
        OpKind::Add { value } => format!("{} {value} to set {key}", verb("added", "tried to add")),
        OpKind::Append { value } => format!("{} {value} to list {key}", verb("appended", "tried to append")),
        OpKind::Make => format!("{} place {key}", verb("made", "tried to make")),
        OpKind::Create { name, number: Some(number) } => {
            format!("made node {name} in place {key} and got number {number}")
        }
        OpKind::Create { name, number: None } => {
            let ephemeral = op.session.map(|id| format!(" in session {id:#x}")).unwrap_or_default();
            format!("{} node {name} in place {key}{ephemeral}", verb("made", "tried to make"))
        }
        OpKind::Delete { name } => {
            format!("{} node {name} in place {key}", verb("deleted", "tried to delete"))
        }
        OpKind::Exists { name, .. } if !happened => format!("asked in vain for node {name}"),
        OpKind::Exists { name, present: true } => format!("found node {name} in place {key}"),
        OpKind::Exists { name, present: false } => format!("did not find node {name} in place {key}"),
        OpKind::Open { .. } => format!("{} {}", verb("opened", "tried to open"), session()),
        OpKind::Close => format!("{} {}", verb("closed", "tried to close"), session()),
        OpKind::Abandon if op.error.is_some() => format!("was told that {} had expired", session()),
        OpKind::Abandon => format!("left {} to expire", session()),
        OpKind::Acquire { token: Some(token) } => format!("acquired lock {key} with token {token}"),
        OpKind::Acquire { token: None } => format!("tried to acquire lock {key}"),
        OpKind::Store { token, value } => {
            format!("{} {value} to store {key} by token {token}", verb("wrote", "tried to write"))
        }
        OpKind::Release { token } => {
            format!("{} lock {key} with token {token}", verb("released", "tried to release"))
        }
        OpKind::Enqueue { value } => {
            format!("{} {value} to queue {key}", verb("enqueued", "tried to enqueue"))
        }
        OpKind::Dequeue { value: Some(value) } => format!("dequeued {value} from queue {key}"),
        OpKind::Dequeue { value: None } if happened => format!("found queue {key} empty"),
        OpKind::Dequeue { value: None } => format!("tried to dequeue from queue {key}"),
        OpKind::Acknowledge { value } => {
            format!("{} {value} of queue {key}", verb("acknowledged", "tried to acknowledge"))
        }
        OpKind::Enter { round } => {
            format!("{} round {round} of barrier {key}", verb("entered", "tried to enter"))
        }
        OpKind::Leave { round } => {
            format!("{} round {round} of barrier {key}", verb("left", "tried to leave"))
        }
        OpKind::Txn { .. } => format!("{}: {}", verb("did in one transaction", "tried"), micros(op)),
        OpKind::Watch { watcher, from } => watched(op, watcher, from),
        OpKind::Read { .. } | OpKind::Write { .. } | OpKind::Cas { .. } | OpKind::Other => {
            let asked =
                if op.asked == Value::Null { String::new() } else { format!(" {}", short(&op.asked)) };
            let told = if happened { format!(" and was told {}", short(&op.told)) } else { String::new() };
            format!("{} {}{asked} on key {key}{told}", verb("called", "tried to call"), op.f)
        }
    }
}

/// A watch in words.
fn watched(op: &Op, watcher: i64, from: Option<i64>) -> String {
    let since = from.map_or_else(|| "anew".to_owned(), |from| format!("from position {from}"));
    match values_told(op) {
        None => format!("as watcher {watcher} asked in vain for changes of key {}, {since}", op.key),
        Some(values) => {
            format!("as watcher {watcher} was told {} of key {}, {since}", elements(&values), op.key)
        }
    }
}

/// The values that a watch told, in their order; none where it has no answer.
fn values_told(op: &Op) -> Option<Vec<i64>> {
    Some(op.list().map(|list| &list[..])?.get(1..)?.iter().step_by(2).copied().collect())
}

/// Elements that a sentence names at most.
const MAX_NAMED: usize = 8;

/// A read of a list in words.
fn listed(op: &Op) -> String {
    let list = op.list().map(|list| &list[..]).unwrap_or_default();
    format!("read {} elements {} from key {}", list.len(), end_of(list), op.key)
}

/// A list, the beginning of a long one left out: the end is where lists differ.
fn end_of(list: &[i64]) -> String {
    let left_out = list.len().saturating_sub(MAX_NAMED);
    let shown: Vec<String> = list[left_out..].iter().map(i64::to_string).collect();
    format!("[{}{}]", if left_out > 0 { "..., " } else { "" }, shown.join(", "))
}

/// A value, of which a long list is shortened.
fn short(value: &Value) -> String {
    match value {
        Value::List(list) if list.len() > MAX_NAMED => format!("{} elements {}", list.len(), end_of(list)),
        _ => value.to_string(),
    }
}

pub(crate) fn called(op: &Op) -> String {
    if is_untimed(op) { event(op.call) } else { seconds(op.invoke_ns) }
}

/// Whether the history has no stamps: then its pairing puts ranks in their place.
fn is_untimed(op: &Op) -> bool {
    op.invoke_ns == u64::from(op.call)
        && op.complete_ns.is_none_or(|complete_ns| complete_ns == u64::from(op.ret))
}

fn event(rank: Rank) -> String {
    format!("event {}", u64::from(rank) + 1)
}

pub(crate) fn returned(op: &Op) -> String {
    match op.complete_ns {
        Some(_) if is_untimed(op) => event(op.ret),
        Some(at) => seconds(at),
        None => "no time".to_owned(),
    }
}

/// Nanoseconds as seconds with four decimals.
fn seconds(ns: u64) -> String {
    let tenths_of_ms = ns / 100_000;
    format!("{}.{:04} s", tenths_of_ms / 10_000, tenths_of_ms % 10_000)
}

/// What was written or read, as the line of a history has it.
pub(crate) fn value_of(op: &Op) -> Datum {
    let int = Datum::Int;
    let pair = |first: Datum, second: i64| Datum::List(vec![first, Datum::Int(second)]);
    match op.kind() {
        OpKind::Read { value } => match op.list() {
            Some(list) => Datum::List(list.iter().copied().map(int).collect()),
            None => value.map_or(Datum::Nil, int),
        },
        OpKind::Write { value }
        | OpKind::Add { value }
        | OpKind::Append { value }
        | OpKind::Enqueue { value }
        | OpKind::Acknowledge { value } => int(value),
        OpKind::Cas { from, to } => pair(from.map_or(Datum::Nil, int), to),
        OpKind::Create { name, number: Some(number) } => pair(int(name), number),
        OpKind::Create { name, number: None } | OpKind::Delete { name } => int(name),
        OpKind::Exists { name, present } if op.outcome == Outcome::Ok => pair(int(name), i64::from(present)),
        OpKind::Exists { name, .. } => int(name),
        OpKind::Open { timeout_ms } => timeout_ms.map_or(Datum::Nil, int),
        OpKind::Make | OpKind::Close | OpKind::Abandon => Datum::Nil,
        OpKind::Acquire { .. } | OpKind::Store { .. } | OpKind::Dequeue { .. } | OpKind::Watch { .. }
            if op.list().is_some() =>
        {
            Datum::List(op.list().into_iter().flat_map(|list| list.iter().copied().map(int)).collect())
        }
        OpKind::Enter { round } | OpKind::Leave { round } => int(round),
        OpKind::Txn { .. } => {
            Datum::List(op.micros().into_iter().flat_map(|all| all.iter().map(Datum::from)).collect())
        }
        OpKind::Dequeue { value } => value.map_or(Datum::Nil, int),
        OpKind::Acquire { .. } => Datum::Nil,
        OpKind::Store { token, value } => pair(int(token), value),
        OpKind::Release { token } => int(token),
        OpKind::Watch { watcher, from } => pair(from.map_or(Datum::Nil, int), watcher),
        OpKind::Other if op.outcome == Outcome::Ok => Datum::from(&op.told),
        OpKind::Other => Datum::from(&op.asked),
    }
}

/// What was asked and, for what looks at the system, what was answered, as it is drawn: `read k3 → 7`.
pub(crate) fn call(op: &Op) -> String {
    let key = op.key;
    let nothing = |value: Option<i64>| value.map_or_else(|| "nothing".to_owned(), |value| value.to_string());
    match op.kind() {
        OpKind::Read { .. } if op.outcome != Outcome::Ok => format!("read k{key}"),
        OpKind::Read { value } => match op.list() {
            Some(list) => format!("read k{key} → {}", elements(list)),
            None => format!("read k{key} → {}", nothing(value)),
        },
        OpKind::Cas { from, to } => format!("cas k{key} {} → {to}", nothing(from)),
        OpKind::Create { name, number: Some(number) } => format!("create k{key} {name} → number {number}"),
        OpKind::Exists { name, present } if op.outcome == Outcome::Ok => {
            format!("exists k{key} {name} → {}", if present { "yes" } else { "no" })
        }
        OpKind::Open { timeout_ms: Some(timeout_ms) } => format!("open a session of {timeout_ms} ms"),
        OpKind::Open { timeout_ms: None } => "open a session".to_owned(),
        OpKind::Close => "close the session".to_owned(),
        OpKind::Abandon => "leave the session".to_owned(),
        OpKind::Write { value }
        | OpKind::Add { value }
        | OpKind::Append { value }
        | OpKind::Enqueue { value }
        | OpKind::Acknowledge { value } => format!("{} k{key} = {value}", op.f),
        OpKind::Dequeue { value } if op.outcome == Outcome::Ok => {
            format!("dequeue k{key} → {}", nothing(value))
        }
        OpKind::Dequeue { .. } => format!("dequeue k{key}"),
        OpKind::Enter { round } | OpKind::Leave { round } => {
            format!("{} k{key} round {round}", op.f)
        }
        OpKind::Create { name, number: None } | OpKind::Delete { name } | OpKind::Exists { name, .. } => {
            format!("{} k{key} = {name}", op.f)
        }
        OpKind::Make => format!("create k{key}"),
        OpKind::Acquire { token: Some(token) } => format!("acquire k{key} → token {token}"),
        OpKind::Acquire { token: None } => format!("acquire k{key}"),
        OpKind::Store { token, value } => format!("store k{key} = {value} by token {token}"),
        OpKind::Release { token } => format!("release k{key} of token {token}"),
        OpKind::Txn { .. } => micros(op),
        OpKind::Watch { watcher, .. } => match values_told(op) {
            Some(values) => format!("watch k{key} by {watcher} → {}", elements(&values)),
            None => format!("watch k{key} by {watcher}"),
        },
        OpKind::Other => {
            let asked =
                if op.asked == Value::Null { String::new() } else { format!(" {}", short(&op.asked)) };
            let told =
                if op.outcome == Outcome::Ok { format!(" → {}", short(&op.told)) } else { String::new() };
            format!("{} k{key}{asked}{told}", op.f)
        }
    }
}

/// What a transaction did, in its order.
fn micros(op: &Op) -> String {
    let told: Vec<String> =
        op.micros().into_iter().flat_map(|all| all.iter().map(ToString::to_string)).collect();
    told.join(", ")
}
