//! A history in EDN, cut into its operations as a stream.
//!
//! The file is one list or vector of maps, or maps one after another. Where an element ends is found by
//! counting brackets, so one element at a time is in memory, whatever the size of the file; [`super::edn`]
//! then reads it.

use std::io::BufRead;

use super::edn::{Fault, Parser, is_blank};
use super::failure::{Failure, name_failure};
use super::fields::Words;
use super::limits::MAX_LINE_BYTES;
use super::processes::Processes;
use super::{LoadError, Record};

/// The list around the elements.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Around {
    /// None was opened, yet or at all.
    Nothing,
    /// It is open and this byte closes it.
    Open(u8),
    /// It was closed: nothing may follow.
    Closed,
}

/// Where in an element a byte stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Outside every element.
    Between,
    /// In a comment outside every element.
    CommentBetween,
    Form,
    String,
    /// After a backslash in a string.
    Escape,
    Comment,
    /// After the backslash that begins a character.
    Character,
}

impl Place {
    /// Whether it is in an element.
    fn is_inside(self) -> bool {
        !matches!(self, Self::Between | Self::CommentBetween)
    }

    /// Where the byte after this one stands, brackets and what is between elements aside.
    fn after(self, byte: u8) -> Self {
        match (self, byte) {
            (Self::Form, b'"') | (Self::Escape, _) => Self::String,
            (Self::Form, b';') => Self::Comment,
            (Self::Form, b'\\') => Self::Character,
            (Self::String, b'"') | (Self::Comment, b'\n') | (Self::Character, _) => Self::Form,
            (Self::String, b'\\') => Self::Escape,
            (Self::CommentBetween, b'\n') => Self::Between,
            (place, _) => place,
        }
    }
}

/// Where the byte after this one stands, which is between elements. It may open or close the list around
/// them.
///
/// # Errors
/// What is wrong with it.
fn between(around: &mut Around, begun: bool, byte: u8) -> Result<Place, String> {
    match (byte, *around) {
        (byte, _) if is_blank(byte) => Ok(Place::Between),
        (b';', _) => Ok(Place::CommentBetween),
        (b'[' | b'(', Around::Nothing) if !begun => {
            *around = Around::Open(if byte == b'[' { b']' } else { b')' });
            Ok(Place::Between)
        }
        (_, Around::Open(end)) if byte == end => {
            *around = Around::Closed;
            Ok(Place::Between)
        }
        (_, Around::Closed) => Err("something follows the end of the list".to_owned()),
        (b']' | b')' | b'}', _) => Err(format!("{:?} closes nothing", char::from(byte))),
        (b'"', _) => Ok(Place::String),
        (b'\\', _) => Ok(Place::Character),
        _ => Ok(Place::Form),
    }
}

/// The operations of a history in EDN.
pub(super) struct Elements<R> {
    reader: R,
    words: Words,
    element: Vec<u8>,
    around: Around,
    /// The line that is being read, from 1.
    line: u64,
    /// Whether an element was seen: then a list can't be around all of them any more.
    begun: bool,
    pub(super) skipped: u64,
    pub(super) processes: Processes,
    pub(super) problem: Option<String>,
}

impl<R: BufRead> Elements<R> {
    pub(super) fn new(reader: R) -> Self {
        Self {
            reader,
            words: Words::default(),
            element: Vec::new(),
            around: Around::Nothing,
            line: 1,
            begun: false,
            skipped: 0,
            processes: Processes::default(),
            problem: None,
        }
    }

    pub(super) fn next_record(&mut self) -> Result<Option<Record>, LoadError> {
        while let Some((line, whole)) = self.next_element()? {
            match self.read_element(line) {
                // An element that the end of the file ended may be half of one, even if it looks whole.
                Ok(Some(_)) | Err(_) if !whole => {
                    self.problem = Some(format!("line {line}: the last element is cut short"));
                }
                Ok(Some(record)) => {
                    self.begun = true;
                    match record {
                        Some(record) => return Ok(Some(record)),
                        None => self.skipped += 1,
                    }
                }
                Ok(None) => {}
                Err(fault) => {
                    let before = self.element[..fault.at].iter().filter(|&&byte| byte == b'\n').count();
                    let line = line + u64::try_from(before).unwrap_or(0);
                    return Err(LoadError::Malformed { line, reason: fault.reason });
                }
            }
        }
        if let (Around::Open(_), None) = (self.around, &self.problem) {
            self.problem = Some("the list is not closed: the end of the history may be lost".to_owned());
        }
        Ok(None)
    }

    /// The record of the element in memory; none inside if it is no client's; none at all if it is discarded.
    fn read_element(&mut self, line: u64) -> Result<Option<Option<Record>>, Fault> {
        let mut parser = Parser::new(&self.element, &mut self.words);
        let Some(operation) = parser.operation()? else { return Ok(None) };
        let record =
            operation.fields.finish(&mut self.processes).map_err(|reason| Fault { at: 0, reason })?;
        Ok(Some(record.map(|mut record| {
            record.line = line;
            name_failure(&mut record, operation.value_is_keyword, Failure::DidNotHappen);
            record
        })))
    }

    /// Brings the next element into memory and tells the line on which it begins, and whether its own end
    /// ended it.
    fn next_element(&mut self) -> Result<Option<(u64, bool)>, LoadError> {
        self.element.clear();
        let mut place = Place::Between;
        let mut begins = self.line;
        let mut depth = 0_u64;
        loop {
            let chunk = self.reader.fill_buf()?;
            if chunk.is_empty() {
                return Ok(place.is_inside().then_some((begins, false)));
            }
            let mut from = 0;
            let mut taken = 0;
            let mut ended = false;
            for &byte in chunk {
                taken += 1;
                self.line += u64::from(byte == b'\n');
                match (place, byte) {
                    (Place::Form, b'[' | b'(' | b'{') => depth += 1,
                    (Place::Form, b']' | b')' | b'}') => {
                        // A bracket that closes what this element did not open ends it: the list around.
                        if depth == 0 {
                            taken -= 1;
                        }
                        depth = depth.saturating_sub(1);
                        if depth == 0 {
                            ended = true;
                            break;
                        }
                    }
                    (Place::Between, byte) => {
                        let line = self.line;
                        place = between(&mut self.around, self.begun, byte)
                            .map_err(|reason| LoadError::Malformed { line, reason })?;
                        if place.is_inside() {
                            (from, begins) = (taken - 1, line);
                            depth = u64::from(matches!(byte, b'{' | b'[' | b'('));
                        }
                    }
                    _ => place = place.after(byte),
                }
            }
            if place.is_inside() {
                if self.element.len() + (taken - from) > MAX_LINE_BYTES {
                    let reason = format!("an element is longer than {MAX_LINE_BYTES} bytes");
                    return Err(LoadError::Malformed { line: begins, reason });
                }
                self.element.extend_from_slice(&chunk[from..taken]);
            }
            self.reader.consume(taken);
            if ended {
                return Ok(Some((begins, true)));
            }
        }
    }
}
