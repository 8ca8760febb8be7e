//! How much of a history is there, and what may be claimed from that much.
//!
//! Lines are written in the order of time, each invocation before its request is sent. So whatever stands
//! before the place at which a history ends has all its causes before that place too: the beginning of a
//! history that has an order has one, and a contradiction within it is a violation. Nothing of the kind holds
//! when lines are missing in the middle or were changed: a value that nobody wrote may have been written on a
//! line that is gone.
//!
//! What stands beside a history, such as what the members held at the end, is later than its beginning. Who
//! compares the two must expect more there than a beginning accounts for; see [`crate::durability`].

/// How much of a history is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// All: the trailer is there and fits, or none was to be expected.
    Whole,
    /// All up to some place. What follows is missing.
    Beginning,
    /// Nobody knows what is missing, or was changed, and where.
    Parts,
}

impl Extent {
    /// Whether nothing is missing.
    #[must_use]
    pub fn is_whole(self) -> bool {
        self == Self::Whole
    }
}
