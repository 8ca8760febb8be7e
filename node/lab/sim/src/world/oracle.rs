//! What must hold: the invariants inside, what is owed to members and clients, and the first violation.
//!
//! It looks and never acts: nothing that a member or a client does depends on it. So a world is the same
//! whether it is judged or not.

use super::answers::Waits;
use super::contenders::Contenders;
use super::echoes::Echoes;
use super::patience::Patience;
use super::progress::Progress;
use super::sessions::Ears;
use crate::drawn::Drawn;
use crate::invariants::Invariants;
use crate::outcome::Violation;

/// The judges of a world, and what they found.
pub(super) struct Oracle {
    /// The invariants: the properties of Zab.tla, durability, recovery.
    pub(super) invariants: Invariants,
    /// What is known of sessions.
    pub(super) ears: Ears,
    /// Who is well, and since when.
    pub(super) progress: Progress,
    /// What leaders owe.
    pub(super) patience: Patience,
    /// Votes that must not come back.
    pub(super) echoes: Echoes,
    /// Answers that are due.
    pub(super) waits: Waits,
    /// What is known of those who stand in line.
    pub(super) contenders: Contenders,
    /// The first violation.
    pub(super) violation: Option<Violation>,
    /// From healing until all followed one leader.
    pub(super) election_us: Option<u64>,
    /// Epochs that had ended by their number of transactions when the present stage began.
    pub(super) full_epochs_then: u64,
}

impl Oracle {
    /// Nothing was seen yet.
    pub(super) fn new(drawn: &Drawn) -> Self {
        Self {
            invariants: Invariants::of(drawn.members, drawn.observers)
                .with_local_sessions(drawn.local)
                .with_lists(!drawn.changes),
            ears: Ears::new(drawn.hosts(), drawn.everybody()),
            progress: Progress::new(drawn.hosts()),
            patience: Patience::new(drawn.hosts()),
            echoes: Echoes::default(),
            waits: Waits::default(),
            contenders: Contenders::default(),
            violation: None,
            election_us: None,
            full_epochs_then: 0,
        }
    }
}
