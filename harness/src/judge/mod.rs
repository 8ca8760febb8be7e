//! Everything after a run, as a function of its folder: the history judged, the faults counted, the
//! elections taken apart, the verdict.
//!
//! The promises are judged by `workloads` and `checker`; what is added here is about the bench itself. A
//! history that is not complete can show a violation, and never the absence of one.

pub mod absences;
pub mod causes;
pub mod checks;
pub mod elections;
pub mod episodes;
pub mod observed;
pub mod progress;
pub mod promises;
pub mod returns;
pub mod spans;
pub mod stalls;

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use checker::durability::FinalState;
use checker::history::{Datum, Extent, History, LoadError, Loaded, load_until};
use checker::verdict::{CheckResult, Verdict};
use node_wire::ids::ServerId;
use reports::numbers::{duration, moment, ns_to_ms};
use reports::results::{FaultCounts, FaultRecord, LiveCheck, LiveViolation, Results, RunFile, RunInfo};
use reports::{latency, operations, outages};
use workloads::judge::Effort;

use crate::checking::bounds::{Bounds, Watch, threads, timed};
use crate::checking::source::Stopping;
use crate::events::{Event, Said, Stamped};
use crate::exit::{Exit, Failure};
use crate::nemesis::{Nemesis, journal};
use crate::store::RunFolder;
use observed::Observed;

/// A judged run.
#[derive(Debug)]
pub struct Judged {
    /// What was decided before the first operation.
    pub run: RunInfo,
    /// What came out.
    pub results: Results,
    /// The faults.
    pub faults: Vec<FaultRecord>,
    /// The history.
    pub history: History,
}

/// What the judgement of a run may take.
#[derive(Clone, Copy, Debug)]
pub struct Within {
    /// Time and memory.
    pub bounds: Bounds,
    /// Keys that are judged at a time.
    pub threads: NonZeroUsize,
}

impl Within {
    /// All cores, no bound on time, and most of the memory that is available.
    pub fn usual() -> Result<Self, Failure> {
        Ok(Self { bounds: Bounds::usual(), threads: threads(None)? })
    }
}

/// The check that says whether a run came to its end.
pub const FINISHED: &str = "finished";

/// Judges a run that somebody interrupted when all but its verdict was there, and has its folder say so.
pub fn judge_interrupted(folder: &RunFolder, within: Within, tell: &dyn Fn(&str)) -> Result<Judged, Failure> {
    if let Some(observed) = read_observed(folder)? {
        RunFolder::write_json(&folder.observed(), &Observed { interrupted: true, ..observed })?;
    }
    judge(folder, within, tell)
}

/// Judges the run in a folder, and tells what is looked at now.
pub fn judge(folder: &RunFolder, within: Within, tell: &dyn Fn(&str)) -> Result<Judged, Failure> {
    let started = std::time::Instant::now();
    // Nobody is cut off here: the page is worth more than the last mebibytes.
    let watch = Watch::start(within.bounds, |_| {})?;
    let effort = Effort { budget: watch.budget(), threads: within.threads, timed: &timed };
    let run: RunInfo = RunFolder::read_named_json(&folder.run())?;
    tell("reading the history");
    // A harness that is killed early leaves no history, which shows nothing and is nobody's mistake.
    let loaded =
        if folder.history().exists() { load_history(&folder.history(), &watch)? } else { nothing(EMPTY) };
    let mut faults = reports::faults::fold(&journal::read(&folder.faults())?);
    operations::count_around_faults(&loaded.history, &mut faults);
    let observed = read_observed(folder)?;
    let mut results = Results::new(Verdict::Unknown, &run);
    let seen = observed.clone().unwrap_or_default();
    let operations = reports::numbers::len(loaded.history.ops().len());
    tell(&format!("judging {operations} operations by what was promised"));
    results.checks = promises::judge(&run, &loaded, &faults, &seen, &effort);
    tell(&format!("judging {operations} operations: progress, returns, convergence"));
    results.checks.extend(progress::check(&run, &faults, &seen, &loaded.history));
    results.checks.extend(returns::check(&run, &faults, &seen, &|member| last_lines(folder, member)));
    results.checks.extend(checks::all(&run, &faults, &seen, &loaded.history));
    results.checks.extend(seen.interrupted.then(|| stopped_early(&run, &seen)));
    if observed.is_none() {
        let summary = "the harness did not live to the end of this run; without its end nothing is valid";
        results.checks.push(CheckResult::new(FINISHED, Verdict::Unknown, summary));
    }
    results.verdict = Verdict::of(&results.checks);
    results.interrupted = seen.interrupted;
    results.exit_status = Exit::of(results.verdict, seen.interrupted).status();
    results.lag_ms = Some(seen.lag.max_ms);
    results.timings = seen.timings;
    results.live = seen.live.clone();
    results.notes.extend(seen.live.as_ref().and_then(|live| live_note(live, results.verdict)));
    results.not_tried = not_tried(&run, &faults);
    results.notes.extend(not_tried_note(&run, &results.not_tried));
    tell("measuring elections and outages");
    fill_in(&mut results, &run, &loaded.history, &faults, &seen);
    results.files = files(folder);
    results.timings.check_ms = started.elapsed().as_secs_f64() * 1e3;
    Ok(Judged { run, results, faults, history: loaded.history })
}

/// What was not run shows nothing, so a run that somebody stopped is never valid.
fn stopped_early(run: &RunInfo, seen: &Observed) -> CheckResult {
    let ran = seen.workload_to_ns.saturating_sub(seen.workload_from_ns);
    let summary = format!(
        "the run was interrupted after {} s of {} s",
        moment(ran),
        moment(run.time_limit_ms.saturating_mul(1_000_000))
    );
    CheckResult::new(FINISHED, Verdict::Unknown, summary)
}

/// The nemeses of which nothing came into force.
fn not_tried(run: &RunInfo, faults: &[FaultRecord]) -> Vec<String> {
    let injected = |kind: &str| faults.iter().any(|fault| fault.kind == kind && fault.injected_ns.is_some());
    let never = |kind: &&String| *kind != Nemesis::NONE && !injected(kind);
    run.nemeses.iter().filter(never).chain(&run.not_tried).cloned().collect()
}

/// The same in a sentence: what nobody may believe to have been tried.
fn not_tried_note(run: &RunInfo, not_tried: &[String]) -> Option<String> {
    let all = run.nemeses.iter().filter(|kind| *kind != Nemesis::NONE).count() + run.not_tried.len();
    (!not_tried.is_empty()).then(|| {
        format!(
            "Not tried, and no part of this verdict: {} ({} of {all} nemeses).",
            not_tried.join(", "),
            not_tried.len()
        )
    })
}

/// What the live check adds to the verdict.
fn live_note(live: &LiveCheck, verdict: Verdict) -> Option<String> {
    if let Some(why) = &live.off {
        return Some(format!("The live check went off: {why}. The verdict is drawn from the whole history."));
    }
    let LiveViolation { happened_ns, seen_ns, ended_the_run, .. } = *live.violation.as_ref()?;
    let late = duration(ns_to_ms(seen_ns.saturating_sub(happened_ns)));
    let then = if ended_the_run { ", and ended the run (--fail-fast)" } else { "" };
    let doubt = match verdict {
        Verdict::Invalid => "",
        Verdict::Valid | Verdict::Unknown => {
            " The whole history does not show it: one of the two judgements is wrong, which is a bug of this checker."
        }
    };
    Some(format!(
        "The live check saw a violation at {} s, {late} after the answer that cannot be{then}.{doubt}",
        moment(seen_ns)
    ))
}

/// What can be counted and drawn.
fn fill_in(results: &mut Results, run: &RunInfo, history: &History, faults: &[FaultRecord], seen: &Observed) {
    let members: Vec<ServerId> = (1..=u64::from(run.nodes)).map(ServerId).collect();
    let end = seen.end_ns.max(operations::end_ns(history));
    results.faults = FaultCounts::of(faults);
    results.elections = elections::from_events(&seen.events, faults, history);
    results.election_kinds = reports::elections::by_kind(&results.elections, faults);
    // A run whose end nobody saw is judged by its history alone.
    let load_end_ns = Some(seen.workload_to_ns).filter(|at| *at > 0);
    let beside = outages::Beside { faults, elections: &results.elections, load_end_ns };
    results.outages = outages::from_history(history, beside, outages::MINIMUM_NS);
    results.latency = latency::summaries(history, faults);
    results.commits = latency::counted(commits(&seen.events));
    results.operations = operations::counts(history);
    results.member_spans = spans::from_events(&seen.events, &members, end);
    results.held_at_the_end = held_at_the_end(&results.checks, &seen.finals);
    let needless = results.elections.iter().filter(|election| election.fault.is_none()).count();
    if needless > 0 {
        results.notes.push(format!("{} without a fault behind it", crate::num::plural(needless, "election")));
    }
}

/// How long leaders said that their proposals waited for their commit, in ns, and how many of them.
fn commits(events: &[Stamped]) -> impl Iterator<Item = (u64, u64)> + '_ {
    let told = events.iter().filter_map(|stamped| match &stamped.event {
        Event::Said(Said::Commits { us }) => Some(us),
        _ => None,
    });
    told.flatten().map(|(us, number)| (us.saturating_mul(1000), *number))
}

/// The final states of the keys that counterexamples are about, for the page.
fn held_at_the_end(checks: &[CheckResult], finals: &[FinalState]) -> Vec<FinalState> {
    let found = checks.iter().filter_map(|check| check.counterexample.as_ref());
    let keys: BTreeSet<u64> = found
        .flat_map(|found| &found.ops)
        .filter_map(|op| match &op.key {
            Datum::Int(key) => u64::try_from(*key).ok(),
            _ => None,
        })
        .collect();
    // A list may be as long as the run; what the page says of it is in the check's own words.
    finals.iter().filter(|state| keys.contains(&state.key) && state.list.is_none()).cloned().collect()
}

/// Opens and reads a history. What is no history is the caller's mistake.
pub fn load_history(path: &Path, watch: &Watch) -> Result<Loaded, Failure> {
    let file = File::open(path)
        .map_err(|error| Failure::usage(format!("{} can't be read: {error}", path.display())))?;
    let lines = Arc::<AtomicU64>::default();
    let mut reader = Stopping::new(BufReader::new(file), watch.interrupt(), Arc::clone(&lines));
    match (load_until(&mut reader, &watch.interrupt()), watch.reached()) {
        (Ok(loaded), _) => Ok(loaded),
        (Err(LoadError::Io(_)), Some(reached)) => {
            let lines = lines.load(Ordering::Relaxed);
            Ok(nothing(&format!("{reached} while the history was read, after {lines} lines")))
        }
        (Err(LoadError::Empty), _) => Ok(nothing(EMPTY)),
        (Err(error @ LoadError::NoOperation(_)), _) => Ok(nothing(&format!("the history: {error}"))),
        (Err(error), _) => Err(Failure::usage(format!("{}: {error}", path.display()))),
    }
}

/// What is wrong with a history without a line.
const EMPTY: &str = "the history is empty";

/// A history of which nothing is known.
fn nothing(problem: &str) -> Loaded {
    Loaded {
        history: History::default(),
        extent: Extent::Beginning,
        problem: Some(problem.to_owned()),
        plain: false,
        events: 0,
        skipped: 0,
        renamed: Vec::new(),
    }
}

/// What was seen beside the history; none when the harness did not live to write it.
fn read_observed(folder: &RunFolder) -> Result<Option<Observed>, Failure> {
    if !folder.observed().exists() {
        return Ok(None);
    }
    RunFolder::read_named_json(&folder.observed()).map(Some)
}

/// Lines of a log that tell how its member ended.
const LOG_LINES: usize = 20;
/// At most so much of a log's end is read.
const LOG_TAIL_BYTES: u64 = 16 * 1024;

/// The end of a member's log; nothing where it has none.
fn last_lines(folder: &RunFolder, member: u64) -> Vec<String> {
    let read = || {
        let mut file = File::open(folder.nodes().join(member.to_string()).join("log"))?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(LOG_TAIL_BYTES)))?;
        let mut tail = Vec::new();
        file.take(LOG_TAIL_BYTES).read_to_end(&mut tail)?;
        std::io::Result::Ok(String::from_utf8_lossy(&tail).into_owned())
    };
    let tail = read().unwrap_or_default();
    let lines: Vec<&str> = tail.lines().filter(|line| !line.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(LOG_LINES)..].iter().map(|line| (*line).to_owned()).collect()
}

/// The files of a run folder, for the page's links.
fn files(folder: &RunFolder) -> Vec<RunFile> {
    let known = [
        ("run.json", "configuration, seed, versions, host"),
        ("schedule.json", "the faults as planned"),
        ("history.jsonl", "every invocation and every completion"),
        ("faults.jsonl", "every step in the life of each fault, with its proof"),
        ("observed.json", "what members said, and the last reads"),
        ("results.json", "the verdict and its evidence"),
        ("junit.xml", "the checks for a CI server"),
        ("nodes/", "the members' logs and events"),
    ];
    known
        .into_iter()
        .filter(|(name, _)| {
            *name == "results.json" || *name == "junit.xml" || folder.path().join(name).exists()
        })
        .map(|(name, what)| RunFile {
            name: name.to_owned(),
            what: what.to_owned(),
            bytes: std::fs::metadata(folder.path().join(name))
                .ok()
                .filter(std::fs::Metadata::is_file)
                .map(|meta| meta.len()),
        })
        .collect()
}

/// Writes what was judged: `results.json`, `junit.xml`, `report.html`.
pub fn write(folder: &RunFolder, judged: &Judged) -> anyhow::Result<()> {
    let Judged { run, results, faults, history } = judged;
    RunFolder::write_json(&folder.results(), results)?;
    RunFolder::write(&folder.junit(), reports::junit::render(run, results, faults).as_bytes())?;
    RunFolder::write(&folder.report(), reports::html::render(run, results, faults, history).as_bytes())
}
