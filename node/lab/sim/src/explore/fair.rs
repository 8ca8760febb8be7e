//! Quiet states, and the fair course that they are judged by.

use node_core::Maker;

use super::Bounds;
use super::checks::Finding;
use super::place::server;
use super::world::{Budget, World};
use crate::outcome::Rule;

/// Ticks within which a fair course ends with one leader: twenty peer time-outs and one initLimit, as in the
/// simulator.
const FAIR_TICKS: u32 = 250;

/// Transitions between two ticks. What goes on longer than that never ends.
const MAX_DELIVERIES: u32 = 10_000;

impl<F: Maker, const N: usize> World<F, N> {
    /// Judges a state in which nothing is bound to happen any more.
    pub(super) fn check_quiet(&self, bounds: &Bounds) -> Finding {
        if !self.model.has_votes() {
            // The oracle has stopped speaking. Nothing can be asked of members that nobody elects.
            return Ok(());
        }
        let begin = Budget::of(bounds);
        let Budget { crashes, timeouts, losses, .. } = self.budget;
        if (crashes, timeouts, losses) == (begin.crashes, begin.timeouts, begin.losses)
            && self.voters.is_none()
        {
            self.check_best()?;
        }
        if self.agreed().is_some() {
            return Ok(());
        }
        self.clone().fair_course()
    }

    /// Without a fault all follow the best vote, and did not need a clock for it.
    fn check_best(&self) -> Finding {
        let best = server(self.ghost.best);
        match self.agreed() {
            Some(leader) if leader == self.ghost.best => Ok(()),
            Some(leader) => Err((
                Rule::Liveness,
                format!(
                    "without a fault server {} leads, though server {best} has the best vote",
                    server(leader)
                ),
            )),
            None => Err((
                Rule::Liveness,
                format!("without a fault server {best}, the best, is not followed by all"),
            )),
        }
    }

    /// Clocks run alike, everything sent arrives between two ticks.
    fn fair_course(mut self) -> Finding {
        self.pings = true;
        for _ in 0..FAIR_TICKS {
            for at in 0..N {
                self.tick(at)?;
            }
            self.deliver_all()?;
            if self.agreed().is_some() {
                return Ok(());
            }
        }
        let roles: Vec<String> = self.hosts.iter().map(|host| format!("{:?}", host.role)).collect();
        Err((Rule::Liveness, format!("a fair course elects nobody: {}", roles.join(", "))))
    }

    fn deliver_all(&mut self) -> Finding {
        let mut next = Vec::new();
        for _ in 0..MAX_DELIVERIES {
            next.clear();
            self.deliveries(&mut next);
            let Some(transition) = next.first() else { return Ok(()) };
            self.apply(*transition)?;
        }
        Err((Rule::Liveness, "messages beget messages without end".to_owned()))
    }
}
