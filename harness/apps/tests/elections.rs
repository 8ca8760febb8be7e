//! Elections, explored and drawn; and that each planted bug is found.

use harness_apps::drawn::live;
use harness_apps::elections::world;
use harness_apps::explore::explore;
use harness_apps::mutants::OF_ELECTIONS;
use harness_apps::world::Budget;
use node_recipes::rules::Sound;

/// What may go wrong in a drawn world.
const EVERYTHING: Budget = Budget { breaks: 6, stops: 3, leaves: 2, deletions: 1, removals: 1, ticks: 12 };

#[test]
fn two_candidates_and_one_broken_connection_in_every_order() {
    let budget = Budget { breaks: 1, ticks: 1, ..Budget::default() };
    let explored = explore(world(2, 1, &Sound, budget).prompt(), 400_000);
    assert_eq!(explored.broken, None);
    println!("{} states, {} settled, whole: {}", explored.states, explored.settled, explored.whole);
}

#[test]
fn sound_candidates_break_no_rule_in_drawn_worlds() {
    for seed in 0..2000 {
        let candidates = 2 + usize::try_from(seed % 4).expect("small");
        let lived = live(world(candidates, 1, &Sound, EVERYTHING), seed, 150);
        assert_eq!(lived.broken, None, "seed {seed}: {:?}", lived.events);
    }
}

#[test]
fn every_planted_bug_is_found() {
    let mut missed = Vec::new();
    for mutant in OF_ELECTIONS {
        let found =
            (0..20_000).find(|seed| live(world(3, 1, &mutant, EVERYTHING), *seed, 150).broken.is_some());
        match found {
            Some(seed) => {
                let lived = live(world(3, 1, &mutant, EVERYTHING), seed, 150);
                println!("{}: world {seed}, {:?}", mutant.name, lived.broken);
            }
            None => missed.push(mutant.name),
        }
    }
    assert!(missed.is_empty(), "{missed:?}");
}
