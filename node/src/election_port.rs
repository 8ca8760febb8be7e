//! The election port: one connection with every peer, whoever dialled it.
//!
//! ZooKeeper's rule decides who may: only the larger number keeps a connection that it dialled. The smaller
//! one dials too, says its number and hangs up, which makes the larger one dial back; so two members that
//! dial each other at once end with one connection and not with none.
//!
//! A connection is kept up whether or not there is something to say, because an election that has to dial
//! first is late. It may be silent for as long as it likes: there are no heartbeats here. What ends it is the
//! kernel, by what it finds unacknowledged, or the peer.
//!
//! For each peer only the last notification is kept, and it is sent again whenever a connection comes back. A
//! vote that was replaced before it left is of no use to anyone (Apache ZooKeeper keeps a queue of one for
//! the same reason).

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::rc::Rc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use node_core::Reconfiguration;
use node_core::io::Input;
use node_wire::client::{put_frame, take_frame};
use node_wire::election::{Hello, MAX_NOTIFICATION, Notification};
use node_wire::ids::ServerId;
use node_wire::jute::{DecodeError, Writer};
use tokio::net::tcp::OwnedReadHalf;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::address::HostPort;
use crate::book::Book;
use crate::config::NodeConfig;
use crate::inbox::Inbox;
use crate::names::Names;
use crate::net::{ACCEPT_PAUSE, Seldom, accept, tune_peer, user_timeout};
use crate::outbox::Outbox;
use crate::tls::handshaker::Handshaker;
use crate::tls::peers::Link;

/// Pause after the first failed dial, doubled by each further one.
const FIRST_PAUSE: Duration = Duration::from_millis(10);

/// The longest pause: a peer that comes back, or a network that heals, is found this late at worst.
const LONGEST_PAUSE: Duration = Duration::from_millis(100);

/// Handshakes at once, and members at once that the ensemble does not know; more are dropped.
const MAX_HANDSHAKES: usize = 64;

/// Bytes that may wait for a peer. Votes are small, and a connection that takes none is of no use.
const MAX_WAITING: usize = 1 << 20;

/// Room made for each read. A notification is some tens of bytes, and rarely a configuration.
const READ_CHUNK: usize = 4 << 10;

/// What is known of a peer.
#[derive(Debug, Default)]
struct Peer {
    /// The last notification, framed.
    last: RefCell<Option<Bytes>>,
    /// It was not sent yet on the present connection.
    unsent: Cell<bool>,
    /// The present connection by its number, 0 for none.
    present: Cell<u64>,
    /// When the present connection came.
    since: Cell<Option<Instant>>,
    /// The present connection should look at `unsent`, or at whether it is still present.
    changed: RefCell<Rc<Notify>>,
    /// The dialler should look at whether it has something to do.
    redial: Notify,
    /// A connection is on its way, or the peer was asked for one.
    dialling: Cell<bool>,
    /// It is in the book: a connection with it is kept up.
    invited: Cell<bool>,
    /// Somebody keeps it up.
    attended: Cell<bool>,
}

/// The connections with all peers.
pub(crate) struct ElectionPort {
    config: Rc<NodeConfig>,
    book: Rc<Book>,
    inbox: Rc<Inbox>,
    names: Names,
    peers: RefCell<BTreeMap<ServerId, Rc<Peer>>>,
    handshakes: Cell<usize>,
    last_connection: Cell<u64>,
    handshaker: Handshaker,
    refusals: Seldom,
}

/// Why a connection ended other than by its end.
#[derive(Debug, thiserror::Error)]
enum Broken {
    #[error(transparent)]
    Socket(#[from] io::Error),
    #[error("failed to {0}")]
    Malformed(#[from] DecodeError),
    #[error("no hello in time")]
    Silent,
    #[error("server {0} is not a peer in the configuration")]
    Unknown(ServerId),
}

impl ElectionPort {
    /// For every peer in the configuration.
    pub(crate) fn new(config: Rc<NodeConfig>, book: Rc<Book>, inbox: Rc<Inbox>) -> Rc<Self> {
        let peers = RefCell::default();
        Rc::new(Self {
            config,
            book,
            inbox,
            names: Names::default(),
            peers,
            handshakes: Cell::new(0),
            last_connection: Cell::new(0),
            handshaker: Handshaker::default(),
            refusals: Seldom::default(),
        })
    }

    /// Starts to accept and to dial.
    pub(crate) fn start(self: &Rc<Self>, listener: TcpListener) {
        tokio::task::spawn_local(Rc::clone(self).accept(listener));
        self.adapt();
    }

    /// Keeps connections with the members of the ensemble, and with nobody else. A connection that an unknown
    /// member began is left to it.
    pub(crate) fn adapt(self: &Rc<Self>) {
        let known: BTreeSet<ServerId> =
            self.book.ids().into_iter().filter(|id| *id != self.config.id).collect();
        let gone: Vec<ServerId> = {
            let peers = self.peers.borrow();
            let left = peers.iter().filter(|(id, peer)| peer.invited.get() && !known.contains(id));
            left.map(|(id, _)| *id).collect()
        };
        for id in gone {
            if let Some(peer) = self.peer(id) {
                // It may have to be told how the ensemble went on without it: its connection stays while it
                // lasts.
                peer.invited.set(false);
                peer.redial.notify_one();
                self.forget_if_idle(id, &peer);
            }
        }
        for id in known {
            let peer = self.peer(id).unwrap_or_else(|| self.add(id));
            peer.invited.set(true);
            if !peer.attended.replace(true) {
                tokio::task::spawn_local(Rc::clone(self).keep_dialling(id, peer));
            }
        }
    }

    fn peer(&self, id: ServerId) -> Option<Rc<Peer>> {
        self.peers.borrow().get(&id).cloned()
    }

    fn add(&self, id: ServerId) -> Rc<Peer> {
        let peer = Rc::new(Peer::default());
        self.peers.borrow_mut().insert(id, Rc::clone(&peer));
        peer
    }

    /// Forgets an unknown member without a connection.
    fn forget_if_idle(&self, id: ServerId, peer: &Peer) {
        if !peer.invited.get() && peer.present.get() == 0 {
            self.peers.borrow_mut().remove(&id);
        }
    }

    /// Replaces the vote for a peer and sends it as soon as that is possible.
    pub(crate) fn notify(&self, to: ServerId, notification: &Notification) {
        let Some(peer) = self.peer(to) else { return };
        let mut frame = BytesMut::new();
        put_frame(&mut frame, |w| notification.encode(w));
        peer.last.replace(Some(frame.freeze()));
        peer.unsent.set(true);
        peer.changed.borrow().notify_one();
    }

    async fn accept(self: Rc<Self>, listener: TcpListener) {
        loop {
            match accept(&listener).await {
                Ok((stream, from)) if self.handshakes.get() < MAX_HANDSHAKES => {
                    self.handshakes.set(self.handshakes.get() + 1);
                    let port = Rc::clone(&self);
                    tokio::task::spawn_local(async move {
                        if let Err(error) = port.welcome(stream).await {
                            tracing::debug!(%from, %error, "closed a connection on the election port");
                        }
                        port.handshakes.set(port.handshakes.get() - 1);
                    });
                }
                Ok((_, from)) => {
                    if let Some(more) = self.refusals.say() {
                        tracing::warn!(%from, more, "dropped a connection on the election port: too many");
                    }
                }
                Err(error) => {
                    tracing::warn!(%error, "failed to accept a connection on the election port");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    /// Someone dialled: take the connection over or dial back.
    async fn welcome(self: &Rc<Self>, stream: TcpStream) -> Result<(), Broken> {
        tune_peer(&stream, user_timeout(self.config.peer_timeout))?;
        let link = match &self.config.security.peers {
            None => (stream, None),
            Some(tls) => tls.accepted(&self.handshaker, stream, &self.book.hosts()).await?,
        };
        let mut wire = Wire::new(link);
        let hello =
            tokio::time::timeout(self.patience(), wire.hello()).await.map_err(|_| Broken::Silent)??;
        let Some(hello) = hello else { return Ok(()) };
        let id = hello.server;
        let Some(peer) = self.peer(id) else { return self.welcome_unknown(hello, wire).await };
        if id > self.config.id {
            self.install(id, &peer, wire);
        } else if !peer.invited.get() {
            return self.dial_back(hello, &peer).await;
        } else if !peer.dialling.get() && !self.is_fresh(&peer) {
            // A peer that has a connection does not dial, so ours is dead on its side. But a dial that is on
            // its way must be left alone, and so must a connection that just came: the peer asked before it
            // knew of it, and two members with a slow network between them would never meet.
            self.retire(id, &peer);
            peer.redial.notify_one();
        }
        Ok(())
    }

    /// If the membership may change, a member outside of it may ask for it: one that is to join, or one that
    /// was removed.
    async fn welcome_unknown(self: &Rc<Self>, hello: Hello, wire: Wire) -> Result<(), Broken> {
        let id = hello.server;
        let changes = matches!(self.config.rules.reconfig, Reconfiguration::On { .. });
        let unknown = self.peers.borrow().values().filter(|peer| !peer.invited.get()).count();
        if !changes || id == self.config.id || unknown >= MAX_HANDSHAKES {
            return Err(Broken::Unknown(id));
        }
        let peer = self.add(id);
        if id > self.config.id {
            self.install(id, &peer, wire);
            return Ok(());
        }
        self.dial_back(hello, &peer).await
    }

    /// Dials a member with a smaller number at the address that its hello names; it waits for that.
    async fn dial_back(self: &Rc<Self>, hello: Hello, peer: &Peer) -> Result<(), Broken> {
        let id = hello.server;
        let target = hello.addresses.into_iter().next().map(|(host, port)| HostPort::new(host, port));
        let dialled = match target {
            Some(target) if peer.present.get() == 0 => self.dial_at(id, &target, peer).await.map(|_| ()),
            Some(_) | None => Ok(()),
        };
        self.forget_if_idle(id, peer);
        dialled
    }

    /// True for a connection that is younger than a peer's question for one may be.
    fn is_fresh(&self, peer: &Peer) -> bool {
        peer.present.get() != 0 && peer.since.get().is_some_and(|since| since.elapsed() < self.patience())
    }

    /// True when the last connection was lost right after it came.
    fn is_short_lived(&self, peer: &Peer) -> bool {
        peer.since.get().is_some_and(|since| since.elapsed() < LONGEST_PAUSE)
    }

    /// Makes a connection the present one. The task that reads from it is started.
    fn install(self: &Rc<Self>, id: ServerId, peer: &Peer, wire: Wire) {
        self.retire(id, peer);
        self.last_connection.set(self.last_connection.get() + 1);
        let number = self.last_connection.get();
        let changed = Rc::new(Notify::new());
        peer.present.set(number);
        peer.since.set(Some(Instant::now()));
        peer.unsent.set(peer.last.borrow().is_some());
        peer.changed.replace(Rc::clone(&changed));
        peer.redial.notify_one();
        self.inbox.put_peer(Input::ElectionConnected { peer: id });
        let port = Rc::clone(self);
        tokio::task::spawn_local(async move {
            let connection = Connection { id, number, wire, changed };
            if let Err(error) = port.serve(connection).await {
                tracing::debug!(peer = %id, %error, "an election connection broke");
            }
            let Some(peer) = port.peer(id) else { return };
            if peer.present.get() == number {
                port.retire(id, &peer);
                peer.redial.notify_one();
                port.forget_if_idle(id, &peer);
            }
        });
    }

    /// Ends the present connection, if there is one.
    fn retire(&self, id: ServerId, peer: &Peer) {
        if peer.present.replace(0) != 0 {
            peer.changed.borrow().notify_one();
            self.inbox.put_peer(Input::ElectionLost { peer: id });
        }
    }

    /// One connection's life: until it breaks or is no longer the present one.
    async fn serve(&self, connection: Connection) -> Result<(), Broken> {
        let Connection { id, number, wire, changed } = connection;
        let Wire { reader, outbox, received } = wire;
        let Some(peer) = self.peer(id) else { return Ok(()) };
        let present = || peer.present.get() == number;
        tokio::select! {
            result = self.hear(id, reader, &outbox, received, present) => result,
            () = speak(&peer, &outbox, &changed, present) => Ok(()),
        }
    }

    async fn hear(
        &self,
        from: ServerId,
        mut reader: OwnedReadHalf,
        outbox: &Outbox,
        mut received: BytesMut,
        present: impl Fn() -> bool,
    ) -> Result<(), Broken> {
        loop {
            while let Some(frame) = take_frame(&mut received, MAX_NOTIFICATION)? {
                if !present() {
                    return Ok(());
                }
                match Notification::decode(frame) {
                    Ok(notification) => self.inbox.put_peer(Input::Notification { from, notification }),
                    // The frame was whole, so the stream can be followed; ZooKeeper goes on here as well.
                    Err(error) => tracing::warn!(%from, "dropped a notification: failed to {error}"),
                }
            }
            self.inbox.make_room().await;
            if !outbox.read(&mut reader, &mut received, READ_CHUNK, || true).await? {
                return Ok(());
            }
        }
    }

    /// Sees to it that there is a connection, for ever.
    async fn keep_dialling(self: Rc<Self>, id: ServerId, peer: Rc<Peer>) {
        let peer = &*peer;
        let mut pause = FIRST_PAUSE;
        while peer.invited.get() {
            if peer.present.get() != 0 {
                peer.redial.notified().await;
                if peer.present.get() != 0 {
                    continue;
                }
                let wait = if id > self.config.id {
                    // The larger one notices too, and dials: to ask it for that would only disturb it.
                    self.patience()
                } else if self.is_short_lived(peer) {
                    // Something accepts for a peer that is not there. It must not be dialled in a tight loop.
                    let wait = pause;
                    pause = (pause * 2).min(LONGEST_PAUSE);
                    wait
                } else {
                    pause = FIRST_PAUSE;
                    Duration::ZERO
                };
                let _ = tokio::time::timeout(wait, peer.redial.notified()).await;
                continue;
            }
            peer.dialling.set(true);
            let started = Instant::now();
            let dialled = self.dial_once(id, peer).await;
            let wait = match dialled {
                Ok(Dialled::Kept) => Duration::ZERO,
                // The peer dials back now. On a slow network that takes as long as our own dial did, and
                // asking again too soon would make it drop what it has just dialled.
                Ok(Dialled::Asked) => self.patience().max(started.elapsed() * 4),
                Err(error) => {
                    tracing::debug!(peer = %id, %error, "failed to dial a peer's election port");
                    let wait = pause;
                    pause = (pause * 2).min(LONGEST_PAUSE);
                    wait
                }
            };
            peer.dialling.set(false);
            // Cut short when a connection comes or the peer asks for one.
            let _ = tokio::time::timeout(wait, peer.redial.notified()).await;
        }
        peer.attended.set(false);
    }

    async fn dial_once(self: &Rc<Self>, id: ServerId, peer: &Peer) -> Result<Dialled, Broken> {
        let target = self.book.election_target(id).ok_or(Broken::Unknown(id))?;
        self.dial_at(id, &target, peer).await
    }

    async fn dial_at(
        self: &Rc<Self>,
        id: ServerId,
        target: &HostPort,
        peer: &Peer,
    ) -> Result<Dialled, Broken> {
        let stream = self.names.dial(target, self.patience()).await?;
        if peer.present.get() != 0 {
            // The peer was faster.
            return Ok(Dialled::Kept);
        }
        tune_peer(&stream, user_timeout(self.config.peer_timeout))?;
        let link = match &self.config.security.peers {
            None => (stream, None),
            Some(tls) => {
                let host = self.book.line(id).map_or_else(|| target.host.clone(), |line| line.election.host);
                tls.dialled(&self.handshaker, stream, &host).await?
            }
        };
        if peer.present.get() != 0 {
            return Ok(Dialled::Kept);
        }
        // One that was removed is still where it was.
        let own = self.config.servers.get(&self.config.id).ok_or(Broken::Unknown(self.config.id))?;
        let address = (own.election.host.clone(), own.election.port);
        let hello = Hello { server: self.config.id, addresses: vec![address] };
        let mut wire = Wire::new(link);
        // A few bytes into an empty queue and an empty socket: this does not wait.
        let _ = wire.outbox.append(|buffer| hello.encode(&mut Writer::new(buffer)));
        wire.outbox.flush();
        if id > self.config.id {
            // The peer hangs up when it has read this; nobody need wait for it.
            wire.outbox.close();
            tokio::task::spawn_local(async move { wire.outbox.linger(&mut wire.reader).await });
            return Ok(Dialled::Asked);
        }
        self.install(id, peer, wire);
        Ok(Dialled::Kept)
    }

    /// How long a dial, and the hello of a new connection, may take.
    fn patience(&self) -> Duration {
        self.config.peer_timeout
    }
}

/// What came of a dial that succeeded.
enum Dialled {
    /// There is a connection.
    Kept,
    /// The peer knows that we want one.
    Asked,
}

/// A connection as bytes.
struct Wire {
    reader: OwnedReadHalf,
    outbox: Outbox,
    received: BytesMut,
}

impl Wire {
    fn new((stream, channel): Link) -> Self {
        let (reader, writer) = stream.into_split();
        Self { reader, outbox: Outbox::new(writer, channel, MAX_WAITING), received: BytesMut::new() }
    }

    /// The first message of whoever dialled, or none when it hung up.
    async fn hello(&mut self) -> Result<Option<Hello>, Broken> {
        loop {
            if let Some(hello) = Hello::decode(&mut self.received)? {
                return Ok(Some(hello));
            }
            if !self.outbox.read(&mut self.reader, &mut self.received, READ_CHUNK, || true).await? {
                return Ok(None);
            }
        }
    }
}

/// A connection on its way to its task.
struct Connection {
    id: ServerId,
    number: u64,
    wire: Wire,
    changed: Rc<Notify>,
}

/// Sends the last notification whenever there is a new one.
async fn speak(peer: &Peer, outbox: &Outbox, changed: &Notify, present: impl Fn() -> bool) {
    while present() && outbox.is_alive() {
        if peer.unsent.replace(false) {
            let last = peer.last.borrow().clone();
            if let Some(frame) = last {
                if outbox.append(|buffer| buffer.extend_from_slice(&frame)).is_err() {
                    return;
                }
                outbox.flush();
                continue;
            }
        }
        changed.notified().await;
    }
}

#[cfg(test)]
mod tests;
