//! The wires between members: links, quorum connections, election channels.
//!
//! A link is a direction between two members. It can be *held*, as by the bench's own link processes: what is
//! sent waits, and connecting still succeeds. Or *dropped*, as by a packet filter: what is sent waits for
//! retransmission, and connecting fails. Faults overlap, so each is a count.
//!
//! This file is state without time: the world decides when things arrive.

use node_core::io::ConnId;
use node_core::tree::TreeSnapshot;
use node_wire::election::Notification;
use node_wire::quorum::QuorumPacket;

use crate::pipe::Pipe;

/// A member's place in the world: its server id less one.
pub(crate) type HostIndex = usize;

/// How a link fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Block {
    /// What is sent waits; connecting succeeds.
    Hold,
    /// What is sent waits; connecting fails.
    Drop,
    /// Connecting is answered with a reset. What stood before is for the world to break.
    Refuse,
}

#[derive(Clone, Copy, Debug, Default)]
struct Link {
    delay_us: u64,
    held: u32,
    dropped: u32,
    refused: u32,
    /// What has arrived.
    delivered: u64,
}

/// Every direction between two members.
#[derive(Clone, Debug)]
pub(crate) struct Links {
    members: usize,
    links: Vec<Link>,
}

impl Links {
    /// Open links with delays drawn by the caller, one for each direction.
    pub(crate) fn new(members: usize, mut delay_us: impl FnMut() -> u64) -> Self {
        let links =
            (0..members * members).map(|_| Link { delay_us: delay_us(), ..Link::default() }).collect();
        Self { members, links }
    }

    fn at(&self, from: HostIndex, to: HostIndex) -> &Link {
        &self.links[from * self.members + to]
    }

    /// The usual delay of a direction.
    pub(crate) fn delay_us(&self, from: HostIndex, to: HostIndex) -> u64 {
        self.at(from, to).delay_us
    }

    /// True when what was sent arrives.
    pub(crate) fn passes(&self, from: HostIndex, to: HostIndex) -> bool {
        let link = self.at(from, to);
        link.held == 0 && link.dropped == 0 && link.refused == 0
    }

    /// True when a connection is answered with a reset.
    pub(crate) fn refuses(&self, from: HostIndex, to: HostIndex) -> bool {
        self.at(from, to).refused > 0 || self.at(to, from).refused > 0
    }

    /// Counts something that arrived.
    pub(crate) fn count(&mut self, from: HostIndex, to: HostIndex) {
        self.links[from * self.members + to].delivered += 1;
    }

    /// How much has arrived.
    pub(crate) fn delivered(&self, from: HostIndex, to: HostIndex) -> u64 {
        self.at(from, to).delivered
    }

    /// True when a connection can be opened: its handshake crosses both directions.
    pub(crate) fn dials(&self, from: HostIndex, to: HostIndex) -> bool {
        self.at(from, to).dropped == 0 && self.at(to, from).dropped == 0 && !self.refuses(from, to)
    }

    /// Adds a fault to a direction.
    pub(crate) fn block(&mut self, from: HostIndex, to: HostIndex, block: Block) {
        let link = &mut self.links[from * self.members + to];
        match block {
            Block::Hold => link.held += 1,
            Block::Drop => link.dropped += 1,
            Block::Refuse => link.refused += 1,
        }
    }

    /// Takes a fault from a direction. True when the direction passes again.
    pub(crate) fn unblock(&mut self, from: HostIndex, to: HostIndex, block: Block) -> bool {
        let link = &mut self.links[from * self.members + to];
        let count = match block {
            Block::Hold => &mut link.held,
            Block::Drop => &mut link.dropped,
            Block::Refuse => &mut link.refused,
        };
        *count = count.checked_sub(1).expect("a block is taken away once");
        self.passes(from, to)
    }
}

/// What travels on a quorum connection.
#[derive(Clone, Debug)]
pub(crate) enum Cargo {
    /// A packet.
    Packet(QuorumPacket),
    /// The stream behind a SNAP packet.
    Image(TreeSnapshot),
    /// The sender closed.
    Fin,
}

/// One end of a quorum connection.
#[derive(Clone, Debug)]
pub(crate) struct ConnEnd {
    pub(crate) host: HostIndex,
    /// The process that holds it; a later life of the same member knows nothing of it.
    pub(crate) life: u64,
    /// True until its process closed it or was told of its loss.
    pub(crate) open: bool,
    /// False while a dialler has not heard that its dial succeeded.
    pub(crate) announced: bool,
    /// What is on its way to this end.
    pub(crate) incoming: Pipe<Cargo>,
}

/// A quorum connection: the end that dialled is end 0.
#[derive(Clone, Debug)]
pub(crate) struct Conn {
    pub(crate) ends: [ConnEnd; 2],
    /// False once it was reset: what is sent on it vanishes, whether or not the ends know.
    pub(crate) alive: bool,
}

/// An end of a connection: which connection, and which end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EndId {
    pub(crate) conn: usize,
    pub(crate) end: usize,
}

impl EndId {
    /// The end of that name.
    pub(crate) fn of(id: ConnId) -> Self {
        let raw = usize::try_from(id.0).expect("connections are few");
        Self { conn: raw / 2, end: raw % 2 }
    }

    /// Its name towards a member.
    pub(crate) fn id(self) -> ConnId {
        ConnId(u64::try_from(self.conn * 2 + self.end).expect("connections are few"))
    }

    /// The other end.
    pub(crate) fn other(self) -> Self {
        Self { conn: self.conn, end: 1 - self.end }
    }
}

impl Conn {
    /// A connection between two processes.
    pub(crate) fn new(dialler: (HostIndex, u64), acceptor: (HostIndex, u64)) -> Self {
        let end = |(host, life), announced| ConnEnd {
            host,
            life,
            open: true,
            announced,
            incoming: Pipe::default(),
        };
        Self { ends: [end(dialler, false), end(acceptor, true)], alive: true }
    }
}

/// What travels on an election connection.
#[derive(Clone, Debug)]
pub(crate) enum Vote {
    /// The dialler's introduction: the acceptor learns of the connection by it.
    Hello,
    /// A vote.
    Notification(Notification),
}

/// One end of an election channel.
#[derive(Clone, Debug, Default)]
pub(crate) struct ChannelEnd {
    /// True while its process believes in the connection.
    pub(crate) told: bool,
    pub(crate) incoming: Pipe<Vote>,
}

/// The one election connection that a pair keeps: the larger id dials it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Channel {
    /// By rank within the pair: 0 is the smaller id.
    pub(crate) ends: [ChannelEnd; 2],
    pub(crate) up: bool,
    /// Counts connections, so that news of an old one is known as such.
    pub(crate) generation: u64,
    /// True while the larger id is trying to connect.
    pub(crate) dialling: bool,
}

/// The election channels of all pairs.
#[derive(Clone, Debug)]
pub(crate) struct Channels {
    members: usize,
    channels: Vec<Channel>,
}

impl Channels {
    /// No pair connected.
    pub(crate) fn new(members: usize) -> Self {
        Self { members, channels: vec![Channel::default(); members * members] }
    }

    /// The same, to be looked at only.
    pub(crate) fn look(&self, host: HostIndex, peer: HostIndex) -> (&Channel, usize) {
        let (small, large) = (host.min(peer), host.max(peer));
        (&self.channels[small * self.members + large], usize::from(host > peer))
    }

    /// The channel of a pair and the rank of the first of the two.
    pub(crate) fn of(&mut self, host: HostIndex, peer: HostIndex) -> (&mut Channel, usize) {
        let (small, large) = (host.min(peer), host.max(peer));
        (&mut self.channels[small * self.members + large], usize::from(host > peer))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_held_link_still_lets_a_dial_through_and_a_dropped_one_does_not() {
        let mut links = Links::new(2, || 5);
        links.block(0, 1, Block::Hold);
        assert!(!links.passes(0, 1));
        assert!(links.dials(0, 1) && links.dials(1, 0));
        links.block(0, 1, Block::Drop);
        assert!(!links.dials(1, 0), "the handshake needs both directions");
        assert!(!links.unblock(0, 1, Block::Hold));
        assert!(links.unblock(0, 1, Block::Drop));
    }

    #[test]
    fn the_ends_of_a_connection_have_names_of_their_own() {
        let end = EndId { conn: 4, end: 1 };
        assert_eq!(EndId::of(end.id()), end);
        assert_ne!(end.id(), end.other().id());
    }
}
