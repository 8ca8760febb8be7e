//! A member's words, wherever it runs: each line is stamped when it comes, understood as far as it can be,
//! and kept in `events.jsonl` beside the member's log.
//!
//! The bundled node says what happens as JSON, with an `event` in each line. Others only log, and their
//! system knows which of those lines are news. What members do not tell is asked from outside
//! ([`super::observer`]).

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use harness_systems::{System, bounded};
use runs::events::{Event, Said, Stamped};
use runs::member::MemberId;

use crate::clock::{RunClock, RunNs};
use crate::events::EventLog;

/// A line longer than this is cut.
pub(super) const MAX_LINE_BYTES: u64 = 64 * 1024;
/// The lines of a member's log that are shown when it dies at the start.
const TAIL_LINES: usize = 5;

/// Where one member's words and the news of its process go.
#[derive(Clone)]
pub(super) struct Place {
    /// The member.
    pub(super) id: MemberId,
    /// Its folder: log, events, data.
    pub(super) folder: PathBuf,
    /// What stamps.
    pub(super) clock: RunClock,
    /// Where it is told.
    pub(super) events: EventLog,
    /// What understands its lines.
    pub(super) system: Arc<dyn System>,
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

    /// Where its log is.
    pub(super) fn log_file(&self) -> PathBuf {
        self.folder.join("log")
    }

    /// Its log, to be written on.
    pub(super) fn log(&self) -> anyhow::Result<File> {
        append(&self.log_file())
    }

    /// What takes the lines of one of its processes.
    pub(super) fn voice(&self) -> anyhow::Result<Voice> {
        Ok(Voice { lines: append(&self.folder.join("events.jsonl"))?, log: self.log()?, place: self.clone() })
    }

    /// The end of its log, for a message.
    pub(super) fn last_words(&self) -> String {
        let text = bounded::tail(&self.log_file(), bounded::LAST_WORDS);
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n")
    }
}

/// Takes the lines of one process.
pub(super) struct Voice {
    place: Place,
    lines: File,
    log: File,
}

impl Voice {
    /// Takes a line as it came.
    pub(super) fn take(&mut self, line: &[u8]) {
        let time = self.place.clock.now();
        let parsed = serde_json::from_slice::<serde_json::Value>(line);
        let mut fields = match parsed {
            Ok(serde_json::Value::Object(fields)) if fields.contains_key("event") => fields,
            Ok(_) | Err(_) => return self.take_logged(time, line),
        };
        if let Ok(said) = serde_json::from_value::<Said>(serde_json::Value::Object(fields.clone())) {
            self.place.note_at(time, Event::Said(said));
        }
        // What cannot be written down is lost for the reader of the folder only; the run goes on.
        fields.insert("time".to_owned(), time.into());
        let _ = writeln!(self.lines, "{}", serde_json::Value::Object(fields));
    }

    /// Takes a line that is no event of the bundled node: it belongs into the log.
    fn take_logged(&mut self, time: RunNs, line: &[u8]) {
        let _ = self.log.write_all(line);
        let view = self.place.events.views().remove(&self.place.id).unwrap_or_default();
        let Some(said) = self.place.system.heard(line, self.place.id, view.stand) else { return };
        self.place.note_at(time, Event::Said(said.clone()));
        if let Ok(serde_json::Value::Object(mut fields)) = serde_json::to_value(said) {
            fields.insert("time".to_owned(), time.into());
            let _ = writeln!(self.lines, "{}", serde_json::Value::Object(fields));
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn place(folder: &Path) -> Place {
        let events = EventLog::new(&[MemberId(1)]);
        let system = Arc::new(harness_zookeeper::ZooKeeper::Apache);
        Place { id: MemberId(1), folder: folder.to_owned(), clock: RunClock::start(), events, system }
    }

    #[test]
    fn a_logged_line_is_kept_and_its_news_noted() {
        let folder = tempfile::tempdir().expect("a folder");
        let place = place(folder.path());
        let mut voice = place.voice().expect("a voice");
        place.note(Event::Spawned);
        place.note(Event::Said(Said::Established { leader: 3, epoch: 7 }));
        voice.take(b"x INFO org.apache.zookeeper.server.quorum.QuorumPeer - LOOKING\n");
        voice.take(b"an exception\n");
        voice.take(b"{\"level\":\"info\",\"msg\":\"no event\"}\n");
        voice.take(b"x INFO org.apache.zookeeper.server.quorum.QuorumPeer - LEADING\n");
        let said: Vec<Event> =
            place.events.events().into_iter().skip(2).map(|stamped| stamped.event).collect();
        assert_eq!(
            said,
            [Event::Said(Said::Looking { left: Some(3) }), Event::Said(Said::Elected { leader: 1 })]
        );
        let log = std::fs::read_to_string(folder.path().join("log")).expect("a log");
        assert_eq!(log.lines().count(), 4);
        let lines = std::fs::read_to_string(folder.path().join("events.jsonl")).expect("events");
        assert!(lines.starts_with("{\"event\":\"looking\",\"left\":3,\"time\":"), "{lines}");
    }
}
