//! Carries a schedule out: asks, injects, proves, holds, heals, proves again, and writes each step down.
//!
//! Faults of one lane follow each other: one begins only when the one before was seen to be gone, so that what is
//! seen belongs to it; one whose turn is past by then is written down as never injected. And one begins only when the
//! load had its time after the one before, up to a bound: what came of a fault is shown by the calm behind it, and a
//! slow healing eats that up. Without overlap there is one lane. With overlap each nemesis has its own, and they meet in the [`Ledger`] alone: proofs are drawn up
//! against all that is in force, and the health of the whole ensemble is asked for by whoever is healed last.
//! Whatever ends the run early, what was injected is healed.
//!
//! **Precision.** What takes time comes before `asked`: waiting for a leader or for anybody to hit, and deciding.
//! Between `asked` and `injected` stands the one call that has the cluster do it, and nothing else, so their
//! distance is how precise the fault is; `verified` says how much later it was seen.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use runs::events::{Event, Stamped};
use runs::member::MemberId;
use runs::results::{FaultDetail, FaultPhase};
use runs::views::{self, Leader};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::journal::Journal;
use super::ledger::{Change, Ledger};
use super::proof::{self, Proof};
use super::{PlannedFault, Schedule};
use crate::clock::{RunClock, RunNs, milliseconds};
use crate::cluster::{Cluster, Traffic};
use crate::config::LoseUnsynced;
use crate::num::plural;
use crate::progress::Progress;
use harness_core::fault::action::Action;
use harness_core::fault::scene::Resolved;

/// How long a fault that needs a leader waits for one, as a share of the interval.
pub(crate) const LEADER_PATIENCE_SHARE: u32 = 4;

/// How long a fault is put off for the load after the one before, as a share of the interval.
pub(crate) const CALM_SHARE: u32 = 4;
/// How often the load is looked at meanwhile.
const GLANCE: Duration = Duration::from_millis(5);

/// What the load shows while nothing is broken.
pub trait Calm: Send + Sync {
    /// A fault is gone: what was seen before counts no more.
    fn begins(&self);

    /// Whether enough has succeeded since to show what a fault did.
    fn is_enough(&self) -> bool;
}

/// What carries a schedule out.
pub struct Runner {
    /// On which members.
    pub cluster: Arc<dyn Cluster>,
    /// Where steps are written down.
    pub journal: Journal,
    /// The run's clock.
    pub clock: RunClock,
    /// When killed members lose what they had not synced.
    pub lose_unsynced: LoseUnsynced,
    /// What the load shows.
    pub calm: Arc<dyn Calm>,
    /// Where it is told.
    pub progress: Progress,
}

impl Runner {
    /// Carries `schedule` out, its times counted from `start`. Ends early, and healed, when `stop` says so.
    pub async fn run(
        self,
        schedule: &Schedule,
        start: RunNs,
        mut stop: watch::Receiver<bool>,
    ) -> anyhow::Result<()> {
        let runner = Arc::new(self);
        let ledger = Ledger::new(runner.cluster.members(), runner.cluster.voters());
        let ledger = Arc::new(ledger.with_servers(runner.cluster.servers()));
        let (halt, halted) = watch::channel(false);
        let mut lanes = JoinSet::new();
        for faults in schedule.lanes() {
            let lane = Lane {
                runner: Arc::clone(&runner),
                ledger: Arc::clone(&ledger),
                overlap: schedule.overlap,
                interval: Duration::from_millis(schedule.interval_ms),
                start,
                halted: halted.clone(),
            };
            lanes.spawn(lane.run(faults));
        }
        let mut outcome = Ok(());
        loop {
            tokio::select! {
                _ = stop.wait_for(|stopped| *stopped), if !*halt.borrow() => { halt.send_replace(true); }
                ended = lanes.join_next() => match ended {
                    None => return outcome,
                    Some(ended) => {
                        if let Err(error) = ended.context("a nemesis panicked").and_then(|ended| ended)
                            && outcome.is_ok()
                        {
                            // The others heal what is theirs and end.
                            outcome = Err(error);
                            halt.send_replace(true);
                        }
                    }
                },
            }
        }
    }
}

/// Faults that follow each other.
struct Lane {
    runner: Arc<Runner>,
    ledger: Arc<Ledger>,
    overlap: bool,
    interval: Duration,
    start: RunNs,
    halted: watch::Receiver<bool>,
}

/// A fault with its target, about to be injected.
struct Aimed<'a> {
    fault: &'a PlannedFault,
    resolved: Resolved,
    leader: Option<Leader>,
    beside: Vec<String>,
}

/// A fault under way.
struct Current<'a> {
    fault: &'a PlannedFault,
    resolved: Resolved,
    before: Traffic,
    injected: RunNs,
    end: RunNs,
}

impl Lane {
    async fn run(mut self, faults: Vec<PlannedFault>) -> anyhow::Result<()> {
        for fault in &faults {
            let onset = self.start + fault.start_ms * 1_000_000;
            if self.sleep_until(onset).await {
                return Ok(());
            }
            if let Some(dead) = self.dead() {
                self.not_injected(fault, &dead)?;
                continue;
            }
            let late = Duration::from_nanos(self.runner.clock.now().saturating_sub(onset));
            if late > self.interval / 2 {
                let words =
                    format!("its turn was over {} ms ago when the one before was gone", late.as_millis());
                self.not_injected(fault, &words)?;
                continue;
            }
            if self.load_has_its_time().await {
                return Ok(());
            }
            self.one(fault, onset).await?;
        }
        Ok(())
    }

    /// Waits until the load has shown what came of the fault before, or for as long as that may take. With overlap there
    /// is no calm to wait for. True when it was told to stop instead.
    async fn load_has_its_time(&mut self) -> bool {
        if self.overlap {
            return false;
        }
        let deadline = tokio::time::Instant::now() + self.interval / CALM_SHARE;
        while !self.runner.calm.is_enough() && tokio::time::Instant::now() < deadline {
            tokio::select! {
                () = tokio::time::sleep(GLANCE) => {}
                _ = self.halted.wait_for(|halted| *halted) => return true,
            }
        }
        false
    }

    async fn one(&mut self, fault: &PlannedFault, onset: RunNs) -> anyhow::Result<()> {
        // A clone, so that the reservation borrows from it and not from this lane.
        let ledger = Arc::clone(&self.ledger);
        let Some((aimed, change)) = self.aim(&ledger, fault).await else {
            return self.no_target(fault);
        };
        let current = self.inject(aimed, change, onset).await?;
        self.verify(&current).await?;
        self.sleep_until(current.end).await;
        self.heal(&current).await?;
        self.runner.calm.begins();
        Ok(())
    }

    /// Finds a target. Without overlap a leader is waited for by every fault, so that it is known who led; with
    /// overlap only by those that need one, because others may have taken the quorum on purpose.
    async fn aim<'a>(
        &mut self,
        ledger: &'a Ledger,
        fault: &'a PlannedFault,
    ) -> Option<(Aimed<'a>, Change<'a>)> {
        let events = self.runner.cluster.events().clone();
        let patience = if self.overlap {
            self.interval - self.interval / LEADER_PATIENCE_SHARE
        } else {
            let patience = self.interval / LEADER_PATIENCE_SHARE;
            events.wait(patience, |views| views::leader_of(views).is_some()).await;
            Duration::ZERO
        };
        let deadline = tokio::time::Instant::now() + patience;
        loop {
            let version = ledger.version();
            let leader = events.leader();
            let leader_id = leader.map(|leader| leader.id);
            if let Some((resolved, beside, change)) = ledger.resolve(fault, leader_id) {
                return Some((Aimed { fault, resolved, leader, beside }, change));
            }
            let another_leads = events
                .wait(self.interval, |views| views::leader_of(views).map(|leader| leader.id) != leader_id);
            tokio::select! {
                biased;
                () = tokio::time::sleep_until(deadline) => return None,
                _ = self.halted.wait_for(|halted| *halted) => return None,
                _ = another_leads => {}
                () = ledger.changed_since(version) => {}
            }
        }
    }

    async fn inject<'a>(
        &self,
        aimed: Aimed<'a>,
        change: Change<'_>,
        onset: RunNs,
    ) -> anyhow::Result<Current<'a>> {
        let Aimed { fault, resolved, leader, beside } = aimed;
        let cluster = &self.runner.cluster;
        let epoch = leader.map(|leader| leader.epoch);
        let asked = FaultDetail { epoch, ..FaultDetail::default() };
        self.write(fault, FaultPhase::Asked, &resolved.targets, asked)?;
        let mut before = Traffic::default();
        match &resolved.action {
            Action::Cut(cut) => before = cluster.cut(&fault.id, cut).await?,
            Action::Kill { members } => cluster.kill(members).await?,
            Action::Replace { members, .. } => cluster.retire(members).await?,
            Action::Pause { members } => cluster.pause(members).await?,
            Action::Clock { members, offset_ns } => cluster.shift_clock(members, *offset_ns).await?,
        }
        let injected = self.runner.clock.now();
        change.is_in_force();
        let detail = injected_detail(&resolved, epoch, beside);
        self.write_at(fault, FaultPhase::Injected, injected, &resolved.targets, detail)?;
        if let Action::Cut(_) = &resolved.action {
            before = before.settled_by(cluster.traffic().await?);
        }
        self.runner.progress.say(&format!("{} {}", fault.id, resolved.sentence));
        let hold = fault.hold_ms * 1_000_000;
        // With overlap a fault ends when its round has it end, so that others end before it or after it as drawn;
        // one that had to wait for its target is held for half of its time at least.
        let end = if self.overlap { (onset + hold).max(injected + hold / 2) } else { injected + hold };
        Ok(Current { fault, resolved, before, injected, end })
    }

    async fn verify(&self, current: &Current<'_>) -> anyhow::Result<()> {
        let Current { fault, resolved, before, end, .. } = current;
        let proof = loop {
            let (version, in_force) = self.ledger.settled().await;
            let proof = proof::bites(&*self.runner.cluster, &resolved.action, before, &in_force).await?;
            let is_last = self.runner.clock.now() >= *end;
            if proof.holds || is_last || self.ledger.version() == version {
                break proof;
            }
        };
        let phase = if proof.holds { FaultPhase::Verified } else { FaultPhase::Unverified };
        if !proof.holds {
            self.tell_failed(fault, "not verified", &proof);
        }
        self.write(fault, phase, &resolved.targets, proof.detail)
    }

    async fn heal(&self, current: &Current<'_>) -> anyhow::Result<()> {
        let (fault, targets) = (current.fault, &current.resolved.targets);
        let quorum_remained = Some(self.ledger.quorum_held(&fault.id));
        let healing = FaultDetail { quorum_remained, ..FaultDetail::default() };
        self.write(fault, FaultPhase::Healing, targets, healing)?;
        let change = self.ledger.ending(&fault.id);
        let evidence = self.undo(current).await?;
        change.is_gone();
        let detail = FaultDetail { evidence, ..FaultDetail::default() };
        self.write(fault, FaultPhase::Healed, targets, detail)?;
        let proof = loop {
            let (version, rest) = self.ledger.settled().await;
            let gone = proof::is_gone(&*self.runner.cluster, &current.resolved.action, &rest);
            tokio::select! {
                proof = gone => {
                    let proof = proof?;
                    if proof.holds || self.ledger.version() == version {
                        break proof;
                    }
                }
                // Another fault came or went, so what is to be seen is no longer the same.
                () = self.ledger.changed_since(version) => {}
            }
        };
        let phase = if proof.holds { FaultPhase::VerifiedHealed } else { FaultPhase::Leaked };
        if !proof.holds {
            self.tell_failed(fault, "not seen to be gone", &proof);
        }
        self.write(fault, phase, targets, proof.detail)
    }

    /// Undoes it. Gives what is worth telling of that.
    async fn undo(&self, current: &Current<'_>) -> anyhow::Result<Option<String>> {
        let Current { fault, resolved, before, .. } = current;
        let cluster = &self.runner.cluster;
        match &resolved.action {
            Action::Cut(cut) => {
                let after = cluster.heal(&fault.id).await?;
                let proof = proof::at_the_end_of_a_cut(cut, before, &after);
                if !proof.holds {
                    self.tell_failed(fault, "not verified", &proof);
                    self.write(fault, FaultPhase::Unverified, &resolved.targets, proof.detail.clone())?;
                }
                Ok(proof.detail.evidence)
            }
            Action::Kill { members } => {
                let lose = self.runner.lose_unsynced.applies_to(fault.kind);
                cluster.restart(members, lose).await?;
                let how = if lose { ", their logs cut back to what was synced" } else { "" };
                Ok(Some(format!("{} started again{how}", plural(members.len(), "member"))))
            }
            Action::Replace { members, by } => {
                cluster.restart_as(members, *by).await?;
                Ok(Some(format!("started again as {by}")))
            }
            Action::Pause { members } => {
                cluster.resume(members).await?;
                Ok(None)
            }
            Action::Clock { members, .. } => {
                cluster.shift_clock(members, 0).await?;
                Ok(self.gaps(members, current.injected))
            }
        }
    }

    /// The starts of these members since `from` that came up with the true time first, in words.
    fn gaps(&self, members: &[MemberId], from: RunNs) -> Option<String> {
        let gap = |stamped: &Stamped| match stamped.event {
            Event::Clock { gap_ns: Some(gap_ns), .. } => Some(format!(
                "n{} was started again while it was shifted, and ran unshifted for {:.1} ms",
                stamped.node.0,
                milliseconds(gap_ns)
            )),
            _ => None,
        };
        let gaps: Vec<String> = self
            .runner
            .cluster
            .events()
            .events()
            .iter()
            .filter(|stamped| stamped.time >= from && members.contains(&stamped.node))
            .filter_map(gap)
            .collect();
        (!gaps.is_empty()).then(|| gaps.join("; "))
    }

    /// The members that ended by themselves. With one gone, a fault would no longer be what it says.
    fn dead(&self) -> Option<String> {
        let killed = self.ledger.killed();
        let views = self.runner.cluster.events().views();
        let dead: Vec<String> = views
            .iter()
            .filter(|(id, view)| !view.running && !killed.contains(id))
            .map(|(id, _)| format!("n{}", id.0))
            .collect();
        (!dead.is_empty()).then(|| format!("{} ended without a fault", dead.join(" ")))
    }

    fn not_injected(&self, fault: &PlannedFault, why: &str) -> anyhow::Result<()> {
        self.write(fault, FaultPhase::Asked, &[], FaultDetail::default())?;
        let words = format!("not injected: {why}");
        self.runner.progress.say(&format!("{} {}: {words}", fault.id, fault.kind.name()));
        self.write(fault, FaultPhase::Unverified, &[], evidence(words))
    }

    fn no_target(&self, fault: &PlannedFault) -> anyhow::Result<()> {
        let words = views::laggards(&self.runner.cluster.events().views());
        self.runner.progress.say(&format!("{} {}: no target ({words})", fault.id, fault.kind.name()));
        self.write(fault, FaultPhase::Asked, &[], FaultDetail::default())?;
        self.write(fault, FaultPhase::NoTarget, &[], evidence(format!("nobody to hit: {words}")))
    }

    fn tell_failed(&self, fault: &PlannedFault, what: &str, proof: &Proof) {
        let words = proof.detail.evidence.as_deref().unwrap_or_default();
        self.runner.progress.say(&format!("{} {}: {what}: {words}", fault.id, fault.kind.name()));
    }

    fn write(
        &self,
        fault: &PlannedFault,
        phase: FaultPhase,
        targets: &[MemberId],
        detail: FaultDetail,
    ) -> anyhow::Result<()> {
        self.write_at(fault, phase, self.runner.clock.now(), targets, detail)
    }

    fn write_at(
        &self,
        fault: &PlannedFault,
        phase: FaultPhase,
        time: RunNs,
        targets: &[MemberId],
        detail: FaultDetail,
    ) -> anyhow::Result<()> {
        tracing::debug!(fault = fault.id, ?phase, at_ms = milliseconds(time));
        self.runner.journal.write((&fault.id, fault.kind.name()), phase, time, targets, detail)
    }

    /// True when it was told to stop instead.
    async fn sleep_until(&mut self, moment: RunNs) -> bool {
        let moment = self.runner.clock.instant(moment).into();
        tokio::select! {
            () = tokio::time::sleep_until(moment) => false,
            _ = self.halted.wait_for(|halted| *halted) => true,
        }
    }
}

/// What is written down of a fault that was injected, whatever the cluster.
pub(crate) fn injected_detail(resolved: &Resolved, epoch: Option<u32>, beside: Vec<String>) -> FaultDetail {
    let clock_offset_ns = match &resolved.action {
        Action::Clock { offset_ns, .. } => Some(*offset_ns),
        Action::Cut(_) | Action::Kill { .. } | Action::Replace { .. } | Action::Pause { .. } => None,
    };
    let numbers = |side: &[MemberId]| side.iter().map(|member| member.0).collect();
    FaultDetail {
        sentence: Some(resolved.sentence.clone()),
        epoch,
        quorum_remained: Some(!resolved.majority_side.is_empty()),
        majority_side: numbers(&resolved.majority_side),
        sides: Some(resolved.sides.iter().map(|side| numbers(side)).collect()),
        leader_fault: Some(resolved.leader_fault),
        clock_offset_ns,
        beside,
        ..FaultDetail::default()
    }
}

/// What was seen, in words alone.
pub(crate) fn evidence(words: String) -> FaultDetail {
    FaultDetail { evidence: Some(words), ..FaultDetail::default() }
}
