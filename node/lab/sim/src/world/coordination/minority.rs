//! A quorum is enough: when a world is healed some members may stay dead for a while, and the others must not
//! need them.
//!
//! That all of a healed ensemble gets on again is the weaker half of what a quorum system promises: a member
//! that waits for a dead one, or goes on voting for it, is found by nothing else. The dead are often those
//! who led.
//!
//! Where the ensemble changes, nobody stays dead without whom the others are no quorum of all memberships
//! that may rule. A leader that has not noticed the deaths yet may make one more that needs the dead: it
//! counts on followers that it believes to be there. Then nobody who logged it may lead without them, and
//! nobody can say that it will not rule: what was promised of a quorum is promised of none that lives, and
//! the dead come back.
//!
//! A member asks the voters that it knows of. One that was away while the ensemble moved on may know nobody
//! but the dead, and nobody tells it who rules: of such a member nothing is promised before they come back.

use node_core::{Role, Status};

use crate::network::HostIndex;
use crate::part::Part;
use crate::world::World;
use crate::world::ensemble::membership::{Set, set_of};
use crate::world::ensemble::statuses::roles;
use harness_world::dice::{Dice, HALF};

impl World {
    /// Draws who stays dead while all others are healed: nobody, or less than half.
    pub(super) fn leave_some_dead(&mut self) {
        let mut dice = Dice::part(self.clock.drawn.seed, Part::Minority);
        let most = (self.ensemble.voters_at_most(&self.clock) - 1) / 2;
        if most == 0 || dice.chance(HALF) {
            return;
        }
        let mut candidates: Vec<HostIndex> = (0..self.ensemble.voters_at_most(&self.clock)).collect();
        let leads = |host: &HostIndex| {
            self.ensemble.hosts[*host].process.as_ref().is_some_and(|process| process.role == Role::Leading)
        };
        let leader = candidates.iter().position(leads).filter(|_| dice.chance(HALF));
        for place in 0..=dice.index(most) {
            let chosen = leader.filter(|_| place == 0).unwrap_or_else(|| dice.index(candidates.len()));
            self.chaos.left_dead.insert(candidates.swap_remove(chosen));
        }
        if !self.oracle.decides(&self.clock, &self.ensemble, self.chaos.living(&self.ensemble)) {
            // Where the ensemble changes, fewer may be too many.
            self.chaos.left_dead.clear();
        }
        for host in self.chaos.left_dead.clone() {
            self.crash(host);
        }
    }

    /// The members of an epoch that stands, those that know a voter among them, those that know a voter among
    /// these, and so on. All that live, where no epoch stands.
    fn told_who_rules(&self, living: &[(HostIndex, Status)]) -> Set {
        let mut told = set_of(living.iter().filter(|(_, status)| status.established).map(|(host, _)| *host));
        if told == 0 {
            return self.chaos.living(&self.ensemble);
        }
        loop {
            let asks_them = |host: &HostIndex| self.says(*host).iter().any(|voters| voters & told > 0);
            let more = told | set_of(living.iter().map(|(host, _)| *host).filter(asks_them));
            if more == told {
                return told;
            }
            told = more;
        }
    }

    /// What keeps the living from being a quorum that serves, if anything does.
    pub(super) fn not_a_quorum(&self) -> Option<String> {
        let living =
            self.ensemble.hosts.iter().enumerate().filter(|(host, _)| !self.chaos.left_dead.contains(host));
        let statuses: Option<Vec<(HostIndex, Status)>> =
            living.map(|(host, machine)| Some((host, machine.process.as_ref()?.member().status()))).collect();
        let Some(statuses) = statuses else { return Some("a member is not running".to_owned()) };
        let told = self.told_who_rules(&statuses);
        let of_them = || statuses.iter().filter(|(host, _)| set_of([*host]) & told > 0);
        let leaders = of_them().filter(|(_, status)| status.role == Role::Leading).count();
        if leaders != 1 || of_them().any(|(_, status)| !status.established) {
            return Some(format!(
                "with {} of {} members dead the others elected nobody in time: {}",
                self.chaos.left_dead.len(),
                self.ensemble.hosts.len(),
                roles(statuses.iter().map(|(host, status)| (*host, status)))
            ));
        }
        let served = self.population.clients.iter().any(|client| client.served > 0);
        (!served).then(|| "a quorum without its dead members served nobody in time".to_owned())
    }
}
