//! What an operator wrote: the configuration file.

use node::zoocfg::ZooCfg;

use crate::meter::{Bound, within};

/// A key and its value are kept as they were spelt, beside what they mean; a warning is a sentence.
const FILE: Bound = Bound { flat: 64 << 10, per_byte: 1024 };

pub(super) fn config(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let Ok(read) = within(FILE, text.len(), || text.parse::<ZooCfg>()) else { return };
    // Comments and the ends of lines say nothing.
    let decorated: String =
        text.lines().flat_map(|line| ["# a comment\r\n", "  ", line, "\r\n", "\n"]).collect();
    assert_eq!(decorated.parse::<ZooCfg>().ok(), Some(read), "a file says the same with comments");
}
