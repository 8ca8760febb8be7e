//! Processes of which one is active and the others stand by.

use node_recipes::recipe::Recipe;
use node_recipes::rules::Rules;
use node_recipes::standby::{ActiveStandby, Call, Options, Told};
use node_session::Moment;

use crate::world::{Budget, Subject, Tidings, World};

/// Where their lock and their breadcrumb are.
pub const BASE: &str = "/jobs";

impl<R: Rules + std::hash::Hash> Subject for ActiveStandby<R> {
    const ONE_ZNODE_EACH: bool = false;
    // All who stand by watch the one lock, as in Hadoop.
    const TELLS_ONE: bool = false;
    const FENCES: bool = true;

    fn tidings(told: &Told) -> Tidings {
        match told {
            Told::BecomeActive(token) => Tidings::Began(*token),
            Told::StandDown { .. } | Told::Over(_) => Tidings::Ended,
            Told::Fence { data, .. } => {
                let number = std::str::from_utf8(data).ok().and_then(|data| data.parse().ok());
                number.map_or(Tidings::Other, Tidings::Fences)
            }
            Told::Resumed(_) | Told::Standby { .. } | Told::Neutral => Tidings::Other,
        }
    }

    fn may_act(&self, at: Moment) -> bool {
        ActiveStandby::may_act(self, at)
    }

    fn stands(&self) -> bool {
        !self.is_over() && !self.quits()
    }

    /// Fencing works, and becoming active does.
    fn reply(told: &Told) -> Option<Call> {
        match told {
            Told::Fence { token, .. } => Some(Call::Fenced { token: *token, ok: true }),
            Told::BecomeActive(token) => Some(Call::BecameActive { token: *token, ok: true }),
            _ => None,
        }
    }
}

/// So many processes, whose data are their numbers.
#[must_use]
pub fn world<R: Rules + std::hash::Hash>(
    processes: usize,
    rules: &R,
    budget: Budget,
) -> World<ActiveStandby<R>> {
    let join = |number: usize| {
        ActiveStandby::with_rules(BASE, number.to_string(), Options::default(), rules.clone())
    };
    World::new((0..processes).map(join).collect(), BASE, 1, budget)
}
