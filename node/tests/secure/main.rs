//! Who is let in: TLS with stores as operators make them, certificates as identities. Over real sockets, against
//! the binary.

#[path = "../common/mod.rs"]
mod common;
mod member;
mod talk;
mod tls;
