//! The planted bugs of an ensemble that changes, and of quotas, are found, under the rule that names what is
//! wrong.

use std::collections::BTreeSet;

use lab_mutants::Mutant;
use lab_sim::{Options, Rule, simulate};

fn mutant(name: &str) -> Mutant {
    Mutant::named(name).expect("a mutant of that name")
}

/// Seeds within which the look inside finds each bug.
const WITHIN: u64 = 120;

/// Every rule that the first seeds convict by.
fn rules(bug: Mutant, look_inside: bool) -> BTreeSet<Rule> {
    let options = Options { mutant: Some(bug), look_inside, ..Options::default() };
    (0..WITHIN).filter_map(|seed| simulate(seed, options).violation.map(|violation| violation.rule)).collect()
}

#[test]
#[ignore = "long: .ci/nightly runs it, and the gate hunts these bugs in worlds of all kinds"]
fn a_membership_that_one_quorum_makes_is_found_inside() {
    for bug in [mutant("reconfig-by-old"), mutant("newcomer-counts")] {
        let rules = rules(bug, true);
        assert!(rules.contains(&Rule::Membership), "{bug}: {rules:?}");
    }
}

#[test]
fn a_membership_that_is_forgotten_is_found_inside() {
    let rules = rules(mutant("membership-forgotten"), true);
    assert!(rules.contains(&Rule::Membership), "{rules:?}");
}

#[test]
fn elections_by_the_voters_of_yesterday_are_seen_by_operators() {
    let rules = rules(mutant("old-voters-elect"), false);
    assert!(rules.contains(&Rule::Liveness), "{rules:?}");
}

#[test]
#[ignore = "long: .ci/nightly runs it, and the gate hunts these bugs in worlds of all kinds"]
fn a_hard_limit_that_is_passed_is_found_inside() {
    let rules = rules(mutant("quota-by-old-value"), true);
    assert_eq!(rules, [Rule::Quotas].into());
}

#[test]
#[ignore = "long: .ci/nightly runs it, and the gate hunts these bugs in worlds of all kinds"]
fn what_is_not_counted_is_seen_by_clients() {
    let rules = rules(mutant("quota-forgotten"), false);
    assert_eq!(rules, [Rule::Quotas].into());
}
