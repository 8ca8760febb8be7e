//! Lines out of a stream of bytes, each of bounded length.

/// Longest request, in bytes.
pub(crate) const MAX_LINE: usize = 64 * 1024;

/// What was cut out of the stream.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    /// A line, without its end.
    Line(Vec<u8>),
    /// A line that was too long; it is gone.
    TooLong,
}

/// The beginning of a line whose end has not come yet.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    begun: Vec<u8>,
    /// The line that is coming is too long, its rest is thrown away.
    skipping: bool,
}

impl Lines {
    /// Takes bytes in, gives the lines that they complete.
    pub(crate) fn take(&mut self, mut bytes: &[u8]) -> Vec<Cut> {
        let mut cuts = Vec::new();
        while let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
            let (part, rest) = bytes.split_at(end);
            bytes = rest.get(1..).unwrap_or_default();
            self.append(part);
            let line = std::mem::take(&mut self.begun);
            if std::mem::take(&mut self.skipping) {
                cuts.push(Cut::TooLong);
            } else if !line.iter().all(u8::is_ascii_whitespace) {
                cuts.push(Cut::Line(line));
            }
        }
        self.append(bytes);
        cuts
    }

    fn append(&mut self, part: &[u8]) {
        if self.skipping || self.begun.len() + part.len() > MAX_LINE {
            self.skipping = true;
            self.begun = Vec::new();
        } else {
            self.begun.extend_from_slice(part);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_may_come_in_any_pieces() {
        let mut lines = Lines::default();
        assert_eq!(lines.take(b"on"), []);
        assert_eq!(lines.take(b"e\ntwo\n\n\r\nth"), [Cut::Line(b"one".to_vec()), Cut::Line(b"two".to_vec())]);
        assert_eq!(lines.take(b"ree\n"), [Cut::Line(b"three".to_vec())]);
    }

    #[test]
    fn a_line_without_end_takes_no_memory_and_the_next_one_is_read() {
        let mut lines = Lines::default();
        for _ in 0..100 {
            assert_eq!(lines.take(&[b'x'; 4096]), []);
            assert!(lines.begun.capacity() <= 2 * MAX_LINE);
        }
        assert_eq!(lines.take(b"\nnext\n"), [Cut::TooLong, Cut::Line(b"next".to_vec())]);
    }

    #[test]
    fn the_longest_line_is_taken() {
        let mut lines = Lines::default();
        let mut bytes = vec![b'x'; MAX_LINE];
        bytes.push(b'\n');
        assert_eq!(lines.take(&bytes), [Cut::Line(vec![b'x'; MAX_LINE])]);
        bytes.insert(0, b'x');
        assert_eq!(lines.take(&bytes), [Cut::TooLong]);
    }
}
