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
mod said;
mod slot;

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::Duration;

use checker::history::Event as Line;
use harness_core::condition::{Condition, LinkCondition, Quality};
use harness_core::cut::Pair;
use harness_core::virtual_ensemble::{Arrivals, Process, Setting, VirtualEnsemble};
use harness_world::dice::Dice;
use harness_world::time::Time;
use lab_mutants::Mutant;
use node_core::commit_times::CommitTimes;
use node_core::io;
use node_core::io::StoreOp;
use node_wire::ids::{ServerId, Zxid};
use runs::events::{self, Said, Stamped};
use runs::member::MemberId;
use runs::observed::Shut;
use workloads::{Op, Outcome, Workload};

use super::{Event, World};
use crate::message_of;
use crate::network::HostIndex;
use crate::outcome::Options;
use load::Load;
pub(super) use slot::Wake;

/// What a planned run has beside its world.
pub(super) struct Plan {
    setting: Setting,
    events: Vec<Stamped>,
    lines: Vec<Line>,
    load: Load,
    /// Whose clocks are off, by how much.
    offsets_ms: Vec<i64>,
    /// What leaders count of their commits, by host.
    commits: Vec<CommitTimes>,
}

/// A world in which nothing happens yet but what is asked for: no member runs. A bug that is in no list is
/// planted nowhere.
#[must_use]
pub fn begin(setting: Setting, workload: Workload) -> Box<dyn VirtualEnsemble> {
    Box::new(World::calm(setting, workload))
}

/// A member by the id that it has in its world.
fn server(member: MemberId) -> ServerId {
    ServerId(member.0)
}

impl World {
    fn calm(setting: Setting, workload: Workload) -> Self {
        let mutant = setting.bug.and_then(Mutant::named);
        let options = Options { mutant, look_inside: false, progress: false, ..Options::default() };
        let mut world = Self::of(calm::of(&setting), Dice::new(setting.seed), options);
        for host in &mut world.ensemble.hosts {
            host.clock.wall_offset_ms = 0;
        }
        world.clock.is_planned = true;
        world.planned = Some(Box::new(Plan {
            offsets_ms: vec![0; setting.everybody()],
            commits: vec![CommitTimes::default(); setting.everybody()],
            events: Vec::new(),
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
    fn note_event(&mut self, host: HostIndex, event: events::Event) {
        let (time, node) = (self.clock.now.as_ns(), MemberId(self.ensemble.server(host).0));
        if let Some(plan) = self.planned.as_mut() {
            plan.events.push(Stamped { time, node, event });
        }
    }

    /// A member told of a transition.
    pub(super) fn overheard(&mut self, host: HostIndex, event: &io::Event) {
        for said in said::transition(event) {
            self.note_event(host, events::Event::Said(said));
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
            self.note_event(host, events::Event::Said(Said::Commits { us }));
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
            self.note_event(host, events::Event::Said(Said::Halt { reason: violation.sentence }));
            self.end_process(host, "stopped itself".to_owned());
        }
    }

    fn end_process(&mut self, host: HostIndex, how: String) {
        self.the_plan().commits[host] = CommitTimes::default();
        // What the kernel holds for a process that merely ended is not lost.
        self.clock.drawn.power = harness_world::dice::Chance::NEVER;
        self.crash(host);
        self.note_event(host, events::Event::Exited(how));
    }
}

impl VirtualEnsemble for World {
    fn now_us(&self) -> u64 {
        self.clock.now.0
    }

    fn advance(&mut self, to_us: u64) -> bool {
        while let Some(at) = self.clock.queue.next_at().filter(|at| at.0 <= to_us) {
            let Some((_, event)) = self.clock.queue.pop() else { break };
            self.clock.now = at;
            self.happen_once(event);
            if !self.plan_of().events.is_empty() {
                return true;
            }
        }
        self.clock.now = self.clock.now.max(Time(to_us));
        false
    }

    fn take_events(&mut self) -> Vec<Stamped> {
        std::mem::take(&mut self.the_plan().events)
    }

    fn take_lines(&mut self) -> Vec<Line> {
        std::mem::take(&mut self.the_plan().lines)
    }

    fn trace_hash(&self) -> u64 {
        self.clock.trace.hash()
    }

    fn start(&mut self, member: MemberId) {
        self.start_member(server(member));
    }

    fn can(&self, quality: Quality) -> Result<(), String> {
        faults::can(quality)
    }

    fn impose(&mut self, condition: Condition) {
        self.imposed(condition);
    }

    fn lift(&mut self, condition: Condition) {
        self.lifted(condition);
    }

    fn process(&self, member: MemberId) -> Process {
        self.ensemble.process_of(server(member))
    }

    fn passes(&self, pair: Pair) -> bool {
        self.ensemble.place(pair).is_some_and(|(from, to)| self.ensemble.links.passes(from, to))
    }

    fn link(&self, pair: Pair) -> LinkCondition {
        let place = self.ensemble.place(pair);
        place.map_or_else(LinkCondition::default, |(from, to)| faults::link(&self.ensemble.links, from, to))
    }

    fn delays(&self, pair: Pair) -> Vec<u64> {
        self.ensemble.place(pair).map_or_else(Vec::new, |(from, to)| self.ensemble.links.delays(from, to))
    }

    fn delivered(&self, pair: Pair) -> u64 {
        self.ensemble.place(pair).map_or(0, |(from, to)| self.ensemble.links.delivered(from, to))
    }

    fn waiting(&self, pair: Pair) -> u64 {
        self.ensemble.waiting_between(pair)
    }

    fn clock_offset_ms(&self, member: MemberId) -> i64 {
        // As its process reads it, and not as it was asked for.
        let host = self.ensemble.index_of(server(member));
        host.map_or(0, |host| self.ensemble.hosts[host].clock.wall_offset_ms)
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

    fn send_one_off(&mut self, member: MemberId, process: u64, todo: Vec<Op>) -> usize {
        self.begin_one_off(server(member), process, todo)
    }

    fn one_off(&self, one_off: usize) -> Option<&[(Op, Outcome)]> {
        self.plan_of().load.one_off_over(one_off)
    }
}
