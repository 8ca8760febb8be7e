//! A system under test, and the same as it was found on this machine.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;
use std::{fmt, io};

use checker::history::Function;
use harness_core::cut::Pair;
use harness_core::fault::{Nemesis, Server};
use runs::cluster_kind::ClusterKind;
use runs::comes_back::ComesBack;
use runs::events::Said;
use runs::member::MemberId;
use runs::results::{Promised, SystemInfo};
use runs::views::Stand;
use workloads::{Applications, Kind};

use crate::Async;
use crate::alongside::Alongside;
use crate::application::Runs;
use crate::client::{Client, ClientSettings, NoClient};
use crate::look::{Look, PortState, Ran, Whereabouts};
use crate::own::Order;
use crate::service::{Auxiliaries, Service};
use crate::setting::{Setting, Settings};

/// How members find each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialling {
    /// Each member dials each other one at an address of its own, so the address says who dials.
    ByPair,
    /// Everybody dials a member at one and the same address, because all must be told the same: who dials is
    /// told by whose socket it is.
    Together,
}

/// What a system is like, known before anything is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Traits {
    /// Who its members are, in a message: `Apache ZooKeeper`.
    pub whose: &'static str,
    /// The kinds of clusters in which its members can run; the first is what a refusal advises.
    pub clusters: &'static [ClusterKind],
    /// Whether its members tell what they have synced, so that a kill can lose the rest.
    pub tells_synced: bool,
    /// Whether anybody can tell which member leads.
    pub tells_leader: bool,
    /// Whether there are two kinds of servers that take each other's place.
    pub replaces: bool,
    /// Whether it has members without a vote.
    pub observers: bool,
    /// Whether bugs can be planted in its members.
    pub takes_bugs: bool,
    /// From the onset of one fault to the next, when nobody says: long enough for an election.
    pub usual_interval: Duration,
    /// Silence between members after which one gives up on another, when nobody says.
    pub usual_peer_timeout: Duration,
    /// Ports on which a member listens for other members.
    pub peer_ports: u16,
    /// Which of those is the clients' as well, where they have none of their own.
    pub clients_at: Option<u16>,
    /// Whether a member may be several processes, all in one group.
    pub is_a_group: bool,
    /// How they find each other there.
    pub dialling: Dialling,
    /// The port at which a connection begins with the dialling member's own address, which dials back by it.
    pub introduced_at: Option<u16>,
}

impl Traits {
    /// Whether its members run there, and nowhere else.
    #[must_use]
    pub fn runs_only_in(&self, cluster: ClusterKind) -> bool {
        self.clusters == [cluster]
    }

    /// Why its members can't run in a cluster of this kind, and what to write instead.
    #[must_use]
    pub fn refuses(&self, cluster: ClusterKind) -> Option<String> {
        if cluster == ClusterKind::Auto || self.clusters.contains(&cluster) {
            return None;
        }
        let instead = self.clusters.first()?;
        let what = match instead {
            ClusterKind::Docker => "containers",
            ClusterKind::Sim => "parts of a virtual world",
            ClusterKind::Auto | ClusterKind::Process => "local processes",
        };
        Some(format!("members of {} are {what}; write --cluster {instead}", self.whose))
    }
}

/// What an installation is wanted for.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// Members that vote.
    pub nodes: u32,
    /// Members that observe.
    pub observers: u32,
    /// The run's seed.
    pub seed: u64,
    /// Silence between members after which one gives up on another.
    pub peer_timeout: Duration,
    /// The shortest and the longest session that is to be granted.
    pub sessions: (Duration, Duration),
    /// What was set of the system's own settings.
    pub settings: Settings,
    /// The bug that is planted in the members, by its name.
    pub bug: Option<&'static str>,
}

/// What clients that are processes of their own are started with.
#[derive(Clone, Debug)]
pub struct Beginning {
    /// How many there will be.
    pub clients: usize,
    /// Where members are found, by their numbers.
    pub members: Vec<(u64, SocketAddr)>,
    /// This executable.
    pub executable: PathBuf,
    /// What marks the run's processes, in their environment.
    pub environment: Vec<(String, String)>,
    /// Where their words are kept.
    pub folder: PathBuf,
    /// What starts them in a container beside the members, where they are there.
    pub alongside: Option<Arc<dyn Alongside>>,
}

/// A system under test. One that lives in virtual time alone says who it is, what it is like, what its
/// clients lack and how it is described; all that is about processes and containers is left as it is.
pub trait System: fmt::Debug + Send + Sync {
    /// Its name on the command line.
    fn name(&self) -> String;

    /// Puts on this machine's disk what its members and clients need there and only this program has.
    ///
    /// # Errors
    /// What could not be written, and why.
    fn unpack(&self) -> Result<(), String> {
        Ok(())
    }

    /// What it is like.
    fn traits(&self) -> Traits;

    /// Whether its members have this bug of their own. Those of [`Traits::takes_bugs`] are the bundled
    /// node's.
    fn has_bug(&self, name: &str) -> bool {
        let _ = name;
        false
    }

    /// The settings that only it has.
    fn settings(&self) -> &'static [Setting] {
        &[]
    }

    /// Why its members can't run in a cluster of this kind, and what to write instead: what follows from
    /// [`Traits::clusters`], and more where there is more to be said.
    fn refuses(&self, cluster: ClusterKind) -> Option<String> {
        self.traits().refuses(cluster)
    }

    /// Why its client can't do this, if it can't. Each system says so of every function: what nobody refuses
    /// is asked, and fails each time.
    fn lacks(&self, function: Function) -> Option<String>;

    /// What those applications run that hold something by its word in this way; none where there are none.
    fn applications(&self, holds: Applications) -> Option<Runs> {
        let _ = holds;
        None
    }

    /// Whether its client can do all of these.
    fn lacks_none_of(&self, functions: &[Function]) -> bool {
        functions.iter().all(|function| self.lacks(*function).is_none())
    }

    /// What it promises of a workload. If the workload can't be judged by that, a run of it is refused.
    fn promises(&self, workload: Kind) -> Promised {
        let _ = workload;
        Promised::default()
    }

    /// Whether it acknowledges changes again, without anybody's help, when nothing is broken any more.
    fn comes_back(&self) -> ComesBack {
        ComesBack::default()
    }

    /// The longest silence between members that none of them takes for an end.
    fn patience(&self, wanted: &Wanted) -> Duration {
        wanted.peer_timeout
    }

    /// What is written down of it; `found` is where it was found, when it runs as processes.
    fn described(&self, found: Option<&dyn Installation>) -> SystemInfo;

    /// What a line that a member printed says, if it is news of what the member is. `stand` is what it was.
    fn heard(&self, line: &[u8], member: MemberId, stand: Stand) -> Option<Said> {
        let _ = (line, member, stand);
        None
    }

    /// What asks each of these members who it is.
    fn looks(&self, members: &[Whereabouts]) -> Vec<Box<dyn Look>> {
        let _ = members;
        Vec::new()
    }

    /// Asks a member's client port whether anybody is there.
    fn port(&self, member: &Whereabouts) -> Async<'static, PortState> {
        let _ = member;
        Box::pin(async { PortState::Silent })
    }

    /// What a member answered last, in words, where it is asked whether it serves.
    fn says(&self, member: MemberId) -> Option<String> {
        let _ = member;
        None
    }

    /// Which kind of server answers at a client port by its own word, and its version.
    fn who(&self, member: SocketAddr) -> Async<'static, Option<(Server, String)>> {
        let _ = member;
        Box::pin(async { None })
    }

    /// The nemeses of the user's own that its file describes.
    fn nemeses(&self) -> Vec<Nemesis> {
        Vec::new()
    }

    /// Runs a command of one of them for a member, to its end or for as long as one may take.
    fn run_own(&self, order: Order, member: &Whereabouts) -> Async<'static, io::Result<Ran>> {
        let _ = (order, member);
        Box::pin(async { Err(io::Error::other("no file describes faults of this system")) })
    }

    /// A client. A system that lives in virtual time alone has its clients there.
    fn client(&self, settings: ClientSettings) -> Box<dyn Client> {
        let _ = settings;
        Box::new(NoClient)
    }

    /// How many members it has, where that is its own word.
    fn members(&self) -> Option<usize> {
        None
    }

    /// What its clients can do, where that is found out by asking one. It dies with `executable`, which is
    /// this one.
    ///
    /// # Errors
    /// What is wrong with that client.
    fn functions(&self, executable: &Path) -> Result<Option<Vec<Function>>, String> {
        let _ = executable;
        Ok(None)
    }

    /// Makes ready what clients need before there are any.
    ///
    /// # Errors
    /// Why there can't be clients.
    fn begin(&self, beginning: Beginning) -> Async<'_, Result<(), String>> {
        let _ = beginning;
        Box::pin(async { Ok(()) })
    }

    /// Completes when a client did what no client may do, so that nothing it said can be judged; with the
    /// reason.
    fn broken(&self) -> Async<'_, String> {
        Box::pin(std::future::pending())
    }

    /// Variables of the harness's own environment that say how it is set up. Their values are no secrets:
    /// they are kept with a run, and stand in the line that repeats it.
    fn variables(&self) -> &[String] {
        &[]
    }

    /// How long members in containers may take to serve after their start, where it says so.
    fn start_patience(&self) -> Option<Duration> {
        None
    }

    /// How it runs in containers, if it does.
    fn contained(&self) -> Option<&dyn Contained> {
        None
    }

    /// Looks for it on this machine.
    ///
    /// # Errors
    /// What is missing, and what to do about it.
    fn install(&self, wanted: &Wanted) -> Result<Arc<dyn Installation>, String> {
        let _ = wanted;
        Err(self.refuses(ClusterKind::Process).unwrap_or_default())
    }
}

/// Where members listen in containers, each at an address of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContainerPorts<'a> {
    /// For clients.
    pub client: u16,
    /// For other members.
    pub peers: &'a [u16],
    /// For whoever asks how they are, beside those.
    pub questions: &'a [u16],
}

/// A member's place in a container.
#[derive(Clone, Copy, Debug)]
pub struct Placement<'a> {
    /// This executable, as the image has it.
    pub executable: &'a str,
    /// Where its data lies.
    pub data: &'a str,
    /// Everybody's address.
    pub ensemble: &'a [(MemberId, IpAddr)],
    /// Those that vote.
    pub voters: &'a [MemberId],
    /// Whose place it is.
    pub id: MemberId,
    /// Silence between members after which one gives up on another.
    pub peer_timeout: Duration,
    /// The bug that is planted in it, by its name.
    pub bug: Option<&'static str>,
    /// Whether it comes back without what it had not synced.
    pub lose_unsynced: bool,
}

/// How a system runs in containers.
pub trait Contained {
    /// Where its members listen.
    fn ports(&self) -> ContainerPorts<'_>;

    /// What an image that holds nothing but this executable runs as a member.
    fn command(&self, placement: &Placement<'_>) -> Vec<String>;

    /// What an image that somebody named is told by its environment.
    fn environment(&self, placement: &Placement<'_>) -> Vec<(&'static str, String)>;

    /// A pause after which a member of an image that somebody named has surely tried again to join.
    fn rejoins_within(&self) -> Duration {
        Duration::ZERO
    }

    /// What each member is made of, in their order, where each has an image of its own.
    fn services(&self) -> Option<&[Service]> {
        None
    }

    /// What stands beside the members and is never broken.
    fn auxiliaries(&self) -> &Auxiliaries {
        const { &Auxiliaries::NONE }
    }

    /// What was asked for that is done otherwise.
    fn notes(&self) -> &[String] {
        &[]
    }
}

/// A system as it was found on this machine: what starts members as processes.
pub trait Installation: Send + Sync {
    /// Versions of what was found, by what they are of.
    fn versions(&self) -> BTreeMap<String, String> {
        BTreeMap::new()
    }

    /// Settings that one needs to know to do it again, by name.
    fn settings(&self) -> BTreeMap<String, String> {
        BTreeMap::new()
    }

    /// What is worth saying before the first member starts.
    fn greeting(&self) -> Option<String> {
        None
    }

    /// What each member begins as; nobody is named where all are of one kind that nothing replaces.
    fn servers(&self) -> BTreeMap<MemberId, Server> {
        BTreeMap::new()
    }

    /// Whether a member of this kind says by itself what it is; one that does not is asked.
    fn tells(&self, server: Option<Server>) -> bool;

    /// How long the ensemble may take to serve after its processes were started.
    fn start_patience(&self) -> Duration;

    /// How long a member may take to end when it is asked to.
    fn farewell(&self) -> Duration {
        Duration::from_secs(1)
    }

    /// What starts a member. Files that it needs are written first, into its site's folder.
    ///
    /// # Errors
    /// When a file can't be written, or the member can't lose what it was to lose.
    fn command(
        &self,
        site: &Site<'_>,
        server: Option<Server>,
        lose_unsynced: bool,
    ) -> anyhow::Result<Command>;
}

/// Who listens where.
pub trait Addresses: Send + Sync {
    /// Where clients find a member.
    fn client(&self, member: MemberId) -> SocketAddr;

    /// Where a member listens for others: the port of that number.
    fn peer(&self, member: MemberId, port: u16) -> SocketAddr;

    /// Where the first of a pair dials that port of the second.
    fn dial(&self, pair: Pair, port: u16) -> SocketAddr;
}

/// Where a member stands: what it keeps from one process to the next.
pub struct Site<'a> {
    /// This executable: it becomes a member, or another program that dies with the harness.
    pub executable: &'a Path,
    /// The member's folder, absolute; its data lies below.
    pub folder: PathBuf,
    /// Who listens where.
    pub addresses: &'a dyn Addresses,
    /// Everybody: voters first, observers behind them.
    pub members: &'a [MemberId],
    /// Those of them that vote.
    pub voters: &'a [MemberId],
    /// Whose site it is.
    pub id: MemberId,
}

impl Site<'_> {
    /// Whether a member observes and has no vote.
    #[must_use]
    pub fn observes(&self, member: MemberId) -> bool {
        !self.voters.contains(&member)
    }

    /// Where its data lies.
    #[must_use]
    pub fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    /// A command that runs a program which ends with the harness: our executable asks the kernel for that and
    /// becomes the program.
    #[must_use]
    pub fn program(&self, program: &Path) -> Command {
        let mut command = Command::new(self.executable);
        command.arg("become").arg("--parent").arg(std::process::id().to_string()).arg("--").arg(program);
        command
    }

    /// The address that this member is told for a port of `member`: where it dials it, or where it listens
    /// itself.
    #[must_use]
    pub fn told(&self, member: MemberId, port: u16) -> SocketAddr {
        if member == self.id {
            self.addresses.peer(member, port)
        } else {
            self.addresses.dial(Pair::new(self.id, member), port)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// It has members nowhere but in a virtual world.
    #[derive(Debug)]
    struct Dreamt;

    impl System for Dreamt {
        fn name(&self) -> String {
            "dreamt".to_owned()
        }

        fn traits(&self) -> Traits {
            Traits {
                whose: "a dream",
                clusters: &[ClusterKind::Sim],
                tells_synced: true,
                tells_leader: true,
                replaces: false,
                observers: false,
                takes_bugs: false,
                usual_interval: Duration::from_secs(4),
                usual_peer_timeout: Duration::from_millis(250),
                peer_ports: 0,
                clients_at: None,
                is_a_group: false,
                dialling: Dialling::ByPair,
                introduced_at: None,
            }
        }

        fn lacks(&self, _: Function) -> Option<String> {
            None
        }

        fn described(&self, _: Option<&dyn Installation>) -> SystemInfo {
            SystemInfo::default()
        }
    }

    #[test]
    fn a_system_may_live_in_virtual_time_alone_and_says_so_elsewhere() {
        assert_eq!(Dreamt.refuses(ClusterKind::Sim), None);
        assert!(Dreamt.traits().runs_only_in(ClusterKind::Sim));
        for cluster in [ClusterKind::Process, ClusterKind::Docker] {
            let why = "members of a dream are parts of a virtual world; write --cluster sim";
            assert_eq!(Dreamt.refuses(cluster).as_deref(), Some(why));
        }
    }
}
