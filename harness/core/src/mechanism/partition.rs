//! Silence in any directions between members. Its act is a [`Cut`], by which members also refuse each other
//! ([`reject`]).

use runs::consequence::Consequence;

use super::{Act, Mechanism, Part, Resource, Use, reject};
use crate::condition::{Condition, LinkCondition, Quality};
use crate::cut::{Cut, Pair, Severing};

/// The mechanism.
pub static PARTITION: Mechanism = Mechanism {
    name: "partition",
    about: "nothing passes in some directions, both ways or one; process: links hold it, FINs too; docker: \
            packets are dropped",
    occupies: &[(Part::Directions, Use::Shared)],
    parameters: &[],
    may_lose_unsynced: false,
    virtually: Ok(&[Quality::Passage]),
};

impl Act for Cut {
    fn mechanism(&self) -> &'static Mechanism {
        match self.how {
            Severing::Silence => &PARTITION,
            Severing::Reject => &reject::REJECT,
        }
    }

    fn occupies(&self) -> Vec<(Resource, Use)> {
        self.pairs.iter().map(|pair| (Resource::Direction(*pair), Use::Shared)).collect()
    }

    fn consequences(&self) -> Vec<Consequence> {
        let directions = self.pairs.iter().map(|pair| (*pair).into()).collect();
        vec![Consequence::Silences { directions, refuses: self.how == Severing::Reject }]
    }

    fn conditions(&self) -> Vec<Condition> {
        self.links().into_iter().map(|(pair, link)| Condition::Link(pair, link)).collect()
    }
}

impl Cut {
    /// What each direction is like while it is in force.
    #[must_use]
    pub fn links(&self) -> Vec<(Pair, LinkCondition)> {
        let severed = LinkCondition { severed: Some(self.how), ..LinkCondition::default() };
        self.pairs.iter().map(|pair| (*pair, severed)).collect()
    }
}
