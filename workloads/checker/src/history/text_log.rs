//! Jepsen's text log: one line for each invocation and completion, among others.
//!
//! ```text
//! INFO  jepsen.util - 0 :invoke :read nil
//! 2015-01-01 00:00:00,123{GMT} INFO [jepsen worker 1] jepsen.util: 0 :invoke :cas [1 2]
//! 3 :info :write :timed-out
//! ```
//!
//! A line is an operation's when after what the logger puts first (nothing, or something that ends with a
//! dash or a colon) there come a process, a kind, a function and a value. Any other line is somebody else's:
//! it is skipped and counted. What follows the value is an error, in words that need not be EDN.

use std::io::BufRead;
use std::sync::Arc;

use super::edn::Parser;
use super::failure::{Failure, name_failure};
use super::fields::{Words, event_kind};
use super::limits::read_line;
use super::processes::{Processes, Who};
use super::{Datum, EventKind, LoadError, Record};

/// The operations of a text log.
pub(super) struct TextLog<R> {
    reader: R,
    words: Words,
    line: Vec<u8>,
    number: u64,
    /// Whether any line was an operation's, be it the nemesis's.
    recognised: bool,
    pub(super) skipped: u64,
    pub(super) processes: Processes,
    pub(super) problem: Option<String>,
}

/// An operation's line in its parts.
struct Parts<'a> {
    process: &'a [u8],
    kind: EventKind,
    f: &'a [u8],
    /// The value, and maybe an error.
    rest: &'a [u8],
}

impl<R: BufRead> TextLog<R> {
    pub(super) fn new(reader: R) -> Self {
        Self {
            reader,
            words: Words::default(),
            line: Vec::new(),
            number: 0,
            recognised: false,
            skipped: 0,
            processes: Processes::default(),
            problem: None,
        }
    }

    pub(super) fn next_record(&mut self) -> Result<Option<Record>, LoadError> {
        loop {
            self.line.clear();
            self.number += 1;
            if read_line(&mut self.reader, &mut self.line, self.number)? == 0 {
                return self.end();
            }
            let text = self.line.trim_ascii();
            if text.is_empty() {
                continue;
            }
            // Nothing but the end of the line says that `1` is not the beginning of `12`.
            if !self.line.ends_with(b"\n") {
                self.problem =
                    Some(format!("line {}, the last, has no end: it may be cut short", self.number));
                continue;
            }
            let Some(parts) = parts(text) else {
                self.skipped += 1;
                continue;
            };
            self.recognised = true;
            let read = read_parts(&parts, &mut self.words, &mut self.processes);
            match read.map_err(|reason| LoadError::Malformed { line: self.number, reason })? {
                Some(mut record) => {
                    record.line = self.number;
                    return Ok(Some(record));
                }
                None => self.skipped += 1,
            }
        }
    }

    fn end(&self) -> Result<Option<Record>, LoadError> {
        if self.recognised || self.problem.is_some() || self.skipped == 0 {
            return Ok(None);
        }
        let reason = "this is no history: neither lines of JSON, nor EDN, nor a log with an operation in it"
            .to_owned();
        Err(LoadError::Malformed { line: 1, reason })
    }
}

/// The parts of a line, if it is an operation's.
fn parts(text: &[u8]) -> Option<Parts<'_>> {
    let mut logger_ended = true;
    let mut rest = text;
    loop {
        let (first, after_first) = word(rest)?;
        let (second, after_second) = word(after_first)?;
        if logger_ended && let Some(kind) = second.strip_prefix(b":").and_then(event_kind) {
            let (f, rest) = word(after_second)?;
            return Some(Parts { process: first, kind, f: f.strip_prefix(b":")?, rest });
        }
        logger_ended = first == b"-" || first.ends_with(b":");
        rest = after_first;
    }
}

/// The first word of a text and what follows it.
fn word(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let text = text.trim_ascii_start();
    let end = text.iter().position(u8::is_ascii_whitespace).unwrap_or(text.len());
    (end > 0).then(|| text.split_at(end))
}

/// The record of an operation's line, or none if whoever speaks is no client.
fn read_parts(
    parts: &Parts<'_>,
    words: &mut Words,
    processes: &mut Processes,
) -> Result<Option<Record>, String> {
    let process = std::str::from_utf8(parts.process).map_err(|_| "the process is not UTF-8".to_owned())?;
    let Some(process) = processes.number(&Who::of(process)?) else { return Ok(None) };
    let f = std::str::from_utf8(parts.f).map_err(|_| "the function is not UTF-8".to_owned())?;
    if f.is_empty() {
        return Err("the function has no name".to_owned());
    }
    let f = words.word(f);
    let rest = parts.rest.trim_ascii();
    let is_keyword = rest.starts_with(b":");
    let mut parser = Parser::new(rest, words);
    let (value, error) = match (parser.next_form(), parts.kind) {
        (Ok(Some(value)), _) => (value, error(parser.rest())),
        // What failed may say why in words.
        (_, EventKind::Fail | EventKind::Info) if !rest.is_empty() => (Datum::Nil, error(rest)),
        (Ok(None), _) => return Err("the value is missing".to_owned()),
        (Err(fault), _) => return Err(format!("the value: {}", fault.reason)),
    };
    let mut record =
        Record { f, value, error, ..Record::new(process, parts.kind, "", Datum::Nil, Datum::Nil) };
    name_failure(&mut record, is_keyword, Failure::Refused);
    Ok(Some(record))
}

/// What a line says behind its value.
fn error(text: &[u8]) -> Option<Arc<str>> {
    let text = text.trim_ascii();
    let text = text.strip_prefix(b":").unwrap_or(text);
    (!text.is_empty()).then(|| Arc::from(String::from_utf8_lossy(text)))
}
