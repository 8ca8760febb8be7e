//! Which silence is a broken promise.

use checker::history::{Event as Line, EventKind, Function, Value};

use super::*;
use crate::consequence::Consequence;
use crate::events::Stamped;
use crate::member::MemberId;

const MS: u64 = 1_000_000;

/// A leader, n1, that hears nobody from 2 s to 4 s.
fn deaf() -> FaultRecord {
    FaultRecord {
        id: "F1".to_owned(),
        kind: "partition-oneway".to_owned(),
        targets: vec![1],
        asked_ns: 1999 * MS,
        injected_ns: Some(2000 * MS),
        verified_ns: Some(2050 * MS),
        heal_asked_ns: Some(4000 * MS),
        healed_ns: Some(4010 * MS),
        epoch_before: Some(1),
        leader_fault: true,
        majority_side: vec![2, 3],
        quorum_remained: true,
        ..FaultRecord::default()
    }
}

fn run() -> RunInfo {
    let base = RunInfo { nodes: 3, ..RunInfo::default() };
    RunInfo { patience_ms: Some(250), operation_timeout_ms: Some(500), ..base }
}

fn observed(events: Vec<Stamped>) -> Observed {
    Observed { events, workload_to_ns: 60_000 * MS, ..Observed::default() }
}

fn said(ms: u64, node: u64, said: Said) -> Stamped {
    Stamped { time: ms * MS, node: MemberId(node), event: Event::Said(said) }
}

/// Writes at n2, one every 100 ms in [from, to) ms; acknowledged at once unless they fall into a silence.
fn history(from: u64, to: u64, silence: (u64, u64)) -> History {
    History::from_events(lines(from, to, silence)).expect("a history")
}

fn lines(from: u64, to: u64, silence: (u64, u64)) -> Vec<Line> {
    let mut lines = Vec::new();
    for (number, at) in (from..to).step_by(100).enumerate() {
        let process = u64::try_from(number).expect("small");
        let value = Value::One(i64::try_from(at).expect("small"));
        let mut invoke = Line::new(process, EventKind::Invoke, Function::WRITE, 0, value.clone(), at * MS);
        invoke.node = Some(2);
        lines.push(invoke);
        if !(silence.0..silence.1).contains(&at) {
            lines.push(Line::new(process, EventKind::Ok, Function::WRITE, 0, value, at * MS + 5));
        }
    }
    lines
}

fn judged(run: &RunInfo, fault: FaultRecord, observed: &Observed, history: &History) -> (Verdict, String) {
    let check = check(run, &[fault], observed, (history, Extent::Whole)).expect("a quorum was connected");
    (check.verdict, check.summary)
}

#[test]
fn a_leader_without_its_quorum_that_nobody_misses_breaks_progress() {
    let (verdict, summary) = judged(&run(), deaf(), &observed(vec![]), &history(0, 6000, (2000, 4000)));
    assert_eq!(verdict, Verdict::Invalid);
    assert_eq!(
        summary,
        "no progress: from 2.000 s on nobody noticed for 2.00 s that F1 (partition-oneway) had taken the \
         leader from its quorum: no higher epoch, and no change acknowledged though n2 n3 were connected and \
         asked"
    );
}

#[test]
fn whoever_notices_acknowledges_or_leads_on_is_not_accused() {
    let silent = || history(0, 6000, (2000, 4000));
    let valid = |events: Vec<Stamped>, history: &History, why: &str| {
        let (verdict, summary) = judged(&run(), deaf(), &observed(events), history);
        assert_eq!(verdict, Verdict::Valid, "{why}: {summary}");
    };
    valid(vec![said(2900, 1, Said::Looking { left: Some(1) })], &silent(), "the leader noticed");
    valid(vec![said(3000, 2, Said::Established { leader: 2, epoch: 2 })], &silent(), "another led");
    valid(vec![], &history(0, 6000, (2000, 3000)), "changes were acknowledged before long");
    valid(vec![], &history(0, 2000, (2000, 4000)), "nobody asked");
}

#[test]
fn what_may_be_slowness_is_never_accused() {
    let silent = history(0, 6000, (2000, 4000));
    let valid = |run: &RunInfo, fault: FaultRecord, observed: &Observed, why: &str| {
        assert_eq!(judged(run, fault, observed, &silent).0, Verdict::Valid, "{why}");
    };
    let slower = RunInfo { patience_ms: Some(1000), ..run() };
    valid(&slower, deaf(), &observed(vec![]), "two time-outs are few");
    let unseen = FaultRecord { verified_ns: None, ..deaf() };
    assert!(
        check(&run(), &[unseen], &observed(vec![]), (&silent, Extent::Whole)).is_none(),
        "it was not seen to bite"
    );
    let alone = FaultRecord { majority_side: Vec::new(), ..deaf() };
    assert!(
        check(&run(), &[alone], &observed(vec![]), (&silent, Extent::Whole)).is_none(),
        "no quorum was connected"
    );
    let follower = FaultRecord { leader_fault: false, ..deaf() };
    valid(&run(), follower, &observed(vec![]), "the leader kept its quorum, and its disk may be slow");
    let stalled = Observed { stalls: vec![(2500 * MS, 3200 * MS)], ..observed(vec![]) };
    valid(&run(), deaf(), &stalled, "the machine stood still");
    let lag = crate::lag::Lag { max_ms: 300.0, ..Default::default() };
    valid(&run(), deaf(), &Observed { lag, ..observed(vec![]) }, "the harness was late itself");
    let died =
        Stamped { time: 2600 * MS, node: MemberId(3), event: Event::Exited("killed by signal 9".to_owned()) };
    valid(&run(), deaf(), &observed(vec![died]), "a member died meanwhile");
    let unknown = RunInfo { patience_ms: None, ..run() };
    assert!(
        check(&unknown, &[deaf()], &observed(vec![]), (&silent, Extent::Whole)).is_none(),
        "nobody knows its time-outs"
    );
}

#[test]
fn another_fault_ends_what_can_be_said_of_the_first() {
    let silent = history(0, 6000, (2000, 4000));
    let mut other = deaf();
    (other.id, other.asked_ns, other.injected_ns) = ("F2".to_owned(), 2900 * MS, Some(2901 * MS));
    (other.leader_fault, other.heal_asked_ns) = (false, Some(3900 * MS));
    let check =
        check(&run(), &[deaf(), other], &observed(vec![]), (&silent, Extent::Whole)).expect("quorums");
    assert_eq!(check.verdict, Verdict::Valid, "{}", check.summary);
    assert!(check.nothing_judged, "neither was long enough: {}", check.summary);
}

#[test]
fn ten_seconds_without_an_answer_are_too_long_whoever_noticed() {
    let mut long = deaf();
    (long.heal_asked_ns, long.healed_ns) = (Some(15_000 * MS), Some(15_010 * MS));
    let events = vec![
        said(2300, 1, Said::Looking { left: Some(1) }),
        said(2400, 2, Said::Established { leader: 2, epoch: 2 }),
    ];
    let of = |silence| judged(&run(), long.clone(), &observed(events.clone()), &history(0, 20_000, silence));
    let (verdict, summary) = of((2400, 14_000));
    assert_eq!(verdict, Verdict::Invalid);
    assert!(summary.contains("no change was acknowledged for 11.7 s under F1"), "{summary}");
    assert_eq!(of((2400, 9000)).0, Verdict::Valid);
}

#[test]
fn the_sentence_says_within_how_long_where_and_what_was_not_judged() {
    let of = |fault: FaultRecord, events: Vec<Stamped>, history: &History| {
        judged(&run(), fault, &observed(events), history)
    };
    let noticed = vec![said(2300, 1, Said::Looking { left: Some(1) })];
    assert_eq!(
        of(deaf(), noticed.clone(), &history(0, 6000, (2000, 2500))),
        (
            Verdict::Valid,
            "that the leader had lost its quorum was noticed within 1.50 s (1 fault); whether changes were \
             acknowledged was not judged, as no fault was held for the 10.0 s that this may take"
                .to_owned()
        )
    );
    let long = FaultRecord { heal_asked_ns: Some(15_000 * MS), healed_ns: Some(15_010 * MS), ..deaf() };
    let of_a_leader = "changes were acknowledged within 10.0 s wherever a quorum was connected (1 fault), \
                       and that the leader had lost its quorum was noticed within 1.50 s (1 fault)";
    let two_seconds = history(0, 20_000, (2400, 4000));
    assert_eq!(of(long.clone(), noticed, &two_seconds), (Verdict::Valid, of_a_leader.to_owned()));
    let follower = FaultRecord { leader_fault: false, ..long };
    assert_eq!(
        of(follower, vec![], &two_seconds),
        (
            Verdict::Valid,
            "changes were acknowledged within 10.0 s wherever a quorum was connected (1 fault)".to_owned()
        )
    );
}

#[test]
fn a_key_that_nobody_could_change_meanwhile_is_named_beside_what_holds_of_all_together() {
    let long = FaultRecord {
        leader_fault: false,
        heal_asked_ns: Some(15_000 * MS),
        healed_ns: Some(15_010 * MS),
        ..deaf()
    };
    let mut lines = Vec::new();
    for (process, at) in (0..20_000).step_by(50).enumerate() {
        let process = u64::try_from(process).expect("small");
        let key = process % 4;
        let value = Value::One(i64::try_from(at).expect("small"));
        let mut invoke = Line::new(process, EventKind::Invoke, Function::WRITE, key, value.clone(), at * MS);
        invoke.node = Some(2);
        let is_gone = (key == 3 && (2400..14_000).contains(&at)) || (key == 2 && (4000..5000).contains(&at));
        let kind = if is_gone { EventKind::Fail } else { EventKind::Ok };
        let mut end = Line::new(process, kind, Function::WRITE, key, value, at * MS + 5);
        end.error = is_gone.then(|| "no-master".into());
        lines.extend([invoke, end]);
    }
    let history = History::from_events(lines).expect("a history");
    let (verdict, summary) = judged(&run(), long, &observed(vec![]), &history);
    assert_eq!(verdict, Verdict::Valid);
    assert_eq!(
        summary,
        "changes were acknowledged within 10.0 s wherever a quorum was connected (1 fault); that is of all \
         keys together: no change to key 3 was acknowledged for 11.6 s under F1, while changes to others \
         were (and one more key for less)"
    );
}

#[test]
fn a_history_that_was_cut_short_or_has_gaps_never_accuses_who_answered() {
    let mut long = deaf();
    (long.heal_asked_ns, long.healed_ns) = (Some(25_000 * MS), Some(25_010 * MS));
    let all = lines(0, 30_000, (0, 0));
    let verdict = |lines: &[Line], extent| {
        let history = History::from_events(lines.to_vec()).expect("a history");
        check(&run(), &[long.clone()], &observed(vec![]), (&history, extent)).map(|check| check.verdict)
    };
    for cut in 0..all.len() {
        assert_ne!(verdict(&all[..cut], Extent::Beginning), Some(Verdict::Invalid), "cut at {cut}");
    }
    let answers_gone: Vec<Line> = all
        .iter()
        .filter(|line| {
            line.kind == EventKind::Invoke || !(3000 * MS..18_000 * MS).contains(&line.time.unwrap_or(0))
        })
        .cloned()
        .collect();
    assert_eq!(verdict(&answers_gone, Extent::Parts), Some(Verdict::Unknown));
    assert_eq!(verdict(&answers_gone, Extent::Whole), Some(Verdict::Invalid), "were it whole");
    let silent = lines(0, 30_000, (3000, 18_000));
    let before_its_end = &silent[..silent.len() - 100];
    assert_eq!(
        verdict(before_its_end, Extent::Beginning),
        Some(Verdict::Invalid),
        "silence before the cut counts"
    );
}

#[test]
fn while_a_fault_of_the_users_own_may_be_at_work_nothing_is_asked() {
    let (observed, history) = (observed(vec![]), history(0, 6000, (2000, 4000)));
    let judged = |faults: &[FaultRecord]| {
        check(&run(), faults, &observed, (&history, Extent::Whole)).map(|check| check.verdict)
    };
    let own = |from: u64, gone: Option<u64>| FaultRecord {
        id: "F2".to_owned(),
        consequences: vec![Consequence::Unknown],
        asked_ns: from * MS,
        injected_ns: Some(from * MS),
        verified_healed_ns: gone.map(|at| at * MS),
        ..deaf()
    };
    assert_eq!(judged(&[own(2000, Some(4100))]), None);
    assert_eq!(judged(&[deaf(), own(1000, Some(3000))]), None);
    assert_eq!(judged(&[deaf(), own(1000, None)]), None, "it was never seen to be gone");
    assert_eq!(judged(&[deaf(), own(1000, Some(1500))]), Some(Verdict::Invalid), "it was gone before");
}

#[test]
fn bounds_grow_with_what_is_slow_and_beyond_the_patience_nothing_is_asked() {
    let (observed, history) = (observed(vec![]), history(0, 6000, (2000, 4000)));
    let slow = |by_ms: u64| FaultRecord {
        id: "F2".to_owned(),
        consequences: vec![Consequence::Slows { by_ns: by_ms * MS }],
        asked_ns: 1000 * MS,
        injected_ns: Some(1000 * MS),
        ..FaultRecord::default()
    };
    let judged = |by_ms: u64| {
        check(&run(), &[deaf(), slow(by_ms)], &observed, (&history, Extent::Whole)).map(|check| check.verdict)
    };
    let timeout = run().patience_ms.expect("a patience");
    assert_eq!(judged(0), Some(Verdict::Invalid));
    assert_eq!(judged(timeout - 1), Some(Verdict::Valid), "so long it may take to be noticed");
    assert_eq!(judged(timeout), None);
}
