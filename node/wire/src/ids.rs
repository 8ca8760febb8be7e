//! The numbers of the protocol, each with a type of its own.
//!
//! ZooKeeper writes all of them as signed integers and mixes them freely. Here they are unsigned where they
//! count something, and no two of them can be swapped by accident. Session identifiers stay signed: they are
//! opaque, and half of them are negative.

use std::fmt;

/// The reign of one leader.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Epoch(pub u32);

/// The place of a transaction in the history: the epoch in the high half, a counter in the low one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Zxid(pub u64);

/// A member of the ensemble, by the number in its `myid` file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServerId(pub u64);

/// A client's session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(pub i64);

/// A round of the election; ZooKeeper calls it the election epoch or the logical clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Round(pub u64);

impl Epoch {
    /// Before the first leader.
    pub const ZERO: Epoch = Epoch(0);
}

impl SessionId {
    /// No session: in a connect request, the wish for a new one.
    pub const NONE: SessionId = SessionId(0);
}

impl Zxid {
    /// Before the first transaction.
    pub const ZERO: Zxid = Zxid(0);

    /// The counter that ends an epoch. ZooKeeper never proposes it (ZOOKEEPER-1277), so neither do we.
    pub const LAST_COUNTER: u32 = u32::MAX;

    /// Puts the two halves together.
    #[must_use]
    pub fn new(epoch: Epoch, counter: u32) -> Zxid {
        Zxid((u64::from(epoch.0) << 32) | u64::from(counter))
    }

    /// The reign in which it was proposed.
    #[must_use]
    pub fn epoch(self) -> Epoch {
        Epoch(u32::try_from(self.0 >> 32).unwrap_or(u32::MAX))
    }

    /// Its number within the epoch; 0 is the epoch's own beginning and no transaction.
    #[must_use]
    pub fn counter(self) -> u32 {
        u32::try_from(self.0 & u64::from(u32::MAX)).unwrap_or(u32::MAX)
    }

    /// The next one of the same epoch, or `None` when the epoch is used up and a new one must be elected.
    #[must_use]
    pub fn next(self) -> Option<Zxid> {
        let counter = self.counter().checked_add(1)?;
        (counter != Self::LAST_COUNTER).then(|| Zxid::new(self.epoch(), counter))
    }

    /// As every format writes it.
    #[must_use]
    pub fn to_wire(self) -> i64 {
        self.0.cast_signed()
    }

    /// As every format writes it. Nothing is refused: -1 stands for "none" in some packets.
    #[must_use]
    pub fn from_wire(wire: i64) -> Zxid {
        Zxid(wire.cast_unsigned())
    }
}

impl fmt::Display for Zxid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for ServerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for Round {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zxid_is_an_epoch_and_a_counter() {
        let zxid = Zxid::new(Epoch(1), 2);
        assert_eq!(zxid, Zxid(0x1_0000_0002));
        assert_eq!((zxid.epoch(), zxid.counter()), (Epoch(1), 2));
        assert_eq!(zxid.to_string(), "0x100000002");
        assert_eq!(zxid.next(), Some(Zxid(0x1_0000_0003)));
    }

    #[test]
    fn an_epoch_ends_before_its_last_counter() {
        assert_eq!(Zxid::new(Epoch(7), u32::MAX - 2).next(), Some(Zxid::new(Epoch(7), u32::MAX - 1)));
        assert_eq!(Zxid::new(Epoch(7), u32::MAX - 1).next(), None);
        assert_eq!(Zxid::new(Epoch(7), u32::MAX).next(), None);
    }

    #[test]
    fn the_wire_form_keeps_every_bit() {
        assert_eq!(Zxid::from_wire(-1).to_wire(), -1);
        assert_eq!(Zxid::from_wire(-1), Zxid(u64::MAX));
    }

    #[test]
    fn a_negative_session_reads_as_java_prints_it() {
        assert_eq!(SessionId(-2).to_string(), "0xfffffffffffffffe");
        assert_eq!(SessionId(0x100).to_string(), "0x100");
    }
}
