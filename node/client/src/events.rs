//! What watches tell.

use std::sync::Arc;

use node_recipes::recipe::Ask;
use node_session::{Event, Failure, Response};
use node_wire::ids::SessionId;
use tokio::sync::{mpsc, oneshot};

use crate::pipeline::Pipeline;

/// What a persistent watch tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Watched {
    /// Something happened.
    Event(Event),
    /// The session was suspended and is served again, and the watch is left again. What happened in between
    /// is not told: read again what you rely on.
    Reconnected,
    /// The session is over, and the watch with it. Nothing follows.
    Lost,
}

/// The session that left a one-time watch is over: nothing will be told of what it waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the session that watched is over")]
pub struct Lost;

/// What the driver of a recipe is told, in order.
pub(crate) enum Note {
    /// A request was answered.
    Answered { ask: Ask, answer: Result<Response, Failure> },
    /// A watch of the recipe saw something.
    Event(Event),
    /// The session is served, over this connection.
    Connected { session: SessionId, line: Arc<Pipeline> },
    /// It is certain for longer that the session lives.
    Certain,
    /// The connection is over. Everything that was asked through it is answered.
    Suspended,
    /// The session is over.
    Lost,
    /// The session is over or given up, and no other follows.
    Closed,
}

/// Who is told of events.
pub(crate) enum Hearer {
    /// A one-time watch.
    Once(oneshot::Sender<Result<Event, Lost>>),
    /// A persistent watch. It was suspended when `gap` is true.
    Stream { to: mpsc::UnboundedSender<Watched>, gap: bool },
    /// A recipe.
    Recipe(mpsc::UnboundedSender<Note>),
}
