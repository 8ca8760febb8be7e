//! A client's session as a pure state machine.
//!
//! [`Session`] decides where to connect, when to try again, in which state the session is, and which watches
//! a new connection must be told of. It owns no socket and no clock: a driver dials, sends and reads for it,
//! and says when. So the async client and a simulator run the same code.
//!
//! - [`request`] has what may be asked, what is answered, and what a failure proves.
//! - [`servers`] chooses the next server, and how long to wait before it is tried.
//! - [`watches`] knows who watches what, and hands each event to those whom it concerns.
//! - [`session`] puts them together.
//!
//! # What a session's end proves, and when
//!
//! A client learns that its session is over only from a server, when it connects again. Until then another
//! client may hold whatever this session held. So the session also keeps [`Session::certain_until`]: before
//! that moment no ensemble of ours can have ended it. It counts from the last request that *the leader*
//! saw: the time-out runs at the leader, and begins anew with each transaction of the session. It counts
//! from when the request was sent, because its answer may be old when it arrives. A ping does not count: a
//! follower answers it alone, and a follower that was cut off from the leader goes on answering for a while.
//! Nor does it count that a server lets the session go on: a deposed leader may say so.
//! A tenth of the time-out is taken off, for clocks that run at different speeds.
//!
//! A leader of Apache ZooKeeper learns of clients from followers' reports alone, half a tick late. There
//! `certain_until` is an estimate and no proof; a fencing token is what protects.

pub mod request;
pub mod servers;
pub mod session;
pub mod watches;

pub use request::{Answer, CreateMode, Failure, Request, Response};
pub use session::{Credentials, Effect, Input, Options, Session, State};
pub use watches::{Event, WatchKind, Watches};

/// Time since an arbitrary beginning that never goes back. All deadlines are kept on it.
pub type Moment = std::time::Duration;
