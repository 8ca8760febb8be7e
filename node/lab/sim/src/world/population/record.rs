//! What the clients of a world leave behind: a history for each workload, and what is still to be done in it.

use checker::history::{Event as Line, EventKind};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use workloads::{Kind, Op, Outcome, Params, Refusal, RegisterParams, Workload};

use crate::client::Job;
use crate::drawn::Drawn;
use crate::part::Part;
use crate::traffic::Traffic;
use harness_world::dice::Dice;

/// One workload of a world.
pub(in crate::world) struct Load {
    pub(in crate::world) workload: Workload,
    /// What must be made before the load begins.
    setup: Vec<Op>,
    /// What is read last.
    finals: Vec<Op>,
    pub(in crate::world) history: Vec<Line>,
}

/// What the clients leave behind.
pub(in crate::world) struct Record {
    pub(in crate::world) traffic: Traffic,
    pub(in crate::world) loads: Vec<Load>,
    next_process: u64,
    /// True when clients start nothing new.
    pub(in crate::world) quiet: bool,
    /// True when clients end their sessions.
    pub(in crate::world) closing: bool,
    /// Keys whose check ran out of its budget.
    pub(in crate::world) undecided: u64,
}

impl Record {
    pub(in crate::world) fn new(drawn: &Drawn, dice: &mut Dice) -> Self {
        Self::of(Traffic::of_seed(drawn.seed), drawn, dice)
    }

    /// Of these workloads.
    pub(in crate::world) fn of(traffic: Traffic, drawn: &Drawn, dice: &mut Dice) -> Self {
        let register = RegisterParams {
            keys: drawn.keys,
            read_percent: drawn.read_percent,
            cas_percent: drawn.cas_percent,
        };
        let params = Params {
            keys: drawn.keys,
            register,
            elements: traffic.elements,
            read_percent: traffic.read_percent,
        };
        let of_registers = dice.seed();
        let loads = traffic.kinds().into_iter().zip(0..).map(|(kind, number)| {
            let seed = if kind == Kind::REGISTER {
                of_registers
            } else {
                Dice::part(drawn.seed, Part::Load(number)).seed()
            };
            let mut workload = Workload::new(kind, params, ChaCha8Rng::seed_from_u64(seed))
                .expect("the drawn parameters make sense");
            Load { setup: workload.setup(), workload, finals: Vec::new(), history: Vec::new() }
        });
        let loads = loads.collect();
        Self { traffic, loads, next_process: 0, quiet: false, closing: false, undecided: 0 }
    }

    /// A number that no process of a history has had yet.
    pub(in crate::world) fn new_process(&mut self) -> u64 {
        self.next_process += 1;
        self.next_process - 1
    }

    /// The jobs of a client that does these workloads.
    pub(super) fn jobs(&mut self, kinds: &[Kind]) -> Vec<Job> {
        let loads: Vec<usize> =
            (0..self.loads.len()).filter(|load| kinds.contains(&self.loads[*load].workload.kind())).collect();
        loads.into_iter().map(|load| Job { load, process: self.new_process() }).collect()
    }

    /// The workload in which something is still to be made, or to be read last. One client does both.
    pub(super) fn unfinished(&self) -> Option<usize> {
        let unfinished = |load: &Load| !load.setup.is_empty() || self.quiet && !load.finals.is_empty();
        self.loads.iter().position(unfinished)
    }

    /// What is still to be made or read in a workload.
    pub(super) fn chore(&self, load: usize) -> Option<Op> {
        let load = &self.loads[load];
        load.setup.last().or_else(|| if self.quiet { load.finals.last() } else { None }).cloned()
    }

    /// What a client does next in a workload, if it is time for that.
    pub(in crate::world) fn next(&mut self, job: Job) -> Option<Op> {
        let load = &mut self.loads[job.load];
        if self.quiet || !load.setup.is_empty() {
            return None;
        }
        Some(load.workload.next_op(job.process))
    }

    /// Clients become quiet: everything is read once more.
    pub(in crate::world) fn begin_finals(&mut self) {
        self.quiet = true;
        for load in &mut self.loads {
            load.finals = load.workload.final_reads();
        }
    }

    /// How much is still to be read.
    pub(in crate::world) fn finals_left(&self) -> u64 {
        let left: usize = self.loads.iter().map(|load| load.finals.len()).sum();
        u64::try_from(left).unwrap_or(u64::MAX)
    }

    /// True when everything was read once more.
    pub(super) fn finals_done(&self) -> bool {
        self.loads.iter().all(|load| load.finals.is_empty())
    }

    /// Something that must be done came to an end, well or not.
    pub(super) fn finished(&mut self, load: usize, op: &Op, outcome: &Outcome) {
        let Load { workload, setup, finals, .. } = &mut self.loads[load];
        if setup.last() == Some(op) {
            setup.pop();
            if !outcome.is_there() {
                // Tried again, a register with another value: no value is written twice.
                setup.extend(workload.setup().into_iter().find(|fresh| fresh.key == op.key));
            }
        } else if finals.last() == Some(op) && is_read(outcome) {
            finals.pop();
        }
    }
}

/// Whether a last read was answered.
fn is_read(outcome: &Outcome) -> bool {
    outcome.kind == EventKind::Ok || outcome.refusal == Some(Refusal::Missing)
}
