//! Writes a history while a run goes, and seals it with a trailer.

use std::io::{self, Write};

use sha2::{Digest, Sha256};

use super::Event;

/// Writes events as lines, counts them and hashes the bytes.
///
/// The writer does not buffer: give it a buffered one, and flush that as often as a killed run may cost.
pub struct HistoryWriter<W: Write> {
    out: W,
    hash: Sha256,
    count: u64,
    line: Vec<u8>,
}

/// A sealed history.
#[derive(Debug)]
pub struct Finished<W> {
    /// What was written to.
    pub into_inner: W,
    /// Lines before the trailer.
    pub count: u64,
    /// SHA-256 of all bytes before the trailer, as lower-case hexadecimal.
    pub sha256: String,
}

impl<W: Write> HistoryWriter<W> {
    /// A history that begins here.
    pub fn new(out: W) -> Self {
        Self { out, hash: Sha256::new(), count: 0, line: Vec::with_capacity(256) }
    }

    /// Writes one event, gives it the next index, and returns that.
    ///
    /// # Errors
    /// What the writer underneath returns; after an error the history can't be sealed truthfully and is to be
    /// given up.
    pub fn write(&mut self, event: &mut Event) -> io::Result<u64> {
        event.index = self.count;
        self.line.clear();
        serde_json::to_writer(&mut self.line, event)?;
        self.line.push(b'\n');
        self.out.write_all(&self.line)?;
        self.hash.update(&self.line);
        self.count += 1;
        Ok(event.index)
    }

    /// Hands on what is buffered underneath.
    ///
    /// # Errors
    /// What the writer underneath returns.
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    /// Lines written so far.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Writes the trailer and flushes.
    ///
    /// # Errors
    /// What the writer underneath returns.
    pub fn finish(mut self) -> io::Result<Finished<W>> {
        let sha256 = hex(&self.hash.finalize());
        writeln!(self.out, "{{\"trailer\":true,\"count\":{},\"sha256\":\"{sha256}\"}}", self.count)?;
        self.out.flush()?;
        Ok(Finished { into_inner: self.out, count: self.count, sha256 })
    }
}

/// Lower-case hexadecimal.
pub(super) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        // Writing to a String does not fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::{EventKind, Function, Value};

    #[test]
    fn a_line_has_the_documented_form() {
        let mut writer = HistoryWriter::new(Vec::new());
        let mut invoke = Event::new(3, EventKind::Invoke, Function::CAS, 1, Value::Pair(Some(4), 5), 1000);
        invoke.due = Some(900);
        invoke.node = Some(2);
        invoke.session = Some(0x1f);
        invoke.expect = Some(7);
        assert_eq!(writer.write(&mut invoke).unwrap(), 0);
        let mut fail = Event::new(3, EventKind::Fail, Function::CAS, 1, Value::Pair(Some(4), 5), 2000);
        fail.zxid = Some(0x1_0000_0001);
        fail.error = Some("bad-version".into());
        assert_eq!(writer.write(&mut fail).unwrap(), 1);
        let finished = writer.finish().unwrap();
        let text = String::from_utf8(finished.into_inner).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines[0],
            concat!(
                r#"{"index":0,"process":3,"type":"invoke","f":"cas","key":1,"value":[4,5],"time":1000,"#,
                r#""due":900,"node":2,"session":"0x1f","expect":7}"#
            )
        );
        assert_eq!(
            lines[1],
            concat!(
                r#"{"index":1,"process":3,"type":"fail","f":"cas","key":1,"value":[4,5],"time":2000,"#,
                r#""zxid":"0x100000001","error":"bad-version"}"#
            )
        );
        assert!(lines[2].starts_with(r#"{"trailer":true,"count":2,"sha256":""#));
    }
}
