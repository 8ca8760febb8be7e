//! What is left out of a drawn world.
//!
//! Each turn of the nemesis and each client has dice of its own, so that without one of them the others still
//! do what they did, as far as the members let them.

use std::collections::BTreeSet;

use crate::drawn::Drawn;
use harness_world::dice::Chance;

/// What is left out.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reduction {
    /// Turns of the nemesis in which nothing is done.
    pub(crate) turns: BTreeSet<u64>,
    /// Clients that never come.
    pub(crate) clients: BTreeSet<usize>,
    /// No spikes, stalls and refusals, nothing told late, nothing through the codecs.
    pub(crate) calm: bool,
    /// The world ends here, and is judged by what it left.
    pub(crate) end_us: Option<u64>,
}

impl Reduction {
    /// The options that are left.
    pub(crate) fn apply(&self, drawn: &mut Drawn) {
        if self.calm {
            drawn.jitter_us = 1;
            for chance in [
                &mut drawn.spike,
                &mut drawn.stall,
                &mut drawn.codec,
                &mut drawn.told_late,
                &mut drawn.refuse,
            ] {
                *chance = Chance::NEVER;
            }
        }
    }
}
