//! Which silence is for good, and which is somebody else's.

use checker::history::{Event as Line, EventKind, Function, Value};

use super::*;
use crate::consequence::Consequence;
use crate::member::MemberId;
use crate::observed::Shut;

const S: u64 = 1_000_000_000;
const MS: u64 = 1_000_000;

/// How the system answers a write.
#[derive(Clone, Copy, PartialEq)]
enum Answer {
    Ok,
    Refused(&'static str),
    None,
    /// The bench did not send it.
    Unsent,
}

/// When it is asked, at which member, for which key.
#[derive(Clone, Copy)]
struct Asked {
    s: u64,
    member: u64,
    key: u64,
}

/// Ten writes a second, at three members and two keys in turn, each by a process of its own.
fn history(seconds: u64, answer: impl Fn(Asked) -> Answer) -> History {
    let mut lines = Vec::new();
    for number in 0..seconds * 10 {
        let at = number * 100 * MS;
        let asked = Asked { s: number / 10, member: 1 + number % 3, key: number / 3 % 2 };
        let value = Value::One(i64::try_from(number).expect("small"));
        let line = |kind, at| Line::new(number, kind, Function::WRITE, asked.key, value.clone(), at);
        let answer = answer(asked);
        let mut invoke = line(EventKind::Invoke, at);
        invoke.node = (answer != Answer::Unsent).then_some(asked.member);
        lines.push(invoke);
        match answer {
            Answer::Ok => lines.push(line(EventKind::Ok, at + 5 * MS)),
            Answer::Refused(_) | Answer::Unsent => {
                let mut fail = line(EventKind::Fail, at + 5 * MS);
                fail.error = Some(match answer {
                    Answer::Refused(why) => why.into(),
                    _ => "not-sent: no member took the client's session in time".into(),
                });
                lines.push(fail);
            }
            Answer::None => {}
        }
    }
    lines.sort_by_key(|line| line.time);
    History::from_events(lines).expect("a history")
}

fn run() -> RunInfo {
    RunInfo {
        nodes: 3,
        patience_ms: Some(250),
        operation_timeout_ms: Some(500),
        comes_back: Some(ComesBack::default()),
        ..RunInfo::default()
    }
}

fn observed(seconds: u64) -> Observed {
    Observed { workload_to_ns: seconds * S, ..Observed::default() }
}

fn fault(from: u64, gone: Option<u64>) -> FaultRecord {
    FaultRecord {
        id: "F1".to_owned(),
        kind: "partition-one".to_owned(),
        consequences: vec![Consequence::silences(Vec::new())],
        targets: vec![1],
        asked_ns: from * S,
        injected_ns: Some(from * S),
        verified_ns: Some(from * S),
        heal_asked_ns: gone.map(|at| at * S),
        healed_ns: gone.map(|at| at * S),
        verified_healed_ns: gone.map(|at| at * S),
        ..FaultRecord::default()
    }
}

fn judged(run: &RunInfo, faults: &[FaultRecord], observed: &Observed, history: History) -> CheckResult {
    check(run, faults, observed, (&history, Extent::Whole), &|_: u64| Vec::new()).expect("it is asked for")
}

fn accused(check: &CheckResult, begins: &str) {
    assert_eq!(check.verdict, Verdict::Invalid, "{}", check.summary);
    assert!(check.summary.starts_with(begins), "{}", check.summary);
}

fn not_accused(check: &CheckResult, why: &str) {
    assert_eq!(check.verdict, Verdict::Valid, "{why}: {}", check.summary);
}

/// Answered until the twentieth second, and then so.
fn until_20(then: Answer) -> impl Fn(Asked) -> Answer {
    move |asked| if asked.s < 20 { Answer::Ok } else { then }
}

#[test]
fn a_system_that_refuses_all_or_is_silent_for_good_never_came_back() {
    for then in [Answer::Refused("stuck"), Answer::None] {
        let check = judged(&run(), &[], &observed(60), history(60, until_20(then)));
        accused(&check, "no write was acknowledged for the last 40.1 s, with nothing broken: ");
    }
    let after = judged(&run(), &[fault(20, Some(25))], &observed(60), history(60, until_20(Answer::None)));
    accused(
        &after,
        "no write was acknowledged for the last 40.1 s, for 35.0 s of that with nothing broken: ",
    );
}

#[test]
fn dead_processes_that_nobody_starts_again_never_came_back() {
    let exited = |node| crate::events::Stamped {
        time: 20 * S,
        node: MemberId(node),
        event: Event::Exited("exit status 1".to_owned()),
    };
    let shut = |member| Shut { member, from_ns: 20 * S, to_ns: 60 * S, attempts: 900 };
    let mut observed = observed(60);
    observed.events = (1..=3).map(exited).collect();
    observed.shut = (1..=3).map(shut).collect();
    let check = judged(&run(), &[], &observed, history(60, until_20(Answer::Unsent)));
    accused(&check, "no write was acknowledged for the last 40.1 s, with nothing broken (n1 ended by itself");
    // Somebody ended two of them.
    for at in [0, 1] {
        observed.events[at].event = Event::Exited("killed by signal 9".to_owned());
    }
    let check = judged(&run(), &[], &observed, history(60, until_20(Answer::Unsent)));
    not_accused(&check, "who was killed left no quorum");
}

#[test]
fn silence_between_two_faults_counts_and_one_within_a_fault_does_not() {
    let silent =
        |from, to| move |asked: Asked| if (from..to).contains(&asked.s) { Answer::None } else { Answer::Ok };
    let faults = [fault(10, Some(15)), FaultRecord { id: "F2".to_owned(), ..fault(70, Some(75)) }];
    let between = judged(&run(), &faults, &observed(100), history(100, silent(20, 60)));
    accused(&between, "no write was acknowledged for 40.1 s from 19.905 s on, with nothing broken");
    let during = judged(&run(), &[fault(10, Some(70))], &observed(110), history(110, silent(15, 65)));
    not_accused(&during, "a fault was in force");
    let leaked = judged(&run(), &[fault(10, None)], &observed(110), history(110, silent(15, 110)));
    not_accused(&leaked, "nobody saw its end");
    let always = ComesBack { when: When::Always, ..ComesBack::default() };
    let always = RunInfo { comes_back: Some(always), ..run() };
    accused(
        &judged(&always, &[fault(10, Some(70))], &observed(110), history(110, silent(15, 65))),
        "no write was acknowledged for 50.1 s from 14.905 s on",
    );
}

#[test]
fn signs_of_life_a_short_silence_and_what_the_bench_did_not_send_accuse_nobody() {
    for (why, then) in
        [("a state that refuses", Answer::Refused("exists")), ("the bench did not send", Answer::Unsent)]
    {
        not_accused(&judged(&run(), &[], &observed(60), history(60, until_20(then))), why);
    }
    let short = judged(&run(), &[], &observed(45), history(45, until_20(Answer::None)));
    not_accused(&short, "it is shorter than the bound");
    assert!(short.nothing_judged && short.summary.contains("for the last 25.1 s"), "{}", short.summary);
    let mut stalled = observed(60);
    stalled.stalls = vec![(30 * S, 45 * S)];
    not_accused(
        &judged(&run(), &[], &stalled, history(60, until_20(Answer::None))),
        "the machine stood still",
    );
    let slow = |asked: Asked| if (15..60).contains(&asked.s) { Answer::Ok } else { Answer::None };
    not_accused(&judged(&run(), &[], &observed(100), history(100, slow)), "it is slow to start");
    let never = |_| Answer::None;
    not_accused(&judged(&run(), &[], &observed(60), history(60, never)), "it never acknowledged anything");
    let one_unseen = |asked: Asked| match asked {
        Asked { s, .. } if s < 20 => Answer::Ok,
        Asked { member: 3, .. } => Answer::Unsent,
        _ => Answer::None,
    };
    not_accused(
        &judged(&run(), &[], &observed(60), history(60, one_unseen)),
        "nobody asked the third member",
    );
}

#[test]
fn a_system_that_needs_an_operator_says_so_and_is_not_asked() {
    let asked = |comes_back| {
        let run = RunInfo { comes_back, ..run() };
        let history = history(60, until_20(Answer::None));
        let judged = check(&run, &[], &observed(60), (&history, Extent::Whole), &|_: u64| Vec::new());
        judged.map(|check| check.verdict)
    };
    assert_eq!(asked(None), None, "a folder of an older build");
    assert_eq!(asked(Some(ComesBack { when: When::Never, ..ComesBack::default() })), None);
    assert_eq!(asked(Some(ComesBack::default())), Some(Verdict::Invalid));
}

#[test]
fn one_key_that_is_dead_for_good_is_accused_though_others_are_served() {
    let dead = |asked: Asked| match asked {
        Asked { s, key: 1, .. } if s >= 20 => Answer::Refused("no primary"),
        _ => Answer::Ok,
    };
    let lines = judged(&run(), &[], &observed(60), history_of_many(60, dead));
    accused(&lines, "no write to key 1 was acknowledged for the last 4");
    let short = |asked: Asked| match asked {
        Asked { s, key: 1, .. } if (20..40).contains(&s) => Answer::None,
        _ => Answer::Ok,
    };
    not_accused(&judged(&run(), &[], &observed(60), history_of_many(60, short)), "it came back");
}

/// The same, where every key is asked at every member.
fn history_of_many(seconds: u64, answer: impl Fn(Asked) -> Answer) -> History {
    history(seconds, answer)
}

#[test]
fn one_member_that_dies_or_falls_silent_by_itself_is_accused_and_a_standby_is_not() {
    let silent = |asked: Asked| match asked {
        Asked { s, member: 2, .. } if s >= 20 => Answer::None,
        _ => Answer::Ok,
    };
    accused(&judged(&run(), &[], &observed(60), history(60, silent)), "n2 served nobody for the last 4");
    not_accused(
        &judged(&run(), &[fault(30, Some(31))], &observed(60), history(60, silent)),
        "a fault came since it last served",
    );
    let standby = |asked: Asked| match asked {
        Asked { s, member, .. } if s < 20 && member == 2 => Answer::Ok,
        Asked { s, member, .. } if s >= 23 && member == 3 => Answer::Ok,
        _ => Answer::Refused("standby"),
    };
    not_accused(&judged(&run(), &[], &observed(60), history(60, standby)), "one of them serves at a time");
    let mut died = observed(60);
    died.events = vec![crate::events::Stamped {
        time: 20 * S,
        node: MemberId(2),
        event: Event::Exited("exit status 1".to_owned()),
    }];
    let gone = |asked: Asked| match asked {
        Asked { s, member: 2, .. } if s >= 20 => Answer::Unsent,
        _ => Answer::Ok,
    };
    accused(&judged(&run(), &[], &died, history(60, gone)), "n2 ended by itself at 20.000 s");
    let restarted = ComesBack { restarted: true, ..ComesBack::default() };
    let restarted = RunInfo { comes_back: Some(restarted), ..run() };
    not_accused(&judged(&restarted, &[], &died, history(60, gone)), "its policy would start it again");
}
