//! The run as one self-contained page.
//!
//! Verdict first; then, in this order, the counterexample (violations only), the timeline, elections (or
//! outages, where nobody knows who leads), changes of a holder (applications only), commit latency, faults,
//! checks and the configuration. Each part opens with its finding in a sentence, drawn from the data, and the
//! drawing proves it. One file: no font, no request to anywhere; its links lead to the files of the run
//! folder beside it. Light and dark follow the reader's setting, print is light.
//!
//! Its script only adds (a readout of the moment under the pointer, a closer look, sorting, copying): without
//! it nothing is missing. The page's own policy lets exactly this script run and nothing be fetched.
//!
//! Geometry is SVG without text that stretches to any width; text is HTML and never stretched. A fault is one
//! band through every lane of the timeline, from injection to verified healing, under one name everywhere.
//! Nothing is told by colour alone.

mod axis;
mod checks;
mod configuration;
mod counterexample;
pub(crate) mod document;
mod elections;
mod faults;
mod lanes;
mod latency;
pub(crate) mod markup;
mod outages;
mod precision;
mod reach;
mod series;
mod terms;
mod timeline;
pub(crate) mod verdict;

use std::collections::{BTreeMap, BTreeSet};

use checker::history::History;
use checker::verdict::Verdict;

use axis::Axis;
use markup::Markup;
use runs::faults::FaultRecord;
use runs::results::{LeaderSeen, MemberSpan, Results, RunInfo};

/// The stylesheet, inlined into the page.
pub(crate) const STYLE: &str = include_str!("style.css");

/// What only adds, inlined into the page.
const SCRIPT: &str = concat!(include_str!("common.js"), include_str!("script.js"));

/// What every part is drawn from.
struct Input<'a> {
    run: &'a RunInfo,
    results: &'a Results,
    faults: &'a [FaultRecord],
    history: &'a History,
    axis: Axis,
    /// The faults by their names.
    by_id: BTreeMap<&'a str, &'a FaultRecord>,
    /// The faults that have a row in the table of faults.
    rows: BTreeSet<&'a str>,
    /// What each member was, by its id.
    spans: BTreeMap<u64, Vec<&'a MemberSpan>>,
}

impl<'a> Input<'a> {
    fn new(run: &'a RunInfo, results: &'a Results, faults: &'a [FaultRecord], history: &'a History) -> Self {
        let mut spans: BTreeMap<u64, Vec<&MemberSpan>> = BTreeMap::new();
        for span in &results.member_spans {
            spans.entry(span.node).or_default().push(span);
        }
        let by_id = faults.iter().map(|fault| (fault.id.as_str(), fault)).collect();
        let rows = faults::shown(faults).into_iter().map(|fault| fault.id.as_str()).collect();
        Self { run, results, faults, history, axis: Axis::of(results, faults, history), by_id, rows, spans }
    }

    /// Whether a link to this fault leads somewhere.
    fn has_row(&self, fault: &str) -> bool {
        self.rows.contains(fault)
    }
}

/// The whole page.
pub fn render(run: &RunInfo, results: &Results, faults: &[FaultRecord], history: &History) -> String {
    let input = Input::new(run, results, faults, history);
    let title = format!("{}: {}, seed {}", word(results.verdict), run.name, run.seed);
    document::write(&title, STYLE, SCRIPT, |m| body(m, &input))
}

fn body(m: &mut Markup, input: &Input<'_>) {
    verdict::write(m, input);
    counterexample::write(m, input);
    timeline::write(m, input);
    match input.run.system.leader {
        LeaderSeen::Untold if !input.run.is_wrapped() => outages::write(m, input),
        LeaderSeen::Told | LeaderSeen::Asked { .. } | LeaderSeen::Untold => elections::write(m, input),
    }
    terms::write(m, input);
    if !input.run.is_wrapped() {
        latency::write(m, input);
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_script_can_stand_in_a_page() {
        assert!(!SCRIPT.contains("</") && !SCRIPT.contains("<!--") && SCRIPT.is_ascii());
        assert!(!SCRIPT.contains("innerHTML") && !SCRIPT.contains("outerHTML"));
    }
}
