//! The container of the user's client, where that is a service: each of its processes is a command in it.
//!
//! The engine starts a command and hands over its streams, but can't end it. One whose input ends is to
//! end by itself. A command may hang. So a shell, if there is one, first writes its process id and then
//! becomes the command, and a second command kills it with its group. Without a shell it stays until its
//! container goes. Nobody reads what it writes meanwhile: its operation may take effect or not, as any
//! without an answer.

use std::fmt;
use std::fs::File;
use std::io::{self, Write};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bollard::container::LogOutput;
use bollard::errors::Error;
use bollard::exec::StartExecResults;
use bollard::models::ExecConfig;
use futures_util::{Stream, StreamExt};
use harness_systems::{Alongside, Async, Hold, Remote};
use tokio::io::{AsyncWrite, AsyncWriteExt, DuplexStream};
use tokio::sync::Semaphore;
use tokio::task::AbortHandle;

use super::engine::{Cause, Engine, EngineError};
use super::within::{self, Shells};

/// How long the engine may take to begin a command.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long ending one may take.
const KILL_PATIENCE: Duration = Duration::from_secs(10);
/// Commands that the engine begins or ends at a time. Each takes it some 70 ms of a processor, and agents and
/// proofs need it as well while a fault silences many clients at once.
const AT_A_TIME: usize = 2;
/// Bytes of an output that wait to be read.
const MOST_WAITING: usize = 1 << 16;
/// No process id is longer.
const LONGEST_ID: usize = 20;
/// Writes its process id, and becomes a command.
const SAY_AND_RUN: &str = "echo $$; exec \"$@\"";
/// Kills a process with its group, or alone where it leads none.
const KILL: &str = "kill -9 -\"$1\" || kill -9 \"$1\"";

type Output = Pin<Box<dyn Stream<Item = Result<LogOutput, Error>> + Send>>;

/// The container.
pub(super) struct ClientContainer {
    engine: Engine,
    container: String,
    has_a_shell: bool,
    turns: Arc<Semaphore>,
}

impl ClientContainer {
    /// The container of that id, which runs.
    pub(super) async fn find(engine: &Engine, container: String) -> Self {
        let shell = within::has_a_shell(engine, &container, &Shells::default()).await;
        let turns = Arc::new(Semaphore::new(AT_A_TIME));
        Self { engine: engine.clone(), has_a_shell: shell.unwrap_or(false), container, turns }
    }
}

impl fmt::Debug for ClientContainer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientContainer").field("container", &self.container).finish_non_exhaustive()
    }
}

impl Alongside for ClientContainer {
    fn start(
        &self,
        words: Vec<String>,
        environment: Vec<String>,
        log: File,
    ) -> Async<'static, io::Result<Remote>> {
        let shell = ["/bin/sh", "-c", SAY_AND_RUN, "sh"].map(str::to_owned);
        let words = if self.has_a_shell { [&shell[..], &words].concat() } else { words };
        let (engine, container, says_its_id) =
            (self.engine.clone(), self.container.clone(), self.has_a_shell);
        let turns = Arc::clone(&self.turns);
        Box::pin(async move {
            let turn = turns.acquire().await;
            let started = begin(&engine, &container, words, environment).await;
            drop(turn);
            let (input, mut output) = started.map_err(|error| as_io(&error))?;
            let mut spoken = Spoken { log, rest: Vec::new() };
            let id = match says_its_id {
                true => tokio::time::timeout(PATIENCE, spoken.id(&mut output)).await.unwrap_or_default(),
                false => None,
            };
            let (near, far) = tokio::io::duplex(MOST_WAITING);
            let ended = Arc::new(AtomicBool::new(false));
            let listening = engine.spawn(spoken.listen(output, far, Arc::clone(&ended)));
            let listening = listening.abort_handle();
            let hold = Command { engine, container, id, ended, listening, turns: Arc::clone(&turns) };
            Ok(Remote { input, output: Box::pin(near), hold: Box::new(hold) })
        })
    }
}

/// Starts a command, and gives its input and what it says.
async fn begin(
    engine: &Engine,
    container: &str,
    words: Vec<String>,
    environment: Vec<String>,
) -> Result<(Pin<Box<dyn AsyncWrite + Send>>, Output), EngineError> {
    let what = "starting a client in a container";
    let (container, config) = (
        container.to_owned(),
        ExecConfig {
            attach_stdin: Some(true),
            attach_stdout: Some(true),
            attach_stderr: Some(true),
            env: Some(environment),
            cmd: Some(words),
            ..ExecConfig::default()
        },
    );
    let started = engine.call(what, PATIENCE, |docker| async move {
        let id = docker.create_exec(&container, config).await?.id;
        docker.start_exec(&id, None).await
    });
    match started.await? {
        StartExecResults::Attached { output, input } => Ok((input, output)),
        StartExecResults::Detached => Err(EngineError {
            what: what.to_owned(),
            cause: Cause::Unfitting("it hands over no streams".to_owned()),
        }),
    }
}

fn as_io(error: &EngineError) -> io::Error {
    match &error.cause {
        Cause::Refused(409, _) => io::Error::other(format!(
            "its container does not run, and must as long as there are clients; the run's folder services \
             has its last words ({error})"
        )),
        _ => io::Error::other(error.to_string()),
    }
}

/// What a command says, on its way.
struct Spoken {
    log: File,
    /// What it wrote to its standard output and nobody has read.
    rest: Vec<u8>,
}

impl Spoken {
    /// Takes a piece; gives what is of the standard output.
    fn take(&mut self, piece: LogOutput) -> Option<bytes::Bytes> {
        match piece {
            LogOutput::StdErr { message } => {
                // What can't be written down is lost for the reader of the folder only.
                let _ = self.log.write_all(&message);
                None
            }
            other => Some(other.into_bytes()),
        }
    }

    /// Reads the line with its process id; none where it says something else, which is kept.
    async fn id(&mut self, output: &mut Output) -> Option<String> {
        loop {
            if let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
                let id = std::str::from_utf8(&self.rest[..end]).ok()?.to_owned();
                id.parse::<u32>().ok()?;
                self.rest.drain(..=end);
                return Some(id);
            }
            if self.rest.len() > LONGEST_ID {
                return None;
            }
            let Some(Ok(piece)) = output.next().await else { return None };
            let said = self.take(piece).unwrap_or_default();
            self.rest.extend_from_slice(&said);
        }
    }

    /// Hands over what it says until it ends.
    async fn listen(mut self, mut output: Output, mut to: DuplexStream, ended: Arc<AtomicBool>) {
        let mut said = bytes::Bytes::from(std::mem::take(&mut self.rest));
        // Nobody reads any more what was given up.
        while to.write_all(&said).await.is_ok() {
            let Some(Ok(piece)) = output.next().await else { break };
            said = self.take(piece).unwrap_or_default();
        }
        ended.store(true, Ordering::SeqCst);
    }
}

/// A command in the container; ended when this is dropped.
struct Command {
    engine: Engine,
    container: String,
    id: Option<String>,
    ended: Arc<AtomicBool>,
    listening: AbortHandle,
    turns: Arc<Semaphore>,
}

impl Hold for Command {
    fn lives(&self) -> bool {
        !self.ended.load(Ordering::SeqCst)
    }
}

impl Drop for Command {
    fn drop(&mut self) {
        // With it goes the connection, and with that its input.
        self.listening.abort();
        let Some(id) = self.id.take().filter(|_| self.lives()) else { return };
        let (engine, container) = (self.engine.clone(), self.container.clone());
        let turns = Arc::clone(&self.turns);
        self.engine.spawn(async move {
            let _turn = turns.acquire().await;
            let words = ["/bin/sh", "-c", KILL, "sh", &id].map(str::to_owned).to_vec();
            // A container that is gone has taken it along.
            let _ = engine
                .call("ending a client", KILL_PATIENCE, |docker| async move {
                    within::short(&docker, &container, words).await
                })
                .await;
        });
    }
}
