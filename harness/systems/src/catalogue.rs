//! Every system that can be named.

use std::sync::Arc;

use crate::etcd::Etcd;
use crate::external::External;
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
    /// The system that a text means, for an ensemble of so many; none when it means another.
    choose: fn(&str, u32) -> Chosen,
}

/// All of them, in the order in which they are listed. The first is what is tested when nobody says.
pub const SYSTEMS: &[Entry] = &[
    Entry {
        name: "node",
        example: "node",
        about: "the bundled node: linearizable updates, and reads too (sync and getData as one operation)",
        choose: |text, _| (text == "node").then(|| Ok(Arc::new(ZooKeeper::Node) as _)),
    },
    Entry {
        name: "zookeeper",
        example: "zookeeper",
        about: "Apache ZooKeeper as local processes, where Java and it are installed: linearizable updates; \
                reads may be stale in their session's order, its sync being no quorum operation \
                (ZOOKEEPER-1675)",
        choose: |text, _| (text == "zookeeper").then(|| Ok(Arc::new(ZooKeeper::Apache) as _)),
    },
    Entry {
        name: "mixed:N",
        example: "mixed:1",
        about: "N members of Apache ZooKeeper, drawn from the seed, the others node: promises what both \
            promise",
        choose: |text, nodes| Some(ZooKeeper::mixed(text, nodes)?.map(|system| Arc::new(system) as _)),
    },
    Entry {
        name: "etcd",
        example: "etcd",
        about: "etcd 3.4 or newer as local processes, where it is installed: linearizable reads and updates",
        choose: |text, _| (text == "etcd").then(|| Ok(Arc::new(Etcd) as _)),
    },
];

/// The system that a text means, for an ensemble of so many: one of the list, or a file that describes one;
/// none when nobody knows it.
///
/// # Errors
/// What to write instead of a parameter that makes no sense.
#[must_use]
pub fn choose(text: &str, nodes: u32) -> Chosen {
    if External::is_meant(text) {
        return Some(External::read(text).map(|system| Arc::new(system) as _));
    }
    SYSTEMS.iter().find_map(|entry| (entry.choose)(text, nodes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_system_is_read_as_it_is_written() {
        for text in ["node", "zookeeper", "mixed:1", "mixed:4", "etcd"] {
            let system = choose(text, 5).expect(text).expect(text);
            assert_eq!(system.name(), text);
        }
        assert!(choose("zookeper", 5).is_none());
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
            let error = choose(text, nodes).expect(text).expect_err(text);
            assert!(error.contains(advice), "{text}: {error}");
        }
    }
}
