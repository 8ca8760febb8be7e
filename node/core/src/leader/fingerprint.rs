//! What of a leader can decide what happens next: see [`Member::fingerprint`](crate::Member::fingerprint).

use std::hash::{Hash, Hasher};
use std::time::Duration;

use super::{Leader, Peer};
use crate::fingerprint::until;

impl Leader {
    /// Mixes in what it holds, times as seen from `at`.
    pub(crate) fn fingerprint(&self, at: Duration, state: &mut impl Hasher) {
        let Self {
            phase,
            slowest,
            epoch,
            deadline,
            peers,
            promised,
            stored,
            durable,
            initial,
            beginning,
            last_proposed,
            next_ping,
            // Decides nothing while no node goes by itself, as in every world that is explored.
            next_reaping: _,
            reaped_to: _,
            outstanding,
            // Follows from the journal.
            ahead: _,
            sessions,
            rounds,
        } = self;
        (phase, slowest, epoch, until(*deadline, at), promised, stored).hash(state);
        state.write_usize(peers.len());
        for (conn, peer) in peers {
            conn.hash(state);
            peer.fingerprint(at, state);
        }
        (durable, initial, beginning, last_proposed, until(*next_ping, at)).hash(state);
        outstanding.hash(state);
        sessions.fingerprint(at, state);
        rounds.hash(state);
    }
}

impl Peer {
    fn fingerprint(&self, at: Duration, state: &mut impl Hasher) {
        let Self {
            server,
            observes,
            dialect,
            held,
            progress,
            promised,
            acked,
            history,
            round,
            silence,
            patient_until,
        } = self;
        (server, observes, dialect, held, progress, promised, acked, history, round).hash(state);
        silence.fingerprint(at, state);
        until(*patient_until, at).hash(state);
    }
}
