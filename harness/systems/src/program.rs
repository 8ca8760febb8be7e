//! Programs of the user's own, looked for before anything is started.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use rustix::fs::{Access, access};
use rustix::process::{Pid, Signal, kill_process_group};

use crate::alongside::InContainer;

/// A client's program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// What a process of it runs: at least a name.
    pub command: Vec<String>,
    /// What is in its environment.
    pub environment: BTreeMap<String, String>,
    /// Where it runs, absolute.
    pub folder: PathBuf,
    /// The container in which it runs instead, where it does.
    pub in_container: Option<InContainer>,
}

impl Program {
    /// What starts it. Our executable asks the kernel to end it with the harness, and becomes the program. A
    /// path is meant from the file's folder.
    #[must_use]
    pub fn command(&self, executable: &Path) -> Command {
        let (name, rest) = (&self.command[0], &self.command[1..]);
        let name = if name.contains('/') { self.folder.join(name) } else { name.into() };
        let mut command = Command::new(executable);
        command.arg("become").arg("--parent").arg(std::process::id().to_string()).arg("--").arg(name);
        command.args(rest).current_dir(&self.folder).envs(&self.environment);
        mark(&mut command);
        command
    }
}

/// The variable that marks what this process starts, and its value.
static MARK: OnceLock<(&str, String)> = OnceLock::new();

/// Has every program of the user's that is started from now on marked in its environment, so that what is
/// left of it can be found. The first mark stays.
pub fn mark_with(variable: &'static str, value: String) {
    let _ = MARK.set((variable, value));
}

/// Marks one.
pub fn mark(command: &mut Command) {
    if let Some((variable, value)) = MARK.get() {
        command.env(variable, value);
    }
}

/// A group of processes, which ends when this is dropped.
struct Group(Option<Pid>);

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(group) = self.0 {
            // It may have ended in this moment.
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

/// Runs a marked command to its end, in a group of its own, so that Ctrl-C reaches the harness alone. What it
/// started in its group ends with it when this is dropped before.
///
/// # Errors
/// When it can't be started, or waited for.
pub async fn output(mut command: Command) -> io::Result<Output> {
    mark(&mut command);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut command = tokio::process::Command::from(command);
    let child = command.process_group(0).kill_on_drop(true).spawn()?;
    let id = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
    let ending = child.wait_with_output();
    tokio::pin!(ending);
    // Dropped before the child is waited for: until then the group is its own.
    let mut group = Group(id);
    let output = (&mut ending).await;
    group.0 = None;
    output
}

/// How long a program may take to tell its version. Java's takes seconds on a busy machine.
pub const VERSION_PATIENCE: Duration = Duration::from_mins(1);
/// Bytes that are kept of what a program writes.
const MOST_HEARD: usize = 1 << 20;
/// When a program has ended, what it wrote itself is in the pipe, and takes no longer than this.
const SETTLED: Duration = Duration::from_secs(1);
/// The pause between two looks at whether a program has ended.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// What comes out of a pipe. Whoever inherits a pipe may keep it open for ever, so a thread reads it, and
/// nobody waits for its end.
pub(crate) struct Heard {
    so_far: Arc<Mutex<Vec<u8>>>,
    over: Receiver<()>,
}

impl Heard {
    /// Begins to read.
    pub(crate) fn of(pipe: Option<impl Read + Send + 'static>) -> Self {
        let so_far = Arc::new(Mutex::new(Vec::new()));
        let (sender, over) = mpsc::channel();
        let heard = Arc::clone(&so_far);
        std::thread::spawn(move || {
            let (mut pipe, mut buffer) = (pipe, [0; 4096]);
            while let Some(Ok(read @ 1..)) = pipe.as_mut().map(|pipe| pipe.read(&mut buffer)) {
                let mut heard = heard.lock().unwrap_or_else(PoisonError::into_inner);
                let left = MOST_HEARD.saturating_sub(heard.len());
                heard.extend_from_slice(&buffer[..read.min(left)]);
            }
            let _ = sender.send(());
        });
        Self { so_far, over }
    }

    /// What came, of a program that has ended.
    pub(crate) fn all(self) -> Vec<u8> {
        let _ = self.over.recv_timeout(SETTLED);
        std::mem::take(&mut *self.so_far.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Runs a command that ends soon, in a group of its own, and says what it wrote until then: of each output
/// 1 MiB at most. What it leaves running is not waited for, whatever that holds.
///
/// # Errors
/// When it can't be started, or does not end in time; then its group is ended.
pub fn brief(command: &mut Command, patience: Duration) -> io::Result<Output> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    let mut child = command.spawn()?;
    let (stdout, stderr) = (Heard::of(child.stdout.take()), Heard::of(child.stderr.take()));
    let until = Instant::now() + patience;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Output { status, stdout: stdout.all(), stderr: stderr.all() });
        }
        if Instant::now() >= until {
            break;
        }
        std::thread::park_timeout(LOOK_EVERY);
    }
    // It was not waited for, so its group is its own still.
    drop(Group(i32::try_from(child.id()).ok().and_then(Pid::from_raw)));
    child.wait()?;
    Err(io::Error::new(io::ErrorKind::TimedOut, format!("it did not end within {} s", patience.as_secs())))
}

/// Whether there is such a program that can be run: where it is named by its path, seen from this folder,
/// else on the path.
#[must_use]
pub fn is_there(program: &str, folder: &Path) -> bool {
    let runs = |path: &Path| path.is_file() && access(path, Access::EXEC_OK).is_ok();
    if program.contains('/') {
        return runs(&folder.join(program));
    }
    let paths = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&paths).any(|path| runs(&path.join(program)))
}

#[cfg(test)]
mod tests {
    use rustix::process::{kill_process, test_kill_process};

    use super::*;

    fn sh(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn what_a_program_leaves_running_is_not_waited_for_though_it_holds_the_output() {
        let output = brief(&mut sh("setsid sleep 600 & echo $!; echo why >&2"), Duration::from_secs(60));
        let output = output.expect("it ended");
        let left = String::from_utf8_lossy(&output.stdout).trim().parse().ok().and_then(Pid::from_raw);
        let left = left.expect("a process");
        assert!(test_kill_process(left).is_ok(), "it lives still");
        kill_process(left, Signal::KILL).expect("ended");
        assert_eq!(output.stderr, b"why\n");
    }

    #[test]
    fn a_program_that_does_not_end_is_ended_and_much_that_it_writes_is_cut() {
        let late = brief(&mut sh("sleep 600"), Duration::ZERO).expect_err("late");
        assert_eq!(late.kind(), io::ErrorKind::TimedOut);
        let much = brief(&mut sh("head -c 3000000 /dev/zero"), Duration::from_secs(60)).expect("it ended");
        assert!(much.status.success());
        assert_eq!(much.stdout.len(), MOST_HEARD);
    }
}
