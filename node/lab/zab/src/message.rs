//! What members say to each other: votes on the election port, and packets on the quorum port.

use std::fmt;

use bytes::{Bytes, BytesMut};
use harness_protocols::Id;
use node_wire::client::SetDataRequest;
use node_wire::election::{Notification, PeerState};
use node_wire::ids::{Epoch, Round, ServerId, Zxid};
use node_wire::jute::{Reader, encode};
use node_wire::quorum::{Dialect, ForwardedRequest, PacketType, QuorumPacket, decode_packet};
use node_wire::txn::Entry;

use crate::words::{dotted, effect, ranges, written};

/// A message.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Message {
    /// A vote.
    Vote(Vote),
    /// What one step sent on a connection of the quorum port.
    Packets(Packets),
    /// To itself: everything up to this ticket is on the disk.
    Stored(u64),
}

/// A vote. Those of one sender are in the order in which it can have said them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Vote {
    round: u64,
    /// 0 while it looks, as the wire has it.
    state: i32,
    epoch: u32,
    zxid: u64,
    leader: u64,
    hears: Vec<u64>,
}

impl Vote {
    /// Whether its sender says the same, whoever it hears meanwhile.
    pub(crate) fn says_as(&self, other: &Self) -> bool {
        let said = |vote: &Self| (vote.round, vote.state, vote.epoch, vote.zxid, vote.leader);
        said(self) == said(other)
    }

    /// Whom it is for.
    pub(crate) fn leader(&self) -> u64 {
        self.leader
    }

    /// In which round.
    pub(crate) fn round(&self) -> u64 {
        self.round
    }

    /// As the member takes it.
    pub(crate) fn notification(&self) -> Option<Notification> {
        Some(Notification {
            state: PeerState::try_from(self.state).ok()?,
            leader: ServerId(self.leader),
            zxid: Zxid(self.zxid),
            round: Round(self.round),
            peer_epoch: Epoch(self.epoch),
            config: None,
            proposed: None,
            hears: Some(self.hears.iter().copied().map(ServerId).collect()),
            dialect: Dialect::Own,
        })
    }
}

impl From<&Notification> for Vote {
    fn from(notification: &Notification) -> Self {
        let hears = notification.hears.iter().flatten().map(|server| server.0).collect();
        Self {
            round: notification.round.0,
            state: notification.state.code(),
            epoch: notification.peer_epoch.0,
            zxid: notification.zxid.0,
            leader: notification.leader.0,
            hears,
        }
    }
}

impl fmt::Display for Vote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { round, state, epoch, zxid, leader, hears: _ } = self;
        match PeerState::try_from(*state) {
            Ok(PeerState::Leading) => write!(f, "leads since round {round}"),
            Ok(PeerState::Following | PeerState::Observing) => {
                write!(f, "follows s{leader} since round {round}")
            }
            Ok(PeerState::Looking) | Err(_) => {
                let zxid = Zxid(*zxid);
                write!(f, "vote for s{leader}, ")?;
                if zxid.epoch().0 != *epoch {
                    write!(f, "epoch {epoch}, ")?;
                }
                write!(f, "{}, round {round}", dotted(zxid))
            }
        }
    }
}

/// A connection of the quorum port: who dialled, in which of its lives, and which of its dials it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Connection {
    /// Who dialled.
    pub dialler: Id,
    /// A later life has more on its disk, or has begun nothing that could be confused.
    pub life: usize,
    /// Counts its dials.
    pub dial: u32,
}

/// What one step sent on a connection.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Packets {
    /// On which.
    pub connection: Connection,
    /// Its place among what this end sent there.
    pub number: u32,
    /// Each as the wire has it.
    pub packets: Vec<Bytes>,
    /// Whether the connection is closed behind them.
    pub closes: bool,
}

/// A packet, encoded.
pub(crate) fn encoded(packet: &QuorumPacket) -> Bytes {
    encode(|w| packet.encode(w))
}

impl Packets {
    /// The packets, decoded.
    pub(crate) fn decoded(&self) -> impl Iterator<Item = QuorumPacket> + '_ {
        self.packets
            .iter()
            .filter_map(|bytes| decode_packet(&mut BytesMut::from(bytes.clone())).ok().flatten())
    }
}

impl fmt::Display for Packets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let packets: Vec<QuorumPacket> = self.decoded().collect();
        let mut said: Vec<String> = Vec::new();
        let mut rest = packets.as_slice();
        while let Some(first) = rest.first() {
            let count = rest.iter().take_while(|packet| is_history(packet)).count();
            if count > 0 && packets.len() > 1 {
                let proposals = rest[..count].iter().filter(|packet| packet.kind == PacketType::Proposal);
                let zxids = ranges(proposals.map(|packet| Zxid::from_wire(packet.zxid)));
                said.push(format!("PROPOSAL {zxids}"));
                rest = &rest[count..];
            } else {
                said.push(packet_in_words(first, self.number));
                rest = &rest[1..];
            }
        }
        if self.closes {
            said.push("closes".to_owned());
        }
        f.write_str(&said.join(", "))
    }
}

/// Part of a history that is sent: what was proposed, and that it is committed.
fn is_history(packet: &QuorumPacket) -> bool {
    matches!(packet.kind, PacketType::Proposal | PacketType::Commit)
}

/// `number`: its place on the connection.
fn packet_in_words(packet: &QuorumPacket, number: u32) -> String {
    let zxid = Zxid::from_wire(packet.zxid);
    let data = packet.data.clone().unwrap_or_default();
    match packet.kind {
        PacketType::FollowerInfo => format!("FOLLOWERINFO {}", zxid.epoch()),
        PacketType::LeaderInfo => format!("LEADERINFO {}", zxid.epoch()),
        PacketType::AckEpoch => {
            let current = Reader::new(data).int().unwrap_or_default();
            format!("ACKEPOCH {current}, {}", dotted(zxid))
        }
        PacketType::NewLeader => format!("NEWLEADER {}", zxid.epoch()),
        // FOLLOWERINFO, ACKEPOCH, this; and that of UPTODATE says the same.
        PacketType::Ack if zxid.counter() == 0 && number > 2 => "ACK UPTODATE".to_owned(),
        PacketType::Ack if zxid.counter() == 0 => format!("ACK NEWLEADER {}", zxid.epoch()),
        PacketType::UpToDate => "UPTODATE".to_owned(),
        PacketType::Proposal => {
            let what = Entry::decode(data).map(|entry| effect(&entry)).unwrap_or_default();
            format!("PROPOSAL {} {what}", dotted(zxid))
        }
        PacketType::Request => {
            let request = ForwardedRequest::decode(data, Vec::new());
            let body = request.and_then(|request| Reader::new(request.payload).read::<SetDataRequest>());
            let what = body.map(|body| written(&body.path, body.data.as_deref())).unwrap_or_default();
            format!("REQUEST {what}")
        }
        kind => format!("{} {}", format!("{kind:?}").to_uppercase(), dotted(zxid)),
    }
}

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Vote(vote) => vote.fmt(f),
            Self::Packets(packets) => packets.fmt(f),
            Self::Stored(ticket) => write!(f, "stored {ticket}"),
        }
    }
}
