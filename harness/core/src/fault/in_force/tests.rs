//! What follows from faults that act at once.

use super::*;
use crate::cut::{Cut, Severing};
use crate::mechanism::clock::Clock;
use crate::mechanism::kill::Kill;
use crate::mechanism::pause::Pause;

fn ids(ids: &[u64]) -> Vec<MemberId> {
    ids.iter().copied().map(MemberId).collect()
}

fn five() -> Vec<MemberId> {
    ids(&[1, 2, 3, 4, 5])
}

fn kill(members: Vec<MemberId>) -> Action {
    Kill { members, loses_unsynced: false }.into()
}

fn off(member: u64, how: Severing) -> Action {
    let others = five().into_iter().filter(|other| other.0 != member).collect();
    Cut::between(&[ids(&[member]), others], how).into()
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
    let force = InForce::only("F1", &Cut { pairs, how: Severing::Reject }.into());
    assert_eq!(force.expected(Pair::from((1, 2))), Expected::Severed);
    assert_eq!(force.expected(Pair::from((2, 1))), Expected::Either);
    assert_eq!(force.expected(Pair::from((2, 3))), Expected::Arrives);
}

#[test]
fn a_quorum_is_counted_over_all_faults_together() {
    let members = five();
    let mut force = InForce::only("F1", &off(1, Severing::Silence));
    assert_eq!(force.majority_side(&members, &members, None), ids(&[2, 3, 4, 5]));
    force.insert("F2", kill(ids(&[2])));
    assert_eq!(force.majority_side(&members, &members, None), ids(&[3, 4, 5]));
    force.insert("F3", Pause { members: ids(&[3]) }.into());
    assert!(force.majority_side(&members, &members, None).is_empty());
    force.remove("F1");
    assert_eq!(force.majority_side(&members, &members, None), ids(&[1, 4, 5]));
}

#[test]
fn who_is_down_or_stopped_reaches_nobody() {
    let mut force = InForce::only("F1", &kill(ids(&[2])));
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
    assert!(deposes(&Pause { members: ids(&[1]) }.into()));
    assert!(!deposes(&off(2, Severing::Silence)));
    assert!(!deposes(&kill(ids(&[2, 3]))));
    assert!(deposes(&kill(ids(&[2, 3, 4]))));
    assert!(!deposes(&Clock { members: ids(&[1]), offset_ns: 1 }.into()));
}

#[test]
fn who_may_hit_a_member_follows_from_what_is_occupied_of_it() {
    use crate::fault::own::{Own, Whom};
    use crate::mechanism::own::{OWN, Owned};
    use crate::mechanism::{clock::CLOCK, kill::KILL, partition::PARTITION};
    let own = Own::new("slow", String::new(), Whom::One, true);
    let mut force = InForce::only("F1", &Owned { own, members: ids(&[1]) }.into());
    force.insert("F2", Clock { members: ids(&[2]), offset_ns: 1 }.into());
    force.insert("F3", kill(ids(&[3])));
    let free = |mechanism| {
        let is_free = |member: &MemberId| force.leaves_free(*member, mechanism);
        five().into_iter().filter(is_free).collect::<Vec<_>>()
    };
    assert!(free(&KILL) == ids(&[2, 4, 5]), "commands run beside the process of n1");
    assert!(free(&OWN) == ids(&[1, 2, 4, 5]));
    assert!(free(&CLOCK) == ids(&[1, 4, 5]), "one clock is shifted by one fault");
    assert!(free(&PARTITION) == ids(&[1, 2, 4, 5]), "n3 has no process");
}
