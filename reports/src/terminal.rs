//! The last lines of a run: one screen that says what was found and what to do next.
//!
//! The verdict comes first and in words, so the screen reads the same without colour and in a pipe. Colour
//! only repeats what a word or a glyph says. The command that repeats the run is never wrapped, because
//! people copy it. Everything comes out as one string; who prints it decides where it goes.

use std::fmt::Write as _;

use checker::verdict::{CheckResult, Verdict};

use runs::faults::{FaultRecord, FaultState};
use runs::findings::{self, sentence_end};
use runs::numbers::{count, duration, len, moment, rate, setting_ms, whole_ms};
use runs::results::{Election, LeaderSeen, Results, RunInfo};
use runs::standing::{self, Standing};
use runs::verdicts::glyph;

/// Rows of the screen that everything is to fit on.
const SCREEN_ROWS: usize = 24;

/// How much is told. The page has all of it.
#[derive(Clone, Copy)]
struct Detail {
    /// Kinds of elections with a line each.
    kinds: usize,
    /// Recoveries named.
    slowest: usize,
    /// Failing checks spelled out, and the rows that each may take.
    checks: (usize, usize),
    /// Troubled faults spelled out, and the rows that each may take.
    faults: (usize, usize),
}

/// From the most to the least; the first that fits on one screen is used, and the last whether it fits or
/// not.
const DETAILS: [Detail; 8] = [
    Detail { kinds: 6, slowest: 3, checks: (5, 12), faults: (5, 6) },
    Detail { kinds: 6, slowest: 1, checks: (5, 12), faults: (5, 3) },
    Detail { kinds: 4, slowest: 0, checks: (5, 12), faults: (5, 3) },
    Detail { kinds: 0, slowest: 1, checks: (5, 12), faults: (5, 3) },
    Detail { kinds: 0, slowest: 1, checks: (5, 3), faults: (3, 2) },
    Detail { kinds: 0, slowest: 1, checks: (4, 2), faults: (2, 2) },
    Detail { kinds: 0, slowest: 1, checks: (2, 2), faults: (1, 1) },
    Detail { kinds: 0, slowest: 0, checks: (2, 1), faults: (1, 1) },
];
/// Rows for the checks and who decided them.
const MOST_DECIDERS: usize = 2;
/// Column in which the text of a line begins.
pub(crate) const INDENT: usize = 12;
/// Text is wrapped no narrower than this, however narrow the terminal says it is.
pub(crate) const NARROWEST: usize = 40;

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
    let draw = |detail: Detail| {
        let mut screen = Screen { out: String::new(), style, detail };
        let sentence = screen.verdict(run, results, faults);
        screen.counts(run, results, faults);
        screen.slowest(results, faults);
        screen.checks(results, &sentence);
        screen.troubled_faults(faults);
        for note in &results.notes {
            screen.line("note", note);
        }
        if let Some(page) = page {
            screen.unwrapped("page", page);
        }
        screen.unwrapped("repeat", &results.repeat);
        screen
    };
    let [first, rest @ ..] = DETAILS;
    rest.into_iter().fold(draw(first), |screen, less| if screen.fits() { screen } else { draw(less) }).out
}

/// How words are painted where colour may be used.
#[derive(Clone, Copy)]
pub(crate) enum Paint {
    Bold,
    Dim,
    Of(Verdict),
}

impl Paint {
    /// The words with the sequences around them; alone where there is no colour.
    pub(crate) fn on(self, text: &str, style: Style) -> String {
        if !style.colour {
            return text.to_owned();
        }
        let code = match self {
            Self::Bold => "1",
            Self::Dim => "2",
            Self::Of(Verdict::Valid) => "1;32",
            Self::Of(Verdict::Invalid) => "1;31",
            Self::Of(Verdict::Unknown) => "1;33",
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }
}

/// Words in the colour of a verdict.
pub(crate) fn painted(text: &str, verdict: Verdict, style: Style) -> String {
    Paint::Of(verdict).on(text, style)
}

struct Screen {
    out: String,
    style: Style,
    detail: Detail,
}

impl Screen {
    fn paint(&self, text: &str, paint: Paint) -> String {
        paint.on(text, self.style)
    }

    fn columns(&self) -> usize {
        self.style.width.max(NARROWEST)
    }

    /// Whether it is one screen, counting what the terminal itself breaks.
    fn fits(&self) -> bool {
        let rows = |line: &str| visible(line).div_ceil(self.columns()).max(1);
        self.out.lines().map(rows).sum::<usize>() <= SCREEN_ROWS
    }

    /// A line with its name in front, wrapped under itself.
    fn line(&mut self, name: &str, text: &str) {
        self.rows(name, text, usize::MAX);
    }

    /// The same on `most` rows; what has no room there is left to the page.
    fn rows(&mut self, name: &str, text: &str, most: usize) {
        let rows = clipped(wrap(text, self.columns() - INDENT), most);
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

    /// Writes the verdict and returns its sentence.
    fn verdict(&mut self, run: &RunInfo, results: &Results, faults: &[FaultRecord]) -> String {
        let (headline, verdict) = findings::headline(results);
        let title = format!("{} {}", glyph(verdict), headline.to_uppercase());
        let title = self.paint(&title, Paint::Of(verdict));
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
        sentence
    }

    fn counts(&mut self, run: &RunInfo, results: &Results, faults: &[FaultRecord]) {
        if !run.is_wrapped() {
            self.operations(results);
        }
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
        self.leaders(run, results);
        // A line for each kind while there is room: figures of several kinds in one line would be read as
        // one.
        for kind in results.election_kinds.iter().take(self.detail.kinds) {
            self.rows("", &findings::kind_in_brief(kind), 1);
        }
        if self.detail.kinds > 0 {
            self.more(results.election_kinds.len(), self.detail.kinds);
        }
    }

    /// How often the leader changed, or what is known where nobody says who leads.
    fn leaders(&mut self, run: &RunInfo, results: &Results) {
        let longest = findings::worst_outage(&results.outages)
            .map(|worst| format!("; longest outage {}", duration(worst.ms())))
            .unwrap_or_default();
        let of_key = findings::own_outage(results)
            .map(|own| format!("; of key {} alone {}", own.key, duration(own.outage.ms())))
            .unwrap_or_default();
        let longest = longest + &of_key;
        let changes = findings::changes(u64::try_from(results.elections.len()).unwrap_or(u64::MAX));
        match run.system.leader {
            LeaderSeen::Untold if run.is_wrapped() => {}
            LeaderSeen::Untold => {
                let text = format!("{}{longest} (nobody tells who leads)", len(results.outages.len()));
                self.line("outages", &text);
            }
            LeaderSeen::Told => self.line("elections", &format!("{changes}{longest}")),
            LeaderSeen::Asked { every_ms } => {
                let every = setting_ms(every_ms);
                self.line("elections", &format!("{changes}, asked with a pause of {every}{longest}"));
            }
        }
    }

    fn operations(&mut self, results: &Results) {
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
    }

    fn slowest(&mut self, results: &Results, faults: &[FaultRecord]) {
        let mut measured: Vec<&Election> =
            results.elections.iter().filter(|election| election.total_ms.is_some()).collect();
        measured.sort_by(|a, b| b.total_ms.unwrap_or(0.0).total_cmp(&a.total_ms.unwrap_or(0.0)));
        for (i, election) in measured.iter().take(self.detail.slowest).enumerate() {
            let text = recovery(election, faults);
            self.line(if i == 0 { "slowest" } else { "" }, &text);
        }
    }

    fn checks(&mut self, results: &Results, told: &str) {
        let valid = Standing::Valid.count(&results.checks);
        let beside: String =
            standing::others(&results.checks).iter().map(|words| format!(", {words}")).collect();
        let deciders: String = results
            .checks
            .iter()
            .filter_map(|check| Some((&check.name, check.decided_by.as_ref()?, check.took_ms)))
            .map(|(name, by, took)| {
                let took = took.map(|took| format!(" in {}", duration(took))).unwrap_or_default();
                format!("; {name} by {by}{took}")
            })
            .collect();
        let text = format!(
            "{} of {} valid{beside}, judged in {}{deciders}",
            len(valid),
            len(results.checks.len()),
            duration(results.timings.check_ms)
        );
        self.rows("checks", &text, MOST_DECIDERS);
        let broken = results.checks.iter().filter(|check| check.verdict == Verdict::Invalid);
        let failing: Vec<&CheckResult> = broken.chain(findings::reasons(results)).collect();
        let (number, rows) = self.detail.checks;
        for check in failing.iter().take(number) {
            self.failing(check, told, rows);
        }
        self.more(failing.len(), number);
    }

    /// A check that does not hold: its sentence, and the counterexample's where it says more than the verdict
    /// did.
    fn failing(&mut self, check: &CheckResult, told: &str, most: usize) {
        let mark = format!("  {:<10}", format!("{} {}", glyph(check.verdict), check.verdict));
        let mark = self.paint(&mark, Paint::Of(check.verdict));
        let mut text = format!("{}: {}", check.name, sentence_end(&check.summary));
        let shown = check.counterexample.as_ref().map(|found| found.sentence.as_str());
        let news = |sentence: &&str| !check.summary.contains(*sentence) && !told.contains(*sentence);
        if let Some(sentence) = shown.filter(news) {
            text.push(' ');
            text.push_str(&sentence_end(sentence));
        }
        for (i, row) in clipped(wrap(&text, self.columns() - INDENT), most).iter().enumerate() {
            let lead = if i == 0 { mark.clone() } else { " ".repeat(INDENT) };
            let _ = writeln!(self.out, "{lead}{row}");
        }
    }

    fn troubled_faults(&mut self, faults: &[FaultRecord]) {
        let troubled: Vec<&FaultRecord> =
            faults.iter().filter(|fault| fault.state != FaultState::Verified).collect();
        let (number, rows) = self.detail.faults;
        for fault in troubled.iter().take(number) {
            let seen = match fault.state {
                FaultState::Leaked | FaultState::MemberDied => &fault.healed_evidence,
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
            self.rows("", &text, rows);
        }
        self.more(troubled.len(), number);
    }

    fn more(&mut self, all: usize, told: usize) {
        if let Some(left) = all.checked_sub(told).filter(|left| *left > 0) {
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

/// What a terminal would obey is replaced: names and evidence come from outside. That is controls, and what
/// turns the direction of the text around so that it reads otherwise than it is.
#[must_use]
pub fn printable(text: &str) -> String {
    let obeyed = |c: char| {
        let turns = matches!(c, '\u{200e}' | '\u{200f}' | '\u{061c}' | '\u{202a}'..='\u{202e}');
        c.is_control() || turns || matches!(c, '\u{2028}' | '\u{2029}' | '\u{2066}'..='\u{2069}')
    };
    text.chars().map(|c| if obeyed(c) { '\u{fffd}' } else { c }).collect()
}

/// Characters of a line that take room: all but the sequences for colour.
fn visible(line: &str) -> usize {
    let mut escaped = false;
    let takes_room = |c: char| {
        let inside = escaped || c == '\u{1b}';
        escaped = inside && c != 'm';
        !inside
    };
    line.chars().map(takes_room).filter(|shown| *shown).count()
}

/// The first `most` rows; the last of them ends in dots where rows were left out.
pub(crate) fn clipped(mut rows: Vec<String>, most: usize) -> Vec<String> {
    if rows.len() > most.max(1) {
        rows.truncate(most.max(1));
        if let Some(last) = rows.last_mut() {
            // The dots may take the place of a word that ends at the edge.
            let cut = last.trim_end_matches(|c: char| !c.is_whitespace()).trim_end();
            *last = format!("{} ...", if cut.is_empty() { last.as_str() } else { cut });
        }
    }
    rows
}

/// Breaks text at spaces into rows of at most `width` characters; a longer word keeps a row of its own.
pub(crate) fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut rows = Vec::new();
    let (mut row, mut used) = (String::new(), 0);
    for word in text.split_whitespace().map(printable) {
        let length = word.chars().count();
        if used > 0 && used + 1 + length > width {
            rows.push(std::mem::take(&mut row));
            used = 0;
        }
        if used > 0 {
            row.push(' ');
            used += 1;
        }
        row.push_str(&word);
        used += length;
    }
    rows.push(row);
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
    fn rows_that_are_left_out_are_marked() {
        assert_eq!(clipped(vec!["one two".to_owned(), "three".to_owned()], 1), ["one ..."]);
        assert_eq!(clipped(vec!["one".to_owned()], 1), ["one"]);
        assert_eq!(visible("\u{1b}[1;32mtwo\u{1b}[0m"), 3);
    }

    #[test]
    fn what_a_terminal_would_obey_is_replaced() {
        assert_eq!(printable("a\u{1b}[2Jb\nc"), "a\u{fffd}[2Jb\u{fffd}c");
        assert_eq!(printable("a\u{9b}2Jb\u{202e}c\u{2066}d"), "a\u{fffd}2Jb\u{fffd}c\u{fffd}d");
    }
}
