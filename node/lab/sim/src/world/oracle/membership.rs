//! Who could decide, by what is known of memberships.

use node_core::Status;
use node_wire::ids::Zxid;

use crate::network::HostIndex;
use crate::world::ensemble::membership::{Set, bit, is_quorum, set_of};
use crate::world::{Clockwork, Ensemble, Oracle};

impl Oracle {
    /// Where the ensemble changes, those that run must be a quorum of all memberships that may rule.
    pub(in crate::world) fn promises_to(&self, clock: &Clockwork, running: &[(HostIndex, Status)]) -> bool {
        !clock.drawn.changes || self.is_quorum_of_all(clock, set_of(running.iter().map(|(host, _)| *host)))
    }

    /// True when these are a quorum whatever may rule, and one of them knows what does.
    pub(in crate::world) fn decides(&self, clock: &Clockwork, ensemble: &Ensemble, set: Set) -> bool {
        if !clock.drawn.changes {
            return self.is_quorum_of_all(clock, set);
        }
        let last = self.invariants.last_membership();
        let knows = |host: &HostIndex| {
            let process = ensemble.hosts[*host].process.as_ref();
            bit(*host) & set > 0
                && process.is_some_and(|process| process.member().membership().version >= last)
        };
        (last == Zxid::ZERO || (0..ensemble.hosts.len()).any(|host| knows(&host)))
            && self.is_quorum_of_all(clock, set)
    }

    /// True when these are a quorum whatever may rule.
    pub(in crate::world) fn is_quorum_of_all(&self, clock: &Clockwork, set: Set) -> bool {
        if !clock.drawn.changes {
            return is_quorum(set_of(0..clock.drawn.members), set);
        }
        let may_rule = self.invariants.may_rule();
        may_rule.into_iter().all(|voters| is_quorum(set_of(voters.iter().copied()), set))
    }

    /// At the end the last membership rules everywhere.
    pub(super) fn check_ruling(&mut self, clock: &mut Clockwork, ensemble: &Ensemble) {
        if !clock.drawn.changes {
            return;
        }
        for host in 0..ensemble.hosts.len() {
            if let Some(process) = &ensemble.hosts[host].process {
                let finding = self.invariants.check_ruling(host, process.member().membership());
                self.found(clock, finding);
            }
        }
    }
}
