//! Draws every scenario into `harness/paxos/figures`, for the chapter in `harness/paxos/README.md`.
//!
//! ```text
//! cargo run --package harness-paxos --example figures
//! ```

use std::path::{Path, PathBuf};

use harness_paxos::{MULTI_PAXOS, PAXOS};
use harness_protocols::script::Script;

/// Every scenario's file, and what is drawn in it: what `harness sim --scenario NAME --format svg` prints.
pub(crate) fn figures() -> Result<Vec<(PathBuf, String)>, String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("figures");
    let all = [PAXOS, MULTI_PAXOS]
        .into_iter()
        .flat_map(|entry| entry.scenarios.iter().map(move |scenario| (entry, scenario)));
    all.map(|(entry, scenario)| {
        let script = Script::read(scenario.script)?;
        let protocol = (entry.make)(script.plant.as_deref()).ok_or("no such bug")?;
        let played = protocol.play(&format!("{}: {}", scenario.name, scenario.about), &script);
        Ok((folder.join(scenario.name).with_extension("svg"), played.svg))
    })
    .collect()
}

#[allow(dead_code, reason = "tests have this as a module")]
fn main() -> Result<(), String> {
    for (file, svg) in figures()? {
        std::fs::write(&file, svg).map_err(|error| format!("{}: {error}", file.display()))?;
    }
    Ok(())
}
