//! What a transaction is made of: appends to lists, and reads of whole lists.
//!
//! In a line it is what Elle's histories have: `["append",5,1]`, and `["r",5,null]`, which becomes
//! `["r",5,[1]]` in the answer.

use std::fmt;
use std::sync::Arc;

use serde::de::{self, Deserializer, SeqAccess, Visitor};
use serde::ser::Serializer;
use serde::{Deserialize, Serialize};

use super::Datum;

/// What is done to one list within a transaction.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum What {
    /// An element put at its end.
    Append(i64),
    /// All of it read; none while that is only asked for.
    Read(Option<Arc<[i64]>>),
}

/// A part of a transaction.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Micro {
    /// Which list.
    pub key: u64,
    /// What is done to it.
    pub what: What,
}

impl Micro {
    /// An append.
    #[must_use]
    pub const fn append(key: u64, element: i64) -> Self {
        Self { key, what: What::Append(element) }
    }

    /// A read that is asked for.
    #[must_use]
    pub const fn read(key: u64) -> Self {
        Self { key, what: What::Read(None) }
    }

    /// The same without what came of it.
    #[must_use]
    pub fn asked(&self) -> Self {
        if self.is_append() { self.clone() } else { Self::read(self.key) }
    }

    /// Whether it changes the list.
    #[must_use]
    pub const fn is_append(&self) -> bool {
        matches!(self.what, What::Append(_))
    }

    /// Whether this answers what was asked: the same append, or a read of the same list with a result.
    #[must_use]
    pub fn answers(&self, asked: &Self) -> bool {
        let same = match (&self.what, &asked.what) {
            (What::Append(told), What::Append(asked)) => told == asked,
            (What::Read(told), What::Read(_)) => told.is_some(),
            _ => false,
        };
        same && self.key == asked.key
    }
}

/// Whether the second is an answer to the first.
#[must_use]
pub fn is_answered(asked: &[Micro], told: &[Micro]) -> bool {
    asked.len() == told.len() && told.iter().zip(asked).all(|(told, asked)| told.answers(asked))
}

impl From<&Micro> for Datum {
    fn from(Micro { key, what }: &Micro) -> Self {
        let (f, value) = match what {
            What::Append(element) => ("append", Self::Int(*element)),
            What::Read(None) => ("r", Self::Nil),
            What::Read(Some(list)) => ("r", Self::List(list.iter().copied().map(Self::Int).collect())),
        };
        Self::List(vec![Self::text(f), i64::try_from(*key).map_or(Self::Nil, Self::Int), value])
    }
}

/// As it is drawn: `append k5 1`, `read k5 → [1]`.
impl fmt::Display for Micro {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = self.key;
        match &self.what {
            What::Append(element) => write!(f, "append k{key} {element}"),
            What::Read(None) => write!(f, "read k{key}"),
            What::Read(Some(list)) => write!(f, "read k{key} → {}", elements(list)),
        }
    }
}

impl Serialize for Micro {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.what {
            What::Append(element) => ("append", self.key, element).serialize(serializer),
            What::Read(list) => ("r", self.key, list).serialize(serializer),
        }
    }
}

/// How a micro-operation is called in a line.
#[derive(Deserialize)]
enum Name {
    #[serde(rename = "append")]
    Append,
    #[serde(rename = "r", alias = "read")]
    Read,
}

/// Reads a micro-operation whose bracket was opened.
pub(super) fn in_brackets<'de, A: SeqAccess<'de>>(mut seq: A) -> Result<Micro, A::Error> {
    let wanted =
        || de::Error::custom("a micro-operation is [\"append\", key, element] or [\"r\", key, list]");
    let name = seq.next_element::<Name>()?.ok_or_else(wanted)?;
    let key = seq.next_element::<u64>()?.ok_or_else(wanted)?;
    let what = match name {
        Name::Append => What::Append(seq.next_element()?.ok_or_else(wanted)?),
        Name::Read => What::Read(seq.next_element::<Option<Vec<i64>>>()?.ok_or_else(wanted)?.map(Arc::from)),
    };
    match seq.next_element::<de::IgnoredAny>()? {
        None => Ok(Micro { key, what }),
        Some(_) => Err(wanted()),
    }
}

impl<'de> Deserialize<'de> for Micro {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reading;

        impl<'de> Visitor<'de> for Reading {
            type Value = Micro;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a micro-operation in brackets")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Micro, A::Error> {
                in_brackets(seq)
            }
        }

        deserializer.deserialize_seq(Reading)
    }
}

/// Elements of a list that are written out; of a longer one the end is, where lists differ.
const MOST_ELEMENTS: usize = 6;

pub(super) fn elements(list: &[i64]) -> String {
    let left_out = list.len().saturating_sub(MOST_ELEMENTS);
    let shown: Vec<String> = list[left_out..].iter().map(i64::to_string).collect();
    if left_out == 0 {
        return format!("[{}]", shown.join(" "));
    }
    format!("{} elements […{}]", list.len(), shown.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_has_the_shape_of_what_was_asked() {
        let asked = [Micro::append(5, 1), Micro::read(5)];
        let read = |list: &[i64]| Micro { key: 5, what: What::Read(Some(list.into())) };
        assert!(is_answered(&asked, &[Micro::append(5, 1), read(&[1])]));
        assert!(!is_answered(&asked, &asked), "a read without a result");
        assert!(!is_answered(&asked, &[Micro::append(5, 2), read(&[1])]));
        assert!(!is_answered(&asked, &[Micro::append(5, 1)]));
    }

    #[test]
    fn a_micro_operation_is_read_as_it_is_written() {
        for (text, micro) in [
            (r#"["append",5,1]"#, Micro::append(5, 1)),
            (r#"["r",5,null]"#, Micro::read(5)),
            (r#"["r",5,[1,2,3]]"#, Micro { key: 5, what: What::Read(Some(Arc::from([1, 2, 3]))) }),
        ] {
            assert_eq!(serde_json::from_str::<Micro>(text).unwrap(), micro);
            assert_eq!(serde_json::to_string(&micro).unwrap(), text);
        }
        for wrong in [r#"["append",5]"#, r#"["w",5,1]"#, r#"["r",5,[],1]"#, r#"["r",-1,null]"#, "[]"] {
            assert!(serde_json::from_str::<Micro>(wrong).is_err(), "{wrong}");
        }
    }
}
