//! What a run owns on an engine. Creation is serialized by one lock; removal goes through one function.
//!
//! No list is kept that could be incomplete: everything carries the run's label, and what is removed is what
//! the engine says carries it. The lock sees to it that nothing is created after the removal began.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, bail};
use bollard::Docker;
use bollard::errors::Error;
use tokio::sync::RwLock;

use super::engine::{Engine, EngineError, engine_is_gone};
use super::inventory::{self, Removed};
use super::labels::Labels;

/// How long creations that are under way may take before the removal begins without them.
const LOCK_PATIENCE: Duration = Duration::from_secs(10);
/// How long a removal may take when nobody can wait asynchronously any more.
const DROP_PATIENCE: Duration = Duration::from_secs(15);

/// Everything of one run. When it is dropped, whatever led there, all of it is removed.
pub(super) struct Resources {
    engine: Engine,
    labels: Labels,
    open: Arc<RwLock<bool>>,
    closing: Arc<AtomicBool>,
}

impl Resources {
    /// Nothing yet.
    pub(super) fn new(engine: Engine, token: &str) -> Self {
        Self {
            engine,
            labels: Labels::new(token),
            open: Arc::new(RwLock::new(true)),
            closing: Arc::default(),
        }
    }

    /// The engine.
    pub(super) fn engine(&self) -> &Engine {
        &self.engine
    }

    /// What every resource carries.
    pub(super) fn labels(&self) -> &Labels {
        &self.labels
    }

    /// Raised when they are about to be removed: an end from then on is expected.
    pub(super) fn closing(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.closing)
    }

    /// Says that an end from now on is expected.
    pub(super) fn announce_end(&self) {
        self.closing.store(true, Ordering::SeqCst);
    }

    /// A name for the resource of `part`.
    pub(super) fn name(&self, part: &str) -> String {
        format!("harness-{}-{part}", self.labels.short())
    }

    /// Creates something, unless the removal has begun.
    pub(super) async fn make<T, F>(
        &self,
        what: &str,
        patience: Duration,
        request: impl FnOnce(Docker) -> F + Send + 'static,
    ) -> anyhow::Result<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, Error>> + Send + 'static,
    {
        let open = Arc::clone(&self.open).read_owned().await;
        if !*open {
            bail!("{what} comes too late: the run is being cleaned up");
        }
        // The call itself holds the lock, because it goes on when its caller is gone.
        let guarded = move |docker: Docker| async move {
            let made = request(docker).await;
            drop(open);
            made
        };
        match self.engine.call(what, patience, guarded).await {
            Err(error) if error.is_gone() => bail!(engine_is_gone(&error.to_string())),
            made => Ok(made?),
        }
    }

    /// Leaves everything to a later sweep: there is nobody to ask for its removal.
    pub(super) async fn give_up(&self) {
        self.announce_end();
        close(&self.open).await;
    }

    /// Removes everything.
    pub(super) async fn remove(&self) -> anyhow::Result<Removed> {
        self.announce_end();
        close(&self.open).await;
        remove_all(&self.engine, self.labels.token()).await.context("cleaning up the engine")
    }
}

async fn close(open: &RwLock<bool>) {
    if let Ok(mut open) = tokio::time::timeout(LOCK_PATIENCE, open.write()).await {
        *open = false;
    }
}

async fn remove_all(engine: &Engine, token: &str) -> Result<Removed, EngineError> {
    // A dead engine is told in two seconds and not after a dozen time-outs.
    engine.ping().await?;
    inventory::empty(engine, &[token.to_owned()]).await
}

impl Drop for Resources {
    /// Usually there is nothing left to do. After a panic or an interrupt there is, and then this waits.
    fn drop(&mut self) {
        if self.open.try_read().is_ok_and(|open| !*open) {
            return;
        }
        self.announce_end();
        let (engine, token, open) =
            (self.engine.clone(), self.labels.token().to_owned(), Arc::clone(&self.open));
        let (done, waiting) = std::sync::mpsc::sync_channel(1);
        self.engine.spawn(async move {
            close(&open).await;
            // Nobody may be waiting any more.
            let _ = done.send(remove_all(&engine, &token).await);
        });
        match waiting.recv_timeout(DROP_PATIENCE) {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => tracing::warn!(%error, "not everything is removed; `harness clean` will"),
            Err(error) => tracing::warn!(%error, "not everything is removed; `harness clean` will"),
        }
    }
}
