//! What may be large, each at its limit.

use bytes::{Bytes, BytesMut};
use bytestring::ByteString;
use node_core::io::{ClientId, Input, Recovered};
use node_core::{ClientRules, JOURNAL_ENTRIES, Member, MemberView, Reconfiguration};
use node_wire::client::{
    Acl, CheckVersionRequest, CreateRequest, DeleteRequest, MultiOp, MultiRequest, OpCode, PathOnly,
    PathWatch, ReconfigRequest, Request, SetDataRequest, SetWatches2, WatchesRequest, put_frame, take_frame,
};
use node_wire::ids::{Epoch, ServerId, SessionId, Zxid};
use node_wire::jute::{Writer, encode};
use node_wire::membership::MAX_SERVERS;
use node_wire::quorum::{PacketType, QuorumPacket, decode_packet_within};
use node_wire::snapshot::Image;
use node_wire::snapshot::stream::{StreamDecoder, encode_stream};
use node_wire::txn::{Entry, Txn, TxnHeader};

use crate::Longest;
use crate::world::{ABANDONED, LARGE, USUAL, World, child, found, image, many, timed};

type Case = fn() -> Longest;

pub(crate) const CASES: &[(&str, Case)] = &[
    ("a session with 150,000 ephemerals ends", || abandoned(&many(150_000, |_| ABANDONED))),
    ("a session with a million ephemerals ends", || abandoned(&many(1_000_000, |_| ABANDONED))),
    ("100,000 sessions end at once", || abandoned(&many(0, |_| ABANDONED).and_sessions(100_000))),
    ("100,000 sessions with an ephemeral each end at once", || abandoned(&many(100_000, session))),
    ("multi of 100,000 creates", || multi(usize::MAX, 100_000, create)),
    ("multi of creates, 1 MiB", || multi(USUAL, u64::MAX, create)),
    ("multi of creates, 16 MiB", || multi(LARGE, u64::MAX, create)),
    ("multi of deletes, 1 MiB", || multi(USUAL, u64::MAX, delete)),
    ("multi of deletes, 16 MiB", || multi(LARGE, u64::MAX, delete)),
    ("multi of setData, 1 MiB", || multi(USUAL, u64::MAX, set)),
    ("multi of setData, 16 MiB", || multi(LARGE, u64::MAX, set)),
    ("multi of checks, 1 MiB", || multi(USUAL, u64::MAX, check)),
    ("multi of checks, 16 MiB", || multi(LARGE, u64::MAX, check)),
    ("multi of 5,000 creates below a znode of 1 MB", below_much_data),
    ("multi of creates, 16 MiB, decoded in the ports", decoded_multi),
    ("reconfig to 1,024 servers", reconfigured),
    ("setWatches, 1 MiB", || set_watches(USUAL)),
    ("setWatches, 16 MiB", || set_watches(LARGE)),
    ("getChildren of a million", || read(&PLAIN_MILLION, OpCode::GetChildren2)),
    ("getAllChildrenNumber of a million", || read(&PLAIN_MILLION, OpCode::GetAllChildrenNumber)),
    ("multiRead of a hundred times a million children", multi_read),
    ("100,000 watches of one client fire at once", || watched(100_000, &many(100_000, |_| ABANDONED))),
    ("100,000 clients watch one znode", many_watch_one),
    ("removeWatches by a client with a million", removed_watch),
    ("a connection with a million watches breaks", || left_behind(1_000_000)),
    ("wchp of a million watches", look_at_watches),
    ("dump of 100,000 sessions", look_at_sessions),
    ("a SNAP of a million znodes is taken over", snap),
    ("a SNAP of a million znodes, decoded in the port", decoded_snap),
    ("a DIFF of the 4,096 transactions that are kept", diff),
    ("a TRUNC of 100,000 transactions", trunc),
    ("a start with a million znodes and 100,000 logged", || logged(&PLAIN_MILLION(), 100_000)),
    ("a start with a million logged", || logged(&many(0, |_| SessionId::NONE), 1_000_000)),
];

/// A million znodes that stay.
const PLAIN_MILLION: fn() -> Image = || many(1_000_000, |_| SessionId::NONE);

/// Session by session.
fn session(number: u64) -> SessionId {
    SessionId(ABANDONED.0 + number.cast_signed())
}

trait WithSessions {
    fn and_sessions(self, count: u64) -> Self;
}

impl WithSessions for Image {
    fn and_sessions(mut self, count: u64) -> Self {
        self.sessions = (0..count).map(|number| (session(number), 4000)).collect();
        self
    }
}

/// Nobody comes for the sessions of a tree.
fn abandoned(image: &Image) -> Longest {
    let mut world = World::serving(image);
    world.until(|world| world.members.values().all(|member| member.tree().tree().counts().sessions == 0));
    world.longest()
}

fn path(number: u64) -> ByteString {
    ByteString::from(child(number))
}

fn create(number: u64) -> MultiOp {
    let path = ByteString::from(format!("/many/new{number:07}"));
    MultiOp::Create(CreateRequest {
        path,
        data: Some(Bytes::new()),
        acl: vec![Acl::world_anyone()],
        flags: 0,
    })
}

fn delete(number: u64) -> MultiOp {
    MultiOp::Delete(DeleteRequest { path: path(number), version: -1 })
}

fn set(number: u64) -> MultiOp {
    MultiOp::SetData(SetDataRequest { path: path(number), data: Some(Bytes::from_static(b"x")), version: -1 })
}

fn check(number: u64) -> MultiOp {
    MultiOp::Check(CheckVersionRequest { path: path(number), version: -1 })
}

fn body(ops: Vec<MultiOp>) -> Bytes {
    encode(|w| MultiRequest { ops }.encode(w))
}

/// How many operations fit into a request of these bytes, `count` at most.
fn fit(bytes: usize, count: u64, op: fn(u64) -> MultiOp) -> u64 {
    let one = body(vec![op(0)]).len() - body(Vec::new()).len();
    count.min(u64::try_from((bytes.min(LARGE) - 64) / one).unwrap_or(u64::MAX))
}

/// A multi of as many.
fn multi(bytes: usize, count: u64, op: fn(u64) -> MultiOp) -> Longest {
    let count = fit(bytes, count, op);
    let there = if matches!(op(0), MultiOp::Create(_)) { 0 } else { count };
    let mut world = World::serving(&many(there, |_| SessionId::NONE));
    let follower = world.follower();
    let client = world.client(follower, 40_000);
    world.forget();
    world.ask(follower, client, OpCode::Multi, body((0..count).map(op).collect()));
    world.longest()
}

fn below_much_data() -> Longest {
    let data = Bytes::from(vec![b'x'; 1_000_000]);
    let mut world = World::serving(&image([("/many".to_owned(), data, SessionId::NONE)]));
    let follower = world.follower();
    let client = world.client(follower, 40_000);
    world.forget();
    world.ask(follower, client, OpCode::Multi, body((0..5000).map(create).collect()));
    world.longest()
}

fn set_watches(bytes: usize) -> Longest {
    let count = u64::try_from(bytes / (4 + child(0).len())).unwrap_or(0).min((1 << 20) - 1);
    let mut world = World::serving(&PLAIN_MILLION());
    let follower = world.follower();
    let client = world.client(follower, 40_000);
    world.forget();
    leave_watches(&mut world, follower, client, count);
    world.longest()
}

fn leave_watches(world: &mut World, at: ServerId, client: ClientId, count: u64) {
    let seen = Zxid::new(Epoch(1), 1);
    let data_watches = (0..count).map(path).collect();
    let watches = SetWatches2 { relative_zxid: seen, data_watches, ..SetWatches2::default() };
    world.ask(at, client, OpCode::SetWatches2, encode(|w| watches.encode(w)));
}

fn read(image: &fn() -> Image, op: OpCode) -> Longest {
    let mut world = World::serving(&image());
    let follower = world.follower();
    let client = world.client(follower, 40_000);
    world.forget();
    let path = ByteString::from_static("/many");
    let body = match op {
        OpCode::GetAllChildrenNumber => encode(|w| PathOnly { path }.encode(w)),
        _ => encode(|w| PathWatch { path, watch: false }.encode(w)),
    };
    world.ask(follower, client, op, body);
    world.longest()
}

fn multi_read() -> Longest {
    let mut world = World::serving(&PLAIN_MILLION());
    let follower = world.follower();
    let client = world.client(follower, 40_000);
    world.forget();
    let look = PathWatch { path: ByteString::from_static("/many"), watch: false };
    let ops = (0..100).map(|_| MultiOp::GetChildren(look.clone())).collect();
    world.ask(follower, client, OpCode::MultiRead, body(ops));
    world.longest()
}

fn watched(count: u64, image: &Image) -> Longest {
    let mut world = World::serving(image);
    let follower = world.follower();
    let client = world.client(follower, 40_000);
    leave_watches(&mut world, follower, client, count);
    world.forget();
    world.until(|world| world.members.values().all(|member| member.tree().tree().counts().ephemerals == 0));
    world.longest()
}

fn many_watch_one() -> Longest {
    let mut world = World::serving(&many(1, |_| SessionId::NONE));
    let follower = world.follower();
    for _ in 0..100_000 {
        let client = world.client(follower, 40_000);
        let request = PathWatch { path: path(0), watch: true };
        world.ask(follower, client, OpCode::GetData, encode(|w| request.encode(w)));
    }
    let client = world.client(follower, 40_000);
    world.forget();
    let request = SetDataRequest { path: path(0), data: None, version: -1 };
    world.ask(follower, client, OpCode::SetData, encode(|w| request.encode(w)));
    world.longest()
}

fn left_behind(count: u64) -> Longest {
    let mut world = World::serving(&PLAIN_MILLION());
    let follower = world.follower();
    let client = world.client(follower, 40_000);
    leave_watches(&mut world, follower, client, count);
    world.forget();
    world.step(follower, Input::ClientLost { client });
    world.until(|world| world.members[&follower].watches().is_empty());
    world.longest()
}

fn look_at_watches() -> Longest {
    let mut world = World::serving(&many(0, |_| SessionId::NONE));
    let follower = world.follower();
    let client = world.client(follower, 40_000);
    let seen = Zxid::new(Epoch(1), 1);
    let exist_watches = (0..1_000_000).map(path).collect();
    let watches = SetWatches2 { relative_zxid: seen, exist_watches, ..SetWatches2::default() };
    world.ask(follower, client, OpCode::SetWatches2, encode(|w| watches.encode(w)));
    world.forget();
    world.look(follower, MemberView::watches);
    world.longest()
}

fn look_at_sessions() -> Longest {
    let mut world = World::serving(&many(0, |_| ABANDONED).and_sessions(100_000));
    world.forget();
    for id in [1, 2, 3].map(ServerId) {
        world.look(id, MemberView::session_deadlines);
    }
    world.longest()
}

/// Creates below `/many`, as an epoch's transactions with these counters.
fn creates(epoch: u32, counters: impl Iterator<Item = u32>) -> Vec<Entry> {
    let entry = |(number, counter): (u32, u32)| {
        let path = ByteString::from(format!("/many/new{number:07}"));
        let acl = vec![Acl::world_anyone()];
        let data = Some(Bytes::new());
        let txn =
            Txn::Create { path, data, acl, ephemeral: false, parent_cversion: number.cast_signed() + 1 };
        let zxid = Zxid::new(Epoch(epoch), counter);
        let header = TxnHeader { session: ABANDONED, cxid: 1, zxid, time_ms: 0, kind: txn.kind() };
        Entry::new(header, txn, None)
    };
    (0..).zip(counters).map(entry).collect()
}

/// Members start with what they find, until all have applied so much. So many trees are sent on the way.
fn started(found: impl Fn(ServerId) -> Recovered, last: Zxid, trees: u32) -> Longest {
    let mut world = World::starting(&ClientRules::default(), found);
    world.until(|world| world.members.values().all(|member| member.applied() >= last));
    assert_eq!(world.trees_sent, trees);
    world.longest()
}

/// All have this tree and so much behind it.
fn logged(image: &Image, count: u32) -> Longest {
    let entries = creates(1, 2..count + 2);
    started(|_| found(1, image, &entries), Zxid::new(Epoch(1), count + 1), 0)
}

/// The member that is behind, or beside.
const LATE: ServerId = ServerId(3);

/// One has nothing.
fn snap() -> Longest {
    let image = PLAIN_MILLION();
    let late = |id| if id == LATE { Recovered::default() } else { found(1, &image, &[]) };
    started(late, Zxid::new(Epoch(1), 1), 1)
}

/// One lacks all that others keep for it.
fn diff() -> Longest {
    let kept = u32::try_from(JOURNAL_ENTRIES).unwrap_or(u32::MAX);
    let (image, entries) = (PLAIN_MILLION(), creates(1, 2..kept + 2));
    let late = |id| found(1, &image, if id == LATE { &[] } else { &entries });
    started(late, Zxid::new(Epoch(1), kept + 1), 0)
}

/// One has logged what others have not, whose epoch is later.
fn trunc() -> Longest {
    let (image, never, later) = (PLAIN_MILLION(), creates(1, 2..100_002), creates(2, 1..2));
    let late = |id| if id == LATE { found(1, &image, &never) } else { found(2, &image, &later) };
    started(late, Zxid::new(Epoch(2), 1), 0)
}

/// What a follower's port makes of a client's bytes, and a leader's port of a follower's.
fn decoded_multi() -> Longest {
    let multi = body((0..fit(LARGE, u64::MAX, create)).map(create).collect());
    let (mut frame, mut packet) = (BytesMut::new(), BytesMut::new());
    put_frame(&mut frame, |w| Request { xid: 1, op: OpCode::Multi.code(), body: multi.clone() }.encode(w));
    QuorumPacket::new(PacketType::Request, 0, Some(multi)).encode(&mut Writer::new(&mut packet));
    let (asked, follower) = timed(|| take_frame(&mut frame, LARGE).map(|body| body.map(Request::decode)));
    let (forwarded, leader) = timed(|| decode_packet_within(&mut packet, 2 * LARGE));
    assert!(matches!((asked, forwarded), (Ok(Some(Ok(_))), Ok(Some(_)))));
    Longest { leader, follower }
}

/// The longest piece of a tree, as a port reads it.
fn decoded_snap() -> Longest {
    let mut bytes = BytesMut::new();
    encode_stream(&PLAIN_MILLION(), &mut bytes);
    let (mut decoder, mut longest, mut whole) = (StreamDecoder::new(Zxid::ZERO), Longest::default(), None);
    let mut received = BytesMut::new();
    for piece in bytes.chunks(128 << 10) {
        received.extend_from_slice(piece);
        let (fed, took) = timed(|| decoder.feed(&mut received));
        whole = fed.expect("a sound tree");
        longest.follower = longest.follower.max(took);
    }
    assert!(whole.is_some());
    longest
}

/// To as many servers as a membership may have, all but three without a vote.
fn reconfigured() -> Longest {
    let line = |id: usize, role: &str| format!("server.{id}=host{id}:2888:3888:{role};2181");
    let voters: String = (1..=3).map(|id| line(id, "participant") + "\n").collect();
    let rules = ClientRules {
        membership: ByteString::from(voters + "version=0"),
        reconfig: Reconfiguration::On { standalone: true },
        skip_acl: true,
        ..ClientRules::default()
    };
    let mut world = World::serving_by(&rules, &many(0, |_| SessionId::NONE));
    let follower = world.follower();
    let client = world.client(follower, 40_000);
    world.forget();
    let joining: Vec<String> = (4..=MAX_SERVERS).map(|id| line(id, "observer")).collect();
    let joining = Some(ByteString::from(joining.join(",")));
    let request = ReconfigRequest { joining, leaving: None, members: None, config_version: -1 };
    world.ask(follower, client, OpCode::Reconfig, encode(|w| request.encode(w)));
    let all = |member: &Member| member.membership().servers.len() == MAX_SERVERS;
    assert!(world.members.values().all(all), "it was refused");
    world.longest()
}

fn removed_watch() -> Longest {
    let mut world = World::serving(&PLAIN_MILLION());
    let follower = world.follower();
    let client = world.client(follower, 40_000);
    leave_watches(&mut world, follower, client, 1_000_000);
    world.forget();
    let request = WatchesRequest { path: path(0), kind: 3 };
    world.ask(follower, client, OpCode::RemoveWatches, encode(|w| request.encode(w)));
    assert_eq!(world.members[&follower].watches().len(), 999_999);
    world.longest()
}
