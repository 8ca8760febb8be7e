//! Every planted bug is found: by the look inside, and by what clients saw alone.

use harness_sim::{Options, Rule, Violation, simulate};
use node_core::{Bug, Plant, Planted};

/// Seeds within which the look inside finds each bug.
const WITHIN_INSIDE: u64 = 50;

/// Seeds within which the clients' history alone convicts.
const WITHIN_OUTSIDE: u64 = 400;

fn first<P: Plant>(seeds: u64, look_inside: bool) -> Option<(u64, Violation)> {
    let options = Options { look_inside, ..Options::default() };
    (0..seeds).find_map(|seed| simulate::<P>(seed, options).violation.map(|violation| (seed, violation)))
}

#[test]
fn an_acknowledgement_before_the_fsync_is_found_inside() {
    let found = first::<Planted<{ Bug::AckBeforeFsync as u8 }>>(WITHIN_INSIDE, true);
    assert_eq!(found.expect("found").1.rule, Rule::Durability);
}

#[test]
fn a_commit_on_the_leaders_word_alone_is_found_inside() {
    let found = first::<Planted<{ Bug::CommitAlone as u8 }>>(WITHIN_INSIDE, true);
    assert_eq!(found.expect("found").1.rule, Rule::Durability);
}

#[test]
fn an_acknowledgement_before_the_fsync_is_seen_by_clients() {
    assert!(first::<Planted<{ Bug::AckBeforeFsync as u8 }>>(WITHIN_OUTSIDE, false).is_some());
}

#[test]
fn a_commit_on_the_leaders_word_alone_is_seen_by_clients() {
    assert!(first::<Planted<{ Bug::CommitAlone as u8 }>>(WITHIN_OUTSIDE, false).is_some());
}

#[test]
fn a_sync_without_its_quorum_is_seen_by_clients() {
    let found = first::<Planted<{ Bug::SyncWithoutQuorum as u8 }>>(WITHIN_OUTSIDE, true);
    assert_eq!(found.expect("found").1.rule, Rule::Linearizability);
}
