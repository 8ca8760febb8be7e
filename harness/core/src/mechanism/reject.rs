//! Refusing connections between members, old and new. Its act is a [`Cut`](crate::cut::Cut).

use super::{Mechanism, Part, Use};
use crate::condition::Quality;

/// The mechanism.
pub static REJECT: Mechanism = Mechanism {
    name: "reject",
    about: "connections are reset, old and new; process: by the links; docker: by the packet filter",
    occupies: &[(Part::Directions, Use::Shared)],
    parameters: &[],
    may_lose_unsynced: false,
    virtually: Ok(&[Quality::Passage]),
};
