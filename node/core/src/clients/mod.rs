//! The clients of this member: their sessions as far as they are connected here, and their requests in order.
//!
//! Each connection has a queue. Replies leave in the order in which the requests came: a read behind a write
//! waits for it, and sees it. Writes are forwarded to the leader at once, so that many are under way; they
//! are answered when their transaction is applied here. A sync is answered when the leader says so; the reads
//! behind it wait, which makes sync-then-read one linearizable read.
//!
//! Which transaction answers which write is told by session and xid. A client that moved may count its xids
//! anew, so nothing that its session proposed before the move may come after it is let in: the leader answers
//! a revalidation only behind all that, and drops what comes later through the old member (see
//! [`crate::sessions`]).
//!
//! Two processes may share a session, each with a connection. At one member the later connection closes the
//! earlier one. At two, the member that had the session is told that it is *elsewhere*: its connection may
//! read and sync, is told what it watches, keeps the session alive and may end it. It is closed when it asks
//! to write, or says nothing for the session's time-out. So neither takes the session back from the other
//! without a reason (Apache ZooKeeper's `SessionMoved`).
//!
//! Sessions of this member alone ([`crate::local`]) begin and end without the role, and so can be had without
//! a leader. A *read-only* member serves them from what it has applied last, refuses what would change
//! anything or ask a quorum, and says nothing of other sessions: it can't know whether they live. Only where
//! sessions are local it says that one which it does not know is over. It takes in only clients that said in
//! their connect request that this is enough. What they see is a state that the ensemble was in, with nothing
//! uncommitted, and never older than what the client saw before; but it may be long past. After a restart it
//! is the newest snapshot, because without a leader no member knows which entries behind it are committed.
//! The connections close as soon as a leader is elected.

mod reads;
mod reply;
mod watches;

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use bytestring::ByteString;
use node_wire::client::{
    Acl, AuthPacket, ConnectRequest, ErrorCode, Id, OpClass, OpCode, PERM_READ, Request, SyncRequest,
};
use node_wire::ids::{Epoch, ServerId, SessionId, Zxid};
use node_wire::jute::{Reader, Writer};
use node_wire::password::session_password;
use node_wire::quorum::{ForwardedRequest, Revalidate};
use node_wire::txn::{Entry, Txn};

use crate::access::{accept, authenticate, failed_sasl, is_let_in, permits};
use crate::config::TimeoutBounds;
use crate::io::{ClientId, Effect, Now, Proof};
use crate::local::{self, LocalSessions};
use crate::rules::ClientRules;
use crate::tree::{Applied, Seen, Tree};
use reads::Local;
use watches::Watches;

/// Requests of one connection that may be open. Drivers stop reading long before; one that does not, or a
/// client that gets round it, loses its connection.
const MAX_QUEUE: usize = 65_536;

/// What the role has to do for a client.
#[derive(Clone, Debug)]
pub(crate) enum Ask {
    /// Propose this, or forward it to the leader.
    Forward(ForwardedRequest),
    /// The same with a session that becomes the ensemble's for it: first the one, then the other.
    Upgrade(ForwardedRequest, ForwardedRequest),
    /// Ask whether this session lives, and take it over.
    Revalidate(Revalidate),
    /// Ask the leader's quorum how far it is.
    Sync(ClientId),
}

/// Whether the session of a connection is known to live.
#[derive(Clone, Debug, Hash)]
enum SessionState {
    /// Its session is being created.
    Creating,
    /// The leader is asked whether its session lives.
    Revalidating {
        last_zxid_seen: Zxid,
        timeout_ms: i32,
    },
    Open,
}

#[derive(Clone, Debug, Hash)]
enum Pending {
    /// Executed when its turn comes.
    Local { xid: i32, op: OpCode, body: Bytes },
    /// Answered when its transaction is applied. Of a multi the answer depends on how each part was asked
    /// for, which its transaction does not say.
    Write { xid: i32, op: OpCode, multi: Option<Bytes> },
    /// Answered when the leader's quorum has spoken.
    Sync { xid: i32, path: ByteString, done: bool },
    /// Known already, told in its turn.
    Answer { xid: i32, error: ErrorCode },
    /// The end of a local session.
    Close { xid: i32 },
    /// The next token of a SASL exchange.
    Token { xid: i32, token: Option<Bytes> },
    /// A write of a session that is at another member, or behind an operation that there is not: the
    /// connection ends in its turn.
    Leave,
}

impl Pending {
    /// True for a write that only the member may ask for at which the session is.
    fn is_change(&self) -> bool {
        matches!(self, Self::Write { op, .. } if *op != OpCode::CloseSession)
    }
}

/// A request of which a transaction is to be made.
struct Write {
    xid: i32,
    op: OpCode,
    body: Bytes,
}

impl Write {
    /// What waits here for the transaction.
    fn pending(&self) -> Pending {
        let multi = (self.op == OpCode::Multi).then(|| self.body.clone());
        Pending::Write { xid: self.xid, op: self.op, multi }
    }

    /// What the leader is asked.
    fn request(self, session: SessionId, auth: Vec<Id>) -> ForwardedRequest {
        let Self { xid, op, body } = self;
        ForwardedRequest { session, cxid: xid, op: op.code(), payload: body, auth }
    }

    fn forward(self, session: SessionId, auth: Vec<Id>) -> (Pending, Option<Ask>) {
        (self.pending(), Some(Ask::Forward(self.request(session, auth))))
    }

    /// The same for a local session. An ephemeral needs a session of the ensemble: the session becomes one,
    /// or the write is refused.
    fn forward_for_local(
        self,
        client: &Client,
        timeout_ms: i32,
        sessions: &mut LocalSessions,
        upgrades: bool,
    ) -> (Pending, Option<Ask>) {
        let session = client.session;
        if !local::makes_ephemeral(self.op, &self.body) {
            return self.forward(session, client.who.iter().cloned().chain([local::mark()]).collect());
        }
        if !upgrades {
            return (Pending::Answer { xid: self.xid, error: ErrorCode::EphemeralOnLocalSession }, None);
        }
        // From here on it is the leader's to count.
        sessions.end(session);
        let pending = self.pending();
        let request = self.request(session, client.who.clone());
        (pending, Some(Ask::Upgrade(creation(session, timeout_ms), request)))
    }
}

/// Who connects, as its first record says.
struct Newcomer {
    id: ClientId,
    session: SessionId,
    who: Vec<Id>,
    last_zxid_seen: Zxid,
    /// Its record has the field `readOnly`. Who leaves it out can't read an answer that has it.
    knows_read_only: bool,
}

#[derive(Clone, Debug, Hash)]
struct Client {
    session: SessionId,
    /// As in its connect request.
    knows_read_only: bool,
    /// Who it is, as far as is known. Only ever more.
    who: Vec<Id>,
    state: SessionState,
    queue: VecDeque<Pending>,
    /// Syncs that a commit answered: the leader's word on them is still to come.
    synced_early: usize,
}

impl Client {
    /// True when the connection ends behind what it has asked. What comes then is nobody's request, because
    /// nobody would hear its answer. Behind the end of a local session an ephemeral would even make it one of
    /// the ensemble, which nobody keeps alive or closes.
    fn has_ended(&self) -> bool {
        matches!(self.queue.back(), Some(Pending::Close { .. } | Pending::Leave))
    }
}

/// All connections of clients to this member.
#[derive(Clone, Debug, Hash)]
pub(crate) struct Clients {
    next_session: i64,
    clients: BTreeMap<ClientId, Client>,
    by_session: BTreeMap<SessionId, ClientId>,
    /// How many answers of the leader about a session are still to come. They come in the order of the
    /// questions, and only the last is about the connection that stands.
    asked: BTreeMap<SessionId, u32>,
    watches: Watches,
    super_digest: Option<ByteString>,
    required_schemes: Vec<ByteString>,
    skip_acl: bool,
    local: LocalSessions,
    /// Sessions of the ensemble that went on at another member while a connection of theirs stands here, and
    /// how long that may be silent.
    elsewhere: LocalSessions,
    /// New sessions are local ones.
    makes_local: bool,
    /// A local session may become the ensemble's.
    upgrades: bool,
    /// There is no leader, and reads are served nevertheless.
    read_only: bool,
    /// How long the results of a multiRead may be together.
    max_results: usize,
}

/// Where the counter of sessions begins. A wall clock that was set back may show the time of an earlier start
/// again, and no disk knows of the local sessions of that life: one of them could be given to a second
/// client. So the counter begins elsewhere in each life, by what has become of the member since (Fibonacci
/// hashing: Knuth, volume 3, 6.4); at zero in the first one.
fn first_session(accepted: Epoch, logged: Zxid) -> u16 {
    let recovered = logged.0.rotate_left(16) ^ u64::from(accepted.0);
    let [high, low, ..] = recovered.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes();
    u16::from_be_bytes([high, low])
}

impl Clients {
    /// `accepted` and `logged` are what the member recovered.
    pub(crate) fn new(me: ServerId, rules: &ClientRules, now: Now, accepted: Epoch, logged: Zxid) -> Self {
        // As ZooKeeper does: the member in the highest byte, then the time of its start, then a counter.
        let member = i64::from_be_bytes(me.0.to_be_bytes()) << 56;
        let time = ((now.wall_ms << 24).cast_unsigned() >> 8).cast_signed();
        let first = i64::from(first_session(accepted, logged));
        Self {
            next_session: member | time | first,
            clients: BTreeMap::new(),
            by_session: BTreeMap::new(),
            asked: BTreeMap::new(),
            watches: Watches::default(),
            super_digest: rules.super_digest.clone(),
            required_schemes: rules.required_schemes.clone(),
            skip_acl: rules.skip_acl,
            local: LocalSessions::default(),
            elsewhere: LocalSessions::default(),
            makes_local: rules.local_sessions,
            upgrades: rules.local_upgrading,
            read_only: false,
            max_results: rules.max_parts(),
        }
    }

    pub(crate) fn connected(&self) -> usize {
        self.clients.len()
    }

    pub(crate) fn outstanding(&self) -> usize {
        self.clients.values().map(|client| client.queue.len()).sum()
    }

    /// Watches of all clients together.
    pub(crate) fn watch_count(&self) -> usize {
        self.watches.count()
    }

    /// Whose watches stand on which paths.
    pub(crate) fn watches(&self) -> Vec<(SessionId, ByteString)> {
        let all = self.watches.all();
        all.filter_map(|(client, path)| Some((self.session(client)?, path.clone()))).collect()
    }

    /// The session of a client whose connection stands.
    pub(crate) fn session(&self, client: ClientId) -> Option<SessionId> {
        self.clients.get(&client).map(|client| client.session)
    }

    pub(crate) fn connect(
        &mut self,
        id: ClientId,
        request: &ConnectRequest,
        who: Vec<Id>,
        bounds: TimeoutBounds,
        tree: &Tree,
        out: &mut Vec<Effect>,
    ) -> Option<Ask> {
        if self.clients.contains_key(&id) {
            self.close(id, out);
            return None;
        }
        if self.read_only && request.read_only != Some(true) {
            // It wants to write: let it look for another member.
            out.push(Effect::CloseClient { client: id });
            return None;
        }
        let knows_read_only = request.read_only.is_some();
        let timeout_ms = request.timeout_ms.clamp(bounds.min_ms, bounds.max_ms);
        let (session, last_zxid_seen) = (request.session, request.last_zxid_seen);
        let newcomer = Newcomer { id, session, who, last_zxid_seen, knows_read_only };
        if session == SessionId::NONE {
            let newcomer = Newcomer { session: self.new_session(tree), ..newcomer };
            if self.makes_local || self.read_only {
                self.local.begin(newcomer.session, timeout_ms);
                self.go_on(newcomer, tree, out);
                return None;
            }
            let ask = Ask::Forward(creation(newcomer.session, timeout_ms));
            self.admit(newcomer, SessionState::Creating, out);
            return Some(ask);
        }
        if request.password.as_ref() != session_password(session).as_slice() {
            out.push(Effect::Reply { client: id, frame: reply::expired(knows_read_only) });
            out.push(Effect::CloseClient { client: id });
            return None;
        }
        if self.local.contains(session) {
            self.go_on(newcomer, tree, out);
            return None;
        }
        if self.read_only {
            // Where sessions are local it was one of another member. Else only a leader can tell whether it
            // lives.
            let is_over = self.makes_local && tree.session(session).is_none();
            if is_over && last_zxid_seen <= tree.zxid() {
                out.push(Effect::Reply { client: id, frame: reply::expired(knows_read_only) });
            }
            out.push(Effect::CloseClient { client: id });
            return None;
        }
        self.admit(newcomer, SessionState::Revalidating { last_zxid_seen, timeout_ms }, out);
        *self.asked.entry(session).or_default() += 1;
        Some(Ask::Revalidate(Revalidate { session, timeout_ms }))
    }

    fn new_session(&mut self, tree: &Tree) -> SessionId {
        loop {
            self.next_session = self.next_session.wrapping_add(1);
            let session = SessionId(self.next_session);
            if tree.session(session).is_none()
                && !self.by_session.contains_key(&session)
                && !self.local.contains(session)
            {
                return session;
            }
        }
    }

    /// A local session has its client here.
    fn go_on(&mut self, newcomer: Newcomer, tree: &Tree, out: &mut Vec<Effect>) {
        let Newcomer { id, session, last_zxid_seen, knows_read_only, .. } = newcomer;
        if last_zxid_seen > tree.zxid() {
            // It saw more than we have: it must not go back in time.
            out.push(Effect::CloseClient { client: id });
            return;
        }
        let Some(timeout_ms) = self.local.touch(session) else { return };
        self.admit(newcomer, SessionState::Open, out);
        let frame = reply::connected(session, timeout_ms, knows_read_only.then_some(self.read_only));
        out.push(Effect::Reply { client: id, frame });
    }

    // Local sessions, and reads without a leader.

    /// Time passed: local sessions whose time is over end, and with them their connections. So does a
    /// connection that its client left behind when it went to another member, and that says nothing any more.
    pub(crate) fn tick(&mut self, at: Duration, out: &mut Vec<Effect>) {
        self.watches.sweep();
        self.local.advance(at);
        self.elsewhere.advance(at);
        for session in [self.local.expire(), self.elsewhere.expire()].concat() {
            if let Some(&id) = self.by_session.get(&session) {
                self.close(id, out);
            }
        }
    }

    pub(crate) fn local_sessions(&self) -> &LocalSessions {
        &self.local
    }

    pub(crate) fn is_read_only(&self) -> bool {
        self.read_only
    }

    /// There is no leader: from now on reads are served to whom that is enough.
    pub(crate) fn begin_read_only(&mut self) {
        self.read_only = true;
    }

    /// Takes a connection in. Another one of the same session at this member is closed for it, as in
    /// ZooKeeper.
    fn admit(&mut self, newcomer: Newcomer, state: SessionState, out: &mut Vec<Effect>) {
        let Newcomer { id, session, who, last_zxid_seen: _, knows_read_only } = newcomer;
        if let Some(old) = self.by_session.insert(session, id) {
            self.clients.remove(&old);
            self.watches.forget(old);
            self.elsewhere.end(session);
            out.push(Effect::CloseClient { client: old });
        }
        let queue = VecDeque::new();
        let client = Client { session, knows_read_only, who, state, queue, synced_early: 0 };
        self.clients.insert(id, client);
    }

    /// The leader's word on a session that wants to go on here. An answer to an earlier connection's question
    /// does not let this one in: the leader does not know of it yet, and what is asked through it would be
    /// done when the leader hears of it, perhaps behind what the session did elsewhere meanwhile.
    pub(crate) fn revalidated(
        &mut self,
        session: SessionId,
        valid: bool,
        tree: &Tree,
        out: &mut Vec<Effect>,
    ) {
        if let Some(to_come) = self.asked.get_mut(&session) {
            *to_come -= 1;
            if *to_come > 0 {
                return;
            }
            self.asked.remove(&session);
        }
        let Some(&id) = self.by_session.get(&session) else { return };
        let Some(client) = self.clients.get_mut(&id) else { return };
        let SessionState::Revalidating { last_zxid_seen, timeout_ms } = client.state else { return };
        if !valid {
            out.push(Effect::Reply { client: id, frame: reply::expired(client.knows_read_only) });
            self.close(id, out);
        } else if last_zxid_seen > tree.zxid() {
            // It saw more than we have: it must not go back in time.
            self.close(id, out);
        } else {
            client.state = SessionState::Open;
            // The session keeps the time-out it was created with; the leader counts that one.
            let timeout_ms = tree.session(session).unwrap_or(timeout_ms);
            let frame = reply::connected(session, timeout_ms, client.knows_read_only.then_some(false));
            out.push(Effect::Reply { client: id, frame });
        }
    }

    /// The session went on at another member. Its connection here may be that of a second process which
    /// shares the session: closed at once it would come back and take the session away from the first, for
    /// ever. So it stays, as at Apache ZooKeeper, until it asks to write. A write that waits is another
    /// matter. Perhaps it came to the leader too late, and the transactions that follow are of somebody who
    /// may count the same xids.
    pub(crate) fn moved_away(&mut self, session: SessionId, tree: &Tree, out: &mut Vec<Effect>) {
        let Some(&id) = self.by_session.get(&session) else { return };
        let Some(client) = self.clients.get(&id) else { return };
        if !matches!(client.state, SessionState::Open) {
            return;
        }
        match tree.session(session) {
            Some(timeout_ms) if !client.queue.iter().any(Pending::is_change) => {
                self.elsewhere.begin(session, timeout_ms);
            }
            Some(_) | None => self.close(id, out),
        }
    }

    /// A request came. What cannot be answered from here is asked of the role.
    pub(crate) fn request(
        &mut self,
        id: ClientId,
        request: Request,
        tree: &Tree,
        out: &mut Vec<Effect>,
    ) -> Option<Ask> {
        let client = self.clients.get_mut(&id)?;
        if !matches!(client.state, SessionState::Open) {
            // No client speaks before it knows its session.
            self.close(id, out);
            return None;
        }
        if client.queue.len() >= MAX_QUEUE {
            self.close(id, out);
            return None;
        }
        if client.has_ended() {
            return None;
        }
        let Request { xid, op, body } = request;
        if op != OpCode::Auth.code() && !is_let_in(&self.required_schemes, &client.who) {
            let error = ErrorCode::SessionClosedRequireSaslAuth;
            out.push(Effect::Reply { client: id, frame: reply::plain(xid, Zxid::ZERO, error) });
            self.close(id, out);
            return None;
        }
        let (session, local) = (client.session, self.local.touch(client.session));
        let is_elsewhere = self.elsewhere.touch(session).is_some();
        let (pending, ask) = match OpCode::from_code(op) {
            Some(op) if self.read_only && needs_a_leader(op) => {
                (Pending::Answer { xid, error: ErrorCode::NotReadOnly }, None)
            }
            Some(op) if op.class() == OpClass::Write && is_elsewhere => (Pending::Leave, None),
            Some(op) if op.class() == OpClass::Write => {
                let write = Write { xid, op, body };
                match local {
                    None => write.forward(session, client.who.clone()),
                    Some(timeout_ms) => {
                        write.forward_for_local(client, timeout_ms, &mut self.local, self.upgrades)
                    }
                }
            }
            Some(OpCode::CloseSession) if local.is_some() => (Pending::Close { xid }, None),
            Some(op @ OpCode::CloseSession) => {
                Write { xid, op, body: Bytes::new() }.forward(session, Vec::new())
            }
            Some(OpCode::Sync) => sync(id, xid, body),
            Some(OpCode::Ping) => (Pending::Answer { xid, error: ErrorCode::Ok }, None),
            Some(OpCode::Auth) => {
                if let Err(error) = prove(&mut client.who, body, self.super_digest.as_ref()) {
                    // Told at once: a client that is not who it says gets nothing else.
                    out.push(Effect::Reply { client: id, frame: reply::plain(xid, Zxid::ZERO, error) });
                    self.close(id, out);
                    return None;
                }
                (Pending::Answer { xid, error: ErrorCode::Ok }, None)
            }
            Some(op) if op.class() == OpClass::Read => (Pending::Local { xid, op, body }, None),
            Some(_) => (Pending::Answer { xid, error: ErrorCode::Unimplemented }, None),
            None => {
                // Whatever that is, the client and this member don't speak the same protocol.
                client.queue.push_back(Pending::Answer { xid, error: ErrorCode::Unimplemented });
                (Pending::Leave, None)
            }
        };
        client.queue.push_back(pending);
        self.drain(id, tree, out);
        ask
    }

    /// A client went on with its SASL exchange.
    pub(crate) fn proof(&mut self, id: ClientId, xid: i32, proof: Proof, tree: &Tree, out: &mut Vec<Effect>) {
        let Some(client) = self.clients.get_mut(&id) else { return };
        if !matches!(client.state, SessionState::Open) || client.queue.len() >= MAX_QUEUE {
            self.close(id, out);
            return;
        }
        if client.has_ended() {
            return;
        }
        let error = failed_sasl(&self.required_schemes);
        let token = match proof {
            Proof::Token { token, who } => accept(&mut client.who, who).map(|()| token),
            Proof::Tolerated if error == ErrorCode::AuthFailed => Ok(None),
            Proof::Tolerated | Proof::Failed => Err(error),
        };
        match token {
            Ok(token) => {
                client.queue.push_back(Pending::Token { xid, token });
                self.drain(id, tree, out);
            }
            Err(error) => {
                // As with a password that proves nothing: told at once, and nothing else.
                out.push(Effect::Reply { client: id, frame: reply::no_token(xid, error) });
                self.close(id, out);
            }
        }
    }

    /// The leader's quorum has spoken on the oldest sync of this client that waits.
    pub(crate) fn synced(&mut self, id: ClientId, tree: &Tree, out: &mut Vec<Effect>) {
        let Some(client) = self.clients.get_mut(&id) else { return };
        if let Some(left) = client.synced_early.checked_sub(1) {
            client.synced_early = left;
            return;
        }
        let waiting = client.queue.iter_mut().find_map(|pending| match pending {
            Pending::Sync { done, .. } if !*done => Some(done),
            _ => None,
        });
        if let Some(done) = waiting {
            *done = true;
        }
        self.drain(id, tree, out);
    }

    /// A transaction is about to be applied. When it was asked for here, what its client asked before it is
    /// answered first, so that no read sees the client's own later write. Syncs among it need not wait for
    /// the leader's word any more: the transaction was proposed after they had reached the leader, and a
    /// quorum has acknowledged it since, which is the proof that a round of PINGs would give.
    pub(crate) fn about_to_apply(&mut self, entry: &Entry, tree: &Tree, out: &mut Vec<Effect>) {
        let Some(&id) = self.by_session.get(&entry.header.session) else { return };
        let Some(client) = self.clients.get_mut(&id) else { return };
        if is_moved(&entry.txn) || self.elsewhere.contains(entry.header.session) {
            // Asked through another member, perhaps before the sync came to the leader.
            return;
        }
        let write = client.queue.iter().position(|pending| matches!(pending, Pending::Write { .. }));
        let Some(write) = write.filter(|at| is_answered(&client.queue[*at], entry)) else { return };
        for pending in client.queue.iter_mut().take(write) {
            if let Pending::Sync { done, .. } = pending
                && !*done
            {
                *done = true;
                client.synced_early += 1;
            }
        }
        self.drain(id, tree, out);
    }

    /// A transaction was applied: whoever watches and may read the node is told (CVE-2024-23944). Before any
    /// reply that shows it.
    pub(crate) fn tell(&mut self, seen: &[Seen], asks_lists: bool, out: &mut Vec<Effect>) {
        let (clients, open) = (&self.clients, self.skip_acl || !asks_lists);
        let may_read = |client: ClientId, list: &[Acl]| {
            open || clients.get(&client).is_some_and(|client| permits(list, PERM_READ, &client.who))
        };
        self.watches.tell(seen, may_read, out);
    }

    /// A transaction was applied, and whoever watches was told: whoever asked for it here is answered.
    pub(crate) fn applied(&mut self, entry: &Entry, applied: &Applied, tree: &Tree, out: &mut Vec<Effect>) {
        let header = &entry.header;
        let Some(&id) = self.by_session.get(&header.session) else { return };
        let Some(client) = self.clients.get_mut(&id) else { return };
        if let Applied::SessionCreated { timeout_ms } = applied {
            if matches!(client.state, SessionState::Creating) {
                client.state = SessionState::Open;
                let read_only = client.knows_read_only.then_some(false);
                let frame = reply::connected(header.session, *timeout_ms, read_only);
                out.push(Effect::Reply { client: id, frame });
            }
            return;
        }
        let asked_here = match client.queue.front() {
            Some(pending @ Pending::Write { xid, op, multi })
                if is_answered(pending, entry)
                    && (*applied == Applied::SessionClosed || !self.elsewhere.contains(header.session)) =>
            {
                Some((*xid, *op, multi.clone()))
            }
            _ => None,
        };
        if asked_here.is_some() && is_moved(&entry.txn) {
            // The session has gone on elsewhere, or has come from where it asked this with the same number.
            // In both cases the fate of what it asked here is unknown.
            self.close(id, out);
            return;
        }
        if let Some((xid, op, multi)) = asked_here {
            client.queue.pop_front();
            let frame = reply::written(xid, entry.zxid(), op, applied, multi.as_ref());
            out.push(Effect::Reply { client: id, frame });
        }
        if *applied == Applied::SessionClosed {
            // Also when the leader let it expire: the client learns it when it comes back.
            self.close(id, out);
        } else {
            self.drain(id, tree, out);
        }
    }

    /// Answers what can be answered, in order.
    fn drain(&mut self, id: ClientId, tree: &Tree, out: &mut Vec<Effect>) {
        let Some(client) = self.clients.get_mut(&id) else { return };
        while let Some(pending) = client.queue.front() {
            let frame = match pending {
                Pending::Write { .. } | Pending::Sync { done: false, .. } => return,
                Pending::Sync { xid, path, done: true } => reply::synced(*xid, tree.zxid(), path),
                Pending::Answer { xid, error } => reply::plain(*xid, tree.zxid(), *error),
                Pending::Close { xid } => {
                    let frame = reply::plain(*xid, tree.zxid(), ErrorCode::Ok);
                    out.push(Effect::Reply { client: id, frame });
                    self.local.end(client.session);
                    self.close(id, out);
                    return;
                }
                Pending::Token { xid, token } => reply::token(*xid, tree.zxid(), token.as_ref()),
                Pending::Leave => return self.close(id, out),
                Pending::Local { xid, op, body } => {
                    let (session, who) = (client.session, client.who.as_slice());
                    let (skip_acl, max_results) = (self.skip_acl, self.max_results);
                    let watches = &mut self.watches;
                    let mut local = Local { client: id, session, who, skip_acl, max_results, tree, watches };
                    local.answer(*xid, *op, body, out)
                }
            };
            client.queue.pop_front();
            out.push(Effect::Reply { client: id, frame });
        }
    }

    pub(crate) fn lost(&mut self, id: ClientId) {
        self.watches.forget(id);
        if let Some(client) = self.clients.remove(&id)
            && self.by_session.get(&client.session) == Some(&id)
        {
            self.by_session.remove(&client.session);
            self.elsewhere.end(client.session);
        }
    }

    fn close(&mut self, id: ClientId, out: &mut Vec<Effect>) {
        self.lost(id);
        out.push(Effect::CloseClient { client: id });
    }

    /// The member serves nobody any more: its clients go elsewhere, their sessions live on. Those that began
    /// only because there was no leader end.
    pub(crate) fn close_all(&mut self, out: &mut Vec<Effect>) {
        if std::mem::take(&mut self.read_only) && !self.makes_local {
            self.local.clear();
        }
        out.extend(self.clients.keys().map(|client| Effect::CloseClient { client: *client }));
        self.clients.clear();
        self.by_session.clear();
        self.asked.clear();
        self.elsewhere.clear();
        self.watches.clear();
    }
}

/// A sync waits in its place; what can't be read is answered there.
fn sync(client: ClientId, xid: i32, body: Bytes) -> (Pending, Option<Ask>) {
    match SyncRequest::decode(&mut Reader::new(body)) {
        Ok(SyncRequest { path }) => (Pending::Sync { xid, path, done: false }, Some(Ask::Sync(client))),
        Err(_) => (Pending::Answer { xid, error: ErrorCode::MarshallingError }, None),
    }
}

/// True for what a member without a leader refuses.
fn needs_a_leader(op: OpCode) -> bool {
    matches!(op.class(), OpClass::Write | OpClass::Sync | OpClass::Internal)
}

/// The leader's refusal of what came through a member that the session had left.
fn is_moved(txn: &Txn) -> bool {
    matches!(txn, Txn::Error { code } if *code == ErrorCode::SessionMoved.code())
}

/// True when this transaction is what became of a request. Another handle of the session, at another member,
/// may end the session with the number that a request here has.
fn is_answered(pending: &Pending, entry: &Entry) -> bool {
    let ends = matches!(entry.txn, Txn::CloseSession { .. });
    match pending {
        Pending::Write { xid, op: OpCode::CloseSession, .. } => {
            *xid == entry.header.cxid && (ends || matches!(entry.txn, Txn::Error { .. }))
        }
        Pending::Write { xid, .. } => *xid == entry.header.cxid && !ends,
        Pending::Local { .. }
        | Pending::Sync { .. }
        | Pending::Answer { .. }
        | Pending::Close { .. }
        | Pending::Token { .. }
        | Pending::Leave => false,
    }
}

/// The request that makes a session the ensemble's.
fn creation(session: SessionId, timeout_ms: i32) -> ForwardedRequest {
    let mut payload = BytesMut::with_capacity(4);
    Writer::new(&mut payload).int(timeout_ms);
    let op = OpCode::CreateSession.code();
    ForwardedRequest { session, cxid: 0, op, payload: payload.freeze(), auth: Vec::new() }
}

fn prove(who: &mut Vec<Id>, body: Bytes, super_digest: Option<&ByteString>) -> Result<(), ErrorCode> {
    let packet = AuthPacket::decode(&mut Reader::new(body)).map_err(|_| ErrorCode::AuthFailed)?;
    authenticate(who, &packet.scheme, &packet.auth.unwrap_or_default(), super_digest)
}

#[cfg(test)]
mod tests {

    use super::*;

    #[test]
    fn a_life_begins_its_sessions_elsewhere_than_the_one_before() {
        let now = Now { mono: Duration::from_secs(1), wall_ms: 1_700_000_000_000 };
        let rules = ClientRules::default();
        let first = |epoch, zxid| {
            let mut clients = Clients::new(ServerId(3), &rules, now, Epoch(epoch), Zxid(zxid));
            clients.new_session(&Tree::default())
        };
        assert_eq!(first(0, 0).0 & 0xffff, 1);
        let lives = [first(0, 0), first(5, 0x3_0000_0007), first(6, 0x6_0000_0001), first(6, 0x6_0000_0002)];
        for (number, life) in lives.iter().enumerate() {
            assert!(local::is_from(*life, ServerId(3)));
            for other in &lives[..number] {
                assert!((life.0 - other.0).abs() > 100, "{life} {other}");
            }
        }
    }
}
