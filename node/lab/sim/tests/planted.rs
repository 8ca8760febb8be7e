//! Every planted bug is found: by the look inside, and by what clients saw alone.

use lab_mutants::Mutant;
use lab_sim::{Options, Rule, Violation, simulate};

fn mutant(name: &str) -> Mutant {
    Mutant::named(name).expect("a mutant of that name")
}

/// Seeds within which the look inside finds each bug.
const WITHIN_INSIDE: u64 = 50;

/// Seeds within which the clients' history alone convicts.
const WITHIN_OUTSIDE: u64 = 400;

fn first(bug: Mutant, seeds: u64, look_inside: bool) -> Option<(u64, Violation)> {
    let options = Options { mutant: Some(bug), look_inside, ..Options::default() };
    (0..seeds).find_map(|seed| simulate(seed, options).violation.map(|violation| (seed, violation)))
}

#[test]
fn an_acknowledgement_before_the_fsync_is_found_inside() {
    let found = first(mutant("ack-before-fsync"), WITHIN_INSIDE, true);
    assert_eq!(found.expect("found").1.rule, Rule::Durability);
}

#[test]
fn a_commit_on_the_leaders_word_alone_is_found_inside() {
    let found = first(mutant("commit-alone"), WITHIN_INSIDE, true);
    assert_eq!(found.expect("found").1.rule, Rule::Durability);
}

#[test]
fn an_acknowledgement_before_the_fsync_is_seen_by_clients() {
    assert!(first(mutant("ack-before-fsync"), WITHIN_OUTSIDE, false).is_some());
}

#[test]
fn a_commit_on_the_leaders_word_alone_is_seen_by_clients() {
    assert!(first(mutant("commit-alone"), WITHIN_OUTSIDE, false).is_some());
}

#[test]
fn a_sync_without_its_quorum_is_seen_by_clients() {
    let found = first(mutant("sync-without-quorum"), WITHIN_OUTSIDE, true);
    assert_eq!(found.expect("found").1.rule, Rule::Linearizability);
}
