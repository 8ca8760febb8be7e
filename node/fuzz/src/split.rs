//! One input as several: a sequence of pieces in one byte string.

use std::ops::Range;

/// Cuts an input into pieces. Each piece has its length before it, as one byte, or as 255 and two more; the
/// last one is as long as what is left. Every byte string is such a sequence, so that no mutation is in vain.
pub fn split(input: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let piece = next(input, at)?;
        at = piece.end;
        Some(&input[piece])
    })
}

fn next(input: &[u8], at: usize) -> Option<Range<usize>> {
    let (len, start) = match *input.get(at..)? {
        [] => return None,
        [255, high, low, ..] => (usize::from(u16::from_be_bytes([high, low])), at + 3),
        [len, ..] => (usize::from(len), at + 1),
    };
    Some(start..start.saturating_add(len).min(input.len()))
}

/// The inverse, for seeds.
///
/// # Panics
/// When a piece is longer than 65535 bytes.
#[must_use]
pub(crate) fn join<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut joined = Vec::new();
    for piece in pieces {
        match u8::try_from(piece.len()) {
            Ok(len) if len < 255 => joined.push(len),
            _ => {
                let len = u16::try_from(piece.len()).expect("a piece of a seed is short");
                joined.push(255);
                joined.extend(len.to_be_bytes());
            }
        }
        joined.extend_from_slice(piece);
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_joined_is_split_again() {
        let pieces = [&b"a"[..], b"", &[7; 254], &[8; 255], &[9; 1000]];
        let joined = join(pieces);
        assert_eq!(split(&joined).collect::<Vec<_>>(), pieces);
    }

    #[test]
    fn anything_can_be_split() {
        assert_eq!(split(b"").count(), 0);
        assert_eq!(split(&[3, 1]).collect::<Vec<_>>(), [[1]]);
        assert_eq!(split(&[255, 0]).collect::<Vec<_>>(), [[0]]);
        assert_eq!(split(&[255]).collect::<Vec<_>>(), [[0_u8; 0]]);
    }
}
