//! From an alarm to a counterexample: reads the same lines again and keeps the operations that matter.
//!
//! The online test forgets, so an alarm names a few operations and the values that they are about. The second
//! reading keeps the operations on these values and nothing else, and the whole portfolio judges them as a
//! history of their own. That is fair for the reasons given in [`crate::register::shrink`]: every change that
//! writes a kept value is kept, a compare-and-set from a value that is not kept counts as a write, refusals
//! are left out unless the alarm is about one.
//!
//! A value that is gone was replaced by something, and of that the online test knows only the last of many.
//! So for such an alarm the first change is kept too that was called after somebody had been shown the value
//! and acknowledged before it was seen again: with it three operations mostly are enough.

use std::collections::BTreeMap;

use super::alarm::Alarm;
use crate::budget::Budget;
use crate::history::{Event, EventKind, Function, History, Op, OpKind, Value};
use crate::register::blocks::Contradiction;
use crate::register::blocks::terms::Shown;
use crate::register::{self, Decision, Problem};
use crate::verdict::Counterexample;

/// Operations that are kept at most; a register whose value is read more often than this is explained
/// offline.
const MOST_KEPT: usize = 200_000;

/// Collects the operations that an alarm is about.
#[derive(Clone, Debug)]
pub struct Collector {
    alarm: Alarm,
    values: Vec<Shown>,
    records: Vec<u64>,
    under_way: BTreeMap<u64, Event>,
    kept: Vec<Event>,
    ops: u64,
    /// With a value that is gone: the line that first showed it.
    shown_at: Option<u64>,
    replaced: bool,
}

/// The counterexample of an alarm, from the lines of the history once more (other keys may be among them);
/// none when what was kept is no violation by itself, so that the whole key has to be judged.
#[must_use]
pub fn explain(
    alarm: &Alarm,
    events: impl IntoIterator<Item = Event>,
    budget: &Budget,
) -> Option<Counterexample> {
    let mut collector = Collector::new(alarm);
    events.into_iter().for_each(|event| collector.take(event));
    collector.finish(budget)
}

impl Collector {
    /// Collects for this alarm.
    #[must_use]
    pub fn new(alarm: &Alarm) -> Self {
        Self {
            values: alarm.values.clone(),
            records: alarm.contradiction.operations(),
            alarm: alarm.clone(),
            under_way: BTreeMap::new(),
            kept: Vec::new(),
            ops: 0,
            shown_at: None,
            replaced: false,
        }
    }

    /// Takes the next line, with the same index as when the alarm was raised.
    pub fn take(&mut self, event: Event) {
        if event.key != self.alarm.key {
            return;
        }
        if event.kind == EventKind::Invoke {
            self.ops += 1;
            self.under_way.insert(event.process, event);
            return;
        }
        let Some(invocation) = self.under_way.remove(&event.process) else { return };
        if self.kept.len() / 2 < MOST_KEPT && self.matters(&invocation, &event) {
            self.kept.push(invocation);
            self.kept.push(event);
        }
    }

    fn matters(&mut self, invocation: &Event, event: &Event) -> bool {
        let named = self.records.contains(&invocation.index);
        let is_ours = |value: Shown| self.values.contains(&value);
        let ours = match (invocation.f, event.kind) {
            (Function::READ, EventKind::Ok) => match event.value {
                Value::One(value) => is_ours(Some(value)),
                Value::Null => is_ours(None),
                Value::Pair(..) | Value::List(_) | Value::Txn(_) => false,
            },
            (Function::READ, _) | (_, EventKind::Fail) => named,
            _ => written(invocation).is_some_and(|value| is_ours(Some(value))),
        };
        if let Contradiction::Gone { seen_by, .. } = self.alarm.contradiction {
            return self.replaces(invocation, event, seen_by) || ours;
        }
        ours
    }

    /// Whether this change certainly replaced the value that was seen again; one such is enough.
    fn replaces(&mut self, invocation: &Event, event: &Event, seen_by: u64) -> bool {
        if event.kind != EventKind::Ok {
            return false;
        }
        let shows = written(invocation).or(match event.value {
            Value::One(value) if invocation.f == Function::READ => Some(value),
            _ => None,
        });
        // The value that was seen, of whatever operation, is the one that the seeing operation shows; until
        // that one comes, any of the alarm's values may be it, and the killer's values come much later.
        let first = self.values.contains(&shows) && !self.is_killer(invocation.index);
        if first && self.shown_at.is_none() {
            self.shown_at = Some(event.index);
        }
        let after = self.shown_at.is_some_and(|shown| invocation.index > shown) && event.index < seen_by;
        let chosen = after && !self.replaced && !first && written(invocation).is_some();
        self.replaced |= chosen;
        if chosen {
            self.values.extend([shows]);
        }
        chosen
    }

    fn is_killer(&self, record: u64) -> bool {
        matches!(
            &self.alarm.contradiction,
            Contradiction::Gone { replaced_by, .. } if replaced_by.contains(&record)
        )
    }

    /// Everything was read: judges what was kept.
    #[must_use]
    pub fn finish(mut self, budget: &Budget) -> Option<Counterexample> {
        let values = std::mem::take(&mut self.values);
        let open = self
            .under_way
            .into_values()
            .filter(|event| written(event).is_some_and(|v| values.contains(&Some(v))));
        self.kept.extend(open);
        self.kept.sort_by_key(|event| event.index);
        let history = History::from_events(self.kept).ok()?;
        let originals: Vec<&Op> = history.ops().iter().collect();
        let as_judged: Vec<Op> = originals.iter().map(|op| judged(op, &values)).collect();
        let problem = Problem::of(&as_judged.iter().collect::<Vec<&Op>>());
        let Decision::Violation(shrunk) = register::check(&problem, budget).decision else { return None };
        let mut counterexample = register::explain::counterexample(&problem, &originals, &shrunk);
        counterexample.of_ops = self.ops;
        Some(counterexample)
    }
}

/// A compare-and-set from a value that is not kept counts as a write.
fn judged(op: &Op, values: &[Shown]) -> Op {
    let mut op = op.clone();
    if let OpKind::Cas { from, to } = op.kind()
        && !values.contains(&from)
        && from.is_some()
        && !op.is_refused_cas()
    {
        (op.f, op.asked, op.told) = (Function::WRITE, Value::One(to), Value::Null);
    }
    op
}

fn written(invocation: &Event) -> Option<i64> {
    match (invocation.f, &invocation.value) {
        (Function::WRITE, &Value::One(value)) | (Function::CAS, &Value::Pair(_, value)) => Some(value),
        _ => None,
    }
}
