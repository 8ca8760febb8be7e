//! A server of a few lines: it shakes hands and then does what the test says, frame by frame.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use node_client::{Client, ConnectOptions, EventType, Keeper, KeeperOptions, State};
use node_wire::client::{
    ConnectRequest, ConnectResponse, GetDataResponse, OpCode, ReplyHeader, Request, Stat, WatcherEvent,
    XID_PING, XID_WATCH, put_frame, take_frame,
};
use node_wire::ids::{SessionId, Zxid};
use node_wire::jute::{Reader, Writer};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// No test here waits longer than this for anything.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);

pub(crate) struct Fake {
    listener: TcpListener,
    pub(crate) addr: SocketAddr,
}

/// The server's side of one connection.
pub(crate) struct Side {
    pub(crate) stream: TcpStream,
    received: BytesMut,
}

impl Fake {
    pub(crate) async fn bind() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let addr = listener.local_addr().expect("bound");
        Self { listener, addr }
    }

    pub(crate) async fn accept(&self) -> Side {
        let (stream, _) = self.listener.accept().await.expect("a connection");
        stream.set_nodelay(true).expect("set");
        Side { stream, received: BytesMut::new() }
    }

    /// A client and the server's side of it, shaken hands.
    pub(crate) async fn pair(&self, options: ConnectOptions) -> (Client, Side) {
        let timeout_ms = i32::try_from(options.timeout.as_millis()).expect("short");
        let server = async {
            let mut side = self.accept().await;
            side.welcome(timeout_ms).await;
            side
        };
        let (client, side) = tokio::join!(node_client::connect(self.addr, options), server);
        (client.expect("connected"), side)
    }

    /// A client's kept session, and the server's side of its first connection.
    pub(crate) async fn keeper(&self, options: KeeperOptions) -> (Keeper, Side) {
        let keeper = Keeper::start(self.addr, options).expect("a list of servers");
        let side = self.serve().await;
        connected(&keeper).await;
        (keeper, side)
    }

    /// Takes the next connection and lets its session begin or go on.
    pub(crate) async fn serve(&self) -> Side {
        let mut side = in_time(self.accept()).await;
        side.welcome(10_000).await;
        side
    }
}

/// What is waited for, or the end of the test.
pub(crate) async fn in_time<T>(wait: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, wait).await.expect("in time")
}

pub(crate) async fn state(keeper: &Keeper, wanted: impl FnMut(&State) -> bool) -> State {
    let mut states = keeper.states();
    in_time(states.wait_for(wanted)).await.expect("kept").clone()
}

pub(crate) async fn connected(keeper: &Keeper) -> State {
    state(keeper, |state| matches!(state, State::Connected { .. })).await
}

pub(crate) fn data(text: &'static str) -> GetDataResponse {
    GetDataResponse { data: Some(Bytes::from_static(text.as_bytes())), stat: Stat::default() }
}

impl Side {
    /// The next frame, or `None` at the end of the connection.
    pub(crate) async fn frame(&mut self) -> Option<Bytes> {
        loop {
            if let Some(frame) = take_frame(&mut self.received, 1 << 20).expect("a sound frame") {
                return Some(frame);
            }
            match self.stream.read_buf(&mut self.received).await {
                Ok(0) | Err(_) => return None,
                Ok(_) => {}
            }
        }
    }

    /// The next request that is no ping, of this operation.
    pub(crate) async fn asked(&mut self, op: OpCode) -> Request {
        loop {
            let request = in_time(self.request()).await.expect("a request");
            if request.xid != XID_PING {
                assert_eq!(OpCode::from_code(request.op), Some(op));
                return request;
            }
        }
    }

    /// Waits for the end of the connection; nothing may come before it.
    pub(crate) async fn ended(&mut self) {
        let request = in_time(self.request()).await;
        assert!(request.is_none(), "{request:?}");
    }

    pub(crate) async fn request(&mut self) -> Option<Request> {
        self.frame().await.map(|frame| Request::decode(frame).expect("a sound request"))
    }

    pub(crate) async fn connect_request(&mut self) -> ConnectRequest {
        let frame = self.frame().await.expect("a connect request");
        ConnectRequest::decode(&mut Reader::new(frame)).expect("a sound connect request")
    }

    pub(crate) async fn welcome(&mut self, timeout_ms: i32) -> ConnectRequest {
        self.welcome_as(timeout_ms, false).await
    }

    pub(crate) async fn welcome_as(&mut self, timeout_ms: i32, read_only: bool) -> ConnectRequest {
        let request = in_time(self.connect_request()).await;
        let session = if request.session == SessionId::NONE { SessionId(77) } else { request.session };
        let response = ConnectResponse {
            protocol_version: 0,
            timeout_ms,
            session,
            password: Bytes::from_static(b"0123456789abcdef"),
            read_only: Some(read_only),
        };
        self.send(|w| response.encode(w)).await;
        request
    }

    pub(crate) async fn send(&mut self, body: impl FnOnce(&mut Writer<'_>)) {
        let mut out = BytesMut::new();
        put_frame(&mut out, body);
        self.stream.write_all(&out).await.expect("the client listens");
    }

    pub(crate) async fn event(&mut self, kind: EventType, path: &str) {
        let event = WatcherEvent { kind: kind.code(), state: 3, path: path.into() };
        self.answer(XID_WATCH, u64::MAX, 0, |w| event.encode(w)).await;
    }

    pub(crate) async fn answer(&mut self, xid: i32, zxid: u64, err: i32, body: impl FnOnce(&mut Writer<'_>)) {
        self.send(|w| {
            ReplyHeader { xid, zxid: Zxid(zxid), err }.encode(w);
            body(w);
        })
        .await;
    }
}
