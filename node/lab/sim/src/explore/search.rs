//! Depth first, with a set of the states that were visited.

use std::panic::{AssertUnwindSafe, catch_unwind};

use node_core::Maker;

use super::digest::Visited;
use super::shorten::{Broken, shortest};
use super::starts::{Named, Start};
use super::transition::Transition;
use super::world::World;
use super::{Bounds, Counterexample, Explored, Model};
use crate::outcome::Rule;

/// A state on the way, and what was not tried from it yet.
struct Frame<F: Maker, const N: usize> {
    world: World<F, N>,
    left: Vec<Transition>,
}

/// A search.
pub(super) struct Search<F: Maker, const N: usize> {
    model: Model,
    bounds: Bounds,
    maker: F,
    visited: Visited,
    explored: Explored,
    /// The transitions on the way to where the search is.
    path: Vec<Transition>,
}

/// A state with everybody started and connected.
fn root<F: Maker, const N: usize>(
    model: Model,
    bounds: &Bounds,
    start: &Start,
    maker: F,
) -> Result<World<F, N>, (Rule, String)> {
    let mut world = World::new(model, bounds, start, maker);
    let pairs = (0..N).flat_map(|one| (one + 1..N).map(move |other| (one, other)));
    let connections = pairs.filter(|_| model.has_votes());
    let first: Vec<Transition> = (0..N)
        .map(|at| Transition::Start { at })
        .chain(connections.map(|(one, other)| Transition::Connect { one, other }))
        .collect();
    for transition in first {
        world.apply(transition)?;
    }
    Ok(world)
}

/// The outcome of a part of the search, a member's panic included.
pub(super) fn guarded<T>(part: impl FnOnce() -> Result<T, (Rule, String)>) -> Result<T, (Rule, String)> {
    // What a panicking member leaves behind is thrown away with its world.
    match catch_unwind(AssertUnwindSafe(part)) {
        Ok(outcome) => outcome,
        Err(payload) => Err((Rule::Panic, crate::message_of(payload.as_ref()))),
    }
}

impl<F: Maker, const N: usize> Search<F, N> {
    pub(super) fn new(model: Model, bounds: Bounds, maker: F) -> Self {
        let (visited, explored, path) = (Visited::default(), Explored::default(), Vec::new());
        Self { model, bounds, maker, visited, explored, path }
    }

    /// Searches from every start.
    pub(super) fn run(mut self, starts: impl Iterator<Item = Named>) -> Explored {
        self.explored.exhausted = true;
        for (name, start) in starts {
            if !self.explored.exhausted {
                break;
            }
            let start = start().for_members(N);
            self.path.clear();
            if let Err((rule, sentence)) = guarded(|| self.from(&start)) {
                self.explored.exhausted = false;
                let broken = Broken { rule, sentence, path: std::mem::take(&mut self.path) };
                self.explored.violation = Some(self.tell(name, &start, broken));
                break;
            }
        }
        self.explored
    }

    fn from(&mut self, start: &Start) -> Result<(), (Rule, String)> {
        let world = root(self.model, &self.bounds, start, self.maker)?;
        let mut frames = Vec::new();
        if self.explored.states < self.bounds.max_states && self.is_new(&world) {
            frames.push(self.frame(world)?);
        }
        while let Some(frame) = frames.last_mut() {
            let Some(transition) = frame.left.pop() else {
                frames.pop();
                self.path.pop();
                continue;
            };
            if self.explored.states >= self.bounds.max_states {
                self.explored.exhausted = false;
                return Ok(());
            }
            let mut world = frame.world.clone();
            self.path.push(transition);
            let changed = world.apply(transition)?;
            self.explored.transitions += u64::from(changed);
            if changed && self.is_new(&world) {
                self.explored.deepest = self.explored.deepest.max(self.path.len());
                let frame = self.frame(world)?;
                frames.push(frame);
            } else {
                self.path.pop();
            }
        }
        Ok(())
    }

    fn is_new(&mut self, world: &World<F, N>) -> bool {
        let new = self.visited.insert(world.digest());
        self.explored.states += u64::from(new);
        new
    }

    /// Looks at a new state.
    fn frame(&mut self, world: World<F, N>) -> Result<Frame<F, N>, (Rule, String)> {
        let mut left = world.enabled();
        // Taken from the end: what is bound to happen first, so that the paths to a violation have few
        // faults.
        left.reverse();
        if !left.iter().any(|transition| transition.is_bound_to_happen()) {
            self.explored.quiet += 1;
            world.check_quiet(&self.bounds)?;
        }
        Ok(Frame { world, left })
    }

    /// Makes a path short and readable.
    fn tell(&self, name: &'static str, start: &Start, broken: Broken) -> Counterexample {
        let broken = shortest(broken, |path| self.replay(start, path, None));
        let mut lines = Vec::new();
        let _ = self.replay(start, &broken.path, Some(&mut lines));
        Counterexample { rule: broken.rule, sentence: broken.sentence, start: name, path: lines }
    }

    /// Takes a path again. None when it is no path, or breaks nothing.
    fn replay(
        &self,
        start: &Start,
        path: &[Transition],
        mut lines: Option<&mut Vec<String>>,
    ) -> Option<Broken> {
        let mut taken = Vec::new();
        let outcome = guarded(|| {
            let mut world: World<F, N> = root(self.model, &self.bounds, start, self.maker)?;
            for transition in path {
                let enabled = world.enabled();
                if !enabled.contains(transition) {
                    return Ok(());
                }
                taken.push(*transition);
                if let Some(lines) = lines.as_deref_mut() {
                    lines.push(world.describe(*transition));
                    world.notes = Some(Vec::new());
                }
                let outcome = world.apply(*transition);
                if let (Some(line), Some(notes)) =
                    (lines.as_deref_mut().and_then(|lines| lines.last_mut()), world.notes.take())
                {
                    for note in notes {
                        line.push_str("; ");
                        line.push_str(&note);
                    }
                }
                if !outcome? {
                    return Ok(());
                }
            }
            if world.enabled().iter().any(|transition| transition.is_bound_to_happen()) {
                return Ok(());
            }
            world.check_quiet(&self.bounds)
        });
        outcome.err().map(|(rule, sentence)| Broken { rule, sentence, path: taken })
    }
}
