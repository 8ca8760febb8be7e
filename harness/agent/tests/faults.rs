//! Faults between agents in real network namespaces: what they hit, what they leave alone, what they count.

mod support;

use std::net::IpAddr;

use harness_agent::netfilter::{MAX_FAULTS, MAX_PEERS, MAX_PORTS};
use harness_agent::protocol::{Command, Outcome, PeerCount, Refusal};
use support::{Agent, Held, MEMBER_PORT, Room, has_nft, not_permitted};

fn cut(fault: &str, from: &[u64], refusal: Refusal) -> Command {
    Command::Cut { fault: fault.to_owned(), from: from.to_vec(), refusal }
}

fn heal(fault: &str) -> Command {
    Command::Heal { fault: fault.to_owned() }
}

fn of(counts: &[PeerCount], peer: u64) -> PeerCount {
    *counts.iter().find(|count| count.from == peer).expect("every peer has counters")
}

#[test]
fn a_cut_of_one_way_is_seen_one_way_and_the_controls_arrive() {
    if not_permitted().is_some() {
        return;
    }
    for ipv6 in [false, true] {
        let mut room = Room::of(3, ipv6);
        assert_eq!(room.unreached(), []);
        room.agent(2).counts(cut("mute", &[1], Refusal::Silence));
        assert_eq!(room.unreached(), [(1, 2)]);
        room.agent(2).counts(heal("mute"));
        assert_eq!(room.unreached(), []);
    }
}

#[test]
fn healing_one_fault_leaves_the_others() {
    if not_permitted().is_some() {
        return;
    }
    let mut room = Room::of(3, false);
    room.agent(1).counts(cut("a", &[2, 3], Refusal::Silence));
    room.agent(1).counts(cut("b", &[3], Refusal::Reset));
    room.agent(3).counts(cut("a", &[1], Refusal::Silence));
    assert_eq!(room.unreached(), [(2, 1), (3, 1), (1, 3)]);
    room.agent(1).counts(heal("a"));
    assert_eq!(room.unreached(), [(3, 1), (1, 3)]);
    room.agent(1).counts(heal("never heard of"));
    // The same name again replaces the fault as a whole.
    room.agent(1).counts(cut("b", &[2], Refusal::Silence));
    assert_eq!(room.unreached(), [(2, 1), (1, 3)]);
    room.agent(1).counts(heal("b"));
    room.agent(3).counts(heal("a"));
    assert_eq!(room.unreached(), []);
}

#[test]
fn a_fault_that_cannot_be_made_changes_nothing() {
    if not_permitted().is_some() {
        return;
    }
    let mut room = Room::of(2, false);
    let why = room.agent(1).failure(cut("a", &[2, 9], Refusal::Silence));
    assert!(why.contains("peer 9"), "{why}");
    assert_eq!(room.unreached(), []);
}

#[test]
fn neighbours_find_each_other_through_a_fault() {
    if not_permitted().is_some() {
        return;
    }
    for (ipv6, flush) in [(false, "ip neigh flush dev eth0"), (true, "ip -6 neigh flush dev eth0")] {
        let mut room = Room::of(2, ipv6);
        room.agent(1).counts(cut("a", &[2], Refusal::Silence));
        room.agent(2).counts(cut("a", &[1], Refusal::Silence));
        for agent in &room.agents {
            agent.run(flush);
        }
        // It asserts that the controls arrive.
        assert_eq!(room.unreached(), [(2, 1), (1, 2)]);
    }
}

#[test]
fn an_established_connection_falls_silent_and_goes_on_after_healing() {
    if not_permitted().is_some() {
        return;
    }
    let mut room = Room::of(2, false);
    let mut server = room.agent(1).member();
    let mut client = room.agent(2).member();
    assert_eq!(server.ask(&format!("listen 10.77.0.1:{MEMBER_PORT}")), "listening");
    assert_eq!(client.ask(&format!("dial 10.77.0.1:{MEMBER_PORT} 10000")), "connected");
    assert_eq!(client.ask("say 10000"), "echo");
    let before = room.agent(1).counts(cut("a", &[2], Refusal::Silence));
    assert_eq!(client.ask("say 300"), "silence");
    assert_eq!(client.ask(&format!("dial 10.77.0.1:{MEMBER_PORT} 300")), "timeout");
    let after = room.agent(1).counts(Command::Counters);
    assert_eq!(of(&after, 2).passed_packets, of(&before, 2).passed_packets, "what was refused did not pass");
    assert!(of(&after, 2).refused_packets >= 2);
    room.agent(1).counts(heal("a"));
    // What was kept back is sent again, and what is said now comes behind it.
    assert_eq!(client.ask("say 10000"), "echo");
    let healed = room.agent(1).counts(Command::Counters);
    assert!(of(&healed, 2).passed_packets > of(&after, 2).passed_packets);
    assert!(of(&healed, 2).refused_packets >= of(&after, 2).refused_packets, "healing forgets nothing");
}

#[test]
fn a_resetting_fault_breaks_connections_even_where_both_sides_refuse() {
    if not_permitted().is_some() {
        return;
    }
    for (ipv6, address) in [(false, "10.77.0.1"), (true, "[fd77::1]")] {
        let mut room = Room::of(2, ipv6);
        let mut server = room.agent(1).member();
        let mut client = room.agent(2).member();
        assert_eq!(server.ask(&format!("listen {address}:{MEMBER_PORT}")), "listening");
        assert_eq!(client.ask(&format!("dial {address}:{MEMBER_PORT} 10000")), "connected");
        assert_eq!(client.ask("say 10000"), "echo");
        let before = room.agent(1).counts(cut("a", &[2], Refusal::Reset));
        room.agent(2).counts(cut("a", &[1], Refusal::Reset));
        assert_eq!(client.ask("say 10000"), "broken");
        assert_eq!(client.ask(&format!("dial {address}:{MEMBER_PORT} 10000")), "refused");
        let after = room.agent(1).counts(Command::Counters);
        assert_eq!(of(&after, 2).passed_packets, of(&before, 2).passed_packets, "resets are not counted");
        assert_eq!(of(&after, 2).refused_packets, of(&before, 2).refused_packets + 2, "a byte and a SYN");
        assert_eq!(room.unreached(), [(2, 1), (1, 2)], "datagrams vanish");
        room.agent(1).counts(heal("a"));
        room.agent(2).counts(heal("a"));
        assert_eq!(client.ask(&format!("dial {address}:{MEMBER_PORT} 10000")), "connected");
        assert_eq!(client.ask("say 10000"), "echo");
    }
}

#[test]
fn counters_are_what_was_sent() {
    if not_permitted().is_some() {
        return;
    }
    let mut room = Room::of(3, false);
    let mut thrower = room.agent(2).member();
    let mut other = room.agent(3).member();
    assert_eq!(thrower.ask("throw 10.77.0.1:9 10 100"), "thrown");
    room.agent(1).counts(cut("a", &[2], Refusal::Silence));
    room.agent(1).counts(cut("b", &[2, 3], Refusal::Silence));
    assert_eq!(thrower.ask("throw 10.77.0.1:9 50 100"), "thrown");
    assert_eq!(other.ask("throw 10.77.0.1:9 7 1"), "thrown");
    // More than a packet's worth: it is counted whole, when its fragments have been put together.
    assert_eq!(other.ask("throw 10.77.0.1:9 1 4000"), "thrown");
    room.agent(1).counts(heal("a"));
    room.agent(1).counts(heal("b"));
    assert_eq!(thrower.ask("throw 10.77.0.1:9 10 100"), "thrown");
    assert_eq!(room.unreached(), []);
    let counts = room.agent(1).counts(Command::Counters);
    // 28 bytes of headers; two faults that refuse the same packet refuse it once.
    let refused = |packets, bytes, from| PeerCount {
        from,
        passed_packets: 0,
        passed_bytes: 0,
        refused_packets: packets,
        refused_bytes: bytes,
    };
    assert_eq!(counts, [refused(50, 50 * 128, 2), refused(8, 7 * 29 + 4028, 3)]);
}

#[test]
fn nft_reads_the_table_as_it_was_meant() {
    if not_permitted().is_some() || !has_nft() {
        return;
    }
    let mut room = Room::of(2, true);
    room.agent(1).counts(cut("silent", &[2], Refusal::Silence));
    room.agent(1).counts(cut("a name with spaces", &[2], Refusal::Reset));
    let listed = room.agent(1).run("nft list table inet harness-test");
    for expected in [
        "type filter hook input priority -100; policy accept;",
        "type filter hook input priority 100; policy accept;",
        "udp dport 7002 return",
        "icmpv6 type 133-137 return",
        "tcp flags rst return",
        "ip6 saddr fd77::2 counter name \"refused-2\" drop",
        "ip6 saddr fd77::2 meta l4proto tcp counter name \"refused-2\" reject with tcp reset",
        "tcp dport 2888 goto counted",
        "tcp sport 2888 goto counted",
        "ip6 saddr fd77::2 counter name \"passed-2\" accept",
        "chain fault-silent {",
    ] {
        assert!(listed.contains(expected), "no `{expected}` in {listed}");
    }
    room.agent(1).counts(heal("silent"));
    room.agent(1).counts(heal("a name with spaces"));
    assert!(!room.agent(1).run("nft list ruleset").contains("chain fault-"));
}

#[test]
fn the_largest_filter_fits_into_a_sockets_buffers() {
    if not_permitted().is_some() {
        return;
    }
    let mut agent = Agent::start();
    let hello = |peers: usize, ports: usize| Command::Hello {
        run: "large".to_owned(),
        own: 0,
        peers: (1..)
            .map(|peer| (peer, IpAddr::from([0xfd77, 0, 0, 0, 0, 0, 0, peer_number(peer)])))
            .take(peers)
            .collect(),
        probe_port: 7001,
        control_port: 7002,
        peer_ports: (1..).take(ports).collect(),
    };
    let why = agent.failure(hello(MAX_PEERS + 1, 1));
    assert!(why.contains("at most 64"), "{why}");
    let why = agent.failure(hello(1, MAX_PORTS + 1));
    assert!(why.contains("at most 64"), "{why}");
    assert_eq!(agent.counts(hello(MAX_PEERS, MAX_PORTS)).len(), MAX_PEERS);
    let everybody: Vec<u64> = (1..).take(MAX_PEERS).collect();
    for fault in 0..MAX_FAULTS {
        agent.counts(cut(&fault.to_string(), &everybody, Refusal::Reset));
    }
    let why = agent.failure(cut("one more", &[1], Refusal::Silence));
    assert!(why.contains("at most 64"), "{why}");
    agent.renew(false);
    let notice = agent.notice();
    assert!(notice.ends_with("everything was healed"), "{notice}");
    assert_eq!(agent.counts(cut("one more", &[1], Refusal::Silence)).len(), MAX_PEERS);
    assert_eq!(agent.ask(Command::Stop), Outcome::Done(Vec::new()));
}

fn peer_number(peer: u64) -> u16 {
    u16::try_from(peer).expect("there are few")
}

#[test]
fn two_agents_of_one_run_do_not_share_a_table() {
    if not_permitted().is_some() {
        return;
    }
    let network = Held::network("ip link set lo up");
    let mut first = Agent::start_in(&network, true);
    first.hello(1, vec![(2, [10, 0, 0, 2].into())]);
    first.counts(cut("a", &[2], Refusal::Silence));
    let mut second = Agent::start_in(&network, true);
    let why = second.failure(Command::Hello {
        run: "test".to_owned(),
        own: 1,
        peers: vec![(2, [10, 0, 0, 2].into())],
        probe_port: 7003,
        control_port: 7004,
        peer_ports: vec![],
    });
    assert!(why.contains("belongs to another agent"), "{why}");
    first.counts(Command::Heal { fault: "a".to_owned() });
}

/// How long probe and control of a round took from one agent to another, in us.
fn took(room: &mut Room, round: u64, (from, to): (usize, usize)) -> (Option<u64>, Option<u64>) {
    room.agent(from).ask(Command::SendProbes { round });
    let outcome = room.agent(to).ask(Command::Arrivals { round, patience_ms: 2_000 });
    let Outcome::Arrived(arrivals) = outcome else { panic!("{outcome:?}") };
    let sender = u64::try_from(from).expect("small");
    let arrival = arrivals.iter().find(|arrival| arrival.from == sender).expect("a peer");
    (arrival.probe_us, arrival.control_us)
}

/// What a queue tells of a peer.
#[derive(Debug, serde::Deserialize)]
struct HeldBack {
    from: u64,
    took_us: Vec<u64>,
    latency_us: u64,
    jitter_us: u64,
}

fn queue(order: serde_json::Value) -> Command {
    Command::Device { device: "queue".to_owned(), order }
}

#[test]
fn a_queue_holds_back_one_peer_alone_and_loses_nothing() {
    if not_permitted().is_some() {
        return;
    }
    for ipv6 in [false, true] {
        let mut room = Room::of(3, ipv6);
        let Outcome::Devices(devices) = room.agent(1).ask(Command::Devices) else { panic!("no devices") };
        if let Err(why) = &devices["queue"] {
            eprintln!("left out: {why}");
            return;
        }
        let slow = serde_json::json!(
            {"slow": {"fault": "F1", "from": [2], "latency_us": 80_000, "jitter_us": 10_000}}
        );
        assert_eq!(room.agent(1).ask(queue(slow)), Outcome::Device(serde_json::Value::Null));
        let (probe, control) = took(&mut room, 100, (2, 1));
        assert!(probe.is_some_and(|us| us >= 80_000), "{probe:?}");
        assert!(control.is_some_and(|us| us < 60_000), "no control waits: {control:?}");
        let (other, _) = took(&mut room, 101, (3, 1));
        assert!(other.is_some_and(|us| us < 60_000), "{other:?}");
        // A cut that comes and goes meanwhile takes nothing with it that waits.
        room.agent(2).ask(Command::SendProbes { round: 102 });
        room.agent(1).counts(cut("beside", &[3], Refusal::Silence));
        room.agent(1).counts(heal("beside"));
        let outcome = room.agent(1).ask(Command::Arrivals { round: 102, patience_ms: 2_000 });
        let Outcome::Arrived(arrivals) = outcome else { panic!("{outcome:?}") };
        assert!(arrivals[0].probe_us.is_some_and(|us| us >= 80_000), "{arrivals:?}");
        let held = |room: &mut Room| {
            let Outcome::Device(report) = room.agent(1).ask(queue("report".into())) else {
                panic!("no report")
            };
            serde_json::from_value::<[HeldBack; 2]>(report).expect("what is held back, by peer")
        };
        let of = held(&mut room);
        assert_eq!((of[0].from, of[0].latency_us, of[0].jitter_us), (2, 80_000, 10_000));
        assert_eq!((of[1].from, of[1].latency_us, of[1].jitter_us), (3, 0, 0));
        assert!(of.iter().all(|peer| peer.took_us.is_empty()), "probes are no members' packets: {of:?}");
        let mut server = room.agent(1).member();
        let mut client = room.agent(2).member();
        let address = if ipv6 { "[fd77::1]" } else { "10.77.0.1" };
        assert_eq!(server.ask(&format!("listen {address}:{MEMBER_PORT}")), "listening");
        assert_eq!(client.ask(&format!("dial {address}:{MEMBER_PORT} 10000")), "connected");
        assert_eq!(client.ask("say 10000"), "echo");
        let waited = held(&mut room)[0].took_us.clone();
        assert!(waited.len() >= 2 && waited.iter().all(|us| *us >= 80_000), "{waited:?}");
        room.agent(1).ask(queue(serde_json::json!({"heal": "F1"})));
        assert!(took(&mut room, 103, (2, 1)).0.is_some_and(|us| us < 60_000));
        assert_eq!(room.unreached(), []);
    }
}

#[test]
fn an_order_that_a_queue_refuses_changes_nothing_for_those_that_follow() {
    if not_permitted().is_some() {
        return;
    }
    let mut room = Room::of(2, false);
    let Outcome::Devices(devices) = room.agent(1).ask(Command::Devices) else { panic!("no devices") };
    if let Err(why) = &devices["queue"] {
        eprintln!("left out: {why}");
        return;
    }
    let slow = |fault: &str, from: &[u64]| {
        queue(serde_json::json!({"slow": {"fault": fault, "from": from, "latency_us": 80_000}}))
    };
    let why = room.agent(1).failure(slow("F1", &[2, 9]));
    assert!(why.contains("peer 9"), "{why}");
    assert!(took(&mut room, 100, (2, 1)).0.is_some_and(|us| us < 60_000), "it changed something");
    let nothing = Outcome::Device(serde_json::Value::Null);
    assert_eq!(room.agent(1).ask(slow("F2", &[2])), nothing);
    assert!(took(&mut room, 101, (2, 1)).0.is_some_and(|us| us >= 80_000));
    for fault in ["F1", "F2"] {
        assert_eq!(room.agent(1).ask(queue(serde_json::json!({"heal": fault}))), nothing);
    }
    assert!(took(&mut room, 102, (2, 1)).0.is_some_and(|us| us < 60_000));
}
