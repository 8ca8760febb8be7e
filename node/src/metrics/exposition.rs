//! Metrics as they are read: for `mntr` and the admin server by name, for Prometheus in its text format.
//!
//! A summary has the quantiles that ZooKeeper's exporter gives it: the median, and the 90th and 99th percentile
//! where it tells more.

use std::fmt::Write;
use std::fs;

use node_core::Role;

use super::{Detail, Metrics};
use crate::view::View;

/// What is not counted but looked at, by its name.
pub(crate) fn gauges(view: &View, metrics: &Metrics) -> Vec<(&'static str, f64)> {
    let status = &view.status;
    let size = |size: usize| u32::try_from(size).map_or(f64::MAX, f64::from);
    let long = |long: u64| -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "what Prometheus has")]
        let float = long as f64;
        float
    };
    let traffic = &view.traffic;
    let (last_response, min_response, max_response) = metrics.responses.get();
    let signed = |size: i64| u64::try_from(size).map_or(-1.0, long);
    let mut all = vec![
        ("avg_latency", traffic.latency_avg_ms()),
        ("max_latency", traffic.latency_max.as_secs_f64() * 1000.0),
        ("min_latency", traffic.latency_min.unwrap_or_default().as_secs_f64() * 1000.0),
        ("packets_received", long(traffic.received)),
        ("packets_sent", long(traffic.sent)),
        ("num_alive_connections", size(traffic.connections)),
        ("outstanding_requests", size(status.outstanding)),
        ("uptime", metrics.uptime().as_secs_f64() * 1000.0),
        ("znode_count", size(status.znodes)),
        ("watch_count", size(status.watches)),
        ("ephemerals_count", size(status.ephemerals)),
        ("approximate_data_size", long(status.data_size)),
        ("global_sessions", size(status.sessions)),
        ("local_sessions", size(status.local_sessions)),
        ("open_file_descriptor_count", open_files().map_or(-1.0, size)),
        ("max_file_descriptor_count", max_files().map_or(-1.0, long)),
        ("connection_drop_probability", traffic.drop_probability),
        ("last_client_response_size", signed(last_response)),
        ("max_client_response_size", signed(max_response)),
        ("min_client_response_size", signed(min_response)),
        ("quorum_size", size(view.voters)),
    ];
    if status.role == Role::Leading {
        let (last, min, max) = metrics.proposals.get();
        all.extend([
            ("learners", size(status.learners)),
            ("synced_followers", size(status.synced_followers)),
            ("synced_non_voting_followers", 0.0),
            ("synced_observers", size(status.synced_observers)),
            ("pending_syncs", size(status.pending_syncs)),
            ("leader_uptime", view.leads_for.unwrap_or_default().as_secs_f64() * 1000.0),
            ("last_proposal_size", signed(last)),
            ("max_proposal_size", signed(max)),
            ("min_proposal_size", signed(min)),
        ]);
    }
    all
}

/// Everything for Prometheus.
pub(crate) fn prometheus(view: &View, metrics: &Metrics) -> String {
    let mut text = String::new();
    for (name, value) in gauges(view, metrics) {
        one(&mut text, name, "gauge", value);
    }
    #[expect(clippy::cast_precision_loss, reason = "what Prometheus has")]
    for (name, value) in metrics.counters() {
        one(&mut text, name, "counter", value as f64);
    }
    for (name, detail, values) in metrics.summaries() {
        head(&mut text, name, "summary");
        let quantiles: &[f64] = match detail {
            Detail::Basic => &[0.5],
            Detail::Advanced => &[0.5, 0.9, 0.99],
        };
        // Writing to a String does not fail.
        for part in quantiles {
            let value = number(values.quantile(*part).unwrap_or(f64::NAN));
            let _ = writeln!(text, "{name}{{quantile=\"{part}\",}} {value}");
        }
        let _ = writeln!(text, "{name}_count {}.0\n{name}_sum {}", values.count, number(values.sum));
    }
    process(&mut text);
    text
}

/// What Prometheus' own library tells of every process.
fn process(text: &mut String) {
    if let Some(open) = open_files() {
        one(text, "process_open_fds", "gauge", u32::try_from(open).map_or(f64::MAX, f64::from));
    }
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    if let Some(kilobytes) = resident.and_then(|text| text.split_whitespace().next()?.parse::<u32>().ok()) {
        one(text, "process_resident_memory_bytes", "gauge", f64::from(kilobytes) * 1024.0);
    }
}

fn one(text: &mut String, name: &str, kind: &str, value: f64) {
    head(text, name, kind);
    let _ = writeln!(text, "{name} {}", number(value));
}

fn head(text: &mut String, name: &str, kind: &str) {
    let _ = writeln!(text, "# HELP {name} {name}\n# TYPE {name} {kind}");
}

/// As Java prints it: always with a point.
fn number(value: f64) -> String {
    if value.is_nan() { "NaN".to_owned() } else { format!("{value:?}") }
}

fn open_files() -> Option<usize> {
    fs::read_dir("/proc/self/fd").ok().map(Iterator::count)
}

fn max_files() -> Option<u64> {
    rustix::process::getrlimit(rustix::process::Resource::Nofile).current
}
