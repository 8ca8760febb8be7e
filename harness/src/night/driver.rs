//! A night at work: what [`Scheduler`] decides is carried out, and what came of it is said to it.
//!
//! The driver starts processes, reads the folders that they leave, appends to the index, and says when. Every
//! decision is the scheduler's.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::Context;
use nights::fold;
use nights::pile::Pile;
use nights::scheduler::{Bug, Command, Made, Moment, Order, Scheduler, Side, Terms};
use nights::suite::{Known, Retention};

use super::beginning::{self, Beginning};
use super::build::{self, Build};
use super::child;
use super::children::Children;
use super::files::Report;
use super::hook;
use super::record;
use super::settings::Orders;
use super::store::Store;
use crate::exit::{Exit, Failure};
use crate::progress::Progress;
use crate::run::interrupt::Interrupt;

/// A night that goes on.
struct Driver {
    store: Store,
    build: Build,
    /// The executable of the build of before that was found last.
    earlier: PathBuf,
    on_finding: Vec<String>,
    /// The folder of the night.
    folder: PathBuf,
    interrupt: Rc<Interrupt>,
    progress: Progress,
    /// When it began, or went on.
    begun: Instant,
    /// What it had taken before it went on.
    before: Duration,
    children: Children,
    /// Where the run folders will be of what is under way.
    runs: BTreeMap<u64, PathBuf>,
    /// The first thing that could not be done.
    failure: Option<Failure>,
}

/// How a night ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Finished {
    /// All nights of the store.
    pub report: Report,
    /// The exit status.
    pub status: Exit,
}

/// Runs a night.
///
/// # Errors
///
/// A usage failure before anything is started; a failure of the harness when the index can't be written.
pub fn run(orders: Orders, progress: &Progress) -> Result<Finished, Failure> {
    let (store, lines) = Store::take(&orders.store)?;
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().context("starting the runtime")?;
    let local = tokio::task::LocalSet::new();
    local.block_on(&runtime, async {
        let words = "interrupted: the runs that go on heal and end, then the night is written; once more \
                     ends at once, and `harness night --resume` goes on";
        let interrupt = Interrupt::listen_and_say(progress.clone(), words, || {})?;
        let nights = fold::nights(&lines);
        let Beginning { orders, build, going_on } =
            Beginning::of(orders, store.path(), nights.last(), progress)?;
        let goes_on = going_on.is_some();
        let before = going_on.as_ref().map_or(Duration::ZERO, beginning::spent);
        let now = jiff::Timestamp::now();
        let begun = match going_on {
            Some(night) => night.begun,
            None => beginning::first_line(&orders, &nights, &build, now)?,
        };
        let mut driver = Driver {
            folder: store.night(&begun.night),
            store,
            build,
            earlier: PathBuf::new(),
            on_finding: orders.suite.settings.on_finding.clone(),
            interrupt: Rc::new(interrupt),
            progress: progress.clone(),
            begun: Instant::now(),
            before,
            children: Children::default(),
            runs: BTreeMap::new(),
            failure: None,
        };
        let terms = Terms {
            begun,
            goes_on,
            build: driver.build.name.clone(),
            budget: orders.budget,
            suite: orders.suite.clone(),
            store: driver.store.path().to_owned(),
            bugs: bugs(),
        };
        let retention = orders.suite.settings.retention;
        let known = orders.suite.known.clone();
        let mut night = Scheduler::new(terms, Box::new(orders), lines, driver.now());
        driver.drive(&mut night).await;
        progress.clear();
        driver.finish(&night, retention, &known)
    })
}

/// The planted bugs that real members can show.
fn bugs() -> Vec<Bug> {
    let bug = |bug: &lab_mutants::Mutant| {
        let recipe = bug.recipe().ok()?;
        let [nemesis, workload, flags] = [recipe.nemesis, recipe.workload, recipe.flags].map(str::to_owned);
        Some(Bug { name: bug.name().to_owned(), nemesis, workload, flags, tries: recipe.tries })
    };
    lab_mutants::ALL.iter().filter_map(bug).collect()
}

impl Driver {
    fn now(&self) -> Moment {
        Moment { utc: jiff::Timestamp::now(), spent: self.before.saturating_add(self.begun.elapsed()) }
    }

    /// Carries out what is decided until the night is over.
    async fn drive(&mut self, night: &mut Scheduler) {
        loop {
            if self.interrupt.was_asked() {
                night.interrupt();
            }
            while let Some(command) = night.next(self.now()) {
                self.carry_out(night, command);
            }
            // An interrupt ends what is under way, so that there is nothing else to wait for.
            let Some((id, ended)) = self.children.next().await else { return };
            if self.interrupt.was_asked() {
                night.interrupt();
            }
            match ended {
                Ok(ended) => {
                    let made = self.made(id);
                    night.ended(id, self.now(), &ended, made);
                }
                Err(error) => self.fails(night, Some(id), error),
            }
        }
    }

    fn carry_out(&mut self, night: &mut Scheduler, command: Command) {
        match command {
            Command::Start(order) => self.start(order),
            Command::Find(name) => {
                let found = build::earlier(self.store.path(), &name);
                night.found(found.map(|executable| self.earlier = executable));
            }
            Command::Read(folder) => {
                let record = record::read(&self.store.path().join(folder));
                night.was_read(self.now(), record);
            }
            Command::Write(line) => {
                if let Err(error) = self.store.append(&line) {
                    self.fails(night, None, error);
                }
            }
            Command::Notify(finding) => {
                if let Err(error) = hook::notify(&self.on_finding, &finding) {
                    self.progress.say(&error);
                }
            }
            Command::Step(words) => self.progress.step(&words),
            Command::Say(words) => self.progress.say(&words),
        }
    }

    fn start(&mut self, order: Order) {
        let Order { id, name, build, arguments, deadline, runs } = order;
        let executable = match build {
            Side::Tonight => &self.build.executable,
            Side::Earlier => &self.earlier,
        };
        self.runs.extend(runs.map(|runs| (id, runs)));
        let log = self.folder.join("log").join(format!("{name}.log"));
        let process = child::Order { executable: executable.clone(), arguments, log, deadline };
        let interrupt = Rc::clone(&self.interrupt);
        self.children.start(id, async move { child::run(&process, &interrupt).await });
    }

    /// What a process left.
    fn made(&mut self, id: u64) -> Made {
        let Some(folder) = self.runs.remove(&id).and_then(|runs| record::newest(&runs)) else {
            return Made::default();
        };
        Made { folder: self.store.relative(&folder), record: record::read(&folder) }
    }

    fn fails(&mut self, night: &mut Scheduler, process: Option<u64>, error: anyhow::Error) {
        let failure = Failure::from(error);
        night.failed(process, failure.to_string());
        self.failure.get_or_insert(failure);
    }

    /// Writes what came out of the night. What there is is drawn even when the night itself failed, and then
    /// it is not over: it can go on.
    fn finish(self, night: &Scheduler, retention: Retention, known: &[Known]) -> Result<Finished, Failure> {
        let Some(finished) = night.finished() else {
            return Err(anyhow::anyhow!("the night did not come to its end").into());
        };
        let status = match finished.pile {
            Pile::Violation => Exit::Invalid,
            _ if finished.interrupted => Exit::Interrupted,
            pile => Exit::from(pile),
        };
        if let Err(error) = self.store.prune(&finished.nights, retention) {
            self.progress.say(&format!("not all of what old nights left could be removed: {error}"));
        }
        let report = Report::of(self.store.path(), finished.nights.clone(), known);
        let written = report.write(self.store.path()).context("writing the page of the nights");
        match self.failure {
            // A violation wins over a failure of the bench.
            Some(failure) if status == Exit::Invalid => self.progress.say(&failure.to_string()),
            Some(failure) => return Err(failure),
            None => {}
        }
        written?;
        Ok(Finished { report, status })
    }
}
