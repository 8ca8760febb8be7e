//! How a fault acts: the few mechanisms that a cluster must have, whatever the faults are called that use
//! them.

use serde::{Deserialize, Serialize};

/// What a cluster must be able to do for a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mechanism {
    /// Silence in any directions between members.
    Partition,
    /// Refusing connections between members, old and new.
    Reject,
    /// Ending processes without warning, and starting them again.
    Kill,
    /// Stopping processes, and letting them go on.
    Pause,
    /// Shifting the wall clock of one member.
    Clock,
    /// Ending a member in order, and starting another kind of server on its data.
    Replace,
    /// Stopping, ending or cutting off an application, which is no member.
    Application,
    /// Shifting the wall clock of an application.
    ApplicationClock,
    /// Commands of the user's own, which a system's file names.
    Own,
}

impl Mechanism {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Partition,
        Self::Reject,
        Self::Kill,
        Self::Pause,
        Self::Clock,
        Self::Replace,
        Self::Application,
        Self::ApplicationClock,
        Self::Own,
    ];

    /// The word for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Partition => "partition",
            Self::Reject => "reject",
            Self::Kill => "kill",
            Self::Pause => "pause",
            Self::Clock => "clock",
            Self::Replace => "replace",
            Self::Application => "application",
            Self::ApplicationClock => "application-clock",
            Self::Own => "own",
        }
    }

    /// Whether a fault that acts so hits an application, and no member.
    pub const fn hits_applications(self) -> bool {
        matches!(self, Self::Application | Self::ApplicationClock)
    }

    /// Whether a fault that acts so leaves its targets without clients.
    pub const fn takes_away(self) -> bool {
        matches!(self, Self::Kill | Self::Replace | Self::Pause)
    }
}
