//! One night, from its first line to its last: what is begun, tried again, replayed, made smaller, compared,
//! and of what somebody is told.
//!
//! A night goes through its phases in order:
//!
//! 1. **Planted bugs** (`bugs`), because a bench that finds none shows nothing.
//! 2. **Violations** of a night that was killed before it had looked at them (`violations`).
//! 3. **Cases** in the order of the plan (`cases`), several at a time if so asked. What the bench fell
//!    short of is tried again once. A violation is replayed and made smaller, and never tried away.
//! 4. **Alarms** (`alarms`): numbers that stand out, compared with an earlier build by pairs of runs.
//! 5. **Worlds** of the simulator (`worlds`), with what is left of the budget.
//! 6. **The verdict** (`verdict`), with thresholds over all runs of a case.
//!
//! An interrupt, or a failure of the night itself, begins nothing more. What is under way is waited for, and
//! the verdict is given on what there is; but the night is not over, and goes on where it was when it is
//! begun with its lines.
//!
//! The index is the memory of a night: whatever ends is a line before the next begins, and what is to be
//! done follows from the lines. So a night that was killed goes on by the same rules.
//!
//! What it deliberately does not do: start, wait, read or write. Whoever drives it asks for the next
//! [`Command`] until there is none, and says what came of each.

mod alarms;
mod bugs;
mod cases;
mod verdict;
mod violations;
mod worlds;

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;
use runs::span;

use crate::findings::Finding;
use crate::fold::{self, Night};
use crate::index::{Attempt, Begun, Line, Purpose};
use crate::outcome::{Ended, Outcome, Record};
use crate::plan::Slot;
use crate::suite::{Case, Settings, Suite};

use alarms::Comparing;
use verdict::Judging;
use violations::Looking;
use worlds::Living;

pub use alarms::Side;
pub use verdict::Finished;

/// Beside its time, what a run may take before it is ended.
const GRACE: Duration = Duration::from_secs(300);
/// A run may take so much longer than its time before it is ended.
const PATIENCE: u32 = 3;

/// A moment of a night.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// The time of day.
    pub utc: Timestamp,
    /// What of the budget is used, by what the night took before it went on as well.
    pub spent: Duration,
}

/// What a driver is to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// Run the harness in a process of its own. Answer with [`Scheduler::ended`].
    Start(Order),
    /// Find the executable of the build of this name. Answer with [`Scheduler::found`].
    Find(String),
    /// Read the run folder at this path below the store. Answer with [`Scheduler::was_read`].
    Read(String),
    /// Append a line to the index. It is on disk before the next command is carried out.
    Write(Box<Line>),
    /// Start the command that the file names for findings, with this on its standard input.
    Notify(Box<Finding>),
    /// Show what is being done.
    Step(String),
    /// Show what somebody who watches should know.
    Say(String),
}

/// A process to be started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    /// By which its end is reported.
    pub id: u64,
    /// What it is called, in its log's name too.
    pub name: String,
    /// Which build makes it.
    pub build: Side,
    /// The arguments of the harness.
    pub arguments: Vec<String>,
    /// After so long it is ended.
    pub deadline: Duration,
    /// Where its run folder will be: the newest one in here. None where it makes none.
    pub runs: Option<PathBuf>,
}

/// The run folder that a process made.
#[derive(Clone, Debug, Default)]
pub struct Made {
    /// Its path below the store; none where it made none.
    pub folder: Option<String>,
    /// What it holds; none where the run was not judged.
    pub record: Option<Record>,
}

/// A planted bug, and how runs convict it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bug {
    /// Its name.
    pub name: String,
    /// What is broken.
    pub nemesis: String,
    /// What clients do.
    pub workload: String,
    /// Further flags of `harness run`.
    pub flags: String,
    /// Runs that it takes at most.
    pub tries: u32,
}

/// What a night is made of.
#[derive(Clone, Debug)]
pub struct Terms {
    /// Its first line.
    pub begun: Begun,
    /// Whether its first line is in the index already: it goes on.
    pub goes_on: bool,
    /// The build that makes the runs: where a night goes on, it may be another one than began it.
    pub build: String,
    /// How long the night may take.
    pub budget: Duration,
    /// The file.
    pub suite: Suite,
    /// Where nights are kept, as command lines name it.
    pub store: PathBuf,
    /// Planted bugs that real members can show.
    pub bugs: Vec<Bug>,
}

/// What the cases of a file are as runs.
pub trait Runs {
    /// For how long a run of the case is at work.
    fn time_limit(&self, case: usize) -> Duration;
    /// How long a run of the case takes, as far as nobody has seen one.
    fn guess(&self, case: usize) -> Duration;
    /// The command that makes a run of the case with this seed by hand.
    fn command(&self, case: usize, seed: u64) -> String;
    /// The flags of the case that whoever repeats its runs must type: no folder is believed with them.
    fn typed(&self, case: usize) -> Vec<String>;
    /// A word as it can be typed.
    fn quoted(&self, word: &str) -> String;
}

/// What a process is for.
#[derive(Debug)]
enum Task {
    Bug { bug: Bug, number: u32, seed: u64, command: String },
    Case { slot: Slot, number: u32 },
    Replay(Looking),
    Smaller(Looking),
    Pair(Side),
    Worlds(u64),
}

/// A process under way.
#[derive(Debug)]
struct Running {
    name: String,
    started: Timestamp,
    task: Task,
}

/// How far a night is.
#[derive(Debug)]
enum Phase {
    Bugs,
    Violations(VecDeque<Attempt>),
    Cases,
    Alarms(VecDeque<Comparing>),
    Worlds(Living),
    Verdict(Judging),
    Over(Box<Finished>),
}

/// A night.
pub struct Scheduler {
    terms: Terms,
    runs: Box<dyn Runs>,
    /// Every line of the store, tonight's included.
    lines: Vec<Line>,
    phase: Phase,
    /// Runs of cases that were not begun yet.
    queue: VecDeque<Slot>,
    /// Runs that found no room, and what was left of the budget then.
    no_room: Vec<(Slot, Duration)>,
    running: BTreeMap<u64, Running>,
    /// The process that is started next.
    next_id: u64,
    /// Whether an answer is waited for that is no end of a process.
    awaits: bool,
    interrupted: bool,
    failed: Option<String>,
    out: VecDeque<Command>,
}

impl Scheduler {
    /// A night that begins, or goes on. `lines` are all lines of the store.
    #[must_use]
    pub fn new(terms: Terms, runs: Box<dyn Runs>, lines: Vec<Line>, now: Moment) -> Self {
        let mut night = Self {
            terms,
            runs,
            lines,
            phase: Phase::Bugs,
            queue: VecDeque::new(),
            no_room: Vec::new(),
            running: BTreeMap::new(),
            next_id: 1,
            awaits: false,
            interrupted: false,
            failed: None,
            out: VecDeque::new(),
        };
        night.queue = night.planned(now);
        let Begun { night: name, seed, .. } = night.terms.begun.clone();
        let build = night.terms.build.clone();
        if !night.terms.goes_on {
            night.write(Line::Night(night.terms.begun.clone()));
        }
        night.say(format!("night {name}, build {build}, seed {seed}"));
        night.say(format!("folder {}", night.folder().display()));
        night
    }

    /// What is to be done at this moment, one after the other, until there is nothing more.
    pub fn next(&mut self, now: Moment) -> Option<Command> {
        loop {
            if let Some(command) = self.out.pop_front() {
                return Some(command);
            }
            if !self.step(now) {
                return None;
            }
        }
    }

    /// How the night ended; none while it goes on.
    #[must_use]
    pub fn finished(&self) -> Option<&Finished> {
        match &self.phase {
            Phase::Over(finished) if self.out.is_empty() => Some(finished),
            _ => None,
        }
    }

    /// Somebody interrupts.
    pub fn interrupt(&mut self) {
        self.interrupted = true;
    }

    /// Something could not be done, so nothing more is begun, not even what was decided and not carried out
    /// yet: its line may not be on disk. A process that could not be started is none.
    pub fn failed(&mut self, process: Option<u64>, why: String) {
        if let Some(id) = process {
            self.running.remove(&id);
        }
        for command in std::mem::take(&mut self.out) {
            match command {
                Command::Start(order) => drop(self.running.remove(&order.id)),
                Command::Notify(_) | Command::Step(_) => {}
                // Its answer is waited for, or it begins nothing.
                Command::Find(_) | Command::Read(_) | Command::Write(_) | Command::Say(_) => {
                    self.out.push_back(command);
                }
            }
        }
        self.failed.get_or_insert(why);
    }

    /// A process has ended.
    pub fn ended(&mut self, id: u64, now: Moment, ended: &Ended, made: Made) {
        let Some(Running { name, started, task }) = self.running.remove(&id) else { return };
        match task {
            Task::Bug { bug, number, seed, command } => {
                let run = Run { case: &bug.name, repeat: 1, number, seed, started, command };
                self.hunted(&name, run, now, ended, &made);
            }
            Task::Case { slot, number } => self.tried(&slot, number, (&name, started), now, ended, &made),
            Task::Replay(looking) => self.replayed(looking, now, ended, made),
            Task::Smaller(looking) => self.made_smaller(&looking, &name, ended),
            Task::Pair(side) => self.measured(side, started, now, ended, &made),
            Task::Worlds(first) => self.lived(first, now, ended),
        }
    }

    /// The executable of an earlier build was found, or why there is none that may be run.
    pub fn found(&mut self, outcome: Result<(), String>) {
        self.awaits = false;
        self.found_build(outcome);
    }

    /// A run folder was read; none where it holds no results.
    pub fn was_read(&mut self, now: Moment, record: Option<Record>) {
        self.awaits = false;
        match &mut self.phase {
            Phase::Violations(left) => {
                if let (Some(attempt), Some(record)) = (left.pop_front(), record) {
                    self.look_again(attempt, &record, now);
                }
            }
            Phase::Verdict(judging) => judging.take_in(record.as_ref()),
            _ => {}
        }
    }

    /// Begins the next thing, or goes on to the next phase.
    fn step(&mut self, now: Moment) -> bool {
        if self.awaits || matches!(self.phase, Phase::Over(_)) {
            return false;
        }
        let at_a_time = match self.phase {
            Phase::Cases => self.settings().jobs.max(1),
            _ => 1,
        };
        let has_room = u64::from(at_a_time) > u64::try_from(self.running.len()).unwrap_or(u64::MAX);
        if has_room && self.begins(now) {
            return true;
        }
        if self.running.is_empty() {
            self.phase = self.next_phase(now);
            return true;
        }
        false
    }

    fn begins(&mut self, now: Moment) -> bool {
        match self.phase {
            Phase::Verdict(_) => self.reads(),
            _ if self.is_stopped() => false,
            Phase::Bugs => self.hunts(now),
            Phase::Violations(_) => self.looks_again(),
            Phase::Cases => self.tries(now),
            Phase::Alarms(_) => self.compares(now),
            Phase::Worlds(_) => self.lives(now),
            Phase::Over(_) => false,
        }
    }

    fn next_phase(&mut self, now: Moment) -> Phase {
        match std::mem::replace(&mut self.phase, Phase::Cases) {
            Phase::Verdict(judging) => Phase::Over(Box::new(self.conclude(judging, now))),
            Phase::Over(finished) => Phase::Over(finished),
            _ if self.is_stopped() => Phase::Verdict(self.judging()),
            Phase::Bugs => Phase::Violations(self.not_looked_at()),
            Phase::Violations(_) => Phase::Cases,
            Phase::Cases => Phase::Alarms(self.alarmed()),
            Phase::Alarms(_) => Phase::Worlds(self.living()),
            Phase::Worlds(_) => Phase::Verdict(self.judging()),
        }
    }

    /// Whether nothing more is begun.
    fn is_stopped(&self) -> bool {
        self.interrupted || self.failed.is_some()
    }

    fn settings(&self) -> &Settings {
        &self.terms.suite.settings
    }

    /// What is left of the budget.
    fn rest(&self, now: Moment) -> Duration {
        self.terms.budget.saturating_sub(now.spent)
    }

    fn case(&self, id: &str) -> Option<(usize, &Case)> {
        self.terms.suite.cases.iter().enumerate().find(|(_, case)| case.id == id)
    }

    /// The folder of the night.
    fn folder(&self) -> PathBuf {
        self.terms.store.join(&self.terms.begun.night)
    }

    /// The night as it is so far.
    fn tonight(&self) -> Night {
        let own = self.lines.iter().filter(|line| line.night() == self.terms.begun.night);
        fold::nights(own).pop().unwrap_or_else(|| Night::new(self.terms.begun.clone()))
    }

    /// Nights of the store, this one included.
    fn nights_begun(&self) -> usize {
        self.lines.iter().filter(|line| matches!(line, Line::Night(_))).count()
    }

    fn write(&mut self, line: Line) {
        self.lines.push(line.clone());
        self.out.push_back(Command::Write(Box::new(line)));
    }

    fn say(&mut self, words: String) {
        self.out.push_back(Command::Say(words));
    }

    /// Starts a process.
    fn start(&mut self, now: Moment, process: Process, task: Task) {
        let id = self.next_id;
        self.next_id += 1;
        let Process { name, build, arguments, deadline, runs } = process;
        self.running.insert(id, Running { name: name.clone(), started: now.utc, task });
        self.out.push_back(Command::Start(Order { id, name, build, arguments, deadline, runs }));
    }

    /// A run of this name with these flags.
    fn run_of(&self, name: String, build: Side, flags: Vec<String>, deadline: Duration) -> Process {
        let store = self.folder().join("runs");
        let mut arguments = vec!["run".to_owned()];
        arguments.extend(flags);
        arguments.extend(["--name", &name, "--format", "json", "--store"].map(str::to_owned));
        arguments.push(store.display().to_string());
        let runs = Some(store.join(&name));
        Process { name, build, arguments, deadline, runs }
    }

    /// A run that has ended, as a line.
    fn attempt(&self, run: Run<'_>, now: Moment, ended: &Ended, made: &Made) -> (Attempt, Outcome) {
        let outcome = Outcome::of(run.case, ended, made.record.as_ref());
        let results = made.record.as_ref().map(|record| &record.results);
        let mut findings: Vec<String> = outcome.shapes.iter().map(|(shape, _)| shape.fingerprint()).collect();
        findings.sort();
        findings.dedup();
        let attempt = Attempt {
            night: self.terms.begun.night.clone(),
            purpose: Purpose::Case,
            case: run.case.to_owned(),
            repeat: run.repeat,
            attempt: run.number,
            started_utc: run.started,
            took_ms: ended.took.as_secs_f64() * 1e3,
            seed: run.seed,
            pile: outcome.pile,
            status: ended.status,
            why: outcome.why.clone(),
            folder: made.folder.clone(),
            repeat_command: run.command,
            series: outcome.series.clone(),
            findings,
            operations: results.map_or(0, |results| results.operations.total.invoked),
            elections: results.map_or(0, |results| {
                results.election_kinds.iter().fold(0, |all, kind| all.saturating_add(kind.measured))
            }),
            faults: results.map_or((0, 0), |results| (results.faults.verified, results.faults.planned)),
            spent_ms: milliseconds(now.spent),
            machine: self.terms.begun.machine.key(),
        };
        (attempt, outcome)
    }

    fn say_attempt(&mut self, name: &str, attempt: &Attempt) {
        let took = span::show(seconds((attempt.took_ms / 1e3).round()));
        let why = if attempt.why.is_empty() { String::new() } else { format!(": {}", attempt.why) };
        self.say(format!("{name}: {} in {took}{why}", attempt.pile.name()));
    }

    /// Tells whoever wants to know of a finding. It is in the index already.
    fn notify(&mut self, fingerprint: &str) {
        if self.settings().on_finding.is_empty() {
            return;
        }
        let all = fold::findings(&fold::nights(&self.lines), &self.terms.suite.known);
        let finding = all.into_iter().find(|finding| finding.fingerprint == fingerprint);
        self.out.extend(finding.map(|finding| Command::Notify(Box::new(finding))));
    }
}

/// What is started.
struct Process {
    name: String,
    build: Side,
    arguments: Vec<String>,
    deadline: Duration,
    runs: Option<PathBuf>,
}

/// What a run was made as.
struct Run<'a> {
    /// The case, or the planted bug.
    case: &'a str,
    repeat: u32,
    /// Which try.
    number: u32,
    seed: u64,
    started: Timestamp,
    /// What makes it by hand.
    command: String,
}

/// A time that an index or a clock says, in seconds; none that cannot be.
fn seconds(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or_default()
}

/// After how long a run of so long is ended.
fn patience(time_limit: Duration) -> Duration {
    time_limit.saturating_mul(PATIENCE).saturating_add(GRACE)
}

fn milliseconds(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

fn narrow(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

/// A flag and its value.
fn flag(name: &str, value: impl ToString) -> [String; 2] {
    [name.to_owned(), value.to_string()]
}

/// The last part of the path of a folder's own folder: what a run is called.
fn called(folder: &str) -> PathBuf {
    Path::new(folder).parent().and_then(Path::file_name).map(PathBuf::from).unwrap_or_default()
}
