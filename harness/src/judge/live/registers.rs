//! The live check of registers: the streaming test, fed line by line.
//!
//! It forgets what can't matter any more, so a long run costs no more memory than a short one. What it can't
//! decide is left to the judgement of the whole. At an alarm the history, which is on disk by then, is read a
//! second time for the operations that show it.

use std::path::PathBuf;

use checker::Budget;
use checker::history::{Event, EventKind, Function};
use checker::stream::{Alarm, Checker};

use super::{Flush, Found, Judge};
use crate::judge::streamed::read_again;
use crate::num::wide;

/// For telling what was found.
const BUDGET: Budget = Budget::new(20_000_000, 64 << 20);

/// A history of registers under way.
pub(super) struct Registers {
    checker: Checker,
    updates_only: bool,
    history: PathBuf,
    completed: u64,
}

impl Registers {
    /// With `updates_only` reads may be stale, and only changes are judged. The lines go to `history`.
    pub(super) fn new(updates_only: bool, history: PathBuf) -> Self {
        Self { checker: Checker::new(), updates_only, history, completed: 0 }
    }

    fn counts(&self, event: &Event) -> bool {
        Function::REGISTER.contains(&event.f) && !(self.updates_only && event.f == Function::READ)
    }

    /// The sentence about an alarm, and when its last answer came.
    fn tell(&self, alarm: &Alarm) -> Found {
        match read_again(&self.history, alarm, |event| self.counts(event), &BUDGET) {
            Some(found) => {
                let last = found.ops.iter().map(|op| op.complete_ns.unwrap_or(op.invoke_ns)).max();
                Found { sentence: found.sentence, happened_ns: last.unwrap_or(alarm.at_ns) }
            }
            None => Found { sentence: alarm.to_string(), happened_ns: alarm.at_ns },
        }
    }
}

impl Judge for Registers {
    fn push(&mut self, event: Event, flush: Flush<'_>) -> Result<Option<Found>, String> {
        if event.kind != EventKind::Invoke {
            self.completed += 1;
        }
        if !self.counts(&event) {
            return Ok(None);
        }
        let alarm = self.checker.push(&event).map_err(|error| error.to_string())?;
        // Lines come in the order of their stamps, so nothing earlier follows.
        let alarms = self.checker.advance(event.time.unwrap_or_default());
        let Some(alarm) = alarm.or_else(|| alarms.into_iter().next()) else { return Ok(None) };
        flush().map_err(|error| format!("the history can't be written: {error}"))?;
        Ok(Some(self.tell(&alarm)))
    }

    fn progress(&self) -> (u64, u64) {
        (self.completed, wide(self.checker.open()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use checker::history::{HistoryWriter, Value};

    fn run(updates_only: bool, read: i64) -> Option<Found> {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("history.jsonl");
        let mut history = HistoryWriter::new(std::fs::File::create(&path).expect("a file"));
        let mut judge = Registers::new(updates_only, path);
        let lines = [
            (0, EventKind::Invoke, Function::WRITE, Value::One(1)),
            (0, EventKind::Ok, Function::WRITE, Value::One(1)),
            (0, EventKind::Invoke, Function::WRITE, Value::One(2)),
            (0, EventKind::Ok, Function::WRITE, Value::One(2)),
            (1, EventKind::Invoke, Function::READ, Value::Null),
            (1, EventKind::Ok, Function::READ, Value::One(read)),
            (2, EventKind::Invoke, Function::WRITE, Value::One(3)),
        ];
        let mut found = None;
        for ((process, kind, f, value), at) in lines.into_iter().zip(1_u64..) {
            let mut event = Event::new(process, kind, f, 0, value, at * 100_000_000);
            history.write(&mut event).expect("written");
            found = found.or(judge.push(event, &mut || Ok(())).expect("a register"));
        }
        assert_eq!(judge.completed, 3);
        found
    }

    #[test]
    fn a_stale_read_is_seen_as_soon_as_time_goes_on_and_dated_by_its_answer() {
        let found = run(false, 1).expect("a violation");
        assert_eq!(found.happened_ns, 600_000_000);
        assert!(found.sentence.contains("read 1"), "{}", found.sentence);
        assert_eq!(run(false, 2), None);
    }

    #[test]
    fn a_stale_read_that_was_never_promised_away_accuses_nobody() {
        assert_eq!(run(true, 1), None);
    }
}
