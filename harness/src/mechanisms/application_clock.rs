//! Wall clocks of applications, shifted.

use harness_core::mechanism::application_clock::APPLICATION_CLOCK;

use super::Driver;
use super::application::Harms;

/// What does it.
pub(super) const DRIVERS: &[&dyn Driver] = &[&Harms { mechanism: &APPLICATION_CLOCK, can }];

fn can() -> Result<(), String> {
    harness_clock::available().map_err(|unavailable| unavailable.to_string())
}
