//! The task that keeps a session: it does what the session's machine decides.

use std::future::pending;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytestring::ByteString;
use node_session::session::{Opened, Unopened};
use node_session::{Effect, Input, Moment, Request, State};
use tokio::sync::{mpsc, oneshot};
use tokio::time::sleep_until;

use crate::dial::{Dial, Dialled, How, dial, is_one_writable};
use crate::error::{CloseReason, ConnectError, MultiError, NotSent, OpError};
use crate::pipeline::{Driver, Pipeline};
use crate::shared::{Command, Shared};

type Dialling = Pin<Box<dyn Future<Output = Result<Dialled, ConnectError>> + Send>>;

/// A part of the time-out after which a heartbeat follows another.
const BEATS: u32 = 4;

/// How long a session stays at a read-only server before others are asked for the first time. The wait
/// doubles from then on.
const FIRST_LOOK: Duration = Duration::from_millis(100);

/// No wait between two such rounds is longer.
const LONGEST_LOOK: Duration = Duration::from_secs(10);

/// Looks for a server with a quorum while the session is at one without.
#[derive(Default)]
struct Look {
    /// When it begins.
    at: Option<Moment>,
    wait: Duration,
    /// A round that is under way.
    round: Option<Pin<Box<dyn Future<Output = bool> + Send>>>,
    /// How many dials may not end at a read-only server: one with a quorum was seen.
    strict: usize,
}

/// The task of a session.
pub(crate) struct Task {
    shared: Arc<Shared>,
    how: How,
    max_outstanding: usize,
    servers: Vec<ByteString>,
    commands: mpsc::UnboundedReceiver<Command>,
    dialling: Option<Dialling>,
    /// A connection that is not in use yet.
    ready: Option<(Arc<Pipeline>, Driver)>,
    /// How often was dialled.
    turn: usize,
    /// When the next heartbeat is due, if somebody wants any.
    beat_at: Moment,
    /// Who waits for the end of the session, while the request to end it is under way.
    closing: Option<oneshot::Sender<Result<(), OpError>>>,
    look: Look,
    is_over: bool,
}

impl Task {
    pub(crate) fn new(
        shared: Arc<Shared>,
        how: How,
        max_outstanding: usize,
        servers: Vec<ByteString>,
        commands: mpsc::UnboundedReceiver<Command>,
    ) -> Self {
        Self {
            shared,
            how,
            max_outstanding,
            servers,
            commands,
            dialling: None,
            ready: None,
            turn: 0,
            beat_at: Moment::ZERO,
            closing: None,
            look: Look::default(),
            is_over: false,
        }
    }

    pub(crate) async fn run(mut self) {
        self.step(Input::Time).await;
        while !self.is_over {
            let line = self.shared.line();
            let alarm = self.alarm();
            let alarm = alarm.map(|at| self.shared.instant(at));
            tokio::select! {
                biased;
                command = self.commands.recv() => match command {
                    Some(command) => self.command(command).await,
                    None => return,
                },
                result = dialled(&mut self.dialling) => {
                    self.dialling = None;
                    self.dialled(result).await;
                }
                () = ended(line.as_deref()) => self.broken().await,
                found = looked(&mut self.look.round) => {
                    self.look.round = None;
                    self.looked(found).await;
                }
                () = async { if let Some(at) = alarm { sleep_until(at).await } else { pending().await } } => {
                    self.beat();
                    self.look();
                    self.step(Input::Time).await;
                }
            }
        }
    }

    /// When time itself is news.
    fn alarm(&self) -> Option<Moment> {
        let beat_at = self.is_beating().map(|_| self.beat_at);
        let core = self.shared.core();
        core.machine.wakes_at().into_iter().chain(beat_at).chain(self.look.at).min()
    }

    /// Asks the other servers whether they have a quorum, when it is time to.
    fn look(&mut self) {
        let now = self.shared.now();
        if self.look.at.take_if(|at| *at <= now).is_none() {
            return;
        }
        let (current, within) = {
            let core = self.shared.core();
            let State::Connected { timeout, .. } = core.machine.state() else { return };
            (core.machine.server().clone(), *timeout / 5)
        };
        let others = self.servers.iter().filter(|server| **server != current).cloned().collect();
        self.look.round = Some(Box::pin(is_one_writable(self.how.tls.clone(), others, within)));
    }

    async fn looked(&mut self, found: bool) {
        if found {
            self.look.strict = self.servers.len();
            self.step(Input::Move).await;
        } else {
            self.look.wait = (self.look.wait * 2).min(LONGEST_LOOK);
            self.look.at = Some(self.shared.now() + self.look.wait);
        }
    }

    /// The time-out of the session while heartbeats are sent.
    fn is_beating(&self) -> Option<Duration> {
        let core = self.shared.core();
        match core.machine.state() {
            State::Connected { timeout, read_only: false, .. } if core.wants_certainty() => Some(*timeout),
            _ => None,
        }
    }

    fn beat(&mut self) {
        let now = self.shared.now();
        let Some(timeout) = self.is_beating().filter(|_| self.beat_at <= now) else { return };
        self.beat_at = now + timeout / BEATS;
        if let Some(line) = self.shared.line() {
            // One that can't be sent proves nothing, and costs nothing.
            let _ = self.shared.submit(&line, &Arc::new(Request::heartbeat()), None, Box::new(|_| true));
        }
    }

    async fn command(&mut self, command: Command) {
        match command {
            Command::Servers(list) => {
                self.servers.clone_from(&list);
                self.step(Input::Servers(list)).await;
            }
            Command::Certainty => {
                self.beat_at = self.shared.now();
            }
            Command::Close(done) => self.close(done).await,
            Command::CloseAnswered(result) => {
                self.end(CloseReason::SessionClosed).await;
                if let Some(done) = self.closing.take() {
                    let _ = done.send(result);
                }
            }
            Command::AuthFailed => self.end(CloseReason::AuthFailed).await,
            Command::Dropped => self.end(CloseReason::Dropped).await,
        }
    }

    async fn close(&mut self, done: oneshot::Sender<Result<(), OpError>>) {
        if self.closing.is_some() {
            // Whoever asks second hears that the session is closed, as any later request does.
            let _ = done.send(Err(NotSent::Closed(CloseReason::SessionClosed).into()));
            return;
        }
        let commands = self.shared.commands.clone();
        let answered = move |result: Result<_, MultiError>| {
            let result = result.map(|_| ()).map_err(|failed| failed.error);
            commands.send(Command::CloseAnswered(result)).is_ok()
        };
        let sent = match self.shared.line() {
            Some(line) => {
                self.shared.submit(&line, &Arc::new(Request::CloseSession), None, Box::new(answered))
            }
            None => Err(NotSent::NoConnection),
        };
        match sent {
            Ok(()) => self.closing = Some(done),
            Err(error) => {
                let is_none = self.shared.core().machine.credentials().is_none();
                self.end(CloseReason::SessionClosed).await;
                let _ = done.send(if is_none { Ok(()) } else { Err(error.into()) });
            }
        }
    }

    async fn end(&mut self, reason: CloseReason) {
        self.shared.core().end.get_or_insert(reason);
        self.step(Input::Close).await;
    }

    async fn broken(&mut self) {
        if self.closing.is_some() {
            // Its answer, or that there is none, was put in before.
            return self.wait_for_close().await;
        }
        self.step(Input::Broken).await;
    }

    async fn wait_for_close(&mut self) {
        while self.closing.is_some() && !self.is_over {
            match self.commands.recv().await {
                Some(Command::CloseAnswered(result)) => {
                    self.end(CloseReason::SessionClosed).await;
                    if let Some(done) = self.closing.take() {
                        let _ = done.send(result);
                    }
                }
                Some(Command::Close(done)) => {
                    let _ = done.send(Err(NotSent::Closed(CloseReason::SessionClosed).into()));
                }
                Some(_) => {}
                None => return,
            }
        }
    }

    async fn dialled(&mut self, result: Result<Dialled, ConnectError>) {
        let input = match result {
            Ok(dialled) => Ok(self.prepare(dialled)),
            Err(error) => {
                let unopened = match &error {
                    ConnectError::Expired => Unopened::Expired,
                    _ => Unopened::Failed,
                };
                let is_refused = matches!(error, ConnectError::AuthFailed(_));
                self.shared.core().last_error = Some(Arc::new(error));
                if is_refused {
                    return self.end(CloseReason::AuthFailed).await;
                }
                Err(unopened)
            }
        };
        self.step(Input::Dialled(input)).await;
        self.ready = None;
    }

    /// Puts the first requests of a connection into it, before anybody else can.
    fn prepare(&mut self, dialled: Dialled) -> Opened {
        let Dialled { stream, received, response, timeout, sent, last_xid } = dialled;
        let on_event = self.shared.on_event();
        let line = Arc::new(Pipeline::with_events(self.max_outstanding, last_xid, on_event));
        let (auths, again) = {
            let core = self.shared.core();
            let seen = core.machine.credentials().map(|credentials| credentials.seen);
            (core.auths.clone(), core.watches().leave_again(seen.unwrap_or_default()))
        };
        for packet in auths {
            self.shared.auth(&line, &packet, |_| ());
        }
        for piece in again {
            line.leave_watches(piece);
        }
        self.ready = Some((Arc::clone(&line), Driver { pipeline: line, stream, received, timeout }));
        Opened {
            id: response.session,
            password: response.password,
            timeout,
            read_only: response.read_only == Some(true),
            sent,
        }
    }

    /// Tells the machine, and does what it wants done. A connection ends, and everything that was asked
    /// through it is answered, before anybody hears of a new state.
    async fn step(&mut self, input: Input) {
        let broke = input == Input::Broken;
        let effects = {
            let mut core = self.shared.core();
            core.machine.step(self.shared.now(), input)
        };
        if effects.contains(&Effect::Hangup) {
            self.hang_up().await;
        } else if broke {
            self.shared.take_line();
        }
        for effect in effects {
            match effect {
                Effect::Hangup => {}
                Effect::Dial { server, resume, timeout, read_only, within } => {
                    self.turn += 1;
                    let read_only = read_only && self.look.strict == 0;
                    self.look.strict = self.look.strict.saturating_sub(1);
                    let what = Dial { server, resume, timeout, read_only, within, turn: self.turn };
                    self.dial(what);
                }
                Effect::Tell(state) => self.tell(state),
            }
        }
    }

    fn dial(&mut self, mut what: Dial) {
        if let (Some(resume), Some(newest)) = (&mut what.resume, self.shared.core().machine.credentials()) {
            // Answers may have come until the old connection was closed.
            resume.seen = resume.seen.max(newest.seen);
        }
        let shared = Arc::clone(&self.shared);
        self.dialling = Some(Box::pin(dial(self.how.clone(), what, move || shared.now())));
    }

    async fn hang_up(&mut self) {
        self.dialling = None;
        self.ready = None;
        let Some(line) = self.shared.take_line() else { return };
        let reason = self.shared.core().end.clone().unwrap_or(CloseReason::Moved);
        line.close(reason);
        // Its own task may be the one that settles what is open.
        ended(Some(&line)).await;
    }

    fn tell(&mut self, state: State) {
        let strict = if matches!(state, State::Connected { .. }) { 0 } else { self.look.strict };
        self.look = Look { strict, wait: FIRST_LOOK, ..Look::default() };
        match &state {
            State::Connected { timeout, read_only, .. } => {
                self.look.at = read_only.then(|| self.shared.now() + FIRST_LOOK);
                self.beat_at = self.shared.now() + *timeout / BEATS;
                let ready = self.ready.take();
                self.shared.tell(state, ready.as_ref().map(|(line, _)| line));
                // Events of the connection come behind the news of it.
                if let Some((_, driver)) = ready {
                    tokio::spawn(driver.run());
                }
            }
            State::Closed => {
                self.is_over = true;
                self.shared.tell(state, None);
            }
            _ => self.shared.tell(state, None),
        }
    }
}

/// The result of a dial under way.
async fn dialled(dialling: &mut Option<Dialling>) -> Result<Dialled, ConnectError> {
    match dialling {
        Some(dialling) => dialling.await,
        None => pending().await,
    }
}

/// What came of a round that is under way.
async fn looked(round: &mut Option<Pin<Box<dyn Future<Output = bool> + Send>>>) -> bool {
    match round {
        Some(round) => round.await,
        None => pending().await,
    }
}

/// The end of a connection: everything that was asked through it is answered.
async fn ended(line: Option<&Pipeline>) {
    match line {
        Some(line) => {
            let mut closed = line.closed();
            // The sender is part of the pipeline, which is held here.
            let _ = closed.wait_for(Option::is_some).await;
        }
        None => pending().await,
    }
}
