//! Metrics as they are read: for `mntr` and the admin server by name, for Prometheus in its text format.
//!
//! A summary has the quantiles that ZooKeeper's exporter gives it: the median, and the 90th and 99th
//! percentile where it tells more.

use std::fmt::Write;
use std::fs;

use std::collections::BTreeMap;

use node_core::Role;

use super::{Detail, Metrics, Values, namespace};
use crate::view::View;

/// What there is of each key.
pub(crate) enum Labelled {
    /// One number, and whether it only grows.
    Number(f64, bool),
    /// Count, sum, smallest and largest.
    Tally([u64; 4]),
    /// A distribution.
    Summary(Values),
}

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
        ("znode_count", size(znodes(view))),
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
        ("outstanding_tls_handshake", size(traffic.handshakes)),
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

/// Znodes as ZooKeeper counts them, whose root is there under two paths.
pub(crate) fn znodes(view: &View) -> usize {
    view.status.znodes + 1
}

/// What there is by key: names, each with its keys.
pub(crate) fn labelled(view: &View, metrics: &Metrics) -> Vec<(&'static str, Vec<(String, Labelled)>)> {
    #[expect(clippy::cast_precision_loss, reason = "what Prometheus has")]
    let number = |value: i64, grows| Labelled::Number(value as f64, grows);
    let tallies = |family: &super::Family<super::Tally>| {
        family.all().iter().map(|(key, tally)| (key.to_string(), Labelled::Tally(tally.get()))).collect()
    };
    let acks = metrics.ack_latency.all();
    let exceeded = metrics.quota_exceeded_error_per_namespace.all();
    let mut quotas: BTreeMap<String, [i64; 4]> = BTreeMap::new();
    for (path, quota) in view.quotas.iter().flat_map(|tree| tree.tree().quotas()) {
        let Some(name) = namespace(&path) else { continue };
        let sums = quotas.entry(name.to_owned()).or_default();
        let values = [quota.count_limit, quota.bytes_limit, quota.count, quota.bytes];
        sums.iter_mut().zip(values).for_each(|(sum, value)| *sum = sum.saturating_add(value));
    }
    let quota = |index: usize| {
        quotas.iter().map(|(name, values)| (name.clone(), number(values[index], false))).collect()
    };
    vec![
        (
            "ack_latency",
            acks.iter().map(|(key, ack)| (key.to_string(), Labelled::Summary(ack.values()))).collect(),
        ),
        ("read_per_namespace", tallies(&metrics.read_per_namespace)),
        ("write_per_namespace", tallies(&metrics.write_per_namespace)),
        (
            "quota_exceeded_error_per_namespace",
            exceeded
                .iter()
                .map(|(key, count)| (key.to_string(), number(count.get().cast_signed(), true)))
                .collect(),
        ),
        ("quota_count_limit_per_namespace", quota(0)),
        ("quota_bytes_limit_per_namespace", quota(1)),
        ("quota_count_usage_per_namespace", quota(2)),
        ("quota_bytes_usage_per_namespace", quota(3)),
    ]
}

/// Everything for Prometheus.
pub(crate) fn prometheus(view: &View, metrics: &Metrics) -> String {
    let mut text = String::new();
    for (name, value) in gauges(view, metrics) {
        single_sample(&mut text, name, "gauge", value);
    }
    #[expect(clippy::cast_precision_loss, reason = "what Prometheus has")]
    for (name, value) in metrics.counters() {
        single_sample(&mut text, name, "counter", value as f64);
    }
    for (name, detail, values) in metrics.summaries() {
        head(&mut text, name, "summary");
        let quantiles: &[f64] = match detail {
            Detail::Basic => &[0.5],
            Detail::Advanced => &[0.5, 0.9, 0.99],
        };
        summary(&mut text, name, "", quantiles, &values);
    }
    for (name, keys) in labelled(view, metrics) {
        by_key(&mut text, name, &keys);
    }
    process(&mut text, metrics);
    text
}

/// `key` is nothing, or the label with a comma behind it.
fn summary(text: &mut String, name: &str, key: &str, quantiles: &[f64], values: &Values) {
    // Writing to a String does not fail.
    for part in quantiles {
        let value = number(values.quantile(*part).unwrap_or(f64::NAN));
        let _ = writeln!(text, "{name}{{{key}quantile=\"{part}\",}} {value}");
    }
    let key = if key.is_empty() { String::new() } else { format!("{{{key}}}") };
    let _ = writeln!(text, "{name}_count{key} {}.0\n{name}_sum{key} {}", values.count, number(values.sum));
}

/// A family with a label, which is told when it has a key at least.
fn by_key(text: &mut String, name: &str, keys: &[(String, Labelled)]) {
    let Some((_, first)) = keys.first() else { return };
    let kind = match first {
        Labelled::Number(_, true) => "counter",
        Labelled::Number(_, false) => "gauge",
        Labelled::Tally(_) | Labelled::Summary(_) => "summary",
    };
    head(text, name, kind);
    for (key, value) in keys {
        let key = format!("key=\"{}\",", escaped(key));
        let _ = match value {
            Labelled::Number(value, _) => writeln!(text, "{name}{{{key}}} {}", number(*value)),
            Labelled::Tally([count, sum, ..]) => {
                writeln!(text, "{name}_count{{{key}}} {count}.0\n{name}_sum{{{key}}} {sum}.0")
            }
            Labelled::Summary(values) => {
                summary(text, name, &key, &[0.5, 0.9, 0.99], values);
                Ok(())
            }
        };
    }
}

/// A label's value: names of znodes are clients' own.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

/// What Prometheus' own library tells of every process.
fn process(text: &mut String, metrics: &Metrics) {
    let cpu = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    #[expect(clippy::cast_precision_loss, reason = "what Prometheus has")]
    let seconds = cpu.tv_sec as f64 + cpu.tv_nsec as f64 / 1e9;
    single_sample(text, "process_cpu_seconds_total", "counter", seconds);
    single_sample(text, "process_start_time_seconds", "gauge", metrics.started_at());
    if let Some(max) = max_files() {
        #[expect(clippy::cast_precision_loss, reason = "what Prometheus has")]
        single_sample(text, "process_max_fds", "gauge", max as f64);
    }
    if let Some(open) = open_files() {
        single_sample(text, "process_open_fds", "gauge", u32::try_from(open).map_or(f64::MAX, f64::from));
    }
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    for (line, name) in
        [("VmRSS:", "process_resident_memory_bytes"), ("VmSize:", "process_virtual_memory_bytes")]
    {
        let said = status.lines().find_map(|text| text.strip_prefix(line));
        if let Some(kilobytes) = said.and_then(|text| text.split_whitespace().next()?.parse::<u32>().ok()) {
            single_sample(text, name, "gauge", f64::from(kilobytes) * 1024.0);
        }
    }
}

/// A metric that has one sample, without labels.
fn single_sample(text: &mut String, name: &str, kind: &str, value: f64) {
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
