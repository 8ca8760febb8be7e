//! A store in a browser: a page that lists its runs, and the files below it.
//!
//! Nothing can be changed through it, and nobody but this machine reaches it: it listens on 127.0.0.1. A page
//! of another site that is open in the same browser must not read it either. So a request must name this
//! server as its host, which a name that was made to lead here does not. No other site may read an answer.
//! The pages of runs may be somebody else's: they may load nothing, and read no other page of the store.
//!
//! - `place`: from the path of a request to a file of the store, and never to one outside of it.
//! - `listing`: what is in the store.
//! - `range`: which part of a file is asked for.
//! - `places`: who keeps a connection, and who must make room.

mod listing;
mod place;
mod places;
mod range;

use std::convert::Infallible;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use harness_systems::bounded;
use http_body_util::channel::{Channel, Sender};
use http_body_util::{BodyExt, Full, combinators::BoxBody};
use hyper::body::Incoming;
use hyper::header::{self, HeaderName, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

use place::Place;
use places::Places;
use range::Asked;

/// The port of addresses that name none.
const USUAL_PORT: u16 = 80;
/// Connections at a time; for a further one the stalest of them ends.
const MAX_CONNECTIONS: usize = 64;
/// How long the head of a request may take, from the beginning of its connection.
const HEAD_PATIENCE: Duration = Duration::from_secs(10);
/// How long nothing may move on a connection: whoever reads nothing is not answered for ever.
const IDLE_PATIENCE: Duration = Duration::from_secs(60);
/// The pause after no connection could be taken: descriptors may have run out.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// Bytes of a file that are read at a time.
const PART_BYTES: usize = 64 << 10;
/// Parts of a file that wait for whoever reads slowly.
const WAITING_PARTS: usize = 4;

/// What every answer says about itself. A page may use its own style and script, and load nothing. It stands
/// by itself: another page of this server is of another origin to it.
const HEADERS: [(HeaderName, &str); 6] = [
    (header::CACHE_CONTROL, "no-store"),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::REFERRER_POLICY, "no-referrer"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (
        header::CONTENT_SECURITY_POLICY,
        "sandbox allow-scripts allow-downloads; default-src 'none'; style-src 'unsafe-inline'; script-src \
         'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
];

/// What is served.
#[derive(Debug)]
pub struct Site {
    /// The store, absolute and without links.
    pub store: PathBuf,
    /// The store, as somebody named it.
    pub name: String,
    /// The port on which it is served.
    pub port: u16,
}

type Answer = Response<BoxBody<Bytes, Infallible>>;

/// Answers whoever connects.
pub async fn serve(listener: TcpListener, site: Site) -> Infallible {
    let (site, places) = (Arc::new(site), Places::new(MAX_CONNECTIONS));
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                tokio::spawn(converse(stream, places.take(), Arc::clone(&site)));
            }
            Err(error) => {
                tracing::warn!(%error, "a connection could not be taken");
                places.end_one();
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// Answers one request: a browser on this machine opens another connection at no cost.
async fn converse(stream: TcpStream, place: places::Place, site: Arc<Site>) {
    let asked = Arc::<Notify>::default();
    let service = service_fn(|request: Request<Incoming>| {
        let site = Arc::clone(&site);
        asked.notify_one();
        async move { Ok::<_, Infallible>(answer(&request, site).await) }
    });
    let stream = TokioIo::new(place.noted(stream));
    let connection = http1::Builder::new().keep_alive(false).serve_connection(stream, service);
    let never_asks = async {
        if tokio::time::timeout(HEAD_PATIENCE, asked.notified()).await.is_ok() {
            std::future::pending::<()>().await;
        }
    };
    tokio::select! {
        ended = connection => if let Err(error) = ended {
            tracing::debug!(%error, "a connection ended");
        },
        () = never_asks => tracing::debug!("a connection asked for nothing, and is ended"),
        () = place.is_over(IDLE_PATIENCE) => tracing::debug!("a connection stood still, and is ended"),
    }
}

async fn answer(request: &Request<Incoming>, site: Arc<Site>) -> Answer {
    let host = request.headers().get(header::HOST).and_then(|host| host.to_str().ok());
    let mut answer = if !is_ours(host, site.port) {
        text(StatusCode::MISDIRECTED_REQUEST, "this server is 127.0.0.1, and no other name\n")
    } else if ![Method::GET, Method::HEAD].contains(request.method()) {
        let mut answer = text(StatusCode::METHOD_NOT_ALLOWED, "nothing can be changed here\n");
        answer.headers_mut().insert(header::ALLOW, HeaderValue::from_static("GET, HEAD"));
        answer
    } else {
        let path = request.uri().path().to_owned();
        let range = part_asked_for(request);
        // Files are read on threads that may wait.
        let found = tokio::task::spawn_blocking(move || find(&site, &path, range.as_deref())).await;
        found.unwrap_or_else(|_| text(StatusCode::INTERNAL_SERVER_ERROR, "this could not be read\n"))
    };
    for (name, value) in HEADERS {
        answer.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    answer
}

/// Whether a request was meant for this server, and not for a name that was made to lead here.
fn is_ours(host: Option<&str>, port: u16) -> bool {
    ["127.0.0.1", "localhost"].iter().any(|name| {
        // Browsers leave the usual port out.
        host == Some(&format!("{name}:{port}")) || (port == USUAL_PORT && host == Some(name))
    })
}

/// The part of a file that a request asks for. What is there may be another file than that of which somebody
/// has a part, so who asks only if it is the same gets the whole.
fn part_asked_for(request: &Request<Incoming>) -> Option<String> {
    let range = request
        .headers()
        .get(header::RANGE)
        .filter(|_| *request.method() == Method::GET && !request.headers().contains_key(header::IF_RANGE));
    range.and_then(|range| range.to_str().ok()).map(str::to_owned)
}

fn find(site: &Site, path: &str, range: Option<&str>) -> Answer {
    match place::of(&site.store, path) {
        Place::Nothing => text(StatusCode::NOT_FOUND, "there is nothing here\n"),
        Place::Moved(to) => {
            let mut answer = text(StatusCode::PERMANENT_REDIRECT, "it is a folder\n");
            if let Ok(to) = HeaderValue::from_str(&to) {
                answer.headers_mut().insert(header::LOCATION, to);
            }
            answer
        }
        Place::Runs => {
            page(reports::store::page(&listing::runs(&site.store, &site.name)), "text/html; charset=utf-8")
        }
        Place::Folder(folder) => page(listing::files(&folder), "text/html; charset=utf-8"),
        Place::File(file) => send(&file, range),
    }
}

fn text(status: StatusCode, words: &'static str) -> Answer {
    let mut answer = page(words.to_owned(), "text/plain; charset=utf-8");
    *answer.status_mut() = status;
    answer
}

fn page(content: String, kind: &'static str) -> Answer {
    let mut answer = Response::new(Full::new(Bytes::from(content)).boxed());
    answer.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    answer
}

/// A file, or a part of it, read while it is sent. As much is sent as it had when it was asked for: it may
/// grow meanwhile.
fn send(path: &Path, range: Option<&str>) -> Answer {
    let opened = bounded::open(path).and_then(|file| Ok((file.metadata()?.len(), file)));
    let Ok((length, file)) = opened else {
        return text(StatusCode::NOT_FOUND, "this could not be read\n");
    };
    let (status, part) = match range.map_or(Asked::Whole, |range| range::of(range, length)) {
        Asked::Whole => (StatusCode::OK, 0..length),
        Asked::Part(part) => (StatusCode::PARTIAL_CONTENT, part),
        Asked::Beyond => {
            let mut answer = text(StatusCode::RANGE_NOT_SATISFIABLE, "the file is not that long\n");
            set(&mut answer, header::CONTENT_RANGE, &format!("bytes */{length}"));
            return answer;
        }
    };
    let (sender, body) = Channel::new(WAITING_PARTS);
    let mut answer = Response::new(body.boxed());
    *answer.status_mut() = status;
    set(&mut answer, header::CONTENT_TYPE, place::kind(path));
    set(&mut answer, header::ACCEPT_RANGES, "bytes");
    set(&mut answer, header::CONTENT_LENGTH, &(part.end - part.start).to_string());
    if status == StatusCode::PARTIAL_CONTENT {
        let Range { start, end } = part;
        set(&mut answer, header::CONTENT_RANGE, &format!("bytes {start}-{}/{length}", end - 1));
    }
    tokio::spawn(send_parts(file, part, sender));
    answer
}

fn set(answer: &mut Answer, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        answer.headers_mut().insert(name, value);
    }
}

async fn send_parts(mut file: File, part: Range<u64>, mut sender: Sender<Bytes>) {
    // Where it can't be found the connection ends, and the browser knows.
    if file.seek(SeekFrom::Start(part.start)).is_err() {
        return;
    }
    let mut file = file.take(part.end - part.start);
    loop {
        let read = tokio::task::spawn_blocking(move || {
            let mut part = vec![0; PART_BYTES];
            let read = file.read(&mut part)?;
            part.truncate(read);
            std::io::Result::Ok((part, file))
        });
        match read.await {
            Ok(Ok((part, rest))) if !part.is_empty() => {
                file = rest;
                // Whoever asked may have gone.
                if sender.send_data(part.into()).await.is_err() {
                    return;
                }
            }
            // Less than was promised: the connection ends there, and the browser knows.
            _ => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machine_by_its_own_names_is_answered() {
        for host in ["127.0.0.1:8180", "localhost:8180"] {
            assert!(is_ours(Some(host), 8180), "{host}");
        }
        for host in [None, Some("localhost"), Some("evil.example:8180"), Some("127.0.0.1:80")] {
            assert!(!is_ours(host, 8180), "{host:?}");
        }
        assert!(is_ours(Some("localhost"), 80) && !is_ours(Some("evil.example"), 80));
    }
}
