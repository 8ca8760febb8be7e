//! What the leader answers without a transaction, and what it must wait for first.
//!
//! **Sync.** A leader that was paused or cut off may be deposed without knowing it. So a sync is a quorum
//! operation: on its arrival the leader notes its commit index and begins a round of PINGs that carry the
//! round's number in their zxid field, which learners echo. When a quorum has answered a PING that was sent
//! after the sync arrived, no later epoch was established before it arrived: a member of that quorum would
//! have had to leave our epoch for it, and would not have answered on this connection any more. The answer
//! then goes out behind the COMMITs up to the index. Syncs that arrive while a round is under way share the
//! next one. (In Apache ZooKeeper sync asks nobody, so that sync-then-read is not linearizable there:
//! ZOOKEEPER-1675.)
//!
//! **A sync that a Java follower forwards** is answered as its own leaders do: behind the COMMIT of all that
//! was proposed when it came, and before any other. Such a follower keeps one queue of what it forwarded,
//! writes and syncs alike, and takes what comes back for the head of it. A SYNC behind a later COMMIT, as a
//! round would send it, matches nothing: the sync stays at the head, and no client of that follower is
//! answered again.
//!
//! **Revalidation.** A session that moves must find at its new member everything that it proposed through the
//! old one, and nothing of it may follow later. So the answer waits until all that is proposed is committed.
//! That a session is not known is said behind a round of PINGs only: it may have begun in an epoch that
//! deposed this leader, and a client that is told so gives up its session and all that hangs on it.

use std::collections::VecDeque;

use node_wire::ids::{SessionId, Zxid};
use node_wire::jute::encode;
use node_wire::quorum::{Dialect, PacketType, QuorumPacket, Revalidate, Revalidated, SESSION_MOVED};

use super::Leader;
use crate::base::Base;
use crate::io::{ClientId, ConnId};
use crate::sessions::Owner;
use crate::zab::Protocol;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Waiter {
    Client(ClientId),
    Learner(ConnId),
    /// Somebody asked for a session that is not known.
    Unknown(Owner, SessionId),
}

impl Waiter {
    fn is_of(self, conn: ConnId) -> bool {
        match self {
            Self::Client(_) | Self::Unknown(Owner::Local, _) => false,
            Self::Learner(at) | Self::Unknown(Owner::Learner(at), _) => at == conn,
        }
    }
}

/// Syncs that wait for a round, and revalidations that wait for a commit.
#[derive(Clone, Debug, Default, Hash)]
pub(crate) struct SyncRounds {
    round: i64,
    /// Those whose round is under way.
    running: Vec<Waiter>,
    /// Those that came since it began.
    next: Vec<Waiter>,
    barriers: VecDeque<(Zxid, Owner, SessionId, bool)>,
    /// Java followers whose sync goes out behind the COMMIT of a zxid.
    in_order: VecDeque<(Zxid, ConnId)>,
}

impl SyncRounds {
    /// Those that wait for a round, or for their place.
    pub(super) fn waiting(&self) -> usize {
        self.running.len() + self.next.len() + self.in_order.len()
    }

    pub(super) fn current(&self) -> i64 {
        self.round
    }

    pub(super) fn lost(&mut self, conn: ConnId) {
        self.running.retain(|waiter| !waiter.is_of(conn));
        self.next.retain(|waiter| !waiter.is_of(conn));
        self.barriers.retain(|(_, owner, ..)| *owner != Owner::Learner(conn));
        self.in_order.retain(|(_, of)| *of != conn);
    }
}

impl Leader {
    /// A sync of one of our own clients.
    pub(crate) fn local_sync<P: Protocol>(&mut self, base: &mut Base<P>, client: ClientId) {
        self.sync(base, Waiter::Client(client));
    }

    pub(super) fn remote_sync<P: Protocol>(&mut self, base: &mut Base<P>, owner: Owner) {
        let Owner::Learner(conn) = owner else { return };
        match self.peers.get(&conn).map(|peer| peer.dialect) {
            Some(Dialect::Apache) if self.has_uncommitted(base) => {
                self.rounds.in_order.push_back((self.last_proposed, conn));
            }
            Some(Dialect::Apache) => answer(base, Waiter::Learner(conn)),
            Some(Dialect::Own) | None => self.sync(base, Waiter::Learner(conn)),
        }
    }

    /// Whether something of this epoch was proposed and is not committed.
    fn has_uncommitted<P: Protocol>(&self, base: &Base<P>) -> bool {
        self.last_proposed > base.journal.applied() && self.last_proposed.counter() > 0
    }

    /// The COMMIT of a zxid went out, and nothing behind it yet: the syncs of Java followers that have their
    /// place here.
    pub(super) fn answer_in_order<P: Protocol>(&mut self, base: &mut Base<P>, committed: Zxid) {
        while let Some(&(zxid, conn)) = self.rounds.in_order.front()
            && zxid <= committed
        {
            self.rounds.in_order.pop_front();
            answer(base, Waiter::Learner(conn));
        }
    }

    fn sync<P: Protocol>(&mut self, base: &mut Base<P>, waiter: Waiter) {
        if base.zab.sync_asks_quorum() {
            self.ask_quorum(base, waiter);
        } else {
            answer(base, waiter);
        }
    }

    fn ask_quorum<P: Protocol>(&mut self, base: &mut Base<P>, waiter: Waiter) {
        self.rounds.next.push(waiter);
        if self.rounds.running.is_empty() {
            self.begin_round(base);
        }
    }

    fn begin_round<P: Protocol>(&mut self, base: &mut Base<P>) {
        self.rounds.running = std::mem::take(&mut self.rounds.next);
        if self.rounds.running.is_empty() {
            return;
        }
        self.rounds.round += 1;
        self.ping(base);
        self.check_rounds(base);
    }

    /// Ends the round under way when a quorum has answered it, and begins the next.
    pub(super) fn check_rounds<P: Protocol>(&mut self, base: &mut Base<P>) {
        if self.rounds.running.is_empty() {
            if !self.rounds.next.is_empty() {
                self.begin_round(base);
            }
            return;
        }
        let round = self.rounds.round;
        let answered = self
            .peers
            .values()
            .filter(|peer| peer.progress == super::Progress::Synchronized && peer.round >= round)
            .filter_map(|peer| peer.server);
        if !base.quorum.reached(answered.chain([base.config.id])) {
            return;
        }
        // The COMMITs up to the index that the round began with left before this: they are sent when
        // committed.
        for waiter in std::mem::take(&mut self.rounds.running) {
            answer(base, waiter);
        }
        self.begin_round(base);
    }

    /// That a session comes to another member is a sign of life. False if it is not known any more.
    fn comes<P: Protocol>(&mut self, base: &Base<P>, session: SessionId) -> bool {
        if !base.zab.moving_is_life() {
            return self.sessions.contains(session);
        }
        self.sessions.touch(session, base.awake)
    }

    /// A session wants to go on at `owner`.
    pub(crate) fn revalidate<P: Protocol>(&mut self, base: &mut Base<P>, owner: Owner, ask: &Revalidate) {
        let session = ask.session;
        let valid = self.outstanding.session_lives(&base.tree, session) && self.comes(base, session);
        if valid
            && let Some(before) = self.sessions.move_to(session, owner)
            && before != owner
        {
            self.tell_moved(base, before, session);
        }
        if self.has_uncommitted(base) {
            self.rounds.barriers.push_back((self.last_proposed, owner, session, valid));
        } else {
            self.answer_revalidation(base, owner, session, valid);
        }
    }

    fn answer_revalidation<P: Protocol>(
        &mut self,
        base: &mut Base<P>,
        owner: Owner,
        session: SessionId,
        valid: bool,
    ) {
        if valid {
            revalidated(base, owner, session, true);
            if self.sessions.owner(session).is_some_and(|now| now != owner) {
                // It went on while this answer waited. Told then, it was told of an earlier connection.
                self.tell_moved(base, owner, session);
            }
        } else {
            self.ask_quorum(base, Waiter::Unknown(owner, session));
        }
    }

    /// Tells who had a session that it is elsewhere. A learner whose connection is gone has closed its
    /// clients with it. A Java member knows no such word, and takes it for the answer to a question of its
    /// own: that the session is over.
    fn tell_moved<P: Protocol>(&self, base: &mut Base<P>, before: Owner, session: SessionId) {
        match before {
            Owner::Local => base.clients.moved_away(session, &base.tree, &mut base.out),
            Owner::Learner(conn) => {
                if self.peers.get(&conn).is_some_and(|peer| peer.dialect == Dialect::Own) {
                    send_revalidated(base, conn, session, false, SESSION_MOVED);
                }
            }
        }
    }

    /// Something was committed: revalidations that waited for it are answered.
    pub(super) fn release_barriers<P: Protocol>(&mut self, base: &mut Base<P>) {
        while let Some(&(zxid, owner, session, valid)) = self.rounds.barriers.front()
            && zxid <= base.journal.applied()
        {
            self.rounds.barriers.pop_front();
            self.answer_revalidation(base, owner, session, valid);
        }
    }
}

fn answer<P: Protocol>(base: &mut Base<P>, waiter: Waiter) {
    match waiter {
        Waiter::Client(client) => base.clients.synced(client, &base.tree, &mut base.out),
        Waiter::Learner(conn) => {
            base.send(conn, QuorumPacket::new(PacketType::Sync, 0, None));
        }
        Waiter::Unknown(owner, session) => revalidated(base, owner, session, false),
    }
}

fn revalidated<P: Protocol>(base: &mut Base<P>, owner: Owner, session: SessionId, valid: bool) {
    match owner {
        Owner::Local => base.clients.revalidated(session, valid, &base.tree, &mut base.out),
        Owner::Learner(conn) => send_revalidated(base, conn, session, valid, -1),
    }
}

fn send_revalidated<P: Protocol>(
    base: &mut Base<P>,
    conn: ConnId,
    session: SessionId,
    valid: bool,
    zxid: i64,
) {
    let data = encode(|w| Revalidated { session, valid }.encode(w));
    base.send(conn, QuorumPacket::new(PacketType::Revalidate, zxid, Some(data)));
}
