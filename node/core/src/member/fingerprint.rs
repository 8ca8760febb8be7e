//! A member's state as a number: for exploration, which must know whether it has been in a state before.
//!
//! Two members with the same fingerprint, configuration and rules answer the same inputs with the same
//! effects. For that to hold as often as it can, whatever only counts the past is left out: moments are taken
//! relative to the member's own clock, and tickets relative to the last one that is durable. Each part lists
//! all of its fields, so that a new one is not forgotten.

use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};
use std::time::Duration;

use super::{Member, Parked, RoleState};
use crate::io::ConnId;
use crate::zab::Protocol;

fn waiting(parked: &BTreeMap<ConnId, Parked>, at: Duration, state: &mut impl Hasher) {
    for (conn, Parked { since, packets }) in parked {
        (conn, at.saturating_sub(*since), packets.len()).hash(state);
        for packet in packets {
            (packet.kind.code(), packet.zxid, &packet.data).hash(state);
        }
    }
}

impl<P: Protocol> Member<P> {
    /// Mixes in everything that can decide what this member does next.
    pub fn fingerprint(&self, state: &mut impl Hasher) {
        let Self { base, attention: _, election, role, looking_since, started, early } = self;
        let at = base.awake;
        started.hash(state);
        if base.config.clients.read_only_mode {
            at.saturating_sub(*looking_since).hash(state);
        }
        base.fingerprint(state);
        election.fingerprint(at, state);
        waiting(early, at, state);
        match role {
            RoleState::Looking { parked } => {
                state.write_u8(0);
                waiting(parked, at, state);
            }
            RoleState::Following(learner) => {
                state.write_u8(1);
                learner.fingerprint(at, state);
            }
            RoleState::Leading(leader) => {
                state.write_u8(2);
                leader.fingerprint(at, state);
            }
        }
    }

    /// The ticket that this member waits for, if it waits for its store at all: durability of anything before
    /// it changes nothing that could be seen from outside.
    pub fn awaited_ticket(&self) -> Option<u64> {
        self.base.awaited()
    }
}
