//! One process of the user's client: its start, its hello, a line to it and a line from it.

use std::fmt;
use std::fs::File;
use std::io::{BufRead, BufReader as Blocking, Read};
use std::net::SocketAddr;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::process::{Command as StdCommand, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use checker::history::Function;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::process::{Child, Command};

use super::lines::{self, MAX_LINE_BYTES};
use crate::alongside::{Hold, InContainer, Remote};
use crate::bounded;
use crate::program::{Heard, Program};
use crate::system::Beginning;

/// How long a client may take to say hello.
const HELLO_PATIENCE: Duration = Duration::from_secs(20);
/// How often is looked whether one that was dismissed has ended.
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// What is wrong with one that said nothing.
const NO_HELLO: &str = "it ended before it said hello";
/// The lines of its log that are shown.
const TAIL_LINES: usize = 8;
/// Who is where, in the environment of a client.
pub const MEMBERS_VARIABLE: &str = "HARNESS_MEMBERS";
/// Where a client that holds a lock finds the store that its token guards.
pub const STORE_VARIABLE: &str = "HARNESS_STORE";
/// How long what such a client holds is to outlive its silence, in ms.
pub const SESSION_VARIABLE: &str = "HARNESS_SESSION_TIMEOUT_MS";

/// A process that said hello.
pub(super) struct Process {
    held: Held,
    /// None once it is asked nothing more.
    input: Option<Pin<Box<dyn AsyncWrite + Send>>>,
    output: BufReader<Pin<Box<dyn AsyncRead + Send>>>,
    functions: Vec<Function>,
    log: PathBuf,
}

impl fmt::Debug for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Process").field("log", &self.log).finish_non_exhaustive()
    }
}

/// What ends a process when it is dropped.
enum Held {
    /// A child of this one, with its group.
    Child(Child),
    /// One in a container.
    Remote(Box<dyn Hold>),
}

/// What came instead of an answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NoAnswer {
    /// It ended.
    Ended,
    /// A line that never ends.
    TooLong,
    /// Nothing, in time.
    Late,
}

/// What starts it, but for where its words go.
fn command(program: &Program, executable: &Path, members: &[(u64, SocketAddr)]) -> StdCommand {
    let mut command = program.command(executable);
    command
        .env(MEMBERS_VARIABLE, listed(members))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .process_group(0);
    command
}

/// A child that has not been waited for: its id is its own still.
fn unreaped(child: Option<u32>) -> Option<Pid> {
    child.and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw)
}

/// Ends a process and whatever it started in its group.
fn end_group(leader: Option<u32>) {
    if let Some(leader) = unreaped(leader) {
        // One that has ended already hears nothing.
        let _ = kill_process_group(leader, Signal::KILL);
    }
}

impl Drop for Held {
    /// Nobody waits for it before this, so that what it started is found even where it ended first.
    fn drop(&mut self) {
        if let Self::Child(child) = self {
            end_group(child.id());
        }
    }
}

/// What a process in a container finds in its environment: where members are from there, and what its file
/// says.
pub(super) fn environment(program: &Program, members: &[String]) -> Vec<String> {
    let numbered = members.iter().zip(1..).map(|(member, id)| format!("n{id}={member}"));
    let listed = numbered.collect::<Vec<_>>().join(",");
    let own = program.environment.iter().map(|(name, value)| format!("{name}={value}"));
    std::iter::once(format!("{MEMBERS_VARIABLE}={listed}")).chain(own).collect()
}

fn late_hello() -> String {
    format!("it said no hello within {} s", HELLO_PATIENCE.as_secs())
}

/// Where members are found, as [`MEMBERS_VARIABLE`] says it: `n1=127.0.0.1:10257,n2=...`.
#[must_use]
pub fn listed(members: &[(u64, SocketAddr)]) -> String {
    members.iter().map(|(id, address)| format!("n{id}={address}")).collect::<Vec<_>>().join(",")
}

impl Process {
    /// Starts one and waits for its hello.
    pub(super) async fn start(program: &Program, beginning: &Beginning, number: u64) -> Result<Self, String> {
        let log = beginning.folder.join(format!("{number}.log"));
        let words_kept = File::create(&log).map_err(|error| format!("{}: {error}", log.display()))?;
        let mut process = match &program.in_container {
            None => Self::here(program, beginning, log, words_kept)?,
            Some(container) => Self::there(program, container, beginning, log, words_kept).await?,
        };
        process.functions = match tokio::time::timeout(HELLO_PATIENCE, process.answer()).await {
            Ok(Ok(line)) => lines::functions(&line).map_err(|why| process.accused(&why, Some(&line)))?,
            Ok(Err(NoAnswer::TooLong)) => return Err(process.accused("its first line never ends", None)),
            Ok(Err(NoAnswer::Ended)) => return Err(process.accused(NO_HELLO, None)),
            Ok(Err(NoAnswer::Late)) | Err(_) => return Err(process.accused(&late_hello(), None)),
        };
        let lacks = |function: &&Function| !process.functions.contains(function);
        match program.in_container.as_ref().and_then(|container| container.functions.iter().find(lacks)) {
            Some(lack) => {
                let why = format!("client.functions has {lack}, and its hello does not say it");
                Err(process.accused(&why, None))
            }
            None => Ok(process),
        }
    }

    /// One on this machine, which has said nothing yet.
    fn here(program: &Program, beginning: &Beginning, log: PathBuf, words: File) -> Result<Self, String> {
        let mut command = Command::from(command(program, &beginning.executable, &beginning.members));
        command
            .envs(beginning.environment.iter().map(|(name, value)| (name, value)))
            .stderr(words)
            .kill_on_drop(true);
        let mut child = command.spawn().map_err(|error| format!("starting the client: {error}"))?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err("a client without pipes".to_owned());
        };
        let output: Pin<Box<dyn AsyncRead + Send>> = Box::pin(output);
        let (held, input, output) = (Held::Child(child), Some(Box::pin(input) as _), BufReader::new(output));
        Ok(Self { held, input, output, functions: Vec::new(), log })
    }

    /// One in the container of a service.
    async fn there(
        program: &Program,
        container: &InContainer,
        beginning: &Beginning,
        log: PathBuf,
        words: File,
    ) -> Result<Self, String> {
        let because =
            |why: String| format!("starting the client in the container of {}: {why}", container.service);
        let alongside =
            beginning.alongside.as_ref().ok_or_else(|| because("there are no containers".to_owned()))?;
        let mut told = environment(program, &container.members);
        told.extend(beginning.environment.iter().map(|(name, value)| format!("{name}={value}")));
        let remote = alongside.start(program.command.clone(), told, words).await;
        let Remote { input, output, hold } = remote.map_err(|error| because(error.to_string()))?;
        let (held, input, output) = (Held::Remote(hold), Some(input), BufReader::new(output));
        Ok(Self { held, input, output, functions: Vec::new(), log })
    }

    /// What it can do.
    pub(super) fn functions(&self) -> &[Function] {
        &self.functions
    }

    /// Whether it lives, as far as is known. One that ended stays to be waited for.
    pub(super) fn lives(&self) -> bool {
        let ended = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        match &self.held {
            Held::Child(child) => {
                unreaped(child.id()).is_some_and(|id| matches!(waitid(WaitId::Pid(id), ended), Ok(None)))
            }
            Held::Remote(hold) => hold.lives(),
        }
    }

    /// Writes a line, and reads the one that comes, without its end. It is to be asked nothing more where
    /// none came.
    pub(super) async fn converse(&mut self, line: &[u8], patience: Duration) -> Result<Vec<u8>, NoAnswer> {
        let answer = async {
            let input = self.input.as_mut().ok_or(NoAnswer::Ended)?;
            input.write_all(line).await.map_err(|_| NoAnswer::Ended)?;
            input.flush().await.map_err(|_| NoAnswer::Ended)?;
            self.answer().await
        };
        tokio::time::timeout(patience, answer).await.unwrap_or(Err(NoAnswer::Late))
    }

    /// Reads a line, without its end.
    async fn answer(&mut self) -> Result<Vec<u8>, NoAnswer> {
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
    pub(super) async fn ends_without_input(mut self, patience: Duration) -> bool {
        self.input = None;
        let ended = async {
            let mut looks = tokio::time::interval(LOOK_EVERY);
            while self.lives() {
                looks.tick().await;
            }
        };
        tokio::time::timeout(patience, ended).await.is_ok()
    }

    /// What is wrong with it, with the line that shows it and the end of its log.
    pub(super) fn accused(&self, why: &str, line: Option<&[u8]>) -> String {
        accused(why, line, &bounded::tail(&self.log, bounded::LAST_WORDS), Some(&self.log))
    }
}

/// What is wrong with a client, with the line that shows it and the end of its log.
#[must_use]
pub fn accused(why: &str, line: Option<&[u8]>, log: &str, kept: Option<&Path>) -> String {
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
pub(super) fn functions_of(program: &Program, executable: &Path) -> Result<Vec<Function>, String> {
    let mut command = command(program, executable, &[]);
    let mut child = command
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| format!("client.command: starting the client: {error}"))?;
    let (sender, receiver) = mpsc::channel();
    let output = child.stdout.take();
    let words = Heard::of(child.stderr.take());
    // Ends with the process's output, which ends with the group.
    std::thread::spawn(move || {
        let mut line = Vec::new();
        if let Some(output) = output {
            let most = u64::try_from(MAX_LINE_BYTES).unwrap_or(u64::MAX);
            let _ = Blocking::new(output).take(most).read_until(b'\n', &mut line);
        }
        let _ = sender.send(line);
    });
    let line = receiver.recv_timeout(HELLO_PATIENCE);
    end_group(Some(child.id()));
    child.wait().map_err(|error| error.to_string())?;
    let log = String::from_utf8_lossy(&words.all()).into_owned();
    match line.as_deref().map(<[u8]>::trim_ascii_end) {
        Ok([]) => Err(accused(NO_HELLO, None, &log, None)),
        Ok(line) => lines::functions(line).map_err(|why| accused(&why, Some(line), &log, None)),
        Err(_) => Err(accused(&late_hello(), None, &log, None)),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use rustix::process::{kill_process, test_kill_process};

    use super::*;

    #[test]
    fn a_client_that_leaves_somebody_with_its_output_is_judged_all_the_same() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("become"), "shift 3; exec \"$@\"").expect("written");
        let script = "setsid sleep 600 & echo $! >left; echo why >&2; echo nonsense";
        let program = Program {
            command: ["sh", "-c", script].map(str::to_owned).to_vec(),
            environment: BTreeMap::new(),
            folder: folder.path().to_owned(),
            in_container: None,
        };
        let told = functions_of(&program, Path::new("sh")).expect_err("no hello");
        let left = std::fs::read_to_string(folder.path().join("left")).expect("it was started");
        let left = left.trim().parse().ok().and_then(Pid::from_raw).expect("a process");
        assert!(test_kill_process(left).is_ok(), "it lives still");
        kill_process(left, Signal::KILL).expect("ended");
        assert!(told.contains("its line: nonsense") && told.contains("why"), "{told}");
    }
}
