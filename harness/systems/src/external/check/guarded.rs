//! The bench's store as a client meets it that holds a lock: it takes a write, refuses one, resets the
//! connection, or says nothing.
//!
//! Nobody holds a lock here, because no member gives one. A client that finds that out by itself writes
//! nothing, and says so; one that goes by the token it is told writes, and what it makes of the store's
//! answer is seen.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use checker::history::EventKind;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use workloads::STALE_TOKEN;

use super::{Conduct, Weight};
use crate::application::{Judged, monotonic_ns};

/// What the store does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answers {
    /// It takes the write.
    Takes,
    /// It saw a larger token.
    Refuses,
    /// As a member of this conduct.
    As(Conduct),
}

impl Answers {
    pub(super) const ALL: [Self; 4] =
        [Self::Takes, Self::Refuses, Self::As(Conduct::Resets), Self::As(Conduct::IsSilent)];

    pub(super) fn words(self) -> &'static str {
        match self {
            Self::Takes => "the store takes it",
            Self::Refuses => "the store refuses the token",
            Self::As(conduct) => conduct.words(),
        }
    }
}

/// The store.
pub(super) struct Store {
    pub(super) address: SocketAddr,
    state: Arc<Mutex<(Answers, usize)>>,
    task: JoinHandle<()>,
}

impl Store {
    pub(super) async fn open() -> std::io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        let state = Arc::new(Mutex::new((Answers::Takes, 0)));
        let shared = Arc::clone(&state);
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let state = Arc::clone(&shared);
                tokio::spawn(async move {
                    // Whoever goes away needs no answer.
                    let _ = answer(stream, &state).await;
                });
            }
        });
        Ok(Self { address, state, task })
    }

    /// What it does from here on, with nothing counted.
    pub(super) fn is_to(&self, answers: Answers) {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = (answers, 0);
    }

    /// How many writes came.
    pub(super) fn arrived(&self) -> usize {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).1
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn answer(mut stream: TcpStream, state: &Mutex<(Answers, usize)>) -> std::io::Result<()> {
    loop {
        let mut line = Vec::new();
        if BufReader::new(&mut stream).read_until(b'\n', &mut line).await? == 0 {
            return Ok(());
        }
        let answers = {
            let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
            state.1 += 1;
            state.0
        };
        let admitted = match answers {
            Answers::Takes => true,
            Answers::Refuses => false,
            Answers::As(Conduct::IsSilent) => continue,
            Answers::As(Conduct::Resets | Conduct::Refuses) => return stream.set_zero_linger(),
        };
        let judged = Judged { admitted, place: 1, at: monotonic_ns() };
        let mut said = serde_json::to_vec(&judged)?;
        said.push(b'\n');
        stream.write_all(&said).await?;
    }
}

/// How an answer weighs. None where the client wrote nothing, because it holds nothing.
pub(super) fn judged(
    answers: Answers,
    (kind, error): (EventKind, Option<&str>),
    arrived: usize,
) -> Option<(String, Weight)> {
    let good = |words: &str| Some((words.to_owned(), Weight::Good));
    let advice = |words: &str| Some((words.to_owned(), Weight::Advice));
    let fault = |words: &str| Some((words.to_owned(), Weight::Fault));
    match (answers, kind, arrived) {
        (_, _, 2..) => fault("it sent the write more than once: nothing may be tried again"),
        (_, EventKind::Ok, 0) => fault("ok, though the store was asked nothing"),
        (_, _, 0) => None,
        (Answers::Takes, EventKind::Ok, _) => good("ok, with what the store said"),
        (Answers::Takes, EventKind::Fail, _) => fault("fail, though the store took it"),
        (Answers::Refuses, EventKind::Fail, _) if error == Some(STALE_TOKEN) => {
            good("ok, with what the store said")
        }
        (Answers::Refuses, EventKind::Ok, _) => fault("the store took it, though it did not"),
        (Answers::Refuses, ..) => {
            advice("answer ok with what the store said: a refused write shows how long the holder went on")
        }
        (Answers::As(_), EventKind::Info | EventKind::Invoke, _) => good("info"),
        (Answers::As(_), EventKind::Ok, _) => fault("ok, though the store said nothing"),
        (Answers::As(_), EventKind::Fail, _) => {
            fault("fail, though the write had left: nobody knows what became of it, so it is info")
        }
        (Answers::Takes, ..) => advice("info, though the store took it"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_weighs_by_what_the_store_did() {
        let weight =
            |answers, kind, arrived| judged(answers, (kind, None), arrived).map(|(_, weight)| weight);
        let silent = Answers::As(Conduct::IsSilent);
        assert_eq!(weight(Answers::Takes, EventKind::Ok, 1), Some(Weight::Good));
        assert_eq!(weight(Answers::Takes, EventKind::Ok, 2), Some(Weight::Fault));
        assert_eq!(weight(Answers::Takes, EventKind::Ok, 0), Some(Weight::Fault));
        assert_eq!(weight(Answers::Takes, EventKind::Fail, 0), None, "it holds nothing");
        assert_eq!(weight(Answers::Takes, EventKind::Fail, 1), Some(Weight::Fault));
        assert_eq!(weight(Answers::Refuses, EventKind::Fail, 1), Some(Weight::Advice));
        let stale = judged(Answers::Refuses, (EventKind::Fail, Some(STALE_TOKEN)), 1);
        assert_eq!(stale.map(|(_, weight)| weight), Some(Weight::Good));
        assert_eq!(weight(silent, EventKind::Info, 1), Some(Weight::Good));
        assert_eq!(weight(silent, EventKind::Fail, 1), Some(Weight::Fault));
        assert_eq!(weight(silent, EventKind::Ok, 1), Some(Weight::Fault));
    }
}
