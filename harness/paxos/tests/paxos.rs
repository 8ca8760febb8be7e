//! Scenarios come out as they say, worlds of the clean roles break nothing, and every mutant is found.

#[path = "../examples/duels.rs"]
mod duels;
#[path = "../examples/figures.rs"]
mod figures;

use harness_paxos::multi::MultiPaxos;
use harness_paxos::voters::MEMBERS;
use harness_paxos::{MULTI_PAXOS, PAXOS};
use harness_protocols::entry::{Entry, Mutant, Playable};
use harness_protocols::explore::Bounds;
use harness_protocols::hunt::{Limits, accused, hunt};
use harness_protocols::script::Script;
use harness_protocols::world::Options;
use harness_protocols::{Configuration, Id, Request, Step};
use harness_world::dice::Dice;
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

#[test]
fn every_mutant_is_found_where_the_clean_roles_are_not_accused() {
    let limits = Limits { worlds: 5_000, states: 300_000 };
    let all = [PAXOS, MULTI_PAXOS];
    let mutants = all.iter().flat_map(|entry| entry.mutants.iter().map(move |mutant| (entry, mutant)));
    let mut missed = Vec::new();
    for (entry, Mutant { name, about }) in mutants {
        match hunt(entry, name, limits, &|| false) {
            Some((shown, broken)) => {
                println!("{} {name}: {shown:?}: {broken}", entry.name);
                let row = format!("| {} {name} | {about} | {} |", entry.name, broken.rule);
                assert!(MUTANTS.contains(&row), "MUTANTS.md: print it again, as it says; it has no {row}");
                assert_eq!(accused(entry, shown, limits), None, "{name}: the clean roles");
            }
            None => missed.push((entry.name, *name)),
        }
    }
    assert!(missed.is_empty(), "not found: {missed:?}");
}

#[test]
fn every_interleaving_of_two_proposers_and_three_acceptors_agrees() {
    let found = made(&PAXOS, None).explore(3, &Bounds::duel(), None);
    println!("{} states", found.states);
    assert!(found.whole && found.broken.is_none(), "{:?}", found.broken);
    for bug in ["no-adoption", "accepts-anything", "no-promise"] {
        let found = made(&PAXOS, Some(bug)).explore(3, &Bounds::duel(), Some(bug));
        let (broken, script) = found.broken.unwrap_or_else(|| panic!("{bug}: {} states", found.states));
        println!("{bug}: {} states, {broken}\n{script}", found.states);
        // What was found is a script, which comes out as it says.
        let played = made(&PAXOS, Some(bug)).play(bug, &Script::read(&script).expect("a script"));
        assert_eq!(played.right, Ok(()), "{script}");
    }
}

/// Whatever may happen next, by the dice, where members change again and again.
fn walk(alpha: u32, seed: u64) -> Configuration<MultiPaxos> {
    let mut dice = Dice::new(seed);
    let mut log = Configuration::new(MultiPaxos { alpha, ..MultiPaxos::of(None) }, 3, false);
    Id::all(3).for_each(|id| drop(log.apply(&Step::Start(id), 0, &mut |_| 0)));
    for number in 1..=600 {
        let mut steps: Vec<Step<MultiPaxos>> =
            log.flight().map(|(from, to, message)| Step::Deliver(*from, *to, message.clone())).collect();
        let id = Id(1 + u8::try_from(dice.index(3)).expect("few"));
        let (key, value) = [(MEMBERS, [1, 2, 3, 12, 13, 23, 123][dice.index(7)]), (0, 1)][dice.index(2)];
        let ask = Op::new(Object::REGISTER, key, Body::Write { value });
        // Members that sync are never far behind, and crashes are rare.
        steps.extend((0..6).map(|_| Step::Sync(id)));
        steps.extend((dice.index(4) == 0).then_some(Step::Ask(id, Request(number), ask)));
        steps.extend(log.timers(id).filter(|_| dice.index(3) == 0).map(|timer| Step::Fire(id, timer)));
        steps.extend((dice.index(40) == 0).then_some(Step::Crash(id, 0)));
        steps.extend([Step::Start(id), Step::Start(id)]);
        steps.retain(|step| log.can(step));
        if !steps.is_empty() {
            log.apply(&steps[dice.index(steps.len())], 0, &mut |_| 0);
        }
    }
    log
}

#[test]
fn members_change_while_others_lead_and_crash_and_all_agree() {
    let mut chosen = 0;
    for seed in 0..4_000 {
        let log = walk(1 + u32::try_from(seed % 3).expect("few"), seed);
        assert_eq!(log.broken(), None, "{seed}: {}", log.look());
        chosen += log.look().matches("write 99").count();
    }
    assert!(chosen > 4_000, "{chosen}: members change");
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

/// What the hunt printed.
const MUTANTS: &str = include_str!("../MUTANTS.md");
/// The chapter on both protocols.
const CHAPTER: &str = include_str!("../README.md");

#[test]
fn the_figures_of_the_chapter_are_what_its_commands_draw() {
    let figures = figures::figures().expect("scenarios that can be read");
    for (file, drawn) in figures {
        let kept = std::fs::read_to_string(&file).unwrap_or_default();
        assert!(kept == drawn, "{}: cargo run --package harness-paxos --example figures", file.display());
        let name = file.file_name().and_then(|name| name.to_str()).expect("a name");
        assert!(CHAPTER.contains(&format!("(figures/{name})")), "the chapter does not show {name}");
    }
    let duels = duels::histogram();
    assert!(CHAPTER.contains(&duels), "the chapter's duels are others now:\n{duels}");
}
