//! What the members said so far, shared by everybody who listens or waits.
//!
//! The bundled node prints one JSON object per line the moment something changes ([`runs::events`]). A line
//! that is not understood is kept in the member's file and otherwise ignored: a newer node may say more.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use runs::events::Stamped;
use runs::member::MemberId;
use runs::views::{Leader, View, leader_of};
use tokio::sync::watch;

/// At most this many events are kept in memory; a member that says more is sick, and its file has the rest.
const MAX_EVENTS: usize = 200_000;

/// All that was said and seen. Clones share it.
#[derive(Clone)]
pub struct EventLog {
    inner: Arc<Mutex<Inner>>,
    changed: watch::Sender<u64>,
}

struct Inner {
    events: Vec<Stamped>,
    views: BTreeMap<MemberId, View>,
}

impl EventLog {
    /// An empty log for these members.
    pub fn new(members: &[MemberId]) -> Self {
        let views = members.iter().map(|member| (*member, View::default())).collect();
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
    pub fn views(&self) -> BTreeMap<MemberId, View> {
        self.lock().views.clone()
    }

    /// Who leads, by the members' own word: the established leader of the highest epoch that runs.
    pub fn leader(&self) -> Option<Leader> {
        leader_of(&self.lock().views)
    }

    /// Tells when something was said or seen.
    pub fn news(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// Waits until `condition` holds of the views. False when `patience` ran out first.
    pub async fn wait(
        &self,
        patience: Duration,
        condition: impl Fn(&BTreeMap<MemberId, View>) -> bool,
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

#[cfg(test)]
mod tests {
    use super::*;
    use runs::events::{Event, Said};
    use runs::views::{all_serve, laggards};

    fn log() -> EventLog {
        EventLog::new(&[MemberId(1), MemberId(2)])
    }

    fn push(log: &EventLog, node: u64, event: Event) {
        log.push(Stamped { time: 0, node: MemberId(node), event });
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
        assert_eq!(log.leader(), Some(Leader { id: MemberId(2), epoch: 2 }));
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
            other.wait(Duration::from_secs(10), |views| views[&MemberId(1)].running).await
        });
        push(&log, 1, Event::Spawned);
        assert!(waiter.await.expect("no panic"));
        assert!(!log.wait(Duration::ZERO, |views| views[&MemberId(2)].running).await);
    }
}
