//! Links: a direction between two machines each, and how it fails.
//!
//! A link can be *held*, as by a process that stands between: what is sent waits, and connecting still
//! succeeds. Or *dropped*, as by a packet filter: what is sent waits for retransmission, and connecting
//! fails. Or it *refuses*: connecting is answered with a reset. Faults overlap, so each is a count.
//!
//! This is state without time: the world decides when things arrive.

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

#[derive(Clone, Copy, Debug, Default)]
struct Link {
    delay_us: u64,
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
}

impl Links {
    /// Open links with delays drawn by the caller, one for each direction.
    pub fn new(members: usize, mut delay_us: impl FnMut() -> u64) -> Self {
        let links =
            (0..members * members).map(|_| Link { delay_us: delay_us(), ..Link::default() }).collect();
        Self { members, links }
    }

    fn at(&self, from: HostIndex, to: HostIndex) -> &Link {
        &self.links[from * self.members + to]
    }

    /// The usual delay of a direction.
    pub fn delay_us(&self, from: HostIndex, to: HostIndex) -> u64 {
        self.at(from, to).delay_us
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
