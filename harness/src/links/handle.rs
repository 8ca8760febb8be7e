//! The harness's end of the links: starts the process, asks, and keeps the lease.
//!
//! Two threads of their own do the reading and the writing, so that a busy runtime neither lets the lease
//! run out nor delays an answer. When the process is gone, every question fails at once and
//! [`Links::broken`] tells.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command as Process};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use tokio::sync::{oneshot, watch};

use super::protocol::{
    Answer, Command, Count, Delayed, EntranceSpec, LinkSpec, Outcome, Pair, ProbeRound, Request,
};
use super::rules::Rule;
use super::server::RENEWAL;
use crate::host::spawner::Spawner;

/// An answer that takes longer than this does not come. A round of probes on a machine that loses packets
/// takes some seconds, beside what it is told to wait for.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long a probe may take once the control arrived.
const PROBE_PATIENCE: Duration = Duration::from_millis(100);
/// How long the process may take to go: it drops each connection first, on a machine that may be busy.
const EXIT_PATIENCE: Duration = Duration::from_secs(10);
/// Lines on their way to the process.
const MAX_LINES: usize = 256;

type Pending = Arc<Mutex<BTreeMap<u64, oneshot::Sender<Outcome>>>>;

/// A running process of links.
pub struct Links {
    lines: mpsc::SyncSender<String>,
    pending: Pending,
    next: AtomicU64,
    gone: watch::Receiver<Option<String>>,
}

impl Links {
    /// Starts the process; it has no listeners yet.
    pub fn spawn(spawner: &Spawner, mut command: Process) -> anyhow::Result<Self> {
        command.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
        let mut child = spawner.spawn(command).context("starting the process of the links")?;
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            bail!("the process of the links has no pipes");
        };
        let (lines, receiver) = mpsc::sync_channel(MAX_LINES);
        let pending = Pending::default();
        let (ended, gone) = watch::channel(None);
        let answered = Arc::clone(&pending);
        thread("links-writer", move || write_lines(stdin, &receiver))?;
        thread("links-reader", move || read_answers(stdout, child, &answered, &ended))?;
        Ok(Self { lines, pending, next: AtomicU64::new(1), gone })
    }

    async fn ask(&self, command: Command) -> anyhow::Result<Outcome> {
        self.ask_within(command, PATIENCE).await
    }

    async fn ask_within(&self, command: Command, patience: Duration) -> anyhow::Result<Outcome> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let (sender, receiver) = oneshot::channel();
        self.pending.lock().unwrap_or_else(PoisonError::into_inner).insert(id, sender);
        let line = serde_json::to_string(&Request { id, command }).context("encoding a command")?;
        self.lines.try_send(line).map_err(|_| anyhow!("the links take no commands"))?;
        match tokio::time::timeout(patience, receiver).await {
            Ok(Ok(Outcome::Refused(reason))) => bail!("the links refused: {reason}"),
            Ok(Ok(outcome)) => Ok(outcome),
            Ok(Err(_)) => bail!("the links are gone"),
            Err(_) => bail!("the links gave no answer within {} s", patience.as_secs()),
        }
    }

    async fn counts(&self, command: Command) -> anyhow::Result<Vec<Count>> {
        match self.ask(command).await? {
            Outcome::Done(counts) => Ok(counts),
            other => bail!("the links gave an unfitting answer: {other:?}"),
        }
    }

    /// Opens the listeners. Inside the result: the address that was taken, if one was.
    pub async fn open(
        &self,
        links: Vec<LinkSpec>,
        entrances: Vec<EntranceSpec>,
    ) -> anyhow::Result<Result<(), std::net::SocketAddr>> {
        match self.ask(Command::Start { links, entrances }).await? {
            Outcome::Done(_) => Ok(Ok(())),
            Outcome::Busy(address) => Ok(Err(address)),
            other => bail!("the links gave an unfitting answer: {other:?}"),
        }
    }

    /// Puts rules in force; gives the counters of that moment.
    pub async fn set(&self, rules: Vec<(Pair, Rule)>) -> anyhow::Result<Vec<Count>> {
        self.counts(Command::Set { rules }).await
    }

    /// Lets everything through; gives the counters of that moment.
    pub async fn heal(&self) -> anyhow::Result<Vec<Count>> {
        self.counts(Command::Heal).await
    }

    /// The counters.
    pub async fn counters(&self) -> anyhow::Result<Vec<Count>> {
        self.counts(Command::Counters).await
    }

    /// How long what members said since the last question was on its way, by direction.
    pub async fn delays(&self) -> anyhow::Result<Vec<Delayed>> {
        match self.ask(Command::Delays).await? {
            Outcome::Delays(delays) => Ok(delays),
            other => bail!("the links gave an unfitting answer: {other:?}"),
        }
    }

    /// One round of probes. A piece may take so much longer than usual; a probe connects, and then speaks.
    pub async fn probe(&self, slower: Duration) -> anyhow::Result<ProbeRound> {
        let patience = slower.saturating_mul(2).saturating_add(PROBE_PATIENCE);
        let command = Command::Probe { patience_ms: crate::clock::whole_milliseconds(patience) };
        match self.ask_within(command, patience.saturating_add(PATIENCE)).await? {
            Outcome::Probed(round) => Ok(round),
            other => bail!("the links gave an unfitting answer: {other:?}"),
        }
    }

    /// Completes when the process is gone, with how it ended.
    pub async fn broken(&self) -> String {
        let mut gone = self.gone.clone();
        match gone.wait_for(Option::is_some).await {
            Ok(reason) => reason.clone().unwrap_or_default(),
            Err(_) => "its reader is gone".to_owned(),
        }
    }

    /// Heals and ends the process.
    pub async fn stop(&self) -> anyhow::Result<()> {
        let _ = self.ask(Command::Stop).await;
        tokio::time::timeout(EXIT_PATIENCE, self.broken()).await.context("the links do not go")?;
        Ok(())
    }
}

fn thread(name: &str, work: impl FnOnce() + Send + 'static) -> anyhow::Result<()> {
    std::thread::Builder::new().name(name.to_owned()).spawn(work).context("starting a thread")?;
    Ok(())
}

/// Writes what there is to write, and renews the lease when there is nothing.
fn write_lines(mut stdin: ChildStdin, lines: &mpsc::Receiver<String>) {
    let renew = serde_json::to_string(&Request { id: 0, command: Command::Renew }).unwrap_or_default();
    loop {
        let line = match lines.recv_timeout(RENEWAL) {
            Ok(line) => line,
            Err(mpsc::RecvTimeoutError::Timeout) => renew.clone(),
            // The handle is gone: the end of the input tells the process to heal and go.
            Err(mpsc::RecvTimeoutError::Disconnected) => return,
        };
        if writeln!(stdin, "{line}").and_then(|()| stdin.flush()).is_err() {
            return;
        }
    }
}

fn read_answers(
    stdout: ChildStdout,
    mut child: Child,
    pending: &Pending,
    ended: &watch::Sender<Option<String>>,
) {
    for line in BufReader::new(stdout).lines() {
        let Ok(line) = line else { break };
        let Ok(answer) = serde_json::from_str::<Answer>(&line) else { continue };
        let waiting = pending.lock().unwrap_or_else(PoisonError::into_inner).remove(&answer.id);
        if let Some(waiting) = waiting {
            // Whoever asked may have given up.
            let _ = waiting.send(answer.outcome);
        }
    }
    let how = match child.wait() {
        Ok(status) => status.to_string(),
        Err(error) => error.to_string(),
    };
    ended.send_replace(Some(how));
    pending.lock().unwrap_or_else(PoisonError::into_inner).clear();
}
