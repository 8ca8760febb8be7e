//! Cases over nights: a row for each case, a square for each night.
//!
//! A square says its pile by its pattern as well as by its colour, and leads to the page of the run that
//! decided it. Links take most of the page's bytes, so only so many squares have one, the latest nights and
//! what was not valid first.

use std::collections::BTreeMap;

use nights::fold::{CaseNight, Night};
use nights::pile::Pile;
use runs::findings::{Sentence, shortened};
use runs::numbers::{len, plural};

use super::{GRID_NIGHTS, MOST_TEXT, links, shown};
use crate::html::markup::Markup;
use crate::nights::digest::{Digest, day, number, tone};

/// Rows that are drawn at most.
const MOST_ROWS: usize = 400;
/// Rows that stand open; those below are of cases that were valid in every night drawn.
const MOST_OPEN: usize = 60;
/// Squares with a title and a link at most.
const MOST_LINKS: usize = 4000;
/// Characters of a reason in a square's title at most.
const MOST_WHY: usize = 80;
/// Bytes of a square's link at most.
const MOST_LINK: usize = 160;

/// A case over the nights drawn.
struct Row<'a> {
    tonight: &'a CaseNight,
    squares: Vec<Option<CaseNight>>,
}

impl Row<'_> {
    /// What decides a row's place: the worst tonight first, then the worst of the nights before. Not run is
    /// worse than valid.
    fn place(&self) -> (bool, Option<Pile>, Option<Pile>) {
        let is_valid = self.tonight.pile == Some(Pile::Valid);
        (!is_valid, self.tonight.pile, self.squares.iter().flatten().filter_map(|case| case.pile).max())
    }

    fn is_always_valid(&self) -> bool {
        self.place() == (false, Some(Pile::Valid), Some(Pile::Valid))
    }
}

/// Writes them.
pub(super) fn write(m: &mut Markup, digest: &Digest<'_>) {
    m.heading("cases", "Cases", &summary(digest));
    let nights = shown(digest);
    let rows = rows(digest, nights);
    if rows.is_empty() {
        return;
    }
    legend(m);
    let linked = linked(&rows);
    let troubled = rows.iter().filter(|row| !row.is_always_valid()).count();
    let open = troubled.clamp(MOST_OPEN, MOST_ROWS).min(rows.len());
    let draw = |m: &mut Markup, from: usize, to: usize| {
        m.el("div", &[("class", "case-grid"), ("style", &format!("--nights:{}", nights.len()))], |m| {
            axis(m, nights);
            for (at, row) in rows.iter().enumerate().take(to).skip(from) {
                write_row(m, nights, row, &linked[at]);
            }
        });
    };
    draw(m, 0, open);
    let drawn = rows.len().min(MOST_ROWS);
    if drawn > open {
        m.el("details", &[("class", "part")], |m| {
            let more = plural(number(drawn - open), "more case");
            m.leaf("summary", &[], &format!("{more}, valid in each of these nights that ran them"));
            draw(m, open, drawn);
        });
    }
    super::more(m, rows.len(), drawn, "case");
}

fn summary(digest: &Digest<'_>) -> Sentence {
    let parts = digest.piles_in_words();
    if parts.is_empty() {
        return Sentence::strong("No case was planned or run.");
    }
    let again: u32 = digest.cases.iter().map(|case| case.tried_again).sum();
    let again = match again {
        0 => String::new(),
        n => format!(" {} valid only when tried again.", plural(u64::from(n), "run")),
    };
    Sentence::strong(format!("Tonight {}", parts.join(", "))).and(format!(
        ". A square is a night, the last {} of them, tonight on the right.{again}",
        len(digest.view.nights.len().min(GRID_NIGHTS))
    ))
}

fn legend(m: &mut Markup) {
    m.el("div", &[("class", "legend")], |m| {
        for (class, word) in Pile::ALL.into_iter().map(|pile| (class(Some(pile)), pile.name())) {
            m.el("span", &[("class", "key")], |m| {
                m.leaf("i", &[("class", &format!("night {class}"))], "");
                m.text(word);
            });
        }
        m.el("span", &[("class", "key")], |m| {
            m.leaf("i", &[("class", "night")], "");
            m.text("not run");
        });
    });
    m.line();
}

/// The class of a pile: a letter, because there are thousands of squares.
fn class(pile: Option<Pile>) -> &'static str {
    match pile {
        None => "",
        Some(Pile::Valid) => "v",
        Some(Pile::Regression) => "r",
        Some(Pile::Unknown) => "u",
        Some(Pile::BenchFailure) => "b",
        Some(Pile::Violation) => "k",
    }
}

fn rows<'a>(digest: &'a Digest<'_>, nights: &[Night]) -> Vec<Row<'a>> {
    let mut squares: BTreeMap<String, Vec<Option<CaseNight>>> = BTreeMap::new();
    for (at, night) in nights.iter().enumerate() {
        for case in night.cases() {
            let all = squares.entry(case.case.clone()).or_insert_with(|| vec![None; nights.len()]);
            if let Some(square) = all.get_mut(at) {
                *square = Some(case);
            }
        }
    }
    let row = |tonight: &'a CaseNight| Some(Row { tonight, squares: squares.remove(&tonight.case)? });
    let mut rows: Vec<Row<'a>> = digest.cases.iter().filter_map(row).collect();
    // Of equals the order of their ids stays.
    rows.sort_by_key(|row| std::cmp::Reverse(row.place()));
    rows
}

/// Which squares have a title and a link, row by row.
fn linked(rows: &[Row<'_>]) -> Vec<Vec<bool>> {
    let mut all: Vec<(usize, usize, bool)> = Vec::new();
    for (row, of) in rows.iter().enumerate().take(MOST_ROWS) {
        let pile = |square: &Option<CaseNight>| square.as_ref().and_then(|case| case.pile);
        let ran = of.squares.iter().enumerate().filter_map(|(at, square)| Some((at, pile(square)?)));
        all.extend(ran.map(|(at, pile)| (row, at, pile == Pile::Valid)));
    }
    all.sort_by_key(|(row, at, is_valid)| (*is_valid, std::cmp::Reverse(*at), *row));
    let mut linked: Vec<Vec<bool>> = rows.iter().map(|row| vec![false; row.squares.len()]).collect();
    for (row, at, _) in all.into_iter().take(MOST_LINKS) {
        linked[row][at] = true;
    }
    linked
}

fn axis(m: &mut Markup, nights: &[Night]) {
    m.el("div", &[("class", "case-row case-axis")], |m| {
        m.leaf("span", &[("class", "quiet")], "");
        m.el("span", &[("class", "case-ends")], |m| {
            if let [first, .., last] = nights {
                m.leaf("span", &[], &day(first));
                m.leaf("span", &[], &day(last));
            }
        });
        m.leaf("span", &[("class", "quiet")], "");
    });
}

fn write_row(m: &mut Markup, nights: &[Night], row: &Row<'_>, linked: &[bool]) {
    let class = if row.tonight.why.is_empty() { "case-row short" } else { "case-row" };
    m.el("div", &[("class", class)], |m| {
        m.el("span", &[("class", "case-name")], |m| {
            m.text(&shortened(&row.tonight.case, MOST_TEXT));
        });
        m.el("span", &[("class", "case-nights")], |m| {
            for ((night, square), linked) in nights.iter().zip(&row.squares).zip(linked) {
                write_square(m, night, square.as_ref(), *linked);
            }
        });
        m.el("span", &[("class", "case-why")], |m| {
            let (word, tone) = match row.tonight.pile {
                Some(pile) => (pile.name(), format!("state {}", tone(pile))),
                None => ("not run", "quiet".to_owned()),
            };
            m.leaf("span", &[("class", &tone)], word);
            if !row.tonight.why.is_empty() {
                m.text(": ");
                m.text(&shortened(&row.tonight.why, MOST_TEXT));
            }
            if let Some(owner) = &row.tonight.owner {
                m.text(" ");
                m.leaf("small", &[("class", "quiet")], &shortened(owner, MOST_TEXT));
            }
        });
    });
    m.line();
}

fn write_square(m: &mut Markup, night: &Night, square: Option<&CaseNight>, linked: bool) {
    let Some((case, pile)) = square.and_then(|case| Some((case, case.pile?))) else {
        m.leaf("i", &[], "");
        return;
    };
    let class = class(Some(pile));
    if !linked {
        m.leaf("i", &[("class", class)], "");
        return;
    }
    let why =
        if case.why.is_empty() { String::new() } else { format!(": {}", shortened(&case.why, MOST_WHY)) };
    let title = format!("{} {}{why}", day(night), pile.name());
    let tries = night.last_tries(&case.case);
    let decided = tries.iter().find(|attempt| attempt.pile == pile).or_else(|| tries.last());
    let link = decided.and_then(|attempt| links::run_page(attempt.folder.as_deref()?));
    match link.filter(|href| href.len() <= MOST_LINK) {
        Some(href) => m.leaf("a", &[("class", class), ("href", &href), ("title", &title)], ""),
        None => m.leaf("i", &[("class", class), ("title", &title)], ""),
    }
}
