//! The night as Markdown, for the summary of a build server's job.
//!
//! Whatever comes from outside is escaped: names and reasons are text, never markup. GitHub refuses a summary
//! of more than a megabyte, so every list is bounded.

use std::fmt::Write as _;

use nights::findings::Finding;
use nights::threshold::Outcome;
use runs::findings::{sentence, sentence_end, shortened};
use runs::numbers::{count, len, plural};

use super::View;
use super::digest::{Digest, broken, compared, day, glyph, named, number, outcome, replays, result, shrunk};

/// Rows of a table at most, and findings.
const MOST: usize = 100;
/// Characters of a text at most.
const MOST_TEXT: usize = 400;
/// Characters of a command at most; a longer one is not written, because half of one would do another thing.
const MOST_COMMAND: usize = 2000;

/// Writes the night as Markdown.
pub(super) fn render(view: &View<'_>) -> String {
    let Some(digest) = Digest::of(view) else { return "## ? Unknown\n\nThere was no night.\n".to_owned() };
    let mut out = String::new();
    let status =
        digest.status().map_or("no exit status yet".to_owned(), |status| format!("exit status {status}"));
    let _ = writeln!(out, "## {} {}: night of {}\n", glyph(digest.pile), digest.headline, day(digest.night));
    let _ = writeln!(out, "{}\n", text(&digest.sentence));
    let begun = &digest.night.begun;
    let _ = writeln!(out, "{status} · build {} · {}\n", code(&begun.build), text(&begun.machine.key()));
    piles(&mut out, &digest);
    findings(&mut out, &digest);
    thresholds(&mut out, &digest);
    alarms(&mut out, &digest);
    work(&mut out, &digest);
    left_out(&mut out, &digest);
    out
}

/// Text without any meaning in Markdown or HTML, on one line.
fn text(raw: &str) -> String {
    let mut out = String::with_capacity(raw.len());
    for c in shortened(raw, MOST_TEXT).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '\n' | '\r' | '\t' => out.push(' '),
            '\\' | '`' | '*' | '_' | '[' | ']' | '#' | '|' | '~' | '$' => {
                out.push('\\');
                out.push(c);
            }
            '@' => out.push_str("&#64;"),
            c if c.is_control() => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    // Neither a mention of somebody nor a link by itself.
    out.replace("://", "&#58;//")
}

/// Text as code within a line. A bar would end a cell of a table, and backticks the code.
fn code(raw: &str) -> String {
    let plain = |c: char| if c == '`' || c == '|' || c.is_control() { '\u{fffd}' } else { c };
    format!("`{}`", shortened(raw, MOST_TEXT).chars().map(plain).collect::<String>())
}

/// A block of code, with a fence that nothing in it can end.
fn block(out: &mut String, raw: &str) {
    let longest = raw.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    let plain = |c: char| if c.is_control() { ' ' } else { c };
    let _ = writeln!(out, "{fence}sh\n{}\n{fence}\n", raw.chars().map(plain).collect::<String>());
}

fn table(out: &mut String, columns: &[&str]) {
    let _ = writeln!(out, "| {} |\n|{}", columns.join(" | "), " --- |".repeat(columns.len()));
}

fn more(out: &mut String, all: usize, noun: &str) {
    if let Some(left) = all.checked_sub(MOST).filter(|left| *left > 0) {
        let _ = writeln!(out, "\nAnd {} more, on the page.", plural(number(left), noun));
    }
    out.push('\n');
}

fn piles(out: &mut String, digest: &Digest<'_>) {
    let (piles, not_run) = digest.piles();
    let counted: Vec<String> =
        piles.iter().map(|(pile, n)| format!("{} {} {}", glyph(*pile), len(*n), named(*pile, *n))).collect();
    let _ = writeln!(out, "{} · {} not run\n", counted.join(" · "), len(not_run));
    let troubled = digest.not_valid();
    if troubled.is_empty() {
        return;
    }
    table(out, &["Case", "Pile", "Why", "Owner"]);
    for (case, pile) in troubled.iter().take(MOST) {
        let owner = case.owner.as_deref().map(text).unwrap_or_default();
        let _ = writeln!(
            out,
            "| {} | {} {} | {} | {owner} |",
            text(&case.case),
            glyph(*pile),
            pile.name(),
            text(&case.why)
        );
    }
    more(out, troubled.len(), "case");
}

fn findings(out: &mut String, digest: &Digest<'_>) {
    let all = digest.view.findings;
    if all.is_empty() {
        return;
    }
    let _ = writeln!(out, "### Findings\n");
    for finding in all.iter().take(MOST) {
        one_finding(out, digest, finding);
    }
    more(out, all.len(), "finding");
}

fn one_finding(out: &mut String, digest: &Digest<'_>, finding: &Finding) {
    let seen = format!("First seen {}, last seen {}", digest.day(&finding.first), digest.day(&finding.last));
    let _ = writeln!(
        out,
        "**{}**: {} in {}. {} {}; {}, {}.{}{}\n",
        finding.state.name(),
        text(&finding.shape.check),
        text(&finding.shape.case),
        text(&sentence(&finding.sentence)),
        text(&seen),
        plural(u64::from(finding.nights), "night"),
        replays(finding),
        shrunk(finding).map(|shrunk| format!(" Shrunk to {}.", text(&shrunk))).unwrap_or_default(),
        finding.link.as_ref().map(|link| format!(" Known: {}.", code(link))).unwrap_or_default(),
    );
    if !finding.best.command.is_empty() && finding.best.command.len() <= MOST_COMMAND {
        block(out, &finding.best.command);
    }
}

fn thresholds(out: &mut String, digest: &Digest<'_>) {
    let all = digest.thresholds();
    let not_met: Vec<_> = all.iter().filter(|one| one.judgement.outcome != Outcome::Met).collect();
    if all.is_empty() {
        return;
    }
    let met = len(all.len() - not_met.len());
    let _ = writeln!(out, "### Thresholds\n\n{met} of {} met.\n", len(all.len()));
    if not_met.is_empty() {
        return;
    }
    table(out, &["Case", "Threshold", "Outcome", "What came out"]);
    for one in not_met.iter().take(MOST) {
        let _ = writeln!(
            out,
            "| {} | {} | {} | {} |",
            text(one.case),
            code(&one.judgement.threshold),
            outcome(one.judgement.outcome),
            text(result(one.judgement))
        );
    }
    more(out, not_met.len(), "threshold");
}

fn alarms(out: &mut String, digest: &Digest<'_>) {
    let all = &digest.night.alarms;
    if all.is_empty() {
        return;
    }
    let _ = writeln!(out, "### Numbers that stood out\n");
    for alarm in all.iter().take(MOST) {
        let compared = compared(alarm.comparison.as_ref());
        let _ = writeln!(
            out,
            "- {}: {} {}",
            text(&alarm.case),
            text(&sentence_end(&alarm.sentence)),
            text(&sentence(&compared))
        );
    }
    more(out, all.len(), "alarm");
}

fn work(out: &mut String, digest: &Digest<'_>) {
    let (elections, faults, operations) = digest.night.work();
    let (worlds, bad) = digest.night.worlds_lived();
    let _ = writeln!(
        out,
        "### Work done\n\n{}, {} measured, {} proven, {}, {} of which broke a rule.\n",
        plural(operations, "operation"),
        plural(elections, "election"),
        plural(faults, "fault"),
        plural(worlds, "world"),
        len(bad.len())
    );
    for world in bad.iter().take(MOST) {
        let _ = writeln!(out, "- {}", text(&broken(world)));
    }
    if !bad.is_empty() {
        more(out, bad.len(), "world");
    }
    for hunted in digest.hunted().iter().take(MOST) {
        let how = if hunted.is_convicted { "was convicted" } else { "was **not** convicted" };
        let _ = writeln!(out, "The planted bug {} {how}.\n", code(hunted.name));
    }
}

fn left_out(out: &mut String, digest: &Digest<'_>) {
    let all = digest.left_out();
    if all.is_empty() {
        return;
    }
    let _ = writeln!(out, "### Left out\n");
    table(out, &["Case", "Runs", "Why"]);
    for left in all.iter().take(MOST) {
        let _ = writeln!(out, "| {} | {} | {} |", text(&left.case), count(left.runs), text(&left.why));
    }
    more(out, all.len(), "case");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_from_outside_is_neither_markup_nor_a_mention_nor_a_link() {
        assert_eq!(text("a|b\n<script> *x* @team"), "a\\|b &lt;script&gt; \\*x\\* &#64;team");
        assert_eq!(text("https://a.b"), "https&#58;//a.b");
        assert_eq!(code("a`b|c"), "`a\u{fffd}b\u{fffd}c`");
    }

    #[test]
    fn no_command_ends_its_own_fence() {
        let mut out = String::new();
        block(&mut out, "echo ```` x\n````");
        assert_eq!(out, "`````sh\necho ```` x ````\n`````\n\n");
    }
}
