//! A sequential name is numbered by the children that are there.

use node_core::Rules;

use crate::{Recipe, Spec, USUAL};

pub(crate) static SPEC: Spec = Spec {
    name: "sequential-twice",
    origin: "numbering by the count of children",
    summary: "a sequential name is given twice",
    rules: &SequentialTwice,
    recipe: Ok(Recipe { nemesis: "none", workload: "sequential", flags: "--time-limit 10s", tries: 3 }),
    ..USUAL
};

#[derive(Debug)]
struct SequentialTwice;

impl Rules for SequentialTwice {
    fn sequence(&self, _: i32, children: usize) -> i64 {
        i64::try_from(children).unwrap_or(i64::MAX)
    }
}
