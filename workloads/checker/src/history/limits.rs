//! How much of a history is held at once: the longest line, and lines read up to that.
//!
//! A file is not trusted to have ends of lines. Without a bound, one that has none would fill the memory.

use std::io::BufRead;

use super::LoadError;

/// Longest line that is read, and the longest element where elements are no lines.
pub const MAX_LINE_BYTES: usize = 1 << 20;

/// `read_until` with a limit, so that a file without newlines is refused before it fills the memory.
pub(super) fn read_line<R: BufRead>(
    reader: &mut R,
    line: &mut Vec<u8>,
    number: u64,
) -> Result<usize, LoadError> {
    loop {
        let available = reader.fill_buf()?;
        if available.is_empty() {
            return Ok(line.len());
        }
        let newline = available.iter().position(|&byte| byte == b'\n');
        let taken = newline.map_or(available.len(), |at| at + 1);
        if line.len() + taken > MAX_LINE_BYTES {
            let reason = format!("longer than {MAX_LINE_BYTES} bytes");
            return Err(LoadError::Malformed { line: number, reason });
        }
        line.extend_from_slice(&available[..taken]);
        reader.consume(taken);
        if newline.is_some() {
            return Ok(line.len());
        }
    }
}
