//! What is tested: the bundled node, Apache ZooKeeper, or an ensemble of both.
//!
//! A target says what its members run as and what it promises; each is judged by its own promises. The bundled node's
//! `sync` is a round that a quorum answers, so a read behind it is linearizable. Apache ZooKeeper's is none
//! (ZOOKEEPER-1675): there updates are linearizable, and reads may be stale within their session's order. An ensemble of
//! both may have either as its leader, so it promises what both do.
//!
//! Apache ZooKeeper is not part of this: [`java`] looks for it on the machine, and [`zoo_cfg`] writes what its members
//! are told. Only local processes can be Java members; containers take any image (`--image`).

pub mod java;
pub mod zoo_cfg;

use rand::seq::SliceRandom;
use runs::member::MemberId;

pub use harness_core::fault::Server;

use crate::exit::Failure;
use crate::seed;
use crate::text::suggest;

/// The bundled node.
pub const NODE: Server = Server::new("node", "Apache ZooKeeper");
/// Apache ZooKeeper.
pub const ZOOKEEPER: Server = NODE.other();

/// Who answered `srvr`, by the line with the version: the bundled node names the protocol's version and then
/// itself. None when nobody answered as a server.
pub fn who_answered(answer: &str) -> Option<(Server, String)> {
    let line = answer.lines().find(|line| line.starts_with("Zookeeper version: "))?;
    let version = line.trim_start_matches("Zookeeper version: ").split(',').next().unwrap_or_default();
    let server = if version.contains("-node-") { NODE } else { ZOOKEEPER };
    Some((server, version.trim().to_owned()))
}

/// What is tested.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Target {
    /// The bundled node, on every seat.
    #[default]
    Node,
    /// Apache ZooKeeper, on every seat.
    Zookeeper,
    /// Both.
    Mixed {
        /// Members that run as Apache ZooKeeper; one at least, and not all.
        java: u32,
    },
}

impl Target {
    /// The names, with what each is and promises.
    pub const LIST: [(&'static str, &'static str); 3] = [
        ("node", "the bundled node: linearizable updates, and reads too (sync and getData as one operation)"),
        (
            "zookeeper",
            "Apache ZooKeeper as local processes, where Java and it are installed: linearizable updates; reads may be \
             stale in their session's order, its sync being no quorum operation (ZOOKEEPER-1675)",
        ),
        (
            "mixed:N",
            "N members of Apache ZooKeeper, drawn from the seed, the others node: promises what both promise",
        ),
    ];

    /// Reads a name as typed, for an ensemble of so many.
    pub fn parse(text: &str, nodes: u32) -> Result<Self, Failure> {
        match text {
            "node" => return Ok(Self::Node),
            "zookeeper" => return Ok(Self::Zookeeper),
            _ => {}
        }
        let Some(number) = text.strip_prefix("mixed").map(|rest| rest.trim_start_matches(':')) else {
            let advice = "--target takes one of these, N being how many members are Apache ZooKeeper:";
            let names = Self::LIST.map(|(name, _)| name);
            return Err(Failure::Usage(suggest::unknown("target", text, &names, advice)));
        };
        match number.parse::<u32>() {
            Ok(java) if java >= 1 && java < nodes => Ok(Self::Mixed { java }),
            _ if nodes < 2 => Err(Failure::usage(format!(
                "--target {text}: one member alone is of one kind; raise --nodes"
            ))),
            _ => Err(Failure::usage(format!(
                "--target {text}: write mixed:N with an N from 1 to {}, the members that are Apache ZooKeeper; all of \
                 them is --target zookeeper",
                nodes - 1
            ))),
        }
    }

    /// Its name on the command line.
    pub fn name(self) -> String {
        match self {
            Self::Node => "node".to_owned(),
            Self::Zookeeper => "zookeeper".to_owned(),
            Self::Mixed { java } => format!("mixed:{java}"),
        }
    }

    /// Whether it has members that run as Apache ZooKeeper.
    pub fn has_java(self) -> bool {
        self != Self::Node
    }

    /// Whether it promises no more of a read than its session's order.
    pub fn reads_may_be_stale(self) -> bool {
        self.has_java()
    }

    /// The members that begin as Apache ZooKeeper, ascending. Which of a mixed ensemble follows from the seed: the
    /// ids decide elections between equals.
    pub fn java_members(self, nodes: u32, seed: u64) -> Vec<MemberId> {
        let mut ids: Vec<MemberId> = (1..=u64::from(nodes)).map(MemberId).collect();
        match self {
            Self::Node => ids.clear(),
            Self::Zookeeper => {}
            Self::Mixed { java } => {
                ids.shuffle(&mut seed::stream(seed, "java"));
                ids.truncate(crate::num::index(u64::from(java)));
                ids.sort_unstable();
            }
        }
        ids
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_read_as_it_is_written() {
        for (text, target) in [
            ("node", Target::Node),
            ("zookeeper", Target::Zookeeper),
            ("mixed:1", Target::Mixed { java: 1 }),
            ("mixed:4", Target::Mixed { java: 4 }),
        ] {
            assert_eq!(Target::parse(text, 5).expect(text), target);
            assert_eq!(target.name(), text);
        }
    }

    #[test]
    fn what_is_no_target_is_refused_with_advice() {
        for (text, nodes, advice) in [
            ("zookeper", 5, "did you mean `zookeeper`?"),
            ("mixed", 5, "from 1 to 4"),
            ("mixed:0", 5, "from 1 to 4"),
            ("mixed:5", 5, "all of them is --target zookeeper"),
            ("mixed:two", 5, "from 1 to 4"),
            ("mixed:1", 1, "raise --nodes"),
            ("etcd", 5, "node, zookeeper, mixed:N"),
        ] {
            let error = Target::parse(text, nodes).expect_err(text).to_string();
            assert!(error.contains(advice), "{text}: {error}");
        }
    }

    #[test]
    fn the_java_members_of_a_mixed_ensemble_follow_from_the_seed() {
        let of = |seed| Target::Mixed { java: 2 }.java_members(5, seed);
        assert_eq!(of(7), of(7));
        assert_eq!(of(7).len(), 2);
        assert!((0..20).any(|seed| of(seed) != of(7)));
        assert_eq!(Target::Zookeeper.java_members(3, 1), [1, 2, 3].map(MemberId));
        assert!(Target::Node.java_members(3, 1).is_empty());
    }

    #[test]
    fn who_answers_is_told_by_the_version() {
        let java =
            "Zookeeper version: 3.8.0-${mvngit.commit.id}, built on 2024-12-29 17:54 UTC\nMode: leader\n";
        let node = "Zookeeper version: 3.8.0-node-0.1.0, built on unknown\nMode: leader\n";
        assert_eq!(who_answered(java).map(|(server, _)| server), Some(ZOOKEEPER));
        assert_eq!(who_answered(node), Some((NODE, "3.8.0-node-0.1.0".to_owned())));
        assert_eq!(who_answered("This ZooKeeper instance is not currently serving requests\n"), None);
    }
}
