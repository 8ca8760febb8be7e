//! The shapes that a network can be cut into, and what remains of a quorum in each. Pure.
//!
//! A cut is a set of directions, so who can talk with whom is decided pair by pair. What an ensemble can
//! still do follows from one question only: is there a member that a quorum, itself included, can speak to
//! *and* be heard by? A leader needs nothing else of its followers, and they need nothing of each other. The
//! members around such a centre are its *group*.
//!
//! - **Deaf**: nothing reaches the member, everybody hears it. A deaf leader goes on sending and gets no
//!   acknowledgement; only it can know that something is wrong.
//! - **Mute**: it hears everybody, nothing of what it says arrives. Only the others can know.
//! - **Ring**: every member reaches a majority, no two of them the same one (Jepsen's `majorities-ring`).
//! - **Bridge**: two halves that do not hear each other, and one member that hears and is heard by all.

use runs::member::MemberId;

use crate::cut::Pair;

/// More than half of `members`.
pub fn quorum(members: usize) -> usize {
    members / 2 + 1
}

/// Every direction that leads to `target`.
pub fn deaf(target: MemberId, members: &[MemberId]) -> Vec<Pair> {
    mute(target, members).into_iter().map(Pair::back).collect()
}

/// Every direction that leads away from `target`.
pub fn mute(target: MemberId, members: &[MemberId]) -> Vec<Pair> {
    members.iter().filter(|member| **member != target).map(|member| Pair::new(target, *member)).collect()
}

/// Both directions between members that are no neighbours in a ring of this order.
///
/// A majority is the member itself and half of the others, rounded up where there are odd ones out. Half of
/// those lie on either side; when their number is odd the last one lies opposite. So all majorities have the
/// same size, but where neither the members nor the neighbours of each can be paired off (3, 7, 11 members):
/// there one member has a neighbour more.
pub fn ring(order: &[MemberId]) -> Vec<Pair> {
    let mut pairs = Vec::new();
    for (at, from) in order.iter().enumerate() {
        for (other, to) in order.iter().enumerate() {
            if at != other && !are_neighbours(at, other, order.len()) {
                pairs.push(Pair::new(*from, *to));
            }
        }
    }
    pairs
}

fn are_neighbours(one: usize, other: usize, size: usize) -> bool {
    let wanted = quorum(size) - 1;
    let distance = one.abs_diff(other).min(size - one.abs_diff(other));
    if distance <= wanted / 2 {
        return true;
    }
    if wanted.is_multiple_of(2) {
        return false;
    }
    let half = size / 2;
    if size.is_multiple_of(2) {
        return distance == half;
    }
    // An odd ring has no opposite: the first half is paired with the second, and the last one, left over,
    // with the one that lies as far behind.
    let (low, high) = (one.min(other), one.max(other));
    high - low == half && low < half || (high == size - 1 && low == half - 1)
}

/// The member itself and whoever it can talk with: both directions pass, and both are there.
pub fn group(
    centre: MemberId,
    members: &[MemberId],
    absent: &[MemberId],
    severs: &dyn Fn(Pair) -> bool,
) -> Vec<MemberId> {
    if absent.contains(&centre) {
        return Vec::new();
    }
    let talks = |other: &MemberId| {
        let pair = Pair::new(centre, *other);
        *other == centre || (!absent.contains(other) && !severs(pair) && !severs(pair.back()))
    };
    members.iter().copied().filter(talks).collect()
}

/// The members that can be served: those around the leader when it keeps a quorum of the voters, and
/// otherwise whoever lies in the group of a voter that could lead. Empty when nobody could.
pub fn majority_side(
    members: &[MemberId],
    voters: &[MemberId],
    absent: &[MemberId],
    leader: Option<MemberId>,
    severs: &dyn Fn(Pair) -> bool,
) -> Vec<MemberId> {
    let is_quorum = |around: &Vec<MemberId>| {
        around.iter().filter(|member| voters.contains(member)).count() >= quorum(voters.len())
    };
    let group = |centre: MemberId| group(centre, members, absent, severs);
    if let Some(around) = leader.map(group).filter(is_quorum) {
        return around;
    }
    let groups: Vec<Vec<MemberId>> = voters.iter().map(|centre| group(*centre)).filter(is_quorum).collect();
    members.iter().copied().filter(|member| groups.iter().any(|around| around.contains(member))).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn members(count: u64) -> Vec<MemberId> {
        (1..=count).map(MemberId).collect()
    }

    fn around(centre: MemberId, members: &[MemberId], severed: &[Pair]) -> Vec<MemberId> {
        group(centre, members, &[], &|pair| severed.contains(&pair))
    }

    #[test]
    fn a_deaf_member_is_heard_by_all_and_a_mute_one_hears_all() {
        for count in 1..=9 {
            let members = members(count);
            for target in &members {
                let (deaf, mute) = (deaf(*target, &members), mute(*target, &members));
                assert_eq!(deaf.len(), members.len() - 1);
                assert!(deaf.iter().all(|pair| pair.to == *target && pair.from != *target));
                assert!(mute.iter().all(|pair| pair.from == *target && pair.to != *target));
            }
        }
    }

    #[test]
    fn in_a_ring_every_member_reaches_a_majority_and_no_two_the_same() {
        for count in 3..=9 {
            let members = members(count);
            let severed = ring(&members);
            assert!(severed.iter().all(|pair| severed.contains(&pair.back())), "{count}: one-way");
            let groups: Vec<Vec<MemberId>> =
                members.iter().map(|member| around(*member, &members, &severed)).collect();
            let distinct: BTreeSet<&Vec<MemberId>> = groups.iter().collect();
            assert_eq!(distinct.len(), members.len(), "{count}: two see the same majority");
            let majority = quorum(members.len());
            let larger = groups.iter().filter(|around| around.len() == majority + 1).count();
            let exact = groups.iter().filter(|around| around.len() == majority).count();
            let odd_one_out = usize::from(count == 3 || count == 7);
            assert_eq!((exact, larger), (members.len() - odd_one_out, odd_one_out), "{count} members");
        }
    }

    #[test]
    fn a_ring_of_five_is_the_pentagon() {
        let members = members(5);
        let severed = ring(&members);
        assert_eq!(around(MemberId(1), &members, &severed), [1, 2, 5].map(MemberId));
        assert_eq!(severed.len(), 10);
    }

    #[test]
    fn with_three_members_a_ring_is_a_bridge() {
        let members = members(3);
        let severed = ring(&members);
        assert_eq!(severed, [(2, 3), (3, 2)].map(Pair::from));
    }

    #[test]
    fn the_majority_side_is_the_leaders_group_and_else_everybody_who_could_be_served() {
        let members = members(5);
        let severed = ring(&members);
        let severs = |pair: Pair| severed.contains(&pair);
        let side = |leader, absent: &[MemberId]| majority_side(&members, &members, absent, leader, &severs);
        assert_eq!(side(Some(MemberId(1)), &[]), [1, 2, 5].map(MemberId));
        assert_eq!(side(None, &[]), members);
        assert_eq!(side(Some(MemberId(1)), &[MemberId(2)]), [1, 3, 4, 5].map(MemberId));
        assert!(side(None, &[MemberId(1), MemberId(3)]).is_empty());
    }

    #[test]
    fn an_observer_is_served_and_counted_for_nothing() {
        let (members, voters) = (members(5), members(3));
        let passes = |_: Pair| false;
        let side = |absent: &[MemberId]| majority_side(&members, &voters, absent, None, &passes);
        assert_eq!(side(&[MemberId(1)]), [2, 3, 4, 5].map(MemberId));
        assert!(side(&[MemberId(1), MemberId(2)]).is_empty());
    }

    #[test]
    fn who_is_deaf_or_mute_belongs_to_no_group_but_its_own() {
        let members = members(5);
        for severed in [deaf(MemberId(2), &members), mute(MemberId(2), &members)] {
            assert_eq!(around(MemberId(2), &members, &severed), [MemberId(2)]);
            let severs = |pair: Pair| severed.contains(&pair);
            let side = majority_side(&members, &members, &[], Some(MemberId(2)), &severs);
            assert_eq!(side, [1, 3, 4, 5].map(MemberId));
        }
    }
}
