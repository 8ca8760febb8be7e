//! What a line says, field by field, whatever its syntax: JSON and EDN name the same fields.
//!
//! A field that is known by name but has a shape of its own (a node that is called `n1`, a session that is a map) is
//! not refused, because histories from elsewhere have such; it is kept among the rest, for models that know more.

use std::sync::Arc;

use super::{Datum, EventKind, Record};

/// Words that occur on every line, held once.
#[derive(Default)]
pub(super) struct Words(Vec<Arc<str>>);

/// Most words that are remembered, and the longest of them. A history has a dozen; the bound keeps the search short.
const MAX_WORDS: usize = 24;
const MAX_WORD_BYTES: usize = 16;

impl Words {
    /// The word, shared with whoever had it before.
    pub(super) fn word(&mut self, word: &str) -> Arc<str> {
        if let Some(known) = self.0.iter().find(|known| &***known == word) {
            return Arc::clone(known);
        }
        let word: Arc<str> = Arc::from(word);
        if word.len() <= MAX_WORD_BYTES && self.0.len() < MAX_WORDS {
            self.0.push(Arc::clone(&word));
        }
        word
    }
}

enum Process {
    Client(u64),
    Other,
}

/// The fields of a line as far as they were read.
pub(super) struct Fields {
    process: Option<Process>,
    kind: Option<EventKind>,
    f: Option<Arc<str>>,
    /// The fields that may be absent.
    record: Record,
    extra: Vec<(Datum, Datum)>,
    /// Whether one of the fields that only this project's own recorder writes is there.
    pub(super) recorded: bool,
}

impl Default for Fields {
    fn default() -> Self {
        let record = Record::new(0, EventKind::Invoke, "", Datum::Nil, Datum::Nil);
        Self { process: None, kind: None, f: None, record, extra: Vec::new(), recorded: false }
    }
}

impl Fields {
    /// Takes one field.
    pub(super) fn set(&mut self, name: &str, datum: Datum) -> Result<(), String> {
        if matches!(name, "process" | "type" | "f") {
            return self.set_head(name, datum);
        }
        let record = &mut self.record;
        let natural = datum.as_int().and_then(|value| u64::try_from(value).ok());
        self.recorded |= matches!(name, "due" | "node" | "session" | "version") && !datum.is_nil();
        match (name, natural, &datum) {
            ("index" | "due", ..) => {}
            ("key", ..) => record.key = datum,
            ("value", ..) => record.value = datum,
            ("error", ..) => record.error = error_text(&datum),
            ("time", Some(time), _) => record.time = Some(time),
            ("time", None, Datum::Int(_)) => return Err("a time is not negative".to_owned()),
            ("node", Some(node), _) => record.node = Some(node),
            ("version", _, Datum::Int(version)) => record.version = Some(*version),
            ("expect", _, Datum::Int(version)) => record.expect = Some(*version),
            ("session" | "zxid" | "mzxid", ..) if natural.or_else(|| hex(&datum)).is_some() => {
                let bits = natural.or_else(|| hex(&datum));
                match name {
                    "session" => record.session = bits,
                    "zxid" => record.zxid = bits,
                    _ => record.mzxid = bits,
                }
            }
            (_, _, Datum::Nil) => {}
            _ => self.extra.push((Datum::text(name), datum)),
        }
        Ok(())
    }

    fn set_head(&mut self, name: &str, datum: Datum) -> Result<(), String> {
        match (name, &datum) {
            ("process", Datum::Int(process)) => {
                let process = u64::try_from(*process).map_err(|_| "a process is not negative".to_owned())?;
                self.process = Some(Process::Client(process));
            }
            // Some write all their numbers as text. Who has a name is no client.
            ("process", Datum::Text(name)) => {
                self.process = Some(name.parse().map_or(Process::Other, Process::Client));
            }
            ("type", Datum::Text(kind)) => {
                let known = event_kind(kind.as_bytes());
                let known = known.ok_or_else(|| format!("{kind} is none of invoke, ok, fail and info"))?;
                self.kind = Some(known);
            }
            ("f", Datum::Text(f)) => self.f = Some(Arc::clone(f)),
            // The nemesis may say nothing; of a client it is missed at the end.
            ("f", Datum::Nil) => {}
            _ => return Err(format!("{datum} is no {name}")),
        }
        Ok(())
    }

    /// All fields were read: the record, whose place the reader knows, or none if whoever speaks is no client.
    pub(super) fn finish(self) -> Result<Option<Record>, String> {
        let missing = |name: &str| format!("the field {name} is missing");
        let process = match self.process {
            None => return Err(missing("process")),
            Some(Process::Other) => return Ok(None),
            Some(Process::Client(process)) => process,
        };
        let kind = self.kind.ok_or_else(|| missing("type"))?;
        let f = self.f.ok_or_else(|| missing("f"))?;
        let extra = if self.extra.is_empty() { Datum::Nil } else { Datum::Map(self.extra) };
        Ok(Some(Record { process, kind, f, extra, ..self.record }))
    }
}

/// The kind that a word names.
pub(super) fn event_kind(word: &[u8]) -> Option<EventKind> {
    match word {
        b"invoke" => Some(EventKind::Invoke),
        b"ok" => Some(EventKind::Ok),
        b"fail" => Some(EventKind::Fail),
        b"info" => Some(EventKind::Info),
        _ => None,
    }
}

/// An error's name, or what it says where it has more than a name.
pub(super) fn error_text(datum: &Datum) -> Option<Arc<str>> {
    match datum {
        Datum::Nil => None,
        Datum::Text(name) => Some(Arc::clone(name)),
        other => Some(Arc::from(other.to_string())),
    }
}

/// The bits of `"0x1f"`.
fn hex(datum: &Datum) -> Option<u64> {
    u64::from_str_radix(datum.as_text()?.strip_prefix("0x")?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_a_name_is_no_client_and_who_has_a_number_in_quotes_is_one() {
        let line = |process: Datum| {
            let mut fields = Fields::default();
            fields.set("process", process).unwrap();
            fields.set("type", Datum::text("invoke")).unwrap();
            fields.set("f", Datum::text("read")).unwrap();
            fields.finish().unwrap()
        };
        assert!(line(Datum::text("nemesis")).is_none());
        assert!(line(Datum::text("17")).is_some_and(|record| record.process == 17));
        assert!(line(Datum::Int(17)).is_some_and(|record| record.process == 17));
    }

    #[test]
    fn a_field_of_another_shape_is_kept_among_the_rest() {
        let mut fields = Fields::default();
        for (name, datum) in [
            ("process", Datum::Int(1)),
            ("type", Datum::text("ok")),
            ("f", Datum::text("read")),
            ("node", Datum::text("n1")),
            ("session", Datum::text("0x1f")),
            ("zxid", Datum::Int(7)),
            ("latency", Datum::text("1.5")),
        ] {
            fields.set(name, datum).unwrap();
        }
        let record = fields.finish().unwrap().unwrap();
        assert_eq!((record.node, record.session, record.zxid), (None, Some(0x1f), Some(7)));
        assert_eq!(record.extra.get("node"), Some(&Datum::text("n1")));
        assert_eq!(record.extra.get("latency"), Some(&Datum::text("1.5")));
    }
}
