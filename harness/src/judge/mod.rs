//! Everything after a run, as a function of its folder: the history judged, the faults counted, the
//! elections taken apart, the verdict.
//!
//! The promises are judged by `workloads` and `checker`; what is added here is about the bench itself. A
//! history that is not complete can show a violation, and never the absence of one.

pub mod checks;
pub mod elections;
pub mod episodes;
pub mod observed;
pub mod promises;
pub mod spans;

use std::fs::File;
use std::io::BufReader;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Context;
use checker::history::{History, LoadError, Loaded, load};
use checker::verdict::{CheckResult, Verdict};
use node_wire::ids::ServerId;
use reports::numbers::{duration, moment, ns_to_ms};
use reports::results::{FaultCounts, FaultRecord, LiveCheck, LiveViolation, Results, RunFile, RunInfo};
use reports::{latency, operations, outages};
use workloads::judge::Effort;

use crate::checking::bounds::{Bounds, Watch};
use crate::checking::judging;
use crate::checking::source::Stopping;
use crate::exit::{Exit, Failure};
use crate::nemesis::journal;
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
        Ok(Self { bounds: Bounds::usual(), threads: judging::threads(None)? })
    }
}

/// Judges the run in a folder.
pub fn judge(folder: &RunFolder, within: Within) -> Result<Judged, Failure> {
    let started = std::time::Instant::now();
    // Nobody is cut off here: the page is worth more than the last mebibytes.
    let watch = Watch::start(within.bounds, |_| {})?;
    let effort = Effort {
        budget: judging::budget(&within.bounds, &watch),
        threads: within.threads,
        timed: &judging::timed,
    };
    let run: RunInfo = RunFolder::read_json(&folder.run())?;
    // A harness that is killed early leaves no history, which shows nothing and is nobody's mistake.
    let loaded =
        if folder.history().exists() { load_history(&folder.history(), &watch)? } else { nothing(EMPTY) };
    let mut faults = reports::faults::fold(&journal::read(&folder.faults())?);
    operations::count_around_faults(&loaded.history, &mut faults);
    let observed = read_observed(folder)?;
    let mut results = Results::new(Verdict::Unknown, &run);
    let seen = observed.clone().unwrap_or_default();
    results.checks = promises::judge(&run, &loaded, &faults, &seen, &effort);
    results.checks.extend(checks::all(&run, &faults, &seen, &loaded.history));
    if observed.is_none() {
        let summary = "the harness did not live to the end of this run; without its end nothing is valid";
        results.checks.push(CheckResult::new("finished", Verdict::Unknown, summary));
    }
    results.verdict = Verdict::of(&results.checks);
    results.interrupted = seen.interrupted;
    results.exit_status = Exit::of(results.verdict, seen.interrupted).status();
    results.lag_ms = Some(seen.lag.max_ms);
    results.timings = seen.timings;
    results.live = seen.live.clone();
    results.notes.extend(seen.live.as_ref().and_then(|live| live_note(live, results.verdict)));
    fill_in(&mut results, &run, &loaded.history, &faults, &seen);
    results.files = files(folder);
    results.timings.check_ms = started.elapsed().as_secs_f64() * 1e3;
    Ok(Judged { run, results, faults, history: loaded.history })
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
    results.outages = outages::from_history(history, faults, outages::MINIMUM_NS);
    results.latency = latency::summaries(history, faults);
    results.operations = operations::counts(history);
    results.member_spans = spans::from_events(&seen.events, &members, end);
    let needless = results.elections.iter().filter(|election| election.fault.is_none()).count();
    if needless > 0 {
        results.notes.push(format!("{} without a fault behind it", crate::num::plural(needless, "election")));
    }
}

/// Opens and reads a history. What is no history is the caller's mistake.
pub fn load_history(path: &Path, watch: &Watch) -> Result<Loaded, Failure> {
    let file = File::open(path)
        .map_err(|error| Failure::usage(format!("{} can't be read: {error}", path.display())))?;
    let lines = Arc::<AtomicU64>::default();
    let mut reader = Stopping::new(BufReader::new(file), watch.interrupt(), Arc::clone(&lines));
    match (load(&mut reader), watch.reached()) {
        (Ok(loaded), _) => Ok(loaded),
        (Err(_), Some(reached)) if reader.stopped() => {
            let lines = lines.load(Ordering::Relaxed);
            Ok(nothing(&format!("{reached} while the history was read, after {lines} lines")))
        }
        (Err(LoadError::Empty), _) => Ok(nothing(EMPTY)),
        (Err(error), _) => Err(Failure::usage(format!("{}: {error}", path.display()))),
    }
}

/// What is wrong with a history without a line.
const EMPTY: &str = "the history is empty";

/// A history of which nothing is known.
fn nothing(problem: &str) -> Loaded {
    Loaded {
        history: History::default(),
        complete: false,
        problem: Some(problem.to_owned()),
        plain: false,
        events: 0,
    }
}

/// What was seen beside the history; none when the harness did not live to write it.
fn read_observed(folder: &RunFolder) -> anyhow::Result<Option<Observed>> {
    if !folder.observed().exists() {
        return Ok(None);
    }
    RunFolder::read_json(&folder.observed()).context("reading what was seen beside the history").map(Some)
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
