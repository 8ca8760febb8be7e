//! Leadership: at most one established leader per epoch.

use node_wire::ids::{Epoch, ServerId};

use super::{Finding, Judge};
use crate::outcome::Rule;

impl Judge {
    pub(super) fn check_leader(&mut self, leader: ServerId, epoch: Epoch) -> Finding {
        let known = *self.leaders.entry(epoch).or_insert(leader);
        if known == leader {
            return Ok(());
        }
        Err((
            Rule::LeaderPerEpoch,
            format!("epoch {} was established by leader {} and by leader {}", epoch.0, known.0, leader.0),
        ))
    }
}
