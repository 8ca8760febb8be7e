//! What clients do, and what must then be true.
//!
//! A workload is a generator of operations, a mapping from what a client was told to a line of the history, and
//! the promises that the history is then judged by. All of it is pure: requests are described ([`Action`]), not
//! sent; answers come in as data ([`Answer`]); chance comes from a generator that the caller seeds. So the same
//! workload drives members over TCP and members in a simulated world, and the same mapping decides in both what
//! is definite and what stays open.
//!
//! - [`action`]: requests, answers, and which line of the history an answer becomes.
//! - [`workload`]: one type for all of them; [`register`], [`set`], [`append`], [`sequential`], [`ephemeral`]: the
//!   workloads.
//! - [`judge`]: everything that is decided after a run, as a function of its history and of what was seen beside
//!   it.
//!
//! What it must never know: sockets, sessions' establishment, retries (there are none), and how a fault was made.

pub mod action;
pub mod append;
pub mod ephemeral;
pub mod judge;
pub mod register;
pub mod sequential;
pub mod set;
pub mod workload;

mod rotation;

pub use action::{Action, Answer, Completion, CreateMode, Invocation};
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
