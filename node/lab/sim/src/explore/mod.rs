//! Every interleaving of a few members, three mostly, up to a bound.
//!
//! The simulator samples long worlds; this module enumerates short ones. Nothing is drawn here: from each
//! state every transition is taken that is possible, and each new state is judged by the same rules. What is
//! explored is the real [`node_core::Member`], not a model of it. What lies around it is as small as it can
//! be: first-in-first-out wires, disks that are a durable part and a queue, no bytes, no time.
//!
//! **Models.** *Election* is fast leader election alone: nobody answers a dial. *Zab* is discovery,
//! synchronization and the broadcast of a session or two, with an oracle in the place of elections: it tells
//! any member that looks that anybody leads, itself included, whether or not that makes sense. So it covers
//! every outcome that any election could have: elections are a matter of liveness only, and safety must not
//! depend on them. *Whole* is both.
//!
//! **Changes.** In some starts of *Election* a change of the ensemble stands in the logs of some members,
//! whose fate is open. What they have logged, they need quorums of; what others have logged, they hear of by
//! votes. All memberships are such that the members are a quorum of them, or can be one of what rules.
//!
//! **Bounds.** Crashes, time-outs, losses of connections, decisions of the oracle and proposals come out of
//! budgets. Deliveries, dials, disks and restarts do not: the search ends because there is nothing left to
//! happen, and then it has seen all of it. [`Explored::exhausted`] says so.
//!
//! **Time.** Members have no common clock. A member's time stands still until a transition lets it run out:
//! until it has waited for better votes, or gives its leader or its followers up. When, compared with
//! everything else, is open. PINGs are left out: all they do is to put off such a time-out.
//!
//! **Left out.** Only the wait for better votes is explored of a member that looks: that it tells its vote
//! again, and gives up connections that came too early, happens in the fair course alone. A driver may
//! replace a vote that has not left yet by a newer one; here every vote arrives. A dial is answered or
//! refused, or waits; it does not fail by itself while its target lives. No snapshots are taken, though
//! members may begin with one. The simulator has all of it.
//!
//! **Reduction.** Three, each sound. What a store has finished shows only when somebody waits for it, and a
//! crash may keep any prefix of the queue anyway, so the queue moves on from one operation that is waited for
//! to the next. Both ends of a dialled connection learn of it in one transition, because all that the
//! acceptor does before the dialler speaks is to close it. Absolute time, tickets and the operations behind
//! them are left out of a state's fingerprint. There is no reduction by commuting deliveries: any message may
//! find its receiver in another role, so little commutes for certain.
//!
//! **Why not the stateright crate.** A state here is three members of some kilobytes each, of which a
//! transition touches one or two: they are shared between states, and only a number of 64 bits is kept of
//! each. Disks with crashes in any prefix, budgets and a judgement of quiet states by a fair course would all
//! have had to be told to it; what was left is a depth-first search of a page.
//!
//! **Quiet states.** Where votes are real, a state in which nothing is bound to happen any more is judged
//! twice. Without a fault on the way to it, everybody must follow the best vote. In any case a fair course
//! from there, with clocks that run alike and nothing lost, must lead to one leader that all follow within a
//! bound: no deadlock.

mod apply;
mod checks;
mod digest;
mod disk;
mod fair;
mod ghost;
mod place;
mod search;
mod shorten;
mod starts;
#[cfg(test)]
mod tests;
mod transition;
mod world;

use lab_mutants::Mutant;
use node_core::{Maker, Zab};

use crate::outcome::Rule;
use search::Search;

/// What is explored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Model {
    /// Elections alone.
    Election,
    /// Discovery, synchronization and broadcast, with every outcome of every election.
    Zab,
    /// Elections and what follows them.
    Whole,
}

impl Model {
    /// Every model.
    pub const ALL: [Self; 3] = [Self::Election, Self::Zab, Self::Whole];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Election => "election",
            Self::Zab => "zab",
            Self::Whole => "whole",
        }
    }

    /// The model of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|model| model.name() == name)
    }

    pub(crate) fn has_votes(self) -> bool {
        self != Self::Zab
    }

    pub(crate) fn has_oracle(self) -> bool {
        self == Self::Zab
    }

    pub(crate) fn has_quorum_port(self) -> bool {
        self != Self::Election
    }
}

/// How much of what need not happen may happen, all members taken together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Bounds {
    /// Members: two to four. Half of the voters are no quorum, but only an even number of them has a half.
    pub members: u8,
    /// Crashes, each keeping any prefix of what waits for the disk.
    pub crashes: u8,
    /// Times at which a member's time runs out.
    pub timeouts: u8,
    /// Connections that break.
    pub losses: u8,
    /// Decisions of the oracle, where it stands for elections.
    pub elections: u8,
    /// Sessions that clients ask leaders for: each is a proposal.
    pub proposals: u8,
    /// States after which the search gives up.
    pub max_states: u64,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            members: 3,
            crashes: 0,
            timeouts: 0,
            losses: 0,
            elections: 3,
            proposals: 0,
            max_states: u64::MAX,
        }
    }
}

/// A path to a broken promise. Leaving any one transition out, it is no such path any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counterexample {
    /// The promise.
    pub rule: Rule,
    /// How it was broken.
    pub sentence: String,
    /// The histories that the members began with.
    pub start: &'static str,
    /// One line for each transition, with what members told in it.
    pub path: Vec<String>,
}

/// What came of an exploration.
#[derive(Clone, Debug, Default)]
pub struct Explored {
    /// Different states.
    pub states: u64,
    /// Transitions between them, those to known states included.
    pub transitions: u64,
    /// States in which nothing was bound to happen any more.
    pub quiet: u64,
    /// The longest path.
    pub deepest: usize,
    /// True when every state within the bounds was visited. Not when a promise was broken: that ends the
    /// search.
    pub exhausted: bool,
    /// The first broken promise.
    pub violation: Option<Counterexample>,
}

/// Names of the histories that members may begin with.
pub fn starts(model: Model) -> impl Iterator<Item = &'static str> {
    starts::of(model).map(|(name, _)| name)
}

/// Explores a model from every start.
#[inline]
pub fn explore(model: Model, bounds: Bounds, mutant: Option<Mutant>) -> Explored {
    explore_from(model, bounds, mutant, |_| true)
}

/// Explores a model from the starts that are chosen by name.
#[inline]
pub fn explore_from(
    model: Model,
    bounds: Bounds,
    mutant: Option<Mutant>,
    chosen: impl Fn(&str) -> bool,
) -> Explored {
    match mutant {
        None => sized(model, bounds, Zab, chosen),
        Some(mutant) => sized(model, bounds, mutant, chosen),
    }
}

fn sized<F: Maker>(model: Model, bounds: Bounds, maker: F, chosen: impl Fn(&str) -> bool) -> Explored {
    let starts = starts::of(model).filter(|(name, _)| chosen(name));
    match bounds.members {
        2 => Search::<F, 2>::new(model, bounds, maker).run(starts),
        3 => Search::<F, 3>::new(model, bounds, maker).run(starts),
        4 => Search::<F, 4>::new(model, bounds, maker).run(starts),
        members => panic!("an exploration has two to four members, not {members}"),
    }
}
