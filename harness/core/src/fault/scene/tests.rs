//! Every nemesis resolved on every size of ensemble, with many draws.

use std::time::Duration;

use super::*;
use crate::fault::application::Thing;
use crate::fault::own::{Own, Whom};
use crate::fault::{Nemesis, topology};
use crate::mechanism::clock::{Clock, show_offset};
use crate::mechanism::replace::Replace;

const ONE: Server = Server::new("one", "other");
const OTHER: Server = ONE.other();
/// The shortest and the longest shift of a clock.
const BUMP: (Duration, Duration) = (Duration::from_millis(100), Duration::from_millis(262_144));

static ONE_KIND: BTreeMap<MemberId, Server> = BTreeMap::new();
static NOBODY: BTreeSet<MemberId> = BTreeSet::new();

const DRAWS: u64 = 60;

fn members(count: u64) -> Vec<MemberId> {
    (1..=count).map(MemberId).collect()
}

fn five() -> Vec<MemberId> {
    members(5)
}

fn on(kind: Nemesis, draw: u64, members: &[MemberId], leader: Option<u64>) -> Option<Resolved> {
    let in_force = InForce::default();
    let scene = Scene {
        members,
        voters: members,
        leader: leader.map(MemberId),
        in_force: &in_force,
        servers: &ONE_KIND,
        replaced: &NOBODY,
        loses_unsynced: false,
        holder: None,
    };
    kind.resolve(draw, draw, &scene)
}

fn hit(kind: Nemesis, draw: u64, leader: u64) -> Resolved {
    on(kind, draw, &five(), Some(leader)).expect("a target")
}

fn kill(members: &[u64]) -> Action {
    let members = members.iter().copied().map(MemberId).collect();
    Kill { members, loses_unsynced: false }.into()
}

fn pairs(resolved: &Resolved) -> Vec<Pair> {
    resolved.action.of::<Cut>().expect("a cut").pairs.clone()
}

fn one_way(pairs: &[Pair]) -> bool {
    pairs.iter().all(|pair| !pairs.contains(&pair.back()))
}

fn both_ways(pairs: &[Pair]) -> bool {
    pairs.iter().all(|pair| pairs.contains(&pair.back()))
}

/// Every kind on every size on which it is allowed, with every leader and many draws.
fn everything(mut look: impl FnMut(Nemesis, &[MemberId], MemberId, &Resolved)) {
    // A replacement needs other kinds of servers, harm to an application needs one: both have own tests.
    let of_members = |kind: &Nemesis| *kind != Nemesis::REPLACE_ROLLING && !kind.hits_applications();
    for kind in Nemesis::ALL.iter().copied().filter(of_members) {
        for count in u64::from(kind.fewest_nodes().0)..=9 {
            let members = members(count);
            for draw in 0..DRAWS {
                let leader = 1 + draw % count;
                let resolved = on(kind, draw, &members, Some(leader)).expect("a target");
                look(kind, &members, MemberId(leader), &resolved);
            }
        }
    }
}

#[test]
fn the_leader_is_cut_off_from_all_others() {
    let fault = hit(Nemesis::PARTITION_LEADER, 1, 4);
    assert_eq!(fault.targets, [MemberId(4)]);
    assert_eq!(fault.sentence, "partition n4 (leader) from n1 n2 n3 n5");
    assert_eq!(fault.majority_side.len(), 4);
    assert!(both_ways(&pairs(&fault)));
}

#[test]
fn a_leader_is_deaf_and_mute_in_turn_and_the_sentence_says_which() {
    let deaf = hit(Nemesis::PARTITION_ONEWAY, 2, 3);
    assert_eq!(deaf.sentence, "n3 (leader) deaf: hears none of n1 n2 n4 n5");
    assert_eq!(pairs(&deaf), [(1, 3), (2, 3), (4, 3), (5, 3)].map(Pair::from));
    let mute = hit(Nemesis::PARTITION_ONEWAY, 3, 3);
    assert_eq!(mute.sentence, "n3 (leader) mute: none of n1 n2 n4 n5 hears it");
    assert_eq!(pairs(&mute), [(3, 1), (3, 2), (3, 4), (3, 5)].map(Pair::from));
    for fault in [deaf, mute] {
        assert!(one_way(&pairs(&fault)) && fault.leader_fault);
        assert_eq!(fault.majority_side, [1, 2, 4, 5].map(MemberId));
        assert_eq!(fault.sides.len(), 2);
    }
}

#[test]
fn a_bridge_connects_two_halves_that_do_not_hear_each_other() {
    for count in 3..=9 {
        let members = members(count);
        for draw in 0..DRAWS {
            let fault = on(Nemesis::PARTITION_BRIDGE, draw, &members, Some(1)).expect("a bridge");
            let bridge = fault.targets[0];
            let cut = pairs(&fault);
            assert!(cut.iter().all(|pair| pair.from != bridge && pair.to != bridge));
            let [smaller, larger] = fault.sides.as_slice() else { panic!("two sides") };
            assert!(smaller.len() <= larger.len() && larger.len() - smaller.len() <= 1);
            assert_eq!(cut.len(), 2 * smaller.len() * larger.len());
            assert_eq!(smaller.len() + larger.len() + 1, members.len());
            assert!(!fault.majority_side.is_empty(), "the bridge itself could lead");
        }
    }
    let bridged: std::collections::BTreeSet<MemberId> =
        (0..DRAWS).map(|draw| hit(Nemesis::PARTITION_BRIDGE, draw, 1).targets[0]).collect();
    assert_eq!(bridged.len(), 5, "everybody is the bridge at some time");
}

#[test]
fn in_a_ring_the_leader_keeps_its_quorum_and_everybody_is_a_side() {
    for count in 4..=9 {
        let members = members(count);
        for draw in 0..DRAWS {
            let fault = on(Nemesis::PARTITION_RING, draw, &members, Some(2)).expect("a ring");
            assert!(!fault.leader_fault);
            assert!(fault.majority_side.contains(&MemberId(2)));
            assert!(fault.majority_side.len() >= topology::quorum(members.len()));
            assert!(fault.majority_side.len() < members.len());
            assert_eq!(fault.sides.len(), members.len());
        }
    }
}

#[test]
fn a_rejected_leader_is_cut_off_by_resets() {
    let fault = hit(Nemesis::REJECT_LEADER, 1, 4);
    assert_eq!(fault.sentence, "reject n4 (leader) from n1 n2 n3 n5: connections are reset");
    assert_eq!(fault.action.of::<Cut>().expect("a cut").how, Severing::Reject);
}

#[test]
fn resets_are_asked_for_in_both_directions_only() {
    everything(|_, _, _, fault| {
        if let Some(cut) = fault.action.of::<Cut>()
            && cut.how == Severing::Reject
        {
            assert!(both_ways(&cut.pairs));
        }
    });
}

#[test]
fn clocks_are_bumped_both_ways_over_all_magnitudes_and_the_leaders_every_other_time() {
    let mut forth = 0;
    let mut below_ten_seconds = 0;
    for draw in 0..400 {
        let fault = hit(Nemesis::CLOCK_BUMP, draw, 3);
        let Clock { members, offset_ns } = fault.action.of().expect("a clock");
        let offset = Duration::from_nanos(offset_ns.unsigned_abs());
        assert!(offset >= BUMP.0 && offset <= BUMP.1, "{offset:?}");
        assert!(draw % 2 == 1 || *members == [MemberId(3)]);
        forth += u32::from(*offset_ns > 0);
        below_ten_seconds += u32::from(offset < Duration::from_secs(10));
    }
    // Of 3.4 decades 2 lie below ten seconds.
    assert!((150..250).contains(&forth) && (190..280).contains(&below_ten_seconds), "{below_ten_seconds}");
    assert_eq!(show_offset(-1_250_000_000), "-1.250 s");
    assert_eq!(show_offset(262_144_000_000), "+262.144 s");
}

#[test]
fn a_leader_fault_without_a_leader_has_no_target() {
    for kind in [
        Nemesis::PARTITION_LEADER,
        Nemesis::PARTITION_ONEWAY,
        Nemesis::REJECT_LEADER,
        Nemesis::KILL_LEADER,
        Nemesis::PAUSE_LEADER,
    ] {
        assert_eq!(on(kind, 1, &five(), None), None);
    }
    for kind in [Nemesis::KILL_ALL, Nemesis::PARTITION_RING, Nemesis::PARTITION_BRIDGE, Nemesis::CLOCK_BUMP] {
        assert!(on(kind, 2, &five(), None).is_some());
    }
}

/// What takes the leader from its quorum whatever is drawn.
const AIMED_AT_THE_LEADER: [Nemesis; 6] = [
    Nemesis::PARTITION_LEADER,
    Nemesis::PARTITION_ONEWAY,
    Nemesis::REJECT_LEADER,
    Nemesis::KILL_LEADER,
    Nemesis::KILL_ALL,
    Nemesis::PAUSE_LEADER,
];

#[test]
fn whoever_is_aimed_at_the_leader_deposes_it_and_others_only_when_they_hit_it() {
    everything(|kind, members, leader, fault| {
        if AIMED_AT_THE_LEADER.contains(&kind) {
            assert!(fault.leader_fault, "{kind:?} with {} members", members.len());
        }
        if kind == Nemesis::PARTITION_ONE {
            let hit = fault.targets == [leader] || members.len() == 2;
            assert_eq!(fault.leader_fault, hit, "{}", fault.sentence);
        } else if kind == Nemesis::PARTITION_HALVES {
            assert_eq!(fault.leader_fault, fault.targets.contains(&leader), "{}", fault.sentence);
        } else if [Nemesis::PARTITION_RING, Nemesis::CLOCK_BUMP].contains(&kind) {
            assert!(!fault.leader_fault);
        }
    });
}

#[test]
fn sides_and_majority_are_of_the_ensemble_and_the_majority_is_one() {
    everything(|kind, members, _, fault| {
        let all: Vec<MemberId> = fault.sides.concat();
        assert!(all.iter().all(|member| members.contains(member)));
        assert!(fault.sides.iter().all(|side| !side.is_empty()));
        assert!(fault.sides.len() != 1);
        assert!(
            fault.majority_side.is_empty() || fault.majority_side.len() >= topology::quorum(members.len()),
            "{kind:?}: {}",
            fault.sentence
        );
        if let Some(cut) = fault.action.of::<Cut>() {
            assert!(cut.pairs.windows(2).all(|pair| pair[0] < pair[1]), "ascending, each once");
            assert!(!cut.pairs.is_empty());
        }
    });
}

#[test]
fn halves_leave_a_quorum_on_one_side_and_lose_nobody() {
    for draw in 0..DRAWS {
        let fault = on(Nemesis::PARTITION_HALVES, draw, &five(), None).expect("halves");
        assert_eq!(fault.targets.len(), 2);
        assert_eq!(fault.majority_side.len(), 3);
        let mut all = [fault.targets, fault.majority_side].concat();
        all.sort_unstable();
        assert_eq!(all, five());
    }
}

#[test]
fn the_same_draw_hits_the_same_member() {
    let hit = |draw| on(Nemesis::KILL_ONE, draw, &five(), None).expect("someone").targets;
    assert_eq!(hit(9), hit(9));
    assert!((0..50).any(|draw| hit(draw) != hit(9)));
}

#[test]
fn whoever_is_killed_as_a_follower_does_not_lead_and_everybody_else_is_at_some_time() {
    let targets: BTreeSet<MemberId> =
        (0..DRAWS).flat_map(|draw| hit(Nemesis::KILL_FOLLOWER, draw, 4).targets).collect();
    assert_eq!(targets, BTreeSet::from([1, 2, 3, 5].map(MemberId)));
    everything(|kind, _, leader, fault| {
        if kind == Nemesis::KILL_FOLLOWER {
            assert!(fault.targets.len() == 1 && fault.targets != [leader], "{}", fault.sentence);
        }
    });
    assert_eq!(on(Nemesis::KILL_FOLLOWER, 1, &five(), None), None, "whoever it is might lead");
}

#[test]
fn no_quorum_remains_when_all_are_killed() {
    let fault = hit(Nemesis::KILL_ALL, 1, 1);
    assert_eq!(fault.targets, five());
    assert!(fault.majority_side.is_empty());
}

#[test]
fn a_process_that_another_fault_holds_is_nobodys_target() {
    let members = five();
    let mut in_force = InForce::only("F1", &kill(&[1]));
    in_force.insert("F2", Pause { members: vec![MemberId(3)] }.into());
    let scene = |leader| Scene {
        members: &members,
        voters: &members,
        leader,
        in_force: &in_force,
        servers: &ONE_KIND,
        replaced: &NOBODY,
        loses_unsynced: false,
        holder: None,
    };
    for draw in 0..DRAWS {
        for kind in [
            Nemesis::KILL_ONE,
            Nemesis::PAUSE_ONE,
            Nemesis::PARTITION_ONE,
            Nemesis::CLOCK_BUMP,
            Nemesis::KILL_ALL,
        ] {
            let fault = kind.resolve(draw, draw, &scene(Some(MemberId(3)))).expect("someone is there");
            assert!(fault.targets.iter().all(|target| ![1, 3].contains(&target.0)), "{}", fault.sentence);
            assert!(fault.sides.concat().iter().all(|member| member.0 != 1), "the dead have no clients");
        }
        assert_eq!(Nemesis::KILL_LEADER.resolve(draw, draw, &scene(Some(MemberId(3)))), None);
    }
    let mut all = in_force.clone();
    all.insert("F3", kill(&[2, 4, 5]));
    let nobody = Scene {
        members: &members,
        voters: &members,
        leader: None,
        in_force: &all,
        servers: &ONE_KIND,
        replaced: &NOBODY,
        loses_unsynced: false,
        holder: None,
    };
    assert_eq!(Nemesis::KILL_ONE.resolve(1, 1, &nobody), None);
}

#[test]
fn a_leader_that_votes_alone_leads_on_after_a_pause() {
    let pause =
        |members: &[MemberId]| on(Nemesis::PAUSE_LEADER, 1, members, Some(1)).expect("a leader").leader_fault;
    assert!(pause(&five()) && !pause(&five()[..1]));
}

#[test]
fn what_remains_of_a_quorum_is_counted_with_the_other_faults() {
    let members = five();
    let in_force = InForce::only("F1", &kill(&[1, 2]));
    let scene = Scene {
        members: &members,
        voters: &members,
        leader: Some(MemberId(4)),
        in_force: &in_force,
        servers: &ONE_KIND,
        replaced: &NOBODY,
        loses_unsynced: false,
        holder: None,
    };
    let fault = Nemesis::PARTITION_LEADER.resolve(1, 1, &scene).expect("a leader");
    assert!(fault.majority_side.is_empty());
    assert!(fault.leader_fault);
}

#[test]
fn a_rolling_replacement_takes_followers_first_and_every_member_once() {
    let members = [1, 2, 3].map(MemberId);
    let in_force = InForce::default();
    let servers = BTreeMap::from([(MemberId(1), ONE), (MemberId(2), ONE), (MemberId(3), OTHER)]);
    let mut replaced = BTreeSet::new();
    for turn in 0..3 {
        let scene = Scene {
            members: &members,
            voters: &members,
            leader: Some(MemberId(2)),
            in_force: &in_force,
            servers: &servers,
            replaced: &replaced,
            loses_unsynced: false,
            holder: None,
        };
        let resolved = Nemesis::REPLACE_ROLLING.resolve(turn, turn, &scene).expect("somebody is to come");
        let target = resolved.targets[0];
        assert_eq!(target == MemberId(2), turn == 2, "the leader comes last");
        assert_eq!(resolved.leader_fault, turn == 2);
        let by = servers[&target].other();
        assert_eq!(resolved.action.of(), Some(&Replace { members: vec![target], by }));
        assert!(replaced.insert(target), "{target:?} twice in a round");
    }
    let nobody_knows = Scene {
        members: &members,
        voters: &members,
        leader: None,
        in_force: &in_force,
        servers: &ONE_KIND,
        replaced: &NOBODY,
        loses_unsynced: false,
        holder: None,
    };
    assert_eq!(Nemesis::REPLACE_ROLLING.resolve(0, 0, &nobody_knows), None);
}

#[test]
fn observers_are_hit_and_counted_for_nothing() {
    let (members, in_force) = (members(5), InForce::default());
    let scene = Scene {
        members: &members,
        voters: &members[..3],
        leader: Some(MemberId(1)),
        in_force: &in_force,
        servers: &ONE_KIND,
        replaced: &NOBODY,
        loses_unsynced: false,
        holder: None,
    };
    let on = |name: &str, draw| {
        let kind = Nemesis::from_name(name).expect("a nemesis");
        kind.resolve(draw, draw, &scene).expect("a target")
    };
    for draw in 0..40 {
        let halves = on("partition-halves", draw);
        let votes = |side: &[MemberId]| side.iter().filter(|member| member.0 <= 3).count();
        assert_eq!((votes(&halves.sides[0]), votes(&halves.sides[1])), (1, 2), "{}", halves.sentence);
        assert_eq!(halves.sides.concat().len(), 5, "every observer is on a side");
        assert!(halves.majority_side.len() >= 2 && votes(&halves.majority_side) == 2);
        assert!(on("partition-bridge", draw).targets[0].0 <= 3);
        assert!([2, 3].contains(&on("kill-follower", draw).targets[0].0));
    }
    let hit: BTreeSet<MemberId> = (0..40).flat_map(|draw| on("kill-one", draw).targets).collect();
    assert_eq!(hit.len(), 5, "observers are killed as well");
    assert!((0..40).any(|draw| on("kill-one", draw).sentence == "kill n5 (observer)"));
    assert!(on("kill-all", 1).leader_fault);
}

#[test]
fn the_holder_is_hit_while_no_other_fault_hits_it_and_no_member_is() {
    let (members, mut in_force) = (five(), InForce::default());
    let holder = Holder { application: 3, thing: Thing::Lock, key: 1, token: 77 };
    let kinds: Vec<Nemesis> = Nemesis::ALL.iter().copied().filter(|kind| kind.hits_applications()).collect();
    assert_eq!(kinds.len(), 4);
    for hit in [false, true] {
        if hit {
            in_force.insert("F1", Harmed { holder, harm: Harm::Cut }.into());
        }
        let scene = |holder| Scene {
            members: &members,
            voters: &members,
            leader: Some(MemberId(1)),
            in_force: &in_force,
            servers: &ONE_KIND,
            replaced: &NOBODY,
            loses_unsynced: false,
            holder,
        };
        for kind in &kinds {
            assert_eq!(kind.resolve(1, 1, &scene(None)), None, "nobody holds");
            let Some(fault) = kind.resolve(1, 1, &scene(Some(holder))) else {
                assert!(hit);
                continue;
            };
            assert!(!hit && fault.targets.is_empty() && !fault.leader_fault);
            assert_eq!(fault.majority_side, members);
            assert!(fault.sentence.contains("application 3, which holds lock 1 by token 77"));
        }
    }
}

#[test]
fn a_fault_of_the_users_own_is_aimed_as_its_file_says_and_deposes_nobody() {
    let own = |whom| Nemesis::from(Own::new("slow", String::new(), whom, true));
    let hit = |whom, draw, leader| on(own(whom), draw, &five(), leader);
    for draw in 0..DRAWS {
        let targets = |whom| hit(whom, draw, Some(2)).expect("a target").targets;
        assert_eq!(targets(Whom::One).len(), 1);
        assert_eq!(targets(Whom::Leader), [MemberId(2)]);
        assert_eq!(targets(Whom::Followers), [1, 3, 4, 5].map(MemberId));
        assert_eq!(targets(Whom::All), five());
    }
    for (whom, needs_leader) in
        [(Whom::One, false), (Whom::Leader, true), (Whom::Followers, true), (Whom::All, false)]
    {
        assert_eq!(own(whom).needs_leader(), needs_leader, "{whom:?}");
        assert_eq!(hit(whom, 1, None).is_none(), needs_leader, "{whom:?}");
    }
    let leader = hit(Whom::Leader, 1, Some(2)).expect("a leader");
    assert_eq!(leader.sentence, "slow n2 (leader)");
    assert!(!leader.leader_fault && leader.sides.is_empty());
    assert_eq!(leader.majority_side, [1, 3, 4, 5].map(MemberId), "it is counted as one that may not serve");
    assert!(hit(Whom::All, 1, Some(2)).expect("all").majority_side.is_empty());
    assert_eq!(hit(Whom::One, 9, None), hit(Whom::One, 9, None), "by the draw");
}

#[test]
fn nemeses_of_the_users_own_stand_behind_the_catalogue_and_apart() {
    let own = |name| Nemesis::from(Own::new(name, String::new(), Whom::One, true));
    let mut all = [own("b"), Nemesis::CLOCK_HOLDER, own("a"), Nemesis::PARTITION_LEADER];
    all.sort_unstable();
    assert_eq!(all, [Nemesis::PARTITION_LEADER, Nemesis::CLOCK_HOLDER, own("a"), own("b")]);
    assert_ne!(own("a").cmp(&own("b")), std::cmp::Ordering::Equal);
}
