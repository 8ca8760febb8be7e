//! Pairs each completion with its invocation and ranks calls and returns, whatever lines are read to.
//!
//! The order of real time is the order of the stamps, and of the lines where stamps are equal or absent. An
//! invocation is stamped before the request leaves and a completion after its answer is in, so "returned at
//! or before the stamp of the call" is true of the operations themselves, whichever line was written first.

use super::function::Function;
use super::{NEVER, Rank};
use crate::hash::FastMap;

/// Why lines do not form a history.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PairError {
    /// A process invoked while its previous operation was still outstanding.
    #[error("process {0} invokes while its previous operation is still outstanding")]
    Busy(u64),
    /// A completion without an invocation.
    #[error("process {0} completes an operation that it did not invoke")]
    NotInvoked(u64),
    /// A completion of something else than what was invoked.
    #[error("process {process} completes a {completed} but had invoked a {invoked}")]
    Mismatch {
        /// The process.
        process: u64,
        /// What it had invoked.
        invoked: String,
        /// What the completion says.
        completed: String,
    },
    /// The value does not have the shape that the function needs.
    #[error("a {0} can not have this value")]
    Shape(Function),
    /// A completion is stamped before its invocation.
    #[error("process {0} completes an operation before the time of its invocation")]
    TimeTravel(u64),
    /// More events than ranks.
    #[error("the history is longer than {MAX_EVENTS} events")]
    TooLong,
}

/// Most events in one history; ranks are 32 bits wide.
pub(super) const MAX_EVENTS: usize = 1 << 31;

/// When a call or a return took place: the time of its line, and the line's position.
pub(crate) type Stamp = (u64, Rank);

/// Pairs completions with invocations, of which it remembers a `T`.
#[derive(Clone, Debug)]
pub(crate) struct Pairs<T> {
    /// For each process what it has under way.
    under_way: FastMap<u64, T>,
    lines: Rank,
    untimed: bool,
}

impl<T> Default for Pairs<T> {
    fn default() -> Self {
        Self { under_way: FastMap::default(), lines: 0, untimed: false }
    }
}

impl<T> Pairs<T> {
    /// The stamp of the next line.
    ///
    /// # Errors
    /// [`PairError::TooLong`].
    pub(crate) fn stamp(&mut self, time: Option<u64>) -> Result<Stamp, PairError> {
        if usize::try_from(self.lines).map_or(true, |lines| lines >= MAX_EVENTS) {
            return Err(PairError::TooLong);
        }
        self.untimed |= time.is_none();
        let stamp = (time.unwrap_or(0), self.lines);
        self.lines += 1;
        Ok(stamp)
    }

    /// A process invokes.
    ///
    /// # Errors
    /// [`PairError::Busy`].
    pub(crate) fn invoke(&mut self, process: u64, what: T) -> Result<(), PairError> {
        match self.under_way.insert(process, what) {
            Some(_) => Err(PairError::Busy(process)),
            None => Ok(()),
        }
    }

    /// A process completes what it had invoked.
    ///
    /// # Errors
    /// [`PairError::NotInvoked`].
    pub(crate) fn complete(&mut self, process: u64) -> Result<T, PairError> {
        self.under_way.remove(&process).ok_or(PairError::NotInvoked(process))
    }

    /// Refuses a completion before its invocation, as far as lines have times.
    ///
    /// # Errors
    /// [`PairError::TimeTravel`].
    pub(crate) fn in_time(&self, process: u64, called: Stamp, returned: Stamp) -> Result<(), PairError> {
        if returned.0 < called.0 && !self.untimed { Err(PairError::TimeTravel(process)) } else { Ok(()) }
    }

    /// What waits for a completion, in no order.
    pub(crate) fn under_way(&self) -> impl Iterator<Item = &T> {
        self.under_way.values()
    }

    /// How much waits for a completion.
    pub(crate) fn open(&self) -> usize {
        self.under_way.len()
    }

    /// Everything was read: what never completed, in no order, and whether some line had no time.
    pub(crate) fn finish(self) -> (impl Iterator<Item = T>, bool) {
        (self.under_way.into_values(), self.untimed)
    }

    /// Bytes held, about.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.under_way.capacity() * size_of::<(u64, T)>()
    }
}

/// Ranks for operations that were called and returned at these stamps. If a line had no time, only the order
/// of the lines counts.
pub(crate) fn ranks(
    operations: impl Iterator<Item = (Stamp, Option<Stamp>)>,
    untimed: bool,
) -> Vec<(Rank, Rank)> {
    let when = |(time, line): Stamp| (if untimed { 0 } else { time }, line);
    let mut stamps: Vec<(Stamp, usize, bool)> = Vec::new();
    let mut count = 0;
    for (at, (called, returned)) in operations.enumerate() {
        stamps.push((when(called), at, false));
        stamps.extend(returned.map(|returned| (when(returned), at, true)));
        count = at + 1;
    }
    stamps.sort_unstable();
    let mut ranks = vec![(0, NEVER); count];
    for (rank, (_, at, is_return)) in (0..).zip(stamps) {
        let (call, ret) = &mut ranks[at];
        *(if is_return { ret } else { call }) = rank;
    }
    ranks
}
