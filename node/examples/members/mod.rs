//! Three members as processes of the `node` binary beside the program, on loopback.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, bail};

/// How long anything may take that should take no time.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// `--minutes` and `--port` of the command line, where they are not these.
pub(crate) fn asked(mut minutes: u64, mut port: u16) -> anyhow::Result<(Duration, u16)> {
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let number =
            words.next().and_then(|number| number.parse::<u64>().ok()).context("a number is missing")?;
        match word.as_str() {
            "--minutes" => minutes = number,
            "--port" => port = u16::try_from(number)?,
            other => bail!("unknown: {other}"),
        }
    }
    Ok((Duration::from_secs(minutes * 60), port))
}

/// The processes and their directory.
pub(crate) struct Members {
    children: Vec<Child>,
    arguments: Vec<Vec<String>>,
    pub(crate) clients: Vec<SocketAddr>,
    pub(crate) quorum: Vec<SocketAddr>,
    pub(crate) election: Vec<SocketAddr>,
    dir: tempfile::TempDir,
}

impl Members {
    /// Starts them, at `port` and some that follow, each with `more` arguments.
    pub(crate) fn start(port: u16, more: &[&str]) -> anyhow::Result<Self> {
        let dir = tempfile::tempdir()?;
        let at = |offset: u16| -> Vec<SocketAddr> {
            (0..3).map(|id| SocketAddr::from(([127, 0, 0, 1], port + offset + id))).collect()
        };
        let (clients, quorum, election) = (at(0), at(10), at(20));
        let (children, arguments) = (Vec::new(), Vec::new());
        let mut members = Self { children, arguments, clients, quorum, election, dir };
        for id in 0..3 {
            let mut arguments = vec!["--id".to_owned(), (id + 1).to_string()];
            arguments.extend(["--client-addr".to_owned(), members.clients[id].to_string()]);
            arguments.extend(["--max-client-cnxns".to_owned(), "0".to_owned(), "--data-dir".to_owned()]);
            arguments.push(members.dir.path().join(id.to_string()).display().to_string());
            for peer in 0..3 {
                let (quorum, election) = (members.quorum[peer], members.election[peer]);
                arguments.push("--server".to_owned());
                arguments.push(format!("{}={quorum}:{}", peer + 1, election.port()));
            }
            arguments.extend(more.iter().map(|word| (*word).to_owned()));
            members.children.push(spawn(&arguments)?);
            members.arguments.push(arguments);
        }
        Ok(members)
    }

    /// Their process ids.
    pub(crate) fn ids(&self) -> Vec<u32> {
        self.children.iter().map(Child::id).collect()
    }

    /// Resident memory of each in MiB.
    pub(crate) fn memory(&self) -> Vec<u64> {
        self.ids().into_iter().map(resident).collect()
    }

    /// Open file descriptors of each.
    pub(crate) fn descriptors(&self) -> Vec<usize> {
        let count = |id: u32| fs::read_dir(format!("/proc/{id}/fd")).map_or(0, Iterator::count);
        self.ids().into_iter().map(count).collect()
    }

    /// Bytes of each one's files.
    pub(crate) fn disk(&self) -> Vec<u64> {
        (0..3).map(|id| size(&self.dir.path().join(id.to_string()))).collect()
    }

    /// Ends one at once, as by `kill -9`.
    pub(crate) fn kill(&mut self, id: usize) -> anyhow::Result<()> {
        self.children[id].kill()?;
        self.children[id].wait()?;
        Ok(())
    }

    /// Starts one again that was ended.
    pub(crate) fn restart(&mut self, id: usize) -> anyhow::Result<()> {
        self.children[id] = spawn(&self.arguments[id])?;
        Ok(())
    }

    /// Fails when one has ended by itself.
    pub(crate) fn check(&mut self) -> anyhow::Result<()> {
        for child in &mut self.children {
            if let Some(status) = child.try_wait()? {
                bail!("a member ended by itself: {status}");
            }
        }
        Ok(())
    }
}

impl Drop for Members {
    fn drop(&mut self) {
        for child in &mut self.children {
            // It may have ended already.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn spawn(arguments: &[String]) -> anyhow::Result<Child> {
    let mut command = Command::new(node()?);
    command.args(arguments).stdout(Stdio::null());
    command.env("RUST_LOG", std::env::var("RUST_LOG").unwrap_or_else(|_| "error".to_owned()));
    command.spawn().context("failed to start a member")
}

/// The binary that was built with this example.
fn node() -> anyhow::Result<PathBuf> {
    let own = std::env::current_exe()?;
    let folder = own.parent().and_then(Path::parent).context("an example has a folder")?;
    let node = folder.join("node");
    if !node.exists() {
        bail!("no {}: build the binary first (cargo build --release -p node)", node.display());
    }
    Ok(node)
}

/// Resident memory of a process in MiB.
pub(crate) fn resident(process: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap_or(0) >> 10
}

fn size(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .map(|entry| match entry.metadata() {
            Ok(metadata) if metadata.is_dir() => size(&entry.path()),
            Ok(metadata) => metadata.len(),
            Err(_) => 0,
        })
        .sum()
}
