//! Records to events: what a history of any format says of registers, sets and lists of integers.

use std::sync::Arc;

use super::{Datum, Event, EventKind, Function, Micro, Record, Value, What};

/// The event that a record is.
///
/// # Errors
/// What in it a register, a set or a list has not.
pub(crate) fn event_of(record: Record) -> Result<Event, String> {
    let f = Function::read(&record.f)?;
    let key = match &record.key {
        Datum::Nil => 0,
        Datum::Int(key) if *key >= 0 => key.unsigned_abs(),
        other => return Err(format!("the key {other} is no natural number")),
    };
    let value = match (value_of(&record.value), record.kind) {
        (Some(value), _) => value,
        // What came of nothing, or may come, is not looked at.
        (None, EventKind::Fail | EventKind::Info) => Value::Null,
        (None, EventKind::Invoke | EventKind::Ok) => {
            return Err(format!("the value {} has no integer, pair or list of integers in it", record.value));
        }
    };
    Ok(record.in_terms_of(f, key, value))
}

/// The value that a datum stands for, as in lines of our own format; none for what no line has.
///
/// Two integers, the first of which may be nil, are a pair, and [`Value::list`] gives them where a list is
/// meant. Any other list of integers is a list. A list of micro-operations is a transaction.
fn value_of(datum: &Datum) -> Option<Value> {
    match datum {
        Datum::Nil => Some(Value::Null),
        Datum::Int(value) => Some(Value::One(*value)),
        Datum::List(elements) => match elements.as_slice() {
            [Datum::Nil, Datum::Int(to)] => Some(Value::Pair(None, *to)),
            [Datum::Int(from), Datum::Int(to)] => Some(Value::Pair(Some(*from), *to)),
            elements => {
                let list: Option<Arc<[i64]>> = elements.iter().map(Datum::as_int).collect();
                list.map(Value::List)
                    .or_else(|| elements.iter().map(micro).collect::<Option<_>>().map(Value::Txn))
            }
        },
        Datum::Bool(_) | Datum::Text(_) | Datum::Map(_) => None,
    }
}

/// The micro-operation that a datum stands for: `["append", 5, 1]`, `["r", 5, null]`, `["r", 5, [1, 2]]`.
fn micro(datum: &Datum) -> Option<Micro> {
    let [f, key, value] = datum.as_list()? else { return None };
    let what = match (f.as_text()?, value) {
        ("append", Datum::Int(element)) => What::Append(*element),
        ("r" | "read", Datum::Nil) => What::Read(None),
        ("r" | "read", Datum::List(list)) => {
            What::Read(Some(list.iter().map(Datum::as_int).collect::<Option<_>>()?))
        }
        _ => return None,
    };
    Some(Micro { key: u64::try_from(key.as_int()?).ok()?, what })
}
