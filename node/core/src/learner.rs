//! Following: discovery, synchronization and broadcast as a follower sees them.
//!
//! ```text
//!   dial ── FOLLOWERINFO ─▶        acceptedEpoch
//!        ◀─ LEADERINFO ──          the new epoch        ─▶ disk
//!        ── ACKEPOCH ────▶         currentEpoch, last zxid
//!        ◀─ DIFF|TRUNC|SNAP ─      how to get the leader's history
//!        ◀─ PROPOSAL, COMMIT … ─                        ─▶ log
//!        ◀─ NEWLEADER ───          that was all         ─▶ currentEpoch, behind the log
//!        ── ACK ─────────▶
//!        ◀─ UPTODATE ────          a quorum has it: apply, then serve
//! ```
//!
//! The order of persistence is a law (ZOOKEEPER-3023, 4394, 4643, 4646, 4685, 4712): the history is durable
//! before currentEpoch is, and both before NEWLEADER is acknowledged. The store's one queue keeps it, and
//! every acknowledgement is an answer to "durable". COMMIT is only a mark in the journal until UPTODATE:
//! until a quorum has acknowledged NEWLEADER, the leader's history may still lose to another one, and what is
//! in the tree cannot be taken back. So nothing is applied before UPTODATE, and all of it before the first
//! client is served.

use std::collections::{BTreeMap, VecDeque};
use std::hash::{Hash, Hasher};
use std::time::Duration;

use bytes::{Buf, Bytes};
use node_wire::client::OpCode;
use node_wire::ids::{Epoch, ServerId, SessionId, Zxid};
use node_wire::jute::{Reader, encode};
use node_wire::membership::Membership;
use node_wire::quorum::{
    Dialect, ForwardedRequest, LEARNER_PROTOCOL, LeaderInfo, LearnerInfo, PacketType, PingTouches,
    QuorumPacket, Revalidated, SESSION_MOVED,
};
use node_wire::snapshot::Image;
use node_wire::txn::Entry;

use crate::base::{Base, Leave, Then};
use crate::clients::Ask;
use crate::ensemble::Changed;
use crate::fingerprint::until;
use crate::io::{ClientId, ConnId, Effect, Event, FELL_SILENT};
use crate::local;
use crate::phase::Phase;
use crate::silence::Silence;
use crate::zab::Protocol;

/// The round of a PING that answers none: no round has it, so it confirms nothing.
const NO_ROUND: i64 = -1;

/// A pause before a leader that refused the connection is dialled again.
const REDIAL_AFTER: Duration = Duration::from_millis(20);

/// How far a follower is: finer than the phase, because each packet is expected at one step only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Step {
    /// No connection yet.
    Dialling,
    /// FOLLOWERINFO is sent.
    Discovery,
    /// LEADERINFO came; ACKEPOCH is sent as soon as the promise is durable.
    Promised,
    /// A SNAP stream is on its way.
    ReceivingImage,
    /// PROPOSALs and COMMITs of the leader's history.
    Synchronizing,
    /// NEWLEADER came; its ACK is sent as soon as all is durable.
    Acknowledging,
    /// UPTODATE came, when this membership ruled; the history is being applied.
    Applying { ruled: Zxid },
    /// All of it is applied.
    Broadcast,
}

impl Step {
    /// The phase that it belongs to.
    fn phase(self) -> Phase {
        match self {
            Self::Dialling | Self::Discovery | Self::Promised => Phase::Discovery,
            Self::ReceivingImage | Self::Synchronizing | Self::Acknowledging | Self::Applying { .. } => {
                Phase::Synchronization
            }
            Self::Broadcast => Phase::Broadcast,
        }
    }
}

/// A member that follows.
#[derive(Clone, Debug)]
pub(crate) struct Learner {
    leader: ServerId,
    /// How the leader speaks: as its votes show, then as it says itself.
    dialect: Dialect,
    conn: Option<ConnId>,
    /// We said that we observe: the leader tells us of what is committed, and asks nothing.
    observes: bool,
    /// The membership that rules once the leader's epoch stands, as NEWLEADER says.
    offered: Option<Membership>,
    step: Step,
    epoch: Epoch,
    /// Everything up to here is committed, as the leader said.
    committed: Zxid,
    /// Proposals of the running epoch that came before NEWLEADER: acknowledged right after it.
    early: Vec<Zxid>,
    deadline: Duration,
    redial_at: Option<Duration>,
    silence: Silence,
    /// When it sent a PING last.
    spoke: Duration,
    /// Clients whose sync is under way, in the order in which the leader answers.
    syncs: VecDeque<ClientId>,
    /// Sessions heard of since the last PING.
    touched: BTreeMap<SessionId, i32>,
}

impl Learner {
    pub(crate) fn start<P: Protocol>(leader: ServerId, dialect: Dialect, base: &mut Base<P>) -> Self {
        base.emit(Effect::Dial { leader });
        Self {
            leader,
            dialect,
            conn: None,
            observes: base.ensemble.i_observe(&base.config),
            offered: None,
            step: Step::Dialling,
            epoch: Epoch::ZERO,
            committed: Zxid::ZERO,
            early: Vec::new(),
            deadline: base.awake + base.discovery_timeout(dialect),
            redial_at: None,
            silence: Silence::new(base.awake),
            spoke: base.awake,
            syncs: VecDeque::new(),
            touched: BTreeMap::new(),
        }
    }

    pub(crate) fn leader(&self) -> ServerId {
        self.leader
    }

    /// True until the leader said a word.
    pub(crate) fn is_unanswered(&self) -> bool {
        matches!(self.step, Step::Dialling | Step::Discovery)
    }

    pub(crate) fn established(&self) -> bool {
        self.step == Step::Broadcast
    }

    fn is_up_to_date(&self) -> bool {
        matches!(self.step, Step::Applying { .. } | Step::Broadcast)
    }

    pub(crate) fn phase(&self) -> Phase {
        self.step.phase()
    }

    pub(crate) fn is_at(&self, conn: ConnId) -> bool {
        self.conn == Some(conn)
    }

    /// Mixes in what it holds, times as seen from `at`.
    pub(crate) fn fingerprint(&self, at: Duration, state: &mut impl Hasher) {
        let Self {
            leader,
            dialect,
            conn,
            observes,
            offered,
            step,
            epoch,
            committed,
            early,
            deadline,
            redial_at,
            silence,
            spoke,
            syncs,
            touched,
        } = self;
        (leader, dialect, conn, step, epoch, committed, early).hash(state);
        (observes, offered).hash(state);
        (until(*deadline, at), redial_at.map(|redial_at| until(redial_at, at))).hash(state);
        silence.fingerprint(at, state);
        at.saturating_sub(*spoke).hash(state);
        (syncs, touched).hash(state);
    }

    /// The role ends: the leader need not wait for us.
    pub(crate) fn close<P: Protocol>(&self, base: &mut Base<P>) {
        if let Some(conn) = self.conn {
            base.emit(Effect::Close { conn });
        }
    }

    pub(crate) fn dialled<P: Protocol>(&mut self, base: &mut Base<P>, conn: ConnId) {
        if self.step != Step::Dialling {
            base.emit(Effect::Close { conn });
            return;
        }
        self.conn = Some(conn);
        self.step = Step::Discovery;
        self.redial_at = None;
        let (server, protocol, dialect) = (base.config.id, LEARNER_PROTOCOL, Dialect::Own);
        let config_version = base.ensemble.active().version.to_wire();
        let info = LearnerInfo { server, protocol, config_version, dialect };
        let data = encode(|w| info.encode(w));
        let zxid = Zxid::new(base.accepted_epoch, 0).to_wire();
        self.observes = base.ensemble.i_observe(&base.config);
        let kind = if self.observes { PacketType::ObserverInfo } else { PacketType::FollowerInfo };
        base.send(conn, QuorumPacket::new(kind, zxid, Some(data)));
    }

    /// A leader that is slow to listen is dialled again. One that died right after the vote is not waited
    /// for.
    pub(crate) fn dial_failed<P: Protocol>(&mut self, base: &Base<P>, gone: bool) -> Result<(), Leave> {
        if self.step != Step::Dialling {
            return Ok(());
        }
        if gone {
            return Err(Leave::because("the leader can't be reached, on either port"));
        }
        self.redial_at = Some(base.awake + REDIAL_AFTER);
        Ok(())
    }

    pub(crate) fn tick<P: Protocol>(&mut self, base: &mut Base<P>) -> Result<(), Leave> {
        if self.redial_at.is_some_and(|at| base.awake >= at) {
            self.redial_at = None;
            base.emit(Effect::Dial { leader: self.leader });
        }
        match self.step {
            Step::Dialling | Step::Discovery | Step::Promised | Step::ReceivingImage => {
                if base.awake >= self.deadline {
                    return Err(Leave::because(format!("no answer from the leader while {:?}", self.step)));
                }
            }
            Step::Synchronizing | Step::Acknowledging | Step::Applying { .. } | Step::Broadcast => {
                if self.silence.is_over(base.awake, base.config.silence_limit(self.dialect)) {
                    return Err(Leave::because(FELL_SILENT));
                }
            }
        }
        self.apply_history(base)
    }

    /// Bytes came from the leader. While they are those of something long, no PING comes that could be
    /// answered, so we speak unasked: the leader must not take us for dead because it sends us much.
    pub(crate) fn alive<P: Protocol>(&mut self, base: &mut Base<P>) {
        match self.step {
            Step::Dialling | Step::Discovery | Step::Promised => return,
            Step::ReceivingImage => self.deadline = base.awake + base.config.init_timeout(),
            Step::Synchronizing | Step::Acknowledging | Step::Applying { .. } | Step::Broadcast => {
                self.silence.alive(base.awake);
            }
        }
        if self.dialect == Dialect::Own && base.awake >= self.spoke + base.config.ping_interval() * 2 {
            self.answer_ping(base, NO_ROUND);
        }
    }

    pub(crate) fn packet<P: Protocol>(
        &mut self,
        base: &mut Base<P>,
        packet: QuorumPacket,
    ) -> Result<(), Leave> {
        let zxid = Zxid::from_wire(packet.zxid);
        match (self.step, packet.kind) {
            (Step::Discovery, PacketType::LeaderInfo) => {
                let info = LeaderInfo::decode(&mut Reader::new(packet.data.unwrap_or_default()));
                self.dialect = info.map_or(Dialect::Apache, |info| info.dialect);
                self.leader_info(base, zxid.epoch())
            }
            (Step::Promised, PacketType::Diff) => {
                self.synchronize(base);
                Ok(())
            }
            (Step::Promised, PacketType::Trunc) => self.truncate(base, zxid),
            (Step::Promised, PacketType::Snap) => {
                // Nothing is heard of while the stream is being received: it has the long limit.
                self.deadline = base.awake + base.config.init_timeout();
                self.step = Step::ReceivingImage;
                Ok(())
            }
            (Step::Synchronizing | Step::Acknowledging | Step::Applying { .. } | Step::Broadcast, kind) => {
                self.in_sync(base, kind, zxid, packet)
            }
            (step, kind) => Err(Leave::because(format!("unexpected {kind:?} while {step:?}"))),
        }
    }

    fn in_sync<P: Protocol>(
        &mut self,
        base: &mut Base<P>,
        kind: PacketType,
        zxid: Zxid,
        packet: QuorumPacket,
    ) -> Result<(), Leave> {
        match kind {
            PacketType::Proposal => self.proposal(base, packet.data),
            PacketType::Commit => self.commit(base, zxid, None),
            PacketType::CommitAndActivate if base.ensemble.changes => {
                let (successor, _) = designated(packet.data)?;
                self.commit(base, zxid, Some(successor))
            }
            PacketType::Inform if self.observes => self.inform(base, packet.data, None),
            PacketType::InformAndActivate if self.observes && base.ensemble.changes => {
                let (successor, entry) = designated(packet.data)?;
                self.inform(base, Some(entry), Some(successor))
            }
            PacketType::NewLeader if self.step == Step::Synchronizing => {
                self.offered = packet.data.and_then(|data| Membership::from_bytes(&data).ok());
                self.new_leader(base, zxid.epoch())
            }
            PacketType::UpToDate if self.step == Step::Acknowledging => self.up_to_date(base, zxid),
            PacketType::Ping => {
                self.silence.heard(base.awake);
                // A Java leader takes the first packet after ACKEPOCH for the ACK of NEWLEADER.
                if self.dialect == Dialect::Own || self.is_up_to_date() {
                    self.answer_ping(base, packet.zxid);
                }
                Ok(())
            }
            PacketType::Sync => {
                if let Some(client) = self.syncs.pop_front() {
                    base.clients.synced(client, &base.tree, &mut base.out);
                }
                Ok(())
            }
            PacketType::Revalidate => revalidated(base, &packet),
            _ => Err(Leave::because(format!("unexpected {kind:?} while {:?}", self.step))),
        }
    }

    fn leader_info<P: Protocol>(&mut self, base: &mut Base<P>, epoch: Epoch) -> Result<(), Leave> {
        let Some(conn) = self.conn else { return Ok(()) };
        if i32::try_from(epoch.0).is_err() {
            // Epochs are signed on the wire: promising this one would be promising never to follow anybody.
            return Err(Leave::because(format!("epoch {epoch} is beyond what the wire can carry")));
        }
        // An observer's promise counts for nothing, so that does not keep it from an older leader that still
        // stands. Once it has taken over the history of a later epoch, a quorum has promised that one: the
        // older leader is about to learn that it has none, and what was applied behind its back can't be
        // taken back.
        let (least, how) = match self.observes {
            true => (base.current_epoch, "whose history we took over"),
            false => (base.accepted_epoch, "which we accepted"),
        };
        if epoch < least {
            return Err(Leave::because(format!("epoch {epoch} is older than epoch {least}, {how}")));
        }
        self.epoch = epoch;
        self.step = Step::Promised;
        if self.dialect == Dialect::Apache {
            // It waits for its own quorum as long.
            self.deadline = base.awake + base.config.init_timeout();
        }
        if epoch > base.accepted_epoch {
            let current = base.current_epoch;
            base.set_accepted_epoch(epoch, Then::AckEpoch { conn, current });
        } else {
            // Promised before, perhaps to another: it can't count again. We can still be synchronized.
            ack_epoch(base, conn, -1);
        }
        Ok(())
    }

    /// From here on the leader's history comes.
    ///
    /// A Java leader sends a COMMIT for every committed transaction that we lack, and its UPTODATE says
    /// nothing. What we have and need not cut away it has committed: of what it only proposed it cuts
    /// everything off.
    fn synchronize<P: Protocol>(&mut self, base: &Base<P>) {
        self.step = Step::Synchronizing;
        self.silence = Silence::new(base.awake);
        if self.dialect == Dialect::Apache {
            self.committed = self.committed.max(base.journal.last());
        }
    }

    fn truncate<P: Protocol>(&mut self, base: &mut Base<P>, zxid: Zxid) -> Result<(), Leave> {
        let last = base.journal.floor(zxid);
        // A Java leader may name the beginning of an epoch, which is no transaction.
        let last = last.filter(|last| *last == zxid || zxid.counter() == 0);
        if !last.is_some_and(|last| base.truncate(last)) {
            // Can't be among sound members (see `leader::sync`); going on would leave a hole in the history.
            let applied = base.journal.applied();
            let last =
                base.journal.floor(zxid).map_or_else(|| "its snapshot".to_owned(), |last| last.to_string());
            base.emit(Effect::Halt {
                reason: format!(
                    "the leader asked to cut the log after {zxid}, but the log there ends at {last} and is \
                     applied up to {applied}; move this member's data directory away and let it start empty"
                ),
            });
            return Err(Leave::because("the leader's history contradicts ours"));
        }
        self.synchronize(base);
        Ok(())
    }

    /// The tree came whole.
    pub(crate) fn image<P: Protocol>(&mut self, base: &mut Base<P>, image: Image) -> Result<(), Leave> {
        if self.step != Step::ReceivingImage {
            return Err(Leave::because(format!("unexpected snapshot while {:?}", self.step)));
        }
        self.committed = image.zxid;
        base.install(image, self.dialect);
        self.synchronize(base);
        Ok(())
    }

    fn proposal<P: Protocol>(&mut self, base: &mut Base<P>, data: Option<Bytes>) -> Result<(), Leave> {
        let entry = decode(data)?;
        let zxid = entry.zxid();
        if zxid <= base.journal.last() {
            return Err(Leave::because(format!("proposal {zxid} is not after {}", base.journal.last())));
        }
        let Some(conn) = self.conn else { return Ok(()) };
        if self.step == Step::Synchronizing {
            if zxid.epoch() == self.epoch {
                self.early.push(zxid);
            }
            base.append(entry, None);
        } else {
            base.append(entry, Some(Then::AckProposal { conn, zxid }));
        }
        Ok(())
    }

    /// An observer hears of a transaction when it is committed, and acknowledges nothing.
    fn inform<P: Protocol>(
        &mut self,
        base: &mut Base<P>,
        data: Option<Bytes>,
        successor: Option<ServerId>,
    ) -> Result<(), Leave> {
        let entry = decode(data)?;
        let zxid = entry.zxid();
        if zxid <= base.journal.last() {
            return Err(Leave::because(format!("INFORM {zxid} is not after {}", base.journal.last())));
        }
        base.append(entry, None);
        self.commit(base, zxid, successor)
    }

    /// Something is committed; where that is another membership, somebody else may be the one to lead it.
    fn commit<P: Protocol>(
        &mut self,
        base: &mut Base<P>,
        zxid: Zxid,
        successor: Option<ServerId>,
    ) -> Result<(), Leave> {
        if zxid > base.journal.last() {
            return Err(Leave::because(format!("commit of {zxid}, which was never proposed")));
        }
        self.committed = self.committed.max(zxid);
        if self.step == Step::Broadcast {
            let before = base.ensemble.active().version;
            while base.apply_next(self.committed).is_some() {}
            if base.ensemble.active().version != before {
                return self.fits(base, successor);
            }
        }
        Ok(())
    }

    /// Another membership may rule. Whether we go on as we are, and whom we follow.
    fn fits<P: Protocol>(&self, base: &Base<P>, successor: Option<ServerId>) -> Result<(), Leave> {
        let leader = successor.unwrap_or(self.leader);
        let reason = if leader != self.leader {
            "another member leads the new membership"
        } else if !base.ensemble.leads(leader) {
            return Err(Leave::because("the leader is not in the new membership"));
        } else if self.observes != base.ensemble.i_observe(&base.config) {
            "our place in the ensemble is another"
        } else {
            return Ok(());
        };
        Err(Leave { successor: Some(leader), ..Leave::because(reason) })
    }

    fn new_leader<P: Protocol>(&mut self, base: &mut Base<P>, epoch: Epoch) -> Result<(), Leave> {
        if epoch != self.epoch {
            return Err(Leave::because(format!("NEWLEADER of epoch {epoch} in epoch {}", self.epoch)));
        }
        let Some(conn) = self.conn else { return Ok(()) };
        self.step = Step::Acknowledging;
        base.set_current_epoch(epoch, Then::AckNewLeader { conn, epoch });
        Ok(())
    }

    fn up_to_date<P: Protocol>(&mut self, base: &mut Base<P>, committed: Zxid) -> Result<(), Leave> {
        let ruled = base.ensemble.active().version;
        match self.dialect {
            Dialect::Own => self.commit(base, committed, None)?,
            Dialect::Apache => self.commit(base, self.committed, None)?,
        }
        self.step = Step::Applying { ruled };
        self.apply_history(base)
    }

    /// Applies the history, a slice with each tick where it is long: peers must hear of us meanwhile.
    fn apply_history<P: Protocol>(&mut self, base: &mut Base<P>) -> Result<(), Leave> {
        let (Step::Applying { ruled }, Some(conn)) = (self.step, self.conn) else { return Ok(()) };
        if !base.apply_some(self.committed) {
            return Ok(());
        }
        self.step = Step::Broadcast;
        if base.ensemble.active().version != ruled {
            self.fits(base, None)?;
        }
        let shown = base.ensemble.take_from(&base.tree);
        let offered = self.offered.take().map_or(Changed::Nothing, |offered| base.ensemble.activate(offered));
        base.adapt(shown.max(offered));
        ack(base, conn, Zxid::new(self.epoch, 0));
        // The tree that came may have said already that we have a vote, or none any more.
        self.fits(base, None)?;
        base.tell(Event::Established { leader: self.leader, epoch: self.epoch });
        Ok(())
    }

    /// Something this role waited for is durable.
    pub(crate) fn stored<P: Protocol>(&mut self, base: &mut Base<P>, then: Then) {
        match then {
            Then::AckEpoch { conn, current } => {
                let current = i32::try_from(current.0).unwrap_or(i32::MAX);
                ack_epoch(base, conn, current);
            }
            Then::AckNewLeader { conn, epoch } => {
                ack(base, conn, Zxid::new(epoch, 0));
                // Never before the ACK of NEWLEADER: the leader would drop them (ZOOKEEPER-4685).
                for zxid in std::mem::take(&mut self.early) {
                    ack(base, conn, zxid);
                }
            }
            Then::AckProposal { conn, zxid } => ack(base, conn, zxid),
            Then::EpochAccepted | Then::NewLeaderStored | Then::ProposalStored { .. } => {
                unreachable!("a follower never waits as a leader does")
            }
        }
    }

    fn answer_ping<P: Protocol>(&mut self, base: &mut Base<P>, zxid: i64) {
        let Some(conn) = self.conn else { return };
        self.spoke = base.awake;
        let touched = PingTouches(std::mem::take(&mut self.touched).into_iter().collect());
        let data = encode(|w| touched.encode(w));
        base.send(conn, QuorumPacket::new(PacketType::Ping, zxid, Some(data)));
    }

    pub(crate) fn touch(&mut self, session: SessionId, timeout_ms: i32) {
        self.touched.insert(session, timeout_ms);
    }

    /// A client wants what only the leader can do.
    pub(crate) fn ask<P: Protocol>(&mut self, base: &mut Base<P>, ask: Ask) {
        let Some(conn) = self.conn else { return };
        let packet = match ask {
            Ask::Forward(mut request) => {
                if self.dialect == Dialect::Apache {
                    local::without_mark(&mut request.auth);
                }
                request.into_packet()
            }
            Ask::Upgrade(creation, request) => {
                base.send(conn, creation.into_packet());
                request.into_packet()
            }
            Ask::Revalidate(revalidate) => {
                QuorumPacket::new(PacketType::Revalidate, -1, Some(encode(|w| revalidate.encode(w))))
            }
            Ask::Sync(client) => {
                self.syncs.push_back(client);
                let session = base.clients.session(client).unwrap_or(SessionId::NONE);
                sync_request(session).into_packet()
            }
        };
        base.send(conn, packet);
    }
}

/// The request by which a client's sync is forwarded to the leader.
fn sync_request(session: SessionId) -> ForwardedRequest {
    ForwardedRequest { session, cxid: 0, op: OpCode::Sync.code(), payload: Bytes::new(), auth: Vec::new() }
}

/// Who is to lead the new membership, and what follows behind that.
fn designated(data: Option<Bytes>) -> Result<(ServerId, Bytes), Leave> {
    let mut data = data.unwrap_or_default();
    let bad = || Leave::because("a commit of a membership that names no leader");
    let id = i64::from_be_bytes(*data.first_chunk().ok_or_else(bad)?);
    data.advance(8);
    let id = u64::try_from(id).map_err(|_| bad())?;
    Ok((ServerId(id), data))
}

fn decode(data: Option<Bytes>) -> Result<Entry, Leave> {
    Entry::decode(data.unwrap_or_default())
        .map_err(|error| Leave::because(format!("a transaction that can't be read: {error}")))
}

fn revalidated<P: Protocol>(base: &mut Base<P>, packet: &QuorumPacket) -> Result<(), Leave> {
    let data = packet.data.clone().unwrap_or_default();
    let answer = Revalidated::decode(&mut Reader::new(data))
        .map_err(|error| Leave::because(format!("an answer about a session that can't be read: {error}")))?;
    if packet.zxid == SESSION_MOVED {
        base.clients.moved_away(answer.session, &base.tree, &mut base.out);
    } else {
        base.clients.revalidated(answer.session, answer.valid, &base.tree, &mut base.out);
    }
    Ok(())
}

fn ack<P: Protocol>(base: &mut Base<P>, conn: ConnId, zxid: Zxid) {
    base.send(conn, QuorumPacket::new(PacketType::Ack, zxid.to_wire(), None));
}

fn ack_epoch<P: Protocol>(base: &mut Base<P>, conn: ConnId, current: i32) {
    let data = encode(|w| w.int(current));
    let zxid = base.journal.last().to_wire();
    base.send(conn, QuorumPacket::new(PacketType::AckEpoch, zxid, Some(data)));
}

#[cfg(test)]
mod tests {
    use node_wire::txn::{Txn, TxnHeader};

    use super::*;
    use crate::config::Config;
    use crate::io::Now;
    use crate::zab::Zab;

    const LEADER: ConnId = ConnId(1);

    fn base() -> Base<Zab> {
        let config = Config::usual(ServerId(2), [ServerId(1), ServerId(2)].into());
        Base::new(config, Epoch(1), Epoch(1), &Image::default(), Vec::new(), Now::default(), Zab)
    }

    /// The leader says something, and all that is to be stored for it is.
    fn say(learner: &mut Learner, base: &mut Base<Zab>, kind: PacketType, zxid: Zxid, data: Option<Bytes>) {
        let told = learner.packet(base, QuorumPacket::new(kind, zxid.to_wire(), data));
        told.unwrap_or_else(|leave| panic!("{kind:?}: {}", leave.reason));
        base.stored(u64::MAX);
        while let Some(then) = base.next_due() {
            learner.stored(base, then);
        }
    }

    #[test]
    fn a_follower_applies_a_long_history_in_slices_and_answers_its_leader_meanwhile() {
        let mut base = base();
        let mut learner = Learner::start(ServerId(1), Dialect::Own, &mut base);
        learner.dialled(&mut base, LEADER);
        let (epoch, last) = (Zxid::new(Epoch(2), 0), Zxid::new(Epoch(1), 10_000));
        let info = LeaderInfo { protocol: LEARNER_PROTOCOL, dialect: Dialect::Own };
        say(&mut learner, &mut base, PacketType::LeaderInfo, epoch, Some(encode(|w| info.encode(w))));
        say(&mut learner, &mut base, PacketType::Diff, last, None);
        for counter in 1..=last.counter() {
            let (zxid, txn) = (Zxid::new(Epoch(1), counter), Txn::Error { code: -101 });
            let header = TxnHeader { session: SessionId(1), cxid: 1, zxid, time_ms: 0, kind: txn.kind() };
            let data = Some(Entry::new(header, txn, None).bytes);
            say(&mut learner, &mut base, PacketType::Proposal, zxid, data);
        }
        say(&mut learner, &mut base, PacketType::NewLeader, epoch, None);
        assert_eq!(base.journal.applied(), Zxid::ZERO, "the history may still lose");

        say(&mut learner, &mut base, PacketType::UpToDate, last, None);
        let mut slices = 1;
        while !learner.established() {
            let applied = base.journal.applied();
            assert!(applied > Zxid::ZERO && applied < last, "slice {slices} ends at {applied}");
            base.out.clear();
            say(&mut learner, &mut base, PacketType::Ping, Zxid(slices), None);
            assert!(matches!(&base.out[..], [Effect::Send { conn: LEADER, .. }]), "{:?}", base.out);
            learner.tick(&mut base).expect("the leader speaks");
            slices += 1;
        }
        assert_eq!((base.journal.applied(), slices), (last, 3));
    }
}
