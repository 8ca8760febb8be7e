//! Who holds what: the one place that knows which faults are in force, and which are on their way in or out.
//!
//! Faults that act at once share members and the network, so two things have to be decided together. A target is
//! resolved and reserved in one step, else two faults could take the same process. And a proof looks at the
//! ensemble for some milliseconds, in which another fault may come or go: it is drawn up against the ledger as it
//! stood, and counts as a refutation only when the ledger still stands like that afterwards.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use runs::member::MemberId;
use tokio::sync::watch;

use harness_core::fault::Server;
use harness_core::fault::action::Action;
use harness_core::fault::in_force::InForce;
use harness_core::fault::scene::{Resolved, Scene};

use super::PlannedFault;

/// The ledger of one run.
#[derive(Debug)]
pub struct Ledger {
    members: Vec<MemberId>,
    voters: Vec<MemberId>,
    inner: Mutex<Inner>,
    version: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct Inner {
    in_force: InForce,
    /// Those that are being injected.
    coming: BTreeMap<String, Action>,
    /// Injections and healings under way.
    changing: u32,
    /// Whether a quorum remained ever since a fault came into force.
    quorum_held: BTreeMap<String, bool>,
    /// What each member runs as, where kinds of servers replace each other.
    servers: BTreeMap<MemberId, Server>,
    /// The members that were replaced in this round.
    replaced: BTreeSet<MemberId>,
}

impl Inner {
    fn with_coming(&self) -> InForce {
        let mut all = self.in_force.clone();
        for (fault, action) in &self.coming {
            all.insert(fault, action.clone());
        }
        all
    }
}

impl Inner {
    /// What is about to run as something else; when all were replaced, a round begins anew.
    fn note_replaced(&mut self, action: &Action, all: usize) {
        let Action::Replace { members, by } = action else { return };
        self.servers.extend(members.iter().map(|member| (*member, *by)));
        self.replaced.extend(members);
        if self.replaced.len() == all {
            self.replaced.clear();
        }
    }
}

impl Ledger {
    /// A ledger in which nothing is in force.
    pub fn new(members: &[MemberId], voters: &[MemberId]) -> Self {
        Self {
            members: members.to_vec(),
            voters: voters.to_vec(),
            inner: Mutex::default(),
            version: watch::Sender::new(0),
        }
    }

    /// The same, with what each member runs as.
    pub fn with_servers(self, servers: BTreeMap<MemberId, Server>) -> Self {
        self.lock().servers = servers;
        self
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn changed(&self) {
        self.version.send_modify(|version| *version = version.wrapping_add(1));
    }

    /// Decides whom a fault hits and reserves the target. Also gives the names of the faults beside it.
    pub fn resolve(
        &self,
        fault: &PlannedFault,
        leader: Option<MemberId>,
    ) -> Option<(Resolved, Vec<String>, Change<'_>)> {
        let (resolved, beside) = {
            let mut inner = self.lock();
            let in_force = inner.with_coming();
            let scene = Scene {
                members: &self.members,
                voters: &self.voters,
                leader,
                in_force: &in_force,
                servers: &inner.servers,
                replaced: &inner.replaced,
            };
            let resolved = fault.kind.resolve(fault.draw, fault.turn, &scene)?;
            inner.coming.insert(fault.id.clone(), resolved.action.clone());
            inner.changing += 1;
            (resolved, in_force.names())
        };
        self.changed();
        Some((resolved, beside, Change { ledger: self, fault: fault.id.clone() }))
    }

    /// A fault is about to be healed; it counts as in force until it is.
    pub fn ending(&self, fault: &str) -> Change<'_> {
        self.lock().changing += 1;
        self.changed();
        Change { ledger: self, fault: fault.to_owned() }
    }

    /// The members whose processes faults have killed, or are about to kill.
    pub fn killed(&self) -> Vec<MemberId> {
        self.lock().with_coming().killed()
    }

    /// Whether a quorum remained ever since this fault came into force, all faults taken together.
    pub fn quorum_held(&self, fault: &str) -> bool {
        self.lock().quorum_held.get(fault).copied().unwrap_or(false)
    }

    /// What is in force at this moment.
    pub fn in_force(&self) -> InForce {
        self.lock().in_force.clone()
    }

    /// The number of changes so far.
    pub fn version(&self) -> u64 {
        *self.version.borrow()
    }

    /// What is in force when nothing is on its way in or out, and at which version.
    pub async fn settled(&self) -> (u64, InForce) {
        let mut version = self.version.subscribe();
        loop {
            let at = *version.borrow_and_update();
            {
                let inner = self.lock();
                if inner.changing == 0 {
                    return (at, inner.in_force.clone());
                }
            }
            // The sender is ours, so it can't be gone.
            let _ = version.changed().await;
        }
    }

    /// Completes when something has changed since `version`.
    pub async fn changed_since(&self, version: u64) {
        let mut current = self.version.subscribe();
        let _ = current.wait_for(|current| *current != version).await;
    }
}

/// An injection or a healing under way. When it is dropped before it is done, the fault stays what it was.
#[derive(Debug)]
#[must_use]
pub struct Change<'a> {
    ledger: &'a Ledger,
    fault: String,
}

impl Change<'_> {
    /// The fault is in force.
    pub fn is_in_force(self) {
        let mut inner = self.ledger.lock();
        if let Some(action) = inner.coming.remove(&self.fault) {
            inner.note_replaced(&action, self.ledger.members.len());
            inner.in_force.insert(&self.fault, action);
            inner.quorum_held.insert(self.fault.clone(), true);
        }
        if inner.in_force.majority_side(&self.ledger.members, &self.ledger.voters, None).is_empty() {
            let standing = inner.in_force.names();
            inner.quorum_held.extend(standing.into_iter().map(|fault| (fault, false)));
        }
    }

    /// The fault is gone.
    pub fn is_gone(self) {
        self.ledger.lock().in_force.remove(&self.fault);
    }
}

impl Drop for Change<'_> {
    fn drop(&mut self) {
        {
            let mut inner = self.ledger.lock();
            inner.coming.remove(&self.fault);
            inner.changing -= 1;
        }
        self.ledger.changed();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nemesis::Nemesis;

    fn ledger() -> Ledger {
        Ledger::new(&[1, 2, 3].map(MemberId), &[1, 2, 3].map(MemberId))
    }

    fn planned(id: &str, kind: Nemesis) -> PlannedFault {
        PlannedFault { id: id.to_owned(), kind, start_ms: 0, hold_ms: 1, draw: 5, turn: 0 }
    }

    #[tokio::test]
    async fn a_target_is_reserved_the_moment_it_is_resolved() {
        let ledger = ledger();
        let leader = Some(MemberId(2));
        let (kill, beside, change) =
            ledger.resolve(&planned("F1", Nemesis::KILL_LEADER), leader).expect("a leader");
        assert_eq!((kill.targets, beside.len()), (vec![MemberId(2)], 0));
        assert!(ledger.resolve(&planned("F2", Nemesis::PAUSE_LEADER), leader).is_none());
        assert_eq!(ledger.killed(), [MemberId(2)]);
        change.is_in_force();
        let (rest, beside, change) =
            ledger.resolve(&planned("F3", Nemesis::KILL_ALL), leader).expect("others are left");
        assert_eq!((rest.targets, beside), ([1, 3].map(MemberId).to_vec(), vec!["F1".to_owned()]));
        drop(change);
        assert_eq!(ledger.killed(), [MemberId(2)], "what was never injected is forgotten");
    }

    #[tokio::test]
    async fn what_is_in_force_is_told_when_nothing_changes() {
        let ledger = ledger();
        let (_, _, change) = ledger.resolve(&planned("F1", Nemesis::KILL_ONE), None).expect("someone");
        let waiting = ledger.settled();
        tokio::pin!(waiting);
        assert!(futures_pending(&mut waiting).await);
        change.is_in_force();
        let (version, force) = waiting.await;
        assert_eq!((force.names(), ledger.version()), (vec!["F1".to_owned()], version));
        ledger.ending("F1").is_gone();
        ledger.changed_since(version).await;
        assert!(ledger.settled().await.1.is_empty());
    }

    async fn futures_pending(future: &mut (impl Future + Unpin)) -> bool {
        tokio::select! {
            biased;
            _ = future => false,
            () = std::future::ready(()) => true,
        }
    }

    #[test]
    fn a_quorum_that_another_fault_took_is_remembered_with_each_in_force() {
        let ledger = ledger();
        let inject = |id: &str, kind| {
            let (_, _, change) = ledger.resolve(&planned(id, kind), Some(MemberId(1))).expect("a target");
            change.is_in_force();
        };
        inject("F1", Nemesis::CLOCK_BUMP);
        inject("F2", Nemesis::KILL_LEADER);
        assert!(ledger.quorum_held("F1") && ledger.quorum_held("F2"));
        inject("F3", Nemesis::KILL_ONE);
        ledger.ending("F3").is_gone();
        inject("F4", Nemesis::PARTITION_RING);
        assert!(!ledger.quorum_held("F1") && !ledger.quorum_held("F3"));
    }
}
