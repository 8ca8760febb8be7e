//! A run as it is meant: its options, checked against each other before anything starts. Every refusal says
//! what to do instead.
//!
//! What was typed becomes these options in [`crate::cli::options`]; nothing else of the bench knows the
//! command line.

pub mod flags;
mod mutant;
mod promise;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use checker::history::Function;
use harness_systems::application::Runs;
use harness_systems::{Settings, System, Wanted, program};
use runs::cluster_kind::ClusterKind;
use workloads::{Applications, Kind, Promise};

use crate::exit::Failure;
use crate::mechanisms;
use crate::nemesis::{Nemesis, Plan};
use crate::protocols::PROTOCOLS;
use crate::text::{span, typed};
pub use harness_core::fault::LoseUnsynced;
pub use mutant::Planted;

/// Above this the harness itself would be what is measured.
const MAX_RATE: f64 = 200_000.0;
/// Clients are tasks, but their connections are descriptors.
const MAX_CONCURRENCY: u32 = 2_000;
/// A fault needs time to be injected, seen, healed and seen gone.
const SHORTEST_INTERVAL: Duration = Duration::from_millis(500);
/// With overlap, between two onsets: each fault is to be seen before the next comes.
const SHORTEST_STEP: Duration = Duration::from_millis(100);
/// The shortest workload that shows anything.
const SHORTEST_RUN: Duration = Duration::from_secs(1);
/// The bundled node takes no less: below that a busy machine would elect without need.
const SHORTEST_PEER_TIMEOUT: Duration = Duration::from_millis(50);
/// ZooKeeper's sessions last 2 to 20 ticks of 2 s.
pub const SESSION_RANGE: (Duration, Duration) = (Duration::from_secs(4), Duration::from_secs(40));

/// The longest time-out of the sessions of a workload that lets them expire: a run sees few ends of longer
/// ones.
const EXPIRING_SESSION: Duration = Duration::from_secs(4);
/// By so much what hits a holder outlasts its session.
const BEYOND_SESSION: Duration = Duration::from_secs(2);
/// From onset to onset where clients are applications, when nobody says. Half of it is held, which outlasts a
/// session. Half of it is calm, in which somebody must hold again: within a session and three seconds, as the
/// check `leadership` asks, behind a second for the fault to be seen gone.
const USUAL_WITH_APPLICATIONS: Duration = Duration::from_secs(16);

/// How long clients run when nobody says.
pub const USUAL_LIMIT: &str = "30s";
/// For how long faults go on beside a command when nobody says.
pub const USUAL_WRAP_LIMIT: &str = "10m";
/// How long test commands run when nobody says.
pub const USUAL_TEMPLATE_LIMIT: &str = "60s";
/// Where test templates are in the containers when nobody says.
pub const USUAL_TEMPLATES: &str = "/opt/antithesis/test/v1";
/// The template that is drawn.
pub const ANY_TEMPLATE: &str = "any";

/// The reason for a cluster that was named.
pub const ASKED_FOR: &str = "asked for";

/// Where the members run, and why there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Where {
    /// The kind of cluster.
    pub kind: ClusterKind,
    /// Why that one.
    pub reason: String,
}

/// What only members in containers are told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Containers {
    /// The members' image; none is the bundled node in an image of its own.
    pub image: Option<String>,
    /// What the image runs; empty is its own command.
    pub image_command: Vec<String>,
    /// Where client ports are published; none leaves it to what the engine needs.
    pub publish: Option<std::net::IpAddr>,
    /// Which images are pulled.
    pub pull: Pull,
}

/// Which images are pulled. (Compose's words.)
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Pull {
    /// None: one that the engine does not have is refused
    #[default]
    Never,
    /// Those that the engine does not have
    Missing,
}

impl Containers {
    /// Whether anything was asked for that only containers can do.
    pub fn any(&self) -> bool {
        *self != Self::default()
    }
}

/// Test commands in the containers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    /// The template that was named; none where one is drawn.
    pub name: Option<String>,
    /// Where templates are in the containers.
    pub folder: String,
    /// Whether a container must say that the system is set up before the commands begin.
    pub awaits_setup: bool,
}

/// A run as it is meant.
#[derive(Clone, Debug)]
pub struct RunOptions {
    /// Voting members.
    pub nodes: u32,
    /// Members without a vote.
    pub observers: u32,
    /// Where they run.
    pub cluster: Where,
    /// What only members in containers are told.
    pub containers: Containers,
    /// What is tested.
    pub system: Arc<dyn System>,
    /// What was set of the settings that only it has.
    pub settings: Settings,
    /// What clients do; [`Kind::COMMAND`] where there are none.
    pub workload: Kind,
    /// The command that works on the members in their place, and its arguments.
    pub command: Option<Vec<String>>,
    /// The test commands that work on the members in their place.
    pub template: Option<Template>,
    /// What its clients can do, where one of them was asked.
    pub functions: Option<Vec<Function>>,
    /// What the system is held to, where somebody said so.
    pub promise: Option<Promise>,
    /// The nemeses that take turns; none of them is a run without faults.
    pub nemeses: Vec<Nemesis>,
    /// Whether they act at once instead, each in its own rhythm.
    pub overlap: bool,
    /// Whether the run ends as soon as the live check sees a violation.
    pub fail_fast: bool,
    /// Whether the history is compressed while it is written.
    pub compress: bool,
    /// From onset to onset.
    pub interval: Duration,
    /// Operations per second.
    pub rate: f64,
    /// Client processes.
    pub concurrency: u32,
    /// Keys.
    pub keys: u32,
    /// How long clients run.
    pub time_limit: Duration,
    /// The seed.
    pub seed: u64,
    /// Definite operations per second below which the run is too weak.
    pub min_rate: Option<f64>,
    /// Where runs are kept.
    pub store: PathBuf,
    /// What the run is called.
    pub name: String,
    /// The planted bug.
    pub mutant: Option<Planted>,
    /// The first port, when one was asked for.
    pub base_port: Option<u16>,
    /// How long a client waits for an answer.
    pub op_timeout: Duration,
    /// How long a session outlives its client's silence.
    pub session_timeout: Duration,
    /// Silence between members after which one gives up on another.
    pub peer_timeout: Duration,
    /// When killed members lose what they had not synced.
    pub lose_unsynced: LoseUnsynced,
    /// Variables of the environment that say how the system is set up, and are set.
    pub variables: BTreeMap<String, String>,
    /// The whole command line that repeats the run, behind those variables.
    pub repeat: String,
}

impl RunOptions {
    /// Refuses what contradicts itself, or what no cluster can do.
    ///
    /// # Errors
    ///
    /// A usage failure that says what to write instead.
    pub fn check(&self) -> Result<(), Failure> {
        self.check_system()?;
        self.check_workload()?;
        self.check_promise()?;
        self.check_containers()?;
        self.check_fail_fast()?;
        self.check_load()?;
        self.check_times()?;
        self.check_nemeses()
    }

    /// What a system can't be, or can't lose, is refused before it is looked for.
    fn check_system(&self) -> Result<(), Failure> {
        let (name, system) = (self.system.name(), self.system.traits());
        for nemesis in &self.nemeses {
            mechanisms::suits(nemesis.needs(), &*self.system)
                .map_err(|why| Failure::usage(format!("--nemesis {}: {why}", nemesis.name())))?;
        }
        if self.observers > 0 && !system.observers {
            return Err(Failure::usage(format!(
                "--observers {}: {} has voting members only; leave the flag out",
                self.observers, system.whose
            )));
        }
        if let (ClusterKind::Sim, Some(Planted::Clients(bug))) = (self.cluster.kind, self.mutant) {
            return Err(Failure::usage(format!(
                "--mutant {}: it is a bug of clients of real members; write --cluster process or docker",
                bug.name()
            )));
        }
        if let Some(Planted::Members(bug)) = self.mutant
            && !bug.driver().is_of_processes()
            && self.cluster.kind != ClusterKind::Sim
        {
            return Err(Failure::usage(format!(
                "--mutant {}: it is a bug of the simulator's driver, which processes don't have; write \
                    --cluster sim",
                bug.name()
            )));
        }
        self.check_services()?;
        if let Some(why) = self.system.refuses(self.cluster.kind) {
            return Err(Failure::usage(format!("--system {name}: {why}")));
        }
        if self.containers.any()
            && let Some(why) = system.refuses(ClusterKind::Docker)
        {
            return Err(Failure::usage(format!(
                "--system {name} and --image: {why}, and --image is for containers: leave one of them out"
            )));
        }
        if let (Some(Planted::Members(bug)), false) = (self.mutant, system.takes_bugs)
            && !self.system.has_bug(bug.name())
        {
            return Err(Failure::usage(format!(
                "--mutant {}: it is a bug of the bundled node; leave out --system {name}",
                bug.name()
            )));
        }
        if let Some(Planted::Protocol(bug)) = self.mutant
            && !self.system.has_bug(bug)
        {
            let whose =
                PROTOCOLS.iter().filter(|protocol| protocol.mutants.iter().any(|one| one.name == bug));
            let whose: Vec<&str> = whose.map(|protocol| protocol.name).collect();
            return Err(Failure::usage(format!(
                "--mutant {bug}: it is a bug of {}, and members of {} have no such; `harness list mutants` \
                 says who has which",
                whose.join(" and of "),
                system.whose
            )));
        }
        if system.tells_synced { Ok(()) } else { self.check_loss(system.whose) }
    }

    /// What a file says of its members, no flag says otherwise.
    fn check_services(&self) -> Result<(), Failure> {
        let name = self.system.name();
        let Some(members) = self.system.members() else { return Ok(()) };
        if crate::num::wide(members) != u64::from(self.nodes) {
            return Err(Failure::usage(format!(
                "--nodes {}: {name} names {members} members; leave the flag out",
                self.nodes
            )));
        }
        if self.containers.image.is_some() || !self.containers.image_command.is_empty() {
            return Err(Failure::usage(format!("--image: {name} names the images; leave the flag out")));
        }
        Ok(())
    }

    /// A workload whose operations the system does not have is refused before anything starts.
    fn check_workload(&self) -> Result<(), Failure> {
        if !self.workload.has_clients() {
            return self.check_command();
        }
        self.check_applications()?;
        let lacks = |kind: &Kind| kind.functions().iter().find_map(|function| self.system.lacks(*function));
        let Some(why) = lacks(&self.workload) else { return Ok(()) };
        let name = self.workload.name();
        Err(Failure::usage(format!("--workload {name}: {why}; take {}", names(|kind| lacks(kind).is_none()))))
    }

    /// A command is a process that reaches members by their addresses, and has no bug of ours.
    fn check_command(&self) -> Result<(), Failure> {
        if self.cluster.kind == ClusterKind::Sim {
            return Err(Failure::usage(
                "--cluster sim: no command reaches the members of a virtual world; write --cluster process \
                 or docker",
            ));
        }
        if let Some(nemesis) = self.nemeses.iter().find(|nemesis| nemesis.hits_applications()) {
            return Err(Failure::usage(format!(
                "--nemesis {}: it hits applications of the bench's, and a command is none of them; take a \
                 nemesis of members",
                nemesis.name()
            )));
        }
        if let Some(Planted::Clients(bug)) = self.mutant {
            return Err(Failure::usage(format!(
                "--mutant {}: it is a bug of the bench's clients, and a command has its own; take one of the \
                 members'",
                bug.name()
            )));
        }
        if self.template.is_some() {
            return self.check_template();
        }
        match self.command.as_deref() {
            Some([program, ..]) if program::is_there(program, Path::new("")) => Ok(()),
            Some([program, ..]) => Err(Failure::usage(format!(
                "there is no program {program}: name one that can be run, behind `--`"
            ))),
            Some([]) | None => Err(Failure::usage("name the command behind `--`")),
        }
    }

    /// Test commands lie in containers that a Compose file describes.
    fn check_template(&self) -> Result<(), Failure> {
        if self.system.traits().runs_only_in(ClusterKind::Docker) {
            return Ok(());
        }
        Err(Failure::usage(format!(
            "--template: test commands lie in containers, and {} has none of its own; name a Compose file \
             with --compose",
            self.system.name()
        )))
    }

    /// What clients are, where they are applications of the bench's.
    pub fn applications(&self) -> Option<Applications> {
        self.workload.applications().filter(|holds| self.has_applications(*holds))
    }

    /// Applications are processes beside the members, and what hits them asks for some.
    fn check_applications(&self) -> Result<(), Failure> {
        let name = self.workload.name();
        self.check_bug_of_applications()?;
        if self.applications().is_some() {
            if self.cluster.kind == ClusterKind::Sim {
                return Err(Failure::usage(format!(
                    "--workload {name}: its applications are processes, which no virtual world has; write \
                     --cluster process or docker"
                )));
            }
            return Ok(());
        }
        let has_some = |kind: &Kind| kind.applications().is_some_and(|holds| self.has_applications(holds));
        if let Some(nemesis) = self.nemeses.iter().find(|nemesis| nemesis.hits_applications()) {
            return Err(Failure::usage(format!(
                "--nemesis {}: there are no applications with --workload {name}; take {}",
                nemesis.name(),
                names(has_some)
            )));
        }
        // What only applications do no other client does.
        let is_held = self.workload.applications().is_some_and(Applications::one_holds);
        if is_held && self.system.lacks_none_of(self.workload.functions()) {
            return Err(Failure::usage(format!(
                "--workload {name}: {} has no applications that do this; take {}",
                self.system.name(),
                names(has_some)
            )));
        }
        Ok(())
    }

    fn has_applications(&self, holds: Applications) -> bool {
        self.system.applications(holds).is_some()
    }

    /// A bug of applications asks for those that can have it.
    fn check_bug_of_applications(&self) -> Result<(), Failure> {
        let Some(bug) = self.mutant.and_then(Planted::of_clients) else { return Ok(()) };
        let can_have_it = |applications: &Applications| {
            let is_ours = matches!(self.system.applications(*applications), Some(Runs::Own));
            is_ours && bug.applications().contains(applications)
        };
        if bug.applications().is_empty() || self.applications().as_ref().is_some_and(can_have_it) {
            return Ok(());
        }
        let name = self.workload.name();
        let why = match self.applications() {
            Some(_) => format!("the applications of --workload {name} can't have this bug"),
            None => format!("there are no applications with --workload {name}"),
        };
        let advice = match names(|kind| kind.applications().as_ref().is_some_and(can_have_it)) {
            none if none.is_empty() => "leave the flag out".to_owned(),
            those => format!("take {those}"),
        };
        Err(Failure::usage(format!("--mutant {}: {why}; {advice}", bug.name())))
    }

    /// What its clients were asked for and can't do is refused before any member starts.
    pub fn check_functions(&self, has: &[Function]) -> Result<(), Failure> {
        let lack_for = |kind: &Kind| {
            let lacks = |function: &Function| !has.contains(function) && !kind.can_do_without(*function);
            kind.asks_for().into_iter().find(lacks)
        };
        let Some(lack) = lack_for(&self.workload) else { return Ok(()) };
        let fits = |kind: &Kind| self.system.lacks_none_of(kind.functions()) && lack_for(kind).is_none();
        let advice = match names(fits) {
            none if none.is_empty() => "no workload needs so little".to_owned(),
            names => format!("take {names}"),
        };
        Err(Failure::usage(format!(
            "--workload {}: the client does not say that it can {lack}; {advice}, or let its hello say it",
            self.workload.name()
        )))
    }

    /// Every member, observers included.
    pub fn members(&self) -> u32 {
        self.nodes + self.observers
    }

    /// What an installation of the system is wanted for.
    pub fn wanted(&self) -> Wanted {
        Wanted {
            observers: self.observers,
            seed: self.seed,
            peer_timeout: self.peer_timeout,
            settings: self.settings.clone(),
            bug: self.mutant.and_then(Planted::of_members),
            ..usually_wanted(&*self.system, self.nodes)
        }
    }

    /// Nobody but the bundled node tells what it has synced.
    fn check_loss(&self, whose: &str) -> Result<(), Failure> {
        let loses =
            |nemesis: &&Nemesis| nemesis.may_lose_unsynced() && self.lose_unsynced.applies_to(**nemesis);
        match self.nemeses.iter().find(loses) {
            Some(nemesis) => Err(Failure::usage(format!(
                "--nemesis {}: what {whose} has synced is not known, so it can't lose the rest; add \
                 --lose-unsynced never",
                nemesis.name()
            ))),
            None => Ok(()),
        }
    }

    fn check_containers(&self) -> Result<(), Failure> {
        let Containers { image, image_command, .. } = &self.containers;
        if self.containers.any() && matches!(self.cluster.kind, ClusterKind::Process | ClusterKind::Sim) {
            return Err(Failure::usage(
                "--image, --image-command, --publish and --pull are for members in containers: write \
                 --cluster docker",
            ));
        }
        if self.base_port.is_some()
            && (matches!(self.cluster.kind, ClusterKind::Docker | ClusterKind::Sim) || self.containers.any())
        {
            return Err(Failure::usage(
                "--base-port is for local processes: nobody else needs ports of this machine. Leave it out",
            ));
        }
        let Some(image) = image else {
            if image_command.is_empty() {
                return Ok(());
            }
            return Err(Failure::usage(
                "--image-command: the bundled node has its own; name an --image for it",
            ));
        };
        if let Some(Planted::Members(bug)) = self.mutant {
            return Err(Failure::usage(format!(
                "--mutant {}: bugs are planted in the bundled node only; leave out --image {image}",
                bug.name()
            )));
        }
        self.check_loss(image)
    }

    fn check_fail_fast(&self) -> Result<(), Failure> {
        if self.fail_fast { self.can_fail_fast() } else { Ok(()) }
    }

    /// Whether a violation can end such a run: what would be seen at its end only can't.
    pub fn can_fail_fast(&self) -> Result<(), Failure> {
        if !self.workload.goes_along() {
            return Err(Failure::usage(format!(
                "--fail-fast: the workload {} is judged at its end only; leave the flag out, or take \
                    --workload {}",
                self.workload.name(),
                names(|kind| kind.goes_along())
            )));
        }
        match self.promised().what {
            promise if promise.keeps_real_time() => Ok(()),
            promise => Err(Failure::usage(format!(
                "--fail-fast: what {promise} asks for is judged at the end only; leave the flag out"
            ))),
        }
    }

    fn check_load(&self) -> Result<(), Failure> {
        if !(self.rate > 0.0 && self.rate <= MAX_RATE) {
            return Err(Failure::usage(format!(
                "--rate {}: write operations per second above 0 and up to {MAX_RATE}",
                self.rate
            )));
        }
        if self.concurrency == 0 || self.concurrency > MAX_CONCURRENCY {
            return Err(Failure::usage(format!(
                "--concurrency {}: write a number of client processes from 1 to {MAX_CONCURRENCY}",
                self.concurrency
            )));
        }
        let most_keys = workloads::params::MAX_KEYS;
        if self.keys == 0 || u64::from(self.keys) > most_keys {
            return Err(Failure::usage(format!(
                "--keys {}: write a number from 1 to {most_keys}",
                self.keys
            )));
        }
        if self.min_rate.is_some_and(|rate| !(rate >= 0.0 && rate <= self.rate)) {
            return Err(Failure::usage(format!(
                "--min-rate: no run reaches it when it is above --rate {}",
                self.rate
            )));
        }
        Ok(())
    }

    fn check_times(&self) -> Result<(), Failure> {
        let at_least = |flag: &str, value: Duration, least: Duration| {
            if value >= least {
                return Ok(());
            }
            let (value, least) = (span::show(value), span::show(least));
            Err(Failure::usage(format!("{flag} {value}: write at least {least}")))
        };
        at_least("--time-limit", self.time_limit, SHORTEST_RUN)?;
        at_least("--interval", self.interval, SHORTEST_INTERVAL)?;
        at_least("--op-timeout", self.op_timeout, Duration::from_millis(10))?;
        at_least("--peer-timeout", self.peer_timeout, SHORTEST_PEER_TIMEOUT)?;
        let (shortest, longest) = SESSION_RANGE;
        if self.session_timeout < shortest || self.session_timeout > longest {
            return Err(Failure::usage(format!(
                "--session-timeout {}: members grant {} to {}",
                span::show(self.session_timeout),
                span::show(shortest),
                span::show(longest)
            )));
        }
        Ok(())
    }

    fn check_nemeses(&self) -> Result<(), Failure> {
        for nemesis in &self.nemeses {
            if nemesis.needs_leader() && !self.system.traits().tells_leader {
                return Err(Failure::usage(format!(
                    "--nemesis {}: it aims at the leader, and nobody tells who that is; say it in {} as \
                     `leader` (of `[member]`, or of `x-harness` in a Compose file), or take {}",
                    nemesis.name(),
                    self.system.name(),
                    aimless(&*self.system)
                )));
            }
            if let (ClusterKind::Sim, Err(why)) = (self.cluster.kind, nemesis.needs().virtually) {
                return Err(Failure::usage(format!(
                    "--nemesis {}: {why}; write --cluster process or docker",
                    nemesis.name()
                )));
            }
            let (fewest, why) = nemesis.fewest_nodes();
            if self.nodes < fewest {
                return Err(Failure::usage(format!(
                    "--nemesis {} needs at least {fewest} nodes, not {}: {why}",
                    nemesis.name(),
                    self.nodes
                )));
            }
        }
        self.check_holders()?;
        if self.overlap {
            self.check_overlap()?;
        }
        let room = self.plan().shortest();
        if !self.nemeses.is_empty() && self.time_limit < room {
            return Err(Failure::usage(format!(
                "--time-limit {} leaves no room for a fault: with --interval {} it takes {} at least. \
                 Lengthen the one or shorten the other",
                span::show(self.time_limit),
                span::show(self.interval),
                span::show(room)
            )));
        }
        Ok(())
    }

    /// What hits a holder must outlast its session: else it comes back before anybody could take its place.
    fn check_holders(&self) -> Result<(), Failure> {
        let least = (self.session() + BEYOND_SESSION) * 2;
        match self.nemeses.iter().find(|nemesis| nemesis.hits_applications()) {
            Some(nemesis) if self.interval < least => Err(Failure::usage(format!(
                "--nemesis {}: it is held for half of --interval {}, which must outlast sessions of {}; \
                 write at least --interval {}",
                nemesis.name(),
                span::show(self.interval),
                span::show(self.session()),
                span::show(least)
            ))),
            _ => Ok(()),
        }
    }

    /// The time-out that sessions of the load ask for.
    pub fn session(&self) -> Duration {
        if self.workload.sessions_expire() {
            self.session_timeout.min(EXPIRING_SESSION)
        } else {
            self.session_timeout
        }
    }

    fn check_overlap(&self) -> Result<(), Failure> {
        let nemeses = self.nemeses.len();
        if nemeses < 2 {
            return Err(Failure::usage(
                "--overlap: name two nemeses at least in --nemesis; one by itself has nothing to overlap \
                    with",
            ));
        }
        if harness_core::schedule::step(self.interval, nemeses) < SHORTEST_STEP {
            let least = SHORTEST_STEP * crate::num::narrow(nemeses + 1) * 2;
            return Err(Failure::usage(format!(
                "--interval {} is too short for {nemeses} nemeses at once: with --overlap write at least {}",
                span::show(self.interval),
                span::show(least)
            )));
        }
        Ok(())
    }

    /// How the faults are planned.
    pub fn plan(&self) -> Plan<'_> {
        Plan { seed: self.seed, nemeses: &self.nemeses, interval: self.interval, overlap: self.overlap }
    }

    /// The command that repeats this run: everything that differs from the defaults, and the seed always.
    pub fn command_line(&self) -> String {
        let (name, usual_limit) = match (&self.command, &self.template) {
            (Some(_), _) => ("harness wrap", USUAL_WRAP_LIMIT),
            (None, Some(_)) => ("harness wrap", USUAL_TEMPLATE_LIMIT),
            (None, None) => ("harness run", USUAL_LIMIT),
        };
        let mut words = vec![format!("{}{name}", typed::assignments(&self.variables))];
        if self.overlap {
            words.push("--overlap".to_owned());
        }
        if self.fail_fast {
            words.push("--fail-fast".to_owned());
        }
        let Containers { image, image_command, publish, pull } = &self.containers;
        words.extend(image_command.iter().map(|word| format!("--image-command {}", typed::word(word))));
        // Whatever a value is, a shell takes it as one word.
        let mut flag = |name: &str, value: String, default: &str| {
            if value != default {
                words.push(format!("--{name} {}", typed::word(&value)));
            }
        };
        let nemeses: Vec<&str> = self.nemeses.iter().map(|nemesis| nemesis.name()).collect();
        flag("nemesis", nemeses.join(","), "");
        flag("nodes", self.nodes.to_string(), "5");
        flag("observers", self.observers.to_string(), "0");
        if self.cluster.reason == ASKED_FOR {
            flag("cluster", self.cluster.kind.name().to_owned(), "auto");
        }
        flag("system", self.system.name(), "node");
        for (name, value) in &self.settings {
            flag("set", format!("{name}={value}"), "");
        }
        flag("image", image.clone().unwrap_or_default(), "");
        flag("publish", publish.map(|address| address.to_string()).unwrap_or_default(), "");
        let pulls = if *pull == Pull::Missing { "missing" } else { "" };
        flag("pull", pulls.to_owned(), "");
        let workload = if self.workload.has_clients() { self.workload } else { Kind::default() };
        flag("workload", workload.name().to_owned(), Kind::default().name());
        flag("promise", self.promise.map(|promise| promise.name().to_owned()).unwrap_or_default(), "");
        let usual = self.system.traits();
        let interval = usual_interval(&*self.system, self.workload);
        flag("interval", span::show(self.interval), &span::show(interval));
        flag("rate", self.rate.to_string(), "1000");
        flag("concurrency", self.concurrency.to_string(), "20");
        flag("keys", self.keys.to_string(), "5");
        let usual_limit = span::parse(usual_limit).map(span::show).unwrap_or_default();
        flag("time-limit", span::show(self.time_limit), &usual_limit);
        flag("min-rate", self.min_rate.map(|rate| rate.to_string()).unwrap_or_default(), "");
        flag("mutant", self.mutant.map(|mutant| mutant.name().to_owned()).unwrap_or_default(), "");
        flag("op-timeout", span::show(self.op_timeout), "500ms");
        flag("session-timeout", span::show(self.session_timeout), "10s");
        flag("peer-timeout", span::show(self.peer_timeout), &span::show(usual.usual_peer_timeout));
        let loss = usual_loss(usual.tells_synced, self.containers.image.is_some());
        flag("lose-unsynced", self.lose_unsynced.name().to_owned(), loss.name());
        flag("seed", self.seed.to_string(), "");
        if let Some(Template { name, folder, awaits_setup }) = &self.template {
            words.push(format!("--template {}", typed::word(name.as_deref().unwrap_or(ANY_TEMPLATE))));
            if folder != USUAL_TEMPLATES {
                words.push(format!("--templates {}", typed::word(folder)));
            }
            if !awaits_setup {
                words.push("--no-setup".to_owned());
            }
        }
        if let Some(command) = &self.command {
            words.extend(["--".to_owned(), typed::words(command)]);
        }
        words.join(" ")
    }
}

/// What an installation of a system is wanted for when nobody says otherwise.
pub fn usually_wanted(system: &dyn System, nodes: u32) -> Wanted {
    Wanted {
        nodes,
        observers: 0,
        seed: 0,
        peer_timeout: system.traits().usual_peer_timeout,
        sessions: SESSION_RANGE,
        settings: Settings::new(),
        bug: None,
    }
}

/// When killed members lose what they had not synced, when nobody says: an image's have said nothing of it.
pub fn usual_loss(tells_synced: bool, is_of_an_image: bool) -> LoseUnsynced {
    if tells_synced && !is_of_an_image { LoseUnsynced::KillAll } else { LoseUnsynced::Never }
}

/// From onset to onset when nobody says: long enough for an election, and for what clients are.
pub fn usual_interval(system: &dyn System, workload: Kind) -> Duration {
    let usual = system.traits().usual_interval;
    let has_some = |holds| system.applications(holds).is_some();
    if workload.applications().is_some_and(has_some) { usual.max(USUAL_WITH_APPLICATIONS) } else { usual }
}

/// The nemeses of members that aim at nobody's role, to choose from.
fn aimless(system: &dyn System) -> String {
    let aims = |nemesis: &&Nemesis| {
        nemesis.needs_leader()
            || nemesis.hits_applications()
            || mechanisms::suits(nemesis.needs(), system).is_err()
    };
    let names: Vec<&str> =
        Nemesis::ALL.iter().filter(|nemesis| !aims(nemesis)).map(|nemesis| nemesis.name()).collect();
    names.join(", ")
}

/// The workloads for which this holds, to choose from.
fn names(holds: impl Fn(&Kind) -> bool) -> String {
    let names: Vec<&str> = Kind::ALL.iter().copied().filter(holds).map(Kind::name).collect();
    names.join(", ")
}
