//! Places for connections: however many come, the next one gets a place.
//!
//! A connection that says nothing, says its request byte by byte or takes no answer keeps its place only
//! until somebody else wants one: where all are taken, that one goes on which nothing moved for the longest
//! time.

use std::collections::BTreeMap;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::time::Instant;

/// All places.
#[derive(Debug)]
pub(super) struct Places {
    begun: Instant,
    most: usize,
    taken: Mutex<(u64, BTreeMap<u64, Arc<Taken>>)>,
}

/// What is known of a connection that has a place.
#[derive(Debug, Default)]
struct Taken {
    /// When a byte last went either way, in ms since the beginning.
    moved_ms: AtomicU64,
    /// Another one wants the place.
    given_up: Notify,
}

/// A place, given back when it is dropped.
#[derive(Debug)]
pub(super) struct Place {
    places: Arc<Places>,
    number: u64,
    taken: Arc<Taken>,
}

impl Places {
    pub(super) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { begun: Instant::now(), most, taken: Mutex::default() })
    }

    fn taken(&self) -> MutexGuard<'_, (u64, BTreeMap<u64, Arc<Taken>>)> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// A place, for which another connection gives up its own where there is no other.
    pub(super) fn take(self: &Arc<Self>) -> Place {
        let mut all = self.taken();
        if all.1.len() >= self.most {
            give_up(&mut all.1);
        }
        all.0 += 1;
        let number = all.0;
        let taken = Arc::new(Taken { moved_ms: self.now_ms().into(), ..Taken::default() });
        all.1.insert(number, Arc::clone(&taken));
        drop(all);
        Place { places: Arc::clone(self), number, taken }
    }

    /// Ends the connection on which nothing moved for the longest time.
    pub(super) fn end_one(&self) {
        give_up(&mut self.taken().1);
    }
}

fn give_up(taken: &mut BTreeMap<u64, Arc<Taken>>) {
    let stalest = taken.iter().min_by_key(|(_, one)| one.moved_ms.load(Ordering::Relaxed));
    if let Some(one) = stalest.map(|(number, _)| *number).and_then(|number| taken.remove(&number)) {
        one.given_up.notify_one();
    }
}

impl Place {
    /// Completes when the connection is to end: another one wants its place, or nothing moved for so long.
    pub(super) async fn is_over(&self, patience: Duration) {
        loop {
            let moved = Duration::from_millis(self.taken.moved_ms.load(Ordering::Relaxed));
            let until = self.places.begun + moved + patience;
            if Instant::now() >= until {
                return;
            }
            tokio::select! {
                () = self.taken.given_up.notified() => return,
                () = tokio::time::sleep_until(until) => {}
            }
        }
    }

    /// A stream on which every byte that moves is noted.
    pub(super) fn noted(&self, stream: TcpStream) -> Noted {
        Noted { stream, places: Arc::clone(&self.places), taken: Arc::clone(&self.taken) }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.places.taken().1.remove(&self.number);
    }
}

/// A stream that notes when bytes move.
#[derive(Debug)]
pub(super) struct Noted {
    stream: TcpStream,
    places: Arc<Places>,
    taken: Arc<Taken>,
}

impl Noted {
    fn note(&self) {
        self.taken.moved_ms.store(self.places.now_ms(), Ordering::Relaxed);
    }
}

impl AsyncRead for Noted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(context, buffer);
        if buffer.filled().len() > before {
            self.note();
        }
        polled
    }
}

impl AsyncWrite for Noted {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write(context, bytes);
        if matches!(polled, Poll::Ready(Ok(1..))) {
            self.note();
        }
        polled
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn where_all_places_are_taken_the_one_that_is_silent_for_the_longest_time_is_given_up() {
        let long = Duration::from_secs(3600);
        let places = Places::new(2);
        let (speaks, silent) = (places.take(), places.take());
        speaks.taken.moved_ms.store(7, Ordering::Relaxed);
        silent.taken.moved_ms.store(6, Ordering::Relaxed);
        let third = places.take();
        silent.is_over(long).await;
        assert_eq!(places.taken().1.keys().copied().collect::<Vec<_>>(), [1, 3]);
        drop(silent);
        speaks.is_over(Duration::ZERO).await;
        drop((speaks, third));
        assert!(places.taken().1.is_empty());
    }
}
