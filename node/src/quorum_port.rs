//! The quorum port: connections between a leader and its learners, in both directions.
//!
//! Whoever dialled is the learner. After the handshake of the kernel both directions are the same here:
//! packets in, packets out, no thought about what they mean. There are two exceptions. Behind a SNAP packet
//! on a connection that we dialled a whole tree comes unframed. And a packet shows from when on the other end
//! takes PINGs, if it is one of ours: from there on somebody may speak while the member works
//! ([`Pulse`]).
//!
//! A connection belongs to the core as soon as it was told of it. It ends in one of two ways: the core closes
//! it, and hears nothing more from it; or it breaks, and the core is told exactly once.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use node_core::io::{ConnId, Input};
use node_core::tree::TreeSnapshot;
use node_wire::ids::{ServerId, Zxid};
use node_wire::jute::{DecodeError, Writer};
use node_wire::quorum::{Dialect, PacketType, QuorumPacket, decode_packet_within};
use node_wire::snapshot::stream::{StreamDecoder, encode_stream};
use tokio::net::tcp::OwnedReadHalf;
use tokio::net::{TcpListener, TcpStream};

use crate::book::Book;
use crate::config::NodeConfig;
use crate::inbox::Inbox;
use crate::names::Names;
use crate::net::{ACCEPT_PAUSE, Seldom, accept, patient_user_timeout, tune_peer};
use crate::outbox::Outbox;
use crate::pulse::Pulse;
use crate::tls::PeerTls;
use crate::tls::handshaker::Handshaker;
use crate::tls::peers::Link;

/// Bytes that may wait for a peer, a snapshot's not counted. A follower that is this far behind is better
/// served by a synchronization of its own.
const MAX_WAITING: usize = 64 << 20;

/// The same where requests may be longer than usual: some transactions of the longest kind.
fn max_waiting(jute_max_buffer: usize) -> usize {
    MAX_WAITING.max(8 * jute_max_buffer)
}

/// Connections at once, in both directions. Learners that come back before their old connections broke need
/// more than one each.
const MAX_CONNECTIONS: usize = 256;

/// Handshakes of TLS at once; more are dropped.
const MAX_HANDSHAKES: usize = 64;

/// Room made for each read.
const READ_CHUNK: usize = 128 << 10;

/// Data up to this size is copied out of the read buffer, which it would otherwise keep alive whole.
const COPY_BELOW: usize = 16 << 10;

/// The least time that a failed dial takes. The core asks again at once, and a refusal comes in microseconds.
const MIN_DIAL: Duration = Duration::from_millis(10);

/// All connections of the quorum port.
pub(crate) struct QuorumPort {
    config: Rc<NodeConfig>,
    book: Rc<Book>,
    inbox: Rc<Inbox>,
    names: Names,
    connections: RefCell<HashMap<ConnId, Rc<Peer>>>,
    dirty: RefCell<Vec<Rc<Peer>>>,
    last: Cell<u64>,
    handshaker: Handshaker,
    /// Handshakes of TLS that are under way.
    handshakes: Cell<usize>,
    refusals: Seldom,
    breaches: Seldom,
    pulse: Arc<Pulse>,
}

/// The other end of a connection.
struct Peer {
    outbox: Outbox,
    /// It said that it is a member of ours.
    is_ours: Cell<bool>,
    /// Bytes came that the member was not told of yet.
    came: Cell<bool>,
}

/// Who dialled a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    /// We did: a snapshot may come.
    Out,
    /// The learner did.
    In,
}

impl QuorumPort {
    pub(crate) fn new(
        config: Rc<NodeConfig>,
        book: Rc<Book>,
        inbox: Rc<Inbox>,
        pulse: Arc<Pulse>,
    ) -> Rc<Self> {
        Rc::new(Self {
            config,
            book,
            inbox,
            names: Names::default(),
            connections: RefCell::default(),
            dirty: RefCell::default(),
            last: Cell::new(0),
            handshaker: Handshaker::default(),
            handshakes: Cell::new(0),
            refusals: Seldom::default(),
            breaches: Seldom::default(),
            pulse,
        })
    }

    /// Takes learners in, for ever.
    pub(crate) async fn accept(self: Rc<Self>, listener: TcpListener) {
        loop {
            match accept(&listener).await {
                Ok((stream, from)) => {
                    let let_in = |link| self.add(link, Direction::In, |conn| Input::Accepted { conn });
                    let added = match &self.config.security.peers {
                        None => let_in((stream, None)),
                        Some(tls) => self.let_in_with(Arc::clone(tls), stream, from),
                    };
                    if let Err(error) = added
                        && let Some(more) = self.refusals.say()
                    {
                        tracing::warn!(%from, %error, more, "refused a connection on the quorum port");
                    }
                }
                Err(error) => {
                    tracing::warn!(%error, "failed to accept a connection on the quorum port");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    /// Shakes hands with a learner, beside everything else.
    fn let_in_with(
        self: &Rc<Self>,
        tls: Arc<PeerTls>,
        stream: TcpStream,
        from: SocketAddr,
    ) -> io::Result<()> {
        if self.handshakes.get() >= MAX_HANDSHAKES {
            return Err(io::Error::new(io::ErrorKind::QuotaExceeded, "too many handshakes"));
        }
        self.handshakes.set(self.handshakes.get() + 1);
        let port = Rc::clone(self);
        tokio::task::spawn_local(async move {
            let accepted = tls.accepted(&port.handshaker, stream, &port.book.hosts()).await;
            port.handshakes.set(port.handshakes.get() - 1);
            let added =
                accepted.and_then(|link| port.add(link, Direction::In, |conn| Input::Accepted { conn }));
            if let Err(error) = added {
                tracing::warn!(%from, %error, "refused a connection on the quorum port");
            }
        });
        Ok(())
    }

    /// Dials a leader once and tells the core what became of it.
    pub(crate) fn dial(self: &Rc<Self>, leader: ServerId) {
        let port = Rc::clone(self);
        tokio::task::spawn_local(async move {
            let started = tokio::time::Instant::now();
            if let Err(error) = port.try_dial(leader).await {
                tracing::debug!(%leader, %error, "failed to dial the leader");
                tokio::time::sleep_until(started + MIN_DIAL).await;
                port.inbox.put_peer(Input::DialFailed { leader });
            }
        });
    }

    async fn try_dial(self: &Rc<Self>, leader: ServerId) -> io::Result<()> {
        let target = self
            .book
            .quorum_target(leader)
            .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "not a peer in the configuration"))?;
        let stream = self.names.dial(&target, self.config.peer_timeout).await?;
        let link = match &self.config.security.peers {
            None => (stream, None),
            Some(tls) => {
                let host =
                    self.book.line(leader).map_or_else(|| target.host.clone(), |line| line.quorum.host);
                tls.dialled(&self.handshaker, stream, &host).await?
            }
        };
        self.add(link, Direction::Out, |conn| Input::Dialled { leader, conn })
    }

    fn add(
        self: &Rc<Self>,
        (stream, channel): Link,
        direction: Direction,
        tell: impl FnOnce(ConnId) -> Input,
    ) -> io::Result<()> {
        if self.connections.borrow().len() >= MAX_CONNECTIONS {
            return Err(io::Error::new(io::ErrorKind::QuotaExceeded, "too many connections between members"));
        }
        let patience = patient_user_timeout(self.config.peer_timeout, self.config.manner.step_limit);
        tune_peer(&stream, patience)?;
        self.last.set(self.last.get() + 1);
        let conn = ConnId(self.last.get());
        let (reader, writer) = stream.into_split();
        let outbox = Outbox::new(writer, channel, max_waiting(self.config.jute_max_buffer));
        self.pulse.add(outbox.line());
        let peer = Rc::new(Peer { outbox, is_ours: Cell::new(false), came: Cell::new(false) });
        self.connections.borrow_mut().insert(conn, Rc::clone(&peer));
        self.inbox.put_peer(tell(conn));
        let port = Rc::clone(self);
        tokio::task::spawn_local(async move { port.serve(conn, reader, peer, direction).await });
        Ok(())
    }

    /// One connection's life.
    async fn serve(&self, conn: ConnId, mut reader: OwnedReadHalf, peer: Rc<Peer>, direction: Direction) {
        match self.read(conn, &mut reader, &peer, direction).await {
            Ok(()) => {}
            Err(Broken::Socket(error)) => tracing::info!(?conn, %error, "a connection between members broke"),
            Err(Broken::Malformed(error)) => {
                if let Some(more) = self.breaches.say() {
                    tracing::warn!(?conn, more, "closed a connection between members: failed to {error}");
                }
            }
        }
        self.lose(conn);
        peer.outbox.linger(&mut reader).await;
    }

    async fn read(
        &self,
        conn: ConnId,
        reader: &mut OwnedReadHalf,
        peer: &Peer,
        direction: Direction,
    ) -> Result<(), Broken> {
        let mut received = BytesMut::new();
        let mut image: Option<StreamDecoder> = None;
        while peer.outbox.read(reader, &mut received, READ_CHUNK, || true).await? {
            peer.came.set(true);
            self.pulse.begins_now();
            self.digest((conn, peer), direction, &mut received, &mut image)?;
            self.inbox.make_room().await;
        }
        Ok(())
    }

    /// Takes everything off the front of what was received that is there whole.
    fn digest(
        &self,
        (conn, peer): (ConnId, &Peer),
        direction: Direction,
        received: &mut BytesMut,
        image: &mut Option<StreamDecoder>,
    ) -> Result<(), Broken> {
        // The core may have closed the connection since: nothing more is delivered then.
        while self.connections.borrow().contains_key(&conn) {
            if let Some(decoder) = image {
                let Some(whole) = decoder.feed(received)? else { return Ok(()) };
                *image = None;
                self.inbox.put_peer(Input::Image { conn, image: whole });
            } else {
                let Some(mut packet) = decode_packet_within(received, 2 * self.config.jute_max_buffer)?
                else {
                    return Ok(());
                };
                packet.data = packet.data.map(apart);
                if let Some(dialect) = packet.dialect() {
                    peer.is_ours.set(dialect == Dialect::Own);
                }
                if packet.kind == PacketType::Snap && direction == Direction::Out {
                    *image = Some(StreamDecoder::new(Zxid::from_wire(packet.zxid)));
                }
                self.inbox.put_peer(Input::Packet { conn, packet });
            }
        }
        Ok(())
    }

    /// The connection broke: the core is told, unless it closed it.
    fn lose(&self, conn: ConnId) {
        if self.connections.borrow_mut().remove(&conn).is_some() {
            self.inbox.put_peer(Input::PeerLost { conn });
        }
    }

    /// Queues a packet. It leaves with [`QuorumPort::flush`].
    pub(crate) fn send(&self, conn: ConnId, packet: &QuorumPacket) {
        let Some(peer) = self.connections.borrow().get(&conn).cloned() else { return };
        let outbox = &peer.outbox;
        let appended = outbox.append(|buffer| packet.encode(&mut Writer::new(buffer)));
        if appended.is_err() {
            tracing::warn!(
                ?conn,
                waiting = outbox.waiting(),
                "closed a connection between members that takes nothing"
            );
            self.lose(conn);
            outbox.kill();
            return;
        }
        if peer.is_ours.get() && packet.opens_pings() {
            outbox.may_speak();
        }
        if outbox.make_dirty() {
            self.dirty.borrow_mut().push(peer);
        }
    }

    /// Queues a tree behind what is queued already. It is encoded on another thread.
    pub(crate) fn send_image(&self, conn: ConnId, snapshot: TreeSnapshot) {
        let Some(peer) = self.connections.borrow().get(&conn).cloned() else { return };
        peer.outbox.open_gap();
        tokio::task::spawn_local(async move {
            let encoded = tokio::task::spawn_blocking(move || encode_image(&snapshot)).await;
            match encoded {
                Ok(bytes) => peer.outbox.fill_gap(bytes),
                Err(error) => {
                    tracing::error!(?conn, %error, "failed to encode a snapshot");
                    peer.outbox.kill();
                }
            }
        });
    }

    /// Closes a connection behind what is queued on it.
    pub(crate) fn close(&self, conn: ConnId) {
        if let Some(peer) = self.connections.borrow_mut().remove(&conn) {
            peer.outbox.close();
        }
    }

    /// Writes what the batch queued.
    pub(crate) fn flush(&self) {
        for peer in self.dirty.borrow_mut().drain(..) {
            peer.outbox.flush();
        }
    }

    /// The connections on which something came since this was asked last: it may be a part of a packet, or
    /// still wait in the inbox. A member that was `away` asks the sockets too, which nobody read meanwhile.
    pub(crate) fn signs_of_life(&self, away: bool) -> Vec<ConnId> {
        let connections = self.connections.borrow();
        let came = |peer: &Peer| peer.came.take() || away && peer.outbox.holds_unread();
        connections.iter().filter(|(_, peer)| came(peer)).map(|(conn, _)| *conn).collect()
    }
}

fn encode_image(snapshot: &TreeSnapshot) -> Bytes {
    let mut buffer = BytesMut::new();
    encode_stream(snapshot.contents(), &mut buffer);
    buffer.freeze()
}

/// A small slice keeps the whole read buffer alive for as long as a transaction is kept, which may be for
/// ever. Its own memory is cheaper.
fn apart(data: Bytes) -> Bytes {
    if data.len() < COPY_BELOW { Bytes::copy_from_slice(&data) } else { data }
}

/// Why a connection ended other than by its end.
enum Broken {
    Socket(io::Error),
    Malformed(DecodeError),
}

impl From<io::Error> for Broken {
    fn from(error: io::Error) -> Self {
        Self::Socket(error)
    }
}

impl From<DecodeError> for Broken {
    fn from(error: DecodeError) -> Self {
        Self::Malformed(error)
    }
}

#[cfg(test)]
mod tests;
