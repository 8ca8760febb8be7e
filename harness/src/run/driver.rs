//! Carries out on real members what a run decides ([`harness_core::run`]).
//!
//! The machine is asked in one task, whenever somebody answered, members said something, or a moment has
//! come. What the nemeses do has tasks of its own ([`crate::nemesis::runner`]), and so has each client; the
//! pacer has a thread. So nothing that is done here delays a fault or an operation.

use std::collections::BTreeMap;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::{Context, anyhow};
use checker::durability::FinalState;
use harness_core::fault::application::Holder;
use harness_core::nemeses::{self, Sight, Silence};
use harness_core::run::{Command, Early, Phase, Run};
use runs::checks::promises::MINIMUM_EACH;
use runs::member::MemberId;
use runs::observed::{CommandEnd, Observed};
use runs::template::TemplateRun;
use runs::views::{self, Leader, View};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;

use super::Prepared;
use super::interrupt::Interrupt;
use crate::clock::{RunNs, milliseconds, nanoseconds};
use crate::config;
use crate::exit::Failure;
use crate::judge::live::Live;
use crate::load::client::LoadClient;
use crate::load::pacer::Pacer;
use crate::load::{self, Readers, Shared};
use crate::nemesis::runner::{Answered, Runner, Tools};
use crate::num::index;
use crate::progress::Load;
use crate::store::journal::Journal;
use crate::wrap;
use crate::wrap::template::{self, Turn};
use harness_core::seed;

/// How often progress is told.
const TELL_EVERY: Duration = Duration::from_millis(250);
/// What is done when the faults are over and the command is not.
const WAITING: &str = "no more faults; waiting for the command to end";
/// What is done when the faults are over and test commands have their last turn.
const LAST_TURN: &str = "no more faults; test commands have their last turn";
/// How long it may take until somebody says that the system is set up, where its file does not say.
const SETUP_PATIENCE: Duration = Duration::from_secs(60);
/// How long clients may take to end beyond their operation's time-out.
const STOP_PATIENCE: Duration = Duration::from_secs(2);
/// How often the load is looked at while it is waited for.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// What carries a run out.
pub(super) struct Driver<'a> {
    pub(super) prepared: &'a Prepared,
    pub(super) shared: &'a Shared,
    pub(super) journal: Journal,
    /// What judges meanwhile.
    pub(super) live: Option<&'a Live>,
}

/// What of the load has a beginning and an end.
struct Works {
    /// Tells clients that it is over.
    stop: watch::Sender<bool>,
    clients: JoinSet<()>,
    pacer: Option<Pacer>,
    /// The user's test, where one works in their place.
    test: JoinSet<Result<TestEnd, Failure>>,
    /// Whose turn it is, for test commands.
    turn: watch::Sender<Turn>,
    /// Completes when test commands have nothing more to do before faults are over.
    done: Option<oneshot::Receiver<()>>,
}

/// How a test of the user's own ended.
enum TestEnd {
    /// A command.
    Command(CommandEnd),
    /// Test commands in containers.
    Template(Box<TemplateRun>),
}

impl TestEnd {
    fn noted(self, observed: &mut Observed) {
        match self {
            Self::Command(end) => observed.command = Some(end),
            Self::Template(ran) => observed.template = Some(*ran),
        }
    }
}

impl Works {
    /// Nobody works yet.
    fn idle() -> Self {
        Self {
            stop: watch::Sender::new(false),
            clients: JoinSet::new(),
            pacer: None,
            test: JoinSet::new(),
            turn: watch::Sender::new(Turn::First),
            done: None,
        }
    }
}

/// What is done one after the other beside the load and the nemeses.
type Task<'a> = Pin<Box<dyn Future<Output = Result<Done, Failure>> + Send + 'a>>;

enum Done {
    SetUp,
    Left(Option<TestEnd>),
    Read(Readers, Vec<FinalState>),
}

impl Sight for Driver<'_> {
    fn views(&self) -> BTreeMap<MemberId, View> {
        self.shared.cluster.events().views()
    }

    fn leader(&self) -> Option<Leader> {
        self.shared.cluster.events().leader()
    }

    fn holder(&self) -> Option<Holder> {
        self.shared.applications.as_ref()?.holder()
    }

    fn load_has_shown(&self) -> bool {
        if !self.has_clients() {
            // What a command shows nobody knows before its end.
            return true;
        }
        let functions = self.prepared.options.workload.functions();
        self.shared.recorder.succeeded_in_calm(functions, MINIMUM_EACH)
    }

    fn silence(&self) -> Option<Silence> {
        if self.has_clients() { self.shared.recorder.silence() } else { None }
    }
}

/// A run on its way: the machine that decides, and what carries out its commands.
struct Course<'d> {
    run: Run,
    nemeses: Runner,
    works: Works,
    /// What was begun and is waited for.
    task: Option<Task<'d>>,
    readers: Option<Readers>,
    /// Why a nemesis could not go on.
    broken_off: Option<anyhow::Error>,
}

impl Course<'_> {
    fn new(driver: &Driver<'_>) -> Self {
        let shared = &driver.shared;
        Self {
            run: driver.machine(),
            nemeses: Runner::new(Tools {
                cluster: Arc::clone(&shared.cluster),
                applications: shared.applications.clone(),
                journal: driver.journal.clone(),
                clock: shared.clock,
                recorder: shared.recorder.clone(),
                progress: driver.prepared.progress.clone(),
            }),
            works: Works::idle(),
            task: None,
            readers: None,
            broken_off: None,
        }
    }

    /// A nemesis did what it was told, or could not.
    fn nemesis_answers(&mut self, answer: Option<Answered>, now: RunNs) {
        match (answer, self.run.nemeses()) {
            (Some((lane, Ok(answer))), Some(machine)) => machine.answered(lane, now, answer),
            (Some((lane, Err(error))), Some(machine)) => {
                // The others heal what is theirs.
                machine.failed(lane);
                self.breaks_off(error, now);
            }
            (None, _) | (_, None) => {}
        }
    }

    fn breaks_off(&mut self, error: anyhow::Error, now: RunNs) {
        self.run.end_early(now, Early::Failed);
        self.broken_off.get_or_insert(error);
    }
}

impl Driver<'_> {
    /// From the first operation to the last. What was seen is in `observed` afterwards.
    pub(super) async fn run(&self, interrupt: &Interrupt, observed: &mut Observed) -> Result<(), Failure> {
        let clock = self.shared.clock;
        let mut course = Course::new(self);
        let mut news = self.shared.cluster.events().news();
        let mut tick = tokio::time::interval(TELL_EVERY);
        tick.set_missed_tick_behavior(MissedTickBehavior::Skip);
        let (mut interrupted, mut violated) = (pin!(interrupt.asked()), pin!(self.violation()));
        let (mut is_interrupted, mut is_violated) = (false, false);
        loop {
            while let Some(command) = course.run.next(clock.now(), self) {
                self.carry_out(&mut course, command, observed)?;
            }
            if course.run.is_over() {
                break;
            }
            let moment = course.run.wake(clock.now());
            tokio::select! {
                answer = course.nemeses.next() => course.nemesis_answers(answer, clock.now()),
                end = end_of(&mut course.works.test) => {
                    end?.noted(observed);
                    course.run.work_is_done(clock.now());
                }
                done = next_of(&mut course.task) => {
                    course.task = None;
                    self.is_done(&mut course, done?, observed);
                }
                () = done(&mut course.works.done) => course.run.work_is_done(clock.now()),
                () = self.until(moment) => {}
                // The sender lives in the cluster, so it can't be gone.
                _ = news.changed() => {}
                _ = tick.tick() => self.tell(&course.run),
                () = &mut interrupted, if !is_interrupted => {
                    is_interrupted = true;
                    course.run.end_early(clock.now(), Early::Interrupted);
                    if !self.has_clients() {
                        course.works.stop.send_replace(true);
                        course.works.turn.send_replace(Turn::Stop);
                    }
                }
                () = &mut violated, if !is_violated => {
                    is_violated = true;
                    course.run.end_early(clock.now(), Early::Violation);
                }
            }
        }
        if let Some(error) = course.broken_off {
            return Err(error.context("the nemesis failed").into());
        }
        let moments = course.run.moments();
        observed.shed = self.shared.load.rules().shed();
        observed.shut = self.shared.load.rules().shut();
        observed.workload_from_ns = moments.work_from;
        observed.workload_to_ns = moments.work_to;
        observed.machine_load = super::describe::machine_load();
        observed.timings.workload_ms = milliseconds(moments.work_to - moments.work_from);
        observed.timings.recovery_ms = milliseconds(moments.read - moments.work_to);
        Ok(())
    }

    /// Does what the run wants done, or begins to.
    fn carry_out<'d>(
        &'d self,
        course: &mut Course<'d>,
        command: Command,
        observed: &mut Observed,
    ) -> Result<(), Failure> {
        match command {
            Command::SetUp => match &self.prepared.options.template {
                Some(template) => {
                    let ready = self.start_template(&mut course.works, template)?;
                    // What ends it instead is told by its end.
                    course.task =
                        Some(Box::pin(async { Ok(ready.await.map_or(Done::SetUp, |()| Done::SetUp)) }));
                }
                None => course.task = Some(Box::pin(self.set_up())),
            },
            Command::OpenLoad(..) if self.prepared.options.template.is_some() => {
                turns(&course.works.turn, Turn::Drivers);
            }
            Command::OpenLoad(..) if !self.has_clients() => self.start_command(&mut course.works),
            Command::OpenLoad(from, until) => self.open_load(&mut course.works, (from, until))?,
            Command::EndArrivals => course.works.pacer.iter().for_each(Pacer::stop),
            Command::CloseLoad => {
                if let Some(pacer) = course.works.pacer.take() {
                    observed.lag = pacer.finish()?;
                }
                if self.has_clients() {
                    course.works.stop.send_replace(true);
                }
                turns(&course.works.turn, Turn::Last);
                self.shared.load.close();
                let (clients, test) =
                    (std::mem::take(&mut course.works.clients), std::mem::take(&mut course.works.test));
                course.task = Some(Box::pin(self.wait_for_clients(clients, test)));
            }
            Command::Read(members) => {
                course.task = Some(Box::pin(self.read(course.readers.take(), members)));
            }
            Command::Nemesis(command) => {
                if let Err(error) = course.nemeses.carry_out(*command) {
                    course.breaks_off(error, self.shared.clock.now());
                }
            }
            Command::Step(phase) => self.tell_step(phase),
            Command::Say(words) => self.prepared.progress.say(&words),
        }
        Ok(())
    }

    /// What was begun has come to its end.
    fn is_done(&self, course: &mut Course<'_>, done: Done, observed: &mut Observed) {
        let now = self.shared.clock.now();
        match done {
            Done::SetUp => course.run.was_set_up(now),
            Done::Left(end) => {
                if let Some(end) = end {
                    end.noted(observed);
                }
                course.run.clients_left(now);
            }
            Done::Read(these, states) => {
                course.run.was_read(now, these.are_settled(self.shared, &states));
                observed.finals = states;
                course.readers = Some(these);
            }
        }
    }

    fn machine(&self) -> Run {
        let cluster = &self.shared.cluster;
        let nemeses = nemeses::Terms {
            members: cluster.members().to_vec(),
            voters: cluster.voters().to_vec(),
            servers: cluster.servers(),
            lose_unsynced: self.prepared.options.lose_unsynced,
            look_every_ns: nanoseconds(LOOK_EVERY),
            tells_leader: self.prepared.options.system.traits().tells_leader,
        };
        let records_sessions = self.shared.load.rules().workload().records_sessions();
        let terms = super::terms(&self.prepared.options, records_sessions, nemeses);
        Run::new(terms, self.prepared.schedule.clone())
    }

    async fn until(&self, moment: Option<RunNs>) {
        match moment {
            Some(moment) => tokio::time::sleep_until(self.shared.clock.instant(moment).into()).await,
            None => std::future::pending().await,
        }
    }

    /// Completes when a violation was seen that ends the run.
    async fn violation(&self) {
        match self.live {
            Some(live) => live.ends_the_run().await,
            None => std::future::pending().await,
        }
    }

    async fn set_up(&self) -> Result<Done, Failure> {
        load::set_up(self.shared).await.context("creating the keys")?;
        Ok(Done::SetUp)
    }

    fn open_load(&self, works: &mut Works, span: (RunNs, RunNs)) -> anyhow::Result<()> {
        let options = &self.prepared.options;
        let queue = &self.shared.load;
        queue.rules().open();
        for number in 0..index(u64::from(options.concurrency)) {
            let client = LoadClient::new(self.shared.clone(), number);
            works.clients.spawn(client.run(works.stop.subscribe()));
        }
        let rng = seed::stream(options.seed, "arrivals");
        works.pacer = Some(Pacer::start(Arc::clone(queue), self.shared.clock, span, options.rate, rng)?);
        Ok(())
    }

    /// Whether the bench's own clients work on the members, and no command of the user's.
    fn has_clients(&self) -> bool {
        self.prepared.options.workload.has_clients()
    }

    /// Lets the user's command begin.
    fn start_command(&self, works: &mut Works) {
        let settings = wrap::Settings {
            words: self.prepared.options.command.clone().unwrap_or_default(),
            members: super::found(&*self.shared.cluster),
            folder: self.prepared.folder.path().to_owned(),
            token: self.prepared.token.clone(),
        };
        let (clock, progress) = (self.shared.clock, self.prepared.progress.clone());
        let running = wrap::run(settings, clock, progress, works.stop.subscribe());
        works.test.spawn(async { Ok(TestEnd::Command(running.await?)) });
    }

    /// Lets test commands begin with the first. What is given completes when faults may begin.
    fn start_template(
        &self,
        works: &mut Works,
        template: &config::Template,
    ) -> Result<oneshot::Receiver<()>, Failure> {
        let shared = &self.shared;
        let no_containers = || anyhow!("the {} cluster has no containers to run in", shared.cluster.name());
        let settings = template::Settings {
            containers: shared.cluster.containers().ok_or_else(no_containers)?,
            template: template.clone(),
            dice: seed::stream(self.prepared.options.seed, "composer"),
            folder: self.prepared.folder.path().to_owned(),
            events: shared.cluster.events().clone(),
            patience: shared.system.start_patience().unwrap_or(SETUP_PATIENCE),
            clock: shared.clock,
            progress: self.prepared.progress.clone(),
        };
        let ((ready, is_ready), (done, is_done)) = (oneshot::channel(), oneshot::channel());
        works.done = Some(is_done);
        let waiting = template::Waiting { ready: Some(ready), done: Some(done) };
        let running = template::run(settings, works.turn.subscribe(), waiting);
        works.test.spawn(async { Ok(TestEnd::Template(Box::new(running.await?))) });
        Ok(is_ready)
    }

    /// Waits for every client, and for a test as long as it takes.
    async fn wait_for_clients(
        &self,
        mut clients: JoinSet<()>,
        mut test: JoinSet<Result<TestEnd, Failure>>,
    ) -> Result<Done, Failure> {
        let all = async {
            while let Some(ended) = clients.join_next().await {
                ended.context("a client panicked")?;
            }
            anyhow::Ok(())
        };
        let patience = self.prepared.options.op_timeout + STOP_PATIENCE;
        tokio::time::timeout(patience, all).await.map_err(|_| anyhow!("clients do not end"))??;
        let end = match test.join_next().await {
            Some(end) => Some(end.context("waiting for the test")??),
            None => None,
        };
        Ok(Done::Left(end))
    }

    async fn read(&self, readers: Option<Readers>, members: Vec<MemberId>) -> Result<Done, Failure> {
        let mut readers = match readers {
            Some(readers) => readers,
            None => Readers::connect(self.shared, &members).await,
        };
        let states = readers.read(self.shared).await;
        Ok(Done::Read(readers, states))
    }

    fn tell_step(&self, phase: Phase) {
        let progress = &self.prepared.progress;
        match phase {
            Phase::Work if !self.has_clients() => progress.step(&self.command_in_words()),
            Phase::Leaving if self.prepared.options.template.is_some() => progress.step(LAST_TURN),
            Phase::Leaving if !self.has_clients() => progress.step(WAITING),
            // Nothing is made, and nothing is read.
            Phase::SetUp | Phase::Reading if !self.has_clients() => {}
            phase => super::words(phase).into_iter().for_each(|words| progress.step(words)),
        }
    }

    /// How the command and the members are.
    fn command_in_words(&self) -> String {
        let runs = match self.prepared.options.template {
            Some(_) => "test commands run",
            None => "the command runs",
        };
        match self.leader() {
            Some(leader) => format!("{runs}; n{} leads epoch {}", leader.id.0, leader.epoch),
            None if self.shared.system.traits().tells_leader => format!("{runs}; no leader"),
            None => runs.to_owned(),
        }
    }

    fn tell(&self, run: &Run) {
        let progress = &self.prepared.progress;
        match run.phase() {
            Phase::Work if !self.has_clients() => progress.step_goes_on(&self.command_in_words()),
            Phase::Work => {
                let counts = self.shared.recorder.counts();
                let load = Load {
                    ok: counts.ok.load(Ordering::Relaxed),
                    refused: counts.refused.load(Ordering::Relaxed),
                    failed: counts.fail.load(Ordering::Relaxed),
                    unsent: counts.unsent.load(Ordering::Relaxed),
                    unknown: counts.info.load(Ordering::Relaxed),
                    has_no_roles: !self.shared.system.traits().tells_leader,
                    leader: self.leader().map(|leader| (leader.id.0, leader.epoch)),
                    live: self.live.map(Live::words),
                };
                let elapsed = self.shared.clock.now().saturating_sub(run.moments().work_from);
                progress.advance(Duration::from_nanos(elapsed), self.prepared.options.time_limit, &load);
            }
            Phase::Settling => {
                let views = self.views();
                if !views::all_serve(&views) {
                    let words = views::laggards(&views);
                    progress.step_goes_on(&format!("waiting until all members serve: {words}"));
                }
            }
            Phase::SetUp
            | Phase::Healing
            | Phase::Showing
            | Phase::Leaving
            | Phase::Reading
            | Phase::Over => {}
        }
    }
}

/// The end of the test, once it came; never where none runs.
async fn end_of(test: &mut JoinSet<Result<TestEnd, Failure>>) -> Result<TestEnd, Failure> {
    match test.join_next().await {
        Some(end) => end.context("waiting for the test")?,
        None => std::future::pending().await,
    }
}

/// Completes once, when test commands have nothing more to do; never where none run.
async fn done(done: &mut Option<oneshot::Receiver<()>>) {
    let came = match done {
        Some(done) => done.await,
        None => std::future::pending().await,
    };
    *done = None;
    if came.is_err() {
        // Its end tells more.
        std::future::pending().await
    }
}

/// Gives the next turn, unless somebody stopped it.
fn turns(turn: &watch::Sender<Turn>, next: Turn) {
    turn.send_if_modified(|now| {
        let goes_on = *now != Turn::Stop;
        if goes_on {
            *now = next;
        }
        goes_on
    });
}

async fn next_of(task: &mut Option<Task<'_>>) -> Result<Done, Failure> {
    match task {
        Some(task) => task.await,
        None => std::future::pending().await,
    }
}
