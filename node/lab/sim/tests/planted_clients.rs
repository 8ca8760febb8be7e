//! The planted bugs of broadcast, log, sessions and snapshots are found: by the look inside, under the rule
//! that names what is wrong, and by what clients and operators see alone.

use std::collections::BTreeSet;

use lab_mutants::Mutant;
use lab_sim::{Options, Rule, simulate};

fn mutant(name: &str) -> Mutant {
    Mutant::named(name).expect("a mutant of that name")
}

/// Seeds within which the look inside finds each bug.
const WITHIN_INSIDE: u64 = 120;

/// Seeds within which what is seen outside finds each bug.
const WITHIN_OUTSIDE: u64 = 300;

/// The rule that the first conviction goes by.
fn first(bug: Mutant, seeds: u64, look_inside: bool) -> Option<Rule> {
    let options = Options { mutant: Some(bug), look_inside, ..Options::default() };
    (0..seeds).find_map(|seed| simulate(seed, options).violation.map(|violation| violation.rule))
}

/// Every rule that the first seeds convict by.
fn rules(bug: Mutant, seeds: u64) -> BTreeSet<Rule> {
    let options = Options { mutant: Some(bug), ..Options::default() };
    (0..seeds).filter_map(|seed| simulate(seed, options).violation.map(|violation| violation.rule)).collect()
}

fn is_seen_outside(bug: Mutant) {
    assert!(first(bug, WITHIN_OUTSIDE, false).is_some(), "{bug} was not seen from outside");
}

#[test]
fn a_log_with_a_hole_is_found_inside() {
    assert_eq!(first(mutant("log-hole"), WITHIN_INSIDE, true), Some(Rule::Vouching));
    let rules = rules(mutant("log-hole"), WITHIN_INSIDE);
    assert!(rules.contains(&Rule::Durability), "{rules:?}");
}

#[test]
fn zxids_that_run_on_from_the_last_epoch_are_found_inside() {
    assert_eq!(first(mutant("zxid-reuse"), WITHIN_INSIDE, true), Some(Rule::Numbering));
}

#[test]
fn a_counter_that_runs_over_into_the_epoch_is_found_inside() {
    assert_eq!(first(mutant("zxid-rollover"), WITHIN_INSIDE, true), Some(Rule::Numbering));
}

#[test]
fn a_snapshot_that_misses_a_change_is_found_inside() {
    let found = first(mutant("snapshot-misses-change"), WITHIN_INSIDE, true);
    assert!(matches!(found, Some(Rule::Agreement | Rule::SameTree | Rule::SessionsExact)), "{found:?}");
}

#[test]
fn a_forwarded_write_that_is_applied_twice_is_found_inside() {
    assert_eq!(first(mutant("double-apply"), WITHIN_INSIDE, true), Some(Rule::Requests));
}

#[test]
fn a_refusal_out_of_order_is_found_inside() {
    assert_eq!(first(mutant("early-cas-refusal"), WITHIN_INSIDE, true), Some(Rule::Requests));
}

#[test]
fn a_sequential_name_that_is_given_twice_is_seen_by_clients() {
    assert_eq!(first(mutant("sequential-twice"), WITHIN_OUTSIDE, false), Some(Rule::UniqueNames));
}

#[test]
fn an_ephemeral_that_survives_its_session_is_found_inside() {
    let found = first(mutant("ephemeral-survives"), WITHIN_INSIDE, true);
    assert!(matches!(found, Some(Rule::Agreement | Rule::SameTree | Rule::SessionsExact)), "{found:?}");
}

#[test]
fn an_ephemeral_that_dies_before_its_session_is_found_inside() {
    assert_eq!(first(mutant("ephemeral-dies-early"), WITHIN_INSIDE, true), Some(Rule::Requests));
}

#[test]
fn a_session_that_a_follower_lets_expire_is_found_inside() {
    let rules = rules(mutant("follower-expires"), WITHIN_INSIDE);
    assert!(rules.contains(&Rule::Expiry), "{rules:?}");
}

#[test]
fn bugs_of_the_log_and_of_zxids_are_seen_outside() {
    for bug in
        [mutant("log-hole"), mutant("zxid-reuse"), mutant("zxid-rollover"), mutant("snapshot-misses-change")]
    {
        is_seen_outside(bug);
    }
}

#[test]
fn bugs_of_requests_are_seen_outside() {
    for bug in [mutant("double-apply"), mutant("early-cas-refusal")] {
        is_seen_outside(bug);
    }
}

#[test]
fn bugs_of_sessions_are_seen_outside() {
    for bug in [mutant("ephemeral-survives"), mutant("ephemeral-dies-early"), mutant("follower-expires")] {
        is_seen_outside(bug);
    }
}

#[test]
fn what_watches_must_be_told_is_demanded_of_clients() {
    for bug in [mutant("watch-after-reply"), mutant("watch-forgets-past"), mutant("watch-not-spent")] {
        assert_eq!(first(bug, WITHIN_OUTSIDE, false), Some(Rule::Watches), "{bug}");
    }
}

#[test]
fn a_multi_that_is_done_in_part_is_seen_by_clients() {
    // By whoever meets it first: a watcher that reads a half, or a prober that is told of one.
    let rule = first(mutant("multi-in-part"), WITHIN_OUTSIDE, false);
    assert!(matches!(rule, Some(Rule::Whole | Rule::LawfulAnswers)), "{rule:?}");
}

#[test]
fn a_node_that_is_reaped_though_it_was_written_is_found_inside() {
    assert_eq!(first(mutant("ttl-from-birth"), WITHIN_INSIDE, true), Some(Rule::Reaping));
}

#[test]
#[ignore = "long: .ci/nightly runs it, and the gate hunts these bugs in worlds of all kinds"]
fn bugs_that_the_frozen_list_taught_are_found() {
    for (bug, within, rules) in [
        (mutant("stalls-without-two"), 50, [Rule::Liveness].as_slice()),
        (mutant("move-is-no-life"), 200, &[Rule::Expiry]),
        (mutant("parent-under-way"), 50, &[Rule::Requests, Rule::Lawful]),
        (mutant("lists-lost-in-snap"), 50, &[Rule::Lawful]),
        // It takes two members of five whose old connections are half open at once, and a crash of who has
        // nothing.
        (mutant("two-voices"), 2_000, &[Rule::Durability]),
    ] {
        let found = first(bug, within, true);
        assert!(found.is_some_and(|rule| rules.contains(&rule)), "{bug}: {found:?} within {within} seeds");
    }
}
