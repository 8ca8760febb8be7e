//! What answers to operators are made of: a look at the member, and what does not change while it runs.

use std::fs;
use std::sync::Arc;

use node_wire::ids::Zxid;
use node_wire::logfile::FileName;

use crate::config::NodeConfig;
use crate::metrics::Metrics;
use crate::view::View;

/// What does not change while the member runs.
#[derive(Debug)]
pub(crate) struct About {
    pub(crate) config: NodeConfig,
    /// Where clients connect, with the port that was given.
    pub(crate) client_addr: String,
}

impl About {
    pub(crate) fn new(config: NodeConfig, client_addr: String) -> Self {
        Self { config, client_addr }
    }

    /// The port for clients.
    pub(crate) fn client_port(&self) -> u16 {
        self.client_addr.rsplit(':').next().and_then(|port| port.parse().ok()).unwrap_or_default()
    }

    /// Bytes of all files in the directory of snapshots, which may be that of the log.
    pub(crate) fn data_size(&self) -> u64 {
        size_of(&self.config.version_dir())
    }

    /// Bytes of all files in the directory of the log.
    pub(crate) fn log_size(&self) -> u64 {
        size_of(&self.config.log_dir())
    }

    /// The newest snapshot, and when it was written in seconds since the Unix epoch.
    pub(crate) fn last_snapshot(&self) -> Option<(Zxid, u64)> {
        let entries = fs::read_dir(self.config.version_dir()).ok()?;
        let named = entries.filter_map(|entry| {
            let entry = entry.ok()?;
            match FileName::parse(entry.file_name().to_str()?)? {
                FileName::Snapshot(zxid) | FileName::Compressed(zxid, _) => Some((zxid, entry)),
                FileName::Log(_) => None,
            }
        });
        let (zxid, entry) = named.max_by_key(|(zxid, _)| *zxid)?;
        let modified = entry.metadata().ok()?.modified().ok()?;
        Some((zxid, modified.duration_since(std::time::UNIX_EPOCH).ok()?.as_secs()))
    }
}

fn size_of(dir: &std::path::Path) -> u64 {
    let Ok(entries) = fs::read_dir(dir) else { return 0 };
    let metadata = entries.filter_map(|entry| entry.ok()?.metadata().ok());
    metadata.filter(fs::Metadata::is_file).map(|file| file.len()).sum()
}

/// What answers are made of.
#[derive(Clone, Debug)]
pub(crate) struct Facts {
    pub(crate) view: View,
    pub(crate) about: Arc<About>,
    pub(crate) metrics: Arc<Metrics>,
}
