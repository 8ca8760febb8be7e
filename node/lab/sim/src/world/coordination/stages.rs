//! The course of a world: chaos with safety watched all along, then healing, then liveness within bounds.
//!
//! In half of the worlds a minority stays dead at first, and the others must be a quorum without it. A healed
//! ensemble must then elect and serve every client, then, when the clients are quiet, read back every
//! register and converge, then see every session off. Each stage has a bound of virtual time
//! ([`clockwork::bounds`](crate::world::clockwork)); a world that is not through by then has failed as surely
//! as one that broke a promise.

use crate::outcome::Rule;
use crate::script::{Target, Transition};
use crate::world::clockwork::stage::Stage;
use crate::world::{Event, World};
use harness_world::time::Time;

/// Members start for the first time within this.
const START_US: u64 = 300_000;

/// How often a healed world is looked at.
const LOOK_US: u64 = 20_000;

impl World {
    /// Plans what begins a world: starts of members, clients, the first fault, and the end of chaos.
    pub(in crate::world) fn begin(&mut self) {
        let clock = &mut self.clock;
        for host in 0..self.ensemble.hosts.len() {
            let at = Time(clock.dice.between(0, START_US));
            clock.queue.plan(at, Event::Start { host });
        }
        self.population.populate(clock, &self.ensemble);
        self.population.populate_applications(clock, &self.ensemble);
        clock.queue.plan(Time(clock.drawn.warmup_us), Event::Nemesis);
        clock.queue.plan(Time::default(), Event::Watch);
        clock.queue.plan(Time(clock.drawn.warmup_us + clock.drawn.chaos_us), Event::Heal);
    }

    /// Ends chaos.
    pub(in crate::world) fn heal(&mut self) {
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
    pub(in crate::world) fn look(&mut self) {
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
