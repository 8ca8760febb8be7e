//! An async client for ZooKeeper's protocol that keeps no secrets from its caller.
//!
//! There are two layers:
//!
//! - [`Client`] is one TCP connection with one session on it ([`connect`]). It pipelines, it keeps the
//!   session alive with pings, and when the connection ends it ends too.
//! - [`Keeper`] is a session over as many connections as it takes. It goes on at another server when one
//!   fails, leaves its watches again there, and says in which [`State`] the session is.
//!
//! Neither ever repeats a request. Whoever tests a system, or builds a recipe on one, must decide that alone,
//! because only the caller knows whether doing a thing twice is harmless.
//!
//! Every failure says what it proves. [`OpError::Refused`] and [`OpError::NotSent`] are definite: the
//! operation did not happen and never will. [`OpError::Unknown`] is indefinite: it may have happened, or may
//! happen still. The line between the last two is drawn at the socket: an operation of which the last byte
//! was never handed to the kernel cannot have been executed, since a server acts on whole frames only. (The
//! distinction of definite and indefinite errors is Jepsen's.) With TLS an operation counts as sent once TLS
//! took it, which may be a little before the kernel does.
//!
//! Deadlines of operations are the caller's: put `tokio::time::timeout` around a call. The request stays in
//! the pipeline and its answer, when it comes, is dropped; for the caller the outcome is then unknown.
//!
//! ```no_run
//! use node_client::{CreateMode, Keeper, KeeperOptions, OpError};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let keeper = Keeper::connect("one:2181,two:2181,three:2181/app", KeeperOptions::default()).await?;
//! match keeper.create("/leader", "me", CreateMode::Ephemeral).await {
//!     Ok(created) => println!("created at {}", created.zxid),
//!     Err(OpError::Refused { code, .. }) => println!("certainly not created: {code:?}"),
//!     Err(OpError::NotSent(why)) => println!("certainly not created: {why}"),
//!     Err(OpError::Unknown { doubt }) => println!("perhaps created: {doubt}"),
//! }
//! let (read, changed) = keeper.get_data_watched("/leader").await?;
//! println!("{:?} at version {}", read.value.data, read.value.stat.version);
//! println!("{:?} happened to it", changed.await?.kind);
//! keeper.close().await?;
//! # Ok(())
//! # }
//! ```
//!
//! # Sessions
//!
//! A session is [`State::Connected`], [`State::Suspended`] while no server serves it, and [`State::Lost`]
//! once a server said that it is over; a new one follows then. Between suspension and loss nobody knows which
//! it is. [`Keeper::certain_until`] says how long the session certainly lives whatever happens to the
//! network, and [`Keeper::keep_certain`] keeps that moment ahead. A session moves from one process to another
//! by its [`Keeper::credentials`].
//!
//! # Watches
//!
//! A one-time watch is a future ([`WatchOnce`]), and a persistent one a stream ([`WatchStream`]). An event is
//! told before any answer that shows its change. One-time watches miss nothing over a reconnect: the server
//! tells at once what changed meanwhile. Of persistent ones it does not, so the stream says
//! [`Watched::Reconnected`]. A lost session takes its watches with it.
//!
//! # Recipes
//!
//! [`Keeper::drive`] runs a recipe of [`node_recipes`]: a lock, an election and others. A recipe hears of the
//! session, of its answers and of its events in one order, and it leaves what it is part of when its
//! [`Running`] handle is dropped.

mod chroot;
mod client;
mod connect;
mod dial;
mod drive;
mod error;
mod events;
mod handshake;
mod keeper;
mod pipeline;
pub mod recipes;
mod sasl;
mod servers;
mod session;
mod shared;
mod stream;
mod task;
mod tls;
mod watch;
mod word;

pub use client::{Client, Reply};
pub use connect::connect;
pub use drive::Running;
pub use error::{CloseReason, ConnectError, Doubt, KeeperError, MultiError, NotSent, OpError, ServersError};
pub use events::{Lost, Watched};
pub use keeper::{AclList, Certainty, Children, Created, Data, Keeper, KeeperOptions};
pub use sasl::Sasl;
pub use servers::ServerList;
pub use session::{ConnectOptions, Session};
pub use tls::{Tls, TlsError};
pub use watch::{WatchOnce, WatchStream};
pub use word::four_letter_word;

pub use node_session::request;
pub use node_session::{Answer, CreateMode, Credentials, Event, Failure, Moment, Request, Response, State};
pub use node_wire::client::{Acl, AddWatchMode, ErrorCode, EventType, MultiOp, MultiResult, Stat};
