//! What watches promise: nothing is missed, and nothing comes twice.

use node_client::{AddWatchMode, ErrorCode, EventType, Keeper, KeeperOptions, Lost, Watched};
use node_wire::client::{OpCode, SetWatches, SetWatches2, WatchesRequest, XID_SET_WATCHES};
use node_wire::ids::Zxid;
use node_wire::jute::Reader;

use crate::fake::{Fake, Side, data, in_time};

/// Reads `/a` with a watch.
async fn watched(keeper: &Keeper, side: &mut Side, zxid: u64) -> node_client::WatchOnce {
    let server = async {
        let request = side.asked(OpCode::GetData).await;
        side.answer(request.xid, zxid, 0, |w| data("a").encode(w)).await;
    };
    let (read, ()) = tokio::join!(keeper.get_data_watched("/a"), server);
    read.expect("answered").1
}

async fn persistent(keeper: &Keeper, side: &mut Side, path: &'static str) -> node_client::WatchStream {
    let server = async {
        let request = side.asked(OpCode::AddWatch).await;
        side.answer(request.xid, 1, 0, |_| ()).await;
    };
    let (stream, ()) = tokio::join!(keeper.watch(path, AddWatchMode::Persistent), server);
    stream.expect("answered")
}

fn changed(path: &str) -> Watched {
    Watched::Event(node_client::Event { kind: EventType::NodeDataChanged, path: path.into() })
}

#[tokio::test]
async fn an_event_right_behind_the_answer_is_not_missed() {
    let fake = Fake::bind().await;
    let (keeper, mut side) = fake.keeper(KeeperOptions::default()).await;
    for _ in 0..20 {
        let server = async {
            let request = side.asked(OpCode::GetData).await;
            side.answer(request.xid, 5, 0, |w| data("a").encode(w)).await;
            side.event(EventType::NodeDataChanged, "/a").await;
        };
        let (read, ()) = tokio::join!(keeper.get_data_watched("/a"), server);
        let (_, watch) = read.expect("answered");
        assert_eq!(in_time(watch).await.expect("an event").kind, EventType::NodeDataChanged);
    }
}

#[tokio::test]
async fn one_time_watches_are_left_again_before_anything_else_until_they_are_spent() {
    let fake = Fake::bind().await;
    let (keeper, mut side) = fake.keeper(KeeperOptions::default()).await;
    let first = watched(&keeper, &mut side, 5).await;
    let second = watched(&keeper, &mut side, 6).await;
    drop(side);
    let caller = keeper.clone();
    let mut side = in_time(fake.accept()).await;
    let call = tokio::spawn(async move { caller.get_data("/b").await });
    side.welcome(10_000).await;
    let again = side.asked(OpCode::SetWatches).await;
    assert_eq!(again.xid, XID_SET_WATCHES);
    let watches = SetWatches::decode(&mut Reader::new(again.body)).expect("watches");
    assert_eq!((watches.relative_zxid, &watches.data_watches[..]), (Zxid(6), &["/a".into()][..]));
    side.answer(XID_SET_WATCHES, 6, 0, |_| ()).await;
    let request = side.asked(OpCode::GetData).await;
    side.event(EventType::NodeDataChanged, "/a").await;
    side.answer(request.xid, 7, 0, |w| data("b").encode(w)).await;
    in_time(call).await.expect("no panic").expect("answered");
    for watch in [first, second] {
        assert_eq!(in_time(watch).await.expect("an event").path, "/a");
    }
    drop(side);
    let mut side = fake.serve().await;
    let third = watched(&keeper, &mut side, 8).await;
    drop(third);
}

#[tokio::test]
async fn a_refused_read_leaves_no_watch_but_an_exists_where_nothing_is_does() {
    let fake = Fake::bind().await;
    let (keeper, mut side) = fake.keeper(KeeperOptions::default()).await;
    let server = async {
        for op in [OpCode::GetData, OpCode::GetChildren2, OpCode::Exists] {
            let request = side.asked(op).await;
            side.answer(request.xid, 5, ErrorCode::NoNode.code(), |_| ()).await;
        }
        drop(side);
        let mut side = fake.serve().await;
        let again = side.asked(OpCode::SetWatches).await;
        let watches = SetWatches::decode(&mut Reader::new(again.body)).expect("watches");
        assert_eq!(watches.exist_watches, ["/a"]);
        assert!(watches.data_watches.is_empty() && watches.child_watches.is_empty());
        side.event(EventType::NodeCreated, "/a").await;
        side
    };
    let calls = async {
        assert_eq!(keeper.get_data_watched("/a").await.expect_err("none").refusal(), Some(ErrorCode::NoNode));
        keeper.get_children_watched("/a").await.expect_err("none");
        let (stat, watch) = keeper.exists_watched("/a").await.expect("an answer");
        assert_eq!(stat.value, None);
        assert_eq!(in_time(watch).await.expect("an event").kind, EventType::NodeCreated);
    };
    let _side = tokio::join!(server, calls).0;
}

#[tokio::test]
async fn a_watch_that_is_dropped_is_forgotten() {
    let fake = Fake::bind().await;
    let (keeper, mut side) = fake.keeper(KeeperOptions::default()).await;
    drop(watched(&keeper, &mut side, 5).await);
    drop(side);
    let mut side = fake.serve().await;
    let _next = watched(&keeper, &mut side, 6).await;
}

#[tokio::test]
async fn a_persistent_watch_tells_events_gaps_and_the_end_of_the_session() {
    let fake = Fake::bind().await;
    let (keeper, mut side) = fake.keeper(KeeperOptions::default()).await;
    let mut stream = persistent(&keeper, &mut side, "/a").await;
    let once = watched(&keeper, &mut side, 5).await;
    for _ in 0..2 {
        side.event(EventType::NodeDataChanged, "/a").await;
        assert_eq!(in_time(stream.next()).await, Some(changed("/a")));
    }
    in_time(once).await.expect("an event");
    drop(side);
    let mut side = fake.serve().await;
    let again = side.asked(OpCode::SetWatches2).await;
    let watches = SetWatches2::decode(&mut Reader::new(again.body)).expect("watches");
    assert_eq!(watches.persistent_watches, ["/a"]);
    assert!(watches.data_watches.is_empty());
    side.event(EventType::NodeDataChanged, "/a").await;
    assert_eq!(in_time(stream.next()).await, Some(Watched::Reconnected), "before what is new");
    assert_eq!(in_time(stream.next()).await, Some(changed("/a")));
    let once = watched(&keeper, &mut side, 6).await;
    drop(side);
    in_time(fake.accept()).await.welcome(0).await;
    assert_eq!(in_time(stream.next()).await, Some(Watched::Lost));
    assert_eq!(in_time(stream.next()).await, None);
    assert_eq!(in_time(once).await, Err(Lost));
    let mut side = fake.serve().await;
    let _new = watched(&keeper, &mut side, 7).await;
}

#[tokio::test]
async fn a_persistent_watch_is_taken_back_when_nobody_watches_there_any_more() {
    let fake = Fake::bind().await;
    let (keeper, mut side) = fake.keeper(KeeperOptions::default()).await;
    let first = persistent(&keeper, &mut side, "/a").await;
    let second = persistent(&keeper, &mut side, "/a").await;
    let once = watched(&keeper, &mut side, 5).await;
    drop(first);
    drop(second);
    // The one-time watch of the same znode would have gone with it.
    side.event(EventType::NodeDataChanged, "/a").await;
    in_time(once).await.expect("an event");
    let third = persistent(&keeper, &mut side, "/a").await;
    drop(third);
    let request = side.asked(OpCode::RemoveWatches).await;
    let removed = WatchesRequest::decode(&mut Reader::new(request.body)).expect("a path");
    assert_eq!((&removed.path[..], removed.kind), ("/a", 3));
}

#[tokio::test]
async fn what_was_watched_below_a_chroot_is_told_without_it() {
    let fake = Fake::bind().await;
    let keeper = Keeper::start(format!("{}/app", fake.addr), KeeperOptions::default()).expect("a list");
    let mut side = fake.serve().await;
    let mut stream = persistent(&keeper, &mut side, "/a").await;
    side.event(EventType::NodeDataChanged, "/app/a").await;
    assert_eq!(in_time(stream.next()).await, Some(changed("/a")));
}
