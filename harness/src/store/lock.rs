//! `run.lock`: who makes this run, and whether that process still lives.
//!
//! The file is locked for as long as the harness lives, which the kernel undoes whatever kills it, and it
//! names its owner by id, start time, boot and namespaces. Either sign of life is enough to leave a run
//! alone: a lock is not seen through every file system, a process not from every namespace. An owner of
//! another boot or namespace can't be looked for at all: its run is left alone for as long as anything in its
//! folder is young.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, anyhow};
use harness_systems::bounded;
use serde::{Deserialize, Serialize};

use crate::host::procfs::{self, Identity, Namespaces};

/// An unlocked run of an owner that can't be looked for is dead when nothing was written in its folder for so
/// long.
const QUIET: Duration = Duration::from_secs(3600);

/// The variable in the environment of every process of a run: `<pid>.<start>.<boot>.<random>`.
pub const TOKEN_VARIABLE: &str = "HARNESS_RUN";

/// What `run.lock` holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    /// The harness.
    pub harness: Identity,
    /// What names the run in the environment of its processes.
    pub token: String,
    /// Where the harness's id means something; none in the folders of older builds.
    #[serde(default)]
    pub namespaces: Option<Namespaces>,
}

/// A held lock. It is removed when dropped.
pub struct RunLock {
    owner: Owner,
    path: PathBuf,
    _file: File,
}

impl RunLock {
    /// Takes the lock of a fresh folder.
    pub fn take(path: &Path) -> anyhow::Result<Self> {
        let harness = Identity::own().ok_or_else(|| {
            anyhow!(
                "/proc does not tell about this process: it is of another namespace of process ids; mount \
                 one of this namespace there (unshare --mount-proc)"
            )
        })?;
        let owner = Owner { token: token(&harness), harness, namespaces: Namespaces::own() };
        // Under another name first: a sweep must never see a lock that is not held yet.
        let draft = path.with_extension("new");
        let mut file = OpenOptions::new()
            .create_new(true)
            .write(true)
            .open(&draft)
            .with_context(|| format!("creating {}", draft.display()))?;
        file.try_lock().with_context(|| format!("locking {}", path.display()))?;
        let mut text = serde_json::to_vec(&owner).context("encoding the lock")?;
        text.push(b'\n');
        file.write_all(&text).with_context(|| format!("writing {}", draft.display()))?;
        std::fs::rename(&draft, path).with_context(|| format!("creating {}", path.display()))?;
        Ok(Self { owner, path: path.to_owned(), _file: file })
    }

    /// The run's token.
    pub fn token(&self) -> &str {
        &self.owner.token
    }
}

impl Drop for RunLock {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Who holds the lock of this path, or held it.
pub fn owner(path: &Path) -> Option<Owner> {
    serde_json::from_slice(&bounded::read(path, bounded::PLANNED).ok()?).ok()
}

/// Whether a lock file's owner still lives. One that can't be read belongs to nobody who lives, unless it is
/// locked.
pub fn is_alive(path: &Path) -> bool {
    let Ok(file) = File::open(path) else { return false };
    if matches!(file.try_lock(), Err(std::fs::TryLockError::WouldBlock)) {
        return true;
    }
    let owner = owner(path);
    owner.is_some_and(|owner| if owner.is_from_here() { owner.harness.lives() } else { is_young(path) })
}

impl Owner {
    /// Whether its id can be looked for from here. Older builds did not write where they were.
    fn is_from_here(&self) -> bool {
        procfs::boot_id().as_ref() == Some(&self.harness.boot_id)
            && self.namespaces.as_ref().is_none_or(|theirs| Some(theirs) == Namespaces::own().as_ref())
    }
}

/// Whether anything beside this lock was written lately.
fn is_young(lock: &Path) -> bool {
    let Some(entries) = lock.parent().and_then(|folder| folder.read_dir().ok()) else { return false };
    let written = |path: PathBuf| path.metadata().and_then(|metadata| metadata.modified()).ok();
    let youngest = entries.flatten().filter_map(|entry| written(entry.path())).max();
    youngest.is_some_and(|written| written.elapsed().map_or(true, |age| age < QUIET))
}

/// What names this process, and no run of it, in the environment of what it starts. None where `/proc` does
/// not tell about it.
pub fn own_token() -> Option<String> {
    Identity::own().map(|own| token(&own))
}

fn token(harness: &Identity) -> String {
    format!("{}.{}.{}.{:08x}", harness.pid, harness.start_ticks, harness.boot_id, rand::random::<u32>())
}

/// The harness that a token names.
pub fn owner_of(token: &str) -> Option<Identity> {
    let mut parts = token.splitn(4, '.');
    let pid = parts.next()?.parse().ok()?;
    let start_ticks = parts.next()?.parse().ok()?;
    let boot_id = parts.next()?.to_owned();
    Some(Identity { pid, start_ticks, boot_id })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_held_lock_is_alive_and_leaves_nothing_when_dropped() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("run.lock");
        let lock = RunLock::take(&path).expect("taken");
        assert!(is_alive(&path));
        drop(lock);
        assert!(!path.exists());
        assert!(!is_alive(&path));
    }

    #[test]
    fn the_lock_of_a_process_that_is_no_more_is_dead() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("run.lock");
        let mut harness = Identity::own().expect("this process");
        harness.start_ticks += 1;
        let owner = Owner { token: token(&harness), harness, namespaces: Namespaces::own() };
        std::fs::write(&path, serde_json::to_vec(&owner).expect("JSON")).expect("written");
        assert!(!is_alive(&path));
    }

    #[test]
    fn the_run_of_an_owner_that_cannot_be_looked_for_lives_while_its_folder_is_young() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("run.lock");
        let mut harness = Identity::own().expect("this process");
        harness.start_ticks += 1;
        let elsewhere = Namespaces { pid: "pid:[1]".to_owned(), time: String::new() };
        let owner = Owner { token: token(&harness), harness, namespaces: Some(elsewhere) };
        std::fs::write(&path, serde_json::to_vec(&owner).expect("JSON")).expect("written");
        assert!(is_alive(&path));
        let long_ago = std::time::SystemTime::now() - 2 * QUIET;
        File::options().write(true).open(&path).expect("opened").set_modified(long_ago).expect("aged");
        assert!(!is_alive(&path));
    }

    #[test]
    fn a_torn_lock_is_dead() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("run.lock");
        std::fs::write(&path, b"{\"harn").expect("written");
        assert!(!is_alive(&path));
    }

    #[test]
    fn a_token_names_its_harness() {
        let harness = Identity::own().expect("this process");
        assert_eq!(owner_of(&token(&harness)), Some(harness));
        assert_eq!(owner_of("nonsense"), None);
    }
}
