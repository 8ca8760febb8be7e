//! `harness check` on a history: from the flags to what is printed, within bounds.
//!
//! Everything that can be refused is refused before the first record is read. A history that this project
//! recorded, asked about without naming anything, is judged by all that its workload promises; any other by
//! one model and one condition.

use std::io::IsTerminal;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use anyhow::Context;
use checker::Budget;
use checker::catalogue::{self, Condition, ModelName, Question, Refusal};
use checker::history::{Extent, LoadError, load_until, records_until};
use checker::verdict::{CheckResult, Judged, Verdict};
use reports::checked::{Checked, Counted};
use reports::terminal::Style;
use runs::numbers::{count, plural};
use workloads::Kind;
use workloads::workload::vocabulary;

use super::named::{condition, model};
use super::witness;
use crate::cli::{CheckArgs, Format};
use crate::commands::screen;
use crate::exit::{Exit, Failure};
use crate::judge::bounds::{Bounds, Reached, Watch, resident_bytes, threads, timed};
use crate::judge::source::{Passed, Passing, Source, Stopping, counted};
use crate::judge::streamed::{self, Streamed};
use crate::progress::colour_wanted;

/// What a history is judged by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    /// One model and one condition.
    Model(ModelName, Condition),
    /// All that a workload of ours promises.
    Workload(Kind),
}

/// A check as it is meant.
struct Plan {
    by: By,
    /// The functions that it was guessed from; empty when it was named.
    guessed_from: Vec<String>,
}

/// Judges the history that the flags name.
pub(super) fn check(args: &CheckArgs) -> Result<Exit, Failure> {
    let begun = Instant::now();
    let bounds = Bounds::parse(args.timeout.as_deref(), args.memory.as_deref())?;
    let threads = threads(args.threads)?;
    let read = Arc::<AtomicU64>::default();
    // What is known when the watch has the last word: at first only where the history is.
    let known = Checked { history: args.path.display().to_string(), ..Checked::default() };
    let known = Arc::new(Mutex::new(known));
    let watch = {
        let (known, read, format) = (Arc::clone(&known), Arc::clone(&read), args.format);
        Watch::start(bounds, move |reached| {
            let mut checked = known.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let records = read.load(Ordering::Relaxed);
            checked.took.total_ms = milliseconds(begun);
            checked.peak_bytes = resident_bytes();
            last_words(checked, records, reached, format);
        })?
    };
    let source = Source::open(&args.path, &watch.interrupt())?;
    let plan = match Plan::of(args, &source, &watch) {
        // Who was interrupted while looking saw nothing, and can't say that nothing is there.
        Err(_) if watch.reached().is_some() && source.functions.is_empty() => {
            return stopped_at_once(&known, &watch, begun, args.format);
        }
        plan => plan?,
    };
    let mut checked = plan.describe(&source);
    known.lock().unwrap_or_else(PoisonError::into_inner).clone_from(&checked);
    let means =
        Means { watch: &watch, read, threads, budget: watch.budget(), witness: args.witness.is_some() };
    let order = match plan.by {
        By::Model(model, condition) => by_model(source, (model, condition), &means, &mut checked)?,
        By::Workload(_) => {
            by_workload(source, &means, &mut checked)?;
            Vec::new()
        }
    };
    if checked.stopped.is_none() && checked.verdict == Verdict::Unknown {
        checked.stopped = watch.reached().map(|reached| reached.to_string());
    }
    if let Some(path) = &args.witness {
        match witness::write(path, &checked, &order)? {
            Ok(()) => checked.witness = Some(path.display().to_string()),
            Err(why) => checked.notes.push(format!("{} was not written: {why}", path.display())),
        }
    }
    checked.peak_bytes = Some(watch.peak_bytes());
    checked.took.total_ms = milliseconds(begun);
    drop(watch);
    print(&checked, args.format)?;
    Ok(Exit::of(checked.verdict, false))
}

/// The bell rang before a record was seen.
fn stopped_at_once(
    known: &Mutex<Checked>,
    watch: &Watch,
    begun: Instant,
    format: Format,
) -> Result<Exit, Failure> {
    let mut checked = known.lock().unwrap_or_else(PoisonError::into_inner).clone();
    checked.verdict = Verdict::Unknown;
    checked.stopped = watch.reached().map(|reached| format!("{reached} before a record was found"));
    checked.peak_bytes = Some(watch.peak_bytes());
    checked.took.total_ms = milliseconds(begun);
    print(&checked, format)?;
    Ok(Exit::Unknown)
}

/// What a judgement may use.
struct Means<'a> {
    watch: &'a Watch,
    /// Records read so far, for whoever has the last word.
    read: Arc<AtomicU64>,
    threads: NonZeroUsize,
    budget: Budget,
    witness: bool,
}

impl Plan {
    fn of(args: &CheckArgs, source: &Source, watch: &Watch) -> Result<Self, Failure> {
        let named = args.model.as_deref().map(model).transpose()?;
        let asked = args.condition.as_deref().map(condition).transpose()?;
        let nothing_named = named.is_none() && asked.is_none() && args.witness.is_none();
        if let Some(kind) = source.workload()
            && nothing_named
        {
            return Ok(Self { by: By::Workload(kind), guessed_from: source.functions.clone() });
        }
        let model = match named {
            Some(model) => model,
            None => guess(source, watch)?,
        };
        let condition = asked.unwrap_or(model.usual_condition());
        if !model.conditions().contains(&condition) {
            let known: Vec<&str> = model.conditions().iter().map(|condition| condition.name()).collect();
            return Err(Failure::usage(format!(
                "--condition {condition}: not of {model}, which knows {}; `harness list conditions` says \
                 which goes with what",
                known.join(", ")
            )));
        }
        let guessed_from = if named.is_none() { source.functions.clone() } else { Vec::new() };
        Ok(Self { by: By::Model(model, condition), guessed_from })
    }

    fn describe(&self, source: &Source) -> Checked {
        let (model, condition) = match self.by {
            By::Model(model, condition) => (model.name(), Some(condition.name().to_owned())),
            By::Workload(kind) => (kind.name(), None),
        };
        Checked {
            verdict: Verdict::Unknown,
            history: source.name.clone(),
            model: Some(model.to_owned()),
            guessed_from: self.guessed_from.clone(),
            condition,
            format: source.format.clone(),
            timed: true,
            ..Checked::default()
        }
    }
}

fn guess(source: &Source, watch: &Watch) -> Result<ModelName, Failure> {
    if source.functions.is_empty() {
        let why = source.why_nothing(&watch.interrupt());
        return Err(Failure::usage(format!("{}: {why}", source.name)));
    }
    ModelName::guess(source.functions.iter().map(String::as_str)).ok_or_else(|| {
        Failure::usage(format!(
            "{}: no model has the functions {}. Name one with --model; `harness list models` says which \
             functions each has",
            source.name,
            source.functions.join(", ")
        ))
    })
}

/// One model, one condition.
fn by_model(
    source: Source,
    (model, condition): (ModelName, Condition),
    means: &Means<'_>,
    checked: &mut Checked,
) -> Result<Vec<checker::verdict::PartOrder>, Failure> {
    let is_register = matches!(model, ModelName::CasRegister | ModelName::Register);
    if is_register
        && condition == Condition::Linearizable
        && !means.witness
        && by_stream(&source, means, checked)
    {
        return Ok(Vec::new());
    }
    let name = source.name.clone();
    let question = Question {
        model,
        condition,
        budget: means.budget.clone(),
        threads: means.threads,
        witness: means.witness,
    };
    let mut passed = Passed::new(Arc::clone(&means.read));
    let begun = Instant::now();
    let records = match records_until(source.into_reader(), &means.watch.interrupt()) {
        Err(_) if means.watch.reached().is_some() => {
            checked.stopped = means.watch.reached().map(|reached| reading_stopped(reached, 0));
            return Ok(Vec::new());
        }
        records => records,
    };
    let mut records = records.map_err(|error| refused(&name, model, &error.into()))?;
    let mut passing = Passing::new(&mut records, means.watch.interrupt(), &mut passed);
    let outcome = catalogue::judge(&mut passing, &question);
    let completeness = records.completeness();
    let all_ms = milliseconds(begun);
    checked.read = passed.counted;
    checked.timed = passed.timed;
    checked.took.read_ms = passed.read_ms(begun).unwrap_or(all_ms).min(all_ms);
    checked.took.judge_ms = all_ms - checked.took.read_ms;
    let Judged { mut result, witness } = match outcome {
        Ok(judged) => judged,
        Err(Refusal::History(LoadError::Io(_))) if passed.stopped || means.watch.reached().is_some() => {
            checked.stopped =
                means.watch.reached().map(|reached| reading_stopped(reached, passed.counted.records));
            return Ok(Vec::new());
        }
        Err(refusal) => return Err(refused(&name, model, &refusal)),
    };
    result.took_ms = Some(checked.took.judge_ms);
    let result = completeness.extent.allow(result);
    checked.verdict = completeness.extent.limit(result.verdict);
    checked.checks = vec![result];
    if let Some(problem) = completeness.problem {
        checked.checks.insert(0, CheckResult::new("history", Verdict::Unknown, problem));
    }
    checked.read.left_out = completeness.skipped;
    checked.notes.extend(renamed(&completeness.renamed));
    Ok(witness)
}

/// Registers in lines of JSON, while they are read; false where the whole has to be judged.
fn by_stream(source: &Source, means: &Means<'_>, checked: &mut Checked) -> bool {
    let Some(path) = &source.lines else { return false };
    let begun = Instant::now();
    let Streamed::Judged(result, read) =
        streamed::judge(path, &means.budget, means.threads.get(), &means.read)
    else {
        return false;
    };
    checked.took.judge_ms = milliseconds(begun);
    checked.read = Counted {
        records: read.records,
        operations: read.keys.iter().map(|key| key.ops).sum(),
        unknown: read.keys.iter().map(|key| key.open).sum(),
        left_out: read.seal.as_ref().map_or(0, |seal| seal.skipped),
        ended: None,
    };
    checked.notes.extend(read.seal.as_ref().and_then(|seal| renamed(&seal.renamed)));
    checked.timed = source.timed;
    if let Some(why) = read.gave_up.filter(|_| result.verdict == Verdict::Unknown) {
        checked.stopped = Some(match means.watch.reached() {
            Some(reached) => reading_stopped(reached, read.records),
            None => format!("{why} while reading, after {}", plural(read.records, "record")),
        });
    }
    // What was not read to its end is a beginning.
    let extent = read.seal.as_ref().map_or(Extent::Beginning, |seal| seal.extent);
    let result = extent.allow(CheckResult { took_ms: Some(checked.took.judge_ms), ..*result });
    checked.verdict = extent.limit(result.verdict);
    checked.checks = vec![result];
    if let Some(problem) = read.seal.and_then(|seal| seal.problem) {
        checked.checks.insert(0, CheckResult::new("history", Verdict::Unknown, problem));
    }
    true
}

/// Everything that a workload of ours promises.
fn by_workload(source: Source, means: &Means<'_>, checked: &mut Checked) -> Result<(), Failure> {
    let name = source.name.clone();
    let begun = Instant::now();
    let mut reader = Stopping::new(source.into_reader(), means.watch.interrupt(), Arc::clone(&means.read));
    let outcome = load_until(&mut reader, vocabulary(), &means.watch.interrupt());
    let loaded = match outcome {
        Ok(loaded) => loaded,
        Err(LoadError::Io(_)) if means.watch.reached().is_some() => {
            let lines = means.read.load(Ordering::Relaxed);
            checked.stopped = means.watch.reached().map(|reached| reading_stopped(reached, lines));
            return Ok(());
        }
        Err(error) => return Err(Failure::usage(format!("{name}: {error}"))),
    };
    checked.took.read_ms = milliseconds(begun);
    checked.read = counted(&loaded);
    checked.notes.extend(renamed(&loaded.renamed));
    let judging = Instant::now();
    let effort =
        workloads::judge::Effort { budget: means.budget.clone(), threads: means.threads, timed: &timed };
    checked.checks = workloads::judge::judge_history_alone(&loaded, &effort);
    checked.took.judge_ms = milliseconds(judging);
    checked.verdict = loaded.extent.limit(Verdict::of(&checked.checks));
    Ok(())
}

/// What is wrong with the history, and what to do next.
fn refused(name: &str, model: ModelName, refusal: &Refusal) -> Failure {
    let advice = match refusal {
        Refusal::History(LoadError::Malformed { .. }) => format!(
            ". It was read as a history of {model}; --model names another, `harness list models` says which \
             functions each has"
        ),
        Refusal::History(_) | Refusal::NoSuchCondition { .. } => String::new(),
    };
    Failure::usage(format!("{name}: {refusal}{advice}"))
}

/// Renamed clients that a note lists.
const MOST_RENAMED: usize = 8;

/// Which number stands for which client, where the file has another.
fn renamed(renamed: &[(String, u64)]) -> Option<String> {
    let told: Vec<String> = renamed
        .iter()
        .take(MOST_RENAMED)
        .map(|(name, number)| format!("{name} is process {number}"))
        .collect();
    let more = renamed.len().saturating_sub(MOST_RENAMED);
    let more =
        if more == 0 { String::new() } else { format!(", and {} more", count(crate::num::wide(more))) };
    (!told.is_empty()).then(|| format!("clients by name are numbered: {}{more}", told.join(", ")))
}

fn reading_stopped(reached: Reached, records: u64) -> String {
    format!("{reached} while reading, after {}", plural(records, "record"))
}

/// The watch rang, nobody listened, and the bound itself is reached: the answer is given here and now.
fn last_words(mut checked: Checked, records: u64, reached: Reached, format: Format) {
    checked.verdict = Verdict::Unknown;
    checked.stopped = Some(format!("{reached} after {} had been read", counted_records(records)));
    checked.read.records = records;
    // Whatever becomes of the words, the bound is kept.
    let _ = print(&checked, format);
    std::process::exit(i32::from(Exit::Unknown.status()));
}

fn counted_records(records: u64) -> String {
    if records == 1 { "1 record".to_owned() } else { format!("{} records", count(records)) }
}

fn print(checked: &Checked, format: Format) -> Result<(), Failure> {
    let text = match format {
        Format::Json => {
            let mut text = serde_json::to_string_pretty(checked).context("encoding the result")?;
            text.push('\n');
            text
        }
        Format::Human => {
            let style =
                Style { colour: colour_wanted(std::io::stdout().is_terminal()), width: screen::width() };
            reports::checked::render(checked, style)
        }
    };
    screen::print(&text)
}

fn milliseconds(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1e3
}
