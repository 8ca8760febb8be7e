//! A member as a script drives it.

use node_core::io::{Effect, Input, Now};
use node_core::tree::TreeSnapshot;
use node_core::{Machine, Status};

/// A member of any kind.
pub(crate) trait Core {
    fn step(&mut self, now: Now, input: Input, out: &mut Vec<Effect>);
    fn status(&self) -> Status;
    fn tree(&self) -> TreeSnapshot;
}

impl<M: Machine> Core for M {
    fn step(&mut self, now: Now, input: Input, out: &mut Vec<Effect>) {
        Machine::step(self, now, input, out);
    }

    fn status(&self) -> Status {
        self.member().status()
    }

    fn tree(&self) -> TreeSnapshot {
        self.member().tree()
    }
}
