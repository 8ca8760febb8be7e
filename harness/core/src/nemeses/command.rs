//! What the nemeses have a driver do.

use runs::clock::RunNs;
use runs::faults::{FaultDetail, FaultPhase, FaultTransition};
use runs::member::MemberId;
use runs::views::Leader;

use crate::fault::in_force::InForce;
use crate::mechanism::Action;
use crate::proof::Proof;

/// A lane, by its number from zero.
pub type LaneId = usize;

/// What a driver is to do. Whatever has a lane is answered once
/// ([`Nemeses::answered`](super::Nemeses::answered)); the rest is done at once, in the order in which it is
/// given.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// Write this down. It must be on its way to the disk before anything else is begun.
    Write(FaultTransition),
    /// Tell somebody who watches.
    Say(String),
    /// What the load shows counts anew from here: a fault is gone.
    CalmBegins,
    /// Break something: [`Answer::Injected`], or [`Answer::Stale`] if somebody else leads by now.
    Inject(Injection),
    /// Look whether it bites, and give it a moment to: [`Answer::Looked`].
    Prove(Look),
    /// Take it back: [`Answer::Undone`].
    Undo(Undoing),
    /// Look until it is gone, or for as long as members may take to serve again ([`RECOVERY_PATIENCE_NS`]):
    /// [`Answer::Looked`]. A member that ended by itself is not waited for: nobody starts it again. A further
    /// watch of the same lane takes the place of this one, which is then not answered any more.
    ///
    /// [`RECOVERY_PATIENCE_NS`]: super::RECOVERY_PATIENCE_NS
    Watch(Look),
}

/// What came of a command.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// It was broken, and the driver was done with that at this moment.
    Injected(RunNs),
    /// Nothing was broken, because another member leads than when it was aimed, or its target does not hold
    /// any more.
    Stale,
    /// What a look showed, which is named by its version.
    Looked(u64, Proof),
    /// It was taken back, and the driver was done with that at this moment; and what it saw of the fault at
    /// its end, where there was anything to see.
    Undone(RunNs, Option<Proof>),
}

/// A line of the journal as far as it is known before its moment.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// `F1`, `F2`, ...
    pub fault: String,
    /// The nemesis's name.
    pub kind: &'static str,
    /// What happens.
    pub phase: FaultPhase,
    /// To whom.
    pub targets: Vec<MemberId>,
    /// What is known of it.
    pub detail: FaultDetail,
}

impl Line {
    /// The line of this moment.
    #[must_use]
    pub fn at(self, time: RunNs) -> FaultTransition {
        FaultTransition {
            fault: self.fault,
            kind: self.kind.to_owned(),
            phase: self.phase,
            time,
            targets: self.targets.iter().map(|target| target.0).collect(),
            detail: self.detail,
        }
    }
}

/// An injection: the line is written with the moment at which the driver begins, and nothing stands between
/// the two.
#[derive(Clone, Debug, PartialEq)]
pub struct Injection {
    /// Whose.
    pub lane: LaneId,
    /// What is broken.
    pub action: Action,
    /// Who led when it was aimed: if somebody else does by now, it is not done.
    pub aimed_by: Option<Leader>,
    /// What is written down first.
    pub asked: Line,
}

/// A look at the ensemble.
#[derive(Clone, Debug, PartialEq)]
pub struct Look {
    /// Whose.
    pub lane: LaneId,
    /// The fault's name.
    pub fault: String,
    /// What it did.
    pub action: Action,
    /// Everything that is in force at this moment: against that the look is judged.
    pub in_force: InForce,
    /// Names this look: the answer says it again.
    pub version: u64,
}

/// A healing: the line is written with the moment at which the driver begins.
#[derive(Clone, Debug, PartialEq)]
pub struct Undoing {
    /// Whose.
    pub lane: LaneId,
    /// What was done.
    pub action: Action,
    /// When.
    pub injected: RunNs,
    /// What is written down first.
    pub healing: Line,
}
