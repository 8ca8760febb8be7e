//! Elections, explored and drawn.

use lab_apps::elections::world;
use lab_apps::explore::explore;
use lab_apps::world::Budget;
use node_recipes::rules::Sound;

#[test]
fn two_candidates_and_one_broken_connection_in_every_order() {
    let budget = Budget { breaks: 1, ticks: 1, ..Budget::default() };
    let explored = explore(world(2, 1, &Sound, budget).prompt(), 200_000);
    assert_eq!(explored.broken, None);
    assert!(explored.whole, "{} states are not all", explored.states);
}
