//! Scenarios come out as they say, and disks are read as they are written.

use harness_protocols::Id;
use harness_protocols::entry::{Playable, Played};
use harness_protocols::explore::Bounds;
use harness_protocols::script::Script;
use lab_zab::ZAB;
use workloads::Op;
use workloads::op::{Body, Object};

fn members(mutant: Option<&str>) -> Box<dyn Playable> {
    (ZAB.make)(mutant).expect("the members themselves, or a mutant of that name")
}

fn play(name: &str, text: &str) -> Played {
    let script = Script::read(text).unwrap_or_else(|why| panic!("{name}: {why}"));
    members(script.plant.as_deref()).play(name, &script)
}

#[test]
fn every_scenario_comes_out_as_it_says() {
    for scenario in ZAB.scenarios {
        let played = play(scenario.name, scenario.script);
        assert_eq!(played.right, Ok(()), "{}:\n{}", scenario.name, played.lines.join("\n"));
        let says = |word: &str| scenario.script.contains(word);
        assert!(says("\nlook ") || says("\nbreaks "), "{} says what comes out", scenario.name);
    }
}

#[test]
fn an_answer_is_what_was_written() {
    let through = ZAB.scenarios.iter().find(|scenario| scenario.name == "write-through-follower");
    let played = play("", through.expect("it is there").script);
    let lines = played.lines.join("\n");
    assert!(lines.contains("s1 answers 1: 7"), "{lines}");
    assert!(lines.ends_with("s2 answers 2: 7"), "{lines}");
}

/// What is wrong with a disk.
fn refused(disk: &str) -> String {
    let played = play("", &format!("protocol zab\ns1 holds: {disk}\n"));
    played.right.expect_err("that is no disk").to_string()
}

#[test]
fn a_disk_that_no_member_can_have_is_refused() {
    assert_eq!(refused("epoch x"), "line 2: epoch x: an epoch is a number");
    assert_eq!(refused("epoch 1, log 1.2 1.1"), "line 2: 1.1: zxids count from 1 and ascend");
    assert_eq!(refused("epoch 1, log 1.0"), "line 2: 1.0: zxids count from 1 and ascend");
    assert_eq!(
        refused("epoch 2, log 1.1 to 2.3"),
        "line 2: to 2.3: a range is of one epoch, and begins with a zxid"
    );
    assert_eq!(refused("log 1.1"), "line 2: a log of epoch 1 is held with `epoch 1` or a later one");
    assert!(refused("nothing").contains("a disk is"));
}

/// A follower that crashes between its log and its currentEpoch looks again with the old one.
#[test]
fn what_was_not_synced_is_lost_with_a_crash() {
    let text = "protocol zab\n\
                members 3\n\
                disks wait\n\
                s1,s2 hold: epoch 1, log 1.1 1.2\n\
                s3 holds: epoch 1, log 1.1\n\
                s1 is down\n\
                s2 > s3: vote for s2\n\
                s3 > s2: vote for s2\n\
                s3 > s2: FOLLOWERINFO 1\n\
                s2 syncs\n\
                s2 > s3: LEADERINFO 2\n\
                s3 syncs\n\
                s3 > s2: ACKEPOCH 1, 1.1\n\
                s2 syncs\n\
                s2 > s3: DIFF 1.2, PROPOSAL 1.2, NEWLEADER 2\n\
                s3 crashes, keeps 1\n\
                s3 starts\n\
                s3 > s2: vote for s3, 1.2, round 1\n\
                look nobody leads; delivered nothing\n";
    assert_eq!(play("", text).right, Ok(()));
}

/// Two members, each asked once.
fn two() -> Bounds {
    let ask = |id| (Id(id), Op::new(Object::REGISTER, 0, Body::Write { value: i64::from(id) }));
    Bounds { asks: vec![ask(1), ask(2)], ..Bounds::default() }
}

#[test]
fn every_interleaving_of_two_members_breaks_nothing() {
    let found = members(None).explore(2, &two(), None);
    println!("{} states", found.states);
    assert!(found.whole && found.broken.is_none(), "{:?}", found.broken);
}

#[test]
fn an_interleaving_finds_two_leaders_where_half_is_a_quorum() {
    let bug = Some("half-quorum");
    let found = members(bug).explore(2, &two(), bug);
    let (broken, script) = found.broken.expect("two leaders");
    println!("{} states: {broken}\n{script}", found.states);
    assert_eq!(broken.rule, "one-leader");
    // What was found is a script, which comes out as it says.
    assert_eq!(play("", &script).right, Ok(()), "{script}");
}
