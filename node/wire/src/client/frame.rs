//! Frames: 4 bytes of length, then as many bytes.

use bytes::{Buf, BufMut, Bytes, BytesMut};

use crate::jute::{DecodeError, Writer, bounded_length};

/// How long the length is.
const PREFIX: usize = 4;

/// Appends a frame that holds what `body` writes.
///
/// # Panics
/// When the body does not fit into an int's length.
pub fn put_frame(buffer: &mut BytesMut, body: impl FnOnce(&mut Writer<'_>)) {
    let start = buffer.len();
    buffer.put_i32(0);
    body(&mut Writer::new(buffer));
    let len = i32::try_from(buffer.len() - start - PREFIX).expect("a frame's length fits into an int");
    buffer[start..start + PREFIX].copy_from_slice(&len.to_be_bytes());
}

/// Takes a frame's body off the front of what was received, once it is there whole.
///
/// Nothing is allocated before the bytes have come, however long the frame says it is.
///
/// # Errors
/// When the length is negative or beyond `limit`. The stream can't be followed any further then.
pub fn take_frame(buffer: &mut BytesMut, limit: usize) -> Result<Option<Bytes>, DecodeError> {
    let Some(prefix) = buffer.first_chunk::<PREFIX>() else { return Ok(None) };
    let len = bounded_length(i32::from_be_bytes(*prefix), limit)?;
    if buffer.len() - PREFIX < len {
        return Ok(None);
    }
    buffer.advance(PREFIX);
    Ok(Some(buffer.split_to(len).freeze()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_taken_only_whole() {
        let mut sent = BytesMut::new();
        put_frame(&mut sent, |w| w.int(7));
        put_frame(&mut sent, |_| {});
        assert_eq!(&sent[..], [0, 0, 0, 4, 0, 0, 0, 7, 0, 0, 0, 0]);

        let mut received = BytesMut::new();
        for &byte in &sent[..7] {
            received.put_u8(byte);
            assert_eq!(take_frame(&mut received, 4), Ok(None));
        }
        received.put_slice(&sent[7..]);
        assert_eq!(take_frame(&mut received, 4), Ok(Some(Bytes::from_static(&[0, 0, 0, 7]))));
        assert_eq!(take_frame(&mut received, 4), Ok(Some(Bytes::new())));
        assert_eq!(take_frame(&mut received, 4), Ok(None));
    }

    #[test]
    fn a_length_beyond_the_limit_is_refused_before_its_bytes_come() {
        let mut long = BytesMut::from(&5_i32.to_be_bytes()[..]);
        assert_eq!(take_frame(&mut long, 4), Err(DecodeError::TooLong { len: 5, limit: 4 }));
        let mut negative = BytesMut::from(&(-1_i32).to_be_bytes()[..]);
        assert_eq!(take_frame(&mut negative, 4), Err(DecodeError::NegativeLength(-1)));
    }
}
