//! Every planted bug of elections, discovery and synchronization is found, and by the rule that it breaks.
//!
//! Bounds are several times what each needs today: worlds change with every draw that is added, and a bug that
//! takes ten times as many of them as before is one that the bench is about to lose.

use harness_sim::{Options, Rule, simulate};
use node_core::Bug;

/// Looks from seed 0 on for the first world that convicts a member with this bug.
fn convicted(bug: Bug, within: u64, rules: &[Rule]) {
    let options = Options { plant: Some(bug), ..Options::default() };
    let found = (0..within).find_map(|seed| Some((seed, simulate(seed, options).violation?)));
    let (seed, violation) = found.unwrap_or_else(|| panic!("{bug} was not found in {within} seeds"));
    assert!(rules.contains(&violation.rule), "{bug}, seed {seed}: {violation}");
}

#[test]
fn an_election_that_ignores_peer_epochs_is_found() {
    let rules =
        [Rule::Durability, Rule::PrefixConsistency, Rule::PrimaryIntegrity, Rule::Sessions, Rule::Halt];
    // One world in some hundreds has the two histories that it takes; of 885..3958 fourteen had.
    convicted(Bug::IgnorePeerEpoch, 4_000, &rules);
}

#[test]
fn votes_of_another_round_that_are_counted_are_found() {
    // Who is elected in vain is passed over the next time, and that mends most of what this bug does.
    convicted(Bug::CountOtherRound, 1_000, &[Rule::Liveness]);
}

#[test]
fn a_quorum_of_half_is_found() {
    let rules = [Rule::Durability, Rule::Leadership1, Rule::Leadership2, Rule::Membership];
    convicted(Bug::HalfQuorum, 200, &rules);
}

#[test]
fn an_epoch_that_is_forgotten_is_found() {
    // Where the epoch that stands twice is one without the quorum of its membership, that is seen first.
    let rules = [Rule::Leadership1, Rule::Leadership2, Rule::Membership];
    convicted(Bug::EpochForgotten, 200, &rules);
}

#[test]
fn a_leader_that_does_not_abdicate_is_found() {
    convicted(Bug::NoAbdication, 50, &[Rule::Liveness]);
}

#[test]
fn a_member_that_does_not_start_on_its_own_log_is_found() {
    convicted(Bug::RefusesOwnLog, 20, &[Rule::Halt]);
}

#[test]
fn an_acknowledgement_of_newleader_before_the_history_is_durable_is_found() {
    convicted(Bug::AckNewLeaderEarly, 50, &[Rule::Durability]);
}

#[test]
fn an_epoch_that_is_written_before_its_history_is_found() {
    convicted(Bug::EpochBeforeLog, 50, &[Rule::Vouching]);
}

#[test]
fn a_log_writer_that_outlives_its_role_is_found() {
    convicted(Bug::StaleLogWriter, 100, &[Rule::Vouching]);
}

#[test]
fn a_commit_that_is_lost_before_uptodate_is_found() {
    convicted(Bug::LostCommitInSync, 50, &[Rule::Serving]);
}

#[test]
fn an_acknowledgement_that_overtakes_that_of_newleader_is_found() {
    convicted(Bug::AckOvertakesNewLeader, 300, &[Rule::Liveness]);
}

#[test]
fn a_member_that_serves_before_it_applied_is_found() {
    convicted(Bug::ServeBeforeApply, 50, &[Rule::Serving]);
}

#[test]
fn a_read_that_is_answered_during_synchronization_is_found() {
    convicted(Bug::ReadDuringSync, 50, &[Rule::Serving]);
}

#[test]
fn uncommitted_transactions_in_the_tree_are_found() {
    convicted(
        Bug::UncommittedInMemory,
        50,
        &[Rule::Agreement, Rule::SameTree, Rule::Sessions, Rule::PrefixConsistency],
    );
}

#[test]
fn a_truncation_that_cuts_too_far_is_found() {
    convicted(Bug::TruncTooFar, 50, &[Rule::Vouching, Rule::PrefixConsistency]);
}

#[test]
fn a_truncation_that_cuts_nothing_is_found() {
    convicted(Bug::TruncNotAtAll, 50, &[Rule::Vouching, Rule::PrefixConsistency]);
}

#[test]
fn an_interrupted_snapshot_that_is_trusted_is_found() {
    convicted(Bug::TrustInterruptedSnap, 600, &[Rule::Halt, Rule::Vouching, Rule::PrefixConsistency]);
}
