//! Integers as every language has them.

/// Above this a number is not the same in every language.
const LARGEST: i64 = 1 << 53;

/// The integer that a value is, if that is the same in every language.
pub(super) fn integer(value: &serde_json::Value) -> Option<i64> {
    value.as_i64().filter(|value| (-LARGEST..=LARGEST).contains(value))
}
