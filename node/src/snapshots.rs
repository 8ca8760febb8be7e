//! Snapshots in the background.
//!
//! A tree is cheap to keep and dear to write, so a thread of its own turns it into a file. One at a time:
//! while one is being written the next is skipped, and the core asks again after as many transactions. A
//! snapshot only shortens the next start, so a failure is told and survived; the disk that refused it will
//! refuse the log soon enough, and that is not survived.
//!
//! The thread is in nobody's way: it gives way to the threads that clients wait for, and reads there what
//! must be sound before older files are removed. The log's writer only removes them.

use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use node_core::tree::TreeSnapshot;
use node_log::{FileStorage, oldest_kept, write_digested_snapshot};
use node_wire::logfile::Compression;

use crate::metrics::Metrics;
use crate::store::{SnapshotDone, wait_for};

/// How long a stopping member waits for a snapshot. Half of one is removed at the next start.
const STOP_PATIENCE: Duration = Duration::from_secs(1);

/// How far the thread gives way to others: ten steps are a tenth of the share of a thread that is as busy.
const NICE: i32 = 10;

/// Starts the threads.
#[derive(Debug)]
pub(crate) struct Snapshots {
    storage: FileStorage,
    /// How they are compressed.
    method: Option<Compression>,
    /// How many are kept; all of them without a number.
    keep: Option<usize>,
    done: SnapshotDone,
    metrics: Arc<Metrics>,
    present: Option<JoinHandle<()>>,
}

impl Snapshots {
    pub(crate) fn new(
        storage: FileStorage,
        method: Option<Compression>,
        keep: Option<usize>,
        done: SnapshotDone,
        metrics: Arc<Metrics>,
    ) -> Self {
        Self { storage, method, keep, done, metrics, present: None }
    }

    pub(crate) fn take(&mut self, snapshot: TreeSnapshot) {
        if self.present.as_ref().is_some_and(|thread| !thread.is_finished()) {
            tracing::warn!("skipped a snapshot: the last one is still being written");
            return;
        }
        let (storage, done, metrics) = (self.storage.clone(), self.done.clone(), Arc::clone(&self.metrics));
        let (method, keep) = (self.method, self.keep);
        let spawned = thread::Builder::new().name("snapshot".to_owned()).spawn(move || {
            // Of this thread alone, on Linux. Where it is refused, it is as busy as others.
            let _ = rustix::process::nice(NICE);
            let zxid = snapshot.zxid();
            let began = Instant::now();
            let digest = snapshot.tree().digest();
            if let Err(error) = write_digested_snapshot(&storage, snapshot.contents(), digest, method) {
                tracing::error!(%zxid, "failed to write a snapshot: failed to {error}");
                return;
            }
            // Where changes were made meanwhile, it holds what they replaced.
            drop(snapshot);
            tracing::info!(%zxid, "wrote a snapshot");
            metrics.snapshottime.record_time(began.elapsed());
            let base = keep.map_or(Ok(None), |keep| oldest_kept(&storage, keep));
            let base = base.unwrap_or_else(|error| {
                tracing::error!(%zxid, "removed no old snapshots: failed to {error}");
                None
            });
            done.tell(base);
        });
        match spawned {
            Ok(thread) => self.present = Some(thread),
            Err(error) => tracing::error!(%error, "failed to start the thread that writes a snapshot"),
        }
    }

    /// Lets a snapshot that is being written be finished, for a bounded time. It holds the directory's lock.
    pub(crate) fn finish(self) {
        if let Some(thread) = self.present
            && !wait_for(&thread, STOP_PATIENCE)
        {
            tracing::warn!("left a snapshot unfinished");
        }
    }
}
