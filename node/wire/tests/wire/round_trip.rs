//! Whatever is written reads back as it was, and nothing of it is left over.

use std::fmt::Debug;

use bytes::BytesMut;
use node_wire::client::{
    AddWatchRequest, AllChildrenNumberResponse, AuthPacket, CheckVersionRequest, Children2Response,
    ChildrenResponse, ClientInfo, ConnectRequest, ConnectResponse, Create2Response, CreateRequest,
    CreateResponse, DeleteRequest, EphemeralsResponse, ErrorResponse, ExistsResponse, GetAclResponse,
    GetDataResponse, MultiHeader, MultiRequest, MultiResponse, PathOnly, PathWatch, ReconfigRequest,
    ReplyHeader, Request, SaslPacket, SetAclRequest, SetAclResponse, SetDataRequest, SetDataResponse,
    SetWatches, SetWatches2, SyncRequest, SyncResponse, WatcherEvent, WatchesRequest, WhoAmIResponse,
};
use node_wire::election::{Hello, Notification, PeerState};
use node_wire::ids::{Epoch, Round, ServerId, Zxid};
use node_wire::jute::{DecodeError, Jute, Reader, Writer};
use node_wire::logfile::{FileName, Record, RecordReader, encode_header, encode_record};
use node_wire::quorum::{
    Dialect, ForwardedRequest, LeaderInfo, LearnerInfo, PacketType, PingTouches, QuorumPacket, Revalidate,
    Revalidated, decode_packet,
};
use node_wire::snapshot::file::{FileEncoder, SnapshotFile, ZxidDigest, decode_file, encode_file};
use node_wire::snapshot::stream::{StreamDecoder, StreamEncoder, encode_stream};
use node_wire::txn::{Entry, TxnHeader};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use crate::values::{
    acls, bytes, create_ttl, data, image, multi_op, multi_result, session, stat, stat_persisted, string,
    strings, txn, txn_digest, txn_header, zxid,
};
use crate::written;

fn returns<T: PartialEq + Debug>(
    value: &T,
    encode: impl FnOnce(&T, &mut Writer<'_>),
    decode: impl FnOnce(&mut Reader) -> Result<T, DecodeError>,
) -> Result<(), TestCaseError> {
    let mut r = Reader::new(written(|w| encode(value, w)));
    prop_assert_eq!(&decode(&mut r).unwrap(), value);
    prop_assert_eq!(r.remaining(), 0);
    Ok(())
}

fn record_returns<T: Jute + PartialEq + Debug>(value: &T) -> Result<(), TestCaseError> {
    prop_assert!(written(|w| w.write(value)).len() >= T::MIN_LEN);
    returns(value, Jute::encode, Jute::decode)
}

fn positive() -> impl Strategy<Value = u64> {
    0..=i64::MAX.unsigned_abs()
}

proptest! {
    #[test]
    fn connect_records_return(
        zxid in zxid(),
        timeout_ms: i32,
        session in session(),
        password in bytes(),
        read_only: Option<bool>,
    ) {
        let (protocol_version, last_zxid_seen) = (0, zxid);
        let request = ConnectRequest {
            protocol_version, last_zxid_seen, timeout_ms, session, password: password.clone(), read_only
        };
        returns(&request, ConnectRequest::encode, ConnectRequest::decode)?;
        let response = ConnectResponse { protocol_version, timeout_ms, session, password, read_only };
        returns(&response, ConnectResponse::encode, ConnectResponse::decode)?;
    }

    #[test]
    fn requests_return(xid: i32, op: i32, body in bytes()) {
        let request = Request { xid, op, body };
        prop_assert_eq!(Request::decode(written(|w| request.encode(w))), Ok(request));
    }

    #[test]
    fn request_bodies_return(
        path in string(), data in data(), acl in acls(), number: i32, flag: bool, long: i64
    ) {
        let (version, ttl) = (number, long);
        let flags = number;
        record_returns(&CreateRequest { path: path.clone(), data: data.clone(), acl: acl.clone(), flags })?;
        record_returns(&DeleteRequest { path: path.clone(), version })?;
        record_returns(&PathWatch { path: path.clone(), watch: flag })?;
        record_returns(&SetDataRequest { path: path.clone(), data: data.clone(), version })?;
        record_returns(&SyncRequest { path: path.clone() })?;
        record_returns(&PathOnly { path: path.clone() })?;
        record_returns(&CheckVersionRequest { path: path.clone(), version })?;
        record_returns(&SetAclRequest { path: path.clone(), acl, version })?;
        record_returns(&AddWatchRequest { path: path.clone(), mode: number })?;
        record_returns(&WatchesRequest { path: path.clone(), kind: number })?;
        record_returns(&AuthPacket { kind: number, scheme: path.clone(), auth: data.clone() })?;
        record_returns(&SaslPacket { token: data })?;
        let name = flag.then_some(path);
        let (joining, leaving, members) = (name.clone(), None, name);
        record_returns(&ReconfigRequest { joining, leaving, members, config_version: ttl })?;
    }

    #[test]
    fn creates_with_a_time_to_live_return(request in create_ttl()) {
        record_returns(&request)?;
    }

    #[test]
    fn watches_to_set_again_return(relative_zxid in zxid(), a in strings(), b in strings(), c in strings()) {
        record_returns(&SetWatches2 {
            relative_zxid,
            data_watches: a.clone(),
            exist_watches: b.clone(),
            child_watches: c.clone(),
            persistent_watches: b.clone(),
            persistent_recursive_watches: a.clone(),
        })?;
        record_returns(&SetWatches { relative_zxid, data_watches: a, exist_watches: b, child_watches: c })?;
    }

    #[test]
    fn response_bodies_return(
        path in string(), data in data(), acl in acls(), stat in stat(), children in strings(),
        zxid in zxid(), number: i32, other: i32,
    ) {
        record_returns(&ReplyHeader { xid: number, zxid, err: other })?;
        record_returns(&stat)?;
        record_returns(&CreateResponse { path: path.clone() })?;
        record_returns(&Create2Response { path: path.clone(), stat })?;
        record_returns(&ExistsResponse { stat })?;
        record_returns(&GetDataResponse { data, stat })?;
        record_returns(&SetDataResponse { stat })?;
        record_returns(&GetAclResponse { acl, stat })?;
        record_returns(&SetAclResponse { stat })?;
        record_returns(&ChildrenResponse { children: children.clone() })?;
        record_returns(&EphemeralsResponse { ephemerals: children.clone() })?;
        record_returns(&Children2Response { children, stat })?;
        record_returns(&SyncResponse { path: path.clone() })?;
        record_returns(&AllChildrenNumberResponse { total: number })?;
        record_returns(&WhoAmIResponse {
            clients: vec![ClientInfo { scheme: path.clone(), user: path.clone() }],
        })?;
        record_returns(&ErrorResponse { err: number })?;
        record_returns(&WatcherEvent { kind: number, state: other, path })?;
    }

    #[test]
    fn multis_return(
        kind: i32, done: bool, err: i32,
        ops in vec(multi_op(), 0..5), results in vec(multi_result(), 0..5),
    ) {
        record_returns(&MultiHeader { kind, done, err })?;
        returns(&MultiRequest { ops }, MultiRequest::encode, MultiRequest::decode)?;
        returns(&MultiResponse { results }, MultiResponse::encode, MultiResponse::decode)?;
    }

    #[test]
    fn hellos_return(
        server in positive(), addresses in vec(("[a-z0-9.-]{1,12}|fe80::[1-9]", any::<u16>()), 1..4)
    ) {
        let hello = Hello { server: ServerId(server), addresses };
        let mut received = BytesMut::from(written(|w| hello.encode(w)));
        prop_assert_eq!(Hello::decode(&mut received), Ok(Some(hello)));
        prop_assert!(received.is_empty());
    }

    #[test]
    fn notifications_return(
        state in prop::sample::select(PeerState::ALL),
        leader in positive(),
        zxid in positive(),
        round in positive(),
        epoch: u32,
        config in data(),
        proposed in data(),
        hears in prop::option::of(vec(positive().prop_map(ServerId), 0..5)),
        apache in any::<bool>(),
    ) {
        let config = config.filter(|config| !config.is_empty());
        let proposed = proposed.filter(|text| !text.is_empty() && config.is_some() && !apache);
        let (leader, zxid, round, peer_epoch) = (ServerId(leader), Zxid(zxid), Round(round), Epoch(epoch));
        let dialect = if apache && config.is_some() { Dialect::Apache } else { Dialect::Own };
        let hears = hears.filter(|_| dialect == Dialect::Own);
        let notification =
            Notification { state, leader, zxid, round, peer_epoch, config, proposed, hears, dialect };
        prop_assert_eq!(Notification::decode(written(|w| notification.encode(w))), Ok(notification));
    }

    #[test]
    fn packets_return_in_any_pieces(
        kind in prop::sample::select(PacketType::ALL), zxid: i64, data in data(), piece in 1_usize..80
    ) {
        let packet = QuorumPacket::new(kind, zxid, data);
        let sent = written(|w| (0..3).for_each(|_| packet.encode(w)));
        let (mut received, mut packets) = (BytesMut::new(), Vec::new());
        for bytes in sent.chunks(piece) {
            received.extend_from_slice(bytes);
            while let Some(packet) = decode_packet(&mut received).unwrap() {
                packets.push(packet);
            }
        }
        prop_assert_eq!(packets, vec![packet; 3]);
        prop_assert!(received.is_empty());
    }

    #[test]
    fn what_packets_carry_returns(
        server in positive(), session in session(), number: i32, op: i32, long: i64, flag: bool,
        payload in bytes(),
        touches in vec((session(), any::<i32>()), 0..5),
    ) {
        let dialect = if flag { Dialect::Own } else { Dialect::Apache };
        let info = LearnerInfo { server: ServerId(server), protocol: number, config_version: long, dialect };
        returns(&info, LearnerInfo::encode, LearnerInfo::decode)?;
        let info = LeaderInfo { protocol: number, dialect };
        returns(&info, LeaderInfo::encode, LeaderInfo::decode)?;
        record_returns(&Revalidate { session, timeout_ms: number })?;
        record_returns(&Revalidated { session, valid: flag })?;
        let request = ForwardedRequest { session, cxid: number, op, payload, auth: Vec::new() };
        prop_assert_eq!(ForwardedRequest::decode(written(|w| request.encode(w)), Vec::new()), Ok(request));
        let touches = PingTouches(touches);
        prop_assert_eq!(PingTouches::decode(written(|w| touches.encode(w))), Ok(touches));
    }

    #[test]
    fn entries_return(header in txn_header(), txn in txn(), digest in txn_digest()) {
        let header = TxnHeader { kind: txn.kind(), ..header };
        let entry = Entry::new(header, txn, digest);
        prop_assert_eq!(Entry::decode(entry.bytes.clone()), Ok(entry));
    }

    #[test]
    fn logs_return_and_end_at_their_zeros(
        txns in vec((txn_header(), txn(), txn_digest()), 0..4), zeros in 0_usize..30
    ) {
        let entry = |(header, txn, digest): (TxnHeader, _, _)| {
            let txn: node_wire::txn::Txn = txn;
            Entry::new(TxnHeader { kind: txn.kind(), ..header }, txn, digest)
        };
        let entries: Vec<Entry> = txns.into_iter().map(entry).collect();
        let mut log = BytesMut::new();
        encode_header(&mut log);
        entries.iter().for_each(|entry| encode_record(entry, &mut log));
        let end = log.len();
        log.resize(end + zeros, 0);

        let mut reader = RecordReader::new(log.freeze()).unwrap();
        for entry in entries {
            prop_assert_eq!(reader.read_record(), Record::Entry(entry));
        }
        prop_assert_eq!(reader.read_record(), Record::End);
        prop_assert_eq!(reader.offset(), end);
    }

    #[test]
    fn file_names_return(zxid in zxid()) {
        for name in [FileName::Log(zxid), FileName::Snapshot(zxid)] {
            prop_assert_eq!(FileName::parse(&name.to_string()), Some(name));
        }
    }

    #[test]
    fn streams_return_in_any_pieces(image in image(), piece in 1_usize..300) {
        let mut whole = BytesMut::new();
        encode_stream(&image, &mut whole);

        let (mut encoder, mut decoder) = (StreamEncoder::new(&image), StreamDecoder::new(image.zxid));
        let (mut sent, mut received) = (BytesMut::new(), BytesMut::new());
        let mut decoded = None;
        let mut more = true;
        while more {
            let mut bytes = BytesMut::new();
            more = encoder.fill(&mut bytes, piece);
            sent.extend_from_slice(&bytes);
            received.extend_from_slice(&bytes);
            prop_assert!(decoded.is_none());
            decoded = decoder.feed(&mut received).unwrap();
        }
        drop(encoder);
        prop_assert_eq!(sent, whole);
        prop_assert_eq!(decoded, Some(image));
        prop_assert!(received.is_empty());
    }

    #[test]
    fn snapshot_files_return(
        image in image(), stat in stat_persisted(), digest in option::of((1_u64.., any::<i64>()))
    ) {
        record_returns(&stat)?;
        let digest = digest.map(|(zxid, digest)| ZxidDigest { zxid: Zxid(zxid), version: 2, digest });
        let mut whole = BytesMut::new();
        encode_file(&image, digest, &mut whole);

        let (mut encoder, mut pieces) = (FileEncoder::new(&image, digest), BytesMut::new());
        let mut more = true;
        while more {
            let mut bytes = BytesMut::new();
            more = encoder.fill(&mut bytes, 50);
            pieces.extend_from_slice(&bytes);
        }
        drop(encoder);
        prop_assert_eq!(&pieces, &whole);

        let zxid = image.zxid;
        prop_assert_eq!(decode_file(whole.freeze(), zxid), Ok(SnapshotFile { image, digest }));
    }
}
