//! What a member answers about itself: who leads, in which term.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use runs::member::MemberId;
use serde::Deserialize;

use super::gateway::{Gateway, Reply};
use crate::Async;
use crate::look::{Look, PortState, Role, Seen, Whereabouts, Whom};

const STATUS: &str = "/v3/maintenance/status";
/// How long a member may take to answer.
const PATIENCE: Duration = Duration::from_millis(500);
/// How long one may take to show that anybody is at its port.
const PORT_PATIENCE: Duration = Duration::from_millis(150);

/// The part of the answer that is of use. Numbers come as text, and a leader that is not known not at all.
#[derive(Debug, Deserialize)]
struct Status {
    header: Header,
    #[serde(default)]
    leader: String,
    #[serde(rename = "raftTerm", default)]
    term: String,
}

#[derive(Debug, Deserialize)]
struct Header {
    member_id: String,
}

impl Status {
    /// The member's own number, which etcd makes of the addresses.
    fn own(&self) -> Option<u64> {
        self.header.member_id.parse().ok()
    }

    /// The leader's; none while none is known.
    fn leader(&self) -> Option<u64> {
        self.leader.parse().ok().filter(|leader| *leader != 0)
    }

    fn term(&self) -> Option<u32> {
        self.term.parse().ok()
    }
}

async fn ask(gateway: &mut Gateway) -> Option<Status> {
    match gateway.post(STATUS, b"{}".to_vec()).await {
        Reply::Answered { is_ok: true, body } => serde_json::from_slice(&body).ok(),
        Reply::Answered { is_ok: false, .. } | Reply::NotSent(_) | Reply::Lost(_) => None,
    }
}

/// Whether the member at the other end follows somebody, or leads.
pub(super) async fn knows_a_leader(gateway: &mut Gateway) -> bool {
    ask(gateway).await.is_some_and(|status| status.leader().is_some())
}

/// Whether anybody is at a client port.
pub(super) async fn port(member: SocketAddr) -> PortState {
    let asked = async {
        let mut gateway = Gateway::connect(member).await?;
        Ok::<_, io::Error>(ask(&mut gateway).await.is_some())
    };
    match tokio::time::timeout(PORT_PATIENCE, asked).await {
        Ok(Ok(true)) => PortState::Answers,
        Ok(Err(error)) => PortState::of_error(&error),
        Ok(Ok(false)) | Err(_) => PortState::Silent,
    }
}

/// What asks each of these members. They learn each other's numbers from the answers.
pub(super) fn looks(members: &[Whereabouts]) -> Vec<Box<dyn Look>> {
    let numbers = Numbers::default();
    members
        .iter()
        .map(|member| -> Box<dyn Look> {
            let (id, address) = (member.id, member.client);
            Box::new(Looker { id, address, gateway: None, numbers: numbers.clone() })
        })
        .collect()
}

/// Which member has which of etcd's numbers, as far as members have told their own.
#[derive(Clone, Default)]
struct Numbers(Arc<Mutex<BTreeMap<u64, MemberId>>>);

impl Numbers {
    fn learn(&self, number: u64, member: MemberId) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(number, member);
    }

    fn of(&self, number: u64) -> Option<MemberId> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&number).copied()
    }
}

/// Asks one member over one connection, for as long as that stands.
struct Looker {
    id: MemberId,
    address: SocketAddr,
    gateway: Option<Gateway>,
    numbers: Numbers,
}

impl Looker {
    async fn seen(&mut self) -> Seen {
        let mut gateway = match self.gateway.take().filter(Gateway::stands) {
            Some(gateway) => gateway,
            None => match Gateway::connect(self.address).await {
                Ok(gateway) => gateway,
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => return Seen::ServesNobody,
                Err(_) => return Seen::Nothing,
            },
        };
        let Some(status) = ask(&mut gateway).await else { return Seen::Nothing };
        self.gateway = Some(gateway);
        self.means(&status)
    }

    fn means(&self, status: &Status) -> Seen {
        if let Some(own) = status.own() {
            self.numbers.learn(own, self.id);
        }
        let Some(leader) = status.leader() else { return Seen::ServesNobody };
        let whom = if status.own() == Some(leader) {
            Whom::Itself
        } else {
            match self.numbers.of(leader) {
                Some(member) => Whom::Member(member),
                // Its leader has not told its number yet.
                None => return Seen::Nothing,
            }
        };
        match status.term() {
            Some(epoch) => Seen::Serves(Role { whom, epoch }),
            None => Seen::Nothing,
        }
    }
}

impl Look for Looker {
    fn look(&mut self) -> Async<'_, Seen> {
        Box::pin(async {
            match tokio::time::timeout(PATIENCE, self.seen()).await {
                Ok(seen) => seen,
                Err(_) => Seen::Nothing,
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_leader_is_named_once_it_has_told_its_own_number() {
        let numbers = Numbers::default();
        let looker = |id| Looker {
            id: MemberId(id),
            address: SocketAddr::from(([127, 0, 0, 1], 1)),
            gateway: None,
            numbers: numbers.clone(),
        };
        let status = |own: &str, leader: &str| {
            let text = format!(
                r#"{{"header":{{"member_id":"{own}","raft_term":"7"}},"leader":"{leader}","raftTerm":"7"}}"#
            );
            serde_json::from_str::<Status>(&text).expect("a status")
        };
        let follows = status("11", "22");
        assert_eq!(looker(1).means(&follows), Seen::Nothing, "nobody knows who 22 is");
        let leads = Seen::Serves(Role { whom: Whom::Itself, epoch: 7 });
        assert_eq!(looker(2).means(&status("22", "22")), leads);
        let role = Role { whom: Whom::Member(MemberId(2)), epoch: 7 };
        assert_eq!(looker(1).means(&follows), Seen::Serves(role));
        let lost = r#"{"header":{"member_id":"11"},"raftTerm":"8","errors":["etcdserver: no leader"]}"#;
        let lost = serde_json::from_str::<Status>(lost).expect("a status");
        assert_eq!(looker(1).means(&lost), Seen::ServesNobody);
    }
}
