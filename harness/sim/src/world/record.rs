//! What the clients of a world leave behind: the history of the registers, and what was promised beside it.

use std::collections::BTreeSet;

use bytestring::ByteString;
use checker::history::Event as Line;
use node_wire::client::ErrorCode;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use workloads::{Action, Answer, Invocation, Register, RegisterParams};

use crate::dice::Dice;
use crate::drawn::Drawn;

/// What the clients leave behind.
pub(super) struct Record {
    pub(super) workload: Register,
    /// What must be made before the load begins.
    setup: Vec<Invocation>,
    /// What is read last.
    pub(super) finals: Vec<Invocation>,
    pub(super) history: Vec<Line>,
    next_process: u64,
    /// Sequential names that were given.
    pub(super) names: BTreeSet<ByteString>,
    /// True when clients start nothing new.
    pub(super) quiet: bool,
    /// True when clients end their sessions.
    pub(super) closing: bool,
    /// Keys whose check ran out of its budget.
    pub(super) undecided: u64,
}

impl Record {
    pub(super) fn new(drawn: &Drawn, dice: &mut Dice) -> Self {
        let params = RegisterParams {
            keys: drawn.keys,
            read_percent: drawn.read_percent,
            cas_percent: drawn.cas_percent,
        };
        let rng = ChaCha8Rng::seed_from_u64(dice.seed());
        let mut workload = Register::new(params, rng).expect("the drawn parameters make sense");
        Self {
            setup: workload.setup(),
            workload,
            finals: Vec::new(),
            history: Vec::new(),
            next_process: 0,
            names: BTreeSet::new(),
            quiet: false,
            closing: false,
            undecided: 0,
        }
    }

    pub(super) fn process(&mut self) -> u64 {
        self.next_process += 1;
        self.next_process - 1
    }

    /// What a register client does next. The first one prepares the registers and reads them last.
    pub(super) fn next(&mut self, client: usize, process: u64) -> Option<Invocation> {
        if !self.setup.is_empty() {
            return if client == 0 { self.setup.last().cloned() } else { None };
        }
        if self.quiet {
            return if client == 0 { self.finals.last().cloned() } else { None };
        }
        Some(self.workload.next_op(process))
    }

    /// Something that must be done came to an end, well or not.
    pub(super) fn finished(&mut self, client: usize, invocation: &Invocation, answer: &Answer) {
        if client != 0 {
            return;
        }
        if let Action::Create { .. } = invocation.action {
            match answer {
                Answer::Created { .. } | Answer::Refused { code: ErrorCode::NodeExists, .. } => {
                    self.setup.pop();
                }
                // Tried again with another value: no value is written twice.
                _ => {
                    let fresh = self.workload.setup().into_iter().find(|fresh| fresh.key == invocation.key);
                    self.setup.pop();
                    self.setup.extend(fresh);
                }
            }
        } else if self.finals.last() == Some(invocation) && matches!(answer, Answer::Read { .. }) {
            self.finals.pop();
        }
    }
}
