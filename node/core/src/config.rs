//! What a member is told about its ensemble and itself, once, when it starts.
//!
//! The driver reads it from files; here nothing is checked again. What it says of clients is in
//! [`ClientRules`].

use std::collections::BTreeSet;
use std::time::Duration;

use node_wire::ids::ServerId;
use node_wire::quorum::Dialect;

use crate::rules::ClientRules;

/// How often the driver gives [`Input::Tick`](crate::io::Input::Tick).
pub const TICK: Duration = Duration::from_millis(10);

/// PINGs within one peer time-out.
const PINGS_PER_TIMEOUT: u32 = 5;

/// When a snapshot is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SnapCount {
    /// Log entries between two snapshots.
    pub entries: u64,
    /// Where there are more znodes than that, as many entries as there are znodes: then a snapshot costs each
    /// entry the same whatever the tree's size, and a start takes at most as long for the log as for the
    /// tree.
    pub grows: bool,
    /// Entries that pass for logged when the member starts. Members of an ensemble log the same; with the
    /// same count they would all write at the same time.
    pub head_start: u64,
}

impl From<u64> for SnapCount {
    /// So many entries, from the first on.
    fn from(entries: u64) -> Self {
        Self { entries, grows: false, head_start: 0 }
    }
}

/// What a member must know about its ensemble and itself.
#[derive(Clone, Debug)]
pub struct Config {
    /// Itself.
    pub id: ServerId,
    /// All voting members, itself included if it votes. Where the ensemble may change, the membership in
    /// `clients` rules instead of these two.
    pub voters: BTreeSet<ServerId>,
    /// Members that follow without a vote.
    pub observers: BTreeSet<ServerId>,
    /// Silence between our members after which one gives up on another.
    pub peer_timeout: Duration,
    /// ZooKeeper's tickTime.
    pub tick_time: Duration,
    /// The shortest and the longest time-out of a session, in milliseconds; without them 2 and 20 ticks.
    pub session_timeouts_ms: Option<(i32, i32)>,
    /// ZooKeeper's initLimit: how many ticks the taking over of a history may last.
    pub init_limit: u32,
    /// ZooKeeper's syncLimit: how many ticks a member of Apache ZooKeeper may be silent.
    pub sync_limit: u32,
    /// When a snapshot is due.
    pub snap_count: SnapCount,
    /// Committed entries that are kept in memory for learners that are behind:
    /// [`JOURNAL_ENTRIES`](crate::JOURNAL_ENTRIES), or less in a world that is too short to leave so many
    /// behind. A learner that lacks more is sent the whole tree.
    pub journal_entries: usize,
    /// The zxid counter that ends an epoch: [`Zxid::LAST_COUNTER`](node_wire::ids::Zxid::LAST_COUNTER), or
    /// less in a world that is too short to count so far.
    pub last_counter: u32,
    /// What clients may do.
    pub clients: ClientRules,
}

impl Config {
    /// A member among these voters, with ZooKeeper's usual values, ours where it has none.
    #[must_use]
    pub fn usual(id: ServerId, voters: BTreeSet<ServerId>) -> Self {
        Self {
            id,
            voters,
            observers: BTreeSet::new(),
            peer_timeout: Duration::from_millis(250),
            tick_time: Duration::from_secs(2),
            session_timeouts_ms: None,
            init_limit: 10,
            sync_limit: 5,
            snap_count: 100_000.into(),
            journal_entries: crate::JOURNAL_ENTRIES,
            last_counter: node_wire::ids::Zxid::LAST_COUNTER,
            clients: ClientRules::default(),
        }
    }

    pub(crate) fn observes(&self) -> bool {
        !self.voters.contains(&self.id)
    }

    pub(crate) fn init_timeout(&self) -> Duration {
        self.tick_time * self.init_limit
    }

    /// Silence after which one gives up on a peer. A Java member pings every half tick.
    pub(crate) fn silence_limit(&self, dialect: Dialect) -> Duration {
        match dialect {
            Dialect::Own => self.peer_timeout,
            Dialect::Apache => self.tick_time * self.sync_limit,
        }
    }

    pub(crate) fn ping_interval(&self) -> Duration {
        self.peer_timeout / PINGS_PER_TIMEOUT
    }

    pub(crate) fn session_bounds(&self) -> TimeoutBounds {
        if let Some((min_ms, max_ms)) = self.session_timeouts_ms {
            return TimeoutBounds { min_ms, max_ms };
        }
        let tick = i32::try_from(self.tick_time.as_millis()).unwrap_or(i32::MAX);
        TimeoutBounds { min_ms: tick.saturating_mul(2), max_ms: tick.saturating_mul(20) }
    }
}

/// Bounds on what a client may ask for as a session's time-out, in milliseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TimeoutBounds {
    pub(crate) min_ms: i32,
    pub(crate) max_ms: i32,
}
