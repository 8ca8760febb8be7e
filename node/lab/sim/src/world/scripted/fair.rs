//! What a script's look demands: that the ensemble gets there by itself when nothing bad happens any more.
//!
//! A script can't say that nothing happened for long enough: whoever leaves lines out of it leaves out
//! progress. So a look goes on fairly: members that run see each other, whatever is sent arrives, disks
//! write, timers expire. Who is down stays down. When the ensemble is not where it must be within the bound
//! of a drawn world, the promise is broken. A quorum must run, of all memberships that may rule, or nothing
//! is promised.

use node_core::io::Input;

use crate::host::Source;
use crate::network::{Cargo, EndId, HostIndex};
use crate::outcome::Rule;
use crate::script::Target;
use crate::world::World;
use crate::world::clockwork::delays::ROUND_US;

/// What arrives in one round at most.
const MAX_ARRIVALS: usize = 5_000;

impl World {
    /// Looks whether the world gets where it must be.
    pub(super) fn look_for(&mut self, target: Target) {
        let (rule, bound_us) = match target {
            Target::Acknowledged => {
                self.oracle.check_acknowledged(&mut self.clock, &self.ensemble);
                return;
            }
            Target::Elected => (Rule::Liveness, self.clock.election_bound_us()),
            Target::Serving | Target::Converged => (Rule::Liveness, 2 * self.clock.election_bound_us()),
            Target::Closed => (Rule::Sessions, self.clock.session_bound_us()),
        };
        let until = self.clock.now + bound_us;
        self.population.forget_services();
        while !self.is_over() {
            let Some(missing) = self.population.missing(&self.clock, &self.ensemble, &self.oracle, target)
            else {
                return;
            };
            if self.clock.now > until {
                self.oracle.report(&mut self.clock, rule, missing);
                return;
            }
            self.fair_round(target);
        }
    }

    fn fair_round(&mut self, target: Target) {
        self.clock.now = self.clock.now + ROUND_US;
        let members = self.ensemble.hosts.len();
        for pair in 0..members * members {
            self.see(pair / members, pair % members);
        }
        for _ in 0..MAX_ARRIVALS {
            let moved = !self.is_over()
                && (self.pump_votes() || self.pump_dials() || self.pump_packets() || self.pump_clients());
            if !moved {
                break;
            }
        }
        // Disks take their time: one batch in every other round, and not all in the same.
        let round = usize::try_from(self.clock.now.0 / ROUND_US).unwrap_or(0);
        for host in 0..members {
            if !self.is_over() {
                if (round + host).is_multiple_of(2) {
                    self.store_by_script(host, None, true);
                }
                self.writes_snapshot(host);
                self.is_told(host);
            }
        }
        for client in 0..self.population.clients.len() {
            if !self.is_over() {
                self.population.client_goes_on(
                    &mut self.clock,
                    &self.ensemble,
                    &mut self.oracle,
                    client,
                    target,
                );
            }
        }
        for host in 0..members {
            if self.ensemble.runs(host) && !self.is_over() {
                self.take_in(host, Source::Timer, Input::Tick);
            }
        }
    }

    /// Election connections stand between those that run, and nowhere else.
    fn see(&mut self, host: HostIndex, peer: HostIndex) {
        if host == peer || self.is_over() || !self.ensemble.runs(host) {
            return;
        }
        let runs = self.ensemble.runs(peer);
        let (pair, rank) = self.clock.scripted().pair(host, peer);
        let stale = pair.known[rank].is_some_and(|known| !pair.up || known != pair.generation);
        if stale || !runs {
            self.misses(host, peer);
        }
        if runs && !self.is_over() && self.ensemble.runs(host) {
            self.meets(host, peer);
        }
    }

    fn pump_dials(&mut self) -> bool {
        let members = self.ensemble.hosts.len();
        for pair in 0..members * members {
            let (from, to) = (pair / members, pair % members);
            if self.clock.scripted().dials.contains(&(from, to)) {
                return if from != to && self.ensemble.runs(to) {
                    self.accepts(to, from) && self.dialled(from, to)
                } else {
                    self.refused(from, to)
                };
            }
        }
        // Halves of dials that a script left.
        self.clock.held().to_vec().into_iter().any(|conn| {
            let [dialler, acceptor] = &self.ensemble.conns[conn].ends;
            let (from, to) = (dialler.host, acceptor.host);
            let (waits_from, waits_to) = (
                dialler.open && !dialler.announced && self.ensemble.hosts[from].life == dialler.life,
                acceptor.open && !acceptor.announced && self.ensemble.hosts[to].life == acceptor.life,
            );
            waits_to && self.accepts(to, from) || waits_from && self.dialled(from, to)
        })
    }

    fn pump_packets(&mut self) -> bool {
        for conn in self.clock.held().to_vec() {
            for end in 0..2 {
                let ends = &self.ensemble.conns[conn].ends;
                let (this, other) = (&ends[end], &ends[1 - end]);
                let host = this.host;
                if !this.open
                    || !this.announced
                    || !self.ensemble.runs(host)
                    || this.life != self.ensemble.hosts[host].life
                {
                    continue;
                }
                let hangs = !self.ensemble.conns[conn].alive
                    || !other.open
                    || !self.ensemble.runs(other.host)
                    || other.life != self.ensemble.hosts[other.host].life;
                let end = EndId { conn, end };
                let cargo = self.ensemble.conns[conn].ends[end.end].incoming.take_next();
                let Some(cargo) = cargo.or(hangs.then_some(Cargo::Fin)) else { continue };
                let input = self.clock.input_of(end.id(), cargo);
                self.take_in(host, end.into(), input);
                return true;
            }
        }
        false
    }
}
