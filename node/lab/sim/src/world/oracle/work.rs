//! Nobody gives up a leader that only works.

use node_core::io::{Event as Told, FELL_SILENT};

use crate::network::HostIndex;
use crate::outcome::Rule;
use crate::world::ensemble::work::working;
use crate::world::{Chaos, Clockwork, Ensemble, Oracle};
use harness_world::time::Time;

impl Oracle {
    /// A member looks for a leader because its own fell silent, which perhaps only works.
    pub(in crate::world) fn check_work_of_leader(
        &mut self,
        clock: &mut Clockwork,
        ensemble: &Ensemble,
        chaos: &Chaos,
        host: HostIndex,
        event: &Told,
    ) {
        let Told::Looking { left: Some(leader), reason, .. } = event else { return };
        let Some((leader, work)) = working(ensemble, *leader).filter(|_| reason == FELL_SILENT) else {
            return;
        };
        let began = Time(work.since.0.saturating_sub(clock.drawn.peer_timeout_ms * 1000));
        let undisturbed = !work.paused
            && self.progress.unhurt_since(host) <= began
            && self.progress.unhurt_since(leader) <= began
            && self.progress.linked_since(host, leader) <= began
            && chaos.faults.is_empty();
        if undisturbed {
            let sentence = format!(
                "server {} calls server {} silent, which has worked for {} ms and leads",
                host + 1,
                leader + 1,
                clock.now.since(work.since) / 1000
            );
            self.report(clock, Rule::Liveness, sentence);
        }
    }
}
