//! The planted bugs of an ensemble that changes, and of quotas, are found, under the rule that names what is wrong.

use std::collections::BTreeSet;

use harness_sim::{Options, Rule, simulate};
use node_core::Bug;

/// Seeds within which the look inside finds each bug.
const WITHIN: u64 = 120;

/// Every rule that the first seeds convict by.
fn rules(bug: Bug, look_inside: bool) -> BTreeSet<Rule> {
    let options = Options { plant: Some(bug), look_inside, ..Options::default() };
    (0..WITHIN).filter_map(|seed| simulate(seed, options).violation.map(|violation| violation.rule)).collect()
}

#[test]
fn a_membership_that_one_quorum_makes_is_found_inside() {
    for bug in [Bug::ReconfigByOld, Bug::NewcomerCounts] {
        let rules = rules(bug, true);
        assert!(rules.contains(&Rule::Membership), "{bug}: {rules:?}");
    }
}

#[test]
fn a_membership_that_is_forgotten_is_found_inside() {
    let rules = rules(Bug::MembershipForgotten, true);
    assert!(rules.contains(&Rule::Membership), "{rules:?}");
}

#[test]
fn elections_by_the_voters_of_yesterday_are_seen_by_operators() {
    let rules = rules(Bug::OldVotersElect, false);
    assert!(rules.contains(&Rule::Liveness), "{rules:?}");
}

#[test]
fn a_hard_limit_that_is_passed_is_found_inside() {
    let rules = rules(Bug::QuotaByOldValue, true);
    assert_eq!(rules, [Rule::Quotas].into());
}

#[test]
fn what_is_not_counted_is_seen_by_clients() {
    let rules = rules(Bug::QuotaForgotten, false);
    assert_eq!(rules, [Rule::Quotas].into());
}
