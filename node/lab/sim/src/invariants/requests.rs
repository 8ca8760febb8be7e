//! Requests: every committed transaction was asked for by somebody, once, and every write's answer is its own
//! transaction's.
//!
//! A client's xid names one request of its session. So a transaction that nobody asked for, or two for one
//! request (a retry that should not have been), shows here although all members agree on it. An answer
//! carries the zxid and the outcome of the transaction that was ordered for it, a refusal's too: one that was
//! given without its place in the order names none.
//!
//! A session's transactions stand in the order in which its client asked: xids ascend, however often it
//! moved, because what comes through the old member after the move, or after the session's end, is dropped,
//! or refused, which leaves nothing but the refusal's place. Its end alone may be asked through any
//! connection, at any time.

use std::collections::{BTreeMap, BTreeSet};

use node_wire::client::{ErrorCode, OpCode, ReplyHeader};
use node_wire::ids::{SessionId, Zxid};
use node_wire::txn::{Entry, Txn};

use super::{Finding, Invariants, server};
use crate::network::HostIndex;
use crate::outcome::Rule;

/// What clients asked for.
#[derive(Clone, Debug, Default)]
pub(super) struct Requests {
    /// The operation of each request that any member received.
    asked: BTreeMap<(SessionId, i32), i32>,
    /// Requests whose transaction is committed.
    done: BTreeSet<(SessionId, i32)>,
    /// The last request of each session that took its place in the order.
    last: BTreeMap<SessionId, i32>,
}

fn found(sentence: String) -> Finding {
    Err((Rule::Requests, sentence))
}

/// True for operations that become transactions.
fn writes(op: i32) -> bool {
    matches!(
        OpCode::from_code(op),
        Some(
            OpCode::Create
                | OpCode::Create2
                | OpCode::CreateContainer
                | OpCode::CreateTtl
                | OpCode::Delete
                | OpCode::SetData
                | OpCode::SetAcl
                | OpCode::Multi
                | OpCode::Reconfig
                | OpCode::CloseSession
        )
    )
}

/// Refused because the session is elsewhere by now, or nowhere.
fn is_of_no_session_here(txn: &Txn) -> bool {
    let codes = [ErrorCode::SessionMoved, ErrorCode::SessionExpired].map(ErrorCode::code);
    matches!(txn, Txn::Error { code } if codes.contains(code))
}

impl Requests {
    /// The next committed entry.
    pub(super) fn commit(&mut self, entry: &Entry) -> Finding {
        let (zxid, header) = (entry.zxid(), &entry.header);
        let request = (header.session, header.cxid);
        if header.session == SessionId::NONE && header.cxid == 0 {
            // A leader removes what goes by itself; whether it was time for that is judged elsewhere.
            return match entry.txn {
                Txn::Delete { .. } | Txn::Error { .. } => Ok(()),
                _ => found(format!("{zxid} was asked for in the name of no session")),
            };
        }
        if header.cxid == 0 {
            // The two that no client's request stands behind: it connects, or it was silent for too long.
            return match entry.txn {
                Txn::CreateSession { .. } | Txn::CloseSession { .. } => Ok(()),
                _ => found(format!("{zxid} was asked for by nobody: a member made it up")),
            };
        }
        let asked = self.asked.get(&request).copied();
        let (session, cxid) = request;
        if asked.is_none_or(|op| op != header.kind && !matches!(entry.txn, Txn::Error { .. })) {
            return found(format!("session {session} never asked for {zxid} with its request {cxid}"));
        }
        if !self.done.insert(request) {
            return found(format!("request {cxid} of session {session} was done a second time, as {zxid}"));
        }
        if is_of_no_session_here(&entry.txn) || asked == Some(OpCode::CloseSession.code()) {
            return Ok(());
        }
        match self.last.insert(session, cxid) {
            Some(last) if last > cxid => found(format!(
                "request {cxid} of session {session} was done as {zxid}, behind its later request {last}"
            )),
            _ => Ok(()),
        }
    }
}

impl Invariants {
    /// A member received a client's request.
    pub(crate) fn asked(&mut self, session: SessionId, xid: i32, op: i32) {
        self.requests.asked.insert((session, xid), op);
    }

    /// A member answers a client.
    pub(crate) fn replies(&mut self, host: HostIndex, session: SessionId, header: ReplyHeader) -> Finding {
        let request = (session, header.xid);
        let Some(op) = self.requests.asked.get(&request).copied().filter(|op| writes(*op)) else {
            return Ok(());
        };
        // A session that lives on its member ends there, and a member without a leader refuses by itself.
        let ends_here = op == OpCode::CloseSession.code() && !self.session_began(session);
        if ends_here && header.err == 0 {
            self.sessions.ends_here(session);
        }
        if ends_here || header.err == ErrorCode::NotReadOnly.code() {
            return Ok(());
        }
        let Some(entry) = self.entries.get(&header.zxid) else {
            return found(answered(host, request, header.zxid, "which was never proposed"));
        };
        if (entry.header.session, entry.header.cxid) != request {
            return found(answered(host, request, header.zxid, "which is the transaction of another"));
        }
        let outcome = if let Txn::Error { code } = entry.txn { code } else { 0 };
        if outcome != header.err {
            return found(answered(host, request, header.zxid, "which had another outcome"));
        }
        Ok(())
    }
}

fn answered(host: HostIndex, (session, xid): (SessionId, i32), zxid: Zxid, what: &str) -> String {
    format!("server {} answered request {xid} of session {session} by {zxid}, {what}", server(host).0)
}

#[cfg(test)]
mod tests {
    use node_wire::ids::Epoch;
    use node_wire::txn::TxnHeader;

    use super::*;

    fn entry(counter: u32, cxid: i32, txn: Txn) -> Entry {
        let zxid = Zxid::new(Epoch(1), counter);
        let header = TxnHeader { session: SessionId(7), cxid, zxid, time_ms: 0, kind: txn.kind() };
        Entry::new(header, txn, None)
    }

    fn delete() -> Txn {
        Txn::Delete { path: "/v".into() }
    }

    #[test]
    fn a_request_is_done_once_and_only_when_asked_for() {
        let mut requests = Requests::default();
        assert!(requests.commit(&entry(1, 1, delete())).is_err(), "nobody asked");
        requests.asked.insert((SessionId(7), 1), OpCode::Delete.code());
        requests.commit(&entry(2, 1, delete())).expect("asked for");
        assert!(requests.commit(&entry(3, 1, delete())).is_err(), "twice");
        assert!(requests.commit(&entry(4, 0, delete())).is_err(), "made up");
        requests.commit(&entry(5, 0, Txn::CloseSession { paths: None })).expect("it expired");
    }

    #[test]
    fn a_sessions_requests_are_done_in_the_order_in_which_they_were_asked() {
        let mut requests = Requests::default();
        for cxid in 1..=5 {
            requests.asked.insert((SessionId(7), cxid), OpCode::Delete.code());
        }
        requests.asked.insert((SessionId(7), 3), OpCode::CloseSession.code());
        requests.commit(&entry(1, 2, delete())).expect("the first one may be lost with a connection");
        requests.commit(&entry(2, 4, delete())).expect("later");
        requests.commit(&entry(3, 3, Txn::CloseSession { paths: None })).expect("through the old connection");
        assert!(requests.clone().commit(&entry(4, 1, delete())).is_err(), "behind a later one");
        let refused = |code: ErrorCode| entry(4, 1, Txn::Error { code: code.code() });
        requests.clone().commit(&refused(ErrorCode::SessionMoved)).expect("the session is elsewhere");
        requests.clone().commit(&refused(ErrorCode::SessionExpired)).expect("it has ended");
        assert!(requests.clone().commit(&refused(ErrorCode::NoNode)).is_err(), "a refusal has its place too");
        requests.commit(&entry(4, 5, delete())).expect("in order");
    }

    #[test]
    fn an_answer_is_that_of_the_requests_own_transaction() {
        let mut judge = Invariants::new(1);
        judge.asked(SessionId(7), 1, OpCode::Delete.code());
        judge.asked(SessionId(7), 2, OpCode::GetData.code());
        let refused = entry(1, 1, Txn::Error { code: -101 });
        judge.entries.insert(refused.zxid(), refused);
        let mut answer = |xid, counter, err| {
            judge.replies(0, SessionId(7), ReplyHeader { xid, zxid: Zxid::new(Epoch(1), counter), err })
        };
        answer(1, 1, -101).expect("its own");
        answer(2, 0, 0).expect("a read has none");
        assert!(answer(1, 1, 0).is_err(), "another outcome");
        assert!(answer(1, 0, -101).is_err(), "out of the order");
    }
}
