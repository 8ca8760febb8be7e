//! Processes of which one is active and the others stand by.

use node_recipes::recipe::Recipe;
use node_recipes::rules::Rules;
use node_recipes::standby::{ActiveStandby, Call, Options, Told};
use node_session::{Moment, Request};

use crate::world::{Broken, Budget, Event, Report, Subject, World};

/// Where their lock and their breadcrumb are.
pub const BASE: &str = "/jobs";

impl<R: Rules + std::hash::Hash> Subject for ActiveStandby<R> {
    const ONE_ZNODE_EACH: bool = false;
    // All who stand by watch the one lock, as in Hadoop.
    const TELLS_ONE: bool = false;
    const FENCES: bool = true;

    fn report(told: &Told) -> Report {
        match told {
            Told::BecomeActive(token) => Report::Began(*token),
            Told::StandDown { .. } | Told::Over(_) => Report::Ended,
            Told::Fence { data, .. } => {
                let number = std::str::from_utf8(data).ok().and_then(|data| data.parse().ok());
                number.map_or(Report::Other, Report::Fences)
            }
            Told::Resumed(_) | Told::Standby { .. } | Told::Neutral => Report::Other,
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

/// One application goes on until nothing of it is under way, or until this is true of the world.
fn goes_on<S: Subject>(world: &mut World<S>, number: usize, until: impl Fn(&World<S>) -> bool) {
    let own = [Event::Connect(number), Event::Serve(number), Event::Hear(number), Event::Wake(number)];
    while !until(world) {
        let Some(next) = world.events().into_iter().find(|event| own.contains(event)) else { return };
        world.apply(next);
    }
}

fn is_gone<S: Subject>(world: &mut World<S>, number: usize) {
    world.apply(Event::Stop(number));
    (0..3).for_each(|_| world.apply(Event::Tick));
    world.apply(Event::Expire(number));
}

/// What dice hardly ever draw: the second process is about to write its breadcrumb when somebody deletes its
/// lock. The third becomes active, and then the second's write arrives. Whom does the next one fence?
#[must_use]
pub fn scripted<R: Rules + std::hash::Hash>(rules: &R) -> Option<Broken> {
    let budget = Budget { stops: 9, deletions: 1, ticks: 99, ..Budget::default() };
    let mut world = world(3, rules, budget);
    let writes = |world: &World<_>| {
        let next = world.apps[1].link.as_ref().and_then(|link| link.requests.front());
        next.is_some_and(|sent| matches!(sent.request, Request::SetData { .. }))
    };
    goes_on(&mut world, 0, |_| false);
    is_gone(&mut world, 0);
    goes_on(&mut world, 1, writes);
    world.apply(Event::Delete);
    goes_on(&mut world, 2, |_| false);
    goes_on(&mut world, 1, |_| false);
    is_gone(&mut world, 2);
    world.apply(Event::Continue(0));
    goes_on(&mut world, 1, |_| false);
    world.apply(Event::Break(0, false));
    goes_on(&mut world, 0, |_| false);
    world.settle();
    world.broken().cloned()
}
