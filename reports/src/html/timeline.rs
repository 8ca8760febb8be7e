//! The timeline: faults, members, operations, throughput and outages over one axis.
//!
//! The whole state of the axis is two custom properties of the lanes' element, `--t0` and `--dt`; whatever
//! stands between two moments says so in `--a` and `--b` and follows by itself.

use super::Input;
use super::axis::Axis;
use super::markup::{Markup, css};
use super::{lanes, series, terms};
use runs::findings;
use runs::numbers::duration;
use runs::results::{LeaderSeen, Role};

pub(super) fn write(m: &mut Markup, input: &Input<'_>) {
    m.heading("timeline", "Timeline", &findings::timeline(input.run, input.results, input.faults));
    let nothing =
        input.history.ops().is_empty() && input.faults.is_empty() && input.results.member_spans.is_empty();
    if nothing {
        return;
    }
    legend(m, input);
    m.el("figure", &[], |m| {
        let end = css(input.axis.end_s);
        let style = format!("--t0:0;--dt:{end}");
        let mut drawn = None;
        let mut stretch_ms = None;
        m.el("div", &[("class", "lanes"), ("style", &style), ("data-end", &end)], |m| {
            bands(m, input);
            lanes::faults(m, input);
            lanes::members(m, input);
            terms::write_lanes(m, input);
            if !input.run.is_wrapped() {
                drawn = Some(series::operations(m, input));
                stretch_ms = series::percentiles(m, input);
                series::throughput(m, input);
                lanes::outages(m, input);
                lanes::key_outages(m, input);
                lanes::unsent(m, input);
            }
            input.axis.write(m);
        });
        m.line();
        caption(m, input, drawn.as_ref(), stretch_ms);
    });
    m.line();
}

/// What lies behind all lanes: the grid, and a band for every fault.
fn bands(m: &mut Markup, input: &Input<'_>) {
    m.el("div", &[("class", "bands")], |m| {
        input.axis.grid(m);
        for fault in input.faults {
            if let Some((from, to)) = fault.interval(input.axis.end_ns) {
                m.leaf("i", &[("class", "x band"), ("style", &Axis::between(from, to))], "");
            }
        }
        for (from, to) in unsent(input) {
            m.leaf("i", &[("class", "x unsent"), ("style", &Axis::between(*from, *to))], "");
        }
    });
    m.line();
}

/// The stretches in which the bench itself did not send all that was due.
fn unsent<'a>(input: &'a Input<'_>) -> &'a [(u64, u64)] {
    input.results.unsent.as_ref().map_or(&[], |unsent| &unsent.stretches)
}

fn legend(m: &mut Markup, input: &Input<'_>) {
    let answering = input.results.member_spans.iter().any(|span| span.role == Role::Answering);
    m.el("div", &[("class", "legend")], |m| {
        group(
            m,
            "Faults",
            &[
                ("bar unproven", "injected, not yet verified"),
                ("bar held", "verified"),
                ("bar healing", "healing"),
            ],
        );
        let mut members = Vec::new();
        if input.run.system.leader != LeaderSeen::Untold {
            members.push(("rib leading", "leading, epoch"));
        }
        members.extend([
            ("rib following", if answering { "answering" } else { "following" }),
            ("rib looking", if answering { "not answering" } else { "looking" }),
            ("rib down", "down"),
            ("rib paused", "paused"),
        ]);
        group(m, "Members", &members);
        if input.run.is_wrapped() {
            return;
        }
        group(
            m,
            "Operations",
            &[
                ("dots w", "write ok"),
                ("dots r", "read ok"),
                ("mark failed", "failed: did not happen"),
                ("mark unknown", "unknown: may have happened"),
            ],
        );
        if !unsent(input).is_empty() {
            group(m, "Bench", &[("bar unsent", "operations were due that the bench did not send")]);
        }
    });
    m.line();
}

fn group(m: &mut Markup, title: &str, entries: &[(&str, &str)]) {
    m.el("span", &[("class", "group")], |m| {
        m.leaf("b", &[], title);
        for (class, text) in entries {
            m.el("span", &[("class", "key")], |m| {
                let inside = if *class == "rib leading" { "e3" } else { "" };
                m.el("span", &[("class", "swatch")], |m| {
                    m.el("i", &[("class", class)], |m| m.leaf("span", &[], inside));
                });
                m.text(text);
            });
        }
    });
}

fn caption(m: &mut Markup, input: &Input<'_>, drawn: Option<&series::Drawn>, stretch_ms: Option<f64>) {
    let mut text =
        String::from("Shaded through all lanes: from a fault's injection until it was seen to be gone. ");
    text.push_str(&drawn.map(series::Drawn::caption).unwrap_or_default());
    if let Some(stretch) = stretch_ms {
        text.push_str(&format!(
            " Commit latency: acknowledged writes and compare-and-sets by when they were due, in steps of \
             {}: the line is their median, the dark band reaches to p90, the light one to p99, or to the \
             slowest of fewer than 100.",
            duration(stretch)
        ));
    }
    if !input.results.outages.is_empty() {
        text.push_str(" Outages: a write waited and none was acknowledged.");
    }
    if input.results.key_outages.as_ref().is_some_and(|keys| keys.with > 0) {
        text.push_str(
            " Keys: the longest stretch of each in which writes to it waited and those to others did not.",
        );
    }
    if let Some(unsent) = &input.results.unsent {
        text.push_str(&format!(
            " Hatched through all lanes: the bench itself did not send what was due, because {}; what fell \
             due there is no outage, and is left out of the latencies.",
            unsent.why()
        ));
    }
    m.leaf("figcaption", &[], &text);
}
