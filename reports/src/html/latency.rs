//! Commit latency: what clients paid, calm and under faults, and what of it members took to commit.
//!
//! Three views of the same figures: curves by percentile, a table, and how many took how long. How it went
//! over time is a lane of the timeline.

use plotters::prelude::*;

use super::Input;
use super::markup::{Markup, css};
use crate::labels::{spread, tick_text};
use crate::svg::{self, Frame, Pen};
use runs::findings::{self, percent};
use runs::latency::{BINS_PER_DECADE, SETTLE_NS};
use runs::numbers::{NS_PER_MS, count, lossy, ms, setting_ms, to_u32};
use runs::results::{LatencyClass, LatencySummary};

/// Height of the curves in px.
const HEIGHT_PX: f64 = 240.0;
/// Distance that two labels at the curves' ends need, in px.
const LABEL_PX: f64 = 13.0;
/// Curves that end beyond this per cent of the width have their label at the edge.
const SHARED_EDGE: f64 = 80.0;
/// Percentiles with a label on the axis.
const MARKED: [f64; 6] = [0.0, 50.0, 90.0, 99.0, 99.9, 99.99];

/// Bins of the histogram at most: twelve factors of ten.
const MOST_BINS: u32 = 120;

/// What clients saw, with the look of its curve.
const CLASSES: [(LatencyClass, &str); 6] = [
    (LatencyClass::WriteCalm, "w calm"),
    (LatencyClass::WriteFault, "w hot"),
    (LatencyClass::CasCalm, "c calm"),
    (LatencyClass::CasFault, "c hot"),
    (LatencyClass::ReadCalm, "r calm"),
    (LatencyClass::ReadFault, "r hot"),
];
/// What leaders took, and its look.
const COMMITS: (&str, &str) = ("commits, leader", "l calm");

/// Everything that was measured: name, look, figures.
fn measured<'a>(input: &Input<'a>) -> Vec<(&'static str, &'static str, &'a LatencySummary)> {
    let results = input.results;
    let classes = CLASSES
        .into_iter()
        .filter_map(|(class, look)| Some((class.name(), look, results.latency.get(&class)?)));
    let commits = results.commits.as_ref().map(|summary| (COMMITS.0, COMMITS.1, summary));
    classes.chain(commits).collect()
}

pub(super) fn write(m: &mut Markup, input: &Input<'_>) {
    m.heading("latency", "Commit latency", &findings::latency(input.results));
    let measured = measured(input);
    if measured.is_empty() {
        return;
    }
    m.el("div", &[("class", "two latency")], |m| {
        m.el("div", &[], |m| curves(m, &measured));
        m.el("div", &[], |m| table(m, &measured));
    });
    m.el("div", &[("class", "two latency")], |m| {
        m.el("div", &[], |m| histogram(m, &measured));
        m.el("div", &[], |m| {
            for text in explanation(input) {
                m.leaf("p", &[("class", "caption")], &text);
            }
        });
    });
    m.line();
}

type Measured<'a> = [(&'static str, &'static str, &'a LatencySummary)];

/// The axes of the curves: nines across, latency up, both logarithmic.
struct Scale {
    nines: f64,
    low: f64,
    high: f64,
}

impl Scale {
    fn of(measured: &Measured<'_>) -> Self {
        let summaries = || measured.iter().map(|(_, _, summary)| *summary);
        let most = summaries().map(|summary| summary.count).max().unwrap_or(1);
        let fastest = summaries().filter_map(|summary| summary.curve.first()).map(|point| point.1);
        let low = fastest.fold(f64::INFINITY, f64::min);
        let low = if low.is_finite() { low.max(0.01) } else { 0.1 };
        let high = summaries().map(|summary| summary.max_ms).fold(low * 9.0, f64::max);
        Self {
            nines: lossy(most).log10().max(1.0),
            low: 10_f64.powf(low.log10().floor()),
            high: 10_f64.powf(high.log10().ceil()),
        }
    }

    /// Position of a percentile: what is left above it, on a log scale.
    fn across(percentile: f64) -> f64 {
        -(1.0 - percentile / 100.0).max(1e-12).log10()
    }

    fn depth(&self, value: f64) -> f64 {
        (self.high / value.clamp(self.low, self.high)).log10() / (self.high / self.low).log10()
    }
}

fn curves(m: &mut Markup, measured: &Measured<'_>) {
    let scale = Scale::of(measured);
    m.el("div", &[("class", "curves")], |m| {
        m.leaf("span", &[("class", "y-title")], "latency, ms, log scale");
        let mut decade = scale.low;
        while decade <= scale.high * 1.001 {
            let style = format!("top:{}%", css(scale.depth(decade) * 100.0));
            m.leaf("i", &[("class", "rule"), ("style", &style)], "");
            let text = if decade < 0.99 { css(decade) } else { runs::numbers::rate(decade) };
            m.leaf("span", &[("class", "y"), ("style", &style)], &text);
            decade *= 10.0;
        }
        m.drawing(&draw(measured, &scale));
        end_labels(m, measured, &scale);
        for percentile in MARKED {
            let across = Scale::across(percentile);
            if across <= scale.nines * 1.001 {
                let style = format!("left:{}%", css(percent(across, scale.nines)));
                m.leaf("span", &[("class", "tick"), ("style", &style)], &css(percentile));
            }
        }
        m.leaf(
            "span",
            &[("class", "axis-title")],
            "percentile of operations, log scale of what is left above it",
        );
    });
}

fn draw(measured: &Measured<'_>, scale: &Scale) -> String {
    let looks: Vec<&str> = measured.iter().map(|(_, look, _)| *look).collect();
    let frame = Frame {
        size: (800, 480),
        class: "curve",
        series: &looks,
        label: "latency by percentile, calm and under faults",
    };
    svg::draw(&frame, |area| {
        let mut chart = ChartBuilder::on(area)
            .build_cartesian_2d(0.0..scale.nines, (scale.low..scale.high).log_scale())?;
        for (pen, (_, _, summary)) in (0_u8..).zip(measured) {
            let points = summary
                .curve
                .iter()
                .map(|&(percentile, value)| (Scale::across(percentile), value.clamp(scale.low, scale.high)));
            chart.draw_series(LineSeries::new(points, Pen(pen)))?;
        }
        Ok(())
    })
}

/// Names at the ends of the curves, moved apart where they would overlap.
fn end_labels(m: &mut Markup, measured: &Measured<'_>, scale: &Scale) {
    let ends: Vec<(&str, f64, f64)> = measured
        .iter()
        .filter_map(|(name, _, summary)| {
            let (percentile, value) = *summary.curve.last()?;
            Some((*name, percent(Scale::across(percentile), scale.nines), scale.depth(value) * HEIGHT_PX))
        })
        .collect();
    let wanted: Vec<f64> = ends.iter().map(|end| end.2).collect();
    let placed = spread(&wanted, LABEL_PX, HEIGHT_PX);
    for ((name, left, _), top) in ends.iter().zip(placed) {
        // Ends near the edge share it, so that no label stands in another curve's way.
        let left = if *left >= SHARED_EDGE { 100.0 } else { *left };
        let style = format!("left:{}%;top:{}px", css(left), css(top));
        m.leaf("span", &[("class", "end"), ("style", &style)], name);
    }
}

fn table(m: &mut Markup, measured: &Measured<'_>) {
    m.el("table", &[("class", "percentiles")], |m| {
        m.el("thead", &[], |m| {
            m.el("tr", &[], |m| {
                m.leaf("th", &[], "ms");
                for name in ["ops", "p50", "p90", "p99", "p99.9", "max"] {
                    m.leaf("th", &[("class", "n")], name);
                }
            });
        });
        m.el("tbody", &[], |m| {
            for (name, look, summary) in measured {
                row(m, name, look, summary);
            }
        });
    });
}

fn row(m: &mut Markup, name: &str, look: &str, summary: &LatencySummary) {
    m.el("tr", &[], |m| {
        m.el("td", &[("class", "nowrap")], |m| {
            m.leaf("i", &[("class", &format!("dash {look}"))], "");
            m.text(name);
        });
        m.leaf("td", &[("class", "n")], &count(summary.count));
        for value in [summary.p50_ms, summary.p90_ms, summary.p99_ms, summary.p999_ms] {
            m.leaf("td", &[("class", "n")], &ms(value));
        }
        m.el("td", &[("class", "n")], |m| m.leaf("b", &[], &ms(summary.max_ms)));
    });
}

/// How many took how long: a strip for each class, all on one logarithmic axis.
fn histogram(m: &mut Markup, measured: &Measured<'_>) {
    let bins = || measured.iter().flat_map(|(_, _, summary)| &summary.histogram);
    let places: Vec<f64> = bins().filter_map(|(upper, _)| place(*upper)).collect();
    if places.is_empty() {
        return;
    }
    // The axis begins and ends at whole powers of ten.
    let whole = |edge: f64| edge / BINS_PER_DECADE;
    let low = whole(places.iter().copied().fold(f64::INFINITY, f64::min) - 1.0).floor();
    let high = whole(places.iter().copied().fold(f64::NEG_INFINITY, f64::max)).ceil();
    let decades = to_u32((high - low).max(1.0), MOST_BINS / 10);
    m.el("h3", &[], |m| {
        m.text("How many took how long ");
        m.leaf("span", &[("class", "quiet")], "height: their number, log scale, of each row by itself");
    });
    m.el("div", &[("class", "strips histograms")], |m| {
        m.leaf("span", &[("class", "quiet median")], "operations");
        for (name, look, summary) in measured {
            m.leaf("span", &[], name);
            m.el("div", &[("class", "strip")], |m| {
                m.drawing(&bars(&summary.histogram, low, decades, look));
            });
            m.leaf("span", &[("class", "n")], &count(summary.count));
        }
        m.el("div", &[("class", "strip-axis")], |m| {
            for decade in 0..=decades {
                let style = format!("left:{}%", css(percent(f64::from(decade), f64::from(decades))));
                let value = 10_f64.powf(low + f64::from(decade));
                let text = if value < 0.99 { css(value) } else { tick_text(value, 1.0) };
                m.leaf("span", &[("class", "tick"), ("style", &style)], &text);
            }
            m.leaf("span", &[("class", "axis-title")], "ms, log scale");
        });
    });
}

/// The number of a bin, by its upper end.
fn place(upper_ms: f64) -> Option<f64> {
    let place = (upper_ms.log10() * BINS_PER_DECADE).round();
    place.is_finite().then_some(place)
}

fn bars(bins: &[(f64, u64)], low: f64, decades: u32, look: &'static str) -> String {
    let columns = decades * 10;
    let most = lossy(bins.iter().map(|bin| bin.1).max().unwrap_or(1)) + 1.0;
    let frame = Frame {
        size: (columns * 12, 60),
        class: "bars",
        series: &[look],
        label: "operations by their length",
    };
    svg::draw(&frame, |area| {
        let mut chart =
            ChartBuilder::on(area).build_cartesian_2d(0.0..f64::from(columns), 0.0..most.log10())?;
        let boxes = bins.iter().filter_map(|(upper, number)| {
            let left = f64::from(to_u32(place(*upper)? - 1.0 - low * BINS_PER_DECADE, columns - 1));
            let height = (lossy(*number) + 1.0).log10();
            Some(Rectangle::new([(left, 0.0), (left + 1.0, height)], Pen(0).filled()))
        });
        chart.draw_series(boxes)?;
        Ok(())
    })
}

fn explanation(input: &Input<'_>) -> Vec<String> {
    let total = input.results.operations.total;
    let settle = setting_ms(SETTLE_NS / NS_PER_MS);
    let mut out = vec![format!(
        "Faults: under way at any time between a fault's being asked for and {settle} after it was seen to \
         be gone. Calm: all others. Operations that did not end well have no latency here: {}, {} unknown. \
         Latency runs from when an operation was due, so that a stall is paid by everything that had to wait \
         for it.",
        findings::failures(total),
        count(total.info)
    )];
    if input.results.latency.contains_key(&LatencyClass::CasCalm)
        || input.results.latency.contains_key(&LatencyClass::CasFault)
    {
        out.push(
            "Cas: compare-and-sets that were done; a client reads before it sets, and the read is not in it."
                .to_owned(),
        );
    }
    if input.results.commits.is_some() {
        out.push(
            "Commits: from the proposal to the commit of each transaction, sessions' own included, as the \
             leaders themselves saw it, calm and under faults; what clients paid beyond that is the way \
             there and back, and waiting. Leaders tell it once a second, so a leader that is killed leaves \
             out its last."
                .to_owned(),
        );
    }
    out
}
