//! Which kills lose what a member had not synchronized to its disk.

use crate::exit::Failure;
use crate::nemesis::Nemesis;
use crate::text::suggest;

/// When killed members lose what they had not synced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LoseUnsynced {
    /// After `kill-all` only: nobody else can lose what a quorum holds.
    #[default]
    KillAll,
    /// After every kill, as a power failure would have it.
    Always,
    /// Never: SIGKILL alone keeps the page cache.
    Never,
}

impl LoseUnsynced {
    const NAMES: [&'static str; 3] = ["kill-all", "always", "never"];

    /// Whether a fault of this kind loses it.
    pub fn applies_to(self, nemesis: Nemesis) -> bool {
        match self {
            Self::KillAll => nemesis.loses_unsynced(),
            Self::Always => true,
            Self::Never => false,
        }
    }

    /// What somebody typed.
    pub fn parse(text: &str) -> Result<Self, Failure> {
        match text {
            "kill-all" => Ok(Self::KillAll),
            "always" => Ok(Self::Always),
            "never" => Ok(Self::Never),
            _ => Err(Failure::usage(format!(
                "--lose-unsynced {text}: write kill-all, always or never{}",
                suggest::hint(text, &Self::NAMES)
            ))),
        }
    }

    /// As it is typed.
    pub fn name(self) -> &'static str {
        match self {
            Self::KillAll => "kill-all",
            Self::Always => "always",
            Self::Never => "never",
        }
    }
}
