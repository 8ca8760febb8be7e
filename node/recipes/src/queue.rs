//! A queue: items are put, claimed one at a time, and acknowledged.
//!
//! Below a base znode are three:
//!
//! - `items`: a persistent sequential znode for each item, with a guid before the number. The lowest number
//!   is the item that was put first.
//! - `claims`: an ephemeral znode for each item that somebody works on, by the item's name.
//! - `marks`: an ephemeral znode for each producer, which says which item it put last.
//!
//! [`set_up`] gives the requests that make them.
//!
//! **Claiming** is one transaction: the item is there, and its claim is made. So an item has one holder at a
//! time, and none once it is acknowledged. A claim ends with its session, and the item can be claimed again.
//!
//! **Acknowledging** is one transaction: the item and its claim are deleted. It is a request of the session
//! that claimed. Once that session is over none of its requests is carried out, so nobody acknowledges an
//! item that somebody else may have claimed since.
//!
//! **Putting** is one transaction: the item is made, and the producer's mark says so.
//!
//! So:
//!
//! - An item that was put is not lost: it stays until it is acknowledged.
//! - An item is handed out again only if the claim of the one before ended without acknowledgement: its
//!   holder gave it back, or its session ended, or its session's certainty did ([`Consumer`]).
//! - Items are claimed in the order in which they were put, but for those that are handed out again; they
//!   come first. With several consumers they are *done* in any order.
//!
//! **Lost answers.** A put in doubt is looked up in the mark ([`once`](crate::once)). (To look for the item
//! itself would not do: it may have been claimed and acknowledged already.) Only where the session ended as
//! well may a doubt stay; then the application is told so. A claim, a return and an acknowledgement in doubt
//! are looked up in the claim, behind a sync: it is there with this session, or not.
//!
//! **Not promised:** that few are woken. Each change wakes every consumer that waits for an item. Those that
//! have one are not woken.

mod consumer;
mod producer;

pub use consumer::{Call as ConsumerCall, Consumer, Ended, Told as ConsumerTold};
pub use producer::{Call as ProducerCall, Producer, Told as ProducerTold};

use bytes::Bytes;
use bytestring::ByteString;
use node_session::{CreateMode, Request};
use node_wire::client::Acl;

use crate::names::child;

/// The requests that make a queue. Each may be refused because its znode is there.
#[must_use]
pub fn set_up(base: &str) -> Vec<Request> {
    let paths = [base.into(), items(base), claims(base), marks(base)];
    let create = |path| Request::Create {
        path,
        data: Bytes::new(),
        acl: vec![Acl::world_anyone()],
        mode: CreateMode::Persistent,
    };
    paths.map(create).into()
}

fn items(base: &str) -> ByteString {
    child(base, "items")
}

fn claims(base: &str) -> ByteString {
    child(base, "claims")
}

fn marks(base: &str) -> ByteString {
    child(base, "marks")
}

#[cfg(test)]
mod tests;
