//! What a line says, field by field, whatever its syntax: JSON and EDN name the same fields.
//!
//! A field that is known by name but has a shape of its own (a node that is called `n1`, a session that is a
//! map) is not refused, because histories from elsewhere have such; it is kept among the rest, for models
//! that know more.

use std::sync::Arc;

use super::processes::{Processes, Who};
use super::{Datum, EventKind, Record};

/// Words that occur on every line, held once.
#[derive(Default)]
pub(super) struct Words(Vec<Arc<str>>);

/// Most words that are remembered, and the longest of them. A history has a dozen; the bound keeps the search
/// short.
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

/// The fields that are known by name.
const KNOWN: [&str; 16] = [
    "process", "type", "f", "index", "due", "key", "value", "error", "time", "node", "by", "version",
    "expect", "session", "zxid", "mzxid",
];

/// The fields of a line as far as they were read.
pub(super) struct Fields {
    process: Option<Who>,
    kind: Option<EventKind>,
    f: Option<Arc<str>>,
    /// The fields that may be absent.
    record: Record,
    extra: Vec<(Datum, Datum)>,
    /// The fields known by name that were read, a bit each.
    seen: u16,
    /// Whether one of the fields that only this project's own recorder writes is there.
    pub(super) recorded: bool,
}

impl Default for Fields {
    fn default() -> Self {
        let record = Record::new(0, EventKind::Invoke, "", Datum::Nil, Datum::Nil);
        Self { process: None, kind: None, f: None, record, extra: Vec::new(), seen: 0, recorded: false }
    }
}

impl Fields {
    /// Takes one field.
    ///
    /// # Errors
    /// What is wrong with it; also when it stands twice, because readers differ in which one they believe.
    pub(super) fn set(&mut self, name: &str, datum: Datum) -> Result<(), String> {
        let is_new = match KNOWN.iter().position(|known| *known == name) {
            Some(at) => {
                let before = self.seen;
                self.seen |= 1 << at;
                before != self.seen
            }
            None => !self.extra.iter().any(|(extra, _)| extra.as_text() == Some(name)),
        };
        if !is_new {
            return Err(format!("the field {name} stands twice"));
        }
        if matches!(name, "process" | "type" | "f") {
            return self.set_head(name, datum);
        }
        let record = &mut self.record;
        let natural = datum.as_int().and_then(|value| u64::try_from(value).ok());
        self.recorded |= matches!(name, "due" | "node" | "session" | "version") && !datum.is_nil();
        match (name, natural, &datum) {
            ("index", Some(index), _) => record.index = index,
            ("due", Some(due), _) => record.due = Some(due),
            ("index" | "due", ..) => {}
            ("key", ..) => record.key = datum,
            ("value", ..) => record.value = datum,
            ("error", ..) => record.error = error_text(&datum),
            ("time", Some(time), _) => record.time = Some(time),
            ("time", None, Datum::Int(_)) => return Err("a time is not negative".to_owned()),
            ("node", Some(node), _) => record.node = Some(node),
            ("by", Some(by), _) => record.by = Some(by),
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
                self.process = Some(Who::of_number(process)?);
            }
            // Some write all their numbers as text.
            ("process", Datum::Text(name)) => self.process = Some(Who::of(name)?),
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

    /// All fields were read: the record, whose place the reader knows, or none if whoever speaks is no
    /// client.
    pub(super) fn finish(self, processes: &mut Processes) -> Result<Option<Record>, String> {
        let missing = |name: &str| format!("the field {name} is missing");
        let who = self.process.ok_or_else(|| missing("process"))?;
        if who == Who::Nemesis {
            return Ok(None);
        }
        let kind = self.kind.ok_or_else(|| missing("type"))?;
        let f = self.f.ok_or_else(|| missing("f"))?;
        // Nobody gets a number for a line that is refused.
        let Some(process) = processes.number(&who) else { return Ok(None) };
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
    fn who_has_a_name_is_a_client_and_the_nemesis_is_none() {
        let mut processes = Processes::default();
        let mut line = |process: Datum| {
            let mut fields = Fields::default();
            fields.set("process", process)?;
            fields.set("type", Datum::text("invoke"))?;
            fields.set("f", Datum::text("read"))?;
            Ok::<_, String>(fields.finish(&mut processes)?.map(|record| record.process))
        };
        assert_eq!(line(Datum::text("nemesis")), Ok(None));
        assert_eq!(line(Datum::text("17")), Ok(Some(17)));
        assert_eq!(line(Datum::Int(17)), Ok(Some(17)));
        assert_eq!(line(Datum::text("worker-1")), Ok(Some(crate::history::processes::END)));
        assert!(line(Datum::text("1.5")).is_err() && line(Datum::Int(-1)).is_err());
    }

    #[test]
    fn a_field_that_stands_twice_is_refused_known_or_not() {
        for name in ["process", "value", "took"] {
            let mut fields = Fields::default();
            fields.set(name, Datum::Int(1)).unwrap();
            assert_eq!(fields.set(name, Datum::Int(1)), Err(format!("the field {name} stands twice")));
        }
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
        let record = fields.finish(&mut Processes::default()).unwrap().unwrap();
        assert_eq!((record.node, record.session, record.zxid), (None, Some(0x1f), Some(7)));
        assert_eq!(record.extra.get("node"), Some(&Datum::text("n1")));
        assert_eq!(record.extra.get("latency"), Some(&Datum::text("1.5")));
    }
}
