//! Members as child processes whose ensemble may change: each has its own zoo.cfg, which it writes anew.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Child, Command};
use std::time::Duration;

use tempfile::TempDir;

use crate::ports::free_ports;

/// No test waits longer than this for anything. Machines that test are busy.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Ports of one member: for clients, learners and votes.
const PORTS_EACH: u16 = 3;

/// Members and their files, which go when this is dropped.
#[derive(Debug)]
pub(crate) struct Members {
    dir: TempDir,
    base: u16,
    running: BTreeMap<u64, Child>,
}

impl Members {
    /// So many members that know of each other, and behind them newcomers that know of those and themselves.
    /// None is started.
    pub(crate) fn new(members: u64, newcomers: u64) -> Self {
        let all = members + newcomers;
        let base = free_ports(u16::try_from(all).expect("few") * PORTS_EACH);
        let ensemble =
            Self { dir: tempfile::tempdir().expect("a directory"), base, running: BTreeMap::new() };
        for id in 1..=all {
            let data = ensemble.home(id).join("data");
            fs::create_dir_all(&data).expect("a directory");
            fs::write(data.join("myid"), id.to_string()).expect("written");
            ensemble.configure(id, (1..=members).chain([id]).collect());
        }
        ensemble
    }

    /// Writes a member's configuration, as an operator does who lets it join: with the lines of all that are
    /// in, and its own.
    fn configure(&self, id: u64, known: BTreeSet<u64>) {
        let data = self.home(id).join("data");
        let mut text = format!(
            "# by hand\ntickTime=1000\ninitLimit=20\nsyncLimit=10\ndataDir={}\nmaxClientCnxns=0\n\
                 4lw.commands.whitelist=*\nadmin.enableServer=false\nreconfigEnabled=true\n\
                 standaloneEnabled=false\nskipACL=yes\n",
            data.display()
        );
        text.extend(known.into_iter().map(|known| format!("{}\n", self.line(known))));
        fs::write(self.zoo_cfg(id), text).expect("written");
    }

    /// Starts a member anew that ended by itself: its files say that it was removed.
    pub(crate) fn revive(&mut self, id: u64, members: &BTreeSet<u64>) {
        let child = self.running.get_mut(&id).expect("it was started");
        if child.try_wait().expect("ours").is_some() {
            assert!(self.said(id).contains("in an ensemble without it"), "member {id}: {}", self.said(id));
            self.configure(id, members.iter().copied().chain([id]).collect());
            self.start(id);
        }
    }

    /// A member's server line.
    pub(crate) fn line(&self, id: u64) -> String {
        let [client, quorum, election] = [0, 1, 2].map(|which| self.port(id, which));
        format!("server.{id}=127.0.0.1:{quorum}:{election}:participant;127.0.0.1:{client}")
    }

    fn home(&self, id: u64) -> PathBuf {
        self.dir.path().join(id.to_string())
    }

    pub(crate) fn zoo_cfg(&self, id: u64) -> PathBuf {
        self.home(id).join("zoo.cfg")
    }

    fn port(&self, id: u64, which: u16) -> u16 {
        self.base + (u16::try_from(id).expect("few") - 1) * PORTS_EACH + which
    }

    pub(crate) fn client_addr(&self, id: u64) -> String {
        format!("127.0.0.1:{}", self.port(id, 0))
    }

    pub(crate) fn running(&self) -> Vec<u64> {
        self.running.keys().copied().collect()
    }

    pub(crate) fn start(&mut self, id: u64) {
        let log = File::options().append(true).create(true).open(self.log(id)).expect("a log");
        let child = Command::new(env!("CARGO_BIN_EXE_node"))
            .arg("--config")
            .arg(self.zoo_cfg(id))
            .current_dir(self.home(id))
            .stdout(log.try_clone().expect("a log"))
            .stderr(log)
            .spawn()
            .expect("started");
        self.running.insert(id, child);
    }

    /// Ends a member without a warning.
    pub(crate) fn kill(&mut self, id: u64) {
        let mut child = self.running.remove(&id).expect("it runs");
        child.kill().expect("ours");
        child.wait().expect("ours");
    }

    fn log(&self, id: u64) -> PathBuf {
        self.home(id).join("log.txt")
    }

    /// What a member has logged, the end of it.
    pub(crate) fn said(&self, id: u64) -> String {
        let text = fs::read_to_string(self.log(id)).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(40)..].join("\n")
    }
}

impl Drop for Members {
    fn drop(&mut self) {
        for child in self.running.values_mut() {
            // It may have ended already.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
