//! A directory of the file system.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;

use super::Storage;
use crate::names;

/// The file whose advisory lock says that a process owns the directory.
const LOCK_FILE: &str = "lock";

/// [`Storage`] on `std::fs`.
///
/// Opening takes an advisory lock on the directory, held until the last clone is dropped or the process
/// dies: two members that write to one log would destroy it.
#[derive(Clone, Debug)]
pub struct FileStorage {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    /// For all files but the logs.
    main: Directory,
    /// For the logs, where they lie apart.
    logs: Option<Directory>,
}

#[derive(Debug)]
struct Directory {
    path: PathBuf,
    handle: File,
    /// Held for its lock only.
    _lock: File,
}

impl Directory {
    fn open(path: PathBuf) -> io::Result<Self> {
        create_durably(&path)?;
        let lock = OpenOptions::new().create(true).truncate(false).write(true).open(path.join(LOCK_FILE))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let message = format!("{} is in use by another process", path.display());
                return Err(io::Error::new(io::ErrorKind::ResourceBusy, message));
            }
            Err(TryLockError::Error(error)) => return Err(error),
        }
        let handle = File::open(&path)?;
        Ok(Self { path, handle, _lock: lock })
    }

    /// The names of its files.
    fn list(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for item in fs::read_dir(&self.path)? {
            let item = item?;
            // A name that is not UTF-8 is none of ours, and neither is a directory.
            if let (Ok(name), true) = (item.file_name().into_string(), item.file_type()?.is_file()) {
                names.push(name);
            }
        }
        Ok(names)
    }
}

impl FileStorage {
    /// Opens a directory, and creates it (with its parents) where it is missing.
    pub fn open(path: impl Into<PathBuf>) -> io::Result<Self> {
        let main = Directory::open(path.into())?;
        Ok(Self { shared: Arc::new(Shared { main, logs: None }) })
    }

    /// As [`FileStorage::open`], with the logs in a directory of their own, as ZooKeeper's `dataLogDir` has
    /// them. Files that lie in the wrong one of the two are refused, as ZooKeeper refuses them: whoever began
    /// with one directory and then named two would start without a part of the history.
    pub fn open_apart(path: impl Into<PathBuf>, logs: impl Into<PathBuf>) -> io::Result<Self> {
        let (main, logs) = (Directory::open(path.into())?, Directory::open(logs.into())?);
        let misplaced = |at: &Directory, what: &str, other: &Directory, names: Vec<String>| match names
            .first()
        {
            None => Ok(()),
            Some(name) => Err(io::Error::new(
                io::ErrorKind::InvalidData,
                format!(
                    "{} has the {what} {name}: move it and all others to {}, or name one directory for both",
                    at.path.display(),
                    other.path.display()
                ),
            )),
        };
        let mut astray = main.list()?;
        astray.retain(|name| names::is_log(name));
        misplaced(&main, "log", &logs, astray)?;
        let mut astray = logs.list()?;
        astray.retain(|name| names::is_history(name) && !names::is_log(name));
        misplaced(&logs, "snapshot", &main, astray)?;
        Ok(Self { shared: Arc::new(Shared { main, logs: Some(logs) }) })
    }

    /// The directory; where logs lie apart, that of all other files.
    pub fn path(&self) -> &Path {
        &self.shared.main.path
    }

    fn at(&self, name: &str) -> PathBuf {
        match &self.shared.logs {
            Some(logs) if names::is_log(name) => logs.path.join(name),
            Some(_) | None => self.shared.main.path.join(name),
        }
    }
}

/// Creates a directory with its parents. The new names are made durable from the innermost outwards, as far
/// as directories were created.
fn create_durably(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => {
            create_durably(parent)?;
            create_one(path)?;
            File::open(parent)?.sync_all()
        }
        _ => create_one(path),
    }
}

fn create_one(path: &Path) -> io::Result<()> {
    match fs::create_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        other => other,
    }
}

impl Storage for FileStorage {
    type File = File;

    fn list(&self) -> io::Result<Vec<String>> {
        let mut names = self.shared.main.list()?;
        if let Some(logs) = &self.shared.logs {
            names.retain(|name| !names::is_log(name));
            names.extend(logs.list()?.into_iter().filter(|name| names::is_log(name)));
        }
        names.sort();
        Ok(names)
    }

    fn read(&self, name: &str) -> io::Result<Bytes> {
        fs::read(self.at(name)).map(Bytes::from)
    }

    fn create(&self, name: &str) -> io::Result<File> {
        OpenOptions::new().create(true).truncate(true).write(true).open(self.at(name))
    }

    fn open(&self, name: &str) -> io::Result<File> {
        OpenOptions::new().write(true).open(self.at(name))
    }

    fn write_at(&self, file: &mut File, offset: u64, bytes: &[u8]) -> io::Result<()> {
        file.write_all_at(bytes, offset)
    }

    fn set_len(&self, file: &mut File, len: u64) -> io::Result<()> {
        file.set_len(len)
    }

    fn sync_data(&self, file: &mut File) -> io::Result<()> {
        file.sync_data()
    }

    fn sync_all(&self, file: &mut File) -> io::Result<()> {
        file.sync_all()
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.at(from), self.at(to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.at(name))
    }

    fn sync_dir(&self) -> io::Result<()> {
        self.shared.main.handle.sync_all()?;
        self.shared.logs.as_ref().map_or(Ok(()), |logs| logs.handle.sync_all())
    }
}
