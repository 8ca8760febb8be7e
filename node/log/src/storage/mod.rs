//! What the log asks of a disk: one flat directory of files.
//!
//! The trait is as small as the promises of a file system that the log leans on, and says which of them
//! hold after a power failure. Two implementations: [`FileStorage`] on `std::fs`, and [`MemStorage`], which
//! remembers what was synchronized, can crash, and fails when told to. The log's own tests and the simulator
//! use the second, so every crash that the model allows is tried without a disk.
//!
//! Errors are `std::io::Error`, because callers decide by its kind alone (a full disk is told apart from a
//! broken one) and the log adds the file's name.

mod file;
mod memory;

use std::io;

use bytes::Bytes;

pub use file::FileStorage;
pub use memory::{MemFile, MemStorage};

/// A flat directory of files.
///
/// Cloning gives another handle to the same directory, so that a snapshot can be written beside the log.
///
/// What survives a crash:
///
/// - bytes and lengths: what was there at the last [`sync_data`](Storage::sync_data) or
///   [`sync_all`](Storage::sync_all) of that file. What came later may survive, wholly or in part.
/// - names: what was there at the last [`sync_dir`](Storage::sync_dir). A later creation, rename or removal
///   may survive or not, each on its own; but a rename is never half done.
pub trait Storage: Clone + Send + Sync {
    /// A file that is open for writing.
    type File: Send;

    /// The names of all files, sorted.
    fn list(&self) -> io::Result<Vec<String>>;

    /// The whole content of a file.
    fn read(&self, name: &str) -> io::Result<Bytes>;

    /// Opens an empty file for writing. A file of that name loses its content.
    fn create(&self, name: &str) -> io::Result<Self::File>;

    /// Opens a file that exists for writing.
    fn open(&self, name: &str) -> io::Result<Self::File>;

    /// Writes all bytes at an offset. A gap before the offset reads as zeros.
    fn write_at(&self, file: &mut Self::File, offset: u64, bytes: &[u8]) -> io::Result<()>;

    /// Cuts a file, or extends it with zeros.
    fn set_len(&self, file: &mut Self::File, len: u64) -> io::Result<()>;

    /// Makes written bytes durable, and the length where it grew. A failure must never be answered by trying
    /// again: the kernel may have dropped the bytes and report success the second time.
    fn sync_data(&self, file: &mut Self::File) -> io::Result<()>;

    /// Makes everything about the file durable, a length that shrank included.
    fn sync_all(&self, file: &mut Self::File) -> io::Result<()>;

    /// Gives a file another name. A file that has the new name already is replaced.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Removes a file.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// Makes creations, renames and removals durable.
    fn sync_dir(&self) -> io::Result<()>;
}
