//! The client port: sessions' connections, and four-letter words.
//!
//! A connection begins with a handshake of TLS where the port asks for one, and then with a connect request
//! or with a word. Behind a connect request nothing is read until it is answered; from then on requests are
//! handed to the core as they come and answers go out in batches. What one client may cost is bounded on
//! every side: the length of a frame, the requests that are open, the bytes that wait to be read by it, the
//! connections of its host. Whoever breaks a bound or the protocol loses its own connection and disturbs
//! nobody.

mod connection;
mod counts;
mod throttle;

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use bytestring::ByteString;
use node_core::io::{ClientId, Input};
use node_wire::client::{ConnectRequest, Id, OpCode, Request, SaslPacket, XID_WATCH, take_frame};
use node_wire::ids::SessionId;
use node_wire::jute::{DecodeError, Reader};
use tokio::net::tcp::OwnedReadHalf;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::AbortHandle;

use crate::address::HostPort;
use crate::clock::wall_ms;
use crate::config::NodeConfig;
use crate::inbox::Inbox;
use crate::metrics::Metrics;
use crate::net::{ACCEPT_PAUSE, Seldom, accept, adopt, keep_client_alive, listen_with};
use crate::outbox::Outbox;
use crate::queries::Queries;
use crate::store::Backlog;
use crate::tls::channel::Channel;
use crate::tls::handshaker::{Handshaker, Side};
use crate::tls::{ClientTls, Guard, HANDSHAKE};
use crate::view::{ConnectionView, Traffic};
use crate::whitelist::{Question, Word};
use connection::{Connection, Open, xid};
use counts::Counts;
use throttle::Throttle;

/// Requests of one client that may be open before its socket is left unread.
const WINDOW: usize = 1024;

/// Answers that may wait for a client before its socket is left unread.
const SLOW_READER: usize = 1 << 20;

/// Answers that may wait for a client at all. Requests that were open already can add to the bound above.
const MAX_WAITING: usize = 64 << 20;

/// Answers that may wait for all clients together; beyond it the next that reads nothing loses its
/// connection. Bounds for each alone would let a few hosts have all the memory there is.
const MAX_WAITING_TOGETHER: usize = 256 << 20;

/// How long a stopping member waits for its clients' last requests.
pub(crate) const DRAIN: Duration = Duration::from_secs(5);

/// Room made for each read.
const READ_CHUNK: usize = 16 << 10;

/// Requests up to this size are copied out of the read buffer, which they would otherwise keep alive whole.
const COPY_BELOW: usize = 4 << 10;

/// All connections of the client port.
pub(crate) struct ClientPort {
    config: Rc<NodeConfig>,
    inbox: Rc<Inbox>,
    queries: Rc<Queries>,
    metrics: Arc<Metrics>,
    disk: Backlog,
    started: Instant,
    connections: RefCell<HashMap<ClientId, Rc<Connection>>>,
    sockets: Cell<usize>,
    hosts: RefCell<HashMap<IpAddr, u32>>,
    dirty: RefCell<Vec<Rc<Connection>>>,
    counts: RefCell<Counts>,
    last: Cell<u64>,
    /// Requests of all clients that are open.
    open: Cell<usize>,
    /// Somebody was left unread because of them.
    held_back: Cell<bool>,
    throttle: RefCell<Option<Throttle>>,
    /// Nobody is taken in and nothing is read any more.
    draining: Cell<bool>,
    acceptors: RefCell<Vec<(Guard, AbortHandle)>>,
    /// Where there is TLS, with the handshakes that are under way.
    secure: Option<Secure>,
    refusals: Seldom,
    /// Where clients connect who need no TLS.
    port: Cell<u16>,
    traffic: RefCell<Traffic>,
}

/// Handshakes with clients.
struct Secure {
    tls: Arc<ClientTls>,
    handshaker: Handshaker,
    under_way: Cell<usize>,
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
    #[error("too many connect requests (connection_throttle_tokens)")]
    Throttled,
    #[error("too many handshakes (netty.server.outstandingHandshake.limit)")]
    TooManyHandshakes,
    #[error("failed to shake hands: {0}")]
    Handshake(io::Error),
}

impl ClientPort {
    pub(crate) fn new(
        config: Rc<NodeConfig>,
        inbox: Rc<Inbox>,
        queries: Rc<Queries>,
        metrics: Arc<Metrics>,
        disk: Backlog,
    ) -> Rc<Self> {
        let started = Instant::now();
        let secure = config.security.clients.as_ref().map(|tls| Secure {
            tls: Arc::clone(tls),
            handshaker: Handshaker::default(),
            under_way: Cell::new(0),
        });
        let throttle = config.limits.throttling.clone().map(|throttling| Throttle::new(throttling, started));
        Rc::new(Self {
            config,
            inbox,
            queries,
            metrics,
            disk,
            started,
            connections: RefCell::default(),
            sockets: Cell::new(0),
            hosts: RefCell::default(),
            dirty: RefCell::default(),
            counts: RefCell::default(),
            last: Cell::new(0),
            open: Cell::new(0),
            held_back: Cell::new(false),
            throttle: RefCell::new(throttle),
            draining: Cell::new(false),
            acceptors: RefCell::default(),
            secure,
            refusals: Seldom::default(),
            port: Cell::new(0),
            traffic: RefCell::default(),
        })
    }

    /// Takes clients in, until the port is drained.
    pub(crate) fn start(self: &Rc<Self>, listener: TcpListener, guard: Guard) {
        if guard != Guard::Secure {
            self.port.set(listener.local_addr().map_or(0, |address| address.port()));
        }
        let task = tokio::task::spawn_local(Rc::clone(self).accept(listener, guard));
        self.acceptors.borrow_mut().push((guard, task.abort_handle()));
    }

    /// Takes clients in at another address, and where it is told that it does. `None` where it does already,
    /// or no more, or takes in none without TLS: the address in a server's line is that of the port without
    /// it.
    ///
    /// # Errors
    /// When the address can't be had. Clients are taken in as before then.
    pub(crate) fn listen_elsewhere(self: &Rc<Self>, address: &HostPort) -> anyhow::Result<Option<String>> {
        if self.draining.get() || address.port == self.port.get() {
            return Ok(None);
        }
        let plain = self.acceptors.borrow().iter().position(|(guard, _)| *guard != Guard::Secure);
        let Some(plain) = plain else { return Ok(None) };
        let listener = adopt(listen_with(address, "clients", self.config.limits.backlog)?)?;
        let listening = listener.local_addr()?.to_string();
        let (guard, acceptor) = self.acceptors.borrow_mut().remove(plain);
        acceptor.abort();
        self.start(listener, guard);
        Ok(Some(listening))
    }

    async fn accept(self: Rc<Self>, listener: TcpListener, guard: Guard) {
        loop {
            match accept(&listener).await {
                Ok((stream, from)) => self.admit(stream, from, guard),
                Err(error) => {
                    tracing::warn!(%error, "failed to accept a client");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    fn admit(self: &Rc<Self>, stream: TcpStream, from: SocketAddr, guard: Guard) {
        let host = from.ip();
        let limit = self.config.max_client_cnxns;
        let of_host = self.hosts.borrow().get(&host).copied().unwrap_or(0);
        if limit != 0 && of_host >= limit {
            self.metrics.connection_rejected.one();
            if let Some(more) = self.refusals.say() {
                tracing::warn!(%host, more, "refused a client: its host has {limit} connections \
                    (maxClientCnxns)");
            }
            return;
        }
        let limit = self.config.limits.connections;
        if self.sockets.get() >= limit {
            self.metrics.connection_rejected.one();
            if let Some(more) = self.refusals.say() {
                tracing::warn!(%host, more, "refused a client: there are {limit} connections (maxCnxns)");
            }
            return;
        }
        if self.config.limits.keep_alive {
            keep_client_alive(&stream);
        }
        // Where it can't be set, answers are late and still right.
        let _ = stream.set_nodelay(true);
        self.sockets.set(self.sockets.get() + 1);
        *self.hosts.borrow_mut().entry(host).or_default() += 1;
        let port = Rc::clone(self);
        tokio::task::spawn_local(async move {
            match port.let_through(stream, guard).await {
                Ok((stream, channel, who)) => port.serve(stream, channel, from, who).await,
                Err(refusal) => {
                    tracing::debug!(%from, %refusal, "closed a connection before it said anything")
                }
            }
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

    /// Shakes hands where that is asked for. Gives what is left to talk on, and who the certificate says it
    /// is.
    async fn let_through(
        &self,
        stream: TcpStream,
        guard: Guard,
    ) -> Result<(TcpStream, Option<Channel>, Vec<Id>), Refusal> {
        let Some(Secure { tls, handshaker, under_way }) = &self.secure else {
            return Ok((stream, None, Vec::new()));
        };
        let is_secure = match guard {
            Guard::Plain => false,
            Guard::Secure => true,
            Guard::Either => {
                let patience = self.config.limits.first_words;
                let mut first = [0];
                let peeked = tokio::time::timeout(patience, stream.peek(&mut first)).await;
                peeked.map_err(|_| Refusal::Silent)?? > 0 && first == [HANDSHAKE]
            }
        };
        if !is_secure {
            return Ok((stream, None, Vec::new()));
        }
        if under_way.get() >= tls.handshakes {
            self.metrics.tls_handshake_exceeded.one();
            return Err(Refusal::TooManyHandshakes);
        }
        under_way.set(under_way.get() + 1);
        let side = Side::Accepts(Arc::clone(tls.server()));
        let welcomed = handshaker.welcome(stream, side, tls.patience).await;
        under_way.set(under_way.get() - 1);
        let (stream, connection) = welcomed.map_err(|error| {
            self.metrics.unsuccessful_handshake.one();
            Refusal::Handshake(error)
        })?;
        let who = tls.identities(&connection);
        Ok((stream, Some(Channel::new(connection)), who))
    }

    /// One connection's life.
    async fn serve(&self, stream: TcpStream, channel: Option<Channel>, from: SocketAddr, who: Vec<Id>) {
        self.last.set(self.last.get() + 1);
        let client = ClientId(self.last.get());
        let (mut reader, writer) = stream.into_split();
        let outbox = Outbox::new(writer, channel, self.max_waiting());
        let connection = Rc::new(Connection::new(outbox, from, wall_ms()));
        let who = std::iter::once(address_of(from.ip())).chain(who).collect();
        let ended = self.converse(client, who, &connection, &mut reader).await;
        if let Err(refusal) = &ended {
            tracing::debug!(?client, %refusal, "closed a client's connection");
        }
        // As ZooKeeper counts: of those that the client ended, and this member had not.
        if matches!(ended, Ok(()) | Err(Refusal::Socket(_))) && connection.outbox.is_alive() {
            self.metrics.connection_drop_count.one();
        }
        if matches!(ended, Err(Refusal::Silent)) {
            self.metrics.sessionless_connections_expired.one();
        }
        self.lose(client);
        self.open.set(self.open.get().saturating_sub(connection.open.borrow().len()));
        connection.outbox.linger(&mut reader).await;
    }

    /// Answers that may wait for one client: at least a few of the longest.
    fn max_waiting(&self) -> usize {
        MAX_WAITING.max(4 * self.config.jute_max_buffer)
    }

    async fn converse(
        &self,
        client: ClientId,
        who: Vec<Id>,
        connection: &Rc<Connection>,
        reader: &mut OwnedReadHalf,
    ) -> Result<(), Refusal> {
        let mut received = BytesMut::new();
        let patience = self.config.limits.first_words;
        let first = tokio::time::timeout(patience, self.first_frame(connection, reader, &mut received))
            .await
            .map_err(|_| Refusal::Silent)??;
        let Some(first) = first else { return Ok(()) };
        let request = ConnectRequest::decode(&mut Reader::new(apart(first)))?;
        let now = Instant::now();
        self.let_in(request.session != SessionId::NONE, now)?;
        self.connections.borrow_mut().insert(client, Rc::clone(connection));
        connection.received();
        connection.open.borrow_mut().push_back(Open::connect(now));
        self.open.set(self.open.get() + 1);
        self.inbox.put_client(Input::ClientConnect { client, request, who });
        if !connection.outbox.until(|| connection.welcomed.get()).await? {
            return Ok(());
        }
        loop {
            self.hand_over(client, connection, &mut received)?;
            self.inbox.make_room().await;
            let may_read = || self.may_read(connection);
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
                    // This word alone says more than itself.
                    Question::Ask(Word::Stmk) if received.len() < 4 + 8 => {}
                    Question::Ask(word) => {
                        let argument = received.get(4..).and_then(<[u8]>::first_chunk::<8>);
                        if let Some(text) = self.queries.word(word, argument.copied()).await {
                            say(connection, &text);
                        }
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

    /// Counts a connect request, if it is let in.
    fn let_in(&self, renews: bool, now: Instant) -> Result<(), Refusal> {
        if let Some(throttle) = self.throttle.borrow_mut().as_mut() {
            if !throttle.admits(renews, now) {
                self.metrics.connection_rejected.one();
                return Err(Refusal::Throttled);
            }
            self.metrics.connection_token_deficit.record(u64::from(throttle.deficit()));
        }
        self.metrics.connection_request_count.one();
        if renews {
            self.metrics.connection_revalidate_count.one();
        }
        Ok(())
    }

    /// True when more may be read from a client: it has not too much open itself, nor have all together.
    fn may_read(&self, connection: &Connection) -> bool {
        let own = connection.open.borrow().len();
        let has_room = own < WINDOW && connection.outbox.waiting() < SLOW_READER && !self.disk.is_high();
        if !has_room || self.draining.get() {
            return false;
        }
        let limits = &self.config.limits;
        let open = self.open.get();
        let held_back = open >= limits.requests || (open >= limits.outstanding && own > 0);
        if held_back {
            self.held_back.set(true);
            self.metrics.request_throttle_wait_count.one();
        }
        !held_back
    }

    /// Gives every whole request to the core, as long as the connection is the core's.
    fn hand_over(
        &self,
        client: ClientId,
        connection: &Connection,
        received: &mut BytesMut,
    ) -> Result<(), Refusal> {
        let now = Instant::now();
        while connection.outbox.is_alive() && !self.draining.get() {
            let Some(frame) = take_frame(received, self.config.jute_max_buffer)? else { break };
            self.metrics.bytes_received_count.add(frame.len() as u64 + 4);
            let request = Request::decode(apart(frame))?;
            self.traffic.borrow_mut().received += 1;
            connection.received();
            connection.open.borrow_mut().push_back(Open::request(now, &request));
            self.open.set(self.open.get() + 1);
            let input = match OpCode::from_code(request.op) {
                Some(OpCode::Sasl) => self.exchange(client, connection, request)?,
                Some(_) | None => Input::ClientRequest { client, request },
            };
            self.inbox.put_client(input);
        }
        Ok(())
    }

    /// Answers a token of a SASL exchange. The core hears what came of it, in the order of requests.
    fn exchange(
        &self,
        client: ClientId,
        connection: &Connection,
        request: Request,
    ) -> Result<Input, Refusal> {
        let Request { xid, body, .. } = request;
        let token = SaslPacket::decode(&mut Reader::new(body))?.token.unwrap_or_default();
        let users = self.config.security.users.as_deref();
        let proof = connection.sasl.borrow_mut().step(users, &token, crate::sasl::nonce);
        Ok(Input::ClientProof { client, xid, proof })
    }

    /// The connection broke: the core is told, unless it closed it.
    fn lose(&self, client: ClientId) {
        if self.connections.borrow_mut().remove(&client).is_some() {
            self.inbox.put_client(Input::ClientLost { client });
        }
    }

    /// What was counted of all together.
    pub(crate) fn traffic(&self) -> Traffic {
        let drop_probability = self.throttle.borrow().as_ref().map_or(0.0, Throttle::drop_probability);
        let connections = self.connections.borrow().len();
        let handshakes = self.secure.as_ref().map_or(0, |secure| secure.under_way.get());
        Traffic { connections, handshakes, drop_probability, ..self.traffic.borrow().clone() }
    }

    /// Every connection, in the order in which they came.
    pub(crate) fn connections(&self) -> Vec<ConnectionView> {
        let connections = self.connections.borrow();
        let mut all: Vec<_> = connections.iter().collect();
        all.sort_by_key(|(client, _)| **client);
        all.into_iter().map(|(_, connection)| connection.view(self.started)).collect()
    }

    /// Forgets what was counted of all together.
    pub(crate) fn reset_traffic(&self) {
        self.traffic.borrow_mut().reset();
    }

    /// Forgets what was counted of each connection.
    pub(crate) fn reset_connections(&self) {
        self.connections.borrow().values().for_each(|connection| connection.reset());
    }

    /// Takes nobody in and reads nothing any more.
    pub(crate) fn drain(&self) {
        self.draining.set(true);
        self.acceptors.borrow_mut().drain(..).for_each(|(_, acceptor)| acceptor.abort());
    }

    /// True when every request that was read is answered and every answer written.
    pub(crate) fn is_drained(&self) -> bool {
        let idle = |connection: &Rc<Connection>| {
            connection.open.borrow().is_empty() && connection.outbox.waiting() == 0
        };
        self.connections.borrow().values().all(idle)
    }

    /// Closes every connection behind what is queued on it. Sessions live on.
    pub(crate) fn close_all(&self) {
        self.connections.borrow_mut().drain().for_each(|(_, connection)| connection.outbox.close());
    }

    /// True when the last connection has hung up.
    pub(crate) fn is_deserted(&self) -> bool {
        self.sockets.get() == 0
    }

    /// Queues an answer or an event. It leaves with [`ClientPort::flush`].
    pub(crate) fn reply(&self, client: ClientId, frame: &Bytes) {
        let Some(connection) = self.connections.borrow().get(&client).cloned() else { return };
        self.settle(client, &connection, frame);
        let before = connection.outbox.waiting();
        let too_much = connection.outbox.append(|buffer| buffer.extend_from_slice(frame)).is_err();
        if too_much || self.is_one_too_many(before, connection.outbox.waiting()) {
            tracing::warn!(?client, waiting = before, "closed a client that does not read its answers");
            self.lose(client);
            connection.outbox.kill();
            return;
        }
        if connection.outbox.make_dirty() {
            self.dirty.borrow_mut().push(connection);
        }
    }

    /// True when the answers that wait for all clients are too many, for one to whom much has just been
    /// added. All are looked at each time that a client's own pass another step, so that whoever reads costs
    /// nothing.
    fn is_one_too_many(&self, before: usize, after: usize) -> bool {
        if before / SLOW_READER == after / SLOW_READER || before < SLOW_READER {
            return false;
        }
        let connections = self.connections.borrow();
        let together: usize = connections.values().map(|connection| connection.outbox.waiting()).sum();
        together > MAX_WAITING_TOGETHER
    }

    /// Counts an answer against its request.
    fn settle(&self, client: ClientId, connection: &Connection, frame: &Bytes) {
        self.traffic.borrow_mut().sent += 1;
        self.metrics.response_bytes.add(frame.len() as u64);
        if !connection.welcomed.replace(true) {
            // The connect response has no header, so its first field is no xid.
            connection.welcome(frame);
        } else {
            connection.sent(frame);
            if xid(frame) == Some(XID_WATCH) {
                self.counts.borrow_mut().event(client, frame, &self.metrics);
                return;
            }
            self.metrics.responses.note(frame.len());
        }
        if let Some(request) = connection.open.borrow_mut().pop_front() {
            if connection.welcomed.get() && request.xid != -1 {
                self.counts.borrow_mut().answer(&request, frame, &self.metrics);
            }
            self.open.set(self.open.get().saturating_sub(1));
            connection.answered.borrow_mut().push(request);
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
        for connection in self.dirty.borrow_mut().drain(..) {
            for request in connection.answered.borrow_mut().drain(..) {
                let latency = connection.settled(&request, now);
                traffic.answered_in(latency);
                if request.is_update() {
                    self.metrics.updatelatency.record_time(latency);
                } else {
                    self.metrics.readlatency.record_time(latency);
                }
            }
            connection.outbox.flush();
            // It may be left unread because of what was just answered.
            connection.outbox.poke();
        }
        drop(traffic);
        self.counts.borrow_mut().end_of_events(&self.metrics);
        if self.held_back.get()
            && self.open.get() < self.config.limits.outstanding.min(self.config.limits.requests)
        {
            self.held_back.set(false);
            self.resume();
        }
    }

    /// The disk caught up: whoever was left unread because of it is read again.
    pub(crate) fn resume(&self) {
        for connection in self.connections.borrow().values() {
            connection.outbox.poke();
        }
    }
}

/// The identity that every client has. One that reaches an IPv6 socket over IPv4 is called by its own
/// address.
fn address_of(host: IpAddr) -> Id {
    let id = ByteString::from(host.to_canonical().to_string());
    Id { scheme: ByteString::from_static("ip"), id }
}

fn say(connection: &Connection, text: &str) {
    // A text is shorter than any limit.
    let _ = connection.outbox.append(|buffer| buffer.extend_from_slice(text.as_bytes()));
    connection.outbox.close();
}

/// See the quorum port's: a small request must not keep a whole read buffer alive.
fn apart(frame: Bytes) -> Bytes {
    if frame.len() < COPY_BELOW { Bytes::copy_from_slice(&frame) } else { frame }
}

#[cfg(test)]
mod tests;
