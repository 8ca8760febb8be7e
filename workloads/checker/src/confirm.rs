//! Confirms that an order of a register's operations is a linearization, for whoever does not trust this crate.
//!
//! It knows the definition and nothing else: how a register behaves, what real time means, and that everything which
//! happened must be there. No algorithm that finds orders is used here, nor any of their types.

use std::collections::HashMap;

use crate::history::{NEVER, Op, OpKind, Outcome, Rank};

/// Why an order proves nothing. Operations are named by the index of their invocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refuted {
    /// Named in the order, but not in the history, or twice, or nothing that can have a place.
    #[error("operation {0} has no place in an order, or stands there twice")]
    NoPlace(u64),
    /// Happened, but is not in the order.
    #[error("operation {0} happened but is not in the order")]
    Missing(u64),
    /// Stands after an operation that was called only when this one had returned.
    #[error("operation {0} had returned before an earlier one was called")]
    RealTime(u64),
    /// Was told something else.
    #[error("operation {0} was told something else than this order gives")]
    Answer(u64),
}

/// Whether `order` explains all of `ops`, the operations on one register.
///
/// # Errors
/// [`Refuted`] names the first operation that does not fit.
pub fn register<'a>(ops: impl IntoIterator<Item = &'a Op>, order: &[u64]) -> Result<(), Refuted> {
    let mut unplaced: HashMap<u64, &Op> = ops.into_iter().map(|op| (op.index, op)).collect();
    let mut holds: Option<i64> = None;
    let mut latest_call: Rank = 0;
    for &index in order {
        let op = unplaced.remove(&index).ok_or(Refuted::NoPlace(index))?;
        let ret = if op.outcome == Outcome::Info { NEVER } else { op.ret };
        if ret < latest_call {
            return Err(Refuted::RealTime(index));
        }
        latest_call = latest_call.max(op.call);
        let is_right = match (op.kind, op.outcome) {
            (OpKind::Read { value }, Outcome::Ok) => value == holds,
            (OpKind::Write { value }, Outcome::Ok | Outcome::Info) => {
                holds = Some(value);
                true
            }
            (OpKind::Cas { from, to }, Outcome::Ok | Outcome::Info) => {
                let held = holds;
                holds = Some(to);
                held == from
            }
            (OpKind::Cas { from, .. }, Outcome::Fail) if op.is_refused_cas() => holds != from,
            _ => return Err(Refuted::NoPlace(index)),
        };
        if !is_right {
            return Err(Refuted::Answer(index));
        }
    }
    let happened = |op: &&&Op| op.outcome == Outcome::Ok || op.is_refused_cas();
    match unplaced.values().filter(happened).map(|op| op.index).min() {
        Some(missing) => Err(Refuted::Missing(missing)),
        None => Ok(()),
    }
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
        let confirm = |order: &[u64]| register(loaded.history.ops(), order);
        assert_eq!(confirm(&[0, 2, 3, 5]), Ok(()));
        assert_eq!(confirm(&[0, 3, 2, 5]), Err(Refuted::Answer(3)));
        assert_eq!(confirm(&[2, 3, 5, 0]), Err(Refuted::RealTime(0)));
        assert_eq!(confirm(&[0, 2, 5, 3]), Err(Refuted::RealTime(3)));
        assert_eq!(confirm(&[0, 2, 5]), Err(Refuted::Missing(3)));
        assert_eq!(confirm(&[0, 2, 2, 3, 5]), Err(Refuted::NoPlace(2)));
        assert_eq!(confirm(&[0, 3, 5]), Err(Refuted::Answer(3)));
        assert_eq!(confirm(&[9]), Err(Refuted::NoPlace(9)));
    }
}
