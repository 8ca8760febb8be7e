//! What members log that is news: that the leader is lost, and that an election is won.

use runs::events::Said;
use runs::member::MemberId;
use runs::views::Stand;
use serde::Deserialize;

#[derive(Deserialize)]
struct Line<'a> {
    #[serde(borrow)]
    msg: std::borrow::Cow<'a, str>,
}

/// What the line of a member that stood so says of it.
pub(super) fn heard(line: &[u8], member: MemberId, stand: Stand) -> Option<Said> {
    let Line { msg } = serde_json::from_slice(line).ok()?;
    // `raft.node: 69b38ac7138de88d lost leader 61f97220ab052a12 at term 3`
    if msg.starts_with("raft.node: ") && msg.contains(" lost leader ") {
        return match stand {
            Stand::Established { leader, .. } => Some(Said::Looking { left: Some(leader.0) }),
            Stand::Answering | Stand::Looking => None,
        };
    }
    // `61f97220ab052a12 became leader at term 4`: a line that a member writes of itself alone.
    let (_, what) = msg.split_once(' ')?;
    what.starts_with("became leader at term ").then_some(Said::Elected { leader: member.0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(msg: &str) -> Vec<u8> {
        format!(r#"{{"level":"info","ts":"2026-11-25T03:19:29Z","caller":"raft/raft.go:7","msg":"{msg}"}}"#)
            .into_bytes()
    }

    #[test]
    fn two_things_are_news() {
        let follows = Stand::Established { leader: MemberId(3), epoch: 2, serving: true };
        let heard = |msg: &str, stand| heard(&line(msg), MemberId(1), stand);
        assert_eq!(heard("69b3 became leader at term 4", Stand::Looking), Some(Said::Elected { leader: 1 }));
        let lost = "raft.node: 69b3 lost leader 61f9 at term 3";
        assert_eq!(heard(lost, follows), Some(Said::Looking { left: Some(3) }));
        assert_eq!(heard(lost, Stand::Looking), None, "it is known already");
        for other in [
            "69b3 became follower at term 4",
            "raft.node: 69b3 elected leader 61f9 at term 2",
            "69b3 [logterm: 1, index: 3] sent MsgVote request to 61f9 at term 2",
            "",
        ] {
            assert_eq!(heard(other, follows), None, "{other}");
        }
        assert_eq!(super::heard(b"panic: x", MemberId(1), follows), None);
    }
}
