//! Applications: who held what when, as lanes of the timeline, and what each fault of a holder cost in parts.

use super::Input;
use super::axis::Axis;
use super::lanes::lane;
use super::markup::Markup;
use runs::findings::Sentence;
use runs::numbers::{duration, len, moment, ns_to_ms};
use runs::results::HolderChange;
use runs::terms::{Lock, Term, locks};

/// Lanes at most; one more would leave no room for the others.
const MOST_LOCKS: usize = 8;
/// Terms and stale writes of a lane that are drawn at most, the longest terms first.
const MOST_TERMS: usize = 400;
/// Rows of the table at most.
const MOST_ROWS: usize = 40;
/// What stands above the table.
const COLUMNS: [&str; 8] = [
    "fault",
    "lock",
    "certain for",
    "session ended after",
    "the next told after",
    "held after",
    "first write after",
    "in all",
];

/// Draws a lane of the timeline for each lock: a ribbon for each term of a holder, and a cross for each stale
/// write that was refused.
pub(super) fn write_lanes(m: &mut Markup, input: &Input<'_>) {
    for lock in locks(input.history).iter().take(MOST_LOCKS) {
        lane(m, "member", &format!("lock {}", lock.key), "", |m| {
            m.el("div", &[("class", "clip")], |m| {
                for (term, is_even) in drawn(lock) {
                    ribbon(m, &term, is_even);
                }
                for at in lock.stale.iter().take(MOST_TERMS) {
                    let title = format!("a stale write was refused at {} s", moment(*at));
                    let style = format!("{};top:50%", Axis::between(*at, *at));
                    m.leaf("i", &[("class", "x mark failed"), ("style", &style), ("title", &title)], "");
                }
            });
        });
    }
}

/// The longest terms in the order of time, each with whether its place among all is even.
fn drawn(lock: &Lock) -> Vec<(Term, bool)> {
    let length = |term: &Term| term.to_ns - term.from_ns;
    let mut terms: Vec<(Term, bool)> =
        lock.terms.iter().zip(0_u32..).map(|(term, place)| (*term, place % 2 == 0)).collect();
    terms.sort_by_key(|(term, _)| std::cmp::Reverse(length(term)));
    terms.truncate(MOST_TERMS);
    terms.sort_by_key(|(term, _)| term.from_ns);
    terms
}

/// One term on its lane. Neighbours have two colours, and the even ones bear the number of their application.
fn ribbon(m: &mut Markup, term: &Term, is_even: bool) {
    let who = term.application.map(|number| format!("application {number}, ")).unwrap_or_default();
    let (from, to) = (moment(term.from_ns), moment(term.to_ns));
    let title = format!("{who}token {}, {from} to {to} s", term.token);
    let class = if is_even { "x rib leading" } else { "x rib following" };
    let style = Axis::between(term.from_ns, term.to_ns);
    m.el("i", &[("class", class), ("style", &style), ("title", &title)], |m| {
        if let (true, Some(number)) = (is_even, term.application) {
            m.leaf("span", &[], &format!("a{number}"));
        }
    });
}

/// Writes the table of what each fault of a holder cost.
pub(super) fn write(m: &mut Markup, input: &Input<'_>) {
    if input.run.session_ms.is_none() {
        return;
    }
    let changes = &input.results.holder_changes;
    m.heading("terms", "Changes of the holder", &finding(changes));
    if changes.is_empty() {
        return;
    }
    m.el("table", &[("class", "cards")], |m| {
        m.el("thead", &[], |m| {
            m.el("tr", &[], |m| {
                for name in COLUMNS {
                    m.leaf("th", &[("data-sort", "yes")], name);
                }
            });
        });
        m.el("tbody", &[], |m| {
            for change in changes.iter().take(MOST_ROWS) {
                row(m, change);
            }
        });
    });
    m.leaf(
        "p",
        &[("class", "quiet")],
        "From the fault until the old holder was not certain any more, and until its leader ended its \
         session; from there until the next one in the line was told; until it held; until the first write \
         behind that was taken. A dash stands where nobody said when. The lanes above show each term; a \
         cross is a stale write that was refused.",
    );
    m.line();
}

fn row(m: &mut Markup, change: &HolderChange) {
    let span = |from: u64, to: Option<u64>| {
        to.map_or("–".to_owned(), |to| duration(ns_to_ms(to.saturating_sub(from))))
    };
    let behind = |from: Option<u64>, to: Option<u64>| from.map_or("–".to_owned(), |from| span(from, to));
    let told_or_before = change.told_ns.or(change.expired_ns).or(Some(change.certain_until_ns));
    let cells = [
        ("lock", change.key.to_string()),
        ("certain for", span(change.injected_ns, Some(change.certain_until_ns))),
        ("session ended after", span(change.injected_ns, change.expired_ns)),
        ("the next told after", behind(change.expired_ns, change.told_ns)),
        ("held after", behind(told_or_before, change.held_ns)),
        ("first write after", change.held_ns.map_or("–".to_owned(), |held| span(held, change.written_ns))),
        ("in all", span(change.injected_ns, change.written_ns)),
    ];
    m.el("tr", &[], |m| {
        m.leaf("td", &[("class", "id")], &format!("{} {}", change.fault, change.kind));
        for (label, text) in &cells {
            m.leaf("td", &[("data-l", *label)], text);
        }
    });
    m.line();
}

fn finding(changes: &[HolderChange]) -> Sentence {
    let longest = changes
        .iter()
        .filter_map(|change| Some((change, change.held_ns?.saturating_sub(change.injected_ns))))
        .max_by_key(|(_, took)| *took);
    match longest {
        None if changes.is_empty() => Sentence::strong("No fault hit a holder."),
        None => Sentence::strong("Nobody held again what a fault had taken."),
        Some((change, took)) => Sentence::strong(format!(
            "{} of {} faults of a holder were followed by another holder.",
            len(changes.iter().filter(|change| change.held_ns.is_some()).count()),
            len(changes.len())
        ))
        .and(format!(" The longest took {}, after {}.", duration(ns_to_ms(took)), change.fault)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_terms_the_longest_are_drawn_in_the_order_of_time() {
        let term = |from: u64| Term {
            application: Some(1),
            token: 1,
            from_ns: from * 10,
            to_ns: from * 10 + u64::from(from % 2 == 1) * 8 + 1,
        };
        let lock = Lock { key: 0, terms: (0..900).map(term).collect(), stale: Vec::new() };
        let drawn = drawn(&lock);
        assert_eq!(drawn.len(), MOST_TERMS);
        assert!(drawn.iter().all(|(term, _)| term.to_ns - term.from_ns == 9));
        assert!(drawn.windows(2).all(|pair| pair[0].0.from_ns < pair[1].0.from_ns));
    }
}
