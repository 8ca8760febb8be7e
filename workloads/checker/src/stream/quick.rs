//! A hash for integers that come from a history: a multiplication instead of a cipher.
//!
//! Maps with it are never iterated. Whoever makes a history that collides makes its own check slow, and nothing else.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A map by integers.
pub(crate) type QuickMap<K, V> = HashMap<K, V, BuildHasherDefault<Quick>>;

/// Folds what it is given with odd constants (the golden ratio's and its multiple).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Quick(u64);

impl Hasher for Quick {
    fn finish(&self) -> u64 {
        // Tables take the low bits for the place and the high ones for the tag; the product is good in the high ones.
        self.0 ^ (self.0 >> 32)
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u64(u64::from(byte)));
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(23) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn write_i64(&mut self, word: i64) {
        self.write_u64(word.cast_unsigned());
    }

    fn write_isize(&mut self, word: isize) {
        self.write_u64(u64::try_from(word).unwrap_or(u64::MAX));
    }
}
