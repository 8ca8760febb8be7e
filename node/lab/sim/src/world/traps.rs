//! Traps: crashes at chosen points of a member's way to an epoch.
//!
//! Crashes at random moments rarely fall between two store operations of a synchronization, and there most
//! bugs of real implementations were. A trap waits for the first member that comes to its point, or for a
//! later one.

use node_core::Phase;
use node_core::io::StoreOp;

use super::nemesis::Undo;
use super::{Chaos, Clockwork, Ensemble, World};
use crate::network::HostIndex;

/// Members that may pass before the trap closes.
const MAX_PASSES: u64 = 2;

/// Where a trap waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trap {
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
    const ALL: [Self; 12] = [
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
pub(super) struct Armed {
    trap: Trap,
    passes: u64,
    /// How long its victim stays down.
    down_us: u64,
}

impl Ensemble {
    fn phase(&self, host: HostIndex) -> Option<Phase> {
        self.hosts[host].process.as_ref().map(|process| process.phase)
    }
}

impl Chaos {
    /// A member comes to a point. True when the trap there closes.
    fn closes(&mut self, clock: &mut Clockwork, host: HostIndex, at: Trap) -> bool {
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
    pub(super) fn trap_established(
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

impl World {
    /// Sets a trap, which waits until the world is healed, and gives an occasion to step into it.
    pub(super) fn set_trap(&mut self) {
        let trap = Trap::ALL[self.chaos.fate.index(Trap::ALL.len())];
        let rare = !matches!(trap, Trap::Discovery | Trap::EpochStored | Trap::UpToDate);
        let passes = if rare { 0 } else { self.chaos.fate.between(0, MAX_PASSES) };
        let down_us = self.chaos.fate.around(self.clock.drawn.fault_us);
        self.clock.world_line("trap", [passes, down_us], || format!("{trap:?}"));
        self.chaos.traps.push(Armed { trap, passes, down_us });
        self.give_occasion(trap);
    }

    /// Does what brings somebody into the trap's way.
    fn give_occasion(&mut self, trap: Trap) {
        match trap {
            // Somebody that was away for long enough.
            Trap::Installing | Trap::Installed => {
                let host = self.chaos.anyone(&self.ensemble);
                self.chaos.isolate(&mut self.clock, &mut self.ensemble, &mut self.oracle, host);
            }
            // A leader whose last proposals reached nobody.
            Trap::Truncating => self.chaos.mute_leader(&mut self.clock, &mut self.ensemble, &mut self.oracle),
            // Anything that ends an epoch.
            Trap::Discovery | Trap::Appended | Trap::EpochStored | Trap::UpToDate => {
                let host = self.chaos.leader(&self.ensemble);
                self.crash_for_a_while(host);
            }
        }
    }

    /// A member finished a step.
    pub(super) fn trap_stepped(&mut self, host: HostIndex) {
        if !self.chaos.traps.is_empty()
            && self.ensemble.phase(host) == Some(Phase::Discovery)
            && self.chaos.closes(&mut self.clock, host, Trap::Discovery)
        {
            self.crash(host);
        }
    }

    /// A member's store finished something, and the member does not know yet. True when it will never know.
    pub(super) fn trap_stored(&mut self, host: HostIndex, batch: &[(u64, StoreOp)]) -> bool {
        let closes = match batch.first() {
            Some((_, StoreOp::Install(_))) => self.chaos.closes(&mut self.clock, host, Trap::Installed),
            Some((_, StoreOp::CurrentEpoch(_))) => {
                self.chaos.closes(&mut self.clock, host, Trap::EpochStored)
            }
            Some((_, StoreOp::Append(_))) => {
                self.ensemble.phase(host) == Some(Phase::Synchronization)
                    && self.chaos.closes(&mut self.clock, host, Trap::Appended)
            }
            Some((_, StoreOp::Truncate(_) | StoreOp::AcceptedEpoch(_) | StoreOp::Membership(_))) | None => {
                false
            }
        };
        if closes {
            self.crash(host);
        }
        closes
    }
}
