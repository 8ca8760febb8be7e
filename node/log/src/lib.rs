//! What a member keeps on disk: the transaction log, snapshots and its epochs, and how they are read back.
//!
//! A member may acknowledge only what it will still know after a power failure, and after one it must come
//! back with a history that it really had. This crate is that promise, over a small [`Storage`] trait, so
//! that the same code runs on files ([`FileStorage`]) and on a disk in memory that crashes when told to
//! ([`MemStorage`]).
//!
//! The files are ZooKeeper's, by name and by byte, in one flat directory (its `version-2`), or the logs in
//! one of their own ([`FileStorage::open_apart`]):
//!
//! | file | holds | written |
//! |---|---|---|
//! | `log.<zxid>` | entries, the first one's zxid in the name | appended; one fsync for all that waits |
//! | `snapshot.<zxid>` | the tree after that entry; `.gz`, `.snappy`: compressed | as another file, renamed |
//! | `acceptedEpoch`, `currentEpoch` | a decimal number each | likewise |
//! | `install.<zxid>` | a tree that replaces the history; ours, there while that goes on | likewise |
//! | `synced` | the synchronized position, for the test bench; ours | in place, never synchronized |
//! | `lock` | nothing; ours | locked while a process owns the directory |
//!
//! - [`Log`] is the one writer. [`Log::open`] recovers; what it accepts and what it refuses is told in the
//!   sources of `recovery` (history) and `epochs` (which epochs may stand beside which history).
//! - [`write_snapshot`] and [`purge`] work beside the writer, on another thread.
//! - [`cut_to_synced`] loses what a power failure would have lost.
//!
//! It does not know what an entry means, decide when to take a snapshot, or run anything in the background:
//! calls block until the disk has answered. It never tries a failed synchronization again; the idea that one
//! may lie the second time is from the PostgreSQL developers' fsync findings of 2018. Snapshots may be
//! compressed as ZooKeeper's are ([`decompress`]).

mod compressed;
mod durable;
mod end;
mod epochs;
mod error;
mod log;
mod names;
mod opening;
mod records;
mod recovery;
mod rewrite;
mod snapshots;
mod storage;
mod synced;

pub use compressed::{compress, decompress, decompressing};
pub use error::{Evidence, LogError};
pub use log::{Log, LogOptions, SyncedPosition};
pub use recovery::{Recovered, Repairs, TornTail};
pub use snapshots::{oldest_kept, purge, write_digested_snapshot, write_snapshot};
pub use storage::{FileStorage, MemFile, MemStorage, Storage};
pub use synced::{CutToSynced, cut_to_synced};
