//! Tonight's thresholds: crossed, not judged for want of samples, met.

use nights::threshold::Outcome;
use runs::findings::{Sentence, shortened};
use runs::numbers::{count, len, plural};

use super::{MOST_TEXT, head, more};
use crate::html::markup::Markup;
use crate::nights::digest::{Digest, Judged, number, outcome, result};

/// Thresholds that are drawn at most.
const MOST_THRESHOLDS: usize = 400;
/// Thresholds that were met and stand open; more are folded.
const MOST_MET: usize = 12;

/// Writes them.
pub(super) fn write(m: &mut Markup, digest: &Digest<'_>) {
    let all = digest.thresholds();
    m.heading("thresholds", "Thresholds", &summary(digest, &all));
    let is_met = |one: &&Judged<'_>| one.judgement.outcome == Outcome::Met;
    let met = all.iter().filter(is_met).count();
    let (open, folded) = all.split_at(if met > MOST_MET { all.len() - met } else { all.len() });
    if !open.is_empty() {
        table(m, open);
    }
    if !folded.is_empty() {
        m.el("details", &[("class", "part")], |m| {
            m.leaf("summary", &[], &format!("{} met", plural(number(folded.len()), "threshold")));
            table(m, folded);
        });
    }
}

fn summary(digest: &Digest<'_>, all: &[Judged<'_>]) -> Sentence {
    if digest.night.judged.is_none() {
        return Sentence::strong("Not judged yet").and(": thresholds are judged when a night ends.");
    }
    if all.is_empty() {
        return Sentence::strong("None").and(": no case that was run has a threshold.");
    }
    let of = |wanted: Outcome| all.iter().filter(|one| one.judgement.outcome == wanted).count();
    let text = format!("{} of {} met", len(of(Outcome::Met)), plural(number(all.len()), "threshold"));
    let parts: Vec<String> =
        [(Outcome::Crossed, "crossed"), (Outcome::TooFew, "not judged for too few samples")]
            .into_iter()
            .filter(|(outcome, _)| of(*outcome) > 0)
            .map(|(outcome, words)| format!("{} {words}", len(of(outcome))))
            .collect();
    let rest = if parts.is_empty() { ".".to_owned() } else { format!(", {}.", parts.join(", ")) };
    Sentence::strong(text).and(rest)
}

fn table(m: &mut Markup, all: &[Judged<'_>]) {
    m.el("table", &[("class", "cards judged")], |m| {
        head(
            m,
            &[
                ("Case", false),
                ("Threshold", false),
                ("Outcome", false),
                ("What came out", false),
                ("Samples", true),
            ],
        );
        m.el("tbody", &[], |m| {
            for one in all.iter().take(MOST_THRESHOLDS) {
                m.el("tr", &[], |m| row(m, one));
                m.line();
            }
        });
    });
    more(m, all.len(), MOST_THRESHOLDS, "threshold");
}

fn row(m: &mut Markup, one: &Judged<'_>) {
    let judgement = one.judgement;
    let state = match judgement.outcome {
        Outcome::Met => "state valid span2",
        Outcome::Crossed => "state invalid span2",
        Outcome::TooFew => "state unknown span2",
    };
    let mut cell = |label: &'static str, class: &str, text: &str| {
        m.leaf("td", &[("class", class), ("data-l", label)], &shortened(text, MOST_TEXT));
    };
    cell("Case", "wide", one.case);
    cell("Threshold", "wide mono", &judgement.threshold);
    cell("Outcome", state, outcome(judgement.outcome));
    cell("What came out", "wide", result(judgement));
    cell("Samples", "n", &count(judgement.samples));
}
