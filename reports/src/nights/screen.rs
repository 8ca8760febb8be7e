//! The last lines of a night on a terminal: what it came to, and what is to be done in the morning.
//!
//! The verdict comes first and in words, as in a run's lines, and commands are never wrapped, because people
//! copy them. Lists are short; the page has the rest.

use std::fmt::Write as _;

use nights::findings::{Finding, State};
use nights::pile::Pile;
use nights::threshold::Outcome;
use runs::findings::{sentence, sentence_end};
use runs::numbers::{count, len, plural};

use super::View;
use super::digest::{Digest, broken, compared, day, glyph, replays, shrunk, tone};
use crate::terminal::{INDENT, NARROWEST, Paint, Style, clipped, printable, wrap};

/// Cases, findings and other things that are told at most, each.
const MOST: usize = 8;
/// Rows that one of them may take.
const MOST_ROWS: usize = 3;
/// No row is wider, however wide the terminal is.
const WIDEST: usize = 100;

/// Writes them.
pub(super) fn render(view: &View<'_>, style: Style) -> String {
    let mut screen = Screen { out: String::new(), style };
    let Some(digest) = Digest::of(view) else {
        screen.title(Pile::Unknown, "Unknown", "There was no night.");
        return screen.out;
    };
    screen.verdict(&digest);
    screen.piles(&digest);
    screen.findings(&digest);
    screen.thresholds(&digest);
    screen.alarms(&digest);
    screen.planted(&digest);
    screen.work(&digest);
    screen.left_out(&digest);
    screen.out
}

/// The line that says where the page lies.
pub(super) fn page(path: &str) -> String {
    format!("{:<INDENT$}{}\n", "page", printable(path))
}

struct Screen {
    out: String,
    style: Style,
}

impl Screen {
    fn columns(&self) -> usize {
        self.style.width.clamp(NARROWEST, WIDEST)
    }

    fn title(&mut self, pile: Pile, headline: &str, place: &str) {
        let title = format!("{} {}", glyph(pile), headline.to_uppercase());
        let title = Paint::Of(tone(pile)).on(&title, self.style);
        let place = Paint::Bold.on(&printable(place), self.style);
        let _ = writeln!(self.out, "\n{title}  {place}");
    }

    /// A line with its name in front, wrapped under itself, on a few rows.
    fn line(&mut self, name: &str, text: &str) {
        let rows = clipped(wrap(text, self.columns() - INDENT), MOST_ROWS);
        for (i, row) in rows.iter().enumerate() {
            let lead = if i == 0 { name } else { "" };
            let lead = Paint::Dim.on(&format!("{lead:<INDENT$}"), self.style);
            let _ = writeln!(self.out, "{lead}{row}");
        }
    }

    /// A line behind a pile's mark.
    fn marked(&mut self, pile: Pile, word: &str, text: &str) {
        let mark = format!("{} {word}:", glyph(pile));
        let indent = " ".repeat(INDENT);
        let rows = wrap(&format!("{mark} {text}"), self.columns() - INDENT - 2);
        for (i, row) in clipped(rows, MOST_ROWS).iter().enumerate() {
            match row.strip_prefix(&mark).filter(|_| i == 0) {
                Some(rest) => {
                    let mark = Paint::Of(tone(pile)).on(&mark, self.style);
                    let _ = writeln!(self.out, "{indent}{mark}{rest}");
                }
                None => {
                    let _ = writeln!(self.out, "{indent}  {row}");
                }
            }
        }
    }

    fn more(&mut self, all: usize) {
        if let Some(left) = all.checked_sub(MOST).filter(|left| *left > 0) {
            self.line("", &format!("and {} more, on the page", len(left)));
        }
    }

    fn verdict(&mut self, digest: &Digest<'_>) {
        let status = match digest.status() {
            Some(status) => format!("exit status {status}"),
            None => "no exit status yet".to_owned(),
        };
        self.title(digest.pile, digest.headline, &format!("night of {}, {status}", day(digest.night)));
        for row in wrap(&digest.sentence, self.columns()) {
            let _ = writeln!(self.out, "{row}");
        }
        self.out.push('\n');
        let begun = &digest.night.begun;
        self.line("build", &format!("{} on {}", begun.build, begun.machine.key()));
    }

    fn piles(&mut self, digest: &Digest<'_>) {
        let parts = digest.piles_in_words();
        self.line("cases", &if parts.is_empty() { "none".to_owned() } else { parts.join(", ") });
        let troubled = digest.not_valid();
        for (case, pile) in troubled.iter().take(MOST) {
            let owner = case.owner.as_ref().map(|owner| format!(" ({owner})")).unwrap_or_default();
            let why = if case.why.is_empty() { String::new() } else { format!(": {}", case.why) };
            self.marked(*pile, pile.name(), &format!("{}{owner}{why}", case.case));
        }
        self.more(troubled.len());
    }

    fn findings(&mut self, digest: &Digest<'_>) {
        let all = digest.view.findings;
        for (at, finding) in all.iter().take(MOST).enumerate() {
            self.finding(if at == 0 { "findings" } else { "" }, finding);
        }
        self.more(all.len());
    }

    fn finding(&mut self, name: &str, finding: &Finding) {
        let known = finding.link.as_ref().map(|link| format!(" Known: {link}")).unwrap_or_default();
        let tolerated = if finding.is_tolerated { ", not counted" } else { "" };
        let text = format!(
            "{}, {} in {}, {}{tolerated}.{known} {}",
            finding.state.name(),
            finding.shape.check,
            finding.shape.case,
            replays(finding),
            sentence_end(&finding.sentence)
        );
        self.line(name, &text);
        if finding.state == State::Gone {
            return;
        }
        if let Some(shrunk) = shrunk(finding) {
            self.line("", &format!("shrunk to {shrunk}"));
        }
        if !finding.best.command.is_empty() {
            let _ = writeln!(self.out, "{}$ {}", " ".repeat(INDENT), printable(&finding.best.command));
        }
    }

    fn thresholds(&mut self, digest: &Digest<'_>) {
        let all = digest.thresholds();
        if all.is_empty() {
            return;
        }
        let of = |wanted: Outcome| all.iter().filter(|one| one.judgement.outcome == wanted).count();
        let text = format!(
            "{} met, {} crossed, {} with too few samples",
            len(of(Outcome::Met)),
            len(of(Outcome::Crossed)),
            len(of(Outcome::TooFew))
        );
        self.line("thresholds", &text);
        let not_met: Vec<_> = all.iter().filter(|one| one.judgement.outcome != Outcome::Met).collect();
        for one in not_met.iter().take(MOST) {
            let (pile, word) = match one.judgement.outcome {
                Outcome::Crossed => (Pile::Regression, "crossed"),
                Outcome::TooFew | Outcome::Met => (Pile::Unknown, "too few"),
            };
            self.marked(pile, word, &format!("{}: {}", one.case, one.judgement.sentence));
        }
        self.more(not_met.len());
    }

    fn alarms(&mut self, digest: &Digest<'_>) {
        let confirmed: Vec<_> = digest.confirmed().collect();
        let all = digest.night.alarms.len();
        if all == 0 {
            return;
        }
        self.line("alarms", &format!("{}, {} confirmed", len(all), len(confirmed.len())));
        for alarm in confirmed.iter().take(MOST) {
            let compared = sentence(&compared(alarm.comparison.as_ref()));
            let text = format!("{}: {} {compared}", alarm.case, sentence_end(&alarm.sentence));
            self.marked(Pile::Regression, "confirmed", &text);
        }
        self.more(confirmed.len());
    }

    fn planted(&mut self, digest: &Digest<'_>) {
        let all = digest.hunted();
        for hunted in all.iter().take(MOST) {
            let how = if hunted.is_convicted { "convicted" } else { "NOT convicted" };
            let tries = plural(hunted.tries, "run");
            self.line("planted bug", &format!("{} {how} in {tries}", hunted.name));
        }
        if all.is_empty() {
            self.line("planted bug", "none was hunted");
        }
    }

    fn work(&mut self, digest: &Digest<'_>) {
        let (elections, faults, operations) = digest.night.work();
        let (worlds, bad) = digest.night.worlds_lived();
        let text = format!(
            "{}, {} measured, {} proven",
            plural(operations, "operation"),
            plural(elections, "election"),
            plural(faults, "fault")
        );
        self.line("work", &text);
        if worlds > 0 {
            self.line("worlds", &format!("{}, {} broke a rule", count(worlds), len(bad.len())));
        }
        for world in bad.iter().take(MOST) {
            self.marked(Pile::Violation, "world", &broken(world));
        }
        self.more(bad.len());
    }

    fn left_out(&mut self, digest: &Digest<'_>) {
        let all = digest.left_out();
        for (at, left) in all.iter().take(MOST).enumerate() {
            let name = if at == 0 { "left out" } else { "" };
            let runs = plural(u64::from(left.runs), "run");
            self.line(name, &format!("{runs} of {}: {}", left.case, left.why));
        }
        self.more(all.len());
    }
}
