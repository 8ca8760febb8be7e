//! How members are started: the command line of each kind of server, on its seat in the ensemble.
//!
//! Whatever it runs, a member keeps its folder, its data and its ports, so that one kind can follow the other. Both die
//! with the harness: the bundled node asks the kernel for that itself, and Java is started by way of our own executable,
//! which asks and then becomes Java.

use std::net::SocketAddr;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, anyhow};
use runs::member::MemberId;

use super::ports::PortPlan;
use super::settings::MemberSettings;
use crate::clock::whole_milliseconds;
use crate::links::protocol::Pair;
use crate::store::lock::TOKEN_VARIABLE;
use crate::targets::java::MEMBER_CLASS;
use crate::targets::zoo_cfg::{self, INIT_LIMIT, LOGBACK, LOGBACK_FILE, SYNC_LIMIT, ZooCfg};

/// A member's seat.
pub(super) struct Seat<'a> {
    /// This executable.
    pub(super) executable: &'a Path,
    /// What all members are told.
    pub(super) settings: &'a MemberSettings,
    /// Who listens where.
    pub(super) ports: &'a PortPlan,
    /// Everybody.
    pub(super) members: &'a [MemberId],
    /// Whose seat it is.
    pub(super) id: MemberId,
}

impl Seat<'_> {
    fn folder(&self) -> PathBuf {
        self.settings.folder.join("nodes").join(self.id.0.to_string())
    }

    fn data(&self) -> PathBuf {
        self.folder().join("data")
    }

    /// The bundled node.
    pub(super) fn node(&self, lose_unsynced: bool) -> Command {
        let Self { settings, ports, id, .. } = self;
        let mut command = child(self.executable, "member", &settings.token);
        command.arg("--parent").arg(std::process::id().to_string());
        command.arg("--id").arg(id.0.to_string()).arg("--data-dir").arg(self.data());
        command.arg("--client-addr").arg(ports.client(*id).to_string());
        command.arg("--peer-timeout-ms").arg(whole_milliseconds(settings.peer_timeout).to_string());
        // All clients of a run come from one address, and they crowd together when members are down.
        command.args(["--max-client-cnxns", "0", "--events", "--note-synced"]);
        for server in self.members {
            let (quorum, election) = (ports.quorum(*server), ports.election(*server));
            command.arg("--server").arg(format!("{}={quorum}:{}", server.0, election.port()));
            if server != id {
                let (quorum, election) = ports.link(Pair::new(*id, *server));
                command.arg("--dial").arg(format!("{}={quorum},{election}", server.0));
            }
        }
        if let Some(java) = &settings.java {
            // Beside Java members ZooKeeper's own limits rule, and they must be everybody's.
            let (shortest, longest) = java.sessions;
            command.arg("--tick-time-ms").arg(whole_milliseconds(java.tick).to_string());
            for (key, value) in [
                ("initLimit", u64::from(INIT_LIMIT)),
                ("syncLimit", u64::from(SYNC_LIMIT)),
                ("minSessionTimeout", whole_milliseconds(shortest)),
                ("maxSessionTimeout", whole_milliseconds(longest)),
            ] {
                command.arg(format!("-Dzookeeper.{key}={value}"));
            }
        }
        if let Some(bug) = settings.plant {
            command.arg("--plant").arg(bug.name());
        }
        if lose_unsynced {
            command.arg("--cut-unsynced");
        }
        command
    }

    /// Apache ZooKeeper. Writes its configuration first.
    pub(super) fn zookeeper(&self) -> anyhow::Result<Command> {
        let java =
            self.settings.java.as_ref().ok_or_else(|| anyhow!("Apache ZooKeeper was not looked for"))?;
        let folder = std::path::absolute(self.folder()).context("finding the run's folder")?;
        let data = folder.join("data");
        let write = |path: PathBuf, text: &str| {
            std::fs::write(&path, text).with_context(|| format!("writing {}", path.display()))
        };
        let cfg = ZooCfg {
            data: &data,
            client: self.ports.client(self.id),
            servers: &self.servers(),
            tick: java.tick,
            sessions: java.sessions,
        };
        let file = folder.join("zoo.cfg");
        write(file.clone(), &cfg.text())?;
        write(data.join("myid"), &format!("{}\n", self.id.0))?;
        write(folder.join(LOGBACK_FILE), LOGBACK)?;
        let mut command = child(self.executable, "become", &self.settings.token);
        command.arg("--parent").arg(std::process::id().to_string()).arg("--").arg(&java.java.program);
        command.args(zoo_cfg::java_flags(&folder)).arg("-cp").arg(&java.java.class_path);
        command.arg(MEMBER_CLASS).arg(file);
        Ok(command)
    }

    /// Every member with the ports for learners and votes at which it is dialled from here; the own ones are those on
    /// which is listened.
    fn servers(&self) -> Vec<(MemberId, SocketAddr, SocketAddr)> {
        let ports = |other: MemberId| match other == self.id {
            true => (self.ports.quorum(other), self.ports.election(other)),
            false => self.ports.link(Pair::new(self.id, other)),
        };
        self.members.iter().map(|other| (*other, ports(*other).0, ports(*other).1)).collect()
    }
}

/// A child of this run: recognisable by its environment, in a process group of its own.
pub(super) fn child(executable: &Path, subcommand: &str, token: &str) -> Command {
    let mut command = Command::new(executable);
    command.arg(subcommand).env(TOKEN_VARIABLE, token).process_group(0);
    command
}
