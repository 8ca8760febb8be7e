//! One seed decides everything that is drawn.
//!
//! Each part of a run draws from a stream of its own, named after it. So a change in what one part draws
//! (one more operation, say) leaves the schedule of the faults as it was, and a run can be repeated with
//! another rate and the same faults.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

/// Streams are keyed by the seed and by this much of their name.
const NAME_BYTES: usize = 24;

/// The stream called `name`. Names differ in their first 24 bytes.
#[must_use]
pub fn stream(seed: u64, name: &str) -> ChaCha8Rng {
    let mut key = [0_u8; 32];
    key[..8].copy_from_slice(&seed.to_le_bytes());
    let name = name.as_bytes();
    let length = name.len().min(NAME_BYTES);
    key[8..8 + length].copy_from_slice(&name[..length]);
    ChaCha8Rng::from_seed(key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::Rng;

    #[test]
    fn a_stream_repeats_from_seed_and_name_and_from_nothing_less() {
        assert_eq!(stream(7, "schedule").next_u64(), stream(7, "schedule").next_u64());
        assert_ne!(stream(7, "schedule").next_u64(), stream(8, "schedule").next_u64());
        assert_ne!(stream(7, "schedule").next_u64(), stream(7, "load").next_u64());
    }
}
