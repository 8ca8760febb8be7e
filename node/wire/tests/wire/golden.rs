//! Bytes of ZooKeeper 3.8.0, made with its own classes from the values that the tests name.

use std::fmt::Write as _;

use bytes::{Bytes, BytesMut};
use node_wire::client::{
    Acl, CREATE_EPHEMERAL_SEQUENTIAL, CREATE_PERSISTENT, CheckVersionRequest, ConnectRequest, CreateRequest,
    DeleteRequest, MultiOp, MultiRequest, OpCode, Request,
};
use node_wire::digest::{TreeDigest, node_digest};
use node_wire::election::{Hello, Notification, PeerState};
use node_wire::ids::{Epoch, Round, ServerId, SessionId, Zxid};
use node_wire::jute::Reader;
use node_wire::logfile::{Record, RecordReader, encode_header, encode_record};
use node_wire::password::session_password;
use node_wire::quorum::{Dialect, LEARNER_PROTOCOL, LearnerInfo, PacketType, QuorumPacket, decode_packet};
use node_wire::snapshot::file::{ZxidDigest, decode_file, encode_file};
use node_wire::snapshot::stream::{StreamDecoder, encode_stream};
use node_wire::snapshot::{Image, OPEN_ACL, StatPersisted};
use node_wire::txn::{Entry, Txn, TxnDigest, TxnHeader};

use crate::written;

/// A tree of eight nodes after eleven transactions, as a file.
const SNAPSHOT: &str = include_str!("golden/snapshot.hex");
/// The same after thirteen, as behind a SNAP packet.
const STREAM: &str = include_str!("golden/stream.hex");
/// The thirteen transactions, one of almost every kind, and 20 bytes of the zeros behind them.
const LOG: &str = include_str!("golden/log.hex");

/// The zxid of the n-th of them.
fn zxid(n: u32) -> Zxid {
    Zxid::new(Epoch(1), n)
}

fn unhex(hex: &str) -> Bytes {
    let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks(2).map(byte).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut hex, byte| {
        write!(hex, "{byte:02x}").unwrap();
        hex
    })
}

fn log_entries() -> Vec<Entry> {
    let mut reader = RecordReader::new(unhex(LOG)).unwrap();
    let mut entries = Vec::new();
    while let Record::Entry(entry) = reader.read_record() {
        entries.push(entry);
    }
    assert_eq!(reader.read_record(), Record::End);
    entries
}

fn digest_of(image: &Image) -> i64 {
    let mut digest = TreeDigest::EMPTY;
    for node in &image.nodes {
        digest.add(node_digest(&node.path, node.data.as_deref(), &node.stat));
    }
    digest.to_wire()
}

#[test]
fn a_connect_request_of_38_has_no_read_only() {
    let bytes =
        "00000000 0000000100000002 00002710 0000000000001234 00000010 0102030405060708090a0b0c0d0e0f10";
    let request = ConnectRequest {
        protocol_version: 0,
        last_zxid_seen: zxid(2),
        timeout_ms: 10_000,
        session: SessionId(0x1234),
        password: (1..=16).collect(),
        read_only: None,
    };
    assert_eq!(ConnectRequest::decode(&mut Reader::new(unhex(bytes))), Ok(request.clone()));
    assert_eq!(written(|w| request.encode(w)), unhex(bytes));

    let bytes = format!("{bytes} 01");
    let request = ConnectRequest { read_only: Some(true), ..request };
    assert_eq!(ConnectRequest::decode(&mut Reader::new(unhex(&bytes))), Ok(request.clone()));
    assert_eq!(written(|w| request.encode(w)), unhex(&bytes));
}

#[test]
fn a_create_request() {
    let bytes = "00000007 00000001 00000002 2f61 00000002 6869 \
                 00000001 0000001f 00000005 776f726c64 00000006 616e796f6e65 00000003";
    let request = Request::decode(unhex(bytes)).unwrap();
    assert_eq!((request.xid, request.op), (7, OpCode::Create.code()));
    let body = CreateRequest {
        path: "/a".into(),
        data: Some(Bytes::from_static(b"hi")),
        acl: vec![Acl::world_anyone()],
        flags: CREATE_EPHEMERAL_SEQUENTIAL,
    };
    assert_eq!(CreateRequest::decode(&mut Reader::new(request.body)), Ok(body.clone()));
    let request = Request { xid: 7, op: 1, body: written(|w| body.encode(w)) };
    assert_eq!(written(|w| request.encode(w)), unhex(bytes));
}

#[test]
fn a_multi_request() {
    let bytes = "0000000d 00 ffffffff 00000002 2f61 00000001 \
                 00000002 00 ffffffff 00000002 2f62 ffffffff \
                 00000001 00 ffffffff 00000002 2f63 ffffffff \
                 00000001 0000001f 00000005 776f726c64 00000006 616e796f6e65 00000000 \
                 ffffffff 01 ffffffff";
    let create = CreateRequest {
        path: "/c".into(),
        data: None,
        acl: vec![Acl::world_anyone()],
        flags: CREATE_PERSISTENT,
    };
    let multi = MultiRequest {
        ops: vec![
            MultiOp::Check(CheckVersionRequest { path: "/a".into(), version: 1 }),
            MultiOp::Delete(DeleteRequest { path: "/b".into(), version: -1 }),
            MultiOp::Create(create),
        ],
    };
    assert_eq!(MultiRequest::decode(&mut Reader::new(unhex(bytes))), Ok(multi.clone()));
    assert_eq!(written(|w| multi.encode(w)), unhex(bytes));
}

#[test]
fn notifications_with_and_without_a_configuration() {
    let with = "00000000 0000000000000003 0000000200000005 0000000000000009 0000000000000002 \
                00000002 00000009 76657273696f6e3d30";
    let without = "00000002 0000000000000003 0000000200000005 0000000000000009 0000000000000002 00000001";
    let oldest = "00000002 0000000000000003 0000000200000005 0000000000000009";
    let notification = Notification {
        state: PeerState::Looking,
        leader: ServerId(3),
        zxid: Zxid::new(Epoch(2), 5),
        round: Round(9),
        peer_epoch: Epoch(2),
        config: Some(Bytes::from_static(b"version=0")),
        proposed: None,
        hears: None,
        dialect: Dialect::Apache,
    };
    assert_eq!(Notification::decode(unhex(with)), Ok(notification.clone()));
    assert_eq!(written(|w| notification.encode(w)), unhex(with));

    let own = Notification { dialect: Dialect::Own, ..notification.clone() };
    let own_with = with.replacen("00000002 00000009", "6e6f6465 00000009", 1);
    assert_eq!(Notification::decode(unhex(&own_with)), Ok(own.clone()));
    assert_eq!(written(|w| own.encode(w)), unhex(&own_with));

    let proposing = Notification { proposed: Some(Bytes::from_static(b"version=7")), ..own.clone() };
    let own_proposing = format!("{own_with} 00000009 76657273696f6e3d37");
    assert_eq!(Notification::decode(unhex(&own_proposing)), Ok(proposing.clone()));
    assert_eq!(written(|w| proposing.encode(w)), unhex(&own_proposing));
    let hearing = Notification { hears: Some(vec![ServerId(1), ServerId(3)]), ..proposing };
    let own_hearing = format!("{own_proposing} 00000002 0000000000000001 0000000000000003");
    assert_eq!(Notification::decode(unhex(&own_hearing)), Ok(hearing.clone()));
    assert_eq!(written(|w| hearing.encode(w)), unhex(&own_hearing));
    // What stands behind the configuration of a member of Apache ZooKeeper is none of ours.
    let theirs = format!("{with} 00000009 76657273696f6e3d37");
    assert_eq!(Notification::decode(unhex(&theirs)), Ok(notification));

    let notification = Notification { state: PeerState::Leading, config: None, ..own };
    let alone = Notification { hears: Some(Vec::new()), ..notification.clone() };
    let hears_nobody = format!("{without} 00000000");
    assert_eq!(Notification::decode(unhex(&hears_nobody)), Ok(alone.clone()));
    assert_eq!(written(|w| alone.encode(w)), unhex(&hears_nobody));
    assert_eq!(Notification::decode(unhex(without)), Ok(notification.clone()));
    assert_eq!(written(|w| notification.encode(w)), unhex(without));
    assert_eq!(Notification::decode(unhex(oldest)), Ok(notification));
}

#[test]
fn hellos_of_every_version() {
    let one = "ffffffffffff0000 0000000000000002 0000000d 31302e302e302e313a33383838";
    let hello = Hello { server: ServerId(2), addresses: vec![("10.0.0.1".to_owned(), 3888)] };
    assert_eq!(Hello::decode(&mut BytesMut::from(unhex(one))), Ok(Some(hello.clone())));
    assert_eq!(written(|w| hello.encode(w)), unhex(one));

    let several = "ffffffffffff0001 0000000000000002 0000000b 613a317c5b3a3a315d3a32";
    let hello = Hello { server: ServerId(2), addresses: vec![("a".to_owned(), 1), ("::1".to_owned(), 2)] };
    assert_eq!(Hello::decode(&mut BytesMut::from(unhex(several))), Ok(Some(hello.clone())));
    assert_eq!(written(|w| hello.encode(w)), unhex(several));

    let bare = Hello { server: ServerId(2), addresses: Vec::new() };
    assert_eq!(Hello::decode(&mut BytesMut::from(unhex("0000000000000002"))), Ok(Some(bare)));
}

#[test]
fn a_followerinfo_packet() {
    let bytes = "0000000b 0000000500000000 00000014 0000000000000002 00010000 0000000000000000 ffffffff";
    let (server, protocol) = (ServerId(2), LEARNER_PROTOCOL);
    let info = LearnerInfo { server, protocol, config_version: 0, dialect: Dialect::Apache };
    let packet = QuorumPacket::new(
        PacketType::FollowerInfo,
        Zxid::new(Epoch(5), 0).to_wire(),
        Some(written(|w| info.encode(w))),
    );
    assert_eq!(decode_packet(&mut BytesMut::from(unhex(bytes))), Ok(Some(packet.clone())));
    assert_eq!(written(|w| packet.encode(w)), unhex(bytes));
}

#[test]
fn the_identities_of_a_forwarded_request_are_carried() {
    let bytes = "00000001 ffffffffffffffff 00000001 09 00000001 00000002 6970 00000009 3132372e302e302e31";
    let mut received = BytesMut::from(unhex(bytes));
    received.extend_from_slice(b"next");
    let mut packet = QuorumPacket::new(PacketType::Request, -1, Some(Bytes::from_static(&[9])));
    packet.auth = vec![node_wire::client::Id { scheme: "ip".into(), id: "127.0.0.1".into() }];
    assert_eq!(decode_packet(&mut received), Ok(Some(packet.clone())));
    assert_eq!(written(|w| packet.encode(w)), unhex(bytes));
    assert_eq!(&received[..], b"next");
}

#[test]
fn session_passwords_are_those_of_java() {
    for (session, password) in [
        (0x1234, "3c18abe05b0e6182741d625d127c15b0"),
        (0x0100_00ab_cdef_0001, "76b39f6d54c3bc4f6ebe2fdff1198ecf"),
        (-2, "0dd532b5c441e3927c04b55e50fd9421"),
    ] {
        assert_eq!(hex(&session_password(SessionId(session))), password);
    }
}

#[test]
fn a_new_tree_has_the_digest_of_its_two_counted_nodes() {
    let mut digest = TreeDigest::EMPTY;
    for path in ["", "/zookeeper", "/zookeeper/quota", "/zookeeper/config"] {
        digest.add(node_digest(path, Some(b""), &StatPersisted::default()));
    }
    assert_eq!(digest.to_wire(), 1_371_985_504);
}

#[test]
fn a_log_is_read_and_written_to_the_byte() {
    let entries = log_entries();
    let mut log = BytesMut::new();
    encode_header(&mut log);
    for (entry, n) in entries.iter().zip(1..) {
        assert_eq!(entry.zxid(), zxid(n));
        assert_eq!(&Entry::new(entry.header, entry.txn.clone(), entry.digest), entry);
        encode_record(entry, &mut log);
    }
    assert_eq!(entries.len(), 13);
    log.extend_from_slice(&[0; 20]);
    assert_eq!(hex(&log), hex(&unhex(LOG)));
}

#[test]
fn a_log_record_has_its_header_its_body_and_its_digest() {
    let header = |n: u32, kind: i32| TxnHeader {
        session: SessionId(0x1234),
        cxid: i32::try_from(n).unwrap(),
        zxid: zxid(n),
        time_ms: 1_700_000_000_000 + i64::from(n),
        kind,
    };
    let digest = |digest: i64| Some(TxnDigest { version: 2, digest });
    let entries = log_entries();

    let txn = Txn::CreateSession { timeout_ms: 10_000 };
    assert_eq!(entries[0], Entry::new(header(1, -10), txn, digest(1_371_985_504)));
    let txn = Txn::Create {
        path: "/a".into(),
        data: Some(Bytes::from_static(b"hello")),
        acl: vec![Acl::world_anyone()],
        ephemeral: false,
        parent_cversion: 1,
    };
    assert_eq!(entries[1], Entry::new(header(2, 1), txn, digest(9_411_393_875)));
    // create2 has the body of create, and its own kind in the header.
    assert_eq!((entries[2].header.kind, entries[2].txn.kind()), (15, 1));
    let Txn::Multi { txns } = &entries[9].txn else { panic!("the tenth is a multi") };
    let (kind, body) = &txns[0];
    let check = Txn::Check { path: "/a".into(), version: 1 };
    assert_eq!(Txn::decode(*kind, &mut Reader::new(body.clone())), Ok(check));
    assert_eq!(entries[10], Entry::new(header(11, -1), Txn::Error { code: -103 }, digest(19_517_096_379)));
    let txn = Txn::CloseSession { paths: Some(vec!["/a/e".into()]) };
    assert_eq!(entries[12], Entry::new(header(13, -11), txn, digest(12_267_842_834)));
}

#[test]
fn a_snapshot_file_is_read_and_written_to_the_byte() {
    let file = decode_file(unhex(SNAPSHOT), zxid(11)).unwrap();
    let mut paths: Vec<&str> = file.image.nodes.iter().map(|node| &*node.path).collect();
    paths.sort_unstable();
    assert_eq!(paths[..5], ["/", "/a", "/a/b", "/a/e", "/c"]);
    assert_eq!(file.image.sessions, [(SessionId(0x1234), 10_000)]);
    assert_eq!(file.image.nodes[0].acl, OPEN_ACL);
    assert_eq!(file.image.nodes[0].data.as_deref(), Some(&b"root"[..]));

    let mut bytes = BytesMut::new();
    encode_file(&file.image, file.digest, &mut bytes);
    assert_eq!(hex(&bytes), hex(&unhex(SNAPSHOT)));
}

#[test]
fn a_trees_digest_is_the_one_in_its_snapshot_and_in_its_log() {
    let file = decode_file(unhex(SNAPSHOT), zxid(11)).unwrap();
    let digest = digest_of(&file.image);
    assert_eq!(file.digest, Some(ZxidDigest { zxid: zxid(11), version: 2, digest }));
    assert_eq!(log_entries()[10].digest, Some(TxnDigest { version: 2, digest }));
}

#[test]
fn a_stream_is_read_in_any_pieces_and_written_to_the_byte() {
    let stream = unhex(STREAM);
    for piece in [1, 7, 64, stream.len()] {
        let mut decoder = StreamDecoder::new(zxid(13));
        let mut received = BytesMut::new();
        let mut image = None;
        let sent = [&stream[..], b"next"].concat();
        for bytes in sent.chunks(piece) {
            received.extend_from_slice(bytes);
            if image.is_none() {
                image = decoder.feed(&mut received).unwrap();
            }
        }
        let image = image.unwrap();
        assert_eq!(&received[..], b"next");
        assert_eq!(digest_of(&image), 12_267_842_834);

        let mut bytes = BytesMut::new();
        encode_stream(&image, &mut bytes);
        assert_eq!(hex(&bytes), hex(&stream));
    }
}
