//! What can be broken in a planned world.
//!
//! Members exchange messages and have no connections. So a direction that rejects lets as little pass as one
//! that is silent: what arrives there is lost.

use std::time::Duration;

use harness_core::condition::{Condition, Delay, LinkCondition, Quality};
use harness_core::cut::{Pair, Severing};
use harness_world::links::{Block, HostIndex, Links, Slower};
use runs::events::Event;

use super::{Planned, id};
use crate::protocol::{Id, Protocol};

/// Whether such a world has conditions of this quality.
pub(super) fn can(quality: Quality) -> Result<(), String> {
    match quality {
        Quality::Passage | Quality::Delay | Quality::Process => Ok(()),
        Quality::Clock => Err("members of a protocol read no wall clock".to_owned()),
        Quality::Disk => Err("its disks fail only as a seed of `harness sim --protocol` draws it".to_owned()),
    }
}

/// By how much a link is slower.
fn slower(by: Delay) -> Slower {
    let whole = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
    Slower { latency_us: whole(by.latency), jitter_us: whole(by.jitter) }
}

/// What a direction is like, as far as it lets anything pass.
pub(super) fn link(links: &Links, from: HostIndex, to: HostIndex) -> LinkCondition {
    let Slower { latency_us, jitter_us } = links.slower(from, to);
    let delay =
        Delay { latency: Duration::from_micros(latency_us), jitter: Duration::from_micros(jitter_us) };
    LinkCondition { delay, ..LinkCondition::default() }
}

fn block(how: Severing) -> Block {
    match how {
        Severing::Silence => Block::Drop,
        Severing::Reject => Block::Refuse,
    }
}

impl<P: Protocol> Planned<P> {
    /// The places of a direction's members.
    pub(super) fn place(&self, pair: Pair) -> Option<(HostIndex, HostIndex)> {
        let place = |id: Id| (id.0 > 0 && id.0 <= self.ensemble.members()).then(|| id.place());
        place(id(pair.from)).zip(place(id(pair.to)))
    }

    /// From now on this holds.
    pub(super) fn imposed(&mut self, condition: Condition) {
        match condition {
            Condition::Link(pair, link) => self.change_link(pair, link),
            Condition::Ended { member, loses_unsynced } => {
                let kept = if loses_unsynced { 0 } else { usize::MAX };
                self.end(id(member), kept, "killed by a signal".to_owned());
            }
            Condition::Stopped(member) => self.stop(id(member)),
            // It is never told one that it lacks.
            Condition::Clock { .. } => {}
        }
    }

    /// It holds no more.
    pub(super) fn lifted(&mut self, condition: Condition) {
        match condition {
            Condition::Link(pair, link) => self.mend_link(pair, link),
            Condition::Ended { member, .. } => self.start_member(id(member)),
            Condition::Stopped(member) => self.go_on(id(member)),
            Condition::Clock { .. } => {}
        }
    }

    fn change_link(&mut self, pair: Pair, link: LinkCondition) {
        let Some((from, to)) = self.place(pair) else { return };
        let links = &mut self.ensemble.links;
        if let Some(how) = link.severed {
            links.block(from, to, block(how));
        }
        if !link.delay.is_none() {
            links.keep_delays();
            links.slow(from, to, slower(link.delay));
        }
    }

    fn mend_link(&mut self, pair: Pair, link: LinkCondition) {
        let Some((from, to)) = self.place(pair) else { return };
        let links = &mut self.ensemble.links;
        if let Some(how) = link.severed {
            links.unblock(from, to, block(how));
        }
        if !link.delay.is_none() {
            links.quicken(from, to, slower(link.delay));
            if !links.are_slow() {
                links.keep_delays();
            }
        }
    }

    fn stop(&mut self, id: Id) {
        if !self.runs(id) {
            return;
        }
        self.pauses[id.place()] += 1;
        if !self.ensemble.is_paused(id) {
            self.ensemble.pause(id);
            self.note(id, Event::Paused);
        }
    }

    fn go_on(&mut self, id: Id) {
        let Some(pauses) = self.pauses.get_mut(id.place()) else { return };
        *pauses = pauses.saturating_sub(1);
        if *pauses == 0 && self.ensemble.is_paused(id) {
            self.ensemble.resume(id);
            self.note(id, Event::Resumed);
        }
    }
}
