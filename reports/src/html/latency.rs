//! Commit latency: what clients paid, calm and under faults.

use plotters::prelude::*;

use super::Input;
use super::markup::{Markup, css};
use crate::findings::{self, percent};
use crate::labels::spread;
use crate::latency::SETTLE_NS;
use crate::numbers::{NS_PER_MS, count, lossy, ms, setting_ms};
use crate::results::{LatencyClass, LatencySummary};
use crate::svg::{self, Frame, Pen};

/// Height of the curves in px.
const HEIGHT_PX: f64 = 240.0;
/// Distance that two labels at the curves' ends need, in px.
const LABEL_PX: f64 = 13.0;
/// Curves that end beyond this per cent of the width have their label at the edge.
const SHARED_EDGE: f64 = 80.0;
/// Percentiles with a label on the axis.
const MARKED: [f64; 6] = [0.0, 50.0, 90.0, 99.0, 99.9, 99.99];

const CLASSES: [(LatencyClass, &str); 4] = [
    (LatencyClass::WriteCalm, "w calm"),
    (LatencyClass::WriteFault, "w hot"),
    (LatencyClass::ReadCalm, "r calm"),
    (LatencyClass::ReadFault, "r hot"),
];

pub(super) fn write(m: &mut Markup, input: &Input<'_>) {
    m.heading("latency", "Commit latency", &findings::latency(input.results));
    if input.results.latency.is_empty() {
        return;
    }
    m.el("div", &[("class", "two latency")], |m| {
        m.el("div", &[], |m| curves(m, input));
        m.el("div", &[], |m| {
            table(m, input);
            m.leaf("p", &[("class", "caption")], &explanation(input));
        });
    });
    m.line();
}

/// The axes of the curves: nines across, latency up, both logarithmic.
struct Scale {
    nines: f64,
    low: f64,
    high: f64,
}

impl Scale {
    fn of(input: &Input<'_>) -> Self {
        let summaries = || input.results.latency.values();
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

fn curves(m: &mut Markup, input: &Input<'_>) {
    let scale = Scale::of(input);
    m.el("div", &[("class", "curves")], |m| {
        m.leaf("span", &[("class", "y-title")], "latency, ms, log scale");
        let mut decade = scale.low;
        while decade <= scale.high * 1.001 {
            let style = format!("top:{}%", css(scale.depth(decade) * 100.0));
            m.leaf("i", &[("class", "rule"), ("style", &style)], "");
            let text = if decade < 0.99 { css(decade) } else { crate::numbers::rate(decade) };
            m.leaf("span", &[("class", "y"), ("style", &style)], &text);
            decade *= 10.0;
        }
        m.drawing(&draw(input, &scale));
        end_labels(m, input, &scale);
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

fn draw(input: &Input<'_>, scale: &Scale) -> String {
    let classes = CLASSES.map(|(_, class)| class);
    let frame = Frame {
        size: (800, 480),
        class: "curve",
        series: &classes,
        label: "latency by percentile for writes and reads, calm and under faults",
    };
    svg::draw(&frame, |area| {
        let mut chart = ChartBuilder::on(area)
            .build_cartesian_2d(0.0..scale.nines, (scale.low..scale.high).log_scale())?;
        for (pen, (class, _)) in (0_u8..).zip(CLASSES) {
            let Some(summary) = input.results.latency.get(&class) else { continue };
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
fn end_labels(m: &mut Markup, input: &Input<'_>, scale: &Scale) {
    let ends: Vec<(LatencyClass, f64, f64)> = input
        .results
        .latency
        .iter()
        .filter_map(|(class, summary)| {
            let (percentile, value) = *summary.curve.last()?;
            Some((*class, percent(Scale::across(percentile), scale.nines), scale.depth(value) * HEIGHT_PX))
        })
        .collect();
    let wanted: Vec<f64> = ends.iter().map(|end| end.2).collect();
    let placed = spread(&wanted, LABEL_PX, HEIGHT_PX);
    for ((class, left, _), top) in ends.iter().zip(placed) {
        // Ends near the edge share it, so that no label stands in another curve's way.
        let left = if *left >= SHARED_EDGE { 100.0 } else { *left };
        let style = format!("left:{}%;top:{}px", css(left), css(top));
        m.leaf("span", &[("class", "end"), ("style", &style)], class.name());
    }
}

fn table(m: &mut Markup, input: &Input<'_>) {
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
            for (class, look) in CLASSES {
                if let Some(summary) = input.results.latency.get(&class) {
                    row(m, class, look, summary);
                }
            }
        });
    });
}

fn row(m: &mut Markup, class: LatencyClass, look: &str, summary: &LatencySummary) {
    m.el("tr", &[], |m| {
        m.el("td", &[("class", "nowrap")], |m| {
            m.leaf("i", &[("class", &format!("dash {look}"))], "");
            m.text(class.name());
        });
        m.leaf("td", &[("class", "n")], &count(summary.count));
        for value in [summary.p50_ms, summary.p90_ms, summary.p99_ms, summary.p999_ms] {
            m.leaf("td", &[("class", "n")], &ms(value));
        }
        m.el("td", &[("class", "n")], |m| m.leaf("b", &[], &ms(summary.max_ms)));
    });
}

fn explanation(input: &Input<'_>) -> String {
    let total = input.results.operations.total;
    let settle = setting_ms(SETTLE_NS / NS_PER_MS);
    format!(
        "Faults: under way at any time between a fault's being asked for and {settle} after it was seen to be gone. \
         Calm: all others. Operations that did not end well have no latency here: {}, {} unknown. Latency runs from when an \
         operation was due, so that a stall is paid by everything that had to wait for it. Compare-and-sets \
         count as writes.",
        findings::failures(total),
        count(total.info)
    )
}
