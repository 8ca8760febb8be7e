//! A recipe whose events are noted: what an application was told of the line that it stands in.
//!
//! It hands everything on to the recipe as it is. An application that has asked to leave notes nothing more:
//! what it watched before may still be told, and wakes nobody.

use std::sync::{Arc, Mutex, PoisonError};

use node_client::{Event, EventType, Moment};
use node_recipes::names::Contender;
use node_recipes::recipe::{Effects, Input, Now, Recipe};
use runs::notices::End;

use harness_systems::application::{Noticed, monotonic_ns};

/// What was noted and not told yet.
#[derive(Clone, Debug, Default)]
pub(super) struct Notes(Arc<Mutex<Vec<Noticed>>>);

impl Notes {
    /// What was noted since the last time.
    pub(super) fn take(&self) -> Vec<Noticed> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn note(&self, noticed: Noticed) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(noticed);
    }
}

/// In which line, and as whom.
#[derive(Clone, Debug)]
pub(super) struct Watcher {
    /// Its number.
    pub(super) key: u64,
    /// Its znode.
    pub(super) line: String,
    /// What is in the name of the application's own znode. Nothing where its name is the same for all.
    pub(super) own: Option<String>,
    /// Where notes go.
    pub(super) notes: Notes,
}

impl Watcher {
    /// What an event says of the line; nothing where it says nothing of others.
    fn end(&self, event: &Event) -> Option<End> {
        let below = event.path.strip_prefix(self.line.as_str())?;
        let Some(name) = below.strip_prefix('/') else {
            let is_the_line = below.is_empty() && event.kind == EventType::NodeChildrenChanged;
            return is_the_line.then_some(End::Line);
        };
        if event.kind != EventType::NodeDeleted || self.own.as_ref().is_some_and(|own| name.contains(own)) {
            return None;
        }
        match (&self.own, Contender::of(&name.into())) {
            (Some(_), contender) => contender.map(|contender| End::Place(contender.sequence.into())),
            (None, _) => Some(End::Holder),
        }
    }
}

/// A recipe whose events are noted.
pub(super) struct Noting<R: Recipe> {
    recipe: R,
    watcher: Watcher,
    /// What it means to leave.
    leaves: fn(&R::Call) -> bool,
    has_left: bool,
}

impl<R: Recipe> Noting<R> {
    /// Notes what this recipe is told, until it is called to leave.
    pub(super) fn new(recipe: R, watcher: Watcher, leaves: fn(&R::Call) -> bool) -> Self {
        Self { recipe, watcher, leaves, has_left: false }
    }
}

impl<R: Recipe> Recipe for Noting<R> {
    type Call = R::Call;
    type Told = R::Told;

    fn step(&mut self, now: Now, input: Input<R::Call>, effects: &mut Effects<R::Told>) {
        match &input {
            Input::Event(event) if !self.has_left => {
                if let Some(of) = self.watcher.end(event) {
                    let at = monotonic_ns();
                    self.watcher.notes.note(Noticed { at, key: self.watcher.key, of });
                }
            }
            Input::Call(call) => self.has_left |= (self.leaves)(call),
            _ => {}
        }
        self.recipe.step(now, input, effects);
    }

    fn leave() -> R::Call {
        R::leave()
    }

    fn wakes_at(&self) -> Option<Moment> {
        self.recipe.wakes_at()
    }

    fn wants_certainty(&self) -> bool {
        self.recipe.wants_certainty()
    }

    fn is_over(&self) -> bool {
        self.recipe.is_over()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watcher(own: Option<&str>) -> Watcher {
        let own = own.map(str::to_owned);
        Watcher { key: 0, line: "/locks/0".to_owned(), own, notes: Notes::default() }
    }

    fn event(kind: EventType, path: &str) -> Event {
        Event { kind, path: path.into() }
    }

    #[test]
    fn the_end_of_another_one_in_the_line_is_told_by_the_number_of_its_place() {
        let watcher = watcher(Some("aa"));
        let gone = |path: &str| watcher.end(&event(EventType::NodeDeleted, path));
        assert_eq!(gone("/locks/0/bb-n_0000000007"), Some(End::Place(7)));
        assert_eq!(gone("/locks/0/aa-n_0000000007"), None, "it is its own");
        assert_eq!(gone("/locks/0"), None);
        assert_eq!(gone("/locks/01/bb-n_0000000007"), None, "it is of another line");
        let changed = |path: &str| watcher.end(&event(EventType::NodeChildrenChanged, path));
        assert_eq!(changed("/locks/0"), Some(End::Line));
        assert_eq!(changed("/locks/0/bb-n_0000000007"), None);
    }

    #[test]
    fn where_all_watch_one_znode_its_end_is_that_of_the_holder() {
        let watcher = watcher(None);
        let gone = |path: &str| watcher.end(&event(EventType::NodeDeleted, path));
        assert_eq!(gone("/locks/0/ActiveStandbyElectorLock"), Some(End::Holder));
    }
}
