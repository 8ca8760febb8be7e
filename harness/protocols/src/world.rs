//! Worlds of a seed: messages take their time, get lost, come twice and overtake each other; disks are slow;
//! clocks run at their own pace; faults come and go, several at once. Then all is mended, and clients must be
//! served again.
//!
//! Everything is drawn from the seed, each part from dice of its own. A world knows what it did as a list of
//! steps ([`crate::Step`]), which happen again without any dice.

use std::collections::BTreeMap;

use harness_world::clock::Clock;
use harness_world::dice::{Chance, Dice, Stream};
use harness_world::links::{Block, Links};
use harness_world::time::{Queue, Time};
use harness_world::trace::Trace;
use workloads::{Op, Outcome};

use crate::clients::Clients;
use crate::configuration::{Came, Configuration, Step};
use crate::protocol::{Broken, Id, Protocol, Request};
use crate::report::{Report, Summary};
use crate::told;

/// What a world is asked for.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Whether its steps are kept.
    pub keep: bool,
    /// Whether a line is written for each.
    pub trace: bool,
}

/// How long faults come, in virtual microseconds.
const FAULTS_US: u64 = 12_000_000;
/// How long after the last fault clients may wait to be served.
const PATIENCE_US: u64 = 60_000_000;
/// How long a client waits for an answer, all in all.
const ANSWER_US: u64 = 1_500_000;
/// After how long it asks another member.
const RETRY_US: u64 = 400_000;
/// Steps of a world, at most.
const MOST_STEPS: u64 = 400_000;

/// Faults that worlds know, by the names of the bench's nemeses.
const FAULTS: [&str; 8] = [
    "partition-one",
    "partition-leader",
    "partition-oneway",
    "kill-one",
    "kill-leader",
    "pause-one",
    "pause-leader",
    "slow-one",
];

/// Dice of their own.
#[derive(Clone, Copy)]
enum Part {
    Drawn,
    Network,
    Disks,
    Faults,
    Clients,
    Members,
}

impl Stream for Part {
    fn number(&self) -> u64 {
        match self {
            Self::Drawn => 1,
            Self::Network => 2,
            Self::Disks => 3,
            Self::Faults => 4,
            Self::Clients => 5,
            Self::Members => 6,
        }
    }
}

/// What is drawn of a world as a whole.
#[derive(Clone, Debug)]
struct Drawn {
    members: u8,
    clients: usize,
    delay_us: u64,
    lost: Chance,
    late: Chance,
    copied: Chance,
    /// By member.
    syncs_us: Vec<u64>,
    faults: Vec<&'static str>,
    /// From one fault to the next.
    pause_us: u64,
}

impl Drawn {
    /// `is_load`: whether clients go on; who proposes once is done soon, so that messages take longer there.
    fn of(seed: u64, is_load: bool) -> Self {
        let mut dice = Dice::part(seed, Part::Drawn);
        let members = [3, 3, 5, 5, 4][dice.index(5)];
        let faults = FAULTS.into_iter().filter(|_| dice.chance(Chance(5_000))).collect();
        let mut share = |most: u64| {
            let parts = if dice.chance(Chance(5_000)) { 0 } else { dice.between(1, most) };
            Chance(u32::try_from(parts).unwrap_or_default())
        };
        let (lost, copied, late) = (share(1_500), share(1_000), share(2_000));
        Self {
            members,
            lost,
            copied,
            late,
            faults,
            clients: dice.index(3) + 2,
            delay_us: dice.scale(200, if is_load { 20_000 } else { 200_000 }),
            syncs_us: (0..members).map(|_| dice.scale(100, 100_000)).collect(),
            pause_us: dice.scale(20_000, 2_000_000),
        }
    }

    fn in_words(&self) -> String {
        format!(
            "{} members, {} clients, messages take {} us, {} lost, {} late, {} twice, syncs take {:?} us, \
             faults: {}",
            self.members,
            self.clients,
            self.delay_us,
            self.lost,
            self.late,
            self.copied,
            self.syncs_us,
            if self.faults.is_empty() { "none".to_owned() } else { self.faults.join(", ") }
        )
    }
}

/// What will happen.
enum Event<P: Protocol> {
    Arrive(Id, Id, P::Message),
    Fire(Id, u64, P::Timer, u64),
    Sync(Id, u64, usize),
    Start(Id),
    Next(usize),
    Again(Request, u64),
    GiveUp(Request),
    Answered(Request, Outcome),
    Fault,
    Mend(Mend),
    Healed,
}

/// What ends a fault.
enum Mend {
    Cut(Vec<(Id, Id)>),
    Pause(Id),
    Slow(Vec<(Id, Id)>, u64),
}

/// A world.
struct World<P: Protocol> {
    drawn: Drawn,
    configuration: Configuration<P>,
    queue: Queue<Event<P>>,
    now: Time,
    links: Links,
    clocks: Vec<Clock>,
    /// What came while a member stood still.
    paused: BTreeMap<Id, Vec<Event<P>>>,
    /// By member: which life it lives, and whether its disk is at work.
    lives: Vec<(u64, bool)>,
    /// By member and timer: which setting counts.
    settings: BTreeMap<(Id, P::Timer), u64>,
    set: u64,
    network: Dice,
    disks: Dice,
    chaos: Dice,
    asking: Dice,
    own: Dice,
    clients: Clients,
    steps: Option<Vec<Step<P>>>,
    count: u64,
    faults: BTreeMap<&'static str, u64>,
    trace: Trace,
    healed: Option<Time>,
}

/// Lives through the world of a seed.
#[must_use]
pub fn simulate<P: Protocol>(protocol: &P, seed: u64, options: Options) -> Report<P> {
    let mut world = World::new(protocol, seed, options);
    let mut broken = world.live();
    if broken.is_none() {
        broken = world.judged();
    }
    let summary = Summary {
        seed,
        members: world.drawn.members,
        drawn: world.drawn.in_words(),
        broken,
        steps: world.count,
        lived_us: world.now.0,
        acknowledged: world.clients.acknowledged,
        faults: world.faults,
        hash: world.trace.hash(),
        lines: world.trace.into_lines(),
    };
    Report { summary, steps: world.steps.unwrap_or_default() }
}

impl<P: Protocol> World<P> {
    fn new(protocol: &P, seed: u64, options: Options) -> Self {
        let drawn = Drawn::of(seed, protocol.workload().is_some());
        let part = |part| Dice::part(seed, part);
        let mut own = part(Part::Members);
        let clocks = (0..drawn.members).map(|_| Clock {
            mono_offset: own.between(0, 1_000_000),
            pace_ppm: i64::try_from(own.between(0, 2_000)).unwrap_or_default() - 1_000,
            ..Clock::default()
        });
        Self {
            configuration: Configuration::new(protocol.clone(), drawn.members, false),
            queue: Queue::default(),
            now: Time(0),
            links: Links::new(usize::from(drawn.members), || 0),
            clocks: clocks.collect(),
            paused: BTreeMap::new(),
            lives: vec![(0, false); usize::from(drawn.members)],
            settings: BTreeMap::new(),
            set: 0,
            network: part(Part::Network),
            disks: part(Part::Disks),
            chaos: part(Part::Faults),
            asking: part(Part::Clients),
            own,
            clients: Clients::new(protocol.workload(), drawn.clients, seed),
            steps: options.keep.then(Vec::new),
            count: 0,
            faults: BTreeMap::new(),
            trace: Trace::new(options.trace),
            healed: None,
            drawn,
        }
    }

    /// Until clients are served again after all faults, or something is broken.
    fn live(&mut self) -> Option<Broken> {
        for id in Id::all(self.drawn.members) {
            self.step(&Step::Start(id));
        }
        // Those who propose one value each do so together in some worlds, and far apart in others.
        let within = self.asking.scale(2_000, FAULTS_US / 2);
        for client in 0..self.drawn.clients {
            let is_load = self.clients.kind().is_some();
            let first = if is_load { 1_000 } else { self.asking.between(1_000, within) };
            self.queue.plan(Time(first), Event::Next(client));
        }
        self.queue.plan(Time(self.drawn.pause_us), Event::Fault);
        self.queue.plan(Time(FAULTS_US), Event::Healed);
        while let Some((at, event)) = self.queue.pop() {
            self.now = at;
            self.happens(event);
            if let Some(broken) = self.configuration.broken() {
                return Some(broken.clone());
            }
            if self.count > MOST_STEPS {
                return Some(Broken::new(
                    "comes-back",
                    format!("{MOST_STEPS} steps are more than a world has"),
                ));
            }
            let Some(healed) = self.healed else { continue };
            if self.clients.since_healed.iter().all(|acknowledged| *acknowledged > 0) {
                return None;
            }
            if self.now.since(healed) > PATIENCE_US {
                let words =
                    format!("{} s after the last fault a client was not served", PATIENCE_US / 1_000_000);
                return Some(Broken::new("comes-back", words));
            }
        }
        Some(Broken::new("comes-back", "nothing happens any more, and a client was not served"))
    }

    /// What the clients' history shows by the checks of its workload. That one of them can't decide is no
    /// promise kept, and told like one that is broken.
    fn judged(&self) -> Option<Broken> {
        let kind = self.clients.kind()?;
        let history = match self.clients.history() {
            Ok(history) => history,
            Err(why) => return Some(Broken::new("history", why)),
        };
        told::judged(kind, &history).map(told::in_words)
    }

    fn happens(&mut self, event: Event<P>) {
        if let Some(id) = Self::concerns(&event)
            && let Some(waiting) = self.paused.get_mut(&id)
        {
            waiting.push(event);
            return;
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
            Event::Start(id) => self.step(&Step::Start(id)),
            Event::Next(client) => self.next(client),
            Event::Again(request, tried) => self.ask(request, tried),
            Event::GiveUp(request) => {
                if let Some(asked) = self.clients.open.get(&request) {
                    let outcome = Outcome::lost(&asked.op, "no answer in time");
                    self.answered(request, &outcome);
                }
            }
            Event::Answered(request, outcome) => self.answered(request, &outcome),
            Event::Fault => self.fault(),
            Event::Mend(mend) => self.mend(mend),
            Event::Healed => self.heal(),
        }
    }

    /// The member that has to run for it.
    fn concerns(event: &Event<P>) -> Option<Id> {
        match event {
            Event::Arrive(_, to, _) => Some(*to),
            Event::Fire(id, ..) | Event::Sync(id, ..) => Some(*id),
            _ => None,
        }
    }

    fn arrive(&mut self, from: Id, to: Id, message: P::Message) {
        let passes = from == to || self.links.passes(from.place(), to.place());
        let step = Step::Deliver(from, to, message);
        if passes && self.configuration.can(&step) {
            self.step(&step);
        } else if let Step::Deliver(from, to, message) = step {
            self.step(&Step::Lose(from, to, message));
        }
    }

    fn step(&mut self, step: &Step<P>) {
        if !self.configuration.can(step) {
            return;
        }
        self.count += 1;
        let id = match step {
            Step::Ask(id, ..) | Step::Fire(id, _) | Step::Sync(id) | Step::Crash(id, _) | Step::Start(id) => {
                *id
            }
            Step::Deliver(_, to, _) | Step::Copy(_, to, _) | Step::Lose(_, to, _) => *to,
        };
        let what = match step {
            Step::Ask(..) => "ask",
            Step::Deliver(..) => "deliver",
            Step::Copy(..) => "copy",
            Step::Lose(..) => "lose",
            Step::Fire(..) => "fire",
            Step::Sync(_) => "sync",
            Step::Crash(..) => "crash",
            Step::Start(_) => "start",
        };
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
            let at = self.now + self.network.around(self.drawn.delay_us);
            self.queue.plan(at, Event::Answered(request, outcome));
        }
    }

    /// A sync takes all that is written when it begins; what comes meanwhile waits for the next one.
    fn begin_sync(&mut self, id: Id) {
        let writes = self.configuration.unsynced(id);
        let (life, is_at_work) = self.lives[id.place()];
        if writes > 0 && !is_at_work {
            self.lives[id.place()].1 = true;
            let at = self.now + self.disks.around(self.drawn.syncs_us[id.place()]);
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
        let slower = self.links.slower(from.place(), to.place()).latency_us;
        // Now and then one takes many times as long, and is overtaken.
        let times = if self.network.chance(self.drawn.late) { self.network.between(2, 60) } else { 1 };
        let delay = self.network.around(self.drawn.delay_us) * times + slower;
        if self.network.chance(self.drawn.lost) {
            self.step(&Step::Lose(from, to, message));
            return;
        }
        if self.network.chance(self.drawn.copied) {
            let later = delay + self.network.around(self.drawn.delay_us * 20);
            // The copy comes first, so the message itself is still under way.
            self.queue.plan(self.now + later, Event::Arrive(from, to, message.clone()));
            let early = Step::Copy(from, to, message);
            let passes = self.links.passes(from.place(), to.place()) && !self.paused.contains_key(&to);
            if passes {
                self.step(&early);
            }
            return;
        }
        self.queue.plan(self.now + delay, Event::Arrive(from, to, message));
    }

    fn next(&mut self, client: usize) {
        let Some((request, _)) = self.clients.next(client, self.now.as_ns()) else {
            // Others set up.
            self.queue.plan(self.now + 50_000, Event::Next(client));
            return;
        };
        self.queue.plan(self.now + ANSWER_US, Event::GiveUp(request));
        self.ask(request, 0);
    }

    /// Asks a member, the next time another one.
    fn ask(&mut self, request: Request, tried: u64) {
        let Some(op) = self.clients.open.get(&request).map(|asked| asked.op.clone()) else { return };
        let id = Id(1 + u8::try_from(self.asking.index(usize::from(self.drawn.members))).unwrap_or_default());
        if self.paused.contains_key(&id) || self.configuration.running(id).is_none() {
            self.unreached(request, &op, tried);
            return;
        }
        if self.configuration.protocol().knows_requests() {
            self.queue.plan(self.now + RETRY_US, Event::Again(request, tried + 1));
        }
        self.step(&Step::Ask(id, request, op));
    }

    /// Nobody is there: whoever has asked nobody yet knows that nothing came of it.
    fn unreached(&mut self, request: Request, op: &Op, tried: u64) {
        if tried == 0 {
            let outcome = Outcome::not_sent(op, "no member took the connection");
            self.queue.plan(self.now + 1_000, Event::Answered(request, outcome));
        } else {
            self.queue.plan(self.now + RETRY_US, Event::Again(request, tried + 1));
        }
    }

    fn answered(&mut self, request: Request, outcome: &Outcome) {
        let Some(client) = self.clients.ended(request, outcome, self.now.as_ns()) else { return };
        // Whoever has proposed its value has little more to do.
        let mean = if self.clients.kind().is_some() { 30_000 } else { 1_000_000 };
        let pause = self.asking.around(mean);
        self.queue.plan(self.now + pause, Event::Next(client));
    }

    fn leader(&self) -> Option<Id> {
        let leads = |id: &Id| self.configuration.protocol().leads(self.configuration.running(*id)?);
        Id::all(self.drawn.members).max_by_key(leads).filter(|id| leads(id).is_some())
    }

    fn fault(&mut self) {
        if self.healed.is_some() || self.drawn.faults.is_empty() {
            return;
        }
        let next = self.chaos.around(self.drawn.pause_us);
        self.queue.plan(self.now + next, Event::Fault);
        if !self.clients.are_set_up() {
            return;
        }
        let name = self.drawn.faults[self.chaos.index(self.drawn.faults.len())];
        let any = Id(1 + u8::try_from(self.chaos.index(usize::from(self.drawn.members))).unwrap_or_default());
        let id = if name.ends_with("leader") { self.leader().unwrap_or(any) } else { any };
        let held = self.chaos.scale(500, 3_000_000);
        let others = Id::all(self.drawn.members).filter(move |other| *other != id);
        *self.faults.entry(name).or_default() += 1;
        let until = self.now + held;
        match name {
            "kill-one" | "kill-leader" => {
                let kept = self.configuration.unsynced(id);
                let kept = self.disks.index(kept + 1);
                self.end(id, kept);
                self.queue.plan(until, Event::Start(id));
            }
            "pause-one" | "pause-leader" => {
                self.paused.entry(id).or_default();
                self.queue.plan(until, Event::Mend(Mend::Pause(id)));
            }
            "slow-one" => {
                let by = self.chaos.scale(20_000, 3_000_000);
                let ways: Vec<(Id, Id)> = others.map(|other| (id, other)).collect();
                for (from, to) in &ways {
                    self.links.slow(from.place(), to.place(), slower(by));
                }
                self.queue.plan(until, Event::Mend(Mend::Slow(ways, by)));
            }
            _ => {
                let both = name != "partition-oneway";
                let ways: Vec<(Id, Id)> = others
                    .flat_map(|other| [Some((id, other)), both.then_some((other, id))])
                    .flatten()
                    .collect();
                for (from, to) in &ways {
                    self.links.block(from.place(), to.place(), Block::Drop);
                }
                self.queue.plan(until, Event::Mend(Mend::Cut(ways)));
            }
        }
    }

    fn end(&mut self, id: Id, kept: usize) {
        let (life, _) = self.lives[id.place()];
        self.lives[id.place()] = (life + 1, false);
        self.step(&Step::Crash(id, kept));
    }

    fn mend(&mut self, mend: Mend) {
        match mend {
            Mend::Cut(ways) => {
                for (from, to) in ways {
                    self.links.unblock(from.place(), to.place(), Block::Drop);
                }
            }
            Mend::Slow(ways, by) => {
                for (from, to) in ways {
                    self.links.quicken(from.place(), to.place(), slower(by));
                }
            }
            Mend::Pause(id) => {
                for event in self.paused.remove(&id).into_iter().flatten() {
                    self.queue.plan(self.now + 1, event);
                }
            }
        }
    }

    /// No fault comes any more; those that are in force end when they were to end, which is soon.
    fn heal(&mut self) {
        self.drawn.lost = Chance::NEVER;
        self.healed = Some(self.now);
        self.clients.since_healed.iter_mut().for_each(|acknowledged| *acknowledged = 0);
    }
}

fn slower(latency_us: u64) -> harness_world::links::Slower {
    harness_world::links::Slower { latency_us, jitter_us: 0 }
}
