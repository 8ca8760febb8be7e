//! The events of a history in lines of our own form, line by line, for whoever has the lines.

use super::completeness::Completeness;
use super::convert::event_of;
use super::lines::line_to_record;
use super::load_error::in_one_line;
use super::processes::{Processes, Who};
use super::seal::Seal;
use super::{Event, LoadError};

/// Reads lines, and remembers what the trailer will be compared with.
#[derive(Default)]
pub struct EventLines {
    seal: Seal,
    number: u64,
    skipped: u64,
    processes: Processes,
}

impl EventLines {
    /// The event of the next line (with its end, if it has one); none if it is blank, the trailer, cut short,
    /// or no client's.
    ///
    /// # Errors
    /// [`LoadError::Malformed`] names the line.
    pub fn line(&mut self, bytes: &[u8]) -> Result<Option<Event>, LoadError> {
        self.number += 1;
        let processes = &mut self.processes;
        let parse = |text: &[u8]| line_to_event(text, processes);
        match self.seal.line(bytes, self.number, parse)? {
            Some(Some(mut event)) => {
                self.seal.place(event.index, self.skipped);
                (event.line, event.index) = (self.number, self.seal.events);
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

    /// The reader failed. No error remains where the lines just end: a frame of zstd is cut short, and all
    /// before it is whole.
    ///
    /// # Errors
    /// The error, where it is another one.
    pub(super) fn breaks_off(&mut self, error: LoadError) -> Result<(), LoadError> {
        self.seal.breaks_off(error)
    }

    /// The line that was read last, from 1.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Everything was read.
    ///
    /// # Errors
    /// [`LoadError::Empty`], or [`LoadError::NoOperation`].
    pub fn finish(self) -> Result<Completeness, LoadError> {
        let Self { seal, skipped, processes, .. } = self;
        let events = seal.events;
        let known = Completeness::of(seal.problem(), seal.is_plain(), events, skipped);
        let known = Completeness { renamed: processes.renamed(), ..known };
        if events == 0 { Err(known.without_operations()) } else { Ok(known) }
    }
}

/// The event of a line without its end, or none if whoever speaks is no client.
fn line_to_event(text: &[u8], processes: &mut Processes) -> Result<Option<Event>, String> {
    match super::scan::event(text) {
        Ok(mut event) => {
            // A number is what it is, unless names came first.
            event.process = processes.number(&Who::of_number(event.process)?).unwrap_or(event.process);
            Ok(Some(event))
        }
        Err(error) => {
            let said = in_one_line(&error);
            let Some(record) = line_to_record(text, processes)?.record else { return Ok(None) };
            event_of(record).map(Some).map_err(|reason| format!("{reason} ({said})"))
        }
    }
}
