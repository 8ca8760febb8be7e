//! Lanes of the timeline that are made of intervals: faults, members, outages.

use super::Input;
use super::axis::Axis;
use super::markup::Markup;
use crate::faults::{FaultRecord, FaultState};
use crate::findings::outage_ms;
use crate::labels::rows;
use crate::numbers::{duration, moment, ns_to_s};
use crate::results::{MemberSpan, Role};

/// Rows of faults at most: more faults at once than this share the last one.
const MOST_FAULT_ROWS: usize = 8;
/// Above this number of spans, a member's spans that are narrower than a pixel are left out.
const MOST_SPANS: usize = 600;
/// Share of the axis that a pixel of a wide screen is.
const PIXEL: f64 = 1.0 / 1000.0;

/// Opens a lane with its name.
pub(super) fn lane(m: &mut Markup, class: &str, name: &str, unit: &str, inside: impl FnOnce(&mut Markup)) {
    m.el("div", &[("class", &format!("lane {class}"))], |m| {
        m.el("div", &[("class", "name")], |m| {
            m.text(name);
            if !unit.is_empty() {
                m.leaf("small", &[], unit);
            }
        });
        m.el("div", &[("class", "plot")], inside);
    });
    m.line();
}

pub(super) fn faults(m: &mut Markup, input: &Input<'_>) {
    let placed = place(input);
    if placed.is_empty() {
        return;
    }
    let used = placed.iter().map(|(_, row, _)| row + 1).max().unwrap_or(1);
    lane(m, "faultlane", "Faults", "", |m| {
        m.el("div", &[("class", "clip"), ("style", &format!("--rows:{used}"))], |m| {
            for (fault, row, room_until) in &placed {
                fault_bar(m, fault, *row, *room_until, input.axis.end_ns);
            }
        });
    });
}

/// Every fault with its row and the moment up to which its label owns the room.
fn place<'a>(input: &Input<'a>) -> Vec<(&'a FaultRecord, usize, u64)> {
    let end = input.axis.end_ns;
    let mut faults: Vec<&FaultRecord> = input.faults.iter().collect();
    faults.sort_by_key(|fault| fault.injected_ns.unwrap_or(fault.asked_ns));
    let shown: Vec<(u64, u64)> =
        faults.iter().map(|fault| fault.interval(end).unwrap_or((fault.asked_ns, fault.asked_ns))).collect();
    let seconds: Vec<(f64, f64)> = shown.iter().map(|&(from, to)| (ns_to_s(from), ns_to_s(to))).collect();
    let rows: Vec<usize> = rows(&seconds).into_iter().map(|row| row.min(MOST_FAULT_ROWS - 1)).collect();
    (0..faults.len())
        .map(|at| {
            let next = (at + 1..faults.len()).find(|&later| rows[later] == rows[at]);
            (faults[at], rows[at], next.map_or(end, |later| shown[later].0))
        })
        .collect()
}

fn fault_bar(m: &mut Markup, fault: &FaultRecord, row: usize, room_until: u64, end_ns: u64) {
    let part = |m: &mut Markup, class: &str, from: u64, to: u64| {
        if to > from {
            let style = format!("{};--row:{row}", Axis::between(from, to));
            m.leaf("i", &[("class", &format!("x bar {class}")), ("style", &style)], "");
        }
    };
    if let Some((from, gone)) = fault.interval(end_ns) {
        let healing = fault.heal_asked_ns.unwrap_or(gone).clamp(from, gone);
        match fault.verified_ns {
            Some(seen) => {
                let seen = seen.clamp(from, gone);
                part(m, "unproven", from, seen);
                part(m, "held", seen, healing.max(seen));
                part(m, "healing", healing.max(seen), gone);
            }
            // What was never verified stays hatched to its end.
            None => part(m, "unproven", from, gone),
        }
        part(m, "outline", from, gone);
    }
    let from = fault.injected_ns.unwrap_or(fault.asked_ns);
    let style = format!("{};--row:{row}", Axis::between(from, room_until.max(from)));
    m.el("span", &[("class", "x label"), ("style", &style), ("title", &title(fault))], |m| {
        m.leaf("b", &[], &fault.id);
        m.leaf("i", &[], &words(fault));
    });
    m.line();
}

/// The words of a fault, with its state where that is not the hoped for.
pub(super) fn words(fault: &FaultRecord) -> String {
    match fault.state {
        FaultState::Verified => fault.sentence.clone(),
        other => format!("{}, {}", fault.sentence, other.name()),
    }
}

fn title(fault: &FaultRecord) -> String {
    let mut text =
        format!("{} {}: {}, asked {} s", fault.id, fault.kind, words(fault), moment(fault.asked_ns));
    for (name, at) in [
        ("injected", fault.injected_ns),
        ("verified", fault.verified_ns),
        ("healing asked", fault.heal_asked_ns),
        ("seen gone", fault.verified_healed_ns),
    ] {
        if let Some(at) = at {
            text.push_str(&format!(", {name} {} s", moment(at)));
        }
    }
    text
}

pub(super) fn members(m: &mut Markup, input: &Input<'_>) {
    let spans = &input.results.member_spans;
    let mut ids: Vec<u64> = spans.iter().map(|span| span.node).collect();
    ids.sort_unstable_by(|a, b| b.cmp(a));
    ids.dedup();
    for id in ids {
        let own: Vec<&MemberSpan> = spans.iter().filter(|span| span.node == id).collect();
        lane(m, "member", &format!("n{id}"), "", |m| {
            m.el("div", &[("class", "clip")], |m| {
                let crowded = own.len() > MOST_SPANS;
                for span in &own {
                    let share = ns_to_s(span.to_ns.saturating_sub(span.from_ns)) / input.axis.end_s;
                    if !crowded || share >= PIXEL {
                        ribbon(m, span);
                    }
                }
            });
        });
    }
}

fn ribbon(m: &mut Markup, span: &MemberSpan) {
    let class = match span.role {
        Role::Leading => "x rib leading",
        Role::Following => "x rib following",
        Role::Looking => "x rib looking",
        Role::Down => "x rib down",
        Role::Paused => "x rib paused",
    };
    let epoch = span.epoch.map(|epoch| format!(", epoch {epoch}")).unwrap_or_default();
    let title = format!("{}{epoch}, {} to {} s", span.role.name(), moment(span.from_ns), moment(span.to_ns));
    let style = Axis::between(span.from_ns, span.to_ns);
    m.el("i", &[("class", class), ("style", &style), ("title", &title)], |m| match (span.role, span.epoch) {
        (Role::Leading, Some(epoch)) => m.leaf("span", &[], &format!("e{epoch}")),
        (Role::Down | Role::Paused, _) => m.leaf("span", &[], span.role.name()),
        _ => {}
    });
}

pub(super) fn outages(m: &mut Markup, input: &Input<'_>) {
    let outages = &input.results.outages;
    lane(m, "outages", "Outages", "no write acknowledged", |m| {
        m.el("div", &[("class", "clip")], |m| {
            for (at, outage) in outages.iter().enumerate() {
                let cause = outage.fault.as_deref().unwrap_or("no fault");
                let long = duration(outage_ms(outage));
                let open = if outage.open { ", not over at the end" } else { "" };
                let title = format!("{long} from {} s{open}, {cause}", moment(outage.from_ns));
                let style = Axis::between(outage.from_ns, outage.to_ns);
                m.leaf("i", &[("class", "x out"), ("style", &style), ("title", &title)], "");
                let until = outages.get(at + 1).map_or(input.axis.end_ns, |next| next.from_ns);
                let style = Axis::between(outage.to_ns, until.max(outage.to_ns));
                m.el("span", &[("class", "x outlabel"), ("style", &style)], |m| m.leaf("span", &[], &long));
            }
            if outages.is_empty() {
                m.leaf("span", &[("class", "none")], "none");
            }
        });
    });
}
