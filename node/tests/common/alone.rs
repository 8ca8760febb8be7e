//! Ensembles of one, by flags alone.

use std::path::Path;
use std::process::Command;

use crate::common::{NODE, Node};

impl Node {
    /// An ensemble of one in `dir`, by way of a command that ends in the node's own.
    pub(crate) fn spawn(mut command: Command, dir: &Path, client: &str, more: &[&str]) -> Self {
        command.args(["--id", "1", "--events", "--client-addr", client, "--data-dir"]).arg(dir).args(more);
        Self::listen(command)
    }

    /// An ensemble of one in `dir`, on any free port.
    pub(crate) fn start(dir: &Path) -> Self {
        Self::spawn(Command::new(NODE), dir, "127.0.0.1:0", &[])
    }
}
