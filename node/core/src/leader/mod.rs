//! Leading: discovery, synchronization and broadcast as the leader sees them.
//!
//! 1. **Discovery.** A quorum, the leader included, tells the epoch it accepted last. The new epoch is one
//!    more than the highest. Each promises it (ACKEPOCH, after its acceptedEpoch is durable) and says how far
//!    it is. A leader that finds a member with a newer history gives up: the election was wrong.
//! 2. **Synchronization.** The leader's log becomes the history of the epoch. Each learner is brought to it
//!    ([`sync`]) and told NEWLEADER. When a quorum has all of it on disk the epoch is *established*: the
//!    history is committed, whatever happened to it before.
//! 3. **Broadcast.** Proposals in zxid order, each committed when a quorum has it on disk ([`broadcast`]).
//!
//! The leader counts itself like any other voter: when its own disk says so, not before. It goes on proposing
//! meanwhile. It gives up when no quorum has answered within the time-out, and when its counter runs out: the
//! zxid's lower half must never roll over into the epoch.
//!
//! A member that accepted a higher epoch than ours, from a candidate that failed, can never join this epoch.
//! In Apache ZooKeeper it stays out until the leader changes by chance; here the leader starts a new epoch
//! for it.

mod ahead;
mod broadcast;
mod fingerprint;
mod reaper;
mod reconfig;
mod rounds;
mod sync;

use std::collections::BTreeMap;
use std::time::Duration;

use bytestring::ByteString;
use node_wire::ids::{Epoch, ServerId, SessionId, Zxid};
use node_wire::jute::{Reader, encode};
use node_wire::quorum::{
    Dialect, ForwardedRequest, LEARNER_PROTOCOL, LeaderInfo, LearnerInfo, PacketType, PingTouches,
    QuorumPacket, Revalidate,
};

use crate::base::{Base, Leave, Then};
use crate::io::{ConnId, Effect, Event};
use crate::phase::Phase;
use crate::prep::Outstanding;
use crate::sessions::{Owner, SessionTracker};
use crate::silence::Silence;
use crate::tree::Tree;
use crate::zab::Protocol;

use rounds::SyncRounds;

/// The first zxid of the last epoch that the wire can carry: behind an epoch that somebody accepted there has
/// to be another.
const LAST_EPOCH: i64 = (i32::MAX as i64) << 32;

/// How far a learner is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Progress {
    Connected,
    /// FOLLOWERINFO came.
    Known {
        accepted: Epoch,
    },
    /// ACKEPOCH came, with its last zxid.
    Promised {
        last: Zxid,
    },
    /// It was sent the history and NEWLEADER, and gets every proposal from here on.
    Synchronizing,
    /// It acknowledged NEWLEADER.
    Synchronized,
}

#[derive(Clone, Debug)]
struct Peer {
    server: Option<ServerId>,
    /// It gets what is committed and has no say in it.
    observes: bool,
    /// How it speaks.
    dialect: Dialect,
    /// COMMITs that it is told behind UPTODATE: see [`broadcast`].
    held: Vec<Zxid>,
    progress: Progress,
    /// Its promise counts for the epoch.
    promised: bool,
    /// It has everything up to here on disk.
    acked: Zxid,
    /// What it will have on disk when it acknowledges NEWLEADER, sent again or held from before.
    history: Zxid,
    /// The last round of PINGs that it answered.
    round: i64,
    silence: Silence,
    /// Until then it may be silent: it receives a snapshot.
    patient_until: Duration,
}

/// A learner as its leader sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LearnerView {
    /// Who it is, once it said so.
    pub server: Option<ServerId>,
    /// It has no vote.
    pub observes: bool,
    /// It holds the epoch's history.
    pub synchronized: bool,
    /// What it has on disk.
    pub acked: Zxid,
}

/// A member that leads.
#[derive(Clone, Debug)]
pub(crate) struct Leader {
    /// Discovery or later: who leads was elected.
    phase: Phase,
    /// How the slowest of the voters speaks: how long to wait for them.
    slowest: Dialect,
    /// The epoch, once a quorum has told what it accepted.
    epoch: Option<Epoch>,
    deadline: Duration,
    peers: BTreeMap<ConnId, Peer>,
    /// Our own promise is on disk.
    promised: bool,
    /// Our own history and currentEpoch are on disk.
    stored: bool,
    /// Our own log is durable up to here.
    durable: Zxid,
    /// The last entry of the history that the epoch began with.
    initial: Zxid,
    /// The zxid behind which the epoch's proposals are numbered.
    beginning: Zxid,
    last_proposed: Zxid,
    next_ping: Duration,
    /// When to look for nodes that are left alone.
    next_reaping: Duration,
    /// The last of those that were looked at, if there are more to look at.
    reaped_to: Option<ByteString>,
    outstanding: Outstanding,
    /// The tree when all that is proposed is applied, where somebody wants its digest: see [`ahead`].
    ahead: Option<Tree>,
    sessions: SessionTracker,
    rounds: SyncRounds,
}

impl Leader {
    pub(crate) fn start<P: Protocol>(slowest: Dialect, base: &mut Base<P>) -> Self {
        let mut leader = Self {
            phase: Phase::Discovery,
            slowest,
            epoch: None,
            deadline: base.awake + base.discovery_timeout(slowest),
            peers: BTreeMap::new(),
            promised: false,
            stored: false,
            durable: Zxid::ZERO,
            initial: Zxid::ZERO,
            beginning: Zxid::ZERO,
            last_proposed: Zxid::ZERO,
            next_ping: base.awake,
            next_reaping: base.awake + base.config.clients.container_check,
            reaped_to: None,
            outstanding: Outstanding::default(),
            ahead: None,
            sessions: SessionTracker::default(),
            rounds: SyncRounds::default(),
        };
        // Alone in the ensemble there is nobody to wait for.
        leader.choose_epoch(base);
        leader
    }

    pub(crate) fn established(&self) -> bool {
        self.phase == Phase::Broadcast
    }

    pub(crate) fn phase(&self) -> Phase {
        self.phase
    }

    pub(crate) fn synced_followers(&self) -> usize {
        let synchronized = |peer: &&Peer| peer.progress == Progress::Synchronized && !peer.observes;
        self.peers.values().filter(synchronized).count()
    }

    pub(crate) fn peers(&self) -> usize {
        self.peers.len()
    }

    pub(crate) fn synced_observers(&self) -> usize {
        let synchronized = |peer: &&Peer| peer.progress == Progress::Synchronized && peer.observes;
        self.peers.values().filter(synchronized).count()
    }

    /// For operators: see [`Member::learners`](crate::Member::learners).
    pub(crate) fn learners(&self) -> Vec<LearnerView> {
        let view = |peer: &Peer| LearnerView {
            server: peer.server,
            observes: peer.observes,
            synchronized: peer.progress == Progress::Synchronized,
            acked: peer.acked,
        };
        self.peers.values().map(view).collect()
    }

    /// For operators: see [`Member::session_deadlines`](crate::Member::session_deadlines).
    pub(crate) fn session_deadlines(&self, at: Duration) -> Vec<(SessionId, Duration)> {
        self.sessions.deadlines(at)
    }

    pub(crate) fn pending_syncs(&self) -> usize {
        self.rounds.waiting()
    }

    /// The role ends: learners look for another leader.
    pub(crate) fn close<P: Protocol>(&self, base: &mut Base<P>) {
        for conn in self.peers.keys() {
            base.emit(Effect::Close { conn: *conn });
        }
    }

    pub(crate) fn accepted<P: Protocol>(&mut self, base: &Base<P>, conn: ConnId) {
        let peer = Peer {
            server: None,
            observes: false,
            dialect: Dialect::Own,
            held: Vec::new(),
            progress: Progress::Connected,
            promised: false,
            acked: Zxid::ZERO,
            history: Zxid::ZERO,
            round: -1,
            silence: Silence::new(base.awake),
            patient_until: base.awake + base.discovery_timeout(self.slowest),
        };
        self.peers.insert(conn, peer);
    }

    pub(crate) fn lost(&mut self, conn: ConnId) {
        self.peers.remove(&conn);
        self.rounds.lost(conn);
    }

    fn drop_peer<P: Protocol>(&mut self, base: &mut Base<P>, conn: ConnId) {
        self.lost(conn);
        base.emit(Effect::Close { conn });
    }

    pub(crate) fn tick<P: Protocol>(&mut self, base: &mut Base<P>) -> Result<(), Leave> {
        let silent: Vec<ConnId> = self
            .peers
            .iter()
            .filter(|(_, peer)| {
                let limit = base.config.silence_limit(peer.dialect);
                base.awake >= peer.patient_until && peer.silence.is_over(base.awake, limit)
            })
            .map(|(conn, _)| *conn)
            .collect();
        for conn in silent {
            self.drop_peer(base, conn);
        }
        // A long history is committed tick by tick.
        self.check_established(base)?;
        match self.phase {
            Phase::Discovery if base.awake >= self.deadline => {
                return Err(Leave::because("no quorum promised an epoch in time"));
            }
            Phase::Synchronization if base.awake >= self.deadline => {
                return Err(Leave::because("no quorum took over the history in time"));
            }
            Phase::Election | Phase::Discovery | Phase::Synchronization | Phase::Broadcast => {
                self.quorum_holds(base)?;
            }
        }
        if self.phase != Phase::Discovery && base.awake >= self.next_ping {
            self.next_ping = base.awake + base.config.ping_interval();
            self.ping(base);
        }
        if self.phase == Phase::Broadcast {
            for session in self.sessions.expired(base.awake) {
                self.expire(base, session)?;
            }
            self.reap(base)?;
        }
        Ok(())
    }

    /// As [`Self::check_quorum`], once there is a quorum to lose.
    pub(crate) fn quorum_holds<P: Protocol>(&self, base: &Base<P>) -> Result<(), Leave> {
        match self.phase {
            Phase::Election | Phase::Discovery => Ok(()),
            Phase::Synchronization | Phase::Broadcast => self.check_quorum(base),
        }
    }

    /// A leader without a quorum behind it abdicates, and its clients go to where one is.
    ///
    /// While a membership is proposed, who came as an observer and is to vote is none of those behind it: it
    /// is told of no proposal, and would never acknowledge this one. If its vote is needed it gives that in
    /// the next election.
    fn check_quorum<P: Protocol>(&self, base: &Base<P>) -> Result<(), Leave> {
        if !base.zab.abdicates() {
            return Ok(());
        }
        let proposes = self.phase == Phase::Broadcast && base.ensemble.pending().is_some();
        let alive =
            self.peers.values().filter(|peer| peer.promised_or_later() && !(proposes && peer.observes));
        let alive = alive.filter_map(|peer| peer.server);
        if base.quorum.reached(alive.chain([base.config.id])) {
            return Ok(());
        }
        Err(Leave::because("the quorum is lost"))
    }

    fn ping<P: Protocol>(&self, base: &mut Base<P>) {
        let round = self.rounds.current();
        for (conn, peer) in &self.peers {
            // Not before it expects one: a Java learner takes the first packet after ACKEPOCH for DIFF or
            // SNAP.
            if matches!(peer.progress, Progress::Synchronizing | Progress::Synchronized) {
                base.out.push(Effect::Send {
                    conn: *conn,
                    packet: QuorumPacket::new(PacketType::Ping, round, None),
                });
            }
        }
    }

    pub(crate) fn packet<P: Protocol>(
        &mut self,
        base: &mut Base<P>,
        conn: ConnId,
        packet: QuorumPacket,
    ) -> Result<(), Leave> {
        let Some(peer) = self.peers.get(&conn) else { return Ok(()) };
        match (peer.progress, packet.kind) {
            (Progress::Connected, PacketType::FollowerInfo | PacketType::ObserverInfo) => {
                return self.follower_info(base, conn, &packet);
            }
            (Progress::Known { .. }, PacketType::AckEpoch) => return self.ack_epoch(base, conn, &packet),
            (Progress::Synchronizing | Progress::Synchronized, PacketType::Ack) => {
                return self.ack(base, conn, Zxid::from_wire(packet.zxid));
            }
            (Progress::Synchronizing | Progress::Synchronized, PacketType::Ping) => {
                self.pong(base, conn, &packet);
                return Ok(());
            }
            (Progress::Synchronized, PacketType::Request) if self.established() => {
                if let Ok(request) = ForwardedRequest::decode(packet.data.unwrap_or_default(), packet.auth) {
                    return self.request(base, Owner::Learner(conn), request);
                }
            }
            (Progress::Synchronized, PacketType::Revalidate) if self.established() => {
                let mut data = Reader::new(packet.data.unwrap_or_default());
                if let Ok(revalidate) = Revalidate::decode(&mut data) {
                    self.revalidate(base, Owner::Learner(conn), &revalidate);
                    return Ok(());
                }
            }
            _ => {}
        }
        // It does not keep to the protocol. Only it suffers.
        self.drop_peer(base, conn);
        Ok(())
    }

    fn follower_info<P: Protocol>(
        &mut self,
        base: &mut Base<P>,
        conn: ConnId,
        packet: &QuorumPacket,
    ) -> Result<(), Leave> {
        let info = LearnerInfo::decode(&mut Reader::new(packet.data.clone().unwrap_or_default()));
        let accepted = Zxid::from_wire(packet.zxid).epoch();
        let observes = packet.kind == PacketType::ObserverInfo;
        let belongs = |server: ServerId| base.ensemble.welcomes(server, observes, &base.quorum, &base.config);
        let (server, dialect) = match info {
            // Epochs are signed on the wire; a negative one would be beyond all others here, and beyond the
            // last there is none.
            Ok(info) if (0..LAST_EPOCH).contains(&packet.zxid) && belongs(info.server) => {
                (info.server, info.dialect)
            }
            _ => {
                self.drop_peer(base, conn);
                return Ok(());
            }
        };
        // A second connection of the same member: the first is dead, its end only did not arrive.
        let hangs_up = base.zab.hangs_up_on_older();
        let older: Vec<ConnId> = self
            .peers
            .iter()
            .filter(|(_, peer)| hangs_up || peer.progress != Progress::Synchronized)
            .filter(|(_, peer)| peer.server == Some(server))
            .map(|(conn, _)| *conn)
            .collect();
        for older in older {
            self.drop_peer(base, older);
        }
        if let Some(peer) = self.peers.get_mut(&conn) {
            peer.server = Some(server);
            peer.observes = observes;
            peer.dialect = dialect;
            peer.progress = Progress::Known { accepted };
            peer.patient_until = base.awake
                + match dialect {
                    Dialect::Own => base.discovery_timeout(self.slowest),
                    Dialect::Apache => base.config.init_timeout(),
                };
        }
        base.highest_told = base.highest_told.max(accepted);
        match self.epoch {
            // Whether it votes makes no difference: it promised to follow nobody below that, and would come
            // again for ever. An observer of ours is not bound by what it promised.
            Some(epoch) if accepted > epoch && (!observes || dialect == Dialect::Apache) => {
                Err(Leave::because(format!(
                    "member {server} accepted epoch {accepted}, beyond our epoch {epoch}"
                )))
            }
            Some(epoch) => {
                leader_info(base, conn, epoch);
                Ok(())
            }
            None => {
                self.choose_epoch(base);
                Ok(())
            }
        }
    }

    /// Once a quorum has told which epoch it accepted, the new one is beyond all of them.
    fn choose_epoch<P: Protocol>(&mut self, base: &mut Base<P>) {
        let known = self.peers.values().filter_map(|peer| match peer.progress {
            Progress::Known { accepted } => Some((peer.server?, accepted)),
            _ => None,
        });
        let known: Vec<(ServerId, Epoch)> = known.chain([(base.config.id, base.accepted_epoch)]).collect();
        if !base.quorum.reached(known.iter().map(|(server, _)| *server)) {
            return;
        }
        let highest =
            known.iter().map(|(_, accepted)| accepted.0).max().unwrap_or(0).max(base.highest_told.0);
        let epoch =
            Epoch(highest.checked_add(1).expect("epochs do not run out: one a second lasts 136 years"));
        self.epoch = Some(epoch);
        base.set_accepted_epoch(epoch, Then::EpochAccepted);
        for (conn, peer) in &self.peers {
            if matches!(peer.progress, Progress::Known { .. }) {
                leader_info(base, *conn, epoch);
            }
        }
    }

    fn ack_epoch<P: Protocol>(
        &mut self,
        base: &mut Base<P>,
        conn: ConnId,
        packet: &QuorumPacket,
    ) -> Result<(), Leave> {
        let Ok(current) = Reader::new(packet.data.clone().unwrap_or_default()).int() else {
            self.drop_peer(base, conn);
            return Ok(());
        };
        let last = Zxid::from_wire(packet.zxid);
        // -1: promised before, so it does not count. Else it must not be ahead of us.
        let counts = u32::try_from(current).ok().map(Epoch);
        let votes = self.peers.get(&conn).is_some_and(|peer| {
            !peer.observes && peer.server.is_some_and(|server| base.quorum.contains(server))
        });
        if let Some(current) = counts
            && votes
            && self.phase == Phase::Discovery
            && is_ahead(base, current, last)
        {
            return Err(Leave::because(format!("a follower is ahead of us: epoch {current}, zxid {last}")));
        }
        if let Some(peer) = self.peers.get_mut(&conn) {
            peer.progress = Progress::Promised { last };
            peer.promised = counts.is_some();
        }
        match self.phase {
            Phase::Election | Phase::Discovery => self.check_promises(base),
            Phase::Synchronization | Phase::Broadcast => self.synchronize(base, conn),
        }
        self.check_hope(base)
    }

    /// Members that had promised this epoch before, to an attempt that failed, can't promise it again. When
    /// too few are left the leader starts over with the next epoch at once, rather than sit out its deadline.
    fn check_hope<P: Protocol>(&self, base: &Base<P>) -> Result<(), Leave> {
        if self.phase != Phase::Discovery {
            return Ok(());
        }
        let answered = self.peers.values().filter(|peer| peer.promised_or_later());
        let hopeful = self.peers.values().filter(|peer| peer.promised || !peer.promised_or_later());
        let own = [base.config.id];
        if base.quorum.reached(answered.filter_map(|peer| peer.server).chain(own))
            && !base.quorum.reached(hopeful.filter_map(|peer| peer.server).chain(own))
        {
            return Err(Leave::because("too few can still promise this epoch, the next one is needed"));
        }
        Ok(())
    }

    fn check_promises<P: Protocol>(&mut self, base: &mut Base<P>) {
        let promised = self.peers.values().filter(|peer| peer.promised).filter_map(|peer| peer.server);
        let own = self.promised.then_some(base.config.id);
        if self.phase != Phase::Discovery || !base.quorum.reached(promised.chain(own)) {
            return;
        }
        let Some(epoch) = self.epoch else { return };
        self.phase = Phase::Synchronization;
        self.deadline = base.awake + base.config.init_timeout();
        self.initial = base.journal.last();
        self.beginning = base.zab.beginning(epoch, self.initial);
        self.last_proposed = self.beginning;
        base.set_current_epoch(epoch, Then::NewLeaderStored);
        let ready: Vec<ConnId> = self
            .peers
            .iter()
            .filter(|(_, peer)| matches!(peer.progress, Progress::Promised { .. }))
            .map(|(conn, _)| *conn)
            .collect();
        for conn in ready {
            self.synchronize(base, conn);
        }
    }

    /// A quorum has the history: it is committed, and the leader serves.
    fn check_established<P: Protocol>(&mut self, base: &mut Base<P>) -> Result<(), Leave> {
        let Some(epoch) = self.epoch else { return Ok(()) };
        let synchronized = self.peers.values().filter(|peer| peer.progress == Progress::Synchronized);
        let own = self.stored.then_some(base.config.id);
        if self.phase != Phase::Synchronization
            || !base.quorum.reached(synchronized.filter_map(|p| p.server).chain(own))
        {
            return Ok(());
        }
        // The history is taken over: only applying it may still take its time.
        self.deadline = base.awake + base.config.init_timeout();
        if !self.apply_some(base, self.initial)? {
            return Ok(());
        }
        self.activate_offer(base);
        self.phase = Phase::Broadcast;
        // A new leader knows nothing of when it heard of a session: each has its whole time-out.
        for (session, timeout_ms) in base.tree.sessions() {
            self.sessions.add(session, timeout_ms, None, base.awake);
        }
        for (conn, peer) in &mut self.peers {
            if peer.progress == Progress::Synchronized {
                up_to_date(base, *conn, peer);
            }
        }
        base.tell(Event::Established { leader: base.config.id, epoch });
        if !base.ensemble.leads(base.config.id) {
            return Err(Leave::because("the membership that was finished has another leader"));
        }
        self.try_commit(base)
    }

    /// Something this role waited for is durable.
    pub(crate) fn stored<P: Protocol>(&mut self, base: &mut Base<P>, then: Then) -> Result<(), Leave> {
        match then {
            Then::EpochAccepted => {
                self.promised = true;
                self.check_promises(base);
                Ok(())
            }
            Then::NewLeaderStored => {
                self.stored = true;
                self.check_established(base)
            }
            Then::ProposalStored { zxid } => {
                self.durable = zxid;
                self.try_commit(base)
            }
            Then::AckEpoch { .. } | Then::AckNewLeader { .. } | Then::AckProposal { .. } => {
                unreachable!("a leader never waits as a follower does")
            }
        }
    }

    /// Bytes came. They count for who takes part already: a stranger could send some for ever.
    pub(crate) fn alive(&mut self, conn: ConnId, at: Duration) {
        if let Some(peer) = self.peers.get_mut(&conn)
            && matches!(peer.progress, Progress::Synchronizing | Progress::Synchronized)
        {
            peer.silence.alive(at);
        }
    }

    fn pong<P: Protocol>(&mut self, base: &mut Base<P>, conn: ConnId, packet: &QuorumPacket) {
        if let Some(peer) = self.peers.get_mut(&conn) {
            peer.silence.heard(base.awake);
            peer.round = peer.round.max(packet.zxid);
        }
        if let Ok(PingTouches(touched)) = PingTouches::decode(packet.data.clone().unwrap_or_default()) {
            for (session, _) in touched {
                self.sessions.touch(session, base.awake);
            }
        }
        self.check_rounds(base);
    }

    pub(crate) fn touch(&mut self, session: SessionId, at: Duration) {
        self.sessions.touch(session, at);
    }
}

impl Peer {
    fn promised_or_later(&self) -> bool {
        !matches!(self.progress, Progress::Connected | Progress::Known { .. })
    }
}

/// True when a member with this epoch and this last zxid has a newer history than ours.
fn is_ahead<P: Protocol>(base: &Base<P>, current: Epoch, last: Zxid) -> bool {
    base.zab.newness(current, last) > base.zab.newness(base.current_epoch, base.journal.last())
}

fn leader_info<P: Protocol>(base: &mut Base<P>, conn: ConnId, epoch: Epoch) {
    let info = LeaderInfo { protocol: LEARNER_PROTOCOL, dialect: Dialect::Own };
    let data = encode(|w| info.encode(w));
    let zxid = Zxid::new(epoch, 0).to_wire();
    base.send(conn, QuorumPacket::new(PacketType::LeaderInfo, zxid, Some(data)));
}

/// Its zxid says how far the history is committed: a learner that lacked nothing was sent no COMMIT.
fn up_to_date<P: Protocol>(base: &mut Base<P>, conn: ConnId, peer: &mut Peer) {
    let zxid = base.journal.applied().to_wire();
    base.send(conn, QuorumPacket::new(PacketType::UpToDate, zxid, None));
    for zxid in std::mem::take(&mut peer.held) {
        base.send(conn, QuorumPacket::new(PacketType::Commit, zxid.to_wire(), None));
    }
}
