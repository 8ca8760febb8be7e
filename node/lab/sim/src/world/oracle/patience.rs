//! What a leader owes to those who follow it: commits in time, and patience while a tree is on its way.
//!
//! That somebody leads is not enough. A proposal of a leader that leads an epoch is committed as soon as a
//! quorum has it on disk; so when a quorum of members that nothing disturbs has followed it since it proposed
//! something, and its links to them are well, that is committed within a bound which follows from the swarm
//! options: two ways over a link, two synchronizations, and room. Nothing else may be waited for: not the
//! leader's own disk where others are a quorum, not a member that is away or is being brought to the history,
//! not a session that waits to go on. A member whose disk has not yet done what it was told before the
//! proposal is behind, and can't be waited for either: where every change of the membership is a
//! synchronization of its own, changes may come faster than a slow disk takes them.
//!
//! A tree may be on its way for longer than a peer may be silent. Until the limit for taking a history over
//! neither the leader that sends it nor the member that was told of it gives up the connection, unless the
//! member dialled again.
//!
//! Behind that the usual limits hold again. A leader that spoke within a peer's time-out has not fallen
//! silent, a tree being its word as well; and a leader keeps no learner that has acknowledged its history and
//! said nothing since. Who comes back is taken in at once, whatever still stands of its earlier connection.

use std::collections::{BTreeMap, VecDeque};

use node_core::io::{ConnId, Event, FELL_SILENT, Input, StoreOp};
use node_core::{Role, Status};
use node_wire::ids::{Epoch, ServerId, Zxid};
use node_wire::quorum::PacketType;

use crate::host::Process;
use crate::network::{EndId, HostIndex};
use crate::outcome::Rule;
use crate::world::clockwork::bounds::ROOM_US;
use crate::world::ensemble::membership::{Set, is_quorum, set_of};
use crate::world::{Clockwork, Ensemble, Oracle};
use harness_world::time::Time;

/// Of the limit for a history, in percent, what must be waited for at least: clocks differ.
const PATIENT_PERCENT: u64 = 85;

/// Of a peer's time-out, in percent, what must be over at least before a leader that spoke is called silent.
const SILENT_PERCENT: u64 = 85;

/// Peer time-outs after which a learner that says nothing is gone for sure: its rhythm makes it up to four.
const SILENT_TIMEOUTS: u64 = 5;

/// A tree on its way.
#[derive(Clone, Copy, Debug)]
struct Stream {
    since: Time,
    /// What its sender had promised then: another epoch since means that it left its role.
    epoch: Epoch,
    /// Its receiver knows of it.
    announced: bool,
}

/// What leaders owe.
#[derive(Clone, Debug)]
pub(in crate::world) struct Patience {
    /// Each member's own proposals that it has not committed, and when it made them.
    proposals: Vec<VecDeque<(Zxid, Time)>>,
    /// Whom each member follows in an epoch that stands, and since when.
    follows: Vec<Option<(ServerId, Time)>>,
    /// Since when each member has been awake, whatever its disk does.
    awake: Vec<Time>,
    /// By their connections.
    streams: BTreeMap<usize, Stream>,
    /// When each member last heard of its leader what counts as a word.
    leader_spoke: Vec<Option<Time>>,
    /// When the leader last heard anything of a learner that has acknowledged its history, by their
    /// connections.
    learner_spoke: BTreeMap<usize, Time>,
    /// The connection on which a learner says in the present step who it is.
    introduced: Option<ConnId>,
}

impl Patience {
    pub(in crate::world) fn new(members: usize) -> Self {
        Self {
            proposals: vec![VecDeque::new(); members],
            follows: vec![None; members],
            awake: vec![Time::default(); members],
            streams: BTreeMap::new(),
            leader_spoke: vec![None; members],
            learner_spoke: BTreeMap::new(),
            introduced: None,
        }
    }

    /// A member stood still, or was not there.
    fn slept(&mut self, host: HostIndex, at: Time) {
        self.awake[host] = at;
    }

    /// A member proposes.
    pub(in crate::world) fn proposes(&mut self, host: HostIndex, op: &StoreOp, at: Time) {
        if let StoreOp::Append(entry) = op {
            self.proposals[host].push_back((entry.zxid(), at));
        }
    }

    /// A member finished a step.
    pub(in crate::world) fn stepped(&mut self, host: HostIndex, status: &Status, at: Time) {
        // Who came without a vote acknowledges nothing, whatever a membership says by now.
        self.stands(host, status.role, status.established && !status.observes, at);
        self.applied(host, status.role == Role::Leading, status.last_applied);
    }

    pub(in crate::world) fn stands(&mut self, host: HostIndex, role: Role, established: bool, at: Time) {
        self.follows[host] = match (role, self.follows[host]) {
            (Role::Following(leader), Some((known, since))) if established && known == leader => {
                Some((leader, since))
            }
            (Role::Following(leader), _) if established => Some((leader, at)),
            _ => None,
        };
    }

    pub(in crate::world) fn applied(&mut self, host: HostIndex, leads: bool, last: Zxid) {
        let own = &mut self.proposals[host];
        if !leads {
            own.clear();
        }
        while own.front().is_some_and(|(zxid, _)| *zxid <= last) {
            own.pop_front();
        }
    }

    /// Who has followed this member since then.
    fn followers(&self, leader: ServerId, moment: Time) -> impl Iterator<Item = HostIndex> + '_ {
        let loyal = move |follows: &Option<(ServerId, Time)>| {
            follows.is_some_and(|(known, since)| known == leader && since <= moment)
        };
        self.follows.iter().enumerate().filter(move |(_, follows)| loyal(follows)).map(|(host, _)| host)
    }

    pub(in crate::world) fn tree_announced(&mut self, conn: ConnId) {
        if let Some(stream) = self.streams.get_mut(&EndId::of(conn).conn) {
            stream.announced = true;
        }
    }

    pub(in crate::world) fn tree_arrives(&mut self, conn: ConnId) {
        self.streams.remove(&EndId::of(conn).conn);
    }

    /// A member takes something in.
    pub(in crate::world) fn hears(&mut self, host: HostIndex, input: &Input, at: Time) {
        self.introduced = match input {
            Input::Packet { conn, packet }
                if matches!(packet.kind, PacketType::FollowerInfo | PacketType::ObserverInfo) =>
            {
                Some(*conn)
            }
            _ => None,
        };
        let (conn, kind) = match input {
            Input::Packet { conn, packet } => (EndId::of(*conn), Some(packet.kind)),
            Input::Image { conn, .. } => (EndId::of(*conn), None),
            _ => return,
        };
        let of_leader = conn.end == 0;
        let word = matches!(kind, None | Some(PacketType::Ping | PacketType::Diff | PacketType::Trunc));
        if of_leader && word {
            self.leader_spoke[host] = Some(at);
        } else if !of_leader && (kind == Some(PacketType::Ack) || self.learner_spoke.contains_key(&conn.conn))
        {
            self.learner_spoke.insert(conn.conn, at);
        }
    }

    /// A member's own clock jumped: a part of that counts as silence.
    pub(in crate::world) fn jumped(&mut self, host: HostIndex) {
        self.leader_spoke[host] = None;
    }

    /// A leader's connection to a learner is no more.
    pub(in crate::world) fn forget(&mut self, conn: ConnId) {
        self.learner_spoke.remove(&EndId::of(conn).conn);
    }
}

impl Oracle {
    /// Looks whether what leaders proposed is committed in time.
    pub(in crate::world) fn check_commits(&mut self, clock: &mut Clockwork, ensemble: &Ensemble) {
        let bound_us = clock.commit_bound_us();
        for host in 0..ensemble.hosts.len() {
            let awake = ensemble.hosts[host].process.as_ref().is_some_and(Process::hears);
            if !awake {
                self.patience.slept(host, clock.now);
            }
        }
        for leader in 0..ensemble.hosts.len() {
            let leads = |role, established| role == Role::Leading && established;
            let Some(process) = &ensemble.hosts[leader].process else { continue };
            let Some((zxid, at)) = self.patience.proposals[leader].front().copied() else { continue };
            if !leads(process.role, process.established)
                || clock.now.since(at) <= bound_us
                || self.patience.awake[leader] > at
            {
                continue;
            }
            let well = self.well_behind(clock, ensemble, leader, at);
            if !self.suffices(clock, set_of(well.iter().copied())) || !clock.options.progress {
                continue;
            }
            let members: Vec<String> = well.iter().map(|host| format!("s{}", host + 1)).collect();
            let sentence = format!(
                "server {} leads, {} have nothing against {zxid}, and it is not committed after {} ms",
                leader + 1,
                members.join(", "),
                clock.now.since(at) / 1000
            );
            self.report(clock, Rule::Liveness, sentence);
        }
    }

    /// This leader and the voters that have followed it since then, those of them that nothing has disturbed
    /// meanwhile.
    pub(super) fn well_behind(
        &self,
        clock: &Clockwork,
        ensemble: &Ensemble,
        leader: HostIndex,
        since: Time,
    ) -> Vec<HostIndex> {
        let voters = ensemble.voters_at_most(clock);
        let followers = self.patience.followers(ensemble.server(leader), since).filter(|host| *host < voters);
        followers
            .filter(|host| self.progress.linked_since(leader, *host) <= since)
            .chain([leader])
            .filter(|host| self.progress.undisturbed_since(*host) <= since)
            .filter(|host| !ensemble.is_behind(*host, since))
            .collect()
    }

    /// A member says something of itself: perhaps that its leader fell silent.
    pub(in crate::world) fn check_silence_of_leader(
        &mut self,
        clock: &mut Clockwork,
        host: HostIndex,
        event: &Event,
    ) {
        let Event::Looking { reason, .. } = event else { return };
        let Some(spoke) = self.patience.leader_spoke[host].take() else { return };
        let limit_us = clock.drawn.peer_timeout_ms * 1000 * SILENT_PERCENT / 100;
        if reason == FELL_SILENT && clock.now.since(spoke) < limit_us {
            let ms = clock.now.since(spoke) / 1000;
            let sentence = format!("server {} calls its leader silent, which spoke {ms} ms ago", host + 1);
            self.report(clock, Rule::Liveness, sentence);
        }
    }

    /// Looks whether leaders keep learners that say nothing.
    pub(in crate::world) fn check_silent_learners(&mut self, clock: &mut Clockwork, ensemble: &Ensemble) {
        let bound_us = SILENT_TIMEOUTS * clock.drawn.peer_timeout_ms * 1000 + ROOM_US;
        let kept = std::mem::take(&mut self.patience.learner_spoke);
        for (conn, spoke) in kept {
            let end = &ensemble.conns[conn].ends[1];
            let host = end.host;
            let Some(process) = ensemble.hosts[host].process.as_ref() else { continue };
            if !end.open || ensemble.hosts[host].life != end.life {
                continue;
            }
            self.patience.learner_spoke.insert(conn, spoke);
            let awake = process.hears() && self.patience.awake[host] < spoke;
            if process.role == Role::Leading && awake && clock.now.since(spoke) > bound_us {
                let sentence = format!(
                    "server {} leads and keeps server {}, which has said nothing for {} ms",
                    host + 1,
                    ensemble.conns[conn].ends[0].host + 1,
                    clock.now.since(spoke) / 1000
                );
                self.report(clock, Rule::Liveness, sentence);
            }
        }
    }

    /// Called when a member closes a connection in the same step in which the peer introduced itself: a
    /// leader whose epoch stands must not turn a learner away. `leads`: the member leads before and after
    /// that step.
    pub(in crate::world) fn check_welcome_of_learner(
        &mut self,
        clock: &mut Clockwork,
        ensemble: &Ensemble,
        host: HostIndex,
        leads: bool,
        conn: ConnId,
    ) {
        let settled = ensemble.hosts[host].process.as_ref().is_some_and(|process| process.established);
        if self.patience.introduced != Some(conn) || !leads || !settled || clock.drawn.changes {
            return;
        }
        let learner = ensemble.conns[EndId::of(conn).conn].ends[0].host;
        let sentence = format!("server {} leads and turns server {} away", host + 1, learner + 1);
        self.report(clock, Rule::Liveness, sentence);
    }

    /// A leader sends its tree.
    pub(in crate::world) fn tree_is_sent(
        &mut self,
        clock: &Clockwork,
        ensemble: &Ensemble,
        host: HostIndex,
        conn: ConnId,
    ) {
        let stream = Stream { since: clock.now, epoch: ensemble.promised(host), announced: false };
        self.patience.streams.insert(EndId::of(conn).conn, stream);
    }

    pub(super) fn suffices(&self, clock: &Clockwork, set: Set) -> bool {
        if clock.drawn.changes {
            self.is_quorum_of_all(clock, set)
        } else {
            is_quorum(set_of(0..clock.drawn.members), set)
        }
    }

    /// A member closes a connection. `leads`: it leads, before and after.
    pub(in crate::world) fn check_patience(
        &mut self,
        clock: &mut Clockwork,
        ensemble: &Ensemble,
        host: HostIndex,
        leads: bool,
        conn: ConnId,
    ) {
        let end = EndId::of(conn);
        let Some(stream) = self.patience.streams.remove(&end.conn) else { return };
        let this = &ensemble.conns[end.conn];
        let (near, far) = (&this.ends[end.end], &this.ends[1 - end.end]);
        let init_us = u64::from(clock.drawn.init_limit) * clock.drawn.tick_time_ms * 1000;
        let again = || {
            // Whichever was dialled first: its introduction may come last.
            ensemble.conns_in_use.iter().filter(|other| **other != end.conn).any(|other| {
                let [dialler, acceptor] = &ensemble.conns[*other].ends;
                acceptor.open && dialler.host == far.host && acceptor.host == near.host
            })
        };
        let sends = end.end == 1;
        if clock.drawn.changes
            || !this.alive
            || !near.open
            || !far.open
            || clock.now.since(stream.since) > init_us * PATIENT_PERCENT / 100
            || sends && (!leads || ensemble.promised(host) != stream.epoch || again())
            || !sends && !stream.announced
        {
            return;
        }
        let other = far.host + 1;
        let waited_ms = clock.now.since(stream.since) / 1000;
        let what = if sends { "to" } else { "from" };
        let sentence = format!(
            "server {} gives up on the tree that is on its way {what} server {other}, after {waited_ms} ms",
            host + 1
        );
        self.report(clock, Rule::Liveness, sentence);
    }
}

#[cfg(test)]
mod tests {
    use node_wire::quorum::QuorumPacket;

    use super::*;

    #[test]
    fn a_follower_counts_from_when_its_epoch_stands() {
        let mut patience = Patience::new(3);
        let leader = ServerId(3);
        let role = Role::Following(leader);
        patience.stands(0, role, false, Time(5));
        assert_eq!(patience.followers(leader, Time(9)).count(), 0);
        patience.stands(0, role, true, Time(7));
        patience.stands(0, role, true, Time(8));
        assert_eq!(patience.followers(leader, Time(6)).count(), 0, "it came later");
        assert_eq!(patience.followers(leader, Time(7)).collect::<Vec<_>>(), [0]);
        assert_eq!(patience.followers(ServerId(2), Time(9)).count(), 0);
        patience.stands(0, role, false, Time(9));
        assert_eq!(patience.followers(leader, Time(9)).count(), 0, "it left");
    }

    #[test]
    fn what_is_committed_or_given_up_is_owed_no_more() {
        let mut patience = Patience::new(3);
        let at = |counter| Zxid::new(Epoch(1), counter);
        patience.proposals[1].extend([(at(1), Time(3)), (at(2), Time(4))]);
        patience.applied(1, true, Zxid::ZERO);
        assert_eq!(patience.proposals[1].front(), Some(&(at(1), Time(3))));
        patience.applied(1, true, at(1));
        assert_eq!(patience.proposals[1].front(), Some(&(at(2), Time(4))));
        patience.applied(1, false, at(1));
        assert!(patience.proposals[1].is_empty());
    }

    fn packet(conn: ConnId, kind: PacketType) -> Input {
        Input::Packet { conn, packet: QuorumPacket::new(kind, 0, None) }
    }

    #[test]
    fn a_learner_counts_as_heard_from_its_first_acknowledgement() {
        let mut patience = Patience::new(3);
        let (learner, leader) = (EndId { conn: 4, end: 0 }.id(), EndId { conn: 4, end: 1 }.id());
        patience.hears(2, &packet(leader, PacketType::Ping), Time(1));
        assert!(patience.learner_spoke.is_empty(), "it may still take a tree in");
        patience.hears(2, &packet(leader, PacketType::Ack), Time(2));
        patience.hears(2, &packet(leader, PacketType::Ping), Time(3));
        assert_eq!(patience.learner_spoke.get(&4), Some(&Time(3)));
        patience.hears(0, &packet(learner, PacketType::Proposal), Time(4));
        assert_eq!(patience.leader_spoke[0], None, "its rhythm is that of its pings");
        patience.hears(0, &packet(learner, PacketType::Diff), Time(5));
        assert_eq!(patience.leader_spoke[0], Some(Time(5)));
        patience.forget(leader);
        assert!(patience.learner_spoke.is_empty());
    }
}
