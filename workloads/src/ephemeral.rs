//! The workload `ephemeral`: sessions that make nodes, end or are left to expire, while others look.
//!
//! Each client makes a few nodes, looks for those of others, and now and then ends its session: properly, or
//! without a word, so that the ensemble must notice. Looks go to nodes that were just made, and to nodes
//! whose session has ended or was left. Openings of sessions are part of the history, because a session's
//! time-out counts from there.

use std::collections::{BTreeMap, VecDeque};

use checker::durability::FinalState;
use checker::ephemeral::{self, Expiry};
use checker::history::{EventKind, Function};
use checker::verdict::CheckResult;
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use crate::case::Case;
use crate::op::{Body, Object, Op};
use crate::outcome::Outcome;
use crate::workload::{Definition, Generator, of_operations};

pub(crate) const WORKLOAD: Definition = Definition {
    name: "ephemeral",
    summary: "sessions that make nodes, end or expire: a node lives as long as its session",
    object: Object::NAMES,
    functions: &[Function::CREATE, Function::EXISTS, Function::CLOSE],
    dispensable: &[],
    marks: &[Function::EXISTS, Function::OPEN, Function::CLOSE, Function::ABANDON],
    words: &[],
    generator: |params, rng| Box::new(Ephemeral::new(params.keys, rng)),
    records_sessions: true,
    sessions_expire: true,
    goes_along: false,
    applications: None,
    is_settled: all_gone,
    judged_by: of_operations,
    promises: &[lives_as_its_session],
    durability: None,
};

/// What the expiry of a silent session may take beyond its time-out: a leader that looks late, a commit on
/// slow disks, a machine that is busy. It is generous, because it accuses.
pub const EXPIRY_BOUND_NS: u64 = 3_000_000_000;

/// The check that a node lives as long as its session, and no longer. That silent sessions expire is demanded
/// only from when on everything was well.
fn lives_as_its_session(case: &Case<'_>) -> CheckResult {
    let bound_ns = EXPIRY_BOUND_NS;
    let expiry = case.beside.well_since_ns.map(|well_since_ns| Expiry { well_since_ns, bound_ns });
    ephemeral::check(case.history, case.beside.reads(), expiry)
}

/// Every session is over at the end, and so every node must go.
fn all_gone(states: &[FinalState]) -> bool {
    states.iter().all(|state| state.list.as_ref().is_some_and(Vec::is_empty))
}

/// Nodes that one session makes at most.
const MAX_OWN: usize = 8;
/// Nodes of living sessions, and of those that ended, that are looked for.
const MAX_WATCHED: usize = 48;

#[derive(Clone, Copy, Debug)]
struct Node {
    key: u64,
    name: i64,
}

/// The generator.
#[derive(Clone, Debug)]
struct Ephemeral {
    rng: ChaCha8Rng,
    places: u64,
    next_name: i64,
    own: BTreeMap<u64, Vec<Node>>,
    recent: VecDeque<Node>,
    ended: VecDeque<Node>,
}

impl Ephemeral {
    fn new(places: u64, rng: ChaCha8Rng) -> Self {
        let (recent, ended) = (VecDeque::new(), VecDeque::new());
        Self { rng, places, next_name: 0, own: BTreeMap::new(), recent, ended }
    }

    fn create(&mut self, process: u64) -> Op {
        let node = Node { key: self.rng.random_range(0..self.places), name: self.next_name };
        self.next_name += 1;
        self.own.entry(process).or_default().push(node);
        push(&mut self.recent, node);
        names(node.key, Body::Create { name: node.name })
    }
}

impl Generator for Ephemeral {
    fn setup(&mut self) -> Vec<Op> {
        (0..self.places).map(|key| names(key, Body::MakePlace)).collect()
    }

    /// One listing of each parent: at the end nothing is there any more.
    fn final_reads(&self) -> Vec<Op> {
        (0..self.places).map(|key| names(key, Body::Read)).collect()
    }

    fn next_read(&mut self) -> Op {
        let pool =
            if self.ended.is_empty() || self.rng.random_bool(0.5) { &self.recent } else { &self.ended };
        let node = match pool.len() {
            // Nobody made it yet, and so it must not be there.
            0 => Node { key: 0, name: self.next_name },
            len => pool[self.rng.random_range(0..len)],
        };
        names(node.key, Body::Exists { name: node.name })
    }

    fn next_op(&mut self, process: u64) -> Op {
        let own = self.own.get(&process).map_or(0, Vec::len);
        match self.rng.random_range(0..100_u8) {
            _ if own == 0 => self.create(process),
            0..2 => Op::close(),
            2..3 => Op::abandon(),
            3..40 if own < MAX_OWN => self.create(process),
            _ => self.next_read(),
        }
    }

    fn complete(&mut self, process: u64, op: &Op, outcome: &Outcome) {
        if op.ends_session() || outcome.kind == EventKind::Info {
            for node in self.own.remove(&process).unwrap_or_default() {
                push(&mut self.ended, node);
            }
        }
    }
}

fn names(key: u64, body: Body) -> Op {
    Op::new(Object::NAMES, key, body)
}

fn push(pool: &mut VecDeque<Node>, node: Node) {
    if pool.len() == MAX_WATCHED {
        pool.pop_front();
    }
    pool.push_back(node);
}
