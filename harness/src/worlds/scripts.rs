//! A failing world made small, and a small world lived through again.
//!
//! A script is a text with one line for each transition; how a world becomes one and how it is shrunk is the
//! simulator's. Here it is only asked for, and saved.

use std::path::{Path, PathBuf};

use anyhow::Context;
use lab_mutants::Mutant;
use lab_sim::{Options, Rule};
pub use lab_sim::{Replayed, Script, Shrunk};

/// Replays that the shrinking of one world may take.
pub const BUDGET: u32 = 15_000;

/// Shrinks the failing world of a seed, on a thread where members may panic.
pub fn shrink(seed: u64, options: Options) -> anyhow::Result<Option<Shrunk>> {
    super::in_a_world(move || lab_sim::shrink(seed, options, BUDGET))
}

/// Lives through a script.
pub fn replay(script: Script, mutant: Option<Mutant>) -> anyhow::Result<Replayed> {
    super::in_a_world(move || lab_sim::replay(&script, mutant))
}

/// Saves the script of a failing seed below a store: `sim/<rule>-<seed>.script`.
pub fn save(store: &Path, rule: Rule, seed: u64, script: &Script) -> anyhow::Result<PathBuf> {
    let folder = store.join("sim");
    std::fs::create_dir_all(&folder).with_context(|| format!("creating {}", folder.display()))?;
    let path = folder.join(format!("{}-{seed}.script", rule.name().replace(' ', "-")));
    std::fs::write(&path, script.to_string()).with_context(|| format!("writing {}", path.display()))?;
    Ok(path)
}
