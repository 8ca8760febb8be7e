//! Lines of our own form, one by one, and what they say about the completeness of the history.
//!
//! The same rules as [`crate::history::load`]: a trailer with a count and a hash ends what this project recorded, a
//! last line that is cut short is a missing trailer, a history without any field of ours needs none.

use serde::Deserialize;
use sha2::{Digest, Sha256};

use crate::history::{Event, LoadError, scan};

#[derive(Debug, Deserialize)]
struct Trailer {
    trailer: bool,
    count: u64,
    sha256: String,
}

/// Reads lines and remembers what the trailer will be compared with.
#[derive(Debug, Default)]
pub struct Lines {
    hash: Sha256,
    number: u64,
    events: u64,
    recorded: bool,
    trailer: Option<Trailer>,
    problem: Option<String>,
}

/// What is known about the completeness of a history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seal {
    /// Lines read, without the trailer.
    pub events: u64,
    /// What is missing or wrong; none when it is complete.
    pub problem: Option<String>,
    /// Whether this is a history from elsewhere, without trailer and without fields of ours.
    pub plain: bool,
}

impl Lines {
    /// The event of the next line (with its newline, if it has one), or none if the line holds no event.
    ///
    /// # Errors
    /// [`LoadError::Malformed`] names the line.
    pub fn line(&mut self, bytes: &[u8]) -> Result<Option<Event>, LoadError> {
        self.number += 1;
        let text = bytes.trim_ascii();
        if text.is_empty() {
            self.hash.update(bytes);
            return Ok(None);
        }
        let malformed = |reason: String| LoadError::Malformed { line: self.number, reason };
        if self.trailer.is_some() {
            return Err(malformed("nothing may follow the trailer".to_owned()));
        }
        let column = |error: serde_json::Error| error.to_string().replace(" at line 1 column", " at column");
        let is_cut = !bytes.ends_with(b"\n");
        if text.starts_with(b"{\"trailer\"") {
            match serde_json::from_slice::<Trailer>(text) {
                Ok(trailer) if trailer.trailer => self.trailer = Some(trailer),
                Err(_) if is_cut => self.cut_short(),
                Ok(_) => return Err(malformed("the trailer does not say that it is one".to_owned())),
                Err(error) => return Err(malformed(column(error))),
            }
            return Ok(None);
        }
        match scan::event(text) {
            Ok(mut event) => {
                self.hash.update(bytes);
                event.index = self.events;
                self.events += 1;
                self.recorded |= event.is_recorded();
                Ok(Some(event))
            }
            Err(_) if is_cut => {
                self.cut_short();
                Ok(None)
            }
            Err(error) => Err(malformed(column(error))),
        }
    }

    /// The line that was read last, from 1.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.number
    }

    fn cut_short(&mut self) {
        self.problem = Some(format!("line {}, the last, is cut short", self.number));
    }

    /// Everything was read.
    ///
    /// # Errors
    /// [`LoadError::Empty`].
    pub fn finish(self) -> Result<Seal, LoadError> {
        if self.events == 0 {
            return Err(LoadError::Empty);
        }
        let plain = self.trailer.is_none() && !self.recorded;
        let events = self.events;
        let problem = self.problem.or_else(|| match self.trailer {
            None if plain => None,
            None => Some("the trailer is missing: the end of the history may be lost".to_owned()),
            Some(trailer) if trailer.count != events => {
                Some(format!("the trailer counts {} lines but there are {events}", trailer.count))
            }
            Some(trailer) => (hexadecimal(&self.hash.finalize()) != trailer.sha256)
                .then(|| "the lines are not those that the trailer was made for".to_owned()),
        });
        Ok(Seal { events, problem, plain })
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
