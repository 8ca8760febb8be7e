//! A failing world made small, and a small world lived through again.
//!
//! A script is a text with one line for each transition; how a world becomes one and how it is shrunk is the
//! simulator's. Here it is only asked for, and saved.

use std::path::{Path, PathBuf};

use anyhow::Context;
use harness_sim::{Options, Rule};
use node_core::Bug;

pub use stub::{Replayed, Script, Shrunk};

/// Replays that the shrinking of one world may take.
pub const BUDGET: u32 = 2_000;

/// Shrinks the failing world of a seed, on a thread where members may panic.
pub fn shrink(seed: u64, options: Options) -> anyhow::Result<Option<Shrunk>> {
    super::in_a_world(move || stub::shrink(seed, options, BUDGET))
}

/// Lives through a script.
pub fn replay(script: Script, plant: Option<Bug>) -> anyhow::Result<Replayed> {
    super::in_a_world(move || stub::replay(&script, plant))
}

/// Saves the script of a failing seed below a store: `sim/<rule>-<seed>.script`.
pub fn save(store: &Path, rule: Rule, seed: u64, script: &Script) -> anyhow::Result<PathBuf> {
    let folder = store.join("sim");
    std::fs::create_dir_all(&folder).with_context(|| format!("creating {}", folder.display()))?;
    let path = folder.join(format!("{}-{seed}.script", rule.name().replace(' ', "-")));
    std::fs::write(&path, script.to_string()).with_context(|| format!("writing {}", path.display()))?;
    Ok(path)
}

/// Stands in for the simulator's own until it has them: nothing is shrunk, no script is understood.
mod stub {
    use std::convert::Infallible;
    use std::fmt;
    use std::str::FromStr;

    use harness_sim::{Options, Violation};
    use node_core::Bug;

    /// A world as a text.
    #[derive(Clone, Debug)]
    pub enum Script {}

    impl FromStr for Script {
        type Err = String;

        fn from_str(_: &str) -> Result<Self, String> {
            Err("scripts are not in this build".to_owned())
        }
    }

    impl fmt::Display for Script {
        fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
            match *self {}
        }
    }

    /// A failing world made small.
    #[derive(Clone, Debug)]
    pub struct Shrunk {
        /// The script.
        pub script: Script,
        /// What it breaks.
        pub violation: Violation,
        /// Transitions.
        pub events: usize,
        /// Members.
        pub members: usize,
        /// Operations.
        pub operations: usize,
        /// Replays that it took.
        pub replays: u32,
    }

    /// What came of a script.
    #[derive(Clone, Debug)]
    pub struct Replayed {
        /// What was broken.
        pub violation: Option<Violation>,
        /// The trace's lines.
        pub trace: Vec<String>,
        /// Lines of the script that could not be done.
        pub skipped: usize,
    }

    pub(super) fn shrink(_: u64, _: Options, _: u32) -> Option<Shrunk> {
        None::<Infallible>.map(|never| match never {})
    }

    pub(super) fn replay(script: &Script, _: Option<Bug>) -> Replayed {
        match *script {}
    }
}
