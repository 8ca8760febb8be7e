//! The end of a night's page: the planted bugs, what was left out, and the files.

use runs::findings::{Sentence, shortened};
use runs::numbers::{count, plural};

use super::work::took;
use super::{MOST_TEXT, head, links, more};
use crate::html::markup::Markup;
use crate::nights::digest::{Digest, Hunted, number};

/// Rows of a table at most.
const MOST_ROWS: usize = 200;
/// The files of the store that belong to this page, and what they are.
const FILES: [(&str, &str); 4] = [
    ("nights.jsonl", "every night, a line for whatever happened"),
    ("junit.xml", "this night for build servers"),
    ("summary.md", "this night as Markdown"),
    ("metrics.txt", "this night's numbers as OpenMetrics"),
];

/// Writes the end of the page.
pub(super) fn write(m: &mut Markup, digest: &Digest<'_>) {
    planted(m, digest);
    left_out(m, digest);
    files(m);
    m.el("footer", &[], |m| {
        m.leaf("span", &[], "One file; nothing is fetched from anywhere.");
        m.leaf("span", &[], "Numbers of another machine are another series, and are not drawn here.");
    });
}

fn planted(m: &mut Markup, digest: &Digest<'_>) {
    let all = digest.hunted();
    let missed: Vec<&Hunted<'_>> = all.iter().filter(|hunted| !hunted.is_convicted).collect();
    let finding = match (all.len(), missed.len()) {
        (0, _) => Sentence::strong("None was hunted")
            .and(", so this night does not show that it would have found one."),
        (n, 0) => Sentence::strong(format!("{} convicted", plural(number(n), "planted bug")))
            .and(", so what is wrong in this way would have been found."),
        (n, bad) => Sentence::strong(format!("{bad} of {} not convicted", plural(number(n), "planted bug")))
            .and(", so what this night did not find proves little."),
    };
    m.heading("planted", "Planted bugs", &finding);
    if all.is_empty() {
        return;
    }
    m.el("table", &[("class", "cards")], |m| {
        head(m, &[("Planted bug", false), ("Outcome", false), ("Tries", true), ("Took", true)]);
        m.el("tbody", &[], |m| {
            for hunted in all.iter().take(MOST_ROWS) {
                m.el("tr", &[], |m| hunted_row(m, hunted));
            }
        });
    });
    more(m, all.len(), MOST_ROWS, "planted bug");
}

fn hunted_row(m: &mut Markup, hunted: &Hunted<'_>) {
    let name = shortened(hunted.name, MOST_TEXT);
    m.el("td", &[("class", "wide"), ("data-l", "Planted bug")], |m| {
        match links::run_page(hunted.attempt.folder.as_deref().unwrap_or_default()) {
            Some(href) => m.leaf("a", &[("href", &href)], &name),
            None => m.text(&name),
        }
    });
    let (class, word) = if hunted.is_convicted {
        ("state valid span2", "convicted".to_owned())
    } else {
        ("state invalid span2", format!("not convicted: {}", hunted.attempt.pile.name()))
    };
    m.leaf("td", &[("class", class), ("data-l", "Outcome")], &word);
    m.leaf("td", &[("class", "n"), ("data-l", "Tries")], &count(hunted.tries));
    m.leaf("td", &[("class", "n"), ("data-l", "Took")], &took(hunted.attempt.took_ms));
}

fn left_out(m: &mut Markup, digest: &Digest<'_>) {
    let all = digest.left_out();
    let runs: u64 = all.iter().map(|left| u64::from(left.runs)).sum();
    let finding = match (&digest.night.judged, runs) {
        (None, _) => Sentence::strong("Not known yet").and(": what was left out is known when a night ends."),
        (_, 0) => Sentence::strong("Nothing").and(": every run that was planned was made."),
        (_, n) => Sentence::strong(format!("{} left out", plural(n, "run")))
            .and(". Of these nothing is known tonight, good or bad."),
    };
    m.heading("left-out", "Left out", &finding);
    if all.is_empty() {
        return;
    }
    m.el("table", &[("class", "cards")], |m| {
        head(m, &[("Case", false), ("Runs", true), ("Why", false)]);
        m.el("tbody", &[], |m| {
            for left in all.iter().take(MOST_ROWS) {
                m.el("tr", &[], |m| {
                    let case = shortened(&left.case, MOST_TEXT);
                    m.leaf("td", &[("class", "wide"), ("data-l", "Case")], &case);
                    m.leaf("td", &[("class", "n"), ("data-l", "Runs")], &count(left.runs));
                    let why = shortened(&left.why, MOST_TEXT);
                    m.leaf("td", &[("class", "wide"), ("data-l", "Why")], &why);
                });
            }
        });
    });
    more(m, all.len(), MOST_ROWS, "case");
}

fn files(m: &mut Markup) {
    let finding = Sentence::strong("Raw data").and(" beside this page. Run folders are named in the index.");
    m.heading("files", "Files", &finding);
    m.el("dl", &[("class", "pairs")], |m| {
        for (name, what) in FILES {
            m.el("dt", &[], |m| m.leaf("a", &[("href", name)], name));
            m.leaf("dd", &[], what);
        }
    });
}
