//! How values are shown.

use bytes::Bytes;
use node_wire::client::{Acl, PERM_ADMIN, PERM_CREATE, PERM_DELETE, PERM_READ, PERM_WRITE};
use serde_json::{Map, Value, json};

/// Letters of data that stand in a line of text.
const SHOWN: usize = 64;

/// Milliseconds since the Unix epoch as a date.
pub(super) fn time(ms: i64) -> String {
    jiff::Timestamp::from_millisecond(ms).map_or_else(|_| format!("{ms} ms"), |at| format!("{at:.3}"))
}

/// Data in a line: as text where it is text, and not too much of it.
pub(super) fn data(data: Option<&Bytes>) -> String {
    match data {
        None => "null".to_owned(),
        Some(data) => match std::str::from_utf8(data) {
            Ok(text) if !text.chars().any(char::is_control) => {
                let shown: String = text.chars().take(SHOWN).collect();
                let more = if shown.len() < text.len() { "..." } else { "" };
                format!("{} bytes \"{shown}\"{more}", data.len())
            }
            Ok(_) | Err(_) => format!("{} bytes", data.len()),
        },
    }
}

/// All of the data, as text where it is text.
pub(super) fn put_data(fields: &mut Map<String, Value>, data: Option<&Bytes>) {
    let (name, value) = match data {
        None => ("data", Value::Null),
        Some(data) => match std::str::from_utf8(data) {
            Ok(text) => ("data", json!(text)),
            Err(_) => ("data_hex", json!(data.iter().map(|byte| format!("{byte:02x}")).collect::<String>())),
        },
    };
    fields.insert(name.to_owned(), value);
}

/// A list as ZooKeeper's shell writes it.
pub(super) fn acl(list: &[Acl]) -> String {
    let entry = |acl: &Acl| format!("{}:{}:{}", acl.scheme, acl.id, perms(acl.perms));
    list.iter().map(entry).collect::<Vec<_>>().join(",")
}

fn perms(perms: i32) -> String {
    let letters =
        [(PERM_CREATE, 'c'), (PERM_DELETE, 'd'), (PERM_READ, 'r'), (PERM_WRITE, 'w'), (PERM_ADMIN, 'a')];
    letters.iter().filter(|(bit, _)| perms & bit != 0).map(|(_, letter)| *letter).collect()
}
