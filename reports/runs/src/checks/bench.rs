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
use crate::episodes::Episodes;
use crate::events::{Event, Said, Stamped};
use crate::mechanism::Mechanism;
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
        let takes = |fault: &&FaultRecord| fault.acts_by(Mechanism::may_take_away);
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
    let left_out = !empty.is_empty() && shares.may_be_left_out();
    let mut summary = if empty.is_empty() || left_out {
        let with_clients = looked_at - excused.len() - empty.len();
        format!(
            "clients were on {with_clients} of the {looked_at} sides of faults that overlapped or refused"
        )
    } else {
        format!("no client was there for {}", named(&empty))
    };
    if left_out {
        summary.push_str(&format!(
            "; no client was there for {}, so these faults are no part of what is claimed",
            named(&empty)
        ));
    }
    if !excused.is_empty() {
        summary.push_str(&format!("; nobody could be there for {}", named(&excused)));
    }
    let evidence = json!({"empty": empty, "excused": excused, "left_out": left_out});
    Some(CheckResult::new("sides", verdict(empty.is_empty() || left_out), summary).with_evidence(evidence))
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
    fault.acts_by(Mechanism::takes_away) && side.iter().all(|member| fault.targets.contains(member))
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
    let ending = faults.iter().filter(|fault| fault.acts_by(Mechanism::ends_processes));
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
mod tests {
    use super::*;

    fn leader_fault() -> FaultRecord {
        FaultRecord {
            id: "F1".to_owned(),
            kind: "kill-leader".to_owned(),
            mechanism: Some(Mechanism::Kill),
            leader_fault: true,
            targets: vec![2],
            asked_ns: 9,
            injected_ns: Some(10),
            healed_ns: Some(40),
            verified_healed_ns: Some(50),
            epoch_before: Some(3),
            state: FaultState::Verified,
            ..FaultRecord::default()
        }
    }

    fn event(time: u64, node: u64, event: Event) -> Stamped {
        Stamped { time, node: MemberId(node), event }
    }

    fn established(time: u64, node: u64, leader: u64, epoch: u32) -> Stamped {
        event(time, node, Event::Said(Said::Established { leader, epoch }))
    }

    fn find(name: &str, faults: &[FaultRecord], events: Vec<Stamped>) -> CheckResult {
        let observed = Observed { events, ..Observed::default() };
        let run = RunInfo { nodes: 3, interval_ms: 4000, ..RunInfo::default() };
        let died = nobody_died(faults, &observed.events, &|_| Vec::new());
        all(&run, faults, &observed, &History::default())
            .into_iter()
            .chain([died])
            .find(|check| check.name == name)
            .expect("the check")
    }

    #[test]
    fn a_leader_fault_without_a_higher_epoch_proves_nothing() {
        let faults = [leader_fault()];
        assert_eq!(find("leader-faults", &faults, vec![established(20, 1, 1, 4)]).verdict, Verdict::Valid);
        for events in [vec![], vec![established(20, 2, 2, 3)], vec![established(60, 1, 1, 4)]] {
            let check = find("leader-faults", &faults, events);
            assert_eq!(
                (check.verdict, check.summary.as_str()),
                (Verdict::Unknown, "no higher epoch followed F1")
            );
        }
    }

    #[test]
    fn whether_an_epoch_must_follow_is_recorded_with_the_fault_whatever_its_kind() {
        let mut fault = leader_fault();
        fault.kind = "partition-halves".to_owned();
        let checked = |fault: &FaultRecord| {
            let run = RunInfo::default();
            let checks = all(&run, std::slice::from_ref(fault), &Observed::default(), &History::default());
            checks.iter().any(|check| check.name == "leader-faults")
        };
        assert!(checked(&fault));
        fault.leader_fault = false;
        assert!(!checked(&fault));
    }

    #[test]
    fn of_a_leader_fault_behind_which_another_took_the_quorum_no_epoch_is_asked() {
        const S: u64 = 1_000_000_000;
        let pause = FaultRecord {
            id: "F21".to_owned(),
            mechanism: Some(Mechanism::Pause),
            asked_ns: 60 * S,
            injected_ns: Some(60 * S),
            heal_asked_ns: Some(65 * S),
            verified_healed_ns: Some(66 * S),
            quorum_remained: true,
            ..leader_fault()
        };
        let taking = |asked: u64, quorum_remained: bool| FaultRecord {
            id: "F22".to_owned(),
            leader_fault: false,
            asked_ns: asked * S,
            injected_ns: Some(asked * S),
            heal_asked_ns: Some(67 * S),
            verified_healed_ns: Some(68 * S),
            quorum_remained,
            ..leader_fault()
        };
        let run = RunInfo { interval_ms: 10_000, patience_ms: Some(500), ..RunInfo::default() };
        let judged = |faults: &[FaultRecord]| {
            let episodes = Episodes::of(faults, run.interval_ms);
            let leader_faults: Vec<&FaultRecord> =
                faults.iter().filter(|fault| fault.took_the_leader()).collect();
            let check = higher_epochs(&run, &leader_faults, &episodes, &Observed::default());
            (check.verdict, check.nothing_judged, check.summary)
        };
        let (verdict, nothing, summary) = judged(&[pause.clone(), taking(61, false)]);
        assert_eq!((verdict, nothing), (Verdict::Valid, true));
        assert_eq!(
            summary,
            "nothing was judged; none is asked where a later fault took the quorum before anybody had to \
             notice: F21 (F22 took the quorum)"
        );
        for faults in [
            [pause.clone(), taking(61, true)],
            // Members had to have noticed, or it was over.
            [pause.clone(), taking(64, false)],
            [FaultRecord { heal_asked_ns: Some(60 * S + 1), ..pause.clone() }, taking(61, false)],
            [pause.clone(), taking(59, false)],
        ] {
            assert_eq!(judged(&faults).0, Verdict::Unknown);
        }
    }

    #[test]
    fn an_epoch_may_come_when_the_faults_beside_are_gone_and_answers_for_several() {
        let beside = FaultRecord {
            id: "F2".to_owned(),
            kind: "kill-all".to_owned(),
            leader_fault: true,
            injected_ns: Some(30),
            verified_healed_ns: Some(90),
            epoch_before: Some(3),
            ..FaultRecord::default()
        };
        let faults = [leader_fault(), beside];
        assert_eq!(find("leader-faults", &faults, vec![established(80, 1, 1, 4)]).verdict, Verdict::Valid);
        assert_eq!(find("leader-faults", &faults, vec![established(95, 1, 1, 4)]).verdict, Verdict::Unknown);
    }

    #[test]
    fn each_side_of_faults_that_overlap_must_have_had_clients() {
        let mut cut = leader_fault();
        cut.sides = vec![vec![1], vec![2, 3]];
        cut.majority_side = vec![2, 3];
        let mut kill = leader_fault();
        kill.id = "F2".to_owned();
        kill.sides = Vec::new();
        let check = find("sides", &[cut.clone(), kill], vec![]);
        assert_eq!(check.verdict, Verdict::Unknown);
        assert_eq!(check.summary, "no client was there for F1 on the side of n1, F1 on the side of n2 n3");
        let run = RunInfo { nodes: 3, ..RunInfo::default() };
        let alone = all(&run, &[cut.clone()], &Observed::default(), &History::default());
        assert!(alone.iter().all(|check| check.name != "sides"), "the load's check asks for those");
        let mut reject = cut.clone();
        reject.mechanism = Some(Mechanism::Reject);
        assert_eq!(find("sides", std::slice::from_ref(&reject), vec![]).verdict, Verdict::Unknown);
        reject.epoch_before = None;
        let checks = all(&run, &[reject], &Observed::default(), &History::default());
        assert!(checks.iter().all(|check| check.name != "sides"), "nobody was served anyway");
    }

    #[test]
    fn a_side_that_another_fault_held_down_is_excused_and_said() {
        let mut cut = FaultRecord { heal_asked_ns: Some(2_000_000_000), ..leader_fault() };
        cut.sides = vec![vec![1], vec![2, 3]];
        cut.majority_side = vec![2, 3];
        let mut pause = FaultRecord { id: "F2".to_owned(), kind: "pause-leader".to_owned(), ..cut.clone() };
        pause.mechanism = Some(Mechanism::Pause);
        (pause.targets, pause.sides, pause.majority_side) = (vec![1], Vec::new(), Vec::new());
        pause.verified_healed_ns = Some(1_500_000_000);
        let summary = |pause: &FaultRecord| find("sides", &[cut.clone(), pause.clone()], vec![]).summary;
        assert_eq!(
            summary(&pause),
            "no client was there for F1 on the side of n2 n3; nobody could be there for F1 on the side of \
             n1, which F2 held down"
        );
        pause.mechanism = Some(Mechanism::Own);
        assert!(summary(&pause).ends_with("which F2 held down"), "nobody knows what it did to n1");
        pause.verified_healed_ns = Some(100_000_000);
        assert!(summary(&pause).starts_with("no client was there for F1 on the side of n1, F1"), "long back");
        pause.asked_ns = 1_000_000_000;
        pause.verified_healed_ns = Some(1_500_000_000);
        assert!(
            summary(&pause).starts_with("no client was there for F1 on the side of n1, F1"),
            "there at first"
        );
    }

    #[test]
    fn a_side_that_had_no_leader_beside_other_faults_is_excused_and_said() {
        const S: u64 = 1_000_000_000;
        let beside = FaultRecord { id: "F1".to_owned(), asked_ns: 9, ..leader_fault() };
        let mut ring = FaultRecord { id: "F2".to_owned(), asked_ns: 4 * S, ..leader_fault() };
        (ring.heal_asked_ns, ring.verified_healed_ns) = (Some(7 * S), Some(8 * S));
        (ring.sides, ring.majority_side) = (vec![vec![1], vec![2, 3]], vec![2, 3]);
        ring.beside = vec!["F1".to_owned()];
        let looking = |time| event(time, 1, Event::Said(Said::Looking { left: None }));
        let summary = |ring: &FaultRecord, events: Vec<Stamped>| {
            find("sides", &[beside.clone(), ring.clone()], events).summary
        };
        let excused = "no client was there for F2 on the side of n2 n3; nobody could be there for F2 on the \
                       side of n1, which beside F1 had no leader";
        let alone =
            |events| summary(&ring, events).starts_with("no client was there for F2 on the side of n1, F2");
        assert_eq!(summary(&ring, vec![established(S, 1, 2, 3), looking(3 * S)]), excused);
        // A pause while it looks changes nothing, and the side counts again from when it had a leader.
        let paused = vec![established(S, 1, 2, 3), looking(3 * S), event(5 * S, 1, Event::Paused)];
        assert_eq!(summary(&ring, paused), excused);
        assert_eq!(
            summary(&ring, vec![looking(3 * S), established(6 * S + 2, 1, 2, 4)]),
            excused,
            "too late"
        );
        assert!(alone(vec![looking(3 * S), established(5 * S, 1, 2, 4)]), "there was time");
        assert!(alone(vec![established(S, 1, 2, 3), looking(5 * S)]), "the fault itself deposed it");
        assert!(alone(vec![looking(3 * S)]), "a member that never says when it has a leader");
        ring.beside.clear();
        let events = vec![established(S, 1, 2, 3), looking(3 * S)];
        assert!(summary(&ring, events).starts_with("no client was there for F2 on the side of n1, F2"));
    }

    #[test]
    fn a_side_is_excused_that_its_fault_held_down_before_clients_were_back() {
        const S: u64 = 1_000_000_000;
        let mut pause = FaultRecord { id: "F2".to_owned(), asked_ns: 5 * S, ..leader_fault() };
        (pause.heal_asked_ns, pause.verified_healed_ns) = (Some(7 * S), Some(8 * S));
        (pause.sides, pause.majority_side) = (vec![vec![1], vec![2, 3]], vec![2, 3]);
        (pause.mechanism, pause.targets) = (Some(Mechanism::Pause), vec![1]);
        let beside = FaultRecord { asked_ns: 9, ..leader_fault() };
        let looking = |time| event(time, 1, Event::Said(Said::Looking { left: None }));
        let summary = |pause: &FaultRecord, events: Vec<Stamped>| {
            find("sides", &[beside.clone(), pause.clone()], events).summary
        };
        let late = vec![established(S, 1, 2, 3), looking(3 * S), established(4 * S + S / 2, 1, 2, 4)];
        let said = "F2 on the side of n1, which it held down before clients were back";
        assert!(summary(&pause, late.clone()).ends_with(said));
        let early = vec![established(S, 1, 2, 3), looking(2 * S), established(5 * S / 2, 1, 2, 4)];
        assert!(!summary(&pause, early).contains("held down"), "there was time");
        pause.mechanism = Some(Mechanism::Partition);
        assert!(!summary(&pause, late).contains("held down"), "clients could come to it");
    }

    #[test]
    fn a_few_sides_without_clients_leave_their_faults_out_of_a_long_run_and_are_said() {
        const S: u64 = 1_000_000_000;
        let line = |kind, process, at| {
            let mut line = checker::history::Event::new(
                process,
                kind,
                checker::history::Function::Read,
                0,
                checker::history::Value::Null,
                at,
            );
            line.node = Some(1 + process % 2);
            line
        };
        let refused = |at: u64, kind: &str| FaultRecord {
            id: format!("F{at}"),
            kind: kind.to_owned(),
            mechanism: Some(Mechanism::Reject),
            asked_ns: at * S,
            injected_ns: Some(at * S),
            heal_asked_ns: Some(at * S + S / 2),
            verified_healed_ns: Some(at * S + S / 2),
            sides: vec![vec![1], vec![2]],
            majority_side: vec![1],
            ..leader_fault()
        };
        let told = |all: u64, without: &[u64], kind: &dyn Fn(u64) -> &'static str| {
            let faults: Vec<FaultRecord> = (1..=all).map(|at| refused(at, kind(at))).collect();
            let mut events = Vec::new();
            for at in 1..=all {
                for process in 0..2 {
                    if process == 1 || !without.contains(&at) {
                        let number = at * 2 + process;
                        events.push(line(checker::history::EventKind::Invoke, number, at * S + 1));
                        events.push(line(checker::history::EventKind::Fail, number, at * S + 2));
                    }
                }
            }
            events.sort_by_key(|event| event.time);
            let history = History::from_events(events).expect("a history");
            let run = RunInfo { nodes: 3, ..RunInfo::default() };
            let checks = all_of(&run, &faults, &history);
            (checks.verdict, checks.summary)
        };
        let same = |_| "reject-one";
        let (verdict, summary) = told(100, &[5, 50, 70, 90], &same);
        assert_eq!(verdict, Verdict::Valid);
        assert_eq!(
            summary,
            "clients were on 196 of the 200 sides of faults that overlapped or refused; no client was there \
             for F5 on the side of n1, F50 on the side of n1, F70 on the side of n1 and 1 more, so these \
             faults are no part of what is claimed"
        );
        assert_eq!(told(100, &[1, 2, 3, 4, 5, 6], &same).0, Verdict::Unknown, "more than a few");
        assert_eq!(told(4, &[1], &same).0, Verdict::Unknown, "a short run");
        let rare = |at| if at == 5 { "reject-leader" } else { "reject-one" };
        assert_eq!(told(100, &[5], &rare).0, Verdict::Unknown, "all that there was of a kind");
    }

    fn all_of(run: &RunInfo, faults: &[FaultRecord], history: &History) -> CheckResult {
        let checks = all(run, faults, &Observed::default(), history);
        checks.into_iter().find(|check| check.name == "sides").expect("the check")
    }

    #[test]
    fn whoever_ended_by_itself_is_quoted() {
        let exit = event(12, 3, Event::Exited("exit status 1".to_owned()));
        let logs = |_| vec!["opening".to_owned(), "the leader asked to cut the log".to_owned()];
        let check = nobody_died(&[], &[exit.clone()], &logs);
        assert!(check.summary.ends_with("; its last words: the leader asked to cut the log"));
        assert_eq!(check.evidence["last_words"]["n3"][0], "opening");
        let halt = event(11, 3, Event::Said(Said::Halt { reason: "the disk lies".to_owned() }));
        let check = nobody_died(&[], &[halt, exit], &|_| Vec::new());
        assert!(check.summary.ends_with("; its last words: the disk lies"), "{}", check.summary);
    }

    #[test]
    fn a_followers_word_does_not_make_an_epoch() {
        let check = find("leader-faults", &[leader_fault()], vec![established(20, 3, 1, 4)]);
        assert_eq!(check.verdict, Verdict::Unknown);
    }

    #[test]
    fn a_death_that_no_fault_explains_is_told() {
        let exit = |time, node| event(time, node, Event::Exited("exit status 1".to_owned()));
        let faults = [leader_fault()];
        assert_eq!(find("processes", &faults, vec![exit(12, 2)]).verdict, Verdict::Valid);
        assert_eq!(find("processes", &faults, vec![exit(12, 3)]).verdict, Verdict::Unknown);
        assert_eq!(find("processes", &faults, vec![exit(45, 2)]).verdict, Verdict::Unknown);
    }

    #[test]
    fn an_unverified_fault_is_named() {
        let mut fault = leader_fault();
        fault.state = FaultState::Leaked;
        let check = find("faults", &[fault], vec![]);
        assert_eq!(check.verdict, Verdict::Unknown);
        assert!(check.summary.contains("F1 kill-leader is leaked"), "{}", check.summary);
    }

    #[test]
    fn a_late_harness_proves_nothing() {
        let late =
            Observed { lag: crate::lag::Lag { p99_ms: 80.0, ..Default::default() }, ..Observed::default() };
        let checks = all(&RunInfo::default(), &[], &late, &History::default());
        let check = checks.into_iter().find(|check| check.name == "harness-lag").expect("the check");
        assert_eq!(check.verdict, Verdict::Unknown);
    }
}
