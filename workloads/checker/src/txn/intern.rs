//! Small numbers for keys and elements.
//!
//! A history of a million transactions names few keys, and elements that are nearly always integers. Both become
//! numbers of four bytes once; what they were called is only needed again for a sentence.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use crate::history::Datum;

/// Nothing has this number.
pub(super) const NONE: u32 = u32::MAX;

/// A hasher for small keys: one multiplication for each word.
#[derive(Default)]
pub(super) struct Mix(u64);

impl Mix {
    fn word(&mut self, word: u64) {
        let product =
            u128::from(self.0 ^ word ^ 0x9e37_79b9_7f4a_7c15) * u128::from(0xd6e8_feb8_6659_fd93_u64);
        #[expect(clippy::cast_possible_truncation, reason = "both halves are folded")]
        let folded = (product as u64) ^ ((product >> 64) as u64);
        self.0 = folded;
    }
}

impl Hasher for Mix {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.word(u64::from_le_bytes(word) ^ ((chunk.len() as u64) << 59));
        }
    }

    fn write_u8(&mut self, value: u8) {
        self.word(value.into());
    }

    fn write_u32(&mut self, value: u32) {
        self.word(value.into());
    }

    fn write_u64(&mut self, value: u64) {
        self.word(value);
    }

    fn write_usize(&mut self, value: usize) {
        self.word(value as u64);
    }
}

/// A map from small keys.
pub(super) type Map<K, V> = HashMap<K, V, BuildHasherDefault<Mix>>;

/// Values of any shape, numbered in the order of their appearance.
#[derive(Debug, Default)]
pub(super) struct Names {
    numbers: Map<Datum, u32>,
    names: Vec<Datum>,
}

impl Names {
    pub(super) fn number(&mut self, name: &Datum) -> u32 {
        if let Some(&number) = self.numbers.get(name) {
            return number;
        }
        let number = to_u32(self.names.len());
        self.numbers.insert(name.clone(), number);
        self.names.push(name.clone());
        number
    }

    pub(super) fn name(&self, number: u32) -> &Datum {
        &self.names[number as usize]
    }

    pub(super) fn len(&self) -> usize {
        self.names.len()
    }
}

/// An element as it is compared: an integer, or the number of something else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Atom {
    Int(i64),
    Other(u32),
}

/// A count that was bounded before.
pub(super) fn to_u32(count: usize) -> u32 {
    u32::try_from(count).expect("a history is refused before it has so many parts")
}
