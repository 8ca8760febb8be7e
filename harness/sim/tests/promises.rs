//! The clean member keeps its promises in every world that is tried, and the worlds are worth trying.

use harness_sim::{Options, sweep};

/// Worlds per test run. The long sweeps are the example's.
const SEEDS: u64 = 300;

#[test]
fn the_clean_member_breaks_no_promise_and_much_happens() {
    let sweep = sweep(0..SEEDS, Options::default());
    assert_eq!(sweep.violations, []);
    let counters = sweep.counters;
    for (name, count) in [
        ("elections", counters.elections),
        ("commits", counters.commits),
        ("crashes", counters.crashes),
        ("power losses", counters.power_losses),
        ("crashes in the middle of a step", counters.mid_step_crashes),
        ("crashes in the middle of a store operation", counters.mid_store_crashes),
        ("torn tails", counters.torn_tails),
        ("DIFF", counters.diff),
        ("TRUNC", counters.trunc),
        ("SNAP", counters.snap),
        ("snapshots", counters.snapshots),
        ("pauses", counters.pauses),
        ("partitions", counters.partitions),
        ("resumed sessions", counters.resumed),
        ("unknown outcomes", counters.unknown),
        ("ephemerals", counters.visits),
        ("elements of sets", counters.adds),
        ("elements of lists", counters.appends),
    ] {
        assert!(count >= SEEDS / 20, "{name}: only {count} in {SEEDS} seeds");
    }
    assert!(counters.ok > 20 * SEEDS, "the load is too weak: {} operations", counters.ok);
}
