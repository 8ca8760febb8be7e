//! A history goes in, a verdict comes out.
//!
//! A *history* says what the clients of a replicated system asked, when, and what they were told. This crate
//! decides whether any order of the operations explains the answers, and when none does, it names the few
//! operations that show it.
//!
//! - [`history`]: the line format, read and written as a stream, with a trailer that proves completeness.
//! - [`verdict`]: valid, invalid or unknown, and the evidence beside it.
//! - [`register`]: linearizability of one register with read, write and compare-and-set, by a portfolio of
//!   algorithms.
//! - [`linearizable`], [`versions`], [`sessions`], [`durability`]: the checks over a whole history of registers.
//! - [`set`], [`append`], [`sequential`], [`ephemeral`]: the checks over histories of unique elements, of growing
//!   lists, of numbered names and of nodes that end with their session.
//!
//! What is deliberately absent: threads, clocks, files and sockets. A caller bounds a check by a [`Budget`] of
//! steps and memory; a check that runs out answers [`verdict::Verdict::Unknown`], never valid. Nothing here
//! knows of nodes, faults or ZooKeeper: a version and a zxid are numbers that the system claimed.

pub mod append;
pub mod budget;
pub mod durability;
pub mod ephemeral;
pub mod history;
pub mod linearizable;
pub mod register;
pub mod sequential;
pub mod sessions;
pub mod set;
pub mod verdict;
pub mod versions;

pub use budget::Budget;
