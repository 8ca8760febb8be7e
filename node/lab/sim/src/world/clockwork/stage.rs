//! How far a world is in its course.

use crate::world::Clockwork;
use harness_world::time::Time;

/// Where a world is in its course.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::world) enum Stage {
    /// Faults fall.
    Chaos,
    /// Healed but for a minority that stays dead: the others are a quorum, elect and serve.
    Quorum { until: Time },
    /// Healed: the ensemble elects a leader that all of it follows.
    Electing { until: Time },
    /// Every client is served.
    Serving { until: Time },
    /// One of the applications that stand leads.
    Settling { until: Time },
    /// The clients are quiet: the registers are read, the members converge.
    Converging { until: Time },
    /// The clients end their sessions.
    Closing { until: Time },
    /// Done.
    Over,
}

impl Clockwork {
    pub(in crate::world) fn in_chaos(&self) -> bool {
        self.stage == Stage::Chaos
    }
}
