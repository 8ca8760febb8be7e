//! Ending processes without warning, and starting them again.

use runs::consequence::Consequence;
use runs::member::MemberId;
use runs::numbers::plural;

use super::{Act, Mechanism, Part, Use};
use crate::condition::{Condition, Quality};

/// The mechanism.
pub static KILL: Mechanism = Mechanism {
    name: "kill",
    about: "SIGKILL, and a new start when the fault is healed; with --lose-unsynced the log is cut back to \
            what was synced; process, docker",
    occupies: &[(Part::Process, Use::Alone)],
    parameters: &[],
    may_lose_unsynced: true,
    virtually: Ok(&[Quality::Process]),
};

/// SIGKILL to some at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kill {
    /// Whom.
    pub members: Vec<MemberId>,
    /// Whether they come back without what they had not synced.
    pub loses_unsynced: bool,
}

impl Act for Kill {
    fn mechanism(&self) -> &'static Mechanism {
        &KILL
    }

    fn members(&self) -> &[MemberId] {
        &self.members
    }

    fn consequences(&self) -> Vec<Consequence> {
        let lost = self.loses_unsynced.then_some(Consequence::LosesUnsynced);
        std::iter::once(Consequence::Ends).chain(lost).collect()
    }

    fn conditions(&self) -> Vec<Condition> {
        let Self { members, loses_unsynced } = self;
        let ended = |member: &MemberId| Condition::Ended { member: *member, loses_unsynced: *loses_unsynced };
        members.iter().map(ended).collect()
    }

    fn how_it_ended(&self) -> Option<String> {
        let members = plural(u64::try_from(self.members.len()).unwrap_or(u64::MAX), "member");
        let lost = if self.loses_unsynced { ", their logs cut back to what was synced" } else { "" };
        Some(format!("{members} started again{lost}"))
    }
}
