//! One line of a history.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::Value;

/// The error that marks a compare-and-set refused for its version: a definite observation.
pub const BAD_VERSION: &str = "bad-version";

/// Whether a line is an invocation or one of the three completions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EventKind {
    /// A client asks.
    Invoke,
    /// It happened.
    Ok,
    /// It did not happen and never will.
    Fail,
    /// Nobody knows.
    Info,
}

/// What a client asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Function {
    /// Read a register, a set or a list.
    Read,
    /// Write a register.
    Write,
    /// Write it if it holds an expected value.
    Cas,
    /// Put a unique element into a set.
    Add,
    /// Put a unique element at the end of a list.
    Append,
    /// Make a named node; without a value, the place that others are made in.
    Create,
    /// Delete a named node.
    Delete,
    /// Ask whether a named node is there.
    Exists,
    /// Open a session.
    Open,
    /// Close the session.
    Close,
    /// Leave the session to expire. Nothing is sent.
    Abandon,
}

impl Function {
    /// All of them, in the order of reports.
    pub const ALL: [Self; 11] = [
        Self::Read,
        Self::Write,
        Self::Cas,
        Self::Add,
        Self::Append,
        Self::Create,
        Self::Delete,
        Self::Exists,
        Self::Open,
        Self::Close,
        Self::Abandon,
    ];

    /// Those of a register.
    pub const REGISTER: [Self; 3] = [Self::Read, Self::Write, Self::Cas];

    /// The word used in files.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Cas => "cas",
            Self::Add => "add",
            Self::Append => "append",
            Self::Create => "create",
            Self::Delete => "delete",
            Self::Exists => "exists",
            Self::Open => "open",
            Self::Close => "close",
            Self::Abandon => "abandon",
        }
    }

    /// Whether it asks for a change of what the system holds: only then an unknown fate may still take effect.
    #[must_use]
    pub fn is_change(self) -> bool {
        match self {
            Self::Read | Self::Exists | Self::Abandon => false,
            Self::Write
            | Self::Cas
            | Self::Add
            | Self::Append
            | Self::Create
            | Self::Delete
            | Self::Open
            | Self::Close => true,
        }
    }
}

impl fmt::Display for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

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

/// One line of a history: an invocation or a completion.
///
/// The fields after `time` are optional; histories from elsewhere have none of them, and unknown fields are
/// ignored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// Position in the file; the writer assigns it.
    #[serde(default)]
    pub index: u64,
    /// The logical process: one operation at a time, retired after an unknown outcome.
    pub process: u64,
    /// Invocation or completion.
    #[serde(rename = "type")]
    pub kind: EventKind,
    /// What was asked.
    pub f: Function,
    /// The key.
    #[serde(default)]
    pub key: u64,
    /// The argument or the result.
    #[serde(default)]
    pub value: Value,
    /// Nanoseconds since the start of the run. Without it the order of the lines is the order of time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<u64>,
    /// When the operation was due (invocations of an open loop).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due: Option<u64>,
    /// The member that the client spoke to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<u64>,
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
    /// The error's name, lower case with hyphens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl Event {
    /// A line with the required fields only.
    #[must_use]
    pub fn new(process: u64, kind: EventKind, f: Function, key: u64, value: Value, time_ns: u64) -> Self {
        Self {
            index: 0,
            process,
            kind,
            f,
            key,
            value,
            time: Some(time_ns),
            due: None,
            node: None,
            session: None,
            zxid: None,
            version: None,
            mzxid: None,
            expect: None,
            error: None,
        }
    }

    /// Whether the line carries a field that only this project's own recorder writes.
    #[must_use]
    pub(crate) fn is_recorded(&self) -> bool {
        self.due.is_some() || self.node.is_some() || self.session.is_some() || self.version.is_some()
    }
}
