//! The events of a history in lines of our own form, line by line, for whoever has the lines.

use super::lines::{Seal, in_one_line, line_to_record};
use super::records::Completeness;
use super::{Event, LoadError};

/// Reads lines, and remembers what the trailer will be compared with.
#[derive(Default)]
pub struct EventLines {
    seal: Seal,
    number: u64,
    skipped: u64,
}

impl EventLines {
    /// The event of the next line (with its end, if it has one); none if it is blank, the trailer, cut short, or no
    /// client's.
    ///
    /// # Errors
    /// [`LoadError::Malformed`] names the line.
    pub fn line(&mut self, bytes: &[u8]) -> Result<Option<Event>, LoadError> {
        self.number += 1;
        match self.seal.line(bytes, self.number, line_to_event)? {
            Some(Some(mut event)) => {
                event.index = self.seal.events;
                self.seal.events += 1;
                self.seal.recorded |= event.is_recorded();
                Ok(Some(event))
            }
            Some(None) => {
                self.skipped += 1;
                Ok(None)
            }
            None => Ok(None),
        }
    }

    /// The line that was read last, from 1.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Everything was read.
    ///
    /// # Errors
    /// [`LoadError::Empty`].
    pub fn finish(self) -> Result<Completeness, LoadError> {
        if self.seal.events == 0 {
            return Err(LoadError::Empty);
        }
        let problem = self.seal.problem();
        Ok(Completeness {
            complete: problem.is_none(),
            problem,
            plain: self.seal.is_plain(),
            events: self.seal.events,
            skipped: self.skipped,
        })
    }
}

/// The event of a line without its end, or none if whoever speaks is no client.
fn line_to_event(text: &[u8]) -> Result<Option<Event>, String> {
    match super::scan::event(text) {
        Ok(event) => Ok(Some(event)),
        Err(error) => match line_to_record(text) {
            Ok(line) if line.record.is_none() => Ok(None),
            Ok(_) | Err(_) => Err(in_one_line(&error)),
        },
    }
}
