//! A register with read, write and compare-and-set, for the general searches.
//!
//! [`crate::register`] judges registers faster, by algorithms that know them. This model is the same object
//! in the form that every condition and every search of this crate takes.
//!
//! Histories from elsewhere differ in what a failed compare-and-set says. In the text logs of etcd's tests it
//! says that the register did not hold what was asked for; in Knossos it did not happen, for whatever reason.
//! What is less is the default: it accuses nobody wrongly. The same goes for a read of nothing, which in
//! Knossos says nothing.

use super::Model;
use super::names::Names;
use crate::history::{BAD_VERSION, Datum, EventKind, Record};

/// A value's number; 0 is nothing.
pub type Number = u32;

/// A register.
#[derive(Debug)]
pub struct Register {
    names: Names,
    initial: Number,
    refusals_observe: bool,
    nothing_is_read: bool,
}

/// What can be done with a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RegisterOp {
    /// It held this value.
    Read(Number),
    /// It holds this value from here on.
    Write(Number),
    /// It held the first and holds the second from here on.
    Cas(Number, Number),
    /// It did not hold this value.
    Refused(Number),
}

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
        Self { names, initial, refusals_observe: false, nothing_is_read: false }
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

    fn read(&self, answered: &Record) -> Result<Option<RegisterOp>, String> {
        if answered.value.is_nil() && !self.nothing_is_read {
            return Ok(None);
        }
        self.names.number(&answered.value).map(|value| Some(RegisterOp::Read(value)))
    }

    fn cas(&self, invoked: &Record, refused: bool) -> Result<RegisterOp, String> {
        let Some([from, to]) = invoked.value.as_list() else {
            return Err("a cas needs two values, what is expected and what is written".to_owned());
        };
        let (from, to) = (self.names.number(from)?, self.names.number(to)?);
        Ok(if refused { RegisterOp::Refused(from) } else { RegisterOp::Cas(from, to) })
    }
}

impl Model for Register {
    type Op = RegisterOp;
    type State = Number;

    fn name(&self) -> &'static str {
        "cas-register"
    }

    fn initial(&self) -> Number {
        self.initial
    }

    fn apply(&self, &state: &Number, op: &RegisterOp) -> Option<Number> {
        match *op {
            RegisterOp::Read(value) => (state == value).then_some(state),
            RegisterOp::Write(to) => Some(to),
            RegisterOp::Cas(from, to) => (state == from).then_some(to),
            RegisterOp::Refused(from) => (state != from).then_some(state),
        }
    }

    fn decode(&self, invoked: &Record, completed: Option<&Record>) -> Result<Option<RegisterOp>, String> {
        let ended = completed.map(|completed| completed.kind);
        match (&*invoked.f, completed) {
            ("read", Some(completed)) if ended == Some(EventKind::Ok) => self.read(completed),
            ("read", _) => Ok(None),
            ("write", _) if ended == Some(EventKind::Fail) => Ok(None),
            ("write", _) => self.names.number(&invoked.value).map(|value| Some(RegisterOp::Write(value))),
            ("cas", Some(failed)) if failed.kind == EventKind::Fail => {
                let compared = failed.error.as_deref().is_none_or(|error| error == BAD_VERSION);
                if compared && self.refusals_observe { self.cas(invoked, true).map(Some) } else { Ok(None) }
            }
            ("cas", _) => self.cas(invoked, false).map(Some),
            (other, _) => Err(format!("a register has no {other}")),
        }
    }

    fn changes(&self, op: &RegisterOp) -> bool {
        !matches!(op, RegisterOp::Read(_))
    }

    fn observes(&self, op: &RegisterOp) -> bool {
        matches!(op, RegisterOp::Read(_) | RegisterOp::Refused(_))
    }

    fn same(&self, one: &RegisterOp, other: &RegisterOp) -> bool {
        one == other
    }

    fn elements(&self, op: &RegisterOp) -> Vec<u64> {
        match *op {
            RegisterOp::Read(value) | RegisterOp::Write(value) | RegisterOp::Refused(value) => {
                vec![value.into()]
            }
            RegisterOp::Cas(from, to) => vec![from.into(), to.into()],
        }
    }

    /// The argument is in [`crate::register::shrink`]. A refusal from s may owe its being right to a change
    /// that is taken out, so it is taken out with the first element.
    fn without(&self, op: &RegisterOp, gone: &dyn Fn(u64) -> bool) -> Option<RegisterOp> {
        let gone = |value: Number| value != self.initial && gone(value.into());
        match *op {
            RegisterOp::Read(value) | RegisterOp::Write(value) => (!gone(value)).then_some(*op),
            RegisterOp::Cas(_, to) if gone(to) => None,
            RegisterOp::Cas(from, to) if gone(from) => Some(RegisterOp::Write(to)),
            RegisterOp::Cas(..) => Some(*op),
            RegisterOp::Refused(_) => None,
        }
    }

    fn describe(&self, op: &RegisterOp) -> String {
        let name = |value: Number| self.names.name(value);
        match *op {
            RegisterOp::Read(value) => format!("read → {}", name(value)),
            RegisterOp::Write(value) => format!("write {}", name(value)),
            RegisterOp::Cas(from, to) => format!("cas {} → {}", name(from), name(to)),
            RegisterOp::Refused(from) => format!("cas from {}, refused", name(from)),
        }
    }

    fn show(&self, &state: &Number) -> Option<String> {
        Some(self.names.name(state).to_string())
    }
}
