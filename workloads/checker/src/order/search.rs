//! Depth-first search for one order of all operations that keeps a partial order and explains every answer.
//!
//! A configuration is how far each group has got (the operations placed so far, closed towards the past of
//! the graph), what the object holds, and which operations of unknown fate took effect. Configurations are
//! remembered as 128-bit fingerprints, like those of [`crate::register`]'s search: two different ones share
//! one with a probability of about 2^-128 a pair.
//!
//! **What changes nothing is placed at once.** Let x be an operation whose answer is right here, all of whose
//! predecessors are placed, and that leaves the object as it is in every state that allows it. If any order
//! goes on from here, take x out of its later place and put it here. Nobody's answer changes, because x
//! changes nothing where it was nor where it is. No constraint breaks: x's predecessors are all before here,
//! and whatever comes after x in the graph comes after its old place, hence after here. So an order goes on
//! in which x is next, and no other choice needs to be tried. Real time of updates alone binds no read, which
//! only removes edges from the graph and so makes more reads ready; the argument is the same for every real
//! time. It fails for an operation that changes the object in some states only, whose old place may be one of
//! them: such a one has alternatives.
//!
//! Operations of unknown fate have no successors in the graph (they never return) and may be left out; they
//! are tried last.

use std::collections::BTreeSet;

use super::graph::{Graph, Node, at, number};
use super::mutate::{Mutation, broken};
use crate::budget::{Exhausted, Meter};
use crate::hash::{FINGERPRINT_BYTES, Fingerprints, wide};
use crate::history::Rank;

/// An object to which operations happen one after the other, and can be taken back.
pub(super) trait Object {
    /// What it takes to take an operation back.
    type Undo;

    /// Lets an operation happen if its answer is right here and something can come of it.
    fn place(&mut self, op: usize) -> Option<Self::Undo>;

    /// Takes back the last operation that happened.
    fn take_back(&mut self, op: usize, undo: Self::Undo);

    /// What the object holds, as a number.
    fn fingerprint(&self) -> u128;

    /// Whether it leaves the object as it is wherever it may happen.
    fn changes_nothing(&self, op: usize) -> bool;
}

/// What is looked for.
pub(super) struct Task<'a> {
    /// Who comes before whom.
    pub(super) graph: &'a Graph,
    /// For each operation whether it may be left out.
    pub(super) optional: &'a [bool],
    /// For each operation a rank; the least is tried first.
    pub(super) ranks: &'a [Rank],
    /// Whether what changes nothing is placed at once.
    pub(super) eager: bool,
    /// How often a choice may be taken back.
    pub(super) retreats: u64,
}

/// What a search found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// An order.
    Order(Vec<Node>),
    /// None exists. The longest attempt could not place any of these.
    NoOrder {
        /// Operations that were ready when the longest attempt got stuck.
        stuck: Vec<Node>,
    },
    /// Given up.
    GaveUp {
        /// Why; none when a choice would have had to be taken back once more than allowed.
        why: Option<Exhausted>,
        /// Operations in the longest attempt.
        placed: usize,
    },
}

/// Optional operations are tried after all others.
type Turn = (bool, Rank, Node);

struct Placed<U> {
    turn: Turn,
    undo: U,
    /// Whether nothing else needs to be tried in its place.
    forced: bool,
}

/// Looks for an order, and says how often a choice was taken back.
pub(super) fn search<O: Object>(task: &Task<'_>, object: O, meter: &mut Meter) -> (Found, u64) {
    let mut search = Search::new(task, object);
    let found = match search.run(meter) {
        Ok(found) => found,
        Err(why) => Found::GaveUp { why: Some(why), placed: search.longest.max(search.stack.len()) },
    };
    (found, task.retreats - search.retreats_left)
}

struct Search<'a, O: Object> {
    task: &'a Task<'a>,
    object: O,
    blockers: Vec<u32>,
    /// Operations without unplaced predecessors: those that change nothing, and the others.
    quiet: BTreeSet<Turn>,
    loud: BTreeSet<Turn>,
    left: usize,
    stack: Vec<Placed<O::Undo>>,
    placed: u128,
    seen: Fingerprints,
    longest: usize,
    stuck: Vec<Node>,
    retreats_left: u64,
}

impl<'a, O: Object> Search<'a, O> {
    fn new(task: &'a Task<'a>, object: O) -> Self {
        let mut search = Self {
            task,
            object,
            blockers: task.graph.blockers(),
            quiet: BTreeSet::new(),
            loud: BTreeSet::new(),
            left: task.optional.iter().filter(|&&optional| !optional).count(),
            stack: Vec::new(),
            placed: 0,
            seen: Fingerprints::default(),
            longest: 0,
            stuck: Vec::new(),
            retreats_left: task.retreats,
        };
        let free: Vec<Node> =
            (0..number(task.graph.ops)).filter(|&op| search.blockers[at(op)] == 0).collect();
        for op in free {
            search.make_ready(op);
        }
        search
    }

    fn run(&mut self, meter: &mut Meter) -> Result<Found, Exhausted> {
        // The turn after which alternatives are still to be tried at this depth.
        let mut after: Option<Turn> = None;
        while self.left > 0 {
            if after.is_none() && self.task.eager && self.place_quiet(meter)? {
                continue;
            }
            if self.place_next(after, meter)? {
                after = None;
                continue;
            }
            if self.stack.len() >= self.longest {
                self.longest = self.stack.len();
                let ready = self.quiet.iter().chain(&self.loud);
                self.stuck = ready.filter(|turn| !turn.0).map(|turn| turn.2).collect();
            }
            match self.retreat() {
                Some(turn) => after = Some(turn),
                None => return Ok(Found::NoOrder { stuck: std::mem::take(&mut self.stuck) }),
            }
            match self.retreats_left.checked_sub(1) {
                Some(left) => self.retreats_left = left,
                None => return Ok(Found::GaveUp { why: None, placed: self.longest }),
            }
        }
        Ok(Found::Order(self.stack.iter().map(|placed| placed.turn.2).collect()))
    }

    /// Places the first ready operation that changes nothing and whose answer is right.
    fn place_quiet(&mut self, meter: &mut Meter) -> Result<bool, Exhausted> {
        for &turn in &self.quiet {
            meter.step()?;
            if let Some(undo) = self.object.place(at(turn.2)) {
                self.put(turn, undo, true);
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Places the next ready operation that leads to a configuration not seen before.
    fn place_next(&mut self, after: Option<Turn>, meter: &mut Meter) -> Result<bool, Exhausted> {
        let mut after = after;
        loop {
            let Some(turn) = self.next_turn(after) else { return Ok(false) };
            meter.step()?;
            after = Some(turn);
            let Some(undo) = self.object.place(at(turn.2)) else { continue };
            let state = if broken(Mutation::ForgetState) { 0 } else { self.object.fingerprint() };
            if self.seen.insert(self.placed ^ operation_number(turn.2) ^ state) {
                meter.hold(self.seen.capacity(), FINGERPRINT_BYTES)?;
                self.put(turn, undo, broken(Mutation::HurryChanges));
                return Ok(true);
            }
            self.object.take_back(at(turn.2), undo);
        }
    }

    fn next_turn(&self, after: Option<Turn>) -> Option<Turn> {
        let later = |turns: &BTreeSet<Turn>| match after {
            Some(turn) => {
                turns.range((std::ops::Bound::Excluded(turn), std::ops::Bound::Unbounded)).next().copied()
            }
            None => turns.first().copied(),
        };
        let loud = later(&self.loud);
        if self.task.eager {
            // Whatever is quiet and ready has a wrong answer here.
            return loud;
        }
        match (loud, later(&self.quiet)) {
            (Some(loud), Some(quiet)) => Some(loud.min(quiet)),
            (loud, quiet) => loud.or(quiet),
        }
    }

    fn put(&mut self, turn: Turn, undo: O::Undo, forced: bool) {
        let op = turn.2;
        self.remove_ready(turn);
        self.placed ^= operation_number(op);
        self.left -= usize::from(!turn.0);
        self.release(op);
        self.stack.push(Placed { turn, undo, forced });
    }

    /// Takes back the last choice that has alternatives, and everything after it.
    fn retreat(&mut self) -> Option<Turn> {
        loop {
            let Placed { turn, undo, forced } = self.stack.pop()?;
            let op = turn.2;
            self.block(op);
            self.left += usize::from(!turn.0);
            self.placed ^= operation_number(op);
            self.object.take_back(at(op), undo);
            self.make_ready(op);
            if !forced {
                return Some(turn);
            }
        }
    }

    fn turn(&self, op: Node) -> Turn {
        (self.task.optional[at(op)], self.task.ranks[at(op)], op)
    }

    fn make_ready(&mut self, op: Node) {
        let turn = self.turn(op);
        let quiet = self.object.changes_nothing(at(op));
        if quiet {
            self.quiet.insert(turn)
        } else {
            self.loud.insert(turn)
        };
    }

    fn remove_ready(&mut self, turn: Turn) {
        if !self.quiet.remove(&turn) {
            self.loud.remove(&turn);
        }
    }

    /// The successors of a node lose a blocker; moments without blockers pass by themselves.
    fn release(&mut self, node: Node) {
        let graph = self.task.graph;
        let mut passed = vec![node];
        while let Some(node) = passed.pop() {
            for (_, edge) in graph.outgoing(node) {
                self.blockers[at(edge.to)] -= 1;
                if self.blockers[at(edge.to)] > 0 {
                    continue;
                }
                if graph.is_op(edge.to) { self.make_ready(edge.to) } else { passed.push(edge.to) }
            }
        }
    }

    /// The reverse of [`Self::release`].
    fn block(&mut self, node: Node) {
        let graph = self.task.graph;
        let mut blocked = vec![node];
        while let Some(node) = blocked.pop() {
            for (_, edge) in graph.outgoing(node) {
                self.blockers[at(edge.to)] += 1;
                if self.blockers[at(edge.to)] > 1 {
                    continue;
                }
                if graph.is_op(edge.to) {
                    let turn = self.turn(edge.to);
                    self.remove_ready(turn);
                } else {
                    blocked.push(edge.to);
                }
            }
        }
    }
}

/// A fixed pseudo-random number for each operation.
fn operation_number(op: Node) -> u128 {
    wide(u64::from(op), 0x6a09_e667_f3bc_c908)
}
