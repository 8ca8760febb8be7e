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
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::Context;
use harness_systems::bounded;
use nights::fold::Night;
use nights::index::{self, Line};
use nights::pile::Pile;
use nights::suite::Retention;
use reports::terminal::printable;
use rustix::fs::OFlags;

use crate::exit::Failure;
use crate::progress::Progress;

/// A store that this process holds.
#[derive(Debug)]
pub struct Store {
    path: PathBuf,
    index: File,
    /// Bytes of its whole lines.
    whole: u64,
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
/// A usage failure when the index can't be read. A damaged line of it is told, and left out.
pub fn lines(store: &Path) -> Result<Vec<Line>, Failure> {
    read(store).map(|read| read.lines)
}

fn read(store: &Path) -> Result<index::Read, Failure> {
    let path = index_of(store);
    let bytes = match bounded::read(&path, bounded::COLLECTED) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(index::Read::default()),
        Err(error) => return Err(Failure::usage(format!("{}: {error}", path.display()))),
    };
    let read = index::read(&bytes).map_err(|why| {
        Failure::usage(format!("{}: {why}. Name a store of nights, or mend the file", path.display()))
    })?;
    let progress = Progress::on_stderr();
    for why in &read.damaged {
        progress.say(&printable(&format!("{}: {why}. It is left out: mend it or remove it", path.display())));
    }
    progress.clear();
    Ok(read)
}

impl Store {
    /// Takes the store, and makes it where there is none; with every line of its index.
    ///
    /// # Errors
    ///
    /// A usage failure when another night holds it, or it can't be written.
    pub fn take(path: &Path) -> Result<(Self, Vec<Line>), Failure> {
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
            // The index of somebody else's store may be a link to what is not the store's.
            .custom_flags(i32::try_from(OFlags::NOFOLLOW.bits()).unwrap_or_default())
            .open(index_of(path))
            .map_err(unusable)?;
        // Half a last line, as a full disk leaves it, makes room for whole ones.
        index.set_len(read.whole_bytes).map_err(unusable)?;
        index.seek(SeekFrom::End(0)).map_err(unusable)?;
        Ok((Self { path: path.to_owned(), index, whole: read.whole_bytes, _lock: lock }, read.lines))
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
    pub fn append(&mut self, line: &Line) -> anyhow::Result<()> {
        let text = index::write(line).context("encoding a line of the index")?;
        let written = self.index.write_all(text.as_bytes()).and_then(|()| self.index.sync_data());
        if let Err(error) = written {
            // Half a line must not stand before the next one.
            let _ = self.index.set_len(self.whole);
            let _ = self.index.seek(SeekFrom::Start(self.whole));
            return Err(error).with_context(|| format!("writing {}", index_of(&self.path).display()));
        }
        self.whole += u64::try_from(text.len()).unwrap_or(u64::MAX);
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

    /// Removes what old nights left but for what shows a violation, and builds that no night of the last ones
    /// was made by. Only what a night made is touched.
    ///
    /// # Errors
    ///
    /// The first thing that could not be removed; the others are.
    pub fn prune(&self, nights: &[Night], retention: Retention) -> io::Result<()> {
        let shows = shows(nights);
        let kept = nights.len().saturating_sub(usize::try_from(retention.nights).unwrap_or(usize::MAX));
        let mut outcome = Ok(());
        let mut used = 0;
        for (at, night) in nights.iter().enumerate().rev() {
            let name = &night.begun.night;
            used += size(&self.path.join(name));
            // Tonight's stay whatever they take: nobody has seen them yet.
            if at < kept || (used > retention.bytes && at + 1 < nights.len()) {
                for part in PARTS {
                    outcome = outcome.and(thin(&self.path, &format!("{name}/{part}"), &shows));
                }
            }
        }
        let recent =
            nights.len().saturating_sub(usize::try_from(retention.nights).unwrap_or(0).max(BUILDS_OF));
        let recent: BTreeSet<PathBuf> = (nights[recent..].iter())
            .filter_map(|night| super::build::place(&self.path, &night.begun.build))
            .collect();
        let builds = self.path.join("builds");
        for entry in fs::read_dir(&builds)?.flatten() {
            let name = entry.file_name().into_string().unwrap_or_default();
            let ours = super::build::place(&self.path, &name);
            if ours.is_some_and(|file| !recent.contains(&file)) {
                outcome = outcome.and(remove(&entry.path()));
            }
        }
        outcome
    }
}

/// The folders that a night makes below its own.
const PARTS: [&str; 5] = ["runs", "replays", "smaller", "sim", "log"];
/// Nights whose builds stay at least: the fence is drawn around so many, and compares with one of them.
const BUILDS_OF: usize = 34;

/// Run folders that show a violation, relative to the store.
fn shows(nights: &[Night]) -> BTreeSet<String> {
    let found = nights.iter().flat_map(|night| &night.found);
    let shrunk = found.clone().filter_map(|found| found.shrunk.as_ref().map(|shrunk| &shrunk.folder));
    let violations = (nights.iter().flat_map(|night| night.attempts.iter()))
        .filter(|attempt| attempt.pile == Pile::Violation)
        .filter_map(|attempt| attempt.folder.as_ref());
    found.map(|found| &found.folder).chain(shrunk).chain(violations).cloned().collect()
}

/// Removes what is below a folder but for what is to stay and the folders above that.
fn thin(store: &Path, folder: &str, stays: &BTreeSet<String>) -> io::Result<()> {
    // What a link leads to is not the store's.
    let is_the_stores =
        |path: &Path| path.ancestors().take_while(|above| *above != store).all(|at| !at.is_symlink());
    if stays.contains(folder) || !is_the_stores(&store.join(folder)) {
        return Ok(());
    }
    let above = format!("{folder}/");
    let path = store.join(folder);
    if !stays.iter().any(|kept| kept.starts_with(&above)) {
        return remove(&path);
    }
    let mut outcome = Ok(());
    for entry in fs::read_dir(&path)?.flatten() {
        if let Some(name) = entry.file_name().to_str() {
            outcome = outcome.and(thin(store, &format!("{folder}/{name}"), stays));
        }
    }
    outcome
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
    let removed = match path.symlink_metadata() {
        Ok(found) if found.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
    match removed {
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
            spent_ms: 1,
            failed: None,
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
    fn old_nights_are_thinned_and_what_shows_a_violation_stays() {
        let folder = tempfile::tempdir().expect("a folder");
        let (store, _) = Store::take(folder.path()).expect("a store");
        for path in ["n/runs/a-1/x", "n/runs/b-1/y", "n/log", "n/mine", "builds/other", "builds/0123456789ab"]
        {
            fs::create_dir_all(folder.path().join(path)).expect("a folder");
        }
        let stays = BTreeSet::from(["n/runs/b-1/y".to_owned()]);
        for part in PARTS {
            thin(folder.path(), &format!("n/{part}"), &stays).expect("thinned");
        }
        store.prune(&[], Retention::default()).expect("builds");
        let outside = tempfile::tempdir().expect("a folder");
        fs::create_dir_all(outside.path().join("runs/mine")).expect("a folder");
        std::os::unix::fs::symlink(outside.path(), folder.path().join("linked")).expect("a link");
        thin(folder.path(), "linked/runs", &stays).expect("nothing to thin");
        assert!(outside.path().join("runs/mine").is_dir(), "a link leads to what is not the store's");
        let there = |path: &str| folder.path().join(path).exists();
        assert!(there("n/runs/b-1/y") && there("n/mine") && there("builds/other"));
        assert!(!there("n/runs/a-1") && !there("n/log") && !there("builds/0123456789ab"));
    }

    #[test]
    fn lines_follow_the_last_whole_one() {
        let folder = tempfile::tempdir().expect("a folder");
        Store::take(folder.path()).expect("a store").0.append(&line(1)).expect("a line");
        let index = index_of(folder.path());
        let torn = fs::read_to_string(&index).expect("an index") + "{\"line\":\"wor";
        fs::write(&index, torn).expect("torn");
        Store::take(folder.path()).expect("a store").0.append(&line(2)).expect("a line");
        assert_eq!(lines(folder.path()).expect("whole"), [line(1), line(2)]);
    }
}
