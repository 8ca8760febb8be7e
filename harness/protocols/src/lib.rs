//! Any protocol in virtual time.
//!
//! Whoever writes a protocol as a state machine ([`Protocol`]) gets the rest here: a network that delays,
//! loses, copies and reorders; disks that lose what was not synced; clocks that are off; crashes, restarts,
//! pauses and cuts; worlds drawn from seeds; every interleaving up to a bound; scripts that a person reads,
//! and pictures of them; client histories, for the checkers of all other systems.
//!
//! One thing stands in the middle: a [`Configuration`] is all members with their disks, and the messages
//! under way, and a [`Step`] is one thing that happens to it. Everything else decides which step comes next:
//!
//! | who | by |
//! |---|---|
//! | [`world`] | the dice of a seed, in virtual time |
//! | [`planned`] | a run of the bench, in virtual time: `harness run --cluster sim` |
//! | [`explore`] | trying all, breadth first |
//! | [`script`] | the lines of a file |
//! | [`shrink`] | leaving steps out |
//!
//! So what one of them found the others can repeat: a failed world is a list of steps, which is made small,
//! written as a script, and drawn by [`ladder`].
//!
//! - [`protocol`]: what a protocol is. [`configuration`]: what steps do. [`report`]: what is told of a world.
//! - `ensemble`: members in virtual time, which both kinds of worlds have.
//! - [`entry`]: protocols by name, with their mutants and scenarios. [`hunt`]: what finds a mutant.
//!
//! What it must never know: a protocol; sockets, real clocks, files, threads.

pub mod configuration;
pub mod entry;
pub mod explore;
pub mod hunt;
pub mod ladder;
pub mod planned;
pub mod protocol;
pub mod report;
pub mod script;
pub mod shrink;
pub mod world;

mod clients;
mod ensemble;
mod op_words;
mod told;

pub use configuration::{Configuration, Step};
pub use protocol::{Broken, Id, Input, Io, Member, Protocol, Request};
