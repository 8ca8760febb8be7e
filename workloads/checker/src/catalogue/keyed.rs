//! Registers under keys, as one object: what the verifier replays. The searches know registers better than
//! this.

use crate::history::{Datum, Record};
use crate::model::Model;
use crate::model::register::{Action, Register};
use crate::register::Val;

/// A register for each key.
#[derive(Debug)]
pub(super) struct Registers(Register);

impl Default for Registers {
    /// Registers as histories from elsewhere have them: what a failed compare-and-set and a read of nothing
    /// say is settled when the file is read.
    fn default() -> Self {
        Self(Register::default().with_refusals().with_reads_of_nothing())
    }
}

impl Model for Registers {
    type Op = (u64, Action);
    /// Of one key: each is a part.
    type State = Val;

    fn name(&self) -> &'static str {
        "registers"
    }

    fn initial(&self) -> Val {
        self.0.initial()
    }

    fn apply(&self, state: &Val, (_, op): &Self::Op) -> Option<Val> {
        self.0.apply(state, op)
    }

    fn decode(&self, invoked: &Record, completed: Option<&Record>) -> Result<Option<Self::Op>, String> {
        let key = match invoked.key {
            Datum::Nil => 0,
            Datum::Int(key) if key >= 0 => key.unsigned_abs(),
            ref other => return Err(format!("the key {other} is no natural number")),
        };
        Ok(self.0.decode(invoked, completed)?.map(|op| (key, op)))
    }

    fn part(&self, (key, _): &Self::Op) -> Option<u64> {
        Some(*key)
    }

    fn changes(&self, (_, op): &Self::Op) -> bool {
        self.0.changes(op)
    }
}
