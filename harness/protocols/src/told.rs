//! What clients asked and were told, judged by the checks of their workload: in steps that happen without a
//! world, one after the other.

use std::collections::BTreeMap;

use checker::Budget;
use checker::history::{Event, Extent, History};
use checker::verdict::{CheckResult, Verdict};
use workloads::judge::{Beside, Case, Effort};
use workloads::{Kind, Op};

use crate::configuration::{Came, Step};
use crate::protocol::{Broken, Protocol, Request};

/// A history that grows with the steps. Each request is of a client of its own.
#[derive(Debug, Default)]
pub(crate) struct Told {
    events: Vec<Event>,
    open: BTreeMap<Request, Option<Op>>,
}

impl Told {
    /// A step happened. A request that is asked again is the same operation, and its first answer counts.
    pub(crate) fn happened<P: Protocol>(&mut self, step: &Step<P>, came: &Came<P>) {
        let now_ns = |events: &[Event]| u64::try_from(events.len()).unwrap_or(u64::MAX) * 1_000_000;
        if let Step::Ask(_, request, op) = step
            && !self.open.contains_key(request)
        {
            self.events.push(op.event(request.0, now_ns(&self.events)));
            self.open.insert(*request, Some(op.clone()));
        }
        for (_, request, outcome) in &came.answers {
            if let Some(op) = self.open.get_mut(request).and_then(Option::take) {
                self.events.push(outcome.event(&op, request.0, now_ns(&self.events)));
            }
        }
    }

    /// What these clients' history shows to be broken.
    pub(crate) fn broken(&self, kind: Option<Kind>) -> Option<Broken> {
        let mut events = self.events.clone();
        for (index, event) in (0..).zip(&mut events) {
            event.index = index;
        }
        let history = History::from_events(events).ok()?;
        judged(kind?, &history).filter(|result| result.verdict == Verdict::Invalid).map(in_words)
    }
}

/// The worst that the checks of a workload find; nothing when all is valid.
pub(crate) fn judged(kind: Kind, history: &History) -> Option<CheckResult> {
    let (beside, budget) = (Beside::default(), Budget::default());
    let effort = Effort::of(&budget);
    let case = Case::new(history, Extent::Whole, &beside, &effort);
    let mut results: Vec<CheckResult> = kind.promises().iter().map(|check| check(&case)).collect();
    results.sort_by_key(|result| result.verdict != Verdict::Invalid);
    results.into_iter().find(|result| result.verdict != Verdict::Valid)
}

/// A result of a check, as what is broken.
pub(crate) fn in_words(result: CheckResult) -> Broken {
    Broken::new(result.name, result.counterexample.map_or(result.summary, |found| found.sentence))
}
