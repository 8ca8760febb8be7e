//! The clean member keeps its promises in every world that is tried, and the worlds are worth trying.

use lab_sim::{Options, sweep};

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
        ("crashes while looking", counters.crash_looking),
        ("crashes in discovery", counters.crash_discovery),
        ("crashes in synchronization", counters.crash_synchronization),
        ("crashes in broadcast", counters.crash_broadcast),
        ("crashes of leaders", counters.crash_leader),
        ("power losses", counters.power_losses),
        ("crashes in the middle of a step", counters.mid_step_crashes),
        ("crashes in the middle of a store operation", counters.mid_store_crashes),
        ("torn tails", counters.torn_tails),
        ("DIFF", counters.diff),
        ("TRUNC", counters.trunc),
        ("SNAP", counters.snap),
        ("TRUNC, then DIFF", counters.trunc_then_diff),
        ("snapshots", counters.snapshots),
        ("pauses", counters.pauses),
        ("partitions", counters.partitions),
        ("rings", counters.rings),
        ("bridges", counters.bridges),
        ("deaf leaders", counters.deaf_leaders),
        ("mute leaders", counters.mute_leaders),
        ("swizzles", counters.swizzles),
        ("resets", counters.resets),
        ("slow disks", counters.slow_disks),
        ("failed synchronizations", counters.failed_syncs),
        ("full disks", counters.full_disks),
        ("processes without space", counters.full_disk_ends),
        ("rotten disks that were refused", counters.rot_refused),
        ("rotten disks without harm", counters.rot_harmless),
        ("wall clocks that jumped", counters.wall_jumps),
        ("wall clocks that drifted", counters.wall_drifts),
        ("suspensions", counters.suspensions),
        ("resumed sessions", counters.resumed),
        ("unknown outcomes", counters.unknown),
        ("ephemerals", counters.visits),
        ("elements of sets", counters.adds),
        ("elements of lists", counters.appends),
        ("changes of ensembles", counters.reconfigurations),
        ("changes that were refused", counters.unreconfigured),
        ("memberships", counters.memberships),
        ("looks at what a quota counts", counters.usages),
        ("writes beyond hard limits", counters.beyond_limits),
        ("writes of local sessions", counters.local_writes),
    ] {
        assert!(count >= SEEDS / 20, "{name}: only {count} in {SEEDS} seeds");
    }
    for (name, count) in [
        ("crashes in discovery, as set", counters.trap_discovery),
        ("crashes in the middle of an installation", counters.trap_installing),
        ("crashes behind an installation", counters.trap_installed),
        ("crashes before currentEpoch", counters.trap_appended),
        ("crashes between currentEpoch and the acknowledgement", counters.trap_epoch_stored),
        ("crashes behind UPTODATE", counters.trap_up_to_date),
        ("crashes in the middle of a truncation", counters.trap_truncating),
        ("crashes in the middle of a snapshot", counters.mid_snapshot_crashes),
        ("bad snapshots that were stepped over", counters.skipped_snapshots),
        ("epochs that were used up", counters.full_epochs),
        ("sieges", counters.sieges_led),
        ("answers of members without a leader", counters.lone_answers),
    ] {
        assert!(count >= SEEDS / 100, "{name}: only {count} in {SEEDS} seeds");
    }
    assert!(counters.ok > 20 * SEEDS, "the load is too weak: {} operations", counters.ok);
}
