//! Programs of the user's own, looked for before anything is started.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::fs::{Access, access};

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
        command
    }
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
