//! The bundled node, Apache ZooKeeper, and ensembles of both.
//!
//! Each is judged by its own promises. The bundled node's `sync` is a round that a quorum answers, so a read
//! behind it is linearizable. Apache ZooKeeper's is none (ZOOKEEPER-1675): there updates are linearizable,
//! and reads may be stale within their session's order. An ensemble of both may have either as its leader, so
//! it promises what both do.
//!
//! Apache ZooKeeper is not part of this: [`java`] looks for it on the machine, and [`zoo_cfg`] writes what
//! its members are told. Only local processes can be Java members; containers take any image.
//!
//! Whoever makes an executable registers its [`systems`] in its catalogue. The crates of the bench know
//! nothing of this one.
//!
//! - `launch`: how members are started, `container`: how in containers; `log_lines`: what Java members log
//!   that is news.
//! - `settings`: what only they are told.
//! - [`words`]: what members answer when they are asked from outside.
//! - `session`: the client; [`application`]: one that holds locks and leads.

pub mod application;
pub mod java;
pub mod words;
pub mod zoo_cfg;

mod container;
mod launch;
mod log_lines;
mod session;
mod settings;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use checker::history::Function;
use harness_core::fault::Server;
use harness_core::seed;
use harness_core::virtual_ensemble::Begin;
use rand::seq::SliceRandom;
use runs::clock::whole_milliseconds;
use runs::cluster_kind::ClusterKind;
use runs::comes_back::{ComesBack, When};
use runs::events::Said;
use runs::member::MemberId;
use runs::results::{Promised, SystemInfo};
use runs::views::Stand;
use workloads::{Applications, Kind, Promise};

use harness_systems::Async;
use harness_systems::application::Runs;
use harness_systems::catalogue::Entry;
use harness_systems::client::{Client, ClientSettings};
use harness_systems::look::{Look, PortState, Whereabouts};
use harness_systems::setting::Setting;
use harness_systems::system::{
    Contained, ContainerPorts, Dialling, Installation, Placement, System, Traits, Wanted,
};
use launch::Installed;
use zoo_cfg::SYNC_LIMIT;

/// What can be named on the command line: the bundled node first, whose ensemble in virtual time this makes.
#[must_use]
pub const fn systems(world: Begin) -> [Entry; 3] {
    [NODE_ALONE.in_virtual_time(world), APACHE_ALONE, BOTH]
}

const NODE_ALONE: Entry = Entry::built_in(
    "node",
    "node",
    "the bundled node: linearizable updates, and reads too (sync and getData as one operation)",
    |text, _| (text == "node").then(|| Ok(Arc::new(ZooKeeper::Node) as _)),
);
const APACHE_ALONE: Entry = Entry::built_in(
    "zookeeper",
    "zookeeper",
    "Apache ZooKeeper as local processes, where Java and it are installed: linearizable updates; reads may \
     be stale in their session's order, its sync being no quorum operation (ZOOKEEPER-1675)",
    |text, _| (text == "zookeeper").then(|| Ok(Arc::new(ZooKeeper::Apache) as _)),
);
const BOTH: Entry = Entry::built_in(
    "mixed:N",
    "mixed:1",
    "N members of Apache ZooKeeper, drawn from the seed, the others node: promises what both promise",
    |text, nodes| Some(ZooKeeper::mixed(text, nodes)?.map(|system| Arc::new(system) as _)),
);

/// Where the bundled node can run.
const EVERYWHERE: &[ClusterKind] = &[ClusterKind::Process, ClusterKind::Docker, ClusterKind::Sim];

/// The bundled node.
pub const NODE: Server = Server::new("node", "Apache ZooKeeper");
/// Apache ZooKeeper.
pub const APACHE: Server = NODE.other();

/// What the bundled node is called in a report.
const BUNDLED: &str = "bundled";
/// A pause after which a member of Apache ZooKeeper has surely asked again whether anybody votes: its
/// election asks ever more seldom, once a minute at last.
const SELDOM: Duration = Duration::from_secs(75);

/// What the members of an ensemble are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ZooKeeper {
    /// All are the bundled node.
    Node,
    /// All are Apache ZooKeeper.
    Apache,
    /// Some are the one and some the other.
    Mixed {
        /// Members that begin as Apache ZooKeeper; one at least, and not all.
        java: u32,
    },
}

impl ZooKeeper {
    /// The ensemble of both that `mixed:N` names, for an ensemble of so many; none where the text means
    /// something else.
    ///
    /// # Errors
    /// What to write instead of a number that is none, or too many.
    pub fn mixed(text: &str, nodes: u32) -> Option<Result<Self, String>> {
        let number = text.strip_prefix("mixed")?.trim_start_matches(':');
        Some(match number.parse::<u32>() {
            Ok(java) if java >= 1 && java < nodes => Ok(Self::Mixed { java }),
            _ if nodes < 2 => Err("one member alone is of one kind; raise --nodes".to_owned()),
            _ => Err(format!(
                "write mixed:N with an N from 1 to {}, the members that are Apache ZooKeeper; all of them is \
                 --system zookeeper",
                nodes - 1
            )),
        })
    }

    fn has_java(self) -> bool {
        self != Self::Node
    }

    /// The members that begin as Apache ZooKeeper, ascending: all of them, or so many of the voters. Which of
    /// a mixed ensemble follows from the seed: the ids decide elections between equals.
    fn java_members(self, wanted: &Wanted) -> Vec<MemberId> {
        let everybody = u64::from(wanted.nodes) + u64::from(wanted.observers);
        match self {
            Self::Node => Vec::new(),
            Self::Apache => (1..=everybody).map(MemberId).collect(),
            Self::Mixed { java } => {
                let mut ids: Vec<MemberId> = (1..=u64::from(wanted.nodes)).map(MemberId).collect();
                ids.shuffle(&mut seed::stream(wanted.seed, "java"));
                ids.truncate(usize::try_from(java).unwrap_or(usize::MAX));
                ids.sort_unstable();
                ids
            }
        }
    }
}

impl System for ZooKeeper {
    fn name(&self) -> String {
        match self {
            Self::Node => "node".to_owned(),
            Self::Apache => "zookeeper".to_owned(),
            Self::Mixed { java } => format!("mixed:{java}"),
        }
    }

    fn traits(&self) -> Traits {
        let java = self.has_java();
        Traits {
            whose: if java { "Apache ZooKeeper" } else { "the bundled node" },
            clusters: if java { &[ClusterKind::Process] } else { EVERYWHERE },
            tells_synced: !java,
            replaces: java,
            observers: true,
            takes_bugs: !java,
            tells_leader: true,
            usual_interval: Duration::from_secs(if java { 10 } else { 4 }),
            usual_peer_timeout: Duration::from_millis(250),
            peer_ports: 2,
            clients_at: None,
            is_a_group: false,
            dialling: Dialling::ByPair,
            // The bundled node knows its links.
            introduced_at: java.then_some(launch::ELECTION),
        }
    }

    /// What a workload asks for in one step must be one request here.
    fn lacks(&self, function: Function) -> Option<String> {
        match function {
            Function::TXN => Some(
                "a transaction reads first, and the built-in client asks one thing for each operation; the \
                 client of `harness init zookeeper` does transactions"
                    .to_owned(),
            ),
            Function::WATCH => Some(
                "the built-in client does not watch; those of `harness init etcd` and `harness init nats` do"
                    .to_owned(),
            ),
            Function::READ
            | Function::WRITE
            | Function::CAS
            | Function::ADD
            | Function::APPEND
            | Function::CREATE
            | Function::DELETE
            | Function::EXISTS
            | Function::OPEN
            | Function::CLOSE
            | Function::ABANDON
            | Function::ACQUIRE
            | Function::STORE
            | Function::RELEASE
            | Function::ENQUEUE
            | Function::DEQUEUE
            | Function::ACKNOWLEDGE
            | Function::ENTER
            | Function::LEAVE => None,
            other => Some(format!("the built-in client has no request for {other}")),
        }
    }

    fn applications(&self, _: Applications) -> Option<Runs> {
        Some(Runs::Own)
    }

    /// Apache ZooKeeper's sync is no quorum operation (ZOOKEEPER-1675), so a read behind one may be stale, in
    /// the order of its session.
    fn promises(&self, _: Kind) -> Promised {
        if !self.has_java() {
            return Promised::default();
        }
        Promised { what: Promise::OrderedSequential, source: "ZOOKEEPER-1675".to_owned() }
    }

    fn comes_back(&self) -> ComesBack {
        let source = match self {
            Self::Node => "ARCHITECTURE.md",
            Self::Apache | Self::Mixed { .. } => {
                "https://zookeeper.apache.org/doc/current/zookeeperInternals.html"
            }
        };
        ComesBack { when: When::WithQuorum, source: source.to_owned(), ..ComesBack::default() }
    }

    fn settings(&self) -> &'static [Setting] {
        if self.has_java() { &settings::ALL } else { &[] }
    }

    fn refuses(&self, cluster: ClusterKind) -> Option<String> {
        let why = self.traits().refuses(cluster)?;
        Some(match (self, cluster) {
            // Containers of one image are the bundled system with that image.
            (Self::Apache, ClusterKind::Docker) => {
                format!("{why}, or leave out --system and name an image of it with --image")
            }
            _ => why,
        })
    }

    /// ZooKeeper's own limits rule where one of the members is Java's.
    fn patience(&self, wanted: &Wanted) -> Duration {
        if self.has_java() {
            wanted.peer_timeout.max(settings::tick(wanted) * SYNC_LIMIT)
        } else {
            wanted.peer_timeout
        }
    }

    fn described(&self, found: Option<&dyn Installation>) -> SystemInfo {
        let version = found.and_then(|found| found.versions().remove(launch::VERSION_OF)).unwrap_or_default();
        let java: Vec<u64> = found
            .map(|found| found.servers().into_iter().filter(|(_, server)| *server == APACHE))
            .into_iter()
            .flatten()
            .map(|(member, _)| member.0)
            .collect();
        let common = SystemInfo {
            // A zxid has its epoch in its upper half.
            epoch_shift: Some(u32::BITS),
            rejoin_ms: if self.has_java() { whole_milliseconds(SELDOM) } else { 0 },
            asked_serves: true,
            ..SystemInfo::default()
        };
        match self {
            Self::Node => SystemInfo { name: BUNDLED.to_owned(), before: BUNDLED.to_owned(), ..common },
            Self::Apache => {
                let name = format!("Apache ZooKeeper {version}");
                SystemInfo { name: name.clone(), before: name, ..common }
            }
            Self::Mixed { .. } => {
                let names: Vec<String> = java.iter().map(|member| format!("n{member}")).collect();
                let who = format!("{} Apache ZooKeeper {version}, the others {BUNDLED}", names.join(" "));
                SystemInfo {
                    name: format!("{BUNDLED} and Apache ZooKeeper {version}"),
                    after: format!("({who})"),
                    who: Some(who),
                    labels: java.into_iter().map(|member| (member, "Java".to_owned())).collect(),
                    ..common
                }
            }
        }
    }

    /// The bundled node says what happens as JSON, which is understood before this is asked; Apache ZooKeeper
    /// logs.
    fn heard(&self, line: &[u8], member: MemberId, stand: Stand) -> Option<Said> {
        log_lines::heard(line, member, stand)
    }

    fn looks(&self, members: &[Whereabouts]) -> Vec<Box<dyn Look>> {
        members.iter().map(|member| -> Box<dyn Look> { Box::new(words::Srvr(member.client)) }).collect()
    }

    fn port(&self, member: &Whereabouts) -> Async<'static, PortState> {
        Box::pin(words::ruok(member.client))
    }

    fn who(&self, member: SocketAddr) -> Async<'static, Option<(Server, String)>> {
        Box::pin(words::who(member))
    }

    fn client(&self, settings: ClientSettings) -> Box<dyn Client> {
        Box::new(session::SessionClient::new(settings.session_timeout))
    }

    fn contained(&self) -> Option<&dyn Contained> {
        // A Java member's image is named by somebody, and the system is the bundled node's then.
        matches!(self, Self::Node).then_some(self as &dyn Contained)
    }

    fn install(&self, wanted: &Wanted) -> Result<Arc<dyn Installation>, String> {
        let java = self.has_java().then(|| java::Java::find(settings::class_path(wanted))).transpose()?;
        let java = java.map(|java| (java, self.java_members(wanted)));
        Ok(Arc::new(Installed::new(java, wanted.clone())))
    }
}

/// What each member begins as, where Java members take part.
fn servers(wanted: &Wanted, java: &[MemberId]) -> BTreeMap<MemberId, Server> {
    let kind = |id: &MemberId| if java.contains(id) { APACHE } else { NODE };
    (1..=u64::from(wanted.nodes) + u64::from(wanted.observers))
        .map(MemberId)
        .map(|id| (id, kind(&id)))
        .collect()
}

impl Contained for ZooKeeper {
    fn ports(&self) -> ContainerPorts<'_> {
        container::PORTS
    }

    fn command(&self, placement: &Placement<'_>) -> Vec<String> {
        container::bundled(placement)
    }

    fn environment(&self, placement: &Placement<'_>) -> Vec<(&'static str, String)> {
        container::environment(placement)
    }

    /// Whatever the image is, it may be Apache ZooKeeper.
    fn rejoins_within(&self) -> Duration {
        SELDOM
    }
}

#[cfg(test)]
mod tests {
    use harness_systems::catalogue::{Catalogue, Meant};
    use harness_systems::setting::Settings;

    use super::*;

    const CATALOGUE: Catalogue = Catalogue::of(&[NODE_ALONE, APACHE_ALONE, BOTH]);

    #[test]
    fn a_system_is_read_as_it_is_written() {
        for text in ["node", "zookeeper", "mixed:1", "mixed:4", "etcd"] {
            let system = CATALOGUE.choose(text, Meant::of(5)).expect(text).expect(text);
            assert_eq!(system.name(), text);
        }
        assert!(CATALOGUE.choose("zookeper", Meant::of(5)).is_none());
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
            let error = CATALOGUE.choose(text, Meant::of(nodes)).expect(text).expect_err(text);
            assert!(error.contains(advice), "{text}: {error}");
        }
    }

    #[test]
    fn the_java_members_of_a_mixed_ensemble_follow_from_the_seed() {
        let wanted = |seed| Wanted {
            nodes: 5,
            observers: 1,
            seed,
            peer_timeout: Duration::ZERO,
            sessions: (Duration::ZERO, Duration::ZERO),
            settings: Settings::new(),
            bug: None,
        };
        let of = |seed| ZooKeeper::Mixed { java: 2 }.java_members(&wanted(seed));
        assert_eq!(of(7), of(7));
        assert_eq!(of(7).len(), 2);
        assert!((0..20).any(|seed| of(seed) != of(7)));
        assert_eq!(ZooKeeper::Apache.java_members(&wanted(1)), [1, 2, 3, 4, 5, 6].map(MemberId));
        assert!(ZooKeeper::Node.java_members(&wanted(1)).is_empty());
    }
}
