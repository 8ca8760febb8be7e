//! Active and standby, explored.

use lab_apps::explore::explore;
use lab_apps::standbys::{scripted, world};
use lab_apps::world::Budget;
use node_recipes::rules::Sound;

#[test]
fn two_processes_and_one_broken_connection_in_every_order() {
    let budget = Budget { breaks: 1, ticks: 1, ..Budget::default() };
    let explored = explore(world(2, &Sound, budget).prompt(), 200_000);
    assert_eq!(explored.broken, None);
    assert!(explored.whole, "{} states are not all", explored.states);
}

#[test]
fn a_breadcrumb_that_comes_late_hides_nobody_from_being_fenced() {
    assert_eq!(scripted(&Sound), None);
}
