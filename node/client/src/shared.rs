//! What the handles, the task and the connections of a session share.
//!
//! Locks are taken in one order: `order`, then a pipeline's, then `core`. A pipeline calls in here while it
//! is locked, so nobody asks a pipeline for anything while the core is locked.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use bytestring::ByteString;
use node_session::watches::Owner;
use node_session::{Answer, Failure, Input, Moment, Request, Response, Session, State, Watches};
use node_wire::client::{AuthPacket, ErrorCode, WatcherEvent};
use node_wire::ids::{SessionId, Zxid};
use node_wire::jute::Writer;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;

use crate::chroot::Chroot;
use crate::error::{CloseReason, ConnectError, Doubt, MultiError, NotSent, OpError, leaves_it_open};
use crate::events::{Hearer, Lost, Note, Watched};
use crate::pipeline::{self, OnEvent, Pipeline, Settle};

/// What is done with an answer. False when nobody wants it any more.
pub(crate) type Deliver = Box<dyn FnOnce(Result<Answer, MultiError>) -> bool + Send>;

/// What the task is told.
#[derive(Debug)]
pub(crate) enum Command {
    /// There is another list of servers.
    Servers(Vec<ByteString>),
    /// Somebody wants certainty, and nobody did before.
    Certainty,
    /// End the session.
    Close(oneshot::Sender<Result<(), OpError>>),
    /// The request to end it was answered.
    CloseAnswered(Result<(), OpError>),
    /// A server refused an identity.
    AuthFailed,
    /// Nobody holds the session any more.
    Dropped,
}

/// A session's shared part.
pub(crate) struct Shared {
    core: Mutex<Core>,
    /// Held from the decision to take watches back until it is queued, and while a watch is left.
    order: Mutex<()>,
    pub(crate) states: watch::Sender<State>,
    pub(crate) commands: mpsc::UnboundedSender<Command>,
    pub(crate) chroot: Chroot,
    begun: Instant,
}

/// What is locked.
pub(crate) struct Core {
    pub(crate) machine: Session,
    watches: Watches,
    hearers: BTreeMap<Owner, Hearer>,
    last_owner: u64,
    /// The connection that serves the session.
    line: Option<Arc<Pipeline>>,
    /// Paths of requests under way that leave a watch.
    leaving: BTreeMap<ByteString, usize>,
    pub(crate) auths: Vec<AuthPacket>,
    /// How many want heartbeats.
    certainty: usize,
    /// Why there will be no connection any more.
    pub(crate) end: Option<CloseReason>,
    pub(crate) last_error: Option<Arc<ConnectError>>,
}

impl Shared {
    pub(crate) fn new(
        machine: Session,
        chroot: Chroot,
        auths: Vec<AuthPacket>,
        commands: mpsc::UnboundedSender<Command>,
    ) -> Self {
        let states = watch::Sender::new(machine.state().clone());
        let core = Core {
            machine,
            watches: Watches::default(),
            hearers: BTreeMap::new(),
            last_owner: 0,
            line: None,
            leaving: BTreeMap::new(),
            auths,
            certainty: 0,
            end: None,
            last_error: None,
        };
        Self {
            core: Mutex::new(core),
            order: Mutex::new(()),
            states,
            commands,
            chroot,
            begun: Instant::now(),
        }
    }

    /// No code under this lock panics, so a poisoned one holds a sound state.
    pub(crate) fn core(&self) -> MutexGuard<'_, Core> {
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn now(&self) -> Moment {
        self.begun.elapsed()
    }

    pub(crate) fn instant(&self, moment: Moment) -> Instant {
        self.begun + moment
    }

    /// Tells the task. It is gone only when the session is closed, and then there is nothing to do.
    pub(crate) fn command(&self, command: Command) {
        let _ = self.commands.send(command);
    }

    pub(crate) fn line(&self) -> Option<Arc<Pipeline>> {
        self.core().line.clone()
    }

    pub(crate) fn certain_until(&self) -> Option<Moment> {
        self.core().machine.certain_until()
    }

    /// As a server granted it; the one asked for before any did.
    pub(crate) fn timeout(&self) -> Moment {
        self.core().machine.timeout()
    }

    /// None where another session has followed this one.
    pub(crate) fn certain_until_of(&self, session: SessionId) -> Option<Moment> {
        let core = self.core();
        let is_it = core.machine.credentials().is_some_and(|credentials| credentials.id == session);
        core.machine.certain_until().filter(|_| is_it)
    }

    /// One more wants heartbeats, or one less.
    pub(crate) fn want_certainty(&self, wanted: bool) {
        let mut core = self.core();
        if wanted {
            core.certainty += 1;
        } else {
            core.certainty -= 1;
        }
        let is_first = wanted && core.certainty == 1;
        drop(core);
        if is_first {
            self.command(Command::Certainty);
        }
    }

    /// Sends a request, which the server must understand as it is, over this connection. `deliver` is not
    /// called when the request is refused here.
    pub(crate) fn submit(
        self: &Arc<Self>,
        line: &Pipeline,
        request: &Arc<Request>,
        owner: Option<Owner>,
        deliver: Deliver,
    ) -> Result<(), NotSent> {
        let settle = self.settle(Arc::clone(request), owner, deliver);
        let body = |w: &mut Writer<'_>| request.encode(w);
        match request.watch().filter(|_| owner.is_some()) {
            None => line.submit_to(request.op(), body, settle),
            Some((_, path)) => {
                let _order = self.order();
                *self.core().leaving.entry(path.clone()).or_default() += 1;
                line.submit_to(request.op(), body, settle).inspect_err(|_| self.core().left(path))
            }
        }
    }

    /// As [`Shared::submit`], of two requests that leave no watch, with nothing between them.
    pub(crate) fn submit_pair(
        self: &Arc<Self>,
        line: &Pipeline,
        (one, deliver_one): (&Arc<Request>, Deliver),
        (other, deliver_other): (&Arc<Request>, Deliver),
    ) -> Result<(), NotSent> {
        let settle_one = self.settle(Arc::clone(one), None, deliver_one);
        let settle_other = self.settle(Arc::clone(other), None, deliver_other);
        line.submit_pair_to(
            (one.op(), |w: &mut Writer<'_>| one.encode(w), settle_one),
            (other.op(), |w: &mut Writer<'_>| other.encode(w), settle_other),
        )
    }

    /// Shows an identity on this connection. `deliver` is not called where the connection is over.
    pub(crate) fn auth(
        self: &Arc<Self>,
        line: &Pipeline,
        packet: &AuthPacket,
        deliver: impl FnOnce(Result<(), OpError>) + Send + 'static,
    ) {
        let commands = self.commands.clone();
        let settle = move |result: Result<pipeline::Answer, OpError>| {
            if result.as_ref().is_err_and(|error| error.refusal().is_some()) {
                let _ = commands.send(Command::AuthFailed);
            }
            deliver(result.map(|_| ()));
        };
        // It will be shown on the next connection.
        let _ = line.auth(packet, Box::new(settle));
    }

    fn order(&self) -> MutexGuard<'_, ()> {
        self.order.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn settle(self: &Arc<Self>, request: Arc<Request>, owner: Option<Owner>, deliver: Deliver) -> Settle {
        let (shared, sent) = (Arc::clone(self), self.now());
        Box::new(move |result| shared.settled(&request, owner, sent, result, deliver))
    }

    fn settled(
        &self,
        request: &Request,
        owner: Option<Owner>,
        sent: Moment,
        result: Result<pipeline::Answer, OpError>,
        deliver: Deliver,
    ) {
        let seen = match &result {
            Ok(answer) => Some(answer.zxid),
            Err(OpError::Refused { zxid, .. }) => Some(*zxid),
            Err(_) => None,
        };
        let mut outcome = read(request, result);
        let mut core = self.core();
        if let Some(seen) = seen {
            // Errors before the first transaction carry -1 or 0.
            let seen = if seen.to_wire() > 0 { seen } else { Zxid::ZERO };
            let by_leader = request.is_transaction() && shows_the_leader(&outcome);
            let before = core.machine.certain_until();
            core.machine.step(self.now(), Input::Answered { sent, by_leader, seen });
            if core.machine.certain_until() > before && core.certainty > 0 {
                core.tell_of_certainty();
            }
        }
        if let (Some((kind, path)), Some(owner)) = (request.watch(), owner) {
            core.left(path);
            if let Some(refused) = said_of_watch(&outcome) {
                core.watches.answered(kind, path, owner, refused);
            }
        }
        if let (Request::RemoveWatches { path, kind }, Ok(_)) = (request, &outcome) {
            self.removed(&mut core, path, *kind);
        }
        drop(core);
        if let Ok(answer) = &mut outcome {
            self.chroot.response(&mut answer.response);
        }
        let is_wanted = deliver(outcome);
        if let Some(owner) = owner.filter(|_| !is_wanted) {
            self.core().forget(owner);
        }
    }

    /// The server forgot watches at our wish. It says no more of it, so it is told here.
    fn removed(&self, core: &mut Core, path: &ByteString, kind: i32) {
        const CHILDREN: i32 = 1;
        const DATA: i32 = 2;
        use node_wire::client::EventType::{ChildWatchRemoved, DataWatchRemoved, PersistentWatchRemoved};
        let kinds: &[_] = match kind {
            CHILDREN => &[ChildWatchRemoved],
            DATA => &[DataWatchRemoved],
            _ => &[ChildWatchRemoved, DataWatchRemoved, PersistentWatchRemoved],
        };
        for kind in kinds {
            let before = core.watches.len();
            let mut without = core.watches.clone();
            let event = WatcherEvent { kind: kind.code(), state: 3, path: path.clone() };
            if let Some((_, owners)) = without.saw(&event)
                && without.len() < before
            {
                core.watches = without;
                let event = node_session::Event { kind: *kind, path: self.shown(path) };
                core.hear(event, owners);
            }
        }
    }

    fn shown(&self, path: &ByteString) -> ByteString {
        self.chroot.within(path).unwrap_or_else(|| path.clone())
    }

    /// What a connection hands its events to.
    pub(crate) fn on_event(self: &Arc<Self>) -> OnEvent {
        let shared: Weak<Self> = Arc::downgrade(self);
        Box::new(move |event| {
            if let Some(shared) = shared.upgrade() {
                shared.event(&event);
            }
        })
    }

    fn event(&self, event: &WatcherEvent) {
        let mut core = self.core();
        if let Some((mut event, owners)) = core.watches.saw(event) {
            event.path = self.shown(&event.path);
            core.hear(event, owners);
        }
    }

    /// Forgets a persistent watch, and takes it back from the server where nobody else has one there.
    pub(crate) fn unwatch(self: &Arc<Self>, owner: Owner, path: &ByteString) {
        const ANY: i32 = 3;
        let _order = self.order();
        let mut core = self.core();
        let is_watched = |core: &Core| {
            core.leaving.contains_key(path)
                || core.watches.leave_again(Zxid::ZERO).iter().any(|piece| {
                    [
                        &piece.data_watches,
                        &piece.exist_watches,
                        &piece.child_watches,
                        &piece.persistent_watches,
                        &piece.persistent_recursive_watches,
                    ]
                    .into_iter()
                    .any(|paths| paths.contains(path))
                })
        };
        let was = is_watched(&core);
        core.forget(owner);
        let line = core.line.clone().filter(|_| was && !is_watched(&core));
        drop(core);
        if let Some(line) = line {
            let request = Arc::new(Request::RemoveWatches { path: path.clone(), kind: ANY });
            // Whatever comes of it, events that come all the same concern nobody.
            let _ = self.submit(&line, &request, None, Box::new(|_| true));
        }
    }

    /// Takes the connection away from the session.
    pub(crate) fn take_line(&self) -> Option<Arc<Pipeline>> {
        self.core().line.take()
    }

    /// Tells everybody of a new state. `line` is the connection that comes with it.
    pub(crate) fn tell(&self, state: State, line: Option<&Arc<Pipeline>>) {
        let mut core = self.core();
        core.line = line.cloned();
        match &state {
            State::Connecting => {}
            State::Connected { session, read_only, .. } => {
                for hearer in core.hearers.values_mut() {
                    hearer.connected(*session, line.filter(|_| !read_only));
                }
            }
            State::Suspended { .. } => {
                for hearer in core.hearers.values_mut() {
                    hearer.suspended();
                }
            }
            State::Lost { .. } => core.lost(),
            State::Closed => {
                core.lost();
                for hearer in std::mem::take(&mut core.hearers).into_values() {
                    if let Hearer::Recipe(to) = hearer {
                        let _ = to.send(Note::Closed);
                    }
                }
            }
        }
        drop(core);
        self.states.send_replace(state);
    }
}

impl Core {
    /// Somebody is told of events from now on.
    pub(crate) fn add(&mut self, hearer: Hearer) -> Owner {
        self.last_owner += 1;
        let owner = Owner(self.last_owner);
        self.hearers.insert(owner, hearer);
        owner
    }

    /// A recipe is told of events from now on, and at once that the session is served, if it is.
    pub(crate) fn add_recipe(&mut self, to: mpsc::UnboundedSender<Note>) -> Owner {
        let mut hearer = Hearer::Recipe(to);
        match self.machine.state() {
            State::Connected { session, read_only: false, .. } => {
                hearer.connected(*session, self.line.as_ref());
            }
            State::Closed => {
                if let Hearer::Recipe(to) = &hearer {
                    let _ = to.send(Note::Closed);
                }
            }
            _ => {}
        }
        self.add(hearer)
    }

    /// Somebody is no longer told.
    pub(crate) fn forget(&mut self, owner: Owner) {
        self.watches.forget(owner);
        self.hearers.remove(&owner);
    }

    /// Recipes are told when the certainty moved on: one of them may wait for it.
    fn tell_of_certainty(&self) {
        for hearer in self.hearers.values() {
            if let Hearer::Recipe(to) = hearer {
                // A recipe that is over hears nothing any more.
                let _ = to.send(Note::Certain);
            }
        }
    }

    /// True while somebody wants heartbeats.
    pub(crate) fn wants_certainty(&self) -> bool {
        self.certainty > 0
    }

    /// Who watches what.
    pub(crate) fn watches(&self) -> &Watches {
        &self.watches
    }

    /// A request that leaves a watch is no longer under way.
    fn left(&mut self, path: &ByteString) {
        if let Some(count) = self.leaving.get_mut(path) {
            *count -= 1;
            if *count == 0 {
                self.leaving.remove(path);
            }
        }
    }

    fn hear(&mut self, event: node_session::Event, owners: impl IntoIterator<Item = Owner>) {
        for owner in owners {
            // Receivers that are gone take themselves off the list.
            match self.hearers.get(&owner) {
                None => {}
                Some(Hearer::Stream { to, .. }) => drop(to.send(Watched::Event(event.clone()))),
                Some(Hearer::Recipe(to)) => drop(to.send(Note::Event(event.clone()))),
                Some(Hearer::Once(_)) => {
                    if let Some(Hearer::Once(to)) = self.hearers.remove(&owner) {
                        let _ = to.send(Ok(event.clone()));
                    }
                }
            }
        }
    }

    /// The session is over, and its watches with it.
    fn lost(&mut self) {
        self.watches.clear();
        for (owner, hearer) in std::mem::take(&mut self.hearers) {
            match hearer {
                Hearer::Once(to) => drop(to.send(Err(Lost))),
                Hearer::Stream { to, .. } => drop(to.send(Watched::Lost)),
                Hearer::Recipe(to) => {
                    let _ = to.send(Note::Lost);
                    self.hearers.insert(owner, Hearer::Recipe(to));
                }
            }
        }
    }
}

impl Hearer {
    fn connected(&mut self, session: node_wire::ids::SessionId, line: Option<&Arc<Pipeline>>) {
        match self {
            Self::Once(_) => {}
            Self::Stream { to, gap } => {
                if std::mem::take(gap) {
                    let _ = to.send(Watched::Reconnected);
                }
            }
            Self::Recipe(to) => {
                if let Some(line) = line {
                    let _ = to.send(Note::Connected { session, line: Arc::clone(line) });
                }
            }
        }
    }

    fn suspended(&mut self) {
        match self {
            Self::Once(_) => {}
            Self::Stream { gap, .. } => *gap = true,
            Self::Recipe(to) => drop(to.send(Note::Suspended)),
        }
    }
}

/// What a result says in terms of the request.
fn read(request: &Request, result: Result<pipeline::Answer, OpError>) -> Result<Answer, MultiError> {
    let unknown = |doubt| MultiError::from(OpError::Unknown { doubt });
    let (zxid, mut body) = match result {
        Ok(pipeline::Answer { zxid, body }) => (zxid, body),
        Err(OpError::Refused { code, zxid }) => {
            return match request.refused(code) {
                Ok(response) => Ok(Answer { zxid, response }),
                Err(_) => Err(OpError::Refused { code, zxid }.into()),
            };
        }
        Err(error) => return Err(error.into()),
    };
    match request.decode(&mut body) {
        Ok(Ok(response)) => Ok(Answer { zxid, response }),
        Ok(Err(Failure::Refused { code, .. })) if leaves_it_open(code) => Err(unknown(Doubt::Code(code))),
        Ok(Err(Failure::Refused { code, at })) => {
            Err(MultiError { error: OpError::Refused { code, zxid }, at })
        }
        Ok(Err(Failure::NotSent | Failure::Unknown)) => Err(unknown(Doubt::UnlistedResult)),
        Err(error) => Err(unknown(Doubt::Unreadable(error))),
    }
}

/// True for what only a leader says of a transaction. A follower may refuse one by itself.
fn shows_the_leader(outcome: &Result<Answer, MultiError>) -> bool {
    match outcome {
        Ok(_) => true,
        Err(failed) => matches!(
            failed.error.refusal(),
            Some(
                ErrorCode::NoNode
                    | ErrorCode::NodeExists
                    | ErrorCode::BadVersion
                    | ErrorCode::NotEmpty
                    | ErrorCode::NoChildrenForEphemerals
            )
        ),
    }
}

/// Whether a watch was refused, and why; nothing where no server said it.
fn said_of_watch(outcome: &Result<Answer, MultiError>) -> Option<Option<ErrorCode>> {
    match outcome {
        Ok(Answer { response: Response::Exists(None), .. }) => Some(Some(ErrorCode::NoNode)),
        Ok(_) => Some(None),
        Err(failed) => failed.error.refusal().map(Some),
    }
}
