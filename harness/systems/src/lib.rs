//! Systems under test, as values: one folder each.
//!
//! A [`System`] says what its members are like before anything is looked for: what it promises, what can be
//! asked of it and what can't, how a member is asked who it is, what its lines mean, and what a client of it
//! is. An [`Installation`] is the same system as it was found on this machine, and starts members as
//! processes; [`Contained`] is how it runs in containers. A [`Client`] does a workload's operations, each
//! once.
//!
//! - [`system`]: the two traits and what they speak of; [`client`]: the third; [`look`]: what a member shows
//!   when it is asked from outside; [`service`]: containers as a file describes them.
//! - [`catalogue`]: every system that can be named.
//! - [`etcd`]: spoken to by a client in Rust.
//! - [`external`]: a system of the user's own, which a file describes.
//! - [`files`]: systems that are such files, and have a name.
//! - [`bounded`]: files that come from outside, read within bounds.
//! - [`alongside`]: clients in a container beside the members.
//! - [`application`]: what clients that are processes of their own are told, and answer.
//! - [`setting`]: settings that only one system has.
//! - [`own`]: commands of faults of the user's own.
//! - [`failure`]: what no client may do, once one did it.
//! - [`mutant`]: bugs of clients, to see that a judge notices.
//!
//! What it must never know: how members are broken, how a load is paced, what a history means, and where the
//! harness keeps what it writes.

pub mod alongside;
pub mod application;
pub mod bounded;
pub mod catalogue;
pub mod client;
pub mod etcd;
pub mod external;
pub mod failure;
pub mod files;
pub mod look;
pub mod mutant;
pub mod own;
pub mod program;
pub mod service;
pub mod setting;
pub mod system;

use std::pin::Pin;

pub use alongside::{Alongside, Hold, Remote};
pub use client::{Client, ClientSettings, Connected, NO_PROCESS};
pub use look::{Inside, Look, PortState, Ran, Role, Seen, Whereabouts, Whom};
pub use own::{Order, OwnCommand};
pub use service::{Auxiliaries, Auxiliary, Condition, Dependency, HealthCheck, Service, Volume};
pub use setting::{Setting, Settings};
pub use system::{
    Addresses, Beginning, Contained, ContainerPorts, Dialling, Installation, Placement, Site, System, Traits,
    Wanted,
};

/// What an asynchronous method gives: boxed, so that a system can be chosen while running.
pub type Async<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;
