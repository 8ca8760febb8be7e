//! Answers on their way out: a bounded queue and a thread that may wait for its reader.
//!
//! The reader may be gone, or be too busy to read, just when everything must be healed. So nobody waits for
//! the writer: an answer that the queue has no room for is lost, and that some were lost is told as soon as
//! there is room again.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender, TrySendError};
use std::thread;
use std::time::{Duration, Instant};

use crate::protocol::{Line, Outcome};
use crate::threads::STACK;

/// Answers that may wait.
const QUEUE: usize = 256;

/// Where answers go. Clones lead to the same writer.
#[derive(Clone, Debug)]
pub(crate) struct Output {
    queue: SyncSender<Written>,
    lost: Arc<AtomicU64>,
}

#[derive(Debug)]
enum Written {
    Line(Line),
    /// Nothing more is written; the writer ends.
    Last,
}

/// Hears of the writer's end.
#[derive(Debug)]
pub(crate) struct Finished(Receiver<()>);

impl Output {
    /// Starts the writer.
    pub(crate) fn start<W: Write + Send + 'static>(writer: W) -> std::io::Result<(Self, Finished)> {
        let (queue, waiting) = mpsc::sync_channel(QUEUE);
        let (finished, wait) = mpsc::sync_channel(1);
        let lost = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&lost);
        thread::Builder::new().name("writer".to_owned()).stack_size(STACK).spawn(move || {
            write_all(writer, &waiting, &counted);
            let _ = finished.send(());
        })?;
        Ok((Self { queue, lost }, Finished(wait)))
    }

    /// Answers a request; never waits.
    pub(crate) fn answer(&self, id: u64, outcome: Outcome) {
        self.send(Line::Answer { id, outcome });
    }

    /// Tells something unasked; never waits.
    pub(crate) fn notice(&self, notice: impl Into<String>) {
        self.send(Line::Notice { notice: notice.into() });
    }

    /// Waits until all is written, or for so long. The writer ends with it.
    pub(crate) fn flush(&self, finished: Finished, limit: Duration) -> bool {
        let deadline = Instant::now() + limit;
        while let Err(TrySendError::Full(_)) = self.queue.try_send(Written::Last) {
            if Instant::now() >= deadline {
                return false;
            }
            thread::sleep(Duration::from_millis(1));
        }
        let left = deadline.saturating_duration_since(Instant::now());
        !matches!(finished.0.recv_timeout(left), Err(RecvTimeoutError::Timeout))
    }

    fn send(&self, line: Line) {
        // A writer that has ended has nobody to write for; the lease will find out.
        if let Err(TrySendError::Full(_)) = self.queue.try_send(Written::Line(line)) {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}

fn write_all(mut writer: impl Write, waiting: &Receiver<Written>, lost: &AtomicU64) {
    while let Ok(Written::Line(line)) = waiting.recv() {
        let mut written = write_line(&mut writer, &line);
        let lost = lost.swap(0, Ordering::Relaxed);
        if lost > 0 && written.is_ok() {
            let notice = format!("{lost} answers were lost: nobody read them in time");
            written = write_line(&mut writer, &Line::Notice { notice });
        }
        if written.is_err() {
            return;
        }
    }
}

fn write_line(writer: &mut impl Write, line: &Line) -> std::io::Result<()> {
    let mut bytes = serde_json::to_vec(line)?;
    bytes.push(b'\n');
    writer.write_all(&bytes)?;
    writer.flush()
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, pipe};

    use super::*;

    #[test]
    fn a_reader_that_sleeps_holds_nobody_up_and_hears_later_what_was_lost() {
        let (reader, writer) = pipe().expect("a pipe");
        let (output, finished) = Output::start(writer).expect("a thread");
        let long = "x".repeat(4096);
        for _ in 0..10_000 {
            output.notice(long.clone());
        }
        assert!(output.lost.load(Ordering::Relaxed) > 0);
        assert!(!output.flush(finished, Duration::ZERO), "it waits for its reader");
        drop(output);
        let mut lines = BufReader::new(reader).lines().map(|line| line.expect("text"));
        assert!(lines.any(|line| line.contains("answers were lost")));
        lines.for_each(drop);
    }

    #[test]
    fn a_reader_that_is_gone_is_no_failure() {
        let (reader, writer) = pipe().expect("a pipe");
        drop(reader);
        let (output, finished) = Output::start(writer).expect("a thread");
        output.answer(1, Outcome::Done(Vec::new()));
        assert!(output.flush(finished, Duration::from_secs(10)));
    }
}
