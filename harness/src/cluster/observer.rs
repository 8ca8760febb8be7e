//! The roles of members that don't tell: each is asked who it is, again and again, from outside.
//!
//! What is seen this way is coarser than what the bundled node says by itself: an election shorter than the
//! period may be missed, and its phases are as wide as the period.
//!
//! Every member is asked by a task of its own, because one that is silent must not delay the news of the
//! others. What is told is held against what the log of events says already, so that a member whose process
//! was replaced meanwhile is told of again. What a member shows may be older than its leader is: one that has
//! just begun may show the epoch before for a moment, and a follower until the first entry of the new epoch
//! reaches it. So an epoch that is known to be another's is not believed.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use harness_systems::{Look, Role, Seen, System, Whom};
use runs::events::{Event, Said, Stamped};
use runs::member::MemberId;
use runs::views::{Stand, View};
use tokio::task::JoinSet;

use crate::cluster::voice::Place;

/// How often a member is asked.
const PERIOD: Duration = Duration::from_millis(20);
/// How long one may be silent, running, before it counts as not serving: a virtual machine that clears its
/// memory, or waits for a processor, is still what it was.
const SILENCE: Duration = Duration::from_secs(2);

/// A member that is watched.
pub(super) struct Watched {
    /// Whose it is and where it is told.
    pub(super) place: Place,
    /// What asks it.
    pub(super) look: Box<dyn Look>,
    /// Whether it must be asked at this moment; one that tells by itself need not be.
    pub(super) is_silent: Arc<dyn Fn() -> bool + Send + Sync>,
}

/// What members answered last, a line each, for a message; empty where nobody is asked.
pub(super) fn answers(system: &dyn System, members: &[MemberId]) -> String {
    let line = |id: &MemberId| Some(format!("\nn{} says: {}", id.0, system.says(*id)?));
    members.iter().filter_map(line).collect()
}

/// Asks until the task is ended.
pub(super) async fn observe(members: Vec<Watched>) {
    let mut asking = JoinSet::new();
    for member in members {
        asking.spawn(member.watch());
    }
    while asking.join_next().await.is_some() {}
}

impl Watched {
    async fn watch(mut self) {
        let mut tick = tokio::time::interval(PERIOD);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut silent_since: Option<Instant> = None;
        loop {
            tick.tick().await;
            let Some(before) = self.view().filter(|view| view.running && !view.paused) else { continue };
            if !(self.is_silent)() {
                continue;
            }
            let asked = Instant::now();
            let mut answer = self.look.look().await;
            // What happened meanwhile makes the answer one of the past.
            if self.view().as_ref() != Some(&before) {
                continue;
            }
            if answer == Seen::Nothing {
                let since = *silent_since.get_or_insert(asked);
                if since.elapsed() < SILENCE {
                    continue;
                }
                answer = Seen::ServesNobody;
            } else {
                silent_since = None;
            }
            self.tell(before.stand, answer);
        }
    }

    fn view(&self) -> Option<View> {
        self.place.events.views().remove(&self.place.id)
    }

    fn tell(&self, before: Stand, answer: Seen) {
        let news = |said| self.place.note(Event::Said(said));
        match answer {
            Seen::Nothing => {}
            Seen::ServesNobody => match before {
                Stand::Established { leader, .. } => news(Said::Looking { left: Some(leader.0) }),
                Stand::Answering => news(Said::Looking { left: None }),
                Stand::Looking => {}
            },
            Seen::Answers => {
                if before != Stand::Answering {
                    news(Said::Serving {});
                }
            }
            Seen::Serves(role) => {
                if !is_news(self.place.id, role, before) {
                    return;
                }
                let reigns = reigns(&self.place.events.events());
                let leaders = leaders(&self.place.events.views());
                if let Some((leader, epoch)) = joined(self.place.id, role, &reigns, &leaders) {
                    news(Said::Established { leader: leader.0, epoch });
                    news(Said::Serving {});
                }
            }
        }
    }
}

/// Who established which epoch, as far as its leader said so.
fn reigns(events: &[Stamped]) -> BTreeMap<u32, MemberId> {
    let mut reigns = BTreeMap::new();
    for stamped in events {
        if let Event::Said(Said::Established { leader, epoch }) = stamped.event
            && leader == stamped.node.0
        {
            reigns.entry(epoch).or_insert(stamped.node);
        }
    }
    reigns
}

/// Who leads at this moment, by the members' own word.
fn leaders(views: &BTreeMap<MemberId, View>) -> BTreeMap<u32, MemberId> {
    let leads = |(id, view): (&MemberId, &View)| match view.stand {
        Stand::Established { leader, epoch, .. } if leader == *id && view.running => Some((epoch, *id)),
        Stand::Established { .. } | Stand::Answering | Stand::Looking => None,
    };
    views.iter().filter_map(leads).collect()
}

/// Whether a role is more than what is known of a member.
fn is_news(member: MemberId, role: Role, before: Stand) -> bool {
    let Stand::Established { leader, epoch, serving: true } = before else { return true };
    match leader_of(member, role) {
        Some(shown) => (leader, epoch) != (shown, role.epoch),
        // Nobody changes its leader without serving nobody in between, so whoever serves on follows on.
        None => leader == member || role.epoch > epoch,
    }
}

/// The leader that a member shows; none where it does not say whom it follows.
fn leader_of(member: MemberId, role: Role) -> Option<MemberId> {
    match role.whom {
        Whom::Itself => Some(member),
        Whom::Member(leader) => Some(leader),
        Whom::Unsaid => None,
    }
}

/// The leader and the epoch that a member is found to have joined; none while that is not clear.
fn joined(
    member: MemberId,
    role: Role,
    reigns: &BTreeMap<u32, MemberId>,
    leaders: &BTreeMap<u32, MemberId>,
) -> Option<(MemberId, u32)> {
    if let Some(leader) = leader_of(member, role) {
        let is_anothers = reigns.get(&role.epoch).is_some_and(|known| *known != leader);
        return (!is_anothers).then_some((leader, role.epoch));
    }
    let (epoch, leader) = leaders.iter().rfind(|(_, leader)| **leader != member)?;
    (role.epoch <= *epoch).then_some((*leader, *epoch))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(pairs: &[(u32, u64)]) -> BTreeMap<u32, MemberId> {
        pairs.iter().map(|(epoch, id)| (*epoch, MemberId(*id))).collect()
    }

    fn follows(leader: u64, epoch: u32) -> Stand {
        Stand::Established { leader: MemberId(leader), epoch, serving: true }
    }

    fn role(leads: bool, epoch: u32) -> Role {
        Role { whom: if leads { Whom::Itself } else { Whom::Unsaid }, epoch }
    }

    #[test]
    fn a_leader_is_told_once_and_not_by_the_zxid_of_the_epoch_before() {
        let found = |role| joined(MemberId(2), role, &of(&[(4, 1)]), &of(&[]));
        assert_eq!(found(role(true, 4)), None, "epoch 4 is another's");
        assert_eq!(found(role(true, 5)), Some((MemberId(2), 5)));
        assert!(is_news(MemberId(2), role(true, 5), Stand::Looking));
        assert!(!is_news(MemberId(2), role(true, 5), follows(2, 5)));
    }

    #[test]
    fn a_follower_joins_the_newest_leader_and_stays_while_it_serves() {
        let reigns = of(&[(4, 1), (5, 2)]);
        let found = |role| joined(MemberId(3), role, &reigns, &reigns);
        let is_news = |role, before| is_news(MemberId(3), role, before);
        // Its zxid is still that of the epoch before.
        assert_eq!(found(role(false, 4)), Some((MemberId(2), 5)));
        assert!(!is_news(role(false, 4), follows(1, 4)), "it has not looked for another since");
        assert!(is_news(role(false, 5), follows(1, 4)));
        assert_eq!(found(role(false, 5)), Some((MemberId(2), 5)));
        assert!(!is_news(role(false, 5), follows(2, 5)));
        assert_eq!(found(role(false, 6)), None, "its leader has not been heard yet");
    }

    #[test]
    fn who_says_whom_it_follows_is_believed_at_once() {
        let role = Role { whom: Whom::Member(MemberId(2)), epoch: 9 };
        assert_eq!(joined(MemberId(3), role, &of(&[]), &of(&[])), Some((MemberId(2), 9)));
        let reigns = of(&[(9, 1)]);
        assert_eq!(joined(MemberId(3), role, &reigns, &of(&[])), None, "epoch 9 is n1's");
        assert!(is_news(MemberId(3), role, follows(1, 9)) && is_news(MemberId(3), role, follows(2, 8)));
        assert!(!is_news(MemberId(3), role, follows(2, 9)));
    }
}
