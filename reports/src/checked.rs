//! What `harness check` found in a history without its run: the screen, and the same as data.
//!
//! The verdict comes first, then why, then the operations that show it; the facts (model, condition,
//! operations, who decided, time and memory) stand below, because who asks again asks for the verdict. A
//! reason for what was assumed, such as a model that was guessed, is always said.

use std::fmt::Write as _;

use checker::verdict::{CheckResult, Verdict};
use serde::{Deserialize, Serialize};

use crate::story::{self, Axis};
use crate::terminal::{Style, painted, printable, wrap};
use runs::findings::sentence;
use runs::numbers::{count, duration, len, plural};
use runs::standing::Standing;
use runs::verdicts::{glyph, word};

/// Column in which the text of a line begins.
const INDENT: usize = 12;
/// Counterexamples that are written out; more say the same in another promise's words.
const MOST_STORIES: usize = 2;

/// A judged history.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Checked {
    /// The verdict over all checks.
    pub verdict: Verdict,
    /// Where the history came from, as it was typed.
    pub history: String,
    /// The model that it was judged by; none when nothing was judged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The functions from which the model was guessed; empty when it was named.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub guessed_from: Vec<String>,
    /// The condition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub condition: Option<String>,
    /// The form of the history: `JSON lines`, `EDN`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<String>,
    /// What was read.
    pub read: Counted,
    /// Whether its records have stamps; without them the order of the records is the order of time.
    pub timed: bool,
    /// Every check.
    pub checks: Vec<CheckResult>,
    /// The bound that ended it early, and how far it got.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped: Option<String>,
    /// How long it took.
    pub took: Took,
    /// The most resident memory that was seen, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_bytes: Option<u64>,
    /// The file with the order that proves a valid verdict.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub witness: Option<String>,
    /// What the reader should know beside the verdict, one sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// What a history holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counted {
    /// Invocations and completions.
    pub records: u64,
    /// Records that were left out, because they are no client's: the nemesis's, other lines of a log.
    #[serde(default)]
    pub left_out: u64,
    /// Operations begun.
    pub operations: u64,
    /// Those of unknown fate, and those never answered.
    pub unknown: u64,
    /// Those that happened, those that definitely did not, and the processes; none where they were not
    /// counted.
    #[serde(default, flatten, skip_serializing_if = "Option::is_none")]
    pub ended: Option<Ended>,
}

/// How operations ended, and who asked for them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    /// Those that happened.
    pub ok: u64,
    /// Those that definitely did not.
    pub fail: u64,
    /// Processes.
    pub processes: u64,
}

/// How long each part took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Took {
    /// Reading.
    pub read_ms: f64,
    /// Judging.
    pub judge_ms: f64,
    /// All of it.
    pub total_ms: f64,
}

/// The screen.
pub fn render(checked: &Checked, style: Style) -> String {
    let mut screen = Screen { out: String::new(), style };
    screen.verdict(checked);
    for (check, found) in checked
        .checks
        .iter()
        .filter_map(|check| Some((check, check.counterexample.as_ref()?)))
        .take(MOST_STORIES)
    {
        let axis = if checked.timed { Axis::Time } else { Axis::Order };
        screen.paragraph(&sentence(&found.sentence));
        let again = if found.rechecked { ", judged again by themselves" } else { "" };
        screen.paragraph(&format!(
            "{}: {} of {} operations{again}:",
            check.name,
            len(found.ops.len()),
            count(found.of_ops)
        ));
        let _ = write!(screen.out, "\n{}\n", story::render(found, axis, style.width));
    }
    screen.facts(checked);
    screen.out
}

struct Screen {
    out: String,
    style: Style,
}

impl Screen {
    fn verdict(&mut self, checked: &Checked) {
        let title = format!("{} {}", glyph(checked.verdict), word(checked.verdict).to_uppercase());
        let title = painted(&title, checked.verdict, self.style);
        let judged = match (&checked.model, &checked.condition) {
            (Some(model), Some(condition)) => {
                let how = match checked.verdict {
                    Verdict::Valid => condition.clone(),
                    Verdict::Invalid => format!("not {condition}"),
                    Verdict::Unknown => format!("{condition} or not"),
                };
                format!("{} as {model}: {how}", checked.history)
            }
            (Some(model), None) => format!("{} as {model}", checked.history),
            (None, _) => format!("{} was not judged", checked.history),
        };
        let _ = writeln!(self.out, "{title}  {}", printable(&judged));
        if let Some(stopped) = &checked.stopped {
            self.paragraph(&sentence(stopped));
        }
    }

    fn paragraph(&mut self, text: &str) {
        for row in wrap(text, self.style.width) {
            let _ = writeln!(self.out, "{row}");
        }
    }

    fn line(&mut self, name: &str, text: &str) {
        for (i, row) in wrap(text, self.style.width.saturating_sub(INDENT)).iter().enumerate() {
            let name = if i == 0 { name } else { "" };
            let _ = writeln!(self.out, "{name:<INDENT$}{row}");
        }
    }

    fn facts(&mut self, checked: &Checked) {
        if let Some(model) = &checked.model {
            let guessed = match checked.guessed_from.as_slice() {
                [] => String::new(),
                functions => format!(", guessed from {}; --model names another", functions.join(", ")),
            };
            self.line("model", &format!("{model}{guessed}"));
        }
        if let Some(condition) = &checked.condition {
            self.line("condition", condition);
        }
        self.line("operations", &counted(checked));
        match checked.checks.as_slice() {
            [] => {}
            [only] => {
                self.line("found", &only.summary);
                if let Some(by) = &only.decided_by {
                    self.line("decided by", by);
                }
            }
            several => {
                for (i, check) in several.iter().enumerate() {
                    let name = if i == 0 { "checks" } else { "" };
                    self.line(name, &in_a_line(check));
                }
            }
        }
        if let Some(witness) = &checked.witness {
            self.line("witness", &format!("{witness}; `harness confirm` checks it against the history"));
        }
        for note in &checked.notes {
            self.line("note", note);
        }
        let memory = checked
            .peak_bytes
            .map(|bytes| format!("; {} MiB of memory at most", count(bytes.div_ceil(1 << 20))))
            .unwrap_or_default();
        let Took { read_ms, judge_ms, total_ms } = checked.took;
        let parts = if read_ms > 0.0 {
            format!("{} to read, {} to judge", duration(read_ms), duration(judge_ms))
        } else {
            format!("read and judged at once in {}", duration(judge_ms))
        };
        self.line("time", &format!("{}: {parts}{memory}", duration(total_ms)));
    }
}

/// A check among several: name, verdict, what was found, by whom and how fast.
fn in_a_line(check: &CheckResult) -> String {
    let mut behind = Vec::new();
    behind.extend(check.decided_by.as_ref().map(|by| format!("by {by}")));
    behind.extend(check.took_ms.map(|ms| format!("in {}", duration(ms))));
    let behind = if behind.is_empty() { String::new() } else { format!(" ({})", behind.join(", ")) };
    let standing = Standing::of(check);
    format!("{} {} {}: {}{behind}", standing.glyph(), standing.word(), check.name, check.summary)
}

fn counted(checked: &Checked) -> String {
    let Counted { records, left_out, operations, unknown, ended } = checked.read;
    let format = checked.format.as_ref().map(|format| format!(" in {format}")).unwrap_or_default();
    let time = if checked.timed { "" } else { " without time" };
    let (by, ended) = match ended {
        Some(Ended { ok, fail, processes: 1 }) => {
            (" by 1 process".to_owned(), format!("{} ok, {} failed, ", count(ok), count(fail)))
        }
        Some(Ended { ok, fail, processes }) => (
            format!(" by {} processes", count(processes)),
            format!("{} ok, {} failed, ", count(ok), count(fail)),
        ),
        None => (String::new(), String::new()),
    };
    let left_out = match left_out {
        0 => String::new(),
        left_out => format!("; {} left out, which are no client's", count(left_out)),
    };
    format!(
        "{}{by}: {ended}{} of unknown fate; {}{format}{time}{left_out}",
        count(operations),
        count(unknown),
        plural(records, "record")
    )
}
