//! The harness's end of an agent: asks, and keeps the lease.
//!
//! It lives on the engine's thread, which nothing else uses, so that a busy runtime neither lets the lease
//! run out nor delays an answer. When the agent is gone every question fails at once.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::Write;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::bail;
use bollard::container::LogOutput;
use futures_util::StreamExt;
use harness_agent::protocol::{
    Arrival, ClockReading, Command, LEASE_MS, Line, Outcome, Peer, PeerCount, ProcessLine, RENEWAL_MS,
    Request, SignalName,
};
use runs::member::MemberId;
use serde_json::Value;
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::{mpsc, oneshot, watch};

use super::container::{Attached, Lines};
use super::engine::Engine;
use super::failure::FirstFailure;

/// An answer that takes longer than this does not come. Most take well under a millisecond; a round of
/// probes on a busy machine takes a second, beside what it is told to wait for.
const PATIENCE: Duration = Duration::from_secs(5);
/// An agent that does not answer for so long may have healed everything by itself.
const HEARTBEAT_PATIENCE: Duration = Duration::from_millis(LEASE_MS);
/// How long finding out why there was no answer may take.
const DIAGNOSIS: Duration = Duration::from_secs(4);
/// Half of what renews at least, so that one late line is no silence.
const RENEWAL: Duration = Duration::from_millis(RENEWAL_MS / 2);
/// How long a line may take to be written.
const WRITE_PATIENCE: Duration = Duration::from_secs(3);
/// Lines on their way to the agent.
const MAX_LINES: usize = 256;

type Pending = Arc<Mutex<BTreeMap<u64, oneshot::Sender<Outcome>>>>;

/// A running agent.
pub(super) struct Agent {
    member: MemberId,
    lines: mpsc::Sender<String>,
    pending: Pending,
    next: AtomicU64,
    gone: watch::Receiver<Option<String>>,
    failure: FirstFailure,
}

impl Agent {
    /// Takes over what a sandbox reads and says. Notices and whatever else it says go to `log`.
    pub(super) fn new(
        engine: &Engine,
        failure: &FirstFailure,
        member: MemberId,
        attached: Attached,
        log: File,
    ) -> Self {
        let (lines, receiver) = mpsc::channel(MAX_LINES);
        let pending = Pending::default();
        let (ended, gone) = watch::channel(None);
        let stopped = ended.clone();
        engine.spawn(async move {
            let why = write_lines(attached.input, receiver).await;
            stopped.send_if_modified(|gone| {
                gone.is_none() && {
                    *gone = Some(why);
                    true
                }
            });
        });
        let reader = Reader {
            member,
            pending: Arc::clone(&pending),
            failure: failure.clone(),
            log,
            output: Lines::default(),
        };
        engine.spawn(reader.run(attached.output, ended));
        Self { member, lines, pending, next: AtomicU64::new(1), gone, failure: failure.clone() }
    }

    /// Whose agent it is.
    pub(super) fn member(&self) -> MemberId {
        self.member
    }

    /// Asks for something.
    pub(super) async fn ask(&self, command: Command) -> anyhow::Result<Outcome> {
        self.told(self.ask_within(command, PATIENCE).await).await
    }

    /// An answer, or the best that is known of why there is none.
    async fn told(&self, asked: Result<Outcome, Unanswered>) -> anyhow::Result<Outcome> {
        if !matches!(asked, Err(Unanswered::No(_))) || self.failure.is_expected() {
            return Ok(asked?);
        }
        // Whoever watches the agent finds out why, and says it better.
        match tokio::time::timeout(DIAGNOSIS, self.failure.wait()).await {
            Ok(told) => bail!(told),
            Err(_) => Ok(asked?),
        }
    }

    /// Whether it answers at all.
    pub(super) async fn heartbeat(&self) -> anyhow::Result<()> {
        self.ask_within(Command::Processes, HEARTBEAT_PATIENCE).await?;
        Ok(())
    }

    async fn ask_within(&self, command: Command, patience: Duration) -> Result<Outcome, Unanswered> {
        let name = format!("the agent of n{}", self.member.0);
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let (sender, receiver) = oneshot::channel();
        self.lock().insert(id, sender);
        let _forget = Forget { pending: &self.pending, id };
        if let Some(why) = self.gone.borrow().as_ref() {
            return Err(Unanswered::No(format!("{name} is gone: {why}")));
        }
        let line = serde_json::to_string(&Request { id, command })
            .map_err(|error| Unanswered::Refused(format!("encoding a command: {error}")))?;
        self.lines.try_send(line).map_err(|_| Unanswered::No(format!("{name} takes no commands")))?;
        match tokio::time::timeout(patience, receiver).await {
            Ok(Ok(Outcome::Failed(reason))) => Err(Unanswered::Refused(format!("{name}: {reason}"))),
            Ok(Ok(outcome)) => Ok(outcome),
            Ok(Err(_)) => Err(Unanswered::No(format!("{name} is gone"))),
            Err(_) => Err(Unanswered::No(format!("{name} gave no answer within {} s", patience.as_secs()))),
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<u64, oneshot::Sender<Outcome>>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn unfitting<T>(&self, outcome: &Outcome) -> anyhow::Result<T> {
        bail!("the agent of n{} gave an unfitting answer: {outcome:?}", self.member.0)
    }

    /// Asks for something that is answered with counters.
    pub(super) async fn counts(&self, command: Command) -> anyhow::Result<Vec<PeerCount>> {
        match self.ask(command).await? {
            Outcome::Done(counts) => Ok(counts),
            other => self.unfitting(&other),
        }
    }

    /// Sends a signal to every process of its namespace.
    pub(super) async fn signal(&self, signal: SignalName) -> anyhow::Result<()> {
        self.ask(Command::Signal { signal }).await.map(drop)
    }

    /// The processes of its namespace.
    pub(super) async fn processes(&self) -> anyhow::Result<Vec<ProcessLine>> {
        match self.ask(Command::Processes).await? {
            Outcome::Processes(processes) => Ok(processes),
            other => self.unfitting(&other),
        }
    }

    /// What arrived of a round of probes.
    pub(super) async fn arrivals(&self, round: u64, patience: Duration) -> anyhow::Result<Vec<Arrival>> {
        let patience_ms = crate::clock::whole_milliseconds(patience);
        let command = Command::Arrivals { round, patience_ms };
        let asked = self.ask_within(command, patience.saturating_add(PATIENCE)).await;
        match self.told(asked).await? {
            Outcome::Arrived(arrivals) => Ok(arrivals),
            other => self.unfitting(&other),
        }
    }

    /// The devices that it has, and why those that do not work here do not.
    pub(super) async fn devices(&self) -> anyhow::Result<BTreeMap<String, Result<(), String>>> {
        match self.ask(Command::Devices).await? {
            Outcome::Devices(devices) => Ok(devices),
            other => self.unfitting(&other),
        }
    }

    /// Has a device do something.
    pub(super) async fn device(&self, device: &str, order: Value) -> anyhow::Result<Value> {
        match self.ask(Command::Device { device: device.to_owned(), order }).await? {
            Outcome::Device(answer) => Ok(answer),
            other => self.unfitting(&other),
        }
    }

    /// Lets the member read its wall clock.
    pub(super) async fn read_clock(&self) -> anyhow::Result<ClockReading> {
        match self.ask(Command::ReadClock).await? {
            Outcome::Clock(reading) => Ok(reading),
            other => self.unfitting(&other),
        }
    }

    /// Shifts the wall clock of its processes; gives how many there were.
    pub(super) async fn shift_clock(&self, offset_ns: i64) -> anyhow::Result<u32> {
        match self.ask(Command::ShiftClock { offset_ns }).await? {
            Outcome::Shifted(shifted) => Ok(shifted.processes),
            other => self.unfitting(&other),
        }
    }

    /// Completes when it is gone, with the reason.
    pub(super) async fn gone(&self) -> String {
        let mut gone = self.gone.clone();
        match gone.wait_for(Option::is_some).await {
            Ok(reason) => reason.clone().unwrap_or_default(),
            Err(_) => "nobody reads it".to_owned(),
        }
    }
}

/// Why there is no answer.
#[derive(Debug)]
enum Unanswered {
    /// None came.
    No(String),
    /// It was a refusal.
    Refused(String),
}

impl fmt::Display for Unanswered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::No(why) | Self::Refused(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for Unanswered {}

/// A member as agents know it.
pub(super) fn peer(member: MemberId) -> Peer {
    member.0
}

/// A question that nobody waits for any more is forgotten.
struct Forget<'a> {
    pending: &'a Pending,
    id: u64,
}

impl Drop for Forget<'_> {
    fn drop(&mut self) {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.id);
    }
}

/// Writes what there is to write, and renews the lease when there is nothing. Gives the reason of its end.
async fn write_lines(
    mut input: Pin<Box<dyn AsyncWrite + Send>>,
    mut lines: mpsc::Receiver<String>,
) -> String {
    let renew = serde_json::to_string(&Request { id: 0, command: Command::Renew }).unwrap_or_default();
    loop {
        let mut line = match tokio::time::timeout(RENEWAL, lines.recv()).await {
            Ok(Some(line)) => line,
            // The handle is gone: the end of the input tells the agent to heal and go.
            Ok(None) => return "nobody asks it any more".to_owned(),
            Err(_) => renew.clone(),
        };
        line.push('\n');
        let writing = async {
            input.write_all(line.as_bytes()).await?;
            input.flush().await
        };
        match tokio::time::timeout(WRITE_PATIENCE, writing).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => return format!("its input: {error}"),
            Err(_) => return format!("it takes no input since {} s", WRITE_PATIENCE.as_secs()),
        }
    }
}

/// Reads what an agent says until it says nothing more.
struct Reader {
    member: MemberId,
    pending: Pending,
    failure: FirstFailure,
    log: File,
    output: Lines,
}

impl Reader {
    async fn run(
        mut self,
        mut output: Pin<
            Box<dyn futures_util::Stream<Item = Result<LogOutput, bollard::errors::Error>> + Send>,
        >,
        ended: watch::Sender<Option<String>>,
    ) {
        let why = loop {
            match output.next().await {
                Some(Ok(LogOutput::StdErr { message })) => self.note(&message),
                Some(Ok(piece)) => {
                    let piece = piece.into_bytes();
                    let mut lines = std::mem::take(&mut self.output);
                    lines.take(&piece, |line| self.line(line));
                    self.output = lines;
                }
                Some(Err(error)) => break format!("its output: {error}"),
                None => break "its output ended".to_owned(),
            }
        };
        ended.send_if_modified(|gone| {
            gone.is_none() && {
                *gone = Some(why);
                true
            }
        });
        self.pending.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    fn line(&mut self, line: &[u8]) {
        match serde_json::from_slice::<Line>(line) {
            Ok(Line::Answer { id, outcome }) => {
                let waiting = self.pending.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
                if let Some(waiting) = waiting {
                    // Whoever asked may have given up.
                    let _ = waiting.send(outcome);
                }
            }
            Ok(Line::Notice { notice }) => {
                // It speaks unasked only of what must not be: a lease that ran out has healed every fault.
                self.failure.report(format!("the agent of n{} says: {notice}", self.member.0));
                self.note(format!("{notice}\n").as_bytes());
            }
            Err(_) => self.note(line),
        }
    }

    fn note(&mut self, words: &[u8]) {
        // What can't be written down is lost for the reader of the folder only.
        let _ = self.log.write_all(words);
    }
}
