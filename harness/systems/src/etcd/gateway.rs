//! One connection to a member's JSON gateway.
//!
//! A request is sent once. Whether it may have reached the member is the one thing that matters after a
//! failure: only what never left this process is *not sent*. An answer that is not awaited any more leaves
//! the connection unusable, because HTTP/1.1 would hand it to the next request.

use std::net::SocketAddr;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::{Method, Request, StatusCode, header};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::sync::watch;

/// An answer longer than this is none of a workload's.
const MAX_ANSWER_BYTES: usize = 16 << 20;

/// What came back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Reply {
    /// The member answered: whether with success, and what.
    Answered {
        /// Whether the status said so.
        is_ok: bool,
        /// The body.
        body: Bytes,
    },
    /// The request never left.
    NotSent(String),
    /// The request left, and no whole answer came.
    Lost(String),
}

/// A connection.
pub(super) struct Gateway {
    host: String,
    sender: SendRequest<Full<Bytes>>,
    /// True when the connection is over.
    over: watch::Receiver<bool>,
}

impl Gateway {
    /// Opens an HTTP/1.1 connection to the member.
    pub(super) async fn connect(member: SocketAddr) -> Result<Self, std::io::Error> {
        let stream = TcpStream::connect(member).await?;
        stream.set_nodelay(true)?;
        let (sender, connection) = handshake(TokioIo::new(stream)).await.map_err(std::io::Error::other)?;
        let (ended, over) = watch::channel(false);
        tokio::spawn(async move {
            // What it ended with is told to whoever waits for an answer.
            let _ = connection.await;
            ended.send_replace(true);
        });
        Ok(Self { host: member.to_string(), sender, over })
    }

    /// Whether the connection stands, as far as is known.
    pub(super) fn stands(&self) -> bool {
        !self.sender.is_closed() && !*self.over.borrow()
    }

    /// Completes when the connection is over.
    pub(super) async fn over(&self) {
        let mut over = self.over.clone();
        // A sender that is gone without a word has ended as well.
        let _ = over.wait_for(|over| *over).await;
    }

    /// Asks, by `POST /v3/...`.
    pub(super) async fn post(&mut self, path: &str, body: Vec<u8>) -> Reply {
        let request = Request::builder()
            .method(Method::POST)
            .uri(path)
            .header(header::HOST, &self.host)
            .header(header::CONTENT_TYPE, "application/json")
            .body(Full::new(Bytes::from(body)));
        let request = match request {
            Ok(request) => request,
            Err(error) => return Reply::NotSent(error.to_string()),
        };
        if let Err(error) = self.sender.ready().await {
            return Reply::NotSent(error.to_string());
        }
        let response = match self.sender.try_send_request(request).await {
            Ok(response) => response,
            Err(mut error) => {
                let never_left = error.take_message().is_some();
                let why = error.into_error().to_string();
                return if never_left { Reply::NotSent(why) } else { Reply::Lost(why) };
            }
        };
        let is_ok = response.status() == StatusCode::OK;
        match Limited::new(response.into_body(), MAX_ANSWER_BYTES).collect().await {
            Ok(body) => Reply::Answered { is_ok, body: body.to_bytes() },
            Err(error) => Reply::Lost(error.to_string()),
        }
    }
}
