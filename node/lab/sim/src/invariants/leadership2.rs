//! Leadership2 (Zab.tla): an epoch has one leader for ever, however often its members change.

use node_wire::ids::{Epoch, ServerId};

use super::{Finding, Invariants};
use crate::outcome::Rule;

impl Invariants {
    /// Somebody leads an epoch, or says who does.
    pub(super) fn check_leadership2(&mut self, leader: ServerId, epoch: Epoch) -> Finding {
        let known = *self.leaders.entry(epoch).or_insert(leader);
        if known == leader {
            return Ok(());
        }
        Err((
            Rule::Leadership2,
            format!("epoch {} was led by server {} and by server {}", epoch.0, known.0, leader.0),
        ))
    }
}
