//! The counterexample: which answers cannot be, in one sentence, one drawing and a few lines.
//!
//! Its axis has one step for every call and answer, because the order is what matters there and not the
//! distance; the drawing says so. It alone scrolls sideways on a narrow screen.

use std::collections::BTreeMap;

use checker::history::Outcome;
use checker::verdict::{CheckResult, Counterexample, OpView};

use super::Input;
use super::checks::title;
use super::lanes::{brief_words, role_class, role_label, words};
use super::markup::{Markup, css};
use crate::faults::FaultRecord;
use crate::findings::{sentence, shortened};
use crate::labels::rows;
use crate::numbers::{NS_PER_MS, count, duration, len, len_f64, lossy, moment, ns_to_ms};
use crate::results::MemberSpan;

/// Counterexamples drawn at most; every failing check has its own in results.json.
const MOST_DRAWN: usize = 4;
/// Operations of one drawing at most; the first and the impossible ones say most.
const MOST_OPS: usize = 40;
/// Steps of one drawing with which the faults' own moments are steps too.
const MOST_STEPS: usize = 14;
/// Members drawn at most.
const MOST_MEMBERS: usize = 9;
/// Faults named and drawn at most.
const MOST_FAULTS: usize = 12;
/// Characters of a sentence at most.
const MOST_SENTENCE: usize = 800;
/// The least width of a step, in px.
const STEP_PX: f64 = 136.0;

pub(super) fn write(m: &mut Markup, input: &Input<'_>) {
    let mut found: Vec<(&CheckResult, &Counterexample)> = input
        .results
        .checks
        .iter()
        .filter_map(|check| check.counterexample.as_ref().map(|found| (check, found)))
        .collect();
    if found.is_empty() {
        return;
    }
    // One operation alone contradicts something that is not drawn; a story needs two.
    found.sort_by_key(|(_, found)| found.ops.len() < 2);
    m.leaf("h2", &[("id", "counterexample")], "Counterexample");
    for (at, (check, counterexample)) in found.iter().take(MOST_DRAWN).enumerate() {
        let steps = Steps::of(input, counterexample);
        let behind = behind(input, &steps);
        if at == 0 {
            m.el("p", &[("class", "why")], |m| why(m, counterexample, &behind));
            one(m, input, check, counterexample, &steps, &behind);
        } else {
            // The others say the same in another promise's words: there for who wants them.
            m.el("details", &[("class", "part")], |m| {
                m.el("summary", &[], |m| {
                    m.leaf("b", &[], &title(&check.name));
                    m.text(" ");
                    let text = shortened(&sentence(&counterexample.sentence), MOST_SENTENCE);
                    m.leaf("span", &[("class", "quiet")], &text);
                });
                one(m, input, check, counterexample, &steps, &behind);
            });
        }
    }
    if found.len() > MOST_DRAWN {
        m.leaf("p", &[("class", "caption")], "The counterexamples of the other checks are in results.json.");
    }
    m.line();
}

fn why(m: &mut Markup, found: &Counterexample, behind: &[Behind<'_>]) {
    m.leaf("b", &[], &shortened(&sentence(&found.sentence), MOST_SENTENCE));
    if behind.is_empty() {
        m.text(" No fault was at work between the first of these calls and the last answer.");
        return;
    }
    let mut names: Vec<String> = behind
        .iter()
        .take(MOST_FAULTS)
        .map(|behind| format!("{} ({})", behind.fault.id, shortened(&brief_words(behind.fault), 80)))
        .collect();
    if let Some(left) = behind.len().checked_sub(MOST_FAULTS).filter(|left| *left > 0) {
        names.push(format!("{} more", len(left)));
    }
    m.text(&format!(" At work meanwhile: {}.", names.join(", ")));
}

fn one(
    m: &mut Markup,
    input: &Input<'_>,
    check: &CheckResult,
    found: &Counterexample,
    steps: &Steps,
    behind: &[Behind<'_>],
) {
    m.el("figure", &[("class", "sideways")], |m| drawing(m, input, found, steps, behind));
    let again = if found.rechecked { ", judged again by itself" } else { "" };
    m.leaf(
        "p",
        &[("class", "caption")],
        &format!(
            "{}: the smallest part found that still fails, {} of {} operations{again}. Outlined, with a cross: the \
             answer that cannot be. Arrow: order in real time. Open to the right: never answered. Shaded: the \
             faults behind it.",
            title(&check.name),
            len(found.ops.len()),
            count(found.of_ops)
        ),
    );
    list(m, found);
}

/// The moments of a counterexample, each a step of the axis.
struct Steps {
    moments: Vec<u64>,
}

impl Steps {
    fn of(input: &Input<'_>, found: &Counterexample) -> Self {
        let ops = found.ops.iter().take(MOST_OPS);
        let mut moments: Vec<u64> =
            ops.flat_map(|op| [Some(op.invoke_ns), op.complete_ns]).flatten().collect();
        moments.sort_unstable();
        moments.dedup();
        if let (Some(&first), Some(&last)) = (moments.first(), moments.last()) {
            let faults = input.faults.iter().filter_map(|fault| fault.interval(input.axis.end_ns));
            let within = |at: &u64| (first..last).contains(at);
            let edges: Vec<u64> = faults.flat_map(|(from, to)| [from, to]).filter(within).collect();
            if moments.len() + edges.len() <= MOST_STEPS {
                moments.extend(edges);
                moments.sort_unstable();
                moments.dedup();
            }
        }
        Self { moments }
    }

    /// The moments as text, with as many decimals as it takes to tell neighbours apart.
    fn texts(&self) -> Vec<String> {
        let close = |limit: u64| self.moments.windows(2).any(|pair| pair[1] - pair[0] < limit);
        let fine = |ns: &u64, unit: u64, digits: usize| {
            let (whole, rest) = (ns / (1000 * NS_PER_MS), ns % (1000 * NS_PER_MS) / unit);
            format!("{}.{rest:0digits$}", count(whole))
        };
        self.moments
            .iter()
            .map(|at| match (close(NS_PER_MS / 10), close(NS_PER_MS)) {
                (true, _) => fine(at, 1000, 6),
                (false, true) => fine(at, 100_000, 4),
                (false, false) => moment(*at),
            })
            .collect()
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
            Some(to) => lossy(at - from) / lossy(to - from),
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

/// A fault at work during the counterexample, with its steps.
struct Behind<'a> {
    fault: &'a FaultRecord,
    from: f64,
    to: f64,
}

fn behind<'a>(input: &Input<'a>, steps: &Steps) -> Vec<Behind<'a>> {
    let (Some(&first), Some(&last)) = (steps.moments.first(), steps.moments.last()) else {
        return Vec::new();
    };
    input
        .faults
        .iter()
        .filter_map(|fault| fault.interval(input.axis.end_ns).map(|interval| (fault, interval)))
        .filter(|(_, (from, to))| *from <= last && *to >= first)
        .map(|(fault, (from, to))| Behind { fault, from: steps.between(from), to: steps.between(to) })
        .collect()
}

fn drawing(m: &mut Markup, input: &Input<'_>, found: &Counterexample, steps: &Steps, behind: &[Behind<'_>]) {
    let width = css(steps.number() * STEP_PX);
    let behind = &behind[..behind.len().min(MOST_FAULTS)];
    let intervals: Vec<(f64, f64)> =
        behind.iter().map(|behind| (behind.from, behind.to.max(behind.from + 1.0))).collect();
    let rows = rows(&intervals, MOST_FAULTS);
    let used = rows.iter().map(|row| row + 1).max().unwrap_or(0);
    m.el("div", &[("class", "story"), ("style", &format!("min-width:{width}px;--rows:{used}"))], |m| {
        for (Behind { fault, from, to }, row) in behind.iter().zip(&rows) {
            let style = format!("{};--row:{row}", steps.place(*from, *to));
            m.leaf("i", &[("class", "shade"), ("style", &style)], "");
            let bar = format!("{};--row:{row}", steps.place(*from, to.max(from + 0.5)));
            m.el("span", &[("class", "fault"), ("style", &bar), ("title", &words(fault))], |m| {
                m.leaf("b", &[], &fault.id);
                m.text(&format!(" {}", shortened(&brief_words(fault), 80)));
            });
        }
        roles(m, input, steps);
        for (process, ops) in lanes(found) {
            m.el("div", &[("class", "process")], |m| {
                m.leaf("b", &[], &format!("p{process}"));
                for op in ops {
                    operation(m, op, steps);
                }
            });
        }
        order(m, found, steps);
        m.el("div", &[("class", "steps")], |m| {
            for (at, text) in steps.moments.iter().zip(steps.texts()) {
                let style = steps.place(steps.step(*at), steps.step(*at));
                m.leaf("span", &[("class", "tick"), ("style", &style)], &text);
            }
            let text = "time since start, s; one step for each event, not to scale";
            m.leaf("span", &[("class", "axis-title")], text);
        });
    });
}

/// What each member was meanwhile, as in the timeline.
fn roles(m: &mut Markup, input: &Input<'_>, steps: &Steps) {
    let (Some(&first), Some(&last)) = (steps.moments.first(), steps.moments.last()) else { return };
    if input.spans.len() > MOST_MEMBERS {
        return;
    }
    for (id, spans) in input.spans.iter().rev() {
        m.el("div", &[("class", "role")], |m| {
            m.leaf("b", &[], &format!("n{id}"));
            let near = spans.iter().filter(|span| span.from_ns <= last && span.to_ns >= first);
            let near: Vec<&&MemberSpan> = near.take(MOST_OPS).collect();
            for (at, span) in near.iter().enumerate() {
                // The first and the last reach to the edges, since nothing changed there.
                let from = if at == 0 { -0.2 } else { steps.between(span.from_ns) };
                let ends = at + 1 == near.len() && span.to_ns >= last;
                let to = if ends { steps.number() } else { steps.between(span.to_ns) };
                let class = format!("rib {}", role_class(span.role));
                let style = steps.place(from, to.max(from));
                m.el("i", &[("class", &class), ("style", &style)], |m| role_label(m, span));
            }
        });
    }
}

/// The order in real time that the impossible answer breaks: from the answer before it to its call, or from its
/// answer to the next call.
fn order(m: &mut Markup, found: &Counterexample, steps: &Steps) {
    let ops = || found.ops.iter().take(MOST_OPS);
    let Some(bad) = ops().find(|op| op.impossible) else { return };
    let others = || ops().filter(|op| op.index != bad.index);
    let before = others().filter_map(|op| op.complete_ns).filter(|at| *at <= bad.invoke_ns).max();
    let after =
        others().map(|op| op.invoke_ns).filter(|at| bad.complete_ns.is_some_and(|end| end <= *at)).min();
    let (from, to) = match (before, after, bad.complete_ns) {
        (Some(before), _, _) => (before, bad.invoke_ns),
        (None, Some(after), Some(end)) => (end, after),
        _ => return,
    };
    let apart = duration(ns_to_ms(to - from));
    let (from, to) = (steps.step(from), steps.step(to));
    let text = if to - from >= 2.0 { format!("answered {apart} before the call") } else { apart };
    m.el("div", &[("class", "order")], |m| {
        m.el("span", &[("style", &steps.place(from, to))], |m| m.leaf("small", &[], &text));
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
    class.push_str(if op.changes { " writes" } else { " reads" });
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
        &[("class", &class), ("style", &style), ("title", &format!("{} {}", op.call, answer(op)))],
        |m| {
            m.leaf("b", &[], &op.call);
            m.leaf("small", &[], &in_brief(op));
        },
    );
}

/// The answer where room is short; the list below has all of it.
fn in_brief(op: &OpView) -> String {
    if op.impossible {
        return "✗ cannot be".to_owned();
    }
    answer(op).replace(", version ", ", v")
}

/// With a mark beside the colour for whoever can't tell it.
fn answer(op: &OpView) -> String {
    format!("{}{}", if op.impossible { "✗ " } else { "" }, crate::story::answer(op))
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
                    m.leaf("td", &[("class", "mono")], &format!("p{} {}", op.process, op.call));
                    let session = op.session.as_ref().map(|id| format!(", session {id}")).unwrap_or_default();
                    let text = format!("{}{session}, record {}", answer(op), count(op.index + 1));
                    m.leaf("td", &[], &shortened(&text, 200));
                });
            }
        });
    });
    if found.ops.len() > MOST_OPS {
        let left = len(found.ops.len() - MOST_OPS);
        m.leaf("p", &[("class", "caption")], &format!("{left} more operations are in results.json."));
    }
}
