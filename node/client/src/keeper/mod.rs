//! A session that is kept over as many connections as it takes.

mod operations;

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use bytestring::ByteString;
use node_session::{Answer, Credentials, Moment, Options, Request, Session, State};
use node_wire::client::{Acl, AuthPacket};
use node_wire::ids::SessionId;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::timeout_at;

use crate::chroot::Chroot;
use crate::dial::How;
use crate::error::{CloseReason, Doubt, KeeperError, MultiError, NotSent, OpError, ServersError};
use crate::pipeline::Pipeline;
use crate::sasl::Sasl;
use crate::servers::ServerList;
use crate::shared::{Command, Deliver, Shared};
use crate::task::Task;
use crate::tls::Tls;

pub use operations::{AclList, Children, Created, Data};

/// How a session is kept.
#[derive(Clone, Debug)]
pub struct KeeperOptions {
    /// The session time-out asked for; the server clamps it to 2 to 20 of its ticks.
    pub timeout: Duration,
    /// How long a request, and [`Keeper::connect`], wait for a connection; the time-out where it is none.
    pub patience: Option<Duration>,
    /// Whether a server that lost its quorum, and lets read what it has, will do until another one serves.
    pub read_only: bool,
    /// A session to go on with. Where it is over, [`State::Lost`] is told and a new one follows.
    pub resume: Option<Credentials>,
    /// Identities to show on every connection: scheme and proof, as in `("digest", "ann:secret")`.
    pub auth: Vec<(ByteString, Bytes)>,
    /// Operations that may be open at once. One more is refused at once as not sent.
    pub max_outstanding: usize,
    /// TLS, where servers want it.
    pub tls: Option<Tls>,
    /// A user to prove by SASL on every connection. One that a server refuses ends the session on this side.
    pub sasl: Option<Sasl>,
}

impl Default for KeeperOptions {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(10),
            patience: None,
            read_only: false,
            resume: None,
            auth: Vec::new(),
            max_outstanding: 4096,
            tls: None,
            sasl: None,
        }
    }
}

/// A handle on a session; clones are cheap and share it.
///
/// When the last handle is dropped the connection is closed and the session is left to expire. A recipe that
/// is driven holds one until it is over.
/// [`Keeper::close`] ends it at once.
#[derive(Clone)]
pub struct Keeper {
    handle: Arc<Handle>,
    /// What znodes are made with.
    acl: Arc<[Acl]>,
}

struct Handle {
    shared: Arc<Shared>,
    patience: Duration,
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.shared.command(Command::Dropped);
    }
}

impl std::fmt::Debug for Keeper {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Keeper").field("state", &self.state()).finish_non_exhaustive()
    }
}

impl Keeper {
    /// Starts a session and waits until a server serves it. Servers are `host:port,host:port/chroot`, or a
    /// [`ServerList`]. To be called within a runtime of tokio.
    ///
    /// # Errors
    /// See [`KeeperError`].
    pub async fn connect(
        servers: impl TryInto<ServerList, Error: Into<ServersError>>,
        options: KeeperOptions,
    ) -> Result<Self, KeeperError> {
        let keeper = Self::start(servers, options)?;
        let mut states = keeper.states();
        let served = states.wait_for(|state| matches!(state, State::Connected { .. } | State::Closed));
        let served = tokio::time::timeout(keeper.handle.patience, served).await;
        match served {
            Ok(Ok(state)) if *state == State::Closed => Err(KeeperError::AuthFailed),
            Ok(Ok(_)) => Ok(()),
            // The channel lives as long as the keeper.
            Ok(Err(_)) | Err(_) => {
                Err(KeeperError::NotConnected { last: keeper.handle.shared.core().last_error.clone() })
            }
        }
        .map(|()| keeper)
    }

    /// As [`Keeper::connect`], without a wait.
    ///
    /// # Errors
    /// When the list of servers can't be read.
    pub fn start(
        servers: impl TryInto<ServerList, Error: Into<ServersError>>,
        options: KeeperOptions,
    ) -> Result<Self, ServersError> {
        let ServerList { servers, chroot } = servers.try_into().map_err(Into::into)?;
        let machine = Options {
            timeout: options.timeout,
            read_only: options.read_only,
            resume: options.resume,
            seed: RandomState::new().build_hasher().finish(),
        };
        let auths = options.auth.into_iter().map(|(scheme, auth)| auth_packet(scheme, auth)).collect();
        let (commands, receiver) = mpsc::unbounded_channel();
        let machine = Session::new(servers.clone(), machine);
        let shared = Arc::new(Shared::new(machine, Chroot(chroot), auths, commands));
        let how = How { tls: options.tls, sasl: options.sasl };
        let task = Task::new(Arc::clone(&shared), how, options.max_outstanding, servers, receiver);
        tokio::spawn(task.run());
        let patience = options.patience.unwrap_or(options.timeout);
        let acl = Arc::from([Acl::world_anyone()]);
        Ok(Self { handle: Arc::new(Handle { shared, patience }), acl })
    }

    /// Another handle on the session, which makes znodes with this access list: by [`Keeper::create`] and
    /// [`Keeper::create_all`], and by the recipes that are driven over it. Without it they are open to
    /// anyone, and anyone who reaches the ensemble may end a lead or take a lock away. (Curator has
    /// its `ACLProvider` for this.)
    ///
    /// All who stand in one line need to create, delete and read below its resource, so make the resource
    /// over such a handle too: ZooKeeper asks the *parent's* list who may delete a znode.
    ///
    /// Requests that are written by hand have their own lists; [`Request::with_acl`] changes them.
    #[must_use]
    pub fn with_acl(&self, acl: impl Into<Vec<Acl>>) -> Self {
        Self { handle: Arc::clone(&self.handle), acl: acl.into().into() }
    }

    /// The access list that znodes are made with over this handle.
    #[must_use]
    pub fn acl(&self) -> &[Acl] {
        &self.acl
    }

    /// The states of the session. Whoever looks rarely sees only the newest: that a session was lost is also
    /// seen by the number of the next one. A state that is borrowed from the receiver holds up the session
    /// until it is given back, so clone it rather than keep it.
    #[must_use]
    pub fn states(&self) -> watch::Receiver<State> {
        self.shared().states.subscribe()
    }

    /// The state of the session.
    #[must_use]
    pub fn state(&self) -> State {
        self.shared().states.borrow().clone()
    }

    /// What another client would need to go on with the session.
    #[must_use]
    pub fn credentials(&self) -> Option<Credentials> {
        self.shared().core().machine.credentials().cloned()
    }

    /// The server in use, or the one that was tried last.
    #[must_use]
    pub fn server(&self) -> ByteString {
        self.shared().core().machine.server().clone()
    }

    /// No ensemble of ours has ended the session before this moment, whatever happens to the network.
    /// Nothing is certain where it is none. It moves on with what the leader sees of the session; who wants
    /// it to stay ahead holds a [`Certainty`].
    ///
    /// The clock is that of [`Instant`], which stands still while the machine is suspended.
    #[must_use]
    pub fn certain_until(&self) -> Option<Instant> {
        self.shared().certain_until().map(|moment| self.instant(moment))
    }

    /// As [`Keeper::certain_until`], of this session alone: nothing is certain of it where another one has
    /// followed.
    #[must_use]
    pub fn certain_until_of(&self, session: SessionId) -> Option<Instant> {
        self.shared().certain_until_of(session).map(|moment| self.instant(moment))
    }

    /// The session's time-out as a server granted it; the one asked for before any did.
    #[must_use]
    pub fn timeout(&self) -> Duration {
        self.shared().timeout()
    }

    /// A moment of [`State::Suspended`] as an instant.
    #[must_use]
    pub fn instant(&self, moment: Moment) -> Instant {
        self.shared().instant(moment).into_std()
    }

    /// Sends heartbeats that the leader sees, every quarter of the time-out, as long as what this gives is
    /// held. It costs a transaction each.
    pub fn keep_certain(&self) -> Certainty {
        Certainty::new(Arc::clone(self.shared()))
    }

    /// Uses other servers from now on. The session moves if the one in use is not among them. An empty list
    /// changes nothing, nor does a chroot.
    ///
    /// # Errors
    /// When the list can't be read.
    pub fn servers(
        &self,
        servers: impl TryInto<ServerList, Error: Into<ServersError>>,
    ) -> Result<(), ServersError> {
        let list = servers.try_into().map_err(Into::into)?;
        self.shared().command(Command::Servers(list.servers));
        Ok(())
    }

    /// Shows an identity on this connection and on all that follow. One that is refused ends the session on
    /// this side, as in ZooKeeper's clients.
    ///
    /// # Errors
    /// When the server refuses it, or the connection ends before it says so. Without a connection there is no
    /// error: it is shown on the next one.
    pub async fn auth(&self, scheme: impl Into<ByteString>, auth: impl Into<Bytes>) -> Result<(), OpError> {
        let packet = auth_packet(scheme.into(), auth.into());
        let shared = self.shared();
        shared.core().auths.push(packet.clone());
        let Some(line) = shared.line() else { return Ok(()) };
        let (judged, receiver) = oneshot::channel();
        shared.auth(&line, &packet, move |result| drop(judged.send(result)));
        // It is dropped unused where the connection is over.
        let judged = receiver.await.unwrap_or(Ok(()));
        if judged.as_ref().is_err_and(|error| error.refusal().is_some()) {
            // The channel lives as long as the keeper.
            let _ = self.states().wait_for(|state| *state == State::Closed).await;
        }
        judged
    }

    /// Ends the session, its ephemeral znodes with it, and then the connection.
    ///
    /// # Errors
    /// See [`OpError`]. Without a connection it is not sent, and unknown when the connection broke before the
    /// answer: the session may then live on until it expires. This side is closed in any case.
    pub async fn close(&self) -> Result<(), OpError> {
        let (done, receiver) = oneshot::channel();
        self.shared().command(Command::Close(done));
        match receiver.await {
            Ok(result) => result,
            Err(_) => Err(NotSent::Closed(self.why_closed()).into()),
        }
    }

    /// Why the session is closed, once it is: by [`Keeper::close`], or because of an identity that a server
    /// refused.
    #[must_use]
    pub fn closed_because(&self) -> Option<CloseReason> {
        self.shared().core().end.clone()
    }

    /// Sends a request once, when there is a connection.
    ///
    /// A watch that is asked for in it is left at the server and told to nobody: use the methods that end
    /// with `_watched`, and [`Keeper::watch`].
    ///
    /// # Errors
    /// See [`OpError`]. Of a multi, [`Keeper::multi`] says more.
    pub async fn call(&self, request: Request) -> Result<Answer, OpError> {
        self.ask(request).await.map_err(|failed| failed.error)
    }

    async fn ask(&self, request: Request) -> Result<Answer, MultiError> {
        if request == Request::CloseSession {
            self.close().await?;
            let zxid = self.credentials().map(|credentials| credentials.seen).unwrap_or_default();
            return Ok(Answer { zxid, response: node_session::Response::Done });
        }
        let request = self.shared().chroot.request(request).map_err(OpError::from)?;
        self.ask_as_is(request).await
    }

    /// Sends a request whose paths are the server's.
    async fn ask_as_is(&self, request: Request) -> Result<Answer, MultiError> {
        let request = Arc::new(request);
        let submit = |line: &Arc<Pipeline>| {
            let (deliver, receiver) = awaited();
            self.shared().submit(line, &request, None, deliver).map(|()| receiver)
        };
        answer(self.served(submit).await).await
    }

    /// Hands a request to a connection once there is one. It is tried again only while the connection says
    /// that it took nothing.
    async fn served<T>(
        &self,
        mut submit: impl FnMut(&Arc<Pipeline>) -> Result<T, NotSent>,
    ) -> Result<T, NotSent> {
        let deadline = tokio::time::Instant::now() + self.handle.patience;
        let mut states = self.states();
        loop {
            if *states.borrow_and_update() == State::Closed {
                return Err(NotSent::Closed(self.why_closed()));
            }
            if let Some(line) = self.shared().line() {
                match submit(&line) {
                    // The news that it is closed is under way.
                    Err(NotSent::Closed(_)) => {}
                    result => return result,
                }
            }
            match timeout_at(deadline, states.changed()).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) | Err(_) => return Err(NotSent::NoConnection),
            }
        }
    }

    fn why_closed(&self) -> CloseReason {
        self.closed_because().unwrap_or(CloseReason::Dropped)
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.handle.shared
    }
}

type Awaited = oneshot::Receiver<Result<Answer, MultiError>>;

/// What hands an answer to somebody who awaits it.
fn awaited() -> (Deliver, Awaited) {
    let (sender, receiver) = oneshot::channel();
    (Box::new(move |result| sender.send(result).is_ok()), receiver)
}

async fn answer(awaited: Result<Awaited, NotSent>) -> Result<Answer, MultiError> {
    // The sender is dropped unused only when the runtime goes down.
    let dropped = || OpError::Unknown { doubt: Doubt::Unanswered(CloseReason::Dropped) };
    awaited.map_err(OpError::from)?.await.unwrap_or_else(|_| Err(dropped().into()))
}

fn auth_packet(scheme: ByteString, auth: Bytes) -> AuthPacket {
    AuthPacket { kind: 0, scheme, auth: Some(auth) }
}

/// As long as it is held, heartbeats keep [`Keeper::certain_until`] ahead.
#[must_use = "heartbeats end when it is dropped"]
pub struct Certainty {
    shared: Arc<Shared>,
}

impl Certainty {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        shared.want_certainty(true);
        Self { shared }
    }
}

impl std::fmt::Debug for Certainty {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Certainty").finish_non_exhaustive()
    }
}

impl Drop for Certainty {
    fn drop(&mut self) {
        self.shared.want_certainty(false);
    }
}
