//! What a history tells of one queue: its elements, and what became of each.

use std::collections::{BTreeMap, BTreeSet};

use checker::durability::FinalState;
use checker::history::{Op, OpKind, Outcome, Rank, describe};

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
    /// Calls of dequeues that may have had an element from then on, and told none, in their order.
    pub(super) blind: Vec<Rank>,
    /// Dequeues that may have taken an element for good.
    pub(super) may_have_taken: usize,
    pub(super) ops: usize,
}

/// Whether the answer of a dequeue is an element that is to be acknowledged.
fn is_handed_out(op: &Op) -> bool {
    op.list().is_some()
}

impl<'a> Told<'a> {
    /// What the operations of a queue tell, unless they can't be those of a queue.
    pub(super) fn of(ops: &[&'a Op]) -> Result<Self, Finding<'a>> {
        let mut told =
            Self { elements: BTreeMap::new(), blind: Vec::new(), may_have_taken: 0, ops: ops.len() };
        for op in ops {
            let OpKind::Enqueue { value } = op.kind() else { continue };
            let element = Element { put: op, handed: Vec::new(), done: None, may_be_done: false };
            if let Some(before) = told.elements.insert(value, element) {
                let sentence =
                    format!("{} and {}: an element is put once", describe(before.put), describe(op));
                return Err((sentence, vec![before.put, op]));
            }
        }
        for op in ops {
            match op.kind() {
                OpKind::Dequeue { value: Some(value) } if op.outcome == Outcome::Ok => {
                    told.handed(op, value)?
                }
                OpKind::Acknowledge { value } => told.acknowledged(op, value),
                _ => {}
            }
        }
        told.note_blind(ops);
        Ok(told)
    }

    /// Whoever has no answer may have an element ever since. Where elements are handed out, so may whoever
    /// was refused: it may have given one back, and others learn of that by and by.
    fn note_blind(&mut self, ops: &[&'a Op]) {
        let dequeues = || ops.iter().filter(|op| matches!(op.kind(), OpKind::Dequeue { .. }));
        let hands_out = dequeues().any(|op| is_handed_out(op));
        let unanswered = dequeues().filter(|op| op.outcome == Outcome::Info).count();
        self.may_have_taken = if hands_out { 0 } else { unanswered };
        let blind = dequeues().filter(|op| match op.outcome {
            Outcome::Ok => false,
            Outcome::Fail => hands_out && op.was_sent(),
            Outcome::Info => true,
        });
        self.blind = blind.map(|op| op.call).collect();
        self.blind.sort_unstable();
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

    /// A last read that shows what can't be there. What is done may come back, and stand there twice, where
    /// at-least-once is all that is promised.
    pub(super) fn shown(
        &self,
        state: &FinalState,
        is_whole: bool,
        at_least_once: bool,
    ) -> Option<Finding<'a>> {
        let mut seen = BTreeSet::new();
        let mut twice = state.list.iter().flatten().filter(|value| !seen.insert(**value));
        if let Some(value) = twice.find(|_| !at_least_once) {
            let put = self.elements.get(value).map(|element| element.put);
            let read = format!("at the end member {} has {value} in queue {} twice", state.member, state.key);
            return Some((read, put.into_iter().collect()));
        }
        state.list.iter().flatten().find_map(|value| {
            let read = format!("at the end member {} has {value} in queue {}", state.member, state.key);
            match self.elements.get(value) {
                // What came behind the end of the history is not known.
                None => is_whole.then(|| (format!("{read}, which nobody put"), Vec::new())),
                Some(Element { done: Some(done), .. }) if !at_least_once => {
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
