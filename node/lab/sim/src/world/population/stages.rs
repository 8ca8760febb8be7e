//! Clients after chaos: who is served, when they are quiet, and whether all sessions are closed.

use node_wire::ids::Zxid;

use crate::world::clockwork::stage::Stage;
use crate::world::{Clockwork, Ensemble, Oracle, Population};

impl Population {
    /// What was served before does not count as served by the healed ensemble.
    pub(in crate::world) fn forget_services(&mut self) {
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
    pub(in crate::world) fn not_serving(&self) -> Option<String> {
        let index = self.clients.iter().position(|client| client.served == 0 && !client.gone)?;
        Some(format!("client {index} was not served by the healed ensemble in time"))
    }

    /// What keeps the quiet ensemble from being of one mind, if anything does.
    pub(in crate::world) fn not_converged(
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
    pub(in crate::world) fn not_closed(&self, ensemble: &Ensemble) -> Option<String> {
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
