//! The words' formats, line by line as ZooKeeper's.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use super::*;
use crate::address::HostPort;
use crate::facts::{About, Facts};
use crate::metrics::Metrics;
use crate::testing::config;
use crate::view::{ConnectionView, Traffic, View};
use node_core::{Phase, Role, Status};
use node_wire::ids::{Epoch, ServerId, SessionId, Zxid};

fn status() -> Status {
    Status {
        role: Role::Following(ServerId(3)),
        observes: false,
        voters: 3,
        phase: Phase::Broadcast,
        established: true,
        current_epoch: Epoch(2),
        accepted_epoch: Epoch(2),
        last_logged: Zxid(0x2_0000_0005),
        last_applied: Zxid(0x2_0000_0004),
        digest: -1,
        znodes: 7,
        read_only: false,
        sessions: 2,
        local_sessions: 0,
        ephemerals: 1,
        clients: 2,
        outstanding: 1,
        synced_followers: 0,
        synced_observers: 0,
        learners: 0,
        pending_syncs: 0,
        data_size: 100,
        watches: 0,
    }
}

/// A look at a member of three.
pub(crate) fn view() -> View {
    View {
        status: status(),
        voters: 3,
        membership_version: Zxid(0),
        servers: Arc::default(),
        traffic: Traffic { received: 3, sent: 2, connections: 1, ..Traffic::default() },
        leads_for: None,
        tree: None,
        quotas: None,
        deadlines: Vec::new(),
        local_deadlines: Vec::new(),
        watches: Vec::new(),
        connections: Vec::new(),
        digests: Vec::new(),
        learners: Vec::new(),
    }
}

fn facts(view: View) -> Facts {
    let about = Arc::new(About::new(config(1, &[]), "127.0.0.1:2181".to_owned()));
    Facts { view, about, metrics: Arc::new(Metrics::new()) }
}

fn said(word: Word, view: View) -> String {
    answer(word, &facts(view))
}

#[test]
fn srvr_reads_as_zookeepers() {
    let mut view = view();
    view.traffic.answered_in(Duration::from_millis(2));
    view.traffic.answered_in(Duration::from_millis(5));
    let followers = format!(
        "Zookeeper version: {VERSION}, built on unknown\nLatency min/avg/max: 2/3.5000/5\nReceived: 3\n\
         Sent: 2\nConnections: 1\nOutstanding: 1\nZxid: 0x200000004\nMode: follower\nNode count: 8\n"
    );
    assert_eq!(said(Word::Srvr, view.clone()), followers);
    view.status.role = Role::Leading;
    let facts = facts(view);
    facts.metrics.proposals.note(40);
    facts.metrics.proposals.note(30);
    let leaders = followers.replace("follower", "leader") + "Proposal sizes last/min/max: 30/30/40\n";
    assert_eq!(answer(Word::Srvr, &facts), leaders);
}

fn client() -> ConnectionView {
    ConnectionView {
        remote: "127.0.0.1:5000".to_owned(),
        is_read: true,
        outstanding: 1,
        received: 9,
        sent: 8,
        session: Some(SessionId(0x100)),
        timeout_ms: 4000,
        established_ms: 77,
        last_operation: "GETD",
        last_cxid: Some(31),
        last_zxid: 0x2_0000_0004,
        last_response_ms: 55,
        last_latency: Duration::from_millis(1),
        min_latency: Duration::ZERO,
        avg_latency: Duration::from_micros(1500),
        max_latency: Duration::from_millis(3),
    }
}

#[test]
fn connections_read_as_zookeepers_in_full_and_in_short() {
    let nameless = ConnectionView { session: None, ..client() };
    let view = View { connections: vec![client(), nameless], ..view() };
    assert_eq!(
        said(Word::Cons, view.clone()),
        " /127.0.0.1:5000[1](queued=1,recved=9,sent=8,sid=0x100,lop=GETD,est=77,to=4000,lcxid=0x1f,\
         lzxid=0x200000004,lresp=55,llat=1,minlat=0,avglat=1,maxlat=3)\n \
         /127.0.0.1:5000[1](queued=1,recved=9,sent=8)\n\n"
    );
    let stat = said(Word::Stat, view);
    assert!(stat.contains("\nClients:\n /127.0.0.1:5000[1](queued=1,recved=9,sent=8)\n"), "{stat}");
    assert!(stat.contains("\n\nLatency min/avg/max: "), "{stat}");
}

#[test]
fn conf_reads_as_zookeepers() {
    let text = said(Word::Conf, view());
    let expected = "clientPort=2181\nsecureClientPort=-1\ndataDir=unused/version-2\ndataDirSize=0\n\
                    dataLogDir=unused/version-2\ndataLogSize=0\ntickTime=2000\nmaxClientCnxns=60\n\
                    minSessionTimeout=4000\nmaxSessionTimeout=40000\nclientPortListenBacklog=1024\n\
                    serverId=1\n";
    assert_eq!(text, expected);
    assert_eq!(said(Word::Dirs, view()), "datadir_size: 0\nlogdir_size: 0\n");
}

#[test]
fn a_member_with_one_voter_stands_alone_only_where_it_was_started_alone() {
    let election = HostPort::new("127.0.0.1", 3888);
    let said = |keys: &[(&str, &str)], others: bool, role| {
        let mut members = vec![(1, &election)];
        if others {
            members.push((2, &election));
        }
        let mut config = config(1, &members);
        let pairs = keys.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        config.properties.extend(pairs);
        let mut view = view();
        (view.voters, view.status.role, view.servers) = (1, role, Arc::new(config.servers.clone()));
        view.membership_version = Zxid(0x1_0000_000a);
        let about = Arc::new(About::new(config, "127.0.0.1:2181".to_owned()));
        let facts = Facts { view, about, metrics: Arc::new(Metrics::new()) };
        let mode = answer(Word::Srvr, &facts)
            .lines()
            .find_map(|line| line.strip_prefix("Mode: ").map(str::to_owned));
        (
            mode.unwrap_or_default(),
            answer(Word::Mntr, &facts).contains("zk_peer_state"),
            answer(Word::Conf, &facts),
        )
    };
    let (mode, has_state, conf) = said(&[], false, Role::Leading);
    assert_eq!((mode.as_str(), has_state, conf.contains("version=")), ("standalone", false, false));
    let (mode, has_state, conf) = said(&[("standaloneEnabled", "false")], false, Role::Leading);
    assert_eq!((mode.as_str(), has_state), ("leader", true));
    assert!(conf.ends_with("server.1=127.0.0.1:1:3888:participant\nversion=10000000a\n"), "{conf}");
    assert_eq!(said(&[], true, Role::Following(ServerId(2))).0, "follower", "of an ensemble with one vote");
}

#[test]
fn watches_are_told_by_session_by_path_and_in_sum() {
    let watches = [(2, "/a"), (1, "/b"), (2, "/b")];
    let watches = watches.map(|(session, path)| (SessionId(session), path.into())).to_vec();
    let view = View { watches, ..view() };
    assert_eq!(said(Word::Wchs, view.clone()), "2 connections watching 2 paths\nTotal watches:3\n");
    assert_eq!(said(Word::Wchc, view.clone()), "0x1\n\t/b\n0x2\n\t/a\n\t/b\n\n");
    assert_eq!(said(Word::Wchp, view), "/a\n\t0x2\n/b\n\t0x1\n\t0x2\n\n");
}

#[test]
fn digests_are_told_with_their_zxids() {
    let view = View { digests: vec![(Zxid(0x1_0000_0080), -5), (Zxid(0x1_0000_0100), 6)], ..view() };
    assert_eq!(said(Word::Hash, view), "100000080: -5\n100000100: 6\n");
}

#[test]
fn sessions_end_at_the_end_of_a_tick() {
    let left = [1, 2, 50_000].map(|ms| (SessionId(ms), Duration::from_millis(ms.unsigned_abs())));
    let sets = answers::expiries(&left, Duration::from_secs(2));
    assert!(sets.keys().all(|at| at % 2000 == 0) && sets.len() >= 2, "{sets:?}");
    assert_eq!(sets.values().map(Vec::len).sum::<usize>(), 3);
}

#[test]
fn mntr_has_a_tab_in_every_line_and_each_key_once() {
    let text = said(Word::Mntr, view());
    assert!(text.lines().all(|line| line.starts_with("zk_") && line.matches('\t').count() == 1), "{text}");
    let keys: BTreeSet<_> = text.lines().map(|line| line.split('\t').next()).collect();
    assert_eq!(keys.len(), text.lines().count(), "{text}");
    for line in [
        "zk_server_state\tfollower",
        "zk_peer_state\tfollowing - broadcast",
        "zk_packets_received\t3",
        "zk_znode_count\t8",
        "zk_min_client_response_size\t-1",
        "zk_avg_readlatency\t0.0000",
        "zk_p99_updatelatency\t0",
        "zk_cnt_fsynctime\t0",
        "zk_last_applied_zxid\t0x200000004",
        "zk_tree_digest\t0xffffffffffffffff",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} is not in {text}");
    }
    assert!(!text.contains("zk_synced_followers"), "a follower has none");
}

#[test]
fn a_member_without_a_leader_says_so() {
    let looking = || {
        let mut view = view();
        view.status = Status { established: false, role: Role::Looking, ..status() };
        view
    };
    for word in [Word::Srvr, Word::Stat, Word::Mntr, Word::Cons, Word::Dump, Word::Wchs, Word::Conf] {
        let text = said(word, looking());
        assert_eq!(text, "This ZooKeeper instance is not currently serving requests\n");
    }
    assert_eq!(said(Word::Ruok, looking()), "imok");
    assert_eq!(said(Word::Isro, looking()), "null");
    assert!(said(Word::Envi, looking()).starts_with("Environment:\nzookeeper.version=3.8.0-"));
}

#[test]
fn a_member_that_serves_reads_without_a_leader_says_so() {
    let read_only = || {
        let mut view = view();
        view.status = Status { established: false, read_only: true, role: Role::Looking, ..status() };
        view
    };
    assert_eq!(said(Word::Isro, read_only()), "ro");
    assert!(said(Word::Srvr, read_only()).contains("\nMode: read-only\n"));
    assert!(said(Word::Mntr, read_only()).contains("zk_server_state\tread-only\n"));
}

#[test]
fn local_sessions_are_counted_and_dumped_apart() {
    let mut view = view();
    view.status.local_sessions = 1;
    view.tree = Some(node_core::tree::Tree::default().snapshot());
    view.local_deadlines = vec![(SessionId(0x77), Duration::from_secs(3))];
    let text = said(Word::Mntr, view.clone());
    assert!(text.contains("zk_global_sessions\t2\nzk_local_sessions\t1\n"), "{text}");
    let text = said(Word::Dump, view);
    let mut lines = text.lines().skip(1);
    assert_eq!(lines.next(), Some("Local Session Sets (1)/(1):"));
    assert!(lines.next().is_some_and(|line| line.starts_with("1 expire at ")));
    assert_eq!(lines.next(), Some("\t0x77"));
    assert_eq!(lines.next(), Some("Global Sessions(2):"));
}
