//! Texts that grow at their end: cheap to append to, to clone, to hash and mostly to compare.
//!
//! A search makes a text of every order of appends that it tries, and nearly all of them are a known text
//! with one more piece. So a text is a flat beginning that many share, and a chain of the pieces behind it.
//! Its hash is a polynomial over the bytes, which an appended piece continues. Two texts whose hashes differ
//! are different; the others are compared byte by byte, so that no verdict rests on a hash.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// A text in pieces.
#[derive(Clone, Debug)]
pub struct Text {
    hash: u128,
    bytes: usize,
    start: Arc<str>,
    end: Option<Arc<Piece>>,
}

/// A piece behind others.
#[derive(Debug)]
struct Piece {
    before: Option<Arc<Piece>>,
    text: Arc<str>,
    /// Its place in the chain, from 1.
    nth: u8,
}

/// A chain that is longer is made flat, so that neither looking through it nor dropping it takes long.
const MOST_PIECES: u8 = 64;

impl Text {
    /// A flat text.
    pub(super) fn new(text: Arc<str>) -> Self {
        Self { hash: extend(0, &text), bytes: text.len(), start: text, end: None }
    }

    /// The same with `end` behind it.
    pub(super) fn append(&self, end: &Arc<str>) -> Self {
        if end.is_empty() {
            return self.clone();
        }
        let nth = self.end.as_ref().map_or(0, |last| last.nth);
        let (hash, bytes) = (extend(self.hash, end), self.bytes + end.len());
        if nth == MOST_PIECES {
            let mut flat = self.flat();
            flat.push_str(end);
            return Self { hash, bytes, start: flat.into(), end: None };
        }
        let piece = Piece { before: self.end.clone(), text: Arc::clone(end), nth: nth + 1 };
        Self { hash, bytes, start: Arc::clone(&self.start), end: Some(Arc::new(piece)) }
    }

    /// Some text of which it does not matter what it is: it equals itself and no other, and is not to be
    /// appended to.
    pub(super) fn any() -> Self {
        Self { hash: 0, bytes: usize::MAX, start: "…".into(), end: None }
    }

    /// Whether it is [`Self::any`].
    pub(super) fn is_any(&self) -> bool {
        self.bytes == usize::MAX
    }

    /// The hash, which is that of the flat text too.
    pub(super) fn hash(&self) -> u128 {
        self.hash
    }

    /// Whether nothing is in it.
    pub(super) fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Whether it is in one piece.
    pub(super) fn is_flat(&self) -> bool {
        self.end.is_none()
    }

    /// Bytes that nobody else holds.
    pub(super) fn own_bytes(&self) -> usize {
        if self.is_flat() { 0 } else { size_of::<Piece>() + 2 * size_of::<usize>() }
    }

    /// The pieces, the last one first.
    fn pieces(&self) -> impl Iterator<Item = &str> {
        let chain = std::iter::successors(self.end.as_deref(), |piece| piece.before.as_deref());
        chain.map(|piece| &*piece.text).chain([&*self.start])
    }

    /// The whole in one piece.
    pub(super) fn flat(&self) -> String {
        let pieces: Vec<&str> = self.pieces().collect();
        let mut flat = String::with_capacity(pieces.iter().map(|piece| piece.len()).sum());
        pieces.into_iter().rev().for_each(|piece| flat.push_str(piece));
        flat
    }
}

impl PartialEq for Text {
    fn eq(&self, other: &Self) -> bool {
        if (self.hash, self.bytes) != (other.hash, other.bytes) {
            return false;
        }
        let same_end = match (&self.end, &other.end) {
            (None, None) => true,
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            (None, Some(_)) | (Some(_), None) => false,
        };
        same_end && (Arc::ptr_eq(&self.start, &other.start) || self.start == other.start)
            || same_bytes(self.pieces(), other.pieces())
    }
}

impl Eq for Text {}

/// Whether two texts of one length are the same, by their pieces from the end.
fn same_bytes<'a>(mut one: impl Iterator<Item = &'a str>, mut other: impl Iterator<Item = &'a str>) -> bool {
    let (mut left, mut right): (&[u8], &[u8]) = (&[], &[]);
    loop {
        while left.is_empty() {
            let Some(piece) = one.next() else { return true };
            left = piece.as_bytes();
        }
        while right.is_empty() {
            let Some(piece) = other.next() else { return true };
            right = piece.as_bytes();
        }
        let common = left.len().min(right.len());
        let (left_rest, left_end) = left.split_at(left.len() - common);
        let (right_rest, right_end) = right.split_at(right.len() - common);
        if left_end != right_end {
            return false;
        }
        (left, right) = (left_rest, right_rest);
    }
}

impl Hash for Text {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u128(self.hash);
    }
}

/// A polynomial over the bytes, so that the hash of an appended text does not look at what was there.
fn extend(hash: u128, text: &str) -> u128 {
    text.bytes().fold(hash, extend_by)
}

/// The hash of a text with one more byte, from that of the text; that of the empty one is 0.
pub(super) fn extend_by(hash: u128, byte: u8) -> u128 {
    const FACTOR: u128 = 0x2d35_8dcc_aa6c_78a5_8bb8_4b93_962e_acc9;
    (hash ^ (hash >> 71)).wrapping_mul(FACTOR).wrapping_add(u128::from(byte) + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn however_a_text_came_about_it_equals_the_flat_one() {
        let (mut pieces, mut flat) = (Text::new("".into()), String::new());
        for n in 0..200 {
            let piece: Arc<str> = format!("{n}{}", "é".repeat(n % 3)).into();
            pieces = pieces.append(&piece);
            flat.push_str(&piece);
            let whole = Text::new(flat.as_str().into());
            assert_eq!(pieces, whole, "{n}");
            assert_eq!(pieces.flat(), flat, "{n}");
            assert_eq!(pieces, Text::new("".into()).append(&flat.as_str().into()));
        }
    }

    #[test]
    fn texts_of_one_hash_are_compared_byte_by_byte() {
        let one = Text::new("ab".into()).append(&"cd".into());
        let other = Text { hash: one.hash, ..Text::new("abce".into()) };
        let same = Text { hash: one.hash, ..Text::new("a".into()).append(&"bcd".into()) };
        assert_ne!(one, other);
        assert_eq!(one, same);
    }
}
