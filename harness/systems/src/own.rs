//! What is asked of a system for a fault of the user's own: that one of its commands is run.

use harness_core::fault::own::Own;

/// Which command of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnCommand {
    /// What brings it.
    Exec,
    /// What undoes it.
    Heal,
    /// What tells whether it is in force.
    Seen,
}

impl OwnCommand {
    /// As its key is written.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Exec => "exec",
            Self::Heal => "heal",
            Self::Seen => "seen",
        }
    }
}

/// One command that is to be run for a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    /// Of which kind of fault.
    pub own: Own,
    /// Which of its commands.
    pub command: OwnCommand,
    /// The fault's name in this run.
    pub fault: String,
}
