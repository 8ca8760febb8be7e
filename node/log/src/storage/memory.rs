//! A directory in memory that knows what a crash would take.
//!
//! The model is harsher than most file systems: names and contents are durable only when they were
//! synchronized themselves, and of the rest the crash keeps what its caller wants kept. A failed
//! synchronization loses its bytes for good while later reads still show them, as Linux does.
//!
//! Nothing here is random and nothing takes time: the caller chooses what is lost and counts operations.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

use super::Storage;

/// [`Storage`] in memory. Clones share one directory.
#[derive(Clone, Default)]
pub struct MemStorage {
    disk: Arc<Mutex<Disk>>,
}

/// A file of [`MemStorage`] that is open for writing. A crash makes it useless.
#[derive(Debug)]
pub struct MemFile {
    inode: u64,
    /// The number of crashes before it was opened.
    boot: u64,
}

#[derive(Clone, Debug, Default)]
struct Disk {
    /// Names as a running process sees them.
    names: BTreeMap<String, u64>,
    /// Names as they would be after a crash.
    durable_names: BTreeMap<String, u64>,
    unsynced_names: Vec<NameChange>,
    inodes: BTreeMap<u64, Inode>,
    next_inode: u64,
    boot: u64,
    operations: u64,
    failure: Option<Failure>,
    /// Like it, but neither healing nor the end of a process takes it back before it came.
    appointed: Option<Failure>,
    /// The next synchronization of a file fails, and so much of its unsynchronized bytes is kept.
    failing_sync: Option<usize>,
    /// Nothing can be added.
    full: bool,
    /// Operations that failed because somebody asked for it.
    failed: u64,
}

#[derive(Clone, Debug, Default)]
struct Inode {
    /// Bytes as a running process reads them.
    bytes: Vec<u8>,
    /// Bytes as they would be after a crash.
    durable: Vec<u8>,
    unsynced: Vec<Change>,
}

#[derive(Clone, Debug)]
enum Change {
    Write { at: usize, bytes: Vec<u8> },
    SetLen(usize),
}

#[derive(Clone, Debug)]
enum NameChange {
    Create { name: String, inode: u64 },
    Rename { from: String, to: String, inode: u64 },
    Remove { name: String },
}

#[derive(Clone, Copy, Debug)]
struct Failure {
    /// The number of the operation that fails.
    operation: u64,
    kind: io::ErrorKind,
    /// Whether all operations behind it fail too.
    lasting: bool,
}

impl fmt::Debug for MemStorage {
    /// Names and lengths: nobody wants to read the bytes.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let disk = self.lock();
        f.debug_map()
            .entries(disk.names.iter().map(|(name, inode)| (name, disk.inodes[inode].bytes.len())))
            .finish()
    }
}

impl MemStorage {
    /// An empty directory.
    pub fn new() -> Self {
        Self::default()
    }

    /// How many operations there were, the failed ones included.
    pub fn operations(&self) -> u64 {
        self.lock().operations
    }

    /// Makes the `nth` operation from now fail, where 1 is the next one. A write that fails leaves half of
    /// its bytes behind; a synchronization that fails loses what it should have kept.
    pub fn fail_nth(&self, nth: u64, kind: io::ErrorKind) {
        self.set_failure(nth, kind, false);
    }

    /// Like [`fail_nth`](Self::fail_nth), but everything behind that operation fails too.
    pub fn fail_from_nth(&self, nth: u64, kind: io::ErrorKind) {
        self.set_failure(nth, kind, true);
    }

    /// Makes the `nth` operation of all, counted from the first one on this disk, fail whatever happens
    /// before it. When it is `lasting`, everything behind it fails too until the process ends.
    pub fn appoint(&self, nth: u64, kind: io::ErrorKind, lasting: bool) {
        self.lock().appointed = Some(Failure { operation: nth, kind, lasting });
    }

    /// Makes the next synchronization of a file fail. Of what it should have kept, counted in bytes from the
    /// oldest, `keep` reach the disk; the rest is lost for good while later reads still show it.
    pub fn fail_sync(&self, keep: usize) {
        self.lock().failing_sync = Some(keep);
    }

    /// Fills the disk, or makes space on it. On a full disk nothing is created and no file grows or changes;
    /// to remove, to cut, to rename, and to write what stands there already needs no space. Outlasts a crash.
    pub fn set_full(&self, full: bool) {
        self.lock().full = full;
    }

    /// Whether the disk is full.
    pub fn is_full(&self) -> bool {
        self.lock().full
    }

    /// How many operations failed because of [`fail_nth`](Self::fail_nth) and its like, or because the disk
    /// was full.
    pub fn failed(&self) -> u64 {
        self.lock().failed
    }

    /// Takes injected failures back. A full disk stays full.
    pub fn heal(&self) {
        let mut disk = self.lock();
        disk.failure = None;
        disk.failing_sync = None;
    }

    /// Ends the process alone: nothing is lost, and nothing becomes durable by it. Open files become useless
    /// and injected failures end.
    pub fn kill(&self) {
        self.lock().restart();
    }

    /// Loses power: forgets what was not synchronized, except what `keep` saves.
    ///
    /// `keep` is asked once for each unsynchronized change of a name, with a length of 1, and once for each
    /// file with unsynchronized bytes, with their number. It answers how much of that, counted from the
    /// oldest, reached the disk. The order of the questions is always the same. Injected failures end and
    /// open files become useless.
    pub fn crash(&self, mut keep: impl FnMut(usize) -> usize) {
        let mut disk = self.lock();
        let disk = &mut *disk;
        for change in std::mem::take(&mut disk.unsynced_names) {
            if keep(1) > 0 {
                change.apply(&mut disk.durable_names);
            }
        }
        disk.names.clone_from(&disk.durable_names);
        let reachable: Vec<u64> = disk.names.values().copied().collect();
        disk.inodes.retain(|inode, _| reachable.contains(inode));
        for inode in disk.inodes.values_mut() {
            inode.crash(&mut keep);
        }
        disk.restart();
    }

    /// Which file a name stands for: another file under the same name has another number.
    pub fn identity(&self, name: &str) -> Option<u64> {
        self.lock().names.get(name).copied()
    }

    /// Turns one bit of a file over, on the disk and in the cache alike. False when the file has no such bit.
    pub fn flip_bit(&self, name: &str, bit: usize) -> bool {
        let mut disk = self.lock();
        let Some(inode) = disk.names.get(name).copied() else { return false };
        let Some(inode) = disk.inodes.get_mut(&inode) else { return false };
        let mut flipped = false;
        for bytes in [&mut inode.bytes, &mut inode.durable] {
            if let Some(byte) = bytes.get_mut(bit / 8) {
                *byte ^= 1 << (bit % 8);
                flipped = true;
            }
        }
        flipped
    }

    /// Puts a whole file there, durable at once. For tests that prepare a disk.
    pub fn place(&self, name: &str, bytes: &[u8]) {
        let mut disk = self.lock();
        let number = disk.new_inode();
        disk.inodes
            .insert(number, Inode { bytes: bytes.to_vec(), durable: bytes.to_vec(), unsynced: Vec::new() });
        disk.names.insert(name.to_owned(), number);
        disk.durable_names.insert(name.to_owned(), number);
    }

    /// A disk of its own in the same state, with the same things unsynchronized. Files that are open stay
    /// with the old one. For tests that try many ends of one story.
    #[must_use]
    pub fn fork(&self) -> Self {
        let disk = self.lock().clone();
        Self { disk: Arc::new(Mutex::new(disk)) }
    }

    fn set_failure(&self, nth: u64, kind: io::ErrorKind, lasting: bool) {
        let mut disk = self.lock();
        let operation = disk.operations + nth;
        disk.failure = Some(Failure { operation, kind, lasting });
    }

    fn lock(&self) -> MutexGuard<'_, Disk> {
        // The state stays usable after a panic elsewhere: every change below is made in one piece.
        self.disk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn operation(&self) -> (MutexGuard<'_, Disk>, io::Result<()>) {
        let mut disk = self.lock();
        disk.operations += 1;
        let now = disk.operations;
        let hits = |failure: &Failure| now == failure.operation || failure.lasting && now > failure.operation;
        let outcome = match disk.failure.into_iter().chain(disk.appointed).find(hits) {
            Some(failure) => Err(failure.kind.into()),
            None => Ok(()),
        };
        disk.failed += u64::from(outcome.is_err());
        (disk, outcome)
    }

    fn sync(&self, file: &MemFile) -> io::Result<()> {
        let (mut disk, mut outcome) = self.operation();
        if let Some(keep) = disk.failing_sync.take() {
            disk.failed += 1;
            disk.inode(file)?.keep(keep);
            outcome = Err(io::ErrorKind::Other.into());
        }
        let inode = disk.inode(file)?;
        match outcome {
            Ok(()) => inode.unsynced.drain(..).for_each(|change| change.apply(&mut inode.durable)),
            // The cache takes the bytes for stored from here on. Lengths are the file system's own and are
            // not forgotten.
            Err(_) => inode.unsynced.retain(|change| matches!(change, Change::SetLen(_))),
        }
        outcome
    }
}

impl Disk {
    /// The process that used it is gone.
    fn restart(&mut self) {
        self.failure = None;
        self.failing_sync = None;
        self.appointed = self.appointed.filter(|appointed| self.operations < appointed.operation);
        self.boot += 1;
    }

    /// Something that needs space.
    fn needs_space(&mut self) -> io::Result<()> {
        if !self.full {
            return Ok(());
        }
        self.failed += 1;
        Err(io::ErrorKind::StorageFull.into())
    }

    fn new_inode(&mut self) -> u64 {
        self.next_inode += 1;
        self.next_inode
    }

    fn inode(&mut self, file: &MemFile) -> io::Result<&mut Inode> {
        if file.boot != self.boot {
            return Err(io::Error::other("the file was opened before a crash"));
        }
        self.inodes.get_mut(&file.inode).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn number(&self, name: &str) -> io::Result<u64> {
        self.names.get(name).copied().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn rename_now(&mut self, change: NameChange) {
        change.apply(&mut self.names);
        self.unsynced_names.push(change);
    }
}

impl Inode {
    fn change(&mut self, change: Change) {
        change.apply(&mut self.bytes);
        self.unsynced.push(change);
    }

    fn crash(&mut self, keep: &mut impl FnMut(usize) -> usize) {
        let unsynced: usize = self.unsynced.iter().map(Change::size).sum();
        if unsynced > 0 {
            self.keep(keep(unsynced));
            self.unsynced.clear();
        }
        self.bytes.clone_from(&self.durable);
    }

    /// Lets the oldest unsynchronized bytes reach the disk. They still count as unsynchronized.
    fn keep(&mut self, mut left: usize) {
        for change in &self.unsynced {
            if left == 0 {
                break;
            }
            let size = change.size();
            match change {
                Change::Write { at, bytes } if size > left => {
                    Change::Write { at: *at, bytes: bytes[..left].to_vec() }.apply(&mut self.durable);
                }
                change => change.apply(&mut self.durable),
            }
            left = left.saturating_sub(size);
        }
    }
}

impl Change {
    /// How much there is to lose.
    fn size(&self) -> usize {
        match self {
            Self::Write { bytes, .. } => bytes.len(),
            Self::SetLen(_) => 1,
        }
    }

    fn apply(&self, content: &mut Vec<u8>) {
        match self {
            Self::Write { at, bytes } => {
                let end = at + bytes.len();
                if content.len() < end {
                    content.resize(end, 0);
                }
                content[*at..end].copy_from_slice(bytes);
            }
            Self::SetLen(len) => content.resize(*len, 0),
        }
    }
}

impl NameChange {
    fn apply(&self, names: &mut BTreeMap<String, u64>) {
        match self {
            Self::Create { name, inode } => {
                names.insert(name.clone(), *inode);
            }
            Self::Rename { from, to, inode } => {
                if names.get(from) == Some(inode) {
                    names.remove(from);
                }
                names.insert(to.clone(), *inode);
            }
            Self::Remove { name } => {
                names.remove(name);
            }
        }
    }
}

fn size(value: u64) -> io::Result<usize> {
    usize::try_from(value).map_err(|_| io::ErrorKind::FileTooLarge.into())
}

impl Storage for MemStorage {
    type File = MemFile;

    fn list(&self) -> io::Result<Vec<String>> {
        let (disk, outcome) = self.operation();
        outcome.map(|()| disk.names.keys().cloned().collect())
    }

    fn read(&self, name: &str) -> io::Result<Bytes> {
        let (disk, outcome) = self.operation();
        outcome?;
        let inode = disk.number(name)?;
        Ok(Bytes::copy_from_slice(&disk.inodes[&inode].bytes))
    }

    fn create(&self, name: &str) -> io::Result<MemFile> {
        let (mut disk, outcome) = self.operation();
        outcome?;
        let boot = disk.boot;
        if let Ok(inode) = disk.number(name) {
            let file = MemFile { inode, boot };
            disk.inode(&file)?.change(Change::SetLen(0));
            return Ok(file);
        }
        disk.needs_space()?;
        let inode = disk.new_inode();
        disk.inodes.insert(inode, Inode::default());
        disk.rename_now(NameChange::Create { name: name.to_owned(), inode });
        Ok(MemFile { inode, boot })
    }

    fn open(&self, name: &str) -> io::Result<MemFile> {
        let (disk, outcome) = self.operation();
        outcome?;
        Ok(MemFile { inode: disk.number(name)?, boot: disk.boot })
    }

    fn write_at(&self, file: &mut MemFile, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let (mut disk, mut outcome) = self.operation();
        let at = size(offset)?;
        if outcome.is_ok() && disk.inode(file)?.bytes.get(at..at + bytes.len()) != Some(bytes) {
            outcome = disk.needs_space();
        }
        let written = if outcome.is_ok() { bytes } else { &bytes[..bytes.len() / 2] };
        let inode = disk.inode(file)?;
        if !written.is_empty() {
            inode.change(Change::Write { at, bytes: written.to_vec() });
        }
        outcome
    }

    fn set_len(&self, file: &mut MemFile, len: u64) -> io::Result<()> {
        let (mut disk, outcome) = self.operation();
        outcome?;
        let len = size(len)?;
        if len > disk.inode(file)?.bytes.len() {
            disk.needs_space()?;
        }
        disk.inode(file)?.change(Change::SetLen(len));
        Ok(())
    }

    fn sync_data(&self, file: &mut MemFile) -> io::Result<()> {
        self.sync(file)
    }

    fn sync_all(&self, file: &mut MemFile) -> io::Result<()> {
        self.sync(file)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let (mut disk, outcome) = self.operation();
        outcome?;
        let inode = disk.number(from)?;
        disk.rename_now(NameChange::Rename { from: from.to_owned(), to: to.to_owned(), inode });
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let (mut disk, outcome) = self.operation();
        outcome?;
        disk.number(name)?;
        disk.rename_now(NameChange::Remove { name: name.to_owned() });
        Ok(())
    }

    fn sync_dir(&self) -> io::Result<()> {
        let (mut disk, outcome) = self.operation();
        let disk = &mut *disk;
        // What a failed synchronization of a directory lost may still come: it is not forgotten here, so
        // that the crash decides.
        outcome?;
        for change in std::mem::take(&mut disk.unsynced_names) {
            change.apply(&mut disk.durable_names);
        }
        // Nothing unsynchronized can bring a nameless file back from here on.
        let reachable: Vec<u64> = disk.names.values().copied().collect();
        disk.inodes.retain(|inode, _| reachable.contains(inode));
        Ok(())
    }
}
