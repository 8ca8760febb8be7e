//! A command of the user's own that works on the members in place of the bench's clients (`harness wrap`).
//!
//! It is any program: a test suite, a load generator, a script. It finds the members in `HARNESS_MEMBERS` and
//! the run folder in `HARNESS_FOLDER`, whose `faults.jsonl` says what is in force. It runs once, in the
//! folder where the harness was started, and its exit status is its word. What it writes goes to standard
//! error, because standard output is the verdict's, and into `command.log`.
//!
//! It leads a process group of its own. Whatever it left there is ended when it ends, and all of it when the
//! harness ends. Who interrupts a run interrupts it as well: it is asked to end, and killed when it does not.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use std::{fs, io};

use anyhow::Context;
use harness_systems::external::{MEMBERS_VARIABLE, listed};
use runs::observed::CommandEnd;
use rustix::fs::{Access, access};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::clock::RunClock;
use crate::progress::Progress;
use crate::store::lock::TOKEN_VARIABLE;

/// Where its words are kept, in the run folder.
pub const LOG: &str = "command.log";
/// Names the run folder in its environment.
const FOLDER_VARIABLE: &str = "HARNESS_FOLDER";
/// How long it may take to end when it is asked to.
const FAREWELL: Duration = Duration::from_secs(10);
/// How long its last words may take behind its end. Whoever left its group may hold its output for ever.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// Bytes of a line that are passed on at once.
const MOST_OF_A_LINE: u64 = 1 << 16;

/// What a command is run with.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Its name, and its arguments.
    pub words: Vec<String>,
    /// Where members are found, by their numbers.
    pub members: Vec<(u64, SocketAddr)>,
    /// The run folder.
    pub folder: PathBuf,
    /// What marks the run's processes.
    pub token: String,
}

/// Whether there is a program of that name: a path, or a name on the path.
pub fn is_there(program: &str) -> bool {
    let runs = |path: &Path| path.is_file() && access(path, Access::EXEC_OK).is_ok();
    if program.contains('/') {
        return runs(Path::new(program));
    }
    let paths = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&paths).any(|path| runs(&path.join(program)))
}

/// A command under way. What is in its group is killed when this is dropped.
struct Running {
    child: Child,
    group: Pid,
    /// True when it has ended.
    end: watch::Receiver<bool>,
}

/// Waits in a thread of its own, so that the command is still there to be waited for: until then its group
/// is nobody else's.
fn end_of(leader: Pid) -> anyhow::Result<watch::Receiver<bool>> {
    let (sender, receiver) = watch::channel(false);
    let wait = move || {
        let ended = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        // A signal may interrupt it.
        while matches!(waitid(WaitId::Pid(leader), ended), Err(Errno::INTR)) {}
        sender.send_replace(true);
    };
    std::thread::Builder::new().name("command".to_owned()).spawn(wait).context("starting a thread")?;
    Ok(receiver)
}

impl Drop for Running {
    /// Nobody waits for it before this, so its group is its own still.
    fn drop(&mut self) {
        if self.child.id().is_some() {
            self.send(Signal::KILL);
        }
    }
}

impl Running {
    fn start(settings: &Settings) -> anyhow::Result<Self> {
        let executable = std::env::current_exe().context("finding this executable")?;
        let mut command = Command::new(executable);
        command
            .args(["become", "--parent", &std::process::id().to_string(), "--"])
            .args(&settings.words)
            .env(MEMBERS_VARIABLE, listed(&settings.members))
            .env(FOLDER_VARIABLE, std::path::absolute(&settings.folder).context("naming the run folder")?)
            .env(TOKEN_VARIABLE, &settings.token)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true);
        let child = command.spawn().context("starting the command")?;
        let id = child.id().context("a command without an id")?;
        let group = i32::try_from(id).ok().and_then(Pid::from_raw).context("a command's id")?;
        Ok(Self { end: end_of(group)?, child, group })
    }

    fn send(&self, signal: Signal) {
        // One that has ended already hears nothing.
        let _ = kill_process_group(self.group, signal);
    }

    /// Completes when it has ended, before anybody waited for it.
    async fn ended(&self) {
        // The sender goes only when it has ended.
        let _ = self.end.clone().wait_for(|ended| *ended).await;
    }

    /// Asks it to end, and kills it when it does not.
    async fn farewell(&self) {
        self.send(Signal::TERM);
        if tokio::time::timeout(FAREWELL, self.ended()).await.is_err() {
            self.send(Signal::KILL);
            self.ended().await;
        }
    }

    /// Ends what it left, and says how it ended.
    async fn status(&mut self) -> anyhow::Result<ExitStatus> {
        self.send(Signal::KILL);
        self.child.wait().await.context("waiting for the command")
    }
}

/// Runs a command to its end, or until `stop` says so.
pub async fn run(
    settings: Settings,
    clock: RunClock,
    progress: Progress,
    mut stop: watch::Receiver<bool>,
) -> anyhow::Result<CommandEnd> {
    let log = settings.folder.join(LOG);
    let log = fs::File::create(&log).with_context(|| format!("creating {}", log.display()))?;
    let words = Words { log: Arc::new(Mutex::new(log)), progress };
    let from_ns = clock.now();
    let mut running = Running::start(&settings)?;
    let mut copies = JoinSet::new();
    if let (Some(output), Some(errors)) = (running.child.stdout.take(), running.child.stderr.take()) {
        copies.spawn(words.clone().pass_on(output));
        copies.spawn(words.pass_on(errors));
    }
    let stopped = tokio::select! {
        () = running.ended() => false,
        _ = stop.wait_for(|stop| *stop) => true,
    };
    if stopped {
        running.farewell().await;
    }
    let to_ns = clock.now();
    let status = running.status().await?;
    let last_words = async { while copies.join_next().await.is_some() {} };
    // What is said later by whoever left the group is lost.
    let _ = tokio::time::timeout(LAST_WORDS, last_words).await;
    let signal = std::os::unix::process::ExitStatusExt::signal(&status);
    Ok(CommandEnd { from_ns, to_ns, status: status.code(), signal, stopped })
}

/// Where its words go.
#[derive(Clone)]
struct Words {
    log: Arc<Mutex<fs::File>>,
    progress: Progress,
}

impl Words {
    /// Passes on what comes, a line at a time, so that lines of two streams don't mix.
    async fn pass_on(self, from: impl AsyncRead + Unpin) {
        let mut from = BufReader::new(from);
        let mut line = Vec::new();
        loop {
            line.clear();
            match (&mut from).take(MOST_OF_A_LINE).read_until(b'\n', &mut line).await {
                Ok(0) | Err(_) => return,
                Ok(_) => self.say(&line),
            }
        }
    }

    fn say(&self, line: &[u8]) {
        // A full disk costs the log and not the run: the words are on the screen.
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = io::Write::write_all(&mut *log, line);
        self.progress.pass_on(line);
    }
}
