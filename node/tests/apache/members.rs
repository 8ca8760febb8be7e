//! Members of either kind as child processes: the binary under test, and Apache ZooKeeper 3.8 from Debian's
//! packages.
//!
//! A member keeps its directory, its configuration and its ports when it is stopped and started as the other
//! kind.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::ports::free_ports;

/// No test waits longer than this for anything. A virtual machine on a busy one takes seconds to start.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// What Debian's packages install.
const JARS: [&str; 2] = ["/usr/share/java/zookeeper.jar", "/usr/share/java/slf4j-simple.jar"];

/// What Apache ZooKeeper needs to compress snapshots so. Only a suggestion of its package.
pub(crate) const SNAPPY: &str = "/usr/share/java/snappy-java.jar";

/// Ports of one member: for clients, learners and votes.
const PORTS_EACH: u16 = 3;

/// What runs in a member's directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Apache,
    Node,
}

/// Whether Apache ZooKeeper and a virtual machine for it are here; says so when they are not.
pub(crate) fn installed() -> bool {
    let java = Command::new("java").arg("-version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    let installed =
        java.is_ok_and(|status| status.success()) && JARS.iter().all(|jar| Path::new(jar).exists());
    if !installed {
        eprintln!(
            "skipped: Apache ZooKeeper is not installed (Debian: zookeeper, default-jre-headless, \
                libslf4j-java)"
        );
    }
    installed
}

/// Members and their files, which go when this is dropped.
#[derive(Debug)]
pub(crate) struct Members {
    dir: TempDir,
    base: u16,
    all: u64,
    observers: BTreeSet<u64>,
    changeable: bool,
    running: BTreeMap<u64, (Kind, Child)>,
}

impl Members {
    /// So many members, the last of them observers. None is started.
    pub(crate) fn new(voters: u64, observers: u64) -> Self {
        Self::prepared(voters, observers, false)
    }

    /// So many members of an ensemble that a superuser, whose password is `test`, may change.
    pub(crate) fn changeable(voters: u64) -> Self {
        Self::prepared(voters, 0, true)
    }

    fn prepared(voters: u64, observers: u64, changeable: bool) -> Self {
        let all = voters + observers;
        let members = Self {
            dir: tempfile::tempdir().expect("a directory"),
            base: free_ports(u16::try_from(all).expect("few") * PORTS_EACH),
            all,
            observers: (voters + 1..=all).collect(),
            changeable,
            running: BTreeMap::new(),
        };
        members.write_files();
        members
    }

    fn write_files(&self) {
        for id in 1..=self.all {
            fs::create_dir_all(self.data(id)).expect("a directory");
            fs::write(self.data(id).join("myid"), id.to_string()).expect("written");
            fs::write(self.home(id).join("zoo.cfg"), self.configuration(id)).expect("written");
        }
    }

    /// Kills what runs and forgets all that was written; the ports stay.
    pub(crate) fn begin_anew(&mut self) {
        self.running().into_iter().for_each(|id| self.kill(id));
        for id in 1..=self.all {
            fs::remove_dir_all(self.home(id)).expect("a directory");
        }
        self.write_files();
    }

    /// Adds lines to a member's configuration.
    pub(crate) fn configure(&self, id: u64, more: &str) {
        let path = self.home(id).join("zoo.cfg");
        let text = fs::read_to_string(&path).expect("written before");
        fs::write(path, text + more).expect("written");
    }

    /// The names of a member's snapshots.
    pub(crate) fn snapshots(&self, id: u64) -> Vec<String> {
        let listed = fs::read_dir(self.data(id).join("version-2")).expect("a directory");
        let names = listed.map(|file| file.expect("a file").file_name().to_string_lossy().into_owned());
        names.filter(|name| name.starts_with("snapshot.")).collect()
    }

    fn home(&self, id: u64) -> PathBuf {
        self.dir.path().join(id.to_string())
    }

    fn data(&self, id: u64) -> PathBuf {
        self.home(id).join("data")
    }

    fn port(&self, id: u64, which: u16) -> u16 {
        self.base + (u16::try_from(id).expect("few") - 1) * PORTS_EACH + which
    }

    fn configuration(&self, id: u64) -> String {
        let mut text = format!(
            "tickTime=1000\ninitLimit=20\nsyncLimit=10\ndataDir={}\nmaxClientCnxns=0\nsnapCount=100\n\
             4lw.commands.whitelist=*\nadmin.enableServer=false\n",
            self.data(id).display()
        );
        if self.changeable {
            text.push_str(
                "reconfigEnabled=true\nextendedTypesEnabled=true\n\
                 DigestAuthenticationProvider.superDigest=super:D/InIHSb7yEEbrWz8b9l71RjZJU=\n",
            );
        } else {
            let port = self.port(id, 0);
            text.push_str(&format!("clientPort={port}\nclientPortAddress=127.0.0.1\n"));
        }
        if self.all == 1 {
            return text;
        }
        if self.observers.contains(&id) {
            text.push_str("peerType=observer\n");
        }
        for other in 1..=self.all {
            let role = if self.observers.contains(&other) { "observer" } else { "participant" };
            let (quorum, election) = (self.port(other, 1), self.port(other, 2));
            text.push_str(&format!("server.{other}=127.0.0.1:{quorum}:{election}:{role}"));
            if self.changeable {
                text.push_str(&format!(";{}", self.client_addr(other)));
            }
            text.push('\n');
        }
        text
    }

    pub(crate) fn client_addr(&self, id: u64) -> String {
        format!("127.0.0.1:{}", self.port(id, 0))
    }

    pub(crate) fn running(&self) -> Vec<u64> {
        self.running.keys().copied().collect()
    }

    pub(crate) fn start(&mut self, id: u64, kind: Kind) {
        let log = File::options().append(true).create(true).open(self.log(id)).expect("a log");
        let cfg = self.home(id).join("zoo.cfg");
        let mut command = match kind {
            Kind::Node => {
                let mut command = Command::new(env!("CARGO_BIN_EXE_node"));
                command.arg("--config").arg(cfg);
                command
            }
            Kind::Apache => {
                let mut command = Command::new("java");
                command.args([
                    "-Xmx256m",
                    "-Dzookeeper.snapCount=100",
                    "-cp",
                    &[&JARS[..], &[SNAPPY]].concat().join(":"),
                ]);
                command.arg("org.apache.zookeeper.server.quorum.QuorumPeerMain").arg(cfg);
                command
            }
        };
        let child = command
            .current_dir(self.home(id))
            .stdout(log.try_clone().expect("a log"))
            .stderr(log)
            .spawn()
            .expect("started");
        self.running.insert(id, (kind, child));
    }

    /// Stops a member as an operator does.
    pub(crate) async fn stop(&mut self, id: u64) {
        let (_, mut child) = self.running.remove(&id).expect("it runs");
        kill_process(Pid::from_child(&child), Signal::TERM).expect("a living process");
        let deadline = Instant::now() + PATIENCE;
        while child.try_wait().expect("ours").is_none() {
            assert!(Instant::now() < deadline, "member {id} does not end: {}", self.said(id));
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    /// Ends a member without a warning.
    pub(crate) fn kill(&mut self, id: u64) {
        let (_, mut child) = self.running.remove(&id).expect("it runs");
        child.kill().expect("ours");
        child.wait().expect("ours");
    }

    fn log(&self, id: u64) -> PathBuf {
        self.home(id).join("log.txt")
    }

    /// What a member has logged.
    pub(crate) fn said(&self, id: u64) -> String {
        fs::read_to_string(self.log(id)).unwrap_or_default()
    }
}

impl Drop for Members {
    fn drop(&mut self) {
        for (_, child) in self.running.values_mut() {
            // It may have ended already.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
