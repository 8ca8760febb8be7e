//! The store that a token guards: what an application writes to while it holds.
//!
//! It keeps the largest token that it saw for each key, and takes no write by a smaller one. That is all that
//! whoever owns a resource has to do (Kleppmann: "How to do distributed locking"). It gives each write that
//! it takes its place, and says when it took it. A store that does not look at tokens is a planted bug.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use harness_systems::application::{Guarded, Judged};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

use crate::clock::RunClock;

/// What is known of a key.
#[derive(Clone, Copy, Debug, Default)]
struct Kept {
    highest: i64,
    place: i64,
}

/// The store. Clones share it.
#[derive(Clone)]
pub struct Store {
    clock: RunClock,
    minds_tokens: bool,
    kept: Arc<Mutex<BTreeMap<u64, Kept>>>,
}

impl Store {
    /// An empty one.
    pub fn new(clock: RunClock, minds_tokens: bool) -> Self {
        Self { clock, minds_tokens, kept: Arc::default() }
    }

    /// Takes a write, or does not.
    pub fn judge(&self, write: &Guarded) -> Judged {
        let mut all = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = all.entry(write.key).or_default();
        let admitted = !self.minds_tokens || write.token >= kept.highest;
        kept.highest = kept.highest.max(write.token);
        kept.place += i64::from(admitted && write.value.is_some());
        Judged { admitted, place: kept.place, at: self.clock.now() }
    }

    /// Answers whoever comes.
    pub(super) async fn serve(self, listener: TcpListener) {
        while let Ok((stream, _)) = listener.accept().await {
            let store = self.clone();
            tokio::spawn(async move {
                // Whoever goes away needs no answer.
                let _ = store.answer(stream).await;
            });
        }
    }

    async fn answer(&self, mut stream: TcpStream) -> std::io::Result<()> {
        stream.set_nodelay(true)?;
        let (read, mut write) = stream.split();
        let mut lines = BufReader::new(read).lines();
        while let Some(line) = lines.next_line().await? {
            let asked: Guarded = serde_json::from_str(&line)?;
            let mut line = serde_json::to_vec(&self.judge(&asked))?;
            line.push(b'\n');
            write.write_all(&line).await?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(store: &Store, tokens: &[i64]) -> Vec<bool> {
        let write = |token: &i64| store.judge(&Guarded { key: 1, token: *token, value: Some(0) });
        tokens.iter().map(|token| write(token).admitted).collect()
    }

    #[test]
    fn a_smaller_token_is_refused_after_a_larger_one_and_places_are_dense() {
        let store = Store::new(RunClock::start(), true);
        assert_eq!(taken(&store, &[5, 5, 7, 5, 7, 9]), [true, true, true, false, true, true]);
        assert_eq!(store.judge(&Guarded { key: 1, token: 9, value: Some(0) }).place, 6);
        assert_eq!(store.judge(&Guarded { key: 2, token: 1, value: Some(0) }).place, 1);
    }

    #[test]
    fn a_token_that_is_only_shown_shuts_smaller_ones_out() {
        let store = Store::new(RunClock::start(), true);
        let shown = store.judge(&Guarded { key: 1, token: 7, value: None });
        assert_eq!((shown.admitted, shown.place), (true, 0));
        assert_eq!(taken(&store, &[5, 7]), [false, true]);
    }

    #[test]
    fn a_store_that_does_not_look_at_tokens_takes_whatever_comes() {
        assert_eq!(taken(&Store::new(RunClock::start(), false), &[5, 7, 5]), [true, true, true]);
    }
}
