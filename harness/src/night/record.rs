//! A run folder as far as nights and comparisons look at it.

use std::path::{Path, PathBuf};

use harness_systems::bounded;
use nights::outcome::Record;
use runs::faults;
use runs::results::RunInfo;

use crate::store::RunFolder;

/// Reads a run folder; none where the run was not judged.
pub fn read(folder: &Path) -> Option<Record> {
    let folder = RunFolder::at(folder);
    let run: RunInfo = RunFolder::read_json(&folder.run()).ok()?;
    let results = RunFolder::read_json(&folder.results()).ok()?;
    let text = bounded::text(&folder.faults(), bounded::COLLECTED).unwrap_or_default();
    let faults = faults::fold(&faults::parse(&text).unwrap_or_default(), &run.kinds);
    Some(Record { run, results, faults })
}

/// The last folder of a name: an earlier one is of a try that did not live to its end.
pub fn newest(named: &Path) -> Option<PathBuf> {
    let entries = std::fs::read_dir(named).ok()?;
    entries.flatten().map(|entry| entry.path()).filter(|path| path.is_dir()).max()
}
