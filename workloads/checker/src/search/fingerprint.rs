//! Fingerprints of 128 bits for what is too large or too many to be kept, and fast hashes. Fixed, so that runs repeat.

use std::hash::{BuildHasherDefault, Hash, Hasher};

/// The finalizer of splitmix64.
fn mix(seed: u64) -> u64 {
    let mut z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A fixed pseudo-random number for each operation. The exclusive or of those of a set is the fingerprint of the set.
pub(super) fn of_operation(at: usize) -> u128 {
    let seed = u64::try_from(at).unwrap_or(u64::MAX);
    (u128::from(mix(seed ^ 0x6a09_e667_f3bc_c908)) << 64) | u128::from(mix(seed ^ 0xbb67_ae85_84ca_a73b))
}

/// The fingerprint of what an object holds.
pub(super) fn of_state(state: &impl Hash) -> u128 {
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
#[derive(Clone, Default)]
pub(super) struct Fast(u64);

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

/// For tables with [`Fast`].
pub(super) type BuildFast = BuildHasherDefault<Fast>;
