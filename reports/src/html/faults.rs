//! Faults: did each really bite, did it really end, how do we know.

use super::markup::Markup;
use super::{Input, precision, reach};
use crate::faults::{FaultLoad, FaultRecord, FaultState, OperationMix};
use crate::findings::{self, shortened};
use crate::numbers::{count, moment, ns_to_ms, whole_ms};

/// Characters of evidence at most; the whole is in faults.jsonl.
const MOST_EVIDENCE: usize = 600;

pub(super) fn write(m: &mut Markup, input: &Input<'_>) {
    m.heading("faults", "Faults", &findings::faults(input.run, input.faults));
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
    precision::write(m, input);
    load(m, input);
    reach::write(m, input);
}

fn header(m: &mut Markup) {
    for (name, unit, class) in [
        ("#", "", ""),
        ("fault", "", ""),
        ("asked", "s", "n"),
        ("in force", "+ms", "n"),
        ("seen", "+ms", "n"),
        ("evidence that it bit", "", ""),
        ("healing", "s", "n"),
        ("lifted", "+ms", "n"),
        ("seen gone", "+ms", "n"),
        ("evidence that it is gone", "", ""),
        ("epoch", "", "n"),
        ("state", "", ""),
    ] {
        let sort = if name.starts_with("evidence") { "no" } else { "yes" };
        m.el("th", &[("class", class), ("data-sort", sort)], |m| {
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
        m.el("td", &[("class", "id")], |m| {
            m.leaf("a", &[("href", "#timeline"), ("data-fault", &fault.id)], &fault.id);
        });
        m.el("td", &[("data-l", "fault"), ("class", "span2 what")], |m| {
            m.text(&shortened(&fault.kind, MOST_EVIDENCE));
            m.text(" ");
            m.leaf("span", &[("class", "quiet")], &shortened(&fault.sentence, MOST_EVIDENCE));
        });
        m.leaf("td", &[("class", "n"), ("data-l", "asked, s")], &moment(fault.asked_ns));
        m.leaf("td", &[("class", "n"), ("data-l", "in force, +ms")], &after(asked, fault.injected_ns));
        m.leaf("td", &[("class", "n"), ("data-l", "seen, +ms")], &after(asked, fault.verified_ns));
        m.leaf("td", &[("class", "wide"), ("data-l", "evidence that it bit")], &dash(&fault.evidence));
        m.leaf("td", &[("class", "n"), ("data-l", "healing, s")], &healing);
        m.leaf(
            "td",
            &[("class", "n"), ("data-l", "lifted, +ms")],
            &after(fault.heal_asked_ns, fault.healed_ns),
        );
        m.leaf(
            "td",
            &[("class", "n"), ("data-l", "seen gone, +ms")],
            &after(fault.heal_asked_ns, fault.verified_healed_ns),
        );
        m.leaf(
            "td",
            &[("class", "wide"), ("data-l", "evidence that it is gone")],
            &dash(&fault.healed_evidence),
        );
        m.leaf("td", &[("class", "n"), ("data-l", "epoch")], &epochs);
        m.leaf("td", &[("class", state_class(fault.state)), ("data-l", "state")], &state_text(fault.state));
    });
    m.line();
}

fn dash(text: &str) -> String {
    match shortened(text, MOST_EVIDENCE) {
        empty if empty.is_empty() => "–".to_owned(),
        cut if cut != text => format!("{cut} (all of it in faults.jsonl)"),
        all => all,
    }
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
    m.el("details", &[("class", "part")], |m| {
        m.el("summary", &[], |m| {
            m.leaf("b", &[], "Load around each fault");
            m.text(" ");
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
