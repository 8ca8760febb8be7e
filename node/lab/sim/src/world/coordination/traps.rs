//! Traps are set, and close.

use node_core::Phase;
use node_core::io::StoreOp;

use crate::network::HostIndex;
use crate::world::World;
use crate::world::chaos::traps::{Armed, Trap};

/// Members that may pass before the trap closes.
const MAX_PASSES: u64 = 2;

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
