//! What members say to each other takes longer.

use runs::clock::nanoseconds;
use runs::consequence::Consequence;
use runs::member::MemberId;

use super::{Act, Mechanism, Part, Resource, Use};
use crate::condition::{Condition, Delay, LinkCondition, Quality};
use crate::cut::Pair;
use crate::parameter::{Parameter, Parameters, Takes};

/// The mechanism.
pub static LATENCY: Mechanism = Mechanism {
    name: "latency",
    about: "what members say to each other takes longer, either way; process: links hold it back; docker: \
            packets wait in a queue of the kernel's",
    occupies: &[(Part::Directions, Use::Shared)],
    parameters: &[
        Parameter {
            name: "latency",
            about: "how much longer it takes one way",
            takes: Takes::Time(5, 2_000),
            usual: 100,
        },
        Parameter {
            name: "jitter",
            about: "up to how much beside that, anew each time",
            takes: Takes::Time(0, 2_000),
            usual: 0,
        },
    ],
    may_lose_unsynced: false,
    virtually: Ok(&[Quality::Delay]),
};

/// Some directions are slow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slow {
    /// Which, ascending, each once.
    pub pairs: Vec<Pair>,
    /// By how much.
    pub delay: Delay,
}

impl Slow {
    /// Everything between one and the others, by what was said of the fault.
    #[must_use]
    pub fn around(one: MemberId, members: &[MemberId], parameters: &Parameters) -> Self {
        let others = members.iter().filter(|other| **other != one);
        let mut pairs: Vec<Pair> =
            others.flat_map(|other| [Pair::new(one, *other), Pair::new(*other, one)]).collect();
        pairs.sort_unstable();
        let delay = Delay { latency: parameters.time("latency"), jitter: parameters.time("jitter") };
        Self { pairs, delay }
    }

    /// What each direction is like while it is in force.
    #[must_use]
    pub fn links(&self) -> Vec<(Pair, LinkCondition)> {
        let slow = LinkCondition { delay: self.delay, ..LinkCondition::default() };
        self.pairs.iter().map(|pair| (*pair, slow)).collect()
    }

    /// For people: `200 ms`, `200 ms and up to 20 ms more`.
    #[must_use]
    pub fn words(&self) -> String {
        let Delay { latency, jitter } = self.delay;
        match jitter.as_millis() {
            0 => format!("{} ms", latency.as_millis()),
            more => format!("{} ms and up to {more} ms more", latency.as_millis()),
        }
    }
}

impl Act for Slow {
    fn mechanism(&self) -> &'static Mechanism {
        &LATENCY
    }

    fn occupies(&self) -> Vec<(Resource, Use)> {
        self.pairs.iter().map(|pair| (Resource::Direction(*pair), Use::Shared)).collect()
    }

    fn consequences(&self) -> Vec<Consequence> {
        vec![Consequence::Slows { by_ns: nanoseconds(self.delay.most()) }]
    }

    fn conditions(&self) -> Vec<Condition> {
        self.links().into_iter().map(|(pair, link)| Condition::Link(pair, link)).collect()
    }
}
