//! Who could decide, by what a running member says.

use node_wire::ids::ServerId;
use node_wire::membership::Membership;

use crate::network::HostIndex;
use crate::world::World;
use crate::world::ensemble::membership::{Set, set_of};

impl World {
    pub(in crate::world) fn voters(&self, membership: &Membership) -> Set {
        set_of(membership.voters().into_iter().filter_map(|ServerId(id)| HostIndex::try_from(id - 1).ok()))
    }

    /// The voters of each membership by which a running member counts.
    pub(in crate::world) fn says(&self, host: HostIndex) -> Vec<Set> {
        if !self.clock.drawn.changes {
            return vec![set_of(0..self.clock.drawn.members)];
        }
        let Some(process) = &self.ensemble.hosts[host].process else { return Vec::new() };
        let active = process.member().membership();
        let mut says = vec![self.voters(active)];
        says.extend(
            self.oracle.invariants.pending(host, active.version).map(|voters| set_of(voters.iter().copied())),
        );
        says
    }
}
