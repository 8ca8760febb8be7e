//! The value of a line: small when it is a number, shared when it is a list.

use std::fmt;
use std::sync::Arc;

use serde::de::{self, Deserializer, SeqAccess, Visitor};
use serde::ser::Serializer;
use serde::{Deserialize, Serialize};

use super::Datum;
use super::micro::{self, Micro};

/// The value of a line: `null`, an integer, a pair `[from, to]` whose `from` may be `null`, a list, or the
/// micro-operations of a transaction.
///
/// Two integers in brackets are a pair of a compare-and-set and a list of a read; the file does not tell
/// which, so they are read as a pair, and whoever knows the function asks for [`Value::list`].
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub enum Value {
    /// Nothing: the argument of a read, or a register that nobody wrote.
    #[default]
    Null,
    /// A written or read value.
    One(i64),
    /// What was asked for and what came of it: a compare-and-set's `[from, to]`, a sequential create's
    /// `[name, number]`, an existence's `[name, 1]` or `[name, 0]`.
    Pair(Option<i64>, i64),
    /// The elements of a set or a list, shared by whoever holds the line.
    List(Arc<[i64]>),
    /// The micro-operations of a transaction, in their order. There is at least one.
    Txn(Arc<[Micro]>),
}

impl Value {
    /// The integer that this is.
    #[must_use]
    pub fn integer(&self) -> Option<i64> {
        if let Self::One(value) = self { Some(*value) } else { None }
    }

    /// The second of two.
    #[must_use]
    pub fn second(&self) -> Option<i64> {
        if let Self::Pair(_, second) = self { Some(*second) } else { None }
    }

    /// The list that this is, if it can be one.
    #[must_use]
    pub fn list(&self) -> Option<Arc<[i64]>> {
        match self {
            Self::List(list) => Some(Arc::clone(list)),
            Self::Pair(Some(first), second) => Some(Arc::from([*first, *second])),
            Self::Null | Self::One(_) | Self::Pair(None, _) | Self::Txn(_) => None,
        }
    }
}

impl From<&Value> for Datum {
    fn from(value: &Value) -> Self {
        match value {
            Value::Null => Self::Nil,
            Value::One(value) => Self::Int(*value),
            Value::Pair(from, to) => Self::List(vec![from.map_or(Self::Nil, Self::Int), Self::Int(*to)]),
            Value::List(list) => Self::List(list.iter().copied().map(Self::Int).collect()),
            Value::Txn(micros) => Self::List(micros.iter().map(Self::from).collect()),
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("nothing"),
            Self::One(value) => write!(f, "{value}"),
            Self::Pair(None, to) => write!(f, "[nothing, {to}]"),
            Self::Pair(Some(from), to) => write!(f, "[{from}, {to}]"),
            Self::List(list) => write!(f, "{list:?}"),
            Self::Txn(_) => write!(f, "{}", Datum::from(self)),
        }
    }
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => serializer.serialize_unit(),
            Self::One(value) => serializer.serialize_i64(*value),
            Self::Pair(from, to) => (from, to).serialize(serializer),
            Self::List(list) => list.serialize(serializer),
            Self::Txn(micros) => micros.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ValueVisitor)
    }
}

/// Written by hand because an untagged enum would buffer every value of every line.
struct ValueVisitor;

impl<'de> Visitor<'de> for ValueVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("null, an integer, [from, to], a list of integers or one of micro-operations")
    }

    fn visit_unit<E: de::Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Value, E> {
        Ok(Value::One(value))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Value, E> {
        i64::try_from(value).map(Value::One).map_err(|_| E::custom("value does not fit 63 bits"))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let first = match seq.next_element::<First>()? {
            None => return Ok(Value::List(Arc::from([]))),
            Some(First::Null) => None,
            Some(First::One(first)) => Some(first),
            Some(First::Micro(first)) => {
                let mut micros = vec![first];
                while let Some(micro) = seq.next_element()? {
                    micros.push(micro);
                }
                return Ok(Value::Txn(micros.into()));
            }
        };
        let second = seq.next_element::<i64>()?;
        let Some(third) = seq.next_element::<i64>()? else {
            return match (first, second) {
                (from, Some(to)) => Ok(Value::Pair(from, to)),
                (Some(only), None) => Ok(Value::List(Arc::from([only]))),
                (None, None) => Err(de::Error::invalid_length(1, &self)),
            };
        };
        let (Some(first), Some(second)) = (first, second) else {
            return Err(de::Error::custom("a list has no null in it"));
        };
        let mut list = vec![first, second, third];
        while let Some(element) = seq.next_element::<i64>()? {
            list.push(element);
        }
        Ok(Value::List(list.into()))
    }
}

/// What stands first in a line's brackets.
enum First {
    Null,
    One(i64),
    Micro(Micro),
}

impl<'de> Deserialize<'de> for First {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(FirstVisitor)
    }
}

struct FirstVisitor;

impl<'de> Visitor<'de> for FirstVisitor {
    type Value = First;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("null, an integer or a micro-operation")
    }

    fn visit_unit<E: de::Error>(self) -> Result<First, E> {
        Ok(First::Null)
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<First, E> {
        Ok(First::One(value))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<First, E> {
        i64::try_from(value).map(First::One).map_err(|_| E::custom("value does not fit 63 bits"))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<First, A::Error> {
        micro::in_brackets(seq).map(First::Micro)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Value, String> {
        serde_json::from_str(text).map_err(|error| error.to_string())
    }

    #[test]
    fn every_value_survives_its_json_form_as_far_as_its_reader_cares() {
        for value in [
            Value::Null,
            Value::One(-7),
            Value::Pair(None, 3),
            Value::Pair(Some(2), 3),
            Value::List(Arc::from([])),
            Value::List(Arc::from([4])),
            Value::List(Arc::from([4, 5, 6, 7])),
            Value::Txn(Arc::from([Micro::append(5, 1), Micro::read(5)])),
        ] {
            assert_eq!(read(&serde_json::to_string(&value).unwrap()).unwrap(), value);
        }
        let two = Value::List(Arc::from([4, 5]));
        assert_eq!(read("[4,5]").unwrap().list(), two.list());
    }

    #[test]
    fn what_is_no_value_is_refused() {
        for text in [
            "[null]",
            "[[]]",
            "[[\"r\",5,null],3]",
            "[null,2,3]",
            "[1,null]",
            "\"x\"",
            "{}",
            "1.5",
            "18446744073709551615",
        ] {
            assert!(read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_value_is_as_small_as_a_pair() {
        assert!(std::mem::size_of::<Value>() <= 24);
    }
}
