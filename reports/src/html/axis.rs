//! The one time axis that all lanes of the timeline share, in seconds since the start of the run.

use checker::history::History;

use super::markup::{Markup, css};
use crate::labels::{tick_text, ticks};
use runs::faults::FaultRecord;
use runs::findings::percent;
use runs::numbers::ns_to_s;
use runs::operations;
use runs::results::Results;

/// Labelled moments at most; on a phone every second one is left out.
const MOST_TICKS: u32 = 13;

/// Beyond this per cent of the axis a tick's text has no room on its right.
const EDGE: f64 = 98.0;

/// From the start to the last thing that happened.
pub(crate) struct Axis {
    /// The end in ns.
    pub(crate) end_ns: u64,
    /// The end in s, never zero.
    pub(crate) end_s: f64,
}

impl Axis {
    /// The axis that holds everything.
    pub(crate) fn of(results: &Results, faults: &[FaultRecord], history: &History) -> Self {
        let spans = results.member_spans.iter().map(|span| span.to_ns);
        let outages = results.outages.iter().map(|outage| outage.to_ns);
        let faults = faults.iter().filter_map(|fault| fault.verified_healed_ns.or(Some(fault.asked_ns)));
        let last = spans.chain(outages).chain(faults).max().unwrap_or(0);
        let end_ns = last.max(operations::end_ns(history)).max(1_000_000);
        Self { end_ns, end_s: ns_to_s(end_ns) }
    }

    /// The custom properties that place something between two moments.
    pub(crate) fn between(from_ns: u64, to_ns: u64) -> String {
        format!("--a:{};--b:{}", css(ns_to_s(from_ns)), css(ns_to_s(to_ns)))
    }

    fn ticks(&self) -> (Vec<f64>, f64) {
        let ticks = ticks(self.end_s, MOST_TICKS);
        let step = ticks.get(1).copied().unwrap_or(1.0);
        (ticks, step)
    }

    /// Faint lines through all lanes.
    pub(crate) fn grid(&self, m: &mut Markup) {
        for tick in self.ticks().0 {
            m.leaf(
                "i",
                &[("class", "grid"), ("style", &format!("left:{}%", css(percent(tick, self.end_s))))],
                "",
            );
        }
    }

    /// The labelled axis below the lanes.
    pub(crate) fn write(&self, m: &mut Markup) {
        m.el("div", &[("class", "axis")], |m| {
            let (ticks, step) = self.ticks();
            for (i, tick) in ticks.into_iter().enumerate() {
                let at = percent(tick, self.end_s);
                let odd = if i % 2 == 1 { " odd" } else { "" };
                // The last one stands before its mark where it would leave the page.
                let edge = if at > EDGE { " edge" } else { "" };
                let (class, style) = (format!("tick{odd}{edge}"), format!("left:{}%", css(at)));
                m.leaf("span", &[("class", &class), ("style", &style)], &tick_text(tick, step));
            }
            m.leaf("span", &[("class", "axis-title")], "time since start, s");
        });
    }
}
