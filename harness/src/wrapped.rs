//! A command of the user's own that works on the members in place of the bench's clients (`harness wrap`).
//!
//! It is any program: a test suite, a load generator, a script. It finds the members in `HARNESS_MEMBERS` and
//! the run folder in `HARNESS_FOLDER`, whose `faults.jsonl` says what is in force. It runs once, in the
//! folder where the harness was started, and its exit status is its word. What it writes goes to standard
//! error, because standard output is the verdict's, and into `command.log`.
//!
//! It leads a session and a process group of its own, without a terminal: what asks for a password there is
//! refused and does not wait. Whatever it left in its group is ended when it ends. What left the group is the
//! user's, and is left alone. When the harness is killed the command dies with it, and what it started goes
//! on. Who interrupts a run interrupts it as well: it is asked to end, and killed when it does not.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use std::{fs, io};

use anyhow::{Context, anyhow};
use harness_systems::external::{MEMBERS_VARIABLE, listed};
use runs::observed::CommandEnd;
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::clock::RunClock;
use crate::progress::Progress;

/// Where its words are kept, in the run folder.
pub const LOG: &str = "command.log";
/// Names the run folder in its environment.
const FOLDER_VARIABLE: &str = "HARNESS_FOLDER";
/// How long it may take to end when it is asked to.
const FAREWELL: Duration = Duration::from_secs(10);
/// How long its last words may take behind its end. Whoever left its group may hold its output for ever.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// How much later than the command the harness may hear of an end that was meant for both.
const SAME_MOMENT: Duration = Duration::from_millis(500);
/// Lines that wait for a screen at most.
const MOST_WAITING: usize = 4_096;
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
            .args(["become", "--session", "--parent", &std::process::id().to_string(), "--"])
            .args(&settings.words)
            .env(MEMBERS_VARIABLE, listed(&settings.members))
            .env(FOLDER_VARIABLE, std::path::absolute(&settings.folder).context("naming the run folder")?)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
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
    async fn farewell(&self) -> anyhow::Result<()> {
        self.send(Signal::TERM);
        if tokio::time::timeout(FAREWELL, self.ended()).await.is_err() {
            self.send(Signal::KILL);
            let killed = tokio::time::timeout(FAREWELL, self.ended()).await;
            killed.map_err(|_| anyhow!("the command can't be ended: has it become somebody else's?"))?;
        }
        Ok(())
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
    let (words, mut screen) = Words::new(log, progress)?;
    let from_ns = clock.now();
    let mut running = Running::start(&settings)?;
    let mut copies = JoinSet::new();
    if let (Some(output), Some(errors)) = (running.child.stdout.take(), running.child.stderr.take()) {
        copies.spawn(words.clone().pass_on(output));
        copies.spawn(words.pass_on(errors));
    }
    let mut stopped = tokio::select! {
        () = running.ended() => false,
        _ = stop.wait_for(|stop| *stop) => true,
    };
    if stopped {
        running.farewell().await?;
    }
    let to_ns = clock.now();
    let status = running.status().await?;
    // Whoever ends all processes at once ends the command before the harness hears of it.
    if !status.success() && !stopped {
        stopped = tokio::time::timeout(SAME_MOMENT, stop.wait_for(|stop| *stop))
            .await
            .is_ok_and(|asked| asked.is_ok());
    }
    let last_words = async {
        while copies.join_next().await.is_some() {}
        screen.wait_for(|over| *over).await.is_ok()
    };
    // What is said later by whoever left the group is lost, and so is what nobody reads from the screen.
    let _ = tokio::time::timeout(LAST_WORDS, last_words).await;
    let signal = std::os::unix::process::ExitStatusExt::signal(&status);
    Ok(CommandEnd { from_ns, to_ns, status: status.code(), signal, stopped })
}

/// Where its words go: into the log at once, and to the screen by a thread of its own, because whoever reads
/// there may be slow, and faults must not wait for that.
#[derive(Clone)]
struct Words {
    log: Arc<Mutex<fs::File>>,
    screen: SyncSender<Vec<u8>>,
}

impl Words {
    /// What is given beside it is true when all was shown.
    fn new(log: fs::File, progress: Progress) -> anyhow::Result<(Self, watch::Receiver<bool>)> {
        let (screen, lines) = sync_channel::<Vec<u8>>(MOST_WAITING);
        let (shown, is_shown) = watch::channel(false);
        let show = move || {
            lines.iter().for_each(|line| progress.pass_on(&line));
            shown.send_replace(true);
        };
        std::thread::Builder::new().name("words".to_owned()).spawn(show).context("starting a thread")?;
        Ok((Self { log: Arc::new(Mutex::new(log)), screen }, is_shown))
    }

    /// Passes on what comes, a line at a time, so that lines of two streams don't mix.
    async fn pass_on(self, from: impl AsyncRead + Unpin) {
        let mut from = BufReader::new(from);
        loop {
            let mut line = Vec::new();
            match (&mut from).take(MOST_OF_A_LINE).read_until(b'\n', &mut line).await {
                Ok(0) | Err(_) => return,
                Ok(_) => self.say(line),
            }
        }
    }

    fn say(&self, line: Vec<u8>) {
        // A full disk costs the log and not the run: the words are on the screen.
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = io::Write::write_all(&mut *log, &line);
        // Where the screen is behind, the log has it.
        let _ = self.screen.try_send(line);
    }
}
