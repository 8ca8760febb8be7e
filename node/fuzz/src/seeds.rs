//! The seeds: what members and clients really write, a file each, as each target takes it.
//!
//! They are made by the product's own encoders, so that a change of a format changes them too; what was found
//! by fuzzing lies beside them under other names, and is never written anew.

use std::fs;
use std::io;

use bytes::{Bytes, BytesMut};
use bytestring::ByteString;
use node_log::compress;
use node_wire::client::{
    Acl, AddWatchRequest, AuthPacket, CREATE_EPHEMERAL_SEQUENTIAL, CheckVersionRequest, ChildrenResponse,
    ConnectRequest, ConnectResponse, Create2Response, CreateRequest, CreateTtlRequest, DeleteRequest,
    GetAclResponse, GetDataResponse, Id, MultiOp, MultiRequest, MultiResponse, MultiResult, OpCode, PathOnly,
    PathWatch, ReconfigRequest, ReplyHeader, Request, SaslPacket, SetAclRequest, SetDataRequest, SetWatches,
    SetWatches2, Stat, SyncRequest, WatcherEvent, WatchesRequest, put_frame,
};
use node_wire::election::{Hello, Notification, PeerState};
use node_wire::ids::{Epoch, Round, ServerId, SessionId, Zxid};
use node_wire::jute::{Jute, Writer};
use node_wire::logfile::{Compression, encode_header, encode_record};
use node_wire::quorum::{
    Dialect, ForwardedRequest, LEARNER_PROTOCOL, LeaderInfo, LearnerInfo, PacketType, PingTouches,
    QuorumPacket, Revalidate,
};
use node_wire::snapshot::file::{ZxidDigest, encode_file};
use node_wire::snapshot::stream::encode_stream;
use node_wire::snapshot::{Image, NodeRecord, OPEN_ACL, StatPersisted};
use node_wire::txn::{Entry, Txn, TxnDigest, TxnHeader};

use crate::split::join;
use crate::{TARGETS, corpus};

/// A name within a corpus, and the input.
type Seed = (String, Vec<u8>);

/// Names and contents, as the target `directory` takes them.
type Files<'a> = Vec<(&'a [u8], &'a [u8])>;

/// Writes all of them, and answers how many.
///
/// # Errors
/// When a file can't be written.
pub fn write_all() -> io::Result<usize> {
    let mut count = 0;
    for target in TARGETS {
        let folder = corpus(target.name);
        fs::create_dir_all(&folder)?;
        for (name, input) in seeds_of(target.name) {
            fs::write(folder.join(format!("seed-{name}")), input)?;
            count += 1;
        }
    }
    Ok(count)
}

fn seeds_of(target: &str) -> Vec<Seed> {
    match target {
        "requests" => requests_seeds(),
        "replies" => replies(),
        "session" => session(),
        "packets" => packets_seeds(),
        "stream" => images().into_iter().map(|(name, image)| (name, stream_of(&image))).collect(),
        "peers" => peers(),
        "election" => election(),
        "transactions" => entries().iter().map(|entry| (kind_of(entry), entry.bytes.to_vec())).collect(),
        "log" => log(),
        "snapshot" => snapshot(),
        "directory" => directory(),
        "config" => config(),
        "digest" => digest(),
        "jaas" => jaas(),
        "jks" => jks(),
        _ => Vec::new(),
    }
}

fn bytes(write: impl FnOnce(&mut Writer<'_>)) -> Bytes {
    let mut buffer = BytesMut::new();
    write(&mut Writer::new(&mut buffer));
    buffer.freeze()
}

fn of<T: Jute>(value: &T) -> Bytes {
    bytes(|w| value.encode(w))
}

fn string(text: &str) -> ByteString {
    ByteString::from(text)
}

fn acl() -> Vec<Acl> {
    vec![Acl::world_anyone()]
}

fn secret() -> Vec<Acl> {
    let id = node_wire::credentials::digest_identity(b"ann:secret");
    vec![
        Acl { perms: 31, scheme: string("digest"), id },
        Acl { perms: 1, scheme: string("ip"), id: string("127.0.0.0/8") },
        Acl { perms: 31, scheme: string("auth"), id: ByteString::new() },
    ]
}

fn data() -> Option<Bytes> {
    Some(Bytes::from_static(b"data"))
}

fn connect() -> Bytes {
    bytes(|w| {
        let request = ConnectRequest {
            protocol_version: 0,
            last_zxid_seen: Zxid::ZERO,
            timeout_ms: 10_000,
            session: SessionId::NONE,
            password: Bytes::from_static(&[0; 16]),
            read_only: Some(false),
        };
        request.encode(w);
    })
}

/// One body of each kind.
fn bodies() -> Vec<(OpCode, Bytes)> {
    [bodies_about_nodes(), other_bodies()].concat()
}

fn bodies_about_nodes() -> Vec<(OpCode, Bytes)> {
    let path = || string("/a");
    let create = CreateRequest { path: path(), data: data(), acl: acl(), flags: 0 };
    let sequential = CreateRequest {
        path: string("/a/s-"),
        data: None,
        acl: secret(),
        flags: CREATE_EPHEMERAL_SEQUENTIAL,
    };
    let ttl = CreateTtlRequest { path: string("/t"), data: data(), acl: acl(), flags: 5, ttl_ms: 1000 };
    let delete = DeleteRequest { path: path(), version: -1 };
    let set = SetDataRequest { path: path(), data: data(), version: 0 };
    let check = CheckVersionRequest { path: path(), version: 1 };
    let look = PathWatch { path: path(), watch: true };
    let multi = MultiRequest {
        ops: vec![
            MultiOp::Create(create.clone()),
            MultiOp::Create2(sequential.clone()),
            MultiOp::CreateTtl(ttl.clone()),
            MultiOp::SetData(set.clone()),
            MultiOp::Check(check.clone()),
            MultiOp::Delete(delete),
        ],
    };
    let multi_read =
        MultiRequest { ops: vec![MultiOp::GetData(look.clone()), MultiOp::GetChildren(look.clone())] };
    vec![
        (
            OpCode::Auth,
            of(&AuthPacket { kind: 0, scheme: string("digest"), auth: Some("ann:secret".into()) }),
        ),
        (OpCode::Create, of(&create)),
        (OpCode::Create2, of(&sequential)),
        (
            OpCode::CreateContainer,
            of(&CreateRequest { path: string("/c"), data: None, acl: acl(), flags: 4 }),
        ),
        (OpCode::CreateTtl, of(&ttl)),
        (OpCode::Exists, of(&look)),
        (OpCode::GetData, of(&look)),
        (OpCode::SetData, of(&set)),
        (OpCode::GetAcl, of(&PathOnly { path: path() })),
        (OpCode::SetAcl, of(&SetAclRequest { path: path(), acl: secret(), version: -1 })),
        (OpCode::GetChildren, of(&look)),
        (OpCode::GetChildren2, of(&look)),
        (OpCode::Sync, of(&SyncRequest { path: path() })),
        (OpCode::Ping, Bytes::new()),
        (OpCode::Check, of(&check)),
        (OpCode::Multi, bytes(|w| multi.encode(w))),
        (OpCode::MultiRead, bytes(|w| multi_read.encode(w))),
        (
            OpCode::Reconfig,
            of(&ReconfigRequest {
                joining: Some(string("server.4=h:1:2:participant;3")),
                leaving: Some(string("2,3")),
                members: None,
                config_version: -1,
            }),
        ),
    ]
}

/// The same for watches, and for what is about a session as a whole.
fn other_bodies() -> Vec<(OpCode, Bytes)> {
    let path = || string("/a");
    let only = PathOnly { path: string("/") };
    let watches =
        |paths: &[&str]| -> Vec<ByteString> { paths.iter().map(|path| ByteString::from(*path)).collect() };
    vec![
        (OpCode::AddWatch, of(&AddWatchRequest { path: path(), mode: 1 })),
        (OpCode::CheckWatches, of(&WatchesRequest { path: path(), kind: 3 })),
        (OpCode::RemoveWatches, of(&WatchesRequest { path: path(), kind: 2 })),
        (
            OpCode::SetWatches,
            of(&SetWatches {
                relative_zxid: Zxid(5),
                data_watches: watches(&["/a", "/b"]),
                exist_watches: watches(&["/x"]),
                child_watches: watches(&["/"]),
            }),
        ),
        (
            OpCode::SetWatches2,
            of(&SetWatches2 {
                relative_zxid: Zxid(5),
                data_watches: watches(&["/a"]),
                persistent_recursive_watches: watches(&["/", "/a"]),
                ..SetWatches2::default()
            }),
        ),
        (OpCode::Sasl, of(&SaslPacket { token: Some(Bytes::new()) })),
        (OpCode::WhoAmI, Bytes::new()),
        (OpCode::GetEphemerals, of(&only)),
        (OpCode::GetAllChildrenNumber, of(&only)),
        (OpCode::Delete, of(&DeleteRequest { path: path(), version: -1 })),
        (OpCode::CloseSession, Bytes::new()),
    ]
}

fn request_frames() -> Vec<(OpCode, Bytes)> {
    let numbered = bodies().into_iter().zip(1..);
    numbered
        .map(|((op, body), xid)| (op, bytes(|w| Request { xid, op: op.code(), body }.encode(w))))
        .collect()
}

fn framed<'a>(frames: impl IntoIterator<Item = &'a Bytes>) -> Vec<u8> {
    let mut stream = BytesMut::new();
    for frame in frames {
        put_frame(&mut stream, |w| w.raw(frame));
    }
    stream.to_vec()
}

fn requests_seeds() -> Vec<Seed> {
    let frames = request_frames();
    let mut seeds: Vec<Seed> = frames
        .iter()
        .map(|(op, frame)| (format!("{op:?}").to_lowercase(), framed([&connect(), frame])))
        .collect();
    let all = [connect()].into_iter().chain(frames.into_iter().map(|(_, frame)| frame));
    seeds.push(("conversation".to_owned(), framed(&all.collect::<Vec<_>>())));
    for (index, op) in OpCode::ALL.iter().enumerate() {
        // The number of the operation, as the target finds it.
        let base = (128..=255_usize).find(|selector| selector % OpCode::ALL.len() == index);
        let selector = base.and_then(|selector| u8::try_from(selector).ok());
        if let (Some(selector), Some((_, body))) =
            (selector, bodies().into_iter().find(|(other, _)| other == op))
        {
            seeds.push((format!("body-{op:?}").to_lowercase(), [&[selector][..], &body].concat()));
        }
    }
    seeds
}

fn replies() -> Vec<Seed> {
    let connected = bytes(|w| {
        let response = ConnectResponse {
            protocol_version: 0,
            timeout_ms: 10_000,
            session: SessionId(0x100_0000_0001),
            password: Bytes::from_static(&[7; 16]),
            read_only: Some(false),
        };
        response.encode(w);
    });
    let stat = Stat { czxid: Zxid(4), version: 3, ..Stat::default() };
    let results = vec![
        MultiResult::Create { path: string("/a") },
        MultiResult::Create2 { path: string("/b"), stat },
        MultiResult::SetData { stat },
        MultiResult::Check,
        MultiResult::Delete,
        MultiResult::GetData { data: data(), stat },
        MultiResult::GetChildren { children: vec![string("x"), string("y")] },
        MultiResult::Error { err: -101 },
    ];
    let bodies = [
        ("event", of(&WatcherEvent { kind: 3, state: 3, path: string("/a") })),
        ("create2", of(&Create2Response { path: string("/a0000000001"), stat })),
        ("data", of(&GetDataResponse { data: data(), stat })),
        ("acl", of(&GetAclResponse { acl: secret(), stat })),
        ("children", of(&ChildrenResponse { children: vec![string("x"), string("yy")] })),
        ("multi", bytes(|w| MultiResponse { results }.encode(w))),
        ("nothing", Bytes::new()),
    ];
    let replies = bodies.into_iter().zip(1..).map(|((name, body), xid)| {
        let reply = bytes(|w| {
            ReplyHeader { xid, zxid: Zxid(9), err: 0 }.encode(w);
            w.raw(&body);
        });
        (name.to_owned(), framed([&connected, &reply]))
    });
    replies.collect()
}

fn session() -> Vec<Seed> {
    let frames: Vec<Bytes> = request_frames().into_iter().map(|(_, frame)| frame).collect();
    let pieces = |frames: &[Bytes], who: u8| -> Vec<Vec<u8>> {
        frames.iter().map(|frame| [&[who][..], frame].concat()).collect()
    };
    let joined = |pieces: &[Vec<u8>]| join(pieces.iter().map(Vec::as_slice));
    let hello = vec![[&[0x80][..], &connect()].concat()];
    let one = [hello.clone(), pieces(&frames, 0)].concat();
    let halves = frames.split_at(frames.len() / 2);
    let two = [hello.clone(), pieces(halves.0, 0x40), hello.clone(), pieces(halves.1, 1)].concat();
    let mut seeds = vec![("one".to_owned(), joined(&one)), ("two".to_owned(), joined(&two))];
    // In pairs, so that each request meets what another has left behind.
    for (index, pair) in frames.chunks(2).enumerate() {
        let all = [hello.clone(), pieces(&frames[..3], 0), pieces(pair, 0)].concat();
        seeds.push((format!("pair-{index}"), joined(&all)));
    }
    seeds
}

fn entries() -> Vec<Entry> {
    let body = |txn: &Txn| (txn.kind(), bytes(|w| txn.encode(w)));
    let create = |path: &str| Txn::Create {
        path: string(path),
        data: data(),
        acl: acl(),
        ephemeral: false,
        parent_cversion: 1,
    };
    let (path, data, acl) = (string("/a"), data(), secret());
    let txns = vec![
        Txn::CreateSession { timeout_ms: 10_000 },
        create("/a"),
        Txn::CreateContainer { path: string("/c"), data: data.clone(), acl: acl.clone(), parent_cversion: 2 },
        Txn::CreateTtl { path: string("/t"), data: None, acl: acl.clone(), parent_cversion: 3, ttl_ms: 7000 },
        Txn::SetData { path: path.clone(), data, version: 1 },
        Txn::SetAcl { path: path.clone(), acl, version: 1 },
        Txn::Check { path: path.clone(), version: 1 },
        Txn::Error { code: -103 },
        Txn::Multi { txns: vec![body(&create("/m")), body(&Txn::Delete { path: string("/m") })] },
        Txn::Delete { path },
        Txn::CloseSession { paths: Some(vec![string("/e")]) },
    ];
    let digest = TxnDigest { version: 2, digest: 12_345 };
    txns.into_iter()
        .zip(1..)
        .map(|(txn, counter)| {
            let zxid = Zxid::new(Epoch(1), counter);
            let session = SessionId(0x100_0000_0001);
            let header = TxnHeader { session, cxid: 1, zxid, time_ms: 1_700_000_000_000, kind: txn.kind() };
            Entry::new(header, txn, counter.is_multiple_of(2).then_some(digest))
        })
        .collect()
}

fn kind_of(entry: &Entry) -> String {
    let op = OpCode::from_code(entry.header.kind);
    op.map_or_else(|| "other".to_owned(), |op| format!("{op:?}").to_lowercase())
}

fn images() -> Vec<(String, Image)> {
    let node = |path: &str, acl: i64| NodeRecord {
        path: string(path),
        data: data(),
        acl,
        stat: StatPersisted { czxid: Zxid(3), ..StatPersisted::default() },
    };
    let nodes = vec![node("/", OPEN_ACL), node("/a", 1), node("/a/b", OPEN_ACL)];
    let sessions = vec![(SessionId(9), 4000), (SessionId(10), 10_000)];
    let whole = Image { zxid: Zxid::new(Epoch(1), 3), sessions, acls: vec![(1, secret())], nodes };
    vec![("empty".to_owned(), Image::default()), ("tree".to_owned(), whole)]
}

fn stream_of(image: &Image) -> Vec<u8> {
    let mut stream = BytesMut::new();
    encode_stream(image, &mut stream);
    stream.to_vec()
}

fn packets() -> Vec<(&'static str, QuorumPacket)> {
    let packet = |kind, zxid: u64, data| QuorumPacket::new(kind, zxid.cast_signed(), data);
    let learner = LearnerInfo {
        server: ServerId(2),
        protocol: LEARNER_PROTOCOL,
        config_version: 0,
        dialect: Dialect::Own,
    };
    let leader = LeaderInfo { protocol: LEARNER_PROTOCOL, dialect: Dialect::Own };
    let request = ForwardedRequest {
        session: SessionId(9),
        cxid: 3,
        op: OpCode::Create.code(),
        payload: bodies().swap_remove(1).1,
        auth: vec![Id { scheme: string("ip"), id: string("127.0.0.1") }],
    };
    let touches = PingTouches(vec![(SessionId(9), 4000)]);
    let epoch = 1 << 32;
    let mut all = vec![
        ("followerinfo", packet(PacketType::FollowerInfo, 0, Some(bytes(|w| learner.encode(w))))),
        ("observerinfo", packet(PacketType::ObserverInfo, 0, Some(bytes(|w| learner.encode(w))))),
        ("leaderinfo", packet(PacketType::LeaderInfo, 2 * epoch, Some(bytes(|w| leader.encode(w))))),
        ("ackepoch", packet(PacketType::AckEpoch, epoch, Some(bytes(|w| w.int(1))))),
        ("diff", packet(PacketType::Diff, epoch, None)),
        ("trunc", packet(PacketType::Trunc, epoch, None)),
        ("snap", packet(PacketType::Snap, epoch, None)),
        ("newleader", packet(PacketType::NewLeader, 2 * epoch, None)),
        ("ack", packet(PacketType::Ack, 2 * epoch, None)),
        ("uptodate", packet(PacketType::UpToDate, epoch, None)),
        ("ping", packet(PacketType::Ping, 5, Some(bytes(|w| touches.encode(w))))),
        ("sync", packet(PacketType::Sync, 0, None)),
        ("request", request.into_packet()),
        (
            "revalidate",
            packet(
                PacketType::Revalidate,
                0,
                Some(of(&Revalidate { session: SessionId(9), timeout_ms: 4000 })),
            ),
        ),
    ];
    for entry in entries().into_iter().take(3) {
        let zxid = entry.zxid().0;
        all.push(("proposal", packet(PacketType::Proposal, zxid, Some(entry.bytes.clone()))));
        all.push(("inform", packet(PacketType::Inform, zxid, Some(entry.bytes))));
        all.push(("commit", packet(PacketType::Commit, zxid, None)));
    }
    all
}

fn packets_seeds() -> Vec<Seed> {
    let encoded = |packet: &QuorumPacket| bytes(|w| packet.encode(w)).to_vec();
    let mut seeds: Vec<Seed> =
        packets().iter().map(|(name, packet)| ((*name).to_owned(), encoded(packet))).collect();
    seeds.push(("all".to_owned(), packets().iter().flat_map(|(_, packet)| encoded(packet)).collect()));
    seeds
}

fn votes() -> Vec<(String, Notification)> {
    let vote = |state, leader, config: Option<Bytes>| Notification {
        state,
        leader: ServerId(leader),
        zxid: Zxid::new(Epoch(1), 1),
        round: Round(2),
        peer_epoch: Epoch(1),
        dialect: if config.is_some() { Dialect::Apache } else { Dialect::Own },
        config,
        proposed: None,
        hears: None,
    };
    let config =
        "server.1=127.0.0.1:2888:3888:participant\nserver.2=127.0.0.1:2889:3889:participant\nversion=0";
    let states =
        [PeerState::Looking, PeerState::Following, PeerState::Leading, PeerState::Observing].into_iter();
    let mut all: Vec<_> =
        states.map(|state| (format!("{state:?}").to_lowercase(), vote(state, 3, None))).collect();
    let hears = Some(vec![ServerId(1), ServerId(3)]);
    all.push(("hearing".to_owned(), Notification { hears, ..vote(PeerState::Looking, 3, None) }));
    all.push(("java".to_owned(), vote(PeerState::Looking, 2, Some(Bytes::from_static(config.as_bytes())))));
    all
}

fn election() -> Vec<Seed> {
    let hello = |addresses: &[&str]| {
        let addresses = addresses.iter().map(|host| ((*host).to_owned(), 3888)).collect();
        bytes(|w| Hello { server: ServerId(2), addresses }.encode(w)).to_vec()
    };
    let vote = |vote: &Notification| framed([&bytes(|w| vote.encode(w))]);
    let mut seeds: Vec<Seed> = votes()
        .iter()
        .map(|(name, notification)| {
            (name.clone(), [hello(&["127.0.0.1"]), vote(notification), vote(notification)].concat())
        })
        .collect();
    seeds.push(("two-addresses".to_owned(), hello(&["127.0.0.1", "::1"])));
    seeds.push(("old".to_owned(), 2_u64.to_be_bytes().to_vec()));
    seeds
}

fn peers() -> Vec<Seed> {
    let mut seeds = Vec::new();
    let tick = vec![0, 200];
    let vote = |from: u8, vote: &Notification| [&[1, from][..], &bytes(|w| vote.encode(w))].concat();
    let say = |conn: u8, packet: &QuorumPacket| [&[2, conn][..], &bytes(|w| packet.encode(w))].concat();
    for role in 0..3_u8 {
        let mut add = |name: &str, pieces: Vec<Vec<u8>>| {
            let joined = join(pieces.iter().map(Vec::as_slice));
            seeds.push((format!("{role}-{name}"), [&[role][..], &joined].concat()));
        };
        for (name, notification) in votes() {
            let pieces = vec![
                vec![8, 3],
                vec![8, 1],
                vote(3, &notification),
                vote(1, &notification),
                tick.clone(),
                vec![6, 0],
            ];
            add(&name, pieces);
        }
        for (name, packet) in packets() {
            add(name, vec![vec![4, 0], say(0, &packet), tick.clone(), say(1, &packet)]);
        }
        let following = vec![
            vec![8, 3],
            vec![8, 1],
            vote(3, &votes()[2].1),
            vote(1, &votes()[1].1),
            tick.clone(),
            vec![6, 0],
            say(0, &packets()[2].1),
            say(0, &packets()[6].1),
            [&[3, 0][..], &(1_u64 << 32).to_be_bytes(), &stream_of(&images()[1].1)].concat(),
            say(0, &packets()[7].1),
            say(0, &packets()[9].1),
            [&[10, 0x80][..], &connect()].concat(),
        ];
        add("history", following);
    }
    seeds
}

fn log_file() -> Vec<u8> {
    let mut file = BytesMut::new();
    encode_header(&mut file);
    for entry in entries() {
        encode_record(&entry, &mut file);
    }
    file.extend_from_slice(&[0; 40]);
    file.to_vec()
}

fn log() -> Vec<Seed> {
    let entries = entries();
    let joined = join(entries.iter().map(|entry| &entry.bytes[..]));
    vec![
        ("file".to_owned(), [&[0][..], &log_file()].concat()),
        ("entries".to_owned(), [&[1][..], &joined].concat()),
        ("one".to_owned(), [&[1][..], &join([&entries[1].bytes[..]])].concat()),
    ]
}

fn unsealed(image: &Image) -> Vec<u8> {
    let mut stream = stream_of(image);
    // Without the signature, which is the wire's alone.
    stream.truncate(stream.len() - 14);
    stream
}

fn snapshot_file(image: &Image, digest: bool) -> Vec<u8> {
    let mut file = BytesMut::new();
    let digest = digest.then_some(ZxidDigest { zxid: image.zxid, version: 2, digest: 77 });
    encode_file(image, digest, &mut file);
    file.to_vec()
}

fn snapshot() -> Vec<Seed> {
    let mut seeds = Vec::new();
    for (name, image) in images() {
        seeds.push((format!("body-{name}"), [&[1][..], &unsealed(&image)].concat()));
        seeds.push((format!("file-{name}"), [&[0][..], &snapshot_file(&image, false)].concat()));
        for (selector, method) in (2..).zip(Compression::ALL) {
            let packed = compress(&snapshot_file(&image, true), method);
            seeds.push((format!("{}-{name}", method.name()), [&[selector][..], &packed].concat()));
        }
        seeds.push((format!("digest-{name}"), [&[0][..], &snapshot_file(&image, true)].concat()));
    }
    seeds
}

fn directory() -> Vec<Seed> {
    let (entries, images) = (entries(), images());
    let tree = unsealed(&images[1].1);
    let all = join(entries.iter().map(|entry| &entry.bytes[..]));
    let behind = join(entries[3..].iter().map(|entry| &entry.bytes[..]));
    let file = log_file();
    let pairs: Vec<(&str, Files<'_>)> = vec![
        ("new", vec![]),
        ("epochs", vec![(&[0], b"1"), (&[1], b"1")]),
        ("log", vec![(&[0], b"1"), (&[1], b"1"), (&[2, 0x11], &all)]),
        ("snapshot", vec![(&[0], b"2"), (&[1], b"1"), (&[3, 0x13], &tree), (&[2, 0x14], &behind)]),
        ("gz", vec![(&[0], b"2"), (&[1], b"1"), (&[7, 0x13], &tree), (&[2, 0x14], &behind)]),
        ("torn", vec![(&[0], b"1"), (&[1], b"1"), (&[4, 0x11], &file[..file.len() - 60])]),
        ("install", vec![(&[0], b"2"), (&[1], b"1"), (&[6, 0x13], &tree), (&[2, 0x11], &all)]),
        ("temporary", vec![(b"snapshot.5.tmp", b"half"), (&[0], b"0\n"), (&[1], b"0")]),
    ];
    let joined = pairs.into_iter().map(|(name, pairs)| {
        (name.to_owned(), join(pairs.into_iter().flat_map(|(name, content)| [name, content])))
    });
    joined.collect()
}

fn config() -> Vec<Seed> {
    let files = [
        (
            "three",
            "tickTime=2000\ninitLimit=10\nsyncLimit=5\ndataDir=/d\nclientPort=2181\n\
                   server.1=a:2888:3888\nserver.2=b:2888:3888:observer;2181\nserver.3=[::1]:2888:3888\n",
        ),
        (
            "limits",
            "maxClientCnxns=0\nmaxCnxns=9\njute.maxbuffer=1048575\nsnapCount=5\npreAllocSize=64\n\
                    zookeeper.txnLogSizeLimitInKb=-1\nconnection_throttle_tokens=5\nminSessionTimeout=-1\n",
        ),
        (
            "operators",
            "4lw.commands.whitelist=*, ruok\nadmin.serverPort=8080\nadmin.enableServer=yes\n\
                       metricsProvider.httpPort=7000\nautopurge.purgeInterval=1\npeerTimeout=250ms\n",
        ),
        ("odd", "# a comment\n! another\nunknown=1\nclientprot=2181\nskipACL=no\ndynamicConfigFile=/x\n"),
        ("refused", "secureClientPort=2281\nssl.quorum.keyStore.location=/k\nreconfigEnabled=true\n"),
    ];
    files.map(|(name, text)| (name.to_owned(), text.as_bytes().to_vec())).to_vec()
}

/// Responses of Java's client and of kazoo to the challenge that the target makes, with a wrong password and
/// with the right one.
fn digest() -> Vec<Seed> {
    let response = |user: &str, digest: &str, rest: &str| {
        format!(
            "charset=utf-8,username=\"{user}\",realm=\"zk-sasl-md5\",nonce=\"4f6a61\",nc=00000001,\
             cnonce=\"OA6M\",\
             digest-uri=\"zookeeper/zk-sasl-md5\",maxbuf=65536,response={digest},qop=auth{rest}"
        )
    };
    let wrong = "00112233445566778899aabbccddeeff";
    let texts = [
        ("right", response("ann", "6ddd5885a04f9a8d47d42132a42e2e40", "")),
        ("wrong", response("ann", wrong, "")),
        ("nobody", response("bob", wrong, "")),
        ("latin", response("ann", wrong, "").replace("charset=utf-8,", "")),
        ("other-name", response("ann", wrong, ",authzid=\"bob\"")),
        ("quoted", response("a\\\"n\\\\n", wrong, "")),
    ];
    texts.map(|(name, text)| (name.to_owned(), join([text.as_bytes()]))).to_vec()
}

fn jaas() -> Vec<Seed> {
    let files = [
        (
            "users",
            "Server {\n    org.apache.zookeeper.server.auth.DigestLoginModule required\n    user_ann=\"her \
             password\"\n    user_bob=\"his\";\n};\n",
        ),
        (
            "odd",
            "# a comment\nServer{a.B optional x=1 y=\"\\\"\\\\\"; c.D requisite;};/* more */ Client { e.F \
                sufficient k=v; };\n//",
        ),
        ("refused", "Server { a.B required x=\"${user.home}\"; };"),
    ];
    files.map(|(name, text)| (name.to_owned(), text.as_bytes().to_vec())).to_vec()
}

/// The digest behind them is the target's.
fn jks() -> Vec<Seed> {
    let store = |entries: &[&[u8]]| {
        let mut bytes = vec![0xfe, 0xed, 0xfe, 0xed, 0, 0, 0, 2, 0, 0, 0];
        bytes.push(u8::try_from(entries.len()).expect("few entries"));
        for entry in entries {
            bytes.extend_from_slice(entry);
        }
        bytes
    };
    let trusted: &[u8] = b"\0\0\0\x02\0\x01a\0\0\0\0\0\0\0\0\0\x05X.509\0\0\0\x030\x01\0";
    // Sun's protector, and a salt, a hidden key of three bytes and their digest, which are nobody's.
    let mut hidden =
        b"\x30\x3d\x30\x0e\x06\x0a\x2b\x06\x01\x04\x01\x2a\x02\x11\x01\x01\x05\0\x04\x2b".to_vec();
    hidden.extend_from_slice(&[7; 43]);
    let mut key = b"\0\0\0\x01\0\x01k\0\0\0\0\0\0\0\0\0\0\0".to_vec();
    key.push(u8::try_from(hidden.len()).expect("short"));
    key.extend_from_slice(&hidden);
    key.extend_from_slice(b"\0\0\0\x01\0\x05X.509\0\0\0\x030\x01\0");
    let files =
        [("empty", store(&[])), ("trusted", store(&[trusted, trusted])), ("key", store(&[&key, trusted]))];
    files.map(|(name, bytes)| (name.to_owned(), join([&b"changeit"[..], &bytes]))).to_vec()
}
