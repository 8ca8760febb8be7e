//! Confirms an order of a model's calls by the definition alone.

use crate::confirm::{self, Span, Unfit};
use crate::model::{Call, Model};

/// Whether `order`, places in `calls`, explains every answer and agrees with real time. Operations of unknown fate may
/// be absent.
///
/// # Errors
/// [`Unfit`] names the first operation that does not fit.
pub fn confirm<M: Model>(model: &M, calls: &[&Call<M::Op>], order: &[usize]) -> Result<(), Unfit> {
    let mut state = model.initial();
    let span = |at: usize| Span::linear(calls[at].call, calls[at].ret);
    confirm::confirm(calls.len(), span, order.iter().copied(), |at| {
        model.apply(&state, &calls[at].op).map(|next| state = next).is_some()
    })
}
