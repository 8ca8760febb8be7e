//! Removes what a harness that was killed left behind: processes, data, unfinished folders.
//!
//! Members die with their harness and links heal by themselves, so mostly there is nothing. What there is, is
//! recognised by the run's token and by an owner that no longer lives. A run beside it lives on untouched.

use std::io;
use std::path::{Path, PathBuf};

use rustix::process::{Pid, Signal, kill_process};

use super::folder::{RunFolder, read_dir_if_there};
use super::lock::{self, TOKEN_VARIABLE};
#[cfg(feature = "docker")]
use crate::cluster::docker;
use crate::cluster::procfs;

/// What a sweep did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// Processes that were killed.
    pub processes: Vec<u32>,
    /// Folders of runs that were marked as interrupted.
    pub folders: Vec<PathBuf>,
    /// Runs that live and were left alone.
    pub alive: usize,
    /// What was removed from the Docker engine.
    #[cfg(feature = "docker")]
    pub engine: Option<docker::sweep::Swept>,
    /// Why the engine was not swept, where somebody said there was one.
    pub trouble: Option<String>,
}

impl Swept {
    /// Whether there was nothing to do.
    pub fn is_empty(&self) -> bool {
        let here = self.processes.is_empty() && self.folders.is_empty();
        #[cfg(feature = "docker")]
        let here = here && self.engine.as_ref().is_none_or(docker::sweep::Swept::is_empty);
        here
    }

    /// What was done, in a sentence.
    pub fn sentence(&self) -> String {
        let mut done = Vec::new();
        if !self.processes.is_empty() {
            let processes = crate::num::plural(self.processes.len(), "leftover process");
            done.push(format!("ended {}", processes.replace("processs", "processes")));
        }
        if !self.folders.is_empty() {
            done.push(format!("closed {}", crate::num::plural(self.folders.len(), "unfinished run")));
        }
        #[cfg(feature = "docker")]
        if let Some(engine) = self.engine.as_ref().filter(|engine| !engine.is_empty()) {
            done.push(format!("{} from the engine", engine.sentence()));
        }
        done.join(", ")
    }
}

/// Sweeps a store, and the machine for processes of dead harnesses.
pub fn sweep(store: &Path) -> io::Result<Swept> {
    let mut swept = Swept { processes: end_orphans(), ..Swept::default() };
    for lock_file in lock_files(store)? {
        if lock::is_alive(&lock_file) {
            swept.alive += 1;
            continue;
        }
        if let Some(path) = lock_file.parent() {
            close(&RunFolder::at(path))?;
            swept.folders.push(path.to_owned());
        }
    }
    Ok(swept)
}

/// Sweeps a store, this machine, and the Docker engine if there is one. What can't be swept there is told and
/// is no reason to leave the rest.
pub fn sweep_everywhere(store: &Path) -> io::Result<Swept> {
    #[cfg_attr(not(feature = "docker"), expect(unused_mut, reason = "there is nothing else to sweep then"))]
    let mut swept = sweep(store)?;
    #[cfg(feature = "docker")]
    match docker::sweep::sweep_what_is_there() {
        Ok(engine) => swept.engine = engine,
        Err(why) => swept.trouble = Some(why),
    }
    Ok(swept)
}

/// The locks of unfinished runs.
fn lock_files(store: &Path) -> io::Result<Vec<PathBuf>> {
    let mut locks = Vec::new();
    for name in read_dir_if_there(store)? {
        // `latest` is a link to a folder that is found under its own name.
        if name.is_symlink() || !name.is_dir() {
            continue;
        }
        for run in read_dir_if_there(&name)? {
            let lock = RunFolder::at(run).lock();
            if lock.is_file() {
                locks.push(lock);
            }
        }
    }
    Ok(locks)
}

/// Marks an unfinished run, removes its members' data, and lastly its lock: whatever stops this half way, the
/// next sweep finds the lock again.
fn close(folder: &RunFolder) -> io::Result<()> {
    folder.drop_data()?;
    std::fs::write(
        folder.path().join("INTERRUPTED"),
        "The harness of this run was killed before it could finish. What it had written is here; \
         `harness check` judges it.\n",
    )?;
    std::fs::remove_file(folder.lock())
}

/// Kills processes whose environment names a harness that no longer lives.
fn end_orphans() -> Vec<u32> {
    let own = std::process::id();
    let mut ended = Vec::new();
    for pid in procfs::pids() {
        let Some(token) = procfs::environment(pid, TOKEN_VARIABLE) else { continue };
        let Some(owner) = lock::owner_of(&token) else { continue };
        if pid == own || owner.pid == own || owner.lives() {
            continue;
        }
        let raw = i32::try_from(pid).ok().and_then(Pid::from_raw);
        if raw.is_some_and(|raw| kill_process(raw, Signal::KILL).is_ok()) {
            ended.push(pid);
        }
    }
    ended
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::procfs::Identity;
    use crate::store::lock::Owner;

    fn dead_run(store: &Path) -> RunFolder {
        let folder = RunFolder::at(store.join("name/20260101T000000Z"));
        std::fs::create_dir_all(folder.nodes().join("1/data")).expect("a folder");
        let mut harness = Identity::own().expect("this process");
        harness.start_ticks += 1;
        let owner = Owner { harness, token: "t".to_owned() };
        std::fs::write(folder.lock(), serde_json::to_vec(&owner).expect("JSON")).expect("written");
        folder
    }

    #[test]
    fn a_dead_run_is_closed_and_a_living_one_left_alone() {
        let store = tempfile::tempdir().expect("a store");
        let dead = dead_run(store.path());
        let start = "2026-03-14T02:10:07Z".parse().expect("a moment");
        let alive = RunFolder::create(store.path(), "name", start).expect("a run");
        std::fs::create_dir_all(alive.folder.nodes().join("1/data")).expect("data");
        let swept = sweep(store.path()).expect("swept");
        assert_eq!(swept.folders, [dead.path()]);
        assert_eq!(swept.alive, 1);
        assert!(dead.path().join("INTERRUPTED").exists());
        assert!(!dead.nodes().join("1/data").exists());
        assert!(alive.folder.nodes().join("1/data").exists());
        assert!(sweep(store.path()).expect("swept again").folders.is_empty());
    }

    #[test]
    fn a_store_that_does_not_exist_has_nothing_to_sweep() {
        let store = tempfile::tempdir().expect("a place");
        assert!(sweep(&store.path().join("none")).expect("swept").folders.is_empty());
    }
}
