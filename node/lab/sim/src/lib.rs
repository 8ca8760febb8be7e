//! A deterministic world for members: whole ensembles of the real core over virtual network, disk, clock and
//! clients, in one thread, with one seed deciding everything.
//!
//! Why: the bugs that matter in a replicated system are interleavings: a crash between two writes, under a
//! partition, while a disk stalls. Real clusters meet them once a month and never twice. Here a world of some
//! seconds takes milliseconds, and the same seed gives the same world, to the byte of its trace.
//!
//! What is real: [`node_core`], the state machine of a member; [`node_log`], its log, snapshots and recovery,
//! over a disk in memory that loses what was not synchronized; the codecs of all three protocols; the
//! workloads and the checker. What is virtual: time, wires, disks' latencies, processes, clients.
//!
//! - Each seed draws its own swarm options ([`Drawn`]): size, delays, time-outs, which faults and how often.
//! - Safety is judged inside after every step (the properties of ZooKeeper's own Zab.tla by their names,
//!   durability, recovery) and outside, on what clients saw: the checks of every workload that the world
//!   draws; and the two must agree.
//! - After chaos everything is healed, and the ensemble must elect, serve and converge in bounded time.
//! - A failing seed is made small ([`shrink`]): a [`Script`] of transitions that a person can read, and that
//!   still means the same when the simulator draws differently.
//!
//! What it deliberately does not do: threads, real time, files. A violation is a value, not a panic; a panic
//! of a member is caught and is a violation too.
//!
//! The idea is FoundationDB's simulation, with TigerBeetle's habit of drawing the probabilities as well.

mod application;
mod client;
mod counters;
mod drawn;
mod drawn_words;
mod explore;
mod host;
mod invariants;
mod network;
mod outcome;
mod part;
mod prober;
mod rare;
mod script;
mod traffic;
mod watcher;
mod world;

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

pub use counters::Counters;
pub use drawn::{Drawn, Only};
pub use explore::{Bounds, Counterexample, Explored, Model, explore, explore_from, starts};
pub use harness_core::fault::SwarmFault;
use harness_world::dice::Dice;
pub use lab_apps::mutants as recipe_mutants;
pub use outcome::{Options, Outcome, Rule, Violation};
pub use script::{Replayed, Script, ScriptError, Shrunk, replay, shrink, write_down};
pub use traffic::Traffic;
use world::World;
pub use world::planned;
pub use world::{Act, DiskAppointment};

/// Lives through the world of a seed.
pub fn simulate(seed: u64, options: Options) -> Outcome {
    let mut world = World::new(seed, options);
    // A panicking member leaves a world that is only looked at, not continued.
    let panic = catch_unwind(AssertUnwindSafe(|| world.run())).err();
    world.into_outcome(panic.map(|payload| message_of(payload.as_ref())))
}

/// Lives through a world of these options in which a script says what happens when, in microseconds, and
/// which operation of which disk fails. None when that operation was not reached.
pub fn simulate_appointed(
    drawn: Drawn,
    acts: &[(u64, Act)],
    appointment: DiskAppointment,
    options: Options,
) -> Option<Outcome> {
    let mut world = World::of(drawn, Dice::new(0), options);
    world.appoint(acts, appointment);
    world.run();
    world.was_kept().then(|| world.into_outcome(None))
}

fn message_of(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("a panic without a message").to_owned()
}

/// What came of many seeds.
#[derive(Clone, Debug, Default)]
pub struct Sweep {
    /// Seeds that were tried.
    pub seeds: u64,
    /// Everything that happened in them.
    pub counters: Counters,
    /// Seeds in which a promise was broken, and how.
    pub violations: Vec<(u64, Violation)>,
    /// Registers whose history was too much for the checker's budget.
    pub undecided: u64,
    /// The longest election after healing, in virtual milliseconds, and its seed.
    pub slowest_election_ms: (u64, u64),
    /// The sum of all traces' hashes: equal for equal sweeps, whoever ran which seed.
    pub trace_hash: u64,
}

impl Sweep {
    /// Adds a seed's outcome.
    pub fn add(&mut self, outcome: Outcome) {
        self.seeds += 1;
        self.counters += outcome.counters;
        self.undecided += outcome.undecided;
        self.trace_hash = self.trace_hash.wrapping_add(outcome.trace_hash);
        let election = (outcome.election_ms.unwrap_or(0), outcome.drawn.seed);
        self.slowest_election_ms = self.slowest_election_ms.max(election);
        self.violations.extend(outcome.violation.map(|violation| (outcome.drawn.seed, violation)));
    }

    /// Adds what another sweep found.
    pub fn merge(&mut self, other: Self) {
        self.seeds += other.seeds;
        self.counters += other.counters;
        self.undecided += other.undecided;
        self.trace_hash = self.trace_hash.wrapping_add(other.trace_hash);
        self.slowest_election_ms = self.slowest_election_ms.max(other.slowest_election_ms);
        self.violations.extend(other.violations);
        self.violations.sort_by_key(|(seed, _)| *seed);
    }
}

/// Lives through the worlds of many seeds, one after the other.
pub fn sweep(seeds: impl IntoIterator<Item = u64>, options: Options) -> Sweep {
    let mut sweep = Sweep::default();
    for seed in seeds {
        sweep.add(simulate(seed, options));
    }
    sweep
}
