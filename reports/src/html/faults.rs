//! Faults: did each really bite, did it really end, how do we know.

use super::Input;
use super::lanes::words;
use super::markup::Markup;
use crate::faults::{FaultLoad, FaultRecord, FaultState, OperationMix, Reach};
use crate::findings;
use crate::numbers::{count, moment, ns_to_ms, whole_ms};

/// Matrices drawn at most; the rest is in the run folder.
const MOST_MATRICES: usize = 60;

pub(super) fn write(m: &mut Markup, input: &Input<'_>) {
    m.heading("faults", "Faults", &findings::faults(input.faults));
    if input.faults.is_empty() {
        return;
    }
    m.el("table", &[("class", "cards faults")], |m| {
        m.el("thead", &[], |m| m.el("tr", &[], header));
        m.el("tbody", &[], |m| {
            for fault in input.faults {
                row(m, fault);
            }
        });
    });
    load(m, input);
    matrices(m, input);
}

fn header(m: &mut Markup) {
    for (name, unit, class) in [
        ("#", "", ""),
        ("fault", "", ""),
        ("asked", "s", "n"),
        ("injected", "+ms", "n"),
        ("verified", "+ms", "n"),
        ("evidence that it bit", "", ""),
        ("healing asked", "s", "n"),
        ("seen gone", "+ms", "n"),
        ("evidence that it is gone", "", ""),
        ("epoch", "", "n"),
        ("state", "", ""),
    ] {
        m.el("th", &[("class", class)], |m| {
            m.text(name);
            if !unit.is_empty() {
                m.leaf("small", &[], unit);
            }
        });
    }
}

/// The moment `at` as ms after `since`.
fn after(since: Option<u64>, at: Option<u64>) -> String {
    match (since, at) {
        (Some(since), Some(at)) => whole_ms(ns_to_ms(at.saturating_sub(since))),
        _ => "–".to_owned(),
    }
}

fn row(m: &mut Markup, fault: &FaultRecord) {
    let asked = Some(fault.asked_ns);
    let healing = fault.heal_asked_ns.map_or_else(|| "–".to_owned(), moment);
    let epochs = match (fault.epoch_before, fault.epoch_after) {
        (Some(before), Some(after)) => format!("{before} → {after}"),
        (Some(only), None) | (None, Some(only)) => only.to_string(),
        (None, None) => "–".to_owned(),
    };
    m.el("tr", &[("id", &fault.id)], |m| {
        m.leaf("td", &[("class", "id")], &fault.id);
        m.el("td", &[("data-l", "fault"), ("class", "span2")], |m| {
            m.text(&fault.kind);
            m.text(" ");
            m.leaf("span", &[("class", "quiet")], &fault.sentence);
        });
        m.leaf("td", &[("class", "n"), ("data-l", "asked, s")], &moment(fault.asked_ns));
        m.leaf("td", &[("class", "n"), ("data-l", "injected, +ms")], &after(asked, fault.injected_ns));
        m.leaf("td", &[("class", "n"), ("data-l", "verified, +ms")], &after(asked, fault.verified_ns));
        m.leaf("td", &[("class", "wide"), ("data-l", "evidence that it bit")], dash(&fault.evidence));
        m.leaf("td", &[("class", "n"), ("data-l", "healing asked, s")], &healing);
        m.leaf(
            "td",
            &[("class", "n"), ("data-l", "seen gone, +ms")],
            &after(fault.heal_asked_ns, fault.verified_healed_ns),
        );
        m.leaf(
            "td",
            &[("class", "wide"), ("data-l", "evidence that it is gone")],
            dash(&fault.healed_evidence),
        );
        m.leaf("td", &[("class", "n"), ("data-l", "epoch")], &epochs);
        m.leaf("td", &[("class", state_class(fault.state)), ("data-l", "state")], &state_text(fault.state));
    });
    m.line();
}

fn dash(text: &str) -> &str {
    if text.is_empty() { "–" } else { text }
}

fn state_class(state: FaultState) -> &'static str {
    match state {
        FaultState::Verified => "state valid",
        FaultState::Leaked => "state invalid",
        FaultState::Unverified | FaultState::NoTarget | FaultState::Unsupported => "state unknown",
    }
}

fn state_text(state: FaultState) -> String {
    let glyph = match state {
        FaultState::Verified => '✓',
        FaultState::Leaked => '✗',
        FaultState::Unverified | FaultState::NoTarget | FaultState::Unsupported => '?',
    };
    format!("{glyph} {}", state.name())
}

/// Definite operations around each fault, where they were counted.
fn load(m: &mut Markup, input: &Input<'_>) {
    let counted: Vec<(&FaultRecord, FaultLoad)> =
        input.faults.iter().filter_map(|fault| fault.load.map(|load| (fault, load))).collect();
    if counted.is_empty() {
        return;
    }
    m.el("details", &[], |m| {
        m.el("summary", &[], |m| {
            m.text("Definite operations around each fault ");
            m.leaf("span", &[("class", "quiet")], "reads, writes, compare-and-sets that ended well");
        });
        m.el("table", &[("class", "cards load")], |m| {
            m.el("thead", &[], |m| {
                m.el("tr", &[], |m| {
                    m.leaf("th", &[], "#");
                    for name in ["before", "while it held", "after"] {
                        m.leaf("th", &[("class", "n")], name);
                    }
                    m.leaf("th", &[], "quorum while it held");
                });
            });
            m.el("tbody", &[], |m| {
                for (fault, load) in counted {
                    load_row(m, fault, load);
                }
            });
        });
    });
    m.line();
}

fn load_row(m: &mut Markup, fault: &FaultRecord, load: FaultLoad) {
    m.el("tr", &[], |m| {
        m.leaf("td", &[("class", "id")], &fault.id);
        for (name, mix) in [("before", load.before), ("while it held", load.during), ("after", load.after)] {
            m.leaf("td", &[("class", "n"), ("data-l", name)], &mix_text(mix));
        }
        let quorum = if !fault.quorum_remained {
            "none".to_owned()
        } else if fault.majority_side.is_empty() {
            "remained".to_owned()
        } else {
            let side: Vec<String> = fault.majority_side.iter().map(|id| format!("n{id}")).collect();
            side.join(" ")
        };
        m.leaf("td", &[("data-l", "quorum while it held")], &quorum);
    });
}

fn mix_text(mix: OperationMix) -> String {
    format!("{}, {}, {}", count(mix.reads), count(mix.writes), count(mix.cas))
}

/// Who reached whom, for every fault that was probed.
fn matrices(m: &mut Markup, input: &Input<'_>) {
    let probed: Vec<&FaultRecord> = input.faults.iter().filter(|fault| fault.matrix.is_some()).collect();
    if probed.is_empty() {
        return;
    }
    m.el("h3", &[("class", "later")], |m| {
        m.text("Who reached whom ");
        m.leaf("span", &[("class", "quiet")], "row speaks, column hears; probed while the fault held");
    });
    m.el("div", &[("class", "matrices")], |m| {
        let ids = member_ids(input);
        for fault in probed.iter().take(MOST_MATRICES) {
            matrix(m, fault, &ids);
        }
        how_to_read(m);
    });
    if probed.len() > MOST_MATRICES {
        m.leaf("p", &[("class", "caption")], "The matrices of the other faults are in faults.jsonl.");
    }
    m.line();
}

fn matrix(m: &mut Markup, fault: &FaultRecord, ids: &[u64]) {
    m.el("div", &[("class", "matrix")], |m| {
        m.leaf("h3", &[], &format!("{} {}", fault.id, words(fault)));
        let during = fault.matrix.as_deref().unwrap_or_default();
        grid(m, during, ids);
        let (cut, all) = tally(during);
        let mut caption = if cut == 0 { format!("All {all} open.") } else { format!("{cut} of {all} cut.") };
        let healed = fault.healed_matrix.as_deref().unwrap_or_default();
        let (still_cut, of) = tally(healed);
        if of > 0 && still_cut == 0 {
            caption.push_str(&format!(" All {of} open again"));
            match fault.verified_healed_ns {
                Some(at) => caption.push_str(&format!(" at {} s.", moment(at))),
                None => caption.push('.'),
            }
        }
        m.leaf("p", &[("class", "caption")], &caption);
        if still_cut > 0 {
            m.leaf(
                "p",
                &[("class", "caption")],
                &format!("After healing {still_cut} of {of} were still cut:"),
            );
            grid(m, healed, ids);
        }
    });
}

/// Ordered pairs without a message, and all pairs.
fn tally(matrix: &[Vec<Reach>]) -> (usize, usize) {
    let pairs = || {
        matrix.iter().enumerate().flat_map(|(i, row)| {
            row.iter().enumerate().filter(move |(j, _)| i != *j).map(|(_, reach)| *reach)
        })
    };
    (pairs().filter(|reach| *reach == Reach::NotReached).count(), pairs().count())
}

/// The members' ids in the order of the matrices; their places where the run did not say.
fn member_ids(input: &Input<'_>) -> Vec<u64> {
    let mut ids: Vec<u64> = input.results.member_spans.iter().map(|span| span.node).collect();
    ids.sort_unstable();
    ids.dedup();
    ids
}

fn grid(m: &mut Markup, matrix: &[Vec<Reach>], ids: &[u64]) {
    let names: Vec<String> = if ids.len() == matrix.len() {
        ids.iter().map(u64::to_string).collect()
    } else {
        (1..=matrix.len()).map(|place| place.to_string()).collect()
    };
    m.el("table", &[], |m| {
        m.el("tr", &[], |m| {
            m.leaf("th", &[], "");
            for name in &names {
                m.leaf("th", &[], name);
            }
        });
        for (i, (row, name)) in matrix.iter().zip(&names).enumerate() {
            m.el("tr", &[], |m| {
                m.leaf("th", &[], name);
                for (j, reach) in row.iter().enumerate() {
                    if i == j { m.leaf("td", &[("class", "self")], "") } else { cell(m, *reach) }
                }
            });
        }
    });
}

fn cell(m: &mut Markup, reach: Reach) {
    match reach {
        Reach::Reached => m.leaf("td", &[], "·"),
        Reach::NotReached => m.leaf("td", &[("class", "cut")], "×"),
        Reach::Late => m.leaf("td", &[("class", "late")], ""),
        Reach::Unknown => m.leaf("td", &[("class", "what")], "?"),
    }
}

fn how_to_read(m: &mut Markup) {
    m.el("div", &[("class", "matrix")], |m| {
        m.leaf("h3", &[], "How to read");
        m.el("table", &[], |m| {
            for (reach, text) in [
                (Reach::Reached, "reached"),
                (Reach::NotReached, "not reached, beside a control that was"),
                (Reach::Late, "reached late"),
                (Reach::Unknown, "not known"),
            ] {
                m.el("tr", &[], |m| {
                    cell(m, reach);
                    m.leaf("th", &[("class", "text")], text);
                });
            }
        });
    });
}
