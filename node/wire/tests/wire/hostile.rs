//! Bytes from nobody. Nothing panics, nothing that is not there is waited for or allocated without bound, and
//! what is wrong is refused for its reason.

use std::ops::Range;

use bytes::{BufMut, Bytes, BytesMut};
use node_wire::client::{
    AuthPacket, ChildrenResponse, ConnectRequest, ConnectResponse, CreateRequest, GetAclResponse,
    MultiRequest, MultiResponse, Request, SetWatches2, Stat, WatcherEvent, WhoAmIResponse, take_frame,
    validate_path, validate_sequential_path,
};
use node_wire::election::{Hello, Notification};
use node_wire::ids::{Epoch, Round, ServerId, Zxid};
use node_wire::jute::{DecodeError, Jute, Reader};
use node_wire::logfile::{
    Compression, FileName, HEADER_LEN, Record, RecordReader, TornReason, encode_header, encode_record,
};
use node_wire::quorum::{ForwardedRequest, LearnerInfo, MAX_PACKET_DATA, PingTouches, decode_packet};
use node_wire::snapshot::file::{SnapshotError, decode_file, encode_file};
use node_wire::snapshot::stream::{StreamDecoder, encode_stream};
use node_wire::snapshot::{Image, NodeRecord, OPEN_ACL, StatPersisted};
use node_wire::txn::{Entry, Txn, TxnHeader};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::values::{image, txn, txn_digest, txn_header};
use crate::written;

/// Gives the bytes to every decoder there is.
fn decode_as_everything(bytes: &Bytes) {
    let r = || Reader::new(bytes.clone());
    let _ = ConnectRequest::decode(&mut r());
    let _ = ConnectResponse::decode(&mut r());
    let _ = Request::decode(bytes.clone());
    let _ = CreateRequest::decode(&mut r());
    let _ = SetWatches2::decode(&mut r());
    let _ = AuthPacket::decode(&mut r());
    let _ = MultiRequest::decode(&mut r());
    let _ = MultiResponse::decode(&mut r());
    let _ = ChildrenResponse::decode(&mut r());
    let _ = GetAclResponse::decode(&mut r());
    let _ = WhoAmIResponse::decode(&mut r());
    let _ = WatcherEvent::decode(&mut r());
    let _ = Notification::decode(bytes.clone());
    let _ = LearnerInfo::decode(&mut r());
    let _ = ForwardedRequest::decode(bytes.clone(), Vec::new());
    let _ = PingTouches::decode(bytes.clone());
    let _ = Entry::decode(bytes.clone());
    for kind in -12..=110 {
        let _ = Txn::decode(kind, &mut r());
    }
    let _ = decode_file(bytes.clone(), Zxid::ZERO);
    let received = || BytesMut::from(&bytes[..]);
    let _ = take_frame(&mut received(), 1000);
    let _ = Hello::decode(&mut received());
    let _ = decode_packet(&mut received());
    let _ = StreamDecoder::new(Zxid::ZERO).feed(&mut received());
    read_log(bytes);
}

/// Returns what stands at the end.
fn read_log(bytes: &Bytes) -> Option<Record> {
    let mut reader = RecordReader::new(bytes.clone()).ok()?;
    loop {
        match reader.read_record() {
            Record::Entry(_) => {}
            last => return Some(last),
        }
    }
}

/// Small numbers, among which lengths and codes are found.
fn plausible() -> impl Strategy<Value = Bytes> {
    let int = prop_oneof![-12_i32..30, Just(-1), Just(i32::MAX), Just(i32::MIN), any::<i32>()];
    vec(int, 0..40).prop_map(|ints| ints.into_iter().flat_map(i32::to_be_bytes).collect())
}

fn one_entry() -> impl Strategy<Value = Entry> {
    (txn_header(), txn(), txn_digest())
        .prop_map(|(header, txn, digest)| Entry::new(TxnHeader { kind: txn.kind(), ..header }, txn, digest))
}

fn log_of(entry: &Entry) -> BytesMut {
    let mut log = BytesMut::new();
    encode_header(&mut log);
    encode_record(entry, &mut log);
    log
}

proptest! {
    #[test]
    fn arbitrary_bytes_do_not_panic(bytes in vec(any::<u8>(), 0..200)) {
        decode_as_everything(&Bytes::from(bytes));
    }

    #[test]
    fn arbitrary_ints_do_not_panic(bytes in plausible()) {
        decode_as_everything(&bytes);
        // The same behind the two magic numbers.
        for magic in [b"ZKSN\0\0\0\x02dbiddbid", b"ZKLG\0\0\0\x02dbiddbid"] {
            decode_as_everything(&Bytes::from([&magic[..], &bytes].concat()));
        }
    }

    #[test]
    fn paths_do_not_panic(path in "\\PC*|[/.a]*") {
        let _ = validate_path(&path);
        let _ = validate_sequential_path(&path);
        let _ = FileName::parse(&path);
    }

    #[test]
    fn a_cut_snapshot_is_refused(image in image(), cut: prop::sample::Index) {
        let mut file = BytesMut::new();
        encode_file(&image, None, &mut file);
        file.truncate(cut.index(file.len()));
        prop_assert!(decode_file(file.freeze(), Zxid::ZERO).is_err());
    }

    #[test]
    fn a_changed_snapshot_is_refused(image in image(), at: prop::sample::Index, by in 1_u8..) {
        let mut file = BytesMut::new();
        encode_file(&image, None, &mut file);
        // The number that nobody uses is checked like everything else.
        let at = at.index(file.len());
        file[at] ^= by;
        prop_assert!(decode_file(file.freeze(), Zxid::ZERO).is_err());
    }

    #[test]
    fn a_cut_stream_is_waited_for(image in image(), cut: prop::sample::Index) {
        let mut stream = BytesMut::new();
        encode_stream(&image, &mut stream);
        stream.truncate(cut.index(stream.len()));
        prop_assert_eq!(StreamDecoder::new(Zxid::ZERO).feed(&mut stream), Ok(None));
    }

    #[test]
    fn a_changed_stream_does_not_panic(image in image(), at: prop::sample::Index, by in 1_u8..) {
        let mut stream = BytesMut::new();
        encode_stream(&image, &mut stream);
        let at = at.index(stream.len());
        stream[at] ^= by;
        let _ = StreamDecoder::new(Zxid::ZERO).feed(&mut stream);
    }

    #[test]
    fn a_changed_transaction_does_not_panic(entry in one_entry(), at: prop::sample::Index, by in 1_u8..) {
        let mut bytes = BytesMut::from(entry.bytes);
        let at = at.index(bytes.len());
        bytes[at] ^= by;
        let _ = Entry::decode(bytes.freeze());
    }

    #[test]
    fn a_cut_log_is_torn_where_its_record_begins(entry in one_entry(), cut: prop::sample::Index) {
        let mut log = log_of(&entry);
        let len = HEADER_LEN + 1 + cut.index(log.len() - HEADER_LEN - 1);
        log.truncate(len);
        let zeros = log[HEADER_LEN..].iter().all(|&byte| byte == 0);
        let torn = Record::Torn { offset: HEADER_LEN, reason: TornReason::Truncated };
        prop_assert_eq!(read_log(&log.freeze()), Some(if zeros { Record::End } else { torn }));
    }

    #[test]
    fn a_changed_log_is_torn(entry in one_entry(), at: prop::sample::Index, by in 1_u8..) {
        let mut log = log_of(&entry);
        let at = HEADER_LEN + at.index(log.len() - HEADER_LEN);
        log[at] ^= by;
        let last = read_log(&log.freeze());
        prop_assert!(matches!(last, Some(Record::Torn { offset: HEADER_LEN, .. })), "{:?}", last);
    }
}

#[test]
fn a_count_that_the_bytes_cannot_hold_allocates_nothing() {
    let bytes = Bytes::from_static(&[0, 15, 0, 0]);
    let refused = Err(DecodeError::Truncated { need: 4 * 0xf_0000, have: 0 });
    assert_eq!(ChildrenResponse::decode(&mut Reader::new(bytes)), refused);
}

#[test]
fn negative_lengths_are_refused_except_for_null() {
    let read = |wire: i32| Reader::new(Bytes::copy_from_slice(&wire.to_be_bytes()));
    assert_eq!(read(-1).buffer(), Ok(None));
    assert_eq!(read(-2).buffer(), Err(DecodeError::NegativeLength(-2)));
    assert_eq!(read(-1).string(), Err(DecodeError::NegativeLength(-1)));
    assert_eq!(read(i32::MIN).optional_string(), Err(DecodeError::NegativeLength(i32::MIN)));
    assert_eq!(read(-1).read::<Vec<i32>>(), Ok(Vec::new()));
    assert_eq!(read(-3).read::<Vec<i32>>(), Err(DecodeError::NegativeLength(-3)));
}

#[test]
fn a_string_is_utf_8() {
    let bytes = written(|w| w.buffer(&[0xff]));
    assert_eq!(Reader::new(bytes).string(), Err(DecodeError::NotUtf8));
}

#[test]
fn what_is_decoded_is_a_slice_of_what_came() {
    let frame = written(|w| {
        w.string("/path");
        w.buffer(b"data");
    });
    let within = |bytes: &[u8]| {
        let memory: Range<*const u8> = frame.as_ptr_range();
        memory.contains(&bytes.as_ptr())
    };
    let mut r = Reader::new(frame.clone());
    assert!(within(r.string().unwrap().as_bytes()));
    assert!(within(&r.buffer().unwrap().unwrap()));
}

#[test]
fn a_packet_is_refused_at_its_first_wrong_field() {
    let mut unknown = BytesMut::from(&b"GET "[..]);
    assert!(matches!(decode_packet(&mut unknown), Err(DecodeError::Unknown { .. })));

    let mut long = BytesMut::new();
    long.put_i32(2);
    long.put_i64(0);
    long.put_i32(i32::MAX);
    let refused = DecodeError::TooLong { len: i32::MAX.unsigned_abs() as usize, limit: MAX_PACKET_DATA };
    assert_eq!(decode_packet(&mut long), Err(refused));
}

#[test]
fn negative_votes_are_refused() {
    let notification = |leader: i64, zxid: i64, round: i64, epoch: i64| {
        Notification::decode(written(|w| {
            w.int(0);
            w.long(leader);
            w.long(zxid);
            w.long(round);
            w.long(epoch);
            w.int(1);
        }))
    };
    assert!(notification(1, 1, 1, 1).is_ok());
    // An observer of Apache ZooKeeper has no vote, and says so in this way.
    let none = notification(i64::MIN, i64::MIN, 1, i64::MIN).expect("an observer may ask");
    assert_eq!((none.leader, none.zxid, none.peer_epoch), (ServerId(0), Zxid::ZERO, Epoch::ZERO));
    assert!(notification(-1, 1, 1, 1).is_err());
    assert!(notification(1, -1, 1, 1).is_err());
    assert!(notification(1, 1, -2, 1).is_err());
    assert!(notification(1, 1, 1, -2).is_err());
    // Nor has one that went to its leader without an election a round.
    let designated = notification(1, 1, -1, -1).expect("a reconfiguration names leaders");
    assert_eq!((designated.round, designated.peer_epoch), (Round(0), Epoch::ZERO));
    assert!(notification(1, 1, 1, i64::from(u32::MAX) + 1).is_err());
}

#[test]
fn every_length_between_the_known_notifications_is_refused() {
    for len in 0..48 {
        let mut frame = BytesMut::zeroed(len);
        if len >= 44 {
            // A version with a configuration, of which nothing is there.
            frame[39] = 2;
            frame[43] = u8::try_from(len - 44 + 1).unwrap();
        }
        let known = matches!(len, 28 | 40..=43);
        assert_eq!(Notification::decode(frame.freeze()).is_ok(), known, "{len}");
    }
}

#[test]
fn hellos_with_bad_addresses_are_refused() {
    for addresses in
        ["", "host", "host:", ":1", "host:65536", "host:-1", "[::1:1", "a:1|", "a:1||b:2", "[[::1]:1", "a]:1"]
    {
        let mut hello = BytesMut::from(written(|w| {
            w.long(-65535);
            w.long(1);
            w.string(addresses);
        }));
        assert!(Hello::decode(&mut hello).is_err(), "{addresses}");
    }
    let mut long = BytesMut::from(written(|w| {
        w.long(-65536);
        w.long(1);
        w.int(2049);
    }));
    assert_eq!(Hello::decode(&mut long), Err(DecodeError::TooLong { len: 2049, limit: 2048 }));
}

#[test]
fn old_learners_say_less() {
    let info = |len: usize| LearnerInfo::decode(&mut Reader::new(Bytes::from(vec![0; len])));
    assert!(info(7).is_err());
    assert_eq!(info(8).unwrap().protocol, 1);
    assert_eq!(info(12).unwrap().protocol, 0);
    assert_eq!(info(20).unwrap().config_version, 0);
}

#[test]
fn old_transactions_say_less() {
    let node = |w: &mut node_wire::jute::Writer<'_>| {
        w.string("/a");
        w.null();
        w.null();
        w.bool(true);
    };
    let create = Txn::decode(1, &mut Reader::new(written(node))).unwrap();
    assert!(matches!(create, Txn::Create { ephemeral: true, parent_cversion: -1, .. }));
    assert_eq!(Txn::decode(-11, &mut Reader::new(Bytes::new())), Ok(Txn::CloseSession { paths: None }));
}

fn node(path: &str) -> NodeRecord {
    NodeRecord { path: path.to_owned().into(), data: None, acl: OPEN_ACL, stat: StatPersisted::default() }
}

#[test]
fn nodes_that_make_no_tree_are_refused() {
    let decode = |paths: &[&str]| {
        let image = Image { nodes: paths.iter().copied().map(node).collect(), ..Image::default() };
        let mut stream = BytesMut::new();
        encode_stream(&image, &mut stream);
        StreamDecoder::new(Zxid::ZERO).feed(&mut stream).map(|image| image.is_some())
    };
    assert_eq!(decode(&["/", "/a", "/a/b", "/c"]), Ok(true));
    for paths in
        [&["/a"][..], &["/", "/a/b"], &["/", "/a", "/a"], &["/", "/"], &["/", "a"], &["/", "/a", "/a/"]]
    {
        assert!(decode(paths).is_err(), "{paths:?}");
    }
}

#[test]
fn a_stream_without_its_signature_is_refused() {
    let mut stream = BytesMut::new();
    encode_stream(&Image::default(), &mut stream);
    let last = stream.len() - 1;
    stream[last] = b'f';
    assert!(StreamDecoder::new(Zxid::ZERO).feed(&mut stream).is_err());
}

#[test]
fn a_snapshot_with_a_wrong_checksum_says_where() {
    let mut file = BytesMut::new();
    encode_file(&Image::default(), None, &mut file);
    // The number that nobody uses.
    file[8] = 0;
    let offset = file.len() - 13;
    assert_eq!(decode_file(file.freeze(), Zxid::ZERO), Err(SnapshotError::Checksum { offset }));
}

#[test]
fn zeros_end_a_log_only_when_nothing_is_behind_them() {
    let entry = Entry::new(
        TxnHeader { kind: -1, ..TxnHeader::decode(&mut Reader::new(Bytes::from(vec![0; 32]))).unwrap() },
        Txn::Error { code: -103 },
        None,
    );
    let mut log = log_of(&entry);
    let end = log.len();
    log.put_bytes(0, 100);
    assert_eq!(read_log(&log.clone().freeze()), Some(Record::End));
    log.put_u8(1);
    let torn = Record::Torn { offset: end, reason: TornReason::DataBehindZeros };
    assert_eq!(read_log(&log.freeze()), Some(torn));
}

#[test]
fn names_that_we_do_not_write_are_not_ours() {
    assert_eq!(FileName::parse("log.100000001"), Some(FileName::Log(Zxid(0x1_0000_0001))));
    assert_eq!(FileName::parse("snapshot.0"), Some(FileName::Snapshot(Zxid::ZERO)));
    let gz = FileName::Compressed(Zxid(0x1f), Compression::Gz);
    assert_eq!(FileName::parse("snapshot.1f.gz"), Some(gz));
    for name in [
        "log",
        "log.",
        "log.x",
        "log.1.gz",
        "log.01",
        "log.A",
        "log.+1",
        "snapshot.1.zip",
        "snapshot.1.gz.gz",
        "myid",
    ] {
        assert_eq!(FileName::parse(name), None, "{name}");
    }
}

#[test]
fn the_shortest_stat_is_68_bytes() {
    assert_eq!(Stat::MIN_LEN, 68);
    assert_eq!(StatPersisted::MIN_LEN, 60);
}
