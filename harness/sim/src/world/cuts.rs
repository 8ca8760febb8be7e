//! Cuts: which links a partition takes, and in which order they go and come back.
//!
//! The shapes are Jepsen's (halves, isolation, ring, bridge, one way); that links are cut one by one and healed in
//! another order is FoundationDB's swizzle.

use node_core::Factory;

use super::nemesis::Undo;
use super::{Event, World};
use crate::dice::{Chance, HALF};
use crate::network::{Block, HostIndex};

/// One time in three.
const THIRD: Chance = Chance(3_333);

/// A direction between two members.
type Link = (HostIndex, HostIndex);

impl<F: Factory> World<F> {
    pub(super) fn isolate(&mut self, host: HostIndex) {
        let links = self.links_around(host);
        self.block_for_a_while(links);
    }

    fn links_around(&self, host: HostIndex) -> Vec<Link> {
        let sides: Vec<bool> = (0..self.hosts.len()).map(|other| other == host).collect();
        links_between(&sides)
    }

    /// Long enough for the others to elect, and then some time in which the old leader does not know it.
    pub(super) fn depose(&mut self) {
        let host = self.leader();
        let life = self.hosts[host].life;
        if !self.pause(host) {
            return;
        }
        let timeout_us = self.drawn.peer_timeout_ms * 1000;
        let pause_us = self.fate.between(timeout_us, 4 * timeout_us);
        let after_us = self.fate.between(0, 2 * timeout_us);
        self.lasts(Undo::Resume(host, life), pause_us);
        let links = self.links_around(host);
        let block = self.any_block();
        self.counters.partitions += 1;
        for (from, to) in &links {
            self.block(*from, *to, block);
        }
        self.lasts(Undo::Unblock(links, block), pause_us + after_us);
    }

    /// Members of different sides do not reach each other.
    pub(super) fn partition(&mut self, sides: &[bool]) {
        self.block_for_a_while(links_between(sides));
    }

    pub(super) fn one_way(&mut self) {
        let mut links = Vec::new();
        for from in 0..self.hosts.len() {
            for to in 0..self.hosts.len() {
                if from != to && self.fate.chance(THIRD) {
                    links.push((from, to));
                }
            }
        }
        self.block_for_a_while(links);
    }

    pub(super) fn ring(&mut self) {
        let circle = self.shuffled();
        self.counters.rings += u64::from(circle.len() > 2);
        self.block_for_a_while(ring_of(&circle));
    }

    /// Half of the time the leader is in the smaller half, where the larger one knows it by hearsay alone.
    pub(super) fn bridge(&mut self) {
        let mut order = self.shuffled();
        if order.len() < 3 {
            return;
        }
        if self.fate.chance(HALF) {
            let leader = self.leader();
            let place = order.iter().position(|host| *host == leader).unwrap_or(1);
            order.swap(1, place);
        }
        self.counters.bridges += 1;
        self.block_for_a_while(bridge_of(&order));
    }

    pub(super) fn deaf_leader(&mut self) {
        let leader = self.leader();
        self.counters.deaf_leaders += u64::from(self.hosts.len() > 1);
        let links = self.links_around(leader).into_iter().filter(|(_, to)| *to == leader).collect();
        self.block_for_a_while(links);
    }

    pub(super) fn mute_leader(&mut self) {
        let leader = self.leader();
        self.counters.mute_leaders += u64::from(self.hosts.len() > 1);
        let links = self.links_around(leader).into_iter().filter(|(from, _)| *from == leader).collect();
        self.block_for_a_while(links);
    }

    /// Random pairs are cut one after the other, and healed one after the other in another order.
    pub(super) fn swizzle(&mut self) {
        let order = self.shuffled();
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
        let gap_us = self.fate.around(self.drawn.fault_us) / (2 * count) + 1;
        self.counters.swizzles += 1;
        self.world_line("swizzle", [count, gap_us], || format!("{block:?} {pairs:?}"));
        let mut left: Vec<u64> = (0..count).collect();
        for (turn, pair) in (0..count).zip(pairs) {
            let place = self.fate.index(left.len());
            let cut_us = turn * gap_us;
            let heal_us = (count + left.swap_remove(place)) * gap_us;
            self.plan(cut_us, Event::Cut { pair, block, for_us: heal_us - cut_us });
        }
    }

    /// A pair loses sight of each other, both ways.
    pub(super) fn cut_sight(&mut self, (one, other): Link, block: Block, for_us: u64) {
        if !self.in_chaos() {
            return;
        }
        let links = vec![(one, other), (other, one)];
        self.counters.partitions += 1;
        self.world_line("block", [u64::from(block == Block::Drop), 0], || format!("{block:?} {links:?}"));
        for (from, to) in &links {
            self.block(*from, *to, block);
        }
        self.lasts(Undo::Unblock(links, block), for_us);
    }

    fn any_block(&mut self) -> Block {
        if self.fate.chance(HALF) { Block::Hold } else { Block::Drop }
    }

    /// All members that vote in a random order.
    fn shuffled(&mut self) -> Vec<HostIndex> {
        let mut left: Vec<HostIndex> = (0..self.voters_at_most()).collect();
        let mut order = Vec::new();
        while !left.is_empty() {
            let place = self.fate.index(left.len());
            order.push(left.swap_remove(place));
        }
        order
    }

    fn block_for_a_while(&mut self, links: Vec<Link>) {
        if links.is_empty() {
            return;
        }
        let block = self.any_block();
        let breaks = self.fate.chance(THIRD);
        self.counters.partitions += 1;
        self.world_line("block", [u64::from(block == Block::Drop), u64::from(breaks)], || {
            format!("{block:?} {links:?}{}", if breaks { ", connections break" } else { "" })
        });
        for (from, to) in &links {
            self.block(*from, *to, block);
            if breaks {
                self.cut_pair(*from, *to);
                self.cut_channel(*from, *to);
            }
        }
        self.lasts_a_while(Undo::Unblock(links, block));
    }

    /// For less than a peer's time-out a leader hears one follower alone, and that one comes back meanwhile on a connection
    /// beside the old one: what it acknowledged on both must count once.
    fn leave_alone_with(&mut self, leader: HostIndex, follower: HostIndex) {
        let timeout_us = self.drawn.peer_timeout_ms * 1000;
        let others = (0..self.hosts.len()).filter(|host| ![leader, follower].contains(host));
        let links: Vec<Link> = others.flat_map(|host| [(leader, host), (host, leader)]).collect();
        for (from, to) in &links {
            self.block(*from, *to, Block::Hold);
        }
        let breaks_us = self.fate.between(1, timeout_us / 3);
        self.lasts(Undo::HalfOpen(leader, follower), breaks_us);
        self.lasts(Undo::Unblock(links, Block::Hold), timeout_us - timeout_us / 5);
    }

    pub(super) fn reset(&mut self) {
        let (one, other) = (self.anyone(), self.anyone());
        if one == other {
            return;
        }
        self.counters.resets += 1;
        self.world_line("reset", [0, 0], || format!("{one} {other}"));
        if self.drawn.rare.half_open {
            // Mostly it is the leader that goes on with what is dead.
            let leader = self.leader();
            let one = if other == leader { one } else { leader };
            if one == leader && self.fate.chance(HALF) {
                self.leave_alone_with(leader, other);
            } else {
                self.half_open(one, other);
            }
            return;
        }
        self.cut_pair(one, other);
        if self.fate.chance(HALF) {
            self.cut_channel(one, other);
        }
    }
}

/// Every direction from one side to the other.
fn links_between(sides: &[bool]) -> Vec<Link> {
    let mut links = Vec::new();
    for (from, from_side) in sides.iter().enumerate() {
        links.extend((0..sides.len()).filter(|to| sides[*to] != *from_side).map(|to| (from, to)));
    }
    links
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

/// What to cut so that the first member alone reaches both halves of the others. The smaller half comes first.
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
