//! Models and conditions by the names that people type.

use checker::catalogue::{Condition, ModelName};

use crate::exit::Failure;
use crate::text::suggest;

/// The model that is meant by a name.
pub(super) fn model(name: &str) -> Result<ModelName, Failure> {
    ModelName::from_name(name).ok_or_else(|| {
        let names = ModelName::ALL.map(ModelName::name);
        Failure::usage(format!(
            "--model {name}: there is no such model{}. `harness list models` says more about {}",
            suggest::hint(name, &names),
            names.join(", ")
        ))
    })
}

/// The condition that is meant by a name.
pub(super) fn condition(name: &str) -> Result<Condition, Failure> {
    Condition::from_name(name).ok_or_else(|| {
        let names = Condition::ALL.map(Condition::name);
        Failure::usage(format!(
            "--condition {name}: there is no such condition{}. `harness list conditions` says more about {}",
            suggest::hint(name, &names),
            names.join(", ")
        ))
    })
}
