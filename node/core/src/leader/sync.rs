//! How a learner is brought to the leader's history.
//!
//! The learner says its last zxid `p`; the leader's journal runs from `base` (a committed zxid) to `last`.
//!
//! - `p` is in the journal, or is `base`: DIFF, the entries after it.
//! - `p` lies at or after `base` but is not in the journal: TRUNC to the journal's last entry before `p`,
//!   then as above. The learner has that entry `q`. For an entry of epoch e is only logged after e was
//!   established, and then every later leader's history contains the one that e began with. If `q` is of the
//!   same epoch as `p`, both logs hold that epoch's proposals in order and without gaps up to `q`. If it is
//!   of an older one, it is part of the history that `p`'s epoch began with, which the learner took over
//!   whole.
//! - `p` is the beginning of an epoch, which is no transaction: a Java member says so when it took over a
//!   snapshot while nothing had been written in that epoch. It has what the epoch began with: DIFF, the
//!   entries after it.
//! - `p` lies before `base`: SNAP, the tree and the entries behind it. Nothing in the learner's log is then
//!   after the tree's zxid, so that the tree may replace all of it.

use node_wire::ids::{ServerId, Zxid};
use node_wire::quorum::{PacketType, QuorumPacket};

use super::{Leader, Progress};
use crate::base::Base;
use crate::io::{ConnId, Effect, Event, SyncKind};
use crate::silence::Silence;
use crate::zab::Protocol;

impl Leader {
    /// Sends a learner the history and NEWLEADER. From here on it gets every proposal and commit.
    pub(super) fn synchronize<P: Protocol>(&mut self, base: &mut Base<P>, conn: ConnId) {
        let Some(epoch) = self.epoch else { return };
        let Some(peer) = self.peers.get_mut(&conn) else { return };
        let Progress::Promised { last } = peer.progress else { return };
        peer.progress = Progress::Synchronizing;
        peer.history = base.journal.last();
        peer.silence = Silence::new(base.awake);
        let learner = peer.server.unwrap_or(ServerId(0));
        let (how, from) = match base.journal.floor(last) {
            Some(floor) if floor == last || last.counter() == 0 => (SyncKind::Diff, floor),
            Some(floor) => (SyncKind::Trunc, floor),
            None => (SyncKind::Snap, base.tree.zxid()),
        };
        match how {
            SyncKind::Diff => send(base, conn, PacketType::Diff, base.journal.last()),
            SyncKind::Trunc => send(base, conn, PacketType::Trunc, from),
            SyncKind::Snap => {
                peer.patient_until = base.awake + base.config.init_timeout();
                send(base, conn, PacketType::Snap, from);
                let snapshot = base.tree.snapshot();
                base.emit(Effect::SendImage { conn, snapshot });
            }
        }
        base.tell(Event::Synchronizing { learner, how });
        // What the epoch began with counts as committed: it is, as soon as the epoch is established, and the
        // learner applies nothing before it hears that.
        let committed = self.initial.max(base.journal.applied());
        let observes = peer.observes;
        for entry in base.journal.after(from) {
            let zxid = entry.zxid();
            if observes && zxid > committed {
                // It will be informed of the rest.
                break;
            }
            base.out.push(Effect::Send {
                conn,
                packet: QuorumPacket::new(PacketType::Proposal, zxid.to_wire(), Some(entry.bytes.clone())),
            });
            if zxid <= committed {
                base.out.push(Effect::Send {
                    conn,
                    packet: QuorumPacket::new(PacketType::Commit, zxid.to_wire(), None),
                });
            }
        }
        let offer = self.offer(base).map(|membership| membership.to_bytes());
        base.send(conn, QuorumPacket::new(PacketType::NewLeader, Zxid::new(epoch, 0).to_wire(), offer));
    }
}

fn send<P: Protocol>(base: &mut Base<P>, conn: ConnId, kind: PacketType, zxid: Zxid) {
    base.send(conn, QuorumPacket::new(kind, zxid.to_wire(), None));
}
