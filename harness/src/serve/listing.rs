//! What is in a store, and in a folder of it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use reports::store::{Row, Store};
use serde::de::DeserializeOwned;

use crate::night::store::index_of;
use crate::store::RunFolder;

/// Runs that are listed. The page stays small, and a browser asks again for older ones by their names.
const MOST_RUNS: usize = 200;

/// The longest file that is read for the list.
const MOST_BYTES: u64 = 64 << 20;

/// What a name in a link keeps as it is.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// The runs of a store, the newest first, and the stores of nights in it.
pub(super) fn runs(store: &Path, name: &str) -> Store {
    let names = folders(store).unwrap_or_default();
    let nights =
        names.iter().filter(|folder| index_of(folder).is_file()).filter_map(|folder| link(&[folder]));
    let nights: Vec<String> = nights.collect();
    let mut runs: Vec<(PathBuf, PathBuf)> = Vec::new();
    for name in names {
        let made = folders(&name).unwrap_or_default();
        runs.extend(
            made.into_iter().filter(|run| run.join("run.json").is_file()).map(|run| (name.clone(), run)),
        );
    }
    // A run's folder is called by its start.
    runs.sort_by(|one, other| other.1.file_name().cmp(&one.1.file_name()).then_with(|| one.0.cmp(&other.0)));
    let older = runs.len().saturating_sub(MOST_RUNS);
    runs.truncate(MOST_RUNS);
    let rows = runs.iter().filter_map(|(name, run)| {
        let folder = RunFolder::at(run);
        let results = Some(folder.results()).filter(|results| results.exists());
        Some(Row {
            link: link(&[name, run])?,
            run: read(&folder.run()),
            is_judged: results.is_some(),
            results: results.and_then(|results| read(&results)),
        })
    });
    Store { path: name.to_owned(), rows: rows.collect(), older, nights }
}

/// What a file says; none where it can't be read, or is none that a run leaves.
fn read<T: DeserializeOwned>(path: &Path) -> Option<T> {
    let metadata = fs::metadata(path).ok()?;
    let is_usual = metadata.is_file() && metadata.len() <= MOST_BYTES;
    is_usual.then(|| RunFolder::read_named_json(path).ok()).flatten()
}

/// The folders in a folder, without those that links lead to.
fn folders(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let paths = fs::read_dir(folder)?.flatten().map(|entry| entry.path());
    let mut found: Vec<PathBuf> = paths.filter(|path| !path.is_symlink() && path.is_dir()).collect();
    found.sort();
    Ok(found)
}

/// A link to the last of these folders, each of which is in the one before.
fn link(folders: &[&Path]) -> Option<String> {
    let mut link = String::new();
    for folder in folders {
        link.push_str(&encoded(folder.file_name()?.to_str()?));
        link.push('/');
    }
    Some(link)
}

fn encoded(name: &str) -> String {
    utf8_percent_encode(name, PLAIN).to_string()
}

/// A folder's page: what is in it, but for what is hidden.
pub(super) fn files(folder: &Path) -> String {
    let mut entries: Vec<(String, Option<u64>)> = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| {
            let metadata = fs::metadata(entry.path()).ok()?;
            let name = entry.file_name().to_str().filter(|name| !name.starts_with('.'))?.to_owned();
            Some((name, metadata.is_file().then_some(metadata.len())))
        })
        .collect();
    entries.sort();
    let title = folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let entries = entries.into_iter().map(|(name, bytes)| {
        let slash = if bytes.is_none() { "/" } else { "" };
        reports::store::Entry { link: encoded(&name) + slash, name: name + slash, bytes }
    });
    reports::store::folder(&title, &entries.collect::<Vec<_>>())
}
