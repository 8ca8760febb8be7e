//! What must hold at the end of a world.

use crate::outcome::Rule;
use crate::world::clockwork::stage::Stage;
use crate::world::{Clockwork, Ensemble, Oracle};

impl Oracle {
    /// Where operators change the ensemble all the time nothing is promised by a certain time: a member whose
    /// place is another begins anew, so does one that takes a tree in when the leadership is handed over, and
    /// a client that thinks for long may find its connection broken each time. So the bound begins anew,
    /// once, and this time they rest, and who has not been served asks at once.
    ///
    /// Nor where an epoch ends before a tree has come over to who lags: there nobody asks for anything until
    /// all are led.
    pub(in crate::world) fn hurry(&self, clock: &mut Clockwork) -> bool {
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
    pub(in crate::world) fn check_acknowledged(&mut self, clock: &mut Clockwork, ensemble: &Ensemble) {
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
