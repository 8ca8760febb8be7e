//! Ending a member in order, and starting another kind of server on its data.

use runs::consequence::Consequence;
use runs::member::MemberId;

use super::{Act, Mechanism, Part, Use};
use crate::fault::server::Server;

/// The mechanism.
pub static REPLACE: Mechanism = Mechanism {
    name: "replace",
    about: "SIGTERM, and a start as the other kind of server on the same data when the fault is healed; \
            process, where a system has two kinds",
    occupies: &[(Part::Process, Use::Alone), (Part::Place, Use::Alone)],
    parameters: &[],
    may_lose_unsynced: false,
    virtually: Err("the simulator has one kind of server"),
};

/// Some end in order, and another kind of server takes their place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replace {
    /// Whom.
    pub members: Vec<MemberId>,
    /// What comes.
    pub by: Server,
}

impl Act for Replace {
    fn mechanism(&self) -> &'static Mechanism {
        &REPLACE
    }

    fn members(&self) -> &[MemberId] {
        &self.members
    }

    fn consequences(&self) -> Vec<Consequence> {
        vec![Consequence::Ends, Consequence::Replaces]
    }

    fn how_it_ended(&self) -> Option<String> {
        Some(format!("started again as {}", self.by))
    }

    fn replaced_by(&self) -> Option<Server> {
        Some(self.by)
    }
}
