//! What is counted, under ZooKeeper's own names, so that dashboards made for it fill.
//!
//! A counter is an atomic number that is added to where the thing happens, by the one thread to which it
//! happens; nothing is computed, locked or sent before somebody asks. What ZooKeeper counts about queues and
//! threads that are not here is left out, rather than told as zero (of the families that 3.8.0 exports):
//!
//! - `jvm_*`, `jvm_pause_time_ms`: there is no such machine; of the process there is `process_*`.
//! - `prep_*`, `proposal_process_time`, `close_session_prep_time`, `outstanding_changes_*`,
//!   `commit_process_time`, `sync_process_time`, `sync_processor_*` but for the batch size,
//!   `learner_request_processor_queue_size`, `learner_handler_qp_*`, `om_*`: one thread does all that in one
//!   step. There are no processors with queues between them.
//! - `*_commitproc_*`, `*_commit_proc_*`, `request_commit_queued`, `*_session_queue*`,
//!   `reads_issued_from_session_queue`, `*_committed_time_ms`, `*_final_proc_time_ms`,
//!   `concurrent_request_processing_in_commit_processor`, `requests_not_forwarded_to_commit_processor`:
//!   likewise; `readlatency` and `updatelatency` hold the whole time.
//! - `add_dead_watcher_stall_time`, `dead_watchers_*`: they are cleared tick by tick and hold up nobody.
//! - `response_packet_*cache*`, `netty_queued_buffer_capacity`,
//!   `skip_learner_request_to_next_processor_count`, `stale_*` but for sessions,
//!   `request_throttle_queue_time_ms`, `throttled_ops`, `large_requests_rejected`: there is no such cache,
//!   buffer, queue or limit.
//! - `ensemble_auth_*`, `insecure_admin_count`, `non_mtls_*`: there is no such scheme, and no admin server or
//!   port with both whose use would have to be told.
//! - `inflight_*_count`, `quit_leading_due_to_disloyal_voter`, `socket_closing_time`,
//!   `cnxn_closed_without_zk_server_running`, `startup_snap_load_time`, `startup_txns_load_time`: not
//!   counted. Synchronizations do not hold each other up, a leader's voters are those of its own membership,
//!   closing waits for nobody, and `dbinittime` is the sum of the last two.
//!
//! Of a namespace, which is the first name of a path, there are count, sum, smallest and largest, and no
//! median.

mod exposition;
mod family;
mod summary;
mod tally;

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

pub(crate) use exposition::{Labelled, gauges, labelled, prometheus, znodes};
pub(crate) use family::{Family, Known, namespace};
pub(crate) use summary::{Summary, Values};
pub(crate) use tally::Tally;

/// How long a window of quantiles lasts; they are of the last one or two.
const WINDOW: Duration = Duration::from_secs(300);

/// Adds to a number that one thread alone writes: a plain addition, where an atomic one would cost more than
/// all else that is done for a request's statistics. Others may read at any time.
fn add(number: &AtomicU64, count: u64) {
    number.store(number.load(Relaxed).wrapping_add(count), Relaxed);
}

/// A number that only grows. One thread counts, any may read.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, count: u64) {
        add(&self.0, count);
    }

    pub(crate) fn one(&self) {
        self.add(1);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// The last, the smallest and the largest of some sizes.
#[derive(Debug)]
pub(crate) struct Sizes {
    last: AtomicU64,
    min: AtomicU64,
    max: AtomicU64,
}

impl Default for Sizes {
    fn default() -> Self {
        Self { last: AtomicU64::new(u64::MAX), min: AtomicU64::new(u64::MAX), max: AtomicU64::new(0) }
    }
}

impl Sizes {
    pub(crate) fn note(&self, size: usize) {
        let size = size as u64;
        self.last.store(size, Relaxed);
        if size < self.min.load(Relaxed) {
            self.min.store(size, Relaxed);
        }
        if size > self.max.load(Relaxed) {
            self.max.store(size, Relaxed);
        }
    }

    pub(crate) fn reset(&self) {
        self.last.store(u64::MAX, Relaxed);
        self.min.store(u64::MAX, Relaxed);
        self.max.store(0, Relaxed);
    }

    /// Last, smallest and largest, -1 for each when there was none.
    pub(crate) fn get(&self) -> (i64, i64, i64) {
        let last = self.last.load(Relaxed);
        if last == u64::MAX {
            return (-1, -1, -1);
        }
        let shown = |size: &AtomicU64| i64::try_from(size.load(Relaxed)).unwrap_or(i64::MAX);
        (shown(&self.last), shown(&self.min), shown(&self.max))
    }
}

/// Declares what is counted, each under its field's name.
macro_rules! metrics {
    (
        counters { $($counter:ident,)* }
        times { $($time:ident: $time_detail:ident,)* }
        sizes { $($size:ident: $size_detail:ident,)* }
    ) => {
        /// Everything that is counted. Shared between threads.
        #[derive(Debug)]
        pub(crate) struct Metrics {
            $(pub(crate) $counter: Counter,)*
            $(pub(crate) $time: Summary,)*
            $(pub(crate) $size: Summary,)*
            /// From proposal to acknowledgement, by member, as the leader sees it.
            pub(crate) ack_latency: Family<Summary>,
            /// Bytes that were read, by namespace.
            pub(crate) read_per_namespace: Family<Tally>,
            /// Bytes that were written, by namespace.
            pub(crate) write_per_namespace: Family<Tally>,
            /// Writes of this member's clients that a hard limit refused, by namespace.
            pub(crate) quota_exceeded_error_per_namespace: Family<Counter>,
            /// Of the leader's proposals.
            pub(crate) proposals: Sizes,
            /// Of answers to clients.
            pub(crate) responses: Sizes,
            started: Instant,
            turned: Mutex<Instant>,
        }

        impl Metrics {
            pub(crate) fn new() -> Self {
                Self {
                    $($counter: Counter::default(),)*
                    $($time: Summary::of_times(),)*
                    $($size: Summary::of_sizes(),)*
                    ack_latency: Family::default(),
                    read_per_namespace: Family::default(),
                    write_per_namespace: Family::default(),
                    quota_exceeded_error_per_namespace: Family::default(),
                    proposals: Sizes::default(),
                    responses: Sizes::default(),
                    started: Instant::now(),
                    turned: Mutex::new(Instant::now()),
                }
            }

            /// Every counter by its name.
            pub(crate) fn counters(&self) -> Vec<(&'static str, u64)> {
                vec![$((stringify!($counter), self.$counter.get()),)*]
            }

            /// Every summary by its name, and how much ZooKeeper tells of it.
            pub(crate) fn summaries(&self) -> Vec<(&'static str, Detail, Values)> {
                self.turn();
                vec![
                    $((stringify!($time), Detail::$time_detail, self.$time.values()),)*
                    $((stringify!($size), Detail::$size_detail, self.$size.values()),)*
                ]
            }

            fn all(&self) -> impl Iterator<Item = &Summary> {
                [$(&self.$time,)* $(&self.$size,)*].into_iter()
            }
        }
    };
}

/// How much is told of a summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Detail {
    /// The median.
    Basic,
    /// Higher quantiles too.
    Advanced,
}

metrics! {
    counters {
        auth_failed_count,
        bytes_received_count,
        commit_count,
        digest_mismatches_count,
        connection_drop_count,
        connection_rejected,
        connection_request_count,
        connection_revalidate_count,
        diff_count,
        fsync_threshold_exceed_count,
        learner_commit_received_count,
        learner_proposal_received_count,
        looking_count,
        proposal_count,
        request_throttle_wait_count,
        response_bytes,
        revalidate_count,
        sessionless_connections_expired,
        snap_count,
        stale_sessions_expired,
        tls_handshake_exceeded,
        unrecoverable_error_count,
        unsuccessful_handshake,
        watch_bytes,
    }
    times {
        commit_propagation_latency: Advanced,
        dbinittime: Basic,
        election_time: Basic,
        follower_sync_time: Basic,
        fsynctime: Basic,
        leader_unavailable_time: Basic,
        observer_sync_time: Basic,
        propagation_latency: Advanced,
        proposal_ack_creation_latency: Advanced,
        proposal_latency: Advanced,
        quorum_ack_latency: Advanced,
        readlatency: Advanced,
        snapshottime: Basic,
        unavailable_time: Basic,
        updatelatency: Advanced,
    }
    sizes {
        connection_token_deficit: Basic,
        node_changed_watch_count: Basic,
        node_children_watch_count: Basic,
        node_created_watch_count: Basic,
        node_deleted_watch_count: Basic,
        startup_txns_loaded: Basic,
        sync_processor_batch_size: Basic,
    }
}

impl Metrics {
    /// Since the process started.
    pub(crate) fn uptime(&self) -> Duration {
        self.started.elapsed()
    }

    /// Forgets what `srst` forgets. Counters stay: whoever scrapes them would see time go backwards.
    pub(crate) fn reset(&self) {
        self.all().for_each(Summary::reset);
        self.ack_latency.all().iter().for_each(|(_, summary)| summary.reset());
        self.proposals.reset();
        self.responses.reset();
    }

    /// When the process started, in seconds since the Unix epoch.
    pub(crate) fn started_at(&self) -> f64 {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        now.saturating_sub(self.uptime()).as_secs_f64()
    }

    fn turn(&self) {
        let mut turned = self.turned.lock().unwrap_or_else(PoisonError::into_inner);
        if turned.elapsed() >= WINDOW {
            *turned = Instant::now();
            self.all().for_each(Summary::turn);
            self.ack_latency.all().iter().for_each(|(_, summary)| summary.turn());
        }
    }
}
