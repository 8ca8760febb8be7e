//! A world: an ensemble of real cores, its machines, wires and clients, moved by one queue of events.
//!
//! One thread, one stream of chance, one order of events: the seed decides everything. Each event changes the
//! world, gives at most a few inputs to members, and plans further events. What a member asks for is carried
//! out as the core's interface demands of a driver ([`node_core::io`]); where that leaves freedom (how long
//! an fsync takes, when a loss is noticed, which of two sources comes first) the dice decide.
//!
//! A world has five owners. None holds another; each can be read by itself, and says in its signatures what
//! else it needs:
//!
//! - [`clockwork`]: time, order, chance, and the trace. Everybody is handed it.
//! - [`ensemble`]: machines, processes, wires. [`wires`], [`election`]: quorum and election connections;
//!   [`machine`]: disks, restarts, pauses.
//! - [`chaos`]: what goes wrong. [`nemesis`]: faults and their end; [`cuts`] of links, [`disks`] that fail,
//!   [`traps`] for members on their way to an epoch; [`rehearsals`]: what disks would hold, had members died
//!   at chosen moments.
//! - [`population`]: the clients. [`operations`]: what they do; [`record`]: what they leave; [`watchers`]:
//!   clients that watch; [`probers`]: clients that try what the law says; [`applications`]: clients that lead
//!   or wait for it.
//! - [`work`]: steps that take time, where they do.
//! - [`oracle`]: what must hold. [`progress`], [`patience`], [`answers`], [`echoes`]: what must go on in
//!   spite of faults; [`membership`]: by whom, where that changes; [`sessions`]: whether those end as they
//!   must; [`contenders`]: whether one leads; [`history`]: what clients saw.
//!
//! [`World`] is the router: an event goes to the owner it is for, and what concerns several of them is done
//! here, in the file of its subject. [`driver`] is the middle of it: an input reaches a member, and its
//! effects reach their owners. [`stages`] is the course of a world: chaos, then healing, then what must hold
//! afterwards; [`minority`]: and what must hold before all are back.
//!
//! Three may move a world: its queue of events; [`planned`], for `harness run --cluster sim`, with faults and
//! operations from outside; and a script ([`mover`], [`script_writer`] write one down, [`scripted`],
//! [`fair`], [`describe`] carry it out).

mod answers;
mod applications;
mod chaos;
mod clockwork;
mod contenders;
mod cuts;
mod describe;
mod disks;
mod driver;
mod echoes;
mod election;
mod ensemble;
mod fair;
mod history;
mod machine;
mod membership;
mod minority;
mod mover;
mod nemesis;
mod non_fail_stop;
mod operations;
mod oracle;
mod patience;
pub mod planned;
mod population;
mod probers;
mod progress;
mod record;
mod rehearsals;
mod scheduled;
mod script_writer;
mod scripted;
mod sessions;
mod stages;
mod traps;
mod watchers;
mod wires;
mod work;

use node_core::TICK;

use crate::client::Wake;
use crate::drawn::Drawn;
use crate::invariants::{Finding, Invariants};
use crate::network::{Block, EndId, HostIndex};
use crate::outcome::{Options, Outcome, Rule, Violation};
use crate::script::Prompt;
use applications::Turn;
use chaos::Chaos;
use clockwork::Clockwork;
use ensemble::Ensemble;
use harness_world::dice::{Chance, Dice};
use harness_world::time::Time;
use oracle::Oracle;
use population::Population;
use record::Record;
pub(crate) use scheduled::{Act, DiskAppointment};
use stages::Stage;

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
    /// A step that takes time is over.
    Rests { host: HostIndex, life: u64 },
    /// Somebody speaks for a process that works since then.
    Speaks { host: HostIndex, life: u64, since: Time },
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
    /// An application's turn.
    Application { number: usize, turn: Turn },
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

/// Everything there is: five owners, none of which holds another, and what is beside them in some worlds.
pub(crate) struct World {
    clock: Clockwork,
    ensemble: Ensemble,
    chaos: Chaos,
    population: Population,
    oracle: Oracle,
    /// What a planned run has beside the world, when this is one.
    planned: Option<Box<planned::Plan>>,
    /// What happens at once; in a script only.
    prompt: Prompt,
}

impl Clockwork {
    fn plan(&mut self, delay_us: u64, event: Event) {
        self.queue.plan(self.now + delay_us, event);
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

    fn tick_delay(&mut self) -> u64 {
        let tick = u64::try_from(TICK.as_micros()).expect("a tick is short");
        tick + self.dice.between(0, self.drawn.tick_jitter_us)
    }
}

impl Ensemble {
    /// True while the process that an event was planned for still runs.
    fn lives(&self, host: HostIndex, life: u64) -> bool {
        self.hosts[host].life == life && self.hosts[host].process.is_some()
    }

    /// The delay of a message on a link, as drawn for this one message.
    fn link_delay(&self, clock: &mut Clockwork, from: HostIndex, to: HostIndex) -> u64 {
        let usual = self.links.delay_us(from, to) + clock.dice.between(0, clock.drawn.jitter_us);
        if clock.dice.chance(clock.drawn.spike) {
            usual + clock.dice.between(0, clock.drawn.spike_us)
        } else {
            usual
        }
    }
}

impl Population {
    fn begin(&mut self, clock: &mut Clockwork, ensemble: &Ensemble) {
        for host in 0..ensemble.hosts.len() {
            let at = Time(clock.dice.between(0, 300_000));
            clock.queue.plan(at, Event::Start { host });
        }
        self.populate(clock, ensemble);
        self.populate_applications(clock, ensemble);
        clock.queue.plan(Time(clock.drawn.warmup_us), Event::Nemesis);
        clock.queue.plan(Time::default(), Event::Watch);
        clock.queue.plan(Time(clock.drawn.warmup_us + clock.drawn.chaos_us), Event::Heal);
    }
}

impl Oracle {
    /// The first violation counts.
    fn report(&mut self, clock: &mut Clockwork, rule: Rule, sentence: String) {
        if self.violation.is_none() {
            clock.world_line("violation", [0, 0], || format!("{}: {sentence}", rule.name()));
            self.violation = Some(Violation { rule, at_us: clock.now.0, sentence });
        }
    }

    /// The invariants follow what happened.
    ///
    /// Those of a planned world do not: its run is judged by its folder, and what they remember of every
    /// entry would be most of the memory of a long run.
    fn inform(&mut self, clock: &Clockwork, what: impl FnOnce(&mut Invariants)) {
        if !clock.is_planned {
            what(&mut self.invariants);
        }
    }

    /// The invariants follow what happened, and say what promise it breaks.
    fn judge(&mut self, clock: &mut Clockwork, what: impl FnOnce(&mut Invariants) -> Finding) {
        let mut finding = Ok(());
        self.inform(clock, |invariants| finding = what(invariants));
        self.found(clock, finding);
    }

    /// What an invariant says of a step, if anybody asked for it.
    fn found(&mut self, clock: &mut Clockwork, finding: Finding) {
        if let Err((rule, sentence)) = finding
            && clock.options.look_inside
        {
            self.report(clock, rule, sentence);
        }
    }
}

impl World {
    /// A world as its seed draws it, before anything happened.
    pub(crate) fn new(seed: u64, options: Options) -> Self {
        let mut dice = Dice::new(seed);
        let drawn = Drawn::new(seed, options.only, &mut dice);
        Self::of(drawn, dice, options)
    }

    /// The world of these options, drawn or not.
    pub(crate) fn of(drawn: Drawn, mut dice: Dice, options: Options) -> Self {
        let ensemble = Ensemble::new(&drawn, &mut dice, options.mutant);
        let record = Record::new(&drawn, &mut dice);
        Self {
            ensemble,
            chaos: Chaos::new(&drawn, &dice),
            population: Population::new(&drawn, record),
            oracle: Oracle::new(&drawn),
            clock: Clockwork::new(drawn, dice, options),
            planned: None,
            prompt: Prompt::default(),
        }
    }

    /// Lives through everything that happens.
    pub(crate) fn run(&mut self) {
        self.population.begin(&mut self.clock, &self.ensemble);
        let mut events = 0;
        while self.oracle.violation.is_none() && self.clock.stage != Stage::Over {
            let Some((at, event)) = self.clock.queue.pop() else { break };
            events += 1;
            assert!(events < MAX_EVENTS, "a world goes on for ever");
            if self.clock.reduction.end_us.is_some_and(|end| at.0 > end) {
                break;
            }
            self.clock.now = at;
            self.happen(event);
            self.oracle.check_applications(&mut self.clock, &self.population);
        }
        if self.oracle.violation.is_none() {
            self.population.check_history(&mut self.clock, &mut self.oracle);
        }
    }

    /// What came of it.
    pub(crate) fn into_outcome(mut self, panic: Option<String>) -> Outcome {
        if let Some(message) = panic {
            self.oracle.report(&mut self.clock, Rule::Panic, message);
        }
        self.clock.counters.virtual_ms = self.clock.now.0 / 1000;
        self.clock.counters.elections = self.oracle.invariants.epochs();
        self.clock.counters.memberships = self.oracle.invariants.memberships();
        self.clock.counters.local_writes = self.oracle.invariants.local_writes();
        Outcome {
            // As it was drawn: a healed world has changed its own copy.
            drawn: Drawn::of(self.clock.drawn.seed, self.clock.options.only),
            violation: self.oracle.violation,
            counters: self.clock.counters,
            trace_hash: self.clock.trace.hash(),
            trace: self.clock.trace.into_lines(),
            election_ms: self.oracle.election_us.map(|us| us / 1000),
            undecided: self.population.record.undecided,
        }
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Tick { host, life } => self.tick(host, life),
            Event::Stored { host, life } => self.store_finishes(host, life),
            Event::Die { host, life } => self.die(host, life),
            Event::Snapshot { host, life } => self.snapshot_finishes(host, life),
            Event::Rests { host, life } => self.rest(host, life),
            Event::Speaks { host, life, since } => self.ensemble.speak(&mut self.clock, host, life, since),
            Event::Start { host } => {
                self.chaos.start_process(&mut self.clock, &mut self.ensemble, &mut self.oracle, host)
            }
            Event::Arrival(end) => self.arrive(end),
            Event::Dial { from, life, to } => self.dial_arrives(from, life, to),
            Event::Dialled { end, to } => self.dial_succeeds(end, to),
            Event::DialFailed { from, life, to } => self.dial_fails(from, life, to),
            Event::Lost(end) => self.tell_loss(end),
            Event::ElectionDial { from, life, to } => {
                self.ensemble.election_dial(&mut self.clock, from, life, to)
            }
            Event::ElectionUp { host, peer, generation } => self.election_up(host, peer, generation),
            Event::ElectionLost { host, peer, generation } => self.election_lost(host, peer, generation),
            Event::Votes { host, peer } => self.votes_arrive(host, peer),
            Event::ToMember { conn } => self.client_to_member(conn),
            Event::ToClient { conn } => self.member_to_client(conn),
            Event::Client { client, plan, wake } => self.population.wake_client(
                &mut self.clock,
                &self.ensemble,
                &mut self.oracle,
                client,
                plan,
                wake,
            ),
            Event::Application { number, turn } => self.application_turns(number, turn),
            Event::Nemesis => self.next_fault(),
            Event::Undo { fault } => self.undo(fault),
            Event::Cut { pair, block, for_us } => self.chaos.cut_sight(
                &mut self.clock,
                &mut self.ensemble,
                &mut self.oracle,
                pair,
                block,
                for_us,
            ),
            Event::Watch => self.watch(),
            Event::Act(act) => self.act_as_told(act),
            Event::Heal => self.heal(),
            Event::Look => self.look(),
            Event::Planned(wake) => self.wake_slot(wake),
        }
    }
}
