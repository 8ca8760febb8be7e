//! The counterexample: which answers cannot be, in one sentence, one drawing and a few lines.
//!
//! Its axis has one step for every call and answer, because the order is what matters there and not the
//! distance; the drawing says so. It alone scrolls sideways on a narrow screen.

use std::collections::BTreeMap;

use checker::history::{Function, Outcome, Value};
use checker::verdict::{CheckResult, Counterexample, OpView};

use super::Input;
use super::checks::title;
use super::lanes::words;
use super::markup::{Markup, css};
use crate::faults::FaultRecord;
use crate::findings::sentence_end;
use crate::labels::rows;
use crate::numbers::{count, len_f64, moment};

/// Counterexamples drawn at most; every failing check has its own in results.json.
const MOST_DRAWN: usize = 3;
/// Operations of one drawing at most; the first and the impossible ones say most.
const MOST_OPS: usize = 40;
/// The least width of a step, in px.
const STEP_PX: f64 = 112.0;

pub(super) fn write(m: &mut Markup, input: &Input<'_>) {
    let found: Vec<(&CheckResult, &Counterexample)> = input
        .results
        .checks
        .iter()
        .filter_map(|check| check.counterexample.as_ref().map(|found| (check, found)))
        .collect();
    if found.is_empty() {
        return;
    }
    m.leaf("h2", &[("id", "counterexample")], "Counterexample");
    for (check, counterexample) in found.iter().take(MOST_DRAWN) {
        one(m, input, check, counterexample);
    }
    if found.len() > MOST_DRAWN {
        m.leaf("p", &[("class", "caption")], "The counterexamples of the other checks are in results.json.");
    }
}

fn one(m: &mut Markup, input: &Input<'_>, check: &CheckResult, found: &Counterexample) {
    let steps = Steps::of(found);
    let behind = behind(input, &steps);
    m.el("p", &[("class", "why")], |m| {
        m.leaf("b", &[], &sentence_end(&found.sentence));
        match behind.as_slice() {
            [] => m.text(" No fault was at work between the first of these calls and the last answer."),
            faults => {
                let names: Vec<String> =
                    faults.iter().map(|(fault, ..)| format!("{} ({})", fault.id, words(fault))).collect();
                m.text(&format!(" At work meanwhile: {}.", names.join(", ")));
            }
        }
    });
    m.el("figure", &[("class", "sideways")], |m| drawing(m, found, &steps, &behind));
    let again = if found.rechecked { ", judged again by itself" } else { "" };
    m.leaf(
        "p",
        &[("class", "caption")],
        &format!(
            "{}: the smallest part found that still fails, {} of {} operations{again}. One step for each call and \
             each answer; not to scale. Dashed to the right: never answered.",
            title(&check.name),
            len_text(found.ops.len()),
            count(found.of_ops)
        ),
    );
    list(m, found);
    m.line();
}

fn len_text(n: usize) -> String {
    crate::numbers::len(n)
}

/// The moments of a counterexample, each a step of the axis.
struct Steps {
    moments: Vec<u64>,
}

impl Steps {
    fn of(found: &Counterexample) -> Self {
        let ops = found.ops.iter().take(MOST_OPS);
        let mut moments: Vec<u64> =
            ops.flat_map(|op| [Some(op.invoke_ns), op.complete_ns]).flatten().collect();
        moments.sort_unstable();
        moments.dedup();
        Self { moments }
    }

    /// Room for every step, and one more for what was never answered.
    fn number(&self) -> f64 {
        len_f64(self.moments.len()) + 0.5
    }

    fn step(&self, at: u64) -> f64 {
        len_f64(self.moments.partition_point(|moment| *moment < at))
    }

    /// A moment between two steps, in proportion.
    fn between(&self, at: u64) -> f64 {
        let after = self.moments.partition_point(|moment| *moment <= at);
        let Some(before) = after.checked_sub(1) else { return 0.0 };
        let from = self.moments[before];
        let share = match self.moments.get(after) {
            Some(to) => crate::numbers::lossy(at - from) / crate::numbers::lossy(to - from),
            None => f64::from(u8::from(at > from)) * 0.5,
        };
        len_f64(before) + share
    }

    fn place(&self, from: f64, to: f64) -> String {
        let all = self.number();
        // A little before the first moment, so that its label has room.
        let at = |step: f64| (step + 0.2) / (all + 0.2) * 100.0;
        format!("left:{}%;width:{}%", css(at(from)), css(at(to) - at(from)))
    }
}

/// Faults at work during the counterexample, with their steps.
fn behind<'a>(input: &Input<'a>, steps: &Steps) -> Vec<(&'a FaultRecord, f64, f64)> {
    let (Some(&first), Some(&last)) = (steps.moments.first(), steps.moments.last()) else {
        return Vec::new();
    };
    input
        .faults
        .iter()
        .filter_map(|fault| fault.interval(input.axis.end_ns).map(|interval| (fault, interval)))
        .filter(|(_, (from, to))| *from <= last && *to >= first)
        .map(|(fault, (from, to))| (fault, steps.between(from), steps.between(to)))
        .collect()
}

fn drawing(m: &mut Markup, found: &Counterexample, steps: &Steps, behind: &[(&FaultRecord, f64, f64)]) {
    let width = css(steps.number() * STEP_PX);
    let intervals: Vec<(f64, f64)> = behind.iter().map(|(_, from, to)| (*from, to.max(from + 1.0))).collect();
    let rows = rows(&intervals);
    let used = rows.iter().map(|row| row + 1).max().unwrap_or(0);
    m.el("div", &[("class", "story"), ("style", &format!("min-width:{width}px;--rows:{used}"))], |m| {
        for ((fault, from, to), row) in behind.iter().zip(&rows) {
            let style = format!("{};--row:{row}", steps.place(*from, *to));
            m.leaf("i", &[("class", "shade"), ("style", &style)], "");
            m.leaf(
                "span",
                &[("class", "fault"), ("style", &style), ("title", &words(fault))],
                &format!("{} {}", fault.id, fault.sentence),
            );
        }
        for (process, ops) in lanes(found) {
            m.el("div", &[("class", "process")], |m| {
                m.leaf("b", &[], &format!("p{process}"));
                for op in ops {
                    operation(m, op, steps);
                }
            });
        }
        m.el("div", &[("class", "steps")], |m| {
            for at in &steps.moments {
                let style = steps.place(steps.step(*at), steps.step(*at));
                m.leaf("span", &[("class", "tick"), ("style", &style)], &moment(*at));
            }
            m.leaf("span", &[("class", "axis-title")], "time since start, s, one step for each event");
        });
    });
}

/// Operations by process, the processes in the order of their first call.
fn lanes(found: &Counterexample) -> Vec<(u64, Vec<&OpView>)> {
    let mut order: Vec<u64> = Vec::new();
    let mut by_process: BTreeMap<u64, Vec<&OpView>> = BTreeMap::new();
    for op in found.ops.iter().take(MOST_OPS) {
        if !order.contains(&op.process) {
            order.push(op.process);
        }
        by_process.entry(op.process).or_default().push(op);
    }
    order.into_iter().filter_map(|process| by_process.remove(&process).map(|ops| (process, ops))).collect()
}

fn operation(m: &mut Markup, op: &OpView, steps: &Steps) {
    let from = steps.step(op.invoke_ns);
    let to = op.complete_ns.map_or(steps.number(), |at| steps.step(at));
    let mut class = String::from("op");
    class.push_str(if op.f == Function::Read { " reads" } else { " writes" });
    match op.outcome {
        Outcome::Ok => {}
        Outcome::Fail => class.push_str(" refused"),
        Outcome::Info => class.push_str(" open"),
    }
    if op.impossible {
        class.push_str(" impossible");
    }
    let style = steps.place(from, to.max(from + 0.5));
    m.el(
        "span",
        &[("class", &class), ("style", &style), ("title", &format!("{} {}", call(op), answer(op)))],
        |m| {
            m.leaf("b", &[], &call(op));
            m.leaf("small", &[], &answer(op));
        },
    );
}

/// What was asked, and for a read what was answered.
fn call(op: &OpView) -> String {
    match (op.f, op.value) {
        (Function::Read, Value::One(value)) => format!("read k{} → {value}", op.key),
        (Function::Read, _) if op.outcome == Outcome::Ok => format!("read k{} → nothing", op.key),
        (Function::Read, _) => format!("read k{}", op.key),
        (Function::Cas, Value::Pair(Some(from), to)) => format!("cas k{} {from} → {to}", op.key),
        (Function::Cas, Value::Pair(None, to)) => format!("cas k{} nothing → {to}", op.key),
        (f, Value::One(value)) => format!("{f} k{} = {value}", op.key),
        (f, _) => format!("{f} k{}", op.key),
    }
}

fn answer(op: &OpView) -> String {
    let mut text = match (op.impossible, op.outcome) {
        (true, _) => "✗ cannot be".to_owned(),
        (false, Outcome::Ok) => "ok".to_owned(),
        (false, Outcome::Fail) => "did not happen".to_owned(),
        (false, Outcome::Info) => "never answered".to_owned(),
    };
    if let Some(node) = op.node {
        text.push_str(&format!(", n{node}"));
    }
    if let Some(version) = op.version {
        text.push_str(&format!(", version {version}"));
    }
    text
}

/// The same in words, one line for each operation.
fn list(m: &mut Markup, found: &Counterexample) {
    m.el("table", &[("class", "story-list")], |m| {
        m.el("tbody", &[], |m| {
            for op in found.ops.iter().take(MOST_OPS) {
                let class = if op.impossible { "impossible" } else { "" };
                m.el("tr", &[("class", class)], |m| {
                    let until = op.complete_ns.map_or_else(|| "…".to_owned(), moment);
                    m.leaf("td", &[("class", "n quiet")], &format!("{} – {until} s", moment(op.invoke_ns)));
                    m.leaf("td", &[("class", "mono")], &format!("p{} {}", op.process, call(op)));
                    let session = op.session.as_ref().map(|id| format!(", session {id}")).unwrap_or_default();
                    m.leaf("td", &[], &format!("{}{session}, line {}", answer(op), op.index));
                });
            }
        });
    });
    if found.ops.len() > MOST_OPS {
        let left = len_text(found.ops.len() - MOST_OPS);
        m.leaf("p", &[("class", "caption")], &format!("{left} more operations are in results.json."));
    }
}
