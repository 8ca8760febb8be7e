//! Small bounds, and planted bugs: an explorer that finds nothing proves nothing.

use lab_mutants::Mutant;

use super::{Bounds, Explored, Model, explore, explore_from};
use crate::outcome::Rule;

fn mutant(name: &str) -> Mutant {
    Mutant::named(name).expect("a mutant of that name")
}

/// Bounds in which nothing goes wrong by itself.
fn calm() -> Bounds {
    Bounds::default()
}

fn keeps_every_promise(explored: &Explored) {
    assert_eq!(explored.violation, None);
    assert!(explored.exhausted);
}

#[test]
fn an_election_without_faults_is_won_by_the_best_vote_in_every_interleaving() {
    let explored = explore(Model::Election, calm(), None);
    keeps_every_promise(&explored);
    assert!(explored.quiet > 0, "no interleaving came to its end");
}

#[test]
fn an_election_with_a_crash_is_decided_in_every_interleaving() {
    let bounds = Bounds { crashes: 1, ..calm() };
    keeps_every_promise(&explore_from(Model::Election, bounds, None, |start| start == "deposed"));
}

#[test]
fn an_election_in_the_middle_of_a_change_is_won_in_every_interleaving() {
    for start in ["joining", "unawares", "leaving", "lost", "divided"] {
        let explored = explore_from(Model::Election, calm(), None, |name| name == start);
        keeps_every_promise(&explored);
        assert!(explored.quiet > 0, "{start}: no interleaving came to its end");
    }
}

#[test]
fn whatever_elections_decide_the_histories_agree() {
    keeps_every_promise(&explore(Model::Zab, Bounds { elections: 4, proposals: 1, ..calm() }, None));
}

#[test]
fn a_time_out_during_synchronization_breaks_nothing() {
    let bounds = Bounds { timeouts: 1, ..calm() };
    keeps_every_promise(&explore_from(Model::Zab, bounds, None, |start| start == "diverged"));
}

#[test]
fn a_crash_during_synchronization_breaks_nothing() {
    let bounds = Bounds { crashes: 1, ..calm() };
    keeps_every_promise(&explore_from(Model::Zab, bounds, None, |start| start == "snapshots"));
}

#[test]
fn a_search_that_gave_up_says_so() {
    let explored = explore(Model::Zab, Bounds { max_states: 100, ..calm() }, None);
    assert_eq!((explored.exhausted, explored.states < 110), (false, true));
}

#[test]
fn a_search_comes_to_the_same_every_time() {
    let bounds = Bounds { proposals: 1, ..calm() };
    let figures = || {
        let explored = explore(Model::Zab, bounds, None);
        (explored.states, explored.transitions, explored.quiet, explored.deepest)
    };
    assert_eq!(figures(), figures());
}

#[test]
fn a_commit_on_the_leaders_word_alone_is_found_and_told_in_a_few_lines() {
    let explored = explore(Model::Zab, Bounds { proposals: 1, ..calm() }, Some(mutant("commit-alone")));
    let found = explored.violation.expect("found");
    assert_eq!(found.rule, Rule::Durability);
    assert_eq!(found.path.last().map(String::as_str), Some("a client asks s1 for a session"));
    assert_eq!(found.path.len(), 14, "{:#?}", found.path);
}

#[test]
fn an_acknowledgement_before_the_fsync_is_found() {
    let explored = explore(Model::Zab, Bounds { proposals: 1, ..calm() }, Some(mutant("ack-before-fsync")));
    assert_eq!(explored.violation.expect("found").rule, Rule::Durability);
}
