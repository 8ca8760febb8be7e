//! Does every member come back? The check `recovery`.
//!
//! A member that was killed must start on the data that it left, and one that was cut off, stopped or killed
//! must serve again once everything is healed and the others serve. One that does not breaks what an ensemble
//! is for: it stands one fault nearer to its end. That is a violation, with the member's last words beside
//! it.
//!
//! It accuses, so it looks twice. An end counts only when the member ended itself ([`causes`]) between its
//! start and the moment it would have served. Silence counts only in a calm: nothing in force, every
//! direction seen to pass, every process running, no stall of the machine, the others led by one leader all
//! along, and longer than anything that a member may take by its own time-outs. What is short of that stays
//! undecided, as the fault that leaked.

use std::collections::BTreeMap;

use checker::verdict::{CheckResult, Verdict};
use serde_json::json;

use super::Check;
use crate::absences::Absences;
use crate::causes::{self, Ender};
use crate::consequence::Consequences;
use crate::events::{Event, Said, Stamped};
use crate::faults::Reach;
use crate::member::MemberId;
use crate::numbers::{moment, plural};
use crate::observed::Observed;
use crate::results::{FaultRecord, RunInfo};
use crate::stalls;
use crate::views::{self, View};

/// How long a member may take to serve, beyond its time-outs.
const CALM_NS: u64 = 12_000_000_000;
/// And so many of them.
const TIMEOUTS: u64 = 20;
/// Lines of a log that are shown.
pub const LAST_LINES: usize = 8;

/// The last lines of a member's log.
pub type Logs<'a> = &'a dyn Fn(u64) -> Vec<String>;

/// What did not come back.
struct Finding {
    sentence: String,
    member: Option<u64>,
}

/// The check.
pub(super) const CHECK: Check = Check {
    about: "every member comes back",
    judge: |case| check(case.run, case.faults, case.observed, case.logs).into_iter().collect(),
};

/// The check; none where no fault was healed.
pub fn check(
    run: &RunInfo,
    faults: &[FaultRecord],
    observed: &Observed,
    logs: Logs<'_>,
) -> Option<CheckResult> {
    let healed = faults.iter().filter(|fault| fault.healed_ns.is_some()).count();
    if healed == 0 {
        return None;
    }
    let mut findings = ended_on_own_data(faults, observed, logs);
    findings.extend(never_served(run, faults, observed));
    let Some(first) = findings.first() else {
        let summary = format!(
            "nobody failed to come back after {}",
            plural(u64::try_from(healed).unwrap_or(u64::MAX), "fault")
        );
        return Some(CheckResult::new("recovery", Verdict::Valid, summary));
    };
    let last_lines = first.member.map(|member| {
        let mut lines = logs(member);
        if lines.is_empty() {
            lines.extend(halt_reason(observed, member));
        }
        lines.split_off(lines.len().saturating_sub(LAST_LINES))
    });
    let words = last_lines.iter().flatten().next_back().map(|line| format!("; its last words: {line}"));
    let more = match findings.len() {
        1 => String::new(),
        many => format!(" ({} more)", many - 1),
    };
    let summary = format!("{}{more}{}", first.sentence, words.unwrap_or_default());
    let all: Vec<&str> = findings.iter().map(|finding| finding.sentence.as_str()).collect();
    Some(
        CheckResult::new("recovery", Verdict::Invalid, summary)
            .with_evidence(json!({"findings": all, "member": first.member, "last_lines": last_lines})),
    )
}

/// Why a member said that it stops.
fn halt_reason(observed: &Observed, member: u64) -> Option<String> {
    observed.events.iter().rev().find_map(|stamped| match &stamped.event {
        Event::Said(Said::Halt { reason }) if stamped.node.0 == member => Some(reason.clone()),
        _ => None,
    })
}

/// Members that were killed, were started again, and ended themselves before they served.
fn ended_on_own_data(faults: &[FaultRecord], observed: &Observed, logs: Logs<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut events: BTreeMap<u64, Vec<&Stamped>> = BTreeMap::new();
    for stamped in in_order(observed) {
        events.entry(stamped.node.0).or_default().push(stamped);
    }
    let ending = faults.iter().filter(|fault| fault.ends());
    let absences = Absences::of(ending.map(|fault| (fault, fault.healed_ns.unwrap_or(u64::MAX))));
    for fault in faults.iter().filter(|fault| fault.ends_only()) {
        let Some(heal_asked) = fault.heal_asked_ns else { continue };
        for member in &fault.targets {
            let own = events.get(member).map_or(&[][..], Vec::as_slice);
            let mut life = own[own.partition_point(|stamped| stamped.time < heal_asked)..]
                .iter()
                .skip_while(|stamped| stamped.event != Event::Spawned)
                .skip(1)
                .take_while(|stamped| stamped.event != Event::Spawned);
            let end = life.find_map(|stamped| match &stamped.event {
                Event::Said(Said::Serving {}) => Some(None),
                Event::Exited(how) => Some(Some((stamped.time, how))),
                _ => None,
            });
            let Some(Some((at, how))) = end else { continue };
            let killed_again = absences.lasting(*member, at, at).any(|other| other.id != fault.id);
            if killed_again || causes::ender(how, &logs(*member)) == Ender::NotItself {
                continue;
            }
            let sentence = format!(
                "n{member} does not recover on its own data: killed by {} ({}) and started again at {} s, \
                    it ended at {} s ({how})",
                fault.id,
                fault.kind,
                moment(fault.healed_ns.unwrap_or(heal_asked)),
                moment(at)
            );
            findings.push(Finding { sentence, member: Some(*member) });
        }
    }
    findings
}

/// What happened, in the order of time.
fn in_order(observed: &Observed) -> Vec<&Stamped> {
    let mut events: Vec<&Stamped> = observed.events.iter().collect();
    events.sort_by_key(|stamped| stamped.time);
    events
}

/// How long a member may take to serve.
fn patience_ns(run: &RunInfo) -> Option<u64> {
    let timeouts = TIMEOUTS * run.patience_ms?.saturating_mul(1_000_000);
    let own = CALM_NS.saturating_add(timeouts);
    Some(own.max(run.system.rejoin_ms.saturating_mul(1_000_000)))
}

/// Members that ran through a whole calm and did not serve in it, though the others did; or all of them.
fn never_served(run: &RunInfo, faults: &[FaultRecord], observed: &Observed) -> Vec<Finding> {
    let Some(patience) = patience_ns(run) else { return Vec::new() };
    let members: Vec<MemberId> = run.members().map(MemberId).collect();
    let mut calms = calms(faults, observed);
    calms.retain(|calm| calm.to - calm.from >= patience && !stalls::within(observed, calm.from, calm.to));
    // What is known of each member follows the calms through time, so that nothing is read again for a later
    // one.
    calms.sort_by_key(|calm| calm.to);
    let events = in_order(observed);
    let mut known: BTreeMap<MemberId, View> =
        members.iter().map(|member| (*member, View::default())).collect();
    let mut rest = events.iter();
    let mut findings = Vec::new();
    for calm in calms {
        let read = events.len() - rest.len();
        let upto = events.partition_point(|stamped| stamped.time <= calm.to);
        for stamped in rest.by_ref().take(upto.saturating_sub(read)) {
            if let Some(view) = known.get_mut(&stamped.node) {
                view.apply(&stamped.event);
            }
        }
        let meanwhile = &events[events.partition_point(|stamped| stamped.time < calm.from)..upto];
        let voters = members.iter().filter(|member| run.votes(member.0)).count();
        findings.extend(lost_in(&calm, (&members, voters), meanwhile, &known, patience));
    }
    findings
}

/// An interval in which nothing was in force, and the fault whose healing began it.
struct Calm<'a> {
    after: &'a FaultRecord,
    from: u64,
    to: u64,
}

/// The calms that begin with a healing after which every direction was seen to pass.
fn calms<'a>(faults: &'a [FaultRecord], observed: &Observed) -> Vec<Calm<'a>> {
    let end = observed.looked_until_ns();
    let mut injected: Vec<&FaultRecord> = faults.iter().filter(|fault| fault.injected_ns.is_some()).collect();
    injected.sort_by_key(|fault| fault.asked_ns);
    // Until when each of them and all before it were at work.
    let until = |latest: &mut u64, fault: &&FaultRecord| {
        *latest = fault.healed_ns.unwrap_or(u64::MAX).max(*latest);
        Some(*latest)
    };
    let at_work: Vec<u64> = injected.iter().scan(0, until).collect();
    faults
        .iter()
        .filter(|fault| fault.injected_ns.is_some())
        .filter_map(|after| {
            let from = after.healed_ns?;
            let asked = injected.partition_point(|fault| fault.asked_ns <= from);
            let is_calm = at_work[..asked].last().is_none_or(|until| *until <= from);
            let next = injected.partition_point(|fault| fault.asked_ns < from);
            let to = injected.get(next).map_or(end, |fault| fault.asked_ns).min(end);
            (is_calm && to > from && is_whole(after)).then_some(Calm { after, from, to })
        })
        .collect()
}

fn is_whole(fault: &FaultRecord) -> bool {
    let passes = |reach: &Reach| matches!(reach, Reach::Reached | Reach::Late);
    fault.healed_matrix.as_ref().is_some_and(|rows| rows.iter().flatten().all(passes))
}

/// Who did not serve in a calm, by what happened meanwhile and what is known of each member at its end.
fn lost_in(
    calm: &Calm<'_>,
    (members, voters): (&[MemberId], usize),
    meanwhile: &[&Stamped],
    known: &BTreeMap<MemberId, View>,
    patience: u64,
) -> Option<Finding> {
    let within =
        |from: u64| meanwhile.iter().copied().filter(move |stamped| (from..=calm.to).contains(&stamped.time));
    // Somebody ended or was stopped: that is told elsewhere, and what the others can do may depend on it.
    let disturbed =
        |stamped: &Stamped| matches!(stamped.event, Event::Exited(_) | Event::Paused | Event::Spawned);
    let start = calm.from.saturating_add(1);
    let all_run = known.values().all(|view| view.running && !view.paused);
    if !all_run || within(start).any(disturbed) || views::all_serve(known) {
        return None;
    }
    let seconds = moment(calm.to - calm.from);
    let lately = calm.to - patience;
    let serving = views::serving(known);
    let votes = serving.iter().filter(|member| members.iter().take(voters).any(|voter| voter == *member));
    if votes.count() > voters / 2 {
        // They are to have stood there all along, and to have left nobody.
        let moved = |stamped: &Stamped| {
            serving.contains(&stamped.node) && matches!(stamped.event, Event::Said(Said::Looking { .. }))
        };
        let served = |member: &MemberId| {
            within(calm.from)
                .any(|stamped| stamped.node == *member && stamped.event == Event::Said(Said::Serving {}))
        };
        let lost = members.iter().find(|member| !serving.contains(member) && !served(member))?;
        if within(lately).any(moved) {
            return None;
        }
        let what = if calm.after.ends_only() && calm.after.targets.contains(&lost.0) {
            "does not recover on its own data"
        } else {
            "does not come back"
        };
        let sentence = format!(
            "n{} {what}: {seconds} s after {} ({}) was healed, with every direction open and {} others \
                serving, it does not serve",
            lost.0,
            calm.after.id,
            calm.after.kind,
            serving.len()
        );
        return Some(Finding { sentence, member: Some(lost.0) });
    }
    let established = |stamped: &Stamped| matches!(stamped.event, Event::Said(Said::Established { .. }));
    if within(lately).any(established) || !serving.is_empty() {
        return None;
    }
    let sentence = format!(
        "the ensemble elects nobody: {seconds} s after {} ({}) was healed all members run and every \
            direction is open, and nobody leads",
        calm.after.id, calm.after.kind
    );
    Some(Finding { sentence, member: None })
}

#[cfg(test)]
mod tests;
