//! The leader's watch over sessions: only the leader lets one expire.
//!
//! Followers report with each PING which sessions they heard of. A new leader gives every session its whole
//! time-out again. Each session has an owner, the member whose client it is right now: a request that comes
//! through another member was sent before the client moved, and must not take effect after what the client
//! did since.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{Hash, Hasher};
use std::time::Duration;

use node_wire::ids::SessionId;

use crate::fingerprint::until;
use crate::io::ConnId;

/// Through whom a session's requests come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Owner {
    /// A client of the leader itself.
    Local,
    /// A client of the learner at this connection.
    Learner(ConnId),
}

/// Sessions that are found over at a time. A partition may end all of a large ensemble's at once: the others
/// have their turn with the next tick, and peers and clients theirs in between.
const MAX_EXPIRED: usize = 1000;

#[derive(Clone, Debug)]
struct Session {
    timeout: Duration,
    deadline: Duration,
    owner: Option<Owner>,
}

/// All sessions, with their deadlines in awake time.
#[derive(Clone, Debug, Default)]
pub(crate) struct SessionTracker {
    sessions: BTreeMap<SessionId, Session>,
    /// Each session once, at a time not after its deadline: touching is cheap, looking again is rare.
    queue: BTreeSet<(Duration, SessionId)>,
}

fn duration(timeout_ms: i32) -> Duration {
    Duration::from_millis(u64::try_from(timeout_ms).unwrap_or(0))
}

impl SessionTracker {
    pub(crate) fn add(&mut self, session: SessionId, timeout_ms: i32, owner: Option<Owner>, at: Duration) {
        let timeout = duration(timeout_ms);
        let deadline = at + timeout;
        if let Some(known) = self.sessions.get_mut(&session) {
            known.deadline = deadline;
            known.owner = owner.or(known.owner);
            return;
        }
        self.sessions.insert(session, Session { timeout, deadline, owner });
        self.queue.insert((deadline, session));
    }

    pub(crate) fn remove(&mut self, session: SessionId) {
        // Its place in the queue is found empty later.
        self.sessions.remove(&session);
    }

    /// The client of a session is alive. False when there is no such session.
    pub(crate) fn touch(&mut self, session: SessionId, at: Duration) -> bool {
        match self.sessions.get_mut(&session) {
            Some(known) => {
                known.deadline = at + known.timeout;
                true
            }
            None => false,
        }
    }

    pub(crate) fn contains(&self, session: SessionId) -> bool {
        self.sessions.contains_key(&session)
    }

    pub(crate) fn len(&self) -> usize {
        self.sessions.len()
    }

    /// The time-out of a session, as it was asked for.
    pub(crate) fn timeout_ms(&self, session: SessionId) -> Option<i32> {
        let timeout = self.sessions.get(&session)?.timeout;
        Some(i32::try_from(timeout.as_millis()).unwrap_or(i32::MAX))
    }

    pub(crate) fn owner(&self, session: SessionId) -> Option<Owner> {
        self.sessions.get(&session)?.owner
    }

    /// The client of a session is now at `owner`. Gives the owner before.
    pub(crate) fn move_to(&mut self, session: SessionId, owner: Owner) -> Option<Owner> {
        self.sessions.get_mut(&session)?.owner.replace(owner)
    }

    /// How long each session has left.
    pub(crate) fn deadlines(&self, at: Duration) -> Vec<(SessionId, Duration)> {
        self.sessions.iter().map(|(id, session)| (*id, session.deadline.saturating_sub(at))).collect()
    }

    /// Mixes in who lives, how long, and through whom. The queue follows from it, but for what is looked at
    /// in vain.
    pub(crate) fn fingerprint(&self, at: Duration, state: &mut impl Hasher) {
        let Self { sessions, queue: _ } = self;
        for (id, Session { timeout, deadline, owner }) in sessions {
            (id, timeout, until(*deadline, at), owner).hash(state);
        }
    }

    /// Sessions whose time is over, a bounded number of them. Each is given once.
    pub(crate) fn expired(&mut self, at: Duration) -> Vec<SessionId> {
        let mut expired = Vec::new();
        while let Some(&(due, session)) = self.queue.first()
            && due <= at
            && expired.len() < MAX_EXPIRED
        {
            self.queue.pop_first();
            match self.sessions.get(&session) {
                Some(known) if known.deadline > at => {
                    self.queue.insert((known.deadline, session));
                }
                Some(_) => expired.push(session),
                None => {}
            }
        }
        expired
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn a_session_expires_its_time_out_after_it_was_last_touched() {
        let mut tracker = SessionTracker::default();
        tracker.add(SessionId(1), 100, None, ms(0));
        assert!(tracker.touch(SessionId(1), ms(90)));
        assert!(tracker.expired(ms(150)).is_empty());
        assert_eq!(tracker.expired(ms(190)), [SessionId(1)]);
        assert!(tracker.expired(ms(500)).is_empty(), "each is given once");
        assert!(!tracker.touch(SessionId(2), ms(0)));
    }

    #[test]
    fn sessions_that_are_over_together_are_found_some_at_a_time_and_each_once() {
        let mut tracker = SessionTracker::default();
        let all: Vec<SessionId> = (1..=2500).map(SessionId).collect();
        all.iter().for_each(|session| tracker.add(*session, 100, None, ms(0)));
        let found: Vec<Vec<SessionId>> = (0..4).map(|tick| tracker.expired(ms(100 + tick * 10))).collect();
        assert_eq!(found.iter().map(Vec::len).collect::<Vec<_>>(), [1000, 1000, 500, 0]);
        assert_eq!(found.concat(), all);
    }

    #[test]
    fn a_session_that_is_touched_before_its_turn_lives() {
        let mut tracker = SessionTracker::default();
        (1..=1001).for_each(|session| tracker.add(SessionId(session), 100, None, ms(0)));
        assert_eq!(tracker.expired(ms(100)).len(), MAX_EXPIRED);
        assert!(tracker.touch(SessionId(1001), ms(105)));
        assert!(tracker.expired(ms(110)).is_empty());
        assert_eq!(tracker.expired(ms(205)), [SessionId(1001)]);
    }

    #[test]
    fn a_session_has_the_owner_that_asked_for_it_last() {
        let mut tracker = SessionTracker::default();
        tracker.add(SessionId(1), 100, Some(Owner::Local), ms(0));
        assert_eq!(tracker.move_to(SessionId(1), Owner::Learner(ConnId(3))), Some(Owner::Local));
        assert_eq!(tracker.owner(SessionId(1)), Some(Owner::Learner(ConnId(3))));
        assert_eq!(tracker.move_to(SessionId(9), Owner::Local), None);
    }
}
