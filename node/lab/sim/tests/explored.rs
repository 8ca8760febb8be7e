//! Planted bugs that exhaustive exploration finds, each within small bounds and a second or two.

use lab_mutants::Mutant;
use lab_sim::{Bounds, Model, Rule, explore_from};

fn mutant(name: &str) -> Mutant {
    Mutant::named(name).expect("a mutant of that name")
}

/// Explores from one start, and gives the promise that was broken and the length of the path to it.
fn found(model: Model, bounds: Bounds, bug: Mutant, start: &str) -> (Rule, usize) {
    let explored = explore_from(model, bounds, Some(bug), |name| name == start);
    let counterexample = explored.violation.unwrap_or_else(|| panic!("{bug} was not found"));
    (counterexample.rule, counterexample.path.len())
}

#[test]
fn half_of_the_voters_make_two_leaders_of_one_epoch() {
    let bounds = Bounds { members: 2, ..Bounds::default() };
    assert_eq!(found(Model::Zab, bounds, mutant("half-quorum"), "empty"), (Rule::Leadership2, 4));
}

#[test]
fn votes_without_their_epoch_elect_another_than_the_best() {
    let (rule, _) = found(Model::Election, Bounds::default(), mutant("ignore-peer-epoch"), "deposed");
    assert_eq!(rule, Rule::Liveness);
}

#[test]
fn a_leader_of_an_older_epoch_contradicts_the_logs_of_a_newer_one() {
    let (rule, _) = found(Model::Zab, Bounds::default(), mutant("ignore-peer-epoch"), "diverged");
    assert_eq!(rule, Rule::Halt);
}

#[test]
fn votes_of_another_round_elect_whom_nobody_voted_for_in_this_one() {
    let bounds = Bounds { timeouts: 1, ..Bounds::default() };
    let (rule, _) = found(Model::Election, bounds, mutant("count-other-round"), "deposed");
    assert_eq!(rule, Rule::Liveness);
}

#[test]
fn an_epoch_that_is_forgotten_is_promised_twice() {
    let bounds = Bounds { crashes: 1, elections: 4, ..Bounds::default() };
    let (rule, _) = found(Model::Zab, bounds, mutant("epoch-forgotten"), "empty");
    assert_eq!(rule, Rule::Leadership2);
}

#[test]
fn a_history_that_is_acknowledged_early_is_not_on_the_disks_of_a_quorum() {
    let (rule, _) = found(Model::Zab, Bounds::default(), mutant("ack-newleader-early"), "proposed");
    assert_eq!(rule, Rule::Durability);
}

#[test]
fn an_epoch_that_is_written_before_its_log_wins_with_less_than_was_committed() {
    let bounds = Bounds { crashes: 1, elections: 4, ..Bounds::default() };
    let (rule, _) = found(Model::Zab, bounds, mutant("epoch-before-log"), "proposed");
    assert_eq!(rule, Rule::Durability);
}

#[test]
fn a_log_that_is_cut_too_far_loses_what_was_committed() {
    let bounds = Bounds { proposals: 1, ..Bounds::default() };
    let (rule, _) = found(Model::Zab, bounds, mutant("trunc-too-far"), "diverged");
    assert_eq!(rule, Rule::Durability);
}

#[test]
fn a_leader_that_does_not_abdicate_is_left_over_by_every_fair_course() {
    let bounds = Bounds { losses: 2, ..Bounds::default() };
    let (rule, _) = found(Model::Whole, bounds, mutant("no-abdication"), "behind");
    assert_eq!(rule, Rule::Liveness);
}
