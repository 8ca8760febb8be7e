//! A member with a zoo.cfg of its own.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::common::{NODE, Node};
use crate::ports::free_ports;

pub(crate) fn free_port() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], free_ports(1)))
}

/// A store that stands in the repository.
pub(crate) fn fixture(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/stores").join(file)
}

/// The keys that name such stores, all opened by the same word.
pub(crate) fn stores(key: &str, trust: &str) -> String {
    format!(
        "ssl.keyStore.location={}\nssl.keyStore.password=secret\nssl.trustStore.location={}\n\
         ssl.trustStore.password=secret\n",
        fixture(key).display(),
        fixture(trust).display()
    )
}

/// A member that runs.
pub(crate) struct Member {
    pub(crate) node: Node,
    _dir: tempfile::TempDir,
}

fn command(dir: &Path, keys: &str, flags: &[&str]) -> Command {
    let file = dir.join("zoo.cfg");
    let text = format!("dataDir={}\n4lw.commands.whitelist=*\n{keys}", dir.join("data").display());
    std::fs::write(&file, text).expect("written");
    let mut command = Command::new(NODE);
    command.arg("--events").arg("--config").arg(file).args(flags);
    command
}

impl Member {
    /// Starts one with these keys, and waits until it serves.
    pub(crate) fn start(keys: &str, flags: &[&str]) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let node = start_in(dir.path(), keys, flags);
        node.event("serving");
        Self { node, _dir: dir }
    }
}

/// Starts one that keeps its files here, and does not wait for it.
pub(crate) fn start_in(dir: &Path, keys: &str, flags: &[&str]) -> Node {
    Node::listen(command(dir, keys, flags))
}

/// What a member says that does not start.
pub(crate) fn refused(keys: &str) -> String {
    let dir = tempfile::tempdir().expect("a directory");
    let output = command(dir.path(), keys, &[]).stdin(Stdio::null()).output().expect("started");
    assert!(!output.status.success(), "it must not start: {keys}");
    assert!(!dir.path().join("data").exists(), "nothing was touched");
    String::from_utf8_lossy(&output.stderr).into_owned()
}
