//! The checks that are about the bench and not about the ensemble's promises: did the faults bite, did
//! leader faults lead to elections, was the harness itself in time, did anybody die who should not.
//!
//! None of them can convict. A run that fails one proves nothing, and its verdict is unknown.

use std::cell::LazyCell;
use std::collections::{BTreeMap, BTreeSet};

use checker::history::{History, Presence};
use checker::verdict::{CheckResult, Verdict};
use serde_json::json;
use workloads::judge::Shares;

use super::{Check, promises, recovery};
use crate::absences::Absences;
use crate::causes;
use crate::clock::RunNs;
use crate::consequence::Consequences;
use crate::episodes::Episodes;
use crate::events::{Event, Said, Stamped};
use crate::member::MemberId;
use crate::numbers::{len, named, plural};
use crate::observed::Observed;
use crate::results::{FaultCounts, FaultRecord, FaultState, Role, RunInfo};
use crate::spans;

/// Election time-outs within which members must have noticed that their leader is gone.
const UNNOTICED: u64 = 6;

/// A harness whose ninety-ninth percentile is later than this was too busy to blame anybody.
const LAG_BOUND_MS: f64 = 50.0;

/// The checks.
pub(super) const CHECK: Check = Check {
    about: "faults, clients, processes, the harness itself",
    judge: |case| {
        let mut checks = all(case.run, case.faults, case.observed, &case.loaded.history);
        checks.push(nobody_died(case.faults, &case.observed.events, case.logs));
        checks
    },
};

/// All of them, but the one that looks at logs.
fn all(run: &RunInfo, faults: &[FaultRecord], observed: &Observed, history: &History) -> Vec<CheckResult> {
    let mut checks = Vec::new();
    let episodes = Episodes::of(faults, run.interval_ms);
    if !faults.is_empty() {
        checks.push(faults_verified(faults));
    }
    let leader_faults: Vec<&FaultRecord> = faults.iter().filter(|fault| fault.took_the_leader()).collect();
    if !leader_faults.is_empty() {
        checks.push(higher_epochs(run, &leader_faults, &episodes, observed));
    }
    // A command goes to whichever members it likes.
    if !run.is_wrapped() {
        checks.extend(sides(run, &episodes, observed, history));
    }
    if !run.is_wrapped() {
        // Only operations are handed over.
        checks.push(in_time(observed));
    }
    checks
}

/// How long a client may take to come home to a member that is back: it tries about once a second.
const HOMECOMING_NS: u64 = 1_000_000_000;

/// Faults that overlapped, or refused somebody, had clients on each of their sides. That is asked here where
/// the load's own check does not; none where it does for all of them. Nobody can be a client of a member that
/// another fault held down, or that several others together had cut off from any leader: of a side that had
/// no other members nothing is asked, and it is said.
fn sides(
    run: &RunInfo,
    episodes: &Episodes<'_>,
    observed: &Observed,
    history: &History,
) -> Option<CheckResult> {
    let patience_ns = run.operation_timeout_ms.unwrap_or_default() * 1_000_000;
    let mut empty = Vec::new();
    let mut excused = Vec::new();
    let mut looked_at = 0;
    let mut shares = Shares::default();
    // Made when a fault asks for it first: in most runs none does.
    let presence = LazyCell::new(|| Presence::of(history));
    let absences = LazyCell::new(|| {
        let takes = |fault: &&FaultRecord| fault.may_take_away();
        let taking = episodes.iter().flatten().copied().filter(takes);
        Absences::of(taking.map(|fault| (fault, fault.verified_healed_ns.unwrap_or(u64::MAX))))
    });
    let leaderless = LazyCell::new(|| Leaderless::of(&observed.events));
    let asked = |episode: &&[&FaultRecord]| promises::asks_for_sides_itself(episode, episode[0]);
    // Where others had taken the leader or the quorum before, nobody was served and no side could have
    // clients.
    let served = |fault: &&&FaultRecord| fault.epoch_before.is_some() && !fault.majority_side.is_empty();
    for fault in episodes.iter().filter(asked).flatten().filter(served) {
        // Whoever had an operation there so shortly before is a client there.
        let from = fault.asked_ns.saturating_sub(patience_ns);
        let to = fault.heal_asked_ns.unwrap_or(u64::MAX);
        let lacking = empty.len();
        for side in &fault.sides {
            looked_at += 1;
            if side.iter().any(|member| presence.is_within(*member, (from, to))) {
                continue;
            }
            let names: Vec<String> = side.iter().map(|member| format!("n{member}")).collect();
            let place = format!("{} on the side of {}", fault.id, names.join(" "));
            if let Some(by) = held_down(side, fault, &absences, patience_ns) {
                excused.push(format!("{place}, which {} held down", by.join(" ")));
            } else if leaderless.all_through(side, fault, patience_ns) {
                excused.push(format!("{place}, which beside {} had no leader", fault.beside.join(" ")));
            } else if holds_down_itself(side, fault)
                && leaderless.until_shortly_before(side, fault, patience_ns)
            {
                excused.push(format!("{place}, which it held down before clients were back"));
            } else {
                empty.push(place);
            }
        }
        shares.add(&fault.kind, empty.len() > lacking);
    }
    if looked_at == 0 {
        return None;
    }
    let left_out = !empty.is_empty() && shares.may_be_left_out_for_clients();
    let summary = sides_in_words(looked_at, &empty, &excused, left_out);
    let evidence = json!({"empty": empty, "excused": excused, "left_out": left_out});
    Some(CheckResult::new("sides", verdict(empty.is_empty() || left_out), summary).with_evidence(evidence))
}

/// On how many of the sides clients were, on which none was, and on which nobody could be.
fn sides_in_words(looked_at: usize, empty: &[String], excused: &[String], left_out: bool) -> String {
    let with_clients = looked_at - excused.len() - empty.len();
    let there = format!(
        "clients were on {with_clients} of the {looked_at} sides of faults that overlapped or refused"
    );
    let none = format!("no client was there for {}", named(empty));
    let mut summary = match (empty.is_empty(), left_out) {
        (true, _) => there,
        (false, true) => format!("{there}; {none}, so these faults are no part of what is claimed"),
        (false, false) => none,
    };
    if !excused.is_empty() {
        summary.push_str(&format!("; nobody could be there for {}", named(excused)));
    }
    summary
}

/// The other faults that held every member of a side down from a fault's beginning until clients could no
/// longer have come home before its end; none where one of the members could have had clients.
fn held_down(
    side: &[u64],
    fault: &FaultRecord,
    absences: &Absences<'_>,
    patience_ns: u64,
) -> Option<Vec<String>> {
    let begin = fault.asked_ns.saturating_add(patience_ns);
    let back = too_late_ns(fault, patience_ns)?;
    let holder = |member: &u64| absences.lasting(*member, begin, back).find(|other| other.id != fault.id);
    let mut by: Vec<String> =
        side.iter().map(|member| holder(member).map(|other| other.id.clone())).collect::<Option<_>>()?;
    by.sort_unstable();
    by.dedup();
    Some(by)
}

/// Whether nobody can come to any member of this side while the fault holds.
fn holds_down_itself(side: &[u64], fault: &FaultRecord) -> bool {
    fault.takes_away() && side.iter().all(|member| fault.targets.contains(member))
}

/// From when on no client could come home to a member before a fault ended. Of one that was never healed
/// there is no such moment.
fn too_late_ns(fault: &FaultRecord, patience_ns: u64) -> Option<u64> {
    let last = fault.heal_asked_ns?.saturating_sub(HOMECOMING_NS.saturating_add(patience_ns));
    Some(last.max(fault.asked_ns).saturating_add(1))
}

/// When members had no leader, by their own words.
struct Leaderless {
    /// By member, in the order of time; only of members that had a leader at some time.
    members: BTreeMap<u64, Vec<(RunNs, RunNs)>>,
}

impl Leaderless {
    fn of(events: &[Stamped]) -> Self {
        let members: BTreeSet<MemberId> = events.iter().map(|stamped| stamped.node).collect();
        let members: Vec<MemberId> = members.into_iter().collect();
        let spans = spans::from_events(events, &members, RunNs::MAX);
        let has_leader = |role: Role| matches!(role, Role::Leading | Role::Following);
        let told: BTreeSet<u64> =
            spans.iter().filter(|span| has_leader(span.role)).map(|span| span.node).collect();
        let mut members: BTreeMap<u64, Vec<(RunNs, RunNs)>> = BTreeMap::new();
        for span in spans.iter().filter(|span| !has_leader(span.role) && told.contains(&span.node)) {
            let without = members.entry(span.node).or_default();
            match without.last_mut() {
                Some((_, to)) if *to == span.from_ns => *to = span.to_ns,
                _ => without.push((span.from_ns, span.to_ns)),
            }
        }
        Self { members }
    }

    /// Whether every member of a side was without a leader before a fault that began beside others, and until
    /// clients could no longer have come home before its end. Whom the fault itself deposes had one before.
    fn all_through(&self, side: &[u64], fault: &FaultRecord, patience_ns: u64) -> bool {
        let Some(back) = too_late_ns(fault, patience_ns) else { return false };
        !fault.beside.is_empty() && self.all_until(side, fault, back)
    }

    /// Whether every member of a side had been without a leader, so that its clients left it, and had one
    /// again so shortly before a fault that none of them could be back.
    fn until_shortly_before(&self, side: &[u64], fault: &FaultRecord, patience_ns: u64) -> bool {
        let back = fault.asked_ns.saturating_sub(HOMECOMING_NS.saturating_add(patience_ns));
        // A member that has no leader serves nobody, so its clients leave it at once.
        self.all_until(side, fault, back)
    }

    /// Whether each member's last stretch without a leader that began before a fault lasted until this
    /// moment.
    fn all_until(&self, side: &[u64], fault: &FaultRecord, moment: RunNs) -> bool {
        let lasted = |member: &u64| {
            let spans = self.members.get(member).map_or(&[][..], Vec::as_slice);
            let last = spans.partition_point(|(from, _)| *from <= fault.asked_ns).checked_sub(1);
            last.is_some_and(|last| spans[last].1 >= moment)
        };
        side.iter().all(lasted)
    }
}

fn were(number: u32) -> &'static str {
    if number == 1 { "was" } else { "were" }
}

fn verdict(holds: bool) -> Verdict {
    if holds { Verdict::Valid } else { Verdict::Unknown }
}

/// Every fault was seen to bite and seen to be gone.
fn faults_verified(faults: &[FaultRecord]) -> CheckResult {
    let counts = FaultCounts::of(faults);
    let all = counts.verified == counts.planned;
    let summary = if all {
        let all = plural(counts.planned.into(), "fault");
        format!(
            "{}{all} {} seen to bite and seen to be gone",
            if counts.planned > 1 { "all " } else { "" },
            were(counts.planned)
        )
    } else {
        let other: Vec<String> = faults
            .iter()
            .filter(|fault| fault.state != FaultState::Verified)
            .map(|fault| format!("{} {} is {}", fault.id, fault.kind, fault.state.name()))
            .collect();
        format!("{} of {} faults were verified: {}", counts.verified, counts.planned, named(&other))
    };
    CheckResult::new("faults", verdict(all), summary).with_evidence(json!(counts))
}

/// Each fault that took the leader from its quorum was followed by a higher epoch than the one it hit. With
/// other faults beside it there may be no quorum to make one until those are gone too, so the whole episode
/// counts; and one epoch may answer several faults, because each of them ended the same reign. Of a fault
/// that another one followed which took the quorum, before members had to notice, no epoch is asked: the old
/// leader may be the first that has one again.
fn higher_epochs(
    run: &RunInfo,
    faults: &[&FaultRecord],
    episodes: &Episodes<'_>,
    observed: &Observed,
) -> CheckResult {
    let mut without = Vec::new();
    let mut excused = Vec::new();
    let mut evidence = Vec::new();
    let established = established(&observed.events);
    let notice_ns = run.patience_ms.map_or(u64::MAX, |ms| ms.saturating_mul(UNNOTICED * 1_000_000));
    let lost = quorum_losses(episodes);
    for fault in faults {
        let next = epoch_after(fault, episodes.end_ns(fault), &established);
        let followed = matches!((fault.epoch_before, next), (Some(before), Some(after)) if after > before)
            || (fault.epoch_before.is_none() && next.is_some());
        let later = if followed { None } else { lost_before_it_was_noticed(fault, &lost, notice_ns) };
        match later {
            _ if followed => {}
            Some(later) => excused.push(format!("{} ({} took the quorum)", fault.id, later.id)),
            None => without.push(fault.id.clone()),
        }
        evidence.push(json!({"fault": fault.id, "epoch_before": fault.epoch_before, "epoch_after": next,
            "quorum_taken_by": later.map(|later| later.id.as_str())}));
    }
    let asked = faults.len() - excused.len();
    let mut summary = match (without.as_slice(), asked) {
        ([], 0) => "nothing was judged".to_owned(),
        ([], 1) => "the leader fault was followed by a higher epoch".to_owned(),
        ([], many) => format!("each of {} leader faults was followed by a higher epoch", len(many)),
        (some, _) => format!("no higher epoch followed {}", named(some)),
    };
    if !excused.is_empty() {
        summary.push_str(&format!(
            "; none is asked where a later fault took the quorum before anybody had to notice: {}",
            named(&excused)
        ));
    }
    let evidence = json!(evidence);
    if asked == 0 {
        return CheckResult::nothing_judged("leader-faults", summary).with_evidence(evidence);
    }
    CheckResult::new("leader-faults", verdict(without.is_empty()), summary).with_evidence(evidence)
}

/// The faults under which no quorum was left, by when they were asked for.
fn quorum_losses<'a>(episodes: &Episodes<'a>) -> Vec<&'a FaultRecord> {
    let mut lost: Vec<&FaultRecord> =
        episodes.iter().flatten().copied().filter(|fault| !fault.quorum_remained).collect();
    lost.sort_by_key(|fault| fault.asked_ns);
    lost
}

/// The first fault that took the quorum after this one was in force, before members had to notice this one,
/// and before its end was asked for.
fn lost_before_it_was_noticed<'a>(
    fault: &FaultRecord,
    lost: &[&'a FaultRecord],
    notice_ns: u64,
) -> Option<&'a FaultRecord> {
    let noticed = fault.injected_ns?.saturating_add(notice_ns).min(fault.heal_asked_ns.unwrap_or(u64::MAX));
    let later = &lost[lost.partition_point(|other| other.asked_ns <= fault.asked_ns)..];
    later.iter().copied().find(|other| other.id != fault.id).filter(|other| other.asked_ns < noticed)
}

/// The epochs that their own leaders called established, in the order of time.
fn established(events: &[Stamped]) -> Vec<(RunNs, u32)> {
    let own = |stamped: &Stamped| match stamped.event {
        Event::Said(Said::Established { leader, epoch }) if leader == stamped.node.0 => {
            Some((stamped.time, epoch))
        }
        _ => None,
    };
    let mut established: Vec<(RunNs, u32)> = events.iter().filter_map(own).collect();
    established.sort_by_key(|(at, _)| *at);
    established
}

/// The first epoch that a leader of its own established between the asking for a fault (it may be felt before
/// the cluster says that it is in force) and `to`, the moment at which it was seen to be gone with all beside
/// it.
fn epoch_after(fault: &FaultRecord, to: u64, established: &[(RunNs, u32)]) -> Option<u32> {
    let from = fault.injected_ns.map(|_| fault.asked_ns)?;
    established[established.partition_point(|(at, _)| *at < from)..]
        .iter()
        .take_while(|(at, _)| *at <= to)
        .map(|(_, epoch)| *epoch)
        .find(|epoch| fault.epoch_before.is_none_or(|before| *epoch > before))
}

/// No member's process ended but by a fault. The last words of those that did are beside it.
fn nobody_died(faults: &[FaultRecord], events: &[Stamped], logs: recovery::Logs<'_>) -> CheckResult {
    let ending = faults.iter().filter(|fault| fault.ends());
    let absences = Absences::of(ending.map(|fault| (fault, fault.healed_ns.unwrap_or(u64::MAX))));
    let killed_by_us =
        |stamped: &Stamped| absences.lasting(stamped.node.0, stamped.time, stamped.time).next().is_some();
    let mut deaths = Vec::new();
    let mut words: BTreeMap<u64, Vec<String>> = BTreeMap::new();
    for stamped in events {
        if let Event::Exited(how) = &stamped.event
            && !killed_by_us(stamped)
        {
            let member = stamped.node.0;
            let at = crate::clock::milliseconds(stamped.time) / 1e3;
            deaths.push(format!("n{member} at {at:.1} s ({how})"));
            let last = || causes::last_words(member, events, logs(member), recovery::LAST_LINES);
            words.entry(member).or_insert_with(last);
        }
    }
    let last = words.values().find_map(|lines| lines.last());
    let summary = match (deaths.is_empty(), last) {
        (true, _) => "no member ended but by a fault".to_owned(),
        (false, Some(last)) => {
            format!("ended without a fault: {}; its last words: {last}", named(&deaths))
        }
        (false, None) => format!("ended without a fault: {}; its log may say why", named(&deaths)),
    };
    let words: BTreeMap<String, Vec<String>> =
        words.into_iter().map(|(member, lines)| (format!("n{member}"), lines)).collect();
    CheckResult::new("processes", verdict(deaths.is_empty()), summary)
        .with_evidence(json!({"deaths": deaths, "last_words": words}))
}

/// The harness handed operations over when they were due.
fn in_time(observed: &Observed) -> CheckResult {
    let lag = observed.lag;
    let holds = lag.p99_ms <= LAG_BOUND_MS && observed.shed == 0;
    let shed = if observed.shed == 0 {
        String::new()
    } else {
        format!("; {} operations were dropped because nobody took any", observed.shed)
    };
    let summary = format!(
        "operations were handed over {:.2} ms late at the 99th percentile, {:.1} ms at most (bound \
            {LAG_BOUND_MS} ms){shed}",
        lag.p99_ms, lag.max_ms
    );
    CheckResult::new("harness-lag", verdict(holds), summary).with_evidence(json!(lag))
}

#[cfg(test)]
mod tests;
