//! Each anomaly by a history of its own, and what a person is told about it.

use super::{Condition, check};
use crate::budget::{Budget, Interrupt};
use crate::history::{Datum, EventKind, Record};
use crate::verdict::{Judged, Verdict};

/// One transaction per line: process, outcome, call, return, then the operations: `append x 1`, `r x 1 2`.
fn records(script: &str) -> Vec<Record> {
    let mut records = Vec::new();
    for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (head, body) = line.split_once('|').unwrap();
        let words: Vec<&str> = head.split_whitespace().collect();
        let [process, outcome, call, ret] = words[..] else { panic!("four words: {line}") };
        let value = |answered: bool| {
            let micros = body.split(',').map(|micro| {
                let mut words = micro.split_whitespace().map(|word| match word.parse() {
                    Ok(number) => Datum::Int(number),
                    Err(_) => Datum::text(word),
                });
                let (f, key) = (words.next().unwrap(), words.next().unwrap());
                let value = match f.as_text() {
                    Some("append") => words.next().unwrap(),
                    _ if answered => Datum::List(words.collect()),
                    _ => Datum::Nil,
                };
                Datum::List(vec![f, key, value])
            });
            Datum::List(micros.collect())
        };
        let ms = |text: &str| text.parse::<u64>().unwrap();
        let mut add = |kind, time: u64, value| {
            let mut record = Record::new(process.parse().unwrap(), kind, "txn", Datum::Nil, value);
            record.time = Some(time * 1_000_000);
            records.push(record);
        };
        add(EventKind::Invoke, ms(call), value(false));
        match outcome {
            "ok" => add(EventKind::Ok, ms(ret), value(true)),
            "fail" => add(EventKind::Fail, ms(ret), value(false)),
            _ => {}
        }
    }
    records.sort_by_key(|record| record.time);
    for (record, index) in records.iter_mut().zip(0..) {
        (record.index, record.line) = (index, index + 1);
    }
    records
}

fn judge(script: &str, condition: Condition) -> Judged {
    check(records(script).into_iter().map(Ok), condition, &Budget::default()).unwrap()
}

/// Claims the anomalies of a history, the strongest condition that may hold, and the sentence.
#[track_caller]
fn shows(script: &str, names: &[&str], may_hold: Option<Condition>, sentence: &str) {
    let result = judge(script, Condition::StrictSerializable).result;
    let found: Vec<&str> =
        result.evidence["anomalies"].as_object().unwrap().keys().map(String::as_str).collect();
    let mut names = names.to_vec();
    names.sort_unstable();
    assert_eq!(found, names);
    assert_eq!(result.evidence["may_hold"].as_str(), may_hold.map(Condition::as_str));
    let shown = result.counterexample.unwrap();
    assert!(shown.rechecked, "{}", shown.sentence);
    assert_eq!(shown.sentence, sentence);
    let verdict = |condition| judge(script, condition).result.verdict;
    for condition in Condition::ALL {
        let broken = may_hold.is_none_or(|holds| condition > holds);
        assert_eq!(verdict(condition) == Verdict::Invalid, broken, "{condition}");
    }
}

#[test]
fn a_cycle_of_writes() {
    shows(
        "0 ok 0 9 | append x 1, append y 1
         1 ok 0 9 | append x 2, append y 2
         2 ok 1 9 | r x 1 2, r y 2 1",
        &["G0"],
        None,
        "G0: T1 appended 1 to x before T2 appended 2 (the list read by T3 is [1 2]); T2 appended 2 to y \
         before T1 appended 1 (the list read by T3 is [2 1]): so T1 would have to come before itself",
    );
}

#[test]
fn a_cycle_of_reads_of_writes() {
    shows(
        "0 ok 0 9 | append x 1, r y 2
         1 ok 0 9 | append y 2, r x 1",
        &["G1c"],
        Some(Condition::ReadUncommitted),
        "G1c: T2 read 1 at the end of x, which T1 appended; T1 read 2 at the end of y, which T2 appended: so \
         T1 would have to come before itself",
    );
}

#[test]
fn a_skew_of_reads() {
    shows(
        "0 ok 0 9 | append x 1, append y 1
         1 ok 0 9 | r x 1, r y",
        &["G-single"],
        Some(Condition::ReadCommitted),
        "G-single: T2 read [] from y without 1, which T1 appended; T2 read 1 at the end of x, which T1 \
         appended: so T2 would have to come before itself",
    );
}

#[test]
fn two_anti_dependencies_that_are_not_adjacent() {
    shows(
        "0 ok 0 9 | append x 1
         1 ok 0 9 | append y 1
         2 ok 0 9 | r x 1, r y
         3 ok 0 9 | r x, r y 1",
        &["G-nonadjacent"],
        Some(Condition::ReadCommitted),
        "G-nonadjacent: T3 read [] from y without 1, which T2 appended; T4 read 1 at the end of y, which T2 \
         appended; T4 read [] from x without 1, which T1 appended; T3 read 1 at the end of x, which T1 \
         appended: so T3 would have to come before itself",
    );
}

#[test]
fn a_skew_of_writes() {
    shows(
        "0 ok 0 9 | r x, append y 1
         1 ok 0 9 | r y, append x 1
         2 ok 10 11 | r x 1, r y 1",
        &["G2-item"],
        Some(Condition::SnapshotIsolation),
        "G2-item: T1 read [] from x without 1, which T2 appended; T2 read [] from y without 1, which T1 \
         appended: so T1 would have to come before itself",
    );
}

#[test]
fn a_stale_read_breaks_real_time_only_and_in_one_process_its_order_too() {
    let sentence = "G-single-realtime: T2 read [] from x without 1, which T1 appended; T1 had returned at \
                    0.0010 s, before T2 was invoked at 0.0020 s: so T2 would have to come before itself";
    shows(
        "0 ok 0 1 | append x 1
         1 ok 2 3 | r x
         1 ok 4 5 | r x 1",
        &["G-single-realtime"],
        Some(Condition::StrongSessionSerializable),
        sentence,
    );
    shows(
        "0 ok 0 1 | append x 1
         0 ok 2 3 | r x
         1 ok 4 5 | r x 1",
        &["G-single-process"],
        Some(Condition::Serializable),
        "G-single-process: T2 read [] from x without 1, which T1 appended; process 0 did T1 before T2: so T2 \
         would have to come before itself",
    );
}

#[test]
fn reads_of_what_failed_of_what_was_not_final_and_of_what_nobody_wrote() {
    shows(
        "0 fail 0 9 | append x 1
         1 ok 0 9 | r x 1",
        &["G1a"],
        Some(Condition::ReadUncommitted),
        "G1a: T2 read 1 in x, which T1 appended, and that transaction failed",
    );
    shows(
        "0 ok 0 9 | append x 1, append x 2
         1 ok 0 9 | r x 1
         2 ok 0 9 | r x 1 2",
        &["G1b", "G-single"],
        Some(Condition::ReadUncommitted),
        "G1b: T2 read 1 at the end of x, after which T1 appended more to it in the same transaction",
    );
    shows("0 ok 0 9 | r x 7", &["garbage-read"], None, "garbage-read: T1 read 7 in x, which nobody appended");
    shows(
        "0 fail 0 9 | append x 1
         1 ok 0 9 | append x 2
         2 ok 0 9 | r x 1 2",
        &["G1a", "dirty-update"],
        Some(Condition::ReadUncommitted),
        "G1a: T2 read 1 in x, which T1 appended, and that transaction failed",
    );
}

#[test]
fn lists_that_fork_or_repeat() {
    shows(
        "0 ok 0 9 | append x 1
         1 ok 0 9 | append x 2
         2 ok 0 9 | r x 1
         3 ok 0 9 | r x 2",
        &["incompatible-order"],
        None,
        "incompatible-order: neither is what T4 read from x a beginning of what T3 read, nor the other way \
         round: 2 where the other has 1",
    );
    shows(
        "0 ok 0 9 | append x 1
         1 ok 0 9 | r x 1 1",
        &["duplicate-elements"],
        None,
        "duplicate-elements: T2 read 1 twice in x",
    );
}

#[test]
fn transactions_that_contradict_themselves() {
    shows(
        "0 ok 0 9 | append x 1, r x",
        &["internal"],
        Some(Condition::ReadCommitted),
        "internal: T1 read [] from x, but by what it had read and appended itself that list ends with [1]",
    );
    shows(
        "0 ok 0 9 | r x 1, append x 1",
        &["future-read"],
        Some(Condition::ReadCommitted),
        "future-read: T1 read 1 in x before it appended that itself",
    );
}

#[test]
fn an_update_is_lost_whether_it_was_seen_or_not() {
    shows(
        "0 ok 0 9 | r x, append x 1
         1 ok 0 9 | r x, append x 2",
        &["lost-update"],
        Some(Condition::ReadCommitted),
        "lost-update: T1 and T2 both read [] from x and both appended to it: one of them did not see the \
            other",
    );
}

#[test]
fn what_nobody_read_comes_after_all_that_was_read() {
    let script = "0 ok 0 1 | append x 1
                  1 ok 2 3 | r x
                  2 ok 2 9 | append y 5";
    assert_eq!(judge(script, Condition::Serializable).result.verdict, Verdict::Valid);
    let result = judge(script, Condition::StrictSerializable).result;
    assert_eq!(result.verdict, Verdict::Invalid);
    assert!(result.counterexample.unwrap().sentence.starts_with("G-single-realtime"));
}

#[test]
fn a_valid_history_has_a_witness_without_what_failed_or_was_never_seen() {
    let judged = judge(
        "0 info 0 - | append x 9
         1 fail 0 1 | append x 8
         2 info 0 - | append x 1, append y 1
         3 ok 5 6 | r y
         4 ok 7 8 | r x 1",
        Condition::Serializable,
    );
    assert_eq!(judged.result.verdict, Verdict::Valid, "{}", judged.result.summary);
    assert_eq!(judged.witness[0].order, [4, 2, 6]);
}

#[test]
fn nothing_read_proves_nothing() {
    assert_eq!(judge("0 ok 0 1 | append x 1", Condition::Serializable).result.verdict, Verdict::Unknown);
}

#[test]
fn a_budget_that_runs_out_is_unknown_and_so_is_an_interrupt() {
    let script = "0 ok 0 1 | append x 1
                  1 ok 2 3 | r x";
    let budget = Budget::new(2, 1 << 20);
    let judged = check(records(script).into_iter().map(Ok), Condition::Serializable, &budget).unwrap();
    assert_eq!(judged.result.verdict, Verdict::Unknown);
    let interrupt = Interrupt::armed();
    interrupt.time_is_over();
    let budget = Budget { interrupt, ..Budget::default() };
    assert!(check(records(script).into_iter().map(Ok), Condition::Serializable, &budget).is_err());
}

#[test]
fn malformed_lines_are_named() {
    let refused = |mutate: fn(&mut Vec<Record>)| {
        let mut records = records("0 ok 0 1 | append x 1, r y");
        mutate(&mut records);
        let judged = check(records.into_iter().map(Ok), Condition::Serializable, &Budget::default());
        judged.unwrap_err().to_string()
    };
    let again = refused(|records| {
        let again = Record { process: 1, line: 3, ..records[0].clone() };
        records.push(again);
    });
    assert_eq!(again, "line 3: 1 is appended to x again: nothing could be told from reading it");
    assert_eq!(
        refused(|records| records[0].value = Datum::Int(3)),
        "line 1: the value of a transaction is not a list"
    );
    assert_eq!(
        refused(|records| records[1].value = Datum::List(Vec::new())),
        "line 2: 0 operations completed, but 2 were asked for in one transaction"
    );
    assert_eq!(
        refused(|records| records[0].f = "read".into()),
        "line 1: f is read, but a history of transactions has txn only"
    );
    assert!(refused(Vec::clear).contains("empty"));
}

#[test]
fn a_write_skew_is_snapshot_isolation_whoever_else_appends_unread() {
    // The third comes between the two in some orders that the answers allow, and then its append crosses.
    let skew = ["0 ok 0 9 | r x, append y 1, append z 1", "1 ok 0 9 | r y, append x 1"];
    for third in ["2 ok 10 11 | append z 2", "2 ok 0 11 | append z 2", "2 ok 0 9 | append z 2, r y 1"] {
        let [one, other] = skew;
        for lines in [[one, other, third], [third, one, other], [other, third, one]] {
            let script = lines.join("\n");
            let judged = judge(&script, Condition::SnapshotIsolation).result;
            assert_eq!(judged.verdict, Verdict::Valid, "{script}: {}", judged.summary);
            assert_eq!(judge(&script, Condition::Serializable).result.verdict, Verdict::Invalid);
        }
    }
}

#[test]
fn two_that_must_overlap_may_not_both_append_to_a_list_that_nobody_read() {
    let judged = judge(
        "0 ok 0 9 | r x, append y 1, append z 1
         1 ok 0 9 | r y, append x 1, append z 2
         2 ok 0 9 | append z 3
         3 ok 0 9 | append v 1, r w",
        Condition::SnapshotIsolation,
    );
    let result = judged.result;
    assert_eq!(result.verdict, Verdict::Invalid, "{}", result.summary);
    assert!(result.summary.ends_with("two of those of records 0, 1 do"), "{}", result.summary);
    assert_eq!(result.evidence["may_hold"], "read-committed");
}
