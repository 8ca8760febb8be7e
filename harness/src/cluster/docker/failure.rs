//! The first failure of a run's containers. Whoever sees one reports it; the run waits for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use runs::member::MemberId;
use tokio::sync::watch;

use super::container::Exit;
use super::engine::{Engine, engine_is_gone};

/// Where it is reported. Clones share it.
#[derive(Clone)]
pub(super) struct FirstFailure {
    told: watch::Sender<Option<String>>,
    /// Raised when the run cleans up: an end is expected then.
    expected: Arc<AtomicBool>,
}

impl FirstFailure {
    /// None so far.
    pub(super) fn none(expected: Arc<AtomicBool>) -> Self {
        Self { told: watch::Sender::new(None), expected }
    }

    /// Whether ends are expected by now.
    pub(super) fn is_expected(&self) -> bool {
        self.expected.load(Ordering::SeqCst)
    }

    /// Reports one; the first counts.
    pub(super) fn report(&self, what: String) {
        if !self.is_expected() {
            self.told.send_if_modified(|told| {
                told.is_none() && {
                    *told = Some(what);
                    true
                }
            });
        }
    }

    /// Reports the end of a sandbox, or that the engine is gone.
    pub(super) async fn report_sandbox(
        &self,
        engine: &Engine,
        member: MemberId,
        seen: &str,
        exit: Option<&Exit>,
    ) {
        if let Err(error) = engine.ping().await {
            self.report(engine_is_gone(&error.to_string()));
            return;
        }
        let how = match exit {
            Some(exit @ (Exit::Status(_) | Exit::OutOfMemory | Exit::Forgotten)) => exit.words(),
            Some(Exit::Untold(_)) | None => seen.to_owned(),
        };
        self.report(format!("the sandbox of n{} ended ({how})", member.0));
    }

    /// Completes when there is one.
    pub(super) async fn wait(&self) -> String {
        let mut told = self.told.subscribe();
        let what = told.wait_for(Option::is_some).await.map(|what| what.clone().unwrap_or_default());
        match what {
            Ok(what) => what,
            Err(_) => std::future::pending().await,
        }
    }
}
