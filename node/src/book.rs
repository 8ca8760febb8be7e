//! The address book: who is in the ensemble, or about to be, and where to dial each.
//!
//! It begins with what the member was started with and follows what the core says. A place to dial a peer
//! instead of where its line says (a link that can be cut, say) holds for as long as the process lives.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::sync::Arc;

use node_wire::ids::{ServerId, Zxid};
use node_wire::membership::{HostPort, Membership, ServerLine};

use crate::address::DialLine;
use crate::config::NodeConfig;

/// Members by number.
pub(crate) type Servers = BTreeMap<ServerId, ServerLine>;

/// Who is where.
#[derive(Debug)]
pub(crate) struct Book {
    dial: BTreeMap<ServerId, DialLine>,
    /// Members of the membership that rules.
    active: RefCell<Arc<Servers>>,
    version: Cell<Zxid>,
    /// These, and those of one that is proposed.
    known: RefCell<Servers>,
}

impl Book {
    pub(crate) fn new(config: &NodeConfig) -> Self {
        Self {
            dial: config.dial.clone(),
            active: RefCell::new(Arc::new(config.servers.clone())),
            version: Cell::new(Zxid::ZERO),
            known: RefCell::new(config.servers.clone()),
        }
    }

    /// The ensemble changed, or is about to.
    pub(crate) fn update(&self, active: &Membership, joining: Servers) {
        let mut known = active.servers.clone();
        known.extend(joining);
        self.active.replace(Arc::new(active.servers.clone()));
        self.version.set(active.version);
        self.known.replace(known);
    }

    /// Members of the membership that rules.
    pub(crate) fn active(&self) -> Arc<Servers> {
        Arc::clone(&self.active.borrow())
    }

    /// The version of that membership.
    pub(crate) fn version(&self) -> Zxid {
        self.version.get()
    }

    /// Everybody.
    pub(crate) fn ids(&self) -> Vec<ServerId> {
        self.known.borrow().keys().copied().collect()
    }

    pub(crate) fn line(&self, id: ServerId) -> Option<ServerLine> {
        self.known.borrow().get(&id).cloned()
    }

    /// The hosts of everybody.
    pub(crate) fn hosts(&self) -> Vec<String> {
        let known = self.known.borrow();
        known.values().flat_map(|line| [line.quorum.host.clone(), line.election.host.clone()]).collect()
    }

    /// Where to dial a peer's election port.
    pub(crate) fn election_target(&self, peer: ServerId) -> Option<HostPort> {
        let line = self.line(peer)?;
        Some(self.dial.get(&peer).map_or(line.election, |dial| dial.election.clone()))
    }

    /// Where to dial a peer's quorum port.
    pub(crate) fn quorum_target(&self, peer: ServerId) -> Option<HostPort> {
        let line = self.line(peer)?;
        Some(self.dial.get(&peer).map_or(line.quorum, |dial| dial.quorum.clone()))
    }
}
