//! Changing the ensemble while it serves: what the leader does with the request `reconfig`, and when it hands
//! over.
//!
//! The request says who joins and who leaves, or who shall be in. The leader makes the new membership of it
//! and refuses what can't be: another change that is under way, a version that is not the current one, too
//! few voters, a port that two would share, and a membership of which no quorum follows it already. Newcomers
//! therefore follow first, without a vote. What is left is a transaction like any other (type 16: the new
//! text of `/zookeeper/config`, with its own zxid as its version) that needs a quorum of both memberships,
//! and so does all that is proposed behind it until it is committed ([`crate::ensemble`]).
//!
//! Its commit is told as COMMITANDACTIVATE with the number of who leads from then on: this leader, if it
//! votes in the new membership at the same address; else the voter of the new membership that has most of the
//! log. All go to that one without an election. If it is gone meanwhile, they elect.

use std::collections::BTreeMap;

use bytes::{BufMut, Bytes, BytesMut};
use node_wire::client::{ErrorCode, OpCode, ReconfigRequest};
use node_wire::ids::{ServerId, Zxid};
use node_wire::jute::Reader;
use node_wire::membership::{Membership, ServerLine, server_id};
use node_wire::quorum::{Dialect, ForwardedRequest, PacketType, QuorumPacket};
use node_wire::txn::Entry;

use super::{Leader, Progress};
use crate::base::{Base, Leave};
use crate::io::{ConnId, Effect};
use crate::rules::Reconfiguration;
use crate::zab::Protocol;

impl Leader {
    /// The membership that a request asks for, if the request is one.
    pub(super) fn new_membership<P: Protocol>(
        &self,
        base: &Base<P>,
        request: &ForwardedRequest,
        zxid: Zxid,
    ) -> Option<Result<Membership, ErrorCode>> {
        let asked = request.op == OpCode::Reconfig.code();
        asked.then(|| self.judge_membership(base, request, zxid))
    }

    fn judge_membership<P: Protocol>(
        &self,
        base: &Base<P>,
        request: &ForwardedRequest,
        zxid: Zxid,
    ) -> Result<Membership, ErrorCode> {
        let fewest = match base.config.clients.reconfig {
            Reconfiguration::Off => return Err(ErrorCode::ReconfigDisabled),
            Reconfiguration::Alone => return Err(ErrorCode::Unimplemented),
            Reconfiguration::On { standalone: true } => 2,
            Reconfiguration::On { standalone: false } => 1,
        };
        if base.ensemble.pending().is_some() {
            return Err(ErrorCode::ReconfigInProgress);
        }
        let request = ReconfigRequest::decode(&mut Reader::new(request.payload.clone()))
            .map_err(|_| ErrorCode::MarshallingError)?;
        let active = base.ensemble.active();
        if request.config_version != -1 && request.config_version != active.version.to_wire() {
            return Err(ErrorCode::BadVersion);
        }
        let mut membership = asked_for(active, &request).ok_or(ErrorCode::BadArguments)?;
        membership.version = zxid;
        if membership.voters().len() < fewest || membership.check_addresses().is_err() {
            return Err(ErrorCode::BadArguments);
        }
        if self.moves_somebody_alive(base, &membership) {
            return Err(ErrorCode::BadArguments);
        }
        if !self.is_quorum_synced(base, &membership) {
            return Err(ErrorCode::NewConfigNoQuorum);
        }
        Ok(membership)
    }

    /// Ports between members stay where they are for as long as a process lives. One that is away may come
    /// back at others; of one that is here that can't be said.
    fn moves_somebody_alive<P: Protocol>(&self, base: &Base<P>, membership: &Membership) -> bool {
        let here = self.peers.values().filter_map(|peer| peer.server).chain([base.config.id]);
        let active = &base.ensemble.active().servers;
        here.into_iter().any(|server| match (active.get(&server), membership.servers.get(&server)) {
            (Some(old), Some(new)) => (&old.quorum, &old.election) != (&new.quorum, &new.election),
            (None, _) | (_, None) => false,
        })
    }

    /// True when a quorum of these voters has our history, ourselves included if we are one.
    fn is_quorum_synced<P: Protocol>(&self, base: &Base<P>, membership: &Membership) -> bool {
        let synced =
            self.peers.values().filter(|peer| peer.progress == Progress::Synchronized && !peer.observes);
        let voters = membership.voters();
        let synced = synced.filter_map(|peer| peer.server).chain([base.config.id]);
        let synced: std::collections::BTreeSet<ServerId> = synced.filter(|id| voters.contains(id)).collect();
        synced.len() > voters.len() / 2
    }

    /// What NEWLEADER says of the ensemble: the membership that rules once the epoch stands. The first one
    /// gets its version here.
    pub(super) fn offer<P: Protocol>(&self, base: &Base<P>) -> Option<Membership> {
        let epoch = self.epoch.filter(|_| base.ensemble.changes)?;
        let rules = if self.established() { base.ensemble.active() } else { base.ensemble.latest() };
        let mut membership = rules.clone();
        if membership.version == Zxid::ZERO {
            membership.version = Zxid::new(epoch, 0);
        }
        Some(membership)
    }

    /// The epoch stands, and with it what its leader offered.
    pub(super) fn activate_offer<P: Protocol>(&self, base: &mut Base<P>) {
        if let Some(membership) = self.offer(base) {
            let changed = base.ensemble.activate(membership);
            base.adapt(changed);
        }
    }

    /// Who is to lead what rules now. `None` when nobody is there who could.
    pub(super) fn designated<P: Protocol>(
        &self,
        base: &Base<P>,
        before: &BTreeMap<ServerId, ServerLine>,
    ) -> Option<ServerId> {
        let (me, active) = (base.config.id, base.ensemble.active());
        let place =
            |servers: &BTreeMap<ServerId, ServerLine>| servers.get(&me).map(|line| line.quorum.clone());
        if base.ensemble.leads(me) && place(before) == place(&active.servers) {
            return Some(me);
        }
        let synced =
            self.peers.values().filter(|peer| peer.progress == Progress::Synchronized && !peer.observes);
        synced
            .filter_map(|peer| Some((peer.acked, peer.server?)))
            .filter(|(_, server)| *server != me && base.ensemble.leads(*server))
            .max()
            .map(|(_, server)| server)
    }

    /// A membership is committed: everybody is told, and who leads from here on.
    ///
    /// # Errors
    /// When that is not this member.
    pub(super) fn activated<P: Protocol>(
        &mut self,
        base: &mut Base<P>,
        entry: &Entry,
        before: &BTreeMap<ServerId, ServerLine>,
    ) -> Result<(), Leave> {
        let leader = self.designated(base, before);
        self.tell_activated(base, entry, leader.unwrap_or(base.config.id));
        if leader == Some(base.config.id) {
            return Ok(());
        }
        Err(Leave { successor: leader, ..Leave::because("the new membership is led by another") })
    }

    fn tell_activated<P: Protocol>(&mut self, base: &mut Base<P>, entry: &Entry, leader: ServerId) {
        let mut designation = BytesMut::with_capacity(8);
        designation.put_u64(leader.0);
        let designation = designation.freeze();
        let mut beyond_help: Vec<ConnId> = Vec::new();
        for (conn, peer) in &self.peers {
            match peer.progress {
                Progress::Connected | Progress::Known { .. } | Progress::Promised { .. } => continue,
                // COMMITs for it are held back, and this one can't be: it begins anew.
                Progress::Synchronizing if peer.dialect == Dialect::Apache && !peer.observes => {
                    beyond_help.push(*conn);
                    continue;
                }
                Progress::Synchronizing | Progress::Synchronized => {}
            }
            let (kind, data) = if peer.observes {
                let data: Bytes = [&designation[..], &entry.bytes[..]].concat().into();
                (PacketType::InformAndActivate, data)
            } else {
                (PacketType::CommitAndActivate, designation.clone())
            };
            let packet = QuorumPacket::new(kind, entry.zxid().to_wire(), Some(data));
            base.out.push(Effect::Send { conn: *conn, packet });
        }
        for conn in beyond_help {
            self.drop_peer(base, conn);
        }
    }

    /// How far everything is committed, given how far each voter is.
    ///
    /// What was proposed before a membership that is pending needs a quorum of the old one alone, the
    /// membership itself and what is behind it one of both.
    pub(super) fn commit_index<P: Protocol>(&self, base: &Base<P>, positions: &[(ServerId, Zxid)]) -> Zxid {
        let quorum = &base.quorum;
        let Some(pending) = base.ensemble.pending() else { return quorum.reached_zxid(positions) };
        let of_both = quorum.reached_zxid(positions);
        if of_both >= pending {
            return of_both;
        }
        quorum.reached_zxid_of_active(positions).min(Zxid(pending.0.saturating_sub(1)))
    }
}

/// The members that a request asks for. `None` when it can't be read.
fn asked_for(active: &Membership, request: &ReconfigRequest) -> Option<Membership> {
    let mut membership = Membership::default();
    if let Some(members) = &request.members {
        for line in members.split([',', '\n']).map(str::trim).filter(|line| !line.is_empty()) {
            membership.add_line(line).ok()?;
        }
        return Some(membership);
    }
    membership.servers.clone_from(&active.servers);
    for leaving in parts(request.leaving.as_deref()) {
        membership.servers.remove(&server_id(leaving)?);
    }
    for joining in parts(request.joining.as_deref()) {
        let mut joiner = Membership::default();
        joiner.add_line(joining).ok()?;
        // A member that clients can't reach by its line would be none to them.
        if joiner.servers.values().any(|line| line.client.is_none()) {
            return None;
        }
        membership.servers.append(&mut joiner.servers);
    }
    Some(membership)
}

fn parts(list: Option<&str>) -> impl Iterator<Item = &str> {
    list.unwrap_or_default().split(',').map(str::trim).filter(|part| !part.is_empty())
}
