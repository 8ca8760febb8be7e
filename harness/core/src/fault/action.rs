//! A fault as a cluster carries it out: to whom, and what.

use runs::consequence::Consequence;
use runs::member::MemberId;

use super::application::{Harm, Holder};
use super::own::Own;
use super::server::Server;
use crate::cut::{Cut, Severing};

/// What the cluster is to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Let nothing pass in some directions.
    Cut(Cut),
    /// SIGKILL to these at once.
    Kill {
        /// Whom.
        members: Vec<MemberId>,
    },
    /// Have these end in order, and another kind of server take their place.
    Replace {
        /// Whom.
        members: Vec<MemberId>,
        /// What comes.
        by: Server,
    },
    /// SIGSTOP to these.
    Pause {
        /// Whom.
        members: Vec<MemberId>,
    },
    /// Shift the wall clocks of these.
    Clock {
        /// Whose.
        members: Vec<MemberId>,
        /// By how much, against the true one.
        offset_ns: i64,
    },
    /// Do something to an application, and to no member.
    Application {
        /// To whom, as long as it holds what it held when it was aimed at.
        holder: Holder,
        /// What.
        harm: Harm,
    },
    /// Run what a system's file says.
    Own {
        /// The kind of fault that the commands are of.
        own: Own,
        /// Whom it is aimed at.
        members: Vec<MemberId>,
    },
}

impl Action {
    /// What comes of it for members and clients.
    #[must_use]
    pub fn consequences(&self, loses_unsynced: bool) -> Vec<Consequence> {
        match self {
            Self::Cut(cut) => {
                let directions = cut.pairs.iter().map(|pair| (*pair).into()).collect();
                let refuses = cut.how == Severing::Reject;
                vec![Consequence::Silences { directions, refuses }]
            }
            Self::Kill { .. } if loses_unsynced => vec![Consequence::Ends, Consequence::LosesUnsynced],
            Self::Kill { .. } => vec![Consequence::Ends],
            Self::Replace { .. } => vec![Consequence::Ends, Consequence::Replaces],
            Self::Pause { .. } => vec![Consequence::Stops],
            Self::Clock { .. } => vec![Consequence::ShiftsTime],
            Self::Application { harm: Harm::Clock { .. }, .. } => {
                vec![Consequence::HitsApplications, Consequence::ShiftsTime]
            }
            Self::Application { .. } => vec![Consequence::HitsApplications],
            Self::Own { .. } => vec![Consequence::Unknown],
        }
    }
}
