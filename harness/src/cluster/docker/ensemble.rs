//! The ensemble: image, network, volumes, sandboxes and members, made in the order in which they need each
//! other, and as much at once as can be.

use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::path::Path;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, bail};
use bollard::models::{NetworkCreateRequest, VolumeCreateRequest};
use futures_util::future::{join_all, try_join_all};
use harness_agent::protocol::{Command, SignalName};
use harness_systems::{Contained, Inside, Placement, Service, Whereabouts};
use lab_mutants::Mutant;
use runs::member::MemberId;
use runs::views;
use tokio::net::TcpStream;

use super::agent::{Agent, peer};
use super::auxiliary::Auxiliaries;
use super::client_container::ClientContainer;
use super::engine::Engine;
use super::failure::FirstFailure;
use super::image::{DATA, EXECUTABLE};
use super::member::Member;
use super::member_exec::MemberExec;
use super::resources::Resources;
use super::sandbox::{Plan, Sandbox, dialled, mount_points};
use super::specs::{Common, Output};
use super::within::{self, Within};
use super::{collect, image, process_1, pull};
use crate::clock::{RunClock, RunNs};
use crate::cluster::observer::{self, Watched};
use crate::cluster::settings::MemberSettings;
use crate::cluster::voice::Place;
use crate::cluster::{Cluster, Cut};
use crate::events::EventLog;
use crate::exit::Failure;

/// How long making a network, a volume or a description of one may take.
const MAKE_PATIENCE: Duration = Duration::from_secs(10);
/// How long the ensemble may take to serve after its containers were started.
const START_PATIENCE: Duration = Duration::from_secs(20);
/// The same for an image that was named: a Java machine takes its time.
const FOREIGN_START_PATIENCE: Duration = Duration::from_secs(60);
/// How long a closed port may take to refuse.
const REFUSAL_PATIENCE: Duration = Duration::from_millis(500);
/// How long a member may take to end when asked politely.
pub(super) const STOP_PATIENCE: Duration = Duration::from_secs(1);
/// Where probes and controls arrive, below the ports that the kernel gives away.
const PROBE_PORTS: (u16, u16) = (10_201, 10_202);

/// What only this cluster is told.
#[derive(Clone, Debug, Default)]
pub struct DockerSettings {
    /// The image of the members; none is the bundled node in an image of its own.
    pub image: Option<String>,
    /// What the image runs; empty is its own command.
    pub image_command: Vec<String>,
    /// The address on which client ports are published; none is the members' own addresses when the engine is
    /// on this machine.
    pub publish: Option<IpAddr>,
    /// Whether test commands are run in the containers.
    pub tests: bool,
}

/// The cluster. Its fields are dropped in their order, and what is on the engine goes with the last of them.
pub struct DockerCluster {
    pub(super) settings: MemberSettings,
    pub(super) docker: DockerSettings,
    pub(super) ids: Vec<MemberId>,
    pub(super) members: BTreeMap<MemberId, Member>,
    pub(super) sandboxes: BTreeMap<MemberId, Sandbox>,
    pub(super) clients: BTreeMap<MemberId, SocketAddr>,
    /// Where members are asked how they are, beside their client ports, by their own numbers of those ports.
    questions: BTreeMap<u16, BTreeMap<MemberId, SocketAddr>>,
    /// The containers that run, for commands in them.
    pub(super) inside: Arc<MemberExec>,
    /// The container in which the client's processes run, where they do, once it runs.
    pub(super) clients_in: Mutex<Option<Arc<ClientContainer>>>,
    /// The same for test commands, where those were asked for.
    pub(super) within: Option<Arc<Within>>,
    /// Whether clients reach members through a published port, which accepts although nobody listens behind.
    pub(super) published: bool,
    pub(super) events: EventLog,
    pub(super) clock: RunClock,
    pub(super) failure: FirstFailure,
    pub(super) abilities: Abilities,
    /// The cuts in force, by fault.
    pub(super) cuts: Mutex<BTreeMap<String, Cut>>,
    /// By how much members' clocks are off.
    pub(super) shifted: Mutex<BTreeMap<MemberId, i64>>,
    /// The number of the next round of probes.
    pub(super) round: AtomicU64,
    image: String,
    network: String,
    volumes: BTreeMap<MemberId, Vec<(String, String)>>,
    /// The volume into which everybody writes what is asserted, where tests are run.
    output: Option<String>,
    /// Those of the services beside the members, by name.
    beside: BTreeMap<String, Vec<(String, String)>>,
    observer: Mutex<Option<tokio::task::AbortHandle>>,
    pub(super) resources: Resources,
}

/// How clients reach members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reach {
    /// At the containers' own addresses.
    Direct,
    /// At ports that the engine publishes on this address.
    Published(IpAddr),
}

impl Reach {
    fn by(docker: &DockerSettings, gateway: Option<IpAddr>) -> Self {
        match docker.publish {
            Some(address) => Self::Published(address),
            None if gateway.is_some_and(is_ours) => Self::Direct,
            None => Self::Published(IpAddr::V4(Ipv4Addr::LOCALHOST)),
        }
    }

    fn published(self) -> Option<IpAddr> {
        match self {
            Self::Direct => None,
            Self::Published(address) => Some(address),
        }
    }
}

impl DockerCluster {
    /// Brings the image over and starts the sandboxes; no member runs yet. Whatever was made is removed again
    /// when it comes to nothing.
    pub async fn create(
        settings: MemberSettings,
        docker: DockerSettings,
        engine: Engine,
        clock: RunClock,
    ) -> Result<Self, Failure> {
        refuse(&settings, &docker, &engine)?;
        let layers = image::layers(engine.architecture())?;
        let ids = settings.members();
        let events = EventLog::new(&ids);
        let mut members = BTreeMap::new();
        for id in &ids {
            let folder = settings.folder.join("nodes").join(id.0.to_string());
            std::fs::create_dir_all(&folder).with_context(|| format!("creating {}", folder.display()))?;
            let system = Arc::clone(&settings.system);
            let place = Place { id: *id, folder, clock, events: events.clone(), system };
            members.insert(*id, Member::new(place, !is_foreign(&settings, &docker)));
        }
        let resources = Resources::new(engine, &settings.token);
        let made = make(&resources, (&docker, contained(&settings)?), &members, layers).await;
        let made = match made {
            Ok(made) => made,
            Err(failure) => {
                if let Err(error) = resources.remove().await {
                    tracing::warn!("what was begun is not removed: {error:#}");
                }
                return Err(failure);
            }
        };
        let inside = Arc::new(MemberExec::new(resources.engine().clone()));
        let within = within(&resources, contained(&settings)?, &made).await?;
        Ok(Self {
            settings,
            docker,
            ids,
            members,
            sandboxes: made.sandboxes,
            clients: made.clients,
            questions: made.questions,
            inside,
            clients_in: Mutex::default(),
            within,
            published: made.reach != Reach::Direct,
            events,
            clock,
            failure: made.failure,
            abilities: made.abilities,
            cuts: Mutex::default(),
            shifted: Mutex::default(),
            round: AtomicU64::new(1),
            image: made.image,
            network: made.network,
            volumes: made.volumes,
            output: made.output,
            beside: made.beside,
            observer: Mutex::default(),
            resources,
        })
    }

    fn is_foreign(&self) -> bool {
        is_foreign(&self.settings, &self.docker)
    }

    /// Whether a member's program is process 1 of a namespace of its own, which its agent is not in.
    pub(super) fn is_process_1(&self, id: MemberId) -> bool {
        self.service(id).is_some_and(|service| service.process_1)
    }

    /// What a file says of a member.
    fn service(&self, id: MemberId) -> Option<&Service> {
        self.settings.system.contained()?.services()?.get(place_of(id))
    }

    pub(super) fn member(&self, id: MemberId) -> anyhow::Result<&Member> {
        self.members.get(&id).ok_or_else(|| anyhow!("there is no member {}", id.0))
    }

    pub(super) fn agent(&self, id: MemberId) -> anyhow::Result<&Agent> {
        let sandbox = self.sandboxes.get(&id).ok_or_else(|| anyhow!("there is no member {}", id.0))?;
        Ok(&sandbox.agent)
    }

    /// Starts a container for a member; gives the moment before.
    pub(super) async fn start_member(&self, id: MemberId, lose_unsynced: bool) -> anyhow::Result<RunNs> {
        let sandbox = self.sandboxes.get(&id).ok_or_else(|| anyhow!("there is no member {}", id.0))?;
        let ensemble: Vec<(MemberId, IpAddr)> =
            self.sandboxes.iter().map(|(id, sandbox)| (*id, sandbox.address)).collect();
        let common = Common {
            sandbox: &sandbox.id,
            volumes: self.volumes.get(&id).map(Vec::as_slice).unwrap_or_default(),
            output: self.output.as_deref().map(|volume| Output { volume, file: self.clock.now() }),
            labels: self.resources.labels().of("member"),
        };
        let placement = Placement {
            executable: EXECUTABLE,
            data: DATA,
            ensemble: &ensemble,
            voters: self.voters(),
            id,
            peer_timeout: self.settings.peer_timeout,
            bug: self.settings.mutant.map(Mutant::name),
            lose_unsynced,
        };
        let system = contained(&self.settings)?;
        if lose_unsynced && self.is_foreign() {
            bail!(
                "what this image has synced is not known, so nothing else can be lost: --lose-unsynced never"
            );
        }
        let service = self.service(id);
        let body = match (&self.docker.image, service) {
            (Some(image), _) => common.named((image, &self.docker.image_command), system, &placement),
            (None, Some(service)) => common.service(service),
            (None, None) => common.ours(&self.image, system, &placement),
        };
        let name = service.map(|service| service.name.clone());
        let (begun, container) = self.member(id)?.start(&self.resources, &self.failure, body).await?;
        if let (Some(within), Some(name)) = (&self.within, name) {
            within.runs(&name, container.clone());
        }
        self.inside.runs(id, container);
        Ok(begun)
    }

    /// Where a member is found from here.
    pub(super) fn whereabouts(&self, id: MemberId) -> Whereabouts {
        let other = |(port, found): (&u16, &BTreeMap<MemberId, SocketAddr>)| Some((*port, *found.get(&id)?));
        let inside: Arc<dyn Inside> = Arc::<MemberExec>::clone(&self.inside);
        Whereabouts {
            id,
            client: self.client_address(id),
            others: self.questions.iter().filter_map(other).collect(),
            data: None,
            inside: Some(inside),
        }
    }

    pub(super) async fn start_all(&self) -> anyhow::Result<()> {
        let foreign = self.is_foreign();
        let usual = if foreign { FOREIGN_START_PATIENCE } else { START_PATIENCE };
        let patience = self.settings.system.start_patience().unwrap_or(usual);
        let mut beside = Auxiliaries {
            resources: &self.resources,
            network: &self.network,
            volumes: &self.beside,
            output: self.output.as_deref(),
            within: self.within.as_deref(),
            folder: self.settings.folder.join("services"),
            failure: &self.failure,
            patience,
            started: BTreeMap::new(),
        };
        let auxiliaries = contained(&self.settings)?.auxiliaries();
        beside.start(&auxiliaries.before).await?;
        beside.wait_for(&auxiliaries.members_after).await?;
        self.start_members(patience).await?;
        beside.start(&auxiliaries.behind).await?;
        if let Some(name) = &auxiliaries.client {
            let client =
                Arc::new(ClientContainer::find(self.resources.engine(), beside.container_of(name)?).await);
            *self.clients_in.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(client);
        }
        Ok(())
    }

    /// Starts every member, and waits until all serve.
    async fn start_members(&self, patience: Duration) -> anyhow::Result<()> {
        let begun = Instant::now();
        let foreign = self.is_foreign();
        try_join_all(self.ids.iter().map(|id| self.start_member(*id, false))).await?;
        let started = begun.elapsed();
        if foreign {
            self.observe();
        }
        let in_time = self.events.wait(patience, views::settled).await;
        tracing::debug!(containers = ?started, serving = ?begun.elapsed(), "members started");
        let views = self.events.views();
        if let Some((id, _)) = views.iter().find(|(_, view)| !view.running) {
            let words = self.member(*id)?.place.last_words();
            let hint = self.about_process_1(*id, &words);
            bail!(
                "member {} ended while the ensemble was starting; the end of its log ({}):\n{words}{hint}",
                id.0,
                self.member(*id)?.place.log_file().display()
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

    /// What helps where a program must be process 1 and is not, behind the last words of a member.
    fn about_process_1(&self, id: MemberId, words: &str) -> String {
        let words = words.to_ascii_lowercase();
        let insists = ["pid 1", "process 1", "pid=1", "process no 1", "process no. 1"]
            .iter()
            .any(|said| words.contains(said));
        match self.service(id) {
            Some(service) if service.process_1 => String::new(),
            Some(service) if insists => format!(
                "\nits program wants to be process 1, and is none: write process_1: [{}] into x-harness, or \
                 process_1: true for all members",
                service.name
            ),
            Some(_) => "\nits program is not process 1 here; if it must be, write process_1: true into \
                        x-harness"
                .to_owned(),
            None if self.is_foreign() => {
                "\nit shares its processes' namespace with our agent: an image that \
                                          must be process 1 needs a Compose file with process_1: true \
                                          (`harness init zookeeper` writes one to begin from)"
                    .to_owned()
            }
            None => String::new(),
        }
    }

    fn observe(&self) {
        let found: Vec<Whereabouts> = self.ids.iter().map(|id| self.whereabouts(*id)).collect();
        let looks = self.settings.system.looks(&found);
        let members = found.iter().zip(looks).filter_map(|(member, look)| {
            let place = self.members.get(&member.id)?.place.clone();
            Some(Watched { place, look, is_silent: Arc::new(|| true) })
        });
        let task = self.resources.engine().spawn(observer::observe(members.collect()));
        let mut observer = self.observer.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        *observer = Some(task.abort_handle());
    }

    /// Ends the members, collects their data, and removes everything.
    pub(super) async fn end(&self) -> anyhow::Result<()> {
        let begun = Instant::now();
        self.resources.announce_end();
        if let Some(observer) = self.observer.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take()
        {
            observer.abort();
        }
        // Without an engine there is nothing to do, and nothing is to be waited for.
        if let Err(error) = self.resources.engine().ping().await {
            self.resources.give_up().await;
            return Err(error).context("ending the members");
        }
        join_all(self.ids.iter().map(|id| async {
            // A stopped process takes the polite signal only when it goes on. An agent that is gone has
            // taken its processes along.
            let _ = self.signal_one(*id, SignalName::Term).await;
            let _ = self.signal_one(*id, SignalName::Continue).await;
        }))
        .await;
        let ended = self.members.values().map(|member| member.ended(STOP_PATIENCE));
        for ended in join_all(ended).await {
            if let Err(error) = ended {
                tracing::warn!("{error:#} when asked, is killed");
            }
        }
        let ended = begun.elapsed();
        if !self.is_foreign() {
            join_all(self.ids.iter().map(|id| self.collect(*id))).await;
        } else {
            // What they keep may be large, and it passes through memory.
            for id in &self.ids {
                self.collect(*id).await;
            }
        }
        let kept = begun.elapsed();
        self.resources.remove().await?;
        tracing::debug!(?ended, ?kept, removed = ?begun.elapsed(), "the ensemble has ended");
        Ok(())
    }

    async fn collect(&self, id: MemberId) {
        let (Some(sandbox), Some(member)) = (self.sandboxes.get(&id), self.members.get(&id)) else { return };
        let engine = self.resources.engine();
        let volumes = self.volumes.get(&id).map(Vec::as_slice).unwrap_or_default();
        for (_, path) in volumes {
            // What foreign images keep beside /data has a folder of its own below the one that is kept.
            let below = if *path == image::DATA {
                Path::new("data").to_owned()
            } else {
                Path::new("data").join(path.trim_start_matches('/'))
            };
            if let Err(error) =
                collect::folder(engine, &sandbox.id, path, &member.place.folder.join(below)).await
            {
                tracing::warn!("the data of n{} is not kept: {error:#}", id.0);
            }
        }
    }
}

/// Whether members are of an image that is not ours.
fn is_foreign(settings: &MemberSettings, docker: &DockerSettings) -> bool {
    let services = settings.system.contained().and_then(Contained::services);
    docker.image.is_some() || services.is_some()
}

/// A member's place in a list of all.
fn place_of(id: MemberId) -> usize {
    crate::num::index(id.0.saturating_sub(1))
}

/// What does not fit together is refused before anything is made.
fn refuse(settings: &MemberSettings, docker: &DockerSettings, engine: &Engine) -> Result<(), Failure> {
    if let (Some(image), Some(bug)) = (&docker.image, settings.mutant) {
        return Err(Failure::usage(format!(
            "--mutant {}: bugs are planted in the bundled node only; leave out --image {image}",
            bug.name()
        )));
    }
    if docker.image.is_none() && !docker.image_command.is_empty() {
        return Err(Failure::usage("--image-command: the bundled node has its own; name an --image for it"));
    }
    if docker.publish.is_none() && !engine.place().is_local() {
        return Err(Failure::usage(format!(
            "the engine at {} is on another machine, whose containers can't be reached from here: publish \
             the members' client ports with --publish ADDRESS, an address of that machine that only you can \
             reach, because the ensemble stands open to whoever can",
            engine.place()
        )));
    }
    Ok(())
}

/// What was made.
struct Made {
    image: String,
    network: String,
    volumes: BTreeMap<MemberId, Vec<(String, String)>>,
    output: Option<String>,
    beside: BTreeMap<String, Vec<(String, String)>>,
    sandboxes: BTreeMap<MemberId, Sandbox>,
    clients: BTreeMap<MemberId, SocketAddr>,
    questions: BTreeMap<u16, BTreeMap<MemberId, SocketAddr>>,
    reach: Reach,
    failure: FirstFailure,
    abilities: Abilities,
}

/// What can be done to members here, or why not.
#[derive(Debug)]
pub(super) struct Abilities {
    pub(super) clocks: Result<(), String>,
    pub(super) pauses: Result<(), String>,
    /// By the name of the device.
    pub(super) devices: BTreeMap<String, Result<(), String>>,
}

async fn make(
    resources: &Resources,
    (docker, contained): (&DockerSettings, &dyn Contained),
    members: &BTreeMap<MemberId, Member>,
    layers: bytes::Bytes,
) -> Result<Made, Failure> {
    let (ports, services, beside) = (contained.ports(), contained.services(), contained.auxiliaries());
    let begun = Instant::now();
    let engine = resources.engine();
    let bytes = layers.len();
    let service = |id: MemberId| services.and_then(|all| all.get(place_of(id)));
    let places = |id: MemberId| {
        service(id).map_or_else(|| mount_points(docker.image.is_none()), |service| service.own_volumes())
    };
    let images = pull::needed(docker.image.as_deref(), contained);
    let (image, gateway, volumes, beside, known) = tokio::join!(
        image::import(resources, layers),
        network(resources),
        try_join_all(members.keys().map(|id| volumes(resources, format!("n{}", id.0), places(*id)))),
        try_join_all(beside.all().map(|auxiliary| of_auxiliary(resources, &auxiliary.service))),
        join_all(images.iter().map(|image| known(engine, image))),
    );
    known.into_iter().collect::<Result<(), Failure>>()?;
    let (image, (network, gateway)) = (image?, gateway?);
    let volumes: BTreeMap<_, _> = members.keys().copied().zip(volumes?).collect();
    let beside: BTreeMap<_, _> = beside?.into_iter().collect();
    let output = if docker.tests { Some(output(resources).await?) } else { None };
    let imported = begun.elapsed();
    let reach = Reach::by(docker, gateway);
    let failure = FirstFailure::none(resources.closing());
    let starts = members.iter().map(|(id, member)| {
        let volumes = volumes.get(id).map(Vec::as_slice).unwrap_or_default();
        let plan = Plan {
            resources,
            image: &image,
            network: &network,
            volumes,
            output: output.as_deref(),
            ports: [&[ports.client], ports.questions].concat(),
            publish: reach.published(),
            hostname: service(*id).map(|service| service.hostname.as_deref().unwrap_or(&service.name)),
            aliases: service(*id).map(|service| service.aliases.as_slice()).unwrap_or_default(),
            failure: &failure,
        };
        async move { anyhow::Ok((*id, plan.start(&member.place).await?)) }
    });
    let sandboxes: BTreeMap<MemberId, Sandbox> = try_join_all(starts).await?.into_iter().collect();
    let held = begun.elapsed();
    introduce(resources, &sandboxes, ports.peers).await?;
    let clients = found_at(reach, engine, &sandboxes, ports.client);
    let questions = ports.questions.iter().map(|port| (*port, found_at(reach, engine, &sandboxes, *port)));
    let questions = questions.collect();
    reachable(reach, clients.values().next().copied()).await?;
    let abilities = abilities(engine, services.unwrap_or_default(), &sandboxes).await?;
    tracing::debug!(?abilities, bytes, ?imported, ?held, ready = ?begun.elapsed(), "sandboxes started");
    Ok(Made {
        image,
        network,
        volumes,
        output,
        beside,
        sandboxes,
        clients,
        questions,
        reach,
        failure,
        abilities,
    })
}

/// Where a port of each member is found from here.
fn found_at(
    reach: Reach,
    engine: &Engine,
    sandboxes: &BTreeMap<MemberId, Sandbox>,
    port: u16,
) -> BTreeMap<MemberId, SocketAddr> {
    let found = |(id, sandbox): (&MemberId, &Sandbox)| {
        let address = match (reach, sandbox.published.get(&port)) {
            (Reach::Published(address), Some(port)) => dialled(address, engine.place().address(), *port),
            _ => SocketAddr::new(sandbox.address, port),
        };
        (*id, address)
    };
    sandboxes.iter().map(found).collect()
}

/// Whether clocks can be shifted in a sandbox, or why not.
async fn clocks(sandbox: Option<&Sandbox>) -> Result<(), String> {
    let sandbox = sandbox.ok_or("there are no members")?;
    sandbox.agent.ask(Command::TryClock).await.map(drop).map_err(|error| format!("{error:#}"))
}

/// Whether clocks can be shifted and members paused, and what devices can do.
async fn abilities(
    engine: &Engine,
    services: &[Service],
    sandboxes: &BTreeMap<MemberId, Sandbox>,
) -> anyhow::Result<Abilities> {
    let devices = match sandboxes.values().next() {
        Some(sandbox) => sandbox.agent.devices().await?,
        None => BTreeMap::new(),
    };
    let (clocks, pauses) = match services.iter().find(|service| service.process_1) {
        None => (clocks(sandboxes.values().next()).await, Ok(())),
        Some(service) => (Err(no_clocks(service)), process_1::can_pause(engine).await),
    };
    Ok(Abilities { clocks, pauses, devices })
}

/// Why clocks can't be shifted where this member is among the others.
fn no_clocks(service: &Service) -> String {
    format!(
        "{} is process 1 of a namespace of its own (x-harness.process_1), and no agent is there to shift its \
         clock",
        service.name
    )
}

/// Makes the network; the engine chooses where. Gives its id and its gateway.
async fn network(resources: &Resources) -> anyhow::Result<(String, Option<IpAddr>)> {
    let request = NetworkCreateRequest {
        name: resources.name("net"),
        driver: Some("bridge".to_owned()),
        labels: Some(resources.labels().of("network")),
        ..NetworkCreateRequest::default()
    };
    let made = resources
        .make("making a network", MAKE_PATIENCE, |docker| async move { docker.create_network(request).await })
        .await?;
    let id = made.id;
    let name = id.clone();
    let seen = resources
        .engine()
        .call("looking at a network", MAKE_PATIENCE, |docker| async move {
            docker.inspect_network(&name, None).await
        })
        .await?;
    let configurations = seen.ipam.and_then(|ipam| ipam.config).unwrap_or_default();
    let gateway = configurations.iter().find_map(|one| one.gateway.as_deref()?.parse().ok());
    Ok((id, gateway))
}

/// The volume into which programs in containers write what they assert.
async fn output(resources: &Resources) -> anyhow::Result<String> {
    let made = volumes(resources, "of".to_owned(), vec![within::OUTPUT.to_owned()]).await?;
    made.into_iter().next().map(|(name, _)| name).ok_or_else(|| anyhow!("no volume was made"))
}

/// What runs test commands in containers, where those were asked for.
async fn within(
    resources: &Resources,
    system: &dyn Contained,
    made: &Made,
) -> anyhow::Result<Option<Arc<Within>>> {
    let (Some(_), Some(sandbox)) = (&made.output, made.sandboxes.values().next()) else { return Ok(None) };
    let members = system.services().unwrap_or_default().iter();
    let beside = system.auxiliaries().all().map(|auxiliary| &auxiliary.service);
    let names: Vec<&str> = members.chain(beside).map(|service| service.name.as_str()).collect();
    let engine = resources.engine().clone();
    Ok(Some(Arc::new(Within::prepare(engine, sandbox.id.clone(), &names).await?)))
}

/// The volumes of a service beside the members, with its name.
async fn of_auxiliary(
    resources: &Resources,
    service: &Service,
) -> anyhow::Result<(String, Vec<(String, String)>)> {
    let made = volumes(resources, format!("service-{}", service.name), service.own_volumes()).await?;
    Ok((service.name.clone(), made))
}

async fn volumes(
    resources: &Resources,
    whose: String,
    places: Vec<String>,
) -> anyhow::Result<Vec<(String, String)>> {
    let mut made = Vec::new();
    for place in places {
        let name = resources.name(&format!("{whose}-{}", place.trim_start_matches('/').replace('/', "-")));
        let request = VolumeCreateRequest {
            name: Some(name.clone()),
            labels: Some(HashMap::from_iter(resources.labels().of("data"))),
            ..VolumeCreateRequest::default()
        };
        resources
            .make(
                "making a volume",
                MAKE_PATIENCE,
                |docker| async move { docker.create_volume(request).await },
            )
            .await?;
        made.push((name, place));
    }
    Ok(made)
}

/// Refuses an image that the engine does not have.
async fn known(engine: &Engine, image: &str) -> Result<(), Failure> {
    if pull::has(engine, image).await? {
        return Ok(());
    }
    Err(Failure::usage(format!(
        "image {image}: the engine does not have it, and nothing is pulled unless you ask for it: add --pull \
         missing, or `docker pull {image}` first"
    )))
}

/// How the system runs in containers.
fn contained(settings: &MemberSettings) -> anyhow::Result<&dyn Contained> {
    let none = || anyhow!("{} does not run in containers: use --cluster process", settings.system.name());
    settings.system.contained().ok_or_else(none)
}

/// Whether this is an address of this machine.
fn is_ours(address: IpAddr) -> bool {
    UdpSocket::bind((address, 0)).is_ok()
}

/// Tells every agent who is who.
async fn introduce(
    resources: &Resources,
    sandboxes: &BTreeMap<MemberId, Sandbox>,
    peer_ports: &[u16],
) -> anyhow::Result<()> {
    let hello = |own: MemberId| Command::Hello {
        run: resources.labels().short().to_owned(),
        own: peer(own),
        peers: sandboxes
            .iter()
            .filter(|(id, _)| **id != own)
            .map(|(id, sandbox)| (peer(*id), sandbox.address))
            .collect(),
        probe_port: PROBE_PORTS.0,
        control_port: PROBE_PORTS.1,
        peer_ports: peer_ports.to_vec(),
    };
    try_join_all(sandboxes.iter().map(|(id, sandbox)| sandbox.agent.ask(hello(*id)))).await?;
    Ok(())
}

/// A closed port at a member's own address must refuse at once, or this is not the way to it. A published
/// port tells nothing before somebody listens behind it.
async fn reachable(reach: Reach, client: Option<SocketAddr>) -> Result<(), Failure> {
    let (Reach::Direct, Some(client)) = (reach, client) else { return Ok(()) };
    let dialled = tokio::time::timeout(REFUSAL_PATIENCE, TcpStream::connect(client)).await;
    match dialled {
        Ok(Err(error)) if error.kind() == std::io::ErrorKind::ConnectionRefused => Ok(()),
        other => {
            let seen = match other {
                Ok(Ok(_)) => "somebody else answers there".to_owned(),
                Ok(Err(error)) => error.to_string(),
                Err(_) => "no answer".to_owned(),
            };
            Err(Failure::usage(format!(
                "members can't be reached at their own addresses ({client}: {seen}): publish their client \
                 ports with --publish 127.0.0.1"
            )))
        }
    }
}
