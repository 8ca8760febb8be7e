//! After which kills a member comes back without what it had not synced.

use super::Nemesis;

/// After which kills a member's unsynced writes are lost. A SIGKILL alone keeps the page cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LoseUnsynced {
    /// After those that say so: `kill-all`, for nobody else can lose what a quorum holds.
    #[default]
    KillAll,
    /// After every kill, as a power failure would have it.
    Always,
    /// Never: SIGKILL alone keeps the page cache.
    Never,
}

impl LoseUnsynced {
    /// Every choice.
    pub const ALL: [Self; 3] = [Self::KillAll, Self::Always, Self::Never];

    /// Whether a fault of this kind loses it.
    #[must_use]
    pub fn applies_to(self, nemesis: Nemesis) -> bool {
        match self {
            Self::KillAll => nemesis.loses_unsynced(),
            Self::Always => true,
            Self::Never => false,
        }
    }

    /// As it is typed.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::KillAll => "kill-all",
            Self::Always => "always",
            Self::Never => "never",
        }
    }
}
