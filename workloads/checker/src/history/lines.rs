//! A history in lines of JSON, and the trailer that proves one of ours complete.
//!
//! One object to a line. Ours end with a trailer: the count of lines and the SHA-256 of all bytes before it. Without it
//! (the run was killed, the file was cut or changed) the history can't show that all is well, see [`Extent`]: each of our
//! lines has its place, so that a missing end is told from lines that are missing before it.
//! A history from elsewhere, in the same line form but without any field that only our recorder writes, has no trailer
//! and is taken as it is.

use std::borrow::Cow;
use std::fmt;
use std::io::BufRead;

use serde::Deserialize;
use serde::de::{Deserializer, Error as _, MapAccess, Visitor};
use sha2::{Digest, Sha256};

use super::fields::Fields;
use super::processes::Processes;
use super::{Datum, Extent, LoadError, Record};

/// Longest line that is read, and the longest element where elements are no lines.
pub const MAX_LINE_BYTES: usize = 1 << 20;

/// `read_until` with a limit, so that a file without newlines is refused before it fills the memory.
pub(super) fn read_line<R: BufRead>(
    reader: &mut R,
    line: &mut Vec<u8>,
    number: u64,
) -> Result<usize, LoadError> {
    loop {
        let available = reader.fill_buf()?;
        if available.is_empty() {
            return Ok(line.len());
        }
        let newline = available.iter().position(|&byte| byte == b'\n');
        let taken = newline.map_or(available.len(), |at| at + 1);
        if line.len() + taken > MAX_LINE_BYTES {
            let reason = format!("longer than {MAX_LINE_BYTES} bytes");
            return Err(LoadError::Malformed { line: number, reason });
        }
        line.extend_from_slice(&available[..taken]);
        reader.consume(taken);
        if newline.is_some() {
            return Ok(line.len());
        }
    }
}

/// What a line of JSON says.
pub(super) struct Line {
    /// The record, whose place the reader knows; none if whoever speaks is no client.
    pub(super) record: Option<Record>,
    /// Whether a field of it is one that only this project's own recorder writes.
    pub(super) recorded: bool,
}

/// Reads one line, without its end: any `f`, any value, any further fields.
pub(super) fn line_to_record(text: &[u8], processes: &mut Processes) -> Result<Line, String> {
    let fields: Fields = serde_json::from_slice(text).map_err(|error| in_one_line(&error))?;
    let recorded = fields.recorded;
    Ok(Line { record: fields.finish(processes)?, recorded })
}

/// The position inside one line is the column; the line that serde counts is always 1.
pub(super) fn in_one_line(error: &serde_json::Error) -> String {
    error.to_string().replace(" at line 1 column", " at column")
}

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reading;

        impl<'de> Visitor<'de> for Reading {
            type Value = Fields;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an operation")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields, A::Error> {
                let mut fields = Fields::default();
                while let Some(name) = map.next_key::<Name<'de>>()? {
                    fields.set(&name.0, map.next_value::<Datum>()?).map_err(A::Error::custom)?;
                }
                Ok(fields)
            }
        }

        deserializer.deserialize_map(Reading)
    }
}

/// A field's name, in place where it has no escapes.
#[derive(Deserialize)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

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
    /// Takes a line, with its end, and reads it as `parse` does; none for what is no event: a blank line, the trailer,
    /// a last line that is cut short.
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

    /// Compares the place that a line says it has, if it says so, with the one at which it stands behind `skipped` lines
    /// that are no events.
    pub(super) fn place(&mut self, said: u64, skipped: u64) {
        self.displaced |= said != 0 && said != self.events + skipped;
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

/// The operations of a history in lines of JSON.
pub(super) struct JsonLines<R> {
    reader: R,
    line: Vec<u8>,
    number: u64,
    pub(super) seal: Seal,
    pub(super) skipped: u64,
    pub(super) processes: Processes,
}

impl<R: BufRead> JsonLines<R> {
    pub(super) fn new(reader: R) -> Self {
        Self {
            reader,
            line: Vec::new(),
            number: 0,
            seal: Seal::default(),
            skipped: 0,
            processes: Processes::default(),
        }
    }

    pub(super) fn next_record(&mut self) -> Result<Option<Record>, LoadError> {
        loop {
            self.line.clear();
            self.number += 1;
            if read_line(&mut self.reader, &mut self.line, self.number)? == 0 {
                return Ok(None);
            }
            let processes = &mut self.processes;
            let parse = |text: &[u8]| line_to_record(text, processes);
            let Some(Line { record, recorded }) = self.seal.line(&self.line, self.number, parse)? else {
                continue;
            };
            self.seal.recorded |= recorded;
            let Some(mut record) = record else {
                self.skipped += 1;
                continue;
            };
            self.seal.place(record.index, self.skipped);
            self.seal.events += 1;
            record.line = self.number;
            return Ok(Some(record));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::EventKind;

    fn record(text: &str) -> Result<Option<Record>, String> {
        line_to_record(text.as_bytes(), &mut Processes::default()).map(|line| line.record)
    }

    #[test]
    fn any_function_any_value_and_further_fields_are_read() {
        let text = r#"{"process":4,"type":"ok","f":"txn","value":[["r",3,[1]],["append",3,2]],"time":9,"node":"n1","took":1.5,"\u0065rror":{"a":1}}"#;
        let record = record(text).unwrap().unwrap();
        assert_eq!(
            (record.process, record.kind, &*record.f, record.time),
            (4, EventKind::Ok, "txn", Some(9))
        );
        assert_eq!(record.value.to_string(), "[[r 3 [1]] [append 3 2]]");
        assert_eq!(record.error.as_deref(), Some("{a 1}"));
        assert_eq!(record.extra.get("took"), Some(&Datum::text("1.5")));
    }

    #[test]
    fn the_nemesis_is_no_client() {
        for process in ["\"nemesis\"", "\":nemesis\""] {
            let text = format!(r#"{{"process":{process},"type":"info","f":"start","value":null}}"#);
            assert!(record(&text).unwrap().is_none());
        }
    }

    #[test]
    fn what_is_no_operation_says_why() {
        for (text, reason) in [
            ("17", "invalid type: integer `17`, expected an operation"),
            ("{}", "the field process is missing"),
            (r#"{"process":1,"f":"read"}"#, "the field type is missing"),
            (r#"{"process":1,"type":"ok"}"#, "the field f is missing"),
            (r#"{"process":-1,"type":"ok","f":"read"}"#, "a process is not negative"),
            (r#"{"process":1,"type":"maybe","f":"read"}"#, "maybe is none of invoke, ok, fail and info"),
        ] {
            let error = record(text).unwrap_err();
            assert!(error.starts_with(reason), "{text}: {error}");
        }
    }
}
