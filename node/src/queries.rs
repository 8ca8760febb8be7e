//! Where operators' questions are answered: four-letter words here, and the admin server's commands with the
//! same means.
//!
//! A look at the member is cheap and made by its task; what is made of it (text of any length, sizes of
//! directories) is made on another thread, so that no answer, however long, delays a heartbeat. Few are made
//! at once: whoever asks more waits.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use tokio::sync::Semaphore;

use crate::facts::{About, Facts};
use crate::inbox::Inbox;
use crate::metrics::Metrics;
use crate::view::Want;
use crate::whitelist::Word;
use crate::words;

/// Answers that are made at once.
const MAX_REPORTS: usize = 4;

/// ZooKeeper's own trace mask until it is set. There is nothing here that it would trace.
const TRACE_MASK: i64 = 0b1_0011_0010;

/// Where questions are answered.
#[derive(Debug)]
pub(crate) struct Queries {
    inbox: Rc<Inbox>,
    about: Arc<About>,
    metrics: Arc<Metrics>,
    reports: Semaphore,
    trace_mask: Cell<i64>,
}

impl Queries {
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
