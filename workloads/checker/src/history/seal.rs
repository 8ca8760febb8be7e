//! The trailer that proves a history of ours complete, and what is known of that while lines are read.
//!
//! Histories of ours end with a trailer: the count of lines and the SHA-256 of all bytes before it. Without
//! it (the run was killed, the file was cut or changed) the history can't show that all is well, see
//! [`Extent`]. Each of our lines has its place, so that a missing end is told from lines that are missing
//! before it.
//! A history from elsewhere, in the same line form but without any field that only our recorder writes, has
//! no trailer and is taken as it is.
//!
//! Lines are read into records or straight into events. Either reader keeps a [`Seal`].

use std::io::ErrorKind;

use serde::Deserialize;
use sha2::{Digest, Sha256};

use super::load_error::in_one_line;
use super::{Extent, LoadError};

#[derive(Deserialize)]
struct Trailer {
    trailer: bool,
    count: u64,
    sha256: String,
}

/// What is known of the completeness of a history of lines while it is read.
#[derive(Default)]
pub(super) struct Seal {
    hash: Sha256,
    /// Lines that are events.
    pub(super) events: u64,
    /// Whether the history is one of ours.
    pub(super) recorded: bool,
    trailer: Option<Trailer>,
    problem: Option<String>,
    /// Whether a line says that it stands elsewhere.
    displaced: bool,
}

impl Seal {
    /// Takes a line, with its end, and reads it as `parse` does; none for what is no event: a blank line, the
    /// trailer, a last line that is cut short.
    pub(super) fn line<T>(
        &mut self,
        bytes: &[u8],
        number: u64,
        parse: impl FnOnce(&[u8]) -> Result<T, String>,
    ) -> Result<Option<T>, LoadError> {
        let text = bytes.trim_ascii();
        if text.is_empty() {
            self.hash.update(bytes);
            return Ok(None);
        }
        let malformed = |reason: String| LoadError::Malformed { line: number, reason };
        if self.trailer.is_some() {
            return Err(malformed("nothing may follow the trailer".to_owned()));
        }
        let is_trailer = text.starts_with(b"{\"trailer\"");
        let parsed = if is_trailer { read_trailer(text).map(Err) } else { parse(text).map(Ok) };
        match parsed {
            Ok(Ok(event)) => {
                self.hash.update(bytes);
                Ok(Some(event))
            }
            Ok(Err(trailer)) => {
                self.trailer = Some(trailer);
                Ok(None)
            }
            Err(_) if !bytes.ends_with(b"\n") => {
                self.problem = Some(format!("line {number}, the last, is cut short"));
                Ok(None)
            }
            Err(reason) => Err(malformed(reason)),
        }
    }

    /// Compares the place that a line says it has, if it says so, with the one at which it stands
    /// behind `skipped` lines that are no events.
    pub(super) fn place(&mut self, said: u64, skipped: u64) {
        self.displaced |= said != 0 && said != self.events + skipped;
    }

    /// Takes an error of the reader. No error remains where the lines just end before their trailer:
    /// see [`super::compressed`].
    ///
    /// # Errors
    /// The error, where it is another one.
    pub(super) fn breaks_off(&mut self, error: LoadError) -> Result<(), LoadError> {
        match error {
            LoadError::Io(error) if error.kind() == ErrorKind::UnexpectedEof && self.trailer.is_none() => {
                self.problem = Some(error.to_string());
                Ok(())
            }
            error => Err(error),
        }
    }

    /// Whether the history comes from elsewhere.
    pub(super) fn is_plain(&self) -> bool {
        self.trailer.is_none() && !self.recorded
    }

    /// Everything was read: what is missing or wrong.
    pub(super) fn problem(&self) -> Option<(Extent, String)> {
        let Some(trailer) = &self.trailer else {
            let lost = || "the trailer is missing: the end of the history may be lost".to_owned();
            let lost = self.problem.clone().or_else(|| self.recorded.then(lost))?;
            return Some(if self.displaced && self.recorded {
                (Extent::Parts, format!("{lost}; and lines before it are missing"))
            } else {
                (Extent::Beginning, lost)
            });
        };
        if trailer.count != self.events {
            let why = format!("the trailer counts {} lines but there are {}", trailer.count, self.events);
            return Some((Extent::Parts, why));
        }
        let hash = super::writer::hex(&self.hash.clone().finalize());
        let changed = || "the lines are not those that the trailer was made for".to_owned();
        (hash != trailer.sha256).then(|| (Extent::Parts, changed()))
    }
}

fn read_trailer(text: &[u8]) -> Result<Trailer, String> {
    let trailer: Trailer = serde_json::from_slice(text).map_err(|error| in_one_line(&error))?;
    if trailer.trailer { Ok(trailer) } else { Err("the trailer does not say that it is one".to_owned()) }
}
