//! Within which virtual time a promise must be kept, as it follows from the options that the seed drew.

use crate::world::Clockwork;

/// What a link that was cut may still hold back after it passes again, and more.
pub(in crate::world) const ROOM_US: u64 = 300_000;

/// Peer time-outs within which a connected quorum is led, beside one initLimit: as long as after healing.
const BOUND_TIMEOUTS: u64 = 20;

/// Peer time-outs within which a healed ensemble elects, beside one initLimit: a candidate that won an
/// election of its own just before the healing may wait so long for followers that went elsewhere.
const ELECTION_TIMEOUTS: u64 = 20;

/// Time-outs of an operation within which every client is served: it may sit out two before its turn.
const SERVICE_TIMEOUTS: u64 = 3;

/// Delays of a link that a read behind a sync takes, at most.
const READ_DELAYS: u64 = 16;

/// Session time-outs within which an abandoned session is gone, however often its clock was started anew.
const SESSION_TIMEOUTS: u64 = 3;

/// Looks of a leader within which a node is gone whose time is over, with its time.
const REAPINGS: u64 = 3;

/// Ticks that bound a session's time-out, as in ZooKeeper.
const MAX_SESSION_TICKS: u64 = 20;

impl Clockwork {
    /// Within this a proposal is committed.
    pub(in crate::world) fn commit_bound_us(&self) -> u64 {
        let drawn = &self.drawn;
        let link_us = drawn.link_us.1 + drawn.jitter_us + drawn.spike_us;
        let fsync_us = 2 * drawn.fsync_us.1 + drawn.stall_us;
        3 * link_us + 3 * fsync_us + drawn.peer_timeout_ms * 1000 + ROOM_US
    }

    pub(in crate::world) fn progress_bound_us(&self) -> u64 {
        let init_ms = u64::from(self.drawn.init_limit) * self.drawn.tick_time_ms;
        (BOUND_TIMEOUTS * self.drawn.peer_timeout_ms + init_ms) * 1000 + self.drawn.rare.longest_us()
    }

    pub(in crate::world) fn election_bound_us(&self) -> u64 {
        let init_ms = u64::from(self.drawn.init_limit) * self.drawn.tick_time_ms;
        (ELECTION_TIMEOUTS * self.drawn.peer_timeout_ms + init_ms) * 1000 + self.drawn.rare.longest_us()
    }

    pub(in crate::world) fn service_bound_us(&self) -> u64 {
        self.election_bound_us() + SERVICE_TIMEOUTS * self.drawn.op_timeout_us + 4 * self.drawn.patient_us
    }

    /// One of many last reads, which one client makes one after the other: to the leader and back, a round of
    /// its quorum between, and room for as much again.
    pub(in crate::world) fn read_bound_us(&self) -> u64 {
        READ_DELAYS * (self.drawn.link_us.1 + self.drawn.jitter_us) + 2 * self.drawn.tick_jitter_us
    }

    pub(in crate::world) fn session_bound_us(&self) -> u64 {
        SESSION_TIMEOUTS * MAX_SESSION_TICKS * self.drawn.tick_time_ms * 1000 + self.service_bound_us()
    }

    /// Whoever is gone is missed, and whoever is first in line knows it.
    pub(in crate::world) fn settling_bound_us(&self) -> u64 {
        SESSION_TIMEOUTS * self.drawn.application_timeout_ms * 1000 + self.service_bound_us()
    }

    /// A leader has looked for what goes by itself, and looked again.
    pub(in crate::world) fn reaping_bound_us(&self) -> u64 {
        if self.drawn.watchers + self.drawn.probers == 0 {
            0
        } else {
            REAPINGS * (self.drawn.reaping_ms + self.drawn.mortal_ms) * 1000
        }
    }
}
