//! Applications over the real protocol: clean recipes keep their promises, and each planted bug of a recipe
//! that can show there is found.
//!
//! Bounds are several times what each needs today, as for the members' bugs.

use lab_sim::recipe_mutants::OF_ELECTIONS;
use lab_sim::{Only, Options, Rule, simulate, sweep};

/// Worlds per test run.
const SEEDS: u64 = 200;

const WORLDS: Options = Options {
    mutant: None,
    trace: false,
    look_inside: true,
    progress: true,
    only: Some(Only::Applications),
    pulse: true,
    recipe: None,
};

#[test]
fn sound_recipes_break_no_promise_and_much_happens() {
    let sweep = sweep(0..SEEDS, WORLDS);
    assert_eq!(sweep.violations, []);
    let counters = sweep.counters;
    for (name, count) in [
        ("candidacies", counters.candidacies),
        ("terms", counters.terms),
        ("terms that ended", counters.terms_over),
        ("actions", counters.actions),
        ("robberies", counters.robberies),
        ("sessions that expired", counters.expired),
        ("sessions that went on", counters.resumed),
    ] {
        assert!(count >= SEEDS, "{name}: only {count} in {SEEDS} seeds");
    }
}

/// Looks from a seed on for the first world that convicts recipes with this bug.
fn convicted(name: &str, from: u64, within: u64, rules: &[Rule]) {
    let recipe = OF_ELECTIONS.into_iter().find(|mutant| mutant.name == name).expect("a bug of that name");
    let options = Options { recipe: Some(recipe), ..WORLDS };
    let found = (from..from + within).find_map(|seed| Some((seed, simulate(seed, options).violation?)));
    let (seed, violation) = found.unwrap_or_else(|| panic!("{name} was not found in {within} seeds"));
    assert!(rules.contains(&violation.rule), "{name}, seed {seed}: {violation}");
}

#[test]
fn a_herd_is_found() {
    convicted("herd", 0, 50, &[Rule::NoHerd]);
}

#[test]
fn who_leads_without_another_look_at_the_line_is_found() {
    convicted("stale-children", 0, 50, &[Rule::OneLeads, Rule::TokensGrow, Rule::OneLeadsAtLast]);
}

#[test]
fn who_makes_a_znode_twice_is_found() {
    convicted("no-guid", 0, 60, &[Rule::NothingLeft, Rule::OneLeadsAtLast]);
}

#[test]
fn a_resignation_that_is_not_made_again_is_found() {
    convicted("forgotten-resignation", 0, 60, &[Rule::NothingLeft, Rule::OneLeadsAtLast]);
}

#[test]
fn a_znode_that_is_made_after_its_contender_left_is_found() {
    convicted("create-after-close", 0, 60, &[Rule::NothingLeft, Rule::OneLeadsAtLast]);
}

#[test]
fn a_term_that_outlasts_its_session_is_found() {
    convicted("leads-after-expiry", 0, 100, &[Rule::OneLeads]);
    convicted("leads-for-ever", 0, 100, &[Rule::OneLeads]);
}

#[test]
fn a_token_that_begins_anew_with_its_resource_is_found() {
    convicted("token-from-the-number", 0, 100, &[Rule::TokensGrow]);
}

#[test]
fn a_watch_that_was_lost_or_never_left_is_found() {
    convicted("lost-watch-on-resume", 20, 200, &[Rule::OneLeadsAtLast]);
    convicted("watch-without-looking", 30, 200, &[Rule::OneLeadsAtLast]);
}

#[test]
fn who_does_not_mind_the_end_of_its_znode_is_found() {
    convicted("own-node-unknown", 60, 200, &[Rule::NothingLeft, Rule::OneLeadsAtLast]);
}
