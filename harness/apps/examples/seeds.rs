//! Lives through worlds of candidates by the thousand: `seeds FROM TO`.

use harness_apps::drawn::live;
use harness_apps::elections::world;
use harness_apps::world::Budget;
use node_recipes::rules::Sound;

const EVERYTHING: Budget = Budget { breaks: 6, stops: 3, leaves: 2, deletions: 1, removals: 1, ticks: 12 };

fn main() {
    let args: Vec<u64> = std::env::args().skip(1).filter_map(|arg| arg.parse().ok()).collect();
    let began = std::time::Instant::now();
    let (from, to) = (args.first().copied().unwrap_or(0), args.get(1).copied().unwrap_or(1000));
    for seed in from..to {
        let candidates = 2 + usize::try_from(seed % 4).unwrap_or(0);
        let lived = live(world(candidates, 1, &Sound, EVERYTHING), seed, 150);
        if let Some(broken) = lived.broken {
            println!("world {seed}: {broken:?}");
        }
    }
    println!("{from}..{to} in {:?}", began.elapsed());
}
