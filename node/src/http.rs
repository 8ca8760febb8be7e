//! A small HTTP/1.1 server for operators: GET, a path, an answer.
//!
//! Framing is hyper's. What a client may cost is bounded: connections, the length of a request's head, the
//! time for it, the life of a connection, and no body is ever read. It runs on the thread of the sockets, but
//! what takes time is made elsewhere (see [`crate::queries`]).

use std::convert::Infallible;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

use crate::net::{ACCEPT_PAUSE, accept};

/// Connections at a time; more are closed at once.
const MAX_CONNECTIONS: usize = 32;

/// The longest head of a request. hyper asks for at least 8 KiB.
const MAX_HEAD: usize = 16 << 10;

/// Header lines of a request.
const MAX_HEADERS: usize = 64;

/// How long a connection may live, however slowly its answers are read.
const LIFETIME: Duration = Duration::from_secs(120);

/// How long a connection may be silent, where nobody says it.
pub(crate) const USUAL_IDLE: Duration = Duration::from_secs(30);

/// What a page is.
#[derive(Clone, Debug)]
pub(crate) struct Page {
    pub(crate) status: StatusCode,
    pub(crate) kind: &'static str,
    pub(crate) text: String,
}

impl Page {
    pub(crate) fn text(status: StatusCode, text: impl Into<String>) -> Self {
        Self { status, kind: "text/plain; charset=utf-8", text: text.into() }
    }

    pub(crate) fn nothing_here() -> Self {
        Self::text(StatusCode::NOT_FOUND, "there is nothing here\n")
    }

    pub(crate) fn too_many() -> Self {
        Self::text(StatusCode::SERVICE_UNAVAILABLE, "too many ask at once\n")
    }
}

/// Whoever has pages.
pub(crate) trait Pages {
    /// The page at a path, with the query behind it.
    fn page(&self, path: &str, query: Option<&str>) -> impl Future<Output = Page>;
}

/// Answers whoever connects, for ever.
pub(crate) async fn serve<P: Pages + 'static>(listener: TcpListener, idle: Duration, pages: Rc<P>) {
    let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    loop {
        match accept(&listener).await {
            Ok((stream, _)) => {
                let Ok(place) = Arc::clone(&places).try_acquire_owned() else { continue };
                let pages = Rc::clone(&pages);
                tokio::task::spawn_local(async move {
                    converse(stream, idle, pages).await;
                    drop(place);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "failed to accept an operator's connection");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

async fn converse<P: Pages>(stream: TcpStream, idle: Duration, pages: Rc<P>) {
    let service = service_fn(|request: Request<Incoming>| {
        let pages = Rc::clone(&pages);
        async move { Ok::<_, Infallible>(respond(&request, &*pages).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(idle)
        .max_buf_size(MAX_HEAD)
        .max_headers(MAX_HEADERS)
        .serve_connection(TokioIo::new(stream), service);
    match tokio::time::timeout(LIFETIME, connection).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::debug!(%error, "closed an operator's connection"),
        Err(_) => tracing::debug!("closed an operator's connection: it was old"),
    }
}

async fn respond<P: Pages>(request: &Request<Incoming>, pages: &P) -> Response<Full<Bytes>> {
    let page = match *request.method() {
        Method::GET | Method::HEAD => pages.page(request.uri().path(), request.uri().query()).await,
        _ => Page::text(StatusCode::METHOD_NOT_ALLOWED, "only GET is answered\n"),
    };
    let mut response = Response::new(Full::new(Bytes::from(page.text)));
    *response.status_mut() = page.status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(page.kind));
    response
}
