//! Finding the end of what has not been framed.

use bytes::Buf;

use super::DecodeError;

/// Looks ahead over received bytes without consuming any. What is not there yet is `None`; the caller comes
/// back with more. It reads lengths and skips what they measure, so that coming back costs little however
/// long a buffer is.
#[derive(Debug)]
pub(crate) struct Scan<'a> {
    all: &'a [u8],
    rest: &'a [u8],
}

impl<'a> Scan<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Scan<'a> {
        Scan { all: bytes, rest: bytes }
    }

    /// How many bytes were passed.
    pub(crate) fn position(&self) -> usize {
        self.all.len() - self.rest.len()
    }

    /// Whether the bytes from `start` to here are this string.
    pub(crate) fn is_at(&self, start: usize, string: &str) -> bool {
        self.all[start..self.position()] == *string.as_bytes()
    }

    pub(crate) fn int(&mut self) -> Option<i32> {
        self.rest.try_get_i32().ok()
    }

    pub(crate) fn long(&mut self) -> Option<i64> {
        self.rest.try_get_i64().ok()
    }

    /// Passes bytes whose number is known.
    pub(crate) fn skip(&mut self, len: usize) -> Option<()> {
        self.rest = self.rest.get(len..)?;
        Some(())
    }

    /// Passes the length of a buffer or the count of a vector. Null counts as nothing.
    pub(crate) fn length(&mut self, limit: usize) -> Result<Option<usize>, DecodeError> {
        match self.int() {
            None => Ok(None),
            Some(-1) => Ok(Some(0)),
            Some(wire) => bounded_length(wire, limit).map(Some),
        }
    }

    /// Passes a buffer or a string.
    pub(crate) fn buffer(&mut self, limit: usize) -> Result<Option<()>, DecodeError> {
        Ok(self.length(limit)?.and_then(|len| self.skip(len)))
    }
}

/// Checks a length that must not be null.
pub(crate) fn bounded_length(wire: i32, limit: usize) -> Result<usize, DecodeError> {
    let len = usize::try_from(wire).map_err(|_| DecodeError::NegativeLength(wire))?;
    if len > limit { Err(DecodeError::TooLong { len, limit }) } else { Ok(len) }
}
