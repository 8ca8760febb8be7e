//! The claimed order explains true histories, and no false one; what it calls certain is.

use super::super::simulate::{Breach, Plan, falsify, simulate};
use super::super::tests::{calls_of, drawn, has_order, rounds, varied};
use super::*;
use crate::chance::Chance;
use crate::history::{Datum, EventKind, Record};
use crate::model::pair;

/// One operation: process, moments of call and return, what was asked and answered, and its zxid.
type Line<'a> = (u64, u64, u64, &'a str, &'a str, &'a str, u64);

fn calls(lines: &[Line<'_>]) -> Vec<Call<Op>> {
    let datum = |text: &str| serde_json::from_str::<Datum>(text).unwrap();
    let mut records = Vec::new();
    for &(process, call, ret, f, asked, answered, zxid) in lines {
        let session = Some(100 + process);
        let record = |time, kind, value| Record {
            index: time,
            time: Some(time),
            session,
            ..Record::new(process, kind, f, Datum::Nil, value)
        };
        records.push(record(call, EventKind::Invoke, datum(asked)));
        if ret != 0 {
            let (kind, value, error) = match answered.strip_prefix('!') {
                Some(error) => (EventKind::Fail, Datum::Nil, Some(error.into())),
                None => (EventKind::Ok, datum(answered), None),
            };
            let zxid = (zxid != 0).then_some(zxid);
            records.push(Record { zxid, error, ..record(ret, kind, value) });
        }
    }
    records.sort_by_key(|record| record.index);
    pair(&Tree::default(), records.into_iter().map(Ok)).unwrap()
}

fn find(lines: &[Line<'_>]) -> Finding {
    claimed(&Tree::default(), &calls(lines), Promise::Linearizable)
}

fn kind(lines: &[Line<'_>]) -> Option<Kind> {
    if let Finding::Contradicted(contradiction) = find(lines) { Some(contradiction.kind) } else { None }
}

const A: &str = r#"{"path":"/a"}"#;
const X: &str = r#"{"path":"/a","data":"x"}"#;
const Y: &str = r#"{"path":"/a","data":"y"}"#;
const SAW_X: &str = r#"{"data":"x"}"#;
const SAW_Y: &str = r#"{"data":"y"}"#;

#[test]
fn the_claimed_order_is_found_whatever_the_order_of_calls() {
    let lines = [
        (0, 1, 9, "set", Y, r#"{"stat":{"version":1,"mzxid":12,"czxid":11}}"#, 12),
        (1, 2, 8, "create", X, "null", 11),
        (2, 3, 7, "get", A, SAW_X, 11),
        (3, 4, 6, "get", A, "!no-node", 10),
    ];
    assert_eq!(find(&lines), Finding::Confirmed(vec![3, 1, 2, 0]));
}

#[test]
fn two_updates_with_one_zxid_contradict_each_other() {
    let lines = [(0, 1, 4, "create", X, "null", 11), (1, 2, 3, "create", r#"{"path":"/b"}"#, "null", 11)];
    assert_eq!(kind(&lines), Some(Kind::SameZxid));
}

#[test]
fn a_zxid_that_goes_back_in_real_time_contradicts_the_promise() {
    let lines = [(0, 1, 2, "create", X, "null", 12), (1, 3, 4, "create", r#"{"path":"/b"}"#, "null", 11)];
    assert_eq!(kind(&lines), Some(Kind::Backwards));
    // Another order explains the answers: it is no violation of linearizability.
    assert!(has_order(&Tree::default(), &calls(&lines)));
}

#[test]
fn an_answer_that_does_not_follow_is_certain_unless_something_is_open() {
    let mut lines =
        vec![(0, 1, 2, "create", X, "null", 11), (0, 3, 4, "set", Y, r#"{"stat":{"version":2}}"#, 12)];
    assert_eq!(kind(&lines), Some(Kind::Answer(Misfit::Shows("version"))));
    // An open set may be the version between.
    lines.push((1, 2, 0, "set", r#"{"path":"/a","data":"z"}"#, "", 0));
    assert_eq!(find(&lines), Finding::Confirmed(vec![0, 1, 2]));
    // This one can't, but nobody knows what else it did.
    lines.pop();
    lines.push((1, 2, 0, "set", r#"{"path":"/b","data":"z"}"#, "", 0));
    assert!(matches!(find(&lines), Finding::Useless(_)));
}

#[test]
fn a_read_that_says_a_zxid_one_off_finds_its_place() {
    let lines = [
        (0, 1, 2, "create", X, "null", 11),
        (0, 3, 6, "set", Y, "null", 12),
        (1, 4, 5, "get", A, SAW_Y, 11),
        (2, 3, 7, "get", A, SAW_X, 0),
    ];
    assert!(matches!(find(&lines), Finding::Confirmed(_)));
    let stale = [lines[0], lines[1], (1, 7, 8, "get", A, SAW_X, 11)];
    assert_eq!(kind(&stale), Some(Kind::Answer(Misfit::Shows("data"))));
    let never = [lines[0], lines[1], (1, 4, 5, "get", A, r#"{"data":"z"}"#, 11)];
    assert_eq!(kind(&never), Some(Kind::Answer(Misfit::Shows("data"))));
}

#[test]
fn a_stale_read_is_valid_where_only_updates_are_promised() {
    let stale = [
        (0, 1, 2, "create", X, "null", 11),
        (0, 3, 4, "set", Y, "null", 12),
        (1, 5, 6, "get", A, SAW_X, 11),
        (1, 7, 8, "get", A, SAW_Y, 12),
    ];
    let find = |lines: &[Line<'_>]| claimed(&Tree::default(), &calls(lines), Promise::OrderedSequential);
    assert!(matches!(find(&stale), Finding::Confirmed(_)));
    assert_eq!(kind(&stale), Some(Kind::Answer(Misfit::Shows("data"))));
    // But a session does not go back.
    let back = [stale[0], stale[1], (1, 5, 6, "get", A, SAW_Y, 12), (1, 7, 8, "get", A, SAW_X, 11)];
    assert!(!matches!(find(&back), Finding::Confirmed(_)));
    // Nor does anybody see what nobody has asked for.
    let future = [stale[0], (1, 2, 3, "get", A, SAW_Y, 12), (0, 4, 5, "set", Y, "null", 12)];
    assert!(!matches!(find(&future), Finding::Confirmed(_)));
}

#[test]
fn an_open_update_is_placed_where_its_zxid_shows() {
    let lines = [
        (0, 1, 2, "create", X, "null", 11),
        (1, 3, 0, "set", r#"{"path":"/a","data":"z"}"#, "", 0),
        (2, 3, 0, "set", r#"{"path":"/a","data":"w"}"#, "", 0),
        (0, 4, 5, "get", A, r#"{"data":"z","stat":{"mzxid":13,"version":1}}"#, 13),
        (0, 6, 7, "set", Y, r#"{"stat":{"version":2,"mzxid":14}}"#, 14),
    ];
    assert_eq!(find(&lines), Finding::Confirmed(vec![0, 1, 3, 4]));
}

#[test]
fn a_session_that_was_left_ends_where_its_znode_is_gone() {
    let e = r#"{"path":"/e","flags":["ephemeral"]}"#;
    let mut lines = vec![
        (0, 1, 2, "create", e, "null", 11),
        (1, 3, 4, "exists", r#"{"path":"/e"}"#, r#"{"stat":{"ephemeralOwner":100}}"#, 11),
        (1, 6, 7, "exists", r#"{"path":"/e"}"#, "null", 12),
    ];
    assert_eq!(kind(&lines), Some(Kind::Answer(Misfit::Accepted)));
    lines.push((0, 5, 0, "leave", "null", "", 0));
    assert_eq!(find(&lines), Finding::Confirmed(vec![0, 1, 2, 3]));
    // Somebody was told: it ended by then, whatever was seen.
    lines.pop();
    lines[2] = (1, 8, 9, "exists", r#"{"path":"/e"}"#, r#"{"stat":{}}"#, 11);
    lines.push((0, 5, 6, "expire", "null", "null", 0));
    assert!(!matches!(find(&lines), Finding::Confirmed(_)));
}

#[test]
fn an_order_that_lies_is_not_verified() {
    let calls = calls(&[
        (0, 1, 2, "create", X, "null", 11),
        (0, 3, 4, "set", Y, "null", 12),
        (1, 5, 6, "get", A, SAW_Y, 12),
    ]);
    let verify = |order: &[usize], promise| verify(&Tree::default(), &calls, order, promise);
    assert_eq!(verify(&[0, 1, 2], Promise::Linearizable), Ok(()));
    for lie in [&[0, 1][..], &[0, 1, 1, 2], &[0, 1, 2, 3], &[1, 0, 2], &[0, 2, 1], &[]] {
        assert!(verify(lie, Promise::Linearizable).is_err(), "{lie:?}");
        assert!(verify(lie, Promise::OrderedSequential).is_err(), "{lie:?}");
    }
}

#[test]
fn true_histories_are_confirmed_and_false_ones_never() {
    let (mut lost, mut confirmed, mut wrong, mut contradicted) = (0u64, 0u64, 0u64, 0u64);
    for seed in 0..rounds(2000) {
        let plan = Plan { zxids: true, ..varied(seed) };
        let mut records = simulate(&plan);
        if plan.breach.is_none() && Chance(seed).per_mille(300) {
            // Not every reply of a read has a header.
            for record in records.iter_mut().filter(|record| matches!(&*record.f, "get" | "expire")) {
                record.zxid = None;
            }
        }
        let calls = calls_of(records.clone());
        let finding = claimed(&Tree::default(), &calls, Promise::Linearizable);
        let is_confirmed = matches!(finding, Finding::Confirmed(_));
        assert!(!matches!(finding, Finding::Contradicted(_)), "seed {seed}: {finding:?}{}", drawn(&calls));
        let open = calls.iter().any(|call| call.is_open() || call.op.ask == Ask::End);
        assert!(open || is_confirmed, "seed {seed}: {finding:?}{}", drawn(&calls));
        lost += u64::from(open);
        confirmed += u64::from(open && is_confirmed);
        falsify(&mut records, &mut Chance(seed));
        let Ok(calls) = pair(&Tree::default(), records.into_iter().map(Ok)) else { continue };
        let finding = claimed(&Tree::default(), &calls, Promise::Linearizable);
        if !has_order(&Tree::default(), &calls) {
            wrong += 1;
            contradicted += u64::from(matches!(finding, Finding::Contradicted(_)));
            assert!(!matches!(finding, Finding::Confirmed(_)), "seed {seed}: {}", drawn(&calls));
        }
    }
    println!(
        "with something open, {confirmed} of {lost} confirmed; of {wrong} wrong, {contradicted} contradicted"
    );
    assert!(confirmed * 10 > lost * 9, "{confirmed} of {lost}");
    assert!(contradicted * 10 > wrong, "{contradicted} of {wrong}");
}

#[test]
fn rules_that_are_broken_are_never_confirmed() {
    for breach in Breach::ALL {
        let mut contradicted = 0;
        for seed in 0..150 {
            let plan =
                Plan { ops: 60, clients: 3, roots: 1, lost: 0, breach: Some(breach), ..Plan::small(seed) };
            let calls = calls_of(simulate(&plan));
            match claimed(&Tree::default(), &calls, Promise::Linearizable) {
                Finding::Contradicted(_) => contradicted += 1,
                Finding::Confirmed(order) => {
                    assert_eq!(verify(&Tree::default(), &calls, &order, Promise::Linearizable), Ok(()));
                }
                Finding::Useless(_) => {}
            }
        }
        assert!(contradicted > 15, "{breach:?} contradicted in {contradicted} of 150");
    }
}
