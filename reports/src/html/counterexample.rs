//! The counterexample: which answers cannot be, in one sentence, one drawing and a few lines.
//!
//! Its axis has one step for every call and answer, because the order is what matters there and not the
//! distance; the drawing says so. A step is as wide as the words in it ask for, so that a dozen steps fit a
//! screen; where the screen is narrower the drawing alone scrolls sideways, and begins where the answer
//! stands that cannot be.
//!
//! Two arrows say what is wrong: what happened, and what would have had to happen for the answer to be right.

use std::collections::BTreeMap;

use checker::history::{Datum, Outcome};
use checker::verdict::{CheckResult, Counterexample, OpView};
use plotters::prelude::*;

use super::Input;
use super::checks::title;
use super::lanes::{brief_words, role_class, role_label, words};
use super::markup::{Markup, css};
use crate::labels::{rows, width_px};
use crate::svg::{self, Frame, Pen};
use runs::broken::{contradicted, simplest, written};
use runs::faults::FaultRecord;
use runs::findings::{sentence, shortened};
use runs::held::{Held, by_member};
use runs::numbers::{NS_PER_MS, count, duration, len, len_f64, lossy, moment, ns_to_ms, to_u32};
use runs::results::MemberSpan;

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
/// Stretches of one member that are told in words.
const MOST_TOLD: usize = 3;
/// Characters of a sentence at most.
const MOST_SENTENCE: usize = 800;
/// The least width of a step, in px: the label of its moment has room.
const STEP_PX: f64 = 50.0;
/// The least width of an operation, in px.
const OP_PX: f64 = 66.0;
/// The most that an operation's words may ask for, in px.
const MOST_OP_PX: f64 = 230.0;
/// What stands around the words of an operation, in px.
const FRAME_PX: f64 = 16.0;
/// Room before the first step and behind the last one, in px.
const EDGE_PX: (f64, f64) = (26.0, 44.0);
/// A character of an operation's name is so much wider than one of the small print.
const NAME: f64 = 1.12;
/// Height of a process's lane in px, as the stylesheet has it.
const LANE_PX: u32 = 46;
/// Room below the lanes for the arrow back, in px.
const BACK_PX: u32 = 30;
/// A drawing begins at its end where the answer that cannot be is so near to it, in px.
const NEAR_THE_END_PX: f64 = 260.0;

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
    // The one that the headline tells comes first; one operation alone contradicts something that is not
    // drawn.
    let headline = simplest(&input.results.checks).map(|(at, _)| input.results.checks[at].name.as_str());
    found.sort_by_key(|(check, found)| (Some(check.name.as_str()) != headline, found.ops.len() < 2));
    m.leaf("h2", &[("id", "counterexample")], "Counterexample");
    for (at, (check, counterexample)) in found.iter().take(MOST_DRAWN).enumerate() {
        let steps = Steps::of(input, counterexample);
        let behind = behind(input, &steps);
        if at == 0 {
            m.el("p", &[("class", "why")], |m| why(m, counterexample, &behind));
            write_one(m, input, check, counterexample, &steps, &behind);
        } else {
            // The others say the same in another promise's words: there for who wants them.
            m.el("details", &[("class", "part")], |m| {
                m.el("summary", &[], |m| {
                    m.leaf("b", &[], &title(&check.name));
                    m.text(" ");
                    let text = shortened(&sentence(&counterexample.sentence), MOST_SENTENCE);
                    m.leaf("span", &[("class", "quiet")], &text);
                });
                write_one(m, input, check, counterexample, &steps, &behind);
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

/// Draws a counterexample, and writes what it shows below the drawing.
fn write_one(
    m: &mut Markup,
    input: &Input<'_>,
    check: &CheckResult,
    found: &Counterexample,
    steps: &Steps,
    behind: &[Behind<'_>],
) {
    let layout = Layout::of(found, steps);
    let class = if layout.begins_at_its_end(found, steps) { "sideways at-end" } else { "sideways" };
    let story = contradicted(found);
    let shown = story.map(|(bad, change)| {
        let members = input.spans.keys().copied();
        by_member(input.history, &input.results.held_at_the_end, change, bad, members)
    });
    let held = shown.unwrap_or_default();
    m.el("figure", &[("class", class)], |m| {
        Drawing { input, found, steps, layout: &layout, held: &held, story }.write(m, behind);
    });
    if let Some((bad, change)) = story {
        arrows_in_words(m, bad, change);
    }
    let again = if found.rechecked { ", judged again by itself" } else { "" };
    m.leaf(
        "p",
        &[("class", "caption")],
        &format!(
            "{}: the smallest part found that still fails, {} of {} operations{again}{}. Outlined, with a \
             cross: the answer that cannot be. Open to the right: never answered. Shaded: the faults behind \
             it.",
            title(&check.name),
            len(found.ops.len()),
            count(found.of_ops),
            one_key(found).map(|key| format!(", all on k{key}")).unwrap_or_default(),
        ),
    );
    list(m, found);
    if let Some((_, change)) = story {
        who_held(m, change, &held);
    }
}

/// What the two arrows say.
fn arrows_in_words(m: &mut Markup, bad: &OpView, change: &OpView) {
    let apart = duration(ns_to_ms(bad.invoke_ns.saturating_sub(change.complete_ns.unwrap_or(bad.invoke_ns))));
    let (bad, change) = (shortened(&bad.call, 60), shortened(&change.call, 60));
    m.el("div", &[("class", "legend arrows")], |m| {
        m.el("span", &[("class", "key")], |m| {
            m.leaf("i", &[("class", "line happened")], "");
            m.leaf("b", &[], "what happened");
            m.text(&format!("{change} was acknowledged {apart} before the call of {bad}"));
        });
        m.el("span", &[("class", "key")], |m| {
            m.leaf("i", &[("class", "line needed")], "");
            m.leaf("b", &[], "what would have had to happen");
            m.text(&format!("{bad} comes before {change}"));
        });
    });
}

/// Who showed the value that the answer did not know of, in words.
fn who_held(m: &mut Markup, change: &OpView, held: &[Held]) {
    if held.is_empty() {
        return;
    }
    let value = written(change).map(|value| value.to_string()).unwrap_or_default();
    let version = change.version.map(|version| format!(" (version {})", count(version.unsigned_abs())));
    m.el("table", &[("class", "cards who-held")], |m| {
        m.el("thead", &[], |m| {
            m.el("tr", &[], |m| {
                m.leaf("th", &[], "who held it");
                m.leaf("th", &[], &format!("answers with {value}{} or newer", version.unwrap_or_default()));
                m.leaf("th", &[], "answers without it");
                m.leaf("th", &[], "at the end");
            });
        });
        m.el("tbody", &[], |m| {
            for member in held.iter().take(MOST_MEMBERS) {
                m.el("tr", &[], |m| {
                    m.leaf("td", &[("class", "id")], &format!("n{}", member.member));
                    m.leaf(
                        "td",
                        &[("data-l", "answers with it"), ("class", "span2")],
                        &stretches(member, true),
                    );
                    m.leaf(
                        "td",
                        &[("data-l", "answers without it"), ("class", "span2")],
                        &stretches(member, false),
                    );
                    m.leaf("td", &[("data-l", "at the end"), ("class", "span2")], &at_the_end(member));
                });
            }
        });
    });
}

fn stretches(held: &Held, with: bool) -> String {
    let own = held.stretches.iter().filter(|stretch| stretch.with == with);
    let told: Vec<String> = own
        .take(MOST_TOLD)
        .map(|stretch| {
            let until =
                if stretch.answers == 1 { String::new() } else { format!(" – {}", moment(stretch.to_ns)) };
            format!("{} at {}{until} s", len(stretch.answers), moment(stretch.from_ns))
        })
        .collect();
    if told.is_empty() { "–".to_owned() } else { told.join("; ") }
}

fn at_the_end(held: &Held) -> String {
    let Some((state, with)) = &held.at_the_end else { return "not read".to_owned() };
    let value = state.value.map_or_else(|| "nothing".to_owned(), |value| value.to_string());
    let glyph = match with {
        Some(true) => "✓ with it: ",
        Some(false) => "✗ without it: ",
        None => "",
    };
    let version = state.version.map(|version| format!(", version {}", figure(version))).unwrap_or_default();
    format!("{glyph}{value}{version}")
}

fn figure(number: i64) -> String {
    u64::try_from(number).map_or_else(|_| number.to_string(), count)
}

/// The key, where all operations are on one: then it need not stand in each.
fn one_key(found: &Counterexample) -> Option<i64> {
    let Datum::Int(key) = found.ops.first()?.key else { return None };
    found.ops.iter().all(|op| op.key == Datum::Int(key)).then_some(key)
}

/// The words of an operation, without a key that all have in common.
fn call(op: &OpView, one_key: Option<i64>) -> String {
    let Some(key) = one_key else { return op.call.clone() };
    op.call.replacen(&format!(" k{key}"), "", 1).replacen(" = ", " ", 1)
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

    fn at(&self, moment: u64) -> usize {
        self.moments.partition_point(|other| *other < moment)
    }

    fn step(&self, at: u64) -> f64 {
        len_f64(self.at(at))
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
}

/// Where each step stands, in px of a drawing that needs to be no narrower.
struct Layout {
    places: Vec<f64>,
    need_px: f64,
}

impl Layout {
    fn of(found: &Counterexample, steps: &Steps) -> Self {
        let one_key = one_key(found);
        let last = steps.moments.len();
        let mut places = vec![0.0; last + 1];
        for at in 1..=last {
            let ends = |op: &&OpView| op.complete_ns.map_or(last, |to| steps.at(to)) == at;
            let needed = found
                .ops
                .iter()
                .take(MOST_OPS)
                .filter(ends)
                .map(|op| places[steps.at(op.invoke_ns).min(at)] + op_px(op, one_key))
                .fold(0.0, f64::max);
            // The room behind the last moment is for what was never answered.
            let least = if at == last { places[at - 1] } else { places[at - 1] + STEP_PX };
            places[at] = needed.max(least);
        }
        let need_px = EDGE_PX.0 + places.last().copied().unwrap_or(0.0) + EDGE_PX.1;
        Self { places, need_px }
    }

    /// A step, or a place between two, in px.
    fn px(&self, step: f64) -> f64 {
        let last = self.places.len() - 1;
        let before = usize::try_from(to_u32(step, u32::MAX)).unwrap_or(last).min(last);
        let from = self.places[before];
        let to = self.places.get(before + 1).copied().unwrap_or(from + EDGE_PX.1 * 2.0);
        EDGE_PX.0 + from + (to - from) * (step - len_f64(before)).clamp(-0.5, 1.0)
    }

    fn percent(&self, step: f64) -> f64 {
        (self.px(step) / self.need_px * 100.0).clamp(0.0, 100.0)
    }

    fn place(&self, from: f64, to: f64) -> String {
        let (from, to) = (self.percent(from), self.percent(to));
        format!("left:{}%;width:{}%", css(from), css((to - from).max(0.0)))
    }

    /// Whether what matters stands at the right end, so that a drawing that scrolls should begin there.
    fn begins_at_its_end(&self, found: &Counterexample, steps: &Steps) -> bool {
        let bad = found.ops.iter().take(MOST_OPS).find(|op| op.impossible);
        bad.is_some_and(|op| self.need_px - self.px(steps.step(op.invoke_ns)) < NEAR_THE_END_PX)
    }
}

/// The room that an operation's words ask for, in px.
fn op_px(op: &OpView, one_key: Option<i64>) -> f64 {
    let words = (width_px(&call(op, one_key)) * NAME).max(width_px(&in_brief(op)));
    (words + FRAME_PX).clamp(OP_PX, MOST_OP_PX)
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

/// What one drawing is made of.
struct Drawing<'a> {
    input: &'a Input<'a>,
    found: &'a Counterexample,
    steps: &'a Steps,
    layout: &'a Layout,
    held: &'a [Held],
    /// The answer that cannot be, and what it does not know of.
    story: Option<(&'a OpView, &'a OpView)>,
}

impl Drawing<'_> {
    fn write(&self, m: &mut Markup, behind: &[Behind<'_>]) {
        let behind = &behind[..behind.len().min(MOST_FAULTS)];
        let intervals: Vec<(f64, f64)> =
            behind.iter().map(|behind| (behind.from, behind.to.max(behind.from + 1.0))).collect();
        let rows = rows(&intervals, MOST_FAULTS);
        let used = rows.iter().map(|row| row + 1).max().unwrap_or(0);
        let style = format!("--need:{}px;--rows:{used}", css(self.layout.need_px));
        m.el("div", &[("class", "story"), ("style", &style)], |m| {
            for (Behind { fault, from, to }, row) in behind.iter().zip(&rows) {
                let style = format!("{};--row:{row}", self.layout.place(*from, *to));
                m.leaf("i", &[("class", "shade"), ("style", &style)], "");
                let bar = format!("{};--row:{row}", self.layout.place(*from, to.max(from + 0.5)));
                m.el("span", &[("class", "fault"), ("style", &bar), ("title", &words(fault))], |m| {
                    m.leaf("b", &[], &fault.id);
                    m.text(&format!(" {}", shortened(&brief_words(fault), 80)));
                });
            }
            self.members(m);
            self.processes(m);
            m.el("div", &[("class", "steps")], |m| {
                for (n, (at, text)) in self.steps.moments.iter().zip(self.steps.texts()).enumerate() {
                    let step = self.steps.step(*at);
                    let class = if n % 2 == 1 { "tick low" } else { "tick" };
                    m.leaf("span", &[("class", class), ("style", &self.layout.place(step, step))], &text);
                }
                let text = "time since start, s; one step for each event, not to scale";
                m.leaf("span", &[("class", "axis-title")], text);
            });
        });
    }

    /// What each member was meanwhile, as in the timeline, and whether it showed the value.
    fn members(&self, m: &mut Markup) {
        let moments = &self.steps.moments;
        let (Some(&first), Some(&last)) = (moments.first(), moments.last()) else { return };
        if self.input.spans.len() > MOST_MEMBERS {
            return;
        }
        for (id, spans) in self.input.spans.iter().rev() {
            m.el("div", &[("class", "role")], |m| {
                m.leaf("b", &[], &format!("n{id}"));
                let near = spans.iter().filter(|span| span.from_ns <= last && span.to_ns >= first);
                let near: Vec<&&MemberSpan> = near.take(MOST_OPS).collect();
                for (at, span) in near.iter().enumerate() {
                    // The first and the last reach to the edges, since nothing changed there.
                    let from = if at == 0 { -0.5 } else { self.steps.between(span.from_ns) };
                    let ends = at + 1 == near.len() && span.to_ns >= last;
                    let to = if ends { self.steps.number() } else { self.steps.between(span.to_ns) };
                    let class = format!("rib {}", role_class(span.role));
                    let style = self.layout.place(from, to.max(from));
                    m.el("i", &[("class", &class), ("style", &style)], |m| role_label(m, span));
                }
            });
            if let Some(held) = self.held.iter().find(|held| held.member == *id) {
                self.holds(m, held, (first, last));
            }
        }
    }

    /// Whether a member's answers showed the value, under what it was.
    fn holds(&self, m: &mut Markup, held: &Held, (first, last): (u64, u64)) {
        let value = self.story.and_then(|(_, change)| written(change)).unwrap_or_default();
        m.el("div", &[("class", "holds")], |m| {
            for stretch in held.stretches.iter().filter(|s| s.from_ns <= last && s.to_ns >= first) {
                let (from, to) = (stretch.from_ns.max(first), stretch.to_ns.min(last));
                let from = self.steps.between(from);
                let style = self.layout.place(from, self.steps.between(to).max(from + 0.15));
                let (class, word) = if stretch.with { ("with", "with") } else { ("without", "without") };
                let text = format!("{word} {value}");
                m.el("i", &[("class", class), ("style", &style), ("title", &text)], |m| {
                    m.leaf("span", &[], &text)
                });
            }
        });
    }

    fn processes(&self, m: &mut Markup) {
        let one_key = one_key(self.found);
        let lanes = lanes(self.found);
        m.el("div", &[("class", "processes")], |m| {
            if let Some((bad, change)) = self.story {
                self.arrows(m, &lanes, bad, change);
            }
            for (process, ops) in &lanes {
                m.el("div", &[("class", "process")], |m| {
                    m.leaf("b", &[], &format!("p{process}"));
                    for op in ops {
                        self.operation(m, op, one_key);
                    }
                });
            }
        });
    }

    fn operation(&self, m: &mut Markup, op: &OpView, one_key: Option<i64>) {
        let (from, to) = self.ends(op);
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
        let style = self.layout.place(from, to.max(from + 0.5));
        let title = format!("{} {}", op.call, answer(op));
        m.el("span", &[("class", &class), ("style", &style), ("title", &title)], |m| {
            m.leaf("b", &[], &call(op, one_key));
            m.leaf("small", &[], &in_brief(op));
        });
    }

    /// The steps of an operation's call and of its answer.
    fn ends(&self, op: &OpView) -> (f64, f64) {
        let to = op.complete_ns.map_or(self.steps.number(), |at| self.steps.step(at));
        (self.steps.step(op.invoke_ns), to)
    }

    /// What happened, from the acknowledgement to the call; and what would have had to happen, back from the
    /// answer that cannot be to before the change. Behind the operations, their heads beside them.
    fn arrows(&self, m: &mut Markup, lanes: &[(u64, Vec<&OpView>)], bad: &OpView, change: &OpView) {
        let lane = |op: &OpView| lanes.iter().position(|(process, _)| *process == op.process);
        let (Some(bad_lane), Some(change_lane)) = (lane(bad), lane(change)) else { return };
        let height = u32::try_from(lanes.len()).unwrap_or(1) * LANE_PX + BACK_PX;
        let (bad_from, bad_to) = self.ends(bad);
        let (change_from, change_to) = self.ends(change);
        let middle = |from: f64, to: f64| (self.layout.percent(from) + self.layout.percent(to)) / 2.0;
        let (left, right) = (self.layout.percent(change_to), self.layout.percent(bad_from));
        let (bad_x, change_x) = (middle(bad_from, bad_to), middle(change_from, change_to));
        let centre = |lane: usize| len_f64(lane) * f64::from(LANE_PX) + f64::from(LANE_PX) / 2.0;
        let below = |lane: usize| len_f64(lane + 1) * f64::from(LANE_PX) - 4.0;
        let frame = Frame {
            size: (1000, height),
            class: "arcs",
            series: &["happened", "needed"],
            label: "what happened, and what would have had to happen",
        };
        let height = f64::from(height);
        let happened = curve(
            [(left, centre(change_lane)), ((left + right) / 2.0, centre(change_lane))],
            [((left + right) / 2.0, centre(bad_lane)), (right, centre(bad_lane))],
        );
        let low = below(bad_lane.max(change_lane)) + f64::from(BACK_PX) * 1.3;
        let needed = curve(
            [(bad_x, below(bad_lane)), (bad_x, low)],
            [(change_x, low), (change_x, below(change_lane))],
        );
        let style = format!("height:{}px", css(height));
        m.el("div", &[("class", "arcs-frame"), ("style", &style)], |m| {
            m.drawing(&svg::draw(&frame, |area| {
                let mut chart = ChartBuilder::on(area).build_cartesian_2d(0.0..100.0, height..0.0)?;
                chart.draw_series(LineSeries::new(happened.iter().copied(), Pen(0)))?;
                chart.draw_series(LineSeries::new(needed.iter().copied(), Pen(1)))?;
                Ok(())
            }));
            for (class, x, y) in
                [("head happened", right, centre(bad_lane)), ("head needed", change_x, below(change_lane))]
            {
                let style = format!("left:{}%;top:{}px", css(x), css(y));
                m.leaf("i", &[("class", class), ("style", &style)], "");
            }
        });
    }
}

/// Points of a drawn curve.
const CURVE_POINTS: u32 = 24;

/// A cubic curve by its ends and what pulls at them.
fn curve([from, pull]: [(f64, f64); 2], [draw, to]: [(f64, f64); 2]) -> Vec<(f64, f64)> {
    (0..=CURVE_POINTS)
        .map(|point| {
            let t = f64::from(point) / f64::from(CURVE_POINTS);
            let back = 1.0 - t;
            let mix = |a: f64, b: f64, c: f64, d: f64| {
                a * back.powi(3) + 3.0 * b * back * back * t + 3.0 * c * back * t * t + d * t.powi(3)
            };
            (mix(from.0, pull.0, draw.0, to.0), mix(from.1, pull.1, draw.1, to.1))
        })
        .collect()
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
