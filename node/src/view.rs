//! A look at the member and at its clients, for whoever asks: words, the admin server, metrics.
//!
//! The member's task makes it between two batches and does no more than copy what was asked for: the tree is
//! a clone that shares everything. Text and JSON are made elsewhere.

use std::sync::Arc;
use std::time::Duration;

use bytestring::ByteString;
use node_core::tree::TreeSnapshot;
use node_core::{LearnerView, Status};
use node_wire::ids::{SessionId, Zxid};

use crate::book::Servers;

/// What a question is about, beyond the status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Want {
    /// The tree: ephemerals and their owners.
    pub(crate) tree: bool,
    /// The tree, if there are quotas in it.
    pub(crate) quotas: bool,
    /// When sessions end.
    pub(crate) deadlines: bool,
    /// Who watches what.
    pub(crate) watches: bool,
    /// Every connection of a client.
    pub(crate) connections: bool,
    /// Digests of the past.
    pub(crate) digests: bool,
    /// The leader's learners.
    pub(crate) learners: bool,
    /// Forget the statistics of the server.
    pub(crate) reset_server: bool,
    /// Forget the statistics of each connection.
    pub(crate) reset_connections: bool,
}

/// What was seen.
#[derive(Clone, Debug)]
pub(crate) struct View {
    pub(crate) status: Status,
    pub(crate) voters: usize,
    /// Members of the membership that rules.
    pub(crate) servers: Arc<Servers>,
    /// The version of that membership.
    pub(crate) membership_version: Zxid,
    pub(crate) traffic: Traffic,
    /// How long it has led an established epoch, if it does.
    pub(crate) leads_for: Option<Duration>,
    pub(crate) tree: Option<TreeSnapshot>,
    /// The tree, where quotas were asked for and there are some.
    pub(crate) quotas: Option<TreeSnapshot>,
    pub(crate) deadlines: Vec<(SessionId, Duration)>,
    /// Of sessions of this member alone.
    pub(crate) local_deadlines: Vec<(SessionId, Duration)>,
    pub(crate) watches: Vec<(SessionId, ByteString)>,
    pub(crate) connections: Vec<ConnectionView>,
    pub(crate) digests: Vec<(Zxid, i64)>,
    pub(crate) learners: Vec<LearnerView>,
}

/// What the client port counted.
#[derive(Clone, Debug, Default)]
pub(crate) struct Traffic {
    pub(crate) received: u64,
    pub(crate) sent: u64,
    pub(crate) connections: usize,
    pub(crate) handshakes: usize,
    pub(crate) drop_probability: f64,
    pub(crate) answered: u64,
    pub(crate) latency_sum: Duration,
    pub(crate) latency_min: Option<Duration>,
    pub(crate) latency_max: Duration,
}

impl Traffic {
    pub(crate) fn answered_in(&mut self, latency: Duration) {
        self.answered += 1;
        self.latency_sum += latency;
        self.latency_min = Some(self.latency_min.map_or(latency, |min| min.min(latency)));
        self.latency_max = self.latency_max.max(latency);
    }

    /// Forgets requests and latencies; connections stay.
    pub(crate) fn reset(&mut self) {
        *self = Self::default();
    }

    pub(crate) fn latency_avg_ms(&self) -> f64 {
        if self.answered == 0 {
            return 0.0;
        }
        #[expect(clippy::cast_precision_loss, reason = "an average for people")]
        let answered = self.answered as f64;
        self.latency_sum.as_secs_f64() * 1000.0 / answered
    }

    pub(crate) fn latency_min_ms(&self) -> u128 {
        self.latency_min.unwrap_or_default().as_millis()
    }
}

/// A client's connection.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ConnectionView {
    /// Address and port.
    pub(crate) remote: String,
    /// It is being read.
    pub(crate) is_read: bool,
    pub(crate) outstanding: usize,
    pub(crate) received: u64,
    pub(crate) sent: u64,
    /// From here on it is about the session, and nothing before there is one.
    pub(crate) session: Option<SessionId>,
    pub(crate) timeout_ms: i32,
    /// In milliseconds since the Unix epoch.
    pub(crate) established_ms: i64,
    pub(crate) last_operation: &'static str,
    pub(crate) last_cxid: Option<i32>,
    pub(crate) last_zxid: i64,
    /// On a clock that only grows, in milliseconds.
    pub(crate) last_response_ms: u64,
    pub(crate) last_latency: Duration,
    pub(crate) min_latency: Duration,
    pub(crate) avg_latency: Duration,
    pub(crate) max_latency: Duration,
}
