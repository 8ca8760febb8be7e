//! Who holds what: the one place that knows which faults are in force, and which are on their way in or out.
//!
//! Faults that act at once share members and the network, so two things have to be decided together. A target
//! is resolved and reserved in one step, else two faults could take the same process. And a proof looks at
//! the ensemble for some milliseconds, in which another fault may come or go: it is drawn up against the
//! ledger as it stood, and counts as a refutation only when the ledger still stands like that afterwards.

use std::collections::{BTreeMap, BTreeSet};

use runs::member::MemberId;

use crate::fault::Server;
use crate::fault::application::Holder;
use crate::fault::in_force::InForce;
use crate::fault::scene::{Resolved, Scene};
use crate::mechanism::Action;
use crate::schedule::PlannedFault;

/// The ledger of one run.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    members: Vec<MemberId>,
    voters: Vec<MemberId>,
    in_force: InForce,
    /// Those that are being injected.
    coming: BTreeMap<String, Action>,
    /// Those that are being healed. They count as in force until they are.
    going: BTreeSet<String>,
    /// Whether a quorum remained ever since a fault came into force.
    quorum_held: BTreeMap<String, bool>,
    /// What each member runs as, where kinds of servers replace each other.
    servers: BTreeMap<MemberId, Server>,
    /// The members that were replaced in this round.
    replaced: BTreeSet<MemberId>,
    /// The number of changes so far.
    version: u64,
}

impl Ledger {
    /// A ledger in which nothing is in force.
    pub(super) fn new(
        members: &[MemberId],
        voters: &[MemberId],
        servers: BTreeMap<MemberId, Server>,
    ) -> Self {
        Self { members: members.to_vec(), voters: voters.to_vec(), servers, ..Self::default() }
    }

    /// Decides whom a fault hits and reserves the target. Also gives the names of the faults beside it.
    pub(super) fn resolve(
        &mut self,
        fault: &PlannedFault,
        leader: Option<MemberId>,
        holder: Option<Holder>,
        loses_unsynced: bool,
    ) -> Option<(Resolved, Vec<String>)> {
        let taken = self.with_coming();
        let scene = Scene {
            members: &self.members,
            voters: &self.voters,
            leader,
            in_force: &taken,
            servers: &self.servers,
            replaced: &self.replaced,
            holder,
            loses_unsynced,
        };
        let resolved = fault.kind.resolve(fault.draw, fault.turn, &scene)?;
        self.coming.insert(fault.id.clone(), resolved.action.clone());
        self.version += 1;
        Some((resolved, taken.names()))
    }

    fn with_coming(&self) -> InForce {
        let mut all = self.in_force.clone();
        for (fault, action) in &self.coming {
            all.insert(fault, action.clone());
        }
        all
    }

    /// What was reserved was not injected.
    pub(super) fn is_dropped(&mut self, fault: &str) {
        self.coming.remove(fault);
        self.version += 1;
    }

    /// What was reserved is in force.
    pub(super) fn is_in_force(&mut self, fault: &str) {
        self.version += 1;
        if let Some(action) = self.coming.remove(fault) {
            self.note_replaced(&action);
            self.in_force.insert(fault, action);
            self.quorum_held.insert(fault.to_owned(), true);
        }
        if self.in_force.majority_side(&self.members, &self.voters, None).is_empty() {
            self.quorum_held.extend(self.in_force.names().into_iter().map(|fault| (fault, false)));
        }
    }

    /// What runs as something else now; when all were replaced, a round begins anew.
    fn note_replaced(&mut self, action: &Action) {
        let Some(by) = action.replaced_by() else { return };
        self.servers.extend(action.members().iter().map(|member| (*member, by)));
        self.replaced.extend(action.members());
        if self.replaced.len() == self.members.len() {
            self.replaced.clear();
        }
    }

    /// A fault is about to be healed.
    pub(super) fn is_ending(&mut self, fault: &str) {
        self.going.insert(fault.to_owned());
        self.version += 1;
    }

    /// It could not be healed: it stays in force.
    pub(super) fn is_left(&mut self, fault: &str) {
        self.going.remove(fault);
        self.version += 1;
    }

    /// It was healed.
    pub(super) fn is_gone(&mut self, fault: &str) {
        self.going.remove(fault);
        self.in_force.remove(fault);
        self.version += 1;
    }

    /// Whether nothing is on its way in or out, so that a proof can be drawn up.
    pub(super) fn is_settled(&self) -> bool {
        self.coming.is_empty() && self.going.is_empty()
    }

    /// The members whose processes faults have killed, or are about to kill.
    pub(super) fn killed(&self) -> Vec<MemberId> {
        self.with_coming().killed()
    }

    /// Whether a quorum remained ever since this fault came into force, all faults taken together.
    pub(super) fn quorum_held(&self, fault: &str) -> bool {
        self.quorum_held.get(fault).copied().unwrap_or(false)
    }

    /// What is in force at this moment.
    pub(super) fn in_force(&self) -> &InForce {
        &self.in_force
    }

    /// The number of changes so far.
    pub(super) fn version(&self) -> u64 {
        self.version
    }
}
