//! Carries a schedule out: asks, injects, proves, holds, heals, proves again, and writes each step down.
//!
//! One fault at a time. A fault begins only when the one before was seen to be gone, so that what is seen
//! belongs to it; one whose turn is past by then is written down as never injected. Whatever ends the run
//! early, what was injected is healed.

use std::sync::Arc;
use std::time::Duration;

use node_wire::ids::ServerId;
use reports::results::{FaultDetail, FaultPhase};
use tokio::sync::watch;

use super::journal::Journal;
use super::proof::{self, Proof};
use super::target::{self, Action, Resolved};
use super::{PlannedFault, Schedule};
use crate::cli::options::LoseUnsynced;
use crate::clock::{RunClock, RunNs, milliseconds};
use crate::cluster::{Cluster, Traffic};
use crate::events::{self, Leader};
use crate::progress::Progress;

/// How long a fault that needs a leader waits for one, as a share of the interval.
const LEADER_PATIENCE_SHARE: u32 = 4;

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
    /// Where it is told.
    pub progress: Progress,
}

/// One fault under way.
struct Current<'a> {
    fault: &'a PlannedFault,
    resolved: Resolved,
    before: Traffic,
    injected: RunNs,
}

impl Runner {
    /// Carries `schedule` out, its times counted from `start`. Ends early, and healed, when `stop` says so.
    pub async fn run(
        &self,
        schedule: &Schedule,
        start: RunNs,
        mut stop: watch::Receiver<bool>,
    ) -> anyhow::Result<()> {
        let interval = Duration::from_millis(schedule.interval_ms);
        for fault in &schedule.faults {
            let onset = start + fault.start_ms * 1_000_000;
            if self.sleep_until(onset, &mut stop).await {
                return Ok(());
            }
            if let Some(dead) = self.dead() {
                self.not_injected(fault, &dead)?;
                continue;
            }
            let late = Duration::from_nanos(self.clock.now().saturating_sub(onset));
            if late > interval / 2 {
                let words =
                    format!("its turn was over {} ms ago when the one before was gone", late.as_millis());
                self.not_injected(fault, &words)?;
                continue;
            }
            self.one(fault, interval, &mut stop).await?;
        }
        Ok(())
    }

    async fn one(
        &self,
        fault: &PlannedFault,
        interval: Duration,
        stop: &mut watch::Receiver<bool>,
    ) -> anyhow::Result<()> {
        let leader = self.leader(interval / LEADER_PATIENCE_SHARE).await;
        let asked = FaultDetail { epoch: leader.map(|leader| leader.epoch.0), ..FaultDetail::default() };
        self.write(fault, FaultPhase::Asked, &[], asked)?;
        let leader_id = leader.map(|leader| leader.id);
        let Some(resolved) = target::resolve(fault, self.cluster.members(), leader_id) else {
            let words = events::laggards(&self.cluster.events().views());
            self.progress.say(&format!("{} {}: no target ({words})", fault.id, fault.kind.name()));
            return self.write(fault, FaultPhase::NoTarget, &[], evidence(format!("no leader: {words}")));
        };
        let current = self.inject(fault, resolved, leader).await?;
        self.verify(&current).await?;
        let end = current.injected + fault.hold_ms * 1_000_000;
        self.sleep_until(end, stop).await;
        self.heal(&current).await
    }

    async fn inject<'a>(
        &self,
        fault: &'a PlannedFault,
        resolved: Resolved,
        leader: Option<Leader>,
    ) -> anyhow::Result<Current<'a>> {
        let mut before = Traffic::default();
        match &resolved.action {
            Action::Cut(cut) => before = self.cluster.cut(&fault.id, cut).await?,
            Action::Kill { members } => self.cluster.kill(members).await?,
            Action::Pause { members } => self.cluster.pause(members).await?,
        }
        let injected = self.clock.now();
        let detail = FaultDetail {
            sentence: Some(resolved.sentence.clone()),
            epoch: leader.map(|leader| leader.epoch.0),
            quorum_remained: Some(!resolved.majority_side.is_empty()),
            majority_side: resolved.majority_side.iter().map(|member| member.0).collect(),
            ..FaultDetail::default()
        };
        self.write(fault, FaultPhase::Injected, &resolved.targets, detail)?;
        self.progress.say(&format!("{} {}", fault.id, resolved.sentence));
        Ok(Current { fault, resolved, before, injected })
    }

    async fn verify(&self, current: &Current<'_>) -> anyhow::Result<()> {
        let mut proof = proof::bites(&*self.cluster, &current.resolved.action, &current.before).await?;
        if proof.detail.matrix.is_none() {
            let absent = &current.resolved.targets;
            proof.detail.matrix = Some(proof::matrix_without(self.cluster.members(), absent));
        }
        let phase = if proof.holds { FaultPhase::Verified } else { FaultPhase::Unverified };
        if !proof.holds {
            self.tell_failed(current.fault, "not verified", &proof);
        }
        self.write(current.fault, phase, &current.resolved.targets, proof.detail)
    }

    async fn heal(&self, current: &Current<'_>) -> anyhow::Result<()> {
        let (fault, targets) = (current.fault, &current.resolved.targets);
        self.write(fault, FaultPhase::Healing, targets, FaultDetail::default())?;
        let mut detail = FaultDetail::default();
        match &current.resolved.action {
            Action::Cut(cut) => {
                let after = self.cluster.heal(&fault.id).await?;
                let proof = proof::at_the_end_of_a_cut(cut, &current.before, &after);
                if !proof.holds {
                    self.tell_failed(fault, "not verified", &proof);
                    self.write(fault, FaultPhase::Unverified, targets, proof.detail.clone())?;
                }
                detail = proof.detail;
            }
            Action::Kill { members } => {
                let lose = self.lose_unsynced.applies_to(fault.kind);
                self.cluster.restart(members, lose).await?;
                let how = if lose { ", their logs cut back to what was synced" } else { "" };
                detail.evidence =
                    Some(format!("{} started again{how}", crate::num::plural(members.len(), "member")));
            }
            Action::Pause { members } => self.cluster.resume(members).await?,
        }
        self.write(fault, FaultPhase::Healed, targets, detail)?;
        let proof = proof::is_gone(&*self.cluster).await?;
        let phase = if proof.holds { FaultPhase::VerifiedHealed } else { FaultPhase::Leaked };
        if !proof.holds {
            self.tell_failed(fault, "not seen to be gone", &proof);
        }
        self.write(fault, phase, targets, proof.detail)
    }

    /// The members that ended by themselves. With one gone, a fault would no longer be what it says.
    fn dead(&self) -> Option<String> {
        let views = self.cluster.events().views();
        let dead: Vec<String> =
            views.iter().filter(|(_, view)| !view.running).map(|(id, _)| format!("n{}", id.0)).collect();
        (!dead.is_empty()).then(|| format!("{} ended without a fault", dead.join(" ")))
    }

    fn not_injected(&self, fault: &PlannedFault, why: &str) -> anyhow::Result<()> {
        self.write(fault, FaultPhase::Asked, &[], FaultDetail::default())?;
        let words = format!("not injected: {why}");
        self.progress.say(&format!("{} {}: {words}", fault.id, fault.kind.name()));
        self.write(fault, FaultPhase::Unverified, &[], evidence(words))
    }

    /// The leader; when there is none yet, one that turns up in time.
    async fn leader(&self, patience: Duration) -> Option<Leader> {
        let events = self.cluster.events();
        events.wait(patience, |views| events::leader_of(views).is_some()).await;
        events.leader()
    }

    fn tell_failed(&self, fault: &PlannedFault, what: &str, proof: &Proof) {
        let words = proof.detail.evidence.as_deref().unwrap_or_default();
        self.progress.say(&format!("{} {}: {what}: {words}", fault.id, fault.kind.name()));
    }

    fn write(
        &self,
        fault: &PlannedFault,
        phase: FaultPhase,
        targets: &[ServerId],
        detail: FaultDetail,
    ) -> anyhow::Result<()> {
        let now = self.clock.now();
        tracing::debug!(fault = fault.id, ?phase, at_ms = milliseconds(now));
        self.journal.write((&fault.id, fault.kind.name()), phase, now, targets, detail)
    }

    /// True when it was told to stop instead.
    async fn sleep_until(&self, moment: RunNs, stop: &mut watch::Receiver<bool>) -> bool {
        tokio::select! {
            () = tokio::time::sleep_until(self.clock.instant(moment).into()) => false,
            _ = stop.wait_for(|stopped| *stopped) => true,
        }
    }
}

fn evidence(words: String) -> FaultDetail {
    FaultDetail { evidence: Some(words), ..FaultDetail::default() }
}
