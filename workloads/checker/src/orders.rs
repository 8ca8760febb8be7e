//! The orders in which a system's answers claim places, by the words that the system has for them.
//!
//! A history has two beside versions, whatever the system: the place up to which whoever answered had seen
//! all changes (of a change, its own), and the place of the change that made the state which an answer shows.
//! The fields of its lines are called `zxid` and `mzxid`, after the first system; what is said of them to a
//! person uses the system's own words.

use serde::{Deserialize, Serialize};

/// Words for places in a system's orders.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Orders {
    /// The place up to which whoever answered had seen.
    pub seen: String,
    /// The place of the change behind the state that is shown.
    pub changed: String,
    /// Whether places are written in hexadecimal.
    pub hexadecimal: bool,
}

impl Orders {
    /// A place as it is written.
    #[must_use]
    pub fn place(&self, place: u64) -> String {
        if self.hexadecimal { format!("{place:#x}") } else { place.to_string() }
    }
}

impl Default for Orders {
    /// ZooKeeper's.
    fn default() -> Self {
        Self { seen: "zxid".to_owned(), changed: "mzxid".to_owned(), hexadecimal: true }
    }
}
