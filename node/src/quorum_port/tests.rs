//! What a learner or a leader may do to a connection, and what the core is told of it.

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::*;
use crate::address::HostPort;
use crate::book::Book;
use crate::clock::Clock;
use crate::testing::{config, connect, from_peer, listener, local};
use crate::tls::peers::PeerTls;
use node_wire::jute::encode;
use node_wire::quorum::{LEARNER_PROTOCOL, LearnerInfo};
use node_wire::snapshot::{Image, NodeRecord, OPEN_ACL, StatPersisted};

fn packet(kind: PacketType, zxid: i64) -> QuorumPacket {
    QuorumPacket::new(kind, zxid, None)
}

fn encoded(packet: &QuorumPacket) -> BytesMut {
    let mut bytes = BytesMut::new();
    packet.encode(&mut Writer::new(&mut bytes));
    bytes
}

/// The port of member 1, whose peer 2 has its quorum port at `peer`.
fn port(peer: &HostPort) -> (Rc<QuorumPort>, Rc<Inbox>) {
    port_with(peer, None)
}

fn port_with(peer: &HostPort, tls: Option<Arc<PeerTls>>) -> (Rc<QuorumPort>, Rc<Inbox>) {
    let inbox = Rc::new(Inbox::default());
    let mut config = config(1, &[(2, peer)]);
    if let Some(line) = config.servers.get_mut(&ServerId(2)) {
        line.quorum = peer.clone();
    }
    config.security.peers = tls;
    let book = Rc::new(Book::new(&config));
    let pulse = Pulse::new(Clock::start(), config.peer_timeout, config.manner.step_limit);
    (QuorumPort::new(Rc::new(config), book, Rc::clone(&inbox), pulse), inbox)
}

/// A learner's connection, as both sides have it.
async fn accepted() -> (Rc<QuorumPort>, Rc<Inbox>, ConnId, TcpStream) {
    let (listener, addr) = listener().await;
    let (port, inbox) = port(&addr);
    tokio::task::spawn_local(Rc::clone(&port).accept(listener));
    let learner = connect(&addr).await;
    let Input::Accepted { conn } = from_peer(&inbox).await else { panic!("not accepted") };
    (port, inbox, conn, learner)
}

/// A leader's connection, as both sides have it.
async fn dialled() -> (Rc<QuorumPort>, Rc<Inbox>, ConnId, TcpStream) {
    let (listener, addr) = listener().await;
    let (port, inbox) = port(&addr);
    port.dial(ServerId(2));
    let (leader, _) = listener.accept().await.expect("dialled");
    let Input::Dialled { leader: ServerId(2), conn } = from_peer(&inbox).await else { panic!("not dialled") };
    (port, inbox, conn, leader)
}

fn image() -> Image {
    let node = |path: &'static str| NodeRecord {
        path: path.into(),
        data: Some(Bytes::from_static(b"x")),
        acl: OPEN_ACL,
        stat: StatPersisted::default(),
    };
    Image { zxid: Zxid(7), nodes: vec![node("/"), node("/a")], ..Image::default() }
}

#[test]
fn packets_go_both_ways_in_order() {
    local(async {
        let (port, inbox, conn, mut learner) = accepted().await;
        let sent = [packet(PacketType::FollowerInfo, 1), packet(PacketType::AckEpoch, 2)];
        learner.write_all(&[encoded(&sent[0]), encoded(&sent[1])].concat()).await.expect("written");
        for expected in sent {
            let Input::Packet { conn: from, packet } = from_peer(&inbox).await else { panic!("no packet") };
            assert_eq!((from, packet), (conn, expected));
        }
        let answer = packet(PacketType::LeaderInfo, 3);
        port.send(conn, &answer);
        port.flush();
        let mut got = vec![0; encoded(&answer).len()];
        learner.read_exact(&mut got).await.expect("the answer");
        assert_eq!(got, encoded(&answer));
    });
}

#[test]
fn the_tree_behind_a_snap_packet_comes_whole_and_packets_go_on_behind_it() {
    local(async {
        let (_port, inbox, conn, mut leader) = dialled().await;
        let mut bytes = encoded(&packet(PacketType::Snap, 7));
        encode_stream(&image(), &mut bytes);
        bytes.extend_from_slice(&encoded(&packet(PacketType::NewLeader, 9)));
        for piece in bytes.chunks(5) {
            leader.write_all(piece).await.expect("written");
            tokio::task::yield_now().await;
        }
        let Input::Packet { packet: snap, .. } = from_peer(&inbox).await else { panic!("no SNAP") };
        assert_eq!(snap.kind, PacketType::Snap);
        let Input::Image { conn: from, image: got } = from_peer(&inbox).await else { panic!("no image") };
        assert_eq!((from, got), (conn, image()));
        let Input::Packet { packet: next, .. } = from_peer(&inbox).await else { panic!("no packet") };
        assert_eq!(next.kind, PacketType::NewLeader);
    });
}

#[test]
fn nonsense_ends_the_connection_and_is_told_once() {
    local(async {
        let (port, inbox, conn, mut learner) = accepted().await;
        learner.write_all(&[0xff; 32]).await.expect("written");
        let Input::PeerLost { conn: lost } = from_peer(&inbox).await else { panic!("not lost") };
        assert_eq!(lost, conn);
        // A reset is an end as well.
        let _ = learner.read(&mut [0; 1]).await;
        port.close(conn);
        port.send(conn, &packet(PacketType::Ping, 0));
        assert!(inbox.is_empty());
    });
}

#[test]
fn what_the_core_closed_is_written_out_and_heard_of_no_more() {
    local(async {
        let (port, inbox, conn, mut learner) = accepted().await;
        learner.write_all(&encoded(&packet(PacketType::Ack, 1))).await.expect("written");
        let last = packet(PacketType::UpToDate, 5);
        port.send(conn, &last);
        port.close(conn);
        port.flush();
        let mut got = Vec::new();
        learner.read_to_end(&mut got).await.expect("an end");
        assert_eq!(got, encoded(&last));
        assert!(inbox.is_empty());
    });
}

#[test]
fn a_dial_that_is_refused_is_told_and_takes_its_time() {
    local(async {
        let (listener, addr) = listener().await;
        drop(listener);
        let (port, inbox) = port(&addr);
        let started = std::time::Instant::now();
        port.dial(ServerId(2));
        assert!(matches!(from_peer(&inbox).await, Input::DialFailed { leader: ServerId(2) }));
        assert!(started.elapsed() >= MIN_DIAL);
        port.dial(ServerId(9));
        assert!(matches!(from_peer(&inbox).await, Input::DialFailed { leader: ServerId(9) }));
    });
}

/// What a member of ours, or one of Apache's, says first.
fn introduction(dialect: Dialect) -> QuorumPacket {
    let info = LearnerInfo { server: ServerId(2), protocol: LEARNER_PROTOCOL, config_version: 0, dialect };
    QuorumPacket::new(PacketType::FollowerInfo, 0, Some(encode(|w| info.encode(w))))
}

#[test]
fn somebody_speaks_for_the_member_to_ours_alone_and_not_before_they_take_it() {
    local(async {
        for (dialect, speaks) in [(Dialect::Own, true), (Dialect::Apache, false)] {
            let (port, inbox, conn, mut learner) = accepted().await;
            learner.write_all(&encoded(&introduction(dialect))).await.expect("written");
            let Input::Packet { .. } = from_peer(&inbox).await else { panic!("no packet") };
            let mut expected = Vec::new();
            for kind in [PacketType::LeaderInfo, PacketType::Diff, PacketType::NewLeader] {
                port.send(conn, &packet(kind, 1));
                port.flush();
                port.pulse.speak(b"PING");
                expected.extend_from_slice(&encoded(&packet(kind, 1)));
            }
            expected.extend_from_slice(if speaks { b"PING" } else { b"" });
            port.close(conn);
            let mut got = Vec::new();
            learner.read_to_end(&mut got).await.expect("an end");
            assert_eq!(got, expected, "{dialect:?}");
        }
    });
}

/// What members are told that speak with each other over TLS alone.
fn tls() -> Arc<PeerTls> {
    let store = |file: &str| format!("{}/tests/stores/{file}", env!("CARGO_MANIFEST_DIR"));
    let said = [
        ("ssl.quorum.keyStore.location", store("member.pem")),
        ("ssl.quorum.trustStore.location", store("trust.pem")),
        ("ssl.quorum.hostnameVerification", "false".to_owned()),
    ];
    let said = said.map(|(key, value)| (key.to_owned(), value)).into();
    Arc::new(PeerTls::new(&said, true, false, false).expect("sound stores").expect("wanted"))
}

#[test]
fn over_tls_too_somebody_speaks_between_two_packets_and_in_none() {
    const LONG: usize = 16;
    local(async {
        let (listener, addr) = listener().await;
        let (leading, leader) = port_with(&addr, Some(tls()));
        tokio::task::spawn_local(Rc::clone(&leading).accept(listener));
        let (learning, learner) = port_with(&addr, Some(tls()));
        learning.dial(ServerId(2));
        let Input::Dialled { conn: dialled, .. } = from_peer(&learner).await else { panic!("not dialled") };
        let Input::Accepted { conn } = from_peer(&leader).await else { panic!("not accepted") };
        learning.send(dialled, &introduction(Dialect::Own));
        learning.flush();
        let Input::Packet { .. } = from_peer(&leader).await else { panic!("no packet") };
        let ping = packet(PacketType::Ping, -1);
        // From another thread than the member's, as in life.
        let (bytes, pulse) = (encoded(&ping), Arc::clone(&leading.pulse));
        let speak =
            || std::thread::scope(|scope| scope.spawn(|| pulse.speak(&bytes)).join().expect("spoken"));
        leading.send(conn, &packet(PacketType::NewLeader, 1));
        leading.flush();
        speak();
        let long = QuorumPacket::new(PacketType::Proposal, 2, Some(Bytes::from(vec![b'x'; 1 << 20])));
        for _ in 0..LONG {
            leading.send(conn, &long);
        }
        leading.flush();
        let waiting = leading.connections.borrow()[&conn].outbox.waiting();
        assert!(waiting > 0, "this thread reads nothing meanwhile, so the socket is full");
        speak();
        let mut heard = Vec::new();
        while heard.last() != Some(&ping) || heard.len() < LONG {
            let Input::Packet { packet, .. } = from_peer(&learner).await else { panic!("no packet") };
            heard.push(packet);
            if heard.len() == 2 + LONG {
                speak();
            }
        }
        let sent = [vec![packet(PacketType::NewLeader, 1), ping.clone()], vec![long; LONG], vec![ping]];
        assert!(heard == sent.concat(), "{:?}", heard.iter().map(|packet| packet.kind).collect::<Vec<_>>());
    });
}

#[test]
fn part_of_a_packet_is_a_sign_of_life_and_so_is_what_nobody_read_yet() {
    local(async {
        let (port, _inbox, conn, mut learner) = accepted().await;
        let bytes = encoded(&packet(PacketType::Ack, 1));
        assert_eq!(port.signs_of_life(true), [], "nothing came");
        learner.write_all(&bytes[..5]).await.expect("written");
        // The connection's task has not run since.
        while port.signs_of_life(true) != [conn] {}
        assert_eq!(port.signs_of_life(false), []);
        while port.signs_of_life(false) != [conn] {
            tokio::task::yield_now().await;
        }
        assert_eq!(port.signs_of_life(true), [], "told once");
    });
}
