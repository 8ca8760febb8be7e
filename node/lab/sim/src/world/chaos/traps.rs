//! Traps: crashes at chosen points of a member's way to an epoch.
//!
//! Crashes at random moments rarely fall between two store operations of a synchronization, and there most
//! bugs of real implementations were. A trap waits for the first member that comes to its point, or for a
//! later one.

use node_core::io::StoreOp;

use super::nemesis::Undo;
use crate::network::HostIndex;
use crate::world::{Chaos, Clockwork, Ensemble};

/// Where a trap waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::world) enum Trap {
    /// In discovery.
    Discovery,
    /// While a tree is being installed.
    Installing,
    /// A tree is installed, nothing that follows it is stored.
    Installed,
    /// Synchronized entries are stored, currentEpoch is not.
    Appended,
    /// currentEpoch is stored, NEWLEADER is not acknowledged.
    EpochStored,
    /// UPTODATE just came.
    UpToDate,
    /// In the middle of a truncation.
    Truncating,
}

impl Trap {
    /// All of them, the ones that seldom find a victim more often.
    pub(in crate::world) const ALL: [Self; 12] = [
        Self::Installing,
        Self::Installed,
        Self::Installed,
        Self::Appended,
        Self::Truncating,
        Self::Discovery,
        Self::Installing,
        Self::Installed,
        Self::Appended,
        Self::EpochStored,
        Self::UpToDate,
        Self::Truncating,
    ];
}

/// A trap that waits.
#[derive(Clone, Copy, Debug)]
pub(in crate::world) struct Armed {
    pub(in crate::world) trap: Trap,
    pub(in crate::world) passes: u64,
    /// How long its victim stays down.
    pub(in crate::world) down_us: u64,
}

impl Chaos {
    /// A member comes to a point. True when the trap there closes.
    pub(in crate::world) fn closes(&mut self, clock: &mut Clockwork, host: HostIndex, at: Trap) -> bool {
        let Some(place) = self.traps.iter().position(|armed| armed.trap == at) else { return false };
        let armed = &mut self.traps[place];
        if armed.passes > 0 {
            armed.passes -= 1;
            return false;
        }
        let down_us = armed.down_us;
        self.traps.remove(place);
        let counter = match at {
            Trap::Discovery => &mut clock.counters.trap_discovery,
            Trap::Installing => &mut clock.counters.trap_installing,
            Trap::Installed => &mut clock.counters.trap_installed,
            Trap::Appended => &mut clock.counters.trap_appended,
            Trap::EpochStored => &mut clock.counters.trap_epoch_stored,
            Trap::UpToDate => &mut clock.counters.trap_up_to_date,
            Trap::Truncating => &mut clock.counters.trap_truncating,
        };
        *counter += 1;
        clock.line(host, "trapped", [0, 0], || format!("{at:?}"));
        self.lasts(clock, Undo::Start(host), down_us.max(1));
        true
    }

    /// A member's store begins something. True when it dies in the middle of it.
    pub(super) fn trap_storing(&mut self, clock: &mut Clockwork, host: HostIndex, op: &StoreOp) -> bool {
        match op {
            StoreOp::Install(_) => self.closes(clock, host, Trap::Installing),
            StoreOp::Truncate(_) => self.closes(clock, host, Trap::Truncating),
            StoreOp::Append(_)
            | StoreOp::AcceptedEpoch(_)
            | StoreOp::CurrentEpoch(_)
            | StoreOp::Membership(_) => false,
        }
    }

    /// A member just learnt that its epoch stands.
    pub(in crate::world) fn trap_established(
        &mut self,
        clock: &mut Clockwork,
        ensemble: &mut Ensemble,
        host: HostIndex,
    ) {
        if self.closes(clock, host, Trap::UpToDate)
            && let Some(process) = ensemble.hosts[host].process.as_mut()
        {
            process.dies_after = Some(1);
        }
    }
}
