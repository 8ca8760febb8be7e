//! A command of the user's own that works on the members in place of the bench's clients (`harness wrap`).
//!
//! It is any program: a test suite, a load generator, a script. It finds the members in `HARNESS_MEMBERS` and
//! the run folder in `HARNESS_FOLDER`, whose `faults.jsonl` says what is in force. It runs once, in the
//! folder where the harness was started, and its exit status is its word. What it writes goes to standard
//! error, because standard output is the verdict's, and into `command.log`.
//!
//! It leads a session and a process group of its own, without a terminal: what asks for a password there is
//! refused and does not wait. A [`guardian`] stands between it and the harness: whatever the command started
//! ends when it ends, and all of it ends when the harness is killed, because what goes on writing may reach
//! the members of the next run. Who interrupts a run interrupts it as well: it is asked to end, and killed
//! when it does not.
//!
//! In its place [`template`]s run: test commands in the containers.

pub mod guardian;
pub mod template;

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use std::{fs, io};

use anyhow::{Context, anyhow};
use harness_systems::external::{MEMBERS_VARIABLE, listed};
use runs::observed::CommandEnd;
use rustix::process::Signal;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::net::unix::OwnedWriteHalf;
use tokio::process::{Child, Command};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::clock::RunClock;
use crate::progress::Progress;

/// Where its words are kept, in the run folder.
pub const LOG: &str = "command.log";
/// Names the run folder in its environment.
const FOLDER_VARIABLE: &str = "HARNESS_FOLDER";
/// How long the command may take to end when it is asked to.
const STOP_PATIENCE: Duration = Duration::from_secs(10);
/// How long its last words may take behind its end.
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
    /// What names the run in the environment of its processes.
    pub token: String,
}

/// A command under way. It ends, with all that it started, when this is dropped.
struct Running {
    guardian: Child,
    orders: OwnedWriteHalf,
    /// How it ended, once it has.
    end: watch::Receiver<Option<End>>,
}

/// How a command ended: its exit status, or the signal that ended it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct End {
    status: Option<i32>,
    signal: Option<i32>,
}

impl End {
    /// What the guardian says of it.
    fn read(line: &str) -> Option<Self> {
        let (how, number) = line.trim_end().split_once(' ')?;
        let number = number.parse().ok()?;
        match how {
            "exit" => Some(Self { status: Some(number), signal: None }),
            "signal" => Some(Self { status: None, signal: Some(number) }),
            _ => None,
        }
    }

    /// A guardian that says nothing was killed, and the command with it.
    const KILLED: Self = Self { status: None, signal: Some(Signal::KILL.as_raw()) };
}

impl Running {
    fn start(settings: &Settings) -> anyhow::Result<Self> {
        let executable = std::env::current_exe().context("finding this executable")?;
        let (ours, theirs) = StdUnixStream::pair().context("making a socket")?;
        ours.set_nonblocking(true).context("making a socket")?;
        let mut command = Command::new(executable);
        command
            .args(["become", "--guard", &settings.token, "--parent", &std::process::id().to_string(), "--"])
            .args(&settings.words)
            .env(MEMBERS_VARIABLE, listed(&settings.members))
            .env(FOLDER_VARIABLE, std::path::absolute(&settings.folder).context("naming the run folder")?)
            .stdin(OwnedFd::from(theirs))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let guardian = command.spawn().context("starting the command")?;
        let (words, orders) = UnixStream::from_std(ours).context("making a socket")?.into_split();
        let (sender, end) = watch::channel(None);
        tokio::spawn(async move {
            let mut line = String::new();
            let read = BufReader::new(words).take(MOST_OF_A_LINE).read_line(&mut line).await;
            sender.send_replace(Some(read.ok().and_then(|_| End::read(&line)).unwrap_or(End::KILLED)));
        });
        Ok(Self { guardian, orders, end })
    }

    async fn send(&mut self, order: u8) {
        // One that has ended already hears nothing.
        let _ = self.orders.write_all(&[order]).await;
    }

    /// Completes when it has ended.
    async fn ended(&self) -> End {
        let mut end = self.end.clone();
        let end = end.wait_for(Option::is_some).await;
        end.ok().and_then(|end| *end).unwrap_or(End::KILLED)
    }

    /// Asks it to end, and kills it when it does not.
    async fn stop(&mut self) -> anyhow::Result<()> {
        self.send(guardian::ASK).await;
        if tokio::time::timeout(STOP_PATIENCE, self.ended()).await.is_err() {
            self.send(guardian::KILL).await;
            let killed = tokio::time::timeout(STOP_PATIENCE, self.ended()).await;
            killed.map_err(|_| anyhow!("the command can't be ended: has it become somebody else's?"))?;
        }
        Ok(())
    }

    /// Waits until what it left has ended, and says how it ended itself.
    async fn status(&mut self) -> anyhow::Result<End> {
        let end = self.ended().await;
        let gone = tokio::time::timeout(STOP_PATIENCE * 2, self.guardian.wait()).await;
        gone.context("what the command left can't be ended")?.context("waiting for the command")?;
        Ok(end)
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
    let guardian = &mut running.guardian;
    if let (Some(output), Some(errors)) = (guardian.stdout.take(), guardian.stderr.take()) {
        copies.spawn(words.clone().pass_on(output));
        copies.spawn(words.pass_on(errors));
    }
    let mut stopped = tokio::select! {
        _ = running.ended() => false,
        _ = stop.wait_for(|stop| *stop) => true,
    };
    if stopped {
        running.stop().await?;
    }
    let to_ns = clock.now();
    let end = running.status().await?;
    // Whoever ends all processes at once ends the command before the harness hears of it.
    if end.status != Some(0) && !stopped {
        stopped = tokio::time::timeout(SAME_MOMENT, stop.wait_for(|stop| *stop))
            .await
            .is_ok_and(|asked| asked.is_ok());
    }
    let last_words = async {
        while copies.join_next().await.is_some() {}
        screen.wait_for(|over| *over).await.is_ok()
    };
    // What nobody reads from the screen is lost.
    let _ = tokio::time::timeout(LAST_WORDS, last_words).await;
    Ok(CommandEnd { from_ns, to_ns, status: end.status, signal: end.signal, stopped })
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
