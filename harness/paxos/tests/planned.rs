//! Multi-Paxos in a world that a run of the bench drives: what members say, and what is seen of it.

use harness_core::condition::{Condition, LinkCondition};
use harness_core::cut::{Pair, Severing};
use harness_core::seed;
use harness_core::virtual_ensemble::{Process, Setting, VirtualEnsemble};
use runs::events::{Event, Said};
use runs::member::MemberId;
use workloads::{Kind, Params, Workload};

const MEMBERS: [MemberId; 3] = [MemberId(1), MemberId(2), MemberId(3)];
/// Long enough for an election, in virtual time.
const SECOND_US: u64 = 1_000_000;

fn world(bug: Option<&'static str>) -> Box<dyn VirtualEnsemble> {
    let setting = Setting {
        seed: 7,
        members: MEMBERS.len(),
        observers: 0,
        peer_timeout_ms: 125,
        session_timeout_ms: 10_000,
        operation_timeout_us: 500_000,
        clients: 3,
        bug,
    };
    let workload = Workload::new(Kind::REGISTER, Params::of_keys(1), seed::stream(7, "operations"));
    let protocol = (harness_paxos::MULTI_PAXOS.make)(bug).expect("a protocol");
    let mut world = protocol.begin(&setting, workload.expect("a workload"));
    MEMBERS.into_iter().for_each(|member| world.start(member));
    world
}

/// Lives on for a while; what members said meanwhile.
fn said(world: &mut dyn VirtualEnsemble, for_us: u64) -> Vec<(u64, Event)> {
    let until = world.now_us() + for_us;
    let mut all = Vec::new();
    loop {
        let more = world.advance(until);
        all.extend(world.take_events().into_iter().map(|stamped| (stamped.node.0, stamped.event)));
        if !more {
            return all;
        }
    }
}

fn established(all: &[(u64, Event)]) -> Vec<(u64, u64, u32)> {
    let established = all.iter().filter_map(|(member, event)| match event {
        Event::Said(Said::Established { leader, epoch }) => Some((*member, *leader, *epoch)),
        _ => None,
    });
    established.collect()
}

#[test]
fn the_highest_member_leads_and_the_next_one_does_when_it_is_killed() {
    let mut world = world(None);
    let mut first = established(&said(&mut *world, SECOND_US));
    first.sort_unstable();
    assert_eq!(first, [(1, 3, 1003), (2, 3, 1003), (3, 3, 1003)]);
    let killed = Condition::Ended { member: MEMBERS[2], loses_unsynced: true };
    world.impose(killed);
    assert_eq!(world.process(MEMBERS[2]), Process::Gone);
    let second = established(&said(&mut *world, SECOND_US));
    assert!(second.iter().all(|(member, leader, epoch)| *member != 3 && *leader == 2 && *epoch > 1003));
    assert!(second.len() >= 2, "both follow: {second:?}");
    world.lift(killed);
    let third = established(&said(&mut *world, SECOND_US));
    assert_eq!(third.iter().filter(|(_, leader, _)| *leader == 3).count(), 3, "{third:?}");
}

#[test]
fn a_link_is_free_when_every_fault_on_it_is_lifted() {
    let mut world = world(None);
    let pair = Pair::new(MEMBERS[0], MEMBERS[1]);
    let severed =
        |how| Condition::Link(pair, LinkCondition { severed: Some(how), ..LinkCondition::default() });
    for how in [Severing::Silence, Severing::Reject] {
        world.impose(severed(how));
        assert!(!world.passes(pair) && world.passes(pair.back()));
    }
    let before = world.delivered(pair);
    said(&mut *world, SECOND_US);
    assert_eq!(world.delivered(pair), before, "nothing passes");
    world.lift(severed(Severing::Silence));
    assert!(!world.passes(pair), "it still rejects");
    world.lift(severed(Severing::Reject));
    assert!(world.passes(pair));
}

#[test]
fn who_stands_still_says_nothing_and_goes_on_with_what_came() {
    let mut world = world(None);
    said(&mut *world, SECOND_US);
    let stopped = Condition::Stopped(MEMBERS[2]);
    world.impose(stopped);
    world.impose(stopped);
    assert_eq!(world.process(MEMBERS[2]), Process::Stopped);
    let meanwhile = said(&mut *world, SECOND_US);
    let own = meanwhile.iter().filter(|(member, event)| *member == 3 && *event != Event::Paused);
    assert_eq!(own.count(), 0);
    world.lift(stopped);
    assert_eq!(world.process(MEMBERS[2]), Process::Stopped, "another fault still holds it");
    world.lift(stopped);
    assert_eq!(world.process(MEMBERS[2]), Process::Running);
    let after = established(&said(&mut *world, SECOND_US));
    assert!(after.iter().any(|(member, leader, _)| *member == 3 && *leader == 3), "{after:?}");
}

#[test]
fn the_same_calls_give_the_same_world() {
    let lived = || {
        let mut world = world(None);
        world.begin_load(Box::new((1..500).map(|number| number * 1_000)));
        let events = said(&mut *world, SECOND_US);
        let lines: Vec<String> = world.take_lines().iter().map(|line| format!("{line:?}")).collect();
        (world.trace_hash(), events, lines)
    };
    let (first, second) = (lived(), lived());
    assert_eq!(first, second);
    assert!(first.2.len() > 500, "clients were served: {}", first.2.len());
}
