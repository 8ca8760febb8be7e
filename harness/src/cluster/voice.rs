//! A member's words, wherever it runs: each line is stamped when it comes, understood as far as it can be,
//! and kept in `events.jsonl` beside the member's log.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Context;
use node_wire::ids::ServerId;

use crate::clock::{RunClock, RunNs};
use crate::events::{Event, EventLog, Said, Stamped};

/// A line longer than this is cut.
pub(super) const MAX_LINE_BYTES: u64 = 64 * 1024;
/// The lines of a member's log that are shown when it dies at the start.
const TAIL_LINES: usize = 5;

/// Where one member's words and the news of its process go.
#[derive(Clone)]
pub(super) struct Place {
    /// The member.
    pub(super) id: ServerId,
    /// Its folder: log, events, data.
    pub(super) folder: PathBuf,
    /// What stamps.
    pub(super) clock: RunClock,
    /// Where it is told.
    pub(super) events: EventLog,
}

impl Place {
    /// Notes something about its process at this moment.
    pub(super) fn note(&self, event: Event) {
        self.note_at(self.clock.now(), event);
    }

    /// Notes something that happened at `time`.
    pub(super) fn note_at(&self, time: RunNs, event: Event) {
        self.events.push(Stamped { time, node: self.id, event });
    }

    /// Its log, to be written on.
    pub(super) fn log(&self) -> anyhow::Result<File> {
        append(&self.folder.join("log"))
    }

    /// What takes the lines of one of its processes.
    pub(super) fn voice(&self) -> anyhow::Result<Voice> {
        Ok(Voice { lines: append(&self.folder.join("events.jsonl"))?, place: self.clone() })
    }

    /// The end of its log, for a message.
    pub(super) fn last_words(&self) -> String {
        let text = std::fs::read_to_string(self.folder.join("log")).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n")
    }
}

/// Takes the lines of one process.
pub(super) struct Voice {
    place: Place,
    lines: File,
}

impl Voice {
    /// Takes a line as it came.
    pub(super) fn take(&mut self, line: &[u8]) {
        let time = self.place.clock.now();
        let parsed = serde_json::from_slice::<serde_json::Value>(line);
        let Ok(serde_json::Value::Object(mut fields)) = parsed else { return };
        if let Ok(said) = serde_json::from_value::<Said>(serde_json::Value::Object(fields.clone())) {
            self.place.note_at(time, Event::Said(said));
        }
        // What cannot be written down is lost for the reader of the folder only; the run goes on.
        fields.insert("time".to_owned(), time.into());
        let _ = writeln!(self.lines, "{}", serde_json::Value::Object(fields));
    }
}

/// Opens a file for writing at its end.
pub(super) fn append(path: &Path) -> anyhow::Result<File> {
    OpenOptions::new()
        .create(true)
        .append(true)
        .open(path)
        .with_context(|| format!("opening {}", path.display()))
}
