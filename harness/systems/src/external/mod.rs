//! A system of the user's own: a file that says how its members start, and a client that speaks lines.
//!
//! The file ([`mod@file`]) is TOML with command templates ([`template`]), and members are local processes;
//! or it is a Compose file with a block of ours ([`compose`]), and they are containers. How a member is
//! asked whether it serves, and whether it leads, is a probe: bytes sent and expected, an HTTP request, or
//! a command. A system that tells nobody who leads is judged all the same: the page then shows outages and
//! no elections, and nothing aims at a leader.
//!
//! The client is any program that reads requests and writes answers, a line of JSON each ([`lines`]). A
//! *worker* is an identity in the history; a *process* runs it. A process that is silent for too long, or
//! that ends, is replaced by one that waits already ([`pool`]): so a partition does not mean hundreds of
//! starts a second, and nothing that a client does is ever a violation of the system's.
//!
//! Members dial each other at one address each ([`Dialling::Together`]): a file can tell all of them the
//! same.
//!
//! The file may describe faults of the user's own as well (`faults.rs`): commands that break a member, undo
//! that, and see it.
//!
//! - [`check`]: a conversation with a client, without a cluster.

pub mod check;
pub mod compose;
pub mod file;
pub mod holder;
pub mod lines;
pub mod pool;
pub mod template;

mod client;
mod depends;
mod faults;
mod inflict;
mod integer;
mod launch;
mod probe;
mod process;
mod transaction;
mod written;
mod yaml;

use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use checker::history::Function;
use checker::orders::Orders;
use harness_core::fault::Nemesis;
use runs::clock::whole_milliseconds;
use runs::cluster_kind::ClusterKind;
use runs::comes_back::ComesBack;
use runs::events::Said;
use runs::member::MemberId;
use runs::results::{Promised, SystemInfo};
use runs::views::Stand;
use workloads::{Applications, Kind};

use crate::Async;
use crate::alongside::InContainer;
use crate::application::Runs;
use crate::client::{Client, ClientSettings};
use crate::files::Files;
use crate::look::{Look, PortState, Ran, Whereabouts};
use crate::own::Order;
use crate::service::{Auxiliaries, Service};
use crate::system::{
    Beginning, Contained, ContainerPorts, Dialling, Installation, Placement, System, Traits, Wanted,
};
pub use process::{MEMBERS_VARIABLE, SESSION_VARIABLE, STORE_VARIABLE, accused, listed};

use file::{Description, InContainers, Members};
use pool::Pool;

/// The endings of files that describe a system.
const ENDINGS: [&str; 3] = ["toml", "yaml", "yml"];

/// A system that a file describes.
#[derive(Clone, Debug)]
pub struct External {
    description: Arc<Description>,
    /// As it was typed.
    named: String,
    /// The files that it is, where it has a name.
    files: Option<&'static Files>,
    /// Its name, for as long as the program runs.
    whose: &'static str,
    pool: Arc<Pool>,
    /// What each member answered last.
    answers: Arc<Mutex<probe::Answers>>,
}

/// A name, for as long as the program runs. One that was asked for before is the same, so that no more is
/// kept than there are names.
fn kept(name: &str) -> &'static str {
    static KEPT: Mutex<BTreeSet<&str>> = Mutex::new(BTreeSet::new());
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = kept.get(name) {
        return known;
    }
    let name: &'static str = String::leak(name.to_owned());
    kept.insert(name);
    name
}

impl External {
    /// Whether a text names a file and no system that is built in.
    #[must_use]
    pub fn is_meant(text: &str) -> bool {
        let ending = Path::new(text).extension().and_then(|ending| ending.to_str());
        text.contains('/') || ending.is_some_and(|ending| ENDINGS.contains(&ending))
    }

    /// Reads the file.
    ///
    /// # Errors
    /// What is wrong with it, and what to write instead.
    pub fn read(path: &str) -> Result<Self, String> {
        Ok(Self::described(file::read(Path::new(path))?, path, None))
    }

    fn described(description: Description, named: &str, files: Option<&'static Files>) -> Self {
        let whose = kept(&description.name);
        let pool = Arc::new(Pool::new(description.client.clone()));
        let description = Arc::new(description);
        Self { description, named: named.to_owned(), files, whose, pool, answers: Arc::default() }
    }

    /// The system of that name which these files are. None of them is written yet.
    ///
    /// # Errors
    /// What is wrong with them, or why there is no place for them.
    pub fn of_files(files: &'static Files, in_containers: bool) -> Result<Self, String> {
        let (name, text) = files.described(in_containers).ok_or("it has no file for members")?;
        let description = file::described(text, &files.folder()?.join(name))?;
        Ok(Self::described(description, files.name, Some(files)))
    }

    /// The container of its client, where that is in one.
    fn in_container(&self) -> Option<&InContainer> {
        self.description.client.as_ref()?.in_container.as_ref()
    }
}

impl Contained for InContainers {
    fn ports(&self) -> ContainerPorts<'_> {
        ContainerPorts { client: self.client_port, peers: &self.peer_ports, questions: &self.question_ports }
    }

    /// What runs is the services' word.
    fn command(&self, _: &Placement<'_>) -> Vec<String> {
        Vec::new()
    }

    fn environment(&self, _: &Placement<'_>) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    fn services(&self) -> Option<&[Service]> {
        Some(&self.services)
    }

    fn auxiliaries(&self) -> &Auxiliaries {
        &self.auxiliaries
    }

    fn notes(&self) -> &[String] {
        &self.notes
    }
}

impl System for External {
    fn name(&self) -> String {
        self.named.clone()
    }

    fn traits(&self) -> Traits {
        let (clusters, peer_ports, clients_at): (&[_], _, _) = match &self.description.members {
            Members::Processes(members) => (&[ClusterKind::Process], members.peers, members.clients_at),
            // Where containers listen is the word of [`Contained`].
            Members::Containers(_) => (&[ClusterKind::Docker], 0, None),
        };
        Traits {
            whose: self.whose,
            clusters,
            tells_synced: false,
            tells_leader: self.description.leader.is_some(),
            replaces: false,
            observers: false,
            takes_bugs: false,
            usual_interval: self.description.interval,
            usual_peer_timeout: self.description.gives_up_after,
            peer_ports,
            clients_at,
            is_a_group: true,
            dialling: Dialling::Together,
            introduced_at: None,
        }
    }

    fn variables(&self) -> &[String] {
        &self.description.variables
    }

    fn lacks(&self, function: Function) -> Option<String> {
        let is_held = matches!(function, Function::ACQUIRE | Function::STORE | Function::RELEASE);
        if is_held && let Some(container) = self.in_container() {
            return Some(format!(
                "whoever holds is stopped, killed and cut off, and processes in the container of {} can't be \
                 (x-harness.client.service)",
                container.service
            ));
        }
        match function {
            Function::CREATE | Function::DELETE => Some("lines have no numbered names".to_owned()),
            Function::ENTER | Function::LEAVE => Some("lines have no barriers".to_owned()),
            Function::EXISTS | Function::OPEN | Function::CLOSE | Function::ABANDON => {
                Some("lines have no sessions".to_owned())
            }
            // Whatever else a workload asks for is a line like any other; the client says whether it can.
            _ => None,
        }
    }

    /// A client that is to hold a lock is a process that can be stopped by itself.
    fn applications(&self, holds: Applications) -> Option<Runs> {
        let client = self.description.client.as_ref().filter(|client| client.in_container.is_none())?;
        (holds == Applications::Lock).then(|| Runs::Program(Arc::clone(client)))
    }

    fn promises(&self, workload: Kind) -> Promised {
        self.description.promised(workload)
    }

    fn comes_back(&self) -> ComesBack {
        self.description.comes_back.clone()
    }

    fn patience(&self, wanted: &Wanted) -> Duration {
        wanted.peer_timeout
    }

    fn described(&self, found: Option<&dyn Installation>) -> SystemInfo {
        let name = &self.description.name;
        let version = found.and_then(|found| found.versions().remove(name)).unwrap_or_default();
        let name = format!("{name} {version}").trim_end().to_owned();
        let orders = Orders { seen: "-".to_owned(), changed: "-".to_owned(), hexadecimal: false };
        let rejoin_ms = whole_milliseconds(self.description.gives_up_after);
        let leader = probe::leader_seen(&self.description);
        SystemInfo { name: name.clone(), before: name, orders, rejoin_ms, leader, ..SystemInfo::default() }
    }

    fn heard(&self, _: &[u8], _: MemberId, _: Stand) -> Option<Said> {
        None
    }

    fn looks(&self, members: &[Whereabouts]) -> Vec<Box<dyn Look>> {
        probe::looks(&self.description, members, &self.answers)
    }

    fn port(&self, member: &Whereabouts) -> Async<'static, PortState> {
        Box::pin(probe::port(Arc::clone(&self.description), member.clone()))
    }

    fn says(&self, member: MemberId) -> Option<String> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner).get(&member).cloned()
    }

    fn nemeses(&self) -> Vec<Nemesis> {
        self.description.faults.iter().map(|fault| fault.own.into()).collect()
    }

    fn run_own(&self, order: Order, member: &Whereabouts) -> Async<'static, io::Result<Ran>> {
        Box::pin(inflict::run(Arc::clone(&self.description), order, member.clone()))
    }

    fn client(&self, settings: ClientSettings) -> Box<dyn Client> {
        Box::new(client::LinesClient::new(settings.number, Arc::clone(&self.pool)))
    }

    fn unpack(&self) -> Result<(), String> {
        self.files.map_or(Ok(()), |files| files.unpacked().map(drop))
    }

    fn members(&self) -> Option<usize> {
        self.contained()?.services().map(<[Service]>::len)
    }

    fn functions(&self, executable: &Path) -> Result<Option<Vec<Function>>, String> {
        let client = self.description.client.as_ref().ok_or_else(|| pool::NO_CLIENT.to_owned())?;
        if let Some(container) = &client.in_container {
            return Ok(Some(container.functions.clone()));
        }
        process::functions_of(client, executable).map(Some)
    }

    fn start_patience(&self) -> Option<Duration> {
        Some(self.description.start_patience)
    }

    fn contained(&self) -> Option<&dyn Contained> {
        match &self.description.members {
            Members::Containers(members) => Some(members),
            Members::Processes(_) => None,
        }
    }

    fn begin(&self, beginning: Beginning) -> Async<'_, Result<(), String>> {
        Box::pin(self.pool.begin(beginning))
    }

    fn broken(&self) -> Async<'_, String> {
        Box::pin(self.pool.broken())
    }

    fn install(&self, _: &Wanted) -> Result<Arc<dyn Installation>, String> {
        match &self.description.members {
            Members::Processes(members) => Ok(Arc::new(launch::Installed::find(&self.description, members)?)),
            Members::Containers(_) => Err("its members are containers".to_owned()),
        }
    }
}
