//! `run.lock`: who makes this run, and whether that process still lives.
//!
//! The file is locked for as long as the harness lives, which the kernel undoes whatever kills it, and it
//! names its owner by id, start time and boot. Either sign of life is enough to leave a run alone: a lock is
//! not seen through every file system, a process not from every namespace.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use serde::{Deserialize, Serialize};

use crate::cluster::procfs::Identity;

/// The variable in the environment of every process of a run: `<pid>.<start>.<boot>.<random>`.
pub const TOKEN_VARIABLE: &str = "HARNESS_RUN";

/// What `run.lock` holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    /// The harness.
    pub harness: Identity,
    /// What names the run in the environment of its processes.
    pub token: String,
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
        let harness = Identity::own().ok_or_else(|| anyhow!("/proc does not tell about this process"))?;
        let owner = Owner { token: token(&harness), harness };
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

/// Whether a lock file's owner still lives. One that can't be read belongs to nobody who lives, unless it is
/// locked.
pub fn is_alive(path: &Path) -> bool {
    let Ok(file) = File::open(path) else { return false };
    if matches!(file.try_lock(), Err(std::fs::TryLockError::WouldBlock)) {
        return true;
    }
    let owner = std::fs::read(path).ok().and_then(|text| serde_json::from_slice::<Owner>(&text).ok());
    owner.is_some_and(|owner| owner.harness.lives())
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
        let owner = Owner { token: token(&harness), harness };
        std::fs::write(&path, serde_json::to_vec(&owner).expect("JSON")).expect("written");
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
