//! Who votes in which slot.
//!
//! Who votes is a command of the log, as all that it decides. A change that is chosen in a slot counts
//! *alpha* slots further on (Lamport, "Paxos Made Simple", section 3). So a leader proposes in a slot when it
//! knows all that is chosen alpha slots before it, never in more than alpha at a time, and not before a
//! quorum of those who vote *there* has promised.
//!
//! The members are the value of the register [`MEMBERS`]: each digit is the id of one. Until it is written
//! all processes vote. A process that does not may still lead, and learn.

use std::collections::{BTreeMap, BTreeSet};

use harness_protocols::Id;

use crate::messages::{Command, Slot};
use crate::register::Action;

/// The register that holds the members.
pub const MEMBERS: u64 = 99;

/// All changes of the members that are chosen, by their slots.
#[derive(Clone, Debug, Default, Hash)]
pub struct Voters(BTreeMap<Slot, BTreeSet<Id>>);

impl Voters {
    /// A command is chosen in a slot.
    pub fn chosen(&mut self, slot: Slot, command: &Command) {
        let Command::Client(_, Action::Write(MEMBERS, digits)) = command else { return };
        let digits = digits.to_string().bytes().map(|digit| Id(digit.wrapping_sub(b'0'))).collect();
        self.0.insert(slot, digits);
    }

    /// Whether these are a quorum in a slot: more than half of its voters, with `half` half of them.
    pub fn are_quorum<'a>(
        &self,
        (slot, alpha): (Slot, Slot),
        who: impl Iterator<Item = &'a Id>,
        all: u8,
        half: bool,
    ) -> bool {
        let change = self.0.range(..=slot.saturating_sub(alpha)).next_back();
        let (voters, votes) = match change {
            Some((_, voters)) => (voters.len(), who.filter(|id| voters.contains(id)).count()),
            None => (usize::from(all), who.count()),
        };
        votes >= if half { (voters / 2).max(1) } else { voters / 2 + 1 }
    }
}
