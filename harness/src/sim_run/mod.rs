//! A run in the simulator: the same schedule, the same load and the same folder, in virtual time.
//!
//! The members are the real core in one thread ([`harness_sim::planned`]); what is different from a real cluster is
//! only where time comes from. Faults come from the same machine as everywhere, and are proven by looking into the
//! world (`nemesis`); what members say becomes the events that a real member prints (`said`). Everything after the
//! run is the same code on the same files.
//!
//! A run of half a minute takes a fraction of a second, and the same seed gives the same history and the same
//! faults, to the byte. What it can't show: real disks, real sockets, a real scheduler.

mod live;
mod nemesis;
mod proof;
mod said;

use std::fs::File;
use std::io::BufWriter;
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use checker::durability::FinalState;
use checker::history::{BAD_VERSION, Event as Line, EventKind, HistoryWriter};
use harness_core::load::Arrivals;
use harness_sim::planned::{self, Ensemble, Setting};
use node_wire::ids::ServerId;
use runs::lag::Lag;
use runs::member::MemberId;
use runs::observed::Observed;
use runs::views;
use workloads::{Op, Outcome, Workload};

use crate::clock::{RunNs, nanoseconds, whole_milliseconds};
use crate::events::EventLog;
use crate::exit::Failure;
use crate::load::recorder::Calm;
use crate::nemesis::Schedule;
use crate::nemesis::journal::Journal;
use crate::num::index;
use crate::progress::Load;
use crate::run::interrupt::Interrupt;
use crate::run::{INTERRUPTED_PATIENCE, Prepared, RECOVERY_PATIENCE, describe};
use crate::seed;
use crate::store::RunFolder;
use live::Live;
use nemesis::{Nemeses, Scene};

/// How long members may take to serve for the first time.
const START_PATIENCE: Duration = Duration::from_secs(20);
/// How long the first and the last operations may take.
const CALM_PATIENCE: Duration = Duration::from_secs(10);
/// How long sessions may take to expire beyond their time-out, and the longest that is demanded of them.
const EXPIRY_PATIENCE: Duration = Duration::from_nanos(workloads::ephemeral::EXPIRY_BOUND_NS);
/// How much longer for each of them: a member is asked for one key after the other, and a long run makes thousands.
const EACH_PATIENCE: Duration = Duration::from_millis(200);
/// The pause between two rounds of last reads.
const PAUSE: Duration = Duration::from_millis(20);
/// Between two looks whether somebody interrupts, in virtual time, and between two words of progress.
const LOOK: Duration = Duration::from_millis(250);
/// How long clients may take to end beyond their operation's time-out.
const FAREWELL: Duration = Duration::from_secs(2);

/// A member by the id that it has in its world.
fn server(member: MemberId) -> ServerId {
    ServerId(member.0)
}

/// A run under way.
struct Virtual<'a> {
    prepared: &'a Prepared,
    world: Box<dyn Ensemble>,
    /// The workload, to ask about last reads: the world has one of its own that remembers.
    workload: Workload,
    members: Vec<MemberId>,
    events: EventLog,
    history: HistoryWriter<BufWriter<File>>,
    counts: Counts,
    /// What succeeded since the last fault was gone.
    calm: Calm,
    /// What judges meanwhile, where a violation is to end the run.
    live: Option<Live>,
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
        plant: options.plant.and_then(crate::config::Plant::of_members),
    };
    let workload = describe::workload(options)?;
    let world = planned::begin(setting, workload.clone());
    let path = prepared.folder.history();
    let file = File::create(&path).with_context(|| format!("creating {}", path.display()))?;
    let mut run = Virtual {
        prepared,
        world,
        workload,
        events: EventLog::new(&members),
        members,
        history: HistoryWriter::new(BufWriter::new(file)),
        counts: Counts::default(),
        calm: Calm::default(),
        live: if options.fail_fast { Live::start(options.workload, &path, &prepared.progress) } else { None },
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

/// Virtual time in milliseconds, for people.
fn milliseconds(us: u64) -> f64 {
    Duration::from_micros(us).as_secs_f64() * 1e3
}

impl Virtual<'_> {
    fn live(
        &mut self,
        schedule: &Schedule,
        interrupt: &Interrupt,
        observed: &mut Observed,
    ) -> Result<(), Failure> {
        for member in self.members.clone() {
            self.world.start(server(member));
        }
        self.hear()?;
        if !self.wait(START_PATIENCE, |run| views::all_serve(&run.events.views()))? {
            let words = views::laggards(&self.events.views());
            return Err(anyhow!("the members do not serve: {words}").into());
        }
        observed.timings.start_ms = milliseconds(self.world.now_us());
        self.prepared
            .progress
            .say(&format!("all members serve after {:.0} ms of virtual time", observed.timings.start_ms));
        self.set_up()?;
        let begun = self.world.now_us();
        self.workload(schedule, interrupt, observed)?;
        observed.timings.workload_ms = milliseconds(self.world.now_us() - begun);
        observed.interrupted = interrupt.was_asked();
        let begun = self.world.now_us();
        self.end(observed)?;
        observed.timings.recovery_ms = milliseconds(self.world.now_us() - begun);
        observed.listened_until_ns = Some(self.now_ns());
        observed.events = self.events.events();
        observed.end_ns = self.now_ns();
        Ok(())
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
        for news in self.world.take_news() {
            for stamped in said::stamped(news) {
                self.events.push(stamped);
            }
        }
        self.take_lines()
    }

    fn take_lines(&mut self) -> anyhow::Result<()> {
        for mut line in self.world.take_lines() {
            self.counts.note(&line);
            self.calm.note(&line);
            self.history.write(&mut line).context("writing the history")?;
            if let Some(live) = &mut self.live {
                // At an alarm the history is read again from the disk.
                self.history.flush().context("writing the history")?;
                live.push(line, self.world.now_us() * 1000);
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

    /// Creates every key, at the first member.
    fn set_up(&mut self) -> anyhow::Result<()> {
        let first = self.world.first_operations();
        let done = self.errands(&[self.members[0]], 0, &first)?.concat();
        if done.len() < first.len() {
            bail!("creating {} keys took too long although nothing is broken", first.len());
        }
        for (op, outcome) in done {
            if outcome.kind != EventKind::Ok {
                let (key, kind) = (op.key, outcome.kind);
                bail!("creating key {key} ended as {kind:?} although nothing is broken");
            }
        }
        Ok(())
    }

    /// Has the same operations done at each of these members, by processes from `process` on.
    fn errands(
        &mut self,
        members: &[MemberId],
        process: u64,
        todo: &[Op],
    ) -> anyhow::Result<Vec<Vec<(Op, Outcome)>>> {
        let mut errands = Vec::new();
        for (process, member) in (process..).zip(members) {
            errands.push(self.world.send_errand(server(*member), process, todo.to_vec()));
        }
        let each = u32::try_from(todo.len()).unwrap_or(u32::MAX);
        let patience = CALM_PATIENCE.saturating_add(EACH_PATIENCE.saturating_mul(each));
        self.wait(patience, |run| errands.iter().all(|errand| run.world.errand(*errand).is_some()))?;
        Ok(errands
            .into_iter()
            .map(|errand| self.world.errand(errand).map(<[_]>::to_vec).unwrap_or_default())
            .collect())
    }

    fn workload(
        &mut self,
        schedule: &Schedule,
        interrupt: &Interrupt,
        observed: &mut Observed,
    ) -> Result<(), Failure> {
        let options = &self.prepared.options;
        let (start, limit) = (self.world.now_us(), microseconds(options.time_limit));
        let end = start + limit;
        let arrivals = Arrivals::new(seed::stream(options.seed, "arrivals"), options.rate);
        let due = arrivals.scan(start * 1000, |at, gap| {
            *at += nanoseconds(gap);
            Some(*at / 1000)
        });
        self.world.begin_load(Box::new(due.take_while(move |at| *at < end)));
        let journal = Journal::create(&self.prepared.folder.faults())?;
        let mut nemeses = Nemeses::new(self.prepared, schedule, journal, start, &self.members);
        let mut look = start;
        while self.world.now_us() < end && !interrupt.was_asked() && !self.must_end() {
            self.turns(&mut nemeses)?;
            if self.world.now_us() >= look {
                self.tell(start, options.time_limit);
                look += microseconds(LOOK);
            }
            let next = nemeses.next_us(self.world.now_us()).map_or(look, |next| next.min(look));
            self.advance(next.max(self.world.now_us()).min(end))?;
        }
        nemeses.halt();
        self.turns(&mut nemeses)?;
        while !nemeses.is_over() {
            let step = self.world.now_us() + 1000;
            self.advance(step)?;
            self.turns(&mut nemeses)?;
        }
        self.hear()?;
        self.world.end_load();
        if !self.wait(options.op_timeout + FAREWELL, |run| run.world.is_quiet())? {
            return Err(anyhow!("clients do not end").into());
        }
        self.prepared.progress.step("waiting until all members serve, and reading them a last time");
        observed.lag = Lag { operations: self.counts.due, ..Lag::default() };
        observed.shed = self.world.shed();
        observed.workload_from_ns = start * 1000;
        observed.workload_to_ns = self.now_ns();
        Ok(())
    }

    /// Lets nemeses do all whose time has come.
    fn turns(&mut self, nemeses: &mut Nemeses<'_>) -> anyhow::Result<()> {
        loop {
            let mut scene = Scene {
                world: &mut *self.world,
                events: &self.events,
                calm: &mut self.calm,
                prepared: self.prepared,
            };
            if !nemeses.turn(&mut scene)? {
                return Ok(());
            }
            self.hear()?;
        }
    }

    fn tell(&self, start: u64, limit: Duration) {
        let Counts { ok, refused, fail: failed, info: unknown, .. } = self.counts;
        let leader = self.events.leader().map(|leader| (leader.id.0, leader.epoch));
        let load = Load { ok, refused, failed, unknown, leader, live: None };
        let elapsed = Duration::from_micros(self.world.now_us() - start);
        self.prepared.progress.advance(elapsed, limit, &load);
    }

    /// After the workload: all members serve again, and are read a last time.
    fn end(&mut self, observed: &mut Observed) -> anyhow::Result<()> {
        let patience = if observed.interrupted { INTERRUPTED_PATIENCE } else { RECOVERY_PATIENCE };
        self.wait(patience, |run| views::settled(&run.events.views()))?;
        let views = self.events.views();
        if !views::all_serve(&views) {
            let words = views::laggards(&views);
            self.prepared.progress.say(&format!("not all members serve after the workload: {words}"));
        }
        let serving = views::serving(&views);
        let reads = self.world.last_operations();
        // Sessions that were left to expire do so meanwhile.
        let expiry = if self.workload.records_sessions() {
            describe::session_timeout(&self.prepared.options) * 2 + EXPIRY_PATIENCE
        } else {
            Duration::ZERO
        };
        let deadline = self.world.now_us() + microseconds(CALM_PATIENCE + expiry);
        loop {
            let process = self.world.next_process();
            let rounds = self.errands(&serving, process, &reads)?;
            let states: Vec<FinalState> = serving
                .iter()
                .zip(&rounds)
                .flat_map(|(member, read)| read.iter().map(move |read| (member, read)))
                .filter_map(|(member, (read, told))| self.workload.final_state(member.0, read, told))
                .collect();
            let all = states.len() == serving.len() * reads.len();
            if all && self.workload.is_settled(&states) || self.world.now_us() > deadline {
                observed.finals = states;
                return Ok(());
            }
            let next = self.world.now_us() + microseconds(PAUSE);
            self.advance(next)?;
        }
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
