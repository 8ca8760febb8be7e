//! The nemeses at work: a fault is aimed, injected, proven, held, healed, and proven to be gone.
//!
//! One machine decides all of it, for local processes, for containers and for the virtual world. It knows no
//! clock and no ensemble: a driver asks what to do ([`Nemeses::next`]), does it, and says what came of it and
//! when. What was planned is in the [`Schedule`]; whom a fault hits is decided at the moment of its
//! injection, by its kind and by what is in force.
//!
//! The rules:
//!
//! - Faults of one lane follow each other. One begins only when the one before was seen to be gone, so that
//!   what is seen belongs to it; one whose turn is past by then is written down as never injected.
//! - Without overlap there is one lane, and a fault begins only when the load had its time after the one
//!   before, up to a bound: what came of a fault is shown by the calm behind it, and a slow healing eats that
//!   up.
//! - With overlap each nemesis has a lane of its own, and they meet in the ledger alone. A target is decided
//!   and reserved in one step. Proofs are drawn up while nothing is on its way in or out, against all that is
//!   in force; one that refutes counts only where the ledger still stands as it did when the look began. The
//!   health of the whole ensemble is asked for by whoever is healed last.
//! - A fault that was aimed while one member led is not injected if another does by then. It is aimed again.
//!   So is one that was aimed at an application which does not hold any more.
//! - While a member is gone that nobody killed, nothing is injected: a fault would no longer be what it says.
//! - Whatever ends the run early, what was injected is healed: at once ([`Nemeses::halt`]), or when its time
//!   is over ([`Nemeses::close`]).
//!
//! **Precision.** What takes time comes before `asked`: waiting for a leader or for anybody to hit, and
//! deciding. A driver stamps `asked` when it begins and `injected` when it is done, and nothing stands
//! between them but the one call, so their distance is how precise the fault is; `verified` says how much
//! later it was seen.

mod command;
mod lane;
mod ledger;

use std::collections::{BTreeMap, VecDeque};

use runs::clock::RunNs;
use runs::member::MemberId;
use runs::numbers::NS_PER_MS;
use runs::views::{Leader, View};

use crate::fault::application::Holder;
use crate::fault::{LoseUnsynced, Server};
use crate::schedule::{PlannedFault, Schedule};

pub use command::{Answer, Command, Injection, LaneId, Line, Look, Undoing};
pub use lane::ended_by_themselves;
use lane::{Context, Lane};
use ledger::Ledger;

/// How long members may take to serve again after a healing.
pub const RECOVERY_PATIENCE_NS: RunNs = 20_000 * NS_PER_MS;

/// What the nemeses see of the ensemble and of its load.
pub trait Sight {
    /// What is known of each member.
    fn views(&self) -> BTreeMap<MemberId, View>;
    /// Who leads, if anybody does.
    fn leader(&self) -> Option<Leader>;
    /// The application that holds something by the largest token that was told, if there are applications.
    fn holder(&self) -> Option<Holder> {
        None
    }
    /// Whether the load has shown enough since the last fault was gone ([`Command::CalmBegins`]).
    fn load_has_shown(&self) -> bool;
    /// What of the system acknowledges nothing any more though it is asked; none where all do, or where
    /// nobody can tell.
    fn silence(&self) -> Option<Silence> {
        None
    }
}

/// Of the system, or of a key, nothing was acknowledged for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Silence {
    /// When something was acknowledged last.
    pub since: RunNs,
    /// When the first change of the run was.
    pub first: RunNs,
}

/// How much of the schedule is still carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Onward {
    /// Each fault that has its turn.
    All,
    /// Each fault that was injected, to its end.
    UnderWay,
    /// What was injected is healed at once.
    Nothing,
}

/// Whom nemeses act on, and by which rules.
#[derive(Clone, Debug)]
pub struct Terms {
    /// Every member, ascending.
    pub members: Vec<MemberId>,
    /// Those of them that vote.
    pub voters: Vec<MemberId>,
    /// What each member runs as, where kinds of servers replace each other.
    pub servers: BTreeMap<MemberId, Server>,
    /// After which kills processes come back without what they had not synced.
    pub lose_unsynced: LoseUnsynced,
    /// How often the load is looked at while it is waited for, in ns.
    pub look_every_ns: RunNs,
    /// Whether anybody tells who leads. Else no fault waits for that.
    pub tells_leader: bool,
}

/// What all lanes share and nothing changes.
#[derive(Debug)]
struct Common {
    start: RunNs,
    overlap: bool,
    interval_ns: RunNs,
    look_every_ns: RunNs,
    lose_unsynced: LoseUnsynced,
    tells_leader: bool,
}

impl Common {
    fn onset(&self, fault: &PlannedFault) -> RunNs {
        self.start.saturating_add(fault.start_ms.saturating_mul(NS_PER_MS))
    }

    fn loses_unsynced(&self, fault: &PlannedFault) -> bool {
        self.lose_unsynced.applies_to(fault.kind)
    }
}

/// The nemeses of a run.
#[derive(Debug)]
pub struct Nemeses {
    common: Common,
    ledger: Ledger,
    lanes: Vec<Lane>,
    onward: Onward,
    /// What was decided and not handed out yet.
    out: VecDeque<Command>,
}

impl Nemeses {
    /// Nothing injected yet; the schedule's times count from `start`.
    #[must_use]
    pub fn new(schedule: &Schedule, terms: &Terms, start: RunNs) -> Self {
        let lanes = schedule.lanes().into_iter().enumerate().map(|(id, faults)| Lane::new(id, faults));
        Self {
            lanes: lanes.collect(),
            ledger: Ledger::new(&terms.members, &terms.voters, terms.servers.clone()),
            common: Common {
                start,
                overlap: schedule.overlap,
                interval_ns: schedule.interval_ms.saturating_mul(NS_PER_MS),
                look_every_ns: terms.look_every_ns,
                lose_unsynced: terms.lose_unsynced,
                tells_leader: terms.tells_leader,
            },
            onward: Onward::All,
            out: VecDeque::new(),
        }
    }

    /// What is to be done at this moment, one after the other, until there is nothing more.
    pub fn next(&mut self, now: RunNs, sight: &dyn Sight) -> Option<Command> {
        while self.out.is_empty() {
            let Self { common, ledger, lanes, onward, out } = self;
            let mut context = Context { common, ledger, out, now };
            if !lanes.iter_mut().any(|lane| lane.step(&mut context, sight, *onward)) {
                return None;
            }
        }
        self.out.pop_front()
    }

    /// When to ask again though nothing happened meanwhile. Ask too when members have said something, and
    /// after every answer.
    #[must_use]
    pub fn wake(&self, now: RunNs) -> Option<RunNs> {
        self.lanes.iter().filter_map(|lane| lane.wake(&self.common, now)).min()
    }

    /// Whether all that was planned came to its end, and the driver owes no answer.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.out.is_empty() && self.lanes.iter().all(Lane::is_over)
    }

    /// What is in force is healed, and nothing more is injected.
    pub fn halt(&mut self) {
        self.onward = Onward::Nothing;
    }

    /// Nothing more is injected; what is in force has its whole time, so that its proofs are as ever.
    pub fn close(&mut self) {
        self.onward = self.onward.max(Onward::UnderWay);
    }

    /// What came of a command, as the driver knows at this moment.
    pub fn answered(&mut self, lane: LaneId, now: RunNs, answer: Answer) {
        let Self { common, ledger, lanes, out, .. } = self;
        let Some(lane) = lanes.get_mut(lane) else { return };
        let context = &mut Context { common, ledger, out, now };
        match answer {
            Answer::Injected(at) => lane.injected(context, at),
            Answer::Stale => lane.stale(context),
            Answer::Looked(version, proof) => lane.looked(context, version, proof),
            Answer::Undone(at, seen) => lane.undone(context, at, seen),
        }
    }

    /// Something could not be done. The lane is over; what it broke may still be broken.
    pub fn failed(&mut self, lane: LaneId) {
        if let Some(lane) = self.lanes.get_mut(lane) {
            lane.failed(&mut self.ledger);
        }
    }
}
