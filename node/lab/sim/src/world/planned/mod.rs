//! A calm world whose faults and operations come from outside: one planned run of the bench, in virtual time.
//!
//! Where `simulate`(crate::simulate) draws everything and judges inside, this world draws next to nothing:
//! links of a tenth to half a millisecond, an fsync of one to two, and no trouble but what is asked for. The
//! same schedule of faults, the same rate and the same clients as on a real cluster go in; what members say,
//! what clients saw and what a look from the inside shows come out. Nobody is judged here: the run's folder
//! is, later, by what judges every run. A member that stops or panics ends, as its process would.
//!
//! - `calm`: options of a world in which nothing happens by itself. `faults`: what can be broken, and looked
//!   at. `load`: drives the load's rules; `slot`: one client of it, with its connection; `one_off`:
//!   operations at one member, for the beginning and the end of a run.
//!
//! Everything is deterministic: the same [`Setting`] and the same calls give the same world, to the byte.

mod calm;
mod faults;
mod load;
mod one_off;
mod slot;

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::Duration;

use checker::history::Event as Line;
use harness_core::condition::Delay;
use lab_mutants::Mutant;
use node_core::commit_times::{CommitTimes, Counted};
use node_core::io;
use node_core::io::StoreOp;
use node_wire::ids::{ServerId, Zxid};
use runs::observed::Shut;
use workloads::{Op, Outcome, Workload};

use super::{Event, World};
use crate::message_of;
use crate::network::HostIndex;
use crate::outcome::Options;
pub use faults::{Process, Severing};
use harness_world::dice::Dice;
use harness_world::time::Time;
use load::Load;
pub(super) use slot::Wake;

/// What a planned world is made of.
#[derive(Clone, Debug)]
pub struct Setting {
    /// What little is drawn is drawn from this.
    pub seed: u64,
    /// Voting members.
    pub members: usize,
    /// Members without a vote.
    pub observers: usize,
    /// The members' own time-out for each other.
    pub peer_timeout_ms: u64,
    /// How long a session outlives its client's silence.
    pub session_timeout_ms: u64,
    /// How long a client waits for an answer.
    pub operation_timeout_us: u64,
    /// Client processes.
    pub clients: usize,
    /// A bug planted in every member.
    pub mutant: Option<Mutant>,
}

impl Setting {
    /// How many members there are, observers included.
    pub(super) fn everybody(&self) -> usize {
        self.members + self.observers
    }
}

/// What became of a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Word {
    /// Its process was started.
    Spawned,
    /// Its process is up.
    Started,
    /// Its process is gone; how, in words.
    Exited(String),
    /// It stopped itself, for this reason.
    Halted(String),
    /// Its process stands still.
    Paused,
    /// Its process goes on.
    Resumed,
    /// Its wall clock is off by so much from here on.
    Clock {
        /// In milliseconds.
        offset_ms: i64,
    },
    /// As leader: how long its proposals waited for their commit, in microseconds, and how many.
    Commits(Counted),
    /// It told of a transition.
    Said(io::Event),
}

/// Something that became of a member, with its moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct News {
    /// When, in virtual microseconds.
    pub at_us: u64,
    /// Whose.
    pub member: ServerId,
    /// What.
    pub word: Word,
}

/// Moments at which operations fall due, ascending, in virtual microseconds.
pub type Arrivals = Box<dyn Iterator<Item = u64>>;

/// An ensemble in a planned world.
pub trait Ensemble {
    /// Virtual microseconds since the world began.
    fn now_us(&self) -> u64;
    /// Lives on until this moment, or until there is news. True when there is.
    fn advance(&mut self, to_us: u64) -> bool;
    /// What became of members since the last time.
    fn take_news(&mut self) -> Vec<News>;
    /// The history's lines since the last time.
    fn take_lines(&mut self) -> Vec<Line>;
    /// The hash of everything that happened: equal for equal worlds.
    fn trace_hash(&self) -> u64;

    /// Starts a member's process; one that runs is left alone.
    fn start(&mut self, member: ServerId);
    /// Ends a member's process at once. What it had not synced is lost if so asked.
    fn kill(&mut self, member: ServerId, loses_unsynced: bool);
    /// Lets a member's process stand still.
    fn pause(&mut self, member: ServerId);
    /// Lets it go on.
    fn resume(&mut self, member: ServerId);
    /// What a member's process does.
    fn process(&self, member: ServerId) -> Process;
    /// Whether a member answers clients.
    fn serves(&self, member: ServerId) -> bool;

    /// Lets nothing pass in these directions.
    fn cut(&mut self, directions: &[(ServerId, ServerId)], how: Severing);
    /// Takes that away again, once.
    fn mend(&mut self, directions: &[(ServerId, ServerId)], how: Severing);
    /// Makes a direction slower by so much, and forgets how long things took until now.
    fn slow(&mut self, from: ServerId, to: ServerId, by: Delay);
    /// Takes that away again, once.
    fn quicken(&mut self, from: ServerId, to: ServerId, by: Delay);
    /// By how much a direction is slower than usual.
    fn slower(&self, from: ServerId, to: ServerId) -> Delay;
    /// How long the newest of what was sent in a direction took, in microseconds, since one was last made
    /// slower.
    fn delays(&self, from: ServerId, to: ServerId) -> Vec<u64>;
    /// Whether what is sent in a direction arrives.
    fn passes(&self, from: ServerId, to: ServerId) -> bool;
    /// Messages that have arrived in a direction.
    fn delivered(&self, from: ServerId, to: ServerId) -> u64;
    /// Messages under way in a direction.
    fn waiting(&self, from: ServerId, to: ServerId) -> u64;

    /// Shifts a member's wall clock by so much against the true one; zero restores it.
    fn shift_clock(&mut self, member: ServerId, offset_ms: i64);
    /// How far a member's wall clock is off.
    fn clock_offset_ms(&self, member: ServerId) -> i64;

    /// Lets clients in. Operations fall due at these moments, ascending, in virtual microseconds.
    fn begin_load(&mut self, due_us: Arrivals);
    /// Nothing falls due any more.
    fn end_arrivals(&mut self);
    /// No client takes a further operation. Those under way come to their end.
    fn end_load(&mut self);
    /// Whether no client has an operation under way.
    fn is_quiet(&self) -> bool;
    /// A process number that no client has used.
    fn next_process(&self) -> u64;
    /// Operations that were due while too many others waited.
    fn shed(&self) -> u64;
    /// When members took no connection of any client.
    fn shut(&self) -> Vec<Shut>;
    /// The workload's first operations.
    fn first_operations(&mut self) -> Vec<Op>;
    /// The workload's last operations.
    fn last_operations(&self) -> Vec<Op>;
    /// Sends somebody to a member with operations to be done there one by one, each waited for longer than
    /// clients do. Gives the one-off client's number.
    fn send_one_off(&mut self, member: ServerId, process: u64, todo: Vec<Op>) -> usize;
    /// What came of a one-off client's operations, once it is over.
    fn one_off(&self, one_off: usize) -> Option<&[(Op, Outcome)]>;
}

/// What a planned run has beside its world.
pub(super) struct Plan {
    setting: Setting,
    news: Vec<News>,
    lines: Vec<Line>,
    load: Load,
    /// Whose clocks are off, by how much.
    offsets_ms: Vec<i64>,
    /// What leaders count of their commits, by host.
    commits: Vec<CommitTimes>,
}

/// A world in which nothing happens yet but what is asked for: no member runs.
pub fn begin(setting: Setting, workload: Workload) -> Box<dyn Ensemble> {
    Box::new(World::calm(setting, workload))
}

impl World {
    fn calm(setting: Setting, workload: Workload) -> Self {
        let options =
            Options { mutant: setting.mutant, look_inside: false, progress: false, ..Options::default() };
        let mut world = Self::of(calm::of(&setting), Dice::new(setting.seed), options);
        for host in &mut world.ensemble.hosts {
            host.clock.wall_offset_ms = 0;
        }
        world.clock.is_planned = true;
        world.planned = Some(Box::new(Plan {
            offsets_ms: vec![0; setting.everybody()],
            commits: vec![CommitTimes::default(); setting.everybody()],
            news: Vec::new(),
            lines: Vec::new(),
            load: Load::new(&setting, workload),
            setting,
        }));
        world
    }

    /// What a planned run has beside its world.
    fn the_plan(&mut self) -> &mut Plan {
        self.planned.as_mut().expect("only planned worlds come here")
    }

    fn plan_of(&self) -> &Plan {
        self.planned.as_ref().expect("only planned worlds come here")
    }

    /// Notes what became of a member, if anybody wants to know.
    fn note_word(&mut self, host: HostIndex, word: Word) {
        let (at_us, member) = (self.clock.now.0, self.ensemble.server(host));
        if let Some(plan) = self.planned.as_mut() {
            plan.news.push(News { at_us, member, word });
        }
    }

    /// A member told of a transition.
    pub(super) fn overheard(&mut self, host: HostIndex, event: &io::Event) {
        if self.planned.is_some() {
            self.note_word(host, Word::Said(event.clone()));
        }
    }

    /// A leader gives a proposal of its own to its store.
    pub(super) fn proposed(&mut self, host: HostIndex, op: &StoreOp) {
        let now = Duration::from_micros(self.clock.now.0);
        if let (Some(plan), StoreOp::Append(entry)) = (self.planned.as_mut(), op) {
            plan.commits[host].proposed(entry.zxid(), now);
        }
    }

    /// A member stepped: what it has committed by now, and whether it leads. Its word is news, as a process's
    /// line is.
    pub(super) fn committed(&mut self, host: HostIndex, applied: Zxid, leads: bool) {
        let now = Duration::from_micros(self.clock.now.0);
        let Some(plan) = self.planned.as_mut().filter(|plan| plan.commits[host].is_waiting()) else { return };
        let commits = &mut plan.commits[host];
        let told = if leads {
            commits.committed(applied, now);
            commits.due(now)
        } else {
            commits.over(now)
        };
        if let Some(us) = told {
            self.note_word(host, Word::Commits(us));
        }
    }

    /// One event, and the end of a member that it broke.
    fn happen_once(&mut self, event: Event) {
        let culprit = match &event {
            Event::Stored { host, .. } | Event::Snapshot { host, .. } | Event::Start { host } => Some(*host),
            _ => None,
        };
        self.ensemble.stepping = None;
        let panic = catch_unwind(AssertUnwindSafe(|| self.happen(event))).err();
        self.end_the_broken(panic, culprit);
    }

    /// A member that can't go on ends, and nothing else does: its process would have.
    fn end_the_broken(&mut self, panic: Option<Box<dyn std::any::Any + Send>>, culprit: Option<HostIndex>) {
        let violation = self.oracle.violation.take();
        let Some(host) = self.ensemble.stepping.take().or(culprit) else {
            match panic {
                Some(payload) => resume_unwind(payload),
                None => return,
            }
        };
        if let Some(payload) = panic {
            let message = message_of(payload.as_ref());
            self.end_process(host, format!("panicked: {message}"));
        } else if let Some(violation) = violation {
            self.note_word(host, Word::Halted(violation.sentence));
            self.end_process(host, "stopped itself".to_owned());
        }
    }

    fn end_process(&mut self, host: HostIndex, how: String) {
        self.the_plan().commits[host] = CommitTimes::default();
        // What the kernel holds for a process that merely ended is not lost.
        self.clock.drawn.power = harness_world::dice::Chance::NEVER;
        self.crash(host);
        self.note_word(host, Word::Exited(how));
    }
}

impl Ensemble for World {
    fn now_us(&self) -> u64 {
        self.clock.now.0
    }

    fn advance(&mut self, to_us: u64) -> bool {
        while let Some(at) = self.clock.queue.next_at().filter(|at| at.0 <= to_us) {
            let Some((_, event)) = self.clock.queue.pop() else { break };
            self.clock.now = at;
            self.happen_once(event);
            if !self.plan_of().news.is_empty() {
                return true;
            }
        }
        self.clock.now = self.clock.now.max(Time(to_us));
        false
    }

    fn take_news(&mut self) -> Vec<News> {
        std::mem::take(&mut self.the_plan().news)
    }

    fn take_lines(&mut self) -> Vec<Line> {
        std::mem::take(&mut self.the_plan().lines)
    }

    fn trace_hash(&self) -> u64 {
        self.clock.trace.hash()
    }

    fn start(&mut self, member: ServerId) {
        let Some(host) =
            self.ensemble.index_of(member).filter(|host| self.ensemble.hosts[*host].process.is_none())
        else {
            return;
        };
        self.note_word(host, Word::Spawned);
        // What a process that was killed had counted went with it.
        self.the_plan().commits[host] = CommitTimes::default();
        self.ensemble.stepping = None;
        let panic = catch_unwind(AssertUnwindSafe(|| {
            self.chaos.start_process(&mut self.clock, &mut self.ensemble, &mut self.oracle, host)
        }))
        .err();
        self.end_the_broken(panic, Some(host));
        if self.ensemble.hosts[host].process.is_some() {
            self.note_word(host, Word::Started);
        }
    }

    fn kill(&mut self, member: ServerId, loses_unsynced: bool) {
        self.kill_member(member, loses_unsynced);
    }

    fn pause(&mut self, member: ServerId) {
        self.pause_member(member);
    }

    fn resume(&mut self, member: ServerId) {
        self.resume_member(member);
    }

    fn process(&self, member: ServerId) -> Process {
        self.ensemble.process_of(member)
    }

    fn serves(&self, member: ServerId) -> bool {
        self.ensemble
            .index_of(member)
            .and_then(|host| self.ensemble.hosts[host].process.as_ref())
            .is_some_and(|process| process.established && process.pauses == 0)
    }

    fn cut(&mut self, directions: &[(ServerId, ServerId)], how: Severing) {
        self.ensemble.sever(&mut self.clock, &mut self.oracle, directions, how);
    }

    fn mend(&mut self, directions: &[(ServerId, ServerId)], how: Severing) {
        self.ensemble.unsever(&mut self.clock, &mut self.oracle, directions, how);
    }

    fn slow(&mut self, from: ServerId, to: ServerId, by: Delay) {
        if let Some((from, to)) = self.ensemble.index_of(from).zip(self.ensemble.index_of(to)) {
            self.ensemble.links.keep_delays();
            self.ensemble.links.slow(from, to, faults::slower(by));
        }
    }

    fn quicken(&mut self, from: ServerId, to: ServerId, by: Delay) {
        if let Some((from, to)) = self.ensemble.index_of(from).zip(self.ensemble.index_of(to)) {
            self.ensemble.links.quicken(from, to, faults::slower(by));
        }
    }

    fn slower(&self, from: ServerId, to: ServerId) -> Delay {
        let places = self.ensemble.index_of(from).zip(self.ensemble.index_of(to));
        places.map_or_else(Delay::default, |(from, to)| faults::delay(self.ensemble.links.slower(from, to)))
    }

    fn delays(&self, from: ServerId, to: ServerId) -> Vec<u64> {
        let places = self.ensemble.index_of(from).zip(self.ensemble.index_of(to));
        places.map_or_else(Vec::new, |(from, to)| self.ensemble.links.delays(from, to))
    }

    fn passes(&self, from: ServerId, to: ServerId) -> bool {
        let places = self.ensemble.index_of(from).zip(self.ensemble.index_of(to));
        places.is_some_and(|(from, to)| self.ensemble.links.passes(from, to))
    }

    fn delivered(&self, from: ServerId, to: ServerId) -> u64 {
        let places = self.ensemble.index_of(from).zip(self.ensemble.index_of(to));
        places.map_or(0, |(from, to)| self.ensemble.links.delivered(from, to))
    }

    fn waiting(&self, from: ServerId, to: ServerId) -> u64 {
        self.ensemble.waiting_between(from, to)
    }

    fn shift_clock(&mut self, member: ServerId, offset_ms: i64) {
        self.shift_clock_of(member, offset_ms);
    }

    fn clock_offset_ms(&self, member: ServerId) -> i64 {
        // As its process reads it, and not as it was asked for.
        self.ensemble.index_of(member).map_or(0, |host| self.ensemble.hosts[host].clock.wall_offset_ms)
    }

    fn begin_load(&mut self, due_us: Arrivals) {
        self.let_clients_in(due_us);
    }

    fn end_arrivals(&mut self) {
        self.the_plan().load.end_arrivals();
    }

    fn end_load(&mut self) {
        self.send_clients_away();
    }

    fn is_quiet(&self) -> bool {
        self.plan_of().load.is_quiet()
    }

    fn next_process(&self) -> u64 {
        self.plan_of().load.next_process()
    }

    fn shed(&self) -> u64 {
        self.plan_of().load.rules.shed()
    }

    fn shut(&self) -> Vec<Shut> {
        self.plan_of().load.rules.shut()
    }

    fn first_operations(&mut self) -> Vec<Op> {
        self.the_plan().load.rules.workload_mut().setup()
    }

    fn last_operations(&self) -> Vec<Op> {
        self.plan_of().load.rules.workload().final_reads()
    }

    fn send_one_off(&mut self, member: ServerId, process: u64, todo: Vec<Op>) -> usize {
        self.begin_one_off(member, process, todo)
    }

    fn one_off(&self, one_off: usize) -> Option<&[(Op, Outcome)]> {
        self.plan_of().load.one_off_over(one_off)
    }
}
