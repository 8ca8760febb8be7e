//! Members whose steps work for many peer time-outs.

use harness_sim::{Only, Options, sweep};

const WORLDS: u64 = 300;

fn options(pulse: bool) -> Options {
    Options { only: Some(Only::LongSteps), pulse, ..Options::default() }
}

#[test]
fn no_leader_is_given_up_while_it_only_works() {
    let swept = sweep(0..WORLDS, options(true));
    assert!(swept.counters.long_steps > WORLDS, "{}", swept.counters);
    assert!(swept.counters.spoken_for > swept.counters.long_steps, "{}", swept.counters);
    assert_eq!(swept.violations, []);
}

#[test]
fn without_anybody_who_speaks_for_it_it_is_given_up() {
    let swept = sweep(0..WORLDS, options(false));
    assert_eq!(swept.counters.spoken_for, 0);
    let given_up = |text: &str| text.contains("which has worked for");
    let needless = swept.violations.iter().filter(|(_, violation)| given_up(&violation.sentence)).count();
    assert!(needless > 0, "{:?}", swept.violations);
}
