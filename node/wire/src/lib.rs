//! ZooKeeper's formats: bytes to types and back, for clients, peers and disk.
//!
//! Everything that a member reads from a socket or a file passes through here first, and everything here is
//! byte for byte what ZooKeeper 3.8 writes, so that its clients, its members and its tools can be at the
//! other end. The formats are of four kinds:
//!
//! | where | framing | module |
//! |---|---|---|
//! | client port | 4-byte length, then jute records | [`client`] |
//! | election port | 4-byte length, then fixed fields | [`election`] |
//! | quorum port | jute records without any framing | [`quorum`], and [`snapshot`] after SNAP |
//! | disk | checksummed records and files | [`logfile`], [`snapshot`], with [`txn`] inside |
//!
//! [`jute`] is the serialization under all of them, [`ids`] the numbers that must not be mixed up,
//! [`ephemeral`] what one of them says of a node; [`digest`], [`password`] and [`credentials`] are
//! calculations that both sides of a connection must agree on.
//!
//! Input is hostile until it is decoded: no decoder panics, and none allocates more than its input justifies.
//! A value of a type from here is well formed, so that nothing behind this crate has to look again. The crate
//! does no I/O, knows no clock and keeps no state between messages, except for what an incremental decoder
//! has seen of the one message it is in.

pub mod client;
pub mod credentials;
pub mod digest;
pub mod election;
pub mod ephemeral;
pub mod ids;
pub mod jute;
pub mod logfile;
pub mod membership;
pub mod password;
pub mod quorum;
pub mod snapshot;
pub mod txn;
