//! Confirms an order, whoever found it: all that returned is in it once, real time is kept, every answer
//! fits.

use std::collections::HashMap;

use super::Promise;
use crate::history::{NEVER, Rank};
use crate::model::Call;
use crate::model::znode::{Op, Tree};

/// Confirms that `order`, positions among `calls`, explains every answer.
///
/// # Errors
/// Why it does not.
pub fn verify(tree: &Tree, calls: &[Call<Op>], order: &[usize], promise: Promise) -> Result<(), String> {
    let mut present = vec![false; calls.len()];
    for &at in order {
        let twice = present.get_mut(at).is_none_or(|present| std::mem::replace(present, true));
        if twice {
            return Err("it names an operation twice, or one that is not there".to_owned());
        }
    }
    if let Some(absent) = calls.iter().zip(&present).find(|(call, present)| !call.is_open() && !**present) {
        return Err(format!("operation {} is missing", absent.0.index));
    }
    // From the end: the earliest return among what stands later, of all and of each session.
    let mut earliest = NEVER;
    let mut of_session: HashMap<(bool, u64), Rank> = HashMap::new();
    for call in order.iter().rev().map(|&at| &calls[at]) {
        let session = call.op.session.map_or((false, call.process), |session| (true, session));
        let own = of_session.entry(session).or_insert(NEVER);
        let bound = if promise == Promise::Linearizable || call.op.ask.is_update() { earliest } else { *own };
        if bound < call.call {
            return Err(format!(
                "operation {} stands before one that returned before it was called",
                call.index
            ));
        }
        earliest = earliest.min(call.ret);
        *own = (*own).min(call.ret);
    }
    let mut state = tree.initial.clone();
    for call in order.iter().map(|&at| &calls[at]) {
        state
            .perform(&call.op, None)
            .map_err(|misfit| format!("operation {} ({}) can't be there: {misfit}", call.index, call.op))?;
    }
    Ok(())
}
