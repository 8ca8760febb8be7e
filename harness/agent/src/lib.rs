//! What acts inside a member's namespaces: packet filter, signals, probes, clock.
//!
//! The agent is process 1 of a container that owns the network and the process namespace of one member; the
//! member's own container joins both. So the member needs no tools and no privileges, a restarted member keeps
//! its address and its partitions, and a fault takes effect within milliseconds of being asked for.
//!
//! It is driven by lines of JSON on standard input and answers on standard output ([`protocol`]). It holds a
//! lease: when the harness falls silent it heals everything by itself, and after a while it ends, and with it,
//! by the kernel's hand, every process of its namespace.

pub mod protocol;
