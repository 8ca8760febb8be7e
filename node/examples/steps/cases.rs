//! What may be large, each at its limit.

use bytes::Bytes;
use bytestring::ByteString;
use node_core::MemberView;
use node_core::io::{ClientId, Input};
use node_wire::client::{
    Acl, CheckVersionRequest, CreateRequest, DeleteRequest, MultiOp, MultiRequest, OpCode, PathOnly,
    PathWatch, SetDataRequest, SetWatches2,
};
use node_wire::ids::{Epoch, ServerId, SessionId, Zxid};
use node_wire::jute::encode;
use node_wire::snapshot::Image;
use node_wire::txn::{Entry, Txn, TxnHeader};

use crate::Longest;
use crate::world::{ABANDONED, LARGE, USUAL, World, child, image, many};

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
    ("setWatches, 1 MiB", || set_watches(USUAL)),
    ("setWatches, 16 MiB", || set_watches(LARGE)),
    ("getChildren of a million", || read(&PLAIN_MILLION, OpCode::GetChildren2)),
    ("getAllChildrenNumber of a million", || read(&PLAIN_MILLION, OpCode::GetAllChildrenNumber)),
    ("multiRead of a hundred times a million children", multi_read),
    ("100,000 watches of one client fire at once", || watched(100_000, &many(100_000, |_| ABANDONED))),
    ("100,000 clients watch one znode", many_watch_one),
    ("a connection with a million watches breaks", || left_behind(1_000_000)),
    ("wchp of a million watches", look_at_watches),
    ("dump of 100,000 sessions", look_at_sessions),
    ("a SNAP of a million znodes is taken over", || started(&many(1_000_000, |_| SessionId::NONE), 0, 1)),
    ("a start with a million znodes and 100,000 logged", || {
        started(&many(1_000_000, |_| SessionId::NONE), 100_000, 0)
    }),
    ("a start with a million logged", || started(&many(0, |_| SessionId::NONE), 1_000_000, 0)),
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

/// A multi of as many operations as fit into a request of these bytes, `count` at most.
fn multi(bytes: usize, count: u64, op: fn(u64) -> MultiOp) -> Longest {
    let one = body(vec![op(0)]).len() - body(Vec::new()).len();
    let fit = u64::try_from((bytes.min(LARGE) - 64) / one).unwrap_or(u64::MAX);
    let ops: Vec<MultiOp> = (0..count.min(fit)).map(op).collect();
    let there = if matches!(ops[0], MultiOp::Create(_)) { 0 } else { u64::try_from(ops.len()).unwrap_or(0) };
    let mut world = World::serving(&many(there, |_| SessionId::NONE));
    let follower = world.follower();
    let client = world.client(follower, 40_000);
    world.forget();
    world.ask(follower, client, OpCode::Multi, body(ops));
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

/// Members start with this tree and so many creates in their logs behind it, `empty` of them with nothing.
fn started(image: &Image, logged: u32, empty: u64) -> Longest {
    let entries: Vec<Entry> = (0..logged)
        .map(|number| {
            let path = ByteString::from(format!("/many/new{number:07}"));
            let acl = vec![Acl::world_anyone()];
            let data = Some(Bytes::new());
            let txn =
                Txn::Create { path, data, acl, ephemeral: false, parent_cversion: number.cast_signed() + 1 };
            let zxid = Zxid::new(Epoch(1), number + 2);
            let header = TxnHeader { session: ABANDONED, cxid: 1, zxid, time_ms: 0, kind: txn.kind() };
            Entry::new(header, txn, None)
        })
        .collect();
    let mut world = World::starting(image, &entries, empty);
    world.until(|world| {
        let last = Zxid::new(Epoch(1), logged + 1);
        world.members.values().all(|member| member.applied() >= last)
    });
    world.longest()
}
