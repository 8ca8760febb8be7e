//! How many drawn worlds each planted bug of a recipe takes: `hunt MOST`.

use harness_apps::drawn::live;
use harness_apps::mutants::{OF_ELECTIONS, OF_STANDBYS};
use harness_apps::world::{Broken, Budget};
use harness_apps::{elections, standbys};

const EVERYTHING: Budget = Budget { breaks: 6, stops: 3, leaves: 2, deletions: 1, removals: 1, ticks: 12 };

fn main() {
    let most = std::env::args().nth(1).and_then(|most| most.parse().ok()).unwrap_or(20_000);
    println!("| recipe | mutant | what it does | worlds | rule |\n|---|---|---|---|---|");
    for mutant in OF_ELECTIONS {
        let world = |seed| live(elections::world(3, 1, &mutant, EVERYTHING), seed, 150).broken;
        row("election", mutant.name, mutant.does, most, world);
    }
    for mutant in OF_STANDBYS {
        let budget = Budget { removals: 0, deletions: 2, ..EVERYTHING };
        let world = |seed| live(standbys::world(3, &mutant, budget), seed, 150).broken;
        row("standby", mutant.name, mutant.does, most, world);
    }
}

fn row(recipe: &str, name: &str, does: &str, most: u64, world: impl Fn(u64) -> Option<Broken>) {
    match (0..most).find_map(|seed| world(seed).map(|broken| (seed, broken))) {
        Some((seed, broken)) => {
            println!("| {recipe} | {name} | {does} | {} | {} |", seed + 1, broken.rule);
        }
        None => println!("| {recipe} | {name} | {does} | not in {most} | |"),
    }
}
