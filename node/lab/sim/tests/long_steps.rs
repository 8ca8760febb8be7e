//! Members whose steps work for many peer time-outs.

use lab_sim::{Drawn, Only, Options, Sweep, sweep};

const WORLDS: u64 = 300;

/// Worlds that drew long steps by themselves.
const DRAWN: usize = 60;

/// Where all worlds have long steps.
fn all(pulse: bool) -> Sweep {
    sweep(0..WORLDS, Options { only: Some(Only::LongSteps), pulse, ..Options::default() })
}

/// Where nobody asked for them.
fn drawn(pulse: bool) -> Sweep {
    let seeds = (0..).filter(|seed| Drawn::of_seed(*seed).unit_us > 0).take(DRAWN);
    sweep(seeds, Options { pulse, ..Options::default() })
}

#[test]
fn no_leader_is_given_up_while_it_only_works() {
    for swept in [all(true), drawn(true)] {
        assert!(swept.counters.long_steps > swept.seeds, "{}", swept.counters);
        assert!(swept.counters.spoken_for > swept.counters.long_steps, "{}", swept.counters);
        assert_eq!(swept.violations, []);
    }
}

#[test]
fn without_anybody_who_speaks_for_it_it_is_given_up() {
    for swept in [all(false), drawn(false)] {
        assert_eq!(swept.counters.spoken_for, 0);
        let given_up = |text: &str| text.contains("which has worked for");
        let needless = swept.violations.iter().filter(|(_, violation)| given_up(&violation.sentence)).count();
        assert!(needless > 0, "{:?}", swept.violations);
    }
}

#[test]
fn some_worlds_draw_long_steps_and_no_siege_does() {
    let drawn: Vec<Drawn> = (0..2_000).map(Drawn::of_seed).filter(|drawn| drawn.unit_us > 0).collect();
    assert!((60..200).contains(&drawn.len()), "{} of 2,000", drawn.len());
    assert!(drawn.iter().all(|drawn| !drawn.siege));
}
