//! A night from its first line to its last.
//!
//! Planted bugs first, because a bench that finds none shows nothing; then cases in the order of the plan,
//! each tried again once where the bench or the load fell short; then alarms, compared with an earlier build;
//! what is left of the budget goes into worlds. Whatever ends is a line of the index before the next begins.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::Context;
use nights::fold::{self, Night};
use nights::index::{Attempt, Judged, LeftOut, Line, Purpose};
use nights::measures::{self, Metric, Samples};
use nights::pile::Pile;
use nights::plan::{self, Slot, Terms};
use nights::threshold::{Judgement, Threshold};

use super::beginning::{self, Beginning};
use super::build::Build;
use super::child::{self, Ended, Order};
use super::files::Told;
use super::outcome::{self, Outcome, Record};
use super::settings::Orders;
use super::store::Store;
use crate::exit::{Exit, Failure};
use crate::num::{index, narrow};
use crate::progress::Progress;
use crate::run::interrupt::Interrupt;
use crate::text::span;

/// A run may take so much longer than it should before it is ended.
const PATIENCE: u32 = 3;
/// And so much beside it.
const GRACE: Duration = Duration::from_secs(300);
/// The share of the budget that is kept back for comparing builds, where alarms are possible.
const FOR_ALARMS: u32 = 6;
/// Bugs whose recipe needs more tries in real members are not for nights: one that is missed makes a night
/// unknown.
const MOST_TRIES: u32 = 3;

/// The flag by which a run compresses its history.
const COMPRESS: &str = "--compress";

/// A night that goes on.
pub(super) struct Runner {
    pub(super) orders: Orders,
    pub(super) store: RefCell<Store>,
    pub(super) build: Build,
    /// Its name.
    pub(super) night: String,
    pub(super) interrupt: Interrupt,
    pub(super) progress: Progress,
    /// Where it runs, as far as numbers may be compared.
    machine: String,
    /// When it began, or went on.
    begun: Instant,
    /// What it had taken before it went on.
    before: Duration,
    queue: RefCell<VecDeque<Slot>>,
    /// Runs that found no room, and what was left of the budget then.
    no_room: RefCell<Vec<(Slot, Duration)>>,
    /// Whether the night itself failed, so that nothing more is begun.
    failed: Cell<bool>,
}

/// How a night ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Finished {
    /// All nights of the store.
    pub told: Told,
    /// The exit status.
    pub status: Exit,
}

/// Runs a night.
///
/// # Errors
///
/// A usage failure before anything is started; a failure of the harness when the index can't be written.
pub fn run(orders: Orders, progress: &Progress) -> Result<Finished, Failure> {
    let store = Store::take(&orders.store)?;
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().context("starting the runtime")?;
    let local = tokio::task::LocalSet::new();
    local.block_on(&runtime, async {
        let words = "interrupted: the runs that go on heal and end, then the night is written; once more \
                     ends at once, and `harness night --resume` goes on";
        let interrupt = Interrupt::listen_and_say(progress.clone(), words, || {})?;
        let runner = Rc::new(Runner::begin(orders, store, interrupt, progress.clone())?);
        let outcome = runner.clone().all().await;
        progress.clear();
        // What there is is drawn even when the night itself failed, and then it is not over: it can go on.
        let finished = runner.finish(outcome.as_ref().err().map(ToString::to_string));
        match (outcome, finished) {
            // A violation wins over a failure of the bench.
            (Err(failure), Ok(finished)) if finished.status == Exit::Invalid => {
                progress.say(&failure.to_string());
                Ok(finished)
            }
            (Err(failure), _) => Err(failure),
            (Ok(()), finished) => finished,
        }
    })
}

impl Runner {
    fn begin(
        orders: Orders,
        mut store: Store,
        interrupt: Interrupt,
        progress: Progress,
    ) -> Result<Self, Failure> {
        let nights = fold::nights(&store.lines);
        let Beginning { orders, build, going_on } =
            Beginning::of(orders, store.path(), nights.last(), &progress)?;
        let now = jiff::Timestamp::now();
        let before = going_on.as_ref().map_or(Duration::ZERO, beginning::spent);
        let past = &nights[..nights.len() - usize::from(going_on.is_some())];
        let guess = |case: &nights::suite::Case| orders.guess(case);
        let terms = Terms { nights: past, now, seed: orders.seed, shard: orders.shard, guess: &guess };
        let slots = plan::order(&orders.suite, terms);
        let begun = match going_on {
            Some(night) => night.begun,
            None => {
                let begun = beginning::first_line(&orders, &nights, &build, now)?;
                store.append(Line::Night(begun.clone()))?;
                begun
            }
        };
        let (night, machine) = (begun.night, begun.machine.key());
        progress.say(&format!("night {night}, build {}, seed {}", build.name, orders.seed));
        progress.say(&format!("folder {}", store.night(&night).display()));
        let runner = Self {
            orders,
            store: RefCell::new(store),
            build,
            night,
            interrupt,
            progress,
            machine,
            begun: Instant::now(),
            before,
            queue: RefCell::new(slots.into()),
            no_room: RefCell::default(),
            failed: Cell::new(false),
        };
        runner.without_what_is_done();
        Ok(runner)
    }

    /// What is left of the budget.
    pub(super) fn rest(&self) -> Duration {
        self.orders.budget.saturating_sub(self.spent())
    }

    fn spent(&self) -> Duration {
        self.before.saturating_add(self.begun.elapsed())
    }

    pub(super) fn spent_ms(&self) -> u64 {
        u64::try_from(self.spent().as_millis()).unwrap_or(u64::MAX)
    }

    /// Leaves out runs that a night that goes on has made already.
    fn without_what_is_done(&self) {
        let retries = self.orders.suite.settings.retries;
        self.queue.borrow_mut().retain(|slot| {
            let case = &self.orders.suite.cases[slot.case];
            let tries = self.tries(&case.id, slot.repeat);
            let used_up = narrow(tries.len()) > retries;
            tries.last().is_none_or(|pile| pile.is_tried_again() && !used_up)
        });
    }

    pub(super) fn folder(&self) -> PathBuf {
        self.store.borrow().night(&self.night)
    }

    /// The night as it is so far.
    pub(super) fn tonight(&self) -> Night {
        let store = self.store.borrow();
        let own = store.lines.iter().filter(|line| line.night() == self.night);
        fold::nights(own).pop().expect("its first line was appended at the start")
    }

    async fn all(self: Rc<Self>) -> Result<(), Failure> {
        self.mutants().await?;
        self.not_looked_at().await?;
        let mut workers = tokio::task::JoinSet::new();
        for _ in 0..self.orders.suite.settings.jobs {
            let runner = Rc::clone(&self);
            workers.spawn_local(async move { runner.work().await });
        }
        let mut outcome = Ok(());
        while let Some(ended) = workers.join_next().await {
            let ended = ended.context("a worker of the night broke")?;
            outcome = outcome.and(ended);
        }
        outcome?;
        self.alarms().await?;
        self.worlds().await
    }

    async fn work(&self) -> Result<(), Failure> {
        while !self.interrupt.was_asked() && !self.failed.get() {
            let Some(slot) = self.next() else { break };
            let outcome = self.slot(&slot).await;
            self.failed.set(self.failed.get() || outcome.is_err());
            outcome?;
        }
        Ok(())
    }

    /// Violations of a night that was killed before it had looked at them.
    async fn not_looked_at(&self) -> Result<(), Failure> {
        for attempt in self.tonight().attempts.iter().filter(|run| run.pile == Pile::Violation) {
            let case = self.orders.suite.cases.iter().find(|case| case.id == attempt.case);
            let folder = attempt.folder.as_ref().map(|folder| self.store.borrow().path().join(folder));
            if let (Some(case), Some(record)) = (case, folder.and_then(|folder| outcome::read(&folder))) {
                self.violation(case, attempt, &outcome::shapes(&case.id, &record)).await?;
            }
        }
        Ok(())
    }

    /// The next run that finds room. What finds none is kept to be named.
    fn next(&self) -> Option<Slot> {
        let mut queue = self.queue.borrow_mut();
        let may_alarm =
            self.orders.suite.settings.pairs > 0 && self.nights_begun() > nights::fence::LEAST_NIGHTS;
        let kept_back = if may_alarm { self.orders.budget / FOR_ALARMS } else { Duration::ZERO };
        while let Some(slot) = queue.pop_front() {
            // Something is always tried, however small the budget.
            let first = !self.store.borrow().lines.iter().any(|line| self.is_case(line));
            if first || slot.estimate <= self.rest().saturating_sub(kept_back) {
                return Some(slot);
            }
            self.no_room.borrow_mut().push((slot, self.rest()));
        }
        None
    }

    /// Nights of the store, this one included.
    fn nights_begun(&self) -> usize {
        self.store.borrow().lines.iter().filter(|line| matches!(line, Line::Night(_))).count()
    }

    fn is_case(&self, line: &Line) -> bool {
        matches!(line, Line::Attempt(run) if run.night == self.night && run.purpose == Purpose::Case)
    }

    /// A run of a case, and another try where it is owed one.
    async fn slot(&self, slot: &Slot) -> Result<(), Failure> {
        let retries = self.orders.suite.settings.retries;
        let case = &self.orders.suite.cases[slot.case];
        let done = self.tries(&case.id, slot.repeat);
        let first = narrow(done.len()) + 1;
        if done.last().is_some_and(|pile| !pile.is_tried_again()) {
            return Ok(());
        }
        for number in first..=retries + 1 {
            let mut name = format!("{}-{}", case.id, slot.repeat);
            if number > 1 {
                name.push_str("-again");
            }
            let options = self.orders.options(slot);
            self.progress.step(&format!("{name}: {}", options.repeat));
            let mut words = case.words();
            words.extend(["--seed".to_owned(), slot.seed.to_string()]);
            // A case may ask for it by itself.
            if self.orders.suite.settings.keep.compress && !words.iter().any(|word| word == COMPRESS) {
                words.push(COMPRESS.to_owned());
            }
            let deadline = options.time_limit * PATIENCE + GRACE;
            let (started, ended, folder) = self.child(&name, words, &self.build.executable, deadline).await?;
            // A violation wins over an interruption.
            if ended.interrupted && ended.status != Some(i32::from(Exit::Invalid.status())) {
                return Ok(());
            }
            let made = Made { case: &case.id, repeat: slot.repeat, number, seed: slot.seed, started };
            let (attempt, outcome) = self.ended(made, &ended, folder.as_deref(), options.repeat);
            let pile = attempt.pile;
            self.say(&name, &attempt);
            self.store.borrow_mut().append(Line::Attempt(attempt.clone()))?;
            if pile == Pile::Violation {
                self.violation(case, &attempt, &outcome.shapes).await?;
            }
            if !pile.is_tried_again() {
                break;
            }
        }
        Ok(())
    }

    /// What the tries of a run were taken for, in this night.
    fn tries(&self, case: &str, repeat: u32) -> Vec<Pile> {
        let store = self.store.borrow();
        let of_run = store.lines.iter().filter_map(|line| match line {
            Line::Attempt(run) if self.is_case(line) && run.case == case && run.repeat == repeat => {
                Some(run.pile)
            }
            _ => None,
        });
        of_run.collect()
    }

    /// Makes a run in a process of its own. Its folder is the last one of its name.
    pub(super) async fn child(
        &self,
        name: &str,
        words: Vec<String>,
        executable: &Path,
        deadline: Duration,
    ) -> Result<(jiff::Timestamp, Ended, Option<PathBuf>), Failure> {
        let runs = self.folder().join("runs");
        let mut arguments = vec!["run".to_owned()];
        arguments.extend(words);
        arguments.extend(["--name".to_owned(), name.to_owned(), "--format".to_owned(), "json".to_owned()]);
        arguments.extend(["--store".to_owned(), runs.display().to_string()]);
        let started = jiff::Timestamp::now();
        let ended = self.process(name, executable, arguments, deadline).await?;
        Ok((started, ended, newest(&runs.join(name))))
    }

    /// Runs a command of the harness to its end, and keeps what it says under a name.
    pub(super) async fn process(
        &self,
        name: &str,
        executable: &Path,
        arguments: Vec<String>,
        deadline: Duration,
    ) -> anyhow::Result<Ended> {
        let log = self.folder().join("log").join(format!("{name}.log"));
        let order = Order { executable: executable.to_owned(), arguments, log, deadline };
        child::run(&order, &self.interrupt).await
    }

    /// A run that has ended, as a line.
    pub(super) fn ended(
        &self,
        made: Made<'_>,
        ended: &Ended,
        folder: Option<&Path>,
        repeat_command: String,
    ) -> (Attempt, Outcome) {
        let record = folder.and_then(outcome::read);
        let outcome = outcome::of(made.case, ended, record.as_ref());
        let results = record.as_ref().map(|record| &record.results);
        let fingerprints: BTreeSet<String> =
            outcome.shapes.iter().map(|(shape, _)| shape.fingerprint()).collect();
        let attempt = Attempt {
            night: self.night.clone(),
            purpose: Purpose::Case,
            case: made.case.to_owned(),
            repeat: made.repeat,
            attempt: made.number,
            started_utc: made.started,
            took_ms: ended.took.as_secs_f64() * 1e3,
            seed: made.seed,
            pile: outcome.pile,
            status: ended.status,
            why: outcome.why.clone(),
            folder: folder.and_then(|folder| self.store.borrow().relative(folder)),
            repeat_command,
            series: outcome.series.clone(),
            findings: fingerprints.into_iter().collect(),
            operations: results.map_or(0, |results| results.operations.total.invoked),
            elections: results
                .map_or(0, |results| results.election_kinds.iter().map(|kind| kind.measured).sum()),
            faults: results.map_or((0, 0), |results| (results.faults.verified, results.faults.planned)),
            spent_ms: self.spent_ms(),
            machine: self.machine.clone(),
        };
        (attempt, outcome)
    }

    fn say(&self, name: &str, attempt: &Attempt) {
        let took = span::show(Duration::from_secs_f64((attempt.took_ms / 1e3).round().max(0.0)));
        let why = if attempt.why.is_empty() { String::new() } else { format!(": {}", attempt.why) };
        self.progress.say(&format!("{name}: {} in {took}{why}", attempt.pile.name()));
    }

    /// Planted bugs, in turn from night to night. Each must be convicted.
    async fn mutants(&self) -> Result<(), Failure> {
        let pool: Vec<_> = lab_mutants::ALL
            .iter()
            .filter_map(|bug| Some((*bug, bug.recipe().ok()?)))
            .filter(|(_, recipe)| recipe.tries <= MOST_TRIES)
            .collect();
        let turn = self.nights_begun();
        let hunted = index(u64::from(self.orders.suite.settings.mutants)).min(pool.len());
        for nth in 0..hunted {
            let (bug, recipe) = pool[(turn * hunted.max(1) + nth) % pool.len()];
            let convicted = |run: &Attempt| run.case == bug.name() && run.pile == Pile::Violation;
            if self.tonight().mutants.iter().any(convicted) {
                continue;
            }
            let tried = self.tonight().mutants.iter().filter(|run| run.case == bug.name()).count();
            for number in narrow(tried).saturating_add(1)..=recipe.tries {
                // A hunt that was begun is ended: one that is broken off would say that nothing was found.
                let over = number == 1 && nth > 0 && self.rest() < self.orders.budget / 2;
                if self.interrupt.was_asked() || over {
                    return Ok(());
                }
                let name = format!("mutant-{}-{number}", bug.name());
                let seed = plan::seed(self.orders.seed, bug.name(), number);
                let line = format!(
                    "--cluster process --nemesis {} --workload {} --mutant {} --seed {seed} {}",
                    recipe.nemesis,
                    recipe.workload,
                    bug.name(),
                    recipe.flags
                );
                self.progress.step(&format!("{name}: the planted bug must be convicted"));
                let words: Vec<String> = line.split_ascii_whitespace().map(str::to_owned).collect();
                let command = format!("harness run {}", words.join(" "));
                let made = self.child(&name, words, &self.build.executable, GRACE * PATIENCE).await?;
                let (started, ended, folder) = made;
                if ended.interrupted {
                    return Ok(());
                }
                let made = Made { case: bug.name(), repeat: 1, number, seed, started };
                let (attempt, _) = self.ended(made, &ended, folder.as_deref(), command);
                let attempt = Attempt { purpose: Purpose::Mutant, ..attempt };
                self.say(&name, &attempt);
                let pile = attempt.pile;
                self.store.borrow_mut().append(Line::Attempt(attempt))?;
                if pile == Pile::Violation {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Judges what there is, and writes what comes out of it.
    fn finish(&self, failed: Option<String>) -> Result<Finished, Failure> {
        let interrupted = self.interrupt.was_asked();
        let left_out = self.left_out(interrupted);
        let mut nights = fold::nights(&self.store.borrow().lines);
        let thresholds = self.thresholds(&self.tonight());
        // Thresholds count before the night is concluded.
        let mut judged = Judged {
            night: self.night.clone(),
            ended_utc: jiff::Timestamp::now(),
            pile: Pile::Valid,
            status: 0,
            sentence: String::new(),
            shard: self.orders.shard,
            interrupted,
            left_out,
            thresholds,
        };
        nights.retain(|night| night.begun.night != self.night);
        nights.push(Night { judged: Some(judged.clone()), ..self.tonight() });
        let known = &self.orders.suite.known;
        let mut conclusion = fold::conclude(&nights, known, &judged.left_out);
        if let Some(why) = &failed {
            conclusion.pile = conclusion.pile.max(Pile::BenchFailure);
            conclusion.sentence = format!("The night itself failed: {why}. {}", conclusion.sentence);
        }
        let status = match conclusion.pile {
            Pile::Violation => Exit::Invalid,
            _ if interrupted => Exit::Interrupted,
            pile => Exit::from(pile),
        };
        judged.pile = conclusion.pile;
        judged.status = status.status();
        judged.sentence = conclusion.sentence;
        // A night that was stopped, or that failed, is taken up where it was.
        if !interrupted && failed.is_none() {
            self.store.borrow_mut().append(Line::Judged(judged.clone()))?;
        }
        if let Some(tonight) = nights.last_mut() {
            tonight.judged = Some(judged);
            tonight.tell_shards();
        }
        let store = self.store.borrow();
        if let Err(error) = store.keep(&nights, self.orders.suite.settings.keep) {
            self.progress.say(&format!("not all of what old nights left could be removed: {error}"));
        }
        let told = Told::of(store.path(), nights, known);
        told.write(store.path()).context("writing the page of the nights")?;
        Ok(Finished { told, status })
    }

    /// What was planned and not run.
    fn left_out(&self, interrupted: bool) -> Vec<LeftOut> {
        let rest: Vec<Slot> = self.queue.borrow().iter().cloned().collect();
        let no_room = self.no_room.borrow();
        let mut left = Vec::new();
        for (slot, rest) in no_room.iter() {
            let more = plan::no_room(&self.orders.suite, std::slice::from_ref(slot), *rest);
            for one in more {
                match left.last_mut() {
                    Some(LeftOut { case, runs, .. }) if *case == one.case => *runs += 1,
                    _ => left.push(one),
                }
            }
        }
        for mut unrun in plan::no_room(&self.orders.suite, &rest, Duration::ZERO) {
            let why =
                if interrupted { "the night was interrupted" } else { "the night came to an early end" };
            why.clone_into(&mut unrun.why);
            left.push(unrun);
        }
        left
    }

    /// Every threshold of every case that was run, on the samples of all its valid runs.
    fn thresholds(&self, tonight: &Night) -> BTreeMap<String, Vec<Judgement>> {
        let mut all = BTreeMap::new();
        for case in self.orders.suite.cases.iter().filter(|case| !case.thresholds.is_empty()) {
            let last = tonight.last_tries(&case.id);
            if last.is_empty() {
                continue;
            }
            let valid = last.iter().filter(|run| run.pile == Pile::Valid);
            let folders = valid.filter_map(|run| run.folder.as_deref());
            let records: Vec<Record> = folders
                .filter_map(|folder| outcome::read(&self.store.borrow().path().join(folder)))
                .collect();
            let judge =
                |threshold: &Threshold| threshold.judge(&pooled(threshold, &records, tonight, &case.id));
            all.insert(case.id.clone(), case.thresholds.iter().map(judge).collect());
        }
        all
    }
}

/// What a run was made as.
pub(super) struct Made<'a> {
    pub(super) case: &'a str,
    pub(super) repeat: u32,
    pub(super) number: u32,
    pub(super) seed: u64,
    pub(super) started: jiff::Timestamp,
}

fn pooled(threshold: &Threshold, records: &[Record], tonight: &Night, case: &str) -> Samples {
    if threshold.metric == Metric::Unknown {
        let tries = tonight.attempts.iter().filter(|run| run.case == case);
        return Samples::of_values(tries.map(|run| f64::from(u8::from(run.pile == Pile::Unknown))).collect());
    }
    let mut samples = Samples::default();
    for record in records {
        samples.add(measures::samples(&threshold.metric, &record.results, &record.faults));
    }
    samples
}

/// The last folder of a name: an earlier one is of a try that did not live to its end.
pub fn newest(named: &Path) -> Option<PathBuf> {
    let entries = std::fs::read_dir(named).ok()?;
    entries.flatten().map(|entry| entry.path()).filter(|path| path.is_dir()).max()
}
