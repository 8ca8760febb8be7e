//! The client port: sessions' connections, and four-letter words.
//!
//! A connection begins with a connect request or with a word. Behind a connect request nothing is read until
//! it is answered; from then on requests are handed to the core as they come and answers go out in batches.
//! What one client may cost is bounded on every side: the length of a frame, the requests that are open, the
//! bytes that wait to be read by it, the connections of its host. Whoever breaks a bound or the protocol loses
//! its own connection and disturbs nobody.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::io;
use std::net::IpAddr;
use std::rc::Rc;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use bytestring::ByteString;
use node_core::io::{ClientId, Input};
use node_wire::client::{ConnectRequest, Id, Request, XID_WATCH, take_frame};
use node_wire::jute::{DecodeError, Reader};
use tokio::net::tcp::OwnedReadHalf;
use tokio::net::{TcpListener, TcpStream};

use crate::config::NodeConfig;
use crate::inbox::Inbox;
use crate::net::ACCEPT_PAUSE;
use crate::outbox::Outbox;
use crate::store::Backlog;
use crate::words::{Question, Traffic, answer};

/// Requests of one client that may be open before its socket is left unread.
const WINDOW: usize = 1024;

/// Answers that may wait for a client before its socket is left unread.
const SLOW_READER: usize = 1 << 20;

/// Answers that may wait for a client at all. Requests that were open already can add to the bound above.
const MAX_WAITING: usize = 64 << 20;

/// Connections from all hosts together; beyond the usual limit of descriptors nothing would work.
const MAX_CLIENTS: usize = 10_000;

/// How long a connection may take to say what it wants.
const FIRST_WORDS: Duration = Duration::from_secs(10);

/// Room made for each read.
const READ_CHUNK: usize = 16 << 10;

/// Requests up to this size are copied out of the read buffer, which they would otherwise keep alive whole.
const COPY_BELOW: usize = 4 << 10;

/// One client as the port sees it.
struct Connection {
    outbox: Outbox,
    /// When each open request was handed over, the connect request first.
    open: RefCell<VecDeque<Instant>>,
    /// The connect request was answered.
    welcomed: Cell<bool>,
}

impl Connection {
    /// True when more may be read from the client.
    fn may_read(&self, disk: &Backlog) -> bool {
        self.open.borrow().len() < WINDOW && self.outbox.waiting() < SLOW_READER && !disk.is_high()
    }
}

/// All connections of the client port.
pub(crate) struct ClientPort {
    config: Rc<NodeConfig>,
    inbox: Rc<Inbox>,
    disk: Backlog,
    voters: usize,
    connections: RefCell<HashMap<ClientId, Rc<Connection>>>,
    sockets: Cell<usize>,
    hosts: RefCell<HashMap<IpAddr, u32>>,
    dirty: RefCell<Vec<Rc<Connection>>>,
    last: Cell<u64>,
    /// When the requests were asked that this batch answers.
    answered: RefCell<Vec<Instant>>,
    traffic: RefCell<Traffic>,
}

/// What ends a connection from our side.
#[derive(Debug, thiserror::Error)]
enum Refusal {
    #[error(transparent)]
    Socket(#[from] io::Error),
    #[error("failed to {0}")]
    Malformed(#[from] DecodeError),
    #[error("no request in time")]
    Silent,
}

impl ClientPort {
    pub(crate) fn new(config: Rc<NodeConfig>, inbox: Rc<Inbox>, disk: Backlog) -> Rc<Self> {
        let voters = config.voters().len();
        Rc::new(Self {
            config,
            inbox,
            disk,
            voters,
            connections: RefCell::default(),
            sockets: Cell::new(0),
            hosts: RefCell::default(),
            dirty: RefCell::default(),
            last: Cell::new(0),
            answered: RefCell::default(),
            traffic: RefCell::default(),
        })
    }

    /// Takes clients in, for ever.
    pub(crate) async fn accept(self: Rc<Self>, listener: TcpListener) {
        loop {
            match listener.accept().await {
                Ok((stream, from)) => self.admit(stream, from.ip()),
                Err(error) => {
                    tracing::warn!(%error, "failed to accept a client");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    fn admit(self: &Rc<Self>, stream: TcpStream, host: IpAddr) {
        let limit = self.config.max_client_cnxns;
        let of_host = self.hosts.borrow().get(&host).copied().unwrap_or(0);
        if limit != 0 && of_host >= limit {
            tracing::warn!(%host, "refused a client: its host has {limit} connections (maxClientCnxns)");
            return;
        }
        if self.sockets.get() >= MAX_CLIENTS {
            tracing::warn!(%host, "refused a client: there are {MAX_CLIENTS} already");
            return;
        }
        // Where it can't be set, answers are late and still right.
        let _ = stream.set_nodelay(true);
        self.sockets.set(self.sockets.get() + 1);
        *self.hosts.borrow_mut().entry(host).or_default() += 1;
        let port = Rc::clone(self);
        tokio::task::spawn_local(async move {
            port.serve(stream, host).await;
            port.dismiss(host);
        });
    }

    fn dismiss(&self, host: IpAddr) {
        self.sockets.set(self.sockets.get().saturating_sub(1));
        let mut hosts = self.hosts.borrow_mut();
        if let Some(count) = hosts.get_mut(&host) {
            *count -= 1;
            if *count == 0 {
                hosts.remove(&host);
            }
        }
    }

    /// One connection's life.
    async fn serve(&self, stream: TcpStream, host: IpAddr) {
        self.last.set(self.last.get() + 1);
        let client = ClientId(self.last.get());
        let (mut reader, writer) = stream.into_split();
        let connection = Rc::new(Connection {
            outbox: Outbox::new(writer, MAX_WAITING),
            open: RefCell::default(),
            welcomed: Cell::new(false),
        });
        if let Err(refusal) = self.converse(client, host, &connection, &mut reader).await {
            tracing::debug!(?client, %refusal, "closed a client's connection");
        }
        self.lose(client);
        connection.outbox.linger(&mut reader).await;
    }

    async fn converse(
        &self,
        client: ClientId,
        host: IpAddr,
        connection: &Rc<Connection>,
        reader: &mut OwnedReadHalf,
    ) -> Result<(), Refusal> {
        let mut received = BytesMut::new();
        let first = tokio::time::timeout(FIRST_WORDS, self.first_frame(connection, reader, &mut received))
            .await
            .map_err(|_| Refusal::Silent)??;
        let Some(first) = first else { return Ok(()) };
        let request = ConnectRequest::decode(&mut Reader::new(apart(first)))?;
        self.connections.borrow_mut().insert(client, Rc::clone(connection));
        connection.open.borrow_mut().push_back(Instant::now());
        self.inbox.put_client(Input::ClientConnect { client, request, who: vec![address_of(host)] });
        if !connection.outbox.until(|| connection.welcomed.get()).await? {
            return Ok(());
        }
        loop {
            self.hand_over(client, connection, &mut received)?;
            self.inbox.make_room().await;
            let may_read = || connection.may_read(&self.disk);
            if !connection.outbox.read(reader, &mut received, READ_CHUNK, may_read).await? {
                return Ok(());
            }
        }
    }

    /// The first frame, or none where the connection ended or a word was answered.
    async fn first_frame(
        &self,
        connection: &Connection,
        reader: &mut OwnedReadHalf,
        received: &mut BytesMut,
    ) -> Result<Option<Bytes>, Refusal> {
        loop {
            if let Some(&first) = received.first_chunk::<4>() {
                match self.config.words.question(first) {
                    Question::NotAWord => {
                        if let Some(frame) = take_frame(received, self.config.jute_max_buffer)? {
                            return Ok(Some(frame));
                        }
                    }
                    Question::Ask(word) => {
                        let Some(status) = self.inbox.status().await else { return Ok(None) };
                        say(connection, &answer(word, &status, self.voters, &self.traffic()));
                        return Ok(None);
                    }
                    Question::Refuse(reason) => {
                        say(connection, &reason);
                        return Ok(None);
                    }
                }
            }
            if !connection.outbox.read(reader, received, READ_CHUNK, || true).await? {
                return Ok(None);
            }
        }
    }

    /// Gives every whole request to the core, as long as the connection is the core's.
    fn hand_over(
        &self,
        client: ClientId,
        connection: &Connection,
        received: &mut BytesMut,
    ) -> Result<(), Refusal> {
        let now = Instant::now();
        while connection.outbox.is_alive() {
            let Some(frame) = take_frame(received, self.config.jute_max_buffer)? else { break };
            let request = Request::decode(apart(frame))?;
            self.traffic.borrow_mut().received += 1;
            connection.open.borrow_mut().push_back(now);
            self.inbox.put_client(Input::ClientRequest { client, request });
        }
        Ok(())
    }

    /// The connection broke: the core is told, unless it closed it.
    fn lose(&self, client: ClientId) {
        if self.connections.borrow_mut().remove(&client).is_some() {
            self.inbox.put_client(Input::ClientLost { client });
        }
    }

    fn traffic(&self) -> Traffic {
        Traffic { connections: self.connections.borrow().len(), ..self.traffic.borrow().clone() }
    }

    /// Queues an answer or an event. It leaves with [`ClientPort::flush`].
    pub(crate) fn reply(&self, client: ClientId, frame: &Bytes) {
        let Some(connection) = self.connections.borrow().get(&client).cloned() else { return };
        self.settle(&connection, frame);
        if connection.outbox.append(|buffer| buffer.extend_from_slice(frame)).is_err() {
            tracing::warn!(?client, "closed a client that reads nothing: {MAX_WAITING} bytes wait for it");
            self.lose(client);
            connection.outbox.kill();
            return;
        }
        if connection.outbox.make_dirty() {
            self.dirty.borrow_mut().push(connection);
        }
    }

    /// Counts an answer against its request.
    fn settle(&self, connection: &Connection, frame: &Bytes) {
        self.traffic.borrow_mut().sent += 1;
        // The connect response has no header, so its first field is no xid.
        if connection.welcomed.replace(true) && xid(frame) == Some(XID_WATCH) {
            return;
        }
        if let Some(since) = connection.open.borrow_mut().pop_front() {
            self.answered.borrow_mut().push(since);
        }
    }

    /// Closes a connection behind what is queued on it.
    pub(crate) fn close(&self, client: ClientId) {
        if let Some(connection) = self.connections.borrow_mut().remove(&client) {
            connection.outbox.close();
        }
    }

    /// Writes what the batch queued. Its requests count as answered now.
    pub(crate) fn flush(&self, now: Instant) {
        let mut traffic = self.traffic.borrow_mut();
        for since in self.answered.borrow_mut().drain(..) {
            traffic.answered_in(now.saturating_duration_since(since));
        }
        drop(traffic);
        for connection in self.dirty.borrow_mut().drain(..) {
            connection.outbox.flush();
            // It may be left unread because of what was just answered.
            connection.outbox.poke();
        }
    }

    /// The disk caught up: whoever was left unread because of it is read again.
    pub(crate) fn resume(&self) {
        for connection in self.connections.borrow().values() {
            connection.outbox.poke();
        }
    }
}

/// The identity that every client has. One that reaches an IPv6 socket over IPv4 is called by its own address.
fn address_of(host: IpAddr) -> Id {
    let id = ByteString::from(host.to_canonical().to_string());
    Id { scheme: ByteString::from_static("ip"), id }
}

fn say(connection: &Connection, text: &str) {
    // A text is shorter than any limit.
    let _ = connection.outbox.append(|buffer| buffer.extend_from_slice(text.as_bytes()));
    connection.outbox.close();
}

/// The xid of a framed reply.
fn xid(frame: &Bytes) -> Option<i32> {
    frame.get(4..8)?.first_chunk::<4>().map(|bytes| i32::from_be_bytes(*bytes))
}

/// See the quorum port's: a small request must not keep a whole read buffer alive.
fn apart(frame: Bytes) -> Bytes {
    if frame.len() < COPY_BELOW { Bytes::copy_from_slice(&frame) } else { frame }
}

#[cfg(test)]
mod tests;
