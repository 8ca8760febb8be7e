//! What a client asks for, in words.

use std::fmt;

use bytestring::ByteString;
use checker::history::{Function, Value};
use workloads::{Action, Invocation, Register, action};

/// Something that a client does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Deed {
    /// An operation of a workload.
    Operation(Box<Invocation>),
    /// A visitor makes an ephemeral node with a sequential name.
    Visit,
    /// A visitor looks whether its node is there.
    Revisit(ByteString),
    /// The end of the session.
    Goodbye,
}

/// The largest key that a script may name.
const MAX_KEY: u64 = 9_999;

/// The longest path that a script may name.
const MAX_PATH: usize = 200;

impl fmt::Display for Deed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Operation(invocation) => {
                let key = invocation.key;
                match (&invocation.action, invocation.value) {
                    (Action::SyncRead { .. }, _) => write!(f, "read r{key}"),
                    (Action::Create { .. }, Value::One(value)) => write!(f, "create r{key} {value}"),
                    (Action::Write { .. }, Value::One(value)) => write!(f, "write r{key} {value}"),
                    (Action::CasWrite { .. }, Value::Pair(Some(from), to)) => {
                        write!(f, "cas r{key} {from} to {to}")
                    }
                    (action, value) => write!(f, "{action:?} {value:?}"),
                }
            }
            Self::Visit => f.write_str("visit"),
            Self::Revisit(path) => write!(f, "revisit {path}"),
            Self::Goodbye => f.write_str("goodbye"),
        }
    }
}

impl Deed {
    /// The operation as a client can ask for it that was shown these (key, value, version); none when it was not
    /// shown the value that it wants to replace.
    pub(crate) fn asked(
        invocation: &Invocation,
        shown: impl Fn(u64, i64) -> Option<i32>,
    ) -> Option<Invocation> {
        let mut asked = invocation.clone();
        if let (Action::CasWrite { expect, .. }, Value::Pair(Some(from), _)) =
            (&mut asked.action, invocation.value)
        {
            *expect = shown(invocation.key, from)?;
            asked.expect = Some(*expect);
        }
        Some(asked)
    }

    /// The deed that these words describe.
    pub(super) fn parse(words: &[&str]) -> Result<Self, String> {
        Ok(match words {
            ["visit"] => Self::Visit,
            ["goodbye"] => Self::Goodbye,
            ["revisit", path] if path.starts_with('/') && path.len() <= MAX_PATH => {
                Self::Revisit(ByteString::from(*path))
            }
            ["read", key] => operation(Function::Read, register(key)?, Value::Null, None),
            ["create", key, value] => {
                let (key, value) = (register(key)?, number(value)?);
                let action = Action::Create { path: Register::path(key), data: action::encode(value) };
                let f = Function::Write;
                let value = Value::One(value);
                Self::Operation(Box::new(Invocation { f, key, value, expect: None, action }))
            }
            ["write", key, value] => {
                operation(Function::Write, register(key)?, Value::One(number(value)?), None)
            }
            // Its version is the one that was shown with the value.
            ["cas", key, from, "to", to] => {
                let value = Value::Pair(Some(number(from)?), number(to)?);
                operation(Function::Cas, register(key)?, value, Some(0))
            }
            _ => {
                return Err(
                    "read rK, write rK N, cas rK N to M, create rK N, visit, revisit PATH or goodbye"
                        .to_owned(),
                );
            }
        })
    }
}

fn operation(f: Function, key: u64, value: Value, expect: Option<i32>) -> Deed {
    let path = Register::path(key);
    let action = match (value, expect) {
        (Value::Pair(_, to), Some(expect)) => Action::CasWrite { path, data: action::encode(to), expect },
        (Value::One(to), _) => Action::Write { path, data: action::encode(to) },
        (Value::Null | Value::Pair(..), _) => Action::SyncRead { path },
    };
    Deed::Operation(Box::new(Invocation { f, key, value, expect, action }))
}

fn register(word: &str) -> Result<u64, String> {
    let key = word.strip_prefix('r').and_then(|key| key.parse().ok());
    key.filter(|key| *key <= MAX_KEY).ok_or_else(|| format!("a register r0 to r{MAX_KEY}"))
}

fn number(word: &str) -> Result<i64, String> {
    word.parse().map_err(|_| "a value".to_owned())
}
