//! The run as one self-contained page.
//!
//! Verdict first; then, in this order, the counterexample (violations only), the timeline, elections, commit
//! latency, faults, checks and the configuration. Each part opens with its finding in a sentence, drawn from
//! the data, and the drawing proves it. One file: no font, no request to anywhere; its links lead to the
//! files of the run folder beside it. Light and dark follow the reader's setting, print is light.
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
mod elections;
mod faults;
mod lanes;
mod latency;
mod markup;
mod precision;
mod reach;
mod series;
mod timeline;
mod verdict;

use std::collections::{BTreeMap, BTreeSet};

use checker::history::History;
use checker::verdict::Verdict;
use sha2::{Digest, Sha256};

use axis::Axis;
use markup::Markup;
use runs::faults::FaultRecord;
use runs::results::{MemberSpan, Results, RunInfo};

/// The stylesheet, inlined into the page.
const STYLE: &str = include_str!("style.css");

/// What only adds, inlined into the page.
const SCRIPT: &str = include_str!("script.js");

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
    let mut page = Markup::default();
    page.drawing("<!doctype html>\n");
    page.el("html", &[("lang", "en")], |m| {
        head(m, &input);
        m.el("body", &[], |m| {
            m.el("main", &[], |m| body(m, &input));
            m.el("script", &[], |m| m.drawing(SCRIPT));
        });
    });
    page.line();
    page.finish()
}

fn head(m: &mut Markup, input: &Input<'_>) {
    m.el("head", &[], |m| {
        m.void("meta", &[("charset", "utf-8")]);
        m.void("meta", &[("name", "viewport"), ("content", "width=device-width,initial-scale=1")]);
        m.void("meta", &[("http-equiv", "Content-Security-Policy"), ("content", &policy())]);
        let title = format!("{}: {}, seed {}", word(input.results.verdict), input.run.name, input.run.seed);
        m.leaf("title", &[], &title);
        m.el("style", &[], |m| m.drawing(STYLE));
    });
    m.line();
}

/// What the browser is to hold the page to: nothing is fetched from anywhere, no script runs but this one,
/// and the script cannot turn text into markup.
fn policy() -> String {
    let hash = base64(&Sha256::digest(SCRIPT.as_bytes()));
    format!(
        "default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{hash}'; base-uri 'none'; \
         form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
    )
}

/// Base64 with padding, as the policy writes a hash.
fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for group in bytes.chunks(3) {
        let word =
            group.iter().fold(0_u32, |word, byte| word << 8 | u32::from(*byte)) << (8 * (3 - group.len()));
        for place in 0..4 {
            let six = usize::try_from(word >> (18 - 6 * place) & 63).unwrap_or(0);
            out.push(if place <= group.len() { char::from(LETTERS[six]) } else { '=' });
        }
    }
    out
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_padded_to_whole_groups() {
        let all = ["", "f", "fo", "foo", "foobar"].map(|text| base64(text.as_bytes()));
        assert_eq!(all, ["", "Zg==", "Zm8=", "Zm9v", "Zm9vYmFy"]);
    }

    #[test]
    fn the_script_can_stand_in_a_page() {
        assert!(!SCRIPT.contains("</") && !SCRIPT.contains("<!--") && SCRIPT.is_ascii());
        assert!(!SCRIPT.contains("innerHTML") && !SCRIPT.contains("outerHTML"));
    }
}
