//! Recipes for applications: handles on the pure machines of `node-recipes`, driven over a
//! [`Keeper`](crate::Keeper).

mod election;
mod holding;
mod lock;

use std::hash::{BuildHasher, Hasher, RandomState};

use node_recipes::names::Guid;

pub use election::{Candidacy, Candidate, Election, Standing};
pub use holding::{Fenced, Term};
pub use lock::{Guard, Lock, LockError};
pub use node_recipes::election::TermEnd;
pub use node_recipes::line::{Left, Token};
pub use node_recipes::names::Layout;

use crate::OpError;

/// Why a recipe could not begin.
#[derive(Clone, Debug, thiserror::Error)]
pub enum RecipeError {
    /// There is no such resource. It is made by whoever owns it: see [`Election::create`].
    #[error("there is no {0}: create it first")]
    NoResource(String),
    /// The ensemble could not be asked.
    #[error(transparent)]
    Failed(#[from] OpError),
}

/// A number that nobody else has: the hasher's keys are drawn from the system's chance.
fn guid() -> Guid {
    let draw = || u128::from(RandomState::new().build_hasher().finish());
    Guid(draw() << 64 | draw())
}
