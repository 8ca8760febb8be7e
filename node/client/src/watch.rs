//! Watches as the application holds them.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytestring::ByteString;
use node_session::Event;
use node_session::watches::Owner;
use tokio::sync::{mpsc, oneshot};

use crate::events::{Lost, Watched};
use crate::shared::Shared;

/// A one-time watch: a future of the first event, or of the end of the session. It survives reconnects. When
/// it is dropped the watch is forgotten.
#[must_use = "a watch that nobody holds is forgotten"]
pub struct WatchOnce {
    pub(crate) receiver: oneshot::Receiver<Result<Event, Lost>>,
    pub(crate) owner: Owner,
    pub(crate) shared: Arc<Shared>,
}

impl std::fmt::Debug for WatchOnce {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WatchOnce").field("owner", &self.owner).finish_non_exhaustive()
    }
}

impl Future for WatchOnce {
    type Output = Result<Event, Lost>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.receiver).poll(cx).map(|told| told.unwrap_or(Err(Lost)))
    }
}

impl Drop for WatchOnce {
    fn drop(&mut self) {
        self.shared.core().forget(self.owner);
    }
}

/// A persistent watch. When it is dropped the watch is taken back.
///
/// Events wait in here without a bound until they are taken.
#[must_use = "a watch that nobody holds is taken back"]
pub struct WatchStream {
    pub(crate) receiver: mpsc::UnboundedReceiver<Watched>,
    pub(crate) owner: Owner,
    /// As the server knows it.
    pub(crate) path: ByteString,
    pub(crate) shared: Arc<Shared>,
}

impl std::fmt::Debug for WatchStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WatchStream").field("path", &self.path).finish_non_exhaustive()
    }
}

impl WatchStream {
    /// What is told next; nothing behind [`Watched::Lost`]. Nothing is lost when the wait is given up.
    pub async fn next(&mut self) -> Option<Watched> {
        self.receiver.recv().await
    }

    /// As [`WatchStream::next`], for those who poll.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Watched>> {
        self.receiver.poll_recv(cx)
    }
}

impl Drop for WatchStream {
    fn drop(&mut self) {
        self.shared.unwatch(self.owner, &self.path);
    }
}
