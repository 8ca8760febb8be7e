//! Confirms that an order proves what it is said to prove.
//!
//! Short, and ignorant of how the order was found: it reads the definition again, operation by operation, and replays
//! the answers. No verdict is valid without it.

use std::collections::HashMap;

use super::RealTime;
use super::graph::{Node, Span, at};
use crate::history::{NEVER, Rank};

/// Why an order proves nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Refuted {
    /// An operation is named that does not exist, or twice.
    #[error("operation {0} is unknown or stands twice in the order")]
    Twice(usize),
    /// An operation that happened is missing.
    #[error("operation {0} happened but is not in the order")]
    Missing(usize),
    /// An operation stands after one of its own group that was called only when it had returned.
    #[error("operation {0} stands after one that its own process called later")]
    Program(usize),
    /// An operation stands after one that was called only when it had returned, and real time binds both.
    #[error("operation {0} had returned before an earlier one was called")]
    Time(usize),
    /// An answer would be wrong.
    #[error("operation {0} has another answer than this order gives")]
    Answer(usize),
}

/// Confirms `order`. `apply` lets an operation happen to the object, and says whether its answer is right.
///
/// # Errors
/// The first operation that does not fit.
pub(super) fn confirm(
    spans: &[Span],
    real_time: RealTime,
    order: &[Node],
    mut apply: impl FnMut(usize) -> bool,
) -> Result<(), Refuted> {
    let mut placed = vec![false; spans.len()];
    let mut latest_of_group: HashMap<u64, Rank> = HashMap::new();
    let mut latest: Rank = 0;
    for &node in order {
        let op = at(node);
        match placed.get_mut(op) {
            Some(placed) if !*placed => *placed = true,
            _ => return Err(Refuted::Twice(op)),
        }
        let span = spans[op];
        let latest_of_group = latest_of_group.entry(span.group).or_default();
        if span.ret < *latest_of_group {
            return Err(Refuted::Program(op));
        }
        *latest_of_group = span.call.max(*latest_of_group);
        let bound = match real_time {
            RealTime::All => true,
            RealTime::Updates => span.update,
            RealTime::None => false,
        };
        if bound && span.ret < latest {
            return Err(Refuted::Time(op));
        }
        if bound {
            latest = span.call.max(latest);
        }
        if !apply(op) {
            return Err(Refuted::Answer(op));
        }
    }
    match (0..spans.len()).find(|&op| !placed[op] && spans[op].ret != NEVER) {
        Some(missing) => Err(Refuted::Missing(missing)),
        None => Ok(()),
    }
}
