//! A drawn world written down: inputs to members by what they mean.

use crate::outcome::Violation;
use crate::script::{Head, Line, Reduction};
use crate::world::World;
use crate::world::clockwork::mover::Mover;
use crate::{Options, Outcome};

impl World {
    /// Lives through a seed's world, without what is left out of it.
    pub(crate) fn reduced(seed: u64, options: Options, reduction: &Reduction) -> Self {
        let mut world = Self::new(seed, options);
        reduction.apply(&mut world.clock.drawn);
        world.clock.reduction = reduction.clone();
        world
    }

    /// Turns that the nemesis had.
    pub(crate) fn turns(&self) -> u64 {
        self.chaos.turn
    }

    /// Clients that there are.
    pub(crate) fn population(&self) -> usize {
        self.population.clients.len()
    }

    /// Writes everything down from here on.
    pub(crate) fn record(&mut self) {
        self.clock.mover = Mover::Recording(Box::default());
        for host in 0..self.ensemble.hosts.len() {
            self.ensemble.write_down_clock(&mut self.clock, host, 0);
        }
    }

    /// What was written down, and how it ended.
    pub(crate) fn into_recording(self, panic: Option<String>) -> (Head, Vec<Line>, Option<Violation>) {
        let head = Head::of(&self.clock.drawn, !self.clock.options.look_inside);
        let mut world = self;
        let lines = match std::mem::replace(&mut world.clock.mover, Mover::None) {
            Mover::Recording(recording) => recording.lines,
            Mover::None | Mover::Scripted(_) => Vec::new(),
        };
        let Outcome { violation, .. } = world.into_outcome(panic);
        (head, lines, violation)
    }
}
