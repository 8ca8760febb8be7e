//! An async client for ZooKeeper's protocol that keeps no secrets from its caller.
//!
//! One [`Client`] is one TCP connection with one session on it. It pipelines, it keeps the session alive
//! with pings, and when the connection ends it ends too: it never dials again and never repeats a request.
//! Whoever tests a system, or builds a recipe on one, must decide that alone, because only the caller knows
//! whether doing a thing twice is harmless. A session outlives its connection: take it with
//! [`Client::session`] and give it to [`connect`] for another member.
//!
//! Every failure says what it proves. [`OpError::Refused`] and [`OpError::NotSent`] are definite: the
//! operation did not happen and never will. [`OpError::Unknown`] is indefinite: it may have happened, or may
//! happen still. The line between the last two is drawn at the socket: an operation of which the last byte
//! was never handed to the kernel cannot have been executed, since a server acts on whole frames only. (The
//! distinction of definite and indefinite errors is Jepsen's.)
//!
//! Deadlines of operations are the caller's: put `tokio::time::timeout` around a call. The request stays in
//! the pipeline and its answer, when it comes, is dropped; for the caller the outcome is then unknown.
//!
//! Not here: reconnecting, server lists, watches (their events are read and dropped until they have a
//! place), and recipes.

mod client;
mod connect;
mod error;
mod pipeline;
mod session;
mod word;

pub use client::{Client, Reply};
pub use connect::connect;
pub use error::{CloseReason, ConnectError, Doubt, NotSent, OpError};
pub use session::{ConnectOptions, Session};
pub use word::four_letter_word;

pub use node_wire::client::{ErrorCode, Stat};
