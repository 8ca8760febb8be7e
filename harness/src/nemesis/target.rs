//! From a planned fault to members: who is hit is decided at the moment of injection, and recorded.
//!
//! Pure: the same draw on the same roles gives the same targets.

use node_wire::ids::ServerId;
use rand::SeedableRng;
use rand::seq::{IndexedRandom, SliceRandom};
use rand_chacha::ChaCha8Rng;

use super::{Nemesis, PlannedFault};
use crate::cluster::{Cut, Severing};

/// What the cluster is to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Let nothing pass in some directions.
    Cut(Cut),
    /// SIGKILL to these at once.
    Kill {
        /// Whom.
        members: Vec<ServerId>,
    },
    /// SIGSTOP to these.
    Pause {
        /// Whom.
        members: Vec<ServerId>,
    },
}

/// A fault with its targets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolved {
    /// The members that it is aimed at.
    pub targets: Vec<ServerId>,
    /// What to do to them.
    pub action: Action,
    /// The fault in a few words: `partition n4 (leader) from n1 n2 n3 n5`.
    pub sentence: String,
    /// The members that still reach a quorum while it holds; empty when nobody does.
    pub majority_side: Vec<ServerId>,
}

/// Decides whom `fault` hits. None when it needs a leader and there is none.
pub fn resolve(fault: &PlannedFault, members: &[ServerId], leader: Option<ServerId>) -> Option<Resolved> {
    let mut rng = ChaCha8Rng::seed_from_u64(fault.draw);
    let any = members.choose(&mut rng).copied()?;
    let resolved = match fault.kind {
        Nemesis::PartitionLeader => cut_off(members, leader?, leader),
        Nemesis::PartitionOne => cut_off(members, any, leader),
        Nemesis::PartitionHalves => halves(members, &mut rng, leader),
        Nemesis::KillLeader => stop("kill", members, &[leader?], leader),
        Nemesis::KillOne => stop("kill", members, &[any], leader),
        Nemesis::KillAll => stop("kill", members, members, leader),
        Nemesis::PauseLeader => stop("pause", members, &[leader?], leader),
    };
    Some(resolved)
}

/// More than half of `members`.
fn quorum(members: &[ServerId]) -> usize {
    members.len() / 2 + 1
}

fn cut_off(members: &[ServerId], target: ServerId, leader: Option<ServerId>) -> Resolved {
    let rest = without(members, &[target]);
    cut(members, vec![target], rest, leader)
}

fn halves(members: &[ServerId], rng: &mut ChaCha8Rng, leader: Option<ServerId>) -> Resolved {
    let mut shuffled = members.to_vec();
    shuffled.shuffle(rng);
    let mut minority = shuffled.split_off(quorum(members));
    minority.sort_unstable();
    shuffled.sort_unstable();
    cut(members, minority, shuffled, leader)
}

fn cut(
    members: &[ServerId],
    minority: Vec<ServerId>,
    rest: Vec<ServerId>,
    leader: Option<ServerId>,
) -> Resolved {
    let sentence = format!("partition {} from {}", names(&minority, leader), names(&rest, leader));
    let majority_side = if rest.len() >= quorum(members) { rest.clone() } else { Vec::new() };
    Resolved {
        targets: minority.clone(),
        action: Action::Cut(Cut::between(&[minority, rest], Severing::Silence)),
        sentence,
        majority_side,
    }
}

fn stop(verb: &str, members: &[ServerId], targets: &[ServerId], leader: Option<ServerId>) -> Resolved {
    let rest = without(members, targets);
    let targets = targets.to_vec();
    let action = match verb {
        "pause" => Action::Pause { members: targets.clone() },
        _ => Action::Kill { members: targets.clone() },
    };
    Resolved {
        sentence: format!("{verb} {}", names(&targets, leader)),
        targets,
        action,
        majority_side: if rest.len() >= quorum(members) { rest } else { Vec::new() },
    }
}

fn without(members: &[ServerId], targets: &[ServerId]) -> Vec<ServerId> {
    members.iter().copied().filter(|member| !targets.contains(member)).collect()
}

fn names(members: &[ServerId], leader: Option<ServerId>) -> String {
    let name = |member: &ServerId| {
        let role = if Some(*member) == leader { " (leader)" } else { "" };
        format!("n{}{role}", member.0)
    };
    members.iter().map(name).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn five() -> Vec<ServerId> {
        (1..=5).map(ServerId).collect()
    }

    fn planned(kind: Nemesis, draw: u64) -> PlannedFault {
        PlannedFault { id: "F1".to_owned(), kind, start_ms: 0, hold_ms: 1, draw }
    }

    #[test]
    fn the_leader_is_cut_off_from_all_others() {
        let fault =
            resolve(&planned(Nemesis::PartitionLeader, 1), &five(), Some(ServerId(4))).expect("a leader");
        assert_eq!(fault.targets, [ServerId(4)]);
        assert_eq!(fault.sentence, "partition n4 (leader) from n1 n2 n3 n5");
        assert_eq!(fault.majority_side.len(), 4);
    }

    #[test]
    fn a_leader_fault_without_a_leader_has_no_target() {
        for kind in [Nemesis::PartitionLeader, Nemesis::KillLeader, Nemesis::PauseLeader] {
            assert_eq!(resolve(&planned(kind, 1), &five(), None), None);
        }
        assert!(resolve(&planned(Nemesis::KillAll, 1), &five(), None).is_some());
    }

    #[test]
    fn halves_leave_a_quorum_on_one_side_and_lose_nobody() {
        for draw in 0..50 {
            let fault = resolve(&planned(Nemesis::PartitionHalves, draw), &five(), None).expect("halves");
            assert_eq!(fault.targets.len(), 2);
            assert_eq!(fault.majority_side.len(), 3);
            let mut all = [fault.targets, fault.majority_side].concat();
            all.sort_unstable();
            assert_eq!(all, five());
        }
    }

    #[test]
    fn the_same_draw_hits_the_same_member() {
        let hit = |draw| resolve(&planned(Nemesis::KillOne, draw), &five(), None).expect("someone").targets;
        assert_eq!(hit(9), hit(9));
        assert!((0..50).any(|draw| hit(draw) != hit(9)));
    }

    #[test]
    fn no_quorum_remains_when_all_are_killed() {
        let fault = resolve(&planned(Nemesis::KillAll, 1), &five(), Some(ServerId(1))).expect("all");
        assert_eq!(fault.targets, five());
        assert!(fault.majority_side.is_empty());
    }
}
