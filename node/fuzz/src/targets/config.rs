//! What an operator wrote: the configuration file.

use node::zoocfg::ZooCfg;

use crate::meter::{Bound, within};

/// A key and its value are kept as they were spelt, beside what they mean; a warning is a sentence.
const FILE: Bound = Bound { flat: 64 << 10, per_byte: 1024 };

pub(super) fn config(input: &[u8]) {
    let Ok(read) = within(FILE, input.len(), || ZooCfg::from_bytes(input)) else { return };
    // A comment, an empty line and blanks before a key say nothing.
    let decorated = [&b"# a comment\\\r\n\t\n  "[..], input].concat();
    assert_eq!(ZooCfg::from_bytes(&decorated).ok(), Some(read), "a file says the same with comments");
}
