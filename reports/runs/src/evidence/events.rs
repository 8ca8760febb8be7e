//! What members say about themselves, and what became of their processes: the events of `observed.json`.
//!
//! A member prints one JSON object per line the moment something changes; the harness stamps it with its own
//! clock when it arrives. What a member says about its own time is never used (ZOOKEEPER-3479: elections of
//! 400 ms logged as 1 ms).

use serde::{Deserialize, Serialize};

use crate::clock::RunNs;
use crate::member::MemberId;

/// A line of a member's standard output.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "lowercase")]
pub enum Said {
    /// The process is up.
    Started {},
    /// It looks for a leader.
    Looking {
        /// The leader it had.
        #[serde(default)]
        left: Option<u64>,
    },
    /// Its vote is decided.
    Elected {
        /// For whom.
        leader: u64,
    },
    /// Its epoch stands.
    Established {
        /// Whose.
        leader: u64,
        /// Which.
        epoch: u32,
    },
    /// It answers clients.
    Serving {},
    /// It brought a learner to its history.
    Synced {},
    /// It stopped itself.
    Halt {
        /// Why.
        #[serde(default)]
        reason: String,
    },
    /// As leader: how long its proposals waited for their commit since it last said so.
    Commits {
        /// Microseconds, and how many took so long.
        us: Vec<(u64, u64)>,
    },
    /// As leader: the time of a silent session is over. Its end is proposed.
    Expired {
        /// The session, in hexadecimal.
        session: String,
    },
    /// Something this harness does not know.
    #[serde(other)]
    Other,
}

/// One thing that happened to a member.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Event {
    /// It said so.
    Said(Said),
    /// Its process was started.
    Spawned,
    /// Its process is gone; how, in words.
    Exited(String),
    /// Its process was stopped by a signal.
    Paused,
    /// Its process goes on.
    Resumed,
    /// Its wall clock was shifted, or restored.
    Clock {
        /// By how much it is off from here on, in nanoseconds.
        offset_ns: i64,
        /// How long a process that was started while shifted ran unshifted, in nanoseconds.
        #[serde(default)]
        gap_ns: Option<u64>,
    },
}

/// An event with its place and time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamped {
    /// When it was seen.
    pub time: RunNs,
    /// Whose it is.
    pub node: MemberId,
    /// What.
    pub event: Event,
}
