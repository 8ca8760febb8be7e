//! Scenarios come out as they say, worlds of the clean roles break nothing, and every mutant is found.

use harness_paxos::{MULTI_PAXOS, PAXOS};
use harness_protocols::entry::{Entry, Playable};
use harness_protocols::explore::Bounds;
use harness_protocols::script::Script;
use harness_protocols::world::Options;
use harness_protocols::{Broken, Id};
use workloads::Op;
use workloads::op::{Body, Object};

fn made(entry: &Entry, bug: Option<&str>) -> Box<dyn Playable> {
    (entry.make)(bug).expect("a bug of that name")
}

#[test]
fn every_scenario_comes_out_as_it_says() {
    for entry in [PAXOS, MULTI_PAXOS] {
        for scenario in entry.scenarios {
            let script =
                Script::read(scenario.script).unwrap_or_else(|why| panic!("{}: {why}", scenario.name));
            let protocol = made(&entry, script.plant.as_deref());
            let played = protocol.play(scenario.name, &script);
            assert_eq!(played.right, Ok(()), "{}:\n{}", scenario.name, played.lines.join("\n"));
            assert!(played.svg.ends_with("</svg>\n"));
        }
    }
}

#[test]
fn worlds_of_the_clean_roles_break_nothing() {
    for (entry, seeds) in [(PAXOS, 300), (MULTI_PAXOS, 60)] {
        let protocol = made(&entry, None);
        let mut acknowledged = 0;
        for seed in 0..seeds {
            let summary = protocol.simulate(seed, Options::default());
            assert_eq!(summary.broken, None, "{} {seed}: {}", entry.name, summary.drawn);
            acknowledged += summary.acknowledged;
        }
        assert!(acknowledged > seeds, "{}: {acknowledged}", entry.name);
    }
}

#[test]
fn a_seed_means_the_same_world_each_time() {
    for entry in [PAXOS, MULTI_PAXOS] {
        let protocol = made(&entry, None);
        for seed in 0..5 {
            let hash = |trace| protocol.simulate(seed, Options { trace, ..Options::default() }).hash;
            assert_eq!(hash(false), hash(true));
        }
    }
}

/// Beyond what it takes to find these.
const ENOUGH: usize = 300_000;

/// One proposer that is asked twice, and crashes.
fn restart() -> Bounds {
    Bounds {
        crashes: 1,
        states: ENOUGH,
        asks: vec![(Id(1), write(1)), (Id(1), write(2))],
        ..Bounds::default()
    }
}

/// What no drawn world is likely to show: every interleaving does.
fn interleavings(bug: &str) -> Option<Bounds> {
    match bug {
        "forgets-round" => Some(restart()),
        "counts-twice" => Some(Bounds { copies: 1, states: ENOUGH, ..duel() }),
        _ => None,
    }
}

/// What finds a mutant, and what it breaks.
fn found(entry: &Entry, bug: &str) -> Option<(String, Broken)> {
    let protocol = made(entry, Some(bug));
    let Some(bounds) = interleavings(bug) else {
        let in_world =
            |seed| Some((format!("seed {seed}"), protocol.simulate(seed, Options::default()).broken?));
        return (0..10_000).find_map(in_world);
    };
    assert!(made(entry, None).explore(3, &bounds, None).broken.is_none(), "{bug}: the clean roles");
    let found = protocol.explore(3, &bounds, Some(bug));
    found.broken.map(|(broken, _)| (format!("{} states", found.states), broken))
}

#[test]
fn every_mutant_is_found() {
    let all = [PAXOS, MULTI_PAXOS];
    let mutants = all.iter().flat_map(|entry| entry.mutants.iter().map(move |mutant| (entry, mutant.name)));
    let mut missed = Vec::new();
    for (entry, name) in mutants {
        match found(entry, name) {
            Some((by, broken)) => println!("{} {name}: {by}: {broken}", entry.name),
            None => missed.push((entry.name, name)),
        }
    }
    assert!(missed.is_empty(), "not found: {missed:?}");
}

fn write(value: i64) -> Op {
    Op::new(Object::REGISTER, 0, Body::Write { value })
}

/// Two proposers, each asked once.
fn duel() -> Bounds {
    Bounds { asks: vec![(Id(1), write(1)), (Id(2), write(2))], ..Bounds::default() }
}

#[test]
fn every_interleaving_of_two_proposers_and_three_acceptors_agrees() {
    let found = made(&PAXOS, None).explore(3, &duel(), None);
    println!("{} states", found.states);
    assert!(found.whole && found.broken.is_none(), "{:?}", found.broken);
    for bug in ["no-adoption", "accepts-anything", "no-promise"] {
        let found = made(&PAXOS, Some(bug)).explore(3, &duel(), Some(bug));
        let (broken, script) = found.broken.unwrap_or_else(|| panic!("{bug}: {} states", found.states));
        println!("{bug}: {} states, {broken}\n{script}", found.states);
        // What was found is a script, which comes out as it says.
        let played = made(&PAXOS, Some(bug)).play(bug, &Script::read(&script).expect("a script"));
        assert_eq!(played.right, Ok(()), "{script}");
    }
}

#[test]
fn what_a_world_breaks_is_a_small_script() {
    let protocol = made(&PAXOS, Some("no-adoption"));
    let broken = |seed: &u64| protocol.simulate(*seed, Options::default()).broken.is_some();
    let seed = (0..3_000).find(broken).expect("a world");
    let text = protocol.script_of(seed, Some("no-adoption")).expect("a script");
    println!("{text}");
    assert!(text.lines().count() < 90, "{text}");
    assert_eq!(protocol.play("", &Script::read(&text).expect("a script")).right, Ok(()));
}
