//! What a member runs as, where two kinds of servers may take each other's place on the same data.

use std::fmt;

/// One of two kinds of servers, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Server {
    name: &'static str,
    other: &'static str,
}

impl Server {
    /// The kind of that name, beside the other one.
    #[must_use]
    pub const fn new(name: &'static str, other: &'static str) -> Self {
        Self { name, other }
    }

    /// The other one.
    #[must_use]
    pub const fn other(self) -> Self {
        Self { name: self.other, other: self.name }
    }
}

impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}
