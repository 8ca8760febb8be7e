//! How values stand in nodes' data and names.

use checker::history::Value;
use workloads::op::Object;
use workloads::text;

/// What the data of an object's node stands for.
pub(crate) fn read_data(object: Object, data: Option<&[u8]>) -> Option<Value> {
    match object {
        Object::LIST => Some(Value::List(text::list(data.unwrap_or_default())?.into())),
        _ => Some(Value::One(text::value(data?)?)),
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
        Object::NUMBERS | Object::LOCK => number_behind(name.get(name.len().checked_sub(NUMBER_DIGITS)?..)?),
        Object::QUEUE => element_of(name),
        _ => text::value(name.strip_prefix(NAME_LETTER)?.as_bytes()),
    }
}

/// Digits of the guid with which an item's name begins in the recipe of queues.
const GUID_DIGITS: usize = 32;

/// The element that an item of a queue is: its guid, as producers of the bench choose theirs.
fn element_of(name: &str) -> Option<i64> {
    let digits =
        name.get(..GUID_DIGITS).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
    i64::from_str_radix(digits, 16).ok()
}

/// What Hadoop's elector leaves behind of whoever was active and did not leave in order. It holds nothing.
const BREADCRUMB: &str = "ActiveBreadCrumb";

/// Whether a child of this name counts.
pub(crate) fn is_listed(object: Object, name: &str) -> bool {
    object != Object::LOCK || name != BREADCRUMB
}

/// What stands before the integer in a node's name.
const NAME_LETTER: char = 'n';

/// The name of a node that stands for a value.
#[must_use]
pub fn encode_name(value: i64) -> String {
    format!("{NAME_LETTER}{value}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_were_written_and_nothing_else_is() {
        assert_eq!(read_name(Object::NAMES, &encode_name(12)), Some(12));
        assert_eq!(read_name(Object::NAMES, "12"), None);
        assert_eq!(read_name(Object::NUMBERS, "n5-0000000042"), Some(42));
        for name in ["n5-42", "00000000x2", "", "é000000000"] {
            assert_eq!(read_name(Object::NUMBERS, name), None, "{name}");
        }
        let item = format!("{:032x}-n_0000000007", 42);
        assert_eq!(read_name(Object::QUEUE, &item), Some(42));
        for name in ["", "2a-n_0000000007", &"f".repeat(42), &format!("+{item}")] {
            assert_eq!(read_name(Object::QUEUE, name), None, "{name}");
        }
    }
}
