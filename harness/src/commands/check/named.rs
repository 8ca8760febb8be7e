//! Models and conditions by the names that people type.

use checker::catalogue::{Condition, ModelName};

use crate::exit::Failure;
use crate::text::suggest;

/// The model that is meant by a name.
pub(super) fn model(name: &str) -> Result<ModelName, Failure> {
    ModelName::from_name(name).ok_or_else(|| unknown("model", name, &ModelName::ALL.map(ModelName::name)))
}

/// The condition that is meant by a name.
pub(super) fn condition(name: &str) -> Result<Condition, Failure> {
    Condition::from_name(name).ok_or_else(|| unknown("condition", name, &Condition::ALL.map(Condition::name)))
}

fn unknown(what: &str, name: &str, names: &[&str]) -> Failure {
    Failure::usage(format!(
        "--{what} {name}: there is no such {what}{}. `harness list {what}s` says more about {}",
        suggest::hint(name, names),
        names.join(", ")
    ))
}
