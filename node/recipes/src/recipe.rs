//! What all recipes have in common: facts go in, requests come out.
//!
//! A recipe is a pure state machine. The driver (the async client, or a simulator) owes it this:
//!
//! 1. Inputs are given one at a time, and the requests of each are sent in order, each at most once, over the
//!    connection that the session has then. A request that can't be sent is answered [`Failure::NotSent`].
//! 2. Every request is answered once. Answers of one connection come in the order of the requests.
//! 3. An event comes before any answer that shows the change. It comes to a recipe that left its watch.
//! 4. When a connection ends, first all open requests are answered ([`Failure::Unknown`] or
//!    [`Failure::NotSent`]), and then comes [`Input::Suspended`]. [`Input::Connected`] says that a session
//!    is served again, and [`Input::Lost`] that it is over, with its ephemeral znodes and its watches.
//!    Behind `Connected` with the same session each one-time watch that stood is told if anything changed.
//!    A znode that was deleted and made again is told as changed, and one that came and went not at all.
//!    What was asked over the earlier connection may still be carried out until a sync is answered.
//! 5. [`Input::Time`] comes at [`Recipe::wakes_at`], or later.
//! 6. While [`Recipe::wants_certainty`], the driver sends heartbeats that the leader sees
//!    ([`Request::heartbeat`]), so that [`Now::certain_until`] stays ahead. When it moved, [`Input::Time`]
//!    comes, so that the recipe knows.
//!
//! What a recipe must never know: sockets, tasks, the wall clock, whether the network is real.

use node_session::{Event, Failure, Moment, Request, Response};
use node_wire::ids::SessionId;

/// The moment of a step, and what is certain of the session in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Now {
    /// Time since an arbitrary beginning.
    pub at: Moment,
    /// Nobody can have ended the session before this moment.
    pub certain_until: Option<Moment>,
    /// The session's time-out as the ensemble granted it, where the driver says so.
    pub timeout: Option<Moment>,
}

impl Now {
    /// True while the session certainly lives.
    #[must_use]
    pub fn is_certain(&self) -> bool {
        self.certain_until.is_some_and(|until| self.at < until)
    }

    /// False where a holder that wants to be told of its end so long before it could not hold: its term would
    /// be over before it begins, or between two heartbeats, and all behind it would wait. Half of the
    /// time-out is granted. (Certainty is nine tenths of it, and heartbeats come every quarter.)
    #[must_use]
    pub fn grants(&self, notice: Moment) -> bool {
        self.timeout.is_none_or(|timeout| notice <= timeout / 2)
    }
}

/// The number of a request, by which its answer is known. A recipe never uses one twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ask(pub u64);

/// A fact for a recipe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input<C> {
    /// The application wants something.
    Call(C),
    /// A request was answered.
    Answered {
        /// Which.
        ask: Ask,
        /// With what.
        answer: Result<Response, Failure>,
    },
    /// A watch of this recipe saw something.
    Event(Event),
    /// The session is served. The first input when it is already.
    Connected {
        /// Which session it is.
        session: SessionId,
    },
    /// The session is not served now.
    Suspended,
    /// The session is over.
    Lost,
    /// Time passed.
    Time,
}

impl<C> Input<C> {
    /// The same fact for a recipe within another one, whose calls are others.
    pub fn map<D>(self, call: impl FnOnce(C) -> D) -> Input<D> {
        match self {
            Self::Call(it) => Input::Call(call(it)),
            Self::Answered { ask, answer } => Input::Answered { ask, answer },
            Self::Event(event) => Input::Event(event),
            Self::Connected { session } => Input::Connected { session },
            Self::Suspended => Input::Suspended,
            Self::Lost => Input::Lost,
            Self::Time => Input::Time,
        }
    }
}

/// What a recipe wants done.
#[derive(Clone, Debug)]
pub struct Effects<T> {
    /// Requests to be sent, in this order.
    pub asks: Vec<(Ask, Request)>,
    /// What the application is told, in this order.
    pub told: Vec<T>,
}

impl<T> Default for Effects<T> {
    fn default() -> Self {
        Self { asks: Vec::new(), told: Vec::new() }
    }
}

impl<T> Effects<T> {
    /// Has the application told.
    pub fn tell(&mut self, told: T) {
        self.told.push(told);
    }
}

/// A recipe.
pub trait Recipe {
    /// What an application may want of it.
    type Call;
    /// What an application is told.
    type Told;

    /// Takes a fact, and says what is to be done.
    fn step(&mut self, now: Now, input: Input<Self::Call>, effects: &mut Effects<Self::Told>);

    /// What it means that the application drops its handle.
    fn leave() -> Self::Call;

    /// When time itself is news.
    fn wakes_at(&self) -> Option<Moment> {
        None
    }

    /// True while something is held that must be given up before the session can have ended.
    fn wants_certainty(&self) -> bool {
        false
    }

    /// True when nothing will come of it any more, and nothing is left of it in the tree.
    fn is_over(&self) -> bool;
}

/// Numbers requests, and remembers what each is for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Asks<P> {
    last: u64,
    open: Vec<(u64, P)>,
}

impl<P> Default for Asks<P> {
    fn default() -> Self {
        Self { last: 0, open: Vec::new() }
    }
}

impl<P> Asks<P> {
    /// Sends a request for this purpose.
    pub fn send<T>(&mut self, request: Request, purpose: P, effects: &mut Effects<T>) {
        self.last += 1;
        self.open.push((self.last, purpose));
        effects.asks.push((Ask(self.last), request));
    }

    /// What the answered request was for. Nothing where the answer came twice or the number is a stranger's.
    pub fn answered(&mut self, ask: Ask) -> Option<P> {
        let at = self.open.iter().position(|(number, _)| *number == ask.0)?;
        Some(self.open.remove(at).1)
    }

    /// Forgets what the open requests are for. Their answers are no news any more.
    #[must_use]
    pub fn emptied(&self) -> Self {
        Self { last: self.last, open: Vec::new() }
    }

    /// True while no request is open.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.open.is_empty()
    }
}
