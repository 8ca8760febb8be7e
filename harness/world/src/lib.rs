//! What a virtual world has, whatever the protocol that lives in it.
//!
//! A simulator of replicated systems is two things: members and clients of some protocol, and a world around
//! them in which one seed decides everything. This crate is the second one. It knows no message, no role and
//! no history.
//!
//! - [`time`]: moments, and the queue of what will happen.
//! - [`dice`]: the one source of chance, and streams of it that do not disturb each other.
//! - [`clock`]: what members read, each with its own offset and pace.
//! - [`links`]: directions between machines, and how they fail.
//! - [`pipe`], [`conn`]: connections on them, in order while they stand.
//! - [`explore`]: everything that can happen, breadth first.
//! - [`trace`]: one line for each transition, hashed always: the proof that a world repeats.
//!
//! Nothing here decides when something happens: that is the simulator's, with these.

pub mod clock;
pub mod conn;
pub mod dice;
pub mod explore;
pub mod links;
pub mod pipe;
pub mod time;
pub mod trace;
