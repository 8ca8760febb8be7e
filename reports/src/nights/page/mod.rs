//! A night as one self-contained page, in the manner of a run's.
//!
//! Verdict first; then, in this order, the findings, the cases over the last nights, what the thresholds came
//! to, the numbers over nights, the work done, the planted bugs, and what was left out. The page lies in the
//! store, so its links lead to the run folders and files beside it, and to nowhere else but the places where
//! somebody wrote about a finding.
//!
//! Every list is bounded, and says how much of it is not drawn: hundreds of cases over a year of nights are
//! still one small file. The numbers that are left out are in `nights.jsonl`.

mod cells;
mod findings;
mod links;
mod rest;
mod strips;
mod thresholds;
mod top;
mod work;

use nights::fold::Night;
use runs::numbers::plural;

use super::View;
use super::digest::{Digest, day, number};
use crate::html::markup::Markup;
use crate::html::{STYLE, document};

/// What only this page adds to the stylesheet of every page.
const NIGHT_STYLE: &str = include_str!("night.css");
/// What every page's script adds, and the reader's zone.
const SCRIPT: &str = concat!(include_str!("../../html/common.js"), include_str!("night.js"));
/// Characters of a name or a reason at most.
const MOST_TEXT: usize = 300;
/// Nights that the grid of cases shows.
const GRID_NIGHTS: usize = 40;

/// The page.
pub(super) fn render(view: &View<'_>) -> String {
    let style = format!("{STYLE}{NIGHT_STYLE}");
    let Some(digest) = Digest::of(view) else {
        return document::write("No night", &style, SCRIPT, |m| {
            m.leaf("h1", &[], "No night");
            m.leaf("p", &[], "There was no night, so nothing was shown.");
        });
    };
    let title = format!("{}: night of {}", digest.headline, day(digest.night));
    document::write(&title, &style, SCRIPT, |m| {
        top::write(m, &digest);
        findings::write(m, &digest);
        cells::write(m, &digest);
        thresholds::write(m, &digest);
        strips::write(m, &digest);
        work::write(m, &digest);
        rest::write(m, &digest);
    })
}

/// The nights that the grid shows, with their places among all.
fn shown<'a>(digest: &Digest<'a>) -> &'a [Night] {
    let nights = digest.view.nights;
    &nights[nights.len().saturating_sub(GRID_NIGHTS)..]
}

/// A moment in UTC; the script adds the reader's zone.
fn time(m: &mut Markup, at: jiff::Timestamp) {
    let text = at.strftime("%Y-%m-%d %H:%M UTC").to_string();
    m.leaf("time", &[("datetime", &at.to_string())], &text);
}

/// A table's head: (title, whether it is sorted, whether it holds numbers).
fn head(m: &mut Markup, columns: &[(&str, bool)]) {
    m.el("thead", &[], |m| {
        m.el("tr", &[], |m| {
            for (title, numbers) in columns {
                let class = if *numbers { "n" } else { "" };
                m.leaf("th", &[("class", class), ("data-sort", "yes"), ("scope", "col")], title);
            }
        });
    });
}

/// What a list does not draw.
fn more(m: &mut Markup, all: usize, drawn: usize, noun: &str) {
    if let Some(left) = all.checked_sub(drawn).filter(|left| *left > 0) {
        let left = plural(number(left), &format!("more {noun}"));
        m.leaf("p", &[("class", "caption")], &format!("And {left}, in nights.jsonl."));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_script_can_stand_in_a_page() {
        assert!(!SCRIPT.contains("</") && !SCRIPT.contains("<!--") && SCRIPT.is_ascii());
        assert!(!SCRIPT.contains("innerHTML") && !SCRIPT.contains("outerHTML"));
    }
}
