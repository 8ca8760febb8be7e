//! How long things take, as the dice say within the options that the seed drew.

use node_core::TICK;

use crate::world::Clockwork;

/// Between two rounds.
pub(in crate::world) const ROUND_US: u64 = 10_000;

/// Peer time-outs that the stream of a tree takes at most.
const STREAM_TIMEOUTS: u64 = 3;

/// PINGs within one peer time-out, as the driver's thread says them.
pub(in crate::world) const LOOKS_PER_TIMEOUT: u64 = 5;

/// A step works for so many peer time-outs at most: all of them together must leave room for an election.
const MOST_TIMEOUTS: u64 = 8;

impl Clockwork {
    pub(in crate::world) fn client_delay(&mut self) -> u64 {
        self.dice.between(self.drawn.link_us.0, self.drawn.link_us.1)
    }

    /// How long a tree is on its way behind the packet that announces it, and all that follows behind it:
    /// long enough for either side to die meanwhile. After the faults it leaves room within the limit for
    /// taking a history over, or a member whose luck is bad would never be brought in.
    pub(in crate::world) fn stream_us(&mut self) -> u64 {
        let (least, most) = (0, STREAM_TIMEOUTS * self.drawn.peer_timeout_ms * 1000);
        let (least, most) = self.drawn.rare.stream_us.unwrap_or((least, most));
        let drawn_us = self.dice.between(least, most);
        let init_us = u64::from(self.drawn.init_limit) * self.drawn.tick_time_ms * 1000;
        if self.in_chaos() { drawn_us } else { drawn_us.min(init_us / 2) }
    }

    /// How long a step takes that had so much to do. Nothing where nothing was drawn, and after the faults.
    pub(in crate::world) fn work_us(&mut self, size: u64) -> u64 {
        if self.drawn.unit_us == 0 || size == 0 || !self.in_chaos() {
            return 0;
        }
        let most_us = MOST_TIMEOUTS * self.drawn.peer_timeout_ms * 1000;
        self.drawn.unit_us.saturating_mul(size).min(most_us)
    }

    pub(in crate::world) fn speaks_every_us(&self) -> u64 {
        self.drawn.peer_timeout_ms * 1000 / LOOKS_PER_TIMEOUT
    }

    /// How long after the fact a loss is noticed.
    pub(in crate::world) fn notice_delay(&mut self) -> u64 {
        let late = self.dice.chance(self.drawn.told_late);
        self.dice.between(0, if late { self.drawn.late_us } else { self.drawn.link_us.1 })
    }

    pub(in crate::world) fn tick_delay(&mut self) -> u64 {
        let tick = u64::try_from(TICK.as_micros()).expect("a tick is short");
        tick + self.dice.between(0, self.drawn.tick_jitter_us)
    }
}
