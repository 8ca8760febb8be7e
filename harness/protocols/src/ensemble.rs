//! Members in virtual time: their network, their disks and their clocks, as whoever lives through a world has
//! them.
//!
//! Here things happen: a message arrives or is lost, a timer is over, a disk has synced. Who is told of it,
//! and what is broken when, is the owner's: [`crate::world`] draws it from a seed, [`crate::planned`] is told
//! by a run of the bench. Both plan events of their own in the same queue.

use std::collections::BTreeMap;

use harness_world::clock::Clock;
use harness_world::dice::{Chance, Dice, Stream};
use harness_world::links::Links;
use harness_world::time::{Queue, Time};
use harness_world::trace::Trace;
use workloads::{Op, Outcome};

use crate::configuration::{Came, Configuration, Step};
use crate::protocol::{Id, Protocol, Request};

/// How messages and disks are.
#[derive(Clone, Debug)]
pub(crate) struct Manners {
    /// How long a message takes, on average, in microseconds.
    pub(crate) delay_us: u64,
    /// How often one is lost.
    pub(crate) lost: Chance,
    /// How often one takes many times as long.
    pub(crate) late: Chance,
    /// How often one comes twice.
    pub(crate) copied: Chance,
    /// How long a sync takes, on average, by member.
    pub(crate) syncs_us: Vec<u64>,
}

/// What will happen.
pub(crate) enum Event<P: Protocol, O> {
    Arrive(Id, Id, P::Message),
    Fire(Id, u64, P::Timer, u64),
    Sync(Id, u64, usize),
    Ask(Id, Request, Op),
    Answered(Request, Outcome),
    Own(O),
}

/// What happened, as far as it is not done here.
pub(crate) enum Happened<O> {
    /// Something to members alone.
    Inside,
    /// An answer reached its client.
    Answered(Request, Outcome),
    /// Something of the owner's.
    Own(O),
}

/// Members in virtual time.
pub(crate) struct Ensemble<P: Protocol, O> {
    pub(crate) configuration: Configuration<P>,
    pub(crate) now: Time,
    pub(crate) links: Links,
    pub(crate) manners: Manners,
    /// What was done, where that is kept.
    pub(crate) steps: Option<Vec<Step<P>>>,
    pub(crate) count: u64,
    pub(crate) trace: Trace,
    /// Whose step it was last.
    pub(crate) stepped: Id,
    pub(crate) disks: Dice,
    queue: Queue<Event<P, O>>,
    clocks: Vec<Clock>,
    /// What came while a member stood still.
    paused: BTreeMap<Id, Vec<Event<P, O>>>,
    /// By member: which life it lives, and whether its disk is at work.
    lives: Vec<(u64, bool)>,
    /// By member and timer: which setting counts.
    settings: BTreeMap<(Id, P::Timer), u64>,
    set: u64,
    /// By direction: how many messages are under way.
    under_way: BTreeMap<(Id, Id), u64>,
    network: Dice,
    own: Dice,
}

/// Dice of their own.
#[derive(Clone, Copy)]
enum Part {
    Network,
    Disks,
    Members,
}

impl Stream for Part {
    fn number(&self) -> u64 {
        match self {
            Self::Network => 2,
            Self::Disks => 3,
            Self::Members => 6,
        }
    }
}

impl<P: Protocol, O> Ensemble<P, O> {
    /// As many members as there are disks. None of them runs.
    pub(crate) fn new(protocol: P, manners: Manners, seed: u64, trace: Trace) -> Self {
        let members = u8::try_from(manners.syncs_us.len()).unwrap_or(u8::MAX);
        let part = |part| Dice::part(seed, part);
        let mut own = part(Part::Members);
        let clocks = (0..members).map(|_| Clock {
            mono_offset: own.between(0, 1_000_000),
            pace_ppm: i64::try_from(own.between(0, 2_000)).unwrap_or_default() - 1_000,
            ..Clock::default()
        });
        Self {
            configuration: Configuration::new(protocol, members, false),
            now: Time(0),
            links: Links::new(usize::from(members), || 0),
            steps: None,
            count: 0,
            trace,
            stepped: Id(0),
            disks: part(Part::Disks),
            queue: Queue::default(),
            clocks: clocks.collect(),
            paused: BTreeMap::new(),
            lives: vec![(0, false); usize::from(members)],
            settings: BTreeMap::new(),
            set: 0,
            under_way: BTreeMap::new(),
            network: part(Part::Network),
            own,
            manners,
        }
    }

    pub(crate) fn members(&self) -> u8 {
        self.configuration.members()
    }

    /// Plans something of the owner's.
    pub(crate) fn plan(&mut self, at: Time, own: O) {
        self.queue.plan(at, Event::Own(own));
    }

    /// A client's request reaches a member then, if that runs.
    pub(crate) fn plan_request(&mut self, at: Time, to: Id, request: Request, op: Op) {
        self.queue.plan(at, Event::Ask(to, request, op));
    }

    /// When something happens next.
    pub(crate) fn next_at(&self) -> Option<Time> {
        self.queue.next_at()
    }

    /// The next thing happens; none where nothing is planned.
    pub(crate) fn happen(&mut self) -> Option<Happened<O>> {
        let (at, event) = self.queue.pop()?;
        self.now = at;
        if let Some(id) = concerns(&event)
            && let Some(waiting) = self.paused.get_mut(&id)
        {
            waiting.push(event);
            return Some(Happened::Inside);
        }
        match event {
            Event::Arrive(from, to, message) => self.arrive(from, to, message),
            Event::Fire(id, life, timer, set) => {
                let counts = self.settings.get(&(id, timer)) == Some(&set);
                if counts && self.lives[id.place()].0 == life {
                    self.step(&Step::Fire(id, timer));
                }
            }
            Event::Sync(id, life, writes) => self.synced(id, life, writes),
            Event::Ask(id, request, op) => self.step(&Step::Ask(id, request, op)),
            Event::Answered(request, outcome) => return Some(Happened::Answered(request, outcome)),
            Event::Own(own) => return Some(Happened::Own(own)),
        }
        Some(Happened::Inside)
    }

    fn arrive(&mut self, from: Id, to: Id, message: P::Message) {
        if let Some(count) = self.under_way.get_mut(&(from, to)) {
            *count = count.saturating_sub(1);
        }
        let passes = from == to || self.links.passes(from.place(), to.place());
        let step = Step::Deliver(from, to, message);
        if passes && self.configuration.can(&step) {
            self.links.count(from.place(), to.place());
            self.step(&step);
        } else if let Step::Deliver(from, to, message) = step {
            self.step(&Step::Lose(from, to, message));
        }
    }

    /// A step happens, if it can, and what follows from it is planned.
    pub(crate) fn step(&mut self, step: &Step<P>) {
        if !self.configuration.can(step) {
            return;
        }
        self.count += 1;
        let (id, what) = match step {
            Step::Ask(id, ..) => (*id, "ask"),
            Step::Deliver(_, to, _) => (*to, "deliver"),
            Step::Copy(_, to, _) => (*to, "copy"),
            Step::Lose(_, to, _) => (*to, "lose"),
            Step::Fire(id, _) => (*id, "fire"),
            Step::Sync(id) => (*id, "sync"),
            Step::Crash(id, _) => (*id, "crash"),
            Step::Start(id) => (*id, "start"),
        };
        self.stepped = id;
        self.trace.line(self.now, u64::from(id.0), what, [self.count, 0], || step.to_string());
        if let Some(steps) = &mut self.steps {
            steps.push(step.clone());
        }
        let reading = self.clocks[id.place()].read(self.now).mono;
        let now_us = u64::try_from(reading.as_micros()).unwrap_or(u64::MAX);
        let own = &mut self.own;
        let came = self.configuration.apply(step, now_us, &mut |bound| own.between(0, bound - 1));
        self.follow(came);
    }

    /// Plans what follows from a step.
    fn follow(&mut self, came: Came<P>) {
        for (from, to, message) in came.sent {
            self.send(from, to, message);
        }
        for (id, timer, after_us) in came.set {
            self.set += 1;
            self.settings.insert((id, timer), self.set);
            let pace = 1_000_000 + self.clocks[id.place()].pace_ppm;
            let after = u128::from(after_us) * 1_000_000 / u128::try_from(pace).unwrap_or(1_000_000);
            let at = self.now + u64::try_from(after).unwrap_or(u64::MAX / 2);
            self.queue.plan(at, Event::Fire(id, self.lives[id.place()].0, timer, self.set));
        }
        for id in came.writes {
            self.begin_sync(id);
        }
        for (_, request, outcome) in came.answers {
            let at = self.now + self.network.around(self.manners.delay_us);
            self.queue.plan(at, Event::Answered(request, outcome));
        }
    }

    /// A sync takes all that is written when it begins; what comes meanwhile waits for the next one.
    fn begin_sync(&mut self, id: Id) {
        let writes = self.configuration.unsynced(id);
        let (life, is_at_work) = self.lives[id.place()];
        if writes > 0 && !is_at_work {
            self.lives[id.place()].1 = true;
            let at = self.now + self.disks.around(self.manners.syncs_us[id.place()]);
            self.queue.plan(at, Event::Sync(id, life, writes));
        }
    }

    fn synced(&mut self, id: Id, life: u64, writes: usize) {
        if self.lives[id.place()].0 != life {
            return;
        }
        for _ in 0..writes {
            self.step(&Step::Sync(id));
        }
        self.lives[id.place()].1 = false;
        self.begin_sync(id);
    }

    fn send(&mut self, from: Id, to: Id, message: P::Message) {
        if from == to {
            self.queue.plan(self.now + 1, Event::Arrive(from, to, message));
            return;
        }
        // Now and then one takes many times as long, and is overtaken.
        let times = if self.network.chance(self.manners.late) { self.network.between(2, 60) } else { 1 };
        let added = self.links.added_us(from.place(), to.place(), &mut self.network);
        let usual = self.network.around(self.manners.delay_us) * times;
        let delay = usual.saturating_add(added);
        if self.network.chance(self.manners.lost) {
            self.step(&Step::Lose(from, to, message));
            return;
        }
        self.links.note_delay(from.place(), to.place(), delay);
        *self.under_way.entry((from, to)).or_default() += 1;
        if self.network.chance(self.manners.copied) {
            let later = delay + self.network.around(self.manners.delay_us * 20);
            // The copy comes first, so the message itself is still under way.
            self.queue.plan(self.now + later, Event::Arrive(from, to, message.clone()));
            let early = Step::Copy(from, to, message);
            let passes = self.links.passes(from.place(), to.place()) && !self.is_paused(to);
            if passes {
                self.step(&early);
            }
            return;
        }
        self.queue.plan(self.now + delay, Event::Arrive(from, to, message));
    }

    /// How many messages are under way in a direction.
    pub(crate) fn waiting(&self, from: Id, to: Id) -> u64 {
        self.under_way.get(&(from, to)).copied().unwrap_or_default()
    }

    /// Whether a member stands still.
    pub(crate) fn is_paused(&self, id: Id) -> bool {
        self.paused.contains_key(&id)
    }

    /// A member stands still from now on: what comes to it waits.
    pub(crate) fn pause(&mut self, id: Id) {
        self.paused.entry(id).or_default();
    }

    /// It goes on, with all that has come meanwhile.
    pub(crate) fn resume(&mut self, id: Id) {
        for event in self.paused.remove(&id).into_iter().flatten() {
            self.queue.plan(self.now + 1, event);
        }
    }

    /// A member ends. So many of its unsynced writes are on its disk all the same.
    pub(crate) fn end(&mut self, id: Id, kept: usize) {
        let (life, _) = self.lives[id.place()];
        self.lives[id.place()] = (life + 1, false);
        self.step(&Step::Crash(id, kept));
    }

    /// The member that takes itself for the leader of the highest term.
    pub(crate) fn leader(&self) -> Option<Id> {
        let leads = |id: &Id| self.configuration.protocol().leads(self.configuration.running(*id)?);
        Id::all(self.members()).max_by_key(leads).filter(|id| leads(id).is_some())
    }
}

/// The member that has to run for it.
fn concerns<P: Protocol, O>(event: &Event<P, O>) -> Option<Id> {
    match event {
        Event::Arrive(_, to, _) => Some(*to),
        Event::Fire(id, ..) | Event::Sync(id, ..) | Event::Ask(id, ..) => Some(*id),
        Event::Answered(..) | Event::Own(_) => None,
    }
}
