//! What a seed draws before its world begins: swarm testing.
//!
//! A fixed set of probabilities finds the bugs of one kind of world. Here the options themselves are drawn:
//! some worlds have slow disks and no partitions, some nothing but pauses, some are small and hasty. The idea
//! is from "Swarm testing" (Groce and others, ISSTA 2012) by way of FoundationDB and TigerBeetle. A setting
//! that no ensemble could live with is not drawn: a healthy round trip and a healthy fsync stay well below
//! the peer time-out, so that liveness can be demanded once the faults are healed.

use std::fmt;

use node_wire::ids::Zxid;

use crate::part::Part;
use crate::rare::Rare;
use harness_core::fault::SwarmFault;
use harness_world::dice::{Chance, Dice, HALF};

/// What every world of a sweep has, where a seed alone draws it for some.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Only {
    /// An ensemble that changes while it serves. A world that has one anyway stays what it is, to the byte.
    Membership,
    /// Applications over recipes, beside all other clients.
    Applications,
    /// Slow machines and large requests: steps that work for many peer time-outs.
    LongSteps,
}

impl Only {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Membership, Self::Applications, Self::LongSteps];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Membership => "membership",
            Self::Applications => "applications",
            Self::LongSteps => "long-steps",
        }
    }

    /// What is meant by a name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|only| only.name() == name)
    }
}

/// The options of one world.
#[derive(Clone, Debug)]
pub struct Drawn {
    /// The seed it comes from.
    pub seed: u64,
    /// Voting members.
    pub members: usize,
    /// Members without a vote, behind those that vote.
    pub observers: usize,
    /// The members' own time-out for each other.
    pub peer_timeout_ms: u64,
    /// ZooKeeper's tickTime, which bounds the sessions' time-outs.
    pub tick_time_ms: u64,
    /// Ticks that the taking over of a history may last.
    pub init_limit: u32,
    /// Entries between two snapshots.
    pub snap_count: u64,
    /// Committed entries that a leader keeps for learners: who lacks more gets a SNAP.
    pub journal_entries: usize,
    /// Few faults that last long and cut links alone: what remains connected must elect.
    pub siege: bool,
    /// What a new log file reserves at once.
    pub preallocate_bytes: u64,
    /// How large a log file becomes.
    pub roll_bytes: u64,
    /// What a message takes on a link, at least and at most.
    pub link_us: (u64, u64),
    /// What may come on top of that for each message.
    pub jitter_us: u64,
    /// How often a message takes much longer.
    pub spike: Chance,
    pub(crate) spike_us: u64,
    /// What a synchronization takes, at least and at most.
    pub fsync_us: (u64, u64),
    /// How often one takes much longer.
    pub stall: Chance,
    pub(crate) stall_us: u64,
    /// How late a member's timer is, at most.
    pub tick_jitter_us: u64,
    /// How far monotonic clocks run fast or slow at most, in parts per million.
    pub(crate) pace_ppm: u64,
    /// How often a packet goes through the codecs of the wire.
    pub codec: Chance,
    /// How often the loss of a connection is noticed late.
    pub told_late: Chance,
    pub(crate) late_us: u64,
    pub(crate) abrupt: Chance,
    /// How often a crash loses what was not synchronized.
    pub power: Chance,
    /// How often a crash falls into the middle of a step.
    pub mid_step: Chance,
    /// How often a dial is refused.
    pub refuse: Chance,
    pub(crate) fault_every_us: u64,
    pub(crate) fault_us: u64,
    /// How often each kind of fault comes, beside the others.
    pub weights: [u64; SwarmFault::ALL.len()],
    /// When faults begin.
    pub warmup_us: u64,
    /// How long they go on.
    pub chaos_us: u64,
    /// Clients of the register workload.
    pub clients: usize,
    /// Registers.
    pub keys: u64,
    /// Reads among operations on registers.
    pub read_percent: u8,
    /// Compare-and-sets among them.
    pub cas_percent: u8,
    /// What a busy client waits between two operations.
    pub think_us: u64,
    /// What a patient one waits.
    pub patient_us: u64,
    /// How long a client waits for an answer.
    pub op_timeout_us: u64,
    /// The time-out that clients ask for.
    pub session_timeout_ms: u64,
    /// Clients that make ephemeral and sequential nodes.
    pub visitors: usize,
    /// The zxid counter that ends an epoch.
    pub last_counter: u32,
    /// Clients that watch, change several nodes at once and make nodes that go by themselves.
    pub watchers: usize,
    /// Sessions live on their member alone, until they own something.
    pub local: bool,
    /// Members without a leader serve reads to watchers.
    pub read_only: bool,
    /// Watchers set limits and try them.
    pub limits: bool,
    /// The ensemble may change while it serves.
    pub changes: bool,
    /// Clients that change it.
    pub operators: usize,
    /// Members without a vote are in no membership at first.
    pub strangers: bool,
    /// One voter may be all that is left.
    pub alone: bool,
    /// What usually lies between two changes.
    pub(crate) turnover_us: u64,
    /// Clients that try what the specification says.
    pub probers: usize,
    /// What usually lies between two of their batches.
    pub(crate) probing_us: u64,
    /// How often a leader looks for such nodes.
    pub(crate) reaping_ms: u64,
    /// How long such a node lives.
    pub(crate) mortal_ms: u64,
    /// What is rare.
    pub(crate) rare: Rare,
    /// Applications over recipes.
    pub applications: usize,
    /// The time-out that they ask for.
    pub(crate) application_timeout_ms: u64,
    /// What usually lies between two actions of one of them.
    pub(crate) action_us: u64,
    /// They lock, and do not stand for election.
    pub(crate) locks: bool,
    /// What a step takes for each part of something large, in microseconds. Zero: no step takes time.
    pub unit_us: u64,
}

/// A kind of fault is left out of a world with this probability.
const ABSENT: Chance = Chance(4_000);

/// What a client's turn takes beside its patience: the election before it and the way there.
const TURN_US: u64 = 300_000;

/// An ensemble has observers with this probability.
const OBSERVED: Chance = Chance(3_000);

/// Observers of an ensemble at most.
const MOST_OBSERVERS: usize = 2;

/// A world has watchers with this probability.
const WATCHED: Chance = Chance(4_000);

/// Watchers at most.
const MOST_WATCHERS: usize = 3;

/// A world has probers with this probability.
const PROBED: Chance = Chance(3_000);

/// And then two of them, of whom none touches the other's nodes.
const TWO_PROBERS: Chance = Chance(2_500);

/// Applications of a world at most, where there are any.
const MOST_APPLICATIONS: usize = 5;

/// Parts of a session's time-out that an attempt to connect may last.
const DIALS: u64 = 5;

/// Applications lock with this probability, and else stand for election.
const LOCKING: Chance = Chance(2_500);

/// What usually lies between two batches of a prober.
const PROBING_US: (u64, u64) = (10_000, 160_000);

/// Writes of a batch at most, beside those of other clients in the same time.
const PROBED_WRITES: u64 = 8;

/// Members have sessions of their own with this probability; and serve without a leader, where there are
/// watchers.
const LONE: Chance = Chance(1_500);

/// The ensemble of a world changes with this probability.
const CHANGING: Chance = Chance(2_500);

/// A world that is no siege has steps that take time with this probability.
const LABORIOUS: Chance = Chance(600);

/// Where steps are long, so many times longer it is from one fault to the next.
const QUIET: u64 = 4;

/// Members of an ensemble that changes, at least.
const CHANGEABLE: usize = 3;

/// How often a leader looks for what goes by itself, where nobody makes such nodes.
const SELDOM_MS: u64 = 60_000;

/// A world is a siege with this probability.
const SIEGE: Chance = Chance(600);

/// How many vote.
fn members(dice: &mut Dice) -> usize {
    match dice.between(0, 19) {
        0..=10 => 3,
        11..=15 => 5,
        16 => 1,
        17 => 2,
        18 => 4,
        _ => dice.index(2) + 6,
    }
}

/// Between two faults, of one fault, and of all of them; in microseconds.
fn durations(siege: bool, dice: &mut Dice) -> (u64, u64, u64) {
    let mut lasting = |usual: (u64, u64), siege_us: (u64, u64)| {
        let (lo, hi) = if siege { siege_us } else { usual };
        dice.scale(lo, hi)
    };
    let every_us = lasting((60_000, 1_500_000), (2_000_000, 8_000_000));
    let one_us = lasting((50_000, 2_000_000), (4_000_000, 16_000_000));
    let (lo, hi) = if siege { (12_000_000, 30_000_000) } else { (2_000_000, 6_000_000) };
    (every_us, one_us, dice.between(lo, hi))
}

/// How often each fault comes, one against the other.
fn weights(siege: bool, dice: &mut Dice) -> [u64; SwarmFault::ALL.len()] {
    let mut weights = std::array::from_fn(|_| if dice.chance(ABSENT) { 0 } else { dice.between(1, 8) });
    // Two in three of its traps find nobody.
    weights[SwarmFault::KillInPhase as usize] *= 3;
    if siege {
        for (weight, kind) in weights.iter_mut().zip(SwarmFault::ALL) {
            *weight *= u64::from(kind.is_partition());
        }
    }
    weights
}

/// What is drawn first, because the rest hangs on it.
struct Frame {
    peer_timeout_ms: u64,
    members: usize,
    link_hi: u64,
    fsync_hi: u64,
    read_percent: u8,
    siege: bool,
    weights: [u64; SwarmFault::ALL.len()],
    /// Between two faults, of one fault, and of all of them.
    durations_us: (u64, u64, u64),
}

impl Frame {
    fn new(dice: &mut Dice) -> Self {
        let peer_timeout_ms = dice.between(100, 400);
        let members = members(dice);
        // A healthy answer takes two delays and an fsync; together they stay below half of the time-out.
        let link_hi = dice.scale(100, peer_timeout_ms * 1000 / 20);
        let fsync_hi = dice.scale(100, peer_timeout_ms * 1000 / 8);
        // Where most operations are reads, clients get far enough at a deposed leader to see the past.
        let read_percent = if dice.chance(HALF) { 40 } else { 90 };
        let siege = dice.chance(SIEGE);
        let weights = weights(siege, dice);
        let durations_us = durations(siege, dice);
        Self { peer_timeout_ms, members, link_hi, fsync_hi, read_percent, siege, weights, durations_us }
    }
}

impl Drawn {
    /// What a seed draws, without living through its world.
    pub fn of_seed(seed: u64) -> Self {
        Self::of(seed, None)
    }

    /// The same where all worlds have something.
    pub fn of(seed: u64, only: Option<Only>) -> Self {
        Self::new(seed, only, &mut Dice::new(seed))
    }

    /// Draws everything for a seed. The dice go on from here into the world.
    pub(crate) fn new(seed: u64, only: Option<Only>, dice: &mut Dice) -> Self {
        let frame = Frame::new(dice);
        Self::within(seed, frame, dice)
            .with_watchers(&mut Dice::part(seed, Part::Watchers))
            .with_long_steps(only == Some(Only::LongSteps), &mut Dice::part(seed, Part::Work))
            .with_probers(&mut Dice::part(seed, Part::Probers))
            .with_short_epochs(&mut Dice::part(seed, Part::Epochs))
            .with_observers(&mut Dice::part(seed, Part::Observers))
            .with_changes(only == Some(Only::Membership), &mut Dice::part(seed, Part::Changes))
            .with_lone_members(&mut Dice::part(seed, Part::Lone))
            .with_rare(&mut Dice::part(seed, Part::Rare))
            .with_applications(only == Some(Only::Applications), &mut Dice::part(seed, Part::Applications))
    }

    /// Every field is named here, so that a new one asks to be thought of.
    fn within(seed: u64, frame: Frame, dice: &mut Dice) -> Self {
        let Frame { peer_timeout_ms, members, link_hi, fsync_hi, read_percent, siege, weights, .. } = frame;
        let (fault_every_us, fault_us, chaos_us) = frame.durations_us;
        Self {
            seed,
            members,
            observers: 0,
            peer_timeout_ms,
            tick_time_ms: dice.between(100, 500),
            init_limit: u32::try_from(dice.between(5, 10)).unwrap_or(5),
            snap_count: dice.scale(5, 400),
            journal_entries: journal_entries(dice),
            siege,
            preallocate_bytes: dice.between(0, 3) * 2048,
            roll_bytes: dice.scale(512, 65_536),
            link_us: (dice.scale(20, link_hi), link_hi),
            jitter_us: dice.scale(1, link_hi),
            spike: Chance(u32::try_from(dice.between(0, 200)).unwrap_or(0)),
            spike_us: dice.scale(1000, peer_timeout_ms * 2000),
            fsync_us: (dice.scale(20, fsync_hi), fsync_hi),
            stall: Chance(u32::try_from(dice.between(0, 300)).unwrap_or(0)),
            stall_us: dice.scale(1000, peer_timeout_ms * 4000),
            tick_jitter_us: dice.scale(1, 20_000),
            pace_ppm: if dice.chance(HALF) { 100 } else { dice.scale(100, 40_000) },
            codec: Chance(u32::try_from(dice.scale(500, 10_000)).unwrap_or(0)),
            told_late: share(dice),
            late_us: dice.scale(1000, peer_timeout_ms * 2000),
            abrupt: share(dice),
            power: share(dice),
            mid_step: share(dice),
            refuse: Chance(u32::try_from(dice.between(0, 2000)).unwrap_or(0)),
            fault_every_us,
            fault_us,
            weights,
            warmup_us: dice.between(0, 1_500_000),
            chaos_us,
            clients: usize::try_from(dice.between(2, 8)).unwrap_or(2),
            keys: dice.between(1, 3),
            read_percent,
            cas_percent: if read_percent > 50 { 5 } else { 30 },
            think_us: dice.scale(2_000, 100_000),
            patient_us: dice.scale(20_000, 1_200_000),
            op_timeout_us: dice.scale(200_000, 3_000_000),
            session_timeout_ms: dice.scale(400, 6_000),
            visitors: dice.index(3),
            last_counter: Zxid::LAST_COUNTER,
            watchers: 0,
            local: false,
            read_only: false,
            limits: false,
            changes: false,
            operators: 0,
            strangers: false,
            alone: false,
            turnover_us: 0,
            probers: 0,
            probing_us: 0,
            reaping_ms: SELDOM_MS,
            mortal_ms: 0,
            rare: Rare::default(),
            applications: 0,
            application_timeout_ms: 0,
            action_us: 0,
            locks: false,
            unit_us: 0,
        }
    }

    /// Some worlds have what is rare. Where streams are long, few entries are kept, so that there are many,
    /// and epochs last: one that ends by its counter while a tree is on its way would end every attempt.
    fn with_rare(mut self, dice: &mut Dice) -> Self {
        let init_ms = u64::from(self.init_limit) * self.tick_time_ms;
        self.rare = Rare::new(self.peer_timeout_ms, init_ms, dice);
        if self.rare.stream_us.is_some() {
            self.journal_entries = self.journal_entries.min(dice.index(10) + 1);
            self.last_counter = Zxid::LAST_COUNTER;
        }
        self
    }

    /// Some ensembles have observers.
    fn with_observers(mut self, dice: &mut Dice) -> Self {
        if dice.chance(OBSERVED) {
            self.observers = dice.index(MOST_OBSERVERS) + 1;
        }
        self
    }

    /// Some ensembles change, or all. Where there are not three members there is little to change.
    fn with_changes(mut self, all: bool, dice: &mut Dice) -> Self {
        if all {
            self.observers = self.observers.max(CHANGEABLE.saturating_sub(self.members));
        }
        if (dice.chance(CHANGING) || all) && self.hosts() >= CHANGEABLE {
            self.changes = true;
            self.operators = 1;
            self.strangers = dice.chance(HALF);
            // A single voter among others stays single where two must be left.
            self.alone = dice.chance(HALF) || self.members == 1;
            self.turnover_us = dice.scale(40_000, 1_000_000);
        }
        self
    }

    /// Some members have sessions of their own, and some serve without a leader.
    fn with_lone_members(mut self, dice: &mut Dice) -> Self {
        self.local = dice.chance(LONE);
        self.read_only = dice.chance(LONE) && self.watchers > 0;
        self
    }

    /// Some worlds have watchers.
    fn with_watchers(mut self, dice: &mut Dice) -> Self {
        if dice.chance(WATCHED) {
            self.watchers = dice.index(MOST_WATCHERS) + 1;
            self.reaping_ms = dice.scale(50, 1_000);
            self.mortal_ms = dice.scale(20, 2_000);
            self.limits = dice.chance(HALF);
        }
        self
    }

    /// Some worlds have probers.
    fn with_probers(mut self, dice: &mut Dice) -> Self {
        if dice.chance(PROBED) {
            self.probers = if dice.chance(TWO_PROBERS) { 2 } else { 1 };
            self.probing_us = dice.scale(PROBING_US.0, PROBING_US.1);
            let reaping_ms = dice.scale(50, 1_000);
            if self.watchers == 0 {
                self.reaping_ms = reaping_ms;
            }
        }
        self
    }

    /// Some worlds have long steps, or all, and then clients that ask for what is large. Faults are seldom
    /// there, so that some steps are disturbed by none: a siege would be none.
    fn with_long_steps(mut self, all: bool, dice: &mut Dice) -> Self {
        if !((dice.chance(LABORIOUS) && !self.siege) || all) {
            return self;
        }
        self.unit_us = dice.scale(self.peer_timeout_ms * 250, self.peer_timeout_ms * 4_000);
        self.visitors = self.visitors.max(1);
        if self.watchers == 0 {
            self.watchers = 1;
            self.reaping_ms = self.reaping_ms.min(1_000);
            self.mortal_ms = dice.scale(20, 2_000);
        }
        self.fault_every_us *= QUIET;
        // What arrives late by itself, and a clock that jumps, are silence too.
        self.spike = Chance::NEVER;
        self.weights[SwarmFault::Suspend as usize] = 0;
        self
    }

    /// Worlds of applications. Their sessions are as short as a healthy ensemble can serve, and longer.
    /// Epochs last: where they are shorter than a session's time-out, which each new leader begins anew, one
    /// that was left does not end. Monotonic clocks do not jump while no time passes: what is certain of a
    /// session rests on clocks.
    fn with_applications(mut self, has: bool, dice: &mut Dice) -> Self {
        if !has {
            return self;
        }
        self.applications = dice.index(MOST_APPLICATIONS - 1) + 2;
        let round_us = 6 * (self.link_us.1 + self.jitter_us) + 2 * (self.fsync_us.1 + self.tick_jitter_us);
        let least_ms = (DIALS * round_us / 1000).max(2 * self.tick_time_ms);
        self.application_timeout_ms = dice.scale(least_ms, 20 * self.tick_time_ms).max(least_ms);
        self.action_us = dice.scale(100_000, 2_000_000);
        self.locks = dice.chance(LOCKING);
        self.weights[SwarmFault::Suspend as usize] = 0;
        self.last_counter = Zxid::LAST_COUNTER;
        self
    }

    /// All clients with a workload or a plan of their own, and not a recipe.
    pub(crate) fn everybody(&self) -> usize {
        self.clients + self.visitors + self.watchers + self.operators + self.probers
    }

    /// All members, with and without a vote.
    pub(crate) fn hosts(&self) -> usize {
        self.members + self.observers
    }

    /// An epoch ends by the number of its transactions.
    pub(crate) fn has_short_epochs(&self) -> bool {
        self.last_counter < Zxid::LAST_COUNTER
    }

    /// In most worlds an epoch has more zxids than can be counted to. In some it has so few that it ends by
    /// them, but never before a patient client, which starts over in each epoch, had its turn.
    fn with_short_epochs(mut self, dice: &mut Dice) -> Self {
        if dice.chance(HALF) {
            let busy = u64::try_from(self.clients.div_ceil(2)).unwrap_or(u64::MAX);
            let writers = busy * u64::from(100 - self.read_percent) / 100 + 1;
            let visitors = u64::try_from(self.visitors).unwrap_or(u64::MAX);
            let write_us = self.think_us + 2 * self.link_us.0 + self.fsync_us.0;
            let watchers = u64::try_from(self.watchers).unwrap_or(u64::MAX);
            let probers = u64::try_from(self.probers).unwrap_or(u64::MAX) * PROBED_WRITES;
            let a_turn =
                (writers + visitors + watchers + probers) * (2 * self.patient_us + TURN_US) / write_us;
            self.last_counter = u32::try_from(a_turn + dice.scale(64, 512)).unwrap_or(Zxid::LAST_COUNTER);
        }
        self
    }
}

/// Where few entries are kept, whoever was away for a moment lacks more.
fn journal_entries(dice: &mut Dice) -> usize {
    if dice.chance(HALF) {
        usize::try_from(dice.scale(1, 40)).unwrap_or(1)
    } else {
        node_core::JOURNAL_ENTRIES
    }
}

/// Never, always, or something between.
fn share(dice: &mut Dice) -> Chance {
    match dice.between(0, 5) {
        0 => Chance::NEVER,
        1 => Chance::ALWAYS,
        _ => Chance(u32::try_from(dice.between(0, 10_000)).unwrap_or(0)),
    }
}

impl Drawn {
    fn fmt_hardware(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "  network: {}..{} us, jitter {} us, spikes {} to {} us, losses told late {} by {} us, dials \
                refused {}",
            self.link_us.0,
            self.link_us.1,
            self.jitter_us,
            self.spike,
            self.spike_us,
            self.told_late,
            self.late_us,
            self.refuse
        )?;
        writeln!(
            f,
            "  disk: fsync {}..{} us, stalls {} to {} us, files of {} bytes growing by {}",
            self.fsync_us.0,
            self.fsync_us.1,
            self.stall,
            self.stall_us,
            self.roll_bytes,
            self.preallocate_bytes
        )
    }

    /// Clients beside the workloads' own, and what not every world has.
    fn fmt_who_comes(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.watchers > 0 {
            writeln!(
                f,
                "  {} watchers: nodes live for {} ms, leaders look for them every {} ms{}",
                self.watchers,
                self.mortal_ms,
                self.reaping_ms,
                if self.limits { ", some are limited" } else { "" }
            )?;
        }
        if self.probers > 0 {
            writeln!(f, "  {} probers: a batch every {} us", self.probers, self.probing_us)?;
        }
        if self.applications > 0 {
            writeln!(
                f,
                "  {} applications that {}: sessions {} ms, an action every {} us",
                self.applications,
                if self.locks { "lock" } else { "stand for election" },
                self.application_timeout_ms,
                self.action_us
            )?;
        }
        if self.unit_us > 0 {
            writeln!(f, "  long steps: {} us for each part of what is large", self.unit_us)?;
        }
        if self.local || self.read_only {
            let local = if self.local { "  sessions are local" } else { "" };
            let read_only = if self.read_only { "  reads are served without a leader" } else { "" };
            writeln!(f, "{local}{read_only}")?;
        }
        if self.changes {
            writeln!(
                f,
                "  the ensemble changes every {} us{}{}",
                self.turnover_us,
                if self.strangers { ", those without a vote are in none at first" } else { "" },
                if self.alone { ", one voter may be left alone" } else { "" }
            )?;
        }
        Ok(())
    }
}

impl fmt::Display for Drawn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "seed {}: {} members, {} observers, peer time-out {} ms, tickTime {} ms, snapCount {}{}",
            self.seed,
            self.members,
            self.observers,
            self.peer_timeout_ms,
            self.tick_time_ms,
            self.snap_count,
            if self.siege { ", a siege" } else { "" }
        )?;
        writeln!(
            f,
            "  {} entries are kept for learners; clocks run off by {} ppm at most",
            self.journal_entries, self.pace_ppm
        )?;
        self.fmt_hardware(f)?;
        writeln!(
            f,
            "  ticks late by {} us; initLimit {}; through the codecs {}; epochs end at {:#x}",
            self.tick_jitter_us, self.init_limit, self.codec, self.last_counter
        )?;
        writeln!(
            f,
            "  crashes: lose the page cache {}, break connections at once {}, in the middle of a step {}",
            self.power, self.abrupt, self.mid_step
        )?;
        writeln!(
            f,
            "  clients: {} on {} registers, {}% reads, {}% compare-and-sets, think {} or {} us, give up \
                after {} us, sessions {} ms; {} visitors",
            self.clients,
            self.keys,
            self.read_percent,
            self.cas_percent,
            self.think_us,
            self.patient_us,
            self.op_timeout_us,
            self.session_timeout_ms,
            self.visitors
        )?;
        self.fmt_who_comes(f)?;
        writeln!(f, "  rare:{}", self.rare)?;
        write!(
            f,
            "  faults: from {} us for {} us, one every {} us lasting {} us:",
            self.warmup_us, self.chaos_us, self.fault_every_us, self.fault_us
        )?;
        for (kind, weight) in SwarmFault::ALL.iter().zip(self.weights) {
            if weight > 0 {
                write!(f, " {}={weight}", kind.name())?;
            }
        }
        Ok(())
    }
}
