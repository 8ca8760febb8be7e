//! The decisions that ZAB and ZooKeeper leave to one rule each, as the rest of this crate asks for them.
//!
//! A [`Member`](crate::Member) is written over its [`Rules`]. [`Zab`] has them as the protocol does, in the
//! default methods, so this file says in one place what is decided: who decides, whose history is newer, how
//! a proposal is numbered, when it is committed, who may serve, and how a request is judged. Whoever wants to
//! know what a rule is worth drives a member with another one, and sees what goes wrong.
//!
//! Everything else of the protocol is in the roles: what is said when, and what waits for the disk.

use std::collections::BTreeSet;
use std::fmt;

use node_wire::ids::{Epoch, ServerId, Zxid};
use node_wire::snapshot::{Image, StatPersisted};

use crate::quorum::Quorum;
use crate::tree::Tree;

/// What voters have acknowledged, when a leader looks for what it may commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Acknowledged {
    /// The last zxid that the leader proposed.
    pub proposed: Zxid,
    /// The last zxid that a quorum has on disk.
    pub reached: Zxid,
    /// Voters that are synchronized with the leader, itself included.
    pub synchronized: usize,
    /// Voters of the membership that rules.
    pub voters: usize,
}

/// What is decided by rule.
pub trait Rules: fmt::Debug + Send + Sync + 'static {
    /// Who decides: more than half of the voters of the membership that rules. While another one is proposed,
    /// more than half of its voters as well (Shraer and others, "Dynamic Reconfiguration of Primary/Backup
    /// Clusters", ATC 2012, section 3).
    fn quorum(&self, active: BTreeSet<ServerId>, proposed: Option<BTreeSet<ServerId>>) -> Quorum {
        let active = Quorum::majority(active);
        match proposed {
            None => active,
            Some(proposed) => active.and_next(Quorum::majority(proposed)),
        }
    }

    /// What a history counts by when it is compared with another: the epoch of its last leader comes first,
    /// then its last zxid (Zab, section 4.1: the follower with the highest currentEpoch, then the highest
    /// zxid).
    fn newness(&self, epoch: Epoch, last: Zxid) -> (Epoch, Zxid) {
        (epoch, last)
    }

    /// Elections are held among the voters of the membership that rules and of those that are proposed, and
    /// no longer among those that the member was started with.
    fn electorate_changes(&self) -> bool {
        true
    }

    /// A leader that lost its quorum leaves its role.
    fn abdicates(&self) -> bool {
        true
    }

    /// A leader listens to one connection of each learner: the last.
    fn hangs_up_on_older(&self) -> bool {
        true
    }

    /// The zxid that a leader's epoch begins behind. Its proposals are numbered from there on (Zab, section
    /// 3.2: a zxid is an epoch and a counter of its own).
    fn beginning(&self, epoch: Epoch, history: Zxid) -> Zxid {
        let _ = history;
        Zxid::new(epoch, 0)
    }

    /// The zxid of the next proposal. None when the epoch's counter is used up at `last_counter`: another
    /// epoch is needed (ZOOKEEPER-1277).
    fn next_zxid(&self, last: Zxid, last_counter: u32) -> Option<Zxid> {
        last.next().filter(|zxid| zxid.counter() < last_counter)
    }

    /// Up to where the leader commits: what a quorum has on disk, and nothing else.
    fn commits(&self, acknowledged: Acknowledged) -> Zxid {
        acknowledged.reached
    }

    /// Clients are served by a member that takes part in an epoch that stands.
    fn serves(&self, established: bool) -> bool {
        established
    }

    /// A leader answers a sync when a quorum has confirmed that it still leads (ZOOKEEPER-1675).
    fn sync_asks_quorum(&self) -> bool {
        true
    }

    /// A session that comes to another member is heard of by that: its time-out begins anew.
    fn moving_is_life(&self) -> bool {
        true
    }

    /// A multi happens whole or not at all (ZOOKEEPER-1624).
    fn multi_is_atomic(&self) -> bool {
        true
    }

    /// A request is judged by what is proposed before it, and not only by what is committed.
    fn judged_by_proposals(&self) -> bool {
        true
    }

    /// The number in the name of a sequential node: how often a child was made, not how many there are.
    fn sequence(&self, cversion: i32, children: usize) -> i64 {
        let _ = children;
        i64::from(cversion)
    }

    /// Since when a node with a time to live lives: its last write, in milliseconds since the Unix epoch.
    fn lives_since(&self, stat: &StatPersisted) -> i64 {
        stat.mtime
    }

    /// By how many bytes a node is measured against a limit when `new` bytes are written over `old` ones.
    fn measured(&self, new: usize, old: usize) -> usize {
        let _ = old;
        new
    }

    /// A watch tells of a node only whom its list lets read it (CVE-2024-23944).
    fn watches_ask_lists(&self) -> bool {
        true
    }

    /// The tree of a snapshot, with everything that is told by its nodes alone: whose the ephemerals are, and
    /// which paths have limits.
    fn restore(&self, image: &Image) -> Tree {
        let mut tree = Tree::of_nodes(image);
        tree.find_owners();
        tree.find_quotas();
        tree
    }

    /// A member that starts finds the membership in its snapshot and its log, whatever its file says.
    fn history_tells_membership(&self) -> bool {
        true
    }
}

/// Rules that a member can be written over. Everything that has [`Rules`] and is copied freely is one.
pub trait Protocol: Rules + Copy {}

impl<R: Rules + Copy> Protocol for R {}

/// The rules as the protocol has them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Zab;

impl Rules for Zab {}
