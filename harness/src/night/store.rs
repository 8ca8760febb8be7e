//! The folder of all nights: its index, its lock, where runs are put, and what is kept.
//!
//! ```text
//! STORE/nights.jsonl             the index, one line for whatever happened
//! STORE/index.html               the page; junit.xml, summary.md, metrics.txt beside it
//! STORE/builds/MARK/harness      executables that made runs
//! STORE/NIGHT/runs/CASE-REPEAT/  run folders
//! STORE/NIGHT/log/               what each run said
//! ```
//!
//! Two nights on one store exclude each other by a lock that the kernel lets go, whatever kills its holder.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use nights::fold::Night;
use nights::index::{self, Line};
use nights::suite::Keep;

use crate::exit::Failure;

/// A store that this process holds.
#[derive(Debug)]
pub struct Store {
    path: PathBuf,
    index: File,
    /// Every line, as the index has it.
    pub lines: Vec<Line>,
    _lock: File,
}

/// The index of a store.
pub fn index_of(store: &Path) -> PathBuf {
    store.join("nights.jsonl")
}

/// Reads the lines of a store that somebody else may write; none where there is no index.
///
/// # Errors
///
/// A usage failure when the index is damaged.
pub fn lines(store: &Path) -> Result<Vec<Line>, Failure> {
    read(store).map(|read| read.lines)
}

fn read(store: &Path) -> Result<index::Read, Failure> {
    let path = index_of(store);
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(index::Read::default()),
        Err(error) => return Err(Failure::usage(format!("{}: {error}", path.display()))),
    };
    index::read(&text).map_err(|why| {
        Failure::usage(format!("{}: {why}. Mend the line or remove it; the others are kept", path.display()))
    })
}

impl Store {
    /// Takes the store, and makes it where there is none.
    ///
    /// # Errors
    ///
    /// A usage failure when another night holds it, or it can't be written.
    pub fn take(path: &Path) -> Result<Self, Failure> {
        let unusable = |error: io::Error| {
            Failure::usage(format!("--store {}: nights can't be kept there: {error}", path.display()))
        };
        fs::create_dir_all(path).map_err(unusable)?;
        let lock = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(path.join("night.lock"))
            .map_err(unusable)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(fs::TryLockError::WouldBlock) => {
                return Err(Failure::usage(format!(
                    "another night runs on {}: wait for its end, or name another --store",
                    path.display()
                )));
            }
            Err(fs::TryLockError::Error(error)) => return Err(unusable(error)),
        }
        let read = read(path)?;
        let mut index = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(index_of(path))
            .map_err(unusable)?;
        // Half a last line, as a full disk leaves it, makes room for whole ones.
        index.set_len(read.whole_bytes).map_err(unusable)?;
        index.seek(SeekFrom::End(0)).map_err(unusable)?;
        Ok(Self { path: path.to_owned(), index, lines: read.lines, _lock: lock })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Appends a line. It is on disk afterwards.
    ///
    /// # Errors
    ///
    /// When it can't be written.
    pub fn append(&mut self, line: Line) -> anyhow::Result<()> {
        let text = index::write(&line).context("encoding a line of the index")?;
        self.index
            .write_all(text.as_bytes())
            .and_then(|()| self.index.sync_data())
            .with_context(|| format!("writing {}", index_of(&self.path).display()))?;
        self.lines.push(line);
        Ok(())
    }

    /// The folder of a night.
    pub fn night(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// A path below the store, as the index has it.
    pub fn relative(&self, path: &Path) -> Option<String> {
        path.strip_prefix(&self.path).ok().and_then(Path::to_str).map(str::to_owned)
    }

    /// Removes the run folders of old nights, and builds that no night of the last ones was made by. What
    /// shows a finding stays.
    pub fn keep(&self, nights: &[Night], keep: Keep) -> io::Result<()> {
        let shows: BTreeSet<&str> = (nights.iter().flat_map(|night| &night.found))
            .flat_map(|found| [Some(&found.folder), found.shrunk.as_ref().map(|shrunk| &shrunk.folder)])
            .flatten()
            .map(String::as_str)
            .collect();
        let kept = nights.len().saturating_sub(usize::try_from(keep.nights).unwrap_or(usize::MAX));
        let mut used = 0;
        for (at, night) in nights.iter().enumerate().rev() {
            let folders = night.attempts.iter().chain(&night.mutants).filter_map(|run| run.folder.as_deref());
            for folder in folders.filter(|folder| !shows.contains(folder)) {
                let path = self.path.join(folder);
                used += size(&path);
                // Tonight's stay whatever they take: nobody has seen them yet.
                if at < kept || (used > keep.bytes && at + 1 < nights.len()) {
                    remove(&path)?;
                }
            }
        }
        let recent: BTreeSet<PathBuf> = nights[kept..]
            .iter()
            .filter_map(|night| super::build::place(&self.path, &night.begun.build))
            .filter_map(|file| file.parent().map(Path::to_owned))
            .collect();
        let builds = fs::read_dir(self.path.join("builds"))?;
        for build in builds.flatten().map(|entry| entry.path()).filter(|path| !recent.contains(path)) {
            remove(&build)?;
        }
        Ok(())
    }
}

/// Bytes of a folder with all that is in it.
fn size(path: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(path) else { return 0 };
    let of = |entry: fs::DirEntry| match entry.file_type() {
        Ok(kind) if kind.is_dir() => size(&entry.path()),
        Ok(kind) if kind.is_file() => entry.metadata().map_or(0, |metadata| metadata.len()),
        Ok(_) | Err(_) => 0,
    };
    entries.flatten().map(of).sum()
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nights::index::Worlds;

    fn line(first: u64) -> Line {
        Line::Worlds(Worlds {
            night: "n".to_owned(),
            seeds: (first, first + 1),
            worlds: 1,
            broken: Vec::new(),
            took_ms: 1,
        })
    }

    #[test]
    fn two_nights_on_one_store_exclude_each_other() {
        let folder = tempfile::tempdir().expect("a folder");
        let held = Store::take(folder.path()).expect("the first");
        let second = Store::take(folder.path()).expect_err("the second");
        assert!(second.to_string().contains("another night runs"), "{second}");
        drop(held);
        Store::take(folder.path()).expect("after the first");
    }

    #[test]
    fn lines_follow_the_last_whole_one() {
        let folder = tempfile::tempdir().expect("a folder");
        Store::take(folder.path()).expect("a store").append(line(1)).expect("a line");
        let index = index_of(folder.path());
        let torn = fs::read_to_string(&index).expect("an index") + "{\"line\":\"wor";
        fs::write(&index, torn).expect("torn");
        Store::take(folder.path()).expect("a store").append(line(2)).expect("a line");
        assert_eq!(lines(folder.path()).expect("whole"), [line(1), line(2)]);
    }
}
