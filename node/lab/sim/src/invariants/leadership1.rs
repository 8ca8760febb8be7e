//! Leadership1 (Zab.tla): at any moment at most one member leads an epoch.
//!
//! A member leads its epoch from the moment a quorum has promised it, in synchronization and in broadcast.
//! Two that do so at once for the same epoch count promises differently, or one of those who promised forgot
//! it.

use node_core::{Phase, Role, Status};

use super::{Finding, Invariants, server};
use crate::network::HostIndex;
use crate::outcome::Rule;

impl Invariants {
    /// A member finished a step.
    pub(super) fn check_leadership1(&mut self, host: HostIndex, status: &Status) -> Finding {
        let leads =
            status.role == Role::Leading && matches!(status.phase, Phase::Synchronization | Phase::Broadcast);
        let epoch = leads.then_some(status.current_epoch);
        if self.views[host].leads == epoch {
            return Ok(());
        }
        self.views[host].leads = epoch;
        let Some(epoch) = epoch else { return Ok(()) };
        match (0..self.views.len()).find(|other| *other != host && self.views[*other].leads == Some(epoch)) {
            None => self.check_leadership2(server(host), epoch),
            Some(other) => Err((
                Rule::Leadership1,
                format!("servers {} and {} lead epoch {} at once", server(other).0, server(host).0, epoch.0),
            )),
        }
    }
}
