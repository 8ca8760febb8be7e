//! What is in force at a moment: the faults injected and not healed, and what follows from all of them
//! together.
//!
//! Faults that act at once are proven against this union and not each by itself: a probe that does not arrive
//! may be another fault's doing, and so may one that still does not arrive when a cut was healed. Pure data;
//! who changes it and when is the driver's.

use std::collections::BTreeMap;

use runs::consequence::Consequences;
use runs::member::MemberId;
use runs::results::Reach;

use super::topology;
use crate::condition::{Condition, LinkCondition};
use crate::cut::Pair;
use crate::mechanism::{Act, Action, Mechanism, Part, Resource, Use};

/// What a probe in one direction must show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// It arrives.
    Arrives,
    /// It does not.
    Severed,
    /// Either: the other direction is answered with resets, and a connection has both.
    Either,
}

/// The faults in force, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InForce {
    faults: BTreeMap<String, Action>,
}

impl InForce {
    /// One fault alone.
    pub fn only(fault: &str, action: &Action) -> Self {
        Self { faults: BTreeMap::from([(fault.to_owned(), action.clone())]) }
    }

    /// A fault came into force.
    pub fn insert(&mut self, fault: &str, action: Action) {
        self.faults.insert(fault.to_owned(), action);
    }

    /// A fault is gone.
    pub fn remove(&mut self, fault: &str) {
        self.faults.remove(fault);
    }

    /// Whether nothing is broken.
    pub fn is_empty(&self) -> bool {
        self.faults.is_empty()
    }

    /// The names of the faults, in order.
    pub fn names(&self) -> Vec<String> {
        self.faults.keys().cloned().collect()
    }

    /// What these do that are of this type, in the order of their names.
    pub fn acts<T: Act>(&self) -> impl Iterator<Item = &T> {
        self.faults.values().filter_map(Action::of)
    }

    /// What each of them does, by name.
    pub fn actions(&self) -> impl Iterator<Item = (&str, &Action)> {
        self.faults.iter().map(|(name, action)| (name.as_str(), action))
    }

    /// Whether whoever speaks is told so, of each fault that lets nothing pass in this direction.
    fn severings(&self, pair: Pair) -> impl Iterator<Item = bool> {
        self.faults.values().filter_map(move |action| {
            let (directions, refuses) = action.silences()?;
            directions.contains(&pair).then_some(refuses)
        })
    }

    /// Whether nothing passes in this direction.
    pub fn severs(&self, pair: Pair) -> bool {
        self.severings(pair).next().is_some()
    }

    /// What a probe in this direction must show.
    pub fn expected(&self, pair: Pair) -> Expected {
        if self.severs(pair) {
            Expected::Severed
        } else if self.severings(pair.back()).any(|refuses| refuses) {
            Expected::Either
        } else {
            Expected::Arrives
        }
    }

    /// The members whose processes were ended.
    pub fn killed(&self) -> Vec<MemberId> {
        self.members_of(|action| action.consequences().ends())
    }

    /// The members whose processes are stopped.
    pub fn paused(&self) -> Vec<MemberId> {
        self.members_of(|action| action.consequences().stops())
    }

    /// Both: who neither speaks nor listens, whatever the network does.
    pub fn absent(&self) -> Vec<MemberId> {
        self.members_of(|action| action.consequences().takes_away())
    }

    /// The members at which something is aimed of which nobody knows what it does to them.
    fn unknown(&self) -> Vec<MemberId> {
        self.members_of(|action| action.consequences().is_unknown())
    }

    fn members_of(&self, of: impl Fn(&Action) -> bool) -> Vec<MemberId> {
        let those = self.faults.values().filter(|action| of(action));
        let mut members: Vec<MemberId> = those.flat_map(|action| action.members().to_vec()).collect();
        members.sort_unstable();
        members.dedup();
        members
    }

    /// Whether somebody occupies this in a way that leaves no room for this use of it.
    pub fn collides(&self, resource: Resource, wanted: Use) -> bool {
        let occupied = self.faults.values().flat_map(|action| action.occupies());
        occupied.into_iter().any(|(taken, how)| taken == resource && how.collides(wanted))
    }

    /// Whether a fault of this mechanism may hit this member: whose process another fault holds alone is
    /// nobody's target, whatever else is done to it.
    pub fn leaves_free(&self, member: MemberId, mechanism: &Mechanism) -> bool {
        let process = [(Part::Process, Use::Shared)];
        let wanted = process.iter().chain(mechanism.occupies);
        !wanted.into_iter().any(|(part, how)| self.collides(Resource::Of(member, *part), *how))
    }

    /// What a direction is to be like under all of it.
    pub fn link(&self, pair: Pair) -> LinkCondition {
        let own = |condition: Condition| match condition {
            Condition::Link(of, link) if of == pair => Some(link),
            _ => None,
        };
        let links = self.faults.values().flat_map(|action| action.conditions()).filter_map(own);
        links.fold(LinkCondition::default(), LinkCondition::and)
    }

    /// By how much a step that waits for something once takes longer at most, all taken together, in ns.
    pub fn slows_ns(&self) -> u64 {
        let slowing = self.faults.values().map(|action| action.consequences().slows_ns());
        slowing.fold(0, u64::saturating_add)
    }

    /// The members that can be served under all of it, whatever one of which nobody knows does to its
    /// targets; empty when no quorum of the voters remains.
    pub fn majority_side(
        &self,
        members: &[MemberId],
        voters: &[MemberId],
        leader: Option<MemberId>,
    ) -> Vec<MemberId> {
        let away = [self.absent(), self.unknown()].concat();
        topology::majority_side(members, voters, &away, leader, &|pair| self.severs(pair))
    }

    /// Whether a member, if it leads, must give up: it is gone, or no quorum of the voters is around it.
    pub fn deposes(&self, leader: MemberId, voters: &[MemberId]) -> bool {
        let group = topology::group(leader, voters, &self.absent(), &|pair| self.severs(pair));
        group.len() < topology::quorum(voters.len())
    }

    /// Who reaches whom by what is in force, where nothing was measured.
    pub fn matrix(&self, members: &[MemberId]) -> Vec<Vec<Reach>> {
        let reach = |pair: Pair| if self.severs(pair) { Reach::NotReached } else { Reach::Reached };
        let row = |from: &MemberId| members.iter().map(|to| reach(Pair::new(*from, *to))).collect();
        let mut matrix: Vec<Vec<Reach>> = members.iter().map(row).collect();
        self.leave_out_absent(&mut matrix, members);
        matrix
    }

    /// Strikes those out of a measured matrix who are not there: probes go where the members would, whether
    /// or not their processes run.
    pub fn leave_out_absent(&self, matrix: &mut [Vec<Reach>], members: &[MemberId]) {
        let absent = self.absent();
        for (row, from) in matrix.iter_mut().zip(members) {
            for (cell, to) in row.iter_mut().zip(members) {
                if from != to && (absent.contains(from) || absent.contains(to)) {
                    *cell = Reach::NotReached;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
