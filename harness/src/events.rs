//! What the members say about themselves, stamped with the harness's clock on arrival, and what the harness
//! knows about their processes.
//!
//! The bundled node prints one JSON object per line the moment something changes. A line that is not
//! understood is kept in the member's file and otherwise ignored: a newer node may say more. The view of a
//! member is only what follows from these lines; nothing is asked of the member here.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use node_wire::ids::{Epoch, ServerId};
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use crate::clock::RunNs;

/// At most this many events are kept in memory; a member that says more is sick, and its file has the rest.
const MAX_EVENTS: usize = 200_000;

/// A line of a member's standard output.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "lowercase")]
pub enum Said {
    /// The process is up.
    Started {},
    /// It looks for a leader.
    Looking {
        /// The leader it had.
        #[serde(default)]
        left: Option<u64>,
    },
    /// Its vote is decided.
    Elected {
        /// For whom.
        leader: u64,
    },
    /// Its epoch stands.
    Established {
        /// Whose.
        leader: u64,
        /// Which.
        epoch: u32,
    },
    /// It answers clients.
    Serving {},
    /// It brought a learner to its history.
    Synced {},
    /// It stopped itself.
    Halt {
        /// Why.
        #[serde(default)]
        reason: String,
    },
    /// As leader: how long its proposals waited for their commit since it last said so.
    Commits {
        /// Microseconds, and how many took so long.
        us: Vec<(u64, u64)>,
    },
    /// Something this harness does not know.
    #[serde(other)]
    Other,
}

/// One thing that happened to a member.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Event {
    /// It said so.
    Said(Said),
    /// Its process was started.
    Spawned,
    /// Its process is gone; how, in words.
    Exited(String),
    /// Its process was stopped by a signal.
    Paused,
    /// Its process goes on.
    Resumed,
    /// Its wall clock was shifted, or restored.
    Clock {
        /// By how much it is off from here on, in nanoseconds.
        offset_ns: i64,
        /// How long a process that was started while shifted ran unshifted, in nanoseconds.
        #[serde(default)]
        gap_ns: Option<u64>,
    },
}

/// An event with its place and time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamped {
    /// When it was seen.
    pub time: RunNs,
    /// Whose it is.
    #[serde(with = "number")]
    pub node: ServerId,
    /// What.
    pub event: Event,
}

/// A member's id as a plain number.
mod number {
    use node_wire::ids::ServerId;
    use serde::{Deserialize, Deserializer, Serializer};

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature is serde's")]
    pub(super) fn serialize<S: Serializer>(id: &ServerId, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(id.0)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ServerId, D::Error> {
        u64::deserialize(deserializer).map(ServerId)
    }
}

/// What a member is, as far as its events tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stand {
    /// Looks for a leader, or is on its way to one.
    Looking,
    /// In an established epoch.
    Established {
        /// Its leader, itself perhaps.
        leader: ServerId,
        /// The epoch.
        epoch: Epoch,
        /// Whether it answers clients.
        serving: bool,
    },
}

/// What is known of one member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct View {
    /// Whether its process exists.
    pub running: bool,
    /// Whether its process is stopped.
    pub paused: bool,
    /// Its stand.
    pub stand: Stand,
    /// Why it halted itself, when it did.
    pub halted: Option<String>,
}

impl View {
    fn new() -> Self {
        Self { running: false, paused: false, stand: Stand::Looking, halted: None }
    }

    fn apply(&mut self, event: &Event) {
        match event {
            Event::Spawned => *self = Self { running: true, ..Self::new() },
            Event::Exited(_) => {
                self.running = false;
                self.paused = false;
                self.stand = Stand::Looking;
            }
            Event::Paused => self.paused = true,
            Event::Resumed => self.paused = false,
            Event::Clock { .. } => {}
            Event::Said(Said::Looking { .. }) => self.stand = Stand::Looking,
            Event::Said(Said::Established { leader, epoch }) => {
                self.stand =
                    Stand::Established { leader: ServerId(*leader), epoch: Epoch(*epoch), serving: false };
            }
            Event::Said(Said::Serving {}) => {
                if let Stand::Established { serving, .. } = &mut self.stand {
                    *serving = true;
                }
            }
            Event::Said(Said::Halt { reason }) => self.halted = Some(reason.clone()),
            Event::Said(
                Said::Started {}
                | Said::Elected { .. }
                | Said::Synced {}
                | Said::Commits { .. }
                | Said::Other,
            ) => {}
        }
    }
}

/// The established leader with the highest epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leader {
    /// Who.
    pub id: ServerId,
    /// In which epoch.
    pub epoch: Epoch,
}

/// All that was said and seen. Clones share it.
#[derive(Clone)]
pub struct EventLog {
    inner: Arc<Mutex<Inner>>,
    changed: watch::Sender<u64>,
}

struct Inner {
    events: Vec<Stamped>,
    views: BTreeMap<ServerId, View>,
}

impl EventLog {
    /// An empty log for these members.
    pub fn new(members: &[ServerId]) -> Self {
        let views = members.iter().map(|member| (*member, View::new())).collect();
        Self {
            inner: Arc::new(Mutex::new(Inner { events: Vec::new(), views })),
            changed: watch::Sender::new(0),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes an event.
    pub fn push(&self, stamped: Stamped) {
        {
            let mut inner = self.lock();
            if let Some(view) = inner.views.get_mut(&stamped.node) {
                view.apply(&stamped.event);
            }
            if inner.events.len() < MAX_EVENTS {
                inner.events.push(stamped);
            }
        }
        self.changed.send_modify(|count| *count = count.wrapping_add(1));
    }

    /// Everything so far, in the order of time.
    pub fn events(&self) -> Vec<Stamped> {
        let mut events = self.lock().events.clone();
        events.sort_by_key(|stamped| stamped.time);
        events
    }

    /// What is known of each member.
    pub fn views(&self) -> BTreeMap<ServerId, View> {
        self.lock().views.clone()
    }

    /// Who leads, by the members' own word: the established leader of the highest epoch that runs.
    pub fn leader(&self) -> Option<Leader> {
        leader_of(&self.lock().views)
    }

    /// Waits until `condition` holds of the views. False when `patience` ran out first.
    pub async fn wait(
        &self,
        patience: Duration,
        condition: impl Fn(&BTreeMap<ServerId, View>) -> bool,
    ) -> bool {
        let mut changed = self.changed.subscribe();
        let waiting = async {
            loop {
                changed.borrow_and_update();
                if condition(&self.lock().views) {
                    return;
                }
                // The sender lives in `self`, so it can't be gone; were it, waiting on would be for nothing.
                if changed.changed().await.is_err() {
                    return;
                }
            }
        };
        tokio::time::timeout(patience, waiting).await.is_ok()
    }
}

/// The established leader of the highest epoch.
pub fn leader_of(views: &BTreeMap<ServerId, View>) -> Option<Leader> {
    views
        .iter()
        .filter(|(_, view)| view.running && !view.paused)
        .filter_map(|(id, view)| match view.stand {
            Stand::Established { leader, epoch, .. } if leader == *id => Some(Leader { id: *id, epoch }),
            _ => None,
        })
        .max_by_key(|leader| leader.epoch)
}

/// The highest epoch that any member says is established.
pub fn highest_epoch(views: &BTreeMap<ServerId, View>) -> Option<Epoch> {
    views
        .values()
        .filter_map(|view| match view.stand {
            Stand::Established { epoch, .. } => Some(epoch),
            Stand::Looking => None,
        })
        .max()
}

/// True when every member runs and serves in one and the same epoch.
pub fn all_serve(views: &BTreeMap<ServerId, View>) -> bool {
    serving(views).len() == views.len()
}

/// True when waiting is over: all serve, or a member's process is gone and nobody will start it again.
pub fn settled(views: &BTreeMap<ServerId, View>) -> bool {
    all_serve(views) || views.values().any(|view| !view.running)
}

/// The members that serve in the highest epoch.
pub fn serving(views: &BTreeMap<ServerId, View>) -> Vec<ServerId> {
    let Some(leader) = leader_of(views) else { return Vec::new() };
    let stand = Stand::Established { leader: leader.id, epoch: leader.epoch, serving: true };
    let serves = |view: &View| view.running && !view.paused && view.stand == stand;
    views.iter().filter(|(_, view)| serves(view)).map(|(id, _)| *id).collect()
}

/// The members that do not serve in the highest epoch, and what they are instead, for messages.
pub fn laggards(views: &BTreeMap<ServerId, View>) -> String {
    let leader = leader_of(views);
    let mut words = Vec::new();
    for (id, view) in views {
        let what = match view.stand {
            _ if !view.running => "down".to_owned(),
            _ if view.paused => "paused".to_owned(),
            Stand::Looking => "looking".to_owned(),
            Stand::Established { serving: false, epoch, .. } => format!("in epoch {epoch}, not serving"),
            Stand::Established { epoch, .. } if leader.is_some_and(|leader| leader.epoch == epoch) => {
                continue;
            }
            Stand::Established { epoch, .. } => format!("in epoch {epoch} still"),
        };
        words.push(format!("n{} is {what}", id.0));
    }
    if words.is_empty() { "no leader is established".to_owned() } else { words.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log() -> EventLog {
        EventLog::new(&[ServerId(1), ServerId(2)])
    }

    fn push(log: &EventLog, node: u64, event: Event) {
        log.push(Stamped { time: 0, node: ServerId(node), event });
    }

    fn establish(log: &EventLog, node: u64, leader: u64, epoch: u32) {
        push(log, node, Event::Said(Said::Established { leader, epoch }));
        push(log, node, Event::Said(Said::Serving {}));
    }

    #[test]
    fn lines_of_the_contract_are_understood_and_unknown_ones_ignored() {
        let parse = |text: &str| serde_json::from_str::<Said>(text).expect("a line");
        assert_eq!(parse(r#"{"event":"started","id":1,"pid":7}"#), Said::Started {});
        assert_eq!(
            parse(r#"{"event":"looking","round":3,"left":2,"reason":"x","zxid":"0x1"}"#),
            Said::Looking { left: Some(2) }
        );
        assert_eq!(parse(r#"{"event":"looking","round":3,"left":null}"#), Said::Looking { left: None });
        assert_eq!(
            parse(r#"{"event":"established","leader":2,"epoch":5}"#),
            Said::Established { leader: 2, epoch: 5 }
        );
        assert_eq!(
            parse(r#"{"event":"commits","us":[[63,2],[1055,7]]}"#),
            Said::Commits { us: vec![(63, 2), (1055, 7)] }
        );
        assert_eq!(parse(r#"{"event":"dreaming","of":"sheep"}"#), Said::Other);
    }

    #[test]
    fn a_deposed_leader_that_does_not_know_is_not_the_leader() {
        let log = log();
        push(&log, 1, Event::Spawned);
        push(&log, 2, Event::Spawned);
        establish(&log, 1, 1, 1);
        establish(&log, 2, 2, 2);
        assert_eq!(log.leader(), Some(Leader { id: ServerId(2), epoch: Epoch(2) }));
        assert!(!all_serve(&log.views()));
        assert_eq!(laggards(&log.views()), "n1 is in epoch 1 still");
        establish(&log, 1, 2, 2);
        assert!(all_serve(&log.views()));
    }

    #[test]
    fn a_dead_leader_leads_nobody_and_forgets_its_stand() {
        let log = log();
        push(&log, 1, Event::Spawned);
        establish(&log, 1, 1, 1);
        push(&log, 1, Event::Exited("killed".to_owned()));
        assert_eq!(log.leader(), None);
        push(&log, 1, Event::Spawned);
        assert_eq!(log.leader(), None);
    }

    #[tokio::test]
    async fn waiting_ends_when_the_condition_comes_true() {
        let log = log();
        let other = log.clone();
        let waiter = tokio::spawn(async move {
            other.wait(Duration::from_secs(10), |views| views[&ServerId(1)].running).await
        });
        push(&log, 1, Event::Spawned);
        assert!(waiter.await.expect("no panic"));
        assert!(!log.wait(Duration::ZERO, |views| views[&ServerId(2)].running).await);
    }
}
