//! Cuts: which links a partition takes, and in which order they go and come back.
//!
//! The shapes are Jepsen's (halves, isolation, ring, bridge, one way); that links are cut one by one and
//! healed in another order is FoundationDB's swizzle.

use super::nemesis::Undo;
use crate::network::{Block, HostIndex};
use crate::world::ensemble::wires::{Link, links_between};
use crate::world::{Chaos, Clockwork, Ensemble, Event, Oracle};
use harness_world::dice::{Chance, HALF};

/// One time in three.
const THIRD: Chance = Chance(3_333);

impl Chaos {
    pub(in crate::world) fn isolate(
        &mut self,
        clock: &mut Clockwork,
        ensemble: &mut Ensemble,
        oracle: &mut Oracle,
        host: HostIndex,
    ) {
        let links = ensemble.links_around(host);
        self.block_for_a_while(clock, ensemble, oracle, links);
    }

    /// Long enough for the others to elect, and then some time in which the old leader does not know it.
    pub(in crate::world) fn depose(
        &mut self,
        clock: &mut Clockwork,
        ensemble: &mut Ensemble,
        oracle: &mut Oracle,
    ) {
        let host = self.leader(ensemble);
        let life = ensemble.hosts[host].life;
        if !ensemble.pause(clock, oracle, host) {
            return;
        }
        let timeout_us = clock.drawn.peer_timeout_ms * 1000;
        let pause_us = self.fate.between(timeout_us, 4 * timeout_us);
        let after_us = self.fate.between(0, 2 * timeout_us);
        self.lasts(clock, Undo::Resume(host, life), pause_us);
        let links = ensemble.links_around(host);
        let block = self.any_block();
        clock.counters.partitions += 1;
        for (from, to) in &links {
            ensemble.block(clock, oracle, *from, *to, block);
        }
        self.lasts(clock, Undo::Unblock(links, block), pause_us + after_us);
    }

    /// Members of different sides do not reach each other.
    pub(in crate::world) fn partition(
        &mut self,
        clock: &mut Clockwork,
        ensemble: &mut Ensemble,
        oracle: &mut Oracle,
        sides: &[bool],
    ) {
        self.block_for_a_while(clock, ensemble, oracle, links_between(sides));
    }

    pub(in crate::world) fn one_way(
        &mut self,
        clock: &mut Clockwork,
        ensemble: &mut Ensemble,
        oracle: &mut Oracle,
    ) {
        let mut links = Vec::new();
        for from in 0..ensemble.hosts.len() {
            for to in 0..ensemble.hosts.len() {
                if from != to && self.fate.chance(THIRD) {
                    links.push((from, to));
                }
            }
        }
        self.block_for_a_while(clock, ensemble, oracle, links);
    }

    pub(in crate::world) fn ring(
        &mut self,
        clock: &mut Clockwork,
        ensemble: &mut Ensemble,
        oracle: &mut Oracle,
    ) {
        let circle = self.shuffled(clock, ensemble);
        clock.counters.rings += u64::from(circle.len() > 2);
        self.block_for_a_while(clock, ensemble, oracle, ring_of(&circle));
    }

    /// Half of the time the leader is in the smaller half, where the larger one knows it by hearsay alone.
    pub(in crate::world) fn bridge(
        &mut self,
        clock: &mut Clockwork,
        ensemble: &mut Ensemble,
        oracle: &mut Oracle,
    ) {
        let mut order = self.shuffled(clock, ensemble);
        if order.len() < 3 {
            return;
        }
        if self.fate.chance(HALF) {
            let leader = self.leader(ensemble);
            let place = order.iter().position(|host| *host == leader).unwrap_or(1);
            order.swap(1, place);
        }
        clock.counters.bridges += 1;
        self.block_for_a_while(clock, ensemble, oracle, bridge_of(&order));
    }

    pub(in crate::world) fn deaf_leader(
        &mut self,
        clock: &mut Clockwork,
        ensemble: &mut Ensemble,
        oracle: &mut Oracle,
    ) {
        let leader = self.leader(ensemble);
        clock.counters.deaf_leaders += u64::from(ensemble.hosts.len() > 1);
        let links = ensemble.links_around(leader).into_iter().filter(|(_, to)| *to == leader).collect();
        self.block_for_a_while(clock, ensemble, oracle, links);
    }

    pub(in crate::world) fn mute_leader(
        &mut self,
        clock: &mut Clockwork,
        ensemble: &mut Ensemble,
        oracle: &mut Oracle,
    ) {
        let leader = self.leader(ensemble);
        clock.counters.mute_leaders += u64::from(ensemble.hosts.len() > 1);
        let links = ensemble.links_around(leader).into_iter().filter(|(from, _)| *from == leader).collect();
        self.block_for_a_while(clock, ensemble, oracle, links);
    }

    /// Random pairs are cut one after the other, and healed one after the other in another order.
    pub(in crate::world) fn swizzle(&mut self, clock: &mut Clockwork, ensemble: &Ensemble) {
        let order = self.shuffled(clock, ensemble);
        let mut pairs = Vec::new();
        for (place, one) in order.iter().enumerate() {
            for other in &order[place + 1..] {
                if self.fate.chance(HALF) {
                    pairs.push((*one, *other));
                }
            }
        }
        let Ok(count) = u64::try_from(pairs.len()) else { return };
        if count == 0 {
            return;
        }
        let block = self.any_block();
        let gap_us = self.fate.around(clock.drawn.fault_us) / (2 * count) + 1;
        clock.counters.swizzles += 1;
        clock.world_line("swizzle", [count, gap_us], || format!("{block:?} {pairs:?}"));
        let mut left: Vec<u64> = (0..count).collect();
        for (turn, pair) in (0..count).zip(pairs) {
            let place = self.fate.index(left.len());
            let cut_us = turn * gap_us;
            let heal_us = (count + left.swap_remove(place)) * gap_us;
            clock.plan(cut_us, Event::Cut { pair, block, for_us: heal_us - cut_us });
        }
    }

    /// A pair loses sight of each other, both ways.
    pub(in crate::world) fn cut_sight(
        &mut self,
        clock: &mut Clockwork,
        ensemble: &mut Ensemble,
        oracle: &mut Oracle,
        (one, other): Link,
        block: Block,
        for_us: u64,
    ) {
        if !clock.in_chaos() {
            return;
        }
        let links = vec![(one, other), (other, one)];
        clock.counters.partitions += 1;
        clock.world_line("block", [u64::from(block == Block::Drop), 0], || format!("{block:?} {links:?}"));
        for (from, to) in &links {
            ensemble.block(clock, oracle, *from, *to, block);
        }
        self.lasts(clock, Undo::Unblock(links, block), for_us);
    }

    fn any_block(&mut self) -> Block {
        if self.fate.chance(HALF) { Block::Hold } else { Block::Drop }
    }

    /// All members that vote in a random order.
    fn shuffled(&mut self, clock: &Clockwork, ensemble: &Ensemble) -> Vec<HostIndex> {
        let mut left: Vec<HostIndex> = (0..ensemble.voters_at_most(clock)).collect();
        let mut order = Vec::new();
        while !left.is_empty() {
            let place = self.fate.index(left.len());
            order.push(left.swap_remove(place));
        }
        order
    }

    fn block_for_a_while(
        &mut self,
        clock: &mut Clockwork,
        ensemble: &mut Ensemble,
        oracle: &mut Oracle,
        links: Vec<Link>,
    ) {
        if links.is_empty() {
            return;
        }
        let block = self.any_block();
        let breaks = self.fate.chance(THIRD);
        clock.counters.partitions += 1;
        clock.world_line("block", [u64::from(block == Block::Drop), u64::from(breaks)], || {
            format!("{block:?} {links:?}{}", if breaks { ", connections break" } else { "" })
        });
        for (from, to) in &links {
            ensemble.block(clock, oracle, *from, *to, block);
            if breaks {
                ensemble.cut_pair(clock, oracle, *from, *to);
                ensemble.cut_channel(clock, *from, *to);
            }
        }
        self.lasts_a_while(clock, Undo::Unblock(links, block));
    }

    /// For less than a peer's time-out a leader hears one follower alone, and that one comes back meanwhile
    /// on a connection beside the old one: what it acknowledged on both must count once.
    fn leave_alone_with(
        &mut self,
        clock: &mut Clockwork,
        ensemble: &mut Ensemble,
        oracle: &mut Oracle,
        leader: HostIndex,
        follower: HostIndex,
    ) {
        let timeout_us = clock.drawn.peer_timeout_ms * 1000;
        let others = (0..ensemble.hosts.len()).filter(|host| ![leader, follower].contains(host));
        let links: Vec<Link> = others.flat_map(|host| [(leader, host), (host, leader)]).collect();
        for (from, to) in &links {
            ensemble.block(clock, oracle, *from, *to, Block::Hold);
        }
        let breaks_us = self.fate.between(1, timeout_us / 3);
        self.lasts(clock, Undo::HalfOpen(leader, follower), breaks_us);
        self.lasts(clock, Undo::Unblock(links, Block::Hold), timeout_us - timeout_us / 5);
    }

    pub(in crate::world) fn reset(
        &mut self,
        clock: &mut Clockwork,
        ensemble: &mut Ensemble,
        oracle: &mut Oracle,
    ) {
        let (one, other) = (self.anyone(ensemble), self.anyone(ensemble));
        if one == other {
            return;
        }
        clock.counters.resets += 1;
        clock.world_line("reset", [0, 0], || format!("{one} {other}"));
        if clock.drawn.rare.half_open {
            // Mostly it is the leader that goes on with what is dead.
            let leader = self.leader(ensemble);
            let one = if other == leader { one } else { leader };
            if one == leader && self.fate.chance(HALF) {
                self.leave_alone_with(clock, ensemble, oracle, leader, other);
            } else {
                ensemble.half_open(clock, oracle, one, other);
            }
            return;
        }
        ensemble.cut_pair(clock, oracle, one, other);
        if self.fate.chance(HALF) {
            ensemble.cut_channel(clock, one, other);
        }
    }
}

/// What to cut so that each member of a circle hears a majority of its neighbours, no two the same.
///
/// Three members that hear two each can only do so one way round: each hears the one before it.
fn ring_of(circle: &[HostIndex]) -> Vec<Link> {
    let len = circle.len();
    if len == 3 {
        return (0..len).map(|place| (circle[(place + 1) % len], circle[place])).collect();
    }
    let reach = (len / 2).div_ceil(2);
    let mut links = Vec::new();
    for from in 0..len {
        for to in 0..len {
            let ahead = (to + len - from) % len;
            if ahead.min(len - ahead) > reach {
                links.push((circle[from], circle[to]));
            }
        }
    }
    links
}

/// What to cut so that the first member alone reaches both halves of the others. The smaller half comes
/// first.
fn bridge_of(order: &[HostIndex]) -> Vec<Link> {
    let (left, right) = order[1..].split_at((order.len() - 1) / 2);
    let mut links = Vec::new();
    for one in left {
        links.extend(right.iter().flat_map(|other| [(*one, *other), (*other, *one)]));
    }
    links
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Whom each member hears, itself included.
    fn heard(members: usize, cut: &[Link]) -> Vec<BTreeSet<HostIndex>> {
        (0..members)
            .map(|to| (0..members).filter(|from| from == &to || !cut.contains(&(*from, to))).collect())
            .collect()
    }

    #[test]
    fn in_a_ring_each_member_hears_a_majority_and_no_two_the_same() {
        for members in 3..=7 {
            let circle: Vec<HostIndex> = (0..members).rev().collect();
            let heard = heard(members, &ring_of(&circle));
            assert!(heard.iter().all(|some| some.len() > members / 2 && some.len() < members), "{members}");
            assert_eq!(heard.iter().collect::<BTreeSet<_>>().len(), members, "{members}");
        }
    }

    #[test]
    fn a_bridge_hears_everybody_and_nobody_else_does() {
        for members in 3..=7 {
            let order: Vec<HostIndex> = (0..members).collect();
            let heard = heard(members, &bridge_of(&order));
            let all = heard.iter().filter(|some| some.len() == members).count();
            assert_eq!(all, 1, "{members}");
            assert_eq!(heard[0].len(), members, "the first one is the bridge");
        }
    }
}
