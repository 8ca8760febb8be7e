//! The same seed is the same world.

use lab_sim::{Options, simulate};

#[test]
fn two_runs_of_one_seed_leave_the_same_trace() {
    for seed in 0..6 {
        let options = Options { trace: true, ..Options::default() };
        let (one, other) = (simulate(seed, options), simulate(seed, options));
        assert!(one.trace.len() > 100, "seed {seed} did something");
        assert_eq!(one.trace, other.trace, "seed {seed}");
        assert_eq!(one.trace_hash, other.trace_hash);
        assert_eq!(one.counters, other.counters);
    }
}

#[test]
fn keeping_the_lines_or_looking_inside_changes_nothing() {
    let traced = simulate(3, Options { trace: true, ..Options::default() });
    let plain = simulate(3, Options::default());
    let outside = simulate(3, Options { look_inside: false, ..Options::default() });
    assert_eq!(traced.trace_hash, plain.trace_hash);
    assert_eq!(outside.trace_hash, plain.trace_hash);
    assert!(plain.trace.is_empty());
}

#[test]
fn different_seeds_are_different_worlds() {
    let (one, other) = (simulate(1, Options::default()), simulate(2, Options::default()));
    assert_ne!(one.trace_hash, other.trace_hash);
}
