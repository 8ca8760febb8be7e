//! The quorum port: what a leader and its learners tell each other.
//!
//! The stream is records behind records, without any framing: the end of a packet is known only by reading
//! it. [`decode_packet`] does so without consuming anything before a packet is there whole. The one exception
//! is what follows a SNAP packet, the tree itself; see [`snapshot`](crate::snapshot).
//!
//! What a packet's `zxid` means depends on its type, and so does its data: a proposal carries an
//! [`Entry`](crate::txn::Entry)'s bytes, the others one of the small records below or nothing.
//!
//! A REQUEST also carries the identities of the client whose request it forwards: the leader judges it, and
//! only the member that has the connection knows who speaks.

use bytes::{Bytes, BytesMut};

use crate::client::{Id, codes};
use crate::ids::{ServerId, SessionId};
use crate::jute::limits::MAX_FRAME;
use crate::jute::{DecodeError, Reader, Scan, Writer, encode, record};

/// The most data of a packet, unless `jute.maxbuffer` says otherwise: twice a frame, as ZooKeeper's reader
/// allows.
pub const MAX_PACKET_DATA: usize = 2 * MAX_FRAME;
/// The most identities in a packet.
pub const MAX_AUTH_INFO: usize = 256;
/// The longest scheme or name of an identity.
pub const MAX_AUTH_STRING: usize = 4096;

/// The protocol that a learner of today speaks.
pub const LEARNER_PROTOCOL: i32 = 0x1_0000;

codes! {
    /// What a packet is.
    pub enum PacketType {
        /// Learner to leader: a client's request.
        Request = 1,
        /// Leader to follower: a transaction to log.
        Proposal = 2,
        /// Follower to leader: logged; also acknowledges NEWLEADER and UPTODATE.
        Ack = 3,
        /// Leader to follower: a quorum logged it.
        Commit = 4,
        /// Leader to learner and back: alive; the answer says which sessions are.
        Ping = 5,
        /// Learner to leader and back: whether a session that moved is still good.
        Revalidate = 6,
        /// Leader to learner: the answer to a forwarded sync.
        Sync = 7,
        /// Leader to observer: a transaction that is committed.
        Inform = 8,
        /// Leader to follower: commit a reconfiguration.
        CommitAndActivate = 9,
        /// Leader to learner: the history is complete, up to the transactions that are still open.
        NewLeader = 10,
        /// Follower to leader: the first packet.
        FollowerInfo = 11,
        /// Leader to learner: a quorum has the history, serve clients.
        UpToDate = 12,
        /// Leader to learner: the transactions that you lack follow.
        Diff = 13,
        /// Leader to learner: drop what is behind this zxid, the rest follows.
        Trunc = 14,
        /// Leader to learner: the whole tree follows.
        Snap = 15,
        /// Observer to leader: the first packet.
        ObserverInfo = 16,
        /// Leader to learner: the new epoch.
        LeaderInfo = 17,
        /// Learner to leader: the epoch is accepted, and this is what I have.
        AckEpoch = 18,
        /// Leader to observer: a reconfiguration that is committed.
        InformAndActivate = 19,
    }
}

/// A packet in either direction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuorumPacket {
    /// What it is.
    pub kind: PacketType,
    /// What it is about; raw, because its meaning depends on the type.
    pub zxid: i64,
    /// What it carries.
    pub data: Option<Bytes>,
    /// Whose request it is; empty in every packet but a REQUEST.
    pub auth: Vec<Id>,
}

impl QuorumPacket {
    /// A packet that speaks for no client.
    #[must_use]
    pub fn new(kind: PacketType, zxid: i64, data: Option<Bytes>) -> QuorumPacket {
        QuorumPacket { kind, zxid, data, auth: Vec::new() }
    }

    /// How the sender speaks, where the packet shows it: it is the first that matters in its direction.
    #[must_use]
    pub fn dialect(&self) -> Option<Dialect> {
        let mut r = Reader::new(self.data.clone().unwrap_or_default());
        match self.kind {
            PacketType::FollowerInfo | PacketType::ObserverInfo => {
                LearnerInfo::decode(&mut r).ok().map(|info| info.dialect)
            }
            PacketType::LeaderInfo => LeaderInfo::decode(&mut r).ok().map(|info| info.dialect),
            _ => None,
        }
    }

    /// True when whoever takes this packet takes a PING behind it, at any time: a leader has told its learner
    /// the whole history, or a learner has said that it has it.
    #[must_use]
    pub fn opens_pings(&self) -> bool {
        matches!(self.kind, PacketType::NewLeader | PacketType::Ack | PacketType::Ping)
    }

    /// Appends the packet.
    pub fn encode(&self, w: &mut Writer<'_>) {
        w.int(self.kind.code());
        w.long(self.zxid);
        w.write(&self.data);
        // Apache ZooKeeper walks the identities of a REQUEST without asking whether there is a list.
        if self.auth.is_empty() && self.kind != PacketType::Request {
            w.null();
        } else {
            w.write(&self.auth);
        }
    }
}

/// Takes a packet off the front of what was received, once it is there whole.
///
/// # Errors
/// When the bytes are not a packet. The stream can't be followed any further then.
pub fn decode_packet(buffer: &mut BytesMut) -> Result<Option<QuorumPacket>, DecodeError> {
    decode_packet_within(buffer, MAX_PACKET_DATA)
}

/// As [`decode_packet`], where a packet may have so many bytes of data.
///
/// # Errors
/// As for [`decode_packet`].
pub fn decode_packet_within(
    buffer: &mut BytesMut,
    max_data: usize,
) -> Result<Option<QuorumPacket>, DecodeError> {
    let Some(len) = scan_packet(buffer, max_data)? else { return Ok(None) };
    let mut r = Reader::new(buffer.split_to(len).freeze());
    let kind = PacketType::try_from(r.int()?)?;
    Ok(Some(QuorumPacket { kind, zxid: r.long()?, data: r.buffer()?, auth: r.read()? }))
}

/// How long the packet at the front is, if it is there whole.
fn scan_packet(bytes: &[u8], max_data: usize) -> Result<Option<usize>, DecodeError> {
    let mut scan = Scan::new(bytes);
    let Some(kind) = scan.int() else { return Ok(None) };
    // A stream that is not ours is refused at its first bytes, not after waiting for what they seem to
    // announce.
    PacketType::try_from(kind)?;
    if scan.long().is_none() || scan.buffer(max_data)?.is_none() {
        return Ok(None);
    }
    let Some(identities) = scan.length(MAX_AUTH_INFO)? else { return Ok(None) };
    for _ in 0..identities {
        if scan.buffer(MAX_AUTH_STRING)?.is_none() || scan.buffer(MAX_AUTH_STRING)?.is_none() {
            return Ok(None);
        }
    }
    Ok(Some(scan.position()))
}

/// How a member speaks the protocol. The packets are the same; what may be said when, and how soon, is not.
///
/// Members of ours put a mark behind ZooKeeper's own fields of the first packet in each direction, where
/// Apache ZooKeeper does not look. Whoever shows no mark is taken for a Java member. ZooKeeper's own limits
/// rule towards it (syncLimit, initLimit), because it pings each half tick and not before UPTODATE.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// A member of ours.
    Own,
    /// Apache ZooKeeper, or somebody who learned from it.
    Apache,
}

/// The mark of our members.
const OWN_MARK: i32 = i32::from_be_bytes(*b"own1");

impl Dialect {
    fn encode(self, w: &mut Writer<'_>) {
        match self {
            Dialect::Own => w.int(OWN_MARK),
            Dialect::Apache => {}
        }
    }

    /// Reads what is left of a packet's data.
    fn decode(r: &mut Reader) -> Self {
        match r.int() {
            Ok(OWN_MARK) => Dialect::Own,
            Ok(_) | Err(_) => Dialect::Apache,
        }
    }
}

/// The data of LEADERINFO.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaderInfo {
    /// Which protocol it speaks; today [`LEARNER_PROTOCOL`].
    pub protocol: i32,
    /// How it speaks it.
    pub dialect: Dialect,
}

impl LeaderInfo {
    /// Appends the record.
    pub fn encode(&self, w: &mut Writer<'_>) {
        w.int(self.protocol);
        self.dialect.encode(w);
    }

    /// Reads the record.
    ///
    /// # Errors
    /// When there is no protocol in it.
    pub fn decode(r: &mut Reader) -> Result<Self, DecodeError> {
        Ok(Self { protocol: r.int()?, dialect: Dialect::decode(r) })
    }
}

/// The data of FOLLOWERINFO and OBSERVERINFO.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LearnerInfo {
    /// Who it is.
    pub server: ServerId,
    /// Which protocol it speaks; today [`LEARNER_PROTOCOL`].
    pub protocol: i32,
    /// The version of its configuration.
    pub config_version: i64,
    /// How it speaks the protocol.
    pub dialect: Dialect,
}

impl LearnerInfo {
    /// Appends the record.
    pub fn encode(&self, w: &mut Writer<'_>) {
        w.long(self.server.0.cast_signed());
        w.int(self.protocol);
        w.long(self.config_version);
        self.dialect.encode(w);
    }

    /// Reads the record, of which old learners send only a beginning.
    ///
    /// # Errors
    /// When there is no server in it, or one with a negative number.
    pub fn decode(r: &mut Reader) -> Result<Self, DecodeError> {
        let server = r.long()?;
        let server = u64::try_from(server)
            .map(ServerId)
            .map_err(|_| DecodeError::OutOfRange { what: "server", value: server })?;
        let protocol = if r.remaining() >= 4 { r.int()? } else { 1 };
        let config_version = if r.remaining() >= 8 { r.long()? } else { 0 };
        Ok(Self { server, protocol, config_version, dialect: Dialect::decode(r) })
    }
}

/// The data of REQUEST: a client's request on its way to the leader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForwardedRequest {
    /// Whose it is.
    pub session: SessionId,
    /// The client's xid for it.
    pub cxid: i32,
    /// What is asked.
    pub op: i32,
    /// The request's body.
    pub payload: Bytes,
    /// Who asks. Not part of the packet's data: [`QuorumPacket::auth`] carries it.
    pub auth: Vec<Id>,
}

impl ForwardedRequest {
    /// Appends the fields.
    pub fn encode(&self, w: &mut Writer<'_>) {
        w.write(&self.session);
        w.int(self.cxid);
        w.int(self.op);
        w.raw(&self.payload);
    }

    /// Takes a packet's data apart; the payload is a slice of it.
    ///
    /// # Errors
    /// When the fields before the payload are not whole.
    pub fn decode(data: Bytes, auth: Vec<Id>) -> Result<Self, DecodeError> {
        let mut r = Reader::new(data);
        Ok(Self { session: r.read()?, cxid: r.int()?, op: r.int()?, payload: r.rest(), auth })
    }

    /// The packet that brings it to the leader.
    #[must_use]
    pub fn into_packet(self) -> QuorumPacket {
        let data = encode(|w| self.encode(w));
        QuorumPacket { kind: PacketType::Request, zxid: -1, data: Some(data), auth: self.auth }
    }
}

record! {
    /// The data of REVALIDATE, as the learner asks.
    #[derive(Copy)]
    pub struct Revalidate {
        /// Which session.
        pub session: SessionId,
        /// With which timeout.
        pub timeout_ms: i32,
    }
}

/// The zxid field of a REVALIDATE that nobody asked for: the session moved to another member. Members of ours
/// alone say and know it.
pub const SESSION_MOVED: i64 = 1;

record! {
    /// The data of REVALIDATE, as the leader answers.
    #[derive(Copy)]
    pub struct Revalidated {
        /// Which session.
        pub session: SessionId,
        /// Whether it is still good.
        pub valid: bool,
    }
}

/// The data of a learner's PING: the sessions that were heard of since the last one, with their timeouts in
/// milliseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PingTouches(pub Vec<(SessionId, i32)>);

/// A session and a timeout.
const TOUCH_LEN: usize = 8 + 4;

impl PingTouches {
    /// Appends them, without a count: the data's length says how many there are.
    pub fn encode(&self, w: &mut Writer<'_>) {
        for (session, timeout_ms) in &self.0 {
            w.write(session);
            w.int(*timeout_ms);
        }
    }

    /// Reads a packet's whole data.
    ///
    /// # Errors
    /// When there is a part of one at the end.
    pub fn decode(data: Bytes) -> Result<Self, DecodeError> {
        let mut r = Reader::new(data);
        let mut touches = Vec::with_capacity(r.remaining() / TOUCH_LEN);
        while r.remaining() > 0 {
            touches.push((r.read()?, r.int()?));
        }
        Ok(Self(touches))
    }
}
