//! Lanes of the timeline that are drawn from the history: operations and throughput.
//!
//! A million operations stay a small page: an answered operation is a dot, and a dot is drawn once per cell
//! of time and latency. Operations that failed or whose fate is unknown are drawn each, as long as they are
//! few; beyond a limit they are drawn once per cell of time as well, and the caption says so.

use std::collections::BTreeSet;

use checker::history::{History, Op, Outcome};
use plotters::prelude::*;

use super::Input;
use super::lanes::{lane, scaled};
use super::markup::{Markup, css};
use crate::labels::{tick_text, ticks};
use crate::svg::{self, Frame, Pen};
use runs::findings::shortened;
use runs::latency::{Stretch, over_time};
use runs::numbers::{duration, len, len_f64, ms, ns_to_ms, ns_to_s, rate, to_u32};
use runs::operations::{answered_ns, due_ns, is_update};

/// Cells of time across the timeline, the finest first. A closer look shows more where the cells are fine,
/// and the page grows; the last is what a wide screen has pixels for.
const COLUMNS: [u32; 4] = [9600, 4800, 2400, 1200];
/// Strokes of dots that a finer drawing may have, at about seven bytes each.
const MOST_STROKES: usize = 14_000;
/// Cells of latency; each is two px high.
const ROWS: u32 = 76;
/// Room above the latency axis for operations without an answer, in px.
const NO_ANSWER_PX: f64 = 22.0;
/// Height of the latency axis in px.
const LATENCY_PX: f64 = 152.0;
/// Characters of an error in the name of a mark; the whole is in the history.
const MOST_ERROR: usize = 120;
/// Marks of one kind drawn each; more share cells of time.
const MOST_MARKS: usize = 250;
/// Cells of time across the timeline for marks that are too many.
const MARK_COLUMNS: f64 = 150.0;
/// Height of the throughput lane in px; its cells are half of one.
const RATE_PX: u32 = 72;
/// Cells of time across the throughput.
const RATE_COLUMNS: u32 = 4800;
/// Bins of throughput at most.
const MOST_BINS: u32 = 240;
/// The fastest answer shown, in ms; what is faster stands on the lower edge.
const FASTEST_MS: f64 = 0.01;

/// What the operations lane shows, for its caption.
pub(super) struct Drawn {
    cell_ms: f64,
    merged: bool,
    refused: usize,
}

impl Drawn {
    pub(super) fn caption(&self) -> String {
        let mut text =
            format!("Answered operations are drawn once for each {} by 2 px, ", duration(self.cell_ms));
        text.push_str(if self.merged {
            "failed and unknown ones, of which there are many, once for each short time."
        } else {
            "failed and unknown ones each by itself."
        });
        if self.refused > 0 {
            text.push_str(&format!(
                " {} compare-and-sets that found another value are answers like others.",
                len(self.refused)
            ));
        }
        text
    }
}

/// Latency of each operation over time.
pub(super) fn operations(m: &mut Markup, input: &Input<'_>) -> Drawn {
    let answers = Answers::of(input.history);
    let failed: Vec<&Op> = input
        .history
        .ops()
        .iter()
        .filter(|op| op.outcome == Outcome::Fail && answered_ns(op).is_none())
        .collect();
    let unknown: Vec<&Op> = input.history.ops().iter().filter(|op| op.outcome == Outcome::Info).collect();
    let columns = answers.columns(input.axis.end_s);
    let scale = Some((answers.low, answers.high));
    scaled(m, "operations", "Operations", "latency from when due, ms, log scale", scale, |m| {
        let no_answer = css(NO_ANSWER_PX / 2.0);
        m.leaf("span", &[("class", "y away"), ("style", &format!("top:{no_answer}px"))], "no answer");
        m.leaf("i", &[("class", "divider"), ("style", &format!("top:{}px", css(NO_ANSWER_PX)))], "");
        let mut decade = answers.low;
        while decade <= answers.high * 1.001 {
            let top = css(NO_ANSWER_PX + answers.depth(decade) * LATENCY_PX);
            m.leaf("i", &[("class", "rule"), ("style", &format!("top:{top}px"))], "");
            m.leaf("span", &[("class", "y"), ("style", &format!("top:{top}px"))], &decade_text(decade));
            decade *= 10.0;
        }
        m.drawing(&answers.draw(input.axis.end_s, columns));
        m.el("div", &[("class", "clip")], |m| {
            for op in thinned(&failed, input.axis.end_s) {
                failed_mark(m, op, &answers);
            }
            for op in thinned(&unknown, input.axis.end_s) {
                mark(m, "x mark unknown", due_ns(op), NO_ANSWER_PX / 2.0, &describe(op, "unknown", None));
            }
        });
    });
    Drawn {
        cell_ms: input.axis.end_s * 1000.0 / f64::from(columns),
        merged: failed.len().max(unknown.len()) > MOST_MARKS,
        refused: input.history.ops().iter().filter(|op| op.is_refused_cas()).count(),
    }
}

fn decade_text(decade: f64) -> String {
    if decade < 0.99 { css(decade) } else { rate(decade) }
}

/// All marks, or the first one of each cell of time.
fn thinned<'a>(ops: &[&'a Op], end_s: f64) -> Vec<&'a Op> {
    if ops.len() <= MOST_MARKS {
        return ops.to_vec();
    }
    let mut seen = BTreeSet::new();
    let cell = |op: &Op| to_u32(ns_to_s(due_ns(op)) / end_s * MARK_COLUMNS, u32::MAX);
    ops.iter().copied().filter(|op| seen.insert(cell(op))).collect()
}

fn failed_mark(m: &mut Markup, op: &Op, answers: &Answers<'_>) {
    let Some(completed) = op.complete_ns else {
        mark(m, "x mark failed", due_ns(op), NO_ANSWER_PX / 2.0, &describe(op, "failed", None));
        return;
    };
    let took = ns_to_ms(completed.saturating_sub(due_ns(op)));
    let top = NO_ANSWER_PX + answers.depth(took) * LATENCY_PX;
    mark(m, "x mark failed", due_ns(op), top, &describe(op, "failed", Some(took)));
}

fn mark(m: &mut Markup, class: &str, at_ns: u64, top_px: f64, title: &str) {
    let at = css(ns_to_s(at_ns));
    let style = format!("--a:{at};--b:{at};top:{}px", css(top_px));
    m.leaf("i", &[("class", class), ("style", &style), ("title", title)], "");
}

fn describe(op: &Op, how: &str, took_ms: Option<f64>) -> String {
    let node = op.node.map(|node| format!(" at n{node}")).unwrap_or_default();
    let error = op.error.as_ref().map(|error| format!(", {error}")).unwrap_or_default();
    let took = took_ms.map(|took| format!(", {} ms", ms(took))).unwrap_or_default();
    let error = shortened(&error, MOST_ERROR);
    format!("{how}: p{} {} k{}{node}{took}{error}", op.process, op.f, op.key)
}

/// Answered operations on an axis of latency that ends on whole powers of ten.
struct Answers<'a> {
    history: &'a History,
    low: f64,
    high: f64,
}

impl<'a> Answers<'a> {
    fn of(history: &'a History) -> Self {
        let (mut low, mut high) = (f64::INFINITY, 0.0_f64);
        for op in history.ops() {
            if let Some(took) = took_ms(op) {
                low = low.min(took);
                high = high.max(took);
            }
        }
        let low = if low.is_finite() { low.max(FASTEST_MS) } else { 0.1 };
        let low = 10_f64.powf(low.log10().floor());
        let high = 10_f64.powf(high.max(low * 9.0).log10().ceil());
        Self { history, low, high }
    }

    /// Where a latency stands: 0 at the upper end, 1 at the lower.
    fn depth(&self, took_ms: f64) -> f64 {
        let took = took_ms.clamp(self.low, self.high);
        (self.high / took).log10() / (self.high / self.low).log10()
    }

    /// The finest cells of time with which the drawing stays small.
    fn columns(&self, end_s: f64) -> u32 {
        let fits = |columns: &u32| self.strokes(end_s, *columns) <= MOST_STROKES;
        COLUMNS.into_iter().find(fits).unwrap_or(COLUMNS[COLUMNS.len() - 1])
    }

    /// About how many strokes a drawing has: cells that are set and whose neighbour above is not.
    fn strokes(&self, end_s: f64, columns: u32) -> usize {
        let rows = usize::try_from(ROWS).unwrap_or(1);
        let mut set = vec![false; usize::try_from(columns).unwrap_or(1) * rows * 2];
        for op in self.history.ops() {
            let Some(took) = took_ms(op) else { continue };
            let column = to_u32(ns_to_s(due_ns(op)) / end_s * f64::from(columns), columns - 1);
            let row = to_u32(self.depth(took) * f64::from(ROWS), ROWS - 1);
            let series = u32::from(is_update(op));
            if let Ok(cell) = usize::try_from((column * 2 + series) * ROWS + row) {
                set[cell] = true;
            }
        }
        set.chunks(rows).map(starts).sum()
    }

    fn draw(&self, end_s: f64, columns: u32) -> String {
        let frame = Frame {
            size: (columns, ROWS),
            class: "ops",
            series: &["r", "w"],
            label: "latency of each answered operation over time",
        };
        svg::draw(&frame, |area| {
            let mut chart =
                ChartBuilder::on(area).build_cartesian_2d(0.0..end_s, (self.low..self.high).log_scale())?;
            for (pen, update) in [(Pen(0), false), (Pen(1), true)] {
                let dots = self.history.ops().iter().filter(|op| is_update(op) == update).filter_map(|op| {
                    // Just inside the axis, so that what stands on an edge is not left out.
                    let took = took_ms(op)?.clamp(self.low * 1.02, self.high * 0.98);
                    Some(Pixel::new((ns_to_s(due_ns(op)).min(end_s * 0.999_9), took), pen))
                });
                chart.draw_series(dots)?;
            }
            Ok(())
        })
    }
}

/// Runs of neighbours.
fn starts(cells: &[bool]) -> usize {
    (0..cells.len()).filter(|&at| cells[at] && (at == 0 || !cells[at - 1])).count()
}

fn took_ms(op: &Op) -> Option<f64> {
    answered_ns(op).map(|at| ns_to_ms(at.saturating_sub(due_ns(op))))
}

/// What updates cost over time: the median as a line, bands up to the higher percentiles.
pub(super) fn percentiles(m: &mut Markup, input: &Input<'_>) -> Option<f64> {
    let stretches = over_time(input.history, input.axis.end_ns);
    let first = stretches.first()?;
    let length_ms = ns_to_ms(first.to_ns.saturating_sub(first.from_ns));
    let answers = Answers::of(input.history);
    let scale = Some((answers.low, answers.high));
    scaled(m, "over-time", "Commit latency", "p50, p90, p99 of updates, ms, log scale", scale, |m| {
        let mut decade = answers.low;
        let mut odd = false;
        while decade <= answers.high * 1.001 {
            let top = format!("top:{}%", css(answers.depth(decade) * 100.0));
            m.leaf("i", &[("class", "rule"), ("style", &top)], "");
            // Every second one: the lane is low.
            if !odd {
                m.leaf("span", &[("class", "y"), ("style", &top)], &decade_text(decade));
            }
            decade *= 10.0;
            odd = !odd;
        }
        m.drawing(&draw_percentiles(&stretches, input.axis.end_s, (answers.low, answers.high)));
    });
    Some(length_ms)
}

fn draw_percentiles(stretches: &[Stretch], end_s: f64, (low, high): (f64, f64)) -> String {
    let frame = Frame {
        size: (RATE_COLUMNS, RATE_PX * 2),
        class: "bands-of",
        series: &["outer", "inner", "line"],
        label: "percentiles of what acknowledged updates cost over time",
    };
    // Just inside the axis, so that what stands on an edge is not left out.
    let within = |ms: f64| ms.clamp(low * 1.02, high * 0.98);
    svg::draw(&frame, |area| {
        let mut chart = ChartBuilder::on(area).build_cartesian_2d(0.0..end_s, (low..high).log_scale())?;
        let band = |stretch: &Stretch, from: f64, to: f64, pen: u8| {
            let (left, right) = (ns_to_s(stretch.from_ns), ns_to_s(stretch.to_ns).min(end_s));
            Rectangle::new([(left, within(from)), (right, within(to))], Pen(pen).filled())
        };
        chart.draw_series(stretches.iter().map(|stretch| {
            let from = stretch.p90_ms.unwrap_or(stretch.p50_ms);
            band(stretch, from, stretch.p99_ms.unwrap_or(stretch.max_ms), 0)
        }))?;
        chart.draw_series(
            stretches.iter().filter_map(|stretch| Some(band(stretch, stretch.p50_ms, stretch.p90_ms?, 1))),
        )?;
        for run in stretches.chunk_by(|one, next| one.to_ns == next.from_ns) {
            let stairs = run.iter().flat_map(|stretch| {
                let median = within(stretch.p50_ms);
                [(ns_to_s(stretch.from_ns), median), (ns_to_s(stretch.to_ns).min(end_s), median)]
            });
            chart.draw_series(LineSeries::new(stairs, Pen(2)))?;
        }
        Ok(())
    })
}

/// Operations answered with success in each short time.
pub(super) fn throughput(m: &mut Markup, input: &Input<'_>) {
    let end_s = input.axis.end_s;
    let bin_s = bin_seconds(end_s);
    let bins = to_u32((end_s / bin_s).ceil(), MOST_BINS * 2).max(1);
    let mut answered: Vec<Vec<u64>> = vec![Vec::new(); usize::try_from(bins).unwrap_or(0)];
    for op in input.history.ops().iter().filter(|op| op.outcome == Outcome::Ok) {
        let Some(completed) = op.complete_ns else { continue };
        let bin = to_u32(ns_to_s(completed) / bin_s, bins - 1);
        if let Some(slot) = usize::try_from(bin).ok().and_then(|bin| answered.get_mut(bin)) {
            slot.push(completed.saturating_sub(due_ns(op)));
        }
    }
    let rates: Vec<f64> = answered.iter().map(|bin| len_f64(bin.len()) / bin_s).collect();
    let highest = rates.iter().copied().fold(1.0, f64::max).max(input.run.min_rate.unwrap_or(0.0));
    let marks = ticks(highest, 3);
    let step = marks.get(1).copied().unwrap_or(1.0);
    let top = (highest / step).ceil() * step;
    let unit = match input.run.min_rate {
        Some(least) => format!("answered ok, operations/s; dashed: minimum {}", rate(least)),
        None => "answered ok, operations/s".to_owned(),
    };
    lane(m, "throughput", "Throughput", &unit, |m| {
        for value in marks.iter().copied().chain((marks.last() < Some(&top)).then_some(top)) {
            let at = css((1.0 - value / top) * f64::from(RATE_PX));
            m.leaf("i", &[("class", "rule"), ("style", &format!("top:{at}px"))], "");
            m.leaf("span", &[("class", "y"), ("style", &format!("top:{at}px"))], &tick_text(value, step));
        }
        if let Some(least) = input.run.min_rate {
            let at = css((1.0 - least / top) * f64::from(RATE_PX));
            m.leaf("i", &[("class", "least"), ("style", &format!("top:{at}px"))], "");
        }
        m.drawing(&draw_rates(&rates, bin_s, end_s, top));
        figures(m, &mut answered, &rates, bin_s);
    });
}

/// What the readout of a moment says: answers in a second, their median and their slowest, bin by bin.
fn figures(m: &mut Markup, answered: &mut [Vec<u64>], rates: &[f64], bin_s: f64) {
    let mut medians = Vec::with_capacity(answered.len());
    let mut slowest = Vec::with_capacity(answered.len());
    for bin in answered {
        bin.sort_unstable();
        let shown = |ns: Option<&u64>| ns.map_or_else(|| "-".to_owned(), |ns| ms(ns_to_ms(*ns)));
        medians.push(shown(bin.get(bin.len().saturating_sub(1) / 2)));
        slowest.push(shown(bin.last()));
    }
    let rates: Vec<String> = rates.iter().map(|value| rate(value.round())).collect();
    m.leaf(
        "i",
        &[
            ("class", "bins"),
            ("hidden", ""),
            ("data-bin", &css(bin_s)),
            ("data-ok", &rates.join(" ")),
            ("data-p50", &medians.join(" ")),
            ("data-max", &slowest.join(" ")),
        ],
        "",
    );
}

/// A round bin that leaves at most [`MOST_BINS`] of them.
fn bin_seconds(end_s: f64) -> f64 {
    let mut bin: f64 = 0.1;
    for factor in [2.0, 2.5, 2.0].into_iter().cycle() {
        if end_s / bin <= f64::from(MOST_BINS) {
            break;
        }
        bin *= factor;
    }
    bin
}

fn draw_rates(rates: &[f64], bin_s: f64, end_s: f64, top: f64) -> String {
    let frame = Frame {
        size: (RATE_COLUMNS, RATE_PX * 2),
        class: "rates",
        series: &["area", "line"],
        label: "operations answered with success in a second over time",
    };
    let mut stairs: Vec<(f64, f64)> = Vec::with_capacity(rates.len() * 2);
    for (i, &value) in rates.iter().enumerate() {
        let from = len_f64(i) * bin_s;
        stairs.push((from, value));
        stairs.push(((from + bin_s).min(end_s), value));
    }
    svg::draw(&frame, |area| {
        let mut chart = ChartBuilder::on(area).build_cartesian_2d(0.0..end_s, 0.0..top)?;
        let ground = [(end_s, 0.0), (0.0, 0.0)];
        let outline: Vec<(f64, f64)> = stairs.iter().copied().chain(ground).collect();
        chart.draw_series([Polygon::new(outline, Pen(0))])?;
        chart.draw_series(LineSeries::new(stairs.iter().copied(), Pen(1)))?;
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_are_round_and_bounded() {
        assert!((bin_seconds(20.0) - 0.1).abs() < 1e-9);
        assert!((bin_seconds(61.0) - 0.5).abs() < 1e-9);
        for end_s in [1.0, 33.0, 500.0, 86_400.0] {
            assert!(end_s / bin_seconds(end_s) <= f64::from(MOST_BINS), "{end_s} s");
        }
    }

    #[test]
    fn a_caption_says_when_marks_share_cells() {
        let drawn = Drawn { cell_ms: 25.0, merged: true, refused: 1200 };
        assert!(drawn.caption().contains("once for each short time"));
        assert!(drawn.caption().contains("1,200 compare-and-sets"));
    }
}
