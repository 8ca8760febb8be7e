//! What the night did: worlds, elections, faults and operations, tonight and in the nights before.

use nights::fold::Night;
use runs::findings::{Sentence, shortened};
use runs::numbers::{count, duration, len, lossy, plural};

use super::{MOST_TEXT, head, more};
use crate::html::markup::Markup;
use crate::nights::digest::{Digest, broken, day, headline, number, tone};

/// Nights in the table at most.
const MOST_NIGHTS: usize = 14;
/// Worlds that broke a rule and are named.
const MOST_BROKEN: usize = 50;

/// Writes the section.
pub(super) fn write(m: &mut Markup, digest: &Digest<'_>) {
    m.heading("work", "Work done", &summary(digest));
    let (_, bad) = digest.night.worlds_lived();
    if !bad.is_empty() {
        m.el("ul", &[("class", "bare")], |m| {
            for world in bad.iter().take(MOST_BROKEN) {
                m.leaf("li", &[], &shortened(&broken(world), MOST_TEXT));
            }
        });
        more(m, bad.len(), MOST_BROKEN, "world");
    }
    let nights = digest.view.nights;
    let last = &nights[nights.len().saturating_sub(MOST_NIGHTS)..];
    m.el("table", &[("class", "cards nights")], |m| {
        head(
            m,
            &[
                ("Night", false),
                ("Ended as", false),
                ("Cases run", true),
                ("Runs", true),
                ("Worlds", true),
                ("Elections", true),
                ("Faults proven", true),
                ("Operations", true),
            ],
        );
        m.el("tbody", &[], |m| {
            for night in last.iter().rev() {
                m.el("tr", &[], |m| row(m, night));
                m.line();
            }
        });
    });
}

fn summary(digest: &Digest<'_>) -> Sentence {
    let (elections, faults, operations) = digest.night.work();
    let (worlds, bad) = digest.night.worlds_lived();
    let took: u64 = digest.night.worlds.iter().map(|piece| piece.took_ms).sum();
    let rate = if took > 0 {
        format!(" ({} a minute)", count(runs::numbers::to_u32(lossy(worlds) / lossy(took) * 6e4, u32::MAX)))
    } else {
        String::new()
    };
    let broke = match bad.len() {
        0 => String::new(),
        n => format!(" {} broke a rule.", plural(number(n), "world")),
    };
    Sentence::strong(format!(
        "{}, {} measured, {} proven",
        plural(operations, "operation"),
        plural(elections, "election"),
        plural(faults, "fault"),
    ))
    .and(format!(", {}{rate}.{broke}", plural(worlds, "world")))
}

fn row(m: &mut Markup, night: &Night) {
    let (elections, faults, operations) = night.work();
    let cases = night.cases();
    let (pile, headline, _) = headline(night, &cases);
    let class = format!("state {} span2", tone(pile));
    let ran = cases.iter().filter(|case| case.pile.is_some()).count();
    let mut cell = |label: &'static str, class: &str, text: &str| {
        m.leaf("td", &[("class", class), ("data-l", label)], text);
    };
    cell("Night", "nowrap span2", &day(night));
    cell("Ended as", &class, &headline.to_lowercase());
    cell("Cases run", "n", &len(ran));
    cell("Runs", "n", &len(night.attempts.len()));
    cell("Worlds", "n", &count(night.worlds_lived().0));
    cell("Elections", "n", &count(elections));
    cell("Faults proven", "n", &count(faults));
    cell("Operations", "n", &count(operations));
}

/// How long an attempt took.
pub(super) fn took(ms: f64) -> String {
    if ms.is_finite() && ms >= 0.0 { duration(ms) } else { "–".to_owned() }
}
