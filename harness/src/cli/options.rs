//! Flags of a run as they are meant: what was typed becomes [`RunOptions`], or a refusal that says what to do
//! instead.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use harness_systems::System;
use harness_systems::catalogue::Meant;
use harness_systems::setting::{self, Settings};
use lab_mutants::Mutant;
use runs::cluster_kind::ClusterKind;
use workloads::{Kind, Promise};

use super::{RunArgs, names};
use crate::cli::seed;
use crate::cluster::ports::MAX_MEMBERS;
use crate::config::{
    ASKED_FOR, Containers, LoseUnsynced, Planted, RunOptions, Template, Where, usual_interval, usual_loss,
};
use crate::exit::Failure;
use crate::nemesis::{self, Nemesis};
use crate::systems::CATALOGUE;
use crate::text::{span, suggest};

/// Members, when nobody says.
const USUAL_NODES: u32 = 5;
/// The longest name of a run.
const MAX_NAME: usize = 80;

impl RunOptions {
    /// What the typed flags mean.
    pub fn from_args(args: &RunArgs) -> Result<Self, Failure> {
        Self::meant(args, workload(&args.workload)?, None, None)
    }

    /// A run in which a command works on the members: this one, with its arguments.
    pub fn around_a_command(args: &RunArgs, command: &[String]) -> Result<Self, Failure> {
        Self::meant(args, Kind::COMMAND, Some(command.to_vec()), None)
    }

    /// A run in which test commands work on the members.
    pub fn around_a_template(args: &RunArgs, template: Template) -> Result<Self, Failure> {
        Self::meant(args, Kind::COMMAND, None, Some(template))
    }

    fn meant(
        args: &RunArgs,
        workload: Kind,
        command: Option<Vec<String>>,
        template: Option<Template>,
    ) -> Result<Self, Failure> {
        let seed = args.seed.unwrap_or_else(seed::fresh);
        let meant = Meant {
            nodes: nodes(args.nodes.unwrap_or(USUAL_NODES))?,
            in_containers: args.cluster == ClusterKind::Docker.name(),
        };
        let system = system(&args.system, meant)?;
        let nemeses = nemesis::catalogue::parse_list(&args.nemesis, &system.nemeses());
        let nemeses = nemeses.map_err(Failure::Usage)?;
        let own = system.members().and_then(|members| u32::try_from(members).ok());
        let nodes = nodes(args.nodes.or(own).unwrap_or(USUAL_NODES))?;
        let settings = settings(&*system, &args.set)?;
        let usual = system.traits();
        let usual_interval = usual_interval(&*system, workload);
        let mut options = Self {
            nodes,
            observers: observers(args.observers, nodes)?,
            cluster: cluster(&args.cluster)?,
            containers: Containers {
                image: args.brought.image.clone(),
                image_command: args.brought.image_command.clone(),
                publish: args.brought.publish,
                pull: args.brought.pull.unwrap_or_default(),
            },
            variables: variables(&*system)?,
            system,
            settings,
            workload,
            command,
            template,
            functions: None,
            promise: promise(args.promise.as_deref())?,
            interval: optional_time("--interval", args.interval.as_deref(), usual_interval)?,
            rate: args.rate,
            concurrency: args.concurrency,
            keys: args.keys,
            time_limit: time("--time-limit", &args.time_limit)?,
            seed,
            min_rate: args.min_rate,
            store: args.store.clone(),
            name: String::new(),
            mutant: mutant(args.mutant.as_deref(), &names::mutants(), Planted::named)?,
            base_port: args.base_port,
            op_timeout: time("--op-timeout", &args.op_timeout)?,
            session_timeout: time("--session-timeout", &args.session_timeout)?,
            peer_timeout: optional_time(
                "--peer-timeout",
                args.peer_timeout.as_deref(),
                usual.usual_peer_timeout,
            )?,
            lose_unsynced: match &args.lose_unsynced {
                Some(text) => lose_unsynced(text)?,
                None => usual_loss(usual.tells_synced, args.brought.image.is_some()),
            },
            overlap: args.overlap,
            fail_fast: args.fail_fast,
            compress: args.compress,
            repeat: String::new(),
            nemeses,
        };
        options.check()?;
        options.name = run_name(args, &options)?;
        options.repeat = options.command_line();
        Ok(options)
    }
}

/// When members lose what they have not synchronized, as `--lose-unsynced` says.
fn lose_unsynced(text: &str) -> Result<LoseUnsynced, Failure> {
    let names = LoseUnsynced::ALL.map(LoseUnsynced::name);
    LoseUnsynced::ALL.into_iter().find(|choice| choice.name() == text).ok_or_else(|| {
        Failure::usage(format!(
            "--lose-unsynced {text}: write kill-all, always or never{}",
            suggest::hint(text, &names)
        ))
    })
}

/// How many members `--nodes` asks for.
fn nodes(nodes: u32) -> Result<u32, Failure> {
    match nodes {
        0 => Err(Failure::usage("--nodes 0: an ensemble has at least one member; 3 and 5 are usual")),
        nodes if nodes > MAX_MEMBERS => {
            Err(Failure::usage(format!("--nodes {nodes}: at most {MAX_MEMBERS} fit on one machine")))
        }
        nodes => Ok(nodes),
    }
}

/// The system that a name means, for an ensemble of so many.
fn system(text: &str, meant: Meant) -> Result<Arc<dyn System>, Failure> {
    match CATALOGUE.choose(text, meant) {
        Some(Ok(system)) => Ok(system),
        Some(Err(why)) => Err(Failure::usage(format!("--system {text}: {why}"))),
        None => {
            let advice = "--system takes one of these, N being how many members are Apache ZooKeeper:";
            Err(Failure::Usage(suggest::unknown("system", text, &names::systems(), advice)))
        }
    }
}

/// What is set of the variables that say how a system is set up. What can't be shown is refused: it stands in
/// the line that repeats the run.
fn variables(system: &dyn System) -> Result<BTreeMap<String, String>, Failure> {
    let mut set = BTreeMap::new();
    for name in system.variables() {
        let Some(value) = std::env::var_os(name).filter(|value| !value.is_empty()) else { continue };
        let plain = value.to_str().filter(|text| text.chars().all(|c| c.is_ascii_graphic() || c == ' '));
        let Some(value) = plain else {
            return Err(Failure::usage(format!(
                "{name} says how the system is set up, and its value can't be shown: write printable ASCII"
            )));
        };
        set.insert(name.clone(), value.to_owned());
    }
    Ok(set)
}

/// What was set of a system's own settings. Whoever sets what this one does not have is told which have it.
fn settings(system: &dyn System, words: &[String]) -> Result<Settings, Failure> {
    let otherwise = |name: &str| {
        let of_others = CATALOGUE.settings().into_iter().find(|(setting, _)| setting.name == name);
        of_others.map_or_else(String::new, |(_, systems)| format!("; add --system {}", systems.join(" or ")))
    };
    setting::read(system.settings(), system.traits().whose, words, &otherwise).map_err(Failure::Usage)
}

fn observers(observers: u32, nodes: u32) -> Result<u32, Failure> {
    let room = MAX_MEMBERS.saturating_sub(nodes);
    if observers > room {
        return Err(Failure::usage(format!(
            "--observers {observers}: at most {MAX_MEMBERS} members fit on one machine, so with --nodes \
             {nodes} write up to {room}"
        )));
    }
    Ok(observers)
}

fn cluster(text: &str) -> Result<Where, Failure> {
    let Some(kind) = ClusterKind::from_name(text) else {
        let advice = "--cluster takes one of these:";
        return Err(Failure::Usage(suggest::unknown("cluster", text, &names::clusters(), advice)));
    };
    // Which one `auto` is, is decided when the machine has been looked at.
    let reason = if kind == ClusterKind::Auto { String::new() } else { ASKED_FOR.to_owned() };
    Ok(Where { kind, reason })
}

fn workload(text: &str) -> Result<Kind, Failure> {
    Kind::from_name(text).ok_or_else(|| {
        let advice = "`harness list workloads` says what each does:";
        Failure::Usage(suggest::unknown("workload", text, &names::workloads(), advice))
    })
}

fn promise(text: Option<&str>) -> Result<Option<Promise>, Failure> {
    let Some(text) = text else { return Ok(None) };
    Promise::named(text).map(Some).ok_or_else(|| {
        Failure::Usage(suggest::unknown("promise", text, &names::promises(), "--promise takes one of these:"))
    })
}

/// The members' bug of that name, for commands that have no clients of their own.
pub(crate) fn bug(text: Option<&str>) -> Result<Option<Mutant>, Failure> {
    mutant(text, &names::bugs(), Mutant::named)
}

fn mutant<T>(
    text: Option<&str>,
    names: &[&str],
    from_name: impl Fn(&str) -> Option<T>,
) -> Result<Option<T>, Failure> {
    let Some(text) = text.filter(|text| *text != names::NO_MUTANT) else { return Ok(None) };
    from_name(text).map(Some).ok_or_else(|| {
        let advice = "`harness list mutants` says what each does:";
        Failure::Usage(suggest::unknown("mutant", text, names, advice))
    })
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
        let work = if options.template.is_some() { "template" } else { options.workload.name() };
        // What is said of a nemesis stays in the name of the folder, in letters that every shell takes.
        let plain = |letter: char| if matches!(letter, '(' | ',' | '=') { '-' } else { letter };
        let broken: String =
            broken.chars().filter(|letter| !matches!(letter, ')' | '%')).map(plain).collect();
        return Ok(shortened(format!("{work}-{broken}")));
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

/// A name that is too long for a folder keeps its beginning and gets a mark of the whole, so that two long
/// ones stay two.
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
    use crate::text::typed;
    use clap::Parser;

    fn meant(flags: &str) -> Result<RunOptions, String> {
        let words = ["harness", "run"].map(str::to_owned).into_iter().chain(typed::apart(flags));
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
        assert_eq!(meant("--system zookeeper").expect("a run").interval, Duration::from_secs(10));
        assert_eq!(meant("--workload lock").expect("a run").interval, Duration::from_secs(16));
        assert_eq!(options.time_limit, Duration::from_secs(30));
        assert!(options.nemeses.is_empty());
        assert_eq!(options.name, "register-none");
        assert_eq!(options.repeat, "harness run --seed 7");
    }

    #[test]
    fn the_command_that_repeats_a_run_means_the_same_run() {
        let flags = "--nemesis kill-one,pause-leader --nodes 3 --interval 2500ms --rate 12.5 --seed 99 \
                     --mutant commit-alone --lose-unsynced always --time-limit 2m --observers 2";
        let java = "--system mixed:2 --set classpath=x.jar:y.jar --set tick=1s --nemesis replace-rolling \
            --interval 6s --seed 3";
        let etcd = "--system etcd --peer-timeout 300ms --mutant cached-reads --nemesis pause-leader --seed 5";
        let slow = "--nemesis 'slow-one(latency=2s),kill-one,slow-one(jitter=9ms)' --seed 4".to_owned();
        for flags in [flags.to_owned(), format!("{flags} --overlap"), java.to_owned(), etcd.to_owned(), slow]
        {
            let options = meant(&flags).expect("a run");
            let again = meant(options.repeat.strip_prefix("harness run").expect("a run")).expect("the same");
            assert_eq!(format!("{options:?}"), format!("{again:?}"));
        }
    }

    #[test]
    fn a_shell_takes_the_command_that_repeats_a_run_apart_as_it_was_typed() {
        let flags = "--cluster docker --image 'my registry/x:1' --image-command -v \
                     --image-command '$(true)' --image-command '' --nemesis 'slow-one(latency=9ms)' --seed 8";
        let options = meant(flags).expect(flags);
        let words = typed::apart(&options.repeat);
        for word in ["my registry/x:1", "-v", "$(true)", "", "slow-one(latency=9ms)"] {
            assert!(words.iter().any(|other| other == word), "{word}: {}", options.repeat);
        }
        let again = meant(options.repeat.strip_prefix("harness run").expect("a run")).expect("the same");
        assert_eq!((again.containers, again.repeat), (options.containers, options.repeat));
        let flags = "--cluster process --system zookeeper --set 'classpath=/my jars/*:b' --seed 8";
        let repeat = meant(flags).expect(flags).repeat;
        assert!(repeat.contains("--set 'classpath=/my jars/*:b'"), "{repeat}");
    }

    #[test]
    fn the_command_that_repeats_a_wrapped_test_means_the_same_run() {
        let meant = |words: &[String]| {
            let cli = Cli::try_parse_from(words).expect("understood");
            let Command::Wrap(args) = cli.command else { panic!("a wrapped test") };
            let flags = args.of_a_run().expect("a run");
            RunOptions::around_a_command(&flags, &args.command).expect("a run")
        };
        let flags = "harness wrap --nemesis kill-one --nodes 3 --time-limit 90s --seed 8 -- sh -x ./test.sh";
        let words: Vec<String> = flags.split(' ').map(str::to_owned).collect();
        let options = meant(&words);
        assert_eq!((options.repeat.as_str(), options.name.as_str()), (flags, "command-kill-one"));
        let usual = meant(&["harness", "wrap", "--seed", "8", "--", "sh", "two words"].map(str::to_owned));
        assert_eq!(usual.repeat, "harness wrap --seed 8 -- sh 'two words'");
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
            ("--mutant commit-alon", "did you mean `commit-alone`?"),
            ("--cluster sim --image zookeeper", "write --cluster docker"),
            ("--cluster sim --base-port 9000", "Leave it out"),
            ("--cluster process --image zookeeper", "write --cluster docker"),
            ("--cluster docker --base-port 9000", "Leave it out"),
            ("--image-command x", "name an --image"),
            ("--image zookeeper --mutant commit-alone", "bundled node only"),
            ("--mutant log-hole", "write --cluster sim"),
            ("--cluster process --mutant log-hole", "write --cluster sim"),
            ("--image zookeeper --nemesis kill-all --lose-unsynced kill-all", "--lose-unsynced never"),
            ("--cluster proces", "did you mean `process`?"),
            ("--system zookeper", "did you mean `zookeeper`?"),
            ("--system mixed:5", "all of them is --system zookeeper"),
            ("--system zookeeper --cluster docker", "or leave out --system and name an image of it"),
            ("--system mixed:2 --cluster sim", "write --cluster process"),
            ("--system zookeeper --image x", "leave one of them out"),
            ("--system mixed:2 --mutant commit-alone", "it is a bug of the bundled node"),
            ("--system zookeeper --nemesis kill-all --lose-unsynced kill-all", "--lose-unsynced never"),
            ("--system etcd --cluster docker", "write --cluster process"),
            ("--system etcd --workload ephemeral", "take register, set, append"),
            ("--system etcd --mutant commit-alone", "it is a bug of the bundled node"),
            ("--system etcd --nemesis kill-all --lose-unsynced kill-all", "--lose-unsynced never"),
            ("--system etcd --nemesis replace-rolling", "one kind of server"),
            ("--cluster sim --mutant cached-reads", "clients of real members"),
            (
                "--nemesis pause-holder",
                "no applications with --workload register; take lock, election, standby",
            ),
            ("--mutant careless-holder", "no applications with --workload register"),
            ("--workload lock --cluster sim", "write --cluster process or docker"),
            ("--workload lock --nemesis kill-holder --interval 4s", "at least --interval 12s"),
            ("--workload election --system etcd", "does not speak to etcd; take register"),
            ("--system zookeeper --set tick=10ms", "at least 50ms"),
            ("--set tick=1s", "add --system zookeeper or mixed:N"),
            ("--set classpath=x.jar", "add --system zookeeper or mixed:N"),
            ("--nemesis replace-rolling", "add --system zookeeper or mixed:N"),
            ("--observers 5", "write up to 4"),
            ("--system etcd --observers 1", "voting members only"),
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
    fn parameters_that_make_no_sense_are_refused_with_advice() {
        for (flags, advice) in [
            ("--nemesis 'slow-leader(latncy=2s)'", "it takes latency ("),
            ("--nemesis 'kill-one,slow-leader(latency=2)'", "from 5ms to 2s"),
            ("--nemesis 'kill-one(latency=2s)'", "it takes no parameters"),
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
