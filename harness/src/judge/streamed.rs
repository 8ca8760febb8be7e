//! Registers from a file, judged while it is read: in the memory of what is open, however long it is.
//!
//! The streaming test remembers too little to tell what it found, so the file is read a second time for the
//! few operations of a violation. What it can't decide, and whatever it finds odd in the file, is left to the
//! judgement of the whole, which says so in its own words.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use checker::history::{Event, EventLines, content};
use checker::linearizable;
use checker::stream::{self, Alarm, Answer, Checked, Collector};
use checker::verdict::{CheckResult, Counterexample, Verdict};
use checker::{Budget, Interrupt};
use runs::numbers::count;
use serde_json::json;

use super::source::Stopping;

/// The name of the algorithm in results.
pub const NAME: &str = "streaming";
/// The buffer in front of a file.
const BUFFER_BYTES: usize = 1 << 18;

/// What came of it.
pub enum Streamed {
    /// A verdict, or that a bound was reached.
    Judged(Box<CheckResult>, Box<Checked>),
    /// The whole has to be judged.
    Left,
}

/// Judges the registers in a file of our own line form.
///
/// `lines` is told of each line, for whoever can't wait until it is judged.
pub fn judge(path: &Path, budget: &Budget, threads: usize, lines: &Arc<AtomicU64>) -> Streamed {
    let Ok(file) = File::open(path) else { return Streamed::Left };
    let file = BufReader::with_capacity(BUFFER_BYTES, file);
    // The test listens to the bell by itself, and has something to say when it rings.
    let reader = Stopping::new(file, Interrupt::never(), Arc::clone(lines));
    let Ok(checked) = stream::check_reader(reader, budget, threads) else { return Streamed::Left };
    if checked.several_values || !checked.observed && checked.gave_up.is_none() {
        return Streamed::Left;
    }
    let result = match (&checked.gave_up, &checked.alarm) {
        (Some(why), None) => CheckResult::new(
            linearizable::NAME,
            Verdict::Unknown,
            format!("{why} after {} records", count(checked.records)),
        ),
        (_, Some(alarm)) => match read_again(path, alarm, |_| true, budget) {
            Some(counterexample) => CheckResult::new(
                linearizable::NAME,
                Verdict::Invalid,
                format!("not linearizable: key {}", alarm.key),
            )
            .with_counterexample(counterexample),
            None => return Streamed::Left,
        },
        (None, None) if checked.undecided().next().is_some() || checked.keys.is_empty() => {
            return Streamed::Left;
        }
        (None, None) => {
            let ops = checked.keys.iter().map(|key| key.ops).sum();
            let telling = checked.keys.iter().map(|key| key.telling).sum();
            let summary = linearizable::valid_summary(ops, checked.keys.len(), telling);
            CheckResult::new(linearizable::NAME, Verdict::Valid, summary)
        }
    };
    let keys: Vec<serde_json::Value> = checked
        .keys
        .iter()
        .map(|key| {
            let verdict = match key.answer {
                Answer::Valid => Verdict::Valid,
                Answer::Violation(_) => Verdict::Invalid,
                Answer::NeedsSearch(_) => Verdict::Unknown,
            };
            json!({"key": key.key, "verdict": verdict, "ops": key.ops, "open": key.open})
        })
        .collect();
    let result = result.with_evidence(json!({"keys": keys})).with_decided_by(NAME);
    Streamed::Judged(Box::new(result), Box::new(checked))
}

/// The operations that show what an alarm says, from the same lines once more, as far as `counts` says that a
/// line counts; none when they are no violation by themselves, or the lines can't be read.
pub fn read_again(
    path: &Path,
    alarm: &Alarm,
    counts: impl Fn(&Event) -> bool,
    budget: &Budget,
) -> Option<Counterexample> {
    let mut reader = content(BufReader::with_capacity(BUFFER_BYTES, File::open(path).ok()?)).ok()?;
    let (mut lines, mut line) = (EventLines::default(), Vec::new());
    let mut collector = Collector::new(alarm);
    // The writer may be in the middle of a frame: what was written before the alarm is whole.
    while reader.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
        if let Some(event) = lines.line(&line).ok()?.filter(|event| counts(event)) {
            collector.take(event);
        }
        line.clear();
    }
    collector.finish(budget)
}
