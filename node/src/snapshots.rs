//! Snapshots in the background.
//!
//! A tree is cheap to keep and dear to write, so a thread of its own turns it into a file. One at a time:
//! while one is being written the next is skipped, and the core asks again after as many transactions. A
//! snapshot only shortens the next start, so a failure is told and survived; the disk that refused it will
//! refuse the log soon enough, and that is not survived.

use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use node_core::tree::TreeSnapshot;
use node_log::{FileStorage, write_digested_snapshot};
use node_wire::logfile::Compression;

use crate::metrics::Metrics;
use crate::store::{SnapshotDone, wait_for};

/// How long a stopping member waits for a snapshot. Half of one is removed at the next start.
const FAREWELL: Duration = Duration::from_secs(1);

/// Starts the threads.
#[derive(Debug)]
pub(crate) struct Snapshots {
    storage: FileStorage,
    /// How they are compressed.
    method: Option<Compression>,
    done: SnapshotDone,
    metrics: Arc<Metrics>,
    present: Option<JoinHandle<()>>,
}

impl Snapshots {
    pub(crate) fn new(
        storage: FileStorage,
        method: Option<Compression>,
        done: SnapshotDone,
        metrics: Arc<Metrics>,
    ) -> Self {
        Self { storage, method, done, metrics, present: None }
    }

    pub(crate) fn take(&mut self, snapshot: TreeSnapshot) {
        if self.present.as_ref().is_some_and(|thread| !thread.is_finished()) {
            tracing::warn!("skipped a snapshot: the last one is still being written");
            return;
        }
        let (storage, done, metrics) = (self.storage.clone(), self.done.clone(), Arc::clone(&self.metrics));
        let method = self.method;
        let spawned = thread::Builder::new().name("snapshot".to_owned()).spawn(move || {
            let zxid = snapshot.zxid();
            let began = Instant::now();
            let digest = snapshot.tree().digest();
            match write_digested_snapshot(&storage, &snapshot.to_image(), digest, method) {
                Ok(()) => {
                    tracing::info!(%zxid, "wrote a snapshot");
                    metrics.snapshottime.record_time(began.elapsed());
                    done.tell();
                }
                Err(error) => tracing::error!(%zxid, "failed to write a snapshot: failed to {error}"),
            }
        });
        match spawned {
            Ok(thread) => self.present = Some(thread),
            Err(error) => tracing::error!(%error, "failed to start the thread that writes a snapshot"),
        }
    }

    /// Lets a snapshot that is being written be finished, for a bounded time. It holds the directory's lock.
    pub(crate) fn finish(self) {
        if let Some(thread) = self.present
            && !wait_for(&thread, FAREWELL)
        {
            tracing::warn!("left a snapshot unfinished");
        }
    }
}
