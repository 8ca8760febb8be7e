//! Programs of the user's own, looked for before anything is started.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

use rustix::fs::{Access, access};
use rustix::process::{Pid, Signal, kill_process_group};

use crate::alongside::Home;

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
    pub home: Option<Home>,
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
