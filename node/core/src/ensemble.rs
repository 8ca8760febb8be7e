//! Who is in the ensemble, and how that changes while it serves.
//!
//! A member knows two memberships. The *active* one is the latest that it knows to be committed: it rules. A
//! *pending* one stands in a transaction of the log whose fate is open. While there is one, nothing is
//! decided but by quorums of both: the transaction itself, what is proposed behind it, elections, the promise
//! of an epoch, the taking over of a history. So whoever leads next has the transaction in its log if it can
//! have been committed, finishes it, or cuts it off where no quorum ever had it. After its commit the new
//! membership decides alone: a leader that did not hear of it needs a quorum of the old one, meets the
//! transaction there, and then needs the new one as well. (Shraer, Reed, Malkhi, Junqueira: "Dynamic
//! Reconfiguration of Primary/Backup Clusters", ATC 2012. There one reconfiguration is under way at a time,
//! and so here.)
//!
//! What is known to be committed comes from five places, and only ever moves forward: the transaction is
//! applied; a later transaction of this kind, or any of a later epoch, stands behind it in the log; a
//! snapshot holds it; a vote carries it (votes tell active memberships); NEWLEADER carries it and UPTODATE
//! follows. Files are written behind all that and may lag: they speed a member's start up and decide nothing
//! that the log does not.
//!
//! A third kind is *heard of* in votes: what the log of a candidate proposes, whether or not we logged it
//! too. It has no say in anything that we decide as a leader; it tells the election who else takes part and
//! what that candidate needs ([`crate::election`]), and the driver where they are. It is forgotten once an
//! epoch stands: by then it is active, or will never be.
//!
//! The membership that members are started with has no version. Once an epoch stands, it gets the epoch's
//! first zxid as its version, with NEWLEADER (ZOOKEEPER-1783): so it beats what a newcomer was started with.
//! While an epoch runs, its NEWLEADER names the active membership. Apache ZooKeeper names the last one that
//! was proposed, and a learner may let that one rule before it is committed.
//!
//! Who is not in it may follow all the same, without a vote: that is how one is up to date before it joins.

use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};

use bytes::Bytes;
use node_wire::client::OpCode;
use node_wire::ids::{ServerId, Zxid};
use node_wire::membership::{Membership, ServerLine, ServerRole};
use node_wire::txn::{Entry, Txn};

use crate::config::Config;
use crate::quorum::Quorum;
use crate::rules::Reconfiguration;
use crate::tree::Tree;
use crate::zab::Protocol;

/// The znode that shows it.
pub(crate) const CONFIG_NODE: &str = "/zookeeper/config";

/// Candidates whose proposals are remembered at most: an ensemble in which so many changes were left
/// unfinished, each in the log of another candidate, is none that works.
const MAX_HEARD: usize = 16;

/// What a member knows of its ensemble.
#[derive(Clone, Debug)]
pub(crate) struct Ensemble {
    me: ServerId,
    /// Reconfiguration is switched on.
    pub(crate) changes: bool,
    active: Membership,
    /// The transaction that may change it, and into what.
    pending: Option<(Zxid, Membership)>,
    /// What the logs of candidates propose, as votes for them tell.
    heard: BTreeMap<ServerId, Membership>,
}

impl Ensemble {
    pub(crate) fn new(config: &Config) -> Self {
        let changes = matches!(config.clients.reconfig, Reconfiguration::On { .. });
        let active = if config.clients.membership.is_empty() {
            Membership::default()
        } else {
            config.clients.membership.parse().expect("the driver gives a membership that it read itself")
        };
        Self { me: config.id, changes, active, pending: None, heard: BTreeMap::new() }
    }

    pub(crate) fn active(&self) -> &Membership {
        &self.active
    }

    /// Mixes in what it knows.
    pub(crate) fn fingerprint(&self, state: &mut impl Hasher) {
        let Self { me: _, changes: _, active, pending, heard } = self;
        (active, pending, heard).hash(state);
    }

    /// Members of the pending one that are not in the active one, or elsewhere; and those of which only votes
    /// told.
    pub(crate) fn joining(&self) -> BTreeMap<ServerId, ServerLine> {
        let heard = self.heard.values().flat_map(|heard| &heard.servers);
        let unknown = heard.filter(|(id, _)| !self.active.servers.contains_key(id));
        let pending = self.pending.iter().flat_map(|(_, pending)| &pending.servers);
        let new = pending.filter(|(id, line)| self.active.servers.get(id) != Some(line));
        unknown.chain(new).map(|(id, line)| (*id, line.clone())).collect()
    }

    /// The text of the pending one.
    pub(crate) fn proposed(&self) -> Option<Bytes> {
        self.pending.as_ref().map(|(_, pending)| pending.to_bytes())
    }

    /// What the logs of candidates propose, as votes for them tell.
    pub(crate) fn heard(&self) -> impl Iterator<Item = (ServerId, &Membership)> {
        self.heard.iter().map(|(candidate, proposed)| (*candidate, proposed))
    }

    /// A vote told what its candidate's log proposes. That it proposes nothing counts from the candidate
    /// alone: others may not know.
    pub(crate) fn hear(
        &mut self,
        from: ServerId,
        candidate: ServerId,
        proposed: Option<Membership>,
    ) -> Changed {
        if !self.changes || candidate == self.me {
            return Changed::Nothing;
        }
        let open = |proposed: &Membership| proposed.version > self.active.version;
        let changed = match proposed.filter(|proposed| open(proposed) && !proposed.voters().is_empty()) {
            Some(proposed) if self.heard.get(&candidate) == Some(&proposed) => false,
            Some(_) if self.heard.len() >= MAX_HEARD && !self.heard.contains_key(&candidate) => false,
            Some(proposed) => {
                self.heard.insert(candidate, proposed);
                true
            }
            None => from == candidate && self.heard.remove(&candidate).is_some(),
        };
        if changed { Changed::Quorum } else { Changed::Nothing }
    }

    /// An epoch stands: what was heard of is active, or will never be.
    pub(crate) fn forget_heard(&mut self) -> Changed {
        if std::mem::take(&mut self.heard).is_empty() { Changed::Nothing } else { Changed::Quorum }
    }

    /// The latest one, committed or not.
    pub(crate) fn latest(&self) -> &Membership {
        self.pending.as_ref().map_or(&self.active, |(_, pending)| pending)
    }

    pub(crate) fn pending(&self) -> Option<Zxid> {
        self.pending.as_ref().map(|(zxid, _)| *zxid)
    }

    /// The quorums of the memberships that have a say.
    pub(crate) fn quorum<P: Protocol>(&self, config: &Config, zab: P) -> Quorum {
        if !self.changes {
            return zab.quorum(config.voters.clone(), None);
        }
        self.quorum_of(self.pending.as_ref().map(|(_, pending)| pending), zab)
    }

    /// What somebody needs by whose log this membership is proposed.
    pub(crate) fn quorum_of<P: Protocol>(&self, proposed: Option<&Membership>, zab: P) -> Quorum {
        zab.quorum(self.active.voters(), proposed.map(Membership::voters))
    }

    /// Who gets what is committed and has no say in it. While a membership is pending, a vote in either is
    /// one: who is to lose it may be the one whose vote decides whether that happens.
    pub(crate) fn observes(&self, server: ServerId, config: &Config) -> bool {
        if !self.changes {
            return config.observers.contains(&server);
        }
        self.latest().role(server) == Some(ServerRole::Observer)
            && self.active.role(server) != Some(ServerRole::Participant)
    }

    /// True when this member announces itself as an observer.
    pub(crate) fn i_observe(&self, config: &Config) -> bool {
        if self.changes { self.observes(self.me, config) } else { config.observes() }
    }

    /// True for a member that may lead by what rules.
    pub(crate) fn leads(&self, server: ServerId) -> bool {
        !self.changes || self.active.role(server) == Some(ServerRole::Participant)
    }

    /// A member may follow this one: where memberships change, anybody may.
    pub(crate) fn welcomes(
        &self,
        server: ServerId,
        observes: bool,
        quorum: &Quorum,
        config: &Config,
    ) -> bool {
        server != self.me
            && (self.changes
                || if observes { config.observers.contains(&server) } else { quorum.contains(server) })
    }

    /// A transaction was logged.
    pub(crate) fn logged(&mut self, entry: &Entry) -> Changed {
        if !self.changes {
            return Changed::Nothing;
        }
        let mut changed = Changed::Nothing;
        let next = membership_of(entry);
        if let Some((zxid, _)) = &self.pending
            && (next.is_some() || entry.zxid().epoch() > zxid.epoch())
        {
            let (_, pending) = self.pending.take().expect("just looked at");
            changed = self.activate(pending);
        }
        if let Some(next) = next.filter(|next| next.version > self.active.version) {
            self.pending = Some((entry.zxid(), next));
            changed = changed.max(Changed::Quorum);
        }
        changed
    }

    /// The log was cut behind this zxid.
    pub(crate) fn truncated(&mut self, zxid: Zxid) -> Changed {
        match &self.pending {
            Some((pending, _)) if *pending > zxid => {
                self.pending = None;
                Changed::Quorum
            }
            Some(_) | None => Changed::Nothing,
        }
    }

    /// A membership is known to be committed.
    pub(crate) fn activate(&mut self, membership: Membership) -> Changed {
        // One without a voter is nothing that any leader makes.
        if !self.changes || membership.version <= self.active.version || membership.voters().is_empty() {
            return Changed::Nothing;
        }
        if self.pending.as_ref().is_some_and(|(_, pending)| pending.version <= membership.version) {
            self.pending = None;
        }
        self.heard.retain(|_, heard| heard.version > membership.version);
        self.active = membership;
        Changed::Active
    }

    /// The membership that a committed tree shows.
    pub(crate) fn take_from(&mut self, tree: &Tree) -> Changed {
        match shown(tree) {
            Some(membership) => self.activate(membership),
            None => Changed::Nothing,
        }
    }

    /// A leader's snapshot replaced the log. What it shows is committed where the leader applies nothing
    /// else, and pending where that is not known.
    pub(crate) fn installed(&mut self, tree: &Tree, committed: bool) -> Changed {
        let forgotten = if self.pending.take().is_some() { Changed::Quorum } else { Changed::Nothing };
        let shown = shown(tree).filter(|shown| self.changes && shown.version > self.active.version);
        let changed = match shown {
            None => Changed::Nothing,
            Some(shown) if committed => self.activate(shown),
            Some(shown) => {
                self.pending = Some((tree.zxid(), shown));
                Changed::Quorum
            }
        };
        changed.max(forgotten)
    }

    /// The tree shows what is active, unless it shows something later.
    pub(crate) fn show_in(&self, tree: &mut Tree) {
        if self.changes && shown(tree).is_none_or(|shown| shown.version < self.active.version) {
            tree.show_membership(&self.active.to_string().into());
        }
    }
}

fn shown(tree: &Tree) -> Option<Membership> {
    Membership::from_bytes(tree.node(CONFIG_NODE)?.data.as_ref()?).ok()
}

/// What happened to a member's idea of its ensemble.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Changed {
    Nothing,
    /// Who decides.
    Quorum,
    /// Which membership rules.
    Active,
}

/// The membership that a transaction makes, if it makes one.
pub(crate) fn membership_of(entry: &Entry) -> Option<Membership> {
    if entry.header.kind != OpCode::Reconfig.code() {
        return None;
    }
    match &entry.txn {
        Txn::SetData { data: Some(data), .. } => Membership::from_bytes(data).ok(),
        _ => None,
    }
}
