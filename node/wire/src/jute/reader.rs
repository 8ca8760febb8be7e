//! Taking jute apart.

use bytes::{Buf, Bytes};
use bytestring::ByteString;

use super::limits::{MAX_BUFFER, MAX_VECTOR};
use super::{DecodeError, bounded_length};

/// Reads values from the front of a byte string. What it hands out are slices of the same memory.
///
/// A failed read may have consumed a part of the value: the reader is of no further use then.
#[derive(Clone, Debug)]
pub struct Reader {
    bytes: Bytes,
}

impl Reader {
    /// Starts at the first byte.
    #[must_use]
    pub fn new(bytes: Bytes) -> Reader {
        Reader { bytes }
    }

    /// How many bytes are left.
    #[must_use]
    pub fn remaining(&self) -> usize {
        self.bytes.len()
    }

    /// Everything that is left.
    #[must_use]
    pub fn rest(self) -> Bytes {
        self.bytes
    }

    /// Reads one byte.
    ///
    /// # Errors
    /// [`DecodeError::Truncated`].
    pub fn byte(&mut self) -> Result<u8, DecodeError> {
        self.need(1)?;
        Ok(self.bytes.get_u8())
    }

    /// Reads a bool. Any byte but 0 is true, as for Java.
    ///
    /// # Errors
    /// [`DecodeError::Truncated`].
    pub fn bool(&mut self) -> Result<bool, DecodeError> {
        Ok(self.byte()? != 0)
    }

    /// Reads an int.
    ///
    /// # Errors
    /// [`DecodeError::Truncated`].
    pub fn int(&mut self) -> Result<i32, DecodeError> {
        self.need(4)?;
        Ok(self.bytes.get_i32())
    }

    /// Reads a long.
    ///
    /// # Errors
    /// [`DecodeError::Truncated`].
    pub fn long(&mut self) -> Result<i64, DecodeError> {
        self.need(8)?;
        Ok(self.bytes.get_i64())
    }

    /// Reads a buffer, which may be null.
    ///
    /// # Errors
    /// When the length is negative or beyond [`MAX_BUFFER`], or the bytes end before it.
    pub fn buffer(&mut self) -> Result<Option<Bytes>, DecodeError> {
        match self.length(MAX_BUFFER)? {
            None => Ok(None),
            Some(len) => self.take(len).map(Some),
        }
    }

    /// Reads a string that must not be null.
    ///
    /// # Errors
    /// As for [`Reader::buffer`], and when it is null or not UTF-8.
    pub fn string(&mut self) -> Result<ByteString, DecodeError> {
        self.optional_string()?.ok_or(DecodeError::NegativeLength(-1))
    }

    /// Reads a string, which may be null.
    ///
    /// # Errors
    /// As for [`Reader::buffer`], and when it is not UTF-8.
    pub fn optional_string(&mut self) -> Result<Option<ByteString>, DecodeError> {
        match self.buffer()? {
            None => Ok(None),
            Some(bytes) => ByteString::try_from(bytes).map(Some).map_err(|_| DecodeError::NotUtf8),
        }
    }

    /// Reads the count of a vector, null being `None`, whose elements take `min_len` bytes each or more.
    ///
    /// # Errors
    /// When the count is negative, or more than [`MAX_VECTOR`], or more than the bytes that are left can
    /// hold.
    pub fn count(&mut self, min_len: usize) -> Result<Option<usize>, DecodeError> {
        let count = self.length(MAX_VECTOR)?;
        if let Some(count) = count {
            self.need(count.saturating_mul(min_len))?;
        }
        Ok(count)
    }

    /// Takes the next bytes as they are.
    ///
    /// # Errors
    /// [`DecodeError::Truncated`].
    pub fn take(&mut self, len: usize) -> Result<Bytes, DecodeError> {
        self.need(len)?;
        Ok(self.bytes.split_to(len))
    }

    fn length(&mut self, limit: usize) -> Result<Option<usize>, DecodeError> {
        match self.int()? {
            -1 => Ok(None),
            wire => bounded_length(wire, limit).map(Some),
        }
    }

    fn need(&self, need: usize) -> Result<(), DecodeError> {
        let have = self.bytes.len();
        if have < need { Err(DecodeError::Truncated { need, have }) } else { Ok(()) }
    }
}
