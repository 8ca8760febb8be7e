//! Histories from anywhere, record by record.
//!
//! [`records`] recognises what it is given by its first bytes, whatever the file is called: compressed with
//! zstd or not; then lines of JSON, EDN, or Jepsen's text log. It reads as a stream, one element at a time in
//! memory, and names the line of whatever is wrong.
//!
//! What the formats leave open is decided here, so that no history is accused wrongly:
//!
//! | the file says | lines of JSON | text log | EDN |
//! |---|---|---|---|
//! | a compare-and-set failed, no error | the comparison failed | the same | it did not happen |
//! | it failed with the error `bad-version` | the comparison failed | it did not happen | it did not happen |
//! | it failed with any other error | it did not happen | the same | the same |
//! | a read failed, whatever the error | it says nothing | the same | the same |
//! | `info` | it may take effect at any later time | the same | the same |
//! | the value of a `fail` or `info` is a keyword | it is a value | it is the error | it is the error |
//! | a process goes on after its `info` | tolerated: the operation stays open | the same | the same |
//! | a value is a key and a value | see `catalogue` | the key of a register is taken out | the same |
//! | an `ok` without value of a change | what was asked | the same | the same |
//! | a process completes what it did not invoke | an error | an error | an error |
//! | the process is the nemesis | left out and counted | the same | the same |
//! | a process has a name | a client like any other | the same | the same |
//! | a process is a number, but no natural one below 2^62 | an error | an error | an error |
//! | a field, or a key of a map, stands twice | an error | an error | an error |
//! | time | the stamps if every line has one, else the order of lines | the order of lines | as for JSON |
//! | the end | the trailer, in ours | a last line without newline is not believed | the list is closed |
//!
//! That a comparison failed is an observation: at some moment the register held something else. That an
//! operation did not happen says nothing more. EDN differs because Jepsen's own checker holds that a failed
//! operation did not happen and no more; its clients also answer `:fail` when a comparison was never made.
//! (Of the histories that come with Knossos, four of MongoDB are valid by that rule only.) In a text log what
//! failed without comparing has its error in the place of the value, and Porcupine takes any other failed
//! compare-and-set for a comparison. (The verdicts on its logs are the same by either rule.) The name
//! `bad-version` is this project's own: elsewhere a version may be stale although the value is the expected
//! one.

use std::io::{self, BufRead, BufReader, Cursor, Read};

use super::completeness::Completeness;
use super::compressed::{Frames, is_zstd, other_compression};
use super::edn::is_blank;
use super::elements::Elements;
use super::lines::JsonLines;
use super::text_log::TextLog;
use super::{Extent, LoadError, Record};
use crate::budget::Interrupt;

/// The notation of a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// One JSON object to a line.
    JsonLines,
    /// Clojure's data: a list of maps, or maps one after another.
    Edn,
    /// The log that Jepsen writes for people.
    TextLog,
}

impl Format {
    /// The name for people.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::JsonLines => "lines of JSON",
            Self::Edn => "EDN",
            Self::TextLog => "a text log",
        }
    }
}

/// Any reader, once it is known what it holds.
pub(super) type Input<'r> = Box<dyn BufRead + Send + 'r>;

/// Bytes of compressed content that are held for reading.
const BUFFER_BYTES: usize = 256 << 10;

/// Bytes looked at to recognise a format. Blanks may come first, but not for ever.
const MAX_PEEKED_BYTES: usize = 64 << 10;

/// What some editors put before UTF-8.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// A history with its format, nothing of it lost by the look at its first bytes.
pub(super) struct Recognised<'r> {
    pub(super) format: Format,
    pub(super) compressed: bool,
    pub(super) input: Input<'r>,
}

/// What a file holds: its own bytes, or those that it holds compressed with zstd.
///
/// # Errors
/// What the reader says.
pub fn content<'r>(reader: impl BufRead + Send + 'r) -> io::Result<Box<dyn BufRead + Send + 'r>> {
    let (start, input) = peek(reader, |start, at_end| (at_end || start.len() >= 4).then_some(()))?;
    Ok(if is_zstd(&start) { frames(input) } else { input })
}

fn frames(compressed: Input<'_>) -> Input<'_> {
    Box::new(BufReader::with_capacity(BUFFER_BYTES, Frames::new(compressed)))
}

/// Looks what a reader holds.
pub(super) fn recognise<'r>(
    reader: impl BufRead + Send + 'r,
    interrupt: &Interrupt,
) -> Result<Recognised<'r>, LoadError> {
    let (start, input) = peek(reader, |start, at_end| (at_end || start.len() >= 4).then_some(()))?;
    if is_zstd(&start) {
        let content = Heeding { reader: frames(input), interrupt: interrupt.clone() };
        let (start, input) = peek(content, |start, at_end| guess(start, at_end).map(drop))?;
        return Ok(Recognised { format: format_of(&start)?, compressed: true, input });
    }
    if let Some(name) = other_compression(&start) {
        let reason = format!("compressed with {name}, which is not read here; unpack it first");
        return Err(LoadError::Malformed { line: 1, reason });
    }
    let input = Heeding { reader: input, interrupt: interrupt.clone() };
    let (start, mut input) = peek(input, |start, at_end| guess(start, at_end).map(drop))?;
    if start.starts_with(BYTE_ORDER_MARK) {
        input.fill_buf()?;
        input.consume(BYTE_ORDER_MARK.len());
    }
    Ok(Recognised { format: format_of(&start)?, compressed: false, input })
}

/// A reader that fails when the bell rings.
struct Heeding<R> {
    reader: R,
    interrupt: Interrupt,
}

impl<R: BufRead> Heeding<R> {
    fn heed(&self) -> io::Result<()> {
        match self.interrupt.rung() {
            None => Ok(()),
            Some(why) => Err(io::Error::other(format!("reading was stopped: {why}"))),
        }
    }
}

impl<R: BufRead> Read for Heeding<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.heed()?;
        self.reader.read(buffer)
    }
}

impl<R: BufRead> BufRead for Heeding<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.heed()?;
        self.reader.fill_buf()
    }

    fn consume(&mut self, taken: usize) {
        self.reader.consume(taken);
    }
}

/// Reads from the start until `enough` says so, and gives the bytes and a reader that still begins with them.
fn peek<'r>(
    mut reader: impl BufRead + Send + 'r,
    enough: impl Fn(&[u8], bool) -> Option<()>,
) -> io::Result<(Vec<u8>, Input<'r>)> {
    let mut start = Vec::new();
    while enough(&start, start.len() >= MAX_PEEKED_BYTES).is_none() {
        let available = reader.fill_buf()?;
        if available.is_empty() {
            break;
        }
        // Few at a time: whoever waits at a pipe is to see the first line when it comes.
        let taken = available.len().min(256);
        start.extend_from_slice(&available[..taken]);
        reader.consume(taken);
    }
    let input = Box::new(Cursor::new(start.clone()).chain(reader));
    Ok((start, input))
}

fn format_of(start: &[u8]) -> Result<Format, LoadError> {
    match guess(start, true) {
        Some(Guess::Format(format)) => Ok(format),
        Some(Guess::JsonArray) => {
            let reason = "an array of JSON is not read here; write one object to a line".to_owned();
            Err(LoadError::Malformed { line: 1, reason })
        }
        Some(Guess::Utf16) => {
            Err(LoadError::Malformed { line: 1, reason: "the text is UTF-16, not UTF-8".to_owned() })
        }
        None => Ok(Format::JsonLines),
    }
}

enum Guess {
    Format(Format),
    JsonArray,
    Utf16,
}

/// What a file is that begins so, or none while that is open.
fn guess(start: &[u8], at_end: bool) -> Option<Guess> {
    if start.starts_with(&[0xff, 0xfe]) || start.starts_with(&[0xfe, 0xff]) {
        return Some(Guess::Utf16);
    }
    let text = start.strip_prefix(BYTE_ORDER_MARK).unwrap_or(start);
    let mut bytes = text.iter().copied().filter(|&byte| !is_blank(byte));
    let edn = Some(Guess::Format(Format::Edn));
    let json = Some(Guess::Format(Format::JsonLines));
    match bytes.next() {
        None => at_end.then_some(Guess::Format(Format::JsonLines)),
        Some(b'{') => match bytes.next() {
            None if !at_end => None,
            None | Some(b'"' | b'}') => json,
            Some(_) => edn,
        },
        Some(b'[') => match (bytes.next(), bytes.next()) {
            (Some(b'{'), Some(b'"')) => Some(Guess::JsonArray),
            (None, _) | (Some(b'{'), None) if !at_end => None,
            _ => edn,
        },
        Some(b'(' | b';' | b'#' | b'^') => edn,
        Some(_) => Some(Guess::Format(Format::TextLog)),
    }
}

/// The records of a history, in the order of the file. Ends after the first error.
pub struct Records<'r> {
    format: Format,
    compressed: bool,
    source: Source<'r>,
    events: u64,
    ended: Option<Ended>,
}

enum Source<'r> {
    Json(JsonLines<Input<'r>>),
    Edn(Elements<Input<'r>>),
    Log(TextLog<Input<'r>>),
}

enum Ended {
    AtEnd,
    ByError(String),
}

/// Reads a history of any format.
///
/// # Errors
/// [`LoadError`] when the reader fails or holds what is not read here. An empty history is an error of the
/// first record.
pub fn records<'r>(reader: impl BufRead + Send + 'r) -> Result<Records<'r>, LoadError> {
    records_until(reader, &Interrupt::never())
}

/// The same, until the bell rings: then the reader fails. It is looked at between blocks of what was
/// unpacked, so that it is heard also where there is much and no record in it.
///
/// # Errors
/// As [`records`].
pub fn records_until<'r>(
    reader: impl BufRead + Send + 'r,
    interrupt: &Interrupt,
) -> Result<Records<'r>, LoadError> {
    recognise(reader, interrupt).map(Records::of)
}

impl<'r> Records<'r> {
    pub(super) fn of(Recognised { format, compressed, input }: Recognised<'r>) -> Self {
        let source = match format {
            Format::JsonLines => Source::Json(JsonLines::new(input)),
            Format::Edn => Source::Edn(Elements::new(input)),
            Format::TextLog => Source::Log(TextLog::new(input)),
        };
        Self { format, compressed, source, events: 0, ended: None }
    }

    /// The notation.
    #[must_use]
    pub fn format(&self) -> Format {
        self.format
    }

    /// Whether the file was compressed.
    #[must_use]
    pub fn is_compressed(&self) -> bool {
        self.compressed
    }

    /// What is known about the history as far as it was read; only after the last record it may be complete.
    #[must_use]
    pub fn completeness(&self) -> Completeness {
        let cut = |problem: &Option<String>| problem.clone().map(|problem| (Extent::Beginning, problem));
        let (plain, skipped, missing) = match &self.source {
            Source::Json(lines) => (lines.seal.is_plain(), lines.skipped, lines.seal.problem()),
            Source::Edn(elements) => (true, elements.skipped, cut(&elements.problem)),
            Source::Log(log) => (true, log.skipped, cut(&log.problem)),
        };
        let known = match &self.ended {
            None => Some((Extent::Beginning, "the history was not read to its end".to_owned())),
            Some(Ended::ByError(error)) => Some((Extent::Beginning, error.clone())),
            Some(Ended::AtEnd) => missing,
        };
        let renamed = match &self.source {
            Source::Json(lines) => lines.processes.renamed(),
            Source::Edn(elements) => elements.processes.renamed(),
            Source::Log(log) => log.processes.renamed(),
        };
        Completeness { renamed, ..Completeness::of(known, plain, self.events, skipped) }
    }
}

impl Iterator for Records<'_> {
    type Item = Result<Record, LoadError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended.is_some() {
            return None;
        }
        let next = match &mut self.source {
            Source::Json(lines) => lines.next_record(),
            Source::Edn(elements) => elements.next_record(),
            Source::Log(log) => log.next_record(),
        };
        let error = match next {
            Ok(Some(mut record)) => {
                record.index = self.events;
                self.events += 1;
                return Some(Ok(record));
            }
            Ok(None) if self.events > 0 => {
                self.ended = Some(Ended::AtEnd);
                return None;
            }
            Ok(None) => {
                self.ended = Some(Ended::AtEnd);
                self.completeness().without_operations()
            }
            Err(error) => error,
        };
        self.ended = Some(Ended::ByError(error.to_string()));
        Some(Err(error))
    }
}
