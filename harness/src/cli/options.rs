//! Flags as they are meant: checked against each other, against the cluster and against the machine, before
//! anything starts. Every refusal says what to do instead.

use std::path::PathBuf;
use std::time::Duration;

use node_core::Bug;
use workloads::Kind;

use super::{Format, RunArgs, names, span, suggest};
use crate::cluster::ports::MAX_MEMBERS;
use crate::exit::Failure;
use crate::nemesis::{Nemesis, Plan, schedule};
use crate::seed;
use crate::targets::Target;

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
/// Below that a virtual machine that clears its memory is given up.
const SHORTEST_TICK: Duration = Duration::from_millis(50);
/// Apache ZooKeeper's usual 2 s would have every leader fault end before it is noticed.
const TICK: Duration = Duration::from_millis(500);
/// ZooKeeper's sessions last 2 to 20 ticks of 2 s.
pub(crate) const SESSION_RANGE: (Duration, Duration) = (Duration::from_secs(4), Duration::from_secs(40));
/// The longest name of a run.
const MAX_NAME: usize = 80;

/// When killed members lose what they had not synced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LoseUnsynced {
    /// After `kill-all` only: nobody else can lose what a quorum holds.
    #[default]
    KillAll,
    /// After every kill, as a power failure would have it.
    Always,
    /// Never: SIGKILL alone keeps the page cache.
    Never,
}

impl LoseUnsynced {
    const NAMES: [&'static str; 3] = ["kill-all", "always", "never"];

    /// Whether a fault of this kind loses it.
    pub fn applies_to(self, nemesis: Nemesis) -> bool {
        match self {
            Self::KillAll => nemesis == Nemesis::KillAll,
            Self::Always => true,
            Self::Never => false,
        }
    }

    fn parse(text: &str) -> Result<Self, Failure> {
        match text {
            "kill-all" => Ok(Self::KillAll),
            "always" => Ok(Self::Always),
            "never" => Ok(Self::Never),
            _ => Err(Failure::usage(format!(
                "--lose-unsynced {text}: write kill-all, always or never{}",
                suggest::hint(text, &Self::NAMES)
            ))),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::KillAll => "kill-all",
            Self::Always => "always",
            Self::Never => "never",
        }
    }
}

/// Where the members run, and why there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Where {
    /// The cluster's name.
    pub name: &'static str,
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
}

impl Containers {
    /// Whether anything was asked for that only containers can do.
    pub fn any(&self) -> bool {
        *self != Self::default()
    }
}

/// A run as it is meant.
#[derive(Clone, Debug)]
pub struct RunOptions {
    /// Voting members.
    pub nodes: u32,
    /// Where they run.
    pub cluster: Where,
    /// What only members in containers are told.
    pub containers: Containers,
    /// What is tested.
    pub target: Target,
    /// Apache ZooKeeper's class path, when one was named.
    pub zookeeper: Option<String>,
    /// Apache ZooKeeper's tick.
    pub tick: Duration,
    /// The workload's name.
    pub workload: &'static str,
    /// The nemeses that take turns; none of them is a run without faults.
    pub nemeses: Vec<Nemesis>,
    /// Whether they act at once instead, each in its own rhythm.
    pub overlap: bool,
    /// Whether the run ends as soon as the live check sees a violation.
    pub fail_fast: bool,
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
    pub plant: Option<Bug>,
    /// How the result is printed.
    pub format: Format,
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
    /// The whole command line that repeats the run.
    pub repeat: String,
}

impl RunOptions {
    /// What the typed flags mean.
    pub fn from_args(args: &RunArgs) -> Result<Self, Failure> {
        let seed = args.seed.unwrap_or_else(seed::fresh);
        let nemeses = Nemesis::parse_list(&args.nemesis).map_err(Failure::Usage)?;
        let target = Target::parse(&args.target, nodes(args)?)?;
        let mut options = Self {
            nodes: nodes(args)?,
            cluster: cluster(&args.cluster)?,
            containers: Containers {
                image: args.brought.image.clone(),
                image_command: args.brought.image_command.clone(),
                publish: args.brought.publish,
            },
            target,
            zookeeper: args.brought.zookeeper.clone(),
            tick: optional_time("--tick", args.tick.as_deref(), TICK)?,
            workload: workload(&args.workload)?,
            interval: optional_time("--interval", args.interval.as_deref(), usual_interval(target))?,
            rate: args.rate,
            concurrency: args.concurrency,
            keys: args.keys,
            time_limit: time("--time-limit", &args.time_limit)?,
            seed,
            min_rate: args.min_rate,
            store: args.store.clone(),
            name: String::new(),
            plant: plant(args.plant.as_deref())?,
            format: args.format,
            base_port: args.base_port,
            op_timeout: time("--op-timeout", &args.op_timeout)?,
            session_timeout: time("--session-timeout", &args.session_timeout)?,
            peer_timeout: time("--peer-timeout", &args.peer_timeout)?,
            lose_unsynced: LoseUnsynced::parse(&args.lose_unsynced)?,
            overlap: args.overlap,
            fail_fast: args.fail_fast,
            repeat: String::new(),
            nemeses,
        };
        not_here(args)?;
        options.check_target(args)?;
        options.check_containers()?;
        options.check_fail_fast()?;
        options.check_load()?;
        options.check_times()?;
        options.check_nemeses()?;
        options.name = run_name(args, &options)?;
        options.repeat = options.command_line();
        Ok(options)
    }

    /// What a target can't be, or can't lose, is refused before it is looked for.
    fn check_target(&self, args: &RunArgs) -> Result<(), Failure> {
        let name = self.target.name();
        if !self.target.has_java() {
            if args.brought.zookeeper.is_some() || args.tick.is_some() {
                return Err(Failure::usage(
                    "--zookeeper and --tick are for Apache ZooKeeper: add --target zookeeper or mixed:N",
                ));
            }
            if self.nemeses.contains(&Nemesis::ReplaceRolling) {
                return Err(Failure::usage(format!(
                    "--nemesis {}: there is one kind of server only; add --target zookeeper or mixed:N",
                    Nemesis::ReplaceRolling.name()
                )));
            }
            return Ok(());
        }
        if matches!(self.cluster.name, "docker" | "sim") {
            let how = match self.cluster.name {
                "docker" => "write --cluster process, or --image NAME for a container of it",
                _ => "write --cluster process",
            };
            return Err(Failure::usage(format!(
                "--target {name}: members of Apache ZooKeeper are local processes; {how}"
            )));
        }
        if self.containers.any() {
            return Err(Failure::usage(format!(
                "--target {name} is for local processes and --image for containers: leave one of them out"
            )));
        }
        if let Some(bug) = self.plant {
            return Err(Failure::usage(format!(
                "--plant {}: bugs are planted in the bundled node only; leave out --target {name}",
                bug.name()
            )));
        }
        self.check_loss("Apache ZooKeeper")
    }

    /// Nobody but the bundled node tells what it has synced.
    fn check_loss(&self, whose: &str) -> Result<(), Failure> {
        let loses = |nemesis: &&Nemesis| nemesis.kills() && self.lose_unsynced.applies_to(**nemesis);
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
        if self.containers.any() && matches!(self.cluster.name, "process" | "sim") {
            return Err(Failure::usage(
                "--image, --image-command and --publish are for members in containers: write --cluster docker",
            ));
        }
        if self.base_port.is_some()
            && (matches!(self.cluster.name, "docker" | "sim") || self.containers.any())
        {
            return Err(Failure::usage(
                "--base-port is for local processes: nobody else needs ports of this machine. Leave it out",
            ));
        }
        if self.cluster.name == "sim" && self.workload == workloads::Kind::Ephemeral.name() {
            return Err(Failure::usage(
                "--cluster sim can't do --workload ephemeral: its clients do not leave their sessions to expire. \
                 `harness sim` does it in its worlds; else write --cluster process",
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
        if let Some(bug) = self.plant {
            return Err(Failure::usage(format!(
                "--plant {}: bugs are planted in the bundled node only; leave out --image {image}",
                bug.name()
            )));
        }
        self.check_loss(image)
    }

    /// What would never be seen can't end a run.
    fn check_fail_fast(&self) -> Result<(), Failure> {
        if !self.fail_fast {
            return Ok(());
        }
        if self.cluster.name == "sim" {
            return Err(Failure::usage(
                "--fail-fast: a simulated run is over in a moment and judged then; leave the flag out",
            ));
        }
        let live = Kind::from_name(self.workload).is_some_and(crate::live::goes_along);
        if !live {
            return Err(Failure::usage(format!(
                "--fail-fast: the workload {} is judged at its end only; leave the flag out, or take --workload register",
                self.workload
            )));
        }
        Ok(())
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
        let most_keys = workloads::register::MAX_KEYS;
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
        at_least("--tick", self.tick, SHORTEST_TICK)?;
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
            let (fewest, why) = nemesis.fewest_nodes();
            if self.nodes < fewest {
                return Err(Failure::usage(format!(
                    "--nemesis {} needs at least {fewest} nodes, not {}: {why}",
                    nemesis.name(),
                    self.nodes
                )));
            }
        }
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

    fn check_overlap(&self) -> Result<(), Failure> {
        let nemeses = self.nemeses.len();
        if nemeses < 2 {
            return Err(Failure::usage(
                "--overlap: name two nemeses at least in --nemesis; one by itself has nothing to overlap with",
            ));
        }
        if schedule::step(self.interval, nemeses) < SHORTEST_STEP {
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
        let mut words = vec!["harness run".to_owned()];
        if self.overlap {
            words.push("--overlap".to_owned());
        }
        if self.fail_fast {
            words.push("--fail-fast".to_owned());
        }
        let mut flag = |name: &str, value: String, default: &str| {
            if value != default {
                words.push(format!("--{name} {value}"));
            }
        };
        let nemeses: Vec<&str> = self.nemeses.iter().map(|nemesis| nemesis.name()).collect();
        flag("nemesis", nemeses.join(","), "");
        flag("nodes", self.nodes.to_string(), "5");
        if self.cluster.reason == ASKED_FOR {
            flag("cluster", self.cluster.name.to_owned(), "auto");
        }
        let Containers { image, image_command, publish } = &self.containers;
        flag("target", self.target.name(), "node");
        flag("zookeeper", self.zookeeper.clone().unwrap_or_default(), "");
        flag("tick", span::show(self.tick), &span::show(TICK));
        flag("image", image.clone().unwrap_or_default(), "");
        for word in image_command {
            flag("image-command", word.clone(), "");
        }
        flag("publish", publish.map(|address| address.to_string()).unwrap_or_default(), "");
        flag("workload", self.workload.to_owned(), "register");
        flag("interval", span::show(self.interval), &span::show(usual_interval(self.target)));
        flag("rate", self.rate.to_string(), "1000");
        flag("concurrency", self.concurrency.to_string(), "20");
        flag("keys", self.keys.to_string(), "5");
        flag("time-limit", span::show(self.time_limit), "30s");
        flag("min-rate", self.min_rate.map(|rate| rate.to_string()).unwrap_or_default(), "");
        flag("plant", self.plant.map(|bug| bug.name().to_owned()).unwrap_or_default(), "");
        flag("op-timeout", span::show(self.op_timeout), "500ms");
        flag("session-timeout", span::show(self.session_timeout), "10s");
        flag("peer-timeout", span::show(self.peer_timeout), "250ms");
        flag("lose-unsynced", self.lose_unsynced.name().to_owned(), "kill-all");
        flag("seed", self.seed.to_string(), "");
        words.join(" ")
    }
}

/// The reason for a cluster that was named.
const ASKED_FOR: &str = "asked for";

fn nodes(args: &RunArgs) -> Result<u32, Failure> {
    match args.nodes {
        0 => Err(Failure::usage("--nodes 0: an ensemble has at least one member; 3 and 5 are usual")),
        nodes if nodes > MAX_MEMBERS => {
            Err(Failure::usage(format!("--nodes {nodes}: at most {MAX_MEMBERS} fit on one machine")))
        }
        nodes => Ok(nodes),
    }
}

/// What has its flag already and is not in this build.
fn not_here(args: &RunArgs) -> Result<(), Failure> {
    if args.observers > 0 {
        return Err(Failure::usage("--observers: this build has voting members only; leave the flag out"));
    }
    Ok(())
}

fn cluster(text: &str) -> Result<Where, Failure> {
    match text {
        "process" => Ok(Where { name: "process", reason: ASKED_FOR.to_owned() }),
        "docker" => Ok(Where { name: "docker", reason: ASKED_FOR.to_owned() }),
        // Which one it is is decided when the machine has been looked at.
        "auto" => Ok(Where { name: "auto", reason: String::new() }),
        "sim" => Ok(Where { name: "sim", reason: ASKED_FOR.to_owned() }),
        _ => Err(Failure::Usage(suggest::unknown(
            "cluster",
            text,
            &names::CLUSTERS,
            "--cluster takes one of these:",
        ))),
    }
}

fn workload(text: &str) -> Result<&'static str, Failure> {
    workloads::find(text).map(|workload| workload.name).ok_or_else(|| {
        let advice = "`harness list workloads` says what each does:";
        Failure::Usage(suggest::unknown("workload", text, &names::workloads(), advice))
    })
}

pub(crate) fn plant(text: Option<&str>) -> Result<Option<Bug>, Failure> {
    let Some(text) = text else { return Ok(None) };
    Bug::from_name(text).map(Some).ok_or_else(|| {
        let advice = "`harness list plants` says what each does:";
        Failure::Usage(suggest::unknown("bug to plant", text, &names::plants(), advice))
    })
}

/// From onset to onset, when nobody says.
fn usual_interval(target: Target) -> Duration {
    Duration::from_secs(if target.has_java() { 10 } else { 4 })
}

fn optional_time(flag: &str, text: Option<&str>, usual: Duration) -> Result<Duration, Failure> {
    text.map_or(Ok(usual), |text| time(flag, text))
}

fn time(flag: &str, text: &str) -> Result<Duration, Failure> {
    span::parse(text).map_err(|error| Failure::usage(format!("{flag}: {error}")))
}

/// As given, or made up: of the workload and those nemeses that have a turn, because it is read as a claim.
fn run_name(args: &RunArgs, options: &RunOptions) -> Result<String, Failure> {
    let Some(name) = &args.name else {
        let (tried, _) = options.plan().faults(options.time_limit).tried_and_not();
        let nemeses: Vec<&str> = tried.iter().map(|nemesis| nemesis.name()).collect();
        let broken = if nemeses.is_empty() { Nemesis::NONE.to_owned() } else { nemeses.join("+") };
        return Ok(shortened(format!("{}-{broken}", options.workload)));
    };
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '+' | '.');
    let sound = !name.is_empty()
        && name.len() <= MAX_NAME
        && name.chars().all(fits)
        && !name.starts_with('.')
        && name != "latest";
    if sound {
        Ok(name.clone())
    } else {
        Err(Failure::usage(format!(
            "--name {name}: it becomes a folder; write up to {MAX_NAME} letters, digits, and any of - _ + ., \
             not beginning with a dot, and not `latest`"
        )))
    }
}

/// A name that is too long for a folder keeps its beginning and gets a mark of the whole, so that two long ones stay two.
fn shortened(name: String) -> String {
    if name.len() <= MAX_NAME {
        return name;
    }
    // FNV-1a: short, stable for ever, and nobody attacks the name of his own folder.
    let mark =
        name.bytes().fold(0x811c_9dc5_u32, |mark, byte| (mark ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    let mark = format!("-{mark:08x}");
    let begun: String = name.chars().take(MAX_NAME - mark.len()).collect();
    begun + &mark
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Cli, Command};
    use clap::Parser;

    fn meant(flags: &str) -> Result<RunOptions, String> {
        let words = ["harness", "run"].into_iter().chain(flags.split_ascii_whitespace());
        let cli = Cli::try_parse_from(words).map_err(|error| error.to_string())?;
        let Command::Run(args) = cli.command else { return Err("not a run".to_owned()) };
        RunOptions::from_args(&args).map_err(|failure| {
            assert_eq!(failure.exit(), crate::Exit::Usage, "{failure}");
            failure.to_string()
        })
    }

    #[test]
    fn the_defaults_are_the_documented_ones() {
        let options = meant("--seed 7").expect("defaults");
        assert_eq!((options.nodes, options.concurrency, options.keys), (5, 20, 5));
        assert_eq!(options.interval, Duration::from_secs(4));
        assert_eq!(meant("--target zookeeper").expect("a run").interval, Duration::from_secs(10));
        assert_eq!(options.time_limit, Duration::from_secs(30));
        assert!(options.nemeses.is_empty());
        assert_eq!(options.name, "register-none");
        assert_eq!(options.repeat, "harness run --seed 7");
    }

    #[test]
    fn the_command_that_repeats_a_run_means_the_same_run() {
        let flags = "--nemesis kill-one,pause-leader --nodes 3 --interval 2500ms --rate 12.5 --seed 99 \
                     --plant commit-alone --lose-unsynced always --time-limit 2m";
        let java = "--target mixed:2 --zookeeper x.jar:y.jar --tick 1s --nemesis replace-rolling --interval 6s --seed 3";
        for flags in [flags.to_owned(), format!("{flags} --overlap"), java.to_owned()] {
            let options = meant(&flags).expect("a run");
            let again = meant(options.repeat.strip_prefix("harness run").expect("a run")).expect("the same");
            assert_eq!(format!("{options:?}"), format!("{again:?}"));
        }
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_advice() {
        for (flags, advice) in [
            ("--nodes 0", "at least one member"),
            ("--nodes 99", "at most"),
            ("--nemesis partition-leader --nodes 1", "needs at least 2 nodes"),
            ("--nemesis pause-leader --nodes 2", "needs at least 3 nodes"),
            ("--nemesis partition-leadre", "did you mean `partition-leader`?"),
            ("--workload registr", "did you mean `register`?"),
            ("--plant commit-alon", "did you mean `commit-alone`?"),
            ("--cluster sim --image zookeeper", "write --cluster docker"),
            ("--cluster sim --base-port 9000", "Leave it out"),
            ("--cluster process --image zookeeper", "write --cluster docker"),
            ("--cluster docker --base-port 9000", "Leave it out"),
            ("--image-command x", "name an --image"),
            ("--image zookeeper --plant commit-alone", "bundled node only"),
            ("--image zookeeper --nemesis kill-all", "--lose-unsynced never"),
            ("--cluster proces", "did you mean `process`?"),
            ("--target zookeper", "did you mean `zookeeper`?"),
            ("--target mixed:5", "all of them is --target zookeeper"),
            ("--target zookeeper --cluster docker", "--image NAME for a container"),
            ("--target mixed:2 --cluster sim", "write --cluster process"),
            ("--target zookeeper --image x", "leave one of them out"),
            ("--target mixed:2 --plant commit-alone", "bundled node only"),
            ("--target zookeeper --nemesis kill-all", "--lose-unsynced never"),
            ("--target zookeeper --tick 10ms", "at least 50ms"),
            ("--tick 1s", "add --target zookeeper"),
            ("--zookeeper x.jar", "add --target zookeeper"),
            ("--nemesis replace-rolling", "add --target zookeeper or mixed:N"),
            ("--observers 1", "voting members only"),
            ("--overlap", "two nemeses at least"),
            ("--overlap --nemesis kill-one", "two nemeses at least"),
            ("--overlap --nemesis kill-one,clock-bump,pause-leader --interval 700ms", "at least 800ms"),
            ("--overlap --nemesis kill-one,clock-bump --time-limit 5s", "leaves no room"),
            ("--nemesis partition-ring --nodes 3", "take partition-bridge"),
            ("--nemesis partition-bridge --nodes 2", "needs at least 3 nodes"),
            ("--interval 4", "write `4s`"),
            ("--interval 1ms", "at least 500ms"),
            ("--time-limit 0s", "at least 1s"),
            ("--nemesis kill-one --time-limit 4s", "leaves no room for a fault"),
            ("--rate 0", "above 0"),
            ("--rate nan", "above 0"),
            ("--concurrency 0", "from 1"),
            ("--keys 0", "from 1"),
            ("--min-rate 5000", "no run reaches it"),
            ("--session-timeout 1s", "members grant"),
            ("--lose-unsynced sometimes", "write kill-all, always or never"),
            ("--name ../x", "becomes a folder"),
            ("--name latest", "becomes a folder"),
        ] {
            let error = meant(flags).expect_err(flags);
            assert!(error.contains(advice), "{flags}: {error}");
        }
    }

    #[test]
    fn a_run_is_named_after_what_has_a_turn_and_long_names_stay_apart() {
        let name = |flags: &str| meant(flags).expect(flags).name;
        assert_eq!(
            name("--nemesis kill-leader,partition-halves --seed 1 --time-limit 9s"),
            "register-kill-leader+partition-halves"
        );
        let short = name("--nemesis kill-leader,partition-halves --seed 1 --time-limit 8s");
        assert!(["register-kill-leader", "register-partition-halves"].contains(&short.as_str()), "{short}");
        let all = "partition-leader,partition-halves,partition-one,partition-oneway,partition-ring,kill-one";
        let (one, other) = (
            name(&format!("--nemesis {all},clock-bump --time-limit 60s")),
            name(&format!("--nemesis {all},kill-all --time-limit 60s")),
        );
        assert!(one != other && one.len() == MAX_NAME && other.len() == MAX_NAME, "{one} {other}");
        assert_eq!(one, name(&format!("--nemesis {all},clock-bump --time-limit 60s")));
    }

    #[test]
    fn a_seed_is_drawn_when_none_is_given_and_stands_in_the_command() {
        let options = meant("").expect("defaults");
        assert!(options.repeat.ends_with(&format!("--seed {}", options.seed)));
    }
}
