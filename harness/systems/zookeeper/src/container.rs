//! How members run in containers: each at an address of its own, so that their ports are the usual ones.

use runs::clock::whole_milliseconds;
use runs::member::MemberId;

use crate::zoo_cfg::SYNC_LIMIT;
use harness_systems::system::{ContainerPorts, Placement};

/// Where members speak about proposals.
const QUORUM_PORT: u16 = 2888;
/// Where members speak about votes.
const ELECTION_PORT: u16 = 3888;
/// Where clients are served.
const CLIENT_PORT: u16 = 2181;
/// The tick of an image that somebody named: its sessions last 2 to 20 of them, and ours 4 to 40 s.
const TICK_MS: u32 = 1_000;
/// Ticks that a follower may take to connect and synchronize there.
const INIT_LIMIT: u32 = 10;

/// The ports of both kinds of servers.
pub(super) const PORTS: ContainerPorts<'static> =
    ContainerPorts { client: CLIENT_PORT, peers: &[QUORUM_PORT, ELECTION_PORT], questions: &[] };

fn role(placement: &Placement<'_>, member: MemberId) -> &'static str {
    if placement.voters.contains(&member) { "" } else { ":observer" }
}

/// The command of the bundled node.
pub(super) fn bundled(placement: &Placement<'_>) -> Vec<String> {
    let mut command = vec![placement.executable.to_owned(), "member".to_owned()];
    let mut flag = |name: &str, value: String| command.extend([format!("--{name}"), value]);
    flag("id", placement.id.0.to_string());
    flag("data-dir", placement.data.to_owned());
    flag("client-addr", format!("0.0.0.0:{CLIENT_PORT}"));
    flag("peer-timeout-ms", whole_milliseconds(placement.peer_timeout).to_string());
    // All clients of a run come from one address, and they crowd together when members are down.
    flag("max-client-cnxns", "0".to_owned());
    for (server, address) in placement.ensemble {
        let role = role(placement, *server);
        flag("server", format!("{}={address}:{QUORUM_PORT}:{ELECTION_PORT}{role}", server.0));
    }
    if let Some(bug) = placement.bug {
        flag("mutant", bug.to_owned());
    }
    command.extend(["--events", "--note-synced"].map(str::to_owned));
    if placement.lose_unsynced {
        command.push("--cut-unsynced".to_owned());
    }
    command
}

/// What the official image of Apache ZooKeeper takes from its environment.
pub(super) fn environment(placement: &Placement<'_>) -> Vec<(&'static str, String)> {
    let line = |(id, address): &(MemberId, _)| {
        let role = role(placement, *id);
        format!("server.{}={address}:{QUORUM_PORT}:{ELECTION_PORT}{role};{CLIENT_PORT}", id.0)
    };
    let servers: Vec<String> = placement.ensemble.iter().map(line).collect();
    vec![
        ("ZOO_MY_ID", placement.id.0.to_string()),
        ("ZOO_SERVERS", servers.join(" ")),
        ("ZOO_TICK_TIME", TICK_MS.to_string()),
        ("ZOO_INIT_LIMIT", INIT_LIMIT.to_string()),
        ("ZOO_SYNC_LIMIT", SYNC_LIMIT.to_string()),
        ("ZOO_4LW_COMMANDS_WHITELIST", "*".to_owned()),
        ("ZOO_STANDALONE_ENABLED", "false".to_owned()),
        ("ZOO_MAX_CLIENT_CNXNS", "0".to_owned()),
    ]
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};
    use std::time::Duration;

    use super::*;

    fn placement<'a>(id: u64, ensemble: &'a [(MemberId, IpAddr)]) -> Placement<'a> {
        Placement {
            executable: "/harness",
            data: "/data",
            ensemble,
            voters: &[MemberId(1)],
            id: MemberId(id),
            peer_timeout: Duration::from_millis(250),
            bug: Some("commit-alone"),
            lose_unsynced: true,
        }
    }

    fn ensemble() -> [(MemberId, IpAddr); 2] {
        [1, 2].map(|id| (MemberId(u64::from(id)), IpAddr::V4(Ipv4Addr::new(192, 0, 2, id))))
    }

    #[test]
    fn the_bundled_node_is_told_its_ensemble_by_flags() {
        let command = bundled(&placement(2, &ensemble())).join(" ");
        for words in [
            "/harness member --id 2 --data-dir /data --client-addr 0.0.0.0:2181",
            "--server 1=192.0.2.1:2888:3888 --server 2=192.0.2.2:2888:3888:observer",
            "--mutant commit-alone",
            "--events --note-synced --cut-unsynced",
        ] {
            assert!(command.contains(words), "{words}: {command}");
        }
    }

    #[test]
    fn an_image_is_told_its_ensemble_as_the_official_one_is() {
        let environment = environment(&placement(1, &ensemble()));
        assert!(environment.contains(&("ZOO_MY_ID", "1".to_owned())));
        let servers = "server.1=192.0.2.1:2888:3888;2181 server.2=192.0.2.2:2888:3888:observer;2181";
        assert!(environment.contains(&("ZOO_SERVERS", servers.to_owned())), "{environment:?}");
    }
}
