//! Recipes for applications: handles on the pure machines of `node-recipes`, driven over a
//! [`Keeper`](crate::Keeper).
//!
//! Elections and locks have handles here. All other recipes are driven as they are, by
//! [`Keeper::drive`](crate::Keeper::drive): barriers, queues, shared values, groups, caches, active/standby.
//!
//! ```no_run
//! # async fn take(keeper: &node_client::Keeper) -> Result<(), Box<dyn std::error::Error>> {
//! use node_client::recipes::machines::queue::{Consumer, ConsumerCall, ConsumerTold, set_up};
//!
//! for request in set_up("/jobs") {
//!     // Each may be refused because its znode is there.
//!     let _ = keeper.call(request).await;
//! }
//! let mut consumer = keeper.drive(Consumer::new("/jobs"));
//! consumer.call(ConsumerCall::Claim);
//! while let Some(told) = consumer.next().await {
//!     match told {
//!         ConsumerTold::Item { name, data, .. } => {
//!             println!("{name}: {data:?}");
//!             consumer.call(ConsumerCall::Acknowledge);
//!         }
//!         ConsumerTold::Acknowledged(_) => consumer.call(ConsumerCall::Claim),
//!         other => println!("{other:?}"),
//!     }
//! }
//! # Ok(())
//! # }
//! ```

mod election;
mod holding;
mod lock;

use std::hash::{BuildHasher, Hasher, RandomState};

use node_recipes::names::Guid;

pub use election::{Candidacy, Candidate, Election, Standing};
pub use holding::{Behind, Fenced, Term};
pub use lock::{Contention, Guard, Lock, LockError};
pub use node_recipes as machines;
pub use node_recipes::election::TermEnd;
pub use node_recipes::line::{Left, Token};
pub use node_recipes::names::{Intent, Layout};

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
#[must_use]
pub fn guid() -> Guid {
    let draw = || u128::from(RandomState::new().build_hasher().finish());
    Guid(draw() << 64 | draw())
}
