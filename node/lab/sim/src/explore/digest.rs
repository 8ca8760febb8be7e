//! States as numbers of 64 bits: what the set of visited states keeps of them.
//!
//! Two different states with one number would hide what lies behind the second. Among n states the odds that
//! any pair collides are about n²/2⁶⁵: one in 37,000 for thirty million.

use std::collections::HashSet;
use std::hash::{BuildHasherDefault, Hash, Hasher};

/// Mixes by folded multiplication: each word is multiplied into the state over 128 bits.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Digest(u64);

const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
const START: u64 = 0xa076_1d64_78bd_642f;

/// The product of 128 bits, its upper half folded onto its lower one.
#[inline]
fn fold(a: u64, b: u64) -> u64 {
    let (low, high) = a.carrying_mul(b, 0);
    low ^ high
}

impl Hasher for Digest {
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        let mut chunks = bytes.chunks_exact(8);
        for chunk in &mut chunks {
            self.write_u64(u64::from_le_bytes(chunk.try_into().expect("chunks of eight")));
        }
        let mut tail = [0; 8];
        tail[..chunks.remainder().len()].copy_from_slice(chunks.remainder());
        let length = u64::try_from(bytes.len()).expect("a length fits");
        self.write_u64(u64::from_le_bytes(tail) ^ (length << 56));
    }

    #[inline]
    fn write_u8(&mut self, value: u8) {
        self.write_u64(u64::from(value));
    }

    #[inline]
    fn write_u32(&mut self, value: u32) {
        self.write_u64(u64::from(value));
    }

    #[inline]
    fn write_u64(&mut self, value: u64) {
        self.0 = fold(self.0 ^ value ^ START, ODD ^ self.0.rotate_left(32)) ^ value.rotate_left(23);
    }

    #[inline]
    fn write_usize(&mut self, value: usize) {
        self.write_u64(u64::try_from(value).expect("a size fits"));
    }

    #[inline]
    fn finish(&self) -> u64 {
        fold(self.0 ^ ODD, START)
    }
}

/// The number of a value.
pub(super) fn of(value: &impl Hash) -> u64 {
    let mut digest = Digest::default();
    value.hash(&mut digest);
    digest.finish()
}

/// Takes a number that is well mixed already for its own hash.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Itself(u64);

impl Hasher for Itself {
    fn write(&mut self, _: &[u8]) {
        unreachable!("only numbers are kept")
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = value;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// The states that were visited. Asked for membership alone: it has no order that anything could depend on.
pub(super) type Visited = HashSet<u64, BuildHasherDefault<Itself>>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_differences_make_other_numbers() {
        let mut seen = std::collections::BTreeSet::new();
        for a in 0..300_u64 {
            for b in 0..300_u64 {
                assert!(seen.insert(of(&(a, b))), "({a}, {b}) collides");
            }
        }
        assert_ne!(of(&[0_u8; 3]), of(&[0_u8; 4]));
    }
}
