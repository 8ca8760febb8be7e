//! By which rules the recipe of an application decides: all of them sound, or one planted bug.

use lab_apps::mutants::Mutant;
use node_recipes::rules::{Rules, Sound};

/// The rules of a recipe, with its bug if it has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct RecipeRules(pub(crate) Option<Mutant>);

macro_rules! asked_of_the_mutant {
    ($($rule:ident)*) => {
        impl Rules for RecipeRules {
            $(fn $rule(&self) -> bool {
                self.0.map_or_else(|| Sound.$rule(), |mutant| mutant.$rule())
            })*
        }
    };
}

asked_of_the_mutant! {
    watches_one_ahead
    looks_again
    minds_a_missing_predecessor
    looks_for_its_own
    syncs_before_it_looks
    ends_with_certainty
    ends_with_the_session
    resigns_until_it_is_known
    deletes_what_was_made_after_it_left
    watches_anew
    token_is_a_place
    minds_its_own
}

#[cfg(test)]
mod tests {
    use lab_apps::mutants::OF_ELECTIONS;

    use super::*;

    #[test]
    fn every_planted_bug_decides_one_rule_or_two_otherwise() {
        let sound = |rules: RecipeRules| {
            [
                rules.watches_one_ahead(),
                rules.looks_again(),
                rules.minds_a_missing_predecessor(),
                rules.looks_for_its_own(),
                rules.syncs_before_it_looks(),
                rules.ends_with_certainty(),
                rules.ends_with_the_session(),
                rules.resigns_until_it_is_known(),
                rules.deletes_what_was_made_after_it_left(),
                rules.watches_anew(),
                rules.token_is_a_place(),
                rules.minds_its_own(),
            ]
            .into_iter()
            .filter(|rule| *rule)
            .count()
        };
        assert_eq!(sound(RecipeRules(None)), 12);
        for mutant in OF_ELECTIONS {
            assert!([10, 11].contains(&sound(RecipeRules(Some(mutant)))), "{}", mutant.name);
        }
    }
}
