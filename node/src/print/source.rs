//! A file of any length, read in pieces as large as what is being read.

use std::io::{self, Read};

use bytes::{Bytes, BytesMut};
use node_wire::jute::{DecodeError, Reader};
use simd_adler32::Adler32;

/// How much is read at a time.
const PIECE: usize = 64 << 10;

/// What is between the last value that was taken and the end of what was read.
pub(super) struct Source {
    file: Box<dyn Read>,
    window: Bytes,
    offset: u64,
    checksum: Adler32,
}

impl Source {
    pub(super) fn new(file: impl Read + 'static) -> Self {
        Self { file: Box::new(file), window: Bytes::new(), offset: 0, checksum: Adler32::new() }
    }

    /// Where the next value begins.
    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    /// Adler-32 of all that was taken, as long as ZooKeeper writes it.
    pub(super) fn checksum(&self) -> i64 {
        i64::from(self.checksum.finish())
    }

    /// Takes the next value, or leaves everything as it is. The inner error is about what is in the file.
    pub(super) fn take<T>(
        &mut self,
        decode: impl Fn(&mut Reader) -> Result<T, DecodeError>,
    ) -> io::Result<Result<T, DecodeError>> {
        loop {
            let mut reader = Reader::new(self.window.clone());
            match decode(&mut reader) {
                Ok(value) => {
                    let taken = self.window.split_to(self.window.len() - reader.remaining());
                    self.checksum.write(&taken);
                    self.offset += taken.len() as u64;
                    return Ok(Ok(value));
                }
                Err(DecodeError::Truncated { need, have }) => {
                    if !self.read(need.saturating_sub(have))? {
                        return Ok(Err(DecodeError::Truncated { need, have }));
                    }
                }
                Err(error) => return Ok(Err(error)),
            }
        }
    }

    /// True when nothing follows.
    pub(super) fn is_at_the_end(&mut self) -> io::Result<bool> {
        Ok(self.window.is_empty() && !self.read(PIECE)?)
    }

    /// True when nothing but zeros follows, to the end of the file. Takes them.
    pub(super) fn is_zeros_to_the_end(&mut self) -> io::Result<bool> {
        loop {
            if self.window.iter().any(|byte| *byte != 0) {
                return Ok(false);
            }
            self.offset += self.window.len() as u64;
            self.window = Bytes::new();
            if !self.read(PIECE)? {
                return Ok(true);
            }
        }
    }

    /// Reads on. False at the end of the file.
    fn read(&mut self, wanted: usize) -> io::Result<bool> {
        let wanted = wanted.max(PIECE);
        let mut bytes = BytesMut::with_capacity(self.window.len() + wanted);
        bytes.extend_from_slice(&self.window);
        let start = bytes.len();
        bytes.resize(start + wanted, 0);
        let mut filled = start;
        while filled < bytes.len() {
            match self.file.read(&mut bytes[filled..]) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        bytes.truncate(filled);
        self.window = bytes.freeze();
        Ok(filled > start)
    }
}
