//! Sessions that live on this member alone.
//!
//! A session of the ensemble costs a transaction to begin and one to end, and the leader hears of it with
//! every PING. A client that only reads and writes needs none of that: a *local* session is known to its
//! member, counted there, and ended there. It owns nothing: before it creates an ephemeral it becomes a
//! session of the ensemble, or is refused where that is switched off (ZOOKEEPER-1147). At any other member it
//! is over.
//!
//! A member without a leader serves reads to sessions of this kind only, because it can begin no other.
//!
//! Less is promised than of a session of the ensemble: its end is no transaction, so that a write that was
//! under way may take effect behind it. A local session outlives the role of its member, though not the
//! member: in Apache ZooKeeper each election ends all of them.
//!
//! Members of ours mark the writes of local sessions that they forward. So the leader never takes a session
//! of the ensemble that is over for a local one. A member of Apache ZooKeeper marks nothing: of it the leader
//! believes every session that did not begin at the leader, as Apache ZooKeeper's leader does.

use std::hash::{Hash, Hasher};
use std::time::Duration;

use bytestring::ByteString;
use node_wire::client::{
    CREATE_EPHEMERAL, CREATE_EPHEMERAL_SEQUENTIAL, CreateRequest, Id, MultiOp, MultiRequest, OpCode,
};
use node_wire::ids::{ServerId, SessionId};
use node_wire::jute::Reader;

use crate::sessions::SessionTracker;

/// What goes with a write of a local session to a leader of ours: the leader knows nothing of the session,
/// and must tell it from one of the ensemble that is over. It looks like an identity, and no list knows its
/// scheme.
const MARK: (&str, &str) = ("session", "local");

/// The mark among the identities of a request.
pub(crate) fn mark() -> Id {
    Id { scheme: ByteString::from_static(MARK.0), id: ByteString::from_static(MARK.1) }
}

/// True for the request of a local session of ours.
pub(crate) fn is_marked(auth: &[Id]) -> bool {
    auth.iter().any(is_mark)
}

/// The identities without the mark: what Apache ZooKeeper's leader is sent.
pub(crate) fn without_mark(auth: &mut Vec<Id>) {
    auth.retain(|id| !is_mark(id));
}

fn is_mark(id: &Id) -> bool {
    (&*id.scheme, &*id.id) == MARK
}

/// True when the session was begun at this member, as its highest byte says.
pub(crate) fn is_from(session: SessionId, member: ServerId) -> bool {
    session.0.to_be_bytes()[0] == member.0.to_be_bytes()[7]
}

/// True for what a local session can't do: to create something that goes with it.
pub(crate) fn makes_ephemeral(op: OpCode, body: &bytes::Bytes) -> bool {
    let is_ephemeral =
        |create: &CreateRequest| matches!(create.flags, CREATE_EPHEMERAL | CREATE_EPHEMERAL_SEQUENTIAL);
    let mut body = Reader::new(body.clone());
    match op {
        OpCode::Create | OpCode::Create2 => {
            CreateRequest::decode(&mut body).is_ok_and(|create| is_ephemeral(&create))
        }
        OpCode::Multi => MultiRequest::decode(&mut body).is_ok_and(|multi| {
            multi.ops.iter().any(|op| match op {
                MultiOp::Create(create) | MultiOp::Create2(create) => is_ephemeral(create),
                _ => false,
            })
        }),
        _ => false,
    }
}

/// The local sessions of a member, and its clock for them.
#[derive(Clone, Debug, Default)]
pub(crate) struct LocalSessions {
    /// In awake time.
    at: Duration,
    tracker: SessionTracker,
}

impl LocalSessions {
    /// Time passed.
    pub(crate) fn advance(&mut self, at: Duration) {
        self.at = at;
    }

    pub(crate) fn begin(&mut self, session: SessionId, timeout_ms: i32) {
        self.tracker.add(session, timeout_ms, None, self.at);
    }

    pub(crate) fn end(&mut self, session: SessionId) {
        self.tracker.remove(session);
    }

    /// All of them are over.
    pub(crate) fn clear(&mut self) {
        self.tracker = SessionTracker::default();
    }

    pub(crate) fn contains(&self, session: SessionId) -> bool {
        self.tracker.contains(session)
    }

    /// The client of a session is alive. Its time-out in milliseconds, if there is such a session.
    pub(crate) fn touch(&mut self, session: SessionId) -> Option<i32> {
        self.tracker.touch(session, self.at);
        self.tracker.timeout_ms(session)
    }

    /// Sessions whose time is over. They are forgotten with that.
    pub(crate) fn expire(&mut self) -> Vec<SessionId> {
        let expired = self.tracker.expired(self.at);
        expired.iter().for_each(|session| self.tracker.remove(*session));
        expired
    }

    pub(crate) fn len(&self) -> usize {
        self.tracker.len()
    }

    /// How long each has left.
    pub(crate) fn deadlines(&self) -> Vec<(SessionId, Duration)> {
        self.tracker.deadlines(self.at)
    }
}

impl Hash for LocalSessions {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let Self { at, tracker } = self;
        tracker.fingerprint(*at, state);
    }
}

#[cfg(test)]
mod tests {
    use node_wire::client::CheckVersionRequest;
    use node_wire::jute::encode;

    use super::*;

    fn create(flags: i32) -> CreateRequest {
        CreateRequest { path: ByteString::from_static("/a"), data: None, acl: Vec::new(), flags }
    }

    #[test]
    fn an_ephemeral_is_seen_in_a_multi_too() {
        let single = |op, flags| makes_ephemeral(op, &encode(|w| create(flags).encode(w)));
        assert!(single(OpCode::Create, CREATE_EPHEMERAL));
        assert!(single(OpCode::Create2, CREATE_EPHEMERAL_SEQUENTIAL));
        assert!(!single(OpCode::Create, 0));
        assert!(!single(OpCode::SetData, CREATE_EPHEMERAL));
        assert!(!makes_ephemeral(OpCode::Multi, &bytes::Bytes::from_static(b"nonsense")));
        let check =
            || MultiOp::Check(CheckVersionRequest { path: ByteString::from_static("/"), version: -1 });
        for (flags, ephemeral) in [(0, false), (CREATE_EPHEMERAL, true)] {
            let multi = MultiRequest { ops: vec![check(), MultiOp::Create(create(flags))] };
            assert_eq!(makes_ephemeral(OpCode::Multi, &encode(|w| multi.encode(w))), ephemeral, "{flags}");
        }
    }

    #[test]
    fn the_mark_goes_and_who_asks_stays() {
        let mut auth = vec![Id::superuser(), mark()];
        assert!(is_marked(&auth));
        without_mark(&mut auth);
        assert_eq!(auth, [Id::superuser()]);
    }

    #[test]
    fn a_session_tells_where_it_began() {
        let session = SessionId(i64::from_be_bytes([200, 0, 0, 0, 0, 0, 0, 1]));
        assert!(is_from(session, ServerId(200)));
        assert!(!is_from(session, ServerId(2)));
    }
}
