//! The roles of members that don't tell: each is asked `srvr`, again and again, from outside.
//!
//! What is seen this way is coarser than what the bundled node says by itself: an election shorter than the
//! period may be missed, and its phases are as wide as the period.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use futures_util::future::join_all;
use node_client::four_letter_word;
use node_wire::ids::ServerId;

use crate::cluster::voice::Place;
use crate::events::{Event, Said};

/// How often members are asked.
const PERIOD: Duration = Duration::from_millis(50);
/// How long one may take to answer.
const PATIENCE: Duration = Duration::from_millis(200);

/// What a member says it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Role {
    leads: bool,
    epoch: u32,
}

/// What was last told about a member: its leader and epoch, or that it looks for one.
type Stand = Option<(ServerId, u32)>;

/// Asks until the task is ended.
pub(super) async fn observe(members: Vec<(Place, SocketAddr)>) {
    let mut told: BTreeMap<ServerId, Stand> = BTreeMap::new();
    let mut tick = tokio::time::interval(PERIOD);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tick.tick().await;
        let asked = members.iter().map(|(place, address)| async move { (place.id, ask(*address).await) });
        let roles: BTreeMap<ServerId, Option<Role>> = join_all(asked).await.into_iter().collect();
        for (place, _) in &members {
            let stand = stand(place.id, &roles);
            let before = told.insert(place.id, stand);
            if before != Some(stand) {
                tell(place, before.flatten(), stand);
            }
        }
    }
}

fn tell(place: &Place, before: Stand, now: Stand) {
    match now {
        None => place.note(Event::Said(Said::Looking { left: before.map(|(leader, _)| leader.0) })),
        Some((leader, epoch)) => {
            place.note(Event::Said(Said::Established { leader: leader.0, epoch }));
            place.note(Event::Said(Said::Serving {}));
        }
    }
}

/// Whom a member follows. A follower's own zxid is of the epoch before until the first write of the new one;
/// then its leader is whoever leads the highest epoch.
fn stand(member: ServerId, roles: &BTreeMap<ServerId, Option<Role>>) -> Stand {
    let own = (*roles.get(&member)?)?;
    if own.leads {
        return Some((member, own.epoch));
    }
    let leaders: Vec<(ServerId, u32)> = roles
        .iter()
        .filter_map(|(id, role)| role.filter(|role| role.leads).map(|role| (*id, role.epoch)))
        .collect();
    let of_its_epoch = leaders.iter().find(|(_, epoch)| *epoch == own.epoch);
    of_its_epoch.or_else(|| leaders.iter().max_by_key(|(_, epoch)| *epoch)).copied()
}

async fn ask(address: SocketAddr) -> Option<Role> {
    let answer = tokio::time::timeout(PATIENCE, four_letter_word(address, "srvr")).await.ok()?.ok()?;
    read(&answer)
}

/// Reads what `srvr` says; none of a member that serves nobody.
fn read(answer: &str) -> Option<Role> {
    let field = |name: &str| answer.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    let leads = match field("Mode:")? {
        "leader" => true,
        "follower" => false,
        _ => return None,
    };
    let zxid = u64::from_str_radix(field("Zxid:")?.strip_prefix("0x")?, 16).ok()?;
    Some(Role { leads, epoch: u32::try_from(zxid >> 32).ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn roles(of: &[(u64, Option<(bool, u32)>)]) -> BTreeMap<ServerId, Option<Role>> {
        let role = |(leads, epoch)| Role { leads, epoch };
        of.iter().map(|(id, seen)| (ServerId(*id), seen.map(role))).collect()
    }

    #[test]
    fn the_answer_to_srvr_is_understood() {
        let answer =
            "Zookeeper version: 3.9.3\nLatency min/avg/max: 0/0.0/0\nZxid: 0x300000007\nMode: leader\n";
        assert_eq!(read(answer), Some(Role { leads: true, epoch: 3 }));
        assert_eq!(read("This ZooKeeper instance is not currently serving requests\n"), None);
        assert_eq!(read("Mode: follower\nZxid: yes\n"), None);
    }

    #[test]
    fn a_follower_follows_the_leader_of_its_epoch_and_else_the_newest() {
        let roles = roles(&[
            (1, Some((true, 4))),
            (2, Some((true, 5))),
            (3, Some((false, 5))),
            (4, Some((false, 3))),
            (5, None),
        ]);
        assert_eq!(stand(ServerId(1), &roles), Some((ServerId(1), 4)));
        assert_eq!(stand(ServerId(3), &roles), Some((ServerId(2), 5)));
        assert_eq!(stand(ServerId(4), &roles), Some((ServerId(2), 5)));
        assert_eq!(stand(ServerId(5), &roles), None);
    }
}
