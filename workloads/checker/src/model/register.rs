//! A register with read, write and compare-and-set.
//!
//! [`crate::register`] decides most histories of registers without a search, and leaves the others to the
//! searches of any object, for which the register is a model like another.
//!
//! Histories from elsewhere differ in what a failed compare-and-set says. In the text logs of etcd's tests it
//! says that the register did not hold what was asked for; in Knossos it did not happen, for whatever reason.
//! What is less is the default: it accuses nobody wrongly. The same goes for a read of nothing, which in
//! Knossos says nothing.
//!
//! What nobody reads or asks for is one value to the searches: writes of such values do the same.

use std::collections::HashSet;
use std::sync::Arc;

use super::names::Names;
use super::{Call, Model, Since};
use crate::history::{BAD_VERSION, Datum, EventKind, Rank, Record};
use crate::register::part;
pub use crate::register::problem::Action;
use crate::register::problem::{Entry, NIL, Problem, Val};

/// A register.
#[derive(Debug)]
pub struct Register {
    names: Arc<Names>,
    initial: Val,
    refusals_observe: bool,
    nothing_is_read: bool,
    /// What is read or asked for, if all other values are to be one.
    asked_for: Option<HashSet<Val>>,
}

/// The value that stands for all that nobody asks for.
const ANY: Val = Val::MAX;

impl Default for Register {
    fn default() -> Self {
        Self::new(&Datum::Nil)
    }
}

impl Register {
    /// A register that holds `initial` at first; a failed compare-and-set and a read of nothing say nothing.
    #[must_use]
    pub fn new(initial: &Datum) -> Self {
        let names = Names::default();
        // The first two numbers are always to be had.
        let nothing = names.number(&Datum::Nil).unwrap_or(0);
        let initial = names.number(initial).unwrap_or(nothing);
        let names = Arc::new(names);
        Self { names, initial, refusals_observe: false, nothing_is_read: false, asked_for: None }
    }

    /// The same, where a compare-and-set that failed without an error, or because of the version, says that
    /// the register did not hold what was asked for.
    #[must_use]
    pub fn with_refusals(self) -> Self {
        Self { refusals_observe: true, ..self }
    }

    /// The same, where a read of nothing says that nothing was there.
    #[must_use]
    pub fn with_reads_of_nothing(self) -> Self {
        Self { nothing_is_read: true, ..self }
    }

    /// One that nobody wrote at first, as these operations can tell it.
    pub(crate) fn seeing(calls: &[&Call<Action>]) -> Self {
        let register = Self::default();
        register.as_seen_by(calls).unwrap_or(register)
    }

    fn read(&self, answered: &Record) -> Result<Option<Action>, String> {
        if answered.value.is_nil() && !self.nothing_is_read {
            return Ok(None);
        }
        self.names.number(&answered.value).map(|value| Some(Action::Read(value)))
    }

    fn cas(&self, invoked: &Record, refused: bool) -> Result<Action, String> {
        let Some([from, to]) = invoked.value.as_list() else {
            return Err("a cas needs two values, what is expected and what is written".to_owned());
        };
        let (from, to) = (self.names.number(from)?, self.names.number(to)?);
        Ok(if refused { Action::Refused(from) } else { Action::Cas { from, to } })
    }

    /// The value as the history can tell it from others.
    fn told(&self, value: Val) -> Val {
        match &self.asked_for {
            Some(asked_for) if !asked_for.contains(&value) => ANY,
            _ => value,
        }
    }

    /// Whether a value is kept when some are taken out.
    fn keeps(&self, value: Val, gone: &dyn Fn(u64) -> bool) -> bool {
        value == self.initial || !gone(value.into())
    }
}

impl Model for Register {
    type Op = Action;
    type State = Val;

    fn name(&self) -> &'static str {
        "cas-register"
    }

    fn initial(&self) -> Val {
        self.initial
    }

    fn apply(&self, &state: &Val, op: &Action) -> Option<Val> {
        op.apply(state).map(|next| if next == state { state } else { self.told(next) })
    }

    fn as_seen_by(&self, calls: &[&Call<Action>]) -> Option<Self> {
        let asked_for = calls.iter().filter_map(|call| call.op.mentioned()).chain([self.initial]).collect();
        Some(Self { names: Arc::clone(&self.names), asked_for: Some(asked_for), ..*self })
    }

    fn decode(&self, invoked: &Record, completed: Option<&Record>) -> Result<Option<Action>, String> {
        let ended = completed.map(|completed| completed.kind);
        match (&*invoked.f, completed) {
            ("read", Some(completed)) if ended == Some(EventKind::Ok) => self.read(completed),
            ("read", _) => Ok(None),
            ("write", _) if ended == Some(EventKind::Fail) => Ok(None),
            ("write", _) => self.names.number(&invoked.value).map(|value| Some(Action::Write(value))),
            ("cas", Some(failed)) if failed.kind == EventKind::Fail => {
                let compared = failed.error.as_deref().is_none_or(|error| error == BAD_VERSION);
                if compared && self.refusals_observe { self.cas(invoked, true).map(Some) } else { Ok(None) }
            }
            ("cas", _) => self.cas(invoked, false).map(Some),
            (other, _) => Err(format!("a register has no {other}")),
        }
    }

    fn changes(&self, op: &Action) -> bool {
        !matches!(op, Action::Read(_))
    }

    fn observes(&self, op: &Action) -> bool {
        op.changes_nothing()
    }

    fn same(&self, one: &Action, other: &Action) -> bool {
        match (*one, *other) {
            (Action::Write(one), Action::Write(other)) => self.told(one) == self.told(other),
            (Action::Cas { from, to }, Action::Cas { from: other_from, to: other_to }) => {
                from == other_from && self.told(to) == self.told(other_to)
            }
            (one, other) => one == other,
        }
    }

    fn elements(&self, op: &Action) -> Vec<u64> {
        op.written().into_iter().chain(op.mentioned()).map(u64::from).collect()
    }

    /// The argument is in `register::part`.
    fn without(&self, op: &Action, gone: &dyn Fn(u64) -> bool) -> Option<Action> {
        part::left_of(*op, |value| self.keeps(value, gone))
    }

    fn unfair(&self, calls: &[&Call<Action>], gone: &dyn Fn(u64) -> bool) -> Vec<usize> {
        if !calls.iter().any(|call| matches!(call.op, Action::Refused(_))) {
            return Vec::new();
        }
        if self.initial == NIL {
            return part::unfair(&Problem::new(entries(calls)), |value| self.keeps(value, gone));
        }
        // Nobody there knows of another beginning, which is one more source.
        (0..calls.len()).filter(|&at| matches!(calls[at].op, Action::Refused(_))).collect()
    }

    /// Of the changes that had returned by then the one that was asked for last is told as a write. What had
    /// returned before it was asked for comes before it in every order, and is left out. Whatever comes after
    /// it there is still here, so what was asked for once it had returned, saw the same. The others may
    /// come before it: of those only the change is kept, which is as good as a write.
    fn since(&self, calls: &[&Call<Action>], moment: Rank) -> Option<Since<Action>> {
        let returned = calls.iter().enumerate().filter(|(_, call)| call.ret < moment);
        let changes = returned.filter(|(_, call)| call.op.written().is_some());
        let (past, last) = changes.max_by_key(|(_, call)| call.call)?;
        let rest = calls.iter().enumerate().filter_map(|(at, &call)| {
            if call.ret < last.call {
                return None;
            }
            let is_after = call.call > last.ret;
            let op = if is_after { call.op } else { Action::Write(call.op.written()?) };
            Some((at, Call { op, ..call.clone() }))
        });
        Some(Since { past, rest: rest.collect() })
    }

    fn shows_reasons(&self) -> bool {
        true
    }

    fn describe(&self, op: &Action) -> String {
        let name = |value: Val| self.names.name(value);
        match *op {
            Action::Read(value) => format!("read → {}", name(value)),
            Action::Write(value) => format!("write {}", name(value)),
            Action::Cas { from, to } => format!("cas {} → {}", name(from), name(to)),
            Action::Refused(from) => format!("cas from {}, refused", name(from)),
        }
    }

    fn show(&self, &state: &Val) -> Option<String> {
        Some(self.names.name(state).to_string())
    }
}

/// The calls, by call, as algorithms that know registers take them.
fn entries(calls: &[&Call<Action>]) -> Vec<Entry> {
    let entry = |(op, call): (usize, &&Call<Action>)| Entry {
        call: call.call,
        ret: call.ret,
        action: call.op,
        version: None,
        op,
    };
    calls.iter().enumerate().map(entry).collect()
}

/// The entries as the searches of any object take them.
pub(crate) fn calls(problem: &Problem) -> Vec<Call<Action>> {
    let call = |entry: &Entry| Call {
        op: entry.action,
        call: entry.call,
        ret: entry.ret,
        process: 0,
        index: 0,
        invoke_ns: 0,
        complete_ns: None,
    };
    problem.entries.iter().map(call).collect()
}
