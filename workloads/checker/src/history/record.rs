//! One line of a history: an invocation or a completion.
//!
//! A line says who asked what, when, and what the reply carried. There is one definition of it, [`Line`], in
//! two degrees of knowledge. A [`Record`] is a line of any object: what was asked is a word, and values have
//! any shape. An [`Event`] is a line of a register, a set or a list of integers. It is small and is read
//! without allocation, because millions of them are; `convert` makes it of a record.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::event::EventKind;
use super::function::Function;
use super::{Datum, Value};

/// Identifiers of 64 bits stand in the file as hexadecimal text, because JSON readers that take numbers as
/// doubles would round them.
mod hex {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};
    use std::borrow::Cow;

    #[expect(clippy::ref_option, reason = "the signature is serde's")]
    pub(super) fn serialize<S: Serializer>(value: &Option<u64>, serializer: S) -> Result<S::Ok, S::Error> {
        match value {
            Some(value) => serializer.collect_str(&format_args!("{value:#x}")),
            None => serializer.serialize_none(),
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
        let Some(text) = Option::<Cow<'de, str>>::deserialize(deserializer)? else { return Ok(None) };
        let digits = text.strip_prefix("0x").ok_or_else(|| D::Error::custom("expected 0x and hex digits"))?;
        u64::from_str_radix(digits, 16)
            .map(Some)
            .map_err(|_| D::Error::custom("expected 0x and at most 16 hex digits"))
    }
}

/// One invocation or completion. `F` is what was asked, `K` its key, `V` its value, and `X` holds what else
/// was read.
///
/// The fields after `time` are optional; histories from elsewhere have none of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Line<F, K, V, X> {
    /// The number of the line, from 1 (of the one on which the element begins, where elements span lines); 0
    /// for what was not read from a file.
    #[serde(skip)]
    pub line: u64,
    /// The position among all records of the file, from 0; a writer assigns it.
    #[serde(default)]
    pub index: u64,
    /// The logical process: one operation at a time, retired after an unknown outcome.
    pub process: u64,
    /// Invocation or completion.
    #[serde(rename = "type")]
    pub kind: EventKind,
    /// What was asked: `read`, `acquire`, `txn`.
    pub f: F,
    /// The key, where the line has one of its own.
    #[serde(default)]
    pub key: K,
    /// The argument or the result.
    #[serde(default)]
    pub value: V,
    /// Nanoseconds since the start of the run. Without it the order of the lines is the order of time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<u64>,
    /// When the operation was due (invocations of an open loop).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due: Option<u64>,
    /// The member that the client spoke to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<u64>,
    /// The member that did it, by the answer's own word: a client may be sent on by the one that it asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<u64>,
    /// The session's bits.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "hex")]
    pub session: Option<u64>,
    /// The zxid in the reply's header.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "hex")]
    pub zxid: Option<u64>,
    /// The version in the reply's Stat.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<i64>,
    /// The mzxid in the reply's Stat.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "hex")]
    pub mzxid: Option<u64>,
    /// The version that a compare-and-set asks for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expect: Option<i64>,
    /// The error's name, lower case with hyphens; in histories from elsewhere any text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Arc<str>>,
    /// Whatever else the line says.
    #[serde(skip)]
    pub extra: X,
}

/// A line of a register, a set or a list of integers. Unknown fields are ignored.
pub type Event = Line<Function, u64, Value, ()>;

/// A line of any object. What else it says, for models that know more, is a map or nothing.
pub type Record = Line<Arc<str>, Datum, Datum, Datum>;

impl<F, K, V, X: Default> Line<F, K, V, X> {
    fn bare(process: u64, kind: EventKind, f: F, key: K, value: V) -> Self {
        Self {
            line: 0,
            index: 0,
            process,
            kind,
            f,
            key,
            value,
            time: None,
            due: None,
            node: None,
            by: None,
            session: None,
            zxid: None,
            version: None,
            mzxid: None,
            expect: None,
            error: None,
            extra: X::default(),
        }
    }

    /// The same line, with what was asked in other terms.
    pub(super) fn in_terms_of<G, L, W, Y: Default>(self, f: G, key: L, value: W) -> Line<G, L, W, Y> {
        let Self { line, index, process, kind, f: _, key: _, value: _, time, due, node, session, .. } = self;
        let Self { by, zxid, version, mzxid, expect, error, .. } = self;
        let bare = Line::bare(process, kind, f, key, value);
        Line { line, index, time, due, node, by, session, zxid, version, mzxid, expect, error, ..bare }
    }
}

impl Event {
    /// A line with the required fields only.
    #[must_use]
    pub fn new(process: u64, kind: EventKind, f: Function, key: u64, value: Value, time_ns: u64) -> Self {
        Self { time: Some(time_ns), ..Self::bare(process, kind, f, key, value) }
    }

    /// Whether the line carries a field that only this project's own recorder writes.
    #[must_use]
    pub(crate) fn is_recorded(&self) -> bool {
        self.due.is_some() || self.node.is_some() || self.session.is_some() || self.version.is_some()
    }
}

impl Record {
    /// A line with the required fields only.
    #[must_use]
    pub fn new(process: u64, kind: EventKind, f: &str, key: Datum, value: Datum) -> Self {
        Self::bare(process, kind, Arc::from(f), key, value)
    }
}

impl From<Event> for Record {
    fn from(event: Event) -> Self {
        let f = Arc::from(event.f.as_str());
        let key = i64::try_from(event.key).map_or(Datum::Nil, Datum::Int);
        let value = Datum::from(&event.value);
        event.in_terms_of(f, key, value)
    }
}
