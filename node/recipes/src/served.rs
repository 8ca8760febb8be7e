//! Whether the session is served, and when to try again: what every recipe keeps of its connection.

use node_session::{Failure, Moment};
use node_wire::client::ErrorCode;
use node_wire::ids::SessionId;

use crate::recipe::{Input, Now};

/// A wait before a request is tried that could not be sent over a connection that stands.
const PAUSE: Moment = Moment::from_millis(50);

/// What is known of the connection.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Served {
    session: Option<SessionId>,
    retry_at: Option<Moment>,
}

impl Served {
    /// Follows what an input says of the connection and of time; the rest is the recipe's.
    pub fn follow<C>(&mut self, now: Now, input: &Input<C>) {
        match input {
            Input::Connected { session } => self.connected(*session),
            Input::Suspended | Input::Lost => self.suspended(),
            Input::Time => self.time(now),
            Input::Call(_) | Input::Answered { .. } | Input::Event(_) => {}
        }
    }

    /// The session is served.
    pub fn connected(&mut self, session: SessionId) {
        self.session = Some(session);
        self.retry_at = None;
    }

    /// The session is not served now, or it is over.
    pub fn suspended(&mut self) {
        self.session = None;
        self.retry_at = None;
    }

    /// The session, while it is served.
    #[must_use]
    pub fn session(&self) -> Option<SessionId> {
        self.session
    }

    /// True if requests may be sent: the session is served, and no pause was asked for.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.session.is_some() && self.retry_at.is_none()
    }

    /// A request came to nothing. The next one waits for the driver's word, or for a pause where the driver
    /// has nothing to say.
    pub fn pause(&mut self, now: Now) {
        self.pause_for(now, PAUSE);
    }

    /// The next request waits so long.
    pub fn pause_for(&mut self, now: Now, pause: Moment) {
        if self.session.is_some() {
            self.retry_at = Some(now.at + pause);
        }
    }

    /// Ends the pause if it is over.
    pub fn time(&mut self, now: Now) {
        self.retry_at = self.retry_at.filter(|at| now.at < *at);
    }

    /// When the pause is over.
    #[must_use]
    pub fn wakes_at(&self) -> Option<Moment> {
        self.retry_at
    }
}

/// The ensemble's reason, when it judged the request and refused it. Nothing where the request was not
/// judged: it was lost, or the session is over or elsewhere, and the driver will say so.
#[must_use]
pub fn verdict(failure: Failure) -> Option<ErrorCode> {
    failure.refusal().filter(|code| !matches!(code, ErrorCode::SessionExpired | ErrorCode::SessionMoved))
}
