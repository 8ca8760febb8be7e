//! A world: an ensemble of real cores, its machines, wires and clients, moved by one queue of events.
//!
//! One thread, one stream of chance, one order of events: the seed decides everything. Each event changes the
//! world, gives at most a few inputs to members, and plans further events. What a member asks for is carried
//! out as the core's interface demands of a driver ([`node_core::io`]); where that leaves freedom (how long
//! an fsync takes, when a loss is noticed, which of two sources comes first) the dice decide.
//!
//! - [`driver`]: inputs to members and what becomes of their effects.
//! - [`machine`]: disks, crashes, restarts, pauses; [`sloppy`]: a driver that does not keep its contract.
//! - [`wires`], [`election`]: quorum connections, election connections, links.
//! - [`nemesis`]: faults, and their end: [`cuts`] of links, [`disks`] that fail, [`traps`] for members on their
//!   way to an epoch.
//! - [`rehearsals`]: what disks would hold, had their members died at chosen moments.
//! - [`progress`], [`patience`], [`answers`], [`echoes`]: what must go on in spite of them; [`membership`]: by whom, where that changes.
//! - [`population`]: clients' connections; [`operations`]: what they do there; [`record`] and [`history`]: what they
//!   leave, and its judgement; [`sessions`]: whether those end as they must; [`scouts`]: clients that watch;
//!   [`probers`]: clients that try what the law says.
//! - [`planned`]: a calm world whose faults and operations come from outside, for `harness run --cluster sim`.
//! - [`stages`]: chaos, then healing, then what must hold afterwards; [`minority`]: and what must hold before all
//!   are back.
//! - [`hand`], [`recorder`]: the world written down as a script; [`by_hand`], [`fair`], [`notes`]: a script moves it.

mod answers;
mod appointed;
mod by_hand;
mod cuts;
mod disks;
mod driver;
mod echoes;
mod election;
mod fair;
mod hand;
mod history;
mod machine;
mod membership;
mod minority;
mod nemesis;
mod notes;
mod operations;
mod patience;
pub mod planned;
mod population;
mod probers;
mod progress;
mod record;
mod recorder;
mod rehearsals;
mod scouts;
mod sessions;
mod sloppy;
mod stages;
mod traps;
mod wires;

use std::collections::{BTreeMap, BTreeSet};

use harness_mutants::{Driver, Mutant};
use node_core::io::Effect;
use node_core::{Factory, TICK};

use crate::client::{Client, ClientConn, Wake};
use crate::counters::Counters;
use crate::dice::{Chance, Dice, Part};
use crate::drawn::Drawn;
use crate::host::Host;
use crate::judge::{Finding, Judge};
use crate::network::{Block, Channels, Conn, EndId, HostIndex, Links};
use crate::outcome::{Options, Outcome, Rule, Violation};
use crate::script::{Prompt, Reduction};
use crate::time::{Queue, Time};
use crate::trace::Trace;
use answers::Waits;
pub(crate) use appointed::{Act, Appointment};
use echoes::Echoes;
use hand::Hand;
use nemesis::Undo;
use patience::Patience;
use progress::Progress;
use record::Record;
use sessions::Ears;
use stages::Stage;
use traps::Armed;

/// Events of one world at most: a world that never ends is a bug of the simulator.
const MAX_EVENTS: u64 = 20_000_000;

/// What can happen.
#[derive(Clone, Debug)]
enum Event {
    /// A process's timer.
    Tick { host: HostIndex, life: u64 },
    /// A store's writer finishes.
    Stored { host: HostIndex, life: u64 },
    /// A process ends while its store is at work.
    Die { host: HostIndex, life: u64 },
    /// A snapshot is written.
    Snapshot { host: HostIndex, life: u64 },
    /// A process starts.
    Start { host: HostIndex },
    /// Something arrives at this end of a quorum connection.
    Arrival(EndId),
    /// A dial reaches its target.
    Dial { from: HostIndex, life: u64, to: HostIndex },
    /// A dialler learns that its dial succeeded.
    Dialled { end: EndId, to: HostIndex },
    /// A dialler learns that its dial failed.
    DialFailed { from: HostIndex, life: u64, to: HostIndex },
    /// An end learns that its connection was reset.
    Lost(EndId),
    /// The larger id of a pair dials the smaller's election port.
    ElectionDial { from: HostIndex, life: u64, to: HostIndex },
    /// The dialler learns that its election connection stands.
    ElectionUp { host: HostIndex, peer: HostIndex, generation: u64 },
    /// A member learns that its election connection is gone.
    ElectionLost { host: HostIndex, peer: HostIndex, generation: u64 },
    /// Something arrives on an election connection.
    Votes { host: HostIndex, peer: HostIndex },
    /// Something arrives at a member from a client.
    ToMember { conn: usize },
    /// Something arrives at a client.
    ToClient { conn: usize },
    /// A client's timer.
    Client { client: usize, plan: u64, wake: Wake },
    /// The next fault.
    Nemesis,
    /// The end of a fault.
    Undo { fault: u64 },
    /// A pair's turn to lose sight of each other.
    Cut { pair: (HostIndex, HostIndex), block: Block, for_us: u64 },
    /// A look whether somebody leads.
    Watch,
    /// Something that a script wants.
    Act(Act),
    /// Chaos ends.
    Heal,
    /// A look whether the healed ensemble has got where it must.
    Look,
    /// Something of a planned run.
    Planned(planned::Wake),
}

/// Everything there is.
pub(crate) struct World<F: Factory> {
    now: Time,
    queue: Queue<Event>,
    dice: Dice,
    /// The dice of the nemesis, anew for each of its turns.
    fate: Dice,
    turn: u64,
    drawn: Drawn,
    factory: F,
    /// What the driver of its members does wrong.
    driver: Driver,
    options: Options,
    hosts: Vec<Host<F>>,
    links: Links,
    conns: Vec<Conn>,
    conns_in_use: Vec<usize>,
    channels: Channels,
    clients: Vec<Client>,
    client_conns: Vec<ClientConn>,
    record: Record,
    judge: Judge,
    ears: Ears,
    faults: BTreeMap<u64, Undo>,
    next_fault: u64,
    traps: Vec<Armed>,
    progress: Progress,
    patience: Patience,
    echoes: Echoes,
    waits: Waits,
    /// The dice of ends that do not happen.
    rehearsals: Dice,
    /// The dice of probers' pauses.
    pauses: Dice,
    /// What was appointed for a disk, in a world that follows a script.
    appointment: Option<Appointment>,
    stage: Stage,
    healed_at: Time,
    /// Epochs that had ended by their number of transactions when the present stage began.
    full_epochs_then: u64,
    /// Members that stay dead until the others have shown that they are a quorum.
    left_dead: BTreeSet<HostIndex>,
    /// The present stage was not through in time, and gets a second one without what was in its way.
    hurries: bool,
    election_us: Option<u64>,
    counters: Counters,
    trace: Trace,
    violation: Option<Violation>,
    effects: Vec<Effect>,
    /// The member that was stepped last.
    stepping: Option<HostIndex>,
    /// What a planned run has beside the world, when this is one.
    planned: Option<Box<planned::Plan>>,
    /// Who moves it.
    hand: Hand,
    /// What happens at once; in a script only.
    prompt: Prompt,
    /// What is left out of it.
    reduction: Reduction,
}

impl<F: Factory> World<F> {
    /// A world as its seed draws it, before anything happened.
    pub(crate) fn new(seed: u64, options: Options, factory: F) -> Self {
        let mut dice = Dice::new(seed);
        let drawn = Drawn::new(seed, options.only, &mut dice);
        Self::of(drawn, dice, options, factory)
    }

    /// The world of these options, drawn or not.
    pub(crate) fn of(drawn: Drawn, mut dice: Dice, options: Options, factory: F) -> Self {
        let links = Links::new(drawn.hosts(), || dice.between(drawn.link_us.0, drawn.link_us.1));
        let hosts = (0..drawn.hosts()).map(|index| machine::new_host(index, &drawn, &mut dice)).collect();
        let record = Record::new(&drawn, &mut dice);
        Self {
            now: Time::default(),
            queue: Queue::new(),
            hosts,
            links,
            conns: Vec::new(),
            conns_in_use: Vec::new(),
            channels: Channels::new(drawn.hosts()),
            clients: Vec::new(),
            client_conns: Vec::new(),
            record,
            judge: Judge::of(drawn.members, drawn.observers)
                .with_local_sessions(drawn.local)
                .with_lists(!drawn.changes),
            ears: Ears::new(drawn.hosts(), drawn.everybody()),
            faults: BTreeMap::new(),
            next_fault: 0,
            traps: Vec::new(),
            progress: Progress::new(drawn.hosts()),
            patience: Patience::new(drawn.hosts()),
            echoes: Echoes::default(),
            waits: Waits::default(),
            rehearsals: Dice::part(drawn.seed, Part::Rehearsals),
            pauses: Dice::part(drawn.seed, Part::Pauses),
            appointment: None,
            stage: Stage::Chaos,
            healed_at: Time::default(),
            full_epochs_then: 0,
            left_dead: BTreeSet::new(),
            hurries: false,
            election_us: None,
            counters: Counters::default(),
            trace: Trace::new(options.trace),
            violation: None,
            effects: Vec::new(),
            stepping: None,
            planned: None,
            hand: Hand::None,
            prompt: Prompt::default(),
            reduction: Reduction::default(),
            fate: dice.clone(),
            turn: 0,
            dice,
            drawn,
            factory,
            driver: options.mutant.map_or(Driver::Sound, Mutant::driver),
            options,
        }
    }

    /// Lives through everything that happens.
    pub(crate) fn run(&mut self) {
        self.begin();
        let mut events = 0;
        while self.violation.is_none() && self.stage != Stage::Over {
            let Some((at, event)) = self.queue.pop() else { break };
            events += 1;
            assert!(events < MAX_EVENTS, "a world goes on for ever");
            if self.reduction.end_us.is_some_and(|end| at.0 > end) {
                break;
            }
            self.now = at;
            self.happen(event);
        }
        if self.violation.is_none() {
            self.check_history();
        }
    }

    /// What came of it.
    pub(crate) fn into_outcome(mut self, panic: Option<String>) -> Outcome {
        if let Some(message) = panic {
            self.convict(Rule::Panic, message);
        }
        self.counters.virtual_ms = self.now.0 / 1000;
        self.counters.elections = self.judge.epochs();
        self.counters.memberships = self.judge.memberships();
        self.counters.local_writes = self.judge.local_writes();
        Outcome {
            // As it was drawn: a healed world has changed its own copy.
            drawn: Drawn::of(self.drawn.seed, self.options.only),
            violation: self.violation,
            counters: self.counters,
            trace_hash: self.trace.hash(),
            trace: self.trace.into_lines(),
            election_ms: self.election_us.map(|us| us / 1000),
            undecided: self.record.undecided,
        }
    }

    fn begin(&mut self) {
        for host in 0..self.hosts.len() {
            let at = Time(self.dice.between(0, 300_000));
            self.queue.plan(at, Event::Start { host });
        }
        self.populate();
        self.queue.plan(Time(self.drawn.warmup_us), Event::Nemesis);
        self.queue.plan(Time::default(), Event::Watch);
        self.queue.plan(Time(self.drawn.warmup_us + self.drawn.chaos_us), Event::Heal);
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Tick { host, life } => self.tick(host, life),
            Event::Stored { host, life } => self.store_finishes(host, life),
            Event::Die { host, life } => self.die(host, life),
            Event::Snapshot { host, life } => self.snapshot_finishes(host, life),
            Event::Start { host } => self.start_process(host),
            Event::Arrival(end) => self.arrive(end),
            Event::Dial { from, life, to } => self.dial_arrives(from, life, to),
            Event::Dialled { end, to } => self.dial_succeeds(end, to),
            Event::DialFailed { from, life, to } => self.dial_fails(from, life, to),
            Event::Lost(end) => self.tell_loss(end),
            Event::ElectionDial { from, life, to } => self.election_dial(from, life, to),
            Event::ElectionUp { host, peer, generation } => self.election_up(host, peer, generation),
            Event::ElectionLost { host, peer, generation } => self.election_lost(host, peer, generation),
            Event::Votes { host, peer } => self.votes_arrive(host, peer),
            Event::ToMember { conn } => self.client_to_member(conn),
            Event::ToClient { conn } => self.member_to_client(conn),
            Event::Client { client, plan, wake } => self.wake_client(client, plan, wake),
            Event::Nemesis => self.next_fault(),
            Event::Undo { fault } => self.undo(fault),
            Event::Cut { pair, block, for_us } => self.cut_sight(pair, block, for_us),
            Event::Watch => self.watch(),
            Event::Act(act) => self.act_as_told(act),
            Event::Heal => self.heal(),
            Event::Look => self.look(),
            Event::Planned(wake) => self.wake_slot(wake),
        }
    }

    fn plan(&mut self, delay_us: u64, event: Event) {
        self.queue.plan(self.now + delay_us, event);
    }

    /// True while the process that an event was planned for still runs.
    fn lives(&self, host: HostIndex, life: u64) -> bool {
        self.hosts[host].life == life && self.hosts[host].process.is_some()
    }

    /// The delay of a message on a link, as drawn for this one message.
    fn link_delay(&mut self, from: HostIndex, to: HostIndex) -> u64 {
        let usual = self.links.delay_us(from, to) + self.dice.between(0, self.drawn.jitter_us);
        if self.dice.chance(self.drawn.spike) {
            usual + self.dice.between(0, self.drawn.spike_us)
        } else {
            usual
        }
    }

    /// How long after the fact a loss is noticed.
    fn notice_delay(&mut self) -> u64 {
        let late = self.dice.chance(self.drawn.told_late);
        self.dice.between(0, if late { self.drawn.late_us } else { self.drawn.link_us.1 })
    }

    /// Drawn probabilities are those of chaos; a healed world is calm.
    fn calm(&mut self) {
        self.drawn.spike = Chance::NEVER;
        self.drawn.stall = Chance::NEVER;
        self.drawn.refuse = Chance::NEVER;
        self.drawn.told_late = Chance::NEVER;
    }

    fn line(&mut self, who: HostIndex, verb: &'static str, figures: [u64; 2], text: impl FnOnce() -> String) {
        let who = u64::try_from(who).expect("members are few") + 1;
        self.trace.line(self.now, who, verb, figures, text);
    }

    fn world_line(&mut self, verb: &'static str, figures: [u64; 2], text: impl FnOnce() -> String) {
        self.trace.line(self.now, 0, verb, figures, text);
    }

    /// The first violation counts.
    fn convict(&mut self, rule: Rule, sentence: String) {
        if self.violation.is_none() {
            self.world_line("violation", [0, 0], || format!("{}: {sentence}", rule.name()));
            self.violation = Some(Violation { rule, at_us: self.now.0, sentence });
        }
    }

    /// A finding of the judge inside, if anybody asked for it.
    fn judged(&mut self, finding: Finding) {
        if let Err((rule, sentence)) = finding
            && self.options.look_inside
        {
            self.convict(rule, sentence);
        }
    }

    fn tick_delay(&mut self) -> u64 {
        let tick = u64::try_from(TICK.as_micros()).expect("a tick is short");
        tick + self.dice.between(0, self.drawn.tick_jitter_us)
    }
}
