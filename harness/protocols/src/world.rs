//! Worlds of a seed: messages take their time, get lost, come twice and overtake each other; disks are slow;
//! clocks run at their own pace; faults come and go, several at once. Then all is mended, and clients must be
//! served again.
//!
//! Everything is drawn from the seed, each part from dice of its own. A world knows what it did as a list of
//! steps ([`crate::Step`]), which happen again without any dice.

use std::collections::BTreeMap;

use harness_world::dice::{Chance, Dice, Stream};
use harness_world::links::{Block, Slower};
use harness_world::time::Time;
use harness_world::trace::Trace;
use workloads::{Op, Outcome};

use crate::clients::Clients;
use crate::configuration::Step;
use crate::ensemble::{Ensemble, Happened, Manners};
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

/// Dice of their own, beside those of the members' network, disks and choices.
#[derive(Clone, Copy)]
enum Part {
    Drawn,
    Faults,
    Clients,
}

impl Stream for Part {
    fn number(&self) -> u64 {
        match self {
            Self::Drawn => 1,
            Self::Faults => 4,
            Self::Clients => 5,
        }
    }
}

/// What is drawn of a world as a whole.
#[derive(Clone, Debug)]
struct Drawn {
    members: u8,
    clients: usize,
    manners: Manners,
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
        let clients = dice.index(3) + 2;
        let delay_us = dice.scale(200, if is_load { 20_000 } else { 200_000 });
        let syncs_us = (0..members).map(|_| dice.scale(100, 100_000)).collect();
        Self {
            members,
            clients,
            manners: Manners { delay_us, lost, late, copied, syncs_us },
            faults,
            pause_us: dice.scale(20_000, 2_000_000),
        }
    }

    fn in_words(&self) -> String {
        let Manners { delay_us, lost, late, copied, syncs_us } = &self.manners;
        format!(
            "{} members, {} clients, messages take {delay_us} us, {lost} lost, {late} late, {copied} twice, \
             syncs take {syncs_us:?} us, faults: {}",
            self.members,
            self.clients,
            if self.faults.is_empty() { "none".to_owned() } else { self.faults.join(", ") }
        )
    }
}

/// What will happen beside what members do.
enum Event {
    Start(Id),
    Next(usize),
    Again(Request, u64),
    GiveUp(Request),
    Unreached(Request, Outcome),
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
    ensemble: Ensemble<P, Event>,
    chaos: Dice,
    asking: Dice,
    clients: Clients,
    faults: BTreeMap<&'static str, u64>,
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
    let World { drawn, ensemble, clients, faults, .. } = world;
    let summary = Summary {
        seed,
        members: drawn.members,
        drawn: drawn.in_words(),
        broken,
        steps: ensemble.count,
        lived_us: ensemble.now.0,
        acknowledged: clients.acknowledged,
        faults,
        hash: ensemble.trace.hash(),
        lines: ensemble.trace.into_lines(),
    };
    Report { summary, steps: ensemble.steps.unwrap_or_default() }
}

impl<P: Protocol> World<P> {
    fn new(protocol: &P, seed: u64, options: Options) -> Self {
        let drawn = Drawn::of(seed, protocol.workload().is_some());
        let trace = Trace::new(options.trace);
        let mut ensemble = Ensemble::new(protocol.clone(), drawn.manners.clone(), seed, trace);
        ensemble.steps = options.keep.then(Vec::new);
        Self {
            ensemble,
            chaos: Dice::part(seed, Part::Faults),
            asking: Dice::part(seed, Part::Clients),
            clients: Clients::new(protocol.workload(), drawn.clients, seed),
            faults: BTreeMap::new(),
            healed: None,
            drawn,
        }
    }

    /// Until clients are served again after all faults, or something is broken.
    fn live(&mut self) -> Option<Broken> {
        for id in Id::all(self.drawn.members) {
            self.ensemble.step(&Step::Start(id));
        }
        // Those who propose one value each do so together in some worlds, and far apart in others.
        let within = self.asking.scale(2_000, FAULTS_US / 2);
        for client in 0..self.drawn.clients {
            let is_load = self.clients.kind().is_some();
            let first = if is_load { 1_000 } else { self.asking.between(1_000, within) };
            self.ensemble.plan(Time(first), Event::Next(client));
        }
        self.ensemble.plan(Time(self.drawn.pause_us), Event::Fault);
        self.ensemble.plan(Time(FAULTS_US), Event::Healed);
        while let Some(happened) = self.ensemble.happen() {
            match happened {
                Happened::Inside => {}
                Happened::Answered(request, outcome) => self.answered(request, &outcome),
                Happened::Own(event) => self.happens(event),
            }
            if let Some(broken) = self.ensemble.configuration.broken() {
                return Some(broken.clone());
            }
            if self.ensemble.count > MOST_STEPS {
                return Some(Broken::new(
                    "comes-back",
                    format!("{MOST_STEPS} steps are more than a world has"),
                ));
            }
            let Some(healed) = self.healed else { continue };
            if self.clients.since_healed.iter().all(|acknowledged| *acknowledged > 0) {
                return None;
            }
            if self.ensemble.now.since(healed) > PATIENCE_US {
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

    fn happens(&mut self, event: Event) {
        match event {
            Event::Start(id) => self.ensemble.step(&Step::Start(id)),
            Event::Next(client) => self.next(client),
            Event::Again(request, tried) => self.ask(request, tried),
            Event::GiveUp(request) => {
                if let Some(asked) = self.clients.open.get(&request) {
                    let outcome = Outcome::lost(&asked.op, "no answer in time");
                    self.answered(request, &outcome);
                }
            }
            Event::Unreached(request, outcome) => self.answered(request, &outcome),
            Event::Fault => self.fault(),
            Event::Mend(mend) => self.mend(mend),
            Event::Healed => self.heal(),
        }
    }

    /// Plans something for so long from now.
    fn plan(&mut self, after_us: u64, event: Event) {
        self.ensemble.plan(self.ensemble.now + after_us, event);
    }

    fn next(&mut self, client: usize) {
        let Some((request, _)) = self.clients.next(client, self.ensemble.now.as_ns()) else {
            // Others set up.
            self.plan(50_000, Event::Next(client));
            return;
        };
        self.plan(ANSWER_US, Event::GiveUp(request));
        self.ask(request, 0);
    }

    /// Asks a member, the next time another one.
    fn ask(&mut self, request: Request, tried: u64) {
        let Some(op) = self.clients.open.get(&request).map(|asked| asked.op.clone()) else { return };
        let id = Id(1 + u8::try_from(self.asking.index(usize::from(self.drawn.members))).unwrap_or_default());
        if self.ensemble.is_paused(id) || self.ensemble.configuration.running(id).is_none() {
            self.unreached(request, &op, tried);
            return;
        }
        if self.ensemble.configuration.protocol().knows_requests() {
            self.plan(RETRY_US, Event::Again(request, tried + 1));
        }
        self.ensemble.step(&Step::Ask(id, request, op));
    }

    /// Nobody is there: whoever has asked nobody yet knows that nothing came of it.
    fn unreached(&mut self, request: Request, op: &Op, tried: u64) {
        if tried == 0 {
            let outcome = Outcome::not_sent(op, "no member took the connection");
            self.plan(1_000, Event::Unreached(request, outcome));
        } else {
            self.plan(RETRY_US, Event::Again(request, tried + 1));
        }
    }

    fn answered(&mut self, request: Request, outcome: &Outcome) {
        let Some(client) = self.clients.ended(request, outcome, self.ensemble.now.as_ns()) else { return };
        // Whoever has proposed its value has little more to do.
        let mean = if self.clients.kind().is_some() { 30_000 } else { 1_000_000 };
        let pause = self.asking.around(mean);
        self.plan(pause, Event::Next(client));
    }

    fn fault(&mut self) {
        if self.healed.is_some() || self.drawn.faults.is_empty() {
            return;
        }
        let next = self.chaos.around(self.drawn.pause_us);
        self.plan(next, Event::Fault);
        if !self.clients.are_set_up() {
            return;
        }
        let name = self.drawn.faults[self.chaos.index(self.drawn.faults.len())];
        let any = Id(1 + u8::try_from(self.chaos.index(usize::from(self.drawn.members))).unwrap_or_default());
        let id = if name.ends_with("leader") { self.ensemble.leader().unwrap_or(any) } else { any };
        let held = self.chaos.scale(500, 3_000_000);
        let others = Id::all(self.drawn.members).filter(move |other| *other != id);
        *self.faults.entry(name).or_default() += 1;
        let until = self.ensemble.now + held;
        match name {
            "kill-one" | "kill-leader" => {
                let kept = self.ensemble.configuration.unsynced(id);
                let kept = self.ensemble.disks.index(kept + 1);
                self.ensemble.end(id, kept);
                self.ensemble.plan(until, Event::Start(id));
            }
            "pause-one" | "pause-leader" => {
                self.ensemble.pause(id);
                self.ensemble.plan(until, Event::Mend(Mend::Pause(id)));
            }
            "slow-one" => {
                let by = self.chaos.scale(20_000, 3_000_000);
                let ways: Vec<(Id, Id)> = others.map(|other| (id, other)).collect();
                for (from, to) in &ways {
                    self.ensemble.links.slow(from.place(), to.place(), slower(by));
                }
                self.ensemble.plan(until, Event::Mend(Mend::Slow(ways, by)));
            }
            _ => {
                let both = name != "partition-oneway";
                let ways: Vec<(Id, Id)> = others
                    .flat_map(|other| [Some((id, other)), both.then_some((other, id))])
                    .flatten()
                    .collect();
                for (from, to) in &ways {
                    self.ensemble.links.block(from.place(), to.place(), Block::Drop);
                }
                self.ensemble.plan(until, Event::Mend(Mend::Cut(ways)));
            }
        }
    }

    fn mend(&mut self, mend: Mend) {
        match mend {
            Mend::Cut(ways) => {
                for (from, to) in ways {
                    self.ensemble.links.unblock(from.place(), to.place(), Block::Drop);
                }
            }
            Mend::Slow(ways, by) => {
                for (from, to) in ways {
                    self.ensemble.links.quicken(from.place(), to.place(), slower(by));
                }
            }
            Mend::Pause(id) => self.ensemble.resume(id),
        }
    }

    /// No fault comes any more; those that are in force end when they were to end, which is soon.
    fn heal(&mut self) {
        self.ensemble.manners.lost = Chance::NEVER;
        self.healed = Some(self.ensemble.now);
        self.clients.since_healed.iter_mut().for_each(|acknowledged| *acknowledged = 0);
    }
}

fn slower(latency_us: u64) -> Slower {
    Slower { latency_us, jitter_us: 0 }
}
