//! Lives through worlds of candidates, and of processes that stand by, by the thousand: `seeds FROM TO`.

use harness_apps::drawn::live;
use harness_apps::world::Budget;
use harness_apps::{elections, standbys};
use node_recipes::rules::Sound;

const EVERYTHING: Budget = Budget { breaks: 6, stops: 3, leaves: 2, deletions: 1, removals: 1, ticks: 12 };

fn main() {
    let args: Vec<u64> = std::env::args().skip(1).filter_map(|arg| arg.parse().ok()).collect();
    let began = std::time::Instant::now();
    let (from, to) = (args.first().copied().unwrap_or(0), args.get(1).copied().unwrap_or(1000));
    for seed in from..to {
        let apps = 2 + usize::try_from(seed % 4).unwrap_or(0);
        let elections = live(elections::world(apps, 1, &Sound, EVERYTHING), seed, 150);
        let semaphores = live(elections::world(apps + 1, 2, &Sound, EVERYTHING), seed, 150);
        let standing = Budget { removals: 0, ..EVERYTHING };
        let standbys = live(standbys::world(apps, &Sound, standing), seed, 150);
        for (what, lived) in [("election", elections), ("semaphore", semaphores), ("standby", standbys)] {
            if let Some(broken) = lived.broken {
                println!("{what} {seed}: {broken:?}");
            }
        }
    }
    println!("{from}..{to} in {:?}", began.elapsed());
}
