//! What must hold: the invariants inside, what is owed to members and clients, and the first violation.
//!
//! It looks and never acts: nothing that a member or a client does depends on it. So a world is the same
//! whether it is judged or not.

mod answers;
mod contenders;
mod disks;
mod history;
mod hypothetical;
mod membership;
mod patience;
mod probers;
mod progress;
mod sessions;
mod stages;
mod vote_storms;
mod watchers;
mod work;

use self::answers::Waits;
use self::contenders::Contenders;
use self::patience::Patience;
use self::progress::Progress;
use self::sessions::SessionEvidence;
use self::vote_storms::VoteStorms;

use crate::drawn::Drawn;
use crate::invariants::{Finding, Invariants};
use crate::outcome::{Rule, Violation};
use crate::world::Clockwork;

/// The judges of a world, and what they found.
pub(super) struct Oracle {
    /// The invariants: the properties of Zab.tla, durability, recovery.
    pub(super) invariants: Invariants,
    /// What is known of sessions.
    pub(super) session_evidence: SessionEvidence,
    /// Who is well, and since when.
    pub(super) progress: Progress,
    /// What leaders owe.
    pub(super) patience: Patience,
    /// Votes that must not come back.
    pub(super) vote_storms: VoteStorms,
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
            session_evidence: SessionEvidence::new(drawn.hosts(), drawn.everybody()),
            progress: Progress::new(drawn.hosts()),
            patience: Patience::new(drawn.hosts()),
            vote_storms: VoteStorms::default(),
            waits: Waits::default(),
            contenders: Contenders::default(),
            violation: None,
            election_us: None,
            full_epochs_then: 0,
        }
    }

    /// The first violation counts.
    pub(super) fn report(&mut self, clock: &mut Clockwork, rule: Rule, sentence: String) {
        if self.violation.is_none() {
            clock.world_line("violation", [0, 0], || format!("{}: {sentence}", rule.name()));
            self.violation = Some(Violation { rule, at_us: clock.now.0, sentence });
        }
    }

    /// The invariants follow what happened.
    ///
    /// Those of a planned world do not: its run is judged by its folder, and what they remember of every
    /// entry would be most of the memory of a long run.
    pub(super) fn inform(&mut self, clock: &Clockwork, what: impl FnOnce(&mut Invariants)) {
        if !clock.is_planned {
            what(&mut self.invariants);
        }
    }

    /// The invariants follow what happened, and say what promise it breaks.
    pub(super) fn judge(&mut self, clock: &mut Clockwork, what: impl FnOnce(&mut Invariants) -> Finding) {
        let mut finding = Ok(());
        self.inform(clock, |invariants| finding = what(invariants));
        self.found(clock, finding);
    }

    /// What an invariant says of a step, if anybody asked for it.
    pub(super) fn found(&mut self, clock: &mut Clockwork, finding: Finding) {
        if let Err((rule, sentence)) = finding
            && clock.options.look_inside
        {
            self.report(clock, rule, sentence);
        }
    }
}
