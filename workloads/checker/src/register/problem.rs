//! The operations of one key in the form that the algorithms work on.
//!
//! Only what constrains an order is kept: operations that happened, changes whose fate is unknown, and
//! refused compare-and-sets (each says that at some moment the register did not hold what was asked for).
//! Values are numbered from 0, which is the register that nobody wrote.

use std::collections::HashMap;

use crate::history::{NEVER, Op, OpKind, Outcome, Rank};

/// A value's number in a [`Problem`].
pub type Val = u32;

/// The register that nobody wrote.
pub const NIL: Val = 0;

/// What an entry does to the register, or says about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// It held this value.
    Read(Val),
    /// It holds this value from here on.
    Write(Val),
    /// It held `from`, and holds `to` from here on.
    Cas {
        /// The value before.
        from: Val,
        /// The value after.
        to: Val,
    },
    /// It did not hold this value.
    Refused(Val),
}

impl Action {
    /// The value that the register holds afterwards, if this changes it.
    #[must_use]
    pub fn written(self) -> Option<Val> {
        match self {
            Self::Write(to) | Self::Cas { to, .. } => Some(to),
            Self::Read(_) | Self::Refused(_) => None,
        }
    }

    /// The value that the register must hold before.
    #[must_use]
    pub fn required(self) -> Option<Val> {
        match self {
            Self::Read(from) | Self::Cas { from, .. } => Some(from),
            Self::Write(_) | Self::Refused(_) => None,
        }
    }

    /// Whether the register holds afterwards what it held before, whenever this can happen.
    #[must_use]
    pub fn changes_nothing(self) -> bool {
        matches!(self, Self::Read(_) | Self::Refused(_))
    }

    /// The value that the register must hold before, or must not.
    #[must_use]
    pub fn mentioned(self) -> Option<Val> {
        match self {
            Self::Read(value) | Self::Cas { from: value, .. } | Self::Refused(value) => Some(value),
            Self::Write(_) => None,
        }
    }

    /// The same with other numbers for the values.
    #[must_use]
    pub fn map_values(self, number: impl Fn(Val) -> Val) -> Self {
        match self {
            Self::Read(value) => Self::Read(number(value)),
            Self::Write(to) => Self::Write(number(to)),
            Self::Cas { from, to } => Self::Cas { from: number(from), to: number(to) },
            Self::Refused(from) => Self::Refused(number(from)),
        }
    }

    /// The register afterwards, or none if this can't happen while it holds `state`.
    #[must_use]
    pub fn apply(self, state: Val) -> Option<Val> {
        match self {
            Self::Read(value) => (state == value).then_some(state),
            Self::Write(to) => Some(to),
            Self::Cas { from, to } => (state == from).then_some(to),
            Self::Refused(from) => (state != from).then_some(state),
        }
    }
}

/// One operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Rank of the call.
    pub call: Rank,
    /// Rank of the return, or [`NEVER`]: then it need not have happened.
    pub ret: Rank,
    /// What it does or says.
    pub action: Action,
    /// The version that the system reported with it.
    pub version: Option<i64>,
    /// Where the operation stands in the list that the problem was made from.
    pub op: usize,
}

impl Entry {
    /// Whether its fate is unknown.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.ret == NEVER
    }
}

/// The constraints on an order, sorted by call.
#[derive(Clone, Debug, Default)]
pub struct Problem {
    /// The operations, sorted by call.
    pub entries: Vec<Entry>,
    /// How many entries write each value.
    pub sources: Vec<u32>,
    /// Whether some compare-and-set was refused.
    pub has_refused: bool,
}

impl Problem {
    /// The problem of one key's operations.
    #[must_use]
    pub fn of(ops: &[&Op]) -> Self {
        let mut numbers: HashMap<i64, Val> = HashMap::new();
        let mut number = |value: Option<i64>| match value {
            None => NIL,
            Some(value) => {
                let next = Val::try_from(numbers.len() + 1).unwrap_or(Val::MAX);
                *numbers.entry(value).or_insert(next)
            }
        };
        let entries = ops.iter().enumerate().filter_map(|(at, op)| {
            let action = action_of(op, &mut number)?;
            Some(Entry { call: op.call, ret: op.ret, action, version: op.version, op: at })
        });
        Self::new(entries.collect())
    }

    /// The problem of these entries.
    #[must_use]
    pub fn new(mut entries: Vec<Entry>) -> Self {
        entries.sort_by_key(|entry| entry.call);
        let highest = entries.iter().map(|entry| match entry.action {
            Action::Read(v) | Action::Write(v) | Action::Refused(v) => v,
            Action::Cas { from, to } => from.max(to),
        });
        let values = highest.max().map_or(1, |highest| index(highest) + 1);
        let mut sources = vec![0; values];
        for value in entries.iter().filter_map(|entry| entry.action.written()) {
            sources[index(value)] += 1;
        }
        let has_refused = entries.iter().any(|entry| matches!(entry.action, Action::Refused(_)));
        Self { entries, sources, has_refused }
    }

    /// How many values there are, the unwritten one included.
    #[must_use]
    pub fn values(&self) -> usize {
        self.sources.len()
    }

    /// Whether the register can come to hold `value` in one way only, so that once left it never comes back.
    #[must_use]
    pub fn is_single_source(&self, value: Val) -> bool {
        self.sources[index(value)] + u32::from(value == NIL) <= 1
    }

    /// Whether every value names the one operation that it came from.
    #[must_use]
    pub fn is_unambiguous(&self) -> bool {
        self.sources[index(NIL)] == 0 && self.sources.iter().all(|&count| count <= 1)
    }
}

/// What an operation did to the register or said about it, if anything; `number` numbers the values.
pub(super) fn action_of(op: &Op, number: &mut impl FnMut(Option<i64>) -> Val) -> Option<Action> {
    match (op.kind(), op.outcome) {
        (OpKind::Read { value }, Outcome::Ok) => Some(Action::Read(number(value))),
        (OpKind::Write { value }, Outcome::Ok | Outcome::Info) => Some(Action::Write(number(Some(value)))),
        (OpKind::Cas { from, to }, Outcome::Ok | Outcome::Info) => {
            Some(Action::Cas { from: number(from), to: number(Some(to)) })
        }
        (OpKind::Cas { from, .. }, Outcome::Fail) if op.is_refused_cas() => {
            Some(Action::Refused(number(from)))
        }
        _ => None,
    }
}

/// A value's number as an index.
#[must_use]
pub(crate) fn index(value: Val) -> usize {
    // Values are numbered densely from 0 and fit an address space that holds their entries.
    usize::try_from(value).unwrap_or(usize::MAX)
}
