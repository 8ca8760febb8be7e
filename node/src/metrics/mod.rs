//! What is counted, under ZooKeeper's own names, so that dashboards made for it fill.
//!
//! A counter is an atomic number that is added to where the thing happens, by the one thread to which it happens;
//! nothing is computed, locked or sent before somebody asks. What ZooKeeper counts about queues and threads that are not here is left out, rather
//! than told as zero.

mod exposition;
mod summary;

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

pub(crate) use exposition::{gauges, prometheus};
pub(crate) use summary::{Summary, Values};

/// How long a window of quantiles lasts; they are of the last one or two.
const WINDOW: Duration = Duration::from_secs(300);

/// Adds to a number that one thread alone writes: a plain addition, where an atomic one would cost more than all
/// else that is done for a request's statistics. Others may read at any time.
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
        bytes_received_count,
        commit_count,
        digest_mismatches_count,
        connection_drop_count,
        connection_rejected,
        connection_request_count,
        connection_revalidate_count,
        diff_count,
        fsync_threshold_exceed_count,
        learner_proposal_received_count,
        looking_count,
        proposal_count,
        request_throttle_wait_count,
        response_bytes,
        snap_count,
        tls_handshake_exceeded,
        unrecoverable_error_count,
        unsuccessful_handshake,
    }
    times {
        dbinittime: Basic,
        election_time: Basic,
        fsynctime: Basic,
        leader_unavailable_time: Basic,
        readlatency: Advanced,
        snapshottime: Basic,
        unavailable_time: Basic,
        updatelatency: Advanced,
    }
    sizes {
        connection_token_deficit: Basic,
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
        self.proposals.reset();
        self.responses.reset();
    }

    fn turn(&self) {
        let mut turned = self.turned.lock().unwrap_or_else(PoisonError::into_inner);
        if turned.elapsed() >= WINDOW {
            *turned = Instant::now();
            self.all().for_each(Summary::turn);
        }
    }
}
