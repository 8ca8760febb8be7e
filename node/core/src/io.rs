//! What goes into a member and what comes out of it.
//!
//! Inputs are facts: a packet came, a write is durable, time passed. Effects are intents: send, store,
//! reply. The driver owes the core five things:
//!
//! 1. Inputs are given one at a time, and the effects of each are carried out in the order they are listed.
//! 2. [`Effect::Store`] operations go through one queue with one writer, in order. [`Input::Stored`] for a
//!    ticket is given only when that operation and all before it are durable. Operations may share an fsync.
//! 3. A connection is ordered. Once [`Input::PeerLost`] or [`Effect::Close`] was seen for a connection,
//!    nothing more is delivered from it and nothing more is sent on it. Identifiers are never used again.
//! 4. [`Input::Tick`] comes every [`TICK`](crate::TICK), or later when the process was not scheduled: the
//!    core measures that itself and blames no peer for it. Right before it comes [`Input::Alive`] for each
//!    quorum connection on which bytes arrived since the last one, also where they are no whole packet yet,
//!    wait for their turn, or still lie in the kernel.
//! 5. After [`Effect::Halt`] nothing more is carried out.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use node_wire::client::{ConnectRequest, Id, Request};
use node_wire::election::Notification;
use node_wire::ids::{Epoch, Round, ServerId, Zxid};
use node_wire::membership::{Membership, ServerLine};
use node_wire::quorum::QuorumPacket;
use node_wire::snapshot::Image;
use node_wire::txn::Entry;

use crate::tree::TreeSnapshot;

/// The two clocks at the moment of a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Now {
    /// Monotonic time since an arbitrary start. All deadlines are kept on it.
    pub mono: Duration,
    /// Wall clock in milliseconds since the Unix epoch. Only stamped into transactions.
    pub wall_ms: i64,
}

/// A connection on the quorum port, in either direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnId(pub u64);

/// A connection on the client port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientId(pub u64);

/// What was found on disk.
#[derive(Clone, Debug, Default)]
pub struct Recovered {
    /// The highest epoch this member promised to follow.
    pub accepted_epoch: Epoch,
    /// The epoch of the last leader whose history this member holds.
    pub current_epoch: Epoch,
    /// The newest sound snapshot; empty for a new member.
    pub image: Image,
    /// Every logged entry behind the snapshot, ascending.
    pub entries: Vec<Entry>,
}

/// A fact for the member.
#[derive(Clone, Debug)]
pub enum Input {
    /// Time passed.
    Tick,
    /// Every store operation up to this ticket is durable.
    Stored {
        /// As given in [`Effect::Store`].
        ticket: u64,
    },
    /// A vote arrived on the election port.
    Notification {
        /// The sender, as its connection said.
        from: ServerId,
        /// Its vote.
        notification: Notification,
    },
    /// An election connection to a peer stands.
    ElectionConnected {
        /// The peer.
        peer: ServerId,
    },
    /// The election connection to a peer is gone.
    ElectionLost {
        /// The peer.
        peer: ServerId,
    },
    /// The dial asked for by [`Effect::Dial`] succeeded.
    Dialled {
        /// Whom we wanted.
        leader: ServerId,
        /// The new connection.
        conn: ConnId,
    },
    /// The dial asked for by [`Effect::Dial`] failed. The core dials again when it still wants to.
    DialFailed {
        /// Whom we wanted.
        leader: ServerId,
    },
    /// A learner connected to our quorum port.
    Accepted {
        /// The new connection.
        conn: ConnId,
    },
    /// A packet on the quorum port.
    Packet {
        /// Where it came from.
        conn: ConnId,
        /// What came.
        packet: QuorumPacket,
    },
    /// The snapshot stream that follows a SNAP packet was received whole.
    Image {
        /// Where it came from.
        conn: ConnId,
        /// The tree.
        image: Image,
    },
    /// Bytes arrived on a quorum connection, whatever they will say: whoever sends them lives.
    Alive {
        /// Where.
        conn: ConnId,
    },
    /// A quorum connection broke.
    PeerLost {
        /// Which.
        conn: ConnId,
    },
    /// The first record of a client's connection.
    ClientConnect {
        /// Where it came from.
        client: ClientId,
        /// A new session or an old one.
        request: ConnectRequest,
        /// Who is known to be there before anybody proves anything: the address, a certificate's name.
        who: Vec<Id>,
    },
    /// A request on a client's connection.
    ClientRequest {
        /// Where it came from.
        client: ClientId,
        /// What is asked.
        request: Request,
    },
    /// A token of a client's SASL exchange came, and the driver, which leads the exchange, says what of it.
    ClientProof {
        /// Where it came from.
        client: ClientId,
        /// The request's.
        xid: i32,
        /// What came of it.
        proof: Proof,
    },
    /// A client's connection broke.
    ClientLost {
        /// Which.
        client: ClientId,
    },
}

/// What came of a client's token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Proof {
    /// The exchange goes on, or has succeeded.
    Token {
        /// What the client is answered.
        token: Option<Bytes>,
        /// Who it has shown to be; nobody before the end.
        who: Vec<Id>,
    },
    /// It failed.
    Failed,
    /// It failed, and the configuration lets such clients stay as nobody in particular.
    Tolerated,
}

/// An operation for the store's one queue.
#[derive(Clone, Debug)]
pub enum StoreOp {
    /// Append to the log.
    Append(Entry),
    /// Drop every logged entry after this zxid.
    Truncate(Zxid),
    /// Replace everything, log included, by this tree.
    Install(Arc<Image>),
    /// Write the acceptedEpoch file.
    AcceptedEpoch(Epoch),
    /// Write the currentEpoch file.
    CurrentEpoch(Epoch),
    /// Write down the membership that rules, where the member's configuration is kept. Where it is kept
    /// nowhere this may be left undone: a start with an older one is slower and no danger.
    Membership(Arc<Membership>),
}

/// An intent of the member.
#[derive(Clone, Debug)]
pub enum Effect {
    /// Put an operation in the store's queue.
    Store {
        /// Counts up by one.
        ticket: u64,
        /// What to do.
        op: StoreOp,
    },
    /// Write a snapshot in the background. Everything in it is durable in the log already.
    TakeSnapshot(TreeSnapshot),
    /// Send a vote. Only the last one for each peer matters; it is sent again when a connection comes back.
    Notify {
        /// To whom.
        to: ServerId,
        /// Our vote.
        notification: Notification,
    },
    /// Dial a leader's quorum port once.
    Dial {
        /// Whom.
        leader: ServerId,
    },
    /// Send a packet on a quorum connection.
    Send {
        /// Where.
        conn: ConnId,
        /// What.
        packet: QuorumPacket,
    },
    /// Send the snapshot stream that follows a SNAP packet.
    SendImage {
        /// Where.
        conn: ConnId,
        /// The tree at the moment of this effect.
        snapshot: TreeSnapshot,
    },
    /// Close a quorum connection, after what was sent on it.
    Close {
        /// Which.
        conn: ConnId,
    },
    /// Write to a client.
    Reply {
        /// Where.
        client: ClientId,
        /// A whole frame, length included.
        frame: Bytes,
    },
    /// Close a client's connection, after what was written to it.
    CloseClient {
        /// Which.
        client: ClientId,
    },
    /// Who is in the ensemble, or about to be, and where: at the start, and whenever it changes.
    Ensemble {
        /// The membership that rules.
        active: Arc<Membership>,
        /// Members of one that is proposed: they are dialled before they are in.
        joining: BTreeMap<ServerId, ServerLine>,
    },
    /// Tell whoever watches.
    Event(Event),
    /// Stop the process: it can't go on without lying.
    Halt {
        /// For the operator.
        reason: String,
    },
}

/// The reason of [`Event::Looking`] when nothing was heard of the leader for too long.
pub const FELL_SILENT: &str = "the leader fell silent";

/// A transition worth telling.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The member looks for a leader.
    Looking {
        /// The election round.
        round: Round,
        /// The leader it had, itself included.
        left: Option<ServerId>,
        /// Why.
        reason: String,
    },
    /// The vote is decided.
    Elected {
        /// For whom.
        leader: ServerId,
        /// In which round.
        round: Round,
    },
    /// The epoch stands: a quorum holds the leader's history. The member serves clients from here on.
    Established {
        /// Whose epoch.
        leader: ServerId,
        /// Which.
        epoch: Epoch,
    },
    /// No leader was found for a while: the member serves reads until it takes part in an epoch again.
    ReadOnly,
    /// The leader chose how to synchronize a learner.
    Synchronizing {
        /// The learner.
        learner: ServerId,
        /// How.
        how: SyncKind,
    },
    /// The tree is not the one that the leader has after the same transaction. Told once.
    Diverged {
        /// The transaction.
        zxid: Zxid,
        /// The digest that the leader says.
        told: i64,
        /// The digest of our tree.
        computed: i64,
    },
}

/// How a learner is brought to the leader's history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncKind {
    /// The missing entries.
    Diff,
    /// Cut back first, then the missing entries.
    Trunc,
    /// The whole tree.
    Snap,
}
