//! Everything that can happen to a few applications, within a budget of what goes wrong.
//!
//! From every eighth state in which the budget is spent the world is let end well too, which shows what never
//! happens.

use harness_world::explore::{self, State};

use crate::world::{Broken, Event, Subject, World};

/// What was found.
pub type Explored = explore::Explored<Event, Broken>;

impl<S: Subject> State for World<S> {
    type Event = Event;
    type Broken = Broken;

    fn fingerprint(&self) -> u64 {
        Self::fingerprint(self)
    }

    fn events(&self) -> Vec<Event> {
        Self::events(self)
    }

    fn apply(&mut self, event: &Event) {
        Self::apply(self, *event);
    }

    fn broken(&self) -> Option<Broken> {
        Self::broken(self).cloned()
    }

    fn ended(&self) -> Option<Self> {
        if !self.budget.is_spent() || !Self::fingerprint(self).is_multiple_of(8) {
            return None;
        }
        let mut ending = self.clone();
        ending.settle();
        Some(ending)
    }
}

/// Looks at up to so many states.
#[must_use]
pub fn explore<S: Subject>(world: World<S>, most: usize) -> Explored {
    explore::explore(world, most)
}
