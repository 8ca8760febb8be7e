//! The network of the process cluster: a userspace link for every ordered pair of members.
//!
//! Each member dials each other one through a listener of its own, and a process of ours forwards what is
//! said. Where all must dial a member at one address, who dials is told by whose socket it is. It is a
//! process of its own so that neither the load nor the checker delays it. What it may do to a stream is what
//! a network may do: hold it (bytes and FINs wait, and the sender feels the backpressure), delay it, reset
//! it, refuse it. It never drops bytes out of the middle of a stream: no network does that to TCP, and
//! systems accused by it were innocent (TigerBeetle's proxy had to learn this).
//!
//! A rule is for one direction of data, from one member to another, whoever dialled. A connect through a
//! held link still succeeds, because the listener is ours: "connected" proves nothing here.
//!
//! The process holds a lease. When its harness falls silent it heals everything by itself and goes.
//!
//! - [`rules`]: what may be done to a direction; [`lanes`]: what is in force in each, and what is counted.
//! - [`owner`]: whose connection it is, where everybody dials a member at one address.
//! - [`past`]: who talks past the links.
//! - [`forward`]: one connection; `introduction`: the one thing in it that is translated.
//! - [`probe`]: who reaches whom, one way at a time.
//! - [`protocol`]: the lines on standard input and output.
//! - [`server`]: the process.
//! - [`handle`]: the harness's end of it.

pub mod forward;
pub mod handle;
pub mod lanes;
pub mod owner;
pub mod past;
pub mod probe;
pub mod protocol;
pub mod rules;
pub mod server;

mod introduction;

#[cfg(test)]
mod tests;
