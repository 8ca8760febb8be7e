//! What the client promises about order, doubt and the life of a connection.

use std::time::Duration;

use bytes::Bytes;
use node_client::{CloseReason, ConnectError, ConnectOptions, Doubt, ErrorCode, NotSent, OpError, Session};
use node_wire::client::{GetDataResponse, OpCode, SetDataResponse, Stat, XID_PING};
use node_wire::ids::{SessionId, Zxid};
use tokio::io::AsyncWriteExt;
use tokio::time::timeout;

use crate::fake::{Fake, PATIENCE};

fn options() -> ConnectOptions {
    ConnectOptions { deadline: PATIENCE, ..ConnectOptions::default() }
}

fn data(text: &'static str) -> GetDataResponse {
    GetDataResponse { data: Some(Bytes::from_static(text.as_bytes())), stat: Stat::default() }
}

#[tokio::test]
async fn requests_are_pipelined_and_answers_find_their_callers() {
    let fake = Fake::bind().await;
    let (client, mut side) = fake.pair(options()).await;
    let server = async {
        let first = side.request().await.expect("first");
        let second = side.request().await.expect("second, before the first is answered");
        side.answer(first.xid, 5, 0, |w| data("a").encode(w)).await;
        side.answer(second.xid, 6, 0, |w| data("b").encode(w)).await;
    };
    let (a, b, ()) = tokio::join!(client.get_data("/a"), client.get_data("/b"), server);
    assert_eq!(a.expect("a").value.data.as_deref(), Some(&b"a"[..]));
    let b = b.expect("b");
    assert_eq!((b.zxid, b.value.data.as_deref()), (Zxid(6), Some(&b"b"[..])));
    assert_eq!(client.session().last_zxid_seen, Zxid(6));
}

#[tokio::test]
async fn a_late_answer_to_an_abandoned_call_is_dropped_and_harms_no_other() {
    let fake = Fake::bind().await;
    let (client, mut side) = fake.pair(options()).await;
    assert!(timeout(Duration::from_millis(1), client.get_data("/slow")).await.is_err());
    assert_eq!(client.outstanding(), 1);
    let server = async {
        for text in ["late", "prompt"] {
            let request = side.request().await.expect("request");
            side.answer(request.xid, 1, 0, |w| data(text).encode(w)).await;
        }
    };
    let (prompt, ()) = tokio::join!(client.get_data("/prompt"), server);
    assert_eq!(prompt.expect("answer").value.data.as_deref(), Some(&b"prompt"[..]));
}

#[tokio::test]
async fn an_operation_that_was_written_and_not_answered_is_unknown() {
    let fake = Fake::bind().await;
    let (client, mut side) = fake.pair(options()).await;
    let server = async {
        side.request().await.expect("request");
        drop(side);
    };
    let (result, ()) = tokio::join!(client.set_data("/a", "x", 3), server);
    let error = result.expect_err("no answer came");
    assert!(matches!(error, OpError::Unknown { doubt: Doubt::Unanswered(_) }), "{error:?}");
    assert!(!error.is_definite());
    let after = client.set_data("/a", "x", 3).await.expect_err("closed");
    assert!(matches!(after, OpError::NotSent(NotSent::Closed(_))), "{after:?}");
    assert!(after.is_definite());
}

#[tokio::test]
async fn an_operation_stuck_behind_a_full_socket_was_not_sent() {
    let fake = Fake::bind().await;
    let (client, side) = fake.pair(options()).await;
    let big = Bytes::from(vec![7; 1_000_000]);
    let calls = (0..64).map(|_| {
        let (client, big) = (client.clone(), big.clone());
        tokio::spawn(async move { client.set_data("/a", big, -1).await })
    });
    let calls: Vec<_> = calls.collect();
    timeout(PATIENCE, async {
        while client.outstanding() < 64 {
            tokio::task::yield_now().await;
        }
        side.stream.readable().await.expect("something was written");
    })
    .await
    .expect("all are queued");
    drop(side);
    let (mut unknown, mut not_sent) = (0, 0);
    for call in calls {
        match call.await.expect("no panic").expect_err("nothing was answered") {
            OpError::Unknown { .. } => {
                assert_eq!(not_sent, 0, "what was sent was sent first");
                unknown += 1;
            }
            OpError::NotSent(_) => not_sent += 1,
            OpError::Refused { .. } => panic!("nobody refused"),
        }
    }
    // The kernel's buffers hold some of the 64 MB, never all of it.
    assert!(not_sent > 0, "{unknown} unknown, {not_sent} not sent");
}

#[tokio::test]
async fn a_refusal_is_definite_and_carries_its_zxid() {
    let fake = Fake::bind().await;
    let (client, mut side) = fake.pair(options()).await;
    let server = async {
        let request = side.request().await.expect("request");
        side.answer(request.xid, 9, ErrorCode::BadVersion.code(), |_| ()).await;
        let request = side.request().await.expect("request");
        side.answer(request.xid, 10, ErrorCode::OperationTimeout.code(), |_| ()).await;
        let request = side.request().await.expect("request");
        side.answer(request.xid, 11, ErrorCode::NoNode.code(), |_| ()).await;
    };
    let calls = async {
        let refused = client.set_data("/a", "x", 1).await.expect_err("bad version");
        assert!(matches!(refused, OpError::Refused { code: ErrorCode::BadVersion, zxid: Zxid(9) }));
        let open = client.set_data("/a", "x", 1).await.expect_err("time-out");
        assert!(!open.is_definite(), "{open:?}");
        assert_eq!(client.exists("/none").await.expect("an answer").value, None);
    };
    tokio::join!(calls, server);
}

#[tokio::test]
async fn sync_then_get_goes_out_together_and_is_void_when_the_connection_breaks_in_between() {
    let fake = Fake::bind().await;
    let (client, mut side) = fake.pair(options()).await;
    let server = async {
        let sync = side.request().await.expect("sync");
        let read = side.request().await.expect("read, without waiting for the sync");
        assert_eq!((sync.op, read.op), (OpCode::Sync.code(), OpCode::GetData.code()));
        side.answer(sync.xid, 4, 0, |w| w.string("/a")).await;
        drop(side);
    };
    let (result, ()) = tokio::join!(client.sync_then_get("/a"), server);
    assert!(!result.expect_err("half an answer is none").is_definite());
}

#[tokio::test]
async fn one_operation_too_many_is_refused_at_once() {
    let fake = Fake::bind().await;
    let (client, _side) = fake.pair(ConnectOptions { max_outstanding: 1, ..options() }).await;
    let first = client.clone();
    let first = tokio::spawn(async move { first.get_data("/a").await });
    timeout(PATIENCE, async {
        while client.outstanding() < 1 {
            tokio::task::yield_now().await;
        }
    })
    .await
    .expect("the first is queued");
    let error = client.get_data("/b").await.expect_err("full");
    assert!(matches!(error, OpError::NotSent(NotSent::Overloaded)));
    let error = client.sync_then_get("/b").await.expect_err("full");
    assert!(matches!(error, OpError::NotSent(NotSent::Overloaded)));
    first.abort();
}

#[tokio::test]
async fn a_request_longer_than_a_frame_is_not_sent_and_the_next_one_is() {
    let fake = Fake::bind().await;
    let (client, mut side) = fake.pair(options()).await;
    let error = client.set_data("/a", vec![0; 2_000_000], -1).await.expect_err("too long");
    assert!(matches!(error, OpError::NotSent(NotSent::TooLong(_))), "{error:?}");
    let server = async {
        let request = side.request().await.expect("request");
        side.answer(request.xid, 1, 0, |w| SetDataResponse { stat: Stat::default() }.encode(w)).await;
    };
    let (result, ()) = tokio::join!(client.set_data("/a", "x", -1), server);
    result.expect("answered");
}

#[tokio::test]
async fn pings_keep_the_session_and_silence_ends_the_connection() {
    let fake = Fake::bind().await;
    let short = ConnectOptions { timeout: Duration::from_millis(300), ..options() };
    let (client, mut side) = fake.pair(short).await;
    for _ in 0..3 {
        let ping = timeout(PATIENCE, side.request()).await.expect("in time").expect("a ping");
        assert_eq!((ping.xid, ping.op), (XID_PING, OpCode::Ping.code()));
        side.answer(XID_PING, 12, 0, |_| ()).await;
    }
    assert!(!client.is_closed());
    let reason = timeout(PATIENCE, client.closed()).await.expect("in time");
    assert!(matches!(reason, CloseReason::Silent), "{reason:?}");
    assert_eq!(client.session().last_zxid_seen, Zxid(12));
}

#[tokio::test]
async fn a_session_is_resumed_with_its_password_and_the_newest_zxid() {
    let fake = Fake::bind().await;
    let (client, mut side) = fake.pair(options()).await;
    let server = async {
        let request = side.request().await.expect("request");
        side.answer(request.xid, 42, 0, |w| w.string("/a")).await;
    };
    let (synced, ()) = tokio::join!(client.sync("/a"), server);
    synced.expect("synced");
    let session = client.session();
    drop(client);
    assert!(side.request().await.is_none(), "dropped without a word");

    let resume = ConnectOptions { session: Some(session), ..options() };
    let server = async { fake.accept().await.welcome(10_000).await };
    let (client, request) = tokio::join!(node_client::connect(fake.addr, resume), server);
    assert_eq!(client.expect("resumed").session().id, SessionId(77));
    assert_eq!(request.last_zxid_seen, Zxid(42));
    assert_eq!(&request.password[..], b"0123456789abcdef");
}

#[tokio::test]
async fn closing_the_session_is_answered_and_is_no_failure() {
    let fake = Fake::bind().await;
    let (client, mut side) = fake.pair(options()).await;
    let server = async {
        let request = side.request().await.expect("request");
        assert_eq!(request.op, OpCode::CloseSession.code());
        side.answer(request.xid, 3, 0, |_| ()).await;
        drop(side);
    };
    let (result, ()) = tokio::join!(client.close_session(), server);
    assert_eq!(result.expect("answered").zxid, Zxid(3));
    assert!(matches!(client.closed().await, CloseReason::SessionClosed));
}

#[tokio::test]
async fn an_answer_to_another_question_ends_the_connection() {
    let fake = Fake::bind().await;
    let (client, mut side) = fake.pair(options()).await;
    let server = async {
        let request = side.request().await.expect("request");
        side.answer(request.xid + 1, 3, 0, |_| ()).await;
    };
    let (result, ()) = tokio::join!(client.get_data("/a"), server);
    let error = result.expect_err("not its answer");
    assert!(
        matches!(error, OpError::Unknown { doubt: Doubt::Unanswered(CloseReason::Malformed(_)) }),
        "{error:?}"
    );
}

#[tokio::test]
async fn failures_to_connect_are_told_apart() {
    let fake = Fake::bind().await;
    let hang_up = async { drop(fake.accept().await) };
    let (result, ()) = tokio::join!(node_client::connect(fake.addr, options()), hang_up);
    assert!(matches!(result, Err(ConnectError::NotServing)), "{result:?}");

    let expired = async {
        fake.accept().await.welcome(0).await;
    };
    let session = Session {
        id: SessionId(5),
        password: Bytes::from_static(&[1; 16]),
        timeout: Duration::from_secs(1),
        last_zxid_seen: Zxid::ZERO,
    };
    let resume = ConnectOptions { session: Some(session), ..options() };
    let (result, ()) = tokio::join!(node_client::connect(fake.addr, resume), expired);
    assert!(matches!(result, Err(ConnectError::Expired)), "{result:?}");

    let garbage = async {
        let mut side = fake.accept().await;
        side.connect_request().await;
        side.stream.write_all(&[0x7f; 64]).await.expect("written");
        side
    };
    let (result, _side) = tokio::join!(node_client::connect(fake.addr, options()), garbage);
    assert!(matches!(result, Err(ConnectError::Malformed(_))), "{result:?}");

    let silent = ConnectOptions { deadline: Duration::from_millis(20), ..options() };
    let result = node_client::connect(fake.addr, silent).await;
    assert!(matches!(result, Err(ConnectError::TimedOut)), "{result:?}");

    let addr = fake.addr;
    drop(fake);
    let result = node_client::connect(addr, options()).await;
    assert!(matches!(result, Err(ConnectError::Refused)), "{result:?}");
}

#[tokio::test]
async fn a_four_letter_word_gets_the_whole_answer() {
    let fake = Fake::bind().await;
    let server = async {
        let mut side = fake.accept().await;
        let mut word = [0; 4];
        tokio::io::AsyncReadExt::read_exact(&mut side.stream, &mut word).await.expect("a word");
        assert_eq!(&word, b"ruok");
        side.stream.write_all(b"imok").await.expect("written");
    };
    let (answer, ()) = tokio::join!(node_client::four_letter_word(fake.addr, "ruok"), server);
    assert_eq!(answer.expect("an answer"), "imok");
}
