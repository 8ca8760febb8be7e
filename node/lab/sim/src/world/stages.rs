//! The course of a world: chaos with safety watched all along, then healing, then liveness within bounds.
//!
//! In half of the worlds a minority stays dead at first, and the others must be a quorum without it. A healed
//! ensemble must then elect and serve every client, then, when the clients are quiet, read back every
//! register and converge, then see every session off. Each stage has a bound of virtual time, stated here; a
//! world that is not through by then has failed as surely as one that broke a promise.

use node_core::{Role, Status};
use node_wire::ids::Zxid;

use super::{Clockwork, Ensemble, Event, Oracle, Population, World};
use crate::network::HostIndex;
use crate::outcome::Rule;
use crate::script::{Target, Transition};
use harness_world::time::Time;

/// How often a healed world is looked at.
const LOOK_US: u64 = 20_000;

/// Peer time-outs within which a healed ensemble elects, beside one initLimit: a candidate that won an
/// election of its own just before the healing may wait so long for followers that went elsewhere.
const ELECTION_TIMEOUTS: u64 = 20;

/// Time-outs of an operation within which every client is served: it may sit out two before its turn.
const SERVICE_TIMEOUTS: u64 = 3;

/// Delays of a link that a read behind a sync takes, at most.
const READ_DELAYS: u64 = 16;

/// Session time-outs within which an abandoned session is gone, however often its clock was started anew.
const SESSION_TIMEOUTS: u64 = 3;

/// Looks of a leader within which a node is gone whose time is over, with its time.
const REAPINGS: u64 = 3;

/// Ticks that bound a session's time-out, as in ZooKeeper.
const MAX_SESSION_TICKS: u64 = 20;

/// Where a world is in its course.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Faults fall.
    Chaos,
    /// Healed but for a minority that stays dead: the others are a quorum, elect and serve.
    Quorum { until: Time },
    /// Healed: the ensemble elects a leader that all of it follows.
    Electing { until: Time },
    /// Every client is served.
    Serving { until: Time },
    /// One of the applications that stand leads.
    Settling { until: Time },
    /// The clients are quiet: the registers are read, the members converge.
    Converging { until: Time },
    /// The clients end their sessions.
    Closing { until: Time },
    /// Done.
    Over,
}

impl Clockwork {
    pub(super) fn in_chaos(&self) -> bool {
        self.stage == Stage::Chaos
    }

    pub(super) fn election_bound_us(&self) -> u64 {
        let init_ms = u64::from(self.drawn.init_limit) * self.drawn.tick_time_ms;
        (ELECTION_TIMEOUTS * self.drawn.peer_timeout_ms + init_ms) * 1000 + self.drawn.rare.longest_us()
    }

    fn service_bound_us(&self) -> u64 {
        self.election_bound_us() + SERVICE_TIMEOUTS * self.drawn.op_timeout_us + 4 * self.drawn.patient_us
    }

    /// One of many last reads, which one client makes one after the other: to the leader and back, a round of
    /// its quorum between, and room for as much again.
    fn read_bound_us(&self) -> u64 {
        READ_DELAYS * (self.drawn.link_us.1 + self.drawn.jitter_us) + 2 * self.drawn.tick_jitter_us
    }

    pub(super) fn session_bound_us(&self) -> u64 {
        SESSION_TIMEOUTS * MAX_SESSION_TICKS * self.drawn.tick_time_ms * 1000 + self.service_bound_us()
    }

    /// Whoever is gone is missed, and whoever is first in line knows it.
    fn settling_bound_us(&self) -> u64 {
        SESSION_TIMEOUTS * self.drawn.application_timeout_ms * 1000 + self.service_bound_us()
    }

    /// A leader has looked for what goes by itself, and looked again.
    fn reaping_bound_us(&self) -> u64 {
        if self.drawn.watchers + self.drawn.probers == 0 {
            0
        } else {
            REAPINGS * (self.drawn.reaping_ms + self.drawn.mortal_ms) * 1000
        }
    }

    fn write_down_look(&mut self) {
        let target = match self.stage {
            Stage::Chaos | Stage::Over => return,
            Stage::Quorum { .. } | Stage::Electing { .. } => Target::Elected,
            Stage::Serving { .. } | Stage::Settling { .. } => Target::Serving,
            Stage::Converging { .. } => Target::Converged,
            Stage::Closing { .. } => Target::Closed,
        };
        self.write_down(|| Transition::Look(target));
    }
}

impl Ensemble {
    fn statuses(&self) -> Option<Vec<Status>> {
        self.hosts.iter().map(|host| host.process.as_ref().map(|process| process.member().status())).collect()
    }

    /// What keeps the ensemble from being led, if anything does.
    fn not_elected(&self) -> Option<String> {
        let Some(statuses) = self.statuses() else { return Some("a member is not running".to_owned()) };
        if statuses.iter().any(|status| !status.established) {
            return Some(format!(
                "the healed ensemble elected nobody in time: {}",
                roles(statuses.iter().enumerate())
            ));
        }
        if statuses.iter().filter(|status| status.role == Role::Leading).count() != 1 {
            return Some(format!(
                "the healed ensemble has not one leader: {}",
                roles(statuses.iter().enumerate())
            ));
        }
        None
    }
}

impl Population {
    /// What was served before does not count as served by the healed ensemble.
    pub(super) fn forget_services(&mut self) {
        for client in &mut self.clients {
            client.served = 0;
        }
    }

    /// An operator that is not needed now, and anybody while only a longer epoch helps.
    pub(super) fn rests(&self, clock: &Clockwork, index: usize) -> bool {
        let client = &self.clients[index];
        let is_owed = client.served == 0 && matches!(clock.stage, Stage::Serving { .. });
        let to_be_led = matches!(clock.stage, Stage::Quorum { .. } | Stage::Electing { .. });
        clock.hurries
            && (client.watcher.operates() && !is_owed || to_be_led && clock.drawn.has_short_epochs())
    }

    /// A client that is owed an answer.
    pub(super) fn asks_at_once(&self, clock: &Clockwork, index: usize) -> bool {
        clock.hurries && self.clients[index].served == 0
    }

    /// Who is not served yet, if anybody is not.
    fn not_serving(&self) -> Option<String> {
        let index = self.clients.iter().position(|client| client.served == 0 && !client.gone)?;
        Some(format!("client {index} was not served by the healed ensemble in time"))
    }

    /// What keeps the quiet ensemble from being of one mind, if anything does.
    pub(super) fn not_converged(
        &self,
        clock: &Clockwork,
        ensemble: &Ensemble,
        oracle: &Oracle,
    ) -> Option<String> {
        if !self.record.finals_done() || !self.is_quiet() {
            return Some("the last reads were not answered in time".to_owned());
        }
        if let Some(sentence) = self.not_gone(ensemble) {
            return Some(sentence);
        }
        let statuses = ensemble.statuses()?;
        let applied: Vec<Zxid> = statuses.iter().map(|status| status.last_applied).collect();
        let everything =
            applied.iter().max().copied().unwrap_or_default().max(oracle.invariants.last_committed());
        if applied.iter().any(|zxid| *zxid != everything) {
            return Some(format!("the quiet members did not converge on {everything}: {applied:?}"));
        }
        if statuses.iter().any(|status| status.digest != statuses[0].digest) {
            return Some(format!("the members' trees at {everything} differ"));
        }
        oracle.not_reaped(clock, ensemble)
    }

    /// Who still has a session, if anybody has.
    fn not_closed(&self, ensemble: &Ensemble) -> Option<String> {
        if let Some(index) = self.clients.iter().position(|client| !client.gone) {
            return Some(format!("client {index} could not end its session in time"));
        }
        let statuses = ensemble.statuses()?;
        let (index, status) = statuses
            .iter()
            .enumerate()
            .find(|(_, status)| status.sessions + status.local_sessions + status.ephemerals > 0)?;
        Some(format!(
            "server {} still holds {} sessions and {} ephemerals of clients that are gone",
            index + 1,
            status.sessions + status.local_sessions,
            status.ephemerals
        ))
    }
}

impl Oracle {
    /// Where operators change the ensemble all the time nothing is promised by a certain time: a member whose
    /// place is another begins anew, so does one that takes a tree in when the leadership is handed over, and
    /// a client that thinks for long may find its connection broken each time. So the bound begins anew,
    /// once, and this time they rest, and who has not been served asks at once.
    ///
    /// Nor where an epoch ends before a tree has come over to who lags: there nobody asks for anything until
    /// all are led.
    fn hurry(&self, clock: &mut Clockwork) -> bool {
        if clock.hurries {
            return false;
        }
        let epoch_ended = clock.counters.full_epochs > self.full_epochs_then;
        clock.stage = match clock.stage {
            Stage::Quorum { .. } if clock.drawn.changes || epoch_ended => {
                Stage::Quorum { until: clock.now + clock.service_bound_us() }
            }
            Stage::Electing { .. } if clock.drawn.changes || epoch_ended => {
                Stage::Electing { until: clock.now + clock.election_bound_us() }
            }
            // Where epochs end early the same befalls clients without any operator.
            Stage::Serving { .. } => Stage::Serving { until: clock.now + clock.service_bound_us() },
            Stage::Settling { .. } if clock.drawn.changes || epoch_ended => {
                Stage::Settling { until: clock.now + clock.settling_bound_us() }
            }
            _ => return false,
        };
        clock.hurries = true;
        clock.world_line("hurries", [0, 0], String::new);
        true
    }

    /// All that was acknowledged is there, and sessions and ephemerals are what they must be.
    pub(super) fn check_acknowledged(&mut self, clock: &mut Clockwork, ensemble: &Ensemble) {
        let finding = self.invariants.check_acknowledged();
        self.found(clock, finding);
        if let Some(sentence) = ensemble.parted_twins() {
            self.report(clock, Rule::Whole, sentence);
        }
        self.check_sessions(clock, ensemble);
        self.check_lists(clock, ensemble);
        self.check_ruling(clock, ensemble);
    }

    fn check_sessions(&mut self, clock: &mut Clockwork, ensemble: &Ensemble) {
        for host in 0..ensemble.hosts.len() {
            if let Some(process) = &ensemble.hosts[host].process {
                let tree = process.member().tree();
                let finding = self
                    .invariants
                    .check_sessions(host, &tree)
                    .and_then(|()| self.invariants.check_count(host, &tree));
                self.found(clock, finding);
            }
        }
    }
}

impl World {
    /// Ends chaos.
    pub(super) fn heal(&mut self) {
        self.clock.world_line("heal", [0, 0], String::new);
        self.leave_some_dead();
        self.clock.calm();
        self.chaos.traps.clear();
        self.undo_all();
        self.population.forget_services();
        self.population.settle_applications(&mut self.clock, &self.ensemble, &mut self.oracle);
        self.clock.healed_at = self.clock.now;
        self.oracle.full_epochs_then = self.clock.counters.full_epochs;
        self.clock.stage = if self.chaos.left_dead.is_empty() {
            Stage::Electing { until: self.clock.now + self.clock.election_bound_us() }
        } else {
            Stage::Quorum { until: self.clock.now + self.clock.service_bound_us() }
        };
        self.clock.plan(LOOK_US, Event::Look);
    }

    /// Looks whether the present stage is through, or out of time.
    pub(super) fn look(&mut self) {
        if matches!(self.clock.stage, Stage::Quorum { .. })
            && !self.chaos.living_suffice(&self.clock, &self.ensemble, &self.oracle)
        {
            self.clock.counters.dead_needed += 1;
            self.clock.world_line("the dead are needed", [0, 0], String::new);
            self.next_stage();
        }
        let mut rule =
            if matches!(self.clock.stage, Stage::Closing { .. }) { Rule::Sessions } else { Rule::Liveness };
        let (until, missing) = match self.clock.stage {
            Stage::Chaos | Stage::Over => return,
            Stage::Quorum { until } => (until, self.not_a_quorum()),
            Stage::Electing { until } => (until, self.ensemble.not_elected()),
            Stage::Serving { until } => (until, self.population.not_serving()),
            Stage::Settling { until } => {
                let missing = self.population.not_led(&self.clock, &self.ensemble);
                if let Some((of_line, _)) = &missing {
                    rule = *of_line;
                }
                (until, missing.map(|(_, sentence)| sentence))
            }
            Stage::Converging { until } => {
                (until, self.population.not_converged(&self.clock, &self.ensemble, &self.oracle))
            }
            Stage::Closing { until } => (until, self.population.not_closed(&self.ensemble)),
        };
        match missing {
            None => self.next_stage(),
            Some(_) if self.clock.now > until && self.oracle.hurry(&mut self.clock) => {}
            Some(missing) if self.clock.now > until => {
                self.clock.write_down_look();
                self.oracle.report(&mut self.clock, rule, missing);
            }
            Some(_) => {}
        }
        self.clock.plan(LOOK_US, Event::Look);
    }

    fn next_stage(&mut self) {
        self.clock.hurries = false;
        self.oracle.full_epochs_then = self.clock.counters.full_epochs;
        self.clock.stage = match self.clock.stage {
            Stage::Quorum { .. } => {
                self.chaos.raise_the_dead(&mut self.clock, &mut self.ensemble, &mut self.oracle);
                self.population.forget_services();
                self.clock.healed_at = self.clock.now;
                Stage::Electing { until: self.clock.now + self.clock.election_bound_us() }
            }
            Stage::Chaos | Stage::Electing { .. } => {
                self.oracle.election_us = Some(self.clock.now.since(self.clock.healed_at));
                Stage::Serving { until: self.clock.now + self.clock.service_bound_us() }
            }
            Stage::Serving { .. } if self.clock.drawn.applications > 0 => {
                Stage::Settling { until: self.clock.now + self.clock.settling_bound_us() }
            }
            Stage::Serving { .. } | Stage::Settling { .. } => {
                self.population.dismiss_applications(&mut self.clock, &self.ensemble, &mut self.oracle);
                self.population.record.begin_finals();
                let reads = self.population.record.finals_left() * self.clock.read_bound_us();
                Stage::Converging {
                    until: self.clock.now
                        + self.clock.service_bound_us()
                        + reads
                        + self.clock.reaping_bound_us(),
                }
            }
            Stage::Converging { .. } => {
                self.clock.write_down(|| Transition::Look(Target::Acknowledged));
                self.oracle.check_acknowledged(&mut self.clock, &self.ensemble);
                self.population.record.closing = true;
                Stage::Closing { until: self.clock.now + self.clock.session_bound_us() }
            }
            Stage::Closing { .. } | Stage::Over => Stage::Over,
        };
        let stage = self.clock.stage;
        self.clock.world_line("stage", [0, 0], || format!("{stage:?}"));
    }
}

pub(super) fn roles<'a>(statuses: impl IntoIterator<Item = (HostIndex, &'a Status)>) -> String {
    let one = |(host, status): (HostIndex, &Status)| {
        let stands = if status.established { "established" } else { "not established" };
        format!("s{} {:?} {stands} epoch {}", host + 1, status.role, status.current_epoch.0)
    };
    statuses.into_iter().map(one).collect::<Vec<_>>().join(", ")
}
