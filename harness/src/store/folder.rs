//! The folder of one run: `<store>/<name>/<UTC start>/`, and `<store>/latest` pointing at it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::Context;
use checker::history::Compressor;
use harness_systems::bounded;
use runs::member::MemberId;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::lock::RunLock;
use crate::exit::Failure;
use crate::host::procfs;

/// How the start is written in a folder's name.
const START_FORMAT: &str = "%Y%m%dT%H%M%SZ";
/// Runs of one name that may start in the same second.
const MAX_SAME_SECOND: u32 = 1000;
/// The link to the newest run.
const LATEST: &str = "latest";

/// Where lines of a history go.
pub type HistoryFile = Box<dyn io::Write + Send>;

/// The files of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunFolder {
    path: PathBuf,
}

/// A run folder that was just made, with the lock that says whose it is.
pub struct Fresh {
    /// The folder.
    pub folder: RunFolder,
    /// Held until the run is over.
    pub lock: RunLock,
}

impl RunFolder {
    /// The folder at `path`, whatever is in it.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// Makes the folder of a run that starts now.
    pub fn create(store: &Path, name: &str, start: jiff::Timestamp) -> Result<Fresh, Failure> {
        let parent = store.join(name);
        fs::create_dir_all(&parent).map_err(|error| store_failure(store, &error))?;
        let start = start.strftime(START_FORMAT).to_string();
        for attempt in 1..=MAX_SAME_SECOND {
            let suffix = if attempt == 1 { String::new() } else { format!("-{attempt}") };
            let path = parent.join(format!("{start}{suffix}"));
            match fs::create_dir(&path) {
                Ok(()) => {
                    let folder = Self { path };
                    let lock = RunLock::take(&folder.lock())?;
                    return Ok(Fresh { folder, lock });
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(store_failure(store, &error)),
            }
        }
        Err(Failure::usage(format!("{} holds too many runs that start in this second", parent.display())))
    }

    /// The folder itself.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// `run.json`.
    pub fn run(&self) -> PathBuf {
        self.file("run.json")
    }

    /// `schedule.json`.
    pub fn schedule(&self) -> PathBuf {
        self.file("schedule.json")
    }

    /// `history.jsonl`, or `history.jsonl.zst` where that is there.
    pub fn history(&self) -> PathBuf {
        let compressed = self.file("history.jsonl.zst");
        if compressed.exists() { compressed } else { self.file("history.jsonl") }
    }

    /// Begins the history, and says where it is.
    pub fn begin_history(&self, compress: bool) -> anyhow::Result<(PathBuf, HistoryFile)> {
        let path = self.file(if compress { "history.jsonl.zst" } else { "history.jsonl" });
        let file = fs::File::create(&path).with_context(|| format!("creating {}", path.display()))?;
        let file: HistoryFile =
            if compress { Box::new(Compressor::new(file)) } else { Box::new(io::BufWriter::new(file)) };
        Ok((path, file))
    }

    /// `faults.jsonl`.
    pub fn faults(&self) -> PathBuf {
        self.file("faults.jsonl")
    }

    /// `observed.json`: what was seen beside the history, for judging it again.
    pub fn observed(&self) -> PathBuf {
        self.file("observed.json")
    }

    /// `results.json`.
    pub fn results(&self) -> PathBuf {
        self.file("results.json")
    }

    /// `report.html`.
    pub fn report(&self) -> PathBuf {
        self.file("report.html")
    }

    /// `junit.xml`.
    pub fn junit(&self) -> PathBuf {
        self.file("junit.xml")
    }

    /// The run folder and the member whose log this is, by the place where it lies.
    pub fn of_a_members_log(log: &Path) -> Option<(Self, MemberId)> {
        let member = log.parent()?;
        let nodes = member.parent()?;
        let id = member.file_name()?.to_str()?.parse().ok().map(MemberId)?;
        let is_one = log.file_name()? == "log" && nodes.file_name()? == "nodes";
        is_one.then(|| Some((Self::at(nodes.parent()?), id)))?
    }

    /// `run.lock`, there while the run is unfinished.
    pub fn lock(&self) -> PathBuf {
        self.file("run.lock")
    }

    /// `nodes/`.
    pub fn nodes(&self) -> PathBuf {
        self.file("nodes")
    }

    /// Writes a file of JSON, whole or not at all.
    pub fn write_json(path: &Path, value: &impl Serialize) -> anyhow::Result<()> {
        let mut text = serde_json::to_vec_pretty(value).context("encoding JSON")?;
        text.push(b'\n');
        Self::write(path, &text)
    }

    /// Writes a file, whole or not at all. A link in its place, as a folder from elsewhere may have one, is
    /// replaced and never followed.
    pub fn write(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
        let mut draft = path.as_os_str().to_owned();
        draft.push(".new");
        // What is left of an earlier one, or in the way.
        let _ = fs::remove_file(&draft);
        let written = fs::File::create_new(&draft)
            .and_then(|mut file| io::Write::write_all(&mut file, bytes))
            .and_then(|()| fs::rename(&draft, path));
        if written.is_err() {
            // Half a file is of no use, and takes room where there is none.
            let _ = fs::remove_file(&draft);
        }
        written.with_context(|| format!("writing {}", path.display()))
    }

    /// Reads a file of JSON.
    pub fn read_json<T: DeserializeOwned>(path: &Path) -> anyhow::Result<T> {
        let is_planned = path.file_name().is_some_and(|name| name == "run.json" || name == "schedule.json");
        let most = if is_planned { bounded::PLANNED } else { bounded::COLLECTED };
        let bytes = bounded::read(path, most).with_context(|| format!("reading {}", path.display()))?;
        serde_json::from_slice(&bytes).with_context(|| format!("reading {}", path.display()))
    }

    /// Reads a file of JSON of a folder that somebody named. One that is missing or damaged is no failure of
    /// the harness: it is what it was told to look at.
    pub fn read_named_json<T: DeserializeOwned>(path: &Path) -> Result<T, Failure> {
        Self::read_json(path).map_err(|error| {
            Failure::usage(format!("{error:#}. A run folder is read as `harness run` wrote it"))
        })
    }

    /// Removes the members' data, of which the logs and events beside it tell what is worth keeping. Links
    /// lead to what is not the run's.
    pub fn drop_data(&self) -> io::Result<()> {
        if self.nodes().is_symlink() {
            return Ok(());
        }
        for member in read_dir_if_there(&self.nodes())? {
            let data = member.join("data");
            if !member.is_symlink() && !data.is_symlink() && data.is_dir() {
                fs::remove_dir_all(data)?;
            }
        }
        Ok(())
    }

    /// Points `latest` here. A store whose file system has no links is a store without `latest`.
    pub fn point_latest(&self, store: &Path) {
        let Ok(target) = self.path.strip_prefix(store) else { return };
        let draft = store.join(format!(".{LATEST}-{}", std::process::id()));
        let _ = fs::remove_file(&draft);
        let linked =
            std::os::unix::fs::symlink(target, &draft).and_then(|()| fs::rename(&draft, store.join(LATEST)));
        if let Err(error) = linked {
            let _ = fs::remove_file(&draft);
            tracing::warn!(%error, "no link to the latest run");
        }
    }

    /// Removes the folder, and the one above it if no other run is there.
    pub fn discard(&self) -> io::Result<()> {
        fs::remove_dir_all(&self.path)?;
        // Most often it is not empty.
        let _ = self.path.parent().map(fs::remove_dir);
        Ok(())
    }
}

/// Removes a `latest` that leads nowhere, and links that a harness was about to make when it was killed.
pub(crate) fn tidy_links(store: &Path) -> io::Result<()> {
    for path in read_dir_if_there(store)?.into_iter().filter(|path| path.is_symlink()) {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let maker = name.strip_prefix(&format!(".{LATEST}-")).and_then(|pid| pid.parse::<u32>().ok());
        let is_half_made = maker.is_some_and(|pid| procfs::stat(pid).is_none());
        if is_half_made || (name == LATEST && !path.exists()) {
            fs::remove_file(path)?;
        }
    }
    Ok(())
}

/// The entries of a folder; none where there is no folder.
pub(crate) fn read_dir_if_there(path: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(path) {
        Ok(entries) => entries,
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(Vec::new());
        }
        Err(error) => return Err(error),
    };
    let mut paths = entries.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?;
    paths.sort();
    Ok(paths)
}

/// Says what is wrong with a store in which no folder can be made.
fn store_failure(store: &Path, error: &io::Error) -> Failure {
    let file = store.ancestors().find(|ancestor| ancestor.is_file());
    let message = match file {
        Some(file) => format!(
            "--store {}: {} is a regular file, so no folder can be made below it. Name a folder, or a path \
             at which one can be made",
            store.display(),
            file.display()
        ),
        None => format!("--store {}: no folder can be made there: {error}", store.display()),
    };
    Failure::Usage(message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> jiff::Timestamp {
        "2026-03-14T02:10:07Z".parse().expect("a moment")
    }

    #[test]
    fn two_runs_of_one_second_get_a_folder_each_and_latest_is_the_last() {
        let store = tempfile::tempdir().expect("a store");
        let first = RunFolder::create(store.path(), "r", now()).expect("first").folder;
        let second = RunFolder::create(store.path(), "r", now()).expect("second").folder;
        assert!(first.path().ends_with("r/20260314T021007Z"));
        assert!(second.path().ends_with("r/20260314T021007Z-2"));
        first.point_latest(store.path());
        second.point_latest(store.path());
        let latest = fs::read_link(store.path().join(LATEST)).expect("a link");
        assert_eq!(latest, Path::new("r/20260314T021007Z-2"));
    }

    #[test]
    fn where_latest_is_a_folder_no_half_made_link_stays() {
        let store = tempfile::tempdir().expect("a store");
        let run = RunFolder::create(store.path(), "r", now()).expect("a run").folder;
        fs::create_dir(store.path().join(LATEST)).expect("a folder in the way");
        run.point_latest(store.path());
        let mut left: Vec<_> =
            fs::read_dir(store.path()).expect("a store").flatten().map(|entry| entry.file_name()).collect();
        left.sort();
        assert_eq!(left, [LATEST, "r"]);
    }

    #[test]
    fn a_store_beneath_a_regular_file_is_refused_by_name() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("file");
        fs::write(&file, b"").expect("a file");
        for store in [file.clone(), file.join("below")] {
            match RunFolder::create(&store, "r", now()) {
                Err(Failure::Usage(message)) => assert!(message.contains("is a regular file"), "{message}"),
                _ => panic!("{} was taken", store.display()),
            }
        }
    }

    #[test]
    fn links_in_a_folder_lead_to_nothing_that_is_written_or_removed() {
        let outside = tempfile::tempdir().expect("a folder");
        fs::create_dir_all(outside.path().join("1/data")).expect("data");
        let mine = outside.path().join("mine");
        fs::write(&mine, "mine").expect("a file");
        let store = tempfile::tempdir().expect("a store");
        let folder = RunFolder::at(store.path());
        for name in ["results.json", "results.json.new"] {
            std::os::unix::fs::symlink(&mine, store.path().join(name)).expect("a link");
        }
        RunFolder::write(&folder.results(), b"theirs").expect("written");
        assert_eq!(fs::read_to_string(&mine).expect("a file"), "mine");
        assert_eq!(fs::read_to_string(folder.results()).expect("a file"), "theirs");
        std::os::unix::fs::symlink(outside.path(), folder.nodes()).expect("a link");
        folder.drop_data().expect("nothing to drop");
        fs::remove_file(folder.nodes()).expect("removed");
        fs::create_dir(folder.nodes()).expect("a folder");
        std::os::unix::fs::symlink(outside.path().join("1"), folder.nodes().join("1")).expect("a link");
        folder.drop_data().expect("nothing to drop");
        assert!(outside.path().join("1/data").is_dir());
    }

    #[test]
    fn data_goes_and_logs_stay() {
        let store = tempfile::tempdir().expect("a store");
        let folder = RunFolder::create(store.path(), "r", now()).expect("a run").folder;
        let member = folder.nodes().join("1");
        fs::create_dir_all(member.join("data")).expect("data");
        fs::write(member.join("data/log.1"), b"x").expect("a log of transactions");
        fs::write(member.join("log"), b"x").expect("a log");
        folder.drop_data().expect("dropped");
        assert!(member.join("log").exists());
        assert!(!member.join("data").exists());
    }
}
