//! Sessions and ephemerals exact: what the committed transactions say of them is what every member holds.
//!
//! This invariant builds its own sessions and ephemerals from the one sequence of committed entries, by the
//! plain meaning of the transactions. A session begins once and ends once; who is not alive does nothing; an
//! ephemeral belongs to a living session and goes with it, neither sooner (unless its owner removed it) nor
//! later. Each member's counts are compared wherever it stops, and the whole of its tree when the ensemble is
//! quiet.
//!
//! In some worlds sessions are local: no transaction begins them. Such a session may write, and owns nothing.
//!
//! (ZOOKEEPER-1208, 1367, 2355, 3144: a session and its ephemerals that members disagreed on.)

use std::collections::{BTreeMap, BTreeSet};

use bytestring::ByteString;
use node_core::Status;
use node_core::tree::TreeSnapshot;
use node_wire::ids::{SessionId, Zxid};
use node_wire::txn::{Entry, Txn};

use super::{Finding, Invariants, parts_of, server};
use crate::network::HostIndex;
use crate::outcome::Rule;

/// How many sessions and ephemerals there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    sessions: usize,
    ephemerals: usize,
}

/// The sessions that committed entries leave.
#[derive(Clone, Debug, Default)]
pub(super) struct Sessions {
    /// Those that live, with their time-outs in milliseconds.
    living: BTreeMap<SessionId, i32>,
    /// Those that ever lived.
    known: BTreeSet<SessionId>,
    /// Ephemerals and their owners.
    ephemerals: BTreeMap<ByteString, SessionId>,
    /// There are sessions that live on a member alone: they begin and end in no transaction.
    local: bool,
    local_writes: u64,
    /// Those that lived on a member alone and whose clients were told that they are over.
    ended: BTreeSet<SessionId>,
    /// What stood at each place of the sequence.
    places: Vec<(Zxid, Counts)>,
}

fn found(sentence: String) -> Finding {
    Err((Rule::SessionsExact, sentence))
}

/// True for what needs no session that all know.
fn owns_nothing(txn: &Txn) -> bool {
    !matches!(txn, Txn::CloseSession { .. } | Txn::Create { ephemeral: true, .. })
}

impl Sessions {
    /// The next committed entry.
    pub(super) fn commit(&mut self, entry: &Entry) -> Finding {
        let outcome = self.follow(entry);
        let counts = Counts { sessions: self.living.len(), ephemerals: self.ephemerals.len() };
        self.places.push((entry.zxid(), counts));
        outcome
    }

    fn follow(&mut self, entry: &Entry) -> Finding {
        let (zxid, session) = (entry.zxid(), entry.header.session);
        match &entry.txn {
            Txn::CreateSession { timeout_ms } => {
                self.living.insert(session, *timeout_ms);
                if self.ended.contains(&session) {
                    return found(format!(
                        "session {session} begins at {zxid}, after its client was told that it is over"
                    ));
                }
                if !self.known.insert(session) {
                    return found(format!("session {session} begins a second time at {zxid}"));
                }
                return Ok(());
            }
            // It was refused for whatever reason, that of a dead session included.
            Txn::Error { .. } => return Ok(()),
            _ => {}
        }
        if session == SessionId::NONE {
            // The leader's own; what it may be is judged with the requests.
            return Ok(());
        }
        if self.local && !self.known.contains(&session) && owns_nothing(&entry.txn) {
            self.local_writes += 1;
            return self.forget(&entry.txn);
        }
        if !self.living.contains_key(&session) {
            return found(format!("{zxid} was done in the name of session {session}, which is not alive"));
        }
        match &entry.txn {
            Txn::CloseSession { paths } => self.close(zxid, session, paths.as_deref()),
            Txn::Create { path, ephemeral: true, .. } => {
                self.ephemerals.insert(path.clone(), session);
                Ok(())
            }
            txn => self.forget(txn),
        }
    }

    /// A node that is deleted is nobody's.
    fn forget(&mut self, txn: &Txn) -> Finding {
        match txn {
            Txn::Delete { path } => {
                self.ephemerals.remove(path);
            }
            Txn::Multi { txns } => {
                parts_of(txns).iter().try_for_each(|part| self.forget(part))?;
            }
            _ => {}
        }
        Ok(())
    }

    fn close(&mut self, zxid: Zxid, session: SessionId, listed: Option<&[ByteString]>) -> Finding {
        self.living.remove(&session);
        let owned: BTreeSet<ByteString> = self
            .ephemerals
            .iter()
            .filter(|(_, owner)| **owner == session)
            .map(|(path, _)| path.clone())
            .collect();
        self.ephemerals.retain(|_, owner| *owner != session);
        let Some(listed) = listed else { return Ok(()) };
        let listed: BTreeSet<ByteString> = listed.iter().cloned().collect();
        match owned.symmetric_difference(&listed).next() {
            None => Ok(()),
            Some(path) if owned.contains(path) => {
                found(format!("{zxid} closes session {session} and leaves its ephemeral {path}"))
            }
            Some(path) => {
                found(format!("{zxid} closes session {session} and takes {path}, which is not its"))
            }
        }
    }

    /// True while a session lives that all know.
    pub(super) fn lives(&self, session: SessionId) -> bool {
        self.living.contains_key(&session)
    }

    /// True when there may be others.
    pub(super) fn may_be_local(&self) -> bool {
        self.local
    }

    /// A client was told that its session is over, which lived on its member alone.
    pub(super) fn ends_here(&mut self, session: SessionId) {
        self.ended.insert(session);
    }

    fn at(&self, zxid: Zxid) -> Option<Counts> {
        let place = self.places.binary_search_by_key(&zxid, |(zxid, _)| *zxid).ok()?;
        Some(self.places[place].1)
    }
}

impl Invariants {
    /// Sessions may live on a member alone.
    pub(crate) fn with_local_sessions(mut self, local: bool) -> Self {
        self.sessions.local = local;
        self
    }

    /// True for a session that was ever the ensemble's.
    pub(crate) fn session_began(&self, session: SessionId) -> bool {
        self.sessions.known.contains(&session)
    }

    /// True for a session that was the ensemble's and has ended.
    pub(crate) fn session_is_over(&self, session: SessionId) -> bool {
        self.session_began(session) && !self.sessions.lives(session)
    }

    /// Committed writes of sessions that live on their member alone.
    pub(crate) fn local_writes(&self) -> u64 {
        self.sessions.local_writes
    }

    /// The time-out of a session that lives as far as anybody has seen, in milliseconds.
    pub(crate) fn session_timeout_ms(&self, session: SessionId) -> Option<i32> {
        self.sessions.living.get(&session).copied()
    }

    /// The sessions that live as far as anybody has seen, with their time-outs in milliseconds.
    pub(crate) fn living_sessions(&self) -> impl Iterator<Item = (SessionId, i32)> + '_ {
        self.sessions.living.iter().map(|(session, timeout_ms)| (*session, *timeout_ms))
    }

    /// Wherever a member stops it holds as many sessions and ephemerals as there are at that place.
    pub(super) fn check_counts(&self, host: HostIndex, status: &Status) -> Finding {
        let Some(counts) = self.sessions.at(status.last_applied) else { return Ok(()) };
        let held = Counts { sessions: status.sessions, ephemerals: status.ephemerals };
        if held == counts {
            return Ok(());
        }
        found(format!(
            "server {} holds {} sessions and {} ephemerals at {}, where there are {} and {}",
            server(host).0,
            held.sessions,
            held.ephemerals,
            status.last_applied,
            counts.sessions,
            counts.ephemerals
        ))
    }

    /// When all is quiet a member holds these sessions and ephemerals and no others.
    pub(crate) fn check_sessions(&self, host: HostIndex, tree: &TreeSnapshot) -> Finding {
        let (id, tree) = (server(host).0, tree.tree());
        if tree.zxid() != self.last_committed() {
            return Ok(());
        }
        let held: BTreeMap<SessionId, i32> = tree.sessions().collect();
        if held != self.sessions.living {
            let (held, living) = (held.len(), self.sessions.living.len());
            return found(format!(
                "server {id} holds {held} sessions at the end, not the {living} that live"
            ));
        }
        let owned = |session| tree.ephemerals(session).map(move |path| (path.clone(), session));
        let held: BTreeMap<ByteString, SessionId> = held.into_keys().flat_map(owned).collect();
        if held != self.sessions.ephemerals {
            let (held, there) = (held.len(), self.sessions.ephemerals.len());
            return found(format!(
                "server {id} knows the owners of {held} ephemerals at the end, not of {there}"
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use node_wire::client::Acl;
    use node_wire::ids::Epoch;
    use node_wire::txn::TxnHeader;

    use super::*;

    fn entry(counter: u32, session: i64, txn: Txn) -> Entry {
        let zxid = Zxid::new(Epoch(1), counter);
        let header = TxnHeader { session: SessionId(session), cxid: 1, zxid, time_ms: 0, kind: txn.kind() };
        Entry::new(header, txn, None)
    }

    fn ephemeral(path: &'static str) -> Txn {
        let path = ByteString::from_static(path);
        let (data, acl) = (Some(Bytes::new()), vec![Acl::world_anyone()]);
        Txn::Create { path, data, acl, ephemeral: true, parent_cversion: 1 }
    }

    fn close(paths: &[&'static str]) -> Txn {
        Txn::CloseSession { paths: Some(paths.iter().copied().map(ByteString::from_static).collect()) }
    }

    /// A session with one ephemeral.
    fn visited() -> Sessions {
        let mut sessions = Sessions::default();
        sessions.commit(&entry(1, 7, Txn::CreateSession { timeout_ms: 900 })).expect("it begins");
        sessions.commit(&entry(2, 7, ephemeral("/v"))).expect("it lives");
        sessions
    }

    #[test]
    fn a_session_takes_its_ephemerals_with_it() {
        let mut sessions = visited();
        assert_eq!(sessions.at(Zxid::new(Epoch(1), 2)), Some(Counts { sessions: 1, ephemerals: 1 }));
        sessions.commit(&entry(3, 7, close(&["/v"]))).expect("it takes all");
        assert_eq!(sessions.at(Zxid::new(Epoch(1), 3)), Some(Counts::default()));
    }

    #[test]
    fn a_session_that_leaves_an_ephemeral_or_takes_another_is_a_violation() {
        assert!(visited().commit(&entry(3, 7, close(&[]))).is_err());
        assert!(visited().commit(&entry(3, 7, close(&["/v", "/w"]))).is_err());
    }

    #[test]
    fn who_is_known_to_one_member_alone_owns_nothing() {
        let mut sessions = Sessions { local: true, ..visited() };
        sessions.commit(&entry(3, 8, Txn::Delete { path: "/v".into() })).expect("it may write");
        assert_eq!(sessions.at(Zxid::new(Epoch(1), 3)), Some(Counts { sessions: 1, ephemerals: 0 }));
        assert!(sessions.clone().commit(&entry(4, 8, ephemeral("/w"))).is_err(), "it may not own");
        sessions.commit(&entry(4, 7, close(&[]))).expect("the ensemble's");
        assert!(sessions.commit(&entry(5, 7, Txn::Delete { path: "/v".into() })).is_err(), "it is over");
    }

    #[test]
    fn who_is_not_alive_does_nothing() {
        let mut sessions = visited();
        assert!(sessions.commit(&entry(3, 8, ephemeral("/w"))).is_err());
        sessions.commit(&entry(4, 8, Txn::Error { code: -112 })).expect("a refusal is nothing");
        sessions.commit(&entry(5, 7, close(&["/v"]))).expect("the other made nothing");
        assert!(sessions.commit(&entry(6, 7, Txn::CreateSession { timeout_ms: 900 })).is_err());
    }
}
