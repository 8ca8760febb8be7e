//! Stopping processes, and letting them go on.

use runs::consequence::Consequence;
use runs::member::MemberId;

use super::{Act, Mechanism, Part, Use};
use crate::condition::{Condition, Quality};

/// The mechanism.
pub static PAUSE: Mechanism = Mechanism {
    name: "pause",
    about: "SIGSTOP, and SIGCONT when the fault is healed; process, docker (there by the freezer of its \
            cgroup where process_1 is set)",
    occupies: &[(Part::Process, Use::Alone)],
    parameters: &[],
    may_lose_unsynced: false,
    virtually: Ok(&[Quality::Process]),
};

/// SIGSTOP to some.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pause {
    /// Whom.
    pub members: Vec<MemberId>,
}

impl Act for Pause {
    fn mechanism(&self) -> &'static Mechanism {
        &PAUSE
    }

    fn members(&self) -> &[MemberId] {
        &self.members
    }

    fn consequences(&self) -> Vec<Consequence> {
        vec![Consequence::Stops]
    }

    fn conditions(&self) -> Vec<Condition> {
        self.members.iter().copied().map(Condition::Stopped).collect()
    }
}
