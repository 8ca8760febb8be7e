//! Why a node goes by itself, which the owner in its Stat tells.
//!
//! The field names the session that a node goes with. ZooKeeper found room in it for more: the lowest number
//! marks a container, and a highest byte of `ff`, which no session has while servers are numbered up to 254,
//! marks an extended type. The two bytes behind it say which one; the only one there is has zeros there and a
//! time to live in the five bytes that are left.

use crate::ids::SessionId;

/// The owner of a container.
const CONTAINER: u64 = 1 << 63;
/// The highest byte of an extended type.
const EXTENDED: u64 = 0xff << 56;
/// Which extended type.
const FEATURE: u64 = 0xffff << 40;
/// The rest of it.
const VALUE: u64 = !(EXTENDED | FEATURE);

/// The longest time to live, in milliseconds: more does not fit into the owner.
pub const MAX_TTL_MS: i64 = VALUE.cast_signed();

/// Why a node goes by itself, if it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EphemeralType {
    /// It stays until somebody deletes it.
    Void,
    /// It goes with its session.
    Normal(SessionId),
    /// It goes when the last of its children is gone.
    Container,
    /// It goes when it had neither children nor changes for so long.
    Ttl {
        /// In milliseconds.
        ttl_ms: i64,
    },
}

impl EphemeralType {
    /// What an owner says. An extended type that is not known counts as a node that stays: a later version
    /// may have made it, and its members will see to it.
    #[must_use]
    pub fn of(owner: SessionId) -> EphemeralType {
        let bits = owner.0.cast_unsigned();
        if owner == SessionId::NONE {
            EphemeralType::Void
        } else if bits == CONTAINER {
            EphemeralType::Container
        } else if bits & EXTENDED != EXTENDED {
            EphemeralType::Normal(owner)
        } else if bits & FEATURE == 0 {
            EphemeralType::Ttl { ttl_ms: (bits & VALUE).cast_signed() }
        } else {
            EphemeralType::Void
        }
    }

    /// The owner that says this. `None` for a time to live that does not fit into it.
    #[must_use]
    pub fn owner(self) -> Option<SessionId> {
        match self {
            EphemeralType::Void => Some(SessionId::NONE),
            EphemeralType::Normal(session) => Some(session),
            EphemeralType::Container => Some(SessionId(CONTAINER.cast_signed())),
            EphemeralType::Ttl { ttl_ms } => (1..=MAX_TTL_MS)
                .contains(&ttl_ms)
                .then(|| SessionId((EXTENDED | ttl_ms.cast_unsigned()).cast_signed())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_is_written_as_zookeeper_writes_it() {
        assert_eq!(EphemeralType::Container.owner(), Some(SessionId(i64::MIN)));
        assert_eq!(
            EphemeralType::Ttl { ttl_ms: 5 }.owner().map(|owner| owner.to_string()).as_deref(),
            Some("0xff00000000000005")
        );
        assert_eq!(EphemeralType::Ttl { ttl_ms: MAX_TTL_MS + 1 }.owner(), None);
        assert_eq!(EphemeralType::Ttl { ttl_ms: 0 }.owner(), None);
    }

    #[test]
    fn an_owner_tells_its_type() {
        for kind in [
            EphemeralType::Void,
            EphemeralType::Normal(SessionId(0x0100_0000_0000_0001)),
            EphemeralType::Container,
            EphemeralType::Ttl { ttl_ms: 1 },
            EphemeralType::Ttl { ttl_ms: MAX_TTL_MS },
        ] {
            assert_eq!(kind.owner().map(EphemeralType::of), Some(kind));
        }
        let unknown = SessionId((EXTENDED | (1 << 40) | 7).cast_signed());
        assert_eq!(EphemeralType::of(unknown), EphemeralType::Void);
    }
}
