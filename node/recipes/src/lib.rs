//! Recipes: what services build on a coordination ensemble.
//!
//! Each is a pure state machine ([`recipe::Recipe`]) over a session's requests and events. The async client
//! drives them for applications, and the simulator drives the same code through losses and expiries by the
//! thousand.
//!
//! - [`election`]: one leads, in terms with a token that grows and an end that comes in time.
//! - [`line`](mod@line): a place in a line, under elections, locks and semaphores.
//! - [`names`]: how contenders name their znodes, as other libraries do.
//! - [`rules`]: the decisions that are one rule each.

pub mod election;
pub mod line;
pub mod names;
pub mod recipe;
pub mod rules;
