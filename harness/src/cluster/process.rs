//! The cluster of child processes on loopback: it needs no root, no Docker, nothing installed.
//!
//! The bundled node is this very executable under its hidden subcommand `member`, so nothing else has to be
//! built; members of another system are started as it was found on this machine
//! ([`harness_systems::Installation`]), behind the same links and with the same end. Members speak with each
//! other through links ([`crate::links`]), and wall clocks are shifted by tracing ([`harness_clock`]).
//! Children are in process groups of their own, so that Ctrl-C reaches the harness alone, which then heals in
//! order; they ask the kernel to die with the harness, whatever kills it.

use std::collections::BTreeMap;
use std::fs::File;
use std::net::SocketAddr;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use harness_core::condition::LinkCondition;
use harness_core::fault::Server;
use harness_systems::{Addresses, Dialling, Installation, Order, Ran, Site, Whereabouts};
use runs::events::Event;
use runs::member::MemberId;
use runs::views;
use rustix::process::Signal;

use super::member::Member;
use super::observer::{self, Watched};
use super::ports::PortPlan;
use super::process_clock::Clocks;
use super::settings::MemberSettings;
use super::voice::Place;
use super::{Async, ClockReading, Cluster, PortState, ProcessState, Traffic, every};
use crate::clock::RunClock;
use crate::events::EventLog;
use crate::host::spawner::Spawner;
use crate::links::handle::Links;
use crate::links::owner::{FOLDER_VARIABLE, MEMBER_VARIABLE, Marks};
use crate::links::past::{self, LookOut};
use crate::links::protocol::{Delayed, EntranceSpec, LinkSpec, Pair, ProbeRound};
use crate::links::rules::Rule;
use crate::store::lock::TOKEN_VARIABLE;

/// How long a killed process may take to be reaped.
const SIGNAL_PATIENCE: Duration = Duration::from_secs(5);

/// A port of the block that was chosen is taken after all. Another block may do.
#[derive(Clone, Copy, Debug)]
pub struct PortClash(pub SocketAddr);

impl std::fmt::Display for PortClash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "port {} was taken by somebody else in the meantime", self.0)
    }
}

impl std::error::Error for PortClash {}

/// The cluster.
pub struct ProcessCluster {
    settings: MemberSettings,
    installation: Arc<dyn Installation>,
    executable: PathBuf,
    ports: PortPlan,
    ids: Vec<MemberId>,
    members: BTreeMap<MemberId, Member>,
    events: EventLog,
    /// Started with the members.
    links: OnceLock<Links>,
    spawner: Spawner,
    clock: RunClock,
    clocks: Clocks,
    /// What each member runs as, where not all are of one kind for ever.
    servers: Arc<Mutex<BTreeMap<MemberId, Server>>>,
    /// What asks those that don't tell.
    observer: Mutex<Option<tokio::task::AbortHandle>>,
    /// What directions are like. Held until the links follow, so that rules arrive in the order in which they
    /// were decided.
    conditions: tokio::sync::Mutex<Conditions>,
    /// While any direction is not as usual: whether members have another way.
    look_out: Mutex<Option<LookOut>>,
}

impl ProcessCluster {
    /// Makes folders. Nothing runs yet: what it can't do may still be asked for and refused.
    pub fn create(
        settings: MemberSettings,
        installation: Arc<dyn Installation>,
        ports: PortPlan,
        clock: RunClock,
    ) -> anyhow::Result<Self> {
        let ids = settings.members();
        let events = EventLog::new(&ids);
        let mut members = BTreeMap::new();
        for id in &ids {
            let folder = settings.folder.join("nodes").join(id.0.to_string());
            std::fs::create_dir_all(folder.join("data"))
                .with_context(|| format!("creating {}", folder.display()))?;
            let system = Arc::clone(&settings.system);
            let place = Place { id: *id, folder, clock, events: events.clone(), system };
            members.insert(*id, Member::new(place, settings.system.traits().is_a_group));
        }
        let executable = own_executable()?;
        let spawner = Spawner::start().context("starting a thread")?;
        let servers = Arc::new(Mutex::new(installation.servers()));
        Ok(Self {
            settings,
            installation,
            executable,
            ports,
            ids,
            members,
            events,
            links: OnceLock::new(),
            spawner,
            clock,
            clocks: Clocks::default(),
            servers,
            observer: Mutex::default(),
            conditions: tokio::sync::Mutex::default(),
            look_out: Mutex::default(),
        })
    }

    fn start_links(&self) -> anyhow::Result<&Links> {
        let mut command = Command::new(&self.executable);
        command.arg("links");
        self.mark(&mut command);
        command.env(FOLDER_VARIABLE, self.folder()?);
        let log = File::create(self.settings.folder.join("links.log")).context("creating links.log")?;
        command.stderr(log);
        let links = Links::spawn(&self.spawner, command)?;
        Ok(self.links.get_or_init(|| links))
    }

    /// The run's folder, as the kernel names what is open below it.
    fn folder(&self) -> anyhow::Result<PathBuf> {
        let folder = std::path::absolute(&self.settings.folder).context("finding the run's folder")?;
        Ok(folder.canonicalize().unwrap_or(folder))
    }

    fn marks(&self) -> anyhow::Result<Marks> {
        Ok(Marks { token: self.settings.token.clone().into(), folder: self.folder()? })
    }

    fn look_out(&self) -> MutexGuard<'_, Option<LookOut>> {
        self.look_out.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks out for ways past the links, from now on and until every direction is as usual.
    fn looks_out(&self) -> anyhow::Result<()> {
        let mut look_out = self.look_out();
        if look_out.is_none() {
            *look_out = Some(LookOut::new(self.marks()?).context("looking out for ways past the links")?);
        }
        Ok(())
    }

    fn links(&self) -> anyhow::Result<&Links> {
        self.links.get().ok_or_else(|| anyhow!("the links are not started"))
    }

    fn member(&self, id: MemberId) -> anyhow::Result<&Member> {
        self.members.get(&id).ok_or_else(|| anyhow!("there is no member {}", id.0))
    }

    /// Every ordered pair of different members.
    fn pairs(&self) -> impl Iterator<Item = Pair> {
        let others = |from: MemberId| {
            self.ids.iter().filter(move |to| **to != from).map(move |to| Pair::new(from, *to))
        };
        self.ids.iter().flat_map(move |from| others(*from))
    }

    /// A child of this run: recognisable by its environment, in a process group of its own.
    fn mark(&self, command: &mut Command) {
        command.env(TOKEN_VARIABLE, &self.settings.token).process_group(0);
    }

    /// One for each port at which a member dials another.
    fn link_specs(&self) -> Vec<LinkSpec> {
        let system = self.settings.system.traits();
        if system.dialling == Dialling::Together {
            return Vec::new();
        }
        let spec = |pair: Pair, port: u16| LinkSpec {
            pair,
            listen: self.ports.dial(pair, port),
            target: self.ports.peer(pair.to, port),
            introduces: (system.introduced_at == Some(port)).then(|| self.ports.dial(pair.back(), port)),
        };
        self.pairs().flat_map(|pair| (0..system.peer_ports).map(move |port| spec(pair, port))).collect()
    }

    /// One for each port at which everybody dials a member.
    fn entrance_specs(&self) -> Vec<EntranceSpec> {
        let system = self.settings.system.traits();
        if system.dialling == Dialling::ByPair {
            return Vec::new();
        }
        let spec = |to: MemberId, port: u16| EntranceSpec {
            from: self.ids.iter().copied().filter(|from| *from != to).collect(),
            to,
            listen: self.ports.dial(Pair::new(to, to), port),
            target: self.ports.peer(to, port),
        };
        self.ids.iter().flat_map(|to| (0..system.peer_ports).map(move |port| spec(*to, port))).collect()
    }

    /// What a member runs as, or ran as last, where there are two kinds.
    fn server(&self, id: MemberId) -> Option<Server> {
        self.servers.lock().unwrap_or_else(PoisonError::into_inner).get(&id).copied()
    }

    fn spawn(&self, id: MemberId, lose_unsynced: bool) -> anyhow::Result<()> {
        let member = self.member(id)?;
        let site = Site {
            executable: &self.executable,
            folder: std::path::absolute(&member.place().folder).context("finding the run's folder")?,
            addresses: &self.ports,
            members: &self.ids,
            voters: self.voters(),
            id,
        };
        let mut command = self.installation.command(&site, self.server(id), lose_unsynced)?;
        self.mark(&mut command);
        command.env(MEMBER_VARIABLE, id.0.to_string());
        member.spawn(&self.spawner, command)
    }

    /// Starts a member again, with its clock as it was.
    async fn start_again(&self, id: MemberId, lose_unsynced: bool) -> anyhow::Result<()> {
        let started = self.clock.now();
        self.spawn(id, lose_unsynced)?;
        let member = self.member(id)?;
        if let Some(offset_ns) = self.clocks.follow(id, member.pid()).await? {
            let gap_ns = Some(self.clock.now().saturating_sub(started));
            member.note(Event::Clock { offset_ns, gap_ns });
        }
        Ok(())
    }

    async fn start_all(&self) -> anyhow::Result<()> {
        if let Err(address) = self.start_links()?.open(self.link_specs(), self.entrance_specs()).await? {
            return Err(PortClash(address).into());
        }
        for id in &self.ids {
            self.spawn(*id, false)?;
        }
        if self.ids.iter().any(|id| !self.installation.tells(self.server(*id))) {
            self.observe();
        }
        let patience = self.installation.start_patience();
        let in_time = self.events.wait(patience, views::settled).await;
        let views = self.events.views();
        if let Some((id, _)) = views.iter().find(|(_, view)| !view.running) {
            let words = self.member(*id)?.last_words();
            if words.contains("in use") {
                return Err(PortClash(self.ports.client(*id)).into());
            }
            bail!(
                "member {} ended while the ensemble was starting; the end of its log ({}):\n{words}",
                id.0,
                self.member(*id)?.place().log_file().display()
            );
        }
        if !in_time {
            bail!(
                "the ensemble does not serve {} s after its start: {}{}",
                patience.as_secs(),
                views::laggards(&views),
                observer::answers(&*self.settings.system, &self.ids)
            );
        }
        Ok(())
    }

    fn whereabouts(&self, id: MemberId) -> Whereabouts {
        let folder = self.members.get(&id).map(|member| member.place().folder.join("data"));
        let data = folder.and_then(|data| std::path::absolute(data).ok());
        Whereabouts { data, ..Whereabouts::of(id, self.ports.client(id)) }
    }

    /// Has those that don't tell what they are be asked, for as long as the cluster lives.
    fn observe(&self) {
        let members: Vec<_> = self.ids.iter().map(|id| self.whereabouts(*id)).collect();
        let looks = self.settings.system.looks(&members);
        let watched = self.members.iter().zip(looks).map(|((id, member), look)| {
            let (id, servers) = (*id, Arc::clone(&self.servers));
            let installation = Arc::clone(&self.installation);
            let is_silent = move || {
                let servers = servers.lock().unwrap_or_else(PoisonError::into_inner);
                !installation.tells(servers.get(&id).copied())
            };
            Watched { place: member.place().clone(), look, is_silent: Arc::new(is_silent) }
        });
        let task = tokio::spawn(observer::observe(watched.collect()));
        let mut observer = self.observer.lock().unwrap_or_else(PoisonError::into_inner);
        *observer = Some(task.abort_handle());
    }

    fn stop_observing(&self) {
        if let Some(observer) = self.observer.lock().unwrap_or_else(PoisonError::into_inner).take() {
            observer.abort();
        }
    }
}

impl Cluster for ProcessCluster {
    fn name(&self) -> &'static str {
        "process"
    }

    fn can_shift_clocks(&self) -> Result<(), String> {
        if self.settings.system.traits().is_a_group {
            return Err(
                "a member of this system may be several processes, and a clock is shifted in one: run \
                        it in containers"
                    .to_owned(),
            );
        }
        self.clocks.can()
    }

    fn can_replace(&self) -> Result<(), String> {
        if self.settings.system.traits().replaces {
            return Ok(());
        }
        Err("there is one kind of server only".to_owned())
    }

    fn members(&self) -> &[MemberId] {
        &self.ids
    }

    fn voters(&self) -> &[MemberId] {
        &self.ids[..self.settings.voters()]
    }

    fn client_address(&self, member: MemberId) -> SocketAddr {
        self.ports.client(member)
    }

    fn events(&self) -> &EventLog {
        &self.events
    }

    fn start(&self) -> Async<'_, ()> {
        Box::pin(self.start_all())
    }

    fn kill<'a>(&'a self, members: &'a [MemberId]) -> Async<'a, ()> {
        Box::pin(async move {
            for id in members {
                self.member(*id)?.signal(Signal::KILL);
            }
            Ok(())
        })
    }

    fn restart<'a>(&'a self, members: &'a [MemberId], lose_unsynced: bool) -> Async<'a, ()> {
        Box::pin(async move {
            let again = members.iter().map(async |id| {
                self.member(*id)?.ended(SIGNAL_PATIENCE).await?;
                self.start_again(*id, lose_unsynced).await
            });
            every(again).await.map(drop)
        })
    }

    fn retire<'a>(&'a self, members: &'a [MemberId]) -> Async<'a, ()> {
        Box::pin(async move {
            for id in members {
                self.member(*id)?.signal(Signal::TERM);
            }
            Ok(())
        })
    }

    fn restart_as<'a>(&'a self, members: &'a [MemberId], server: Server) -> Async<'a, ()> {
        Box::pin(async move {
            let again = members.iter().map(async |id| {
                self.member(*id)?.ended(SIGNAL_PATIENCE).await?;
                self.servers.lock().unwrap_or_else(PoisonError::into_inner).insert(*id, server);
                self.start_again(*id, false).await
            });
            every(again).await.map(drop)
        })
    }

    fn servers(&self) -> BTreeMap<MemberId, Server> {
        self.servers.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn who_answers(&self, member: MemberId) -> Async<'_, Option<(Server, String)>> {
        Box::pin(async move { Ok(self.settings.system.who(self.ports.client(member)).await) })
    }

    fn pause<'a>(&'a self, members: &'a [MemberId]) -> Async<'a, ()> {
        Box::pin(async move {
            for id in members {
                self.member(*id)?.signal(Signal::STOP);
                self.member(*id)?.note(Event::Paused);
            }
            Ok(())
        })
    }

    fn resume<'a>(&'a self, members: &'a [MemberId]) -> Async<'a, ()> {
        Box::pin(async move {
            for id in members {
                self.member(*id)?.note(Event::Resumed);
                self.member(*id)?.signal(Signal::CONT);
            }
            Ok(())
        })
    }

    fn can_delay(&self) -> Result<(), String> {
        Ok(())
    }

    fn link<'a>(&'a self, fault: &'a str, links: &'a [(Pair, LinkCondition)]) -> Async<'a, Traffic> {
        Box::pin(async move {
            let mut conditions = self.conditions.lock().await;
            conditions.insert(fault.to_owned(), links.iter().copied().collect());
            self.looks_out()?;
            let rules = rules(&conditions, links.iter().map(|(pair, _)| *pair));
            Ok(Traffic { counts: self.links()?.set(rules).await? })
        })
    }

    fn heal<'a>(&'a self, fault: &'a str) -> Async<'a, Traffic> {
        Box::pin(async move {
            let mut conditions = self.conditions.lock().await;
            let healed = conditions.remove(fault).unwrap_or_default();
            if conditions.is_empty() {
                *self.look_out() = None;
            }
            let rules = rules(&conditions, healed.into_keys());
            Ok(Traffic { counts: self.links()?.set(rules).await? })
        })
    }

    fn traffic(&self) -> Async<'_, Traffic> {
        Box::pin(async move { Ok(Traffic { counts: self.links()?.counters().await? }) })
    }

    fn way_round<'a>(&'a self, pairs: &'a [Pair]) -> Async<'a, Option<String>> {
        Box::pin(async move {
            let marks = self.marks()?;
            let mut connected = tokio::task::spawn_blocking(move || past::connected(&marks)).await?;
            connected.extend(self.look_out().as_ref().map(LookOut::seen).unwrap_or_default());
            let joins = |pair: &&Pair| pairs.contains(pair) || pairs.contains(&pair.back());
            Ok(connected
                .iter()
                .find(joins)
                .map(|pair| format!("n{} and n{} are connected past the links", pair.from.0, pair.to.0)))
        })
    }

    fn delays(&self) -> Async<'_, Vec<Delayed>> {
        Box::pin(async move { self.links()?.delays().await })
    }

    fn probe(&self, slower: Duration) -> Async<'_, ProbeRound> {
        Box::pin(async move { self.links()?.probe(slower).await })
    }

    fn process_state(&self, member: MemberId) -> Async<'_, ProcessState> {
        Box::pin(async move { Ok(self.member(member)?.state()) })
    }

    fn shift_clock<'a>(&'a self, members: &'a [MemberId], offset_ns: i64) -> Async<'a, ()> {
        Box::pin(async move {
            let shifted = members.iter().map(async |id| {
                let member = self.member(*id)?;
                if self.clocks.set(*id, offset_ns, || member.pid()).await? {
                    member.note(Event::Clock { offset_ns, gap_ns: None });
                }
                Ok(())
            });
            every(shifted).await.map(drop)
        })
    }

    fn read_clock(&self, member: MemberId) -> Async<'_, ClockReading> {
        Box::pin(async move {
            let pid = self.member(member)?.pid().ok_or_else(|| anyhow!("n{} does not run", member.0))?;
            self.clocks.read(pid).await
        })
    }

    fn run_own(&self, member: MemberId, order: Order) -> Async<'_, Ran> {
        Box::pin(async move { Ok(self.settings.system.run_own(order, &self.whereabouts(member)).await?) })
    }

    fn ask(&self, member: MemberId) -> Async<'_, PortState> {
        Box::pin(async move {
            let state = self.settings.system.port(&self.whereabouts(member)).await;
            Ok(state.behind(false))
        })
    }

    fn broken(&self) -> Async<'_, String> {
        Box::pin(async move {
            let how = self.links()?.broken().await;
            Ok(format!("the process of the links ended ({how})"))
        })
    }

    fn stop(&self) -> Async<'_, ()> {
        Box::pin(async move {
            self.stop_observing();
            for member in self.members.values() {
                // A stopped process takes the polite signal only when it goes on.
                member.signal(Signal::TERM);
                member.signal(Signal::CONT);
            }
            for (id, member) in &self.members {
                if member.ended(self.installation.farewell()).await.is_err() {
                    tracing::warn!(member = id.0, "does not end when asked, is killed");
                    member.signal(Signal::KILL);
                    member.ended(SIGNAL_PATIENCE).await?;
                }
            }
            match self.links.get() {
                Some(links) => links.stop().await,
                None => Ok(()),
            }
        })
    }
}

/// What holds for each of `pairs` when all of `conditions` are in force.
fn rules(conditions: &Conditions, pairs: impl Iterator<Item = Pair>) -> Vec<(Pair, Rule)> {
    let all = |pair: &Pair| {
        let own = conditions.values().filter_map(|links| links.get(pair).copied());
        own.fold(LinkCondition::default(), LinkCondition::and)
    };
    pairs.map(|pair| (pair, Rule::of(all(&pair)))).collect()
}

/// What directions are like, by fault.
type Conditions = BTreeMap<String, BTreeMap<Pair, LinkCondition>>;

impl Drop for ProcessCluster {
    /// Whatever led here, a panic too: no process stays.
    fn drop(&mut self) {
        self.stop_observing();
        for member in self.members.values() {
            member.signal(Signal::KILL);
        }
        tracing::debug!(at = self.clock.now(), "the process cluster is gone");
    }
}

/// This executable. The path that the kernel gives stays right when the file was replaced meanwhile.
fn own_executable() -> anyhow::Result<PathBuf> {
    let path = std::env::current_exe().context("finding this executable")?;
    if path.exists() { Ok(path) } else { Ok(PathBuf::from("/proc/self/exe")) }
}
