//! What a script's look demands: that the ensemble gets there by itself when nothing bad happens any more.
//!
//! A script can't say that nothing happened for long enough: whoever leaves lines out of it leaves out
//! progress. So a look goes on fairly: members that run see each other, whatever is sent arrives, disks
//! write, timers expire. Who is down stays down. When the ensemble is not where it must be within the bound
//! of a drawn world, the promise is broken. A quorum must run, of all memberships that may rule, or nothing
//! is promised.

use node_core::io::Input;
use node_core::{Role, Status};

use super::membership::set_of;
use super::stages::roles;
use super::{Clockwork, Ensemble, Oracle, Population, World};
use crate::host::Source;
use crate::network::{Cargo, EndId, HostIndex};
use crate::outcome::Rule;
use crate::script::{Deed, MAX_CLIENTS, Target};

/// Between two rounds.
const ROUND_US: u64 = 10_000;

/// Elements that clients add meanwhile: none that a script names.
const LATE_ELEMENT: i64 = 1_000_000_000_000;

/// What arrives in one round at most.
const MAX_ARRIVALS: usize = 5_000;

impl Ensemble {
    fn running(&self) -> Vec<(HostIndex, Status)> {
        let status = |(host, machine): (HostIndex, &crate::host::Host)| {
            machine.process.as_ref().map(|process| (host, process.member().status()))
        };
        self.hosts.iter().enumerate().filter_map(status).collect()
    }
}

impl Population {
    fn missing(
        &self,
        clock: &Clockwork,
        ensemble: &Ensemble,
        oracle: &Oracle,
        target: Target,
    ) -> Option<String> {
        let running = ensemble.running();
        if running.len() <= ensemble.hosts.len() / 2 || !oracle.promises_to(clock, &running) {
            return None;
        }
        match target {
            Target::Acknowledged => None,
            Target::Elected => {
                let leaders = running.iter().filter(|(_, status)| status.role == Role::Leading).count();
                let led = leaders == 1 && running.iter().all(|(_, status)| status.established);
                (!led).then(|| {
                    let roles = roles(running.iter().map(|(host, status)| (*host, status)));
                    format!(
                        "{} of {} members elected nobody in time: {roles}",
                        running.len(),
                        ensemble.hosts.len()
                    )
                })
            }
            Target::Serving => {
                let index = self.clients.iter().position(|client| client.served == 0 && !client.gone)?;
                Some(format!("client {index} was not served in time"))
            }
            Target::Converged => self.not_converged(clock, ensemble, oracle),
            Target::Closed => {
                let (host, status) =
                    running.iter().find(|(_, status)| status.sessions > 0 || status.ephemerals > 0)?;
                Some(format!(
                    "server {} still holds {} sessions and {} ephemerals of clients that are gone",
                    host + 1,
                    status.sessions,
                    status.ephemerals
                ))
            }
        }
    }

    fn client_goes_on(
        &mut self,
        clock: &mut Clockwork,
        ensemble: &Ensemble,
        oracle: &mut Oracle,
        index: usize,
        target: Target,
    ) {
        let client = &self.clients[index];
        if client.gone {
            return;
        }
        let broken = client.conn.is_some_and(|conn| {
            let conn = &self.client_conns[conn];
            !conn.member_open || ensemble.hosts[conn.host].life != conn.life || !ensemble.runs(conn.host)
        });
        if broken {
            self.is_cut(clock, ensemble, oracle, index);
            return;
        }
        match target {
            Target::Closed => {
                let client = &self.clients[index];
                if client.ready && client.conn.is_some() && !client.is_busy() {
                    self.clients[index].gone = true;
                    self.say_goodbye(clock, oracle, index);
                } else {
                    self.hangs_up(clock, ensemble, oracle, index);
                    self.clients[index].gone = true;
                }
            }
            Target::Serving | Target::Elected
                if client.conn.is_none() && (target == Target::Serving || client.session.is_some()) =>
            {
                let running = ensemble.running();
                let chosen = usize::try_from(clock.now.0 / ROUND_US).unwrap_or(0) + index;
                if let Some((host, _)) = running.get(chosen % running.len().max(1)) {
                    self.connects(clock, ensemble, oracle, index, *host, false);
                }
            }
            Target::Serving if client.ready && !client.is_busy() && client.served == 0 => {
                if let Ok(look) = Deed::parse(&["look", "e0", "0"]) {
                    self.asks(clock, ensemble, oracle, index, &look);
                }
            }
            // While members join, others go on writing.
            Target::Elected if client.ready && !client.is_busy() => {
                let asked = clock.now.0 * MAX_CLIENTS + u64::try_from(index).unwrap_or(0);
                let element = LATE_ELEMENT + i64::try_from(asked).unwrap_or(0);
                if let Ok(add) = Deed::parse(&["add", "s0", &element.to_string()]) {
                    self.asks(clock, ensemble, oracle, index, &add);
                }
            }
            Target::Elected | Target::Serving | Target::Converged | Target::Acknowledged => {
                self.pings(clock, index);
            }
        }
    }
}

impl Oracle {
    /// Where the ensemble changes, those that run must be a quorum of all memberships that may rule.
    fn promises_to(&self, clock: &Clockwork, running: &[(HostIndex, Status)]) -> bool {
        !clock.drawn.changes || self.is_quorum_of_all(clock, set_of(running.iter().map(|(host, _)| *host)))
    }
}

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
