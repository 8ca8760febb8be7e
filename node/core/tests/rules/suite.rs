//! A folder of scripts, run one after the other.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use crate::runner::Runner;

fn scripts(folder: &Path) -> Vec<PathBuf> {
    let files = std::fs::read_dir(folder).expect("the folder of scripts is there");
    let mut files: Vec<PathBuf> = files.map(|file| file.expect("a readable folder").path()).collect();
    files.sort();
    files
}

/// Why a file is no script of ours, if it is none.
fn misplaced(path: &Path) -> Option<String> {
    let text = std::fs::read_to_string(path).expect("a readable script");
    let named = path.extension().is_some_and(|extension| extension == "txt");
    (!named || !text.starts_with("# "))
        .then(|| format!("{}: no .txt with its rule at the top", path.display()))
}

/// Runs every script of a folder before it fails, so that one run shows all that differ.
pub(crate) fn run_all(folder: &Path) {
    let failed: Vec<String> = scripts(folder)
        .into_iter()
        .filter_map(|path| {
            if let Some(reason) = misplaced(&path) {
                return Some(reason);
            }
            let run = AssertUnwindSafe(|| goldenscript::run(&mut Runner::default(), &path));
            match catch_unwind(run) {
                Ok(Ok(())) => None,
                Ok(Err(error)) => Some(format!("{}: {error}", path.display())),
                Err(_) => Some(format!("{}: the output differs, or the member panicked", path.display())),
            }
        })
        .collect();
    assert!(failed.is_empty(), "{} scripts failed:\n{}", failed.len(), failed.join("\n"));
}
