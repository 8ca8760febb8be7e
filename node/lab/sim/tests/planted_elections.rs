//! Every planted bug of elections, discovery and synchronization is found, and by the rule that it breaks.
//!
//! Bounds are several times what each needs today: worlds change with every draw that is added, and a bug
//! that takes ten times as many of them as before is one that the bench is about to lose.

use lab_mutants::Mutant;
use lab_sim::{Options, Rule, simulate};

fn mutant(name: &str) -> Mutant {
    Mutant::named(name).expect("a mutant of that name")
}

/// Looks from seed 0 on for the first world that convicts a member with this bug.
fn convicted(bug: Mutant, within: u64, rules: &[Rule]) {
    let options = Options { mutant: Some(bug), ..Options::default() };
    let found = (0..within).find_map(|seed| Some((seed, simulate(seed, options).violation?)));
    let (seed, violation) = found.unwrap_or_else(|| panic!("{bug} was not found in {within} seeds"));
    assert!(rules.contains(&violation.rule), "{bug}, seed {seed}: {violation}");
}

#[test]
#[ignore = "long: .ci/nightly runs it, and the gate hunts these bugs in worlds of all kinds"]
fn an_election_that_ignores_peer_epochs_is_found() {
    let rules =
        [Rule::Durability, Rule::PrefixConsistency, Rule::PrimaryIntegrity, Rule::Sessions, Rule::Halt];
    // One world in some hundreds has the two histories that it takes; of 885..3958 fourteen had.
    convicted(mutant("ignore-peer-epoch"), 4_000, &rules);
}

#[test]
fn votes_of_another_round_that_are_counted_are_found() {
    // Who is elected in vain is passed over the next time, and that mends most of what this bug does.
    convicted(mutant("count-other-round"), 1_000, &[Rule::Liveness]);
}

#[test]
fn a_quorum_of_half_is_found() {
    let rules = [Rule::Durability, Rule::Leadership1, Rule::Leadership2, Rule::Membership];
    convicted(mutant("half-quorum"), 200, &rules);
}

#[test]
fn an_epoch_that_is_forgotten_is_found() {
    // Where the epoch that stands twice is one without the quorum of its membership, that is seen first.
    let rules = [Rule::Leadership1, Rule::Leadership2, Rule::Membership];
    convicted(mutant("epoch-forgotten"), 200, &rules);
}

#[test]
fn a_leader_that_does_not_abdicate_is_found() {
    convicted(mutant("no-abdication"), 50, &[Rule::Liveness]);
}

#[test]
fn a_member_that_does_not_start_on_its_own_log_is_found() {
    convicted(mutant("refuses-own-log"), 20, &[Rule::Halt]);
}

#[test]
fn an_acknowledgement_of_newleader_before_the_history_is_durable_is_found() {
    convicted(mutant("ack-newleader-early"), 50, &[Rule::Durability]);
}

#[test]
fn an_epoch_that_is_written_before_its_history_is_found() {
    convicted(mutant("epoch-before-log"), 50, &[Rule::Vouching]);
}

#[test]
fn a_log_writer_that_outlives_its_role_is_found() {
    convicted(mutant("stale-log-writer"), 100, &[Rule::Vouching]);
}

#[test]
fn a_commit_that_is_lost_before_uptodate_is_found() {
    convicted(mutant("lost-commit-in-sync"), 50, &[Rule::Serving]);
}

#[test]
fn an_acknowledgement_that_overtakes_that_of_newleader_is_found() {
    convicted(mutant("ack-overtakes-newleader"), 300, &[Rule::Liveness]);
}

#[test]
fn a_member_that_serves_before_it_applied_is_found() {
    convicted(mutant("serve-before-apply"), 50, &[Rule::Serving]);
}

#[test]
fn a_read_that_is_answered_during_synchronization_is_found() {
    convicted(mutant("read-during-sync"), 50, &[Rule::Serving]);
}

#[test]
fn uncommitted_transactions_in_the_tree_are_found() {
    convicted(
        mutant("uncommitted-in-memory"),
        50,
        &[Rule::Agreement, Rule::SameTree, Rule::Sessions, Rule::PrefixConsistency],
    );
}

#[test]
fn a_truncation_that_cuts_too_far_is_found() {
    convicted(mutant("trunc-too-far"), 50, &[Rule::Vouching, Rule::PrefixConsistency]);
}

#[test]
fn a_truncation_that_cuts_nothing_is_found() {
    convicted(mutant("trunc-not-at-all"), 50, &[Rule::Vouching, Rule::PrefixConsistency]);
}

#[test]
fn an_interrupted_snapshot_that_is_trusted_is_found() {
    convicted(mutant("trust-interrupted-snap"), 600, &[Rule::Halt, Rule::Vouching, Rule::PrefixConsistency]);
}
