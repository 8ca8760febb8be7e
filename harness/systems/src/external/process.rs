//! One process of the user's client: its start, its hello, a line to it and a line from it.

use std::io::{BufRead, BufReader as Blocking};
use std::path::{Path, PathBuf};
use std::process::{Command as StdCommand, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use checker::history::Function;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use super::file::Description;
use super::lines::{self, MAX_LINE_BYTES};
use crate::system::Beginning;

/// How long a client may take to say hello.
const HELLO_PATIENCE: Duration = Duration::from_secs(20);
/// The lines of its log that are shown.
const TAIL_LINES: usize = 8;
/// Who is where, in the environment of a client.
const MEMBERS_VARIABLE: &str = "HARNESS_MEMBERS";

/// A process that said hello.
#[derive(Debug)]
pub(super) struct Process {
    /// Killed when this is dropped.
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    functions: Vec<Function>,
    log: PathBuf,
}

/// What came instead of an answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NoAnswer {
    /// It ended.
    Ended,
    /// A line that never ends.
    TooLong,
}

/// The client's command as it is typed, without what surrounds it.
fn words(description: &Description) -> (PathBuf, &[String]) {
    let (program, rest) = (&description.client[0], &description.client[1..]);
    let program = if program.contains('/') { description.folder.join(program) } else { program.into() };
    (program, rest)
}

fn listed(members: &[(u64, std::net::SocketAddr)]) -> String {
    members.iter().map(|(id, address)| format!("n{id}={address}")).collect::<Vec<_>>().join(",")
}

impl Process {
    /// Starts one and waits for its hello.
    pub(super) async fn start(
        description: &Description,
        beginning: &Beginning,
        number: u64,
    ) -> Result<Self, String> {
        let (program, rest) = words(description);
        let log = beginning.folder.join(format!("{number}.log"));
        let words_kept =
            std::fs::File::create(&log).map_err(|error| format!("{}: {error}", log.display()))?;
        // Our executable asks the kernel to end it with the harness, and becomes the program.
        let mut command = Command::new(&beginning.executable);
        command.arg("become").arg("--parent").arg(std::process::id().to_string()).arg("--").arg(&program);
        command
            .args(rest)
            .current_dir(&description.folder)
            .envs(beginning.environment.iter().map(|(name, value)| (name, value)))
            .envs(&description.client_environment)
            .env(MEMBERS_VARIABLE, listed(&beginning.members))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(words_kept)
            .process_group(0)
            .kill_on_drop(true);
        let mut child =
            command.spawn().map_err(|error| format!("starting {}: {error}", program.display()))?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err("a client without pipes".to_owned());
        };
        let mut process = Self { child, input, output: BufReader::new(output), functions: Vec::new(), log };
        process.functions = match tokio::time::timeout(HELLO_PATIENCE, process.answer()).await {
            Ok(Ok(line)) => lines::functions(&line).map_err(|why| process.accused(&why, Some(&line)))?,
            Ok(Err(NoAnswer::TooLong)) => return Err(process.accused("its first line never ends", None)),
            Ok(Err(NoAnswer::Ended)) => return Err(process.accused("it ended before it said hello", None)),
            Err(_) => {
                let why = format!("it said no hello within {} s", HELLO_PATIENCE.as_secs());
                return Err(process.accused(&why, None));
            }
        };
        Ok(process)
    }

    /// What it can do.
    pub(super) fn functions(&self) -> &[Function] {
        &self.functions
    }

    /// Whether it lives, as far as is known.
    pub(super) fn lives(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Writes a line.
    pub(super) async fn ask(&mut self, line: &[u8]) -> std::io::Result<()> {
        self.input.write_all(line).await?;
        self.input.flush().await
    }

    /// Reads a line, without its end.
    pub(super) async fn answer(&mut self) -> Result<Vec<u8>, NoAnswer> {
        let mut line = Vec::new();
        let most = u64::try_from(MAX_LINE_BYTES + 1).unwrap_or(u64::MAX);
        let read = (&mut self.output).take(most).read_until(b'\n', &mut line).await;
        match (read, line.pop()) {
            (Ok(_), Some(b'\n')) => Ok(line),
            (Ok(read), Some(_)) if read > MAX_LINE_BYTES => Err(NoAnswer::TooLong),
            _ => Err(NoAnswer::Ended),
        }
    }

    /// Closes its input, and waits for its end. False when it lives on.
    pub(super) async fn ends_without_input(self, patience: Duration) -> bool {
        let Self { mut child, input, output, .. } = self;
        drop(input);
        let is_gone = tokio::time::timeout(patience, child.wait()).await.is_ok();
        drop(output);
        is_gone
    }

    /// What is wrong with it, with the line that shows it and the end of its log.
    pub(super) fn accused(&self, why: &str, line: Option<&[u8]>) -> String {
        accused(why, line, &std::fs::read_to_string(&self.log).unwrap_or_default(), Some(&self.log))
    }
}

fn accused(why: &str, line: Option<&[u8]>, log: &str, kept: Option<&Path>) -> String {
    let mut words = format!("the client: {why}");
    if let Some(line) = line {
        let line: String = String::from_utf8_lossy(line).chars().take(200).collect();
        words.push_str(&format!("; its line: {line}"));
    }
    let tail: Vec<&str> = log.lines().collect();
    if !tail.is_empty() {
        let tail = tail[tail.len().saturating_sub(TAIL_LINES)..].join("\n");
        words.push_str(&format!("; the end of what it wrote to stderr:\n{tail}"));
    }
    if let Some(kept) = kept {
        words.push_str(&format!("\nall of it is in {}", kept.display()));
    }
    words
}

/// What the client says that it can do. It is started for that, without any member, and ended.
pub(super) fn functions_of(description: &Description) -> Result<Vec<Function>, String> {
    let (program, rest) = words(description);
    let mut command = StdCommand::new(&program);
    command
        .args(rest)
        .current_dir(&description.folder)
        .envs(&description.client_environment)
        .env(MEMBERS_VARIABLE, "")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command
        .spawn()
        .map_err(|error| format!("client.command: starting {}: {error}", program.display()))?;
    let (sender, receiver) = mpsc::channel();
    let output = child.stdout.take();
    // Ends with the process's output, which ends with the process.
    std::thread::spawn(move || {
        let mut line = Vec::new();
        if let Some(output) = output {
            let _ = Blocking::new(output).read_until(b'\n', &mut line);
        }
        let _ = sender.send(line);
    });
    let line = receiver.recv_timeout(HELLO_PATIENCE);
    let _ = child.kill();
    let ended = child.wait_with_output().map_err(|error| error.to_string())?;
    let log = String::from_utf8_lossy(&ended.stderr).into_owned();
    match line.as_deref() {
        Ok([]) => Err(accused("it ended before it said hello", None, &log, None)),
        Ok(line) => lines::functions(line.trim_ascii_end())
            .map_err(|why| accused(&why, Some(line.trim_ascii_end()), &log, None)),
        Err(_) => {
            let why = format!("it said no hello within {} s", HELLO_PATIENCE.as_secs());
            Err(accused(&why, None, &log, None))
        }
    }
}
