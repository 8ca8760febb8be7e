//! Progress under partial faults: while enough members can speak with each other, somebody leads.
//!
//! Healing everything and then asking for a leader misses ensembles that sit out a fault which they need not
//! sit out: votes for an unreachable leader that go round over a bridge, say. So during chaos it is followed
//! since when each member has been up, awake and with a sound disk, and since when each pair could speak both
//! ways. When some set of members that is a quorum has been so, all of it, for longer than BOUND_TIMEOUTS
//! peer time-outs and one initLimit, some member must have led an established epoch meanwhile.
//!
//! That is the least that can be asked: that somebody somewhere led once within the bound. The leader may
//! stand outside of the set, because two quorums that share a member may both be connected within; and
//! whoever is led by hearsay alone, beyond a bridge, is promised nothing.

use crate::network::HostIndex;
use crate::world::ensemble::membership::{Set, is_quorum, set_of};
use crate::world::{Clockwork, Ensemble, Oracle};
use harness_world::time::Time;

/// Since when what has been well.
#[derive(Clone, Debug)]
pub(in crate::world) struct Progress {
    members: usize,
    /// Since when each member has been undisturbed.
    well: Vec<Time>,
    /// Until when each member is at a step that takes time, or was.
    works: Vec<Time>,
    /// Since when each pair has been.
    linked: Vec<Time>,
    /// Since when each member counts by the memberships by which it does.
    counts: Vec<Time>,
    /// When somebody was last seen to lead an established epoch.
    pub(in crate::world) led: Time,
    /// Memberships that were known of.
    memberships: usize,
    /// When a span in which somebody had to lead was last counted.
    pub(in crate::world) counted: Time,
}

impl Progress {
    pub(in crate::world) fn new(members: usize) -> Self {
        Self {
            members,
            well: vec![Time::default(); members],
            works: vec![Time::default(); members],
            linked: vec![Time::default(); members * members],
            counts: vec![Time::default(); members],
            led: Time::default(),
            memberships: 0,
            counted: Time::default(),
        }
    }

    /// Something happened to a member.
    pub(in crate::world) fn disturbed(&mut self, host: HostIndex, at: Time) {
        self.well[host] = at;
    }

    /// Since when nothing has happened between two members.
    pub(super) fn linked_since(&self, one: HostIndex, other: HostIndex) -> Time {
        if one == other { Time::default() } else { self.linked[one * self.members + other] }
    }

    /// A member works until then.
    pub(in crate::world) fn worked(&mut self, host: HostIndex, until: Time) {
        self.works[host] = self.works[host].max(until);
    }

    /// Since when nothing has happened to a member, and it did not work for long.
    pub(super) fn undisturbed_since(&self, host: HostIndex) -> Time {
        self.well[host].max(self.works[host])
    }

    /// Since when nothing has happened to a member, whatever it works.
    pub(super) fn unhurt_since(&self, host: HostIndex) -> Time {
        self.well[host]
    }

    /// Something happened between two members.
    pub(in crate::world) fn disturbed_pair(&mut self, one: HostIndex, other: HostIndex, at: Time) {
        self.linked[one * self.members + other] = at;
        self.linked[other * self.members + one] = at;
    }

    /// A member learned of a membership: whether it is one of a quorum is another question than before.
    pub(in crate::world) fn counts_anew(&mut self, host: HostIndex, at: Time) {
        self.counts[host] = at;
    }

    /// So many memberships were made or rule by now. With a new one the time counts from here: a leader made
    /// it, and who decides is another question than before.
    pub(in crate::world) fn changed(&mut self, memberships: usize, at: Time) {
        if std::mem::replace(&mut self.memberships, memberships) != memberships {
            self.led = self.led.max(at);
        }
    }

    /// A quorum of which every member and every pair has been undisturbed since this moment, or longer.
    /// `says` has for each member the voters of the memberships by which it counts: it is one of all of them.
    pub(in crate::world) fn quorum_since(&self, moment: Time, says: &[Vec<Set>]) -> Option<Vec<HostIndex>> {
        let voters = says.iter().flatten().fold(0, |all, voters| all | voters);
        let well: Vec<HostIndex> = (0..self.members)
            .filter(|host| self.undisturbed_since(*host) <= moment && self.counts[*host] <= moment)
            .filter(|host| voters & set_of([*host]) > 0)
            .collect();
        if says.iter().flatten().all(|voters| !is_quorum(*voters, set_of(well.iter().copied()))) {
            return None;
        }
        let decides = |chosen: &[HostIndex]| {
            let set = set_of(chosen.iter().copied());
            chosen.iter().flat_map(|host| &says[*host]).all(|voters| is_quorum(*voters, set))
        };
        let linked = |one: HostIndex, other: HostIndex| self.linked[one * self.members + other] <= moment;
        // Ensembles are small: all sets are tried.
        (1_u32..1 << well.len()).find_map(|set| {
            let chosen: Vec<HostIndex> =
                (0..well.len()).filter(|place| set >> place & 1 == 1).map(|place| well[place]).collect();
            let connected = decides(&chosen)
                && chosen
                    .iter()
                    .enumerate()
                    .all(|(place, one)| chosen[place + 1..].iter().all(|other| linked(*one, *other)));
            connected.then_some(chosen)
        })
    }
}

impl Oracle {
    /// What is not told of when it begins or ends is looked at here.
    pub(in crate::world) fn note_the_unwell(&mut self, clock: &Clockwork, ensemble: &Ensemble) {
        let members = ensemble.voters_at_most(clock);
        for host in 0..members {
            let machine = &ensemble.hosts[host];
            let awake = machine.process.as_ref().is_some_and(|process| {
                process.pauses == 0 && process.dies_after.is_none() && !process.dies_storing
            });
            if !awake || machine.rot.is_some() || clock.now < machine.slow_until || machine.disk.is_full() {
                self.progress.disturbed(host, clock.now);
            }
            for other in 0..members {
                if other != host && !ensemble.links.passes(host, other) {
                    self.progress.disturbed_pair(host, other, clock.now);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Five voters that know of no change.
    fn five() -> Vec<Vec<Set>> {
        vec![vec![set_of(0..5)]; 5]
    }

    #[test]
    fn a_quorum_counts_when_all_its_members_and_pairs_were_undisturbed() {
        let mut progress = Progress::new(5);
        assert_eq!(progress.quorum_since(Time(10), &five()).map(|quorum| quorum.len()), Some(3));
        progress.disturbed(0, Time(11));
        progress.disturbed(1, Time(11));
        assert_eq!(progress.quorum_since(Time(10), &five()), Some(vec![2, 3, 4]));
        progress.disturbed_pair(2, 4, Time(12));
        assert_eq!(progress.quorum_since(Time(10), &five()), None);
        assert!(progress.quorum_since(Time(12), &five()).is_some());
    }

    #[test]
    fn both_halves_of_a_bridge_are_connected_quorums() {
        let mut progress = Progress::new(5);
        for (one, other) in [(1, 3), (1, 4), (2, 3), (2, 4)] {
            progress.disturbed_pair(one, other, Time(11));
        }
        assert_eq!(progress.quorum_since(Time(10), &five()), Some(vec![0, 1, 2]));
    }

    #[test]
    fn who_knows_of_a_change_counts_by_both_memberships() {
        let progress = Progress::new(5);
        let mut says = five();
        says[0].push(set_of([0, 4]));
        says[4].push(set_of([0, 4]));
        assert_eq!(progress.quorum_since(Time(10), &says), Some(vec![1, 2, 3]));
        for said in &mut says[1..4] {
            said.push(set_of([0, 4]));
        }
        assert_eq!(progress.quorum_since(Time(10), &says), Some(vec![0, 1, 4]));
    }

    #[test]
    fn a_quorum_is_one_only_since_its_members_know_of_the_membership_by_which_it_is() {
        let mut progress = Progress::new(5);
        for host in 2..5 {
            progress.disturbed(host, Time(11));
        }
        let says = vec![vec![set_of([0, 1, 2])]; 5];
        assert_eq!(progress.quorum_since(Time(10), &says), Some(vec![0, 1]));
        progress.counts_anew(1, Time(11));
        assert_eq!(progress.quorum_since(Time(10), &says), None);
        assert!(progress.quorum_since(Time(11), &says).is_some());
    }
}
