//! One type behind which all workloads stand.
//!
//! Whoever drives clients asks for [`Workload::next_op`], has it done once, and hands back what came of it;
//! which workload it is matters only to the generator and to the judge.

use checker::durability::FinalState;
use checker::history::{EventKind, Function, Value};
use rand_chacha::ChaCha8Rng;

use crate::append::Append;
use crate::ephemeral::Ephemeral;
use crate::op::Op;
use crate::outcome::{Outcome, UNREADABLE};
use crate::register::{ParamsError, Register, RegisterParams};
use crate::sequential::Sequential;
use crate::set::Set;

/// Which workload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Registers.
    #[default]
    Register,
    /// Sets of unique elements.
    Set,
    /// Lists that grow.
    Append,
    /// Numbered nodes.
    Sequential,
    /// Nodes that end with their session.
    Ephemeral,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Register, Self::Set, Self::Append, Self::Sequential, Self::Ephemeral];

    /// The name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Register => "register",
            Self::Set => "set",
            Self::Append => "append",
            Self::Sequential => "sequential",
            Self::Ephemeral => "ephemeral",
        }
    }

    /// One line about it.
    #[must_use]
    pub const fn summary(self) -> &'static str {
        match self {
            Self::Register => {
                "reads (sync and read as one), writes and compare-and-set by version on a few hot keys"
            }
            Self::Set => {
                "unique elements put into sets, and sets read whole: nothing is lost, nothing invented"
            }
            Self::Append => {
                "unique elements put at the end of lists by version: all reads agree on one order"
            }
            Self::Sequential => {
                "numbered nodes made and deleted: a number is given once, and in the order of time"
            }
            Self::Ephemeral => "sessions that make nodes, end or expire: a node lives as long as its session",
        }
    }

    /// The workload called `name`.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// The kinds of operations of which a load that could find something has some.
    #[must_use]
    pub fn functions(self) -> &'static [Function] {
        match self {
            Self::Register => &Function::REGISTER,
            Self::Set => &[Function::Read, Function::Add],
            Self::Append => &[Function::Read, Function::Append],
            Self::Sequential => &[Function::Create, Function::Delete],
            Self::Ephemeral => &[Function::Create, Function::Exists, Function::Close],
        }
    }

    /// Which workload left a history with these operations, as far as they tell.
    #[must_use]
    pub fn of_functions(functions: impl IntoIterator<Item = Function>) -> Self {
        let kinds = functions.into_iter().filter_map(|f| match f {
            Function::Add => Some(Self::Set),
            Function::Append => Some(Self::Append),
            Function::Delete => Some(Self::Sequential),
            Function::Exists | Function::Open | Function::Close | Function::Abandon => Some(Self::Ephemeral),
            Function::Read | Function::Write | Function::Cas | Function::Create => None,
        });
        kinds.max().unwrap_or_default()
    }
}

/// What a workload is made of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Params {
    /// How many keys are hot at a time.
    pub keys: u64,
    /// Shares of a register's operations.
    pub register: RegisterParams,
    /// Elements of one set or list at most; then another one is begun.
    pub elements: u64,
    /// Share of reads of sets and lists, in percent.
    pub read_percent: u8,
}

/// Elements of one set or list, unless somebody says otherwise.
pub const ELEMENTS: u64 = 96;

impl Params {
    /// The usual parameters with this number of hot keys.
    #[must_use]
    pub fn of_keys(keys: u64) -> Self {
        Self {
            keys,
            register: RegisterParams { keys, ..RegisterParams::default() },
            elements: ELEMENTS,
            read_percent: 30,
        }
    }
}

/// A workload.
#[derive(Clone, Debug)]
pub enum Workload {
    /// See [`Register`].
    Register(Register),
    /// See [`Set`].
    Set(Set),
    /// See [`Append`].
    Append(Append),
    /// See [`Sequential`].
    Sequential(Sequential),
    /// See [`Ephemeral`].
    Ephemeral(Ephemeral),
}

impl Workload {
    /// A workload whose every choice comes from `rng`.
    ///
    /// # Errors
    /// [`ParamsError`] when the parameters make no sense.
    pub fn new(kind: Kind, params: Params, rng: ChaCha8Rng) -> Result<Self, ParamsError> {
        let Params { keys, register, elements, read_percent } = params;
        let register = Register::new(RegisterParams { keys, ..register }, rng.clone())?;
        Ok(match kind {
            Kind::Register => Self::Register(register),
            Kind::Set => Self::Set(Set::new(keys, elements, read_percent, rng)),
            Kind::Append => Self::Append(Append::new(keys, elements, read_percent, rng)),
            Kind::Sequential => Self::Sequential(Sequential::new(keys, rng)),
            Kind::Ephemeral => Self::Ephemeral(Ephemeral::new(keys, rng)),
        })
    }

    /// Which it is.
    #[must_use]
    pub fn kind(&self) -> Kind {
        match self {
            Self::Register(_) => Kind::Register,
            Self::Set(_) => Kind::Set,
            Self::Append(_) => Kind::Append,
            Self::Sequential(_) => Kind::Sequential,
            Self::Ephemeral(_) => Kind::Ephemeral,
        }
    }

    /// What must be done, one by one and each with success, before the load begins.
    pub fn setup(&mut self) -> Vec<Op> {
        match self {
            Self::Register(register) => register.setup(),
            Self::Set(set) => set.setup(),
            Self::Append(append) => append.setup(),
            Self::Sequential(sequential) => sequential.setup(),
            Self::Ephemeral(ephemeral) => ephemeral.setup(),
        }
    }

    /// What `process` is to do next.
    pub fn next_op(&mut self, process: u64) -> Op {
        match self {
            Self::Register(register) => register.next_op(process),
            Self::Set(set) => set.next_op(),
            Self::Append(append) => append.next_op(process),
            Self::Sequential(sequential) => sequential.next_op(),
            Self::Ephemeral(ephemeral) => ephemeral.next_op(process),
        }
    }

    /// What a process is to do next that changes nothing.
    pub fn next_read(&mut self) -> Op {
        match self {
            Self::Register(register) => register.next_read(),
            Self::Set(set) => set.next_read(),
            Self::Append(append) => append.next_read(),
            Self::Sequential(sequential) => sequential.next_read(),
            Self::Ephemeral(ephemeral) => ephemeral.next_read(),
        }
    }

    /// Remembers what came of an operation.
    pub fn complete(&mut self, process: u64, op: &Op, outcome: &Outcome) {
        match self {
            Self::Register(register) => register.complete(process, op, outcome),
            Self::Set(set) => set.complete(op, outcome),
            Self::Append(append) => append.complete(process, op, outcome),
            Self::Sequential(sequential) => sequential.complete(op, outcome),
            Self::Ephemeral(ephemeral) => ephemeral.complete(process, op, outcome),
        }
    }

    /// What is read, on each member, after everything has healed.
    #[must_use]
    pub fn final_reads(&self) -> Vec<Op> {
        match self {
            Self::Register(register) => register.final_reads(),
            Self::Set(set) => set.final_reads(),
            Self::Append(append) => append.final_reads(),
            Self::Sequential(sequential) => sequential.final_reads(),
            Self::Ephemeral(ephemeral) => ephemeral.final_reads(),
        }
    }

    /// Whether the openings and ends of sessions are part of the history.
    #[must_use]
    pub fn records_sessions(&self) -> bool {
        self.kind() == Kind::Ephemeral
    }

    /// What a last read says of the member that answered it; none when it says nothing.
    #[must_use]
    pub fn final_state(&self, member: u64, read: &Op, told: &Outcome) -> Option<FinalState> {
        if told.kind != EventKind::Ok {
            return None;
        }
        let (value, list, version) = match &told.value {
            Value::List(list) => (None, Some(list.to_vec()), told.claims.version.unwrap_or(0)),
            Value::One(value) if *value != UNREADABLE => (Some(*value), None, told.claims.version?),
            _ => (None, None, told.claims.version?),
        };
        let mzxid = told.claims.changed_at;
        Some(FinalState { member, key: read.key, version, value, mzxid, list })
    }

    /// Whether these last reads are the last word: all members hold the same, and where everything must go,
    /// everything is gone.
    #[must_use]
    pub fn is_settled(&self, states: &[FinalState]) -> bool {
        let mut first: std::collections::BTreeMap<u64, &FinalState> = std::collections::BTreeMap::new();
        let agree = states.iter().all(|state| first.entry(state.key).or_insert(state).holds_the_same(state));
        let gone = || states.iter().all(|state| state.list.as_ref().is_some_and(Vec::is_empty));
        agree && (self.kind() != Kind::Ephemeral || gone())
    }
}
