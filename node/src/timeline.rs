//! How long elections, outages and proposals lasted, and how many transactions were proposed and committed,
//! as this member saw it.
//!
//! A proposal is remembered from when it is given to the log until it is applied here. ZooKeeper takes two of
//! its times by the leader's wall clock, which stands in the transaction: `proposal_latency` and
//! `propagation_latency` show the difference of clocks as well, and what would be negative is left out.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use node_core::io::{ConnId, Event, Input, SyncKind};
use node_wire::client::OpCode;
use node_wire::ids::{ServerId, Zxid};
use node_wire::jute::Reader;
use node_wire::quorum::{LearnerInfo, PacketType, QuorumPacket};
use node_wire::txn::{Entry, Txn};

use crate::clock::wall_ms;
use crate::metrics::{Known, Metrics, Summary, Tally, namespace};

/// Proposals that are remembered. Of those beyond, the oldest are forgotten and not measured.
const MAX_OPEN: usize = 65_536;

/// A proposal that is not applied yet.
#[derive(Debug)]
struct Proposal {
    zxid: Zxid,
    /// Of its place in the store's queue.
    ticket: u64,
    since: Instant,
    /// By the leader's wall clock.
    time_ms: i64,
}

/// What is remembered between events.
#[derive(Debug)]
pub(crate) struct Timeline {
    me: ServerId,
    looking_since: Option<Instant>,
    elected_at: Option<Instant>,
    unavailable_since: Option<Instant>,
    leads: bool,
    leads_since: Option<Instant>,
    /// An epoch stands: what is logged is new.
    serves: bool,
    /// What was counted as committed.
    committed: Zxid,
    open: VecDeque<Proposal>,
    /// The store's last ticket that counted as the leader's own acknowledgement.
    stored: u64,
    /// Who is at the other end of a learner's connection.
    learners: BTreeMap<ConnId, String>,
    acks: Known<Summary>,
    writes: Known<Tally>,
}

/// Whether a proposal of the leader ends a session whose time is over. Only the leader itself closes a
/// session without a number.
pub(crate) fn ends_a_silent_session(entry: &Entry) -> bool {
    entry.header.cxid == 0 && matches!(entry.txn, Txn::CloseSession { .. })
}

impl Timeline {
    pub(crate) fn new(me: ServerId, applied: Zxid) -> Self {
        Self {
            me,
            looking_since: None,
            elected_at: None,
            unavailable_since: None,
            leads: false,
            leads_since: None,
            serves: false,
            committed: applied,
            open: VecDeque::new(),
            stored: 0,
            learners: BTreeMap::new(),
            acks: Known::default(),
            writes: Known::default(),
        }
    }

    /// How long the member has led an established epoch, if it does.
    pub(crate) fn leads_for(&self) -> Option<Duration> {
        self.leads_since.map(|since| since.elapsed())
    }

    /// Whether what the member logs now are proposals of its own.
    pub(crate) fn leads(&self) -> bool {
        self.leads
    }

    /// A transaction is given to the log.
    pub(crate) fn appended(&mut self, ticket: u64, entry: &Entry, metrics: &Metrics) {
        let time_ms = entry.header.time_ms;
        if self.leads {
            metrics.proposal_count.one();
            metrics.proposals.note(entry.bytes.len());
            if ends_a_silent_session(entry) {
                metrics.stale_sessions_expired.one();
            }
        } else {
            metrics.learner_proposal_received_count.one();
            if self.serves {
                record_since(&metrics.proposal_latency, time_ms);
            }
        }
        self.wrote(&entry.txn, metrics);
        if self.serves {
            if self.open.len() >= MAX_OPEN {
                self.open.pop_front();
            }
            self.open.push_back(Proposal { zxid: entry.zxid(), ticket, since: Instant::now(), time_ms });
        }
    }

    /// Counts what a transaction writes, by namespace.
    fn wrote(&mut self, txn: &Txn, metrics: &Metrics) {
        let (path, data) = match txn {
            Txn::Create { path, data, .. }
            | Txn::CreateContainer { path, data, .. }
            | Txn::CreateTtl { path, data, .. }
            | Txn::SetData { path, data, .. } => (path, data.as_ref().map_or(0, bytes::Bytes::len)),
            Txn::Delete { path } => (path, 0),
            Txn::Multi { txns } => {
                for (kind, body) in txns {
                    self.wrote_part(*kind, body, metrics);
                }
                return;
            }
            Txn::CreateSession { .. }
            | Txn::CloseSession { .. }
            | Txn::SetAcl { .. }
            | Txn::Check { .. }
            | Txn::Error { .. } => return,
        };
        self.wrote_at(path, data, metrics);
    }

    /// A part of a multi: its body begins with the path, and where data is written that comes next.
    fn wrote_part(&mut self, kind: i32, body: &bytes::Bytes, metrics: &Metrics) {
        let has_data = match OpCode::from_code(kind) {
            Some(
                OpCode::Create
                | OpCode::Create2
                | OpCode::CreateContainer
                | OpCode::CreateTtl
                | OpCode::SetData,
            ) => true,
            Some(OpCode::Delete | OpCode::DeleteContainer) => false,
            _ => return,
        };
        let mut body = Reader::new(body.clone());
        let Ok(path) = body.string() else { return };
        let data = if has_data { body.buffer().ok().flatten().map_or(0, |data| data.len()) } else { 0 };
        self.wrote_at(&path, data, metrics);
    }

    fn wrote_at(&mut self, path: &str, data: usize, metrics: &Metrics) {
        if let Some(name) = namespace(path) {
            let bytes = path.len() + data;
            self.writes.of(&metrics.write_per_namespace, name).record(bytes as u64);
        }
    }

    /// The tree stands here now.
    pub(crate) fn applied(&mut self, applied: Zxid, metrics: &Metrics) {
        if applied == self.committed {
            return;
        }
        // Within an epoch the counter counts by one; of an older one nothing is missed but its very end.
        let before = if applied.epoch() == self.committed.epoch() { self.committed.counter() } else { 0 };
        metrics.commit_count.add(u64::from(applied.counter().saturating_sub(before)));
        self.committed = self.committed.max(applied);
        let now = Instant::now();
        while let Some(Proposal { since, time_ms, .. }) = self.open.pop_front_if(|open| open.zxid <= applied)
        {
            let latency =
                if self.leads { &metrics.quorum_ack_latency } else { &metrics.commit_propagation_latency };
            latency.record_time(now.saturating_duration_since(since));
            record_since(&metrics.propagation_latency, time_ms);
        }
    }

    /// Something came.
    pub(crate) fn heard(&mut self, input: &Input, metrics: &Metrics) {
        match input {
            Input::Packet { conn, packet } => self.packet(*conn, packet, metrics),
            Input::PeerLost { conn } => {
                self.learners.remove(conn);
            }
            Input::Stored { ticket } if self.leads => {
                let own = self.me.0.to_string();
                let now = Instant::now();
                for proposal in self.open.iter().filter(|open| open.ticket > self.stored) {
                    if proposal.ticket > *ticket {
                        break;
                    }
                    let latency = now.saturating_duration_since(proposal.since);
                    self.acks.of(&metrics.ack_latency, &own).record_time(latency);
                }
                self.stored = *ticket;
            }
            _ => {}
        }
    }

    fn packet(&mut self, conn: ConnId, packet: &QuorumPacket, metrics: &Metrics) {
        match packet.kind {
            PacketType::FollowerInfo | PacketType::ObserverInfo => {
                let mut data = Reader::new(packet.data.clone().unwrap_or_default());
                if let Ok(info) = LearnerInfo::decode(&mut data) {
                    self.learners.insert(conn, info.server.0.to_string());
                }
            }
            PacketType::Ack if self.leads => {
                let (Some(learner), Some(latency)) =
                    (self.learners.get(&conn), self.open_for(Zxid::from_wire(packet.zxid)))
                else {
                    return;
                };
                self.acks.of(&metrics.ack_latency, learner).record_time(latency);
            }
            PacketType::Revalidate if self.leads => metrics.revalidate_count.one(),
            PacketType::Commit
            | PacketType::CommitAndActivate
            | PacketType::Inform
            | PacketType::InformAndActivate => metrics.learner_commit_received_count.one(),
            _ => {}
        }
    }

    /// Something is sent to a peer.
    pub(crate) fn said(&mut self, packet: &QuorumPacket, metrics: &Metrics) {
        if packet.kind == PacketType::Ack
            && !self.leads
            && let Some(latency) = self.open_for(Zxid::from_wire(packet.zxid))
        {
            metrics.proposal_ack_creation_latency.record_time(latency);
        }
    }

    /// How long a proposal has been open.
    fn open_for(&self, zxid: Zxid) -> Option<Duration> {
        let at = self.open.binary_search_by_key(&zxid, |open| open.zxid).ok()?;
        Some(self.open.get(at)?.since.elapsed())
    }

    pub(crate) fn told(&mut self, event: &Event, observes: bool, applied: Zxid, metrics: &Metrics) {
        let now = Instant::now();
        self.applied(applied, metrics);
        match event {
            Event::Looking { .. } => {
                metrics.looking_count.one();
                self.leads = false;
                self.leads_since = None;
                self.serves = false;
                self.open.clear();
                self.looking_since = Some(now);
                self.unavailable_since.get_or_insert(now);
            }
            Event::Elected { leader, .. } => {
                self.leads = *leader == self.me;
                self.elected_at = Some(now);
                if let Some(since) = self.looking_since.take() {
                    metrics.election_time.record_time(now.saturating_duration_since(since));
                }
            }
            Event::Established { leader, .. } => {
                self.leads = *leader == self.me;
                self.leads_since = self.leads.then_some(now);
                self.serves = true;
                if let Some(since) = self.elected_at.take().filter(|_| !self.leads) {
                    let time =
                        if observes { &metrics.observer_sync_time } else { &metrics.follower_sync_time };
                    time.record_time(now.saturating_duration_since(since));
                }
                if let Some(since) = self.unavailable_since.take() {
                    let outage = now.saturating_duration_since(since);
                    metrics.unavailable_time.record_time(outage);
                    if self.leads {
                        metrics.leader_unavailable_time.record_time(outage);
                    }
                }
            }
            Event::Synchronizing { how, .. } => match how {
                SyncKind::Diff | SyncKind::Trunc => metrics.diff_count.one(),
                SyncKind::Snap => metrics.snap_count.one(),
            },
            Event::ReadOnly => {}
            Event::Diverged { .. } => metrics.digest_mismatches_count.one(),
        }
    }
}

/// Records the time since a moment of the leader's wall clock, unless that is still to come by ours.
fn record_since(summary: &Summary, time_ms: i64) {
    if let Ok(ms) = u64::try_from(wall_ms().saturating_sub(time_ms)) {
        summary.record_time(Duration::from_millis(ms));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use node_wire::ids::{Epoch, Round, SessionId};
    use node_wire::jute::Writer;
    use node_wire::quorum::{Dialect, LEARNER_PROTOCOL};
    use node_wire::txn::TxnHeader;

    #[test]
    fn commits_are_counted_by_the_distance_of_zxids() {
        let metrics = Metrics::new();
        let mut timeline = Timeline::new(ServerId(1), Zxid::new(Epoch(1), 5));
        for (epoch, counter, total) in [(1, 5, 0), (1, 8, 3), (2, 2, 5), (2, 2, 5), (2, 12, 15)] {
            timeline.applied(Zxid::new(Epoch(epoch), counter), &metrics);
            assert_eq!(metrics.commit_count.get(), total);
        }
    }

    fn proposed(counter: u32, cxid: i32, txn: Txn) -> Entry {
        let zxid = Zxid::new(Epoch(1), counter);
        let (session, kind) = (SessionId(7), txn.kind());
        Entry::new(TxnHeader { session, cxid, zxid, time_ms: wall_ms(), kind }, txn, None)
    }

    fn set(path: &'static str, data: &'static str) -> Txn {
        Txn::SetData { path: path.into(), data: Some(bytes::Bytes::from_static(data.as_bytes())), version: 1 }
    }

    fn packet(kind: PacketType, zxid: Zxid, data: Option<bytes::Bytes>) -> Input {
        Input::Packet { conn: ConnId(9), packet: QuorumPacket::new(kind, zxid.to_wire(), data) }
    }

    #[test]
    fn a_leader_measures_each_acknowledgement_and_the_quorums() {
        let metrics = Metrics::new();
        let mut timeline = Timeline::new(ServerId(3), Zxid::ZERO);
        for event in [
            Event::Elected { leader: ServerId(3), round: Round(1) },
            Event::Established { leader: ServerId(3), epoch: Epoch(1) },
        ] {
            timeline.told(&event, false, Zxid::ZERO, &metrics);
        }
        let mut info = bytes::BytesMut::new();
        let (server, protocol, config_version) = (ServerId(2), LEARNER_PROTOCOL, 0);
        LearnerInfo { server, protocol, config_version, dialect: Dialect::Own }
            .encode(&mut Writer::new(&mut info));
        timeline.heard(&packet(PacketType::FollowerInfo, Zxid::ZERO, Some(info.freeze())), &metrics);
        timeline.appended(1, &proposed(1, 1, set("/a/b", "12345")), &metrics);
        timeline.appended(2, &proposed(2, 0, Txn::CloseSession { paths: None }), &metrics);
        timeline.heard(&packet(PacketType::Ack, Zxid::new(Epoch(1), 1), None), &metrics);
        timeline.heard(&Input::Stored { ticket: 2 }, &metrics);
        timeline.applied(Zxid::new(Epoch(1), 2), &metrics);
        timeline.heard(&packet(PacketType::Ack, Zxid::new(Epoch(1), 2), None), &metrics);
        let acks: Vec<_> =
            metrics.ack_latency.all().iter().map(|(id, ack)| (id.to_string(), ack.values().count)).collect();
        assert_eq!(
            acks,
            [("2".to_owned(), 1), ("3".to_owned(), 2)],
            "what is committed is waited for no more"
        );
        assert_eq!(metrics.quorum_ack_latency.values().count, 2);
        assert_eq!(metrics.propagation_latency.values().count, 2);
        assert_eq!(metrics.stale_sessions_expired.get(), 1);
        let written: Vec<_> = metrics
            .write_per_namespace
            .all()
            .iter()
            .map(|(name, tally)| (name.to_string(), tally.get()))
            .collect();
        assert_eq!(written, [("a".to_owned(), [1, 9, 9, 9])]);
    }

    #[test]
    fn a_follower_measures_how_long_it_took_to_catch_up_and_to_hear_of_commits() {
        let metrics = Metrics::new();
        let mut timeline = Timeline::new(ServerId(2), Zxid::ZERO);
        timeline.told(&Event::Elected { leader: ServerId(3), round: Round(1) }, false, Zxid::ZERO, &metrics);
        timeline.appended(1, &proposed(1, 1, set("/a", "of the past")), &metrics);
        timeline.told(
            &Event::Established { leader: ServerId(3), epoch: Epoch(1) },
            false,
            Zxid::ZERO,
            &metrics,
        );
        timeline.appended(2, &proposed(2, 1, set("/a", "new")), &metrics);
        let zxid = Zxid::new(Epoch(1), 2);
        timeline.said(&QuorumPacket::new(PacketType::Ack, zxid.to_wire(), None), &metrics);
        timeline.heard(&packet(PacketType::Commit, zxid, None), &metrics);
        timeline.applied(zxid, &metrics);
        let counted = [
            &metrics.follower_sync_time,
            &metrics.proposal_latency,
            &metrics.proposal_ack_creation_latency,
            &metrics.commit_propagation_latency,
        ];
        assert_eq!(counted.map(|summary| summary.values().count), [1; 4]);
        assert_eq!(metrics.learner_commit_received_count.get(), 1);
        assert_eq!(
            (metrics.observer_sync_time.values().count, metrics.quorum_ack_latency.values().count),
            (0, 0)
        );
    }

    #[test]
    fn an_election_ends_when_the_vote_is_decided_and_an_outage_when_the_epoch_stands() {
        let metrics = Metrics::new();
        let mut timeline = Timeline::new(ServerId(1), Zxid::ZERO);
        let mut tell = |event| timeline.told(&event, false, Zxid::ZERO, &metrics);
        tell(Event::Looking { round: Round(1), left: None, reason: String::new() });
        tell(Event::Elected { leader: ServerId(1), round: Round(1) });
        assert_eq!((metrics.election_time.values().count, metrics.unavailable_time.values().count), (1, 0));
        tell(Event::Looking { round: Round(2), left: None, reason: String::new() });
        tell(Event::Elected { leader: ServerId(1), round: Round(2) });
        tell(Event::Established { leader: ServerId(1), epoch: Epoch(1) });
        assert_eq!((metrics.looking_count.get(), metrics.election_time.values().count), (2, 2));
        assert_eq!(metrics.leader_unavailable_time.values().count, 1);
        assert!(timeline.leads_for().is_some());
    }
}
