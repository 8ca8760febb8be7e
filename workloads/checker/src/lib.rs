//! A history goes in, a verdict comes out.
//!
//! A *history* says what the clients of a replicated system asked, when, and what they were told. This crate
//! decides whether any order of the operations explains the answers, and when none does, it names the few
//! operations that show it.
//!
//! - [`history`]: the line format, read and written as a stream, with a trailer that proves completeness.
//! - [`model`]: what an object does when operations come one at a time; a trait, for objects of all kinds.
//! - [`verdict`]: valid, invalid or unknown, and the evidence beside it.
//! - [`register`]: linearizability of one register with read, write and compare-and-set, by a portfolio of
//!   algorithms.
//! - [`order`]: sequential and ordered sequential consistency of any object, and the guarantees of a session.
//! - [`search`]: linearizability of any model, by searches that know nothing else of it.
//! - [`linearizable`], [`versions`], [`sessions`], [`durability`]: the checks over a whole history of
//!   registers.
//! - [`confirm`]: an order of a register's operations, confirmed by its definition alone.
//! - [`set`], [`append`], [`sequential`], [`ephemeral`]: the checks over histories of unique elements, of
//!   growing lists, of numbered names and of nodes that end with their session.
//! - [`stream`]: linearizability of registers while their history is read or made.
//! - [`watch`]: what watchers were told of the changes of registers.
//! - [`txn`]: transactions on lists that grow, and the anomalies that Elle names.
//! - [`chance`]: repeatable chance for whoever makes histories.
//! - [`catalogue`]: models and conditions by name, and one way to ask.
//!
//! What is deliberately absent: clocks, files and sockets. A caller bounds a check by a [`Budget`] of steps
//! and memory, and may interrupt it; a check that runs out answers [`verdict::Verdict::Unknown`], never
//! valid. Nothing here knows of nodes, faults or ZooKeeper: a version and a zxid are numbers that the system
//! claimed.

pub mod append;
pub mod budget;
pub mod catalogue;
pub mod chance;
pub mod confirm;
pub mod durability;
pub mod ephemeral;
pub mod figures;
mod hash;
pub mod history;
pub mod linearizable;
pub mod minimize;
pub mod model;
pub mod order;
pub mod orders;
mod parallel;
pub mod register;
mod scc;
pub mod search;
pub mod sequential;
pub mod sessions;
pub mod set;
pub mod stream;
pub mod txn;
pub mod verdict;
pub mod versions;
pub mod watch;

pub use budget::{Budget, Interrupt};
