//! What a kept session promises about servers, states, doubt and the first requests of a connection.

use std::time::{Duration, Instant};

use node_client::{
    CloseReason, CreateMode, ErrorCode, Failure, Keeper, KeeperError, KeeperOptions, NotSent, OpError,
    ServerList, State,
};
use node_session::request::{check, create, delete};
use node_wire::client::{
    AuthPacket, Create2Response, CreateRequest, EphemeralsResponse, MultiRequest, MultiResponse, MultiResult,
    OpCode, PathWatch, SetDataResponse, Stat, XID_AUTH,
};
use node_wire::ids::{SessionId, Zxid};
use node_wire::jute::Reader;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::fake::{Fake, PATIENCE, connected, data, in_time, state};

fn two(a: &Fake, b: &Fake) -> ServerList {
    ServerList::new([a.addr.to_string(), b.addr.to_string()]).expect("a list")
}

fn path(body: bytes::Bytes) -> String {
    PathWatch::decode(&mut Reader::new(body)).expect("a path").path.to_string()
}

#[tokio::test]
async fn a_request_waits_for_a_connection_and_is_sent_once() {
    let fake = Fake::bind().await;
    let keeper = Keeper::start(fake.addr, KeeperOptions::default()).expect("a list");
    let early = keeper.clone();
    let early = tokio::spawn(async move { early.set_data("/a", "x", -1).await });
    let mut side = fake.serve().await;
    side.asked(OpCode::SetData).await;
    drop(side);
    let error = in_time(early).await.expect("no panic").expect_err("no answer came");
    assert!(matches!(error, OpError::Unknown { .. }), "{error:?}");
    assert_eq!(Failure::from(&error), Failure::Unknown);

    let mut side = fake.serve().await;
    let server = async {
        let request = side.asked(OpCode::GetData).await;
        side.answer(request.xid, 5, 0, |w| data("a").encode(w)).await;
    };
    let (read, ()) = tokio::join!(keeper.get_data("/a"), server);
    assert_eq!(&read.expect("answered").value.data[..], b"a", "and no other request came before");
}

#[tokio::test]
async fn what_finds_no_connection_in_time_is_not_sent() {
    let fake = Fake::bind().await;
    let options = KeeperOptions { patience: Some(Duration::from_millis(20)), ..KeeperOptions::default() };
    let error = Keeper::connect(fake.addr, options.clone()).await.expect_err("nobody answers");
    assert!(matches!(error, KeeperError::NotConnected { .. }), "{error:?}");
    let keeper = Keeper::start(fake.addr, options).expect("a list");
    let error = keeper.get_data("/a").await.expect_err("nobody serves");
    assert!(matches!(error, OpError::NotSent(NotSent::NoConnection)), "{error:?}");
    assert_eq!(Failure::from(&error), Failure::NotSent);
}

#[tokio::test]
async fn lists_and_paths_that_cannot_be_used_are_refused_before_anything_is_sent() {
    let error = Keeper::connect("a:b", KeeperOptions::default()).await.expect_err("no port");
    assert!(matches!(error, KeeperError::Servers(_)), "{error:?}");
    let fake = Fake::bind().await;
    let (keeper, _side) = fake.keeper(KeeperOptions::default()).await;
    let error = keeper.get_data("a").await.expect_err("no path");
    assert!(matches!(error, OpError::NotSent(NotSent::Path(_))), "{error:?}");
}

#[tokio::test]
async fn a_session_goes_on_at_the_next_server_with_the_newest_state_it_saw() {
    let (one, other) = (Fake::bind().await, Fake::bind().await);
    let keeper = Keeper::start(two(&one, &other), KeeperOptions::default()).expect("a list");
    let (mut side, next) = tokio::select! {
        side = one.serve() => (side, &other),
        side = other.serve() => (side, &one),
    };
    connected(&keeper).await;
    let server = async {
        let request = side.asked(OpCode::Sync).await;
        side.answer(request.xid, 42, 0, |w| w.string("/")).await;
    };
    let (synced, ()) = tokio::join!(keeper.sync("/"), server);
    synced.expect("answered");
    drop(side);
    let mut side = in_time(next.accept()).await;
    let request = side.welcome(10_000).await;
    assert_eq!((request.session, request.last_zxid_seen), (SessionId(77), Zxid(42)));
    assert!(matches!(connected(&keeper).await, State::Connected { session: SessionId(77), .. }));
    assert_eq!(keeper.credentials().expect("a session").seen, Zxid(42));
}

#[tokio::test]
async fn only_a_servers_word_ends_a_session_and_a_new_one_follows() {
    let fake = Fake::bind().await;
    let (keeper, side) = fake.keeper(KeeperOptions::default()).await;
    drop(side);
    state(&keeper, |state| matches!(state, State::Suspended { .. })).await;
    drop(in_time(fake.accept()).await);
    let mut side = in_time(fake.accept()).await;
    assert_eq!(side.welcome(0).await.session, SessionId(77), "it is still hoped for");
    drop(side);
    let mut side = in_time(fake.accept()).await;
    assert_eq!(side.connect_request().await.session, SessionId::NONE);
    assert_eq!(keeper.state(), State::Lost { session: SessionId(77) });
    assert_eq!(keeper.certain_until(), None);
}

#[tokio::test]
async fn identities_are_shown_on_every_connection_before_anything_else() {
    let fake = Fake::bind().await;
    let auth = vec![("digest".into(), "ann:secret".into())];
    let keeper =
        Keeper::start(fake.addr, KeeperOptions { auth, ..KeeperOptions::default() }).expect("a list");
    for _ in 0..2 {
        let caller = keeper.clone();
        let call = tokio::spawn(async move { caller.get_data("/a").await });
        let mut side = fake.serve().await;
        let auth = side.asked(OpCode::Auth).await;
        let packet = AuthPacket::decode(&mut Reader::new(auth.body)).expect("a packet");
        assert_eq!((auth.xid, &packet.scheme[..]), (XID_AUTH, "digest"));
        side.answer(XID_AUTH, 0, 0, |_| ()).await;
        let request = side.asked(OpCode::GetData).await;
        side.answer(request.xid, 1, 0, |w| data("a").encode(w)).await;
        in_time(call).await.expect("no panic").expect("answered");
        drop(side);
        state(&keeper, |state| matches!(state, State::Suspended { .. })).await;
    }
}

#[tokio::test]
async fn an_identity_that_is_refused_closes_the_session_on_this_side() {
    let fake = Fake::bind().await;
    let (keeper, mut side) = fake.keeper(KeeperOptions::default()).await;
    let server = async {
        side.asked(OpCode::Auth).await;
        side.answer(XID_AUTH, 0, ErrorCode::AuthFailed.code(), |_| ()).await;
        side.ended().await;
    };
    let (judged, ()) = tokio::join!(keeper.auth("digest", "ann:guess"), server);
    assert_eq!(judged.expect_err("refused").refusal(), Some(ErrorCode::AuthFailed));
    assert_eq!(keeper.state(), State::Closed);
    assert!(matches!(keeper.closed_because(), Some(CloseReason::AuthFailed)));
    let error = keeper.get_data("/a").await.expect_err("closed");
    assert!(matches!(error, OpError::NotSent(NotSent::Closed(_))), "{error:?}");
}

#[tokio::test]
async fn closing_ends_the_session_at_the_server_and_dropping_does_not() {
    let fake = Fake::bind().await;
    let (keeper, mut side) = fake.keeper(KeeperOptions::default()).await;
    let server = async {
        let request = side.asked(OpCode::CloseSession).await;
        side.answer(request.xid, 3, 0, |_| ()).await;
        drop(side);
    };
    let (closed, ()) = tokio::join!(in_time(keeper.close()), server);
    closed.expect("answered");
    assert_eq!(keeper.state(), State::Closed);
    assert!(in_time(keeper.close()).await.expect_err("there is none").is_definite());

    let (keeper, mut side) = fake.keeper(KeeperOptions::default()).await;
    drop(keeper);
    side.ended().await;
}

#[tokio::test]
async fn a_session_whose_end_was_not_answered_may_live_on() {
    let fake = Fake::bind().await;
    let (keeper, mut side) = fake.keeper(KeeperOptions::default()).await;
    let server = async {
        side.asked(OpCode::CloseSession).await;
        drop(side);
    };
    let (closed, ()) = tokio::join!(in_time(keeper.close()), server);
    // The server hangs up behind its answer, so its end alone proves nothing either way.
    assert!(!closed.expect_err("no answer").is_definite());
    assert_eq!(keeper.state(), State::Closed);
}

#[tokio::test]
async fn a_refused_multi_says_which_operation_it_was() {
    let fake = Fake::bind().await;
    let (keeper, mut side) = fake.keeper(KeeperOptions::default()).await;
    let server = async {
        let request = side.asked(OpCode::Multi).await;
        let errors = [0, ErrorCode::BadVersion.code(), ErrorCode::RuntimeInconsistency.code()];
        let results = errors.map(|err| MultiResult::Error { err }).to_vec();
        side.answer(request.xid, 9, 0, |w| MultiResponse { results }.encode(w)).await;
    };
    let ops = vec![check("/a", 1), delete("/b", 2), create("/c", "", CreateMode::Persistent)];
    let (refused, ()) = tokio::join!(keeper.multi(ops), server);
    let failed = refused.expect_err("refused");
    assert_eq!(failed.at, Some(1));
    assert!(matches!(failed.error, OpError::Refused { code: ErrorCode::BadVersion, zxid: Zxid(9) }));
    assert_eq!(Failure::from(&failed), Failure::Refused { code: ErrorCode::BadVersion, at: Some(1) });
}

#[tokio::test]
async fn a_sync_and_a_read_go_out_together_on_one_connection() {
    let fake = Fake::bind().await;
    let (keeper, mut side) = fake.keeper(KeeperOptions::default()).await;
    let server = async {
        let sync = side.asked(OpCode::Sync).await;
        let read = side.asked(OpCode::GetData).await;
        side.answer(sync.xid, 4, 0, |w| w.string("/")).await;
        side.answer(read.xid, 4, 0, |w| data("a").encode(w)).await;
        side.asked(OpCode::Sync).await;
        side.asked(OpCode::GetData).await;
        drop(side);
    };
    let calls = async {
        assert_eq!(&keeper.sync_then_get("/a").await.expect("answered").value.data[..], b"a");
        assert!(!keeper.sync_then_get("/a").await.expect_err("no answer").is_definite());
    };
    tokio::join!(calls, server);
}

#[tokio::test]
async fn a_client_with_a_chroot_knows_nothing_above_it() {
    let fake = Fake::bind().await;
    let keeper =
        Keeper::start(format!("{}/app", fake.addr), KeeperOptions::default()).expect("a list with a chroot");
    let mut side = fake.serve().await;
    let server = async {
        let request = side.asked(OpCode::Create2).await;
        let create = CreateRequest::decode(&mut Reader::new(request.body)).expect("a create");
        assert_eq!(create.path, "/app/a-");
        let created = Create2Response { path: "/app/a-0000000007".into(), stat: Stat::default() };
        side.answer(request.xid, 1, 0, |w| created.encode(w)).await;
        let request = side.asked(OpCode::GetEphemerals).await;
        let ephemerals = vec!["/app/a".into(), "/apple".into()];
        side.answer(request.xid, 1, 0, |w| EphemeralsResponse { ephemerals }.encode(w)).await;
        let request = side.asked(OpCode::Multi).await;
        let multi = MultiRequest::decode(&mut Reader::new(request.body)).expect("a multi");
        assert_eq!(multi.ops, [check("/app", -1), check("/app/a", 2)]);
        let results = vec![MultiResult::Check, MultiResult::Check];
        side.answer(request.xid, 1, 0, |w| MultiResponse { results }.encode(w)).await;
        let request = side.asked(OpCode::GetData).await;
        assert_eq!(path(request.body), "/zookeeper/config", "the membership is everybody's");
        side.answer(request.xid, 1, 0, |w| data("members").encode(w)).await;
    };
    let calls = async {
        let created = keeper.create("/a-", "", CreateMode::PersistentSequential).await.expect("created");
        assert_eq!(created.value.path, "/a-0000000007");
        assert_eq!(keeper.ephemerals("/").await.expect("answered").value, ["/a"]);
        keeper.multi(vec![check("/", -1), check("/a", 2)]).await.expect("passed");
        keeper.config().await.expect("answered");
    };
    in_time(async { tokio::join!(calls, server) }).await;
}

#[tokio::test]
async fn certainty_counts_from_when_what_the_leader_saw_was_sent() {
    let fake = Fake::bind().await;
    let (keeper, mut side) = fake.keeper(KeeperOptions::default()).await;
    let at_first = keeper.certain_until().expect("a session");
    let server = async {
        for (op, err) in [(OpCode::GetData, 0), (OpCode::SetData, -4), (OpCode::SetData, 0)] {
            let request = side.asked(op).await;
            side.answer(request.xid, 1, err, |w| match op {
                OpCode::GetData => data("a").encode(w),
                _ => SetDataResponse { stat: Stat::default() }.encode(w),
            })
            .await;
        }
    };
    let calls = async {
        keeper.get_data("/a").await.expect("answered");
        assert_eq!(keeper.certain_until(), Some(at_first), "a follower answers a read alone");
        keeper.set_data("/a", "x", -1).await.expect_err("in doubt");
        assert_eq!(keeper.certain_until(), Some(at_first));
        let before = Instant::now();
        keeper.set_data("/a", "x", -1).await.expect("answered");
        let until = keeper.certain_until().expect("a session");
        let from = before + Duration::from_secs(9);
        assert!(from <= until && until <= Instant::now() + Duration::from_secs(9), "nine tenths of it");
    };
    tokio::join!(calls, server);
}

#[tokio::test]
async fn heartbeats_that_the_leader_sees_are_sent_while_somebody_wants_certainty() {
    let fake = Fake::bind().await;
    let keeper = Keeper::start(fake.addr, KeeperOptions::default()).expect("a list");
    let mut side = in_time(fake.accept()).await;
    side.welcome(400).await;
    connected(&keeper).await;
    let certainty = keeper.keep_certain();
    let mut last = keeper.certain_until().expect("a session");
    for _ in 0..3 {
        let beat = side.asked(OpCode::Multi).await;
        let multi = MultiRequest::decode(&mut Reader::new(beat.body)).expect("a multi");
        assert_eq!(multi.ops, [check("/", -1)]);
        let results = vec![MultiResult::Check];
        side.answer(beat.xid, 1, 0, |w| MultiResponse { results }.encode(w)).await;
        in_time(async {
            while keeper.certain_until().expect("a session") <= last {
                tokio::task::yield_now().await;
            }
        })
        .await;
        last = keeper.certain_until().expect("a session");
    }
    drop(certainty);
    let ping = in_time(side.request()).await.expect("a frame");
    assert_eq!(ping.op, OpCode::Ping.code(), "pings suffice again");
}

#[tokio::test]
async fn a_session_leaves_a_read_only_server_when_another_has_a_quorum() {
    let (one, other) = (Fake::bind().await, Fake::bind().await);
    let options = KeeperOptions { read_only: true, ..KeeperOptions::default() };
    let keeper = Keeper::start(two(&one, &other), options).expect("a list");
    let (mut side, next) = tokio::select! {
        side = one.accept() => (side, &other),
        side = other.accept() => (side, &one),
    };
    assert_eq!(side.welcome_as(10_000, true).await.read_only, Some(true));
    assert!(matches!(connected(&keeper).await, State::Connected { read_only: true, .. }));
    for answer in ["ro", "rw"] {
        let mut asked = in_time(next.accept()).await;
        let mut word = [0; 4];
        in_time(asked.stream.read_exact(&mut word)).await.expect("a word");
        assert_eq!(&word, b"isro");
        asked.stream.write_all(answer.as_bytes()).await.expect("written");
    }
    side.ended().await;
    let mut side = in_time(next.accept()).await;
    assert_eq!(side.welcome(10_000).await.read_only, Some(false), "nothing less will do now");
    state(&keeper, |state| matches!(state, State::Connected { read_only: false, .. })).await;
}

#[tokio::test]
async fn another_list_moves_the_session() {
    let (one, other) = (Fake::bind().await, Fake::bind().await);
    let (keeper, mut side) = one.keeper(KeeperOptions::default()).await;
    keeper.servers(other.addr).expect("a list");
    side.ended().await;
    let mut side = in_time(other.accept()).await;
    assert_eq!(side.welcome(10_000).await.session, SessionId(77));
    connected(&keeper).await;
    assert_eq!(keeper.server(), other.addr.to_string());
}

#[tokio::test]
async fn a_name_is_resolved_and_the_last_failure_is_told() {
    let fake = Fake::bind().await;
    let options = KeeperOptions { patience: Some(PATIENCE), ..KeeperOptions::default() };
    let servers = format!("localhost:{}", fake.addr.port());
    let (keeper, _side) = tokio::join!(Keeper::connect(servers, options), fake.serve());
    keeper.expect("connected");
    let addr = fake.addr;
    drop(fake);
    let options = KeeperOptions { patience: Some(Duration::from_millis(100)), ..KeeperOptions::default() };
    let error = Keeper::connect(addr, options).await.expect_err("nobody listens");
    assert!(error.to_string().ends_with("connection refused"), "{error}");
}
