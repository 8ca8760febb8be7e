//! No workload of the bench's: a command of the user's own works on the members ([`Kind::COMMAND`]).
//!
//! The bench's clients do nothing beside it, so there is nothing to set up, nothing to read at the end and
//! no history to judge: what was promised is the command's to check, and its exit status says what it found.
//! It is in no list of workloads, because nobody asks for it by name.
//!
//! [`Kind::COMMAND`]: crate::Kind::COMMAND

use crate::op::{Body, Object, Op};
use crate::outcome::Outcome;
use crate::workload::{Definition, Generator, as_agreed, of_operations};

pub(crate) const WORKLOAD: Definition = Definition {
    name: "command",
    summary: "a command of the user's own",
    object: Object::REGISTER,
    functions: &[],
    dispensable: &[],
    marks: &[],
    words: &[],
    generator: |_, _| Box::new(Idle),
    records_sessions: false,
    sessions_expire: false,
    goes_along: false,
    applications: None,
    is_settled: as_agreed,
    judged_by: of_operations,
    promises: &[],
    durability: None,
};

/// What clients do that are not there.
#[derive(Clone, Debug)]
struct Idle;

impl Generator for Idle {
    fn setup(&mut self) -> Vec<Op> {
        Vec::new()
    }

    /// Nobody is let in, so nobody asks; whoever did would change nothing.
    fn next_op(&mut self, _: u64) -> Op {
        self.next_read()
    }

    fn next_read(&mut self) -> Op {
        Op::new(Object::REGISTER, 0, Body::Read)
    }

    fn complete(&mut self, _: u64, _: &Op, _: &Outcome) {}

    fn final_reads(&self) -> Vec<Op> {
        Vec::new()
    }
}
