//! One planned run of the bench, in virtual time: faults and operations come from outside.
//!
//! Next to nothing is drawn here: messages of some tenths of a millisecond, syncs of one to two, and no
//! trouble but what is asked for. What members do is told as members of a real cluster tell it: who looks for
//! a leader, who follows whom in which epoch, how long a leader's proposals waited. Nobody is judged here but
//! by the protocol's own properties: a member whose step breaks one stops itself, and says why. One that
//! panics ends, as its process would.
//!
//! - `conditions`: what can be broken, and looked at. `load`: clients. `told`: what members say.
//!
//! Everything is deterministic: the same [`Setting`] and the same calls give the same world, to the byte.

mod conditions;
mod load;
mod told;

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use checker::history::Event as Line;
use harness_core::condition::{Condition, LinkCondition, Quality};
use harness_core::cut::Pair;
use harness_core::virtual_ensemble::{Arrivals, Process, Setting, VirtualEnsemble};
use harness_world::dice::Chance;
use harness_world::time::Time;
use harness_world::trace::Trace;
use runs::events::{Event, Said, Stamped};
use runs::member::MemberId;
use runs::observed::Shut;
use workloads::{Op, Outcome, Workload};

use crate::configuration::Step;
use crate::ensemble::{Ensemble, Happened, Manners};
use crate::protocol::{Id, Protocol};
use load::{Load, Wake};
use told::Told;

/// How long a message takes, on average.
const DELAY_US: u64 = 300;
/// How long a sync takes, on average.
const SYNC_US: u64 = 1_500;

/// A world of a run.
struct Planned<P: Protocol> {
    ensemble: Ensemble<P, Wake>,
    /// By member: how many faults make it stand still.
    pauses: Vec<u32>,
    /// By member: what it has told.
    told: Vec<Told>,
    /// By term: who led it first.
    established: BTreeMap<u64, Id>,
    load: Load,
    events: Vec<Stamped>,
    lines: Vec<Line>,
    /// Whether the member that broke a property has ended for it.
    is_halted: bool,
}

/// A world in which nothing happens yet but what is asked for: no member runs.
#[must_use]
pub fn begin<P: Protocol>(protocol: &P, setting: &Setting, workload: Workload) -> Box<dyn VirtualEnsemble> {
    let protocol = protocol.with_peer_timeout(setting.peer_timeout_ms.saturating_mul(1000));
    let members = setting.everybody();
    let manners = Manners {
        delay_us: DELAY_US,
        lost: Chance::NEVER,
        late: Chance::NEVER,
        copied: Chance::NEVER,
        syncs_us: vec![SYNC_US; members],
    };
    Box::new(Planned {
        ensemble: Ensemble::new(protocol, manners, setting.seed, Trace::new(false)),
        pauses: vec![0; members],
        told: vec![Told::default(); members],
        established: BTreeMap::new(),
        load: Load::new(setting, workload),
        events: Vec::new(),
        lines: Vec::new(),
        is_halted: false,
    })
}

/// A member by the name that it has in its world; none where it has none there.
fn id(member: MemberId) -> Id {
    Id(u8::try_from(member.0).unwrap_or_default())
}

fn name(id: Id) -> MemberId {
    MemberId(u64::from(id.0))
}

impl<P: Protocol> Planned<P> {
    fn note(&mut self, id: Id, event: Event) {
        self.events.push(Stamped { time: self.ensemble.now.as_ns(), node: name(id), event });
    }

    fn runs(&self, id: Id) -> bool {
        self.ensemble.configuration.running(id).is_some()
    }

    /// The next thing happens, and whoever it concerns says what is news.
    fn live_on(&mut self) {
        self.guarded(|world| match world.ensemble.happen() {
            Some(Happened::Inside) | None => {}
            Some(Happened::Answered(request, outcome)) => world.completed(request, &outcome),
            Some(Happened::Own(wake)) => world.wake(wake),
        });
    }

    /// Does something in which members step. One that panics, or breaks a property, ends.
    fn guarded(&mut self, what: impl FnOnce(&mut Self)) {
        let panic = catch_unwind(AssertUnwindSafe(|| what(self))).err();
        let stepped = self.ensemble.stepped;
        if let Some(payload) = panic {
            let words = payload.downcast_ref::<&str>().map(|words| (*words).to_owned());
            let words = words.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_default();
            self.end(stepped, usize::MAX, format!("panicked: {words}"));
        } else if let Some(broken) = self.ensemble.configuration.broken().filter(|_| !self.is_halted) {
            let reason = broken.to_string();
            self.is_halted = true;
            self.note(stepped, Event::Said(Said::Halt { reason }));
            self.end(stepped, usize::MAX, "stopped itself".to_owned());
        }
        self.tell_news();
    }

    fn start_member(&mut self, id: Id) {
        if self.runs(id) || id.place() >= self.told.len() {
            return;
        }
        self.note(id, Event::Spawned);
        self.told[id.place()] = Told::default();
        self.guarded(|world| world.ensemble.step(&Step::Start(id)));
        if self.runs(id) {
            self.note(id, Event::Said(Said::Started {}));
        }
    }

    /// A member's process ends. So many of its unsynced writes are on its disk all the same, at most.
    fn end(&mut self, id: Id, kept: usize, how: String) {
        if !self.runs(id) {
            return;
        }
        // What waited for a process that stood still finds none.
        self.ensemble.resume(id);
        let kept = kept.min(self.ensemble.configuration.unsynced(id));
        self.ensemble.end(id, kept);
        self.told[id.place()] = Told::default();
        self.note(id, Event::Exited(how));
        self.connections_break(id);
    }
}

impl<P: Protocol> VirtualEnsemble for Planned<P> {
    fn now_us(&self) -> u64 {
        self.ensemble.now.0
    }

    fn advance(&mut self, to_us: u64) -> bool {
        while self.ensemble.next_at().is_some_and(|at| at.0 <= to_us) {
            self.live_on();
            if !self.events.is_empty() {
                return true;
            }
        }
        self.ensemble.now = self.ensemble.now.max(Time(to_us));
        false
    }

    fn take_events(&mut self) -> Vec<Stamped> {
        std::mem::take(&mut self.events)
    }

    fn take_lines(&mut self) -> Vec<Line> {
        std::mem::take(&mut self.lines)
    }

    fn trace_hash(&self) -> u64 {
        self.ensemble.trace.hash()
    }

    fn start(&mut self, member: MemberId) {
        self.start_member(id(member));
    }

    fn can(&self, quality: Quality) -> Result<(), String> {
        conditions::can(quality)
    }

    fn impose(&mut self, condition: Condition) {
        self.imposed(condition);
    }

    fn lift(&mut self, condition: Condition) {
        self.lifted(condition);
    }

    fn process(&self, member: MemberId) -> Process {
        match id(member) {
            id if !self.runs(id) => Process::Gone,
            id if self.ensemble.is_paused(id) => Process::Stopped,
            _ => Process::Running,
        }
    }

    fn passes(&self, pair: Pair) -> bool {
        self.place(pair).is_some_and(|(from, to)| self.ensemble.links.passes(from, to))
    }

    fn link(&self, pair: Pair) -> LinkCondition {
        let links = &self.ensemble.links;
        self.place(pair).map_or_else(LinkCondition::default, |(from, to)| conditions::link(links, from, to))
    }

    fn delays(&self, pair: Pair) -> Vec<u64> {
        self.place(pair).map_or_else(Vec::new, |(from, to)| self.ensemble.links.delays(from, to))
    }

    fn delivered(&self, pair: Pair) -> u64 {
        self.place(pair).map_or(0, |(from, to)| self.ensemble.links.delivered(from, to))
    }

    fn waiting(&self, pair: Pair) -> u64 {
        self.ensemble.waiting(id(pair.from), id(pair.to))
    }

    fn clock_offset_ms(&self, _: MemberId) -> i64 {
        // Members read no wall clock.
        0
    }

    fn begin_load(&mut self, due_us: Arrivals) {
        self.let_clients_in(due_us);
    }

    fn end_arrivals(&mut self) {
        self.load.end_arrivals();
    }

    fn end_load(&mut self) {
        self.send_clients_away();
    }

    fn is_quiet(&self) -> bool {
        self.load.is_quiet()
    }

    fn next_process(&self) -> u64 {
        self.load.next_process()
    }

    fn shed(&self) -> u64 {
        self.load.rules.shed()
    }

    fn shut(&self) -> Vec<Shut> {
        self.load.rules.shut()
    }

    fn first_operations(&mut self) -> Vec<Op> {
        self.load.rules.workload_mut().setup()
    }

    fn last_operations(&self) -> Vec<Op> {
        self.load.rules.workload().final_reads()
    }

    fn send_one_off(&mut self, member: MemberId, process: u64, todo: Vec<Op>) -> usize {
        self.begin_one_off(id(member), process, todo)
    }

    fn one_off(&self, one_off: usize) -> Option<&[(Op, Outcome)]> {
        self.load.one_off_over(one_off)
    }
}
