//! Applications: processes that hold something by the ensemble's word, and are no members.

use std::fmt;

/// What an application holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Thing {
    /// A lock, or a lead.
    Lock,
    /// An element that a queue handed out.
    Element,
    /// A place in a round of a barrier. The round stands for the token.
    Round,
}

/// An application that holds something now, by what it said last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holder {
    /// The number of its process. No other process of a run has it, its successors neither.
    pub application: u64,
    /// What it holds.
    pub thing: Thing,
    /// Of which lock or queue.
    pub key: u64,
    /// The token that it was given with it.
    pub token: u64,
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { application, thing, key, token } = self;
        write!(f, "application {application}, which ")?;
        match thing {
            Thing::Lock => write!(f, "holds lock {key} by token {token}"),
            Thing::Element => write!(f, "holds an element of queue {key} by token {token}"),
            Thing::Round => write!(f, "is in round {token} of barrier {key}"),
        }
    }
}

/// What is done to an application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Harm {
    /// SIGSTOP.
    Pause,
    /// SIGKILL. Another process takes its place at once, under another number.
    Kill,
    /// Nothing passes between it and any member, in either direction. Its store stays within reach.
    Cut,
    /// Its wall clock is shifted, by so many ns against the true one.
    Clock {
        /// By how much.
        offset_ns: i64,
    },
}
