//! The world of an exploration: a few members, what is between them and under them, and nothing else.
//!
//! It is small so that it can be copied at every transition: a member that a transition does not touch is
//! shared. There is no time in it. A member's clock moves only when a transition says so.

use std::collections::VecDeque;
use std::hash::{Hash, Hasher};
use std::rc::Rc;
use std::time::Duration;

use node_core::io::{ConnId, Now};
use node_core::tree::TreeSnapshot;
use node_core::{ClientRules, Config, Machine, Maker, Reconfiguration, Role};
use node_wire::election::{Notification, PeerState};
use node_wire::ids::{Epoch, Round, ServerId, Zxid};
use node_wire::membership::Membership;
use node_wire::quorum::{Dialect, QuorumPacket};

use super::digest::{self, Digest};
use super::disk::Disk;
use super::ghost::Ghost;
use super::place::{MAX_MEMBERS, Place, server};
use super::starts::{self, Start};
use super::{Bounds, Model};

/// The silence after which members give each other up. The members of an exploration have no common time, so
/// only its proportion to the time-outs that are fixed in the core means anything.
const PEER_TIMEOUT: Duration = Duration::from_millis(100);

/// As the core's configuration wants it: bounds session time-outs and the taking over of a history.
const TICK_TIME: Duration = Duration::from_millis(100);

/// How many of them the taking over of a history may last.
const INIT_LIMIT: u32 = 5;
const SYNC_LIMIT: u32 = 5;

/// A vote as it travels: a notification without what the core never looks at, or what all know. What the log
/// of its candidate proposes stands for itself by its version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Vote {
    pub(super) state: PeerState,
    pub(super) leader: ServerId,
    pub(super) zxid: Zxid,
    pub(super) round: Round,
    pub(super) epoch: Epoch,
    pub(super) proposed: Zxid,
}

impl From<&Notification> for Vote {
    fn from(notification: &Notification) -> Self {
        let Notification {
            state,
            leader,
            zxid,
            round,
            peer_epoch,
            config: _,
            proposed,
            hears: _,
            dialect: _,
        } = notification;
        let proposed = proposed.as_ref().and_then(|text| Membership::from_bytes(text).ok());
        let proposed = proposed.map_or(Zxid::ZERO, |proposed| proposed.version);
        Self { state: *state, leader: *leader, zxid: *zxid, round: *round, epoch: *peer_epoch, proposed }
    }
}

impl From<Vote> for Notification {
    fn from(vote: Vote) -> Self {
        let Vote { state, leader, zxid, round, epoch, proposed } = vote;
        let proposed = starts::changed(proposed).map(|membership| membership.to_bytes());
        let (config, hears, dialect) = (None, None, Dialect::Own);
        Self { state, leader, zxid, round, peer_epoch: epoch, config, proposed, hears, dialect }
    }
}

impl Hash for Vote {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let Self { state: peer, leader, zxid, round, epoch, proposed } = self;
        let peer = match peer {
            PeerState::Looking => 0_u64,
            PeerState::Following => 1,
            PeerState::Leading => 2,
            PeerState::Observing => 3,
        };
        // Most of what is hashed of a state are votes: two words are enough for what is small.
        state.write_u64(zxid.0);
        state.write_u64(leader.0 ^ (peer << 8) ^ (round.0 << 16) ^ (u64::from(epoch.0) << 32));
        if *proposed != Zxid::ZERO {
            state.write_u64(proposed.0);
        }
    }
}

/// What travels on a quorum connection.
#[derive(Clone, Debug)]
pub(super) enum Cargo {
    Packet(QuorumPacket),
    Image(TreeSnapshot),
    /// The sender closed.
    Fin,
}

impl Hash for Cargo {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self {
            Self::Packet(packet) => (packet.kind.code(), packet.zxid, &packet.data).hash(state),
            Self::Image(image) => (-1, image.zxid(), image.tree().digest()).hash(state),
            Self::Fin => (-2).hash(state),
        }
    }
}

/// One end of a quorum connection.
#[derive(Clone, Debug, Hash)]
pub(super) struct End {
    pub(super) place: Place,
    /// True until its process closed it, was told of its loss, or died.
    pub(super) open: bool,
    /// What is on its way to this end.
    pub(super) incoming: VecDeque<Cargo>,
}

/// A quorum connection. End 0 dialled.
#[derive(Clone, Debug, Hash)]
pub(super) struct Conn {
    /// Names it for ever: who dialled, and which of its dials it was.
    pub(super) number: u64,
    pub(super) ends: [End; 2],
    /// False once it broke. What was sent before may still arrive, or may not: each end learns of it at any
    /// moment.
    pub(super) sound: bool,
}

impl Conn {
    /// The name of an end towards its member.
    pub(super) fn id(&self, end: usize) -> ConnId {
        ConnId(self.number * 2 + u64::try_from(end).expect("a connection has two ends"))
    }
}

/// What may still happen that is not bound to happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Budget {
    pub(super) crashes: u8,
    pub(super) timeouts: u8,
    pub(super) losses: u8,
    pub(super) elections: u8,
    pub(super) proposals: u8,
}

impl Budget {
    pub(super) fn of(bounds: &Bounds) -> Self {
        let Bounds { crashes, timeouts, losses, elections, proposals, members: _, max_states: _ } = *bounds;
        Self { crashes, timeouts, losses, elections, proposals }
    }
}

/// A machine and the process on it.
#[derive(Clone)]
pub(super) struct Host<F: Maker> {
    pub(super) member: Option<F::Machine>,
    pub(super) disk: Disk,
    /// Monotonic time of the process.
    pub(super) mono: Duration,
    /// Dials that were not answered yet, by target.
    pub(super) dials: [u8; MAX_MEMBERS],
    /// Dials so far.
    pub(super) dialled: u64,
    /// The last vote for each peer: a new connection begins with it.
    pub(super) votes: [Option<Vote>; MAX_MEMBERS],
    pub(super) round: Round,
    pub(super) role: Role,
    pub(super) established: bool,
    /// What it applied in this life.
    pub(super) applied: Zxid,
    /// Of all that was not changed by the last transition.
    pub(super) digest: u64,
}

impl<F: Maker> Host<F> {
    pub(super) fn now(&self) -> Now {
        Now { mono: self.mono, wall_ms: 0 }
    }

    /// Computes the digest again.
    pub(super) fn settle(&mut self) {
        let mut digest = Digest::default();
        match &self.member {
            None => digest.write_u8(0),
            Some(member) => member.fingerprint(&mut digest),
        }
        // The rest follows from the member: role, establishment, and what is applied.
        (&self.disk, self.dials, self.dialled, self.votes, self.round, self.applied).hash(&mut digest);
        self.digest = digest.finish();
    }
}

/// A state.
#[derive(Clone)]
pub(super) struct World<F: Maker, const N: usize> {
    pub(super) model: Model,
    pub(super) maker: F,
    /// Who votes, where that may change.
    pub(super) voters: Option<&'static [u64]>,
    pub(super) hosts: [Rc<Host<F>>; N],
    /// Votes under way, by sender and receiver.
    pub(super) votes: [[VecDeque<Vote>; N]; N],
    /// Election connections that stand, by the smaller and the larger place.
    pub(super) linked: [[bool; N]; N],
    /// Who believes in its election connection to whom.
    pub(super) told: [[bool; N]; N],
    pub(super) conns: Vec<Rc<Conn>>,
    pub(super) ghost: Rc<Ghost>,
    pub(super) budget: Budget,
    /// PINGs travel: only in the fair course that a quiet state is judged by.
    pub(super) pings: bool,
    /// What members told, for a path that is printed.
    pub(super) notes: Option<Vec<String>>,
}

impl<F: Maker, const N: usize> World<F, N> {
    /// Everybody has just started and is connected with everybody.
    pub(super) fn new(model: Model, bounds: &Bounds, start: &Start, maker: F) -> Self {
        let hosts = std::array::from_fn(|place| {
            Rc::new(Host {
                member: None,
                disk: Disk { durable: start.disks[place].clone(), queue: VecDeque::new() },
                mono: Duration::ZERO,
                dials: [0; MAX_MEMBERS],
                dialled: 0,
                votes: [None; MAX_MEMBERS],
                round: Round(0),
                role: Role::Looking,
                established: false,
                applied: Zxid::ZERO,
                digest: 0,
            })
        });
        Self {
            model,
            maker,
            voters: start.voters,
            hosts,
            votes: std::array::from_fn(|_| std::array::from_fn(|_| VecDeque::new())),
            linked: [[false; N]; N],
            told: [[false; N]; N],
            conns: Vec::new(),
            ghost: Rc::new(Ghost::of(start)),
            budget: Budget::of(bounds),
            pings: false,
            notes: None,
        }
    }

    pub(super) fn config(&self, place: Place) -> Config {
        let clients = match self.voters {
            None => ClientRules::default(),
            Some(voters) => ClientRules {
                membership: starts::membership(voters, Zxid::ZERO).to_string().into(),
                reconfig: Reconfiguration::On { standalone: false },
                ..ClientRules::default()
            },
        };
        Config {
            id: server(place),
            voters: (0..N).map(server).collect(),
            peer_timeout: PEER_TIMEOUT,
            tick_time: TICK_TIME,
            init_limit: INIT_LIMIT,
            sync_limit: SYNC_LIMIT,
            observers: [].into(),
            session_timeouts_ms: None,
            journal_entries: node_core::JOURNAL_ENTRIES,
            snap_count: u64::MAX.into(),
            last_counter: Zxid::LAST_COUNTER,
            clients,
        }
    }

    pub(super) fn host(&mut self, place: Place) -> &mut Host<F> {
        Rc::make_mut(&mut self.hosts[place])
    }

    pub(super) fn conn_at(&self, id: ConnId) -> Option<(usize, usize)> {
        let index = self.conns.iter().position(|conn| conn.number == id.0 / 2)?;
        Some((index, usize::from(id.0 % 2 == 1)))
    }

    /// The number of this state.
    pub(super) fn digest(&self) -> u64 {
        let mut digest = Digest::default();
        for host in &self.hosts {
            digest.write_u64(host.digest);
        }
        for votes in self.votes.iter().flatten() {
            votes.hash(&mut digest);
        }
        let beliefs = self.linked.iter().chain(&self.told).flatten();
        digest.write_u64(beliefs.fold(0, |bits, belief| bits << 1 | u64::from(*belief)));
        digest.write_usize(self.conns.len());
        for conn in &self.conns {
            conn.hash(&mut digest);
        }
        self.ghost.hash(&mut digest);
        self.budget.hash(&mut digest);
        digest.finish()
    }

    pub(super) fn note(&mut self, note: impl FnOnce() -> String) {
        if let Some(notes) = &mut self.notes {
            notes.push(note());
        }
    }
}

/// The content of a packet, for marks.
pub(super) fn content(bytes: &bytes::Bytes) -> u64 {
    digest::of(bytes)
}
