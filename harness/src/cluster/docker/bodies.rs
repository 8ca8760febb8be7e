//! What members' containers are made of: our own node, or an image that was named.
//!
//! A foreign image is told its ensemble as the official image of Apache ZooKeeper is, through the
//! environment. Its user and its root stay as it has them.

use std::net::IpAddr;

use bollard::models::{ContainerCreateBody, HostConfig, Mount, MountType};
use node_core::Bug;
use runs::member::MemberId;

use super::holder::{CLIENT_PORT, bounded, confined};
use super::image::{DATA, EXECUTABLE, NOBODY};

/// Where members speak about proposals.
pub(super) const QUORUM_PORT: u16 = 2888;
/// Where members speak about votes.
pub(super) const ELECTION_PORT: u16 = 3888;
/// ZooKeeper's tick: its sessions last 2 to 20 of them, and ours 4 to 40 s.
const TICK_MS: u32 = 1_000;
/// Ticks that a follower may take to connect and synchronize.
const INIT_LIMIT: u32 = 10;
/// Ticks after which a silent follower is given up.
const SYNC_LIMIT: u32 = 2;

/// What all members' containers have in common.
pub(super) struct Common<'a> {
    /// Every member's address.
    pub(super) ensemble: &'a [(MemberId, IpAddr)],
    /// Those of them that vote.
    pub(super) voters: &'a [MemberId],
    /// The container whose namespaces it joins.
    pub(super) holder: &'a str,
    /// Its volumes and where they are mounted.
    pub(super) volumes: &'a [(String, &'static str)],
    /// What it carries.
    pub(super) labels: std::collections::HashMap<String, String>,
}

/// What only the bundled node is told.
pub(super) struct Bundled<'a> {
    pub(super) image: &'a str,
    pub(super) peer_timeout_ms: u64,
    pub(super) plant: Option<Bug>,
    pub(super) lose_unsynced: bool,
}

impl Common<'_> {
    fn observes(&self, member: MemberId) -> bool {
        !self.voters.contains(&member)
    }

    fn host(&self, base: HostConfig) -> HostConfig {
        let namespace = format!("container:{}", self.holder);
        bounded(HostConfig {
            network_mode: Some(namespace.clone()),
            pid_mode: Some(namespace),
            auto_remove: Some(true),
            mounts: Some(self.volumes.iter().map(|(name, path)| keep_in(name, path)).collect()),
            ..base
        })
    }

    fn body(&self, host: HostConfig) -> ContainerCreateBody {
        ContainerCreateBody {
            labels: Some(self.labels.clone()),
            attach_stdout: Some(true),
            attach_stderr: Some(true),
            host_config: Some(host),
            ..ContainerCreateBody::default()
        }
    }

    /// The bundled node as member `id`.
    pub(super) fn bundled(&self, id: MemberId, node: &Bundled<'_>) -> ContainerCreateBody {
        let mut command = vec![EXECUTABLE.to_owned(), "member".to_owned()];
        let mut flag = |name: &str, value: String| command.extend([format!("--{name}"), value]);
        flag("id", id.0.to_string());
        flag("data-dir", DATA.to_owned());
        flag("client-addr", format!("0.0.0.0:{CLIENT_PORT}"));
        flag("peer-timeout-ms", node.peer_timeout_ms.to_string());
        // All clients of a run come from one address, and they crowd together when members are down.
        flag("max-client-cnxns", "0".to_owned());
        for (server, address) in self.ensemble {
            let role = if self.observes(*server) { ":observer" } else { "" };
            flag("server", format!("{}={address}:{QUORUM_PORT}:{ELECTION_PORT}{role}", server.0));
        }
        if let Some(bug) = node.plant {
            flag("plant", bug.name().to_owned());
        }
        command.extend(["--events", "--note-synced"].map(str::to_owned));
        if node.lose_unsynced {
            command.push("--cut-unsynced".to_owned());
        }
        let host = HostConfig { cap_drop: Some(vec!["ALL".to_owned()]), ..confined() };
        ContainerCreateBody {
            image: Some(node.image.to_owned()),
            cmd: Some(command),
            user: Some(format!("{NOBODY}:{NOBODY}")),
            ..self.body(self.host(host))
        }
    }

    /// A foreign image as member `id`; without a command it runs its own.
    pub(super) fn foreign(&self, id: MemberId, image: &str, command: &[String]) -> ContainerCreateBody {
        let servers: Vec<String> = self
            .ensemble
            .iter()
            .map(|(id, address)| {
                let role = if self.observes(*id) { ":observer" } else { "" };
                format!("server.{}={address}:{QUORUM_PORT}:{ELECTION_PORT}{role};{CLIENT_PORT}", id.0)
            })
            .collect();
        let env = [
            ("ZOO_MY_ID", id.0.to_string()),
            ("ZOO_SERVERS", servers.join(" ")),
            ("ZOO_TICK_TIME", TICK_MS.to_string()),
            ("ZOO_INIT_LIMIT", INIT_LIMIT.to_string()),
            ("ZOO_SYNC_LIMIT", SYNC_LIMIT.to_string()),
            ("ZOO_4LW_COMMANDS_WHITELIST", "*".to_owned()),
            ("ZOO_STANDALONE_ENABLED", "false".to_owned()),
            ("ZOO_MAX_CLIENT_CNXNS", "0".to_owned()),
        ];
        ContainerCreateBody {
            image: Some(image.to_owned()),
            cmd: (!command.is_empty()).then(|| command.to_vec()),
            env: Some(env.map(|(name, value)| format!("{name}={value}")).to_vec()),
            ..self.body(self.host(HostConfig::default()))
        }
    }
}

fn keep_in(name: &str, path: &str) -> Mount {
    Mount {
        source: Some(name.to_owned()),
        target: Some(path.to_owned()),
        typ: Some(MountType::VOLUME),
        ..Mount::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;
    use std::net::Ipv4Addr;

    fn ensemble() -> Vec<(MemberId, IpAddr)> {
        [1, 2].map(|id| (MemberId(u64::from(id)), IpAddr::V4(Ipv4Addr::new(192, 0, 2, id)))).to_vec()
    }

    fn common<'a>(ensemble: &'a [(MemberId, IpAddr)], volumes: &'a [(String, &'static str)]) -> Common<'a> {
        Common { ensemble, voters: &[MemberId(1)], holder: "h1", volumes, labels: HashMap::new() }
    }

    #[test]
    fn the_bundled_node_is_told_its_ensemble_by_flags_and_has_no_rights() {
        let (ensemble, volumes) = (ensemble(), [("v".to_owned(), DATA)]);
        let node = Bundled {
            image: "harness:x",
            peer_timeout_ms: 250,
            plant: Some(Bug::CommitAlone),
            lose_unsynced: true,
        };
        let body = common(&ensemble, &volumes).bundled(MemberId(2), &node);
        let command = body.cmd.expect("a command").join(" ");
        for words in [
            "/harness member --id 2 --data-dir /data --client-addr 0.0.0.0:2181",
            "--server 1=192.0.2.1:2888:3888 --server 2=192.0.2.2:2888:3888:observer",
            "--plant commit-alone",
            "--events --note-synced --cut-unsynced",
        ] {
            assert!(command.contains(words), "{words}: {command}");
        }
        let host = body.host_config.expect("a host configuration");
        assert_eq!(body.user.as_deref(), Some("65534:65534"));
        assert_eq!(host.pid_mode.as_deref(), Some("container:h1"));
        assert_eq!((host.cap_drop, host.cap_add), (Some(vec!["ALL".to_owned()]), None));
        assert_eq!((host.readonly_rootfs, host.restart_policy), (Some(true), None));
        assert_eq!((host.memory, host.pids_limit), (Some(2 << 30), Some(4_096)));
    }

    #[test]
    fn a_foreign_image_is_told_its_ensemble_as_the_official_one_is() {
        let (ensemble, volumes) = (ensemble(), [("v".to_owned(), DATA)]);
        let body = common(&ensemble, &volumes).foreign(MemberId(1), "zookeeper:3.9", &[]);
        let env = body.env.expect("an environment");
        assert!(env.contains(&"ZOO_MY_ID=1".to_owned()));
        let servers =
            "ZOO_SERVERS=server.1=192.0.2.1:2888:3888;2181 server.2=192.0.2.2:2888:3888:observer;2181";
        assert!(env.contains(&servers.to_owned()), "{env:?}");
        assert_eq!((body.cmd, body.user), (None, None));
        let host = body.host_config.expect("a host configuration");
        assert_eq!((host.memory, host.pids_limit), (Some(2 << 30), Some(4_096)));
    }
}
