//! Every system that can be named.

use std::sync::Arc;

use crate::etcd::Etcd;
use crate::external::External;
use crate::files::{self, Files};
use crate::system::System;
use crate::zookeeper::ZooKeeper;

/// The system that a text means; none where it means another, and what to write where it makes no sense.
pub type Chosen = Option<Result<Arc<dyn System>, String>>;

/// A system as it is listed to a person.
#[derive(Clone, Copy)]
pub struct Entry {
    /// The name on the command line.
    pub name: &'static str,
    /// The same, with a parameter for which any ensemble of five has room.
    pub example: &'static str,
    /// What it is, and what it promises.
    pub about: &'static str,
    is: Is,
}

/// How a system is made of a text.
#[derive(Clone, Copy)]
enum Is {
    /// By this, for an ensemble of so many; none when the text means another.
    BuiltIn(fn(&str, u32) -> Chosen),
    /// It is described by files.
    Files(&'static Files),
}

/// What a text stands for beside its words.
#[derive(Clone, Copy, Debug)]
pub struct Meant {
    /// How many members vote.
    pub nodes: u32,
    /// Whether containers were asked for.
    pub in_containers: bool,
}

impl Meant {
    /// So many members, wherever they run.
    #[must_use]
    pub const fn of(nodes: u32) -> Self {
        Self { nodes, in_containers: false }
    }
}

/// An ensemble in which every parameter of a name has room.
const USUAL_NODES: u32 = 5;

/// Those that are built in. The first is what is tested when nobody says.
const BUILT_IN: &[Entry] = &[
    Entry {
        name: "node",
        example: "node",
        about: "the bundled node: linearizable updates, and reads too (sync and getData as one operation)",
        is: Is::BuiltIn(|text, _| (text == "node").then(|| Ok(Arc::new(ZooKeeper::Node) as _))),
    },
    Entry {
        name: "zookeeper",
        example: "zookeeper",
        about: "Apache ZooKeeper as local processes, where Java and it are installed: linearizable updates; \
                reads may be stale in their session's order, its sync being no quorum operation \
                (ZOOKEEPER-1675)",
        is: Is::BuiltIn(|text, _| (text == "zookeeper").then(|| Ok(Arc::new(ZooKeeper::Apache) as _))),
    },
    Entry {
        name: "mixed:N",
        example: "mixed:1",
        about: "N members of Apache ZooKeeper, drawn from the seed, the others node: promises what both \
            promise",
        is: Is::BuiltIn(|text, nodes| {
            Some(ZooKeeper::mixed(text, nodes)?.map(|system| Arc::new(system) as _))
        }),
    },
    Entry {
        name: "etcd",
        example: "etcd",
        about: "etcd 3.4 or newer as local processes, where it is installed: linearizable reads and updates",
        is: Is::BuiltIn(|text, _| (text == "etcd").then(|| Ok(Arc::new(Etcd) as _))),
    },
];

/// All systems, in the order in which they are listed.
pub fn systems() -> impl Iterator<Item = Entry> {
    let of_files = |files: &&'static Files| {
        Some(Entry { name: files.name, example: files.name, about: files.about?, is: Is::Files(files) })
    };
    BUILT_IN.iter().copied().chain(files::ALL.iter().filter_map(of_files))
}

/// The system that a text means, for an ensemble of so many: one of the list, or a file that describes one;
/// none when nobody knows it.
///
/// # Errors
/// What to write instead of a parameter that makes no sense.
#[must_use]
pub fn choose(text: &str, meant: Meant) -> Chosen {
    if External::is_meant(text) {
        return Some(External::read(text).map(|system| Arc::new(system) as _));
    }
    systems().find_map(|entry| match entry.is {
        Is::BuiltIn(choose) => choose(text, meant.nodes),
        Is::Files(files) if files.name == text => {
            Some(External::of_files(files, meant.in_containers).map(|system| Arc::new(system) as _))
        }
        Is::Files(_) => None,
    })
}

/// Whether a text is the name of one of the list, with whatever parameter, and of no file.
#[must_use]
pub fn is_built_in(text: &str) -> bool {
    let is_it = |entry: Entry| match entry.is {
        Is::BuiltIn(choose) => choose(text, USUAL_NODES).is_some(),
        Is::Files(files) => files.name == text,
    };
    !External::is_meant(text) && systems().any(is_it)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_system_is_read_as_it_is_written() {
        for text in ["node", "zookeeper", "mixed:1", "mixed:4", "etcd"] {
            let system = choose(text, Meant::of(5)).expect(text).expect(text);
            assert_eq!(system.name(), text);
        }
        assert!(choose("zookeper", Meant::of(5)).is_none());
    }

    #[test]
    fn a_number_that_makes_no_sense_is_refused_with_advice() {
        for (text, nodes, advice) in [
            ("mixed", 5, "from 1 to 4"),
            ("mixed:0", 5, "from 1 to 4"),
            ("mixed:5", 5, "all of them is --system zookeeper"),
            ("mixed:two", 5, "from 1 to 4"),
            ("mixed:1", 1, "raise --nodes"),
        ] {
            let error = choose(text, Meant::of(nodes)).expect(text).expect_err(text);
            assert!(error.contains(advice), "{text}: {error}");
        }
    }
}
