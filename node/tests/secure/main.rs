//! Who is let in: TLS with stores as operators make them, certificates as identities, names proven by SASL,
//! and members that know each other. Over real sockets, against the binary.

#[path = "../common/mod.rs"]
mod common;
#[path = "../common/frames.rs"]
mod frames;
mod member;
mod peers;
#[path = "../common/ports.rs"]
mod ports;
mod programs;
mod sasl;
mod talk;
mod tls;
