//! What broke, told once: by whoever sees it first, to whoever runs the run.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use runs::member::MemberId;
use tokio::sync::watch;

use super::container::Exit;
use super::engine::{Engine, engine_is_gone};

/// Where it is told. Clones are the same.
#[derive(Clone)]
pub(super) struct Trouble {
    told: watch::Sender<Option<String>>,
    /// Raised when the run cleans up: what ends then ends as it should.
    expected: Arc<AtomicBool>,
}

impl Trouble {
    /// None so far.
    pub(super) fn none(expected: Arc<AtomicBool>) -> Self {
        Self { told: watch::Sender::new(None), expected }
    }

    /// Whether ends are expected by now.
    pub(super) fn is_expected(&self) -> bool {
        self.expected.load(Ordering::SeqCst)
    }

    /// Tells; the first one counts.
    pub(super) fn tell(&self, what: String) {
        if !self.is_expected() {
            self.told.send_if_modified(|told| {
                told.is_none() && {
                    *told = Some(what);
                    true
                }
            });
        }
    }

    /// Tells what became of a sandbox, or of the engine below it.
    pub(super) async fn tell_about_sandbox(
        &self,
        engine: &Engine,
        member: MemberId,
        seen: &str,
        exit: Option<&Exit>,
    ) {
        if let Err(error) = engine.ping().await {
            self.tell(engine_is_gone(&error.to_string()));
            return;
        }
        let how = match exit {
            Some(exit @ (Exit::Status(_) | Exit::OutOfMemory | Exit::Forgotten)) => exit.words(),
            Some(Exit::Untold(_)) | None => seen.to_owned(),
        };
        self.tell(format!("the sandbox of n{} ended ({how})", member.0));
    }

    /// Completes when there is some.
    pub(super) async fn wait(&self) -> String {
        let mut told = self.told.subscribe();
        let what = told.wait_for(Option::is_some).await.map(|what| what.clone().unwrap_or_default());
        match what {
            Ok(what) => what,
            Err(_) => std::future::pending().await,
        }
    }
}
