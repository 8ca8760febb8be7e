//! A run in the simulator: the same schedule, the same load and the same folder, in virtual time.
//!
//! The ensemble is whatever the system has as one ([`VirtualEnsemble`]); what is different from a real
//! cluster is only where time comes from. Faults come from the same machine as everywhere, become conditions
//! of the world, and are proven by looking into it (`nemesis`). Everything after the run is the same code on
//! the same files.
//!
//! A run of half a minute takes a fraction of a second, and the same seed gives the same history and the same
//! faults, to the byte. What it can't show: real disks, real sockets, a real scheduler.

mod live;
mod nemesis;
mod proof;

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use checker::durability::FinalState;
use checker::history::{BAD_VERSION, Event as Line, EventKind, HistoryWriter};
use harness_core::load::Arrivals;
use harness_core::nemeses::{self, Answer, LaneId, Sight, Silence};
use harness_core::run::{Command, Early, Phase, Run};
use harness_core::virtual_ensemble::{Setting, VirtualEnsemble};
use runs::checks::promises::MINIMUM_EACH;
use runs::lag::Lag;
use runs::member::MemberId;
use runs::observed::Observed;
use runs::views::{self, Leader, View};
use workloads::{Op, Outcome, Workload};

use crate::clock::{RunNs, milliseconds, nanoseconds, whole_milliseconds};
use crate::config::Planted;
use crate::events::EventLog;
use crate::exit::Failure;
use crate::load::life::Life;
use crate::load::recorder::Calm;
use crate::nemesis::Schedule;
use crate::num::index;
use crate::progress::Load;
use crate::run::interrupt::Interrupt;
use crate::run::{self, Prepared, describe};
use crate::store::RunFolder;
use crate::store::folder::HistoryFile;
use crate::store::journal::Journal;
use crate::systems::CATALOGUE;
use harness_core::seed;
use live::Live;
use nemesis::Runner;

/// How long members may take to serve for the first time.
const START_PATIENCE: Duration = Duration::from_secs(20);
/// How long the first and the last operations may take.
const CALM_PATIENCE: Duration = Duration::from_secs(10);
/// How much longer for each of them: a member is asked for one key after the other, and a long run makes
/// thousands.
const EACH_PATIENCE: Duration = Duration::from_millis(200);
/// How often whoever is waited for is looked at, at the least, and how often the load is.
const LOOK_EVERY: Duration = Duration::from_millis(1);
/// Between two looks whether somebody interrupts, in virtual time, and between two words of progress.
const PROGRESS_EVERY: Duration = Duration::from_millis(250);
/// How long clients may take to end beyond their operation's time-out.
const STOP_PATIENCE: Duration = Duration::from_secs(2);

/// A run under way.
struct Virtual<'a> {
    prepared: &'a Prepared,
    world: Box<dyn VirtualEnsemble>,
    /// The workload, to ask about last reads: the world has one of its own that remembers.
    workload: Workload,
    members: Vec<MemberId>,
    events: EventLog,
    history: HistoryWriter<HistoryFile>,
    counts: Counts,
    /// What succeeded since the last fault was gone.
    calm: Calm,
    life: Life,
    /// What judges meanwhile, where a violation is to end the run.
    live: Option<Live>,
    /// What is waited for beside the load and the nemeses.
    task: Option<Task>,
}

/// What is done one after the other beside the load and the nemeses.
enum Task {
    SetUp(Sent),
    /// Clients leave, until this moment at the latest.
    Leaving(u64),
    /// These members are read.
    Reading(Vec<MemberId>, Sent),
}

/// Operations that are done at some members.
struct Sent {
    /// One for each member.
    one_offs: Vec<usize>,
    /// How many operations there are in each.
    todo: usize,
    until_us: u64,
}

/// Operations so far, for the progress.
#[derive(Default)]
struct Counts {
    due: u64,
    ok: u64,
    refused: u64,
    fail: u64,
    info: u64,
}

/// Runs it. Afterwards its folder holds everything that the verdict is drawn from.
pub fn execute(prepared: &Prepared, interrupt: &Interrupt) -> Result<(), Failure> {
    let options = &prepared.options;
    let members: Vec<MemberId> = (1..=u64::from(options.members())).map(MemberId).collect();
    let setting = Setting {
        seed: options.seed,
        members: index(u64::from(options.nodes)),
        observers: index(u64::from(options.observers)),
        peer_timeout_ms: whole_milliseconds(options.peer_timeout),
        session_timeout_ms: whole_milliseconds(describe::session_timeout(options)),
        operation_timeout_us: microseconds(options.op_timeout),
        clients: index(u64::from(options.concurrency)),
        bug: options.mutant.and_then(Planted::of_members),
    };
    let workload = describe::workload(options)?;
    let begin = CATALOGUE.world(&*options.system).ok_or_else(|| {
        Failure::usage(format!("--cluster sim: nobody has {} in virtual time", options.system.name()))
    })?;
    let world = begin(setting, workload.clone());
    nemesis::refuse_what_it_cannot(&*world, &prepared.schedule)?;
    let (path, file) = prepared.folder.begin_history(options.compress)?;
    let mut run = Virtual {
        prepared,
        world,
        workload,
        events: EventLog::new(&members),
        members,
        history: HistoryWriter::new(file),
        counts: Counts::default(),
        calm: Calm::default(),
        life: Life::default(),
        task: None,
        live: match options.fail_fast {
            true => Live::start(options.workload, options.promised().what, &path, &prepared.progress),
            false => None,
        },
    };
    let mut observed = Observed::default();
    let outcome = run.live(&prepared.schedule, interrupt, &mut observed);
    // Sealed whatever happened: what it holds is true.
    run.take_lines()?;
    observed.live = run.live.map(Live::finish);
    let sealed = run.history.finish().context("writing the history");
    outcome?;
    sealed?;
    RunFolder::write_json(&prepared.folder.observed(), &observed)?;
    Ok(())
}

fn microseconds(span: Duration) -> u64 {
    nanoseconds(span) / 1000
}

impl Virtual<'_> {
    fn live(
        &mut self,
        schedule: &Schedule,
        interrupt: &Interrupt,
        observed: &mut Observed,
    ) -> Result<(), Failure> {
        for member in self.members.clone() {
            self.world.start(member);
        }
        self.hear()?;
        if !self.wait(START_PATIENCE, |run| views::all_serve(&run.events.views()))? {
            let words = views::laggards(&self.events.views());
            return Err(anyhow!("the members do not serve: {words}").into());
        }
        observed.timings.start_ms = milliseconds(self.now_ns());
        self.prepared
            .progress
            .say(&format!("all members serve after {:.0} ms of virtual time", observed.timings.start_ms));
        let mut run = self.machine(schedule);
        let journal = Journal::create(&self.prepared.folder.faults())?;
        let mut nemeses = Runner::new(journal.clone(), &self.members);
        let mut look = self.world.now_us();
        loop {
            while self.turn(&mut run, &mut nemeses, observed)? {
                self.hear()?;
            }
            if run.is_over() {
                break;
            }
            let early = match (interrupt.was_asked(), self.must_end()) {
                (true, _) => Some(Early::Interrupted),
                (false, true) => Some(Early::Violation),
                (false, false) => None,
            };
            if let Some(why) = early.filter(|why| run.early() != Some(*why)) {
                run.end_early(self.now_ns(), why);
                continue;
            }
            if self.world.now_us() >= look {
                self.tell(&run);
                look += microseconds(PROGRESS_EVERY);
            }
            self.go_on(&run, &nemeses, look)?;
        }
        let moments = run.moments();
        observed.interrupted = interrupt.was_asked();
        observed.fault_lines = Some(journal.lines());
        observed.lag = Lag { operations: self.counts.due, ..Lag::default() };
        observed.shed = self.world.shed();
        observed.shut = self.world.shut();
        observed.workload_from_ns = moments.work_from;
        observed.workload_to_ns = moments.work_to;
        observed.timings.workload_ms = milliseconds(moments.work_to - moments.work_from);
        observed.timings.recovery_ms = milliseconds(moments.read - moments.work_to);
        observed.listened_until_ns = Some(self.now_ns());
        observed.events = self.events.events();
        observed.end_ns = self.now_ns();
        Ok(())
    }

    fn machine(&self, schedule: &Schedule) -> Run {
        let options = &self.prepared.options;
        let voters = index(u64::from(options.nodes)).min(self.members.len());
        let nemeses = nemeses::Terms {
            members: self.members.clone(),
            voters: self.members[..voters].to_vec(),
            servers: BTreeMap::new(),
            lose_unsynced: options.lose_unsynced,
            look_every_ns: nanoseconds(LOOK_EVERY),
            tells_leader: options.system.traits().tells_leader,
        };
        Run::new(run::terms(options, self.workload.records_sessions(), nemeses), schedule.clone())
    }

    /// Does something whose time has come. True when it did: what members said of it is to be heard before
    /// the next.
    fn turn(
        &mut self,
        run: &mut Run,
        nemeses: &mut Runner,
        observed: &mut Observed,
    ) -> Result<bool, Failure> {
        if let Some(command) = run.next(self.now_ns(), self) {
            self.carry_out(run, nemeses, command)?;
            return Ok(true);
        }
        if let Some(answer) = nemeses.seen(&*self.world, &self.events, self) {
            self.answer(run, answer);
            return Ok(true);
        }
        self.task_ends(run, observed)
    }

    fn answer(&self, run: &mut Run, (lane, answer): (LaneId, Answer)) {
        let now = self.now_ns();
        if let Some(machine) = run.nemeses() {
            machine.answered(lane, now, answer);
        }
    }

    fn carry_out(&mut self, run: &mut Run, nemeses: &mut Runner, command: Command) -> anyhow::Result<()> {
        match command {
            Command::SetUp => {
                let first = self.world.first_operations();
                let (process, member) = (0, [self.members[0]]);
                self.task = Some(Task::SetUp(self.one_offs(&member, process, &first)));
            }
            Command::OpenLoad(from, until) => {
                let options = &self.prepared.options;
                let arrivals = Arrivals::new(seed::stream(options.seed, "arrivals"), options.rate);
                let due = arrivals.scan(from, |at, gap| {
                    *at += nanoseconds(gap);
                    Some(*at / 1000)
                });
                self.world.begin_load(Box::new(due.take_while(move |at| *at < until / 1000)));
            }
            Command::EndArrivals => self.world.end_arrivals(),
            Command::CloseLoad => {
                self.world.end_load();
                let patience = self.prepared.options.op_timeout + STOP_PATIENCE;
                self.task = Some(Task::Leaving(self.world.now_us() + microseconds(patience)));
            }
            Command::Read(members) => {
                let (process, reads) = (self.world.next_process(), self.world.last_operations());
                let sent = self.one_offs(&members, process, &reads);
                self.task = Some(Task::Reading(members, sent));
            }
            Command::Nemesis(command) => {
                match &*command {
                    nemeses::Command::Say(words) => self.prepared.progress.say(words),
                    nemeses::Command::CalmBegins => self.calm = Calm::default(),
                    _ => {}
                }
                if let Some(answer) = nemeses.carry_out(&mut *self.world, *command)? {
                    self.answer(run, answer);
                }
            }
            Command::Step(phase) => {
                if let Some(words) = run::words(phase) {
                    self.prepared.progress.step(words);
                }
            }
            Command::Say(words) => self.prepared.progress.say(&words),
        }
        Ok(())
    }

    /// Lives on until there is something to do or to look at.
    fn go_on(&mut self, run: &Run, nemeses: &Runner, look: u64) -> anyhow::Result<()> {
        let now = self.world.now_us();
        let wake = run.wake(now * 1000).map(|at| at.div_ceil(1000));
        let waits = nemeses.watches() || self.task.is_some();
        let soon = waits.then(|| now + microseconds(LOOK_EVERY));
        let next = wake.into_iter().chain(soon).fold(look, u64::min);
        self.advance(next.max(now))
    }

    /// Whether a violation was seen that ends the run.
    fn must_end(&self) -> bool {
        self.live.as_ref().is_some_and(Live::ends_the_run)
    }

    fn now_ns(&self) -> RunNs {
        self.world.now_us() * 1000
    }

    /// Lives on until a moment or until there is news, and writes down what was said and seen.
    fn advance(&mut self, to_us: u64) -> anyhow::Result<()> {
        self.world.advance(to_us);
        self.hear()
    }

    fn hear(&mut self) -> anyhow::Result<()> {
        for stamped in self.world.take_events() {
            self.events.push(stamped);
        }
        self.take_lines()
    }

    fn take_lines(&mut self) -> anyhow::Result<()> {
        for mut line in self.world.take_lines() {
            self.counts.note(&line);
            self.calm.note(&line);
            self.life.note(&line);
            self.history.write(&mut line).context("writing the history")?;
            if let Some(live) = &mut self.live {
                live.push(line, self.world.now_us() * 1000, &mut || self.history.flush());
            }
        }
        Ok(())
    }

    /// Lives on until a condition holds. False when patience ran out first.
    fn wait(&mut self, patience: Duration, condition: impl Fn(&Self) -> bool) -> anyhow::Result<bool> {
        let deadline = self.world.now_us() + microseconds(patience);
        loop {
            if condition(self) {
                return Ok(true);
            }
            if self.world.now_us() >= deadline {
                return Ok(false);
            }
            let step = self.world.now_us() + 1000;
            self.advance(step.min(deadline))?;
        }
    }

    /// Sends for the same operations at each of these members, by processes from `process` on.
    fn one_offs(&mut self, members: &[MemberId], process: u64, todo: &[Op]) -> Sent {
        let mut one_offs = Vec::new();
        for (process, member) in (process..).zip(members) {
            one_offs.push(self.world.send_one_off(*member, process, todo.to_vec()));
        }
        let each = u32::try_from(todo.len()).unwrap_or(u32::MAX);
        let patience = CALM_PATIENCE.saturating_add(EACH_PATIENCE.saturating_mul(each));
        Sent { one_offs, todo: todo.len(), until_us: self.world.now_us() + microseconds(patience) }
    }

    /// What came of what was sent for, by one-off client; none while it is waited for. What took too long is
    /// missing.
    fn done(&self, sent: &Sent) -> Option<Vec<Vec<(Op, Outcome)>>> {
        let all: Vec<Option<&[(Op, Outcome)]>> =
            sent.one_offs.iter().map(|one_off| self.world.one_off(*one_off)).collect();
        let is_over = all.iter().all(Option::is_some) || self.world.now_us() >= sent.until_us;
        is_over.then(|| all.into_iter().map(|done| done.map(<[_]>::to_vec).unwrap_or_default()).collect())
    }

    /// Tells the run of what was waited for. True when it came to its end.
    fn task_ends(&mut self, run: &mut Run, observed: &mut Observed) -> Result<bool, Failure> {
        let now = self.now_ns();
        match &self.task {
            None => return Ok(false),
            Some(Task::SetUp(sent)) => {
                let Some(done) = self.done(sent) else { return Ok(false) };
                refuse_an_unfinished_set_up(sent.todo, &done.concat())?;
                run.was_set_up(now);
            }
            Some(Task::Leaving(_)) if self.world.is_quiet() => run.clients_left(now),
            Some(Task::Leaving(until_us)) if self.world.now_us() < *until_us => return Ok(false),
            Some(Task::Leaving(_)) => return Err(anyhow!("clients do not end").into()),
            Some(Task::Reading(members, sent)) => {
                let Some(rounds) = self.done(sent) else { return Ok(false) };
                let states: Vec<FinalState> = members
                    .iter()
                    .zip(&rounds)
                    .flat_map(|(member, read)| read.iter().map(move |read| (member, read)))
                    .filter_map(|(member, (read, told))| self.workload.final_state(member.0, read, told))
                    .collect();
                let all = states.len() == members.len() * sent.todo;
                run.was_read(now, all && self.workload.is_settled(&states));
                observed.finals = states;
            }
        }
        self.task = None;
        Ok(true)
    }

    fn tell(&self, run: &Run) {
        if run.phase() != Phase::Work {
            return;
        }
        let Counts { ok, refused, fail: failed, info: unknown, .. } = self.counts;
        let leader = self.events.leader().map(|leader| (leader.id.0, leader.epoch));
        let load = Load { ok, refused, failed, unknown, leader, ..Load::default() };
        let elapsed = Duration::from_nanos(self.now_ns() - run.moments().work_from);
        self.prepared.progress.advance(elapsed, self.prepared.options.time_limit, &load);
    }
}

impl Sight for Virtual<'_> {
    fn views(&self) -> BTreeMap<MemberId, View> {
        self.events.views()
    }

    fn leader(&self) -> Option<Leader> {
        self.events.leader()
    }

    fn load_has_shown(&self) -> bool {
        self.calm.shows(self.prepared.options.workload.functions(), MINIMUM_EACH)
    }

    fn silence(&self) -> Option<Silence> {
        self.life.silence(self.now_ns())
    }
}

fn refuse_an_unfinished_set_up(wanted: usize, done: &[(Op, Outcome)]) -> anyhow::Result<()> {
    if done.len() < wanted {
        bail!("creating {wanted} keys took too long although nothing is broken");
    }
    match done.iter().find(|(_, outcome)| outcome.kind != EventKind::Ok) {
        Some((op, outcome)) => {
            bail!("creating key {} ended as {:?} although nothing is broken", op.key, outcome.kind)
        }
        None => Ok(()),
    }
}

impl Counts {
    fn note(&mut self, line: &Line) {
        let count = match line.kind {
            EventKind::Invoke => {
                self.due += u64::from(line.due.is_some());
                return;
            }
            EventKind::Ok => &mut self.ok,
            EventKind::Fail if line.error.as_deref() == Some(BAD_VERSION) => &mut self.refused,
            EventKind::Fail => &mut self.fail,
            EventKind::Info => &mut self.info,
        };
        *count += 1;
    }
}
