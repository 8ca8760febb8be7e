//! How many states there are: `every_state CANDIDATES BREAKS STOPS LEAVES DELETIONS REMOVALS TICKS MOST
//! [hears]`.

use lab_apps::elections::world;
use lab_apps::explore::explore;
use lab_apps::world::Budget;
use node_recipes::rules::Sound;

fn main() {
    let args: Vec<usize> = std::env::args().skip(1).filter_map(|arg| arg.parse().ok()).collect();
    let left = |at: usize| args.get(at).and_then(|left| u8::try_from(*left).ok()).unwrap_or(0);
    let budget = Budget {
        breaks: left(1),
        stops: left(2),
        leaves: left(3),
        deletions: left(4),
        removals: left(5),
        ticks: left(6),
    };
    let candidates = args.first().copied().unwrap_or(2);
    let most = args.get(7).copied().unwrap_or(100_000);
    let mut whole = world(candidates, 1, &Sound, budget);
    if std::env::args().all(|arg| arg != "hears") {
        whole = whole.prompt();
    }
    let began = std::time::Instant::now();
    let explored = explore(whole, most);
    println!(
        "{} states, {} let end, whole: {}, {:?}",
        explored.states,
        explored.settled,
        explored.whole,
        began.elapsed()
    );
    if let Some((broken, events)) = explored.broken {
        println!("{broken:?}\n{events:?}");
    }
}
