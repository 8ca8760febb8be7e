//! One line of a history of any format, before a model has said what it means.

use std::sync::Arc;

use super::{Datum, Event, EventKind};

/// One invocation or completion, as the file has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The line, from 1 (the one on which the element begins, where elements span lines).
    pub line: u64,
    /// The position among all records of the file, from 0.
    pub index: u64,
    /// The logical process.
    pub process: u64,
    /// Invocation or completion.
    pub kind: EventKind,
    /// What was asked: `read`, `acquire`, `txn`.
    pub f: Arc<str>,
    /// The key, where the line has one of its own.
    pub key: Datum,
    /// The argument or the result.
    pub value: Datum,
    /// Nanoseconds since the start of the run. Without it the order of the lines is the order of time.
    pub time: Option<u64>,
    /// The member that the client spoke to.
    pub node: Option<u64>,
    /// The session's bits.
    pub session: Option<u64>,
    /// The zxid in the reply's header.
    pub zxid: Option<u64>,
    /// The version in the reply's Stat.
    pub version: Option<i64>,
    /// The mzxid in the reply's Stat.
    pub mzxid: Option<u64>,
    /// The version that a compare-and-set asks for.
    pub expect: Option<i64>,
    /// The error's name or, of another shape, its text.
    pub error: Option<Arc<str>>,
    /// Whatever else the line says, for models that know more (a map, or nothing).
    pub extra: Datum,
}

impl Record {
    /// A record with the required fields only.
    #[must_use]
    pub fn new(process: u64, kind: EventKind, f: &str, key: Datum, value: Datum) -> Self {
        Self {
            line: 0,
            index: 0,
            process,
            kind,
            f: Arc::from(f),
            key,
            value,
            time: None,
            node: None,
            session: None,
            zxid: None,
            version: None,
            mzxid: None,
            expect: None,
            error: None,
            extra: Datum::Nil,
        }
    }
}

impl From<&Event> for Record {
    fn from(event: &Event) -> Self {
        Self {
            line: event.index + 1,
            index: event.index,
            process: event.process,
            kind: event.kind,
            f: Arc::from(event.f.as_str()),
            key: i64::try_from(event.key).map_or(Datum::Nil, Datum::Int),
            value: Datum::from(&event.value),
            time: event.time,
            node: event.node,
            session: event.session,
            zxid: event.zxid,
            version: event.version,
            mzxid: event.mzxid,
            expect: event.expect,
            error: event.error.as_deref().map(Arc::from),
            extra: Datum::Nil,
        }
    }
}
