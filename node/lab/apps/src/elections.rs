//! Candidates in a world, by the rules that their recipe follows.

use bytes::Bytes;
use node_recipes::election::{Call, Election, Options, Status};
use node_recipes::line::Ticket;
use node_recipes::names::{Guid, Intent, Layout};
use node_recipes::recipe::Recipe;
use node_recipes::rules::Rules;
use node_session::Moment;

use crate::world::{Budget, Report, Subject, World};

/// Where they stand for election.
pub const RESOURCE: &str = "/president";

impl<R: Rules + std::hash::Hash> Subject for Election<R> {
    const ONE_ZNODE_EACH: bool = true;
    const TELLS_ONE: bool = true;
    const FENCES: bool = false;

    fn report(told: &Status) -> Report {
        match told {
            Status::Elected(place) => Report::Began(place.token),
            Status::TermOver(_) | Status::Over(_) => Report::Ended,
            Status::Standing(_) | Status::Waiting(_) => Report::Other,
        }
    }

    fn may_act(&self, at: Moment) -> bool {
        Election::may_act(self, at)
    }

    fn stands(&self) -> bool {
        !self.is_over() && !self.resigns()
    }

    fn reply(_: &Status) -> Option<Call> {
        None
    }
}

/// The ticket of an application. Its guids begin with its number, counted from 1.
#[must_use]
pub fn ticket(number: usize, intent: Intent, places: usize) -> Ticket {
    let number = u128::try_from(number + 1).unwrap_or(u128::MAX);
    Ticket {
        resource: RESOURCE.into(),
        layout: Layout::Own,
        intent,
        guid: Guid(number << 96),
        data: Bytes::new(),
        places,
    }
}

/// So many candidates.
#[must_use]
pub fn world<R: Rules + std::hash::Hash>(
    candidates: usize,
    places: usize,
    rules: &R,
    budget: Budget,
) -> World<Election<R>> {
    let recipes = (0..candidates)
        .map(|number| {
            let ticket = ticket(number, Intent::Lead, places);
            Election::with_rules(ticket, Options::default(), rules.clone())
        })
        .collect();
    World::new(recipes, RESOURCE, places, budget)
}
