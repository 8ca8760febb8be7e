//! Elections go on with the voters that the member was started with. Nothing is decided wrongly by that,
//! because discovery counts by itself; but who was removed is waited for, and who joined is not heard.

use node_core::Rules;

use crate::{OPERATORS, Spec, USUAL};

pub(crate) static SPEC: Spec = Spec {
    name: "old-voters-elect",
    origin: "a list of peers that is read once",
    summary: "elections are held with the voters that the member was started with",
    rules: &OldVotersElect,
    recipe: Err(OPERATORS),
    ..USUAL
};

#[derive(Debug)]
struct OldVotersElect;

impl Rules for OldVotersElect {
    fn electorate_changes(&self) -> bool {
        false
    }
}
