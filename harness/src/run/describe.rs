//! What is said about a run before it begins: `run.json` and the first lines.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Context;
use checker::history::Function;
use harness_systems::Contained;
use runs::cluster_kind::ClusterKind;
use runs::comes_back::ComesBack;
use runs::results::{Host, Promised, RunInfo, SystemInfo};
use workloads::{Params, Workload};

use super::Prepared;
use crate::clock::whole_milliseconds;
use crate::config::{ANY_TEMPLATE, RunOptions, Template};
use crate::exit::Failure;
use crate::nemesis::{Nemesis, Schedule};
use crate::num::{index, plural};
use crate::text::{span, typed};
use harness_core::seed;

/// The form of the history's lines.
pub(crate) const HISTORY_FORMAT: u32 = 1;
/// The setting that names the run folder whose schedule was run again.
pub(crate) const REPEATS: &str = "repeats";
/// The setting that has the flags of a run whose schedule was not drawn for it.
pub(crate) const AS_A_RUN: &str = "flags as of";
/// Faults that are spelled out in the first lines; the schedule has them all.
const SPELLED_OUT: usize = 12;

/// The workload that was asked for.
pub(crate) fn workload(options: &RunOptions) -> Result<Workload, Failure> {
    let params = Params::of_keys(u64::from(options.keys));
    let lacks_cas = options.functions.as_ref().is_some_and(|has| !has.contains(&Function::CAS));
    let params = if lacks_cas { params.without_cas() } else { params };
    Workload::new(options.workload, params, seed::stream(options.seed, "operations"))
        .map_err(|error| Failure::usage(error.to_string()))
}

/// The time-out that sessions of the load ask for.
pub(crate) fn session_timeout(options: &RunOptions) -> Duration {
    options.session()
}

/// `run.json`.
pub(super) fn run_info(prepared: &Prepared) -> RunInfo {
    let Prepared { options, schedule, .. } = prepared;
    let mut settings = BTreeMap::from([
        ("peer timeout".to_owned(), span::show(options.peer_timeout)),
        ("session timeout".to_owned(), span::show(session_timeout(options))),
        ("fault held for".to_owned(), format!("{}ms", schedule.hold_ms)),
    ]);
    settings.extend(prepared.installation.iter().flat_map(|found| found.settings()));
    if let Some(folder) = &prepared.repeats {
        settings.insert(REPEATS.to_owned(), folder.clone());
        settings.insert(AS_A_RUN.to_owned(), options.command_line());
    }
    let names = |list: Vec<Nemesis>| list.into_iter().map(|nemesis| nemesis.name().to_owned()).collect();
    let (tried, not_tried) = schedule.tried_and_not();
    // Of all faults of the schedule: one that was written by hand may have more than the run's nemeses.
    let kinds = schedule.kinds().into_iter().map(|kind| (kind.name().to_owned(), kind.described())).collect();
    RunInfo {
        name: options.name.clone(),
        started_utc: prepared.start.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        seed: options.seed,
        versions: versions(prepared),
        host: host(),
        cluster: options.cluster.kind,
        cluster_reason: options.cluster.reason.clone(),
        system: system(prepared),
        nodes: options.nodes,
        observers: options.observers,
        workload: options.workload.name().to_owned(),
        command: options.command.clone(),
        template: options.template.as_ref().map(asked_template),
        promise: options.promised(),
        comes_back: Some(comes_back(options)),
        functions: functions(prepared),
        vocabulary: prepared.options.workload.vocabulary(),
        nemeses: names(tried),
        kinds,
        not_tried: names(not_tried),
        interval_ms: whole_milliseconds(options.interval),
        rate: options.rate,
        min_rate: options.min_rate,
        concurrency: options.concurrency,
        keys: options.keys,
        time_limit_ms: whole_milliseconds(options.time_limit),
        operation_timeout_ms: Some(whole_milliseconds(options.op_timeout)),
        patience_ms: patience_ms(options),
        session_ms: session_of_holders(options),
        overlap: options.overlap,
        mutant: options.mutant.map(|bug| bug.name().to_owned()),
        drawn: BTreeMap::from([("faults".to_owned(), faults_in_words(schedule, usize::MAX))]),
        settings,
        variables: options.variables.clone(),
        repeat: options.repeat.clone(),
    }
}

/// The time-out of the sessions by which applications hold, where one of them must hold when all is well.
fn session_of_holders(options: &RunOptions) -> Option<u64> {
    let held = options.applications().filter(|applications| applications.one_holds());
    held.map(|_| whole_milliseconds(options.session()))
}

/// Those of the workload's functions that its clients have, where they have not all.
pub(super) fn functions(prepared: &Prepared) -> Option<Vec<Function>> {
    let has = prepared.options.functions.as_ref()?;
    let all = prepared.options.workload.functions();
    let had: Vec<Function> = all.iter().copied().filter(|function| has.contains(function)).collect();
    (had.len() < all.len()).then_some(had)
}

/// The silence after which a member gives up on another; what an image is told inside is not known.
pub(super) fn patience_ms(options: &RunOptions) -> Option<u64> {
    let is_known = options.containers.image.is_none();
    is_known.then(|| whole_milliseconds(options.system.patience(&options.wanted())))
}

/// What the system promises about coming back. Of an image that somebody named nobody knows who says it.
pub(super) fn comes_back(options: &RunOptions) -> ComesBack {
    let promised = options.system.comes_back();
    match options.containers.image {
        Some(_) => ComesBack { source: String::new(), ..promised },
        None => promised,
    }
}

fn versions(prepared: &Prepared) -> BTreeMap<String, String> {
    let mut versions = BTreeMap::from([
        ("harness".to_owned(), env!("CARGO_PKG_VERSION").to_owned()),
        ("history format".to_owned(), HISTORY_FORMAT.to_string()),
    ]);
    versions.extend(prepared.installation.iter().flat_map(|found| found.versions()));
    versions
}

/// What is tested, and what it promises.
fn system(prepared: &Prepared) -> SystemInfo {
    let options = &prepared.options;
    let mut known = options.system.described(prepared.installation.as_deref());
    for observer in options.nodes + 1..=options.members() {
        let label = known.labels.entry(u64::from(observer)).or_default();
        *label = if label.is_empty() { "observer".to_owned() } else { format!("{label}, observer") };
    }
    match &options.containers.image {
        Some(image) => SystemInfo {
            name: format!("image {image}"),
            before: String::new(),
            after: format!("of the image {image}"),
            rejoin_ms: options.system.contained().map_or(0, |how| whole_milliseconds(how.rejoins_within())),
            ..known
        },
        None => known,
    }
}

/// The seed, and everything drawn from it that can be said in advance.
pub(super) fn first_lines(prepared: &Prepared) {
    let Prepared { options, schedule, progress, .. } = prepared;
    progress.say(&format!("seed {}", options.seed));
    progress.say(&format!(
        "{}{} in {} ({}), {}",
        plural(index(options.nodes.into()), "member"),
        match options.observers {
            0 => String::new(),
            observers => format!(" and {}", plural(index(observers.into()), "observer")),
        },
        match options.cluster.kind {
            ClusterKind::Auto => "auto",
            ClusterKind::Docker => "containers",
            ClusterKind::Process => "processes",
            ClusterKind::Sim => "the simulator",
        },
        options.cluster.reason,
        work_in_words(options)
    ));
    let promised = options.promised();
    if promised != Promised::default() {
        progress.say(&promise_in_words(&promised));
    }
    if let Some(folder) = &prepared.repeats {
        progress.say(&format!("the schedule of {folder}"));
    }
    progress.say(&format!("faults: {}", faults_in_words(schedule, SPELLED_OUT)));
    if let Some(words) = without_a_turn(options, schedule) {
        progress.say(&words);
    }
    if let Some(words) = prepared.installation.as_ref().and_then(|found| found.greeting()) {
        progress.say(&words);
    }
    for note in options.system.contained().map(Contained::notes).unwrap_or_default() {
        progress.say(&format!("{}: {note}", options.system.name()));
    }
    if let Some(words) = open_to_others(options) {
        progress.say(&words);
    }
    if let Some(bug) = options.mutant {
        progress.say(&format!("planted: {}", bug.name()));
    }
    progress.say(&format!("folder {}", prepared.folder.path().display()));
}

/// Who works on the members, and for how long.
fn work_in_words(options: &RunOptions) -> String {
    let limit = span::show(options.time_limit);
    match (&options.command, &options.template) {
        (Some(command), _) => {
            format!("faults for {limit} at most while this runs: {}", typed::words(command))
        }
        (None, Some(template)) => {
            format!(
                "test commands in {}, for {limit}: template {}",
                template.folder,
                asked_template(template)
            )
        }
        (None, None) => format!(
            "{} at {} operations/s by {} on {} for {limit}",
            options.workload.name(),
            options.rate,
            plural(index(options.concurrency.into()), "client"),
            plural(index(options.keys.into()), "key")
        ),
    }
}

/// The template that was asked for.
fn asked_template(template: &Template) -> String {
    template.name.clone().unwrap_or_else(|| ANY_TEMPLATE.to_owned())
}

/// What is judged, and who says so.
fn promise_in_words(promised: &Promised) -> String {
    let Promised { what, source } = promised;
    let source = if source.is_empty() { String::new() } else { format!(" ({source})") };
    format!("promised: {what}, which is: {}{source}", what.about())
}

/// An ensemble asks nobody for a password.
fn open_to_others(options: &RunOptions) -> Option<String> {
    let address = options.containers.publish.filter(|address| !address.is_loopback())?;
    Some(format!(
        "warning: --publish {address}: the ensemble asks nobody for a password; whoever reaches that address \
         can read and change what is in it until the run ends"
    ))
}

/// Which nemeses get no turn, and what would give them one.
fn without_a_turn(options: &RunOptions, schedule: &Schedule) -> Option<String> {
    let (tried, not_tried) = schedule.tried_and_not();
    let names: Vec<&str> = not_tried.iter().map(|nemesis| nemesis.name()).collect();
    (!names.is_empty()).then(|| {
        format!(
            "{} of {} nemeses get no turn in {} and are not tried: {}; lengthen to --time-limit {}",
            names.len(),
            tried.len() + names.len(),
            span::show(options.time_limit),
            names.join(", "),
            span::show(options.plan().room_for_all())
        )
    })
}

fn faults_in_words(schedule: &Schedule, limit: usize) -> String {
    if schedule.faults.is_empty() {
        return Nemesis::NONE.to_owned();
    }
    let words = |start_ms: u64| format!("{}.{} s", start_ms / 1000, start_ms % 1000 / 100);
    let mut faults: Vec<String> = schedule
        .faults
        .iter()
        .take(limit)
        .map(|fault| format!("{} {} at {}", fault.id, fault.kind.name(), words(fault.start_ms)))
        .collect();
    if schedule.faults.len() > limit {
        faults.push(format!("and {} more", schedule.faults.len() - limit));
    }
    faults.join(", ")
}

/// The machine's load: threads that ran or waited to, on average over the last minute.
pub(super) fn machine_load() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/loadavg").ok()?;
    text.split_whitespace().next()?.parse().ok()
}

pub(crate) fn host() -> Host {
    let read = |path: &str| std::fs::read_to_string(path).context("reading").ok();
    let kernel = read("/proc/sys/kernel/osrelease").unwrap_or_default();
    let memory = read("/proc/meminfo").and_then(|text| {
        let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?.trim();
        line.split_ascii_whitespace().next()?.parse::<u64>().ok()
    });
    Host {
        cores: std::thread::available_parallelism().map_or(1, |cores| crate::num::narrow(cores.get())),
        memory_bytes: memory.map(|kibibytes| kibibytes * 1024),
        kernel: format!("Linux {} {}", kernel.trim(), std::env::consts::ARCH),
        measured: BTreeMap::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Cli, Command};
    use clap::Parser;

    #[test]
    fn an_ensemble_that_others_reach_is_told_of_before_it_starts() {
        let meant = |flags: &[&str]| {
            let words = ["harness", "run"].iter().chain(flags);
            let Command::Run(args) = Cli::parse_from(words).command else { panic!("a run") };
            RunOptions::from_args(&args).expect("a run")
        };
        let published = |address: &str| meant(&["--cluster", "docker", "--publish", address]);
        for address in ["0.0.0.0", "::", "192.0.2.7"] {
            let words = open_to_others(&published(address)).expect(address);
            assert!(words.contains("password") && words.contains(address), "{words}");
        }
        assert_eq!(open_to_others(&published("127.0.0.1")), None);
        assert_eq!(open_to_others(&meant(&[])), None);
    }
}
