//! What clients do, and what must then be true.
//!
//! A workload is a generator of operations and the promises that the history is then judged by. All of it is
//! pure: operations ([`Op`]) are in terms that no system owns, what came of them ([`Outcome`]) comes in as
//! data, chance comes from a generator that the caller seeds. A system's mapping turns operations into its
//! requests, and says which of its answers are definite and what stays open. So the same workload drives
//! members over TCP and members in a simulated world, of any system that has such objects.
//!
//! - [`op`]: what is asked for; [`outcome`]: what came of it.
//! - [`workload`]: one type for all of them; [`register`], [`set`], [`append`], [`sequential`],
//!   [`ephemeral`]: the workloads.
//! - [`judge`]: everything that is decided after a run, as a function of its history and of what was seen
//!   beside it.
//!
//! What it must never know: a system, its requests and its errors; sockets, sessions' establishment, retries
//! (there are none), and how a fault was made.

pub mod append;
pub mod ephemeral;
pub mod judge;
pub mod op;
pub mod outcome;
pub mod register;
pub mod sequential;
pub mod set;
pub mod workload;

mod rotation;

pub use op::Op;
pub use outcome::{Claims, Outcome, Refusal, SESSION_EXPIRED, UNREADABLE};
pub use register::{Register, RegisterParams};
pub use workload::{Kind, Params, Workload};

/// A workload as it is listed to a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Description {
    /// The name on the command line.
    pub name: &'static str,
    /// One line.
    pub summary: &'static str,
}

impl Description {
    const fn of(kind: Kind) -> Self {
        Self { name: kind.name(), summary: kind.summary() }
    }
}

/// Every workload that exists.
pub const WORKLOADS: &[Description] = &[
    Description::of(Kind::Register),
    Description::of(Kind::Set),
    Description::of(Kind::Append),
    Description::of(Kind::Sequential),
    Description::of(Kind::Ephemeral),
];

/// The description of the workload called `name`.
#[must_use]
pub fn find(name: &str) -> Option<&'static Description> {
    WORKLOADS.iter().find(|workload| workload.name == name)
}
