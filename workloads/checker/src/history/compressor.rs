//! Compresses a history with zstd while it is written.
//!
//! Whatever is flushed becomes a frame of its own, written at once. So a reader finds whole frames at any
//! moment, and a writer that is killed loses what it had not flushed, and no more. Long frames compress
//! better: flush as seldom as a killed run may cost.

use std::io::{self, Write};

use ruzstd::encoding::{CompressionLevel, compress_to_vec};

/// Bytes of a frame's content at most: one block, so that nothing of a frame that is cut short is read.
const MAX_FRAME_BYTES: usize = 128 << 10;

/// Writes frames of zstd. What is not flushed is lost when it is dropped.
pub struct Compressor<W: Write> {
    out: W,
    waiting: Vec<u8>,
}

impl<W: Write> Compressor<W> {
    /// Nothing was written yet.
    pub fn new(out: W) -> Self {
        Self { out, waiting: Vec::with_capacity(MAX_FRAME_BYTES) }
    }

    fn write_frame(&mut self) -> io::Result<()> {
        if !self.waiting.is_empty() {
            self.out.write_all(&compress_to_vec(self.waiting.as_slice(), CompressionLevel::Fastest))?;
            self.waiting.clear();
        }
        Ok(())
    }
}

impl<W: Write> Write for Compressor<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.waiting.len() == MAX_FRAME_BYTES {
            self.write_frame()?;
        }
        let taken = bytes.len().min(MAX_FRAME_BYTES - self.waiting.len());
        self.waiting.extend_from_slice(&bytes[..taken]);
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.write_frame()?;
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::{Event, EventKind, Extent, Function, HistoryWriter, Value, load};

    /// A history of writes, one after the other, and where its frames end.
    fn written(ops: u64, each: u64) -> (Vec<u8>, Vec<usize>) {
        let mut history = HistoryWriter::new(Compressor::new(Vec::new()));
        for op in 0..ops {
            let value = Value::One(op.cast_signed());
            for (kind, at) in [(EventKind::Invoke, op * 10), (EventKind::Ok, op * 10 + 5)] {
                let mut event = Event::new(0, kind, Function::WRITE, 0, value.clone(), at);
                event.node = Some(1);
                history.write(&mut event).unwrap();
            }
            if op % each == each - 1 {
                history.flush().unwrap();
            }
        }
        let bytes = history.finish().unwrap().into_inner.out;
        let begins = |at: &usize| bytes[*at..].starts_with(&[0x28, 0xb5, 0x2f, 0xfd]);
        let ends = (1..bytes.len()).filter(begins).collect();
        (bytes, ends)
    }

    #[test]
    fn what_was_written_is_read_back_whole_and_is_a_small_part_of_its_size() {
        for each in [1, 7, 100, 100_000] {
            let loaded = load(written(2000, each).0.as_slice()).unwrap();
            assert!(loaded.extent.is_whole(), "{:?}", loaded.problem);
            assert_eq!(loaded.history.ops().len(), 2000);
        }
        let mut plain = HistoryWriter::new(Vec::new());
        for op in 0..4000 {
            let mut event = Event::new(0, EventKind::Invoke, Function::READ, 0, Value::Null, op);
            event.node = Some(1);
            plain.write(&mut event).unwrap();
        }
        let (small, _) = written(2000, 50);
        assert!(small.len() * 4 < plain.finish().unwrap().into_inner.len(), "{} bytes", small.len());
    }

    #[test]
    fn nothing_follows_the_trailer_and_no_part_of_a_frame_either() {
        let (mut bytes, ends) = written(300, 50);
        assert!(load(bytes.as_slice()).unwrap().extent.is_whole());
        let begun = bytes[..ends[0] / 2].to_vec();
        bytes.extend(begun);
        assert!(load(bytes.as_slice()).unwrap_err().to_string().contains("cut short"));
    }

    #[test]
    fn a_history_whose_last_frame_is_cut_short_is_its_beginning() {
        let (bytes, ends) = written(300, 50);
        assert_eq!(ends.len(), 6);
        for cut in ends[0] + 1..bytes.len() {
            let loaded = load(&bytes[..cut]).unwrap();
            let whole = ends.iter().filter(|&&end| end <= cut).count();
            assert_eq!(loaded.extent, Extent::Beginning, "cut at {cut}");
            assert_eq!(loaded.history.ops().len(), 50 * whole, "cut at {cut}");
            let problem = loaded.problem.unwrap();
            assert_eq!(problem.contains("cut short"), !ends.contains(&cut), "cut at {cut}: {problem}");
        }
    }
}
