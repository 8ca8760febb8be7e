//! One lane: faults that follow each other, and how far the one under way is.

use std::collections::VecDeque;
use std::sync::Arc;

use runs::clock::RunNs;
use runs::faults::{FaultDetail, FaultPhase};
use runs::member::MemberId;
use runs::numbers::NS_PER_MS;
use runs::views::{self, Leader};

use super::command::{Command, Injection, LaneId, Line, Look, Undoing};
use super::ledger::Ledger;
use super::{Common, Onward, Sight};
use crate::fault::scene::Resolved;
use crate::proof::{Proof, evidence_of};
use crate::schedule::PlannedFault;

/// How long a fault that needs a leader waits for one, as a share of the interval.
const LEADER_PATIENCE_SHARE: u64 = 4;
/// How long a fault is put off for the load after the one before, as a share of the interval.
const CALM_SHARE: u64 = 4;

/// Faults that follow each other.
#[derive(Debug)]
pub(super) struct Lane {
    id: LaneId,
    /// Those to come. The first is the one under way, if one is.
    faults: VecDeque<Arc<PlannedFault>>,
    state: State,
}

#[derive(Debug)]
enum State {
    /// For its onset.
    Waiting,
    /// For the load to show what came of the fault before.
    Calming { until: RunNs },
    /// For somebody to hit.
    Aiming { until: RunNs },
    /// The driver breaks something.
    Injecting { aimed: Aimed, until: RunNs },
    /// It is to be proven, once no other fault is on its way in or out.
    Unproven { current: Current },
    /// The driver looks.
    Proving { current: Current, version: u64 },
    /// It is in force.
    Holding { current: Current },
    /// The driver takes it back.
    Undoing { current: Current },
    /// It is to be seen gone, once no other fault is on its way in or out.
    Healed { current: Current },
    /// The driver watches for it to be gone.
    Watching { current: Current, version: u64 },
}

/// A fault with its target, on its way in.
#[derive(Debug)]
struct Aimed {
    resolved: Resolved,
    leader: Option<Leader>,
    beside: Vec<String>,
}

/// A fault under way.
#[derive(Debug)]
struct Current {
    resolved: Resolved,
    injected: RunNs,
    end: RunNs,
}

/// What a lane decides with.
pub(super) struct Context<'a> {
    pub(super) common: &'a Common,
    pub(super) ledger: &'a mut Ledger,
    pub(super) out: &'a mut VecDeque<Command>,
    pub(super) now: RunNs,
}

impl Context<'_> {
    fn say(&mut self, fault: &PlannedFault, words: &str) {
        self.out.push_back(Command::Say(format!("{} {}: {words}", fault.id, fault.kind.name())));
    }

    fn write(&mut self, line: Line) {
        let now = self.now;
        self.write_at(line, now);
    }

    fn write_at(&mut self, line: Line, time: RunNs) {
        self.out.push_back(Command::Write(line.at(time)));
    }

    /// The members that ended by themselves. With one gone, a fault would no longer be what it says.
    fn dead(&self, sight: &dyn Sight) -> Option<String> {
        let dead = ended_by_themselves(sight, &self.ledger.killed());
        let names: Vec<String> = dead.iter().map(|id| format!("n{}", id.0)).collect();
        (!names.is_empty()).then(|| format!("{} ended without a fault", names.join(" ")))
    }

    fn not_injected(&mut self, fault: &PlannedFault, why: &str) {
        let words = format!("not injected: {why}");
        self.write(line(fault, FaultPhase::Asked, &[], FaultDetail::default()));
        self.say(fault, &words);
        self.write(line(fault, FaultPhase::Unverified, &[], evidence_of(words)));
    }

    fn no_target(&mut self, fault: &PlannedFault, sight: &dyn Sight) {
        let words = match sight.leader() {
            // Members are well: it was an application that was looked for, and those hold for moments.
            Some(_) if fault.kind.hits_applications() => "no application held for long enough".to_owned(),
            _ => views::laggards(&sight.views()),
        };
        self.say(fault, &format!("no target ({words})"));
        self.write(line(fault, FaultPhase::Asked, &[], FaultDetail::default()));
        let nobody = evidence_of(format!("nobody to hit: {words}"));
        self.write(line(fault, FaultPhase::NoTarget, &[], nobody));
    }

    fn tell_failed(&mut self, fault: &PlannedFault, what: &str, proof: &Proof) {
        let words = proof.detail.evidence.as_deref().unwrap_or_default();
        self.say(fault, &format!("{what}: {words}"));
    }
}

impl Lane {
    pub(super) fn new(id: LaneId, faults: Vec<PlannedFault>) -> Self {
        Self { id, faults: faults.into_iter().map(Arc::new).collect(), state: State::Waiting }
    }

    /// Whether nothing is left to be done.
    pub(super) fn is_over(&self) -> bool {
        self.faults.is_empty()
    }

    /// When it has something to do though nothing happens meanwhile.
    pub(super) fn wake(&self, common: &Common, now: RunNs) -> Option<RunNs> {
        let fault = self.faults.front()?;
        match &self.state {
            State::Waiting => Some(common.onset(fault)),
            // What the load has shown is looked at now and then.
            State::Calming { until } => Some((*until).min(now + common.look_every_ns)),
            State::Aiming { until } => Some(*until),
            State::Holding { current } => Some(current.end),
            State::Injecting { .. }
            | State::Unproven { .. }
            | State::Proving { .. }
            | State::Undoing { .. }
            | State::Healed { .. }
            | State::Watching { .. } => None,
        }
    }

    /// A fault's turn has come, unless it is long over.
    fn begin(&mut self, context: &mut Context<'_>, fault: &PlannedFault) {
        let late = context.now - context.common.onset(fault);
        if late > context.common.interval_ns / 2 {
            let ms = late / NS_PER_MS;
            let why = format!("its turn was over {ms} ms ago when the one before was gone");
            context.not_injected(fault, &why);
            self.faults.pop_front();
        } else {
            self.state = State::Calming { until: context.now + context.common.interval_ns / CALM_SHARE };
        }
    }

    /// The calm before a fault is over: somebody is to be hit, unless nobody is left.
    fn take_aim(&mut self, context: &mut Context<'_>, sight: &dyn Sight, fault: &PlannedFault) {
        if let Some(dead) = context.dead(sight) {
            context.not_injected(fault, &dead);
            self.faults.pop_front();
        } else {
            let interval = context.common.interval_ns;
            let share = interval / LEADER_PATIENCE_SHARE;
            let patience = if context.common.overlap { interval - share } else { share };
            self.state = State::Aiming { until: context.now + patience };
        }
    }

    /// Goes on as far as it can at this moment, to the next command at most. True when it went on.
    pub(super) fn step(&mut self, context: &mut Context<'_>, sight: &dyn Sight, onward: Onward) -> bool {
        let Some(fault) = self.faults.front().cloned() else { return false };
        let now = context.now;
        match std::mem::replace(&mut self.state, State::Waiting) {
            State::Waiting | State::Calming { .. } if onward > Onward::All => self.faults.clear(),
            // Nothing was done and nothing is owed: it had no turn.
            State::Aiming { .. } if onward == Onward::UnderWay => self.faults.clear(),
            State::Waiting if now < context.common.onset(&fault) => return false,
            State::Waiting => self.begin(context, &fault),
            // With overlap there is no calm to wait for.
            State::Calming { until } if !context.common.overlap && now < until && !sight.load_has_shown() => {
                self.state = State::Calming { until };
                return false;
            }
            State::Calming { .. } => self.take_aim(context, sight, &fault),
            State::Aiming { until } => {
                return self.aim(context, sight, (&fault, until), onward == Onward::Nothing);
            }
            State::Unproven { current } => {
                if !context.ledger.is_settled() {
                    self.state = State::Unproven { current };
                    return false;
                }
                let look = self.look(context, &fault, &current);
                self.state = State::Proving { current, version: look.version };
                context.out.push_back(Command::Prove(look));
            }
            State::Holding { current } if now < current.end && onward < Onward::Nothing => {
                self.state = State::Holding { current };
                return false;
            }
            State::Holding { current } => self.heal(context, &fault, current),
            State::Healed { current } => {
                if !context.ledger.is_settled() {
                    self.state = State::Healed { current };
                    return false;
                }
                let look = self.look(context, &fault, &current);
                self.state = State::Watching { current, version: look.version };
                context.out.push_back(Command::Watch(look));
            }
            // Another fault came or went, so what is to be seen is no longer the same.
            State::Watching { current, version } if version != context.ledger.version() => {
                self.state = State::Healed { current };
            }
            at_work @ (State::Injecting { .. }
            | State::Proving { .. }
            | State::Undoing { .. }
            | State::Watching { .. }) => {
                self.state = at_work;
                return false;
            }
        }
        true
    }

    /// Finds a target. Without overlap a leader is waited for by every fault, so that it is known who led;
    /// with overlap only by those that need one, because others may have taken the quorum on purpose. Where
    /// nobody tells who leads none is waited for.
    fn aim(
        &mut self,
        context: &mut Context<'_>,
        sight: &dyn Sight,
        (fault, until): (&PlannedFault, RunNs),
        halted: bool,
    ) -> bool {
        let leader = sight.leader();
        let is_last = context.now >= until || halted;
        let waits = leader.is_none() && context.common.tells_leader && !context.common.overlap;
        let may_aim = !halted && (!waits || is_last);
        let loses_unsynced = context.common.loses_unsynced(fault);
        let resolve =
            || context.ledger.resolve(fault, leader.map(|leader| leader.id), sight.holder(), loses_unsynced);
        let aimed = may_aim.then(resolve).flatten();
        if let Some((resolved, beside)) = aimed {
            let detail = FaultDetail {
                consequences: resolved.action.consequences(),
                epoch: leader.map(|leader| leader.epoch),
                ..FaultDetail::default()
            };
            context.out.push_back(Command::Inject(Injection {
                lane: self.id,
                action: resolved.action.clone(),
                aimed_by: leader,
                asked: line(fault, FaultPhase::Asked, &resolved.targets, detail),
            }));
            self.state = State::Injecting { aimed: Aimed { resolved, leader, beside }, until };
            return true;
        }
        if !is_last {
            self.state = State::Aiming { until };
            return false;
        }
        context.no_target(fault, sight);
        self.faults.pop_front();
        true
    }

    fn look(&self, context: &Context<'_>, fault: &PlannedFault, current: &Current) -> Look {
        Look {
            lane: self.id,
            fault: fault.id.clone(),
            action: current.resolved.action.clone(),
            in_force: context.ledger.in_force().clone(),
            version: context.ledger.version(),
        }
    }

    fn heal(&mut self, context: &mut Context<'_>, fault: &PlannedFault, current: Current) {
        let quorum_remained = Some(context.ledger.quorum_held(&fault.id));
        let detail = FaultDetail { quorum_remained, ..FaultDetail::default() };
        context.ledger.is_ending(&fault.id);
        context.out.push_back(Command::Undo(Undoing {
            lane: self.id,
            action: current.resolved.action.clone(),
            injected: current.injected,
            healing: line(fault, FaultPhase::Healing, &current.resolved.targets, detail),
        }));
        self.state = State::Undoing { current };
    }

    /// It was broken at this moment.
    pub(super) fn injected(&mut self, context: &mut Context<'_>, at: RunNs) {
        let Some(fault) = self.faults.front() else { return };
        match std::mem::replace(&mut self.state, State::Waiting) {
            State::Injecting { aimed: Aimed { resolved, leader, beside }, .. } => {
                context.ledger.is_in_force(&fault.id);
                let detail = injected_detail(&resolved, leader.map(|leader| leader.epoch), beside);
                context.write_at(line(fault, FaultPhase::Injected, &resolved.targets, detail), at);
                context.out.push_back(Command::Say(format!("{} {}", fault.id, resolved.sentence)));
                let hold = fault.hold_ms * NS_PER_MS;
                // With overlap a fault ends when its round has it end, so that others end before it or after
                // it as drawn; one that had to wait for its target is held for half of its time at least.
                let end = if context.common.overlap {
                    (context.common.onset(fault) + hold).max(at + hold / 2)
                } else {
                    at + hold
                };
                self.state = State::Unproven { current: Current { resolved, injected: at, end } };
            }
            other => self.state = other,
        }
    }

    /// Somebody else led by then, and nothing was done: it is aimed again.
    pub(super) fn stale(&mut self, context: &mut Context<'_>) {
        let Some(fault) = self.faults.front() else { return };
        match std::mem::replace(&mut self.state, State::Waiting) {
            State::Injecting { until, .. } => {
                context.ledger.is_dropped(&fault.id);
                self.state = State::Aiming { until };
            }
            other => self.state = other,
        }
    }

    /// What a look showed.
    pub(super) fn looked(&mut self, context: &mut Context<'_>, asked: u64, proof: Proof) {
        let Some(fault) = self.faults.front().cloned() else { return };
        match std::mem::replace(&mut self.state, State::Waiting) {
            State::Proving { current, version } if version == asked => {
                let is_last = context.now >= current.end;
                if !proof.holds && !is_last && context.ledger.version() != version {
                    self.state = State::Unproven { current };
                    return;
                }
                if !proof.holds {
                    context.tell_failed(&fault, "not verified", &proof);
                }
                let phase = if proof.holds { FaultPhase::Verified } else { FaultPhase::Unverified };
                context.write(line(&fault, phase, &current.resolved.targets, proof.detail));
                self.state = State::Holding { current };
            }
            State::Watching { current, version } if version == asked => {
                if !proof.holds && context.ledger.version() != version {
                    self.state = State::Healed { current };
                    return;
                }
                if !proof.holds {
                    context.tell_failed(&fault, "not seen to be gone", &proof);
                }
                let phase = if proof.holds { FaultPhase::VerifiedHealed } else { FaultPhase::Leaked };
                context.write(line(&fault, phase, &current.resolved.targets, proof.detail));
                context.out.push_back(Command::CalmBegins);
                self.faults.pop_front();
            }
            // The answer of a watch whose place another one took.
            other => self.state = other,
        }
    }

    /// It was taken back at this moment; what was seen of it at its end, where there was anything to see.
    pub(super) fn undone(&mut self, context: &mut Context<'_>, at: RunNs, seen: Option<Proof>) {
        let Some(fault) = self.faults.front().cloned() else { return };
        match std::mem::replace(&mut self.state, State::Waiting) {
            State::Undoing { current } => {
                context.ledger.is_gone(&fault.id);
                let targets = &current.resolved.targets;
                let how = current.resolved.action.how_it_ended();
                let evidence = seen.as_ref().and_then(|seen| seen.detail.evidence.clone()).or(how);
                if let Some(refuted) = seen.filter(|seen| !seen.holds) {
                    context.tell_failed(&fault, "not verified", &refuted);
                    context.write_at(line(&fault, FaultPhase::Unverified, targets, refuted.detail), at);
                }
                let detail = FaultDetail { evidence, ..FaultDetail::default() };
                context.write_at(line(&fault, FaultPhase::Healed, targets, detail), at);
                self.state = State::Healed { current };
            }
            other => self.state = other,
        }
    }

    /// What it had the driver do could not be done: it does nothing more.
    pub(super) fn failed(&mut self, ledger: &mut Ledger) {
        let Some(fault) = self.faults.front() else { return };
        match self.state {
            State::Injecting { .. } => ledger.is_dropped(&fault.id),
            State::Undoing { .. } => ledger.is_left(&fault.id),
            _ => {}
        }
        self.faults.clear();
        self.state = State::Waiting;
    }
}

/// The members that run no more though nobody killed them.
pub fn ended_by_themselves(sight: &dyn Sight, killed: &[MemberId]) -> Vec<MemberId> {
    let views = sight.views();
    views.iter().filter(|(id, view)| !view.running && !killed.contains(id)).map(|(id, _)| *id).collect()
}

fn line(fault: &PlannedFault, phase: FaultPhase, targets: &[MemberId], detail: FaultDetail) -> Line {
    Line { fault: fault.id.clone(), kind: fault.kind.name(), phase, targets: targets.to_vec(), detail }
}

/// What is written down of a fault that was injected.
fn injected_detail(resolved: &Resolved, epoch: Option<u32>, beside: Vec<String>) -> FaultDetail {
    let numbers = |side: &[MemberId]| side.iter().map(|member| member.0).collect();
    let mut detail = FaultDetail {
        sentence: Some(resolved.sentence.clone()),
        epoch,
        quorum_remained: Some(!resolved.majority_side.is_empty()),
        majority_side: numbers(&resolved.majority_side),
        sides: Some(resolved.sides.iter().map(|side| numbers(side)).collect()),
        leader_fault: Some(resolved.leader_fault),
        beside,
        ..FaultDetail::default()
    };
    resolved.action.describe(&mut detail);
    detail
}
