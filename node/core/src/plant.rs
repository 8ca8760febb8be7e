//! Planted bugs: failpoints that cost the clean member nothing.
//!
//! The core asks `P::has(Bug::X)`; for [`Clean`] the answer is the constant `false` and the branch is gone.
//! The `node` binary holds only [`Clean`]; the harness and the simulator choose others by name.

/// A bug that can be planted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Bug {
    /// A follower or leader acknowledges a proposal before it is durable.
    AckBeforeFsync = 1,
    /// The leader commits a proposal on its own word.
    CommitAlone = 2,
    /// The leader answers a sync without asking its quorum.
    SyncWithoutQuorum = 3,
}

impl Bug {
    /// Every bug, for lists.
    pub const ALL: [Self; 3] = [Self::AckBeforeFsync, Self::CommitAlone, Self::SyncWithoutQuorum];

    /// Its name on the command line (`--plant NAME`).
    pub fn name(self) -> &'static str {
        match self {
            Self::AckBeforeFsync => "ack-before-fsync",
            Self::CommitAlone => "commit-alone",
            Self::SyncWithoutQuorum => "sync-without-quorum",
        }
    }

    /// The bug of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|bug| bug.name() == name)
    }
}

/// Which bugs a member has. Implementations are zero-sized.
pub trait Plant: Send + 'static {
    /// True when this bug is planted.
    fn has(bug: Bug) -> bool;
}

/// No bug.
#[derive(Clone, Copy, Debug)]
pub struct Clean;

impl Plant for Clean {
    #[inline(always)]
    fn has(_: Bug) -> bool {
        false
    }
}

/// The one bug whose number is `N` (`Bug::X as u8`).
#[derive(Clone, Copy, Debug)]
pub struct Planted<const N: u8>;

impl<const N: u8> Plant for Planted<N> {
    #[inline(always)]
    fn has(bug: Bug) -> bool {
        bug as u8 == N
    }
}
