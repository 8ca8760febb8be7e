//! `nights.jsonl`: what happened, a line each, only ever appended to.
//!
//! Run folders are the truth; this is where they are found, and the dozen numbers of each that nights are
//! compared by. A line is written when its attempt has ended. So a night that is killed leaves what it did,
//! and goes on from there; half a last line, as a full disk leaves it, is left out and written over.

use std::collections::BTreeMap;
use std::path::{Component, Path};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::findings::Found;
use crate::machine::Machine;
use crate::measures::Sample;
use crate::pile::Pile;
use crate::threshold::Judgement;

/// A line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "line", rename_all = "kebab-case")]
pub enum Line {
    /// A night began.
    Night(Begun),
    /// A run of a case, or of a planted bug, ended.
    Attempt(Attempt),
    /// A violation was looked at: run again, made smaller.
    Finding(Found),
    /// Worlds of the simulator were lived through.
    Worlds(Worlds),
    /// A number stood out, and was compared with an earlier build's.
    Alarm(Alarm),
    /// A night was judged.
    Judged(Judged),
    /// A night's shards are put together in this store, so all of them are to be here.
    Merged(Merged),
}

impl Line {
    /// What it names below the store.
    fn paths(&self) -> Vec<&str> {
        let mut paths = vec![self.night()];
        match self {
            Self::Attempt(line) => paths.extend(line.folder.as_deref()),
            Self::Finding(line) => {
                paths.push(&line.folder);
                paths.extend(line.shrunk.as_ref().map(|shrunk| shrunk.folder.as_str()));
            }
            Self::Night(_) | Self::Worlds(_) | Self::Alarm(_) | Self::Judged(_) | Self::Merged(_) => {}
        }
        paths
    }

    /// The night that it belongs to.
    pub fn night(&self) -> &str {
        match self {
            Self::Night(line) => &line.night,
            Self::Attempt(line) => &line.night,
            Self::Finding(line) => &line.night,
            Self::Worlds(line) => &line.night,
            Self::Alarm(line) => &line.night,
            Self::Judged(line) => &line.night,
            Self::Merged(line) => &line.night,
        }
    }
}

/// A night begins.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Begun {
    /// Its name: when it began, and its shard where there are several.
    pub night: String,
    /// When it began.
    pub started_utc: Timestamp,
    /// How long it may take, seconds.
    pub budget_s: u64,
    /// The seed from which those of its runs are made.
    pub seed: u64,
    /// The build that makes the runs: its version, and a mark of the executable.
    pub build: String,
    /// Where.
    pub machine: Machine,
    /// The profile of the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// Its shard and of how many, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shard: Option<(u32, u32)>,
    /// Every case that it was to run, by id, with its owner.
    pub cases: BTreeMap<String, Option<String>>,
}

/// What an attempt was made for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Purpose {
    /// A case of the file.
    #[default]
    Case,
    /// A planted bug that must be convicted.
    Mutant,
}

/// A run that has ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Attempt {
    /// The night.
    pub night: String,
    /// What for.
    #[serde(default)]
    pub purpose: Purpose,
    /// The case's id, or the mutant's name.
    pub case: String,
    /// Which of the case's runs, from 1.
    pub repeat: u32,
    /// Which try of that run, from 1.
    pub attempt: u32,
    /// When it began.
    pub started_utc: Timestamp,
    /// How long it took, from the command to its end, ms.
    pub took_ms: f64,
    /// Its seed.
    pub seed: u64,
    /// What it is taken for.
    pub pile: Pile,
    /// Its exit status; none when a signal ended it.
    #[serde(default)]
    pub status: Option<i32>,
    /// Why it is taken for that, in a sentence; empty for a valid one.
    #[serde(default)]
    pub why: String,
    /// Its run folder, relative to the store; none where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
    /// The command that repeats it.
    pub repeat_command: String,
    /// The numbers that are followed over nights.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub series: BTreeMap<String, Sample>,
    /// Fingerprints of its violations.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<String>,
    /// Operations invoked.
    #[serde(default)]
    pub operations: u64,
    /// Elections measured.
    #[serde(default)]
    pub elections: u64,
    /// Faults verified, and asked for.
    #[serde(default)]
    pub faults: (u32, u32),
    /// What of the night's budget was used when it ended, ms.
    #[serde(default)]
    pub spent_ms: u64,
    /// Where it ran, as far as that decides what it may be compared with ([`Machine::key`]).
    #[serde(default)]
    pub machine: String,
}

/// Worlds that were lived through with idle budget.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Worlds {
    /// The night.
    pub night: String,
    /// The first seed, and the one behind the last.
    pub seeds: (u64, u64),
    /// How many worlds.
    pub worlds: u64,
    /// Seeds that broke a rule, with the rule.
    #[serde(default)]
    pub broken: Vec<(u64, String)>,
    /// Milliseconds that it took.
    pub took_ms: u64,
    /// What of the night's budget was used when it ended, ms.
    #[serde(default)]
    pub spent_ms: u64,
    /// Why it was not lived through to its end; none where it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
}

/// A number stood out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Alarm {
    /// The night.
    pub night: String,
    /// The case.
    pub case: String,
    /// The series.
    pub series: String,
    /// Tonight's number.
    pub value: f64,
    /// The median of the nights before.
    pub before: f64,
    /// What was outside of: the fence.
    pub fence: f64,
    /// What came of the comparison with an earlier build; none where none could be made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comparison: Option<Comparison>,
    /// The same in a sentence.
    pub sentence: String,
}

impl Alarm {
    /// Whether anybody is told: a comparison confirmed it.
    pub fn is_confirmed(&self) -> bool {
        self.comparison.as_ref().is_some_and(|comparison| comparison.confirmed)
    }
}

/// Two builds, run in turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// The earlier build.
    pub against: String,
    /// Pairs of runs that had the number on both sides.
    pub pairs: u64,
    /// Tonight's divided by the earlier one's: low end, estimate and high end of the interval.
    pub ratio: (f64, f64, f64),
    /// Whether the interval leaves no room for no change, for the worse.
    pub confirmed: bool,
}

/// What was planned and not run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// The case's id.
    pub case: String,
    /// How many of its runs.
    pub runs: u32,
    /// Why.
    pub why: String,
}

/// A night is over.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Judged {
    /// The night.
    pub night: String,
    /// When it ended.
    pub ended_utc: Timestamp,
    /// The worst of its piles.
    pub pile: Pile,
    /// Its exit status.
    pub status: u8,
    /// Why, in a sentence or two.
    pub sentence: String,
    /// Its shard and of how many, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shard: Option<(u32, u32)>,
    /// Whether somebody stopped it.
    #[serde(default)]
    pub interrupted: bool,
    /// What was not run, and why.
    #[serde(default)]
    pub left_out: Vec<LeftOut>,
    /// Thresholds by case.
    #[serde(default)]
    pub thresholds: BTreeMap<String, Vec<Judgement>>,
}

/// A night's shards are put together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Merged {
    /// The night.
    pub night: String,
}

/// Lines as they are read: those that are whole, and how many bytes they take.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Read {
    /// The lines.
    pub lines: Vec<Line>,
    /// What is wrong with each of the others, which are left out.
    pub damaged: Vec<String>,
    /// Bytes up to the end of the last whole line: what comes behind is half a line.
    pub whole_bytes: u64,
}

/// Reads an index. Half a last line is left out, whatever bytes it has. A line that this build does not
/// understand, or that names a path which leads out of the store, as one of somebody else's may, is left out
/// and told by its number, from 1: one bad line must not take all nights.
///
/// # Errors
///
/// What is wrong with the first line, where no line is one of an index.
pub fn read(bytes: &[u8]) -> Result<Read, String> {
    let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
    let whole_bytes = u64::try_from(whole).unwrap_or(u64::MAX);
    let mut read = Read { whole_bytes, ..Read::default() };
    for (number, line) in (1_u64..).zip(bytes[..whole].split_inclusive(|byte| *byte == b'\n')) {
        if line.trim_ascii().is_empty() {
            continue;
        }
        match understood(line) {
            Ok(line) => read.lines.push(line),
            Err(why) => read.damaged.push(format!("line {number} {why}")),
        }
    }
    match read.damaged.first() {
        Some(why) if read.lines.is_empty() => Err(why.clone()),
        _ => Ok(read),
    }
}

fn understood(line: &[u8]) -> Result<Line, String> {
    let parsed: Line =
        serde_json::from_slice(line).map_err(|error| format!("is none of an index of nights: {error}"))?;
    match parsed.paths().into_iter().find(|path| !leads_below(path)) {
        Some(path) => Err(format!("names `{}`, which is not below the store", path.escape_debug())),
        None => Ok(parsed),
    }
}

/// Whether a path from an index stays below the store.
fn leads_below(path: &str) -> bool {
    let mut parts = Path::new(path).components();
    !path.is_empty() && parts.all(|part| matches!(part, Component::Normal(_)))
}

/// A line as it is written, with its end.
///
/// # Errors
///
/// None that a line of this crate can bring about.
pub fn write(line: &Line) -> Result<String, serde_json::Error> {
    serde_json::to_string(line).map(|text| text + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn worlds(first: u64) -> Line {
        let night = "20261125T020000Z".to_owned();
        Line::Worlds(Worlds {
            night,
            seeds: (first, first + 10),
            worlds: 10,
            broken: Vec::new(),
            took_ms: 3,
            spent_ms: 3,
            failed: None,
        })
    }

    #[test]
    fn half_a_last_line_is_left_out_and_its_place_is_known() {
        let whole = write(&worlds(0)).expect("a line") + &write(&worlds(10)).expect("a line");
        let mut torn = format!("{whole}{{\"line\":\"worlds\",\"ni").into_bytes();
        torn.push(0xe2);
        let read = read(&torn).expect("an index");
        assert_eq!(read.lines, [worlds(0), worlds(10)]);
        assert_eq!(read.whole_bytes, u64::try_from(whole.len()).expect("small"));
    }

    #[test]
    fn a_damaged_line_is_left_out_and_named_and_a_file_of_such_lines_is_no_index() {
        let text = format!(
            "{}nonsense\n{{\"line\":\"of-tomorrow\"}}\n{}",
            write(&worlds(0)).expect("one"),
            write(&worlds(1)).expect("two")
        );
        let read_back = read(text.as_bytes()).expect("an index");
        assert_eq!(read_back.lines, [worlds(0), worlds(1)]);
        let numbers: Vec<&str> = read_back.damaged.iter().map(|why| &why[..6]).collect();
        assert_eq!(numbers, ["line 2", "line 3"]);
        assert!(read(b"nonsense\nnonsense\n").expect_err("no index").starts_with("line 1"));
    }

    #[test]
    fn a_line_that_leads_out_of_the_store_is_refused() {
        for night in ["../x", "/x", "", ".", "a/../../b"] {
            let Line::Worlds(mut line) = worlds(0) else { panic!("worlds") };
            night.clone_into(&mut line.night);
            let text = write(&Line::Worlds(line)).expect("a line");
            let why = read(text.as_bytes()).expect_err(night);
            assert!(why.contains("not below the store"), "{why}");
        }
    }
}
