//! What a history tells of one queue: its elements, and what became of each.

use std::collections::BTreeMap;

use checker::durability::FinalState;
use checker::history::{NEVER, Op, OpKind, Outcome, Rank, describe};

/// What was found, in a sentence, with the operations that show it.
pub(super) type Finding<'a> = (String, Vec<&'a Op>);

/// An element, and what became of it.
pub(super) struct Element<'a> {
    pub(super) put: &'a Op,
    /// The dequeues that told it, by their calls.
    pub(super) handed: Vec<&'a Op>,
    /// Whose answer said first that nobody is handed it again.
    pub(super) done: Option<&'a Op>,
    /// An acknowledgement has no answer that tells.
    may_be_done: bool,
}

/// One queue, as its history tells of it.
pub(super) struct Told<'a> {
    pub(super) elements: BTreeMap<i64, Element<'a>>,
    /// When somebody may have had an element who was not told one: from the call of the dequeue to its end.
    pub(super) blind: Vec<(Rank, Rank)>,
    /// Calls of dequeues that were refused: where elements are handed out they may have had one.
    given_back: Vec<Rank>,
    /// Dequeues that may have taken an element for good.
    pub(super) may_have_taken: usize,
    pub(super) ops: usize,
}

/// How the error of what never left the client begins.
const NOT_SENT: &str = "not-sent";

/// Whether the answer of a dequeue is an element that is to be acknowledged.
fn is_handed_out(op: &Op) -> bool {
    op.list.is_some()
}

impl<'a> Told<'a> {
    /// What the operations of a queue tell, unless they can't be those of a queue.
    pub(super) fn of(ops: &[&'a Op]) -> Result<Self, Finding<'a>> {
        let mut told = Self {
            elements: BTreeMap::new(),
            blind: Vec::new(),
            given_back: Vec::new(),
            may_have_taken: 0,
            ops: ops.len(),
        };
        for op in ops {
            let OpKind::Enqueue { value } = op.kind else { continue };
            let element = Element { put: op, handed: Vec::new(), done: None, may_be_done: false };
            if let Some(before) = told.elements.insert(value, element) {
                let sentence =
                    format!("{} and {}: an element is put once", describe(before.put), describe(op));
                return Err((sentence, vec![before.put, op]));
            }
        }
        for op in ops {
            match op.kind {
                OpKind::Dequeue { value } => told.dequeued(op, value)?,
                OpKind::Acknowledge { value } => told.acknowledged(op, value),
                _ => {}
            }
        }
        let hands_out = ops.iter().any(|op| is_handed_out(op) && matches!(op.kind, OpKind::Dequeue { .. }));
        if hands_out {
            told.may_have_taken = 0;
            told.blind.extend(told.given_back.iter().map(|call| (*call, NEVER)));
        }
        Ok(told)
    }

    fn dequeued(&mut self, op: &'a Op, value: Option<i64>) -> Result<(), Finding<'a>> {
        match (op.outcome, value) {
            (Outcome::Ok, Some(value)) => self.handed(op, value),
            (Outcome::Ok, None) => Ok(()),
            (Outcome::Fail, _) => {
                // It may have had one that it gave back, and others learn of that by and by.
                if !op.error.as_deref().is_some_and(|error| error.starts_with(NOT_SENT)) {
                    self.given_back.push(op.call);
                }
                Ok(())
            }
            (Outcome::Info, _) => {
                self.blind.push((op.call, NEVER));
                self.may_have_taken += 1;
                Ok(())
            }
        }
    }

    /// Somebody was told an element: one that may be there, and is nobody's for good.
    fn handed(&mut self, op: &'a Op, value: i64) -> Result<(), Finding<'a>> {
        let Some(element) = self.elements.get_mut(&value) else {
            return Err((format!("{}, and nobody put {value}", describe(op)), vec![op]));
        };
        let put = element.put;
        if put.call > op.ret {
            let sentence = format!("{}, but {} only afterwards", describe(op), describe(put));
            return Err((sentence, vec![op, put]));
        }
        if put.outcome == Outcome::Fail {
            let why = put.error.as_deref().unwrap_or("refused");
            let sentence = format!(
                "{}, but {} and was told that it did not happen ({why})",
                describe(op),
                describe(put)
            );
            return Err((sentence, vec![put, op]));
        }
        element.handed.push(op);
        if !is_handed_out(op) {
            if let Some(first) = element.done {
                return Err((format!("{}, and {}", describe(first), describe(op)), vec![first, op]));
            }
            element.done = Some(op);
        }
        Ok(())
    }

    fn acknowledged(&mut self, op: &'a Op, value: i64) {
        let Some(element) = self.elements.get_mut(&value) else { return };
        match op.outcome {
            Outcome::Ok if element.done.is_none_or(|done| op.ret < done.ret) => element.done = Some(op),
            Outcome::Ok | Outcome::Fail => {}
            Outcome::Info => element.may_be_done = true,
        }
    }

    /// An element that is handed out although it is done.
    pub(super) fn again(&self) -> Option<Finding<'a>> {
        self.elements.values().find_map(|element| {
            let done = element.done?;
            let again = element.handed.iter().find(|op| op.call > done.ret)?;
            Some((format!("{}, and afterwards {}", describe(done), describe(again)), vec![done, *again]))
        })
    }

    /// A last read that shows what can't be there.
    pub(super) fn shown(&self, state: &FinalState, is_whole: bool) -> Option<Finding<'a>> {
        state.list.iter().flatten().find_map(|value| {
            let read = format!("at the end member {} has {value} in queue {}", state.member, state.key);
            match self.elements.get(value) {
                // What came behind the end of the history is not known.
                None => is_whole.then(|| (format!("{read}, which nobody put"), Vec::new())),
                Some(Element { done: Some(done), .. }) => {
                    Some((format!("{}, and {read}", describe(done)), vec![*done]))
                }
                Some(Element { put, .. }) if put.outcome == Outcome::Fail => Some((
                    format!("{} and was told that it did not happen, and {read}", describe(put)),
                    vec![*put],
                )),
                Some(_) => None,
            }
        })
    }

    /// What was put for certain, and can't be done: each must be there at the end.
    pub(super) fn lasting(&self) -> impl Iterator<Item = (i64, &'a Op)> + '_ {
        let lasts = |element: &Element<'_>| {
            element.put.outcome == Outcome::Ok && element.done.is_none() && !element.may_be_done
        };
        self.elements
            .iter()
            .filter(move |(_, element)| lasts(element))
            .map(|(value, element)| (*value, element.put))
    }
}
