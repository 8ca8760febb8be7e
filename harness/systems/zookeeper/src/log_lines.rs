//! What members of Apache ZooKeeper log that is news.
//!
//! Of its log three words are understood: LOOKING, when it has left its leader or never had one, LEADING and
//! FOLLOWING, when its vote is decided. When an epoch stands and whether it serves is asked from outside. A
//! leader also says which session it ends because it was silent.

use runs::events::Said;
use runs::member::MemberId;
use runs::views::Stand;

/// What the line of a member that stood so says of it.
pub(super) fn heard(line: &[u8], member: MemberId, stand: Stand) -> Option<Said> {
    let line = std::str::from_utf8(line).ok()?.trim_end();
    if let Some(session) = expired(line) {
        return Some(Said::Expired { session: session.to_owned() });
    }
    match state(line)? {
        PeerState::Looking => {
            let left = match stand {
                Stand::Established { leader, .. } => Some(leader.0),
                Stand::Answering | Stand::Looking => None,
            };
            Some(Said::Looking { left })
        }
        PeerState::Leading => Some(Said::Elected { leader: member.0 }),
        // Whom it follows is not in the line.
        PeerState::Following => None,
    }
}

/// What a member says it is when that changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PeerState {
    Looking,
    Leading,
    Following,
}

/// The session of which a line says that it ends because it was silent:
/// `... ZooKeeperServer - Expiring session 0x1, ...`.
fn expired(line: &str) -> Option<&str> {
    let (before, words) = line.rsplit_once(" - ")?;
    let session = words.strip_prefix("Expiring session ")?.split_once(',')?.0;
    (before.ends_with("ZooKeeperServer") && session.starts_with("0x")).then_some(session)
}

/// The state in a line of the log, however the line begins.
fn state(line: &str) -> Option<PeerState> {
    let (before, state) = line.rsplit_once(" - ")?;
    if !before.ends_with("QuorumPeer") {
        return None;
    }
    match state {
        "LOOKING" => Some(PeerState::Looking),
        "LEADING" => Some(PeerState::Leading),
        "FOLLOWING" => Some(PeerState::Following),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_states_of_apache_zookeeper_are_told_from_all_else_that_it_logs() {
        let thread =
            "2026-11-22T15:20:01.123 [QuorumPeer[myid=1](plain=[127.0.0.1]:1)(secure=disabled)] INFO";
        let peer = "org.apache.zookeeper.server.quorum.QuorumPeer";
        assert_eq!(state(&format!("{thread} {peer} - LOOKING")), Some(PeerState::Looking));
        assert_eq!(state(&format!("{thread} {peer} - LEADING")), Some(PeerState::Leading));
        assert_eq!(state(&format!("{thread} {peer} - FOLLOWING")), Some(PeerState::Following));
        assert_eq!(state(&format!("{thread} {peer} - LEADING - LEADER ELECTION TOOK - 1 MS")), None);
        assert_eq!(state(&format!("{thread} org.apache.zookeeper.server.Client - LOOKING")), None);
    }

    #[test]
    fn a_session_that_is_ended_for_its_silence_is_told() {
        let line =
            b"x INFO org.apache.zookeeper.server.ZooKeeperServer - Expiring session 0x10001fa2a940003, \
            timeout of 4000ms exceeded\n";
        let said = Said::Expired { session: "0x10001fa2a940003".to_owned() };
        assert_eq!(heard(line, MemberId(1), Stand::Looking), Some(said));
    }

    #[test]
    fn whom_it_left_is_what_it_was_known_to_follow() {
        let line = b"x INFO org.apache.zookeeper.server.quorum.QuorumPeer - LOOKING\n";
        let stand = Stand::Established { leader: MemberId(3), epoch: 7, serving: true };
        assert_eq!(heard(line, MemberId(1), stand), Some(Said::Looking { left: Some(3) }));
        assert_eq!(heard(line, MemberId(1), Stand::Looking), Some(Said::Looking { left: None }));
    }
}
