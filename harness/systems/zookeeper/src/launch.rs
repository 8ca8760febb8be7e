//! How members are started: the command line of each kind of server, on its site in the ensemble.
//!
//! Whatever it runs, a member keeps its folder, its data and its ports, so that one kind can follow the
//! other. Both die with the harness: the bundled node asks the kernel for that itself, and Java is started by
//! way of our own executable, which asks and then becomes Java.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use harness_core::fault::Server;
use runs::clock::whole_milliseconds;
use runs::member::MemberId;

use crate::java::{Java, MEMBER_CLASS};
use crate::zoo_cfg::{self, HEAP, INIT_LIMIT, LOGBACK, LOGBACK_FILE, SYNC_LIMIT, ServerLine, ZooCfg};
use crate::{APACHE, NODE, servers, settings};
use harness_systems::system::{Installation, Site, Wanted};

/// What its version is noted under.
pub(super) const VERSION_OF: &str = "Apache ZooKeeper";
/// How long the ensemble may take to serve after its processes were started.
const START_PATIENCE: Duration = Duration::from_secs(20);
/// The same with virtual machines, which take their time.
const JAVA_START_PATIENCE: Duration = Duration::from_secs(60);

/// A member's port for learners, and for votes.
const QUORUM: u16 = 0;
pub(super) const ELECTION: u16 = 1;

/// What starts members.
pub(super) struct Installed {
    java: Option<Java>,
    servers: BTreeMap<MemberId, Server>,
    wanted: Wanted,
}

impl Installed {
    /// With Java members, and which; or without any.
    pub(super) fn new(java: Option<(Java, Vec<MemberId>)>, wanted: Wanted) -> Self {
        match java {
            Some((java, members)) => Self { java: Some(java), servers: servers(&wanted, &members), wanted },
            None => Self { java: None, servers: BTreeMap::new(), wanted },
        }
    }

    /// The bundled node.
    fn node(&self, site: &Site<'_>, lose_unsynced: bool) -> Command {
        let Wanted { peer_timeout, sessions: (shortest, longest), bug, .. } = &self.wanted;
        let mut command = Command::new(site.executable);
        command.arg("member").arg("--parent").arg(std::process::id().to_string());
        command.arg("--id").arg(site.id.0.to_string()).arg("--data-dir").arg(site.data());
        command.arg("--client-addr").arg(site.addresses.client(site.id).to_string());
        command.arg("--peer-timeout-ms").arg(whole_milliseconds(*peer_timeout).to_string());
        // All clients of a run come from one address, and they crowd together when members are down.
        command.args(["--max-client-cnxns", "0", "--events", "--note-synced"]);
        for server in site.members {
            let (quorum, election) =
                (site.addresses.peer(*server, QUORUM), site.addresses.peer(*server, ELECTION));
            let role = if site.observes(*server) { ":observer" } else { "" };
            command.arg("--server").arg(format!("{}={quorum}:{}{role}", server.0, election.port()));
            if *server != site.id {
                let (quorum, election) = (site.told(*server, QUORUM), site.told(*server, ELECTION));
                command.arg("--dial").arg(format!("{}={quorum},{election}", server.0));
            }
        }
        if self.java.is_some() {
            // Beside Java members ZooKeeper's own limits rule, and they must be everybody's.
            let tick = whole_milliseconds(settings::tick(&self.wanted));
            command.arg("--tick-time-ms").arg(tick.to_string());
            for (key, value) in [
                ("initLimit", u64::from(INIT_LIMIT)),
                ("syncLimit", u64::from(SYNC_LIMIT)),
                ("minSessionTimeout", whole_milliseconds(*shortest)),
                ("maxSessionTimeout", whole_milliseconds(*longest)),
            ] {
                command.arg(format!("-Dzookeeper.{key}={value}"));
            }
        }
        if let Some(bug) = bug {
            command.arg("--mutant").arg(bug);
        }
        if lose_unsynced {
            command.arg("--cut-unsynced");
        }
        command
    }

    /// Apache ZooKeeper. Writes its configuration first.
    fn apache(&self, site: &Site<'_>) -> anyhow::Result<Command> {
        let java = self.java.as_ref().ok_or_else(|| anyhow!("Apache ZooKeeper was not looked for"))?;
        let (folder, data) = (&site.folder, site.data());
        let write = |path: PathBuf, text: &str| {
            std::fs::write(&path, text).with_context(|| format!("writing {}", path.display()))
        };
        let servers: Vec<_> = site
            .members
            .iter()
            .map(|member| ServerLine {
                member: *member,
                quorum: site.told(*member, QUORUM),
                election: site.told(*member, ELECTION),
                observes: site.observes(*member),
            })
            .collect();
        let cfg = ZooCfg {
            data: &data,
            client: site.addresses.client(site.id),
            observes: site.observes(site.id),
            servers: &servers,
            tick: settings::tick(&self.wanted),
            sessions: self.wanted.sessions,
        };
        let file = folder.join("zoo.cfg");
        write(file.clone(), &cfg.text())?;
        write(data.join("myid"), &format!("{}\n", site.id.0))?;
        write(folder.join(LOGBACK_FILE), LOGBACK)?;
        let mut command = site.program(&java.program);
        command.args(zoo_cfg::java_flags(folder)).arg("-cp").arg(&java.class_path);
        command.arg(MEMBER_CLASS).arg(file);
        Ok(command)
    }
}

impl Installation for Installed {
    fn versions(&self) -> BTreeMap<String, String> {
        let Some(java) = &self.java else { return BTreeMap::new() };
        BTreeMap::from([
            (VERSION_OF.to_owned(), java.zookeeper.clone()),
            ("Java".to_owned(), java.version.clone()),
        ])
    }

    fn settings(&self) -> BTreeMap<String, String> {
        let Some(java) = &self.java else { return BTreeMap::new() };
        let tick = whole_milliseconds(settings::tick(&self.wanted));
        let limits = format!("tick {tick}ms, initLimit {INIT_LIMIT}, syncLimit {SYNC_LIMIT}; {HEAP}");
        BTreeMap::from([
            ("Apache ZooKeeper".to_owned(), limits),
            ("class path".to_owned(), java.class_path.clone()),
        ])
    }

    fn greeting(&self) -> Option<String> {
        let java = self.java.as_ref()?;
        let names: Vec<String> = self
            .servers
            .iter()
            .filter(|(_, server)| **server == APACHE)
            .map(|(member, _)| format!("n{}", member.0))
            .collect();
        let who = if names.len() == self.servers.len() { "all".to_owned() } else { names.join(" ") };
        Some(format!("Apache ZooKeeper {} on Java {}: {who}", java.zookeeper, java.version))
    }

    fn servers(&self) -> BTreeMap<MemberId, Server> {
        self.servers.clone()
    }

    fn tells(&self, server: Option<Server>) -> bool {
        server.is_none_or(|server| server == NODE)
    }

    fn start_patience(&self) -> Duration {
        if self.java.is_some() { JAVA_START_PATIENCE } else { START_PATIENCE }
    }

    fn command(
        &self,
        site: &Site<'_>,
        server: Option<Server>,
        lose_unsynced: bool,
    ) -> anyhow::Result<Command> {
        match server {
            Some(server) if server == APACHE && lose_unsynced => bail!(
                "what Apache ZooKeeper has synced is not known, so it can't lose the rest: use \
                    --lose-unsynced never"
            ),
            Some(server) if server == APACHE => self.apache(site),
            Some(_) | None => Ok(self.node(site, lose_unsynced)),
        }
    }
}
