//! The look, now and then, whether somebody leads.

use node_core::Role;

use crate::outcome::Rule;
use crate::script::{Target, Transition};
use crate::world::ensemble::membership::Set;
use crate::world::{Event, World};
use harness_world::time::Time;

/// Looks within one peer time-out.
pub(in crate::world) const LOOKS_PER_TIMEOUT: u64 = 4;

impl World {
    /// Looks who is well and whether anybody leads.
    pub(in crate::world) fn watch(&mut self) {
        if !self.clock.in_chaos() {
            return;
        }
        self.clock.plan(self.clock.drawn.peer_timeout_ms * 1000 / LOOKS_PER_TIMEOUT, Event::Watch);
        self.oracle.note_the_unwell(&self.clock, &self.ensemble);
        self.oracle.check_overdue(&mut self.clock, &self.ensemble);
        self.oracle.check_commits(&mut self.clock, &self.ensemble);
        self.oracle.check_silent_learners(&mut self.clock, &self.ensemble);
        self.oracle.check_answers(&mut self.clock, &self.ensemble, &self.population);
        let led = self
            .ensemble
            .hosts
            .iter()
            .filter_map(|host| host.process.as_ref())
            .any(|process| process.role == Role::Leading && process.established && process.pauses == 0);
        if led {
            self.oracle.progress.led = self.clock.now;
        }
        let bound_us = self.clock.progress_bound_us();
        let Some(moment) = self.clock.now.0.checked_sub(bound_us).map(Time) else { return };
        if self.oracle.progress.led > moment && self.oracle.progress.counted > moment {
            return;
        }
        let says: Vec<Vec<Set>> = (0..self.ensemble.hosts.len()).map(|host| self.says(host)).collect();
        let Some(quorum) = self.oracle.progress.quorum_since(moment, &says) else { return };
        if self.oracle.progress.led <= moment && self.clock.options.progress {
            self.clock.write_down(|| Transition::Look(Target::Elected));
            let members: Vec<String> = quorum.iter().map(|host| format!("s{}", host + 1)).collect();
            self.oracle.report(
                &mut self.clock,
                Rule::Liveness,
                format!(
                    "{} could speak with each other for {} ms, and nobody led",
                    members.join(", "),
                    bound_us / 1000
                ),
            );
        } else if !self.chaos.faults.is_empty() {
            self.oracle.progress.counted = self.clock.now;
            self.clock.counters.sieges_led += 1;
        }
    }
}
