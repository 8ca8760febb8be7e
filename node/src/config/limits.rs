//! What clients may cost all together, and how log files grow.

use std::time::Duration;

use super::ConfigError;
use crate::zoocfg::ZooCfg;

/// Connections from all hosts together; beyond the usual limit of descriptors nothing would work.
const DEFAULT_MAX_CNXNS: usize = 10_000;
/// Clients that may wait to be accepted.
const DEFAULT_BACKLOG: i32 = 1024;
/// How long a connection may take to say what it wants.
const DEFAULT_FIRST_WORDS: Duration = Duration::from_secs(10);
/// Requests under way of all clients. ZooKeeper stops at 1000, which is little where a batch costs one fsync.
const DEFAULT_OUTSTANDING: usize = 65_536;
/// An fsync that takes longer is worth a line, as in ZooKeeper.
const DEFAULT_FSYNC_WARNING: Duration = Duration::from_secs(1);
/// A session lasts at least and at most as many ticks.
const SESSION_TICKS: (i32, i32) = (2, 20);
/// A log file grows by no more than this at a time: the file system must have room for it.
const MAX_PREALLOCATE: u64 = 1 << 30;
/// A log file holds at least a transaction of the largest kind.
const MIN_ROLL_BYTES: u64 = 4 << 20;

/// What clients may cost all together.
#[derive(Clone, Debug, PartialEq)]
pub struct ClientLimits {
    /// Connections of all hosts.
    pub connections: usize,
    /// Requests under way beyond which clients that have some are left unread.
    pub outstanding: usize,
    /// Requests under way beyond which nobody is read.
    pub requests: usize,
    /// Clients that may wait to be accepted.
    pub backlog: i32,
    /// How long a connection may take to say what it wants.
    pub first_words: Duration,
    /// Whether the kernel probes silent clients.
    pub keep_alive: bool,
    /// Connect requests; none for any number.
    pub throttling: Option<Throttling>,
}

impl ClientLimits {
    pub(super) fn new(file: &ZooCfg) -> Self {
        let any_for_zero = |limit: usize| if limit == 0 { usize::MAX } else { limit };
        let connections = file.max_cnxns.map(|limit| usize::try_from(limit).unwrap_or(usize::MAX));
        Self {
            connections: connections.map_or(DEFAULT_MAX_CNXNS, any_for_zero),
            outstanding: file.global_outstanding_limit.unwrap_or(DEFAULT_OUTSTANDING),
            requests: any_for_zero(file.throttle_max_requests.unwrap_or(0)),
            // ZooKeeper's own default is -1, for the system's choice.
            backlog: file.listen_backlog.filter(|backlog| *backlog != -1).unwrap_or(DEFAULT_BACKLOG),
            first_words: file.sessionless_timeout.unwrap_or(DEFAULT_FIRST_WORDS),
            keep_alive: file.client_keep_alive.unwrap_or(false),
            throttling: Throttling::new(file),
        }
    }
}

/// A bucket of tokens for connect requests, and a probability that turns some away before it is empty.
#[derive(Clone, Debug, PartialEq)]
pub struct Throttling {
    /// What the bucket holds.
    pub tokens: u32,
    /// After so long...
    pub fill_time: Duration,
    /// ...so many tokens come back.
    pub fill_count: u32,
    /// Between changes of the probability; none for no such thing.
    pub freeze: Option<Duration>,
    /// How much it grows when the bucket is empty.
    pub increase: f64,
    /// How much it shrinks.
    pub decrease: f64,
    /// It shrinks while no larger part of the bucket is spent.
    pub decrease_ratio: f64,
    /// What a new session costs.
    pub new_session: u32,
    /// What a session costs that comes back.
    pub renewed_session: u32,
}

impl Throttling {
    /// ZooKeeper's defaults and ZooKeeper's corrections: the tokens are counted in new sessions.
    fn new(file: &ZooCfg) -> Option<Self> {
        let tokens = file.throttle_tokens.filter(|tokens| *tokens > 0)?;
        let local = file.throttle_local_weight.unwrap_or(1).max(1);
        let weight =
            |said: Option<u32>, usual: u32| said.filter(|weight| *weight > 0).unwrap_or(usual).max(local);
        let (new_session, renewed_session) = if file.throttle_weights.unwrap_or(false) {
            (weight(file.throttle_global_weight, 3), weight(file.throttle_renew_weight, 2))
        } else {
            (1, 1)
        };
        Some(Self {
            tokens: tokens.saturating_mul(new_session),
            fill_time: file
                .throttle_fill_time
                .unwrap_or(Duration::from_millis(1))
                .max(Duration::from_millis(1)),
            fill_count: file.throttle_fill_count.unwrap_or(1).saturating_mul(new_session),
            freeze: file
                .throttle_freeze_time
                .and_then(|ms| u64::try_from(ms).ok())
                .map(Duration::from_millis),
            increase: file.throttle_drop_increase.unwrap_or(0.02),
            decrease: file.throttle_drop_decrease.unwrap_or(0.002),
            decrease_ratio: file.throttle_decrease_ratio.unwrap_or(0.0),
            new_session,
            renewed_session,
        })
    }
}

/// How log files grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogLimits {
    /// By so much at a time.
    pub preallocate_bytes: u64,
    /// A file of this size is followed by a new one.
    pub roll_bytes: u64,
    /// An fsync that takes longer is logged.
    pub fsync_warning: Duration,
}

impl LogLimits {
    pub(super) fn new(file: &ZooCfg) -> Result<Self, ConfigError> {
        let usual = node_log::LogOptions::default();
        let roll_bytes = match file.log_size_limit {
            None | Some(-1) => usual.roll_bytes,
            Some(kilobytes) => {
                let bytes = u64::try_from(kilobytes).unwrap_or(0).saturating_mul(1 << 10);
                super::check_bounds(
                    "txnLogSizeLimitInKb",
                    bytes >> 10,
                    MIN_ROLL_BYTES >> 10,
                    u64::MAX >> 10,
                    super::as_number,
                )?;
                bytes
            }
        };
        let preallocate_bytes = file.preallocate_bytes.unwrap_or(usual.preallocate_bytes);
        super::check_bounds(
            "preAllocSize",
            preallocate_bytes >> 10,
            0,
            MAX_PREALLOCATE >> 10,
            super::as_number,
        )?;
        Ok(Self {
            preallocate_bytes,
            roll_bytes,
            fsync_warning: file.fsync_warning.unwrap_or(DEFAULT_FSYNC_WARNING),
        })
    }
}

/// Bounds of a session's time-out in milliseconds.
pub(super) fn session_timeouts(file: &ZooCfg, tick_time: Duration) -> Result<(i32, i32), ConfigError> {
    let tick = i32::try_from(tick_time.as_millis()).unwrap_or(i32::MAX);
    let said = |value: Option<i32>, ticks: i32| match value {
        None | Some(-1) => tick.saturating_mul(ticks),
        Some(ms) => ms,
    };
    let min = said(file.min_session_timeout, SESSION_TICKS.0);
    let max = said(file.max_session_timeout, SESSION_TICKS.1);
    if file.min_session_timeout.is_some() {
        super::check_bounds("minSessionTimeout", min, 1, i32::MAX, super::as_number)?;
    }
    if min > max {
        return Err(ConfigError::Impossible(format!(
            "minSessionTimeout of {min} ms above maxSessionTimeout of {max} ms: exchange or correct them"
        )));
    }
    Ok((min, max))
}
