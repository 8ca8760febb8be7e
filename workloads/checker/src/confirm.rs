//! Confirms that an order explains a history, for whoever does not trust the rest of this crate.
//!
//! It knows the definition and nothing else: what real time means, that everything which happened must be
//! there, and, asked operation by operation, whether the answer fits. No algorithm that finds orders is used
//! here, nor any of their types. No verdict is valid without it, and `harness confirm` is little more.

use std::collections::HashMap;

use crate::history::{NEVER, Op, OpKind, Outcome, Rank};
use crate::model::{Call, Model};

/// How much of real time an order has to keep between groups, beside the order of each group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RealTime {
    /// All of it: linearizability.
    All,
    /// That among updates: ordered sequential consistency.
    Updates,
    /// None: sequential consistency.
    None,
}

impl RealTime {
    /// Whether it binds an operation that is an update, or is none, to all others that it binds.
    #[must_use]
    pub const fn binds(self, is_update: bool) -> bool {
        match self {
            Self::All => true,
            Self::Updates => is_update,
            Self::None => false,
        }
    }
}

/// When an operation was under way, and what binds it.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    /// Rank of its call.
    pub call: Rank,
    /// Rank of its return, or [`NEVER`]: then it may be absent.
    pub ret: Rank,
    /// In whose own order it stands, its process's or its session's. None where real time binds everything
    /// and so this order too.
    pub group: Option<u64>,
    /// Whether real time binds it to all others that are bound.
    pub bound: bool,
}

impl Span {
    /// An operation of a history that is to be linearized.
    #[must_use]
    pub const fn linear(call: Rank, ret: Rank) -> Self {
        Self { call, ret, group: None, bound: true }
    }
}

/// Why an order explains nothing. Operations are named by their places in the history that was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// Named in the order, but not in the history, or twice.
    #[error("operation {0} is unknown or stands twice in the order")]
    Twice(usize),
    /// Happened, but is not in the order.
    #[error("operation {0} happened but is not in the order")]
    Missing(usize),
    /// Stands after an operation of its own group that was called only when this one had returned.
    #[error("operation {0} stands after one that its own process called later")]
    Program(usize),
    /// Stands after an operation that was called only when this one had returned, and real time binds both.
    #[error("operation {0} had returned before an earlier one was called")]
    RealTime(usize),
    /// Has another answer at this place.
    #[error("operation {0} has another answer than this order gives")]
    Answer(usize),
}

impl Unfit {
    /// The operation.
    #[must_use]
    pub const fn at(self) -> usize {
        match self {
            Self::Twice(at)
            | Self::Missing(at)
            | Self::Program(at)
            | Self::RealTime(at)
            | Self::Answer(at) => at,
        }
    }
}

/// Confirms that `order`, places among `count` operations, explains all of them. `answers` lets an operation
/// happen, and says whether its answer is right.
///
/// # Errors
/// The first operation that does not fit.
pub fn confirm(
    count: usize,
    span: impl Fn(usize) -> Span,
    order: impl IntoIterator<Item = usize>,
    mut answers: impl FnMut(usize) -> bool,
) -> Result<(), Unfit> {
    let mut placed = vec![false; count];
    let mut latest_call: Rank = 0;
    let mut latest_of_group: HashMap<u64, Rank> = HashMap::new();
    for at in order {
        match placed.get_mut(at) {
            Some(placed) if !*placed => *placed = true,
            _ => return Err(Unfit::Twice(at)),
        }
        let span = span(at);
        if let Some(group) = span.group {
            let latest = latest_of_group.entry(group).or_default();
            if span.ret < *latest {
                return Err(Unfit::Program(at));
            }
            *latest = span.call.max(*latest);
        }
        if span.bound {
            if span.ret < latest_call {
                return Err(Unfit::RealTime(at));
            }
            latest_call = span.call.max(latest_call);
        }
        if !answers(at) {
            return Err(Unfit::Answer(at));
        }
    }
    match (0..count).find(|&at| !placed[at] && span(at).ret != NEVER) {
        Some(missing) => Err(Unfit::Missing(missing)),
        None => Ok(()),
    }
}

/// The places of the operations that `order` names by the indices of their invocations.
///
/// # Errors
/// The first index that none of them has.
pub fn places(indices: impl IntoIterator<Item = u64>, order: &[u64]) -> Result<Vec<usize>, u64> {
    let places: HashMap<u64, usize> =
        indices.into_iter().enumerate().map(|(at, index)| (index, at)).collect();
    order.iter().map(|index| places.get(index).copied().ok_or(*index)).collect()
}

/// Confirms that `order`, places in `calls`, is a linearization of an object's operations. Operations of
/// unknown fate may be absent.
///
/// # Errors
/// [`Unfit`] names the first operation that does not fit.
pub fn object<M: Model>(model: &M, calls: &[&Call<M::Op>], order: &[usize]) -> Result<(), Unfit> {
    let mut state = model.initial();
    let span = |at: usize| Span::linear(calls[at].call, calls[at].ret);
    confirm(calls.len(), span, order.iter().copied(), |at| {
        model.apply(&state, &calls[at].op).map(|next| state = next).is_some()
    })
}

/// Confirms an order of the operations on one register, named by the indices of their invocations.
///
/// # Errors
/// Why it explains nothing, in words.
pub fn register<'a>(ops: impl IntoIterator<Item = &'a Op>, order: &[u64]) -> Result<(), String> {
    let can_happen = |op: &&Op| !matches!(op.kind(), OpKind::Read { .. }) && op.outcome == Outcome::Info;
    let happened = |op: &&Op| op.outcome == Outcome::Ok || op.is_refused_cas();
    let ops: Vec<&Op> = ops.into_iter().filter(|op| can_happen(op) || happened(op)).collect();
    let places = places(ops.iter().map(|op| op.index), order)
        .map_err(|index| format!("the operation of record {index} has no place in an order"))?;
    let span = |at: usize| {
        let op: &Op = ops[at];
        Span::linear(op.call, if op.outcome == Outcome::Info { NEVER } else { op.ret })
    };
    let mut holds: Option<i64> = None;
    let answers = |at: usize| match (ops[at].kind(), ops[at].outcome) {
        (OpKind::Read { value }, _) => value == holds,
        (OpKind::Write { value }, _) => {
            holds = Some(value);
            true
        }
        (OpKind::Cas { from, .. }, Outcome::Fail) => holds != from,
        (OpKind::Cas { from, to }, _) => holds.replace(to) == from,
        _ => false,
    };
    confirm(ops.len(), span, places, answers)
        .map_err(|unfit| format!("{unfit} (that of record {})", ops.get(unfit.at()).map_or(0, |op| op.index)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::load;

    const LINES: &str = r#"{"process":0,"type":"invoke","f":"write","value":1,"time":1}
{"process":0,"type":"ok","f":"write","value":1,"time":2}
{"process":1,"type":"invoke","f":"write","value":2,"time":3}
{"process":2,"type":"invoke","f":"cas","value":[1,3],"time":4}
{"process":2,"type":"fail","f":"cas","value":[1,3],"time":5}
{"process":3,"type":"invoke","f":"read","value":null,"time":6}
{"process":3,"type":"ok","f":"read","value":2,"time":7}
"#;

    #[test]
    fn only_an_order_that_explains_everything_is_confirmed() {
        let loaded = load(LINES.as_bytes()).unwrap();
        let refusal = |order: &[u64]| register(loaded.history.ops(), order).err().unwrap_or_default();
        assert_eq!(refusal(&[0, 2, 3, 5]), "");
        assert!(refusal(&[0, 3, 2, 5]).contains("another answer than this order gives (that of record 3)"));
        assert!(
            refusal(&[2, 3, 5, 0])
                .contains("had returned before an earlier one was called (that of record 0)")
        );
        assert!(
            refusal(&[0, 2, 5, 3])
                .contains("had returned before an earlier one was called (that of record 3)")
        );
        assert!(refusal(&[0, 2, 5]).contains("is not in the order (that of record 3)"));
        assert!(refusal(&[0, 2, 2, 3, 5]).contains("stands twice in the order (that of record 2)"));
        assert!(refusal(&[0, 3, 5]).contains("another answer"));
        assert!(refusal(&[9]).contains("record 9 has no place"));
    }
}
