//! Confirms an order without knowing how it was found: a few lines that a reader can check by eye, and that whoever
//! distrusts the searches may rely on instead.

use std::fmt;

use crate::history::Rank;
use crate::model::{Call, Model};

/// Why an order explains nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unfit {
    /// There is no such operation.
    NoSuchCall(usize),
    /// It is there twice.
    Twice(usize),
    /// It returned, and is missing.
    Missing(usize),
    /// It returned before something was called that the order has before it.
    OutOfTime(usize),
    /// Its answer is wrong at its place.
    WrongAnswer(usize),
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSuchCall(at) => write!(f, "there is no operation {at}"),
            Self::Twice(at) => write!(f, "operation {at} is there twice"),
            Self::Missing(at) => write!(f, "operation {at} returned and is missing"),
            Self::OutOfTime(at) => {
                write!(f, "operation {at} returned before one that stands before it was called")
            }
            Self::WrongAnswer(at) => write!(f, "the answer of operation {at} is wrong at its place"),
        }
    }
}

impl std::error::Error for Unfit {}

/// Whether `order`, places in `calls`, explains every answer and agrees with real time. Operations of unknown fate may
/// be absent.
///
/// # Errors
/// [`Unfit`] names the first operation that does not fit.
pub fn confirm<M: Model>(model: &M, calls: &[&Call<M::Op>], order: &[usize]) -> Result<(), Unfit> {
    let mut placed = vec![false; calls.len()];
    let mut state = model.initial();
    let mut latest_call: Rank = 0;
    for &at in order {
        let call = calls.get(at).ok_or(Unfit::NoSuchCall(at))?;
        if std::mem::replace(&mut placed[at], true) {
            return Err(Unfit::Twice(at));
        }
        // Real time: whatever stands before must have been called before this returned.
        if call.ret < latest_call {
            return Err(Unfit::OutOfTime(at));
        }
        latest_call = latest_call.max(call.call);
        state = model.apply(&state, &call.op).ok_or(Unfit::WrongAnswer(at))?;
    }
    match calls.iter().zip(&placed).position(|(call, placed)| !call.is_open() && !placed) {
        Some(missing) => Err(Unfit::Missing(missing)),
        None => Ok(()),
    }
}
