//! The kinds of members that scripts of this suite can start: one.

use node_core::io::{Now, Recovered};
use node_core::{Config, Factory, Machine, Zab};

/// A member that just started.
pub(crate) fn start(
    kind: Option<&str>,
    config: Config,
    found: Recovered,
    now: Now,
) -> Result<Box<dyn Machine>, String> {
    match kind {
        None => Ok(Zab.start(config, found, now)),
        Some(kind) => Err(format!("no kind of member is called {kind}")),
    }
}
