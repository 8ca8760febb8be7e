//! A history in lines of JSON: one object to a line.
//!
//! Any function and any value are read, and so is any further field. Whether all lines are there is for
//! [`super::seal`] to say.

use std::borrow::Cow;
use std::fmt;
use std::io::BufRead;

use serde::Deserialize;
use serde::de::{Deserializer, Error as _, MapAccess, Visitor};

use super::fields::Fields;
use super::limits::read_line;
use super::load_error::in_one_line;
use super::processes::Processes;
use super::seal::Seal;
use super::{Datum, LoadError, Record};

/// What a line of JSON says.
pub(super) struct Said {
    /// The record, whose place the reader knows; none if whoever speaks is no client.
    pub(super) record: Option<Record>,
    /// Whether a field of it is one that only this project's own recorder writes.
    pub(super) recorded: bool,
}

/// Reads one line, without its end: any `f`, any value, any further fields.
pub(super) fn line_to_record(text: &[u8], processes: &mut Processes) -> Result<Said, String> {
    let fields: Fields = serde_json::from_slice(text).map_err(|error| in_one_line(&error))?;
    let recorded = fields.recorded;
    Ok(Said { record: fields.finish(processes)?, recorded })
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
            match read_line(&mut self.reader, &mut self.line, self.number) {
                Ok(0) => return Ok(None),
                Ok(_) => {}
                Err(error) => return self.seal.breaks_off(error).map(|()| None),
            }
            let processes = &mut self.processes;
            let parse = |text: &[u8]| line_to_record(text, processes);
            let Some(Said { record, recorded }) = self.seal.line(&self.line, self.number, parse)? else {
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
        let text = concat!(
            r#"{"process":4,"type":"ok","f":"txn","value":[["r",3,[1]],["append",3,2]],"time":9,"#,
            r#""node":"n1","took":1.5,"\u0065rror":{"a":1}}"#
        );
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
