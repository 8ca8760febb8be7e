//! A value of any shape, as histories from elsewhere have them.
//!
//! Our own lines hold integers and are read as [`super::Value`], which is small. Jepsen's hold whatever its
//! workload made: keywords, strings, vectors of micro-operations. A [`Datum`] holds those too, and models
//! take from it what they understand.

use std::fmt;
use std::sync::Arc;

use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use serde::ser::{SerializeMap, Serializer};
use serde::{Deserialize, Serialize, de};

/// A value of any shape. Keywords, symbols and strings are all text: who wrote `:read` and who wrote `"read"`
/// meant the same.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Datum {
    /// `nil` or `null`.
    #[default]
    Nil,
    /// True or false.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A string, a keyword without its colon, a symbol, or a number that is no integer of 64 bits: no check
    /// computes with one, and as text none takes it for another.
    Text(Arc<str>),
    /// A vector, a list or a set.
    List(Vec<Datum>),
    /// A map, in the order of the file.
    Map(Vec<(Datum, Datum)>),
}

impl Datum {
    /// Text.
    #[must_use]
    pub fn text(text: &str) -> Self {
        Self::Text(Arc::from(text))
    }

    /// The integer that this is.
    #[must_use]
    pub fn as_int(&self) -> Option<i64> {
        if let Self::Int(value) = self { Some(*value) } else { None }
    }

    /// The text that this is.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        if let Self::Text(text) = self { Some(text) } else { None }
    }

    /// The elements, if this is a list.
    #[must_use]
    pub fn as_list(&self) -> Option<&[Self]> {
        if let Self::List(elements) = self { Some(elements) } else { None }
    }

    /// What a map holds under a key that is text.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Self> {
        let Self::Map(entries) = self else { return None };
        entries.iter().find(|(name, _)| name.as_text() == Some(key)).map(|(_, value)| value)
    }

    /// The same with the entries of its maps sorted: two maps are one, in whatever order they were written.
    #[must_use]
    pub(crate) fn in_any_order(&self) -> Self {
        match self {
            Self::List(elements) => Self::List(elements.iter().map(Self::in_any_order).collect()),
            Self::Map(entries) => {
                let sorted = |(key, value): &(Self, Self)| (key.in_any_order(), value.in_any_order());
                let mut entries: Vec<(Self, Self)> = entries.iter().map(sorted).collect();
                entries.sort_unstable();
                Self::Map(entries)
            }
            other => other.clone(),
        }
    }

    /// Whether this is nothing.
    #[must_use]
    pub fn is_nil(&self) -> bool {
        *self == Self::Nil
    }
}

impl fmt::Display for Datum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nil => f.write_str("nothing"),
            Self::Bool(value) => write!(f, "{value}"),
            Self::Int(value) => write!(f, "{value}"),
            Self::Text(text) => f.write_str(text),
            Self::List(elements) => {
                f.write_str("[")?;
                for (at, element) in elements.iter().enumerate() {
                    write!(f, "{}{element}", if at == 0 { "" } else { " " })?;
                }
                f.write_str("]")
            }
            Self::Map(entries) => {
                f.write_str("{")?;
                for (at, (key, value)) in entries.iter().enumerate() {
                    write!(f, "{}{key} {value}", if at == 0 { "" } else { ", " })?;
                }
                f.write_str("}")
            }
        }
    }
}

/// Refuses a map that has a key twice: readers differ in which one they believe.
pub(super) fn no_key_twice(entries: &[(Datum, Datum)]) -> Result<(), String> {
    let mut keys: Vec<&Datum> = entries.iter().map(|(key, _)| key).collect();
    keys.sort_unstable();
    match keys.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(format!("the key {} stands twice in a map", pair[0])),
        None => Ok(()),
    }
}

impl Serialize for Datum {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Nil => serializer.serialize_unit(),
            Self::Bool(value) => serializer.serialize_bool(*value),
            Self::Int(value) => serializer.serialize_i64(*value),
            Self::Text(text) => serializer.serialize_str(text),
            Self::List(elements) => elements.serialize(serializer),
            Self::Map(entries) => {
                let mut map = serializer.serialize_map(Some(entries.len()))?;
                for (key, value) in entries {
                    map.serialize_entry(&key.to_string(), value)?;
                }
                map.end()
            }
        }
    }
}

impl<'de> Deserialize<'de> for Datum {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(DatumVisitor)
    }
}

struct DatumVisitor;

impl<'de> Visitor<'de> for DatumVisitor {
    type Value = Datum;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("null, true, false, an integer, text, a list or a map")
    }

    fn visit_unit<E: de::Error>(self) -> Result<Datum, E> {
        Ok(Datum::Nil)
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<Datum, E> {
        Ok(Datum::Bool(value))
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Datum, E> {
        Ok(Datum::Int(value))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Datum, E> {
        Ok(i64::try_from(value).map_or_else(|_| Datum::text(&value.to_string()), Datum::Int))
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Datum, E> {
        Ok(Datum::text(&value.to_string()))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Datum, E> {
        Ok(Datum::text(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Datum, A::Error> {
        let mut elements = Vec::new();
        while let Some(element) = seq.next_element()? {
            elements.push(element);
        }
        Ok(Datum::List(elements))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Datum, A::Error> {
        let mut entries = Vec::new();
        while let Some((key, value)) = map.next_entry::<String, Datum>()? {
            entries.push((Datum::Text(key.into()), value));
        }
        no_key_twice(&entries).map_err(de::Error::custom)?;
        Ok(Datum::Map(entries))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shape_survives_its_json_form() {
        let text = r#"[null,true,-7,"x",[],[1,[2]],{"a":1,"b":[null]}]"#;
        let datum: Datum = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&datum).unwrap(), text);
        assert_eq!(datum.as_list().unwrap()[6].get("a"), Some(&Datum::Int(1)));
    }

    #[test]
    fn a_number_that_is_no_integer_of_64_bits_is_kept_as_text() {
        for text in ["1.5", "18446744073709551615"] {
            assert_eq!(serde_json::from_str::<Datum>(text).unwrap(), Datum::text(text));
        }
    }
}
