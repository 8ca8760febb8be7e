//! Does the ensemble go on where it can? The check `progress`.
//!
//! While a quorum of members can speak with each other, somebody among them must lead, and acknowledge. A
//! fault that takes the leader from its quorum must therefore be noticed: by the leader that hears nobody, or
//! by those who no longer hear it. Where nobody notices for several election time-outs, and clients of the
//! connected side ask for changes all the while and are not answered, the promise is broken; so it is where
//! many more pass without an answer, whoever noticed.
//!
//! It accuses, so it leaves out whatever could be slowness. A fault must have been seen to bite; the network
//! and the processes must be as they were all through the interval; the machine must not have stood still;
//! and to what members are told as their patience comes what the harness itself was late. A slow disk keeps
//! nobody from noticing that a leader is gone, so the short bound asks for that alone; the long one is
//! beyond any disk. Where something is slow on purpose, bounds grow with it; what is slowed by as much as
//! members' patience is as good as lost, and nothing is asked. Of a history that was cut short only what
//! stands before the cut is silence, and one with lines missing in the middle shows none. What a fault of
//! the user's own does to an ensemble nobody knows, so nothing is asked while one may be at work.
//!
//! A system that keeps keys in several places acknowledges as a whole while one key is refused. That breaks
//! no promise of this check, so it says of what it judged that all keys were taken together, and which key
//! had an outage of its own.

use std::collections::BTreeSet;

use checker::history::{Extent, History, Op, Outcome};
use checker::verdict::{CheckResult, Verdict};
use serde_json::json;

use super::Check;
use super::promises::MINIMUM_EACH;
use crate::consequence::Consequences;
use crate::events::{Event, Said};
use crate::numbers::{duration, len, moment, ns_to_ms, plural};
use crate::observed::Observed;
use crate::operations::end_ns;
use crate::outages::Context;
use crate::results::{FaultRecord, KeyOutage, RunInfo};
use crate::{idleness, key_outages, outages, stalls};

/// Election time-outs after which a leader that lost its quorum must have been noticed to be gone. A member
/// waits for up to four of them when its peers are unsteady.
const UNNOTICED: u64 = 6;
/// Election time-outs after which a change must have been acknowledged, whatever happened.
const UNANSWERED: u64 = 40;
/// And never less than this: elections and acknowledgements need disks, and disks may be busy.
const UNANSWERED_NS: u64 = 10_000_000_000;
/// To each bound so many times the harness's own worst lateness is added.
const LATENESS: u64 = 4;

/// An interval in which nothing came or went but this fault, and a quorum was connected.
#[derive(Clone, Copy, Debug)]
struct Stretch<'a> {
    fault: &'a FaultRecord,
    from: u64,
    to: u64,
    /// By how much a step takes longer at most under all that is in force.
    slowed_ns: u64,
}

/// After how long somebody must have noticed, and a change must have been acknowledged, in ns.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    noticed: u64,
    answered: u64,
}

impl Bounds {
    /// With a time-out for elections, what it grows by, and the harness's own lateness.
    fn of(timeout: u64, slowed_ns: u64, lateness: u64) -> Self {
        let timeout = timeout.saturating_add(slowed_ns);
        Self {
            noticed: UNNOTICED.saturating_mul(timeout).saturating_add(lateness),
            answered: UNANSWERED.saturating_mul(timeout).max(UNANSWERED_NS).saturating_add(lateness),
        }
    }

    fn larger(self, other: Self) -> Self {
        Self { noticed: self.noticed.max(other.noticed), answered: self.answered.max(other.answered) }
    }
}

/// The check.
pub(super) const CHECK: Check = Check {
    about: "a quorum that is connected goes on",
    judge: |case| {
        let history = (&case.loaded.history, case.loaded.extent);
        check(case.run, case.faults, case.observed, history).into_iter().collect()
    },
};

/// The check; none where no fault left a quorum connected, where nobody knows what members are told, or
/// where no clients of the bench's asked for anything.
pub fn check(
    run: &RunInfo,
    faults: &[FaultRecord],
    observed: &Observed,
    (history, extent): (&History, Extent),
) -> Option<CheckResult> {
    if run.is_wrapped() {
        return None;
    }
    let timeout = run.patience_ms?.saturating_mul(1_000_000);
    let lateness = LATENESS * observed.lag.max_ns();
    let stretches = stretches(faults, observed, known_until(history, extent), timeout);
    if stretches.is_empty() {
        return None;
    }
    let answers = answers(history);
    let mut findings = Vec::new();
    let mut bounds = Bounds::of(timeout, 0, lateness);
    let mut tried = Tried::default();
    let mut judged = Vec::new();
    for stretch in &stretches {
        let gap = longest_gap(&answers, stretch);
        let own @ Bounds { noticed, answered } = Bounds::of(timeout, stretch.slowed_ns, lateness);
        let took = gap.1 - gap.0;
        let is_asked = took < noticed || asked_for(run, history, stretch, gap) >= MINIMUM_EACH;
        if stalls::within(observed, stretch.from, stretch.to) || !is_asked {
            continue;
        }
        tried.note(stretch, own);
        bounds = bounds.larger(own);
        judged.push(*stretch);
        let took_ms = duration(ns_to_ms(took));
        let FaultRecord { id, kind, .. } = stretch.fault;
        if took >= noticed && is_unnoticed(stretch, gap.1, observed) {
            findings.push(format!(
                "no progress: from {} s on nobody noticed for {took_ms} that {id} ({kind}) had taken the \
                 leader from its quorum: no higher epoch, and no change acknowledged though n{} were \
                 connected and asked",
                moment(gap.0),
                names(&stretch.fault.majority_side)
            ));
        } else if took >= answered {
            findings.push(format!(
                "no progress: from {} s on no change was acknowledged for {took_ms} under {id} ({kind}), \
                    though n{} were connected and asked",
                moment(gap.0),
                names(&stretch.fault.majority_side)
            ));
        }
    }
    let evidence = json!({
        "stretches": stretches.len(), "noticed": tried.noticed, "answered": tried.answered,
        "findings": findings,
    });
    let many = plural(u64::try_from(stretches.len()).unwrap_or(u64::MAX), "fault");
    if tried.is_nothing() && findings.is_empty() {
        let summary = format!(
            "nothing was judged: a quorum was connected under {many}, and nowhere for the {} after which \
             changes must be acknowledged; a fault is held for half of --interval",
            duration(ns_to_ms(bounds.answered))
        );
        return Some(CheckResult::nothing_judged("progress", summary).with_evidence(evidence));
    }
    let (verdict, summary) = match findings.as_slice() {
        [] => (Verdict::Valid, tried.words(bounds) + &of_keys(run, history, observed, &judged)),
        [only] => (Verdict::Invalid, only.clone()),
        [first, rest @ ..] => (Verdict::Invalid, format!("{first} (and {} more)", rest.len())),
    };
    Some(extent.allow(CheckResult::new("progress", verdict, summary).with_evidence(evidence)))
}

/// Under how many faults each of the bounds could have been broken: what was too short for a bound says
/// nothing of it.
#[derive(Clone, Copy, Debug, Default)]
struct Tried {
    /// The leader was gone for long enough that somebody must have noticed.
    noticed: u64,
    /// A change must have been acknowledged.
    answered: u64,
}

impl Tried {
    fn note(&mut self, stretch: &Stretch<'_>, Bounds { noticed, answered }: Bounds) {
        let length = stretch.to - stretch.from;
        let took_the_leader = stretch.fault.leader_fault && stretch.fault.epoch_before.is_some();
        self.noticed += u64::from(took_the_leader && length >= noticed);
        self.answered += u64::from(length >= answered);
    }

    fn is_nothing(self) -> bool {
        self.noticed == 0 && self.answered == 0
    }

    /// What was kept, and of what nothing is said.
    fn words(self, Bounds { noticed, answered }: Bounds) -> String {
        let (noticing, answering) = (duration(ns_to_ms(noticed)), duration(ns_to_ms(answered)));
        let leaders = format!(
            "that the leader had lost its quorum was noticed within {noticing} ({})",
            plural(self.noticed, "fault")
        );
        let changes = format!(
            "changes were acknowledged within {answering} wherever a quorum was connected ({})",
            plural(self.answered, "fault")
        );
        match (self.noticed, self.answered) {
            (_, 0) => format!(
                "{leaders}; whether changes were acknowledged was not judged, as no fault was held for the \
                 {answering} that this may take"
            ),
            (0, _) => changes,
            _ => format!("{changes}, and {leaders}"),
        }
    }
}

/// Which keys had outages of their own in these stretches, behind the sentence of all keys together.
fn of_keys(run: &RunInfo, history: &History, observed: &Observed, judged: &[Stretch<'_>]) -> String {
    let load_end_ns = Some(observed.workload_to_ns).filter(|at| *at > 0);
    let context = Context { load_end_ns, ..Context::default() };
    let whole = outages::from_history(history, context, outages::MINIMUM_NS);
    let unsent = idleness::of_run(run, history);
    let Some(found) = key_outages::find(history, load_end_ns, &whole, unsent.as_ref()) else {
        return String::new();
    };
    let mut keys = BTreeSet::new();
    let mut longest: Option<(u64, u64, &str)> = None;
    for KeyOutage { key, outage } in &found.outages {
        for stretch in judged {
            let shared = outage.to_ns.min(stretch.to).saturating_sub(outage.from_ns.max(stretch.from));
            if shared > 0 {
                keys.insert(*key);
                longest = longest.max(Some((shared, *key, &stretch.fault.id)));
            }
        }
    }
    let Some((shared, key, fault)) = longest else { return String::new() };
    let more = match keys.len() - 1 {
        0 => String::new(),
        1 => " (and one more key for less)".to_owned(),
        some => format!(" (and {} more keys for less)", len(some)),
    };
    format!(
        "; that is of all keys together: no change to key {key} was acknowledged for {} under {fault}, while \
         changes to others were{more}",
        duration(ns_to_ms(shared))
    )
}

/// Until when nobody was answered but those whose answers stand there: behind the end of a beginning anything
/// may follow.
fn known_until(history: &History, extent: Extent) -> u64 {
    if extent.is_whole() { u64::MAX } else { end_ns(history) }
}

fn names(members: &[u64]) -> String {
    members.iter().map(u64::to_string).collect::<Vec<_>>().join(" n")
}

/// For every fault that was seen to bite and left a quorum: from its injection to the next change of any
/// kind, unless a fault of the user's own may have been at work meanwhile, or all was slower than members'
/// patience.
fn stretches<'a>(
    faults: &'a [FaultRecord],
    observed: &Observed,
    known_until: u64,
    patience_ns: u64,
) -> Vec<Stretch<'a>> {
    let mut ends: Vec<(u64, u64)> = Vec::new();
    let mut changes: Vec<u64> = faults
        .iter()
        .flat_map(|fault| [Some(fault.asked_ns), fault.injected_ns, fault.heal_asked_ns, fault.healed_ns])
        .flatten()
        .collect();
    for stamped in &observed.events {
        if matches!(stamped.event, Event::Exited(_)) {
            ends.push((stamped.time, stamped.node.0));
        }
        if matches!(stamped.event, Event::Exited(_) | Event::Spawned) {
            changes.push(stamped.time);
        }
    }
    ends.sort_unstable();
    changes.sort_unstable();
    let slowing: Vec<&FaultRecord> = faults.iter().filter(|fault| fault.slows_ns() > 0).collect();
    let own: Vec<(u64, u64)> = faults
        .iter()
        .filter(|fault| fault.is_unknown())
        .filter(|fault| fault.injected_ns.is_some())
        .map(|fault| (fault.asked_ns, fault.verified_healed_ns.unwrap_or(u64::MAX)))
        .collect();
    let is_known =
        |stretch: &Stretch<'_>| !own.iter().any(|(from, to)| *from < stretch.to && *to > stretch.from);
    faults
        .iter()
        .filter(|fault| fault.verified_ns.is_some() && !fault.majority_side.is_empty())
        .filter_map(|fault| {
            let injected = fault.injected_ns?;
            // The ends of those that it killed itself are not news.
            let own =
                |at: u64| fault.verified_ns.is_some_and(|verified| at <= verified) && kills(fault, &ends, at);
            let mut later = changes[changes.partition_point(|at| *at <= injected)..].iter().copied();
            let to = later.find(|at| !own(*at)).unwrap_or(u64::MAX);
            let to = to.min(observed.workload_to_ns).min(known_until);
            let slowed_ns = slowed_within(&slowing, injected, to);
            (to > injected).then_some(Stretch { fault, from: injected, to, slowed_ns })
        })
        .filter(|stretch| is_known(stretch) && stretch.slowed_ns < patience_ns)
        .collect()
}

/// By how much a step takes longer at most between these moments, where all that slows it adds up.
fn slowed_within(slowing: &[&FaultRecord], from: u64, to: u64) -> u64 {
    let at_work = |fault: &&&FaultRecord| {
        fault.interval(u64::MAX).is_some_and(|(begun, gone)| begun < to && gone > from)
    };
    slowing.iter().filter(at_work).map(|fault| fault.slows_ns()).fold(0, u64::saturating_add)
}

/// Whether what happened at this moment is the end of one of the fault's own targets. The ends are by time
/// and member.
fn kills(fault: &FaultRecord, ends: &[(u64, u64)], at: u64) -> bool {
    fault.targets.iter().any(|member| ends.binary_search(&(at, *member)).is_ok())
}

/// When changes were answered by whoever commits, ascending: an acknowledgement, or a refusal, which is a
/// decision too.
fn answers(history: &History) -> Vec<u64> {
    let decided = |op: &&Op| op.is_change() && (op.outcome == Outcome::Ok || op.is_refused_cas());
    let mut answers: Vec<u64> =
        history.ops().iter().filter(decided).filter_map(|op| op.complete_ns).collect();
    answers.sort_unstable();
    answers
}

fn longest_gap(answers: &[u64], stretch: &Stretch<'_>) -> (u64, u64) {
    let inside = &answers
        [answers.partition_point(|at| *at < stretch.from)..answers.partition_point(|at| *at <= stretch.to)];
    let moments: Vec<u64> = [&[stretch.from], inside, &[stretch.to]].concat();
    let gaps = moments.windows(2).map(|pair| (pair[0], pair[1]));
    gaps.max_by_key(|gap| gap.1 - gap.0).unwrap_or((stretch.from, stretch.from))
}

/// Changes that clients of the connected side asked for within the gap, early enough to be answered in it.
fn asked_for(run: &RunInfo, history: &History, stretch: &Stretch<'_>, gap: (u64, u64)) -> u64 {
    let patience = run.operation_timeout_ms.unwrap_or_default().saturating_mul(1_000_000);
    let until = gap.1.saturating_sub(patience);
    let ops = history.ops();
    // Operations stand in the order of their calls.
    let first = ops.partition_point(|op| op.invoke_ns < gap.0);
    let connected = |op: &&Op| op.node.is_some_and(|node| stretch.fault.majority_side.contains(&node));
    let asked = ops[first..].iter().take_while(|op| op.invoke_ns <= until).filter(|op| op.is_change());
    u64::try_from(asked.filter(connected).count()).unwrap_or(u64::MAX)
}

/// Whether a leader was taken from its quorum and nobody left it, nor led a higher epoch, before `until`.
fn is_unnoticed(stretch: &Stretch<'_>, until: u64, observed: &Observed) -> bool {
    let Some(before) = stretch.fault.epoch_before.filter(|_| stretch.fault.leader_fault) else {
        return false;
    };
    let mut meanwhile =
        observed.events.iter().filter(|stamped| (stretch.fault.asked_ns..=until).contains(&stamped.time));
    !meanwhile.any(|stamped| match stamped.event {
        Event::Said(Said::Looking { .. } | Said::Elected { .. }) => true,
        Event::Said(Said::Established { epoch, .. }) => epoch > before,
        _ => false,
    })
}

#[cfg(test)]
mod tests;
