//! What acts inside a member's namespaces: packet filter, signals, probes, clock.
//!
//! The agent is process 1 of a container that owns the network and the process namespace of one member; the
//! member's own container joins both. So the member needs no tools and no privileges, a restarted member
//! keeps its address and its partitions, and a fault takes effect within milliseconds of being asked for.
//!
//! It is driven by lines of JSON on standard input and answers on standard output ([`protocol`]). It holds a
//! lease: when the harness falls silent it heals everything by itself, and after a while it ends, and with
//! it, by the kernel's hand, every process of its namespace.

//!
//! How it is built: no async runtime, blocking calls, one thread for each thing that may wait.
//!
//! | thread | does | waits for |
//! |---|---|---|
//! | main ([`server`](run)) | requests, lease, filter, signals, reaping | input, signals, the others' nudge |
//! | writer | writes answers | whoever reads them; nobody waits for it |
//! | receiver (after hello) | stamps datagrams | datagrams |
//! | clock (at first use) | patches clocks | the processes it stops |
//!
//! Healing is the main thread's: it takes no lock that a waiting thread could hold. Only the agent that is
//! process 1 of its namespace signals, lists or patches processes: any other would reach the whole machine.

mod clock;
mod devices;
mod lease;
mod lines;
pub mod netfilter;
mod output;
mod probe;
pub mod processes;
pub mod protocol;
mod server;
mod signals;
mod threads;
mod time;

pub use clock::{ClockMaker, Clocks, idle_on_stdio};
pub use server::{AgentError, Options, main_loop_on_stdio, run};

/// FNV-1a: short names for long ones; the same in every build.
pub(crate) fn hash(bytes: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, step)
}
