//! How values stand in nodes' data and names.

use bytes::Bytes;
use checker::history::Value;
use workloads::op::Object;

/// A value as a node's data: decimal text.
#[must_use]
pub fn encode(value: i64) -> Bytes {
    Bytes::from(value.to_string())
}

/// A list as a node's data: decimal texts joined by commas.
#[must_use]
pub fn encode_list(list: &[i64]) -> Bytes {
    let words: Vec<String> = list.iter().map(i64::to_string).collect();
    Bytes::from(words.join(","))
}

/// The list that a node's data stands for, if it was written by [`encode_list`].
#[must_use]
pub fn decode_list(data: &[u8]) -> Option<Vec<i64>> {
    if data.is_empty() {
        return Some(Vec::new());
    }
    data.split(|byte| *byte == b',').map(decode).collect()
}

/// What the data of an object's node stands for.
pub(crate) fn read_data(object: Object, data: Option<&[u8]>) -> Option<Value> {
    match object {
        Object::List => Some(Value::List(decode_list(data.unwrap_or_default())?.into())),
        Object::Register | Object::Set | Object::Numbers | Object::Names | Object::Session => {
            Some(Value::One(decode(data?)?))
        }
    }
}

/// Digits of the number behind a sequential name.
const NUMBER_DIGITS: usize = 10;

/// A number as it stands behind a sequential name.
pub(crate) fn number_text(number: i64) -> String {
    format!("{number:0NUMBER_DIGITS$}")
}

/// The number that these digits are, if they stood behind a sequential name.
pub(crate) fn number_behind(digits: &str) -> Option<i64> {
    let sound = digits.len() == NUMBER_DIGITS && digits.bytes().all(|byte| byte.is_ascii_digit());
    if sound { digits.parse().ok() } else { None }
}

/// What a child's name stands for.
pub(crate) fn read_name(object: Object, name: &str) -> Option<i64> {
    match object {
        Object::Numbers => number_behind(name.get(name.len().checked_sub(NUMBER_DIGITS)?..)?),
        Object::Set | Object::Names | Object::Register | Object::List | Object::Session => {
            decode(name.strip_prefix(NAME_LETTER)?.as_bytes())
        }
    }
}

/// What stands before the integer in a node's name.
const NAME_LETTER: char = 'n';

/// The name of a node that stands for a value.
#[must_use]
pub fn encode_name(value: i64) -> String {
    format!("{NAME_LETTER}{value}")
}

/// The value that a node's data stands for, if it was written by [`encode`].
#[must_use]
pub fn decode(data: &[u8]) -> Option<i64> {
    let value: i64 = std::str::from_utf8(data).ok()?.parse().ok()?;
    (encode(value) == data).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_names_are_read_as_they_were_written_and_nothing_else_is() {
        for list in [vec![], vec![7], vec![1, -2, 30]] {
            assert_eq!(decode_list(&encode_list(&list)), Some(list));
        }
        for data in [&b","[..], b"1,", b"01", b"1, 2", b"x"] {
            assert_eq!(decode_list(data), None, "{data:?}");
        }
        assert_eq!(read_name(Object::Names, &encode_name(12)), Some(12));
        assert_eq!(read_name(Object::Names, "12"), None);
        assert_eq!(read_name(Object::Numbers, "n5-0000000042"), Some(42));
        for name in ["n5-42", "00000000x2", "", "é000000000"] {
            assert_eq!(read_name(Object::Numbers, name), None, "{name}");
        }
    }
}
