//! Who is accused of not coming back, and who is not.

use super::*;
use crate::consequence::Consequence;
use crate::results::{FaultState, SystemInfo};

const S: u64 = 1_000_000_000;

fn event(seconds: u64, node: u64, event: Event) -> Stamped {
    Stamped { time: seconds * S, node: MemberId(node), event }
}

fn serves(seconds: u64, node: u64, leader: u64, epoch: u32) -> [Stamped; 2] {
    [
        event(seconds, node, Event::Said(Said::Established { leader, epoch })),
        event(seconds, node, Event::Said(Said::Serving {})),
    ]
}

fn kill(id: &str, asked: u64, healed: u64) -> FaultRecord {
    FaultRecord {
        id: id.to_owned(),
        kind: "kill-one".to_owned(),
        consequences: vec![Consequence::Ends],
        targets: vec![2],
        asked_ns: asked * S,
        injected_ns: Some(asked * S),
        heal_asked_ns: Some(healed * S),
        healed_ns: Some(healed * S),
        healed_matrix: Some(vec![vec![Reach::Reached; 3]; 3]),
        state: FaultState::Leaked,
        ..FaultRecord::default()
    }
}

/// Three members that serve from the first second on.
fn well() -> Vec<Stamped> {
    let spawned = (1..=3).map(|node| event(0, node, Event::Spawned));
    let serve = (1..=3).flat_map(|node| serves(1, node, 1, 1));
    spawned.chain(serve).collect()
}

/// n2 is killed at 2 s and started again at 4 s, and this follows.
fn killed_then(after: Vec<Stamped>) -> Observed {
    let mut events = well();
    events.push(event(2, 2, Event::Exited("killed by signal 9".to_owned())));
    events.push(event(4, 2, Event::Spawned));
    events.extend(after);
    Observed { events, listened_until_ns: Some(40 * S), workload_to_ns: 30 * S, ..Observed::default() }
}

fn run() -> RunInfo {
    RunInfo { nodes: 3, patience_ms: Some(250), ..RunInfo::default() }
}

fn judged(run: &RunInfo, faults: &[FaultRecord], observed: &Observed, log: &[&str]) -> CheckResult {
    let log: Vec<String> = log.iter().map(|line| (*line).to_owned()).collect();
    check(run, faults, observed, &|_| log.clone()).expect("a fault was healed")
}

fn ended(how: &str) -> Observed {
    killed_then(vec![event(5, 2, Event::Exited(how.to_owned()))])
}

#[test]
fn a_member_that_ends_itself_on_the_data_of_a_kill_is_accused_with_its_last_words() {
    let check =
        judged(&run(), &[kill("F1", 2, 4)], &ended("exit status 1"), &["opening", "the log is not mine"]);
    assert_eq!(check.verdict, Verdict::Invalid);
    assert_eq!(
        check.summary,
        "n2 does not recover on its own data: killed by F1 (kill-one) and started again at 4.000 s, it ended \
         at 5.000 s (exit status 1); its last words: the log is not mine"
    );
    assert_eq!(check.evidence["last_lines"][0], "opening");
}

#[test]
fn where_there_is_no_log_the_reason_of_its_halt_stands_for_it() {
    let halt = event(5, 2, Event::Said(Said::Halt { reason: "torn".to_owned() }));
    let observed = killed_then(vec![halt, event(5, 2, Event::Exited("stopped itself".to_owned()))]);
    let check = judged(&run(), &[kill("F1", 2, 4)], &observed, &[]);
    assert!(check.summary.ends_with("its last words: torn"), "{}", check.summary);
}

#[test]
fn nobody_is_accused_of_a_signal_an_orderly_end_a_full_disk_or_another_fault() {
    for how in ["killed by signal 9", "killed by signal 15", "exit status 0", "exit status 137", "ended"] {
        assert_eq!(judged(&run(), &[kill("F1", 2, 4)], &ended(how), &[]).verdict, Verdict::Valid, "{how}");
    }
    let full = judged(
        &run(),
        &[kill("F1", 2, 4)],
        &ended("exit status 1"),
        &["No space left on device (os error 28)"],
    );
    assert_eq!(full.verdict, Verdict::Valid);
    let again = [kill("F1", 2, 4), kill("F2", 5, 7)];
    assert_eq!(judged(&run(), &again, &ended("exit status 1"), &[]).verdict, Verdict::Valid);
    let replaced = FaultRecord {
        kind: "replace-rolling".to_owned(),
        consequences: vec![Consequence::Ends, Consequence::Replaces],
        ..kill("F1", 2, 4)
    };
    assert_eq!(judged(&run(), &[replaced], &ended("exit status 1"), &[]).verdict, Verdict::Valid);
}

#[test]
fn a_member_that_served_again_and_ends_later_has_come_back() {
    let mut after = serves(5, 2, 1, 1).to_vec();
    after.push(event(9, 2, Event::Exited("exit status 1".to_owned())));
    assert_eq!(judged(&run(), &[kill("F1", 2, 4)], &killed_then(after), &[]).verdict, Verdict::Valid);
}

#[test]
fn a_member_that_runs_and_never_serves_though_the_others_do_is_accused() {
    let faults = [kill("F1", 2, 4)];
    let check = judged(&run(), &faults, &killed_then(vec![]), &["looking"]);
    assert_eq!(check.verdict, Verdict::Invalid);
    assert!(
        check.summary.starts_with("n2 does not recover on its own data: 36.000 s after F1"),
        "{}",
        check.summary
    );
    let cut = FaultRecord {
        kind: "partition-one".to_owned(),
        consequences: vec![Consequence::silences(Vec::new())],
        ..kill("F1", 2, 4)
    };
    let check = judged(&run(), &[cut], &killed_then(vec![]), &[]);
    assert!(check.summary.starts_with("n2 does not come back: "), "{}", check.summary);
    assert_eq!(
        judged(&run(), &faults, &killed_then(serves(20, 2, 1, 1).to_vec()), &[]).verdict,
        Verdict::Valid
    );
}

#[test]
fn silence_accuses_nobody_where_it_was_short_or_anything_else_was_wrong() {
    let silent = killed_then(vec![]);
    let valid = |run: &RunInfo, faults: &[FaultRecord], observed: &Observed, why: &str| {
        assert_eq!(judged(run, faults, observed, &[]).verdict, Verdict::Valid, "{why}");
    };
    let short = Observed { listened_until_ns: Some(20 * S), ..silent.clone() };
    valid(&run(), &[kill("F1", 2, 4)], &short, "16 s are less than its bound");
    let next = [kill("F1", 2, 4), FaultRecord { healed_ns: None, ..kill("F2", 10, 30) }];
    valid(&run(), &next, &silent, "another fault began");
    let mut torn = kill("F1", 2, 4);
    torn.healed_matrix = Some(vec![vec![Reach::Reached, Reach::NotReached, Reach::Reached]]);
    valid(&run(), &[torn], &silent, "the network was not whole");
    valid(
        &run(),
        &[FaultRecord { healed_matrix: None, ..kill("F1", 2, 4) }],
        &silent,
        "nobody looked at the network",
    );
    let stalled = Observed { stalls: vec![(10 * S, 12 * S)], ..silent.clone() };
    valid(&run(), &[kill("F1", 2, 4)], &stalled, "the machine stood still");
    let moved = killed_then(vec![
        event(38, 3, Event::Said(Said::Looking { left: Some(1) })),
        event(39, 3, Event::Said(Said::Established { leader: 1, epoch: 1 })),
        event(39, 3, Event::Said(Said::Serving {})),
    ]);
    valid(&run(), &[kill("F1", 2, 4)], &moved, "the others did not stand");
    let died = killed_then(vec![event(9, 3, Event::Exited("killed by signal 9".to_owned()))]);
    valid(&run(), &[kill("F1", 2, 4)], &died, "a member died by somebody's hand");
    let java = RunInfo { system: SystemInfo { rejoin_ms: 75_000, ..SystemInfo::default() }, ..run() };
    valid(&java, &[kill("F1", 2, 4)], &silent, "its elections ask once a minute");
    let unknown = RunInfo { patience_ms: None, ..run() };
    valid(&unknown, &[kill("F1", 2, 4)], &silent, "nobody knows its time-outs");
}

#[test]
fn a_fault_that_did_not_end_a_member_excuses_nobody() {
    let pause = FaultRecord { consequences: vec![Consequence::Stops], ..kill("F2", 5, 7) };
    for (why, beside) in [
        ("it ends no process", pause),
        ("it hit another member", FaultRecord { targets: vec![3], ..kill("F2", 5, 7) }),
        ("it came afterwards", kill("F2", 6, 7)),
        ("it was over", kill("F2", 1, 3)),
    ] {
        let check = judged(&run(), &[kill("F1", 2, 4), beside], &ended("exit status 1"), &[]);
        assert_eq!(check.verdict, Verdict::Invalid, "{why}");
    }
}

#[test]
fn what_the_lost_member_says_excuses_it_only_where_it_served_meanwhile() {
    let looks = |seconds, node| event(seconds, node, Event::Said(Said::Looking { left: None }));
    let again = |seconds| [vec![looks(seconds, 3)], serves(seconds + 1, 3, 1, 1).to_vec()].concat();
    for (why, after, verdict) in [
        ("it looks all along", vec![looks(5, 2), looks(30, 2), looks(39, 2)], Verdict::Invalid),
        ("the others have stood for long", again(10), Verdict::Invalid),
        ("it had come back", [serves(20, 2, 1, 1).to_vec(), vec![looks(21, 2)]].concat(), Verdict::Valid),
    ] {
        let check = judged(&run(), &[kill("F1", 2, 4)], &killed_then(after), &[]);
        assert_eq!(check.verdict, verdict, "{why}: {}", check.summary);
    }
}

#[test]
fn an_ensemble_that_elects_nobody_after_all_is_healed_is_accused() {
    let mut after: Vec<Stamped> =
        (1..=3).map(|node| event(4, node, Event::Said(Said::Looking { left: None }))).collect();
    let cut = || FaultRecord {
        kind: "partition-halves".to_owned(),
        consequences: vec![Consequence::silences(Vec::new())],
        ..kill("F1", 2, 3)
    };
    let mut observed = Observed { events: well(), listened_until_ns: Some(40 * S), ..Observed::default() };
    observed.events.append(&mut after);
    let check = judged(&run(), &[cut()], &observed, &[]);
    assert_eq!(check.verdict, Verdict::Invalid);
    assert!(check.summary.starts_with("the ensemble elects nobody: 37.000 s after F1"), "{}", check.summary);
    observed.events.push(event(30, 1, Event::Said(Said::Established { leader: 1, epoch: 2 })));
    assert_eq!(judged(&run(), &[cut()], &observed, &[]).verdict, Verdict::Valid);
}

#[test]
fn without_a_healed_fault_nothing_is_asked() {
    let never = FaultRecord { healed_ns: None, ..kill("F1", 2, 4) };
    assert!(check(&run(), &[never], &killed_then(vec![]), &|_| Vec::new()).is_none());
}
