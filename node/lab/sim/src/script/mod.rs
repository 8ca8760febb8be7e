//! Scripts: a world moved by hand, one line for each transition.
//!
//! A seed that found a bug is no regression test: it means something else as soon as the simulator draws
//! differently. A script says by meaning what the dice had decided: which process starts, which disk
//! finishes, which packet arrives next, what a client asks. It is replayed with the same members, disks,
//! clients and judges as a drawn world ([`World`](crate::world::World) itself), without its queue of events
//! and without its dice.
//!
//! Lines of a script (times are optional; a line without one happens shortly after the one before it):
//!
//! ```text
//! mutant commit-alone                     the bug that every member has
//! breaks durability                       the promise that is broken at the end
//! ensemble 3 peer-timeout=250ms           how many members; settings that are not the usual ones
//! clients 1                               who may come
//! prompt clients disks votes              what happens by itself, at once: answers, writes to disk, votes
//! 1.250 s2 start                          s2 crash | s2 crash power keeps=0,17 | s2 crash in-step=2
//! s2 tick x12                             its timer expires, twelve times
//! s2 stored x3                            its writer finishes three operations, and the member hears of it
//! s2 disk full | s2 disk sync-fails keeps=7 | s2 disk sound | s2 disk-fails at=3
//! s2 rots log.100000001 bit=300           a bit of a file turns over
//! s2 crash at-failure power               how it will end when its disk fails it; the last bytes are lost
//! s2 clock wall=-500ms drift=9ppm fast=-80ppm jump=70us
//! s2 meets s1 | s2 misses s1              its election connection to s1 stands, or is gone
//! s1>s2 vote                              the next vote in flight arrives
//! s2 dials s1 | s1 accepts s2 | s2 dialled s1 | s2 refused s1
//! s1>s2 PROPOSAL 0x100000003              what is in flight arrives up to the next PROPOSAL
//! s2 loses s1                             it notices that its quorum connection to s1 broke
//! c1 connects s2 | c1 asks write r0 5 | s2 hears c1 | c1 listens | c1 hangs-up
//! look elected                            it must get there from here when nothing bad happens any more
//! ```
//!
//! - A line that is not possible (nothing of that kind in flight, the process is not running) is skipped and
//!   counted. So every part of a script is a script, and shrinking one is leaving out lines.
//! - A tick that says no time comes as late as a member counts for its own (30 ms), anything else at once
//!   (0.1 ms).
//! - What arrives arrives in the order in which it was sent, as on TCP: `PROPOSAL` delivers what was sent
//!   before it too. Zxids behind a kind are for the reader; only the kind decides.
//! - Nothing has to be said of connections that break: what is lost is what no line delivers. `loses` and
//!   `misses` are what the members notice of it.
//! - A client does what it is asked to, of any workload: `write r0 5` (a register), `add s0 7` (a set),
//!   `append l0 8 behind 7` (a list), `create q0 3` (a numbered node), `look e0 4` (an ephemeral one).
//! - A `look` goes on by itself: members that run see each other, all arrives, disks write, clients go on. It
//!   breaks liveness when the ensemble does not get there within the bound of a drawn world. So no script
//!   breaks liveness by leaving lines out.
//! - What stands behind `#` is a note: what the line did when it was written down.
//!
//! `shrink` makes a script of a failing seed: it leaves out faults and clients in the drawn world, writes
//! down what is left ([`world::scripted`](crate::world)), and leaves out lines until none can be spared,
//! alone or with another one that stands close. A smaller script must break the same promise with the mutant,
//! and none with the clean member: a script whose network does what no network may do would accuse the clean
//! one as well. So would a client that lies: a compare-and-set is only possible when its client's ensemble
//! has shown the value that it replaces.
//!
//! What can't be said: election connections of a member that stands still while they are made anew more than
//! once, and liveness that is lacking only while a disk takes its time. Then there is no script, rather than
//! a wrong one.
//!
//! Delta debugging is from Zeller and Hildebrandt, "Simplifying and Isolating Failure-Inducing Input" (2002).

mod client_action;
mod groups;
mod head;
mod lines;
mod parse;
mod parties;
mod passes;
mod reduce;
mod replay;
mod shrink;
mod shrinker;

use lab_mutants::Mutant;

pub(crate) use client_action::ClientAction;
pub(crate) use head::{Head, MAX_CLIENTS, Prompt};
pub(crate) use lines::{Crash, DiskChange, Kind, Line, Target, Transition};
pub use parse::ScriptError;
pub(crate) use reduce::Reduction;
pub use replay::{Replayed, replay};
pub use shrink::{shrink, write_down};
pub use shrinker::Shrunk;

use crate::outcome::Rule;

/// What happens in a world moved by hand, line by line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script {
    /// Comments at the top: what it shows.
    pub(crate) title: Vec<String>,
    /// The bug that every member has.
    pub mutant: Option<Mutant>,
    /// The promise that is broken at the end.
    pub breaks: Option<Rule>,
    pub(crate) head: Head,
    pub(crate) lines: Vec<Line>,
    /// Comments at the end: how the members stand then.
    pub(crate) tail: Vec<String>,
}

impl Script {
    /// The number of its transitions.
    pub fn events(&self) -> usize {
        self.lines.len()
    }

    /// The number of members.
    pub fn members(&self) -> usize {
        self.head.members
    }

    /// The number of operations that clients ask for.
    pub fn operations(&self) -> usize {
        self.lines.iter().filter(|line| matches!(line.transition, Transition::Asks { .. })).count()
    }
}
