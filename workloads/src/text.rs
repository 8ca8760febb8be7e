//! How values stand in a store whose values are bytes: decimal text, and lists of it joined by commas.
//!
//! What is not exactly as it is written here was written by nobody: a workload's checks take it for
//! corruption.

/// A value.
#[must_use]
pub fn of_value(value: i64) -> String {
    value.to_string()
}

/// The value that a text stands for, if it was written by [`of_value`].
#[must_use]
pub fn value(text: &[u8]) -> Option<i64> {
    let value: i64 = std::str::from_utf8(text).ok()?.parse().ok()?;
    (of_value(value).as_bytes() == text).then_some(value)
}

/// A list.
#[must_use]
pub fn of_list(list: impl IntoIterator<Item = i64>) -> String {
    list.into_iter().map(of_value).collect::<Vec<_>>().join(",")
}

/// The list that a text stands for, if it was written by [`of_list`].
#[must_use]
pub fn list(text: &[u8]) -> Option<Vec<i64>> {
    if text.is_empty() {
        return Some(Vec::new());
    }
    text.split(|byte| *byte == b',').map(value).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_is_what_was_written_and_nothing_else_is() {
        for written in [vec![], vec![7], vec![1, -2, 30], vec![i64::MIN, i64::MAX]] {
            assert_eq!(list(of_list(written.iter().copied()).as_bytes()), Some(written));
        }
        for text in [&b","[..], b"1,", b"01", b"1, 2", b"x", b"+1", b"-0"] {
            assert_eq!(list(text), None, "{text:?}");
        }
    }
}
