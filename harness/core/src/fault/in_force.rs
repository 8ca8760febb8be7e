//! What is in force at a moment: the faults injected and not healed, and what follows from all of them
//! together.
//!
//! Faults that act at once are proven against this union and not each by itself: a probe that does not arrive
//! may be another fault's doing, and so may one that still does not arrive when a cut was healed. Pure data;
//! who changes it and when is the driver's.

use std::collections::BTreeMap;

use runs::member::MemberId;
use runs::results::Reach;

use super::action::Action;
use super::topology;
use crate::cut::{Pair, Severing};

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

    fn severings(&self, pair: Pair) -> impl Iterator<Item = Severing> {
        self.faults.values().filter_map(move |action| match action {
            Action::Cut(cut) if cut.severs(pair) => Some(cut.how),
            _ => None,
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
        } else if self.severings(pair.back()).any(|how| how == Severing::Reject) {
            Expected::Either
        } else {
            Expected::Arrives
        }
    }

    /// The members whose processes were ended.
    pub fn killed(&self) -> Vec<MemberId> {
        self.members_of(|action| matches!(action, Action::Kill { .. } | Action::Replace { .. }))
    }

    /// The members whose processes are stopped.
    pub fn paused(&self) -> Vec<MemberId> {
        self.members_of(|action| matches!(action, Action::Pause { .. }))
    }

    /// Both: who neither speaks nor listens, whatever the network does.
    pub fn absent(&self) -> Vec<MemberId> {
        let is_away = |action: &Action| {
            matches!(action, Action::Kill { .. } | Action::Replace { .. } | Action::Pause { .. })
        };
        self.members_of(is_away)
    }

    /// The members at which faults of the user's own are aimed: nobody knows what those do to them.
    pub fn owned(&self) -> Vec<MemberId> {
        self.members_of(|action| matches!(action, Action::Own { .. }))
    }

    fn members_of(&self, of: impl Fn(&Action) -> bool) -> Vec<MemberId> {
        let mut members: Vec<MemberId> = self
            .faults
            .values()
            .filter(|action| of(action))
            .flat_map(|action| match action {
                Action::Kill { members }
                | Action::Replace { members, .. }
                | Action::Pause { members }
                | Action::Clock { members, .. }
                | Action::Own { members, .. } => members.clone(),
                Action::Cut(_) | Action::Application { .. } => Vec::new(),
            })
            .collect();
        members.sort_unstable();
        members.dedup();
        members
    }

    /// Whether a fault hits this application.
    pub fn hits_application(&self, application: u64) -> bool {
        self.faults.values().any(|action| match action {
            Action::Application { holder, .. } => holder.application == application,
            _ => false,
        })
    }

    /// How far a member's wall clock is to be off. Of several shifts the last by name holds, because each is
    /// against the true clock; a list of nemeses has only one that shifts.
    pub fn offset_ns(&self, member: MemberId) -> i64 {
        let offset = |action: &Action| match action {
            Action::Clock { members, offset_ns } if members.contains(&member) => Some(*offset_ns),
            _ => None,
        };
        self.faults.values().filter_map(offset).next_back().unwrap_or(0)
    }

    /// The members that can be served under all of it, whatever a fault of the user's own does to its
    /// targets; empty when no quorum of the voters remains.
    pub fn majority_side(
        &self,
        members: &[MemberId],
        voters: &[MemberId],
        leader: Option<MemberId>,
    ) -> Vec<MemberId> {
        let away = [self.absent(), self.owned()].concat();
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
mod tests {
    use super::*;
    use crate::cut::Cut;

    fn ids(ids: &[u64]) -> Vec<MemberId> {
        ids.iter().copied().map(MemberId).collect()
    }

    fn five() -> Vec<MemberId> {
        ids(&[1, 2, 3, 4, 5])
    }

    fn off(member: u64, how: Severing) -> Action {
        let others = five().into_iter().filter(|other| other.0 != member).collect();
        Action::Cut(Cut::between(&[ids(&[member]), others], how))
    }

    #[test]
    fn what_one_fault_severs_stays_severed_when_another_is_healed() {
        let mut force = InForce::only("F1", &off(1, Severing::Silence));
        force.insert("F2", off(2, Severing::Silence));
        force.remove("F1");
        assert_eq!(force.expected(Pair::from((1, 2))), Expected::Severed);
        assert_eq!(force.expected(Pair::from((1, 3))), Expected::Arrives);
        force.remove("F2");
        assert!(force.is_empty());
        assert_eq!(force.expected(Pair::from((1, 2))), Expected::Arrives);
    }

    #[test]
    fn beside_a_reset_in_one_direction_nothing_is_expected_of_the_other() {
        let pairs = vec![Pair::from((1, 2))];
        let force = InForce::only("F1", &Action::Cut(Cut { pairs, how: Severing::Reject }));
        assert_eq!(force.expected(Pair::from((1, 2))), Expected::Severed);
        assert_eq!(force.expected(Pair::from((2, 1))), Expected::Either);
        assert_eq!(force.expected(Pair::from((2, 3))), Expected::Arrives);
    }

    #[test]
    fn a_quorum_is_counted_over_all_faults_together() {
        let members = five();
        let mut force = InForce::only("F1", &off(1, Severing::Silence));
        assert_eq!(force.majority_side(&members, &members, None), ids(&[2, 3, 4, 5]));
        force.insert("F2", Action::Kill { members: ids(&[2]) });
        assert_eq!(force.majority_side(&members, &members, None), ids(&[3, 4, 5]));
        force.insert("F3", Action::Pause { members: ids(&[3]) });
        assert!(force.majority_side(&members, &members, None).is_empty());
        force.remove("F1");
        assert_eq!(force.majority_side(&members, &members, None), ids(&[1, 4, 5]));
    }

    #[test]
    fn who_is_down_or_stopped_reaches_nobody() {
        let mut force = InForce::only("F1", &Action::Kill { members: ids(&[2]) });
        force.insert("F2", off(1, Severing::Silence));
        let seen = force.matrix(&ids(&[1, 2, 3]));
        assert_eq!(seen[0], [Reach::Reached, Reach::NotReached, Reach::NotReached]);
        assert_eq!(seen[1], [Reach::NotReached, Reach::Reached, Reach::NotReached]);
        assert_eq!(seen[2], [Reach::NotReached, Reach::NotReached, Reach::Reached]);
    }

    #[test]
    fn a_leader_that_is_gone_or_alone_is_deposed_and_one_whose_clock_is_off_is_not() {
        let members = five();
        let deposes = |action: &Action| InForce::only("F1", action).deposes(MemberId(1), &members);
        assert!(deposes(&off(1, Severing::Reject)));
        assert!(deposes(&Action::Pause { members: ids(&[1]) }));
        assert!(!deposes(&off(2, Severing::Silence)));
        assert!(!deposes(&Action::Kill { members: ids(&[2, 3]) }));
        assert!(deposes(&Action::Kill { members: ids(&[2, 3, 4]) }));
        assert!(!deposes(&Action::Clock { members: ids(&[1]), offset_ns: 1 }));
    }

    #[test]
    fn a_clock_is_off_only_where_and_while_it_is_shifted() {
        let mut force = InForce::only("F1", &Action::Clock { members: ids(&[3]), offset_ns: -7 });
        assert_eq!((force.offset_ns(MemberId(3)), force.offset_ns(MemberId(1))), (-7, 0));
        force.remove("F1");
        assert_eq!(force.offset_ns(MemberId(3)), 0);
    }
}
