//! Hashes and fingerprints. All are fixed, so that runs repeat; none withstands somebody who wants
//! collisions, who would make the check of its own history slow and nothing else. No table with them is ever
//! iterated.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hash, Hasher};

/// A table whose hash costs one multiplication for each word of its keys.
pub(crate) type FastMap<K, V> = HashMap<K, V, BuildHasherDefault<Fast>>;

/// Configurations that a search has seen, each remembered as 128 bits.
pub(crate) type Fingerprints = HashSet<u128, BuildHasherDefault<Half>>;

/// Bytes that one of [`Fingerprints`] takes while the set grows, spare room included.
pub(crate) const FINGERPRINT_BYTES: usize = 34;

/// What splitmix64 adds from number to number: two to the 64th by the golden ratio.
pub(crate) const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// The finalizer of splitmix64: each bit of the answer depends on each of `z`.
pub(crate) fn finalize(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A number that looks random and is fixed by `seed`.
pub(crate) fn mix(seed: u64) -> u64 {
    finalize(seed.wrapping_add(GOLDEN))
}

/// 128 bits that look random; other salts give other ones.
pub(crate) fn wide(value: u64, salt: u64) -> u128 {
    let low = mix(value ^ salt.rotate_left(32) ^ 0xbb67_ae85_84ca_a73b);
    (u128::from(mix(value ^ salt)) << 64) | u128::from(low)
}

/// A fixed pseudo-random number for each operation. The exclusive or of those of a set is the fingerprint of
/// the set.
pub(crate) fn of_operation(at: usize) -> u128 {
    wide(u64::try_from(at).unwrap_or(u64::MAX), 0x6a09_e667_f3bc_c908)
}

/// The fingerprint of what an object holds.
pub(crate) fn of_state(state: &impl Hash) -> u128 {
    let mut lanes = Lanes { low: 0x3c6e_f372_fe94_f82b, high: 0xa54f_f53a_5f1d_36f1 };
    state.hash(&mut lanes);
    (u128::from(mix(lanes.high)) << 64) | u128::from(mix(lanes.low))
}

/// Two independent hashes of the same words.
struct Lanes {
    low: u64,
    high: u64,
}

impl Lanes {
    fn add(&mut self, word: u64) {
        self.low = mix(self.low ^ word);
        self.high = mix(self.high.rotate_left(23) ^ word.wrapping_mul(0xf135_7aea_2e62_a9c5));
    }
}

/// The words of `bytes`, the last one filled up and marked by its length.
fn words(bytes: &[u8]) -> impl Iterator<Item = u64> {
    bytes.chunks(8).map(|chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        u64::from_le_bytes(word)
    })
}

macro_rules! integers {
    () => {
        fn write_u8(&mut self, value: u8) {
            self.add(u64::from(value));
        }

        fn write_u32(&mut self, value: u32) {
            self.add(u64::from(value));
        }

        fn write_u64(&mut self, value: u64) {
            self.add(value);
        }

        fn write_u128(&mut self, value: u128) {
            self.write_u64(u64::try_from(value >> 64).unwrap_or(0));
            self.write_u64(u64::try_from(value & u128::from(u64::MAX)).unwrap_or(0));
        }

        fn write_usize(&mut self, value: usize) {
            self.add(u64::try_from(value).unwrap_or(u64::MAX));
        }
    };
}

impl Hasher for Lanes {
    fn finish(&self) -> u64 {
        self.low
    }

    fn write(&mut self, bytes: &[u8]) {
        self.add(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
        words(bytes).for_each(|word| self.add(word));
    }

    integers!();
}

/// A fast multiplicative hash for tables; keys are not chosen by anyone hostile.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Fast(u64);

impl Fast {
    fn add(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(26) ^ word).wrapping_mul(0xf135_7aea_2e62_a9c5);
    }
}

impl Hasher for Fast {
    fn finish(&self) -> u64 {
        self.0.rotate_left(20)
    }

    fn write(&mut self, bytes: &[u8]) {
        words(bytes).for_each(|word| self.add(word));
    }

    integers!();
}

/// A fingerprint is as good as random already; half of it is the hash.
#[derive(Default)]
pub(crate) struct Half(u64);

impl Hasher for Half {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(byte);
        }
    }

    fn write_u128(&mut self, value: u128) {
        self.0 = u64::try_from(value & u128::from(u64::MAX)).unwrap_or(0);
    }
}
