//! Confirms an order of nodes by the definition alone.

use super::RealTime;
use super::graph::{Node, Span, at};
use crate::confirm::{self, Unfit};

/// Confirms `order`. `apply` lets an operation happen to the object, and says whether its answer is right.
///
/// # Errors
/// The first operation that does not fit.
pub(super) fn confirm(
    spans: &[Span],
    real_time: RealTime,
    order: &[Node],
    apply: impl FnMut(usize) -> bool,
) -> Result<(), Unfit> {
    let span = |at: usize| {
        let Span { call, ret, group, update } = spans[at];
        let bound = match real_time {
            RealTime::All => true,
            RealTime::Updates => update,
            RealTime::None => false,
        };
        confirm::Span { call, ret, group: Some(group), bound }
    };
    confirm::confirm(spans.len(), span, order.iter().map(|&node| at(node)), apply)
}
