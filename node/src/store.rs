//! The log's writer: a thread of its own, so that no heartbeat ever waits for a disk.
//!
//! It takes everything that is queued, carries it out in order, and synchronizes once for all entries that
//! follow each other: while one fsync runs, the next group gathers (group commit). What is durable is told as
//! one number, the highest ticket; the member's task is woken and reads it.
//!
//! The first error is the last thing that this thread does. Nothing behind it is ever called durable, and the
//! member stops: after a failed fsync nobody knows what the disk holds.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use node_core::io::StoreOp;
use node_log::{FileStorage, Log, LogError, Storage};
use node_wire::ids::Zxid;
use node_wire::membership::Membership;
use tokio::sync::Notify;

use crate::dynamic::DynamicFile;
use crate::metrics::Metrics;

/// Bytes that may wait for the disk before clients are left unread.
const HIGH: usize = 64 << 20;

/// Bytes at which the disk is given up: it does not keep up with what the leader sends, and memory is finite.
const TOO_HIGH: usize = 1 << 30;

/// What an operation counts besides its entry's bytes.
const OVERHEAD: usize = 64;

/// How long a stopping member waits for its disk.
const STOP_PATIENCE: Duration = Duration::from_secs(5);

/// Bytes that wait for the disk.
#[derive(Clone, Debug, Default)]
pub(crate) struct Backlog(Arc<AtomicUsize>);

impl Backlog {
    pub(crate) fn is_high(&self) -> bool {
        self.0.load(Ordering::Relaxed) >= HIGH
    }
}

/// A store operation with its ticket.
pub(crate) type Ticketed = (u64, StoreOp);

enum Work {
    Ops(Vec<Ticketed>),
    /// A snapshot was written: begin a new file, remove what nobody needs beside the snapshot at this zxid.
    Snapshot(Option<Zxid>),
    /// Finish what is queued and end. The end of the queue alone would not do: a snapshot that is still being
    /// written holds it open.
    Stop,
}

/// What the writer has done.
#[derive(Debug)]
struct Progress {
    durable: AtomicU64,
    failure: Mutex<Option<String>>,
    wake: Arc<Notify>,
}

impl Progress {
    fn fail(&self, reason: String) {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(reason);
        self.wake.notify_one();
    }
}

/// The member's end of the queue.
#[derive(Debug)]
pub(crate) struct Store {
    work: Sender<Work>,
    progress: Arc<Progress>,
    backlog: Backlog,
    thread: JoinHandle<()>,
}

/// Tells the writer, from another thread, that a snapshot stands.
#[derive(Clone, Debug)]
pub(crate) struct SnapshotDone(Sender<Work>);

impl SnapshotDone {
    /// `base` is the oldest one to be kept, if older ones may go.
    pub(crate) fn tell(&self, base: Option<Zxid>) {
        // A writer that is gone purges nothing any more.
        let _ = self.0.send(Work::Snapshot(base));
    }
}

impl Store {
    /// Starts the writer. `wake` is notified when it has something to tell. It lets work gather for `linger`
    /// before each fsync: see [`crate::Manner`].
    pub(crate) fn start(
        log: Log<FileStorage>,
        dynamic: Option<DynamicFile>,
        wake: Arc<Notify>,
        linger: Duration,
        measured: Measured,
    ) -> std::io::Result<Self> {
        let (work, queue) = mpsc::channel();
        let progress = Arc::new(Progress { durable: AtomicU64::new(0), failure: Mutex::new(None), wake });
        let backlog = Backlog::default();
        let writer = Writer {
            log,
            dynamic,
            progress: Arc::clone(&progress),
            backlog: backlog.clone(),
            linger,
            measured,
        };
        let thread = thread::Builder::new().name("log".to_owned()).spawn(move || writer.run(&queue))?;
        Ok(Self { work, progress, backlog, thread })
    }

    /// True when clients should be left unread for the disk's sake.
    pub(crate) fn is_behind(&self) -> bool {
        self.backlog.is_high()
    }

    pub(crate) fn backlog(&self) -> Backlog {
        self.backlog.clone()
    }

    pub(crate) fn snapshot_done(&self) -> SnapshotDone {
        SnapshotDone(self.work.clone())
    }

    /// Queues operations.
    ///
    /// # Errors
    /// When the disk is too far behind, with the reason for the operator.
    pub(crate) fn submit(&self, ops: Vec<Ticketed>) -> Result<(), String> {
        let size: usize = ops.iter().map(|(_, op)| size(op)).sum();
        let waiting = self.backlog.0.fetch_add(size, Ordering::Relaxed) + size;
        if waiting > TOO_HIGH {
            return Err(format!(
                "the disk does not keep up: {waiting} bytes wait to be logged; look at what slows it down"
            ));
        }
        // A writer that is gone said why; the failure is looked at before anything else.
        let _ = self.work.send(Work::Ops(ops));
        Ok(())
    }

    /// The highest ticket that is durable; 0 before the first.
    pub(crate) fn durable(&self) -> u64 {
        self.progress.durable.load(Ordering::Acquire)
    }

    /// Why the writer stopped, if it did.
    pub(crate) fn failure(&self) -> Option<String> {
        self.progress.failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Lets the writer finish what is queued, for a bounded time.
    pub(crate) fn finish(self) {
        let Self { work, thread, .. } = self;
        let _ = work.send(Work::Stop);
        if !wait_for(&thread, STOP_PATIENCE) {
            tracing::warn!("the disk is too slow to wait for: what was not acknowledged may be lost");
        }
    }
}

/// Waits for the end of a thread, for a bounded time. False when it goes on.
pub(crate) fn wait_for(thread: &JoinHandle<()>, patience: Duration) -> bool {
    let deadline = Instant::now() + patience;
    while !thread.is_finished() {
        if Instant::now() >= deadline {
            return false;
        }
        thread::park_timeout(Duration::from_millis(1));
    }
    true
}

fn size(op: &StoreOp) -> usize {
    OVERHEAD
        + match op {
            StoreOp::Append(entry) => entry.bytes.len(),
            StoreOp::Truncate(_)
            | StoreOp::Install(_)
            | StoreOp::AcceptedEpoch(_)
            | StoreOp::CurrentEpoch(_)
            | StoreOp::Membership(_) => 0,
        }
}

/// The thread.
struct Writer<S: Storage> {
    log: Log<S>,
    /// The operator's files, where the membership is kept.
    dynamic: Option<DynamicFile>,
    progress: Arc<Progress>,
    backlog: Backlog,
    linger: Duration,
    measured: Measured,
}

/// Where the writer counts, and when an fsync is slow.
#[derive(Clone, Debug)]
pub(crate) struct Measured {
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) slow: Duration,
}

impl Measured {
    fn synchronized(&self, entries: u64, took: Duration) {
        self.metrics.fsynctime.record_time(took);
        self.metrics.sync_processor_batch_size.record(entries);
        if took > self.slow {
            self.metrics.fsync_threshold_exceed_count.one();
            tracing::warn!(?took, "an fsync of the log was slow (fsync.warningthresholdms)");
        }
    }
}

impl<S: Storage> Writer<S> {
    fn run(mut self, queue: &Receiver<Work>) {
        // A panic must not leave the member waiting for ever for what is never told.
        let mut alarm = Alarm { progress: Arc::clone(&self.progress), armed: true };
        while let Ok(first) = queue.recv() {
            if !self.linger.is_zero() {
                thread::sleep(self.linger);
            }
            match self.carry_out(first, queue) {
                Ok(Next::Go) => {}
                Ok(Next::Stop) => break,
                Err(error) => {
                    self.progress.fail(format!("failed to {error}"));
                    break;
                }
            }
        }
        alarm.armed = false;
    }

    /// Carries out one piece of work and all that waits behind it.
    fn carry_out(&mut self, first: Work, queue: &Receiver<Work>) -> Result<Next, LogError> {
        let mut snapshot = None;
        let mut next = Next::Go;
        let mut group = Group::default();
        for work in std::iter::once(first).chain(queue.try_iter()) {
            match work {
                Work::Snapshot(base) => snapshot = Some(base),
                Work::Stop => next = Next::Stop,
                Work::Ops(ops) => {
                    for (ticket, op) in ops {
                        group.size += size(&op);
                        group.entries += u64::from(matches!(op, StoreOp::Append(_)));
                        self.write(op)?;
                        group.ticket = ticket;
                    }
                }
            }
        }
        let began = Instant::now();
        self.log.flush_and_sync()?;
        if group.entries > 0 {
            self.measured.synchronized(group.entries, began.elapsed());
        }
        self.backlog.0.fetch_sub(group.size, Ordering::Relaxed);
        if group.ticket > 0 {
            self.progress.durable.store(group.ticket, Ordering::Release);
            self.progress.wake.notify_one();
        }
        if let Some(base) = snapshot {
            self.after_snapshot(base)?;
        }
        Ok(next)
    }

    /// Writes one operation; an appended entry is not durable before the group is synchronized.
    fn write(&mut self, op: StoreOp) -> Result<(), LogError> {
        match op {
            StoreOp::Append(entry) => return self.log.append(&entry),
            StoreOp::Truncate(zxid) => self.log.truncate(zxid)?,
            StoreOp::Install(image) => {
                self.log.flush_and_sync()?;
                self.log.install(&image)?;
            }
            StoreOp::AcceptedEpoch(epoch) => {
                self.log.flush_and_sync()?;
                self.log.set_accepted_epoch(epoch)?;
            }
            // The law of synchronization: the history is durable before the epoch that it belongs to.
            StoreOp::CurrentEpoch(epoch) => {
                self.log.flush_and_sync()?;
                self.log.set_current_epoch(epoch)?;
            }
            StoreOp::Membership(membership) => self.keep(&membership),
        }
        Ok(())
    }

    /// Where the operator's files can't be written, the log still knows: a start takes longer, and no promise
    /// breaks.
    fn keep(&self, membership: &Membership) {
        let Some(dynamic) = &self.dynamic else { return };
        if let Err(error) = dynamic.write(membership) {
            tracing::error!(
                "failed to write down the membership of version {:x}: {error}; let this member write there, \
                 or correct the server lines by hand",
                membership.version.0
            );
        }
    }

    fn after_snapshot(&mut self, base: Option<Zxid>) -> Result<(), LogError> {
        self.log.roll()?;
        let Some(base) = base else { return Ok(()) };
        let removed = self.log.purge_before(base)?;
        if !removed.is_empty() {
            tracing::info!(?removed, "removed old snapshots and logs");
        }
        Ok(())
    }
}

/// Whether the writer goes on.
enum Next {
    Go,
    Stop,
}

/// What one synchronization makes durable.
#[derive(Default)]
struct Group {
    ticket: u64,
    size: usize,
    entries: u64,
}

struct Alarm {
    progress: Arc<Progress>,
    armed: bool,
}

impl Drop for Alarm {
    fn drop(&mut self) {
        if self.armed {
            self.progress.fail("the log's writer panicked; its message stands above".to_owned());
        }
    }
}
