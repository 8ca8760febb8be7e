//! etcd as it is on this machine, and how its members are started.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use harness_core::fault::Server;
use runs::clock::whole_milliseconds;

use super::NAME;
use crate::program::{VERSION_PATIENCE, brief};
use crate::system::{Installation, Site, Wanted};

/// What to do about a lack.
const ADVICE: &str = "on Debian install etcd-server, or put etcd 3.4 or newer on the path";
/// How long the ensemble may take to serve after its processes were started.
const START_PATIENCE: Duration = Duration::from_secs(20);
/// How long a member may take to end.
const FAREWELL: Duration = Duration::from_secs(10);
/// Variables by which etcd would be told otherwise than by its flags.
const VARIABLES: &str = "ETCD_";
/// etcd's own limit.
const LONGEST_ELECTION: Duration = Duration::from_secs(50);
/// Heartbeats in an election time-out; etcd wants five at least.
const HEARTBEATS: u32 = 5;
/// Entries after which a member writes a snapshot: few, so that a member that was away is sent one.
const SNAPSHOT_ENTRIES: u32 = 1000;
/// The port on which a member listens for others.
const PEER: u16 = 0;

/// etcd as it was found.
pub(super) struct Installed {
    version: String,
    heartbeat: Duration,
    election: Duration,
}

impl Installed {
    /// Has it tell its version.
    pub(super) fn find(wanted: &Wanted) -> Result<Self, String> {
        let mut command = Command::new(NAME);
        without_variables(&mut command);
        let output = brief(command.arg("--version"), VERSION_PATIENCE);
        let output = output.map_err(|error| format!("there is no etcd to run ({error}); {ADVICE}"))?;
        let said = String::from_utf8_lossy(&output.stdout);
        let version = said.lines().find_map(|line| line.strip_prefix("etcd Version: "));
        let version = version.ok_or_else(|| format!("`etcd --version` names no version; {ADVICE}"))?;
        if !is_new_enough(version.trim()) {
            return Err(format!("etcd {} is too old; {ADVICE}", version.trim()));
        }
        if wanted.peer_timeout > LONGEST_ELECTION {
            return Err(format!(
                "etcd takes no election time-out above {} s; shorten --peer-timeout",
                LONGEST_ELECTION.as_secs()
            ));
        }
        Ok(Self {
            version: version.trim().to_owned(),
            heartbeat: wanted.peer_timeout / HEARTBEATS,
            election: wanted.peer_timeout,
        })
    }
}

/// Whether a version is 3.4 or newer.
fn is_new_enough(version: &str) -> bool {
    let mut numbers = version.split('.').map(str::parse::<u32>);
    matches!((numbers.next(), numbers.next()), (Some(Ok(major)), Some(Ok(minor))) if (major, minor) >= (3, 4))
}

fn without_variables(command: &mut Command) {
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with(VARIABLES) {
            command.env_remove(name);
        }
    }
}

impl Installation for Installed {
    fn versions(&self) -> BTreeMap<String, String> {
        BTreeMap::from([(NAME.to_owned(), self.version.clone())])
    }

    fn settings(&self) -> BTreeMap<String, String> {
        let (heartbeat, election) = (whole_milliseconds(self.heartbeat), whole_milliseconds(self.election));
        let words = format!(
            "heartbeat {heartbeat}ms, election time-out {election}ms, pre-vote, a snapshot each \
             {SNAPSHOT_ENTRIES} entries"
        );
        BTreeMap::from([(NAME.to_owned(), words)])
    }

    fn greeting(&self) -> Option<String> {
        Some(format!("{NAME} {}", self.version))
    }

    fn tells(&self, _: Option<Server>) -> bool {
        false
    }

    fn start_patience(&self) -> Duration {
        START_PATIENCE
    }

    /// A leader tries first to hand its office on, and all of them are asked at once.
    fn farewell(&self) -> Duration {
        FAREWELL
    }

    fn command(&self, site: &Site<'_>, _: Option<Server>, lose_unsynced: bool) -> anyhow::Result<Command> {
        if lose_unsynced {
            anyhow::bail!(
                "what etcd has synced is not known, so it can't lose the rest: use --lose-unsynced never"
            );
        }
        let url = |address: std::net::SocketAddr| format!("http://{address}");
        let name = |id: u64| format!("n{id}");
        let mut command = site.program(&PathBuf::from(NAME));
        without_variables(&mut command);
        let client = url(site.addresses.client(site.id));
        // Everybody is told the same addresses: those where members are dialled, not those where they listen.
        let dialled = |member| url(site.addresses.dial(harness_core::cut::Pair::new(site.id, member), PEER));
        let cluster: Vec<String> =
            site.members.iter().map(|member| format!("{}={}", name(member.0), dialled(*member))).collect();
        for (flag, value) in [
            ("name", name(site.id.0)),
            ("data-dir", site.data().join(NAME).display().to_string()),
            ("listen-client-urls", client.clone()),
            ("advertise-client-urls", client),
            ("listen-peer-urls", url(site.addresses.peer(site.id, PEER))),
            ("initial-advertise-peer-urls", dialled(site.id)),
            ("initial-cluster", cluster.join(",")),
            ("initial-cluster-state", "new".to_owned()),
            ("heartbeat-interval", whole_milliseconds(self.heartbeat).to_string()),
            ("election-timeout", whole_milliseconds(self.election).to_string()),
            ("snapshot-count", SNAPSHOT_ENTRIES.to_string()),
            ("logger", "zap".to_owned()),
            ("log-outputs", "stdout".to_owned()),
        ] {
            command.arg(format!("--{flag}")).arg(value);
        }
        command.arg("--pre-vote");
        Ok(command)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_before_3_4_are_too_old() {
        for (version, enough) in
            [("3.4.23", true), ("3.6.0-rc.1", true), ("4.0", true), ("3.3.25", false), ("x", false)]
        {
            assert_eq!(is_new_enough(version), enough, "{version}");
        }
    }
}
