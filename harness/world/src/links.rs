//! Links: a direction between two machines each, and how it fails.
//!
//! A link can be *held*, as by a process that stands between: what is sent waits, and connecting still
//! succeeds. Or *dropped*, as by a packet filter: what is sent waits for retransmission, and connecting
//! fails. Or it *refuses*: connecting is answered with a reset. Faults overlap, so each is a count. And a
//! link can be *slow*: each thing that is sent takes longer by what all such faults add.
//!
//! This is state without time: the world decides when things arrive.

use std::collections::VecDeque;

use crate::dice::Dice;

/// A machine's place in the world.
pub type HostIndex = usize;

/// How a link fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Block {
    /// What is sent waits; connecting succeeds.
    Hold,
    /// What is sent waits; connecting fails.
    Drop,
    /// Connecting is answered with a reset. What stood before is for the world to break.
    Refuse,
}

/// By how much a link is slower than usual, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Slower {
    /// Always.
    pub latency_us: u64,
    /// By up to so much more.
    pub jitter_us: u64,
}

/// So many delays are kept of a direction, the newest.
const MOST_DELAYS: usize = 1024;

#[derive(Clone, Copy, Debug, Default)]
struct Link {
    delay_us: u64,
    slower: Slower,
    held: u32,
    dropped: u32,
    refused: u32,
    /// What has arrived.
    delivered: u64,
}

/// Every direction between two members.
#[derive(Clone, Debug)]
pub struct Links {
    members: usize,
    links: Vec<Link>,
    /// How long what was sent took, by direction, if somebody wants to know.
    delays: Option<Vec<VecDeque<u64>>>,
}

impl Links {
    /// Open links with delays drawn by the caller, one for each direction.
    pub fn new(members: usize, mut delay_us: impl FnMut() -> u64) -> Self {
        let links =
            (0..members * members).map(|_| Link { delay_us: delay_us(), ..Link::default() }).collect();
        Self { members, links, delays: None }
    }

    fn at(&self, from: HostIndex, to: HostIndex) -> &Link {
        &self.links[from * self.members + to]
    }

    /// The usual delay of a direction.
    pub fn usual_us(&self, from: HostIndex, to: HostIndex) -> u64 {
        self.at(from, to).delay_us
    }

    /// By how much what is sent now takes longer than usual. Without jitter nothing is drawn.
    pub fn added_us(&self, from: HostIndex, to: HostIndex, dice: &mut Dice) -> u64 {
        let Slower { latency_us, jitter_us } = self.slower(from, to);
        let jitter = if jitter_us == 0 { 0 } else { dice.between(0, jitter_us) };
        latency_us.saturating_add(jitter)
    }

    /// By how much a direction is slower than usual.
    pub fn slower(&self, from: HostIndex, to: HostIndex) -> Slower {
        self.at(from, to).slower
    }

    /// Makes a direction slower by so much.
    pub fn slow(&mut self, from: HostIndex, to: HostIndex, by: Slower) {
        let slower = &mut self.links[from * self.members + to].slower;
        slower.latency_us = slower.latency_us.saturating_add(by.latency_us);
        slower.jitter_us = slower.jitter_us.saturating_add(by.jitter_us);
    }

    /// Takes that away again, once.
    pub fn quicken(&mut self, from: HostIndex, to: HostIndex, by: Slower) {
        let slower = &mut self.links[from * self.members + to].slower;
        slower.latency_us = slower.latency_us.saturating_sub(by.latency_us);
        slower.jitter_us = slower.jitter_us.saturating_sub(by.jitter_us);
    }

    /// Whether any direction is slower than usual.
    pub fn are_slow(&self) -> bool {
        self.links.iter().any(|link| link.slower != Slower::default())
    }

    /// Keeps from now on how long things take, and forgets what was kept.
    pub fn keep_delays(&mut self) {
        self.delays = Some(vec![VecDeque::new(); self.links.len()]);
    }

    /// Something was sent that arrives after so long.
    pub fn note_delay(&mut self, from: HostIndex, to: HostIndex, took_us: u64) {
        let Some(delays) = &mut self.delays else { return };
        let delays = &mut delays[from * self.members + to];
        if delays.len() == MOST_DELAYS {
            delays.pop_front();
        }
        delays.push_back(took_us);
    }

    /// How long the newest of what was sent took, as far as it was kept.
    pub fn delays(&self, from: HostIndex, to: HostIndex) -> Vec<u64> {
        let kept = self.delays.as_ref().map(|delays| &delays[from * self.members + to]);
        kept.into_iter().flatten().copied().collect()
    }

    /// True when what was sent arrives.
    pub fn passes(&self, from: HostIndex, to: HostIndex) -> bool {
        let link = self.at(from, to);
        link.held == 0 && link.dropped == 0 && link.refused == 0
    }

    /// True when a connection is answered with a reset.
    pub fn refuses(&self, from: HostIndex, to: HostIndex) -> bool {
        self.at(from, to).refused > 0 || self.at(to, from).refused > 0
    }

    /// Counts something that arrived.
    pub fn count(&mut self, from: HostIndex, to: HostIndex) {
        self.links[from * self.members + to].delivered += 1;
    }

    /// How much has arrived.
    pub fn delivered(&self, from: HostIndex, to: HostIndex) -> u64 {
        self.at(from, to).delivered
    }

    /// True when a connection can be opened: its handshake crosses both directions.
    pub fn dials(&self, from: HostIndex, to: HostIndex) -> bool {
        self.at(from, to).dropped == 0 && self.at(to, from).dropped == 0 && !self.refuses(from, to)
    }

    /// Adds a fault to a direction.
    pub fn block(&mut self, from: HostIndex, to: HostIndex, block: Block) {
        let link = &mut self.links[from * self.members + to];
        match block {
            Block::Hold => link.held += 1,
            Block::Drop => link.dropped += 1,
            Block::Refuse => link.refused += 1,
        }
    }

    /// Takes a fault from a direction. True when the direction passes again.
    pub fn unblock(&mut self, from: HostIndex, to: HostIndex, block: Block) -> bool {
        let link = &mut self.links[from * self.members + to];
        let count = match block {
            Block::Hold => &mut link.held,
            Block::Drop => &mut link.dropped,
            Block::Refuse => &mut link.refused,
        };
        *count = count.checked_sub(1).expect("a block is taken away once");
        self.passes(from, to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_makes_a_link_slow_adds_up_and_is_taken_away_once() {
        let mut links = Links::new(2, || 5);
        let by = |latency_us, jitter_us| Slower { latency_us, jitter_us };
        links.slow(0, 1, by(100, 7));
        links.slow(0, 1, by(50, 0));
        let mut dice = Dice::new(0);
        assert!((150..=157).contains(&links.added_us(0, 1, &mut dice)));
        assert_eq!((links.usual_us(0, 1), links.added_us(1, 0, &mut dice)), (5, 0));
        links.quicken(0, 1, by(100, 7));
        assert!(links.are_slow());
        assert_eq!(links.slower(0, 1), by(50, 0));
        links.note_delay(0, 1, 9);
        assert!(links.delays(0, 1).is_empty(), "nobody wants to know");
        links.keep_delays();
        links.note_delay(0, 1, 9);
        assert_eq!((links.delays(0, 1), links.delays(1, 0)), (vec![9], vec![]));
        links.quicken(0, 1, by(50, 0));
        assert!(!links.are_slow());
    }

    #[test]
    fn a_held_link_still_lets_a_dial_through_and_a_dropped_one_does_not() {
        let mut links = Links::new(2, || 5);
        links.block(0, 1, Block::Hold);
        assert!(!links.passes(0, 1));
        assert!(links.dials(0, 1) && links.dials(1, 0));
        links.block(0, 1, Block::Drop);
        assert!(!links.dials(1, 0), "the handshake needs both directions");
        assert!(!links.unblock(0, 1, Block::Hold));
        assert!(links.unblock(0, 1, Block::Drop));
    }
}
