//! One run, while the ensemble lives: start it, load it, break it, read it a last time, end it.
//!
//! What was planned is on disk before the first member starts, what happens is on disk as it happens, and
//! what was seen beside the history goes there at the end; the verdict is drawn from the folder alone, later.
//! Three things end a run early: an interrupt, which heals and keeps what there is; a failure of the
//! cluster's machinery or of the harness, which is never taken for a fault; and a panic, whose unwinding
//! drops the cluster and with it every process.

pub mod interrupt;
pub mod site;

pub(crate) mod describe;
mod driver;
mod stalls;

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use harness_core::load::{self as conduct, Load};
use harness_core::nemeses;
use harness_core::run::{Phase, Terms};
use harness_systems::{Beginning, Installation};
use runs::cluster_kind::ClusterKind;
use runs::member::MemberId;
use runs::numbers::plural;
use runs::observed::Observed;
use runs::views::{self, View};

use crate::applications::{self, Applications};
use crate::clock::{RunClock, nanoseconds};
use crate::cluster::Cluster;
use crate::cluster::ports::{self, Layout};
use crate::cluster::process::{PortClash, ProcessCluster};
use crate::cluster::settings::MemberSettings;
use crate::config::{Planted, RunOptions};
use crate::events::EventLog;
use crate::exit::Failure;
use crate::judge::live::Live;
use crate::load::{Queue, Recorder, Shared};
use crate::mechanisms;
use crate::nemesis::Schedule;
use crate::num::{index, wide};
use crate::progress::Progress;
use crate::store::RunFolder;
use crate::store::journal::Journal;
use crate::store::lock::TOKEN_VARIABLE;
use driver::Driver;
use interrupt::Interrupt;
use site::Site;
use stalls::Stalls;

/// How often it is told how far the members are.
const TELL_EVERY: Duration = Duration::from_millis(250);
/// Other blocks of ports that are tried when one is taken under our hands.
const PORT_ATTEMPTS: u32 = 3;

/// How long the cause of a failure may take to be known behind it.
const CAUSE_PATIENCE: Duration = Duration::from_secs(2);

/// How long an application may be silent beyond the time for which a fault is held.
const APPLICATION_PATIENCE: Duration = Duration::from_secs(20);

/// A run that was checked and has its folder.
pub struct Prepared {
    /// What is meant.
    pub options: RunOptions,
    /// The faults as planned.
    pub schedule: Schedule,
    /// The run folder that this run repeats, when its schedule comes from there.
    pub repeats: Option<String>,
    /// Where it is kept.
    pub folder: RunFolder,
    /// When it began, for people.
    pub start: jiff::Timestamp,
    /// What names it in the environment of its processes.
    pub token: String,
    /// Where it is told.
    pub progress: Progress,
    /// The system as it was found on this machine, where its members are processes of it.
    pub installation: Option<Arc<dyn Installation>>,
}

/// Writes down and says what is about to happen.
pub fn announce(prepared: &Prepared) -> Result<(), Failure> {
    RunFolder::write_json(&prepared.folder.run(), &describe::run_info(prepared))?;
    RunFolder::write_json(&prepared.folder.schedule(), &prepared.schedule)?;
    describe::first_lines(prepared);
    Ok(())
}

/// Runs it on real members. Afterwards its folder holds everything that the verdict is drawn from.
pub async fn execute(prepared: &Prepared, site: Site, interrupt: &Interrupt) -> Result<(), Failure> {
    #[cfg(feature = "docker")]
    pull_missing(prepared, &site, interrupt).await?;
    let clock = RunClock::start();
    let begun = Instant::now();
    prepared.progress.step(&format!("starting {}", plural(u64::from(prepared.options.members()), "member")));
    let cluster = start_cluster(prepared, site, clock, interrupt).await?;
    let stalls = Stalls::watch(clock)?;
    let mut observed = Observed::default();
    observed.timings.start_ms = begun.elapsed().as_secs_f64() * 1e3;
    prepared.progress.say(&format!("all members serve after {:.0} ms", observed.timings.start_ms));
    let outcome = live(prepared, &cluster, clock, interrupt, &mut observed).await;
    prepared.progress.step(match prepared.options.cluster.kind {
        ClusterKind::Docker => "ending the members, and removing their containers and volumes",
        ClusterKind::Auto | ClusterKind::Process | ClusterKind::Sim => "ending the members",
    });
    let stopping = Instant::now();
    let stopped = cluster.stop().await;
    observed.timings.stop_ms = stopping.elapsed().as_secs_f64() * 1e3;
    observed.stalls = stalls.finish()?;
    outcome?;
    stopped.context("ending the members")?;
    observed.end_ns = clock.now();
    observed.interrupted = interrupt.was_asked();
    RunFolder::write_json(&prepared.folder.observed(), &observed)?;
    Ok(())
}

/// Starts members until they serve; on other ports when somebody took one of ours meanwhile. Whatever was
/// started is ended again when it comes to nothing.
async fn start_cluster(
    prepared: &Prepared,
    site: Site,
    clock: RunClock,
    interrupt: &Interrupt,
) -> Result<Arc<dyn Cluster>, Failure> {
    let mut site = site;
    for attempt in 1.. {
        let cluster = tokio::select! {
            made = make_cluster(prepared, site, clock) => made?,
            () = interrupt.asked() => return Err(Failure::Interrupted),
        };
        let started = async {
            refuse_what_it_cannot(prepared, &*cluster)?;
            let progress = &prepared.progress;
            let nodes = prepared.options.members();
            let words = |views: &BTreeMap<MemberId, View>| {
                format!(
                    "starting {}: {} serve",
                    plural(u64::from(nodes), "member"),
                    views::serving(views).len()
                )
            };
            tokio::select! {
                started = cluster.start() => Ok(started?),
                never = tell_of(progress, cluster.events(), words) => match never {},
            }
        };
        let outcome = tokio::select! {
            started = started => started,
            () = interrupt.asked() => Err(Failure::Interrupted),
        };
        let Err(failure) = outcome else { return Ok(cluster) };
        if let Err(error) = cluster.stop().await {
            tracing::warn!(%error, "what was started does not end");
        }
        drop(cluster);
        let clash = match &failure {
            Failure::Harness(error) if error.is::<PortClash>() => error.to_string(),
            _ => return Err(failure),
        };
        if prepared.options.base_port.is_some() {
            return Err(Failure::usage(format!("--base-port: {clash}")));
        }
        if attempt == PORT_ATTEMPTS {
            return Err(failure);
        }
        prepared.progress.say(&format!("{clash}; another block is tried"));
        prepared.folder.drop_data().context("removing the members' data")?;
        let Some(installation) = &prepared.installation else { return Err(failure) };
        let layout = Layout::of(prepared.options.members(), prepared.options.system.traits())?;
        site = Site::Process(ports::take(layout, None)?, Arc::clone(installation));
    }
    Err(anyhow!("no attempt was made to start the ensemble").into())
}

/// Pulls what the engine does not have, where that was asked for. No member's start has that in it.
#[cfg(feature = "docker")]
async fn pull_missing(prepared: &Prepared, site: &Site, interrupt: &Interrupt) -> Result<(), Failure> {
    use crate::cluster::docker::pull;
    use crate::config::Pull;
    let RunOptions { containers, system, .. } = &prepared.options;
    let (Site::Docker(engine), Pull::Missing, Some(contained)) = (site, containers.pull, system.contained())
    else {
        return Ok(());
    };
    let say = |line: &str| prepared.progress.say(line);
    tokio::select! {
        pulled = pull::missing(engine, containers.image.as_deref(), contained, say) => pulled,
        () = interrupt.asked() => Err(Failure::Interrupted),
    }
}

/// A cluster without members yet.
async fn make_cluster(prepared: &Prepared, site: Site, clock: RunClock) -> Result<Arc<dyn Cluster>, Failure> {
    match site {
        Site::Process(ports, installation) => {
            Ok(Arc::new(ProcessCluster::create(settings(prepared), installation, ports, clock)?))
        }
        #[cfg(feature = "docker")]
        Site::Docker(engine) => {
            use crate::cluster::docker::{DockerCluster, DockerSettings};
            use crate::config::Containers;
            let Containers { image, image_command, publish, .. } = prepared.options.containers.clone();
            let tests = prepared.options.template.is_some();
            let docker = DockerSettings { image, image_command, publish, tests };
            Ok(Arc::new(DockerCluster::create(settings(prepared), docker, engine, clock).await?))
        }
    }
}

fn settings(prepared: &Prepared) -> MemberSettings {
    MemberSettings {
        nodes: prepared.options.nodes,
        observers: prepared.options.observers,
        peer_timeout: prepared.options.peer_timeout,
        mutant: prepared.options.mutant.and_then(Planted::of_bundled),
        folder: prepared.folder.path().to_owned(),
        token: prepared.token.clone(),
        system: Arc::clone(&prepared.options.system),
    }
}

/// A fault that the cluster can't do is refused before anything starts, never skipped.
fn refuse_what_it_cannot(prepared: &Prepared, cluster: &dyn Cluster) -> Result<(), Failure> {
    for nemesis in prepared.schedule.kinds() {
        mechanisms::on(nemesis.needs(), cluster).map_err(|why| {
            Failure::usage(format!("the {} cluster can't do {}: {why}", cluster.name(), nemesis.name()))
        })?;
    }
    Ok(())
}

/// From the first operation to the last, on members that serve.
async fn live(
    prepared: &Prepared,
    cluster: &Arc<dyn Cluster>,
    clock: RunClock,
    interrupt: &Interrupt,
    observed: &mut Observed,
) -> Result<(), Failure> {
    let options = &prepared.options;
    tokio::select! {
        begun = begin_clients(prepared, &**cluster) => begun?,
        () = interrupt.asked() => return Err(Failure::Interrupted),
    }
    let (history, file) = prepared.folder.begin_history(options.compress)?;
    let (kind, promise) = (options.workload, options.promised().what);
    let live = Live::start(kind, promise, &history, options.fail_fast, clock, &prepared.progress)?;
    let feed = live.as_ref().map(Live::feed).unwrap_or_default();
    let (recorder, writer) = Recorder::create(file, clock, feed)?;
    let journal = Journal::create(&prepared.folder.faults())?;
    let terms = conduct::Terms {
        members: cluster.members().to_vec(),
        clients: index(u64::from(options.concurrency)),
        patience_ns: nanoseconds(options.op_timeout),
    };
    let shared = Shared {
        system: Arc::clone(&options.system),
        bug: options.mutant.and_then(Planted::of_clients),
        applications: applications(prepared, &**cluster, clock)?,
        clients: Arc::default(),
        cluster: Arc::clone(cluster),
        load: Arc::new(Queue::new(Load::new(terms, describe::workload(options)?))),
        recorder,
        clock,
        op_timeout: options.op_timeout,
        session_timeout: describe::session_timeout(options),
    };
    let driver = Driver { prepared, shared: &shared, journal: journal.clone(), live: live.as_ref() };
    let outcome = async {
        driver.run(interrupt, observed).await?;
        observed.interrupted = interrupt.was_asked();
        observed.listened_until_ns = Some(clock.now());
        observed.events = cluster.events().events();
        observed.notices =
            shared.applications.as_ref().map(|applications| applications.notices()).unwrap_or_default();
        tracing::debug!(events = wide(observed.events.len()), "the members are asked to end");
        Ok(())
    };
    let outcome = tokio::select! {
        outcome = outcome => match outcome {
            Ok(()) => Ok(()),
            // Clients may notice first. What they notice explains nothing.
            Err(failure) => match tokio::time::timeout(CAUSE_PATIENCE, cluster.broken()).await {
                Ok(Ok(what)) => Err(broke(&what)),
                Ok(Err(_)) | Err(_) => Err(failure),
            },
        },
        broken = cluster.broken() => Err(broke(&broken?)),
        why = options.system.broken() => Err(anyhow!(why).into()),
        why = broken_applications(&shared) => Err(anyhow!(why).into()),
    };
    // Sealed whatever happened: what it holds is true.
    let sealed = writer.finish();
    observed.live = live.map(Live::finish);
    observed.fault_lines = Some(journal.lines());
    outcome?;
    sealed?;
    Ok(())
}

/// Completes when an application did what no client may do.
async fn broken_applications(shared: &Shared) -> String {
    match &shared.applications {
        Some(applications) => applications.broken().await,
        None => std::future::pending().await,
    }
}

/// Has the system make ready what its clients need, where there are any.
async fn begin_clients(prepared: &Prepared, cluster: &dyn Cluster) -> anyhow::Result<()> {
    let options = &prepared.options;
    if options.workload.has_clients() {
        options.system.begin(beginning(prepared, cluster)?).await.map_err(|why| anyhow!(why))?;
    }
    Ok(())
}

/// Where members are found, by their numbers.
fn found(cluster: &dyn Cluster) -> Vec<(u64, SocketAddr)> {
    cluster.members().iter().map(|id| (id.0, cluster.client_address(*id))).collect()
}

/// What clients that are processes of their own are started with.
fn beginning(prepared: &Prepared, cluster: &dyn Cluster) -> anyhow::Result<Beginning> {
    // Where clients are applications, these read members a last time.
    let concurrency = match prepared.options.applications() {
        Some(_) => 1,
        None => prepared.options.concurrency,
    };
    Ok(Beginning {
        clients: index(u64::from(concurrency)),
        members: found(cluster),
        executable: std::env::current_exe().context("finding this executable")?,
        environment: vec![(TOKEN_VARIABLE.to_owned(), prepared.token.clone())],
        folder: prepared.folder.path().join("clients"),
        alongside: cluster.alongside(),
    })
}

/// The applications, where those are what clients are. None of them runs yet.
fn applications(
    prepared: &Prepared,
    cluster: &dyn Cluster,
    clock: RunClock,
) -> Result<Option<Arc<Applications>>, Failure> {
    let options = &prepared.options;
    let Some(runs) = options.applications().and_then(|holds| options.system.applications(holds)) else {
        return Ok(None);
    };
    let address = |member: &MemberId| (*member, cluster.client_address(*member));
    let hold = Duration::from_millis(prepared.schedule.hold_ms);
    let settings = applications::Settings {
        workload: options.workload,
        members: cluster.members().iter().map(address).collect(),
        session_timeout: describe::session_timeout(options),
        patience: hold + APPLICATION_PATIENCE,
        mutant: options.mutant.and_then(Planted::of_clients),
        number: index(u64::from(options.concurrency)),
        folder: prepared.folder.path().join("applications"),
        token: prepared.token.clone(),
        runs,
    };
    Ok(Some(Arc::new(Applications::create(settings, clock)?)))
}

fn broke(what: &str) -> Failure {
    anyhow!("the cluster broke: {what}").into()
}

/// What a run is made of, on whatever members.
pub(crate) fn terms(options: &RunOptions, records_sessions: bool, nemeses: nemeses::Terms) -> Terms {
    // Sessions that were left to expire do so while members are read a last time.
    let expiry = if records_sessions {
        describe::session_timeout(options) * 2 + Duration::from_nanos(workloads::ephemeral::EXPIRY_BOUND_NS)
    } else {
        Duration::ZERO
    };
    Terms {
        time_limit_ns: nanoseconds(options.time_limit),
        expiry_ns: nanoseconds(expiry),
        comes_back: options
            .workload
            .has_clients()
            .then(|| (describe::comes_back(options), describe::patience_ms(options))),
        nemeses,
    }
}

/// What is being done, for who watches; none where what comes of it is told all the while.
pub(crate) fn words(phase: Phase) -> Option<&'static str> {
    match phase {
        Phase::SetUp => Some("creating the keys"),
        Phase::Work | Phase::Over => None,
        Phase::Healing => Some("healing the last fault"),
        Phase::Showing => Some("showing that the ensemble serves again"),
        Phase::Leaving => Some("ending the clients"),
        Phase::Settling => Some("waiting until all members serve"),
        Phase::Reading => Some("reading every member a last time"),
    }
}

/// Says again and again how far the members are with the step that was begun last.
async fn tell_of(
    progress: &Progress,
    events: &EventLog,
    words: impl Fn(&BTreeMap<MemberId, View>) -> String,
) -> Infallible {
    let mut tick = tokio::time::interval(TELL_EVERY);
    loop {
        tick.tick().await;
        progress.step_goes_on(&words(&events.views()));
    }
}
