//! The life of a fault: from `faults.jsonl`, one line for every transition, to one record per fault.
//!
//! The harness appends a [`FaultTransition`] the moment it happens, so that a killed harness leaves what it
//! knew. Every report works on [`FaultRecord`]s, which [`fold`] makes from the lines in any order of time
//! that the file has. A fault is `verified` only when its effect was seen and its end was seen too; what
//! was injected and never seen gone is `leaked`, whatever else is known of it.
//!
//! - [`schedule`]: the faults as planned. [`kinds`] and [`consequence`]: what a folder says of each.
//! - [`episodes`]: faults that act at once. [`absences`]: whom they kept away. [`cut_off`]: what was
//!   acknowledged behind them. [`causes`]: how a process ended.

pub mod absences;
pub mod causes;
pub mod consequence;
pub mod cut_off;
pub mod episodes;
pub mod kinds;
pub mod schedule;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::consequence::{Consequence, Consequences};
use crate::events::{Event, Stamped};
use crate::kinds::FaultKind;

/// One line of `faults.jsonl`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FaultTransition {
    /// `F1`, `F2`, ... in the order of the schedule.
    pub fault: String,
    /// The nemesis's name for it: `partition-leader`.
    pub kind: String,
    /// What happened.
    pub phase: FaultPhase,
    /// When, in ns since the start of the run.
    pub time: u64,
    /// The members it is aimed at, as far as they are resolved.
    #[serde(default)]
    pub targets: Vec<u64>,
    /// What was seen.
    #[serde(default)]
    pub detail: FaultDetail,
}

/// The steps in the life of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FaultPhase {
    /// The schedule asked for it.
    Asked,
    /// The cluster has done it.
    Injected,
    /// Its effect was seen from the inside.
    Verified,
    /// Its end was asked for.
    Healing,
    /// The cluster has undone it.
    Healed,
    /// Its effect was seen to be gone.
    VerifiedHealed,
    /// Its effect was looked for and not seen.
    Unverified,
    /// It was not seen to be gone.
    Leaked,
    /// No member fitted the description at that moment.
    NoTarget,
    /// The cluster cannot do it.
    Unsupported,
}

/// What was seen at a transition. Each field is kept from the latest transition that has it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FaultDetail {
    /// The fault in a few words with its targets: `partition n4`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sentence: Option<String>,
    /// What proves this transition, in a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<String>,
    /// Who reached whom at this moment: rows speak, columns hear, both in the order of the member ids.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub matrix: Option<Vec<Vec<Reach>>>,
    /// What comes of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub consequences: Vec<Consequence>,
    /// The established epoch at this moment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epoch: Option<u32>,
    /// Whether a quorum of members can still reach each other while the fault holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quorum_remained: Option<bool>,
    /// The members of the side that holds a quorum.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub majority_side: Vec<u64>,
    /// The groups into which it divides the members; each is to have clients.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sides: Option<Vec<Vec<u64>>>,
    /// Whether it takes the leader away from its quorum, so that a higher epoch must follow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leader_fault: Option<bool>,
    /// How far it shifts a wall clock, in ns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_offset_ns: Option<i64>,
    /// The faults that were in force beside it at this moment.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub beside: Vec<String>,
    /// The application that it hits, and what that held.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holder: Option<Holder>,
}

/// An application that held something when a fault hit it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// The number of its process.
    pub application: u64,
    /// What it held.
    pub key: u64,
    /// By which token.
    pub token: u64,
}

/// Whether one member's message reached another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reach {
    /// It arrived.
    Reached,
    /// It did not, while a control did.
    NotReached,
    /// It arrived, but later than calm traffic does.
    Late,
    /// Not probed, or the control did not arrive either: nothing is known.
    Unknown,
}

/// How a fault ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FaultState {
    /// Seen to bite, and seen to be gone.
    Verified,
    /// Not seen to bite.
    #[default]
    Unverified,
    /// Not seen to be gone.
    Leaked,
    /// Undone, and not seen to be gone because a member had died meanwhile.
    MemberDied,
    /// The cluster cannot do it.
    Unsupported,
    /// No member fitted the description.
    NoTarget,
}

impl FaultState {
    /// The words used in every report.
    pub fn name(self) -> &'static str {
        match self {
            Self::Verified => "verified",
            Self::Unverified => "unverified",
            Self::Leaked => "leaked",
            Self::MemberDied => "undone, while a member was dead",
            Self::Unsupported => "unsupported",
            Self::NoTarget => "no target",
        }
    }
}

/// All that is known of one fault.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FaultRecord {
    /// `F1`, `F2`, ... and the same name everywhere.
    pub id: String,
    /// The nemesis's name for it.
    pub kind: String,
    /// How it acts; none where the run does not describe its kind.
    #[serde(default)]
    pub mechanism: Option<String>,
    /// What comes of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub consequences: Vec<Consequence>,
    /// The members it was aimed at.
    pub targets: Vec<u64>,
    /// The fault in a few words with its targets: `partition n4`.
    pub sentence: String,
    /// When the schedule asked for it.
    pub asked_ns: u64,
    /// When the cluster had done it.
    #[serde(default)]
    pub injected_ns: Option<u64>,
    /// When its effect was seen.
    #[serde(default)]
    pub verified_ns: Option<u64>,
    /// When its end was asked for.
    #[serde(default)]
    pub heal_asked_ns: Option<u64>,
    /// When the cluster had undone it.
    #[serde(default)]
    pub healed_ns: Option<u64>,
    /// When its effect was seen to be gone.
    #[serde(default)]
    pub verified_healed_ns: Option<u64>,
    /// When it was given up to see it gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leaked_ns: Option<u64>,
    /// How it ended.
    pub state: FaultState,
    /// What proves that it bit, or what was seen instead.
    #[serde(default)]
    pub evidence: String,
    /// What proves that it is gone, or what was seen instead.
    #[serde(default)]
    pub healed_evidence: String,
    /// Who reached whom while it held.
    #[serde(default)]
    pub matrix: Option<Vec<Vec<Reach>>>,
    /// Who reached whom afterwards.
    #[serde(default)]
    pub healed_matrix: Option<Vec<Vec<Reach>>>,
    /// The established epoch when it was injected.
    #[serde(default)]
    pub epoch_before: Option<u32>,
    /// The last established epoch seen in its life after that.
    #[serde(default)]
    pub epoch_after: Option<u32>,
    /// Whether a quorum could still talk while it held.
    #[serde(default)]
    pub quorum_remained: bool,
    /// The members of the side that held a quorum.
    #[serde(default)]
    pub majority_side: Vec<u64>,
    /// The groups into which it divided the members; empty when it divided none.
    #[serde(default)]
    pub sides: Vec<Vec<u64>>,
    /// Whether it took the leader away from its quorum, so that a higher epoch had to follow.
    #[serde(default)]
    pub leader_fault: bool,
    /// How far it shifted a wall clock, in ns.
    #[serde(default)]
    pub clock_offset_ns: Option<i64>,
    /// The faults that were in force when it was injected.
    #[serde(default)]
    pub beside: Vec<String>,
    /// The application that it hit, and what that held.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holder: Option<Holder>,
    /// Definite successful operations around it, where they were counted.
    #[serde(default)]
    pub load: Option<FaultLoad>,
}

impl FaultRecord {
    /// Whether it came into force and took the leader away from its quorum, so that a higher epoch must
    /// follow.
    pub fn took_the_leader(&self) -> bool {
        self.injected_ns.is_some() && self.leader_fault
    }

    /// When it was gone: when that was seen, or, where nobody could see it because a member had died, when it
    /// was undone. None where it may still be in force.
    pub fn gone_ns(&self) -> Option<u64> {
        let undone = self.healed_ns.filter(|_| self.state == FaultState::MemberDied);
        self.verified_healed_ns.or(undone)
    }

    /// The interval in which the fault may have been at work: from injection until it was gone, and to
    /// `end_ns` where it may still be in force. None when nothing was injected.
    pub fn interval(&self, end_ns: u64) -> Option<(u64, u64)> {
        let from = self.injected_ns?;
        Some((from, self.gone_ns().unwrap_or(end_ns).max(from)))
    }
}

impl Consequences for FaultRecord {
    fn all(&self) -> &[Consequence] {
        &self.consequences
    }
}

/// Definite successful operations before, during and after a fault.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FaultLoad {
    /// Between the end of the fault before and this one's injection.
    pub before: OperationMix,
    /// Between injection and the request to heal.
    pub during: OperationMix,
    /// Between verified healing and the next injection.
    pub after: OperationMix,
}

/// Definite successful operations by function.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OperationMix {
    /// Reads answered.
    pub reads: u64,
    /// Writes acknowledged.
    pub writes: u64,
    /// Compare-and-sets acknowledged.
    pub cas: u64,
}

/// The faults of a run, counted by how they ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FaultCounts {
    /// Faults that the schedule asked for.
    pub planned: u32,
    /// Seen to bite and seen to be gone.
    pub verified: u32,
    /// Not seen to bite.
    pub unverified: u32,
    /// Not seen to be gone.
    pub leaked: u32,
    /// Undone, and not seen to be gone because a member had died meanwhile.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub member_died: u32,
    /// Without a member that fitted.
    #[serde(default)]
    pub no_target: u32,
    /// Impossible on this cluster.
    #[serde(default)]
    pub unsupported: u32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl FaultCounts {
    /// Counts `records`.
    pub fn of(records: &[FaultRecord]) -> Self {
        let mut counts = Self::default();
        for record in records {
            counts.planned += 1;
            match record.state {
                FaultState::Verified => counts.verified += 1,
                FaultState::Unverified => counts.unverified += 1,
                FaultState::Leaked => counts.leaked += 1,
                FaultState::MemberDied => counts.member_died += 1,
                FaultState::NoTarget => counts.no_target += 1,
                FaultState::Unsupported => counts.unsupported += 1,
            }
        }
        counts
    }
}

/// Reads the lines of a journal; a torn last line, as a killed harness leaves it, is left out.
///
/// # Errors
///
/// The number of a line that is no transition, from one, and why.
pub fn parse(text: &str) -> Result<Vec<FaultTransition>, (usize, serde_json::Error)> {
    let mut transitions = Vec::new();
    let last = text.lines().count();
    for (number, line) in (1..).zip(text.lines()) {
        match serde_json::from_str(line) {
            Ok(transition) => transitions.push(transition),
            Err(_) if number == last && !text.ends_with('\n') => {}
            Err(error) => return Err((number, error)),
        }
    }
    Ok(transitions)
}

/// Makes one record per fault, in the order of their first appearance. `kinds` describes the kinds of the
/// run.
pub fn fold(transitions: &[FaultTransition], kinds: &BTreeMap<String, FaultKind>) -> Vec<FaultRecord> {
    let mut order: Vec<FaultRecord> = Vec::new();
    let mut place: BTreeMap<&str, usize> = BTreeMap::new();
    for transition in transitions {
        let at = *place.entry(&transition.fault).or_insert_with(|| {
            order.push(FaultRecord {
                id: transition.fault.clone(),
                kind: transition.kind.clone(),
                mechanism: kinds.get(&transition.kind).map(|kind| kind.mechanism.clone()),
                asked_ns: transition.time,
                ..FaultRecord::default()
            });
            order.len() - 1
        });
        apply(&mut order[at], transition);
    }
    for record in &mut order {
        settle(record);
    }
    order
}

/// Tells faults that were undone, and not seen to be gone only because a member had ended by itself, from
/// those that may still be in force. Where everybody was asked who reaches whom, those that live must all
/// have reached each other; any other fault must have hit the member that ended.
pub fn tell_deaths(records: &mut [FaultRecord], events: &[Stamped]) {
    if records.iter().all(|record| record.state != FaultState::Leaked) {
        return;
    }
    let ended = ended_by_themselves(records, events);
    for record in records.iter_mut().filter(|record| record.state == FaultState::Leaked) {
        let Some((leaked, _)) = record.leaked_ns.zip(record.healed_ns) else { continue };
        let dead: Vec<u64> = ended.iter().filter(|(at, _)| *at <= leaked).map(|(_, node)| *node).collect();
        let is_dead = |member: u64| dead.contains(&member);
        let explained = match &record.healed_matrix {
            // Whoever is dead reaches nobody, and nobody reaches it.
            Some(matrix) if !dead.is_empty() => {
                let row = |(speaker, row): (u64, &Vec<Reach>)| {
                    is_dead(speaker)
                        || (1..).zip(row).all(|(hearer, reach)| {
                            hearer == speaker || *reach == Reach::Reached || is_dead(hearer)
                        })
                };
                (1..).zip(matrix).all(row)
            }
            Some(_) => false,
            None => record.targets.iter().any(|target| is_dead(*target)),
        };
        if explained {
            record.state = FaultState::MemberDied;
        }
    }
}

/// Members that ended though no fault ended them and were never started again: when, and who.
fn ended_by_themselves(records: &[FaultRecord], events: &[Stamped]) -> Vec<(u64, u64)> {
    let ended_by_us = |node: u64, at: u64| {
        records.iter().any(|record| {
            record.ends()
                && record.targets.contains(&node)
                && record.asked_ns <= at
                && record.healed_ns.is_none_or(|healed| at < healed)
        })
    };
    let mut last: BTreeMap<u64, Option<u64>> = BTreeMap::new();
    for Stamped { time, node, event } in events {
        match event {
            Event::Exited(_) => drop(last.insert(node.0, Some(*time))),
            Event::Spawned => drop(last.insert(node.0, None)),
            _ => {}
        }
    }
    let ended = last.into_iter().filter_map(|(node, at)| Some((at?, node)));
    ended.filter(|(at, node)| !ended_by_us(*node, *at)).collect()
}

/// Whether the evidence of this transition speaks of the end of the fault.
fn speaks_of_healing(record: &FaultRecord, phase: FaultPhase) -> bool {
    match phase {
        FaultPhase::Healing | FaultPhase::Healed | FaultPhase::VerifiedHealed | FaultPhase::Leaked => true,
        FaultPhase::Unverified => record.heal_asked_ns.is_some(),
        FaultPhase::Asked
        | FaultPhase::Injected
        | FaultPhase::Verified
        | FaultPhase::NoTarget
        | FaultPhase::Unsupported => false,
    }
}

fn apply(record: &mut FaultRecord, transition: &FaultTransition) {
    let time = transition.time;
    match transition.phase {
        FaultPhase::Asked => record.asked_ns = time,
        FaultPhase::Injected => record.injected_ns = Some(time),
        FaultPhase::Verified => record.verified_ns = Some(time),
        FaultPhase::Healing => record.heal_asked_ns = Some(time),
        FaultPhase::Healed => record.healed_ns = Some(time),
        FaultPhase::VerifiedHealed => record.verified_healed_ns = Some(time),
        // At the end of a fault as well: what was seen at its beginning then did not hold.
        FaultPhase::Unverified => {
            record.state = FaultState::Unverified;
            record.verified_ns = None;
        }
        FaultPhase::Leaked => {
            record.state = FaultState::Leaked;
            record.leaked_ns = Some(time);
        }
        FaultPhase::NoTarget => record.state = FaultState::NoTarget,
        FaultPhase::Unsupported => record.state = FaultState::Unsupported,
    }
    if !transition.targets.is_empty() {
        record.targets.clone_from(&transition.targets);
    }
    let healing = speaks_of_healing(record, transition.phase);
    let detail = &transition.detail;
    if let Some(sentence) = &detail.sentence {
        record.sentence.clone_from(sentence);
    }
    if let Some(evidence) = &detail.evidence {
        let slot = if healing { &mut record.healed_evidence } else { &mut record.evidence };
        slot.clone_from(evidence);
    }
    if detail.matrix.is_some() {
        let slot = if healing { &mut record.healed_matrix } else { &mut record.matrix };
        slot.clone_from(&detail.matrix);
    }
    if let Some(epoch) = detail.epoch {
        match transition.phase {
            FaultPhase::Asked | FaultPhase::Injected => record.epoch_before = Some(epoch),
            _ => record.epoch_after = Some(epoch),
        }
    }
    if let Some(remained) = detail.quorum_remained {
        record.quorum_remained = remained;
    }
    if !detail.majority_side.is_empty() {
        record.majority_side.clone_from(&detail.majority_side);
    }
    if let Some(sides) = &detail.sides {
        record.sides.clone_from(sides);
    }
    if !detail.consequences.is_empty() {
        record.consequences.clone_from(&detail.consequences);
    }
    if !detail.beside.is_empty() {
        record.beside.clone_from(&detail.beside);
    }
    record.leader_fault = detail.leader_fault.unwrap_or(record.leader_fault);
    record.clock_offset_ns = detail.clock_offset_ns.or(record.clock_offset_ns);
    record.holder = detail.holder.or(record.holder);
}

/// Decides the state from what was seen, once every line was read.
fn settle(record: &mut FaultRecord) {
    if matches!(record.state, FaultState::NoTarget | FaultState::Unsupported) {
        return;
    }
    let injected = record.injected_ns.is_some();
    record.state = if injected && record.verified_healed_ns.is_none() {
        FaultState::Leaked
    } else if record.verified_ns.is_some() && record.state != FaultState::Leaked {
        FaultState::Verified
    } else {
        record.state
    };
    if record.sentence.is_empty() {
        record.sentence.clone_from(&record.kind);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_that_died_is_no_fault_that_could_not_be_undone() {
        let cut = |reach: Reach| FaultRecord {
            id: "F1".to_owned(),
            consequences: vec![Consequence::silences(Vec::new())],
            targets: vec![1],
            injected_ns: Some(10),
            verified_ns: Some(11),
            healed_ns: Some(20),
            leaked_ns: Some(30),
            state: FaultState::Leaked,
            healed_matrix: Some(vec![
                vec![Reach::Unknown, reach, Reach::NotReached],
                vec![Reach::Reached, Reach::Unknown, Reach::NotReached],
                vec![Reach::NotReached, Reach::NotReached, Reach::Unknown],
            ]),
            ..FaultRecord::default()
        };
        let exited = |node| Stamped {
            time: 15,
            node: crate::member::MemberId(node),
            event: Event::Exited("exit status 1".to_owned()),
        };
        let told = |record: FaultRecord, events: &[Stamped]| {
            let mut records = [record];
            tell_deaths(&mut records, events);
            (records[0].state, records[0].interval(99))
        };
        assert_eq!(told(cut(Reach::Reached), &[exited(3)]), (FaultState::MemberDied, Some((10, 20))));
        let leaked = (FaultState::Leaked, Some((10, 99)));
        assert_eq!(
            told(cut(Reach::NotReached), &[exited(3)]),
            leaked,
            "two that live do not hear each other"
        );
        assert_eq!(told(cut(Reach::Reached), &[]), leaked, "nobody died");
        let again = Stamped { time: 16, event: Event::Spawned, ..exited(3) };
        assert_eq!(told(cut(Reach::Reached), &[exited(3), again]), leaked, "it was started again");
        let late = Stamped { time: 31, ..exited(3) };
        assert_eq!(told(cut(Reach::Reached), &[late]), leaked, "it died only later");
        let before = Stamped { time: 5, ..exited(3) };
        assert_eq!(told(cut(Reach::Reached), &[before]).0, FaultState::MemberDied, "dead all along");
        let paused = FaultRecord {
            consequences: vec![Consequence::Stops],
            healed_matrix: None,
            ..cut(Reach::Unknown)
        };
        assert_eq!(told(paused.clone(), &[exited(1)]).0, FaultState::MemberDied);
        assert_eq!(told(paused.clone(), &[exited(2)]), leaked, "another one died");
        let killed = FaultRecord { consequences: vec![Consequence::Ends], ..paused };
        assert_eq!(told(killed.clone(), &[exited(1)]), leaked, "the fault ended it");
        let undone = FaultRecord { healed_ns: None, consequences: vec![Consequence::Stops], ..killed };
        assert_eq!(told(undone, &[exited(1)]).0, FaultState::Leaked, "it was never undone");
    }

    fn line(phase: FaultPhase, time: u64, evidence: &str) -> FaultTransition {
        FaultTransition {
            fault: "F1".to_owned(),
            kind: "kill-leader".to_owned(),
            phase,
            time,
            targets: vec![2],
            detail: FaultDetail { evidence: Some(evidence.to_owned()), ..FaultDetail::default() },
        }
    }

    #[test]
    fn a_full_life_is_verified_and_keeps_both_proofs() {
        let records = fold(
            &[
                line(FaultPhase::Asked, 1, ""),
                line(FaultPhase::Injected, 2, "signal sent"),
                line(FaultPhase::Verified, 3, "process gone"),
                line(FaultPhase::Healing, 8, "starting"),
                line(FaultPhase::Healed, 9, "started"),
                line(FaultPhase::VerifiedHealed, 10, "follows"),
            ],
            &BTreeMap::new(),
        );
        assert_eq!(records.len(), 1);
        assert_eq!(records[0].state, FaultState::Verified);
        assert_eq!(records[0].evidence, "process gone");
        assert_eq!(records[0].healed_evidence, "follows");
        assert_eq!(records[0].interval(99), Some((2, 10)));
    }

    #[test]
    fn a_fault_never_seen_gone_is_leaked_even_when_it_bit() {
        let records = fold(
            &[
                line(FaultPhase::Asked, 1, ""),
                line(FaultPhase::Injected, 2, ""),
                line(FaultPhase::Verified, 3, "process gone"),
                line(FaultPhase::Healed, 9, "started"),
            ],
            &BTreeMap::new(),
        );
        assert_eq!(records[0].state, FaultState::Leaked);
        assert_eq!(records[0].interval(99), Some((2, 99)));
    }

    #[test]
    fn a_fault_that_was_never_seen_to_bite_is_unverified() {
        let records = fold(
            &[
                line(FaultPhase::Asked, 1, ""),
                line(FaultPhase::Injected, 2, ""),
                line(FaultPhase::Unverified, 3, "the process still runs"),
                line(FaultPhase::Healed, 9, ""),
                line(FaultPhase::VerifiedHealed, 10, "follows"),
            ],
            &BTreeMap::new(),
        );
        assert_eq!(records[0].state, FaultState::Unverified);
        assert_eq!(records[0].evidence, "the process still runs");
    }

    #[test]
    fn a_fault_that_did_not_hold_to_its_end_is_not_verified() {
        let records = fold(
            &[
                line(FaultPhase::Asked, 1, ""),
                line(FaultPhase::Injected, 2, ""),
                line(FaultPhase::Verified, 3, "nothing crosses"),
                line(FaultPhase::Healing, 7, ""),
                line(FaultPhase::Unverified, 8, "468 bytes crossed"),
                line(FaultPhase::Healed, 9, ""),
                line(FaultPhase::VerifiedHealed, 10, "gone"),
            ],
            &BTreeMap::new(),
        );
        assert_eq!(records[0].state, FaultState::Unverified);
    }

    #[test]
    fn a_fault_without_target_has_no_interval() {
        let records = fold(
            &[line(FaultPhase::Asked, 1, ""), line(FaultPhase::NoTarget, 1, "no leader")],
            &BTreeMap::new(),
        );
        assert_eq!(records[0].state, FaultState::NoTarget);
        assert_eq!(records[0].interval(99), None);
        assert_eq!(FaultCounts::of(&records).no_target, 1);
    }

    #[test]
    fn a_line_reads_as_the_harness_writes_it() {
        let text = concat!(
            r#"{"fault":"F1","kind":"kill-leader","phase":"verified-healed","time":12,"#,
            r#""targets":[2],"detail":{"evidence":"x"}}"#
        );
        let parsed: FaultTransition = serde_json::from_str(text).expect("a line of the documented form");
        assert_eq!(parsed.phase, FaultPhase::VerifiedHealed);
        assert_eq!(serde_json::to_string(&parsed).expect("writes back"), text);
    }
}
