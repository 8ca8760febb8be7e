//! An application: a recipe, its session, and what is under way between them and the ensemble.
//!
//! It is the driver of [`node_recipes::recipe`], and keeps each point of that contract. Requests and answers
//! travel in order and arrive when the world says so. When a connection breaks, what was not served may still
//! be served later, or never.

use std::collections::VecDeque;

use node_recipes::recipe::{Ask, Effects, Input, Now, Recipe};
use node_session::watches::Owner;
use node_session::{Failure, Moment, Request, Response, Watches};
use node_wire::client::{EventType, KeeperState, WatcherEvent};
use node_wire::ids::{SessionId, Zxid};

use crate::ensemble::Fired;

/// All watches of an application are its recipe's.
const OWNER: Owner = Owner(0);

/// A request under way.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Sent {
    /// Its number; none for a heartbeat.
    pub ask: Option<Ask>,
    /// What is asked.
    pub request: Request,
    /// When it was sent.
    pub at: Moment,
}

/// What is under way to the application.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Message {
    /// The answer to the first request that has none yet, and the state that it shows.
    Answer(Result<Response, Failure>, Zxid),
    /// An event.
    Event(EventType, bytestring::ByteString),
}

/// A connection.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Link {
    /// Requests that the ensemble has not served.
    pub requests: VecDeque<Sent>,
    /// Requests that it served, and that the application has no answer to.
    pub served: VecDeque<Sent>,
    /// What the application has not heard.
    pub messages: VecDeque<Message>,
    /// The ensemble ended the session.
    pub dead: bool,
}

/// A recipe with its session.
#[derive(Clone, Debug)]
pub struct Application<R> {
    /// The recipe.
    pub recipe: R,
    /// The session that it takes for its own.
    pub session: Option<SessionId>,
    /// Its connection.
    pub link: Option<Link>,
    /// Requests of an earlier connection that may still be served.
    pub late: VecDeque<Sent>,
    /// True while it is stopped.
    pub stopped: bool,
    proven: Option<Moment>,
    seen: Zxid,
    watches: Watches,
    timeout: Moment,
}

impl<R: Recipe> Application<R> {
    /// One that was never connected.
    #[must_use]
    pub fn new(recipe: R, timeout: Moment) -> Self {
        Self {
            recipe,
            session: None,
            link: None,
            late: VecDeque::new(),
            stopped: false,
            proven: None,
            seen: Zxid::ZERO,
            watches: Watches::default(),
            timeout,
        }
    }

    /// The moment, and what is certain in it.
    #[must_use]
    pub fn now(&self, at: Moment) -> Now {
        let certain_until = self.proven.map(|sent| sent + self.timeout * 9 / 10);
        Now { at, certain_until, timeout: Some(self.timeout) }
    }

    fn step(&mut self, at: Moment, input: Input<R::Call>, told: &mut Vec<R::Told>) {
        let mut effects = Effects::default();
        let now = self.now(at);
        self.recipe.step(now, input, &mut effects);
        told.append(&mut effects.told);
        for (ask, request) in effects.asks {
            match &mut self.link {
                Some(link) => link.requests.push_back(Sent { ask: Some(ask), request, at }),
                None => self.step(at, Input::Answered { ask, answer: Err(Failure::NotSent) }, told),
            }
        }
        self.keep_certain(at);
    }

    /// Sends a heartbeat where one is wanted and none is under way.
    fn keep_certain(&mut self, at: Moment) {
        let wants = self.recipe.wants_certainty();
        let fresh = self.proven.is_some_and(|sent| at < sent + self.timeout / 4);
        if let Some(link) = self.link.as_mut().filter(|_| wants && !fresh) {
            let under_way = link.requests.iter().chain(&link.served).any(|sent| sent.ask.is_none());
            if !under_way {
                link.requests.push_back(Sent { ask: None, request: Request::heartbeat(), at });
            }
        }
    }

    /// What it calls.
    pub fn call(&mut self, at: Moment, call: R::Call, told: &mut Vec<R::Told>) {
        self.step(at, Input::Call(call), told);
    }

    /// It looks at the clock.
    pub fn wake(&mut self, at: Moment, told: &mut Vec<R::Told>) {
        self.keep_certain(at);
        if self.recipe.wakes_at().is_some_and(|due| due <= at) {
            self.step(at, Input::Time, told);
        }
    }

    /// A session is served, at once all that the ensemble told it about watches that were left again.
    pub fn connected(&mut self, at: Moment, session: SessionId, fired: Vec<Fired>, told: &mut Vec<R::Told>) {
        let messages = fired.into_iter().map(|fired| Message::Event(fired.kind, fired.path)).collect();
        self.link = Some(Link { messages, ..Link::default() });
        if self.session != Some(session) {
            self.proven = Some(at);
        }
        self.session = Some(session);
        self.step(at, Input::Connected { session }, told);
    }

    /// What leaves its watches again.
    #[must_use]
    pub fn watches(&self) -> Vec<node_wire::client::SetWatches2> {
        self.watches.leave_again(self.seen)
    }

    /// Its connection broke. What was not served may be served later where `late` says so.
    pub fn broken(&mut self, at: Moment, late: bool, told: &mut Vec<R::Told>) {
        let Some(link) = self.link.take() else { return };
        self.late = if late { link.requests.clone() } else { VecDeque::new() };
        for sent in link.served.into_iter().chain(link.requests) {
            if let Some(ask) = sent.ask {
                self.step(at, Input::Answered { ask, answer: Err(Failure::Unknown) }, told);
            }
        }
        self.step(at, Input::Suspended, told);
    }

    /// The ensemble says that its session is over.
    pub fn lost(&mut self, at: Moment, told: &mut Vec<R::Told>) {
        self.session = None;
        self.proven = None;
        self.seen = Zxid::ZERO;
        self.watches.clear();
        self.late.clear();
        self.step(at, Input::Lost, told);
    }

    /// The first message arrives.
    pub fn hear(&mut self, at: Moment, told: &mut Vec<R::Told>) {
        let Some(link) = &mut self.link else { return };
        match link.messages.pop_front() {
            Some(Message::Answer(answer, seen)) => {
                let Some(sent) = link.served.pop_front() else { return };
                self.answered(at, &sent, answer, seen, told);
            }
            Some(Message::Event(kind, path)) => {
                let state = KeeperState::SyncConnected.code();
                let event = WatcherEvent { kind: kind.code(), state, path };
                let concerned = self.watches.saw(&event);
                if let Some((event, owners)) = concerned
                    && owners.contains(&OWNER)
                {
                    self.step(at, Input::Event(event), told);
                }
            }
            None => {}
        }
    }

    fn answered(
        &mut self,
        at: Moment,
        sent: &Sent,
        answer: Result<Response, Failure>,
        seen: Zxid,
        told: &mut Vec<R::Told>,
    ) {
        self.seen = self.seen.max(seen);
        if let Some((kind, path)) = sent.request.watch() {
            let absent = matches!(answer, Ok(Response::Exists(None)));
            let refused = answer.as_ref().err().and_then(|failure| failure.refusal());
            let refused = refused.or(absent.then_some(node_wire::client::ErrorCode::NoNode));
            self.watches.answered(kind, path, OWNER, refused);
        }
        let moved = sent.request.is_transaction() && self.proven < Some(sent.at);
        if moved {
            self.proven = Some(sent.at);
        }
        if let Some(ask) = sent.ask {
            self.step(at, Input::Answered { ask, answer }, told);
        }
        if moved && self.recipe.wants_certainty() {
            self.step(at, Input::Time, told);
        }
    }

    /// What makes two states of an application one, but for the recipe.
    pub(crate) fn outside(&self) -> impl std::hash::Hash + '_ {
        let watches: Vec<_> = self
            .watches
            .leave_again(self.seen)
            .into_iter()
            .map(|piece| (piece.data_watches, piece.exist_watches, piece.child_watches))
            .collect();
        (self.session, &self.link, &self.late, self.stopped, self.proven, watches)
    }
}
