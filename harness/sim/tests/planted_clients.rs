//! The planted bugs of broadcast, log, sessions and snapshots are found: by the look inside, under the rule that
//! names what is wrong, and by what clients and operators see alone.

use std::collections::BTreeSet;

use harness_sim::{Options, Rule, simulate};
use node_core::Bug;

/// Seeds within which the look inside finds each bug.
const WITHIN_INSIDE: u64 = 120;

/// Seeds within which what is seen outside finds each bug.
const WITHIN_OUTSIDE: u64 = 300;

/// The rule that the first conviction goes by.
fn first(bug: Bug, seeds: u64, look_inside: bool) -> Option<Rule> {
    let options = Options { plant: Some(bug), look_inside, ..Options::default() };
    (0..seeds).find_map(|seed| simulate(seed, options).violation.map(|violation| violation.rule))
}

/// Every rule that the first seeds convict by.
fn rules(bug: Bug, seeds: u64) -> BTreeSet<Rule> {
    let options = Options { plant: Some(bug), ..Options::default() };
    (0..seeds).filter_map(|seed| simulate(seed, options).violation.map(|violation| violation.rule)).collect()
}

fn is_seen_outside(bug: Bug) {
    assert!(first(bug, WITHIN_OUTSIDE, false).is_some(), "{bug} was not seen from outside");
}

#[test]
fn a_log_with_a_hole_is_found_inside() {
    assert_eq!(first(Bug::LogHole, WITHIN_INSIDE, true), Some(Rule::Vouching));
    let rules = rules(Bug::LogHole, WITHIN_INSIDE);
    assert!(rules.contains(&Rule::Durability), "{rules:?}");
}

#[test]
fn zxids_that_run_on_from_the_last_epoch_are_found_inside() {
    assert_eq!(first(Bug::ZxidReuse, WITHIN_INSIDE, true), Some(Rule::Numbering));
}

#[test]
fn a_counter_that_runs_over_into_the_epoch_is_found_inside() {
    assert_eq!(first(Bug::ZxidRollover, WITHIN_INSIDE, true), Some(Rule::Numbering));
}

#[test]
fn a_snapshot_that_misses_a_change_is_found_inside() {
    let found = first(Bug::SnapshotMissesChange, WITHIN_INSIDE, true);
    assert!(matches!(found, Some(Rule::Agreement | Rule::SameTree | Rule::SessionsExact)), "{found:?}");
}

#[test]
fn a_forwarded_write_that_is_applied_twice_is_found_inside() {
    assert_eq!(first(Bug::DoubleApply, WITHIN_INSIDE, true), Some(Rule::Requests));
}

#[test]
fn a_refusal_out_of_order_is_found_inside() {
    assert_eq!(first(Bug::EarlyCasRefusal, WITHIN_INSIDE, true), Some(Rule::Requests));
}

#[test]
fn a_sequential_name_that_is_given_twice_is_seen_by_clients() {
    assert_eq!(first(Bug::SequentialTwice, WITHIN_OUTSIDE, false), Some(Rule::UniqueNames));
}

#[test]
fn an_ephemeral_that_survives_its_session_is_found_inside() {
    let found = first(Bug::EphemeralSurvives, WITHIN_INSIDE, true);
    assert!(matches!(found, Some(Rule::Agreement | Rule::SameTree | Rule::SessionsExact)), "{found:?}");
}

#[test]
fn an_ephemeral_that_dies_before_its_session_is_found_inside() {
    assert_eq!(first(Bug::EphemeralDiesEarly, WITHIN_INSIDE, true), Some(Rule::Requests));
}

#[test]
fn a_session_that_a_follower_lets_expire_is_found_inside() {
    let rules = rules(Bug::FollowerExpires, WITHIN_INSIDE);
    assert!(rules.contains(&Rule::Expiry), "{rules:?}");
}

#[test]
fn bugs_of_the_log_and_of_zxids_are_seen_outside() {
    for bug in [Bug::LogHole, Bug::ZxidReuse, Bug::ZxidRollover, Bug::SnapshotMissesChange] {
        is_seen_outside(bug);
    }
}

#[test]
fn bugs_of_requests_are_seen_outside() {
    for bug in [Bug::DoubleApply, Bug::EarlyCasRefusal] {
        is_seen_outside(bug);
    }
}

#[test]
fn bugs_of_sessions_are_seen_outside() {
    for bug in [Bug::EphemeralSurvives, Bug::EphemeralDiesEarly, Bug::FollowerExpires] {
        is_seen_outside(bug);
    }
}

#[test]
fn what_watches_must_be_told_is_demanded_of_clients() {
    for bug in [Bug::WatchAfterReply, Bug::WatchForgetsPast, Bug::WatchNotSpent] {
        assert_eq!(first(bug, WITHIN_OUTSIDE, false), Some(Rule::Watches), "{bug}");
    }
}

#[test]
fn a_multi_that_is_done_in_part_is_seen_by_clients() {
    // By whoever meets it first: a scout that reads a half, or a prober that is told of one.
    let rule = first(Bug::MultiInPart, WITHIN_OUTSIDE, false);
    assert!(matches!(rule, Some(Rule::Whole | Rule::LawfulAnswers)), "{rule:?}");
}

#[test]
fn a_node_that_is_reaped_though_it_was_written_is_found_inside() {
    assert_eq!(first(Bug::TtlFromBirth, WITHIN_INSIDE, true), Some(Rule::Reaping));
}

#[test]
fn bugs_that_the_frozen_list_taught_are_found() {
    for (bug, within, rules) in [
        (Bug::StallsWithoutTwo, 50, [Rule::Liveness].as_slice()),
        (Bug::MoveIsNoLife, 200, &[Rule::Expiry]),
        (Bug::ParentUnderWay, 50, &[Rule::Requests, Rule::Lawful]),
        (Bug::ListsLostInSnap, 50, &[Rule::Lawful]),
        // It takes two members of five whose old connections are half open at once, and a crash of who has nothing.
        (Bug::TwoVoices, 2_000, &[Rule::Durability]),
    ] {
        let found = first(bug, within, true);
        assert!(found.is_some_and(|rule| rules.contains(&rule)), "{bug}: {found:?} within {within} seeds");
    }
}
