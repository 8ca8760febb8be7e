//! Text of bounded length.

use std::fmt::{self, Write};

/// The longest answer. Whoever has more watches than this has lines for them gets no use from the rest.
const MAX_BYTES: usize = 32 << 20;

/// Text that is written line by line, up to a bound.
#[derive(Debug, Default)]
pub(super) struct Report {
    text: String,
    cut: bool,
}

impl Report {
    pub(super) fn line(&mut self, line: impl fmt::Display) {
        if self.text.len() >= MAX_BYTES {
            self.cut = true;
            return;
        }
        // Writing to a String does not fail.
        let _ = writeln!(self.text, "{line}");
    }

    /// A line with a key and its value, as `conf` and `envi` have them.
    pub(super) fn pair(&mut self, key: &str, value: impl fmt::Display) {
        self.line(format_args!("{key}={value}"));
    }

    /// A line as `mntr` has them.
    pub(super) fn number(&mut self, key: &str, value: impl fmt::Display) {
        self.line(format_args!("zk_{key}\t{value}"));
    }

    pub(super) fn finish(mut self) -> String {
        if self.cut {
            self.text.push_str("cut off here: the answer is too long\n");
        }
        self.text
    }
}
