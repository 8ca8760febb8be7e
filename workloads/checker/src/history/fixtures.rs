//! What the tests of the formats share: any datum, and EDN printed from it.

use std::fmt::Write as _;

use proptest::prelude::*;

use super::Datum;

/// Any datum that EDN can hold.
pub(super) fn datum() -> impl Strategy<Value = Datum> {
    let leaf = prop_oneof![
        Just(Datum::Nil),
        any::<bool>().prop_map(Datum::Bool),
        any::<i64>().prop_map(Datum::Int),
        any::<String>().prop_map(|text| Datum::text(&text)),
    ];
    leaf.prop_recursive(5, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Datum::List),
            prop::collection::vec((inner.clone(), inner), 0..4)
                .prop_map(|entries| Datum::Map(once_each(entries))),
        ]
    })
}

/// No key twice: what has one is no map, and is refused.
fn once_each(entries: Vec<(Datum, Datum)>) -> Vec<(Datum, Datum)> {
    let mut once: Vec<(Datum, Datum)> = Vec::new();
    for (key, value) in entries {
        if once.iter().all(|(known, _)| *known != key) {
            once.push((key, value));
        }
    }
    once
}

/// A datum as EDN. All text is a string, because not every text can be a keyword.
pub(super) fn print(datum: &Datum) -> String {
    match datum {
        Datum::Nil => "nil".to_owned(),
        Datum::Bool(value) => value.to_string(),
        Datum::Int(value) => value.to_string(),
        Datum::Text(text) => format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"")),
        Datum::List(elements) => {
            let elements: Vec<String> = elements.iter().map(print).collect();
            format!("[{}]", elements.join(" "))
        }
        Datum::Map(entries) => {
            let mut text = String::from("{");
            for (key, value) in entries {
                let _ = write!(text, "{} {}, ", print(key), print(value));
            }
            text + "}"
        }
    }
}
