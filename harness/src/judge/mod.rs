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
use std::path::Path;

use anyhow::Context;
use checker::history::{History, LoadError, Loaded, load};
use checker::verdict::{CheckResult, Verdict};
use node_wire::ids::ServerId;
use reports::results::{FaultCounts, FaultRecord, Results, RunFile, RunInfo};
use reports::{latency, operations, outages};

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

/// Judges the run in a folder.
pub fn judge(folder: &RunFolder) -> Result<Judged, Failure> {
    let started = std::time::Instant::now();
    let run: RunInfo = RunFolder::read_json(&folder.run())?;
    // A harness that is killed early leaves no history, which shows nothing and is nobody's mistake.
    let loaded = if folder.history().exists() { load_history(&folder.history())? } else { nothing() };
    let mut faults = reports::faults::fold(&journal::read(&folder.faults())?);
    operations::count_around_faults(&loaded.history, &mut faults);
    let observed = read_observed(folder)?;
    let mut results = Results::new(Verdict::Unknown, &run);
    let seen = observed.clone().unwrap_or_default();
    results.checks = promises::judge(&run, &loaded, &faults, &seen);
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
    fill_in(&mut results, &run, &loaded.history, &faults, &seen);
    results.files = files(folder);
    results.timings.check_ms = started.elapsed().as_secs_f64() * 1e3;
    Ok(Judged { run, results, faults, history: loaded.history })
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
pub fn load_history(path: &Path) -> Result<Loaded, Failure> {
    let file = File::open(path)
        .map_err(|error| Failure::usage(format!("{} can't be read: {error}", path.display())))?;
    match load(BufReader::new(file)) {
        Ok(loaded) => Ok(loaded),
        Err(LoadError::Empty) => Ok(nothing()),
        Err(error) => Err(Failure::usage(format!("{}: {error}", path.display()))),
    }
}

/// A history without a line.
fn nothing() -> Loaded {
    Loaded {
        history: History::default(),
        complete: false,
        problem: Some("the history is empty".to_owned()),
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
