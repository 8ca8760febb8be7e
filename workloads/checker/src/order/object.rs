//! Any [`Model`] as the object of a search.

use super::search::Object;
use crate::hash;
use crate::model::{Call, Model};

/// A model, the calls on it, and what it holds.
pub(super) struct Modelled<'a, M: Model> {
    model: &'a M,
    calls: &'a [&'a Call<M::Op>],
    state: M::State,
}

impl<'a, M: Model> Modelled<'a, M> {
    pub(super) fn new(model: &'a M, calls: &'a [&'a Call<M::Op>]) -> Self {
        Self { model, calls, state: model.initial() }
    }
}

impl<M: Model> Object for Modelled<'_, M> {
    type Undo = Option<M::State>;

    fn place(&mut self, op: usize) -> Option<Option<M::State>> {
        let next = self.model.apply(&self.state, &self.calls[op].op)?;
        if next == self.state {
            return Some(None);
        }
        Some(Some(std::mem::replace(&mut self.state, next)))
    }

    fn take_back(&mut self, _: usize, undo: Option<M::State>) {
        if let Some(before) = undo {
            self.state = before;
        }
    }

    fn fingerprint(&self) -> u128 {
        hash::of_state(&self.state)
    }

    fn changes_nothing(&self, op: usize) -> bool {
        // What asks for no change makes none, in any state. A change that has none here may have one
        // elsewhere.
        !self.model.changes(&self.calls[op].op)
    }
}
