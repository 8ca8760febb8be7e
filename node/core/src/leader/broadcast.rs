//! Broadcast: each write is proposed to every learner in zxid order and committed when a quorum has it on
//! disk.
//!
//! Proposals are pipelined: none waits for the one before it, and the leader's own write to disk is one of
//! the acknowledgements. Logs are prefixes of one another within an epoch, so an acknowledgement of one zxid
//! stands for all before it, and the commit index is the position that a quorum has reached.
//!
//! A follower of Apache ZooKeeper 3.8 falls over a COMMIT between NEWLEADER and UPTODATE (ZOOKEEPER-4394). It
//! gets those behind UPTODATE. And it acknowledges proposals when they are on its disk: those of the history
//! too, and those of the epoch perhaps before NEWLEADER (ZOOKEEPER-4685). Neither counts before its ACK of
//! NEWLEADER.

use node_wire::client::{ErrorCode, OpCode};
use node_wire::ids::{ServerId, SessionId, Zxid};
use node_wire::quorum::{Dialect, ForwardedRequest, PacketType, QuorumPacket};
use node_wire::txn::{Entry, Txn, TxnHeader};

use super::{Leader, Progress, up_to_date};
use crate::base::{Base, HISTORY_SLICE, Leave, Then, weight};
use crate::io::{ConnId, Effect};
use crate::local;
use crate::phase::Phase;
use crate::prep::Case;
use crate::sessions::Owner;
use crate::tree::Applied;
use crate::zab::{Acknowledged, Protocol};

/// COMMITs that are held for a member that is being synchronized. One that lets so many pass begins anew.
const MAX_HELD: usize = 1 << 20;

impl Leader {
    /// A client's request, from one of ours or forwarded by a learner.
    pub(crate) fn request<P: Protocol>(
        &mut self,
        base: &mut Base<P>,
        owner: Owner,
        request: ForwardedRequest,
    ) -> Result<(), Leave> {
        if request.op == OpCode::Sync.code() {
            self.remote_sync(base, owner);
            return Ok(());
        }
        let session = request.session;
        if request.op == OpCode::CreateSession.code() {
            // Its time-out counts from now on; the transaction makes it known to all.
            let timeout_ms = node_wire::jute::Reader::new(request.payload.clone()).int().unwrap_or(0);
            self.sessions.add(session, timeout_ms, Some(owner), base.awake);
        } else if request.op != OpCode::CloseSession.code()
            && self.sessions.owner(session).is_some_and(|known| known != owner)
        {
            // Sent before the client moved. It must not take effect after what the client did since. A member
            // of ours is told of the move and closes the connection; one of Apache ZooKeeper waits for a
            // transaction, and takes this one for the reason to close. The end of a session may be asked
            // through anybody, as there.
            if self.waits_for_refusals(owner) {
                return self.refuse(base, &request, ErrorCode::SessionMoved);
            }
            return Ok(());
        }
        self.sessions.touch(session, base.awake);
        let local = self.may_be_local(base, owner, &request);
        self.propose(base, &request, local)
    }

    fn waits_for_refusals(&self, owner: Owner) -> bool {
        self.dialect(owner) == Dialect::Apache
    }

    fn dialect(&self, owner: Owner) -> Dialect {
        match owner {
            Owner::Local => Dialect::Own,
            Owner::Learner(conn) => self.peers.get(&conn).map_or(Dialect::Own, |peer| peer.dialect),
        }
    }

    /// True for a request of a session that another member alone may know. A member of ours says so. Of those
    /// of Apache ZooKeeper every session is believed that did not begin here, as it does itself.
    fn may_be_local<P: Protocol>(&self, base: &Base<P>, owner: Owner, request: &ForwardedRequest) -> bool {
        base.config.clients.local_sessions
            && match self.dialect(owner) {
                Dialect::Own => local::is_marked(&request.auth),
                Dialect::Apache => !local::is_from(request.session, base.config.id),
            }
    }

    /// A session's time is over: closing it is a transaction like any other.
    pub(super) fn expire<P: Protocol>(
        &mut self,
        base: &mut Base<P>,
        session: SessionId,
    ) -> Result<(), Leave> {
        if !self.outstanding.session_lives(&base.tree, session) {
            return Ok(());
        }
        let payload = bytes::Bytes::new();
        let request =
            ForwardedRequest { session, cxid: 0, op: OpCode::CloseSession.code(), payload, auth: Vec::new() };
        self.propose(base, &request, false)
    }

    fn next_zxid<P: Protocol>(&self, base: &Base<P>) -> Result<Zxid, Leave> {
        base.zab
            .next_zxid(self.last_proposed, base.config.last_counter)
            .ok_or_else(|| Leave::because("the epoch's counter is used up, a new epoch is needed"))
    }

    /// Proposes that a request was refused, without a look at it.
    fn refuse<P: Protocol>(
        &mut self,
        base: &mut Base<P>,
        request: &ForwardedRequest,
        error: ErrorCode,
    ) -> Result<(), Leave> {
        let zxid = self.next_zxid(base)?;
        let txn = Txn::Error { code: error.code() };
        self.log(base, request, zxid, (txn.kind(), txn))
    }

    /// Proposes what becomes of a request. `local` says that its session may be one that another member alone
    /// knows.
    pub(super) fn propose<P: Protocol>(
        &mut self,
        base: &mut Base<P>,
        request: &ForwardedRequest,
        local: bool,
    ) -> Result<(), Leave> {
        let zxid = self.next_zxid(base)?;
        let membership = self.new_membership(base, request, zxid);
        let (zab, rules, tree, membership) =
            (base.zab, &base.config.clients, &base.tree, membership.as_ref());
        let (kind, txn) =
            self.outstanding.transaction(Case { zab, rules, tree, membership, request, zxid, local });
        if let Txn::CloseSession { .. } = txn {
            self.sessions.remove(request.session);
        }
        self.log(base, request, zxid, (kind, txn))
    }

    /// A proposal goes to every learner and onto the leader's own disk.
    fn log<P: Protocol>(
        &mut self,
        base: &mut Base<P>,
        request: &ForwardedRequest,
        zxid: Zxid,
        (kind, txn): (i32, Txn),
    ) -> Result<(), Leave> {
        let header =
            TxnHeader { session: request.session, cxid: request.cxid, zxid, time_ms: base.now.wall_ms, kind };
        self.look_ahead(base);
        let entry = self.with_digest(Entry::new(header, txn, None));
        self.last_proposed = zxid;
        for (conn, peer) in &self.peers {
            if matches!(peer.progress, Progress::Synchronizing | Progress::Synchronized) && !peer.observes {
                let data = Some(entry.bytes.clone());
                let packet = QuorumPacket::new(PacketType::Proposal, zxid.to_wire(), data);
                base.out.push(Effect::Send { conn: *conn, packet });
            }
        }
        base.append(entry, Some(Then::ProposalStored { zxid }));
        // Alone in the ensemble nobody else will acknowledge; otherwise this finds nothing new.
        self.try_commit(base)
    }

    /// A learner has something on disk.
    pub(super) fn ack<P: Protocol>(
        &mut self,
        base: &mut Base<P>,
        conn: ConnId,
        zxid: Zxid,
    ) -> Result<(), Leave> {
        let (Some(epoch), Some(peer)) = (self.epoch, self.peers.get_mut(&conn)) else { return Ok(()) };
        let new_leader = Zxid::new(epoch, 0);
        if peer.dialect == Dialect::Apache && zxid < new_leader {
            return Ok(());
        }
        if zxid != new_leader && !(self.beginning..=self.last_proposed).contains(&zxid) {
            // An acknowledgement of what was never sent to it in this epoch.
            self.drop_peer(base, conn);
            return Ok(());
        }
        if zxid == new_leader {
            if peer.progress == Progress::Synchronizing {
                peer.progress = Progress::Synchronized;
                peer.patient_until = base.awake;
                peer.silence.heard(base.awake);
                // It may have held open proposals before it came back: nobody will acknowledge those again.
                peer.acked = peer.acked.max(peer.history);
                if self.phase == Phase::Broadcast {
                    up_to_date(base, conn, peer);
                    return self.try_commit(base);
                }
                return self.check_established(base);
            }
            return Ok(());
        }
        if peer.progress != Progress::Synchronized && peer.dialect == Dialect::Own {
            // Before its ACK of NEWLEADER nothing of it counts.
            self.drop_peer(base, conn);
            return Ok(());
        }
        peer.acked = peer.acked.max(zxid);
        self.try_commit(base)
    }

    /// Commits everything that a quorum has on disk.
    pub(super) fn try_commit<P: Protocol>(&mut self, base: &mut Base<P>) -> Result<(), Leave> {
        if self.phase != Phase::Broadcast {
            return Ok(());
        }
        let positions: Vec<(ServerId, Zxid)> = self
            .peers
            .values()
            .filter(|peer| peer.progress == Progress::Synchronized && !peer.observes)
            .filter_map(|peer| Some((peer.server?, peer.acked)))
            .chain([(base.config.id, self.durable)])
            .collect();
        // More than once where a membership is among what is committed: what is behind it needs the new one
        // alone.
        loop {
            let reached = base.zab.commits(Acknowledged {
                proposed: self.last_proposed,
                reached: self.commit_index(base, &positions),
                synchronized: positions.len(),
                voters: base.quorum.active_voters(),
            });
            let applied = base.journal.applied();
            if reached <= applied {
                return Ok(());
            }
            self.apply_up_to(base, reached, usize::MAX)?;
            self.release_barriers(base);
            if base.journal.applied() == applied {
                // A position may be the beginning of an epoch, which is no transaction.
                return Ok(());
            }
        }
    }

    /// As much of a long history as a step may hold. True when all of it up to there is applied.
    pub(super) fn apply_some<P: Protocol>(&mut self, base: &mut Base<P>, up_to: Zxid) -> Result<bool, Leave> {
        self.apply_up_to(base, up_to, HISTORY_SLICE)?;
        Ok(base.journal.next_to_apply(up_to).is_none())
    }

    /// Commits in order, until about so many bytes are applied: tells the learners, applies, answers. Behind
    /// a membership that another one is to lead nothing more is committed here.
    fn apply_up_to<P: Protocol>(
        &mut self,
        base: &mut Base<P>,
        up_to: Zxid,
        bytes: usize,
    ) -> Result<(), Leave> {
        let mut left = bytes;
        while left > 0 {
            let before = base.ensemble.pending().map(|_| base.ensemble.active().servers.clone());
            let Some((entry, applied)) = base.apply_next(up_to) else { break };
            left = left.saturating_sub(weight(&entry));
            let zxid = entry.zxid();
            // The history that the epoch began with was sent with its COMMITs already.
            if zxid > self.initial {
                match before {
                    Some(before) if matches!(applied, Applied::Reconfigured { .. }) => {
                        self.activated(base, &entry, &before)?;
                    }
                    Some(_) | None => self.tell_committed(base, &entry),
                }
                self.answer_in_order(base, zxid);
            }
            self.outstanding.applied(zxid);
            if applied == Applied::SessionClosed {
                self.sessions.remove(entry.header.session);
            }
        }
        self.share(&base.tree);
        Ok(())
    }
}

// Telling learners.

impl Leader {
    fn tell_committed<P: Protocol>(&mut self, base: &mut Base<P>, entry: &Entry) {
        let zxid = entry.zxid();
        let mut beyond_help = Vec::new();
        for (conn, peer) in &mut self.peers {
            let hold = match peer.progress {
                Progress::Connected | Progress::Known { .. } | Progress::Promised { .. } => continue,
                Progress::Synchronizing => peer.dialect == Dialect::Apache && !peer.observes,
                Progress::Synchronized => false,
            };
            if hold {
                peer.held.push(zxid);
                if peer.held.len() > MAX_HELD {
                    beyond_help.push(*conn);
                }
                continue;
            }
            let (kind, data) = if peer.observes {
                (PacketType::Inform, Some(entry.bytes.clone()))
            } else {
                (PacketType::Commit, None)
            };
            let packet = QuorumPacket::new(kind, zxid.to_wire(), data);
            base.out.push(Effect::Send { conn: *conn, packet });
        }
        for conn in beyond_help {
            self.drop_peer(base, conn);
        }
    }
}

#[cfg(test)]
mod tests {
    use node_wire::ids::Epoch;
    use node_wire::snapshot::Image;

    use super::*;
    use crate::config::Config;
    use crate::io::Now;
    use crate::zab::Zab;

    /// The leader of an ensemble of one with this log, established, and its base.
    fn alone(entries: Vec<Entry>) -> (Leader, Base<Zab>) {
        let config = Config::usual(ServerId(1), [ServerId(1)].into());
        let image = Image::default();
        let mut base = Base::new(config, Epoch(6), Epoch(6), &image, entries, Now::default(), Zab);
        let mut leader = Leader::start(Dialect::Own, &mut base);
        for ticket in 1..=2 {
            base.stored(ticket);
            while let Some(then) = base.next_due() {
                leader.stored(&mut base, then).expect("nothing is in the way");
            }
        }
        (leader, base)
    }

    #[test]
    fn a_leader_applies_a_long_history_in_slices_and_serves_behind_the_last() {
        let log = (1..=10_000).map(|counter| {
            let (zxid, txn) = (Zxid::new(Epoch(6), counter), Txn::Error { code: -101 });
            let header = TxnHeader { session: SessionId(1), cxid: 1, zxid, time_ms: 0, kind: txn.kind() };
            Entry::new(header, txn, None)
        });
        let (mut leader, mut base) = alone(log.collect());
        let mut slices = 1;
        while !leader.established() {
            let (applied, last) = (base.journal.applied(), base.journal.last());
            assert!(applied > Zxid::ZERO && applied < last, "slice {slices} ends at {applied}");
            leader.tick(&mut base).expect("a quorum has it");
            slices += 1;
        }
        assert_eq!((base.journal.applied(), slices), (base.journal.last(), 3));
    }

    #[test]
    fn a_counter_that_is_used_up_ends_the_epoch() {
        let (mut leader, mut base) = alone(Vec::new());
        assert!(leader.established());
        let op = OpCode::CloseSession.code();
        let request = ForwardedRequest {
            session: SessionId(1),
            cxid: 1,
            op,
            payload: bytes::Bytes::new(),
            auth: Vec::new(),
        };
        leader.last_proposed = Zxid::new(Epoch(7), Zxid::LAST_COUNTER - 2);
        assert_eq!(leader.request(&mut base, Owner::Local, request.clone()), Ok(()));
        assert_eq!(base.journal.last(), Zxid::new(Epoch(7), Zxid::LAST_COUNTER - 1));

        let refused = leader.request(&mut base, Owner::Local, request);
        assert!(refused.is_err_and(|leave| leave.reason.contains("a new epoch is needed")));
        assert_eq!(base.journal.last(), Zxid::new(Epoch(7), Zxid::LAST_COUNTER - 1), "nothing was proposed");
    }
}
