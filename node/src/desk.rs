//! Where operators' questions are answered: four-letter words here, and the admin server's commands with the same
//! means.
//!
//! A look at the member is cheap and made by its task; what is made of it (text of any length, sizes of
//! directories) is made on another thread, so that no answer, however long, delays a heartbeat. Few are made at
//! once: whoever asks more waits.

use std::cell::Cell;
use std::fs;
use std::rc::Rc;
use std::sync::Arc;

use node_wire::ids::Zxid;
use node_wire::logfile::FileName;
use tokio::sync::Semaphore;

use crate::config::NodeConfig;
use crate::inbox::Inbox;
use crate::metrics::Metrics;
use crate::view::{View, Want};
use crate::whitelist::Word;
use crate::words;

/// Answers that are made at once.
const MAX_REPORTS: usize = 4;

/// ZooKeeper's own trace mask until it is set. There is nothing here that it would trace.
const TRACE_MASK: i64 = 0b1_0011_0010;

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

/// Where questions are answered.
#[derive(Debug)]
pub(crate) struct Desk {
    inbox: Rc<Inbox>,
    about: Arc<About>,
    metrics: Arc<Metrics>,
    reports: Semaphore,
    trace_mask: Cell<i64>,
}

impl Desk {
    pub(crate) fn new(inbox: Rc<Inbox>, about: Arc<About>, metrics: Arc<Metrics>) -> Rc<Self> {
        Rc::new(Self {
            inbox,
            about,
            metrics,
            reports: Semaphore::new(MAX_REPORTS),
            trace_mask: Cell::new(TRACE_MASK),
        })
    }

    /// The answer to a word; none when too many ask.
    pub(crate) async fn word(&self, word: Word, argument: Option<[u8; 8]>) -> Option<String> {
        match word {
            Word::Ruok => return Some("imok".to_owned()),
            Word::Gtmk => return Some(self.trace_mask.get().to_string()),
            Word::Stmk => {
                return Some(self.trace(i64::from_be_bytes(argument.unwrap_or_default())).to_string());
            }
            _ => {}
        }
        self.report(word.wants(), move |facts| words::answer(word, &facts)).await
    }

    /// What one makes of a look at the member, made on another thread.
    pub(crate) async fn report<T: Send + 'static>(
        &self,
        want: Want,
        make: impl FnOnce(Facts) -> T + Send + 'static,
    ) -> Option<T> {
        let _place = self.reports.acquire().await.ok()?;
        let view = self.inbox.look(want).await?;
        let facts = Facts { view, about: Arc::clone(&self.about), metrics: Arc::clone(&self.metrics) };
        tokio::task::spawn_blocking(move || make(facts)).await.ok()
    }

    pub(crate) fn trace_mask(&self) -> i64 {
        self.trace_mask.get()
    }

    /// Sets the trace mask, which nothing looks at.
    pub(crate) fn trace(&self, mask: i64) -> i64 {
        self.trace_mask.set(mask);
        mask
    }

    pub(crate) fn command_url(&self) -> Option<&str> {
        self.about.config.monitoring.admin.as_ref().map(|admin| admin.command_url.as_str())
    }
}
