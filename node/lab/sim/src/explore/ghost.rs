//! The little memory of the past that judging a state needs.
//!
//! The memory (who led which epoch, what was proposed, what was committed) is a part of the state: two states
//! that differ in it are two.

use node_wire::ids::{Epoch, Round, ServerId};

use super::disk::{Mark, mark};
use super::place::Place;
use super::starts::Start;

/// A place in the one sequence, with the digest of the tree there once a member stopped at it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Committed {
    pub(super) mark: Mark,
    pub(super) tree: Option<i64>,
}

/// Who told that it votes for whom: in which round while it looked, none when it followed or led.
pub(super) type Told = (Place, ServerId, Option<Round>);

/// What is remembered of the past.
#[derive(Clone, Debug, Default, Hash)]
pub(super) struct Ghost {
    /// Who has the best vote of all, by the histories that the members begin with.
    pub(super) best: Place,
    pub(super) leaders: Vec<(Epoch, ServerId)>,
    pub(super) proposed: Vec<Mark>,
    pub(super) committed: Vec<Committed>,
    /// Votes that were ever told.
    pub(super) votes: Vec<Told>,
}

impl Ghost {
    pub(super) fn of(start: &Start) -> Self {
        let entries = start.disks.iter().flat_map(|disk| &disk.entries).map(mark);
        let mut proposed: Vec<Mark> = entries.chain(start.committed.iter().copied()).collect();
        proposed.sort_unstable();
        proposed.dedup();
        let committed = start.committed.iter().map(|mark| Committed { mark: *mark, tree: None }).collect();
        let vote = |place: &Place| (start.disks[*place].current, start.disks[*place].last(), *place);
        let best = (0..start.disks.len()).max_by_key(vote).unwrap_or_default();
        Self { best, leaders: Vec::new(), proposed, committed, votes: Vec::new() }
    }
}
