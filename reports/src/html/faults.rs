//! Faults: did each really bite, did it really end, how do we know.

use super::markup::Markup;
use super::{Input, precision, reach};
use runs::consequence::Consequences;
use runs::faults::{FaultLoad, FaultRecord, FaultState, OperationMix};
use runs::findings::{self, shortened};
use runs::numbers::{count, len, moment, ns_to_ms, whole_ms};

/// Characters of evidence at most; the whole is in faults.jsonl.
const MOST_EVIDENCE: usize = 600;
/// Faults that are shown all at once.
const MOST_OPEN: usize = 20;
/// Of more, so many are; the others are folded away.
const TOP: usize = 10;
/// Rows at most; the rest is in faults.jsonl.
const MOST_ROWS: usize = 200;

pub(super) fn write(m: &mut Markup, input: &Input<'_>) {
    m.heading("faults", "Faults", &findings::faults(input.run, input.faults));
    if input.faults.is_empty() {
        return;
    }
    let shown = shown(input.faults);
    let (top, rest) = shown.split_at(if shown.len() <= MOST_OPEN { shown.len() } else { TOP });
    table(m, top);
    if !rest.is_empty() {
        m.el("details", &[("class", "part")], |m| {
            m.el("summary", &[], |m| {
                m.leaf("b", &[], "The other faults");
                m.text(" ");
                let left_out = input.faults.len() - shown.len();
                let text = match left_out {
                    0 => len(rest.len()),
                    some => format!("{}; {} more are in faults.jsonl", len(rest.len()), len(some)),
                };
                m.leaf("span", &[("class", "quiet")], &text);
            });
            table(m, rest);
        });
    }
    precision::write(m, input);
    load(m, input);
    reach::write(m, input);
}

/// The faults that have a row: where they are many, first those that were not proven, then the others in the
/// order of time.
pub(super) fn shown(faults: &[FaultRecord]) -> Vec<&FaultRecord> {
    let mut shown: Vec<&FaultRecord> = faults.iter().collect();
    if shown.len() > MOST_OPEN {
        shown.sort_by_key(|fault| fault.state == FaultState::Verified);
        shown.truncate(MOST_ROWS);
    }
    shown
}

fn table(m: &mut Markup, faults: &[&FaultRecord]) {
    m.el("table", &[("class", "cards faults")], |m| {
        // Where nobody tells who leads, there is nothing to say of epochs.
        let epochs = faults.iter().any(|fault| fault.epoch_before.or(fault.epoch_after).is_some());
        m.el("thead", &[], |m| m.el("tr", &[], |m| header(m, epochs)));
        m.el("tbody", &[], |m| {
            for fault in faults {
                row(m, fault, epochs);
            }
        });
    });
}

fn header(m: &mut Markup, epochs: bool) {
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
    ]
    .into_iter()
    .filter(|(name, ..)| epochs || *name != "epoch")
    {
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

fn epochs_of(fault: &FaultRecord) -> String {
    match (fault.epoch_before, fault.epoch_after) {
        (Some(before), Some(after)) => format!("{before} → {after}"),
        (Some(only), None) | (None, Some(only)) => only.to_string(),
        (None, None) => "–".to_owned(),
    }
}

fn row(m: &mut Markup, fault: &FaultRecord, epochs: bool) {
    let asked = Some(fault.asked_ns);
    let healing = fault.heal_asked_ns.map_or_else(|| "–".to_owned(), moment);
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
        if epochs {
            m.leaf("td", &[("class", "n"), ("data-l", "epoch")], &epochs_of(fault));
        }
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
        FaultState::Unverified | FaultState::MemberDied | FaultState::NoTarget | FaultState::Unsupported => {
            "state unknown"
        }
    }
}

fn state_text(state: FaultState) -> String {
    let glyph = match state {
        FaultState::Verified => '✓',
        FaultState::Leaked => '✗',
        FaultState::Unverified | FaultState::MemberDied | FaultState::NoTarget | FaultState::Unsupported => {
            '?'
        }
    };
    format!("{glyph} {}", state.name())
}

/// Definite operations around each fault, where they were counted.
fn load(m: &mut Markup, input: &Input<'_>) {
    let counted: Vec<(&FaultRecord, FaultLoad)> =
        input.faults.iter().filter_map(|fault| fault.load.map(|load| (fault, load))).collect();
    if counted.is_empty() || input.run.is_wrapped() {
        return;
    }
    m.el("details", &[("class", "part")], |m| {
        m.el("summary", &[], |m| {
            m.leaf("b", &[], "Load around each fault");
            m.text(" ");
            m.leaf("span", &[("class", "quiet")], "reads, writes, compare-and-sets that ended well");
        });
        m.leaf(
            "p",
            &[("class", "caption")],
            "While it held: from being in force to the request to heal it. The check \u{201c}load\u{201d} \
             counts more as during a fault, from its being asked for until it was seen to be gone, and takes \
             faults that overlap as one; so its figures differ from these.",
        );
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
                for (fault, load) in counted.into_iter().filter(|(fault, _)| input.has_row(&fault.id)) {
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
        let quorum = if !fault.quorum_remained && fault.is_unknown() {
            // Nobody knows what it did to whom it was aimed at.
            "not known".to_owned()
        } else if !fault.quorum_remained {
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
