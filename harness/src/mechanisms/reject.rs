//! Resets between members, by what carries their words.

use harness_core::mechanism::reject::REJECT;

use super::Driver;
use super::partition::Cuts;

/// What does it.
pub(super) const DRIVERS: &[&dyn Driver] = &[&Cuts { mechanism: &REJECT }];
