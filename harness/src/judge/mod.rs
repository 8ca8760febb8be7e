//! What judgements need of the world around them: files, a clock, memory, threads.
//!
//! Here a run folder is read, judged and written. The judgement itself is a pure function of what the folder
//! holds ([`runs::judge`]); what a verdict is, is decided in `checker`; what is printed, in `reports`.
//!
//! - [`bounds`]: a thread that watches the clock and the memory, rings the searches' bell, and keeps the
//!   bound whatever they do.
//! - [`source`]: where a history comes from, what kind it seems to be, and how much of it was read.
//! - [`streamed`]: registers from a file of any length.
//! - [`live`]: a history that is still being written.

pub mod bounds;
pub mod live;
pub mod source;
pub mod streamed;

use std::io::BufReader;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use checker::history::{Extent, History, LoadError, Loaded, Vocabulary, load_until};
use harness_systems::bounded;
use runs::judge::{Judged, Record};
use runs::observed::Observed;
use runs::results::{RunFile, RunInfo};
use workloads::judge::Effort;

use crate::exit::{Exit, Failure};
use crate::judge::bounds::{Bounds, Watch, threads, timed};
use crate::judge::source::Stopping;
use crate::store::RunFolder;
use crate::store::journal;

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

/// Makes a judged run one that somebody interrupted when all but its verdict was there, in its folder too.
/// False when it was one already.
pub fn interrupt(folder: &RunFolder, judged: &mut Judged) -> Result<bool, Failure> {
    if judged.results.interrupted {
        return Ok(false);
    }
    let observed = read_observed(folder)?.unwrap_or_default();
    let observed = Observed { interrupted: true, ..observed };
    RunFolder::write_json(&folder.observed(), &observed)?;
    runs::judge::interrupt(judged, &observed);
    judged.results.exit_status = Exit::of(judged.results.verdict, true).status();
    Ok(true)
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
    let loaded = if folder.history().exists() {
        load_history(&folder.history(), &run.vocabulary, &watch)?
    } else {
        nothing(EMPTY)
    };
    let transitions = journal::read(&folder.faults())?;
    let observed = read_observed(folder)?;
    let record = Record { run, loaded, transitions, observed };
    let mut judged = runs::judge::judge(record, &effort, &|member| last_lines(folder, member), tell);
    let results = &mut judged.results;
    results.exit_status = Exit::of(results.verdict, results.interrupted).status();
    results.files = files(folder);
    results.timings.check_ms = started.elapsed().as_secs_f64() * 1e3;
    Ok(judged)
}

/// Opens and reads a history. What is no history is the caller's mistake.
pub fn load_history(path: &Path, vocabulary: &Vocabulary, watch: &Watch) -> Result<Loaded, Failure> {
    let file = bounded::open(path)
        .map_err(|error| Failure::usage(format!("{} can't be read: {error}", path.display())))?;
    let lines = Arc::<AtomicU64>::default();
    let mut reader = Stopping::new(BufReader::new(file), watch.interrupt(), Arc::clone(&lines));
    match (load_until(&mut reader, vocabulary, &watch.interrupt()), watch.reached()) {
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
    let tail = bounded::tail(&folder.nodes().join(member.to_string()).join("log"), LOG_TAIL_BYTES);
    let lines: Vec<&str> = tail.lines().filter(|line| !line.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(LOG_LINES)..].iter().map(|line| (*line).to_owned()).collect()
}

/// The files of a run folder, for the page's links.
fn files(folder: &RunFolder) -> Vec<RunFile> {
    let known = [
        ("run.json", "configuration, seed, versions, host"),
        ("schedule.json", "the faults as planned"),
        ("history.jsonl", "every invocation and every completion"),
        ("history.jsonl.zst", "every invocation and every completion, compressed with zstd"),
        ("faults.jsonl", "every step in the life of each fault, with its proof"),
        ("observed.json", "what members said, and the last reads"),
        ("results.json", "the verdict and its evidence"),
        ("junit.xml", "the checks for a CI server"),
        ("command.log", "what the command wrote"),
        ("tests.jsonl", "every execution of a test command"),
        ("tests.log", "what test commands wrote"),
        ("assertions.jsonl", "what programs in the containers asserted"),
        ("clients/", "what the client's processes wrote to standard error"),
        ("applications/", "what the applications wrote"),
        ("services/", "what the services beside the members wrote"),
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
