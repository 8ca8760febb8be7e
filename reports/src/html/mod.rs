//! The run as one self-contained page.
//!
//! Verdict first; then, in this order, the counterexample (violations only), the timeline, elections, commit
//! latency, faults, checks and the configuration. Each part opens with its finding in a sentence, drawn from
//! the data, and the drawing proves it. One file: no script, no font, no request to anywhere; its links lead
//! to the files of the run folder beside it. Light and dark follow the reader's setting, print is light.
//!
//! Geometry is SVG without text that stretches to any width; text is HTML and never stretched. A fault is one
//! band through every lane of the timeline, from injection to verified healing, under one name everywhere.
//! Nothing is told by colour alone.

mod axis;
mod checks;
mod configuration;
mod counterexample;
mod elections;
mod faults;
mod lanes;
mod latency;
mod markup;
mod series;
mod timeline;
mod verdict;

use checker::history::History;
use checker::verdict::Verdict;

use crate::faults::FaultRecord;
use crate::results::{Results, RunInfo};
use axis::Axis;
use markup::Markup;

/// The stylesheet, inlined into the page.
const STYLE: &str = include_str!("style.css");

/// What every part is drawn from.
struct Input<'a> {
    run: &'a RunInfo,
    results: &'a Results,
    faults: &'a [FaultRecord],
    history: &'a History,
    axis: Axis,
}

/// The whole page.
pub fn render(run: &RunInfo, results: &Results, faults: &[FaultRecord], history: &History) -> String {
    let axis = Axis::of(results, faults, history);
    let input = Input { run, results, faults, history, axis };
    let mut page = Markup::default();
    page.drawing("<!doctype html>\n");
    page.el("html", &[("lang", "en")], |m| {
        head(m, &input);
        m.el("body", &[], |m| m.el("main", &[], |m| body(m, &input)));
    });
    page.line();
    page.finish()
}

fn head(m: &mut Markup, input: &Input<'_>) {
    m.el("head", &[], |m| {
        m.void("meta", &[("charset", "utf-8")]);
        m.void("meta", &[("name", "viewport"), ("content", "width=device-width,initial-scale=1")]);
        // Without script the page needs nothing from anywhere, and this lets the browser hold it to that.
        m.void(
            "meta",
            &[
                ("http-equiv", "Content-Security-Policy"),
                ("content", "default-src 'none'; style-src 'unsafe-inline'"),
            ],
        );
        let title = format!("{}: {}, seed {}", word(input.results.verdict), input.run.name, input.run.seed);
        m.leaf("title", &[], &title);
        m.el("style", &[], |m| m.drawing(STYLE));
    });
    m.line();
}

fn body(m: &mut Markup, input: &Input<'_>) {
    verdict::write(m, input);
    counterexample::write(m, input);
    timeline::write(m, input);
    elections::write(m, input);
    latency::write(m, input);
    faults::write(m, input);
    checks::write(m, input);
    configuration::write(m, input);
}

/// The word for a verdict, as a heading.
fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Valid => "Valid",
        Verdict::Invalid => "Violation",
        Verdict::Unknown => "Unknown",
    }
}
