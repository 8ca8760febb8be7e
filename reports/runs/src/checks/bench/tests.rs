//! The bench's checks: what each excuses, and what it does not.

use super::*;
use crate::consequence::Consequence;

fn leader_fault() -> FaultRecord {
    FaultRecord {
        id: "F1".to_owned(),
        kind: "kill-leader".to_owned(),
        consequences: vec![Consequence::Ends],
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
    for events in [
        vec![],
        vec![established(20, 2, 2, 3)],
        vec![established(60, 1, 1, 4)],
        // Before anybody asked for the fault.
        vec![established(8, 1, 1, 4)],
    ] {
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
        consequences: vec![Consequence::Stops],
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
    reject.consequences = vec![Consequence::refuses(Vec::new())];
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
    pause.consequences = vec![Consequence::Stops];
    (pause.targets, pause.sides, pause.majority_side) = (vec![1], Vec::new(), Vec::new());
    pause.verified_healed_ns = Some(1_500_000_000);
    let summary = |pause: &FaultRecord| find("sides", &[cut.clone(), pause.clone()], vec![]).summary;
    assert_eq!(
        summary(&pause),
        "no client was there for F1 on the side of n2 n3; nobody could be there for F1 on the side of \
         n1, which F2 held down"
    );
    pause.consequences = vec![Consequence::Unknown];
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
    assert_eq!(summary(&ring, vec![looking(3 * S), established(6 * S + 2, 1, 2, 4)]), excused, "too late");
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
    (pause.consequences, pause.targets) = (vec![Consequence::Stops], vec![1]);
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
    pause.consequences = vec![Consequence::silences(Vec::new())];
    assert!(!summary(&pause, late).contains("held down"), "clients could come to it");
}

#[test]
fn a_few_sides_without_clients_leave_their_faults_out_of_a_long_run_and_are_said() {
    const S: u64 = 1_000_000_000;
    let line = |kind, process, at| {
        let mut line = checker::history::Event::new(
            process,
            kind,
            checker::history::Function::READ,
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
        consequences: vec![Consequence::refuses(Vec::new())],
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
    let check = nobody_died(&[], std::slice::from_ref(&exit), &logs);
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
    assert_eq!(find("processes", &faults, vec![exit(8, 2)]).verdict, Verdict::Unknown, "before it");
    let pause = FaultRecord { consequences: vec![Consequence::Stops], ..leader_fault() };
    assert_eq!(find("processes", &[pause], vec![exit(12, 2)]).verdict, Verdict::Unknown, "it ends nobody");
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
fn a_harness_that_is_late_or_drops_operations_proves_nothing() {
    for (p99_ms, shed, verdict) in [
        (0.0, 0, Verdict::Valid),
        (LAG_BOUND_MS, 0, Verdict::Valid),
        (80.0, 0, Verdict::Unknown),
        (0.0, 1, Verdict::Unknown),
    ] {
        let lag = crate::lag::Lag { p99_ms, ..Default::default() };
        let observed = Observed { lag, shed, ..Observed::default() };
        let checks = all(&RunInfo::default(), &[], &observed, &History::default());
        let check = checks.into_iter().find(|check| check.name == "harness-lag").expect("the check");
        assert_eq!(check.verdict, verdict, "{}", check.summary);
    }
}
