//! Registers, as the commands of a log change them.

use std::collections::BTreeMap;
use std::fmt;

use checker::history::{BAD_VERSION, EventKind, Value};
use harness_protocols::Request;
use workloads::op::{Body, Object};
use workloads::{Claims, Op, Outcome, Refusal};

/// What a command does with a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Action {
    /// Makes it with a value, unless it is there.
    Make(u64, i64),
    /// Reads it.
    Read(u64),
    /// Writes it.
    Write(u64, i64),
    /// Replaces a value by another, if it is there; by its version, where that was shown.
    Cas(u64, i64, i64, Option<i64>),
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Make(key, value) => write!(f, "make {key} {value}"),
            Self::Read(key) => write!(f, "read {key}"),
            Self::Write(key, value) => write!(f, "write {key} {value}"),
            Self::Cas(key, from, to, _) => write!(f, "cas {key} {from} {to}"),
        }
    }
}

impl Action {
    /// What an operation asks for; none where these registers have no such thing.
    #[must_use]
    pub fn of(op: &Op) -> Option<Self> {
        match op.body {
            Body::MakeRegister { value } => Some(Self::Make(op.key, value)),
            Body::Read => Some(Self::Read(op.key)),
            Body::Write { value } => Some(Self::Write(op.key, value)),
            Body::Cas { from, to, basis } => Some(Self::Cas(op.key, from, to, basis)),
            _ => None,
        }
    }

    fn op(self) -> Op {
        let (key, body) = match self {
            Self::Make(key, value) => (key, Body::MakeRegister { value }),
            Self::Read(key) => (key, Body::Read),
            Self::Write(key, value) => (key, Body::Write { value }),
            Self::Cas(key, from, to, basis) => (key, Body::Cas { from, to, basis }),
        };
        Op::new(Object::REGISTER, key, body)
    }

    /// Whether it changes nothing.
    #[must_use]
    pub fn is_read(self) -> bool {
        matches!(self, Self::Read(_))
    }
}

/// A register: its value, and how often it was changed since it was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Register {
    value: i64,
    version: i64,
}

/// How a command ended: what is remembered of it, because its client may ask again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum End {
    Holds(Option<Register>),
    Exists,
    Missing,
    HoldsOther,
}

/// All registers, and how every command ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Registers {
    held: BTreeMap<u64, Register>,
    ended: BTreeMap<Request, (Action, End)>,
}

impl Registers {
    /// The answer to a request that has taken effect.
    #[must_use]
    pub fn answered(&self, request: Request) -> Option<Outcome> {
        self.ended.get(&request).map(|(action, end)| outcome(*action, *end))
    }

    /// Does what a command asks for, unless it is done already. `again` does it all the same.
    pub fn take(&mut self, request: Request, action: &Action, again: bool) -> Outcome {
        if let Some(outcome) = self.answered(request).filter(|_| !again) {
            return outcome;
        }
        let end = self.end(*action);
        if !action.is_read() || !again {
            self.ended.insert(request, (*action, end));
        }
        outcome(*action, end)
    }

    fn end(&mut self, action: Action) -> End {
        let (Action::Make(key, _) | Action::Read(key) | Action::Write(key, _) | Action::Cas(key, ..)) =
            action;
        let held = self.held.get(&key).copied();
        let changed = |value: i64| Register { value, version: held.map_or(0, |held| held.version + 1) };
        let (next, end) = match (action, held) {
            (Action::Make(..), Some(_)) => return End::Exists,
            (Action::Make(_, value), None) => (changed(value), None),
            (Action::Read(_), held) => return End::Holds(held),
            (Action::Write(_, value), _) => (changed(value), None),
            (Action::Cas(..), None) => return End::Missing,
            (Action::Cas(_, from, to, basis), Some(held)) => {
                let fits = basis.map_or(held.value == from, |basis| basis == held.version);
                if fits { (changed(to), None) } else { (held, Some(End::HoldsOther)) }
            }
        };
        self.held.insert(key, next);
        end.unwrap_or(End::Holds(Some(next)))
    }
}

fn outcome(action: Action, end: End) -> Outcome {
    let op = action.op();
    let failed = |error: &str, refusal| Outcome {
        refusal: Some(refusal),
        ..Outcome::without_result(EventKind::Fail, &op, error.to_owned())
    };
    match end {
        End::Holds(held) => {
            let value = match (action, held) {
                (Action::Read(_), held) => held.map_or(Value::Null, |held| Value::One(held.value)),
                _ => op.value(),
            };
            let claims = Claims { version: held.map(|held| held.version), ..Claims::default() };
            Outcome { claims, ..Outcome::told(value, None) }
        }
        End::Exists => failed("exists", Refusal::Exists),
        End::Missing => failed("missing", Refusal::Missing),
        End::HoldsOther => failed(BAD_VERSION, Refusal::Other),
    }
}
