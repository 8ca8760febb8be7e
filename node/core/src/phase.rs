//! The phases of ZAB, which a leader and its followers go through together.
//!
//! A follower has finer steps of its own and says which phase each belongs to. Operators and invariants see
//! the phase.

/// How far a member is on the way to an epoch: ZAB's phases.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    /// It looks for a leader.
    Election,
    /// An epoch is being agreed on.
    Discovery,
    /// The leader's history becomes the epoch's.
    Synchronization,
    /// The epoch is established.
    Broadcast,
}
