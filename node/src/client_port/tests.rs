//! Framing, bounds and ends of clients' connections. The test plays the core.

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::*;
use crate::address::HostPort;
use crate::facts::About;
use crate::testing::{config, connect, from_client, listener, local};
use node_wire::client::{ConnectResponse, OpCode, ReplyHeader, put_frame};
use node_wire::ids::{SessionId, Zxid};

struct Harness {
    port: Rc<ClientPort>,
    inbox: Rc<Inbox>,
    addr: HostPort,
}

async fn start(max_client_cnxns: u32) -> Harness {
    start_with(|config| config.max_client_cnxns = max_client_cnxns).await
}

async fn start_with(change: impl FnOnce(&mut NodeConfig)) -> Harness {
    let (listener, addr) = listener().await;
    let mut config = config(1, &[]);
    change(&mut config);
    let guard = config.security.guard;
    let inbox = Rc::new(Inbox::default());
    let metrics = Arc::new(Metrics::new());
    let about = Arc::new(About::new(config.clone(), addr.to_string()));
    let queries = Queries::new(Rc::clone(&inbox), about, Arc::clone(&metrics));
    let port = ClientPort::new(Rc::new(config), Rc::clone(&inbox), queries, metrics, Backlog::default());
    port.start(listener, guard);
    Harness { port, inbox, addr }
}

fn connect_frame() -> BytesMut {
    let request = ConnectRequest {
        protocol_version: 0,
        last_zxid_seen: Zxid::ZERO,
        timeout_ms: 10_000,
        session: SessionId::NONE,
        password: Bytes::from_static(&[0; 16]),
        read_only: None,
    };
    let mut frame = BytesMut::new();
    put_frame(&mut frame, |w| request.encode(w));
    frame
}

fn request_frame(xid: i32) -> BytesMut {
    let request = Request { xid, op: OpCode::Ping.code(), body: Bytes::new() };
    let mut frame = BytesMut::new();
    put_frame(&mut frame, |w| request.encode(w));
    frame
}

fn welcome_frame() -> Bytes {
    let response = ConnectResponse {
        protocol_version: 0,
        timeout_ms: 10_000,
        session: SessionId(1),
        password: Bytes::from_static(&[1; 16]),
        read_only: None,
    };
    let mut frame = BytesMut::new();
    put_frame(&mut frame, |w| response.encode(w));
    frame.freeze()
}

fn reply_frame(xid: i32) -> Bytes {
    let mut frame = BytesMut::new();
    put_frame(&mut frame, |w| ReplyHeader { xid, zxid: Zxid(1), err: 0 }.encode(w));
    frame.freeze()
}

impl Harness {
    fn reply(&self, client: ClientId, frame: &Bytes) {
        self.port.reply(client, frame);
        self.port.flush(Instant::now());
    }

    /// A client whose connect request was answered.
    async fn client(&self) -> (TcpStream, ClientId) {
        let mut stream = connect(&self.addr).await;
        stream.write_all(&connect_frame()).await.expect("written");
        let Input::ClientConnect { client, .. } = from_client(&self.inbox).await else { panic!("no client") };
        self.reply(client, &welcome_frame());
        let mut welcome = vec![0; welcome_frame().len()];
        stream.read_exact(&mut welcome).await.expect("the welcome");
        (stream, client)
    }

    async fn next_xid(&self) -> i32 {
        match from_client(&self.inbox).await {
            Input::ClientRequest { request, .. } => request.xid,
            other => panic!("{other:?} is no request"),
        }
    }

    async fn lost(&self) -> ClientId {
        match from_client(&self.inbox).await {
            Input::ClientLost { client } => client,
            other => panic!("{other:?} is no loss"),
        }
    }
}

async fn rest(stream: &mut TcpStream) -> Vec<u8> {
    let mut rest = Vec::new();
    // A reset is an end as well.
    let _ = stream.read_to_end(&mut rest).await;
    rest
}

#[test]
fn requests_behind_a_connect_request_wait_for_its_answer() {
    local(async {
        let harness = start(0).await;
        let mut stream = connect(&harness.addr).await;
        let mut bytes = connect_frame();
        bytes.extend_from_slice(&request_frame(1));
        bytes.extend_from_slice(&request_frame(2));
        stream.write_all(&bytes).await.expect("written");
        let Input::ClientConnect { client, .. } = from_client(&harness.inbox).await else {
            panic!("no client")
        };
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        assert!(harness.inbox.next_from_client().is_none(), "not welcomed yet");
        harness.reply(client, &welcome_frame());
        assert_eq!((harness.next_xid().await, harness.next_xid().await), (1, 2));
    });
}

#[test]
fn a_frame_in_pieces_is_one_request() {
    local(async {
        let harness = start(0).await;
        let (mut stream, client) = harness.client().await;
        stream.set_nodelay(true).expect("set");
        for byte in request_frame(5) {
            stream.write_all(&[byte]).await.expect("written");
            tokio::task::yield_now().await;
        }
        assert_eq!(harness.next_xid().await, 5);
        harness.reply(client, &reply_frame(5));
        let mut reply = vec![0; reply_frame(5).len()];
        stream.read_exact(&mut reply).await.expect("the reply");
        assert_eq!(reply, reply_frame(5));
    });
}

#[test]
fn hostile_beginnings_are_hung_up_on_before_the_core_hears_of_them() {
    local(async {
        let harness = start(0).await;
        let too_long = 0x0010_0000_i32.to_be_bytes();
        let negative = (-1_i32).to_be_bytes();
        for bytes in [&too_long[..], &negative, &[0, 0, 0, 3, 1, 2, 3], b"GET / HTTP/1.1\r\n\r\n", b"kill"] {
            let mut stream = connect(&harness.addr).await;
            stream.write_all(bytes).await.expect("written");
            rest(&mut stream).await;
        }
        assert!(harness.inbox.is_empty());
        harness.client().await;
    });
}

#[test]
fn a_bad_frame_costs_a_client_its_connection_and_nobody_else_theirs() {
    local(async {
        let harness = start(0).await;
        let (mut good, good_client) = harness.client().await;
        for bytes in [&i32::MAX.to_be_bytes()[..], &(-5_i32).to_be_bytes(), &[0, 0, 0, 2, 1, 1]] {
            let (mut bad, bad_client) = harness.client().await;
            bad.write_all(bytes).await.expect("written");
            assert_eq!(harness.lost().await, bad_client);
            rest(&mut bad).await;
        }
        good.write_all(&request_frame(9)).await.expect("written");
        assert_eq!(harness.next_xid().await, 9);
        assert_ne!(good_client, ClientId(0));
    });
}

#[test]
fn a_connection_that_ends_inside_of_a_frame_is_lost_once() {
    local(async {
        let harness = start(0).await;
        let (mut stream, client) = harness.client().await;
        stream.write_all(&request_frame(1)[..7]).await.expect("written");
        drop(stream);
        assert_eq!(harness.lost().await, client);
        harness.port.close(client);
        harness.reply(client, &reply_frame(1));
        assert!(harness.inbox.is_empty());
    });
}

#[test]
fn a_reply_before_a_close_arrives_even_when_the_client_goes_on_writing() {
    local(async {
        let harness = start(0).await;
        let (mut stream, client) = harness.client().await;
        stream.write_all(&request_frame(1)).await.expect("written");
        assert_eq!(harness.next_xid().await, 1);
        stream.write_all(&[0; 4096]).await.expect("written");
        harness.port.reply(client, &reply_frame(1));
        harness.port.close(client);
        harness.port.flush(Instant::now());
        let mut reply = vec![0; reply_frame(1).len()];
        stream.read_exact(&mut reply).await.expect("the reply");
        assert_eq!(reply, reply_frame(1));
        assert_eq!(stream.read(&mut [0; 1]).await.expect("an end"), 0);
    });
}

#[test]
fn what_a_closed_client_had_sent_is_not_delivered() {
    local(async {
        let harness = start(0).await;
        let (mut stream, client) = harness.client().await;
        harness.port.close(client);
        // It may be closed for good already.
        let _ = stream.write_all(&request_frame(1)).await;
        rest(&mut stream).await;
        assert!(harness.inbox.is_empty());
    });
}

#[test]
fn a_client_with_too_much_open_is_left_unread_until_it_is_answered() {
    local(async {
        let harness = start(0).await;
        let (mut stream, client) = harness.client().await;
        let total = i32::try_from(WINDOW * 8).expect("small");
        let writer = tokio::task::spawn_local(async move {
            for xid in 1..=total {
                stream.write_all(&request_frame(xid)).await.expect("written");
            }
            stream
        });
        let most = WINDOW + READ_CHUNK * 2 / request_frame(1).len();
        let mut open = 0;
        for xid in 1..=total {
            open += 1;
            assert_eq!(harness.next_xid().await, xid);
            assert!(open <= most, "{open} requests are open");
            // Answered only when nothing more comes.
            if harness.inbox.is_empty() && open >= WINDOW {
                for answered in 0..open {
                    let answered = i32::try_from(answered).expect("small");
                    harness.reply(client, &reply_frame(xid - answered));
                }
                open = 0;
            }
        }
        writer.await.expect("all written");
    });
}

#[test]
fn one_host_has_only_so_many_connections() {
    local(async {
        let harness = start(2).await;
        let (first, client) = harness.client().await;
        let _second = harness.client().await;
        let mut third = connect(&harness.addr).await;
        assert_eq!(rest(&mut third).await, b"");
        drop(first);
        assert_eq!(harness.lost().await, client);
        while harness.port.sockets.get() == 2 {
            tokio::task::yield_now().await;
        }
        harness.client().await;
    });
}

#[test]
fn a_word_outside_of_the_whitelist_is_told_so() {
    local(async {
        let harness = start(0).await;
        let mut stream = connect(&harness.addr).await;
        stream.write_all(b"dump").await.expect("written");
        assert_eq!(rest(&mut stream).await, b"dump is not executed because it is not in the whitelist.\n");
    });
}

/// Lets everything happen that can.
async fn settle() {
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
}

#[test]
fn all_hosts_together_have_only_so_many_connections() {
    local(async {
        let harness = start_with(|config| config.limits.connections = 1).await;
        let _first = harness.client().await;
        let mut second = connect(&harness.addr).await;
        assert_eq!(rest(&mut second).await, b"");
        assert_eq!(harness.port.metrics.connection_rejected.get(), 1);
    });
}

#[test]
fn beyond_the_global_limit_clients_that_wait_for_answers_are_left_unread() {
    local(async {
        let harness = start_with(|config| config.limits.outstanding = 1).await;
        let (mut a, a_client) = harness.client().await;
        let (mut b, b_client) = harness.client().await;
        a.write_all(&request_frame(1)).await.expect("written");
        assert_eq!(harness.next_xid().await, 1);
        b.write_all(&request_frame(2)).await.expect("written");
        assert_eq!(harness.next_xid().await, 2, "it had nothing open");
        b.write_all(&request_frame(3)).await.expect("written");
        settle().await;
        assert!(harness.inbox.is_empty(), "now it has");
        harness.reply(b_client, &reply_frame(2));
        assert_eq!(harness.next_xid().await, 3);
        a.write_all(&request_frame(4)).await.expect("written");
        settle().await;
        assert!(harness.inbox.is_empty());
        harness.reply(b_client, &reply_frame(3));
        harness.reply(a_client, &reply_frame(1));
        assert_eq!(harness.next_xid().await, 4);
    });
}

#[test]
fn a_connect_request_without_a_token_is_hung_up_on_before_the_core_hears_of_it() {
    local(async {
        let throttling = crate::config::Throttling {
            tokens: 1,
            fill_time: Duration::from_hours(1),
            fill_count: 1,
            freeze: None,
            increase: 0.0,
            decrease: 0.0,
            decrease_ratio: 0.0,
            new_session: 1,
            renewed_session: 1,
        };
        let harness = start_with(|config| config.limits.throttling = Some(throttling)).await;
        let _first = harness.client().await;
        let mut second = connect(&harness.addr).await;
        second.write_all(&connect_frame()).await.expect("written");
        assert_eq!(rest(&mut second).await, b"");
        assert!(harness.inbox.is_empty());
    });
}

#[test]
fn a_connection_that_says_nothing_is_closed_in_its_time() {
    local(async {
        let harness = start_with(|config| config.limits.first_words = Duration::from_millis(10)).await;
        let mut silent = connect(&harness.addr).await;
        assert_eq!(rest(&mut silent).await, b"");
    });
}

#[test]
fn a_draining_port_answers_what_it_has_read_and_reads_no_more() {
    local(async {
        let harness = start(0).await;
        let (mut stream, client) = harness.client().await;
        stream.write_all(&request_frame(1)).await.expect("written");
        assert_eq!(harness.next_xid().await, 1);
        harness.port.drain();
        stream.write_all(&request_frame(2)).await.expect("written");
        settle().await;
        assert!(TcpStream::connect((harness.addr.host.as_str(), harness.addr.port)).await.is_err());
        assert!(harness.inbox.is_empty() && !harness.port.is_drained());
        harness.reply(client, &reply_frame(1));
        assert!(harness.port.is_drained());
        harness.port.close_all();
        assert_eq!(rest(&mut stream).await, reply_frame(1));
        drop(stream);
        while !harness.port.is_deserted() {
            tokio::task::yield_now().await;
        }
    });
}

#[test]
fn each_connection_is_counted_until_it_is_told_to_forget() {
    local(async {
        let harness = start(0).await;
        let (mut stream, client) = harness.client().await;
        stream.write_all(&request_frame(7)).await.expect("written");
        assert_eq!(harness.next_xid().await, 7);
        harness.reply(client, &reply_frame(7));
        let view = harness.port.connections().pop().expect("one");
        assert_eq!((view.session, view.timeout_ms), (Some(SessionId(1)), 10_000));
        assert_eq!((view.received, view.sent, view.outstanding), (2, 2, 0));
        assert_eq!((view.last_operation, view.last_cxid, view.last_zxid), ("PING", Some(7), 1));
        harness.port.reset_connections();
        let view = harness.port.connections().pop().expect("one");
        assert_eq!((view.session, view.received, view.sent), (Some(SessionId(1)), 0, 0));
        assert_eq!(harness.port.traffic().answered, 2, "that is the server's");
        harness.port.reset_traffic();
        assert_eq!((harness.port.traffic().answered, harness.port.traffic().connections), (0, 1));
    });
}
