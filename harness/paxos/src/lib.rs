//! Paxos (Lamport, "The Part-Time Parliament", TOCS 1998; "Paxos Made Simple", 2001) and Multi-Paxos.
//!
//! Several members are to choose one value, although messages get lost and members crash. Whatever is tried
//! first does not do:
//!
//! - **One acceptor decides.** When it crashes nobody knows what was chosen. So a *quorum* of acceptors, more
//!   than half, must accept a value; any two quorums share a member.
//! - **Each acceptor accepts the first value that it is asked for.** Three proposers at once, and no value
//!   has a quorum for ever (scenario `split-votes`). So an acceptor must be able to accept another value
//!   later.
//! - **Each acceptor accepts whatever it is asked for.** Two values are chosen, one after the other (scenario
//!   `conflicting-choices`). So whoever proposes must look first whether a value may be chosen already.
//! - **Look first, then propose.** Two look, both see nothing, both propose (scenario `two-phases`). So an
//!   old proposal must fail once a newer one has looked: proposals are *numbered*, and acceptors promise.
//!
//! That is Paxos. A [`Ballot`] is a round and the proposer's id, so no two proposals share one. [`single`]
//! chooses one value in two phases; [`multi`] chooses a log of them, and phase one once for many.

/// What can be wrong with a protocol: an enum of bugs, and both as a command line knows them.
macro_rules! bugs {
    ($($bug:ident = $name:literal, $about:literal;)*) => {
        /// What can be wrong with it.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Bug {
            $(#[doc = $about] $bug,)*
        }

        /// The bugs, by name.
        pub const BUGS: &[(&str, Bug)] = &[$(($name, Bug::$bug)),*];
        /// The same, as a command line lists them.
        pub const MUTANTS: &[harness_protocols::entry::Mutant] =
            &[$(harness_protocols::entry::Mutant { name: $name, about: $about }),*];
    };
}
use bugs;

pub mod ballot;
pub mod messages;
pub mod multi;
pub mod register;
pub mod scenarios;
pub mod single;
pub mod voters;

pub use ballot::Ballot;

use std::time::Duration;

use checker::history::Function;
use harness_protocols::entry::{Entry, Playable, Serves};

/// Paxos for one value.
pub const PAXOS: Entry = Entry {
    name: "paxos",
    about: "Paxos: several propose, one value is chosen",
    make: |bug| {
        let bug = named(bug, single::BUGS)?;
        Some(Box::new(single::Paxos { bug, ..single::Paxos::default() }) as Box<dyn Playable>)
    },
    serves: None,
    mutants: single::MUTANTS,
    scenarios: scenarios::OF_PAXOS,
};

/// Multi-Paxos: a log of commands.
pub const MULTI_PAXOS: Entry = Entry {
    name: "multi-paxos",
    about: "Multi-Paxos: a leader has a log of commands chosen, each slot by Paxos",
    make: |bug| {
        let bug = named(bug, multi::BUGS)?;
        Some(Box::new(multi::MultiPaxos::of(bug)) as Box<dyn Playable>)
    },
    serves: Some(Serves {
        functions: &[Function::READ, Function::WRITE, Function::CAS],
        peer_timeout: Duration::from_millis(125),
    }),
    mutants: multi::MUTANTS,
    scenarios: scenarios::OF_MULTI_PAXOS,
};

/// The bug of a name: none where no name is given, nothing where no bug has it.
fn named<B: Copy>(name: Option<&str>, bugs: &[(&str, B)]) -> Option<Option<B>> {
    let Some(name) = name else { return Some(None) };
    bugs.iter().find(|(other, _)| *other == name).map(|(_, bug)| Some(*bug))
}
