//! A world: an ensemble of real cores, its machines, wires and clients, moved by one queue of events.
//!
//! One thread, one stream of chance, one order of events: the seed decides everything. Each event changes the
//! world, gives at most a few inputs to members, and plans further events. What a member asks for is carried
//! out as the core's interface demands of a driver ([`node_core::io`]); where that leaves freedom (how long
//! an fsync takes, when a loss is noticed, which of two sources comes first) the dice decide.
//!
//! A world has five owners. None holds another, and each has a folder: all its methods stand there, so that
//! whoever reads an owner opens no other folder. A signature says what a method needs of other owners.
//!
//! - [`clockwork`]: time, order, chance, and the trace. Everybody is handed it.
//! - [`ensemble`]: machines, processes, wires.
//! - [`chaos`]: what goes wrong, whom it hits, and how it ends.
//! - [`population`]: the clients, what they ask and what they saw.
//! - [`oracle`]: what must hold. It looks and never acts.
//!
//! [`World`] is the router: an event goes to the owner it is for. What concerns several owners at once is a
//! method of `World` in [`coordination`], a file for each subject.
//!
//! Three may move a world: its queue of events; [`planned`], for `harness run --cluster sim`, with faults and
//! operations from outside; and a script ([`scripted`]), which a drawn world can be written down as.

mod chaos;
mod clockwork;
mod coordination;
mod ensemble;
mod oracle;
pub mod planned;
mod population;
mod scripted;

use crate::client::Wake;
use crate::drawn::Drawn;
use crate::network::{Block, EndId, HostIndex};
use crate::outcome::{Options, Outcome, Rule};
use crate::script::Prompt;
use chaos::Chaos;
pub use chaos::appointments::{Act, DiskAppointment};
use clockwork::Clockwork;
use clockwork::stage::Stage;
use ensemble::Ensemble;
use harness_world::dice::Dice;
use harness_world::time::Time;
use oracle::Oracle;
use population::Population;
use population::applications::Turn;
use population::record::Record;

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
        self.begin();
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
