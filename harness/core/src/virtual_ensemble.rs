//! An ensemble in virtual time, as a run drives it: all that `--cluster sim` needs of a world.
//!
//! What is broken is said as [`Condition`]s: values for a link, a process or a clock. They hold from when
//! they are imposed until they are lifted, and they overlap: a link on which two faults lie is free when both
//! are lifted. A world that lacks a condition says so before anything starts, and nothing is faked. What
//! holds is seen from the inside by looks, which read the world and never what was asked for.
//!
//! A world is deterministic: the same [`Setting`] and the same calls give the same world, to the byte. It
//! does nothing while nobody lets it live on. Moments are in virtual microseconds, from the world's
//! beginning.

use checker::history::Event as Line;
use runs::events::Stamped;
use runs::member::MemberId;
use runs::observed::Shut;
use workloads::{Op, Outcome, Workload};

use crate::condition::{Condition, LinkCondition, Quality};
use crate::cut::Pair;

/// What a world is made of.
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
    /// The bug that is planted in every member, by its name.
    pub bug: Option<&'static str>,
}

impl Setting {
    /// How many members there are, observers included.
    #[must_use]
    pub fn everybody(&self) -> usize {
        self.members + self.observers
    }
}

/// What makes a world: of a setting, and of what clients do there. No member runs in it yet.
pub type Begin = fn(Setting, Workload) -> Box<dyn VirtualEnsemble>;

/// What a look at a member's process shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Process {
    /// It runs.
    Running,
    /// It stands still.
    Stopped,
    /// There is none.
    Gone,
}

/// Moments at which operations fall due, ascending.
pub type Arrivals = Box<dyn Iterator<Item = u64>>;

/// An ensemble in virtual time.
pub trait VirtualEnsemble {
    /// How long the world has lived.
    fn now_us(&self) -> u64;
    /// Lives on until this moment, or until something became of a member. True when something did.
    fn advance(&mut self, to_us: u64) -> bool;
    /// What became of members since the last time.
    fn take_events(&mut self) -> Vec<Stamped>;
    /// The history's lines since the last time.
    fn take_lines(&mut self) -> Vec<Line>;
    /// The hash of everything that happened: equal for equal worlds.
    fn trace_hash(&self) -> u64;

    /// Starts a member's process; one that runs is left alone.
    fn start(&mut self, member: MemberId);
    /// Whether the world has conditions of this quality. It is never told one that it lacks.
    ///
    /// # Errors
    /// Why it has none.
    fn can(&self, quality: Quality) -> Result<(), String>;
    /// From now on this holds. Where a direction becomes slower, it is forgotten how long things took so far.
    fn impose(&mut self, condition: Condition);
    /// Takes a condition away again, once. Where that leaves no direction slow, it is forgotten how long
    /// things took so far.
    fn lift(&mut self, condition: Condition);

    /// What a member's process does.
    fn process(&self, member: MemberId) -> Process;
    /// Whether what is sent in a direction arrives.
    fn passes(&self, pair: Pair) -> bool;
    /// What a direction is like, as far as it lets anything pass.
    fn link(&self, pair: Pair) -> LinkCondition;
    /// How long the newest of what was sent in a direction took, in microseconds, since one was last made
    /// slower, or all are quick again.
    fn delays(&self, pair: Pair) -> Vec<u64>;
    /// Messages that have arrived in a direction.
    fn delivered(&self, pair: Pair) -> u64;
    /// Messages under way in a direction.
    fn waiting(&self, pair: Pair) -> u64;
    /// How far a member's wall clock is off.
    fn clock_offset_ms(&self, member: MemberId) -> i64;

    /// Lets clients in. Operations fall due at these moments.
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
    fn send_one_off(&mut self, member: MemberId, process: u64, todo: Vec<Op>) -> usize;
    /// What came of a one-off client's operations, once it is over.
    fn one_off(&self, one_off: usize) -> Option<&[(Op, Outcome)]>;
}
