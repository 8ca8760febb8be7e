//! Lanes of the timeline that are made of intervals: faults, members, outages.

use super::Input;
use super::axis::Axis;
use super::markup::{Markup, css};
use crate::labels::{Room, rooms, rows, width_px};
use runs::faults::{FaultRecord, FaultState};
use runs::findings::shortened;
use runs::numbers::{duration, moment, ns_to_s};
use runs::results::{KeyOutage, MemberSpan, Outage, Role};

/// Rows of faults at most: more faults at once than this share the last one.
const MOST_FAULT_ROWS: usize = 8;
/// Characters of a fault's sentence at most; the table of faults has more.
const MOST_WORDS: usize = 300;
/// Outages with a label at most, the longest; the readout has the others.
const MOST_OUTAGE_LABELS: usize = 100;
/// Above this number of spans, a member's spans that are narrower than a pixel are left out.
const MOST_SPANS: usize = 600;
/// Share of the axis that a pixel of a wide screen is.
const PIXEL: f64 = 1.0 / 1000.0;

/// Opens a lane with its name.
pub(super) fn lane(m: &mut Markup, class: &str, name: &str, unit: &str, inside: impl FnOnce(&mut Markup)) {
    scaled(m, class, name, unit, None, inside);
}

/// A lane whose scale is logarithmic, from `scale.0` at the bottom to `scale.1` at the top.
pub(super) fn scaled(
    m: &mut Markup,
    class: &str,
    name: &str,
    unit: &str,
    scale: Option<(f64, f64)>,
    inside: impl FnOnce(&mut Markup),
) {
    m.el("div", &[("class", &format!("lane {class}"))], |m| {
        m.el("div", &[("class", "name")], |m| {
            m.text(name);
            if !unit.is_empty() {
                m.leaf("small", &[], unit);
            }
        });
        match scale {
            Some((low, high)) => {
                let attributes = [("class", "plot"), ("data-low", &*css(low)), ("data-high", &*css(high))];
                m.el("div", &attributes, inside);
            }
            None => m.el("div", &[("class", "plot")], inside),
        }
    });
    m.line();
}

/// Room that the name of a fault needs, in px.
fn name_px(name: &str) -> f64 {
    width_px(name) + 9.0
}

/// The properties of a label that owns room on the axis, and its class.
fn roomy(class: &str, from_ns: u64, room: &Room) -> (String, String) {
    let [narrow, wide, zoomed] = [room.narrow, room.wide, room.zoomed].map(css);
    let style = format!("--a:{};--n:{narrow};--w:{wide};--z:{zoomed}", css(ns_to_s(from_ns)));
    (format!("{class} l{}", room.level), style)
}

pub(super) fn faults(m: &mut Markup, input: &Input<'_>) {
    let placed = place(input);
    if placed.is_empty() {
        lane(m, "faultlane", "Faults", "", |m| m.leaf("span", &[("class", "none")], "none"));
        return;
    }
    let used = placed.iter().map(|placed| placed.row + 1).max().unwrap_or(1);
    lane(m, "faultlane", "Faults", "", |m| {
        m.el("div", &[("class", "clip"), ("style", &format!("--rows:{used}"))], |m| {
            for placed in &placed {
                fault_bar(m, placed, input.axis.end_ns);
            }
        });
    });
}

/// A fault with its row and the room of its label.
struct Placed<'a> {
    fault: &'a FaultRecord,
    row: usize,
    room: Room,
}

fn place<'a>(input: &Input<'a>) -> Vec<Placed<'a>> {
    let end = input.axis.end_ns;
    let mut faults: Vec<&FaultRecord> = input.faults.iter().collect();
    faults.sort_by_key(|fault| fault.injected_ns.unwrap_or(fault.asked_ns));
    let shown: Vec<(f64, f64)> = faults
        .iter()
        .map(|fault| fault.interval(end).unwrap_or((fault.asked_ns, fault.asked_ns)))
        .map(|(from, to)| (ns_to_s(from), ns_to_s(to)))
        .collect();
    let rows = rows(&shown, MOST_FAULT_ROWS);
    let mut out: Vec<Placed<'a>> = Vec::with_capacity(faults.len());
    for row in 0..MOST_FAULT_ROWS {
        let members: Vec<usize> = (0..faults.len()).filter(|&at| rows[at] == row).collect();
        let labels: Vec<(f64, f64)> =
            members.iter().map(|&at| (shown[at].0, name_px(&faults[at].id))).collect();
        let order: Vec<usize> = (0..labels.len()).collect();
        let rooms = rooms(&labels, &order, input.axis.end_s);
        out.extend(members.iter().zip(rooms).map(|(&at, room)| Placed { fault: faults[at], row, room }));
    }
    out
}

fn fault_bar(m: &mut Markup, placed: &Placed<'_>, end_ns: u64) {
    let Placed { fault, row, room } = placed;
    let part = |m: &mut Markup, class: &str, from: u64, to: u64| {
        if to > from {
            let style = format!("{};--row:{row}", Axis::between(from, to));
            m.leaf("i", &[("class", &format!("x bar {class}")), ("style", &style)], "");
        }
    };
    let from = fault.injected_ns.unwrap_or(fault.asked_ns);
    let mut gone = from;
    if let Some((from, to)) = fault.interval(end_ns) {
        gone = to;
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
    } else {
        part(m, "never", from, from.saturating_add(1));
    }
    let (class, style) = roomy("x label", from, room);
    let style = format!("{style};--u:{};--row:{row}", css(ns_to_s(gone)));
    m.el("span", &[("class", &class), ("style", &style), ("title", &title(fault))], |m| {
        m.leaf("b", &[], &fault.id);
        m.leaf("i", &[], &brief_words(fault));
    });
    m.line();
}

/// The words of a fault, with its state where that is not the hoped for.
pub(super) fn words(fault: &FaultRecord) -> String {
    with_state(fault, &fault.sentence)
}

/// The same where room is short.
pub(super) fn brief_words(fault: &FaultRecord) -> String {
    with_state(fault, &brief(&fault.sentence))
}

fn with_state(fault: &FaultRecord, words: &str) -> String {
    let words = shortened(words, MOST_WORDS);
    match fault.state {
        FaultState::Verified => words,
        other => format!("{words}, {}", other.name()),
    }
}

/// A fault's sentence without what stands in brackets and without the other side of a partition: the drawing
/// shows who led, and the table of faults has all of it.
pub(super) fn brief(sentence: &str) -> String {
    let mut out = String::new();
    let mut depth = 0_u32;
    for word in sentence.split_whitespace() {
        if word == "from" && !out.is_empty() && depth == 0 {
            break;
        }
        let opens = word.starts_with('(');
        depth += u32::from(opens);
        if depth == 0 {
            if !out.is_empty() {
                out.push(' ');
            }
            out.push_str(word);
        }
        if depth > 0 && word.trim_end_matches([',', ';']).ends_with(')') {
            depth -= 1;
        }
    }
    if out.is_empty() { sentence.to_owned() } else { out }
}

fn title(fault: &FaultRecord) -> String {
    let mut text = format!("{}: {}, asked {} s", fault.kind, words(fault), moment(fault.asked_ns));
    for (name, at) in [
        ("in force", fault.injected_ns),
        ("seen", fault.verified_ns),
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
    for (id, own) in input.spans.iter().rev() {
        let kind = input.run.system.labels.get(id).map(String::as_str).unwrap_or_default();
        lane(m, "member", &format!("n{id}"), kind, |m| {
            m.el("div", &[("class", "clip")], |m| {
                let crowded = own.len() > MOST_SPANS;
                for span in own {
                    let share = ns_to_s(span.to_ns.saturating_sub(span.from_ns)) / input.axis.end_s;
                    if !crowded || share >= PIXEL {
                        ribbon(m, span);
                    }
                }
            });
        });
    }
}

/// The look of a role.
pub(super) fn role_class(role: Role) -> &'static str {
    match role {
        Role::Leading => "leading",
        Role::Following | Role::Answering => "following",
        Role::Looking => "looking",
        Role::Down => "down",
        Role::Paused => "paused",
    }
}

/// What is written into a ribbon: the epoch of a leader, and why a member is silent.
pub(super) fn role_label(m: &mut Markup, span: &MemberSpan) {
    match (span.role, span.epoch) {
        (Role::Leading, Some(epoch)) => m.leaf("span", &[], &format!("e{epoch}")),
        (Role::Down | Role::Paused, _) => m.leaf("span", &[], span.role.name()),
        _ => {}
    }
}

fn ribbon(m: &mut Markup, span: &MemberSpan) {
    let class = format!("x rib {}", role_class(span.role));
    let epoch = span.epoch.map(|epoch| format!(", epoch {epoch}")).unwrap_or_default();
    let title = format!("{}{epoch}, {} to {} s", span.role.name(), moment(span.from_ns), moment(span.to_ns));
    let style = Axis::between(span.from_ns, span.to_ns);
    m.el("i", &[("class", &class), ("style", &style), ("title", &title)], |m| role_label(m, span));
}

pub(super) fn outages(m: &mut Markup, input: &Input<'_>) {
    let mut outages: Vec<&Outage> = input.results.outages.iter().collect();
    outages.sort_by_key(|outage| outage.from_ns);
    let texts: Vec<String> = outages.iter().map(|outage| duration(outage.ms())).collect();
    let labels: Vec<(f64, f64)> = outages
        .iter()
        .zip(&texts)
        .map(|(outage, text)| (ns_to_s(outage.from_ns), width_px(text) + 6.0))
        .collect();
    // The longest first: where two stand close together, the one that hurt more keeps its label.
    let mut order: Vec<usize> = (0..outages.len()).collect();
    order.sort_by_key(|&at| std::cmp::Reverse(outages[at].to_ns.saturating_sub(outages[at].from_ns)));
    let rooms = rooms(&labels, &order, input.axis.end_s);
    let least =
        order.get(MOST_OUTAGE_LABELS).map_or(0, |&at| outages[at].to_ns.saturating_sub(outages[at].from_ns));
    lane(m, "outages", "Outages", "no write acknowledged", |m| {
        m.el("div", &[("class", "clip")], |m| {
            for ((outage, text), room) in outages.iter().zip(&texts).zip(&rooms) {
                let cause = outage.fault.as_deref().unwrap_or("no fault");
                let open = if outage.open { ", not over at the end" } else { "" };
                let title = format!("{text}, {cause}{open}");
                let style = Axis::between(outage.from_ns, outage.to_ns);
                m.leaf("i", &[("class", "x out"), ("style", &style), ("title", &title)], "");
                if outage.to_ns.saturating_sub(outage.from_ns) >= least {
                    let (class, style) = roomy("x outlabel", outage.from_ns, room);
                    m.el("span", &[("class", &class), ("style", &style)], |m| m.leaf("span", &[], text));
                }
            }
            if outages.is_empty() {
                m.leaf("span", &[("class", "none")], "none");
            }
        });
    });
}

/// The longest outage of each key that had one of its own, where any had.
pub(super) fn key_outages(m: &mut Markup, input: &Input<'_>) {
    let Some(keys) = input.results.key_outages.as_ref().filter(|keys| keys.with > 0) else { return };
    lane(m, "outages", "Keys", "one not served", |m| {
        m.el("div", &[("class", "clip")], |m| {
            for KeyOutage { key, outage } in &keys.longest {
                let cause = outage.fault.as_deref().unwrap_or("no fault");
                let open = if outage.open { ", not over at the end" } else { "" };
                let title = format!("key {key}: {}, {cause}{open}", duration(outage.ms()));
                let style = Axis::between(outage.from_ns, outage.to_ns);
                m.leaf("i", &[("class", "x out"), ("style", &style), ("title", &title)], "");
            }
        });
    });
}

/// The stretches in which the bench itself did not send all that was due, where there are any.
pub(super) fn unsent(m: &mut Markup, input: &Input<'_>) {
    let Some(unsent) = &input.results.unsent else { return };
    lane(m, "outages", "Not sent", "by the bench", |m| {
        m.el("div", &[("class", "clip")], |m| {
            for (from, to) in &unsent.stretches {
                let title = format!("{} to {} s: {}", moment(*from), moment(*to), unsent.why());
                let style = Axis::between(*from, *to);
                m.leaf("i", &[("class", "x out unsent"), ("style", &style), ("title", &title)], "");
            }
        });
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_name_leaves_out_brackets_and_the_other_side() {
        let short = ["partition n4 (leader) from n1 n2", "kill n1 n2 n3 (leader)", "bump n2 by +31.4 s", ""]
            .map(brief);
        assert_eq!(short, ["partition n4", "kill n1 n2 n3", "bump n2 by +31.4 s", ""]);
        assert_eq!(brief("(odd)"), "(odd)");
        assert_eq!(brief("mute n3 (the leader, old) towards n1"), "mute n3 towards n1");
    }
}
