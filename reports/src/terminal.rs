//! The last lines of a run: one screen that says what was found and what to do next.
//!
//! The verdict comes first and in words, so the screen reads the same without colour and in a pipe. Colour
//! only repeats what a word or a glyph says. The command that repeats the run is never wrapped, because
//! people copy it. Everything comes out as one string; who prints it decides where it goes.

use std::fmt::Write as _;

use checker::verdict::{CheckResult, Verdict};

use crate::faults::{FaultRecord, FaultState};
use crate::findings::{self, sentence_end};
use crate::numbers::{count, duration, len, moment, plural, rate, whole_ms};
use crate::results::{Election, Results, RunInfo};

/// Recoveries named on the screen.
const SLOWEST: usize = 3;
/// Failing checks and faults spelled out; the page has them all.
const SPELLED_OUT: usize = 5;
/// Column in which the text of a line begins.
const INDENT: usize = 12;
/// Text is wrapped no narrower than this, however narrow the terminal says it is.
const NARROWEST: usize = 40;

/// How to write to this terminal.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    /// Whether escape sequences for colour may be used.
    pub colour: bool,
    /// Columns.
    pub width: usize,
}

/// The last lines of a run. `page` is where the report lies, as a person would type it.
pub fn render(
    run: &RunInfo,
    results: &Results,
    faults: &[FaultRecord],
    page: Option<&str>,
    style: Style,
) -> String {
    let mut screen = Screen { out: String::new(), style };
    screen.verdict(run, results, faults);
    screen.counts(results, faults);
    screen.slowest(results, faults);
    screen.checks(results);
    screen.troubled_faults(faults);
    for note in &results.notes {
        screen.line("note", note);
    }
    if let Some(page) = page {
        screen.unwrapped("page", page);
    }
    screen.unwrapped("repeat", &results.repeat);
    screen.out
}

/// The glyph that stands beside a verdict, so that it is not told by colour alone.
fn glyph(verdict: Verdict) -> char {
    match verdict {
        Verdict::Valid => '✓',
        Verdict::Invalid => '✗',
        Verdict::Unknown => '?',
    }
}

/// The word for a verdict of a whole run.
pub fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Valid => "valid",
        Verdict::Invalid => "violation",
        Verdict::Unknown => "unknown",
    }
}

#[derive(Clone, Copy)]
enum Paint {
    Bold,
    Dim,
    Of(Verdict),
}

struct Screen {
    out: String,
    style: Style,
}

impl Screen {
    fn paint(&self, text: &str, paint: Paint) -> String {
        if !self.style.colour {
            return text.to_owned();
        }
        let code = match paint {
            Paint::Bold => "1",
            Paint::Dim => "2",
            Paint::Of(Verdict::Valid) => "1;32",
            Paint::Of(Verdict::Invalid) => "1;31",
            Paint::Of(Verdict::Unknown) => "1;33",
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }

    fn columns(&self) -> usize {
        self.style.width.max(NARROWEST)
    }

    /// A line with its name in front, wrapped under itself.
    fn line(&mut self, name: &str, text: &str) {
        let rows = wrap(text, self.columns() - INDENT);
        for (i, row) in rows.iter().enumerate() {
            let name = if i == 0 { name } else { "" };
            let padded = self.paint(&format!("{name:<INDENT$}"), Paint::Dim);
            let _ = writeln!(self.out, "{}{row}", if name.is_empty() { " ".repeat(INDENT) } else { padded });
        }
    }

    fn unwrapped(&mut self, name: &str, text: &str) {
        let padded = self.paint(&format!("{name:<INDENT$}"), Paint::Dim);
        let _ = writeln!(self.out, "{padded}{}", printable(text));
    }

    fn verdict(&mut self, run: &RunInfo, results: &Results, faults: &[FaultRecord]) {
        let title = format!("{} {}", glyph(results.verdict), word(results.verdict).to_uppercase());
        let title = self.paint(&title, Paint::Of(results.verdict));
        let place = format!("{}, seed {}, exit status {}", run.name, run.seed, results.exit_status);
        let _ = writeln!(self.out, "\n{title}  {}", self.paint(&printable(&place), Paint::Bold));
        let sentence = match results.sentence.as_str() {
            "" => findings::verdict(run, results, faults).plain(),
            given => given.to_owned(),
        };
        for row in wrap(&sentence, self.columns()) {
            let _ = writeln!(self.out, "{row}");
        }
        self.out.push('\n');
    }

    fn counts(&mut self, results: &Results, faults: &[FaultRecord]) {
        let total = results.operations.total;
        let mean = findings::mean_rate(results)
            .map(|mean| format!(", {} ok/s", rate(mean.round())))
            .unwrap_or_default();
        let text = format!(
            "{}: {} ok, {}, {} unknown{mean}",
            count(total.invoked),
            count(total.ok),
            findings::failures(total),
            count(total.info)
        );
        self.line("operations", &text);
        if !faults.is_empty() {
            let counts = results.faults;
            let mut text = format!("{} of {} verified", counts.verified, counts.planned);
            for (number, words) in [
                (counts.unverified, "unverified"),
                (counts.leaked, "leaked"),
                (counts.no_target, "without target"),
                (counts.unsupported, "unsupported"),
            ] {
                if number > 0 {
                    let _ = write!(text, ", {number} {words}");
                }
            }
            self.line("faults", &text);
        }
        let mut text = plural(u64::try_from(results.elections.len()).unwrap_or(u64::MAX), "change");
        text.push_str(" of leader");
        if let Some(median) = findings::median_total(&results.elections) {
            let _ = write!(text, ", median {}", duration(median));
        }
        if let Some(worst) = findings::worst_outage(&results.outages) {
            let _ = write!(text, "; longest outage {}", duration(findings::outage_ms(worst)));
        }
        self.line("elections", &text);
    }

    fn slowest(&mut self, results: &Results, faults: &[FaultRecord]) {
        let mut measured: Vec<&Election> =
            results.elections.iter().filter(|election| election.total_ms.is_some()).collect();
        measured.sort_by(|a, b| b.total_ms.unwrap_or(0.0).total_cmp(&a.total_ms.unwrap_or(0.0)));
        for (i, election) in measured.iter().take(SLOWEST).enumerate() {
            let text = recovery(election, faults);
            self.line(if i == 0 { "slowest" } else { "" }, &text);
        }
    }

    fn checks(&mut self, results: &Results) {
        let valid = results.checks.iter().filter(|check| check.verdict == Verdict::Valid).count();
        let text = format!(
            "{} of {} valid, judged in {}",
            len(valid),
            len(results.checks.len()),
            duration(results.timings.check_ms)
        );
        self.line("checks", &text);
        let mut failing: Vec<&CheckResult> =
            results.checks.iter().filter(|check| check.verdict != Verdict::Valid).collect();
        failing.sort_by_key(|check| std::cmp::Reverse(check.verdict));
        for check in failing.iter().take(SPELLED_OUT) {
            self.failing(check);
        }
        self.more(failing.len());
    }

    /// A check that does not hold: its sentence, and the counterexample's where it says more.
    fn failing(&mut self, check: &CheckResult) {
        let mark = format!("  {:<10}", format!("{} {}", glyph(check.verdict), check.verdict));
        let mark = self.paint(&mark, Paint::Of(check.verdict));
        let mut text = format!("{}: {}", check.name, sentence_end(&check.summary));
        let shown = check.counterexample.as_ref().map(|found| found.sentence.as_str());
        if let Some(sentence) = shown.filter(|sentence| !check.summary.contains(*sentence)) {
            text.push(' ');
            text.push_str(&sentence_end(sentence));
        }
        for (i, row) in wrap(&text, self.columns() - INDENT).iter().enumerate() {
            let lead = if i == 0 { mark.clone() } else { " ".repeat(INDENT) };
            let _ = writeln!(self.out, "{lead}{row}");
        }
    }

    fn troubled_faults(&mut self, faults: &[FaultRecord]) {
        let troubled: Vec<&FaultRecord> =
            faults.iter().filter(|fault| fault.state != FaultState::Verified).collect();
        for fault in troubled.iter().take(SPELLED_OUT) {
            let seen = match fault.state {
                FaultState::Leaked => &fault.healed_evidence,
                _ => &fault.evidence,
            };
            let why = if seen.is_empty() { String::new() } else { format!(": {seen}") };
            let text = format!(
                "{} {} at {} s was {}{why}",
                fault.id,
                fault.sentence,
                moment(fault.asked_ns),
                fault.state.name()
            );
            self.line("", &text);
        }
        self.more(troubled.len());
    }

    fn more(&mut self, all: usize) {
        if let Some(left) = all.checked_sub(SPELLED_OUT).filter(|left| *left > 0) {
            self.line("", &format!("and {} more, on the page", len(left)));
        }
    }
}

/// `E10 1,418 ms after F10 partition n5: detection 613, election 412, ...`.
fn recovery(election: &Election, faults: &[FaultRecord]) -> String {
    let fault = faults.iter().find(|fault| election.fault.as_deref() == Some(&fault.id));
    let cause = match fault {
        Some(fault) => format!(" after {} {}", fault.id, fault.sentence),
        None => String::new(),
    };
    format!(
        "{} {} ms{cause}: {}",
        election.id,
        whole_ms(election.total_ms.unwrap_or(f64::NAN)),
        findings::phases(election)
    )
}

/// What a terminal would obey is replaced: names and evidence come from outside.
fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

/// Breaks text at spaces into rows of at most `width` characters; a longer word keeps a row of its own.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut rows = vec![String::new()];
    for word in text.split_whitespace().map(printable) {
        let row = rows.last_mut().expect("there is always a row");
        if row.is_empty() {
            row.push_str(&word);
        } else if row.chars().count() + 1 + word.chars().count() <= width {
            row.push(' ');
            row.push_str(&word);
        } else {
            rows.push(word);
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_wrapped_at_spaces_and_words_stay_whole() {
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("unbreakable", 4), ["unbreakable"]);
        assert_eq!(wrap("", 4), [""]);
    }

    #[test]
    fn what_a_terminal_would_obey_is_replaced() {
        assert_eq!(printable("a\u{1b}[2Jb\nc"), "a\u{fffd}[2Jb\u{fffd}c");
    }
}
