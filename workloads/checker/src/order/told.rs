//! Says in one sentence why there is no order of registers' operations that keeps each session's: by a cycle
//! of what must come first, where one is derived, and else by naming all of a few operations.

use super::graph::{Graph, Node, Why, at};
use super::registers::Registers;
use super::saturate::{Saturation, add_sources, saturate};
use super::shrink::Shrunk;
use super::{Condition, RealTime, cycle};
use crate::budget::{Budget, Meter};
use crate::history::{Op, describe};
use crate::verdict::{Counterexample, MAX_DRAWN, OpView};

/// Steps for finding the cycle of a small part.
const TELL_STEPS: u64 = 1_000_000;

/// The counterexample that the operations left after shrinking are, with its sentence.
pub(super) fn counterexample(
    shrunk: &Shrunk,
    ops: &[Op],
    condition: Condition,
    real_time: RealTime,
    budget: &Budget,
) -> Counterexample {
    let part = &shrunk.part;
    let described = |entry: usize| describe(&ops[part.entries[entry].op]);
    let count = part.entries.len();
    let (sentence, culprit) = if let Some(entry) = part.unexplained() {
        (format!("{}, a value that nobody ever wrote", described(entry)), Some(entry))
    } else {
        match steps(part, real_time, budget) {
            Some(steps) => told(part, &steps, &described),
            None => {
                let all: Vec<String> = (0..count.min(MAX_DRAWN)).map(described).collect();
                let kept = condition.kept();
                let text = format!(
                    "no order that keeps {kept} explains these {count} operations: {}",
                    all.join("; ")
                );
                (text, part.entries.iter().rposition(|entry| entry.action.written().is_none()))
            }
        }
    };
    let view = |entry: usize, impossible: bool| OpView::of(&ops[part.entries[entry].op], impossible);
    Counterexample::drawn(sentence, count, culprit, view, ops.len(), shrunk.rechecked)
}

/// The operations of a cycle, each with why it comes before the next.
fn steps(part: &Registers, real_time: RealTime, budget: &Budget) -> Option<Vec<(Node, Why)>> {
    let mut graph = Graph::of(&part.spans(), real_time);
    add_sources(&mut graph, part);
    let mut meter = Meter::new(&budget.with_steps(TELL_STEPS));
    let Ok(Saturation::Cycle(closing)) = saturate(&mut graph, part, &mut meter) else { return None };
    let edges: Vec<_> = cycle::shortest(&graph, closing).into_iter().map(|edge| graph.edge(edge)).collect();
    let is_op = |node: Node| graph.is_op(node);
    let start = edges.iter().position(|edge| is_op(edge.from))?;
    let mut steps: Vec<(Node, Why)> = Vec::new();
    for edge in edges[start..].iter().chain(&edges[..start]) {
        if is_op(edge.from) {
            steps.push((edge.from, edge.why));
        }
    }
    Some(steps)
}

fn told(
    part: &Registers,
    steps: &[(Node, Why)],
    described: &impl Fn(usize) -> String,
) -> (String, Option<usize>) {
    let because = |why: Why| match why {
        Why::Program => "its own session went on only then".to_owned(),
        Why::Time => "it had returned before that was called, and both are updates".to_owned(),
        Why::Source => "that one saw it".to_owned(),
        Why::Initial => "it found nothing and that one writes".to_owned(),
        Why::Claim => "the system says so".to_owned(),
        Why::Overwritten(observer) => {
            format!("it was over when {} still saw that value", described(at(observer)))
        }
        Why::Outdated(_) => "it saw the value before".to_owned(),
    };
    let is_observer = |node: Node| part.entries[at(node)].action.required().is_some();
    let told: Vec<String> = steps
        .iter()
        .enumerate()
        .map(|(i, &(node, why))| {
            let next = if i + 1 < steps.len() { "before the next" } else { "before the first" };
            format!("{} ({next}: {})", described(at(node)), because(why))
        })
        .collect();
    let culprit = steps.iter().map(|&(node, _)| node).filter(|&node| is_observer(node));
    let culprit = culprit.max_by_key(|&node| part.entries[at(node)].span.call).map(at);
    (format!("these would each have to come before the next, in a cycle: {}", told.join(", ")), culprit)
}
