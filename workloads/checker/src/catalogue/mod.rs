//! The names under which models and conditions are asked for, which of them go together, and one way to ask.
//!
//! Everything else in this crate is typed: a model is a type, a condition a function. Whoever has a file and
//! two words from a command line comes here. What is not in these tables can't be asked for by name, and what
//! is in them is decided: nothing is listed that answers "not yet".

mod confirm;
mod independent;
mod judge;
mod keyed;
mod name;

pub use confirm::{Unconfirmed, confirm_orders};
pub use independent::Records;
pub use judge::{Question, Refusal, confirm, judge};
pub use name::{Condition, ModelName};
