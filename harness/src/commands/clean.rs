//! `harness clean`: removes what a killed harness left.

use std::path::Path;

use anyhow::Context;

use super::print;
use crate::exit::{Exit, Failure};
use crate::store::sweep;

/// Sweeps, and says what was done.
pub fn clean(store: &Path) -> Result<Exit, Failure> {
    let swept = sweep::sweep_everywhere(store).with_context(|| format!("sweeping {}", store.display()))?;
    let mut text = if swept.is_empty() { "nothing was left behind".to_owned() } else { swept.sentence() };
    for folder in &swept.folders {
        text.push_str(&format!("\n  {}", folder.display()));
    }
    if swept.alive > 0 {
        text.push_str(&format!("\n{} left alone", crate::num::plural(swept.alive, "living run")));
    }
    if let Some(trouble) = &swept.trouble {
        text.push_str(&format!("\nthe Docker engine was not swept: {trouble}"));
    }
    text.push('\n');
    print(&text)?;
    Ok(Exit::Done)
}
