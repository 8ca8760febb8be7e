//! Removes what a harness that was killed left behind: processes, data, unfinished folders.
//!
//! Members die with their harness and links heal by themselves, so mostly there is nothing. What there is, is
//! recognised by the run's token and by an owner that no longer lives. A run beside it lives on untouched,
//! and so does everything of which this process can't know whose it is: of another namespace, another boot,
//! another user. There the owner's id would be taken for somebody else's.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::process::{Signal, pidfd_send_signal};

#[cfg(feature = "docker")]
use super::docker;
use crate::host::procfs::{self, Identity, Namespaces};
use crate::store::folder::{self, RunFolder, read_dir_if_there};
use crate::store::lock::{self, TOKEN_VARIABLE};

/// How long processes that were killed are waited for, all of them.
const PATIENCE: Duration = Duration::from_secs(5);

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
    pub failure: Option<String>,
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
    folder::tidy_links(store)?;
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
        Err(why) => swept.failure = Some(why),
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
        for run in read_dir_if_there(&name)?.into_iter().filter(|run| !run.is_symlink()) {
            let lock = RunFolder::at(run).lock();
            if lock.is_file() {
                locks.push(lock);
            }
        }
    }
    Ok(locks)
}

/// Marks an unfinished run, removes its members' data, and lastly its lock: whatever stops this half way, the
/// next sweep finds the lock again. One that had not begun holds nothing and goes altogether.
fn close(folder: &RunFolder) -> io::Result<()> {
    if !folder.history().exists() {
        return folder.discard();
    }
    folder.drop_data()?;
    let note = "The harness of this run was killed before it could finish. What it had written is here; \
                `harness check` judges it.\n";
    RunFolder::write(&folder.path().join("INTERRUPTED"), note.as_bytes()).map_err(io::Error::other)?;
    std::fs::remove_file(folder.lock())
}

/// Kills processes whose environment, or log, names a harness that no longer lives, and waits until they are
/// gone: what they wrote is removed afterwards, and their ports are free.
pub(crate) fn end_orphans() -> Vec<u32> {
    let Some(here) = Here::look() else { return Vec::new() };
    let ended = |pid| here.end_if_orphaned(pid).map(|handle| (pid, handle));
    let ended: Vec<(u32, OwnedFd)> = procfs::pids().into_iter().filter_map(ended).collect();
    let deadline = Instant::now() + PATIENCE;
    for (_, handle) in &ended {
        // A process that the kernel can't end now is left to it: it was told.
        procfs::wait_for_the_end(handle, Some(deadline.saturating_duration_since(Instant::now())));
    }
    ended.into_iter().map(|(pid, _)| pid).collect()
}

/// The token of the run whose member's log is a process's standard error. Some programs write their title
/// over their environment, and some begin with none.
fn token_by_log(pid: u32) -> Option<String> {
    let log = std::fs::read_link(format!("/proc/{pid}/fd/2")).ok()?;
    let (folder, _) = RunFolder::of_a_members_log(&log)?;
    lock::owner(&folder.lock()).map(|owner| owner.token)
}

/// Where this process stands: what it must have in common with another before it may end that one.
struct Here {
    own: Identity,
    namespaces: Namespaces,
    user: u32,
}

impl Here {
    /// None where `/proc` does not tell about this process: then nobody is known well enough to be ended.
    fn look() -> Option<Self> {
        let (own, namespaces) = (Identity::own()?, Namespaces::own()?);
        Some(Self { own, namespaces, user: rustix::process::geteuid().as_raw() })
    }

    /// Ends one process if it was left behind. The handle is taken first, so that the signal goes to the
    /// process that was looked at and to no later one of the same id.
    fn end_if_orphaned(&self, pid: u32) -> Option<OwnedFd> {
        let handle = procfs::handle(pid).ok()?;
        let token = procfs::environment(pid, TOKEN_VARIABLE).or_else(|| token_by_log(pid))?;
        let ended = self.may_end(pid, &token) && pidfd_send_signal(&handle, Signal::KILL).is_ok();
        ended.then_some(handle)
    }

    /// Whether a process with this token is of a dead harness of this namespace, boot and user.
    fn may_end(&self, pid: u32, token: &str) -> bool {
        let Some(owner) = lock::owner_of(token) else { return false };
        pid != self.own.pid
            && owner != self.own
            && owner.boot_id == self.own.boot_id
            && procfs::user(pid) == Some(self.user)
            && Namespaces::of(pid).as_ref() == Some(&self.namespaces)
            && !owner.lives()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::lock::Owner;

    fn dead_run(store: &Path) -> RunFolder {
        let folder = RunFolder::at(store.join("name/20260101T000000Z"));
        std::fs::create_dir_all(folder.nodes().join("1/data")).expect("a folder");
        let mut harness = Identity::own().expect("this process");
        harness.start_ticks += 1;
        let owner = Owner { harness, token: "t".to_owned(), namespaces: Namespaces::own() };
        std::fs::write(folder.lock(), serde_json::to_vec(&owner).expect("JSON")).expect("written");
        std::fs::write(folder.history(), "").expect("written");
        folder
    }

    #[test]
    fn a_dead_run_that_had_not_begun_leaves_nothing() {
        let store = tempfile::tempdir().expect("a store");
        let dead = dead_run(store.path());
        std::fs::remove_file(dead.history()).expect("removed");
        assert_eq!(sweep(store.path()).expect("swept").folders, [dead.path()]);
        assert_eq!(std::fs::read_dir(store.path()).expect("a store").count(), 0);
    }

    #[test]
    fn links_that_lead_nowhere_and_half_made_ones_are_swept() {
        let store = tempfile::tempdir().expect("a store");
        let link = |name: &str| {
            std::os::unix::fs::symlink("gone/20260101T000000Z", store.path().join(name)).expect("a link")
        };
        link("latest");
        link(".latest-4194305");
        let own = format!(".latest-{}", std::process::id());
        link(&own);
        sweep(store.path()).expect("swept");
        let left: Vec<_> = std::fs::read_dir(store.path())
            .expect("a store")
            .flatten()
            .map(|entry| entry.file_name())
            .collect();
        assert_eq!(left, [std::ffi::OsString::from(own)], "whoever makes one still lives");
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
    fn only_what_a_dead_harness_of_this_namespace_boot_and_user_left_may_be_ended() {
        let waiting = || {
            let mut command = std::process::Command::new("sleep");
            command.arg("60");
            command
        };
        let here = Here::look().expect("/proc");
        let Identity { pid, start_ticks, boot_id } = here.own.clone();
        let dead = format!("{pid}.{}.{boot_id}.00000001", start_ticks + 1);
        let mut beside = waiting().spawn().expect("sleep");
        assert!(here.may_end(beside.id(), &dead));
        assert!(!here.may_end(beside.id(), &format!("{pid}.{start_ticks}.{boot_id}.00000001")), "it lives");
        assert!(!here.may_end(beside.id(), &format!("{pid}.{}.other.00000001", start_ticks + 1)));
        assert!(!here.may_end(beside.id(), "nonsense"));
        assert!(!here.may_end(pid, &dead), "nobody ends itself");
        let mut elsewhere = Here::look().expect("/proc");
        elsewhere.namespaces.pid = "pid:[1]".to_owned();
        assert!(!elsewhere.may_end(beside.id(), &dead));
        let other_user = Here { user: here.user + 1, ..Here::look().expect("/proc") };
        assert!(!other_user.may_end(beside.id(), &dead));
        assert!(here.end_if_orphaned(beside.id()).is_none(), "it has no token");
        beside.kill().and_then(|()| beside.wait()).expect("ended");
        // Another sweep of this machine may be faster.
        let mut left = waiting().env(TOKEN_VARIABLE, &dead).spawn().expect("sleep");
        // Its environment shows a moment after it was started.
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
        while here.end_if_orphaned(left.id()).is_none() && std::time::Instant::now() < deadline {
            if left.try_wait().expect("its state").is_some() {
                break;
            }
            std::thread::yield_now();
        }
        assert!(!left.wait().expect("reaped").success());
    }

    #[test]
    fn a_store_that_does_not_exist_has_nothing_to_sweep() {
        let store = tempfile::tempdir().expect("a place");
        assert!(sweep(&store.path().join("none")).expect("swept").folders.is_empty());
    }
}
