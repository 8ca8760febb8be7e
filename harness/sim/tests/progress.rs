//! A quorum that is connected is led, whatever happens around it.

use harness_sim::{Drawn, Options, sweep};

/// Seeds of which the sieges are lived through.
const SEEDS: u64 = 3_000;

#[test]
#[ignore = "votes for a leader beyond a bridge go round for ever"]
fn a_connected_quorum_is_led_in_every_siege() {
    let sieges = (0..SEEDS).filter(|seed| Drawn::of_seed(*seed).siege);
    let swept = sweep(sieges, Options { progress: true, ..Options::default() });
    assert!(swept.counters.sieges_led > swept.seeds / 4, "a siege is no siege without a fault that lasts");
    assert_eq!(swept.violations, []);
}
