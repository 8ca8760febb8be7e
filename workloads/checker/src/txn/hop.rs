//! The steps that a cycle is made of.
//!
//! They stand below the search for cycles, because what was found keeps them as examples.

use super::graph::Kind;

/// Why one transaction comes before another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Reason {
    /// By what was read and written.
    Data(Kind),
    /// Its process did it before.
    Process,
    /// It had returned before the other was invoked.
    Realtime,
}

/// One step of a cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Hop {
    pub(super) from: u32,
    pub(super) to: u32,
    pub(super) why: Reason,
}

/// The transactions of a cycle, in its order.
pub(super) fn members(hops: &[Hop]) -> Vec<u32> {
    hops.iter().map(|hop| hop.from).collect()
}
