//! How exact the faults were, by kind: from being asked for to being in force and to being seen, and the same
//! on the way out.
//!
//! Taken from the moments of each fault's own record, so nothing is measured twice. The nearest rank, like
//! all percentiles of the page.

use std::collections::BTreeMap;

use super::Input;
use super::markup::Markup;
use runs::faults::FaultRecord;
use runs::findings::shortened;
use runs::numbers::{len, nearest_rank, ns_to_ms, whole_ms};

/// Characters of a kind's name at most.
const MOST_NAME: usize = 80;

/// A stretch of a fault's life in ms; none where one of its ends is not known.
type Step = fn(&FaultRecord) -> Option<f64>;

/// What is measured on a fault, in the order of the columns.
const STEPS: [(&str, Step); 4] = [
    ("in force", |fault| between(Some(fault.asked_ns), fault.injected_ns)),
    ("seen", |fault| between(Some(fault.asked_ns), fault.verified_ns)),
    ("lifted", |fault| between(fault.heal_asked_ns, fault.healed_ns)),
    ("seen gone", |fault| between(fault.heal_asked_ns, fault.verified_healed_ns)),
];

fn between(from: Option<u64>, to: Option<u64>) -> Option<f64> {
    from.zip(to).map(|(from, to)| ns_to_ms(to.saturating_sub(from)))
}

pub(super) fn write(m: &mut Markup, input: &Input<'_>) {
    let mut kinds: BTreeMap<&str, Vec<&FaultRecord>> = BTreeMap::new();
    for fault in input.faults.iter().filter(|fault| fault.injected_ns.is_some()) {
        kinds.entry(&fault.kind).or_default().push(fault);
    }
    if kinds.is_empty() {
        return;
    }
    m.el("details", &[("class", "part")], |m| {
        m.el("summary", &[], |m| {
            m.leaf("b", &[], "How exact");
            m.text(" ");
            m.leaf("span", &[("class", "quiet")], "from being asked for, by kind: median and maximum, ms");
        });
        m.el("table", &[("class", "cards precision")], |m| {
            m.el("thead", &[], |m| m.el("tr", &[], header));
            m.el("tbody", &[], |m| {
                for (kind, faults) in &kinds {
                    row(m, kind, faults);
                }
            });
        });
    });
    m.line();
}

fn header(m: &mut Markup) {
    m.leaf("th", &[("data-sort", "yes")], "kind");
    m.leaf("th", &[("class", "n"), ("data-sort", "yes")], "faults");
    for (name, _) in STEPS {
        for which in ["median", "max"] {
            m.el("th", &[("class", "n"), ("data-sort", "yes")], |m| {
                m.text(name);
                m.leaf("small", &[], &format!("{which}, ms"));
            });
        }
    }
}

fn row(m: &mut Markup, kind: &str, faults: &[&FaultRecord]) {
    m.el("tr", &[], |m| {
        m.leaf("td", &[("class", "id span2")], &shortened(kind, MOST_NAME));
        m.leaf("td", &[("class", "n"), ("data-l", "faults")], &len(faults.len()));
        for (name, step) in STEPS {
            let mut values: Vec<f64> = faults.iter().filter_map(|fault| step(fault)).collect();
            values.sort_by(f64::total_cmp);
            for (which, rank) in [("median", 50.0), ("max", 100.0)] {
                let value = nearest_rank(&values, rank).map_or_else(|| "–".to_owned(), whole_ms);
                m.leaf("td", &[("class", "n"), ("data-l", &format!("{name}, {which}"))], &value);
            }
        }
    });
    m.line();
}
