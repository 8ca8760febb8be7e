//! Lives through one drawn world of candidates and prints what happens: `live SEED CANDIDATES [MUTANT]`.

use harness_apps::drawn::live;
use harness_apps::elections::world;
use harness_apps::mutants::OF_ELECTIONS;
use harness_apps::world::Budget;
use node_recipes::rules::{Rules, Sound};

const EVERYTHING: Budget = Budget { breaks: 6, stops: 3, leaves: 2, deletions: 1, removals: 1, ticks: 12 };

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let number = |at: usize| args.get(at).and_then(|arg| arg.parse().ok()).unwrap_or(0);
    let mutant = args.get(3).and_then(|name| OF_ELECTIONS.into_iter().find(|mutant| mutant.name == name));
    match mutant {
        Some(mutant) => tell(number(1), number(2), &mutant),
        None => tell(number(1), number(2), &Sound),
    }
}

fn tell<R: Rules + std::hash::Hash + std::fmt::Debug>(seed: u64, candidates: u64, rules: &R) {
    let candidates = usize::try_from(candidates).unwrap_or(3);
    let mut again = world(candidates, 1, rules, EVERYTHING);
    for event in live(world(candidates, 1, rules, EVERYTHING), seed, 150).events {
        again.apply(event);
        println!("{event:?}\n{}", again.describe());
    }
    again.settle();
    println!("at the end\n{}", again.describe());
}
