//! Carries a schedule out in virtual time: the same steps in the same order as on a real cluster
//! ([`crate::nemesis::runner`]), without anything to wait for but the members.
//!
//! Faults of one lane follow each other; with overlap each nemesis has a lane of its own, and they meet in the
//! [`Ledger`]. Between being asked for and being in force no virtual time passes.

use checker::history::Function;
use harness_sim::planned::{self, Ensemble};
use node_wire::ids::ServerId;
use runs::checks::promises::MINIMUM_EACH;
use runs::member::MemberId;
use runs::results::{FaultDetail, FaultPhase};
use runs::views;

use super::proof::{self, Arrived, Seen};
use super::server;
use crate::cluster::{Cut, Severing};
use crate::events::EventLog;
use crate::load::recorder::Calm;
use crate::nemesis::journal::Journal;
use crate::nemesis::ledger::{Change, Ledger};
use crate::nemesis::runner::{CALM_SHARE, LEADER_PATIENCE_SHARE, evidence, injected_detail};
use crate::nemesis::{PlannedFault, Schedule};
use crate::num::index;
use crate::num::plural;
use crate::run::Prepared;
use harness_core::fault::action::Action;
use harness_core::fault::scene::Resolved;

/// How long members may take to serve again after healing.
const RECOVERY_PATIENCE_US: u64 = 20_000_000;
/// How often a lane that waits for members looks at them, at the least.
const GLANCE_US: u64 = 1_000;

/// The nemeses of a run.
pub(super) struct Nemeses<'a> {
    hands: Hands<'a>,
    lanes: Vec<Lane>,
}

/// What all lanes share.
struct Hands<'a> {
    prepared: &'a Prepared,
    journal: Journal,
    ledger: Ledger,
    members: Vec<MemberId>,
    overlap: bool,
    interval_us: u64,
    start_us: u64,
    /// What the load is to show between two faults.
    functions: &'static [Function],
}

/// Faults that follow each other, and how far they are.
struct Lane {
    faults: Vec<PlannedFault>,
    next: usize,
    state: State,
    /// Since when the one before is gone, or was given up.
    gone_us: u64,
}

enum State {
    /// For the next onset.
    Waiting,
    /// For somebody to hit.
    Aiming { until_us: u64 },
    /// A fault is in force.
    Holding { resolved: Resolved, before: Arrived, until_us: u64 },
    /// It was healed, and is not seen to be gone yet.
    Recovering { resolved: Resolved, until_us: u64 },
}

impl<'a> Nemeses<'a> {
    /// Nothing injected yet.
    pub(super) fn new(
        prepared: &'a Prepared,
        schedule: &Schedule,
        journal: Journal,
        start_us: u64,
        members: &[MemberId],
    ) -> Self {
        let lanes = schedule
            .lanes()
            .into_iter()
            .map(|faults| Lane { faults, next: 0, state: State::Waiting, gone_us: start_us })
            .collect();
        let voters = index(u64::from(prepared.options.nodes)).min(members.len());
        let hands = Hands {
            prepared,
            journal,
            ledger: Ledger::new(members, &members[..voters]),
            members: members.to_vec(),
            overlap: schedule.overlap,
            interval_us: schedule.interval_ms * 1000,
            start_us,
            functions: prepared.options.workload.functions(),
        };
        Self { hands, lanes }
    }

    /// Does something whose time has come. True when it did: what members said of it is to be heard before the next.
    pub(super) fn turn(
        &mut self,
        world: &mut dyn Ensemble,
        events: &EventLog,
        calm: &mut Calm,
    ) -> anyhow::Result<bool> {
        for lane in &mut self.lanes {
            if lane.step(&self.hands, world, events, calm)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// When there is something to do or to look at again.
    pub(super) fn next_us(&self, now_us: u64) -> Option<u64> {
        self.lanes.iter().filter_map(|lane| lane.next_us(&self.hands, now_us)).min()
    }

    /// Heals what is in force and waits for nothing else. True when all is seen to be gone.
    pub(super) fn end(&mut self, world: &mut dyn Ensemble, events: &EventLog) -> anyhow::Result<bool> {
        let mut over = true;
        for lane in &mut self.lanes {
            over &= lane.end(&self.hands, world, events)?;
        }
        Ok(over)
    }
}

impl Hands<'_> {
    fn onset_us(&self, fault: &PlannedFault) -> u64 {
        self.start_us + fault.start_ms * 1000
    }

    fn say(&self, line: &str) {
        self.prepared.progress.say(line);
    }

    fn write(
        &self,
        world: &dyn Ensemble,
        fault: &PlannedFault,
        phase: FaultPhase,
        targets: &[MemberId],
        detail: FaultDetail,
    ) -> anyhow::Result<()> {
        let time = world.now_us() * 1000;
        self.journal.write((&fault.id, fault.kind.name()), phase, time, targets, detail)
    }

    fn not_injected(&self, world: &dyn Ensemble, fault: &PlannedFault, why: &str) -> anyhow::Result<()> {
        let words = format!("not injected: {why}");
        self.write(world, fault, FaultPhase::Asked, &[], FaultDetail::default())?;
        self.say(&format!("{} {}: {words}", fault.id, fault.kind.name()));
        self.write(world, fault, FaultPhase::Unverified, &[], evidence(words))
    }

    fn no_target(&self, world: &dyn Ensemble, events: &EventLog, fault: &PlannedFault) -> anyhow::Result<()> {
        let words = views::laggards(&events.views());
        self.say(&format!("{} {}: no target ({words})", fault.id, fault.kind.name()));
        self.write(world, fault, FaultPhase::Asked, &[], FaultDetail::default())?;
        self.write(world, fault, FaultPhase::NoTarget, &[], evidence(format!("nobody to hit: {words}")))
    }

    /// The members that ended by themselves. With one gone, a fault would no longer be what it says.
    fn dead(&self, events: &EventLog) -> Option<String> {
        let killed = self.ledger.killed();
        let views = events.views();
        let dead: Vec<String> = views
            .iter()
            .filter(|(id, view)| !view.running && !killed.contains(id))
            .map(|(id, _)| format!("n{}", id.0))
            .collect();
        (!dead.is_empty()).then(|| format!("{} ended without a fault", dead.join(" ")))
    }

    fn tell_failed(&self, fault: &PlannedFault, what: &str, seen: &Seen) {
        let words = seen.detail.evidence.as_deref().unwrap_or_default();
        self.say(&format!("{} {}: {what}: {words}", fault.id, fault.kind.name()));
    }
}

impl Lane {
    fn next_us(&self, hands: &Hands<'_>, now_us: u64) -> Option<u64> {
        match &self.state {
            // Past its onset it waits for the load.
            State::Waiting => {
                let onset = self.faults.get(self.next).map(|fault| hands.onset_us(fault));
                onset.map(|onset| if onset > now_us { onset } else { now_us + GLANCE_US })
            }
            State::Holding { until_us, .. } => Some(*until_us),
            // Members speak up by themselves; the rest is looked at now and then.
            State::Aiming { until_us } | State::Recovering { until_us, .. } => {
                Some((*until_us).min(now_us + GLANCE_US))
            }
        }
    }

    /// One step, if its time has come. True when another may follow at once.
    fn step(
        &mut self,
        hands: &Hands<'_>,
        world: &mut dyn Ensemble,
        events: &EventLog,
        calm: &mut Calm,
    ) -> anyhow::Result<bool> {
        let Some(fault) = self.faults.get(self.next).cloned() else { return Ok(false) };
        let now = world.now_us();
        let (state, again) = match std::mem::replace(&mut self.state, State::Waiting) {
            State::Waiting if now < hands.onset_us(&fault) => (State::Waiting, false),
            State::Waiting if self.waits_for_load(hands, calm, (&fault, now)) => (State::Waiting, false),
            State::Waiting => (self.begin(hands, world, events, &fault)?, true),
            State::Aiming { until_us } => self.aim(hands, world, events, (&fault, until_us))?,
            State::Holding { resolved, before, until_us } if now >= until_us => {
                (heal(hands, world, &fault, resolved, &before)?, true)
            }
            State::Recovering { resolved, until_us } => {
                match seen_gone(hands, world, events, (&fault, &resolved, until_us))? {
                    true => {
                        self.next += 1;
                        self.gone_us = now;
                        *calm = Calm::default();
                        (State::Waiting, true)
                    }
                    false => (State::Recovering { resolved, until_us }, false),
                }
            }
            holding @ State::Holding { .. } => (holding, false),
        };
        self.state = state;
        Ok(again)
    }

    /// Whether the load has not had its time yet since the fault before: without overlap it is waited for, up to a bound.
    fn waits_for_load(&self, hands: &Hands<'_>, calm: &Calm, (fault, now): (&PlannedFault, u64)) -> bool {
        let since = self.gone_us.max(hands.onset_us(fault));
        let bound = hands.interval_us / u64::from(CALM_SHARE);
        !hands.overlap && now < since + bound && !calm.shows(hands.functions, MINIMUM_EACH)
    }

    /// The turn of a fault has come, or is past.
    fn begin(
        &mut self,
        hands: &Hands<'_>,
        world: &dyn Ensemble,
        events: &EventLog,
        fault: &PlannedFault,
    ) -> anyhow::Result<State> {
        let onset = hands.onset_us(fault);
        let late = self.gone_us.saturating_sub(onset);
        if let Some(dead) = hands.dead(events) {
            hands.not_injected(world, fault, &dead)?;
        } else if late > hands.interval_us / 2 {
            let words = format!("its turn was over {} ms ago when the one before was gone", late / 1000);
            hands.not_injected(world, fault, &words)?;
        } else {
            let share = hands.interval_us / u64::from(LEADER_PATIENCE_SHARE);
            let patience = if hands.overlap { hands.interval_us - share } else { share };
            return Ok(State::Aiming { until_us: world.now_us() + patience });
        }
        self.next += 1;
        self.gone_us = world.now_us();
        Ok(State::Waiting)
    }

    /// Finds a target and injects. Without overlap a leader is waited for by every fault, so that it is known who
    /// led; with overlap only by those that need one, because others may have taken the quorum on purpose.
    fn aim(
        &mut self,
        hands: &Hands<'_>,
        world: &mut dyn Ensemble,
        events: &EventLog,
        (fault, until_us): (&PlannedFault, u64),
    ) -> anyhow::Result<(State, bool)> {
        let leader = events.leader();
        let is_last = world.now_us() >= until_us;
        if leader.is_some() || hands.overlap || is_last {
            let id = leader.map(|leader| leader.id);
            if let Some((resolved, beside, change)) = hands.ledger.resolve(fault, id) {
                let epoch = leader.map(|leader| leader.epoch);
                let state = inject(hands, world, (fault, resolved, beside, change), epoch)?;
                return Ok((state, true));
            }
        }
        if !is_last {
            return Ok((State::Aiming { until_us }, false));
        }
        hands.no_target(world, events, fault)?;
        self.next += 1;
        self.gone_us = world.now_us();
        Ok((State::Waiting, true))
    }

    /// Heals what is in force, and looks whether it is gone. True when nothing is left to be seen.
    fn end(
        &mut self,
        hands: &Hands<'_>,
        world: &mut dyn Ensemble,
        events: &EventLog,
    ) -> anyhow::Result<bool> {
        let Some(fault) = self.faults.get(self.next).cloned() else { return Ok(true) };
        let (state, over) = match std::mem::replace(&mut self.state, State::Waiting) {
            State::Waiting => (State::Waiting, true),
            State::Aiming { .. } => {
                hands.no_target(world, events, &fault)?;
                self.next = self.faults.len();
                (State::Waiting, true)
            }
            State::Holding { resolved, before, .. } => {
                (heal(hands, world, &fault, resolved, &before)?, false)
            }
            State::Recovering { resolved, until_us } => {
                match seen_gone(hands, world, events, (&fault, &resolved, until_us))? {
                    true => {
                        self.next = self.faults.len();
                        (State::Waiting, true)
                    }
                    false => (State::Recovering { resolved, until_us }, false),
                }
            }
        };
        self.state = state;
        Ok(over)
    }
}

/// A fault with its target, what stands beside it, and its place in the ledger.
type Aimed<'a> = (&'a PlannedFault, Resolved, Vec<String>, Change<'a>);

fn inject(
    hands: &Hands<'_>,
    world: &mut dyn Ensemble,
    (fault, resolved, beside, change): Aimed<'_>,
    epoch: Option<u32>,
) -> anyhow::Result<State> {
    let targets = &resolved.targets;
    let asked = FaultDetail { epoch, ..FaultDetail::default() };
    hands.write(world, fault, FaultPhase::Asked, targets, asked)?;
    let mut before = Arrived::new();
    match &resolved.action {
        Action::Cut(cut) => {
            world.cut(&directions(cut), severing(cut));
            before = proof::arrived(world, cut);
        }
        Action::Kill { members } => {
            let loses = hands.prepared.options.lose_unsynced.applies_to(fault.kind);
            members.iter().for_each(|member| world.kill(server(*member), loses));
        }
        Action::Replace { .. } => anyhow::bail!("the simulator has one kind of server"),
        Action::Pause { members } => members.iter().for_each(|member| world.pause(server(*member))),
        Action::Clock { members, offset_ns } => {
            members.iter().for_each(|member| world.shift_clock(server(*member), offset_ns / 1_000_000));
        }
    }
    change.is_in_force();
    hands.write(world, fault, FaultPhase::Injected, targets, injected_detail(&resolved, epoch, beside))?;
    hands.say(&format!("{} {}", fault.id, resolved.sentence));
    let seen = proof::bites(world, &resolved.action, &hands.ledger.in_force(), &hands.members);
    if !seen.holds {
        hands.tell_failed(fault, "not verified", &seen);
    }
    let phase = if seen.holds { FaultPhase::Verified } else { FaultPhase::Unverified };
    hands.write(world, fault, phase, targets, seen.detail)?;
    let (now, hold) = (world.now_us(), fault.hold_ms * 1000);
    // With overlap a fault ends when its round has it end; one that had to wait is held for half of its time.
    let until_us =
        if hands.overlap { (hands.onset_us(fault) + hold).max(now + hold / 2) } else { now + hold };
    Ok(State::Holding { resolved, before, until_us })
}

fn heal(
    hands: &Hands<'_>,
    world: &mut dyn Ensemble,
    fault: &PlannedFault,
    resolved: Resolved,
    before: &Arrived,
) -> anyhow::Result<State> {
    let targets = &resolved.targets;
    let quorum_remained = Some(hands.ledger.quorum_held(&fault.id));
    let healing = FaultDetail { quorum_remained, ..FaultDetail::default() };
    hands.write(world, fault, FaultPhase::Healing, targets, healing)?;
    let change = hands.ledger.ending(&fault.id);
    let words = match &resolved.action {
        Action::Cut(cut) => {
            let seen = proof::at_the_end_of_a_cut(world, cut, before);
            world.mend(&directions(cut), severing(cut));
            let words = seen.detail.evidence.clone();
            if !seen.holds {
                hands.tell_failed(fault, "not verified", &seen);
                hands.write(world, fault, FaultPhase::Unverified, targets, seen.detail)?;
            }
            words
        }
        Action::Kill { members } => {
            members.iter().for_each(|member| world.start(server(*member)));
            let lose = hands.prepared.options.lose_unsynced.applies_to(fault.kind);
            let how = if lose { ", their logs cut back to what was synced" } else { "" };
            Some(format!("{} started again{how}", plural(members.len(), "member")))
        }
        Action::Replace { .. } => anyhow::bail!("the simulator has one kind of server"),
        Action::Pause { members } => {
            members.iter().for_each(|member| world.resume(server(*member)));
            None
        }
        Action::Clock { members, .. } => {
            members.iter().for_each(|member| world.shift_clock(server(*member), 0));
            None
        }
    };
    change.is_gone();
    let healed = FaultDetail { evidence: words, ..FaultDetail::default() };
    hands.write(world, fault, FaultPhase::Healed, targets, healed)?;
    Ok(State::Recovering { resolved, until_us: world.now_us() + RECOVERY_PATIENCE_US })
}

/// Whether a healed fault is over: seen to be gone, or not seen to be gone for too long.
fn seen_gone(
    hands: &Hands<'_>,
    world: &dyn Ensemble,
    events: &EventLog,
    (fault, resolved, until_us): (&PlannedFault, &Resolved, u64),
) -> anyhow::Result<bool> {
    let seen = proof::is_gone(world, events, &resolved.action, &hands.ledger.in_force(), &hands.members);
    // A member that ended by itself is not waited for: nobody starts it again.
    let given_up = world.now_us() >= until_us || hands.dead(events).is_some();
    if !seen.holds && !given_up {
        return Ok(false);
    }
    if !seen.holds {
        hands.tell_failed(fault, "not seen to be gone", &seen);
    }
    let phase = if seen.holds { FaultPhase::VerifiedHealed } else { FaultPhase::Leaked };
    hands.write(world, fault, phase, &resolved.targets, seen.detail)?;
    Ok(true)
}

fn directions(cut: &Cut) -> Vec<(ServerId, ServerId)> {
    cut.pairs.iter().map(|pair| (server(pair.from), server(pair.to))).collect()
}

fn severing(cut: &Cut) -> planned::Severing {
    match cut.how {
        Severing::Silence => planned::Severing::Silence,
        Severing::Reject => planned::Severing::Reject,
    }
}
