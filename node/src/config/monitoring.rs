//! Where the member is looked at: the admin server and the metrics.
//!
//! ZooKeeper opens its admin server on port 8080 of every interface without being asked. Here one of its keys
//! must be given: several members on one machine are the usual case, and a port that stands open should be
//! somebody's decision.

use std::time::Duration;

use super::ConfigError;
use crate::address::{HostPort, UNSPECIFIED};
use crate::zoocfg::ZooCfg;

const DEFAULT_ADMIN_PORT: u16 = 8080;
const DEFAULT_COMMAND_URL: &str = "/commands";
const DEFAULT_ADMIN_IDLE: Duration = Duration::from_secs(30);
const MIN_ADMIN_IDLE: Duration = Duration::from_millis(1);
const MAX_ADMIN_IDLE: Duration = Duration::from_hours(24);
const DEFAULT_METRICS_PORT: u16 = 7000;

/// The providers that open no port; their numbers are `mntr`'s here too.
const SILENT_PROVIDERS: [&str; 2] = [
    "org.apache.zookeeper.metrics.impl.DefaultMetricsProvider",
    "org.apache.zookeeper.metrics.impl.NullMetricsProvider",
];
const PROMETHEUS: &str = "org.apache.zookeeper.metrics.prometheus.PrometheusMetricsProvider";

/// Where the member is looked at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Monitoring {
    /// The admin server, if there is one.
    pub admin: Option<AdminServer>,
    /// Where metrics are served, if they are.
    pub metrics: Option<HostPort>,
}

/// The admin server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdminServer {
    /// Where it listens.
    pub address: HostPort,
    /// Where its commands begin, without a slash at the end.
    pub command_url: String,
    /// How long a connection may be silent.
    pub idle_timeout: Duration,
}

impl Monitoring {
    pub(super) fn new(file: &ZooCfg) -> Result<Self, ConfigError> {
        Ok(Self { admin: admin(file)?, metrics: metrics(file)? })
    }
}

fn admin(file: &ZooCfg) -> Result<Option<AdminServer>, ConfigError> {
    let asked = file.admin_port.is_some() || file.admin_address.is_some() || file.admin_url.is_some();
    if !file.admin_enabled.unwrap_or(asked) {
        return Ok(None);
    }
    let url = file.admin_url.as_deref().unwrap_or(DEFAULT_COMMAND_URL);
    if !url.starts_with('/') {
        return Err(ConfigError::Impossible(format!("admin.commandURL={url}: it must begin with /")));
    }
    let idle_timeout = file.admin_idle_timeout.unwrap_or(DEFAULT_ADMIN_IDLE);
    super::check_bounds("admin.idleTimeout", idle_timeout, MIN_ADMIN_IDLE, MAX_ADMIN_IDLE, super::in_ms)?;
    let host = file.admin_address.clone().unwrap_or_else(|| UNSPECIFIED.to_owned());
    Ok(Some(AdminServer {
        address: HostPort::new(host, file.admin_port.unwrap_or(DEFAULT_ADMIN_PORT)),
        command_url: url.trim_end_matches('/').to_owned(),
        idle_timeout,
    }))
}

fn metrics(file: &ZooCfg) -> Result<Option<HostPort>, ConfigError> {
    match file.metrics_class.as_deref() {
        None => Ok(None),
        Some(class) if SILENT_PROVIDERS.contains(&class) => Ok(None),
        Some(PROMETHEUS) => {
            let host = file.metrics_host.clone().unwrap_or_else(|| UNSPECIFIED.to_owned());
            Ok(Some(HostPort::new(host, file.metrics_port.unwrap_or(DEFAULT_METRICS_PORT))))
        }
        Some(other) => Err(ConfigError::Unsupported {
            key: "metricsProvider.className".to_owned(),
            value: other.to_owned(),
            why: format!("metrics are Prometheus', by {PROMETHEUS}, or nobody's"),
        }),
    }
}
