//! What travels between members: packets and trees on quorum connections, votes on election channels.
//!
//! Links, pipes and connections are the world's; what they carry is the protocol's.

use harness_world::conn;
pub(crate) use harness_world::links::{Block, HostIndex, Links};
use harness_world::pipe::Pipe;
use node_core::io::ConnId;
use node_core::tree::TreeSnapshot;
use node_wire::election::Notification;
use node_wire::quorum::QuorumPacket;

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

/// A quorum connection: the end that dialled is end 0.
pub(crate) type Conn = conn::Conn<Cargo>;

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
    fn the_ends_of_a_connection_have_names_of_their_own() {
        let end = EndId { conn: 4, end: 1 };
        assert_eq!(EndId::of(end.id()), end);
        assert_ne!(end.id(), end.other().id());
    }
}
