//! The wires between members: ordered, delivered by the script's hand, held or cut.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use node_core::io::ConnId;
use node_wire::election::Notification;
use node_wire::quorum::QuorumPacket;
use node_wire::snapshot::Image;

/// Votes on their way to one member that are kept; more than a script ever needs.
const MAX_VOTES: usize = 1_000;

/// What travels on a quorum connection.
#[derive(Clone, Debug)]
pub(crate) enum Item {
    Packet(QuorumPacket),
    Image(Image),
    End,
}

/// One end of a quorum connection.
#[derive(Debug)]
pub(crate) struct End {
    pub(crate) owner: u64,
    pub(crate) peer: u64,
    pub(crate) other: ConnId,
    /// On its way to the owner.
    pub(crate) incoming: VecDeque<Item>,
    /// The owner was told that it is over, or ended it.
    pub(crate) closed: bool,
}

/// Which queue the next thing is taken from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Channel {
    Votes { from: u64, to: u64 },
    Conn(ConnId),
}

/// All wires.
#[derive(Debug, Default)]
pub(crate) struct Wires {
    next_conn: u64,
    pub(crate) ends: BTreeMap<ConnId, End>,
    votes: BTreeMap<(u64, u64), VecDeque<Notification>>,
    /// Ordered pairs on which everything waits.
    held: BTreeSet<(u64, u64)>,
    /// Unordered pairs that can't reach each other.
    cut: BTreeSet<(u64, u64)>,
    /// Votes don't tell whom their sender hears, as those of Apache ZooKeeper don't.
    pub(crate) hushed: bool,
}

fn pair(a: u64, b: u64) -> (u64, u64) {
    (a.min(b), a.max(b))
}

impl Wires {
    pub(crate) fn connect(&mut self, dialler: u64, target: u64) -> (ConnId, ConnId) {
        let (near, far) = (ConnId(self.next_conn + 1), ConnId(self.next_conn + 2));
        self.next_conn += 2;
        for (conn, owner, peer, other) in [(near, dialler, target, far), (far, target, dialler, near)] {
            let end = End { owner, peer, other, incoming: VecDeque::new(), closed: false };
            self.ends.insert(conn, end);
        }
        (near, far)
    }

    /// Sends on a connection. What the other end no longer listens to is lost.
    pub(crate) fn send(&mut self, conn: ConnId, item: Item) {
        let end = &self.ends[&conn];
        assert!(!end.closed, "{} sent on a connection to {} that is over", end.owner, end.peer);
        let other = end.other;
        if let Some(other) = self.ends.get_mut(&other).filter(|other| !other.closed) {
            other.incoming.push_back(item);
        }
    }

    /// The owner ends a connection: what it sent still arrives.
    pub(crate) fn close(&mut self, conn: ConnId) {
        if !self.ends[&conn].closed {
            self.send(conn, Item::End);
            self.forget(conn);
        }
    }

    /// The owner knows that the connection is over.
    pub(crate) fn forget(&mut self, conn: ConnId) {
        if let Some(end) = self.ends.get_mut(&conn) {
            end.closed = true;
            end.incoming.clear();
        }
    }

    /// The open connections between two members, the ends of both.
    pub(crate) fn between(&self, a: u64, b: u64) -> Vec<ConnId> {
        let open = self.ends.iter().filter(|(_, end)| !end.closed && pair(end.owner, end.peer) == pair(a, b));
        open.map(|(conn, _)| *conn).collect()
    }

    /// The newest open connection of `owner` to `peer`.
    pub(crate) fn newest(&self, owner: u64, peer: u64) -> Option<ConnId> {
        let mut open = self.ends.iter().filter(|(_, end)| !end.closed && end.owner == owner);
        open.rfind(|(_, end)| end.peer == peer).map(|(conn, _)| *conn)
    }

    pub(crate) fn vote(&mut self, from: u64, to: u64, notification: Notification) {
        let queue = self.votes.entry((from, to)).or_default();
        let hears = notification.hears.filter(|_| !self.hushed);
        queue.push_back(Notification { hears, ..notification });
        assert!(queue.len() <= MAX_VOTES, "{from} floods {to} with votes");
    }

    pub(crate) fn take_vote(&mut self, from: u64, to: u64) -> Option<Notification> {
        self.votes.get_mut(&(from, to))?.pop_front()
    }

    /// A new or broken election connection: only the last vote is kept, and sent when it stands.
    pub(crate) fn keep_last_vote(&mut self, from: u64, to: u64) {
        if let Some(queue) = self.votes.get_mut(&(from, to)) {
            queue.drain(..queue.len().saturating_sub(1));
        }
    }

    pub(crate) fn forget_votes(&mut self, of: u64) {
        self.votes.retain(|(from, to), _| *from != of && *to != of);
    }

    pub(crate) fn hold(&mut self, from: u64, to: u64) {
        self.held.insert((from, to));
    }

    pub(crate) fn release(&mut self, from: u64, to: u64) {
        self.held.remove(&(from, to));
    }

    pub(crate) fn set_cut(&mut self, a: u64, b: u64) -> bool {
        self.cut.insert(pair(a, b))
    }

    pub(crate) fn heal(&mut self) -> BTreeSet<(u64, u64)> {
        std::mem::take(&mut self.cut)
    }

    pub(crate) fn is_cut(&self, a: u64, b: u64) -> bool {
        self.cut.contains(&pair(a, b))
    }

    /// Every queue with something that may be delivered now.
    pub(crate) fn deliverable(&self) -> Vec<Channel> {
        let free = |from: u64, to: u64| !self.held.contains(&(from, to)) && !self.is_cut(from, to);
        let votes = self.votes.iter().filter(|((from, to), queue)| !queue.is_empty() && free(*from, *to));
        let conns = self.ends.iter().filter(|(_, end)| !end.incoming.is_empty() && free(end.peer, end.owner));
        votes
            .map(|((from, to), _)| Channel::Votes { from: *from, to: *to })
            .chain(conns.map(|(conn, _)| Channel::Conn(*conn)))
            .collect()
    }

    /// Sender and receiver of a channel.
    pub(crate) fn route(&self, channel: Channel) -> (u64, u64) {
        match channel {
            Channel::Votes { from, to } => (from, to),
            Channel::Conn(conn) => (self.ends[&conn].peer, self.ends[&conn].owner),
        }
    }
}
