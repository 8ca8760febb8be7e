//! The kinds of members that scripts of this suite can start: sound ones, and every mutant.

use lab_mutants::Mutant;
use node_core::io::{Now, Recovered};
use node_core::{Config, Factory, Machine, Zab};

/// A member that just started.
pub(crate) fn start(
    kind: Option<&str>,
    config: Config,
    found: Recovered,
    now: Now,
) -> Result<Box<dyn Machine>, String> {
    let Some(kind) = kind else { return Ok(Zab.start(config, found, now)) };
    let mutant = Mutant::named(kind).ok_or_else(|| format!("no mutant is called {kind}"))?;
    Ok(mutant.start(config, found, now))
}
