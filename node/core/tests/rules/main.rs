//! The rules of election, of ZAB and of the client port, one golden script each.
//!
//! A script in `tests/scripts` drives one to five members by hand and shows every effect they have. The file's
//! name is the rule as a claim; the comment at its top says why the rule is there and where it is from.
//! `UPDATE_GOLDENFILES=1 cargo test -p node-core --test rules` writes the outputs anew: read the difference.
//!
//! [`runner`] and [`requests`] have the commands, [`ensemble`] the members with their wires, disks and clients, [`show`] the lines.
//! A zxid is written `EPOCH.COUNTER` on both sides: `2.1` is what ZooKeeper prints as `0x200000001`.

mod clients;
mod disk;
mod ensemble;
mod history;
mod requests;
mod runner;
mod show;
mod wires;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

fn scripts(area: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts").join(area);
    let files = std::fs::read_dir(&folder).expect("the folder of scripts is there");
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
fn run_all(area: &str) {
    let failed: Vec<String> = scripts(area)
        .into_iter()
        .filter_map(|path| {
            if let Some(reason) = misplaced(&path) {
                return Some(reason);
            }
            let run = AssertUnwindSafe(|| goldenscript::run(&mut runner::Runner::default(), &path));
            match catch_unwind(run) {
                Ok(Ok(())) => None,
                Ok(Err(error)) => Some(format!("{}: {error}", path.display())),
                Err(_) => Some(format!("{}: the output differs, or the member panicked", path.display())),
            }
        })
        .collect();
    assert!(failed.is_empty(), "{} scripts failed:\n{}", failed.len(), failed.join("\n"));
}

#[test]
fn the_rules_of_election_hold() {
    run_all("election");
}

#[test]
fn the_rules_of_zab_hold() {
    run_all("zab");
}

#[test]
fn the_rules_of_the_client_port_hold() {
    run_all("clients");
}

#[test]
fn the_rules_of_reconfiguration_hold() {
    run_all("reconfig");
}
