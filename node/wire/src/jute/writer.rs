//! Putting jute together.

use bytes::{BufMut, Bytes, BytesMut};

/// Appends values to a buffer of the caller's.
///
/// Writing does not fail: lengths that don't fit into an int are errors of the program, and panic.
#[derive(Debug)]
pub struct Writer<'a> {
    buffer: &'a mut BytesMut,
}

impl<'a> Writer<'a> {
    /// Appends behind what is there.
    pub fn new(buffer: &'a mut BytesMut) -> Writer<'a> {
        Writer { buffer }
    }

    /// Writes one byte.
    pub fn byte(&mut self, value: u8) {
        self.buffer.put_u8(value);
    }

    /// Writes a bool.
    pub fn bool(&mut self, value: bool) {
        self.buffer.put_u8(u8::from(value));
    }

    /// Writes an int.
    pub fn int(&mut self, value: i32) {
        self.buffer.put_i32(value);
    }

    /// Writes a long.
    pub fn long(&mut self, value: i64) {
        self.buffer.put_i64(value);
    }

    /// Writes a buffer that is there.
    pub fn buffer(&mut self, value: &[u8]) {
        self.count(value.len());
        self.buffer.put_slice(value);
    }

    /// Writes a string that is there.
    pub fn string(&mut self, value: &str) {
        self.buffer(value.as_bytes());
    }

    /// Writes null: as a string, a buffer or a vector.
    pub fn null(&mut self) {
        self.int(-1);
    }

    /// Writes the length of a buffer, or the count of a vector whose elements follow.
    ///
    /// # Panics
    /// When it does not fit into an int.
    pub fn count(&mut self, count: usize) {
        self.int(i32::try_from(count).expect("a length on the wire fits into an int"));
    }

    /// Writes bytes as they are, without a length.
    pub fn raw(&mut self, bytes: &[u8]) {
        self.buffer.put_slice(bytes);
    }
}

/// Gives what `body` writes, in a buffer of its own.
#[must_use]
pub fn encode(body: impl FnOnce(&mut Writer<'_>)) -> Bytes {
    let mut buffer = BytesMut::new();
    body(&mut Writer::new(&mut buffer));
    buffer.freeze()
}
