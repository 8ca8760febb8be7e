//! Every planted bug of a recipe is found, and sound recipes are not accused.

use lab_apps::hunt::{WORLDS, accused, hunt};

#[test]
fn sound_recipes_break_no_rule_in_drawn_worlds() {
    for seed in 0..2000 {
        assert_eq!(accused(seed), [], "seed {seed}");
    }
}

#[test]
fn every_planted_bug_is_found() {
    let missed: Vec<_> = hunt(WORLDS).filter(|hunted| hunted.found.is_none()).collect();
    assert!(missed.is_empty(), "{missed:?}");
}
