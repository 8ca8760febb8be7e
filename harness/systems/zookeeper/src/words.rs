//! What members answer to four-letter words.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use harness_core::fault::Server;
use node_client::four_letter_word;

use crate::{APACHE, NODE};
use harness_systems::Async;
use harness_systems::look::{Look, PortState, Role, Seen, Whom};

/// How long a member may take to say who it is.
const PATIENCE: Duration = Duration::from_millis(500);
/// How long a member may take to answer `ruok` before it counts as silent.
const WORD_PATIENCE: Duration = Duration::from_millis(150);

/// Asks one member `srvr`.
pub(super) struct Srvr(pub(super) SocketAddr);

impl Look for Srvr {
    fn look(&mut self) -> Async<'_, Seen> {
        Box::pin(async {
            match tokio::time::timeout(PATIENCE, four_letter_word(self.0, "srvr")).await {
                Err(_) => Seen::Nothing,
                Ok(Ok(answer)) if answer.trim().is_empty() => Seen::Nothing,
                Ok(Ok(answer)) => read(&answer).map_or(Seen::ServesNobody, Seen::Serves),
                Ok(Err(error)) if error.kind() == io::ErrorKind::ConnectionRefused => Seen::ServesNobody,
                Ok(Err(_)) => Seen::Nothing,
            }
        })
    }
}

/// Reads what `srvr` says; none of a member that serves nobody.
fn read(answer: &str) -> Option<Role> {
    let field = |name: &str| answer.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    let whom = match field("Mode:")? {
        "leader" => Whom::Itself,
        "follower" | "observer" => Whom::Unsaid,
        _ => return None,
    };
    let zxid = u64::from_str_radix(field("Zxid:")?.strip_prefix("0x")?, 16).ok()?;
    Some(Role { whom, epoch: u32::try_from(zxid >> 32).ok()? })
}

/// Asks a member's client port whether it is well.
pub(super) async fn ruok(member: SocketAddr) -> PortState {
    match tokio::time::timeout(WORD_PATIENCE, four_letter_word(member, "ruok")).await {
        Err(_) => PortState::Silent,
        Ok(Ok(answer)) if answer.trim_end_matches('\0').trim() == "imok" => PortState::Answers,
        Ok(Ok(answer)) if answer.is_empty() => PortState::HangsUp,
        Ok(Ok(_)) => PortState::Silent,
        Ok(Err(error)) => PortState::of_error(&error),
    }
}

/// Asks a member's client port what kind of server it is.
pub(super) async fn who(member: SocketAddr) -> Option<(Server, String)> {
    let answer = tokio::time::timeout(PATIENCE, four_letter_word(member, "srvr")).await;
    who_answered(&answer.ok()?.ok()?)
}

/// Who answered `srvr`, by the line with the version: the bundled node names the protocol's version and then
/// itself. None when nobody answered as a server.
fn who_answered(answer: &str) -> Option<(Server, String)> {
    let line = answer.lines().find(|line| line.starts_with("Zookeeper version: "))?;
    let version = line.trim_start_matches("Zookeeper version: ").split(',').next().unwrap_or_default();
    let server = if version.contains("-node-") { NODE } else { APACHE };
    Some((server, version.trim().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_to_srvr_is_understood() {
        let answer =
            "Zookeeper version: 3.9.3\nLatency min/avg/max: 0/0.0/0\nZxid: 0x300000007\nMode: leader\n";
        assert_eq!(read(answer), Some(Role { whom: Whom::Itself, epoch: 3 }));
        assert_eq!(read("This ZooKeeper instance is not currently serving requests\n"), None);
        assert_eq!(read("Mode: follower\nZxid: yes\n"), None);
    }

    #[test]
    fn who_answers_is_told_by_the_version() {
        let java =
            "Zookeeper version: 3.8.0-${mvngit.commit.id}, built on 2024-12-29 17:54 UTC\nMode: leader\n";
        let node = "Zookeeper version: 3.8.0-node-0.1.0, built on unknown\nMode: leader\n";
        assert_eq!(who_answered(java).map(|(server, _)| server), Some(APACHE));
        assert_eq!(who_answered(node), Some((NODE, "3.8.0-node-0.1.0".to_owned())));
        assert_eq!(who_answered("This ZooKeeper instance is not currently serving requests\n"), None);
    }
}
