//! Whichever disk operation of a member fails, and however: nothing durable is lost, nothing acknowledged is
//! lost, and the ensemble goes on.

use lab_sim::{Counters, DiskFailure, Scenario, sweep_disk};

/// Every operation of a scenario, failing in each way.
fn every_operation_fails(scenario: Scenario) -> Counters {
    let mut counters = Counters::default();
    for failure in DiskFailure::ALL {
        let swept = sweep_disk(scenario, failure);
        println!("{scenario:?} {failure:?}: {} operations", swept.operations);
        assert_eq!(swept.violations, [], "{scenario:?} {failure:?}");
        assert!(swept.operations > 50, "{scenario:?} {failure:?}: only {} operations", swept.operations);
        counters += swept.counters;
    }
    counters
}

#[test]
fn recovery_survives_every_failure() {
    assert!(every_operation_fails(Scenario::Recover).restarts > 0);
}

#[test]
fn appending_survives_every_failure() {
    assert!(every_operation_fails(Scenario::Append).commits > 0);
}

#[test]
fn rolling_survives_every_failure() {
    assert!(every_operation_fails(Scenario::Roll).commits > 0);
}

#[test]
fn truncation_survives_every_failure() {
    assert!(every_operation_fails(Scenario::Truncate).truncations > 100);
}

#[test]
fn installation_survives_every_failure() {
    assert!(every_operation_fails(Scenario::Install).installs > 100);
}

#[test]
fn snapshots_and_purging_survive_every_failure() {
    assert!(every_operation_fails(Scenario::Snapshot).snapshots > 100);
}

#[test]
fn changes_of_the_epoch_survive_every_failure() {
    assert!(every_operation_fails(Scenario::Epochs).elections > 100);
}
