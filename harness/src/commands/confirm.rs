//! `harness confirm`: holds the order that `check --witness` wrote against the history.

use super::check::witness;
use crate::cli::ConfirmArgs;
use crate::exit::{Exit, Failure};

/// Confirms, or says what does not fit.
pub fn confirm(args: &ConfirmArgs) -> Result<Exit, Failure> {
    witness::confirm(args)
}
