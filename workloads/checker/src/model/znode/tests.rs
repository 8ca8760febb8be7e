//! What the model must say, and that it says what a simulated ensemble does.

use std::collections::HashSet;

use super::simulate::{Breach, Plan, falsify, simulate};
use super::*;
use crate::chance::Chance;
use crate::history::{Datum, EventKind};
use crate::model::pair;

/// A line of JSON as a record, as far as these tests need it.
fn record(number: u64, line: &str) -> Record {
    let fields: Datum = serde_json::from_str(line).unwrap();
    let text = |name: &str| fields.get(name).and_then(Datum::as_text);
    let int = |name: &str| fields.get(name).and_then(Datum::as_int).map(i64::cast_unsigned);
    let hex = |name: &str| text(name).map(|text| u64::from_str_radix(&text[2..], 16).unwrap());
    let kind = match text("type").unwrap() {
        "invoke" => EventKind::Invoke,
        "ok" => EventKind::Ok,
        "fail" => EventKind::Fail,
        _ => EventKind::Info,
    };
    let value = fields.get("value").cloned().unwrap_or_default();
    Record {
        line: number,
        index: number - 1,
        time: int("time"),
        session: hex("session"),
        zxid: hex("zxid"),
        error: text("error").map(Into::into),
        ..Record::new(int("process").unwrap(), kind, text("f").unwrap(), Datum::Nil, value)
    }
}

fn read(text: &str) -> Result<Vec<Call<Op>>, String> {
    let records = (1..).zip(text.lines()).map(|(number, line)| Ok(record(number, line)));
    pair(&Tree::default(), records).map_err(|error| error.to_string())
}

pub(super) fn calls_of(records: Vec<Record>) -> Vec<Call<Op>> {
    pair(&Tree::default(), records.into_iter().map(Ok)).unwrap()
}

/// Whether some order explains every answer: tries all of them, but none twice.
pub(super) fn has_order(tree: &Tree, calls: &[Call<Op>]) -> bool {
    fn search(
        tree: &Tree,
        calls: &[Call<Op>],
        done: u64,
        state: &State,
        seen: &mut HashSet<(u64, State)>,
    ) -> bool {
        let open = |at: &usize| done & (1 << at) == 0;
        let Some(first) = (0..calls.len()).filter(open).map(|at| calls[at].ret).min() else { return true };
        if (0..calls.len()).filter(open).all(|at| calls[at].is_open()) {
            return true;
        }
        seen.insert((done, state.clone()))
            && (0..calls.len()).filter(open).any(|at| {
                calls[at].call < first
                    && tree
                        .apply(state, &calls[at].op)
                        .is_some_and(|state| search(tree, calls, done | 1 << at, &state, seen))
            })
    }
    search(tree, calls, 0, &tree.initial(), &mut HashSet::new())
}

/// Operations one after the other, each with its completion, in the form of the module's table.
fn one_by_one(lines: &[&str]) -> bool {
    let calls = read(&lines.join("\n")).unwrap();
    has_order(&Tree::default(), &calls)
}

macro_rules! done {
    ($f:literal, $asked:expr, $answered:literal) => {
        concat!(
            r#"{"process":0,"type":"invoke","session":"0x7","f":""#,
            $f,
            r#"","value":"#,
            $asked,
            "}\n",
            r#"{"process":0,"type":"ok","session":"0x7","f":""#,
            $f,
            r#"","value":"#,
            $answered,
            "}"
        )
    };
}

macro_rules! refused {
    ($f:literal, $asked:literal, $error:literal) => {
        concat!(
            r#"{"process":0,"type":"invoke","session":"0x7","f":""#,
            $f,
            r#"","value":"#,
            $asked,
            "}\n",
            r#"{"process":0,"type":"fail","session":"0x7","f":""#,
            $f,
            r#"","value":null,"error":""#,
            $error,
            "\"}"
        )
    };
}

const MAKE_A: &str = done!("create", r#"{"path":"/a","data":"x"}"#, r#"{"path":"/a"}"#);

#[test]
fn the_example_of_the_module_is_read_and_valid() {
    let doc = include_str!("mod.rs");
    let lines: Vec<&str> = doc.lines().filter_map(|line| line.strip_prefix("//! {\"process\"")).collect();
    assert_eq!(lines.len(), 5);
    let text: Vec<String> = lines.iter().map(|rest| format!("{{\"process\"{rest}")).collect();
    let calls = read(&text.join("\n")).unwrap();
    let described: Vec<String> = calls.iter().map(|call| call.op.to_string()).collect();
    assert_eq!(
        described,
        [
            "create sequential /a/q- = x → /a/q-0000000000",
            "children /a → [q-0000000000]",
            "end of session 0x10001"
        ]
    );
    assert_eq!(calls[0].op.zxid, Some(0x1_0000_0003));
    assert!(calls[2].is_open());
    assert!(has_order(&Tree::below("/a").unwrap(), &calls));
    // In a new ensemble there is no /a.
    assert!(!has_order(&Tree::default(), &calls));
}

#[test]
fn a_stat_is_exact() {
    let stat = |claim: &str| {
        let asked = r#"{"process":0,"type":"invoke","f":"get","value":{"path":"/a"}}"#;
        let answered = r#"{"process":0,"type":"ok","f":"get","value":{"data":"yz","stat":{"#;
        let get = format!("{asked}\n{answered}{claim}}}}}}}");
        one_by_one(&[
            MAKE_A,
            done!("set", r#"{"path":"/a","data":"yz","version":0}"#, r#"{"stat":{"version":1}}"#),
            done!("create", r#"{"path":"/a/b"}"#, r#"{"path":"/a/b"}"#),
            done!("create", r#"{"path":"/a/c"}"#, "null"),
            done!("delete", r#"{"path":"/a/b"}"#, "null"),
            &get,
        ])
    };
    for (field, right) in [
        ("version", 1),
        ("cversion", 3),
        ("aversion", 0),
        ("ephemeralOwner", 0),
        ("dataLength", 2),
        ("numChildren", 1),
    ] {
        assert!(stat(&format!(r#""{field}":{right}"#)), "{field}");
        assert!(!stat(&format!(r#""{field}":{}"#, right + 1)), "{field}");
    }
    assert!(stat(r#""czxid":5,"mzxid":7,"pzxid":"0x9","version":1"#));
    assert!(!stat(r#""czxid":5,"mzxid":4"#), "changed before it was made");
    assert!(!stat(r#""czxid":5,"pzxid":4"#), "had children before it was made");
}

#[test]
fn a_number_counts_creates_and_never_comes_back() {
    let number = |path: &str| {
        let create = format!(
            "{}\n{{\"process\":0,\"type\":\"ok\",\"f\":\"create\",\"value\":{{\"path\":\"{path}\"}}}}",
            r#"{"process":0,"type":"invoke","f":"create","value":{"path":"/a/s-","flags":["sequential"]}}"#
        );
        one_by_one(&[
            MAKE_A,
            done!("create", r#"{"path":"/a/b"}"#, "null"),
            done!("create", r#"{"path":"/a/s-","flags":["sequential"]}"#, r#"{"path":"/a/s-0000000001"}"#),
            done!("delete", r#"{"path":"/a/s-0000000001"}"#, "null"),
            &create,
        ])
    };
    assert!(number("/a/s-0000000002"));
    assert!(!number("/a/s-0000000001"));
    assert!(!number("/a/s-0000000003"));
    assert!(!number("/a/s-2"));
}

#[test]
fn a_number_may_be_the_whole_name() {
    let slash = done!("create", r#"{"path":"/","flags":["sequential"]}"#, r#"{"path":"/0000000000"}"#);
    let below = done!(
        "create",
        r#"{"path":"/0000000000/","flags":["sequential"]}"#,
        r#"{"path":"/0000000000/0000000000"}"#
    );
    let seen = done!(
        "children",
        r#"{"path":"/"}"#,
        r#"{"children":["zookeeper","0000000000"],"stat":{"cversion":0}}"#
    );
    assert!(one_by_one(&[slash, below, seen]));
}

#[test]
fn refusals_are_observations() {
    let ephemeral =
        done!("create", r#"{"path":"/e","flags":["ephemeral"]}"#, r#"{"stat":{"ephemeralOwner":7}}"#);
    let child = done!("create", r#"{"path":"/a/b"}"#, "null");
    for (before, refusal) in [
        (child, refused!("delete", r#"{"path":"/a"}"#, "not-empty")),
        (child, refused!("create", r#"{"path":"/a/b"}"#, "NodeExists")),
        (child, refused!("create", r#"{"path":"/x/y"}"#, "no-node")),
        (child, refused!("get", r#"{"path":"/x"}"#, "NONODE")),
        (child, done!("exists", r#"{"path":"/x"}"#, "null")),
        (child, refused!("set", r#"{"path":"/a","version":1}"#, "bad-version")),
        // The version is looked at before the children.
        (child, refused!("delete", r#"{"path":"/a","version":4}"#, "bad-version")),
        (ephemeral, refused!("create", r#"{"path":"/e/x"}"#, "no-children-for-ephemerals")),
        (ephemeral, refused!("create", r#"{"path":"/a"}"#, "some-other-error")),
    ] {
        assert!(one_by_one(&[MAKE_A, before, refusal]), "{refusal}");
    }
    for refusal in [
        refused!("delete", r#"{"path":"/a"}"#, "not-empty"),
        refused!("create", r#"{"path":"/b"}"#, "node-exists"),
        refused!("create", r#"{"path":"/a/b"}"#, "no-node"),
        refused!("set", r#"{"path":"/a","version":0}"#, "bad-version"),
        refused!("create", r#"{"path":"/a/b"}"#, "no-children-for-ephemerals"),
        refused!("create", r#"{"path":"/a"}"#, "no-node"),
        done!("create", r#"{"path":"/a"}"#, "null"),
    ] {
        assert!(!one_by_one(&[MAKE_A, refusal]), "{refusal}");
    }
}

#[test]
fn a_multi_happens_whole_or_not_at_all() {
    let fails = r#"{"process":0,"type":"invoke","f":"multi","value":{"ops":[
        {"f":"create","path":"/b"},{"f":"set","path":"/a","data":"y","version":3},
{"f":"delete","path":"/x"}]}}"#
        .replace('\n', "");
    let failed = |rest: &str| format!(r#"{fails}{}{{"process":0,"type":"fail","f":"multi",{rest}}}"#, "\n");
    assert!(one_by_one(&[MAKE_A, &failed(r#""value":{"failed":1},"error":"bad-version""#)]));
    assert!(one_by_one(&[MAKE_A, &failed(r#""value":null,"error":"bad-version""#)]));
    assert!(!one_by_one(&[MAKE_A, &failed(r#""value":{"failed":2},"error":"bad-version""#)]));
    assert!(!one_by_one(&[MAKE_A, &failed(r#""value":null,"error":"no-node""#)]));
    let half = done!("exists", r#"{"path":"/b"}"#, r#"{"stat":{"version":0}}"#);
    assert!(!one_by_one(&[MAKE_A, &failed(r#""value":null,"error":"bad-version""#), half]));
    let done = done!(
        "multi",
        concat!(
            r#"{"ops":[{"f":"check","path":"/a","version":0},"#,
            r#"{"f":"create","path":"/a/s","flags":["sequential"]},"#,
            r#"{"f":"create","path":"/a/s","flags":["sequential"]}]}"#
        ),
        r#"{"results":[{},{"path":"/a/s0000000000"},{"path":"/a/s0000000001"}]}"#
    );
    let seen = done!("children", r#"{"path":"/a"}"#, r#"{"children":["s0000000001","s0000000000"]}"#);
    assert!(one_by_one(&[MAKE_A, done, seen]));
}

#[test]
fn a_session_takes_its_znodes_with_it_at_once_and_changes_nothing_more() {
    let make = done!("create", r#"{"path":"/a/e","flags":["ephemeral"]}"#, "null");
    let other = done!("create", r#"{"path":"/a/f","flags":["ephemeral"]}"#, "null");
    let close = done!("close", "null", "null");
    let both = done!("children", r#"{"path":"/a"}"#, r#"{"children":["e","f"],"stat":{"cversion":2}}"#);
    let one = done!("children", r#"{"path":"/a"}"#, r#"{"children":["f"]}"#);
    let none = done!("children", r#"{"path":"/a"}"#, r#"{"children":[],"stat":{"cversion":4}}"#);
    assert!(one_by_one(&[MAKE_A, make, other, both, close, none]));
    assert!(!one_by_one(&[MAKE_A, make, other, close, one]));
    assert!(!one_by_one(&[MAKE_A, make, other, close, both]));
    assert!(!one_by_one(&[MAKE_A, make, other, none]), "nothing ended the session");
    assert!(!one_by_one(&[MAKE_A, close, make]), "a session that has ended");
    // Left, it may end at any time, or never.
    let leave = r#"{"process":9,"type":"invoke","session":"0x7","f":"leave","value":null}"#;
    assert!(one_by_one(&[MAKE_A, make, other, leave, both, both]));
    assert!(one_by_one(&[MAKE_A, make, other, leave, both, none]));
    assert!(!one_by_one(&[MAKE_A, make, other, leave, none, both]));
    assert!(!one_by_one(&[MAKE_A, make, other, leave, one]));
}

#[test]
fn lines_without_meaning_are_named() {
    for (line, reason) in [
        (
            r#""f":"create","value":{"path":"/a","flags":["ephemeral"]}"#,
            "an ephemeral znode needs the session",
        ),
        (r#""f":"create","value":{"path":"/a","flags":["ttl"]}"#, "a znode that is ttl"),
        (r#""f":"get","value":{"path":"a"}"#, "is no path"),
        (r#""f":"set","value":{"path":"/a/"}"#, "is no path"),
        (r#""f":"get","value":{"path":"/a//b"}"#, "is no path"),
        (r#""f":"get","value":{"path":"/a/.."}"#, "is no path"),
        (r#""f":"create","value":{"path":"a","flags":["sequential"]}"#, "is no beginning of a path"),
        (r#""f":"delete","value":{"path":"/a","version":4294967296}"#, "is no version"),
        (r#""f":"delete","value":17"#, "needs a path"),
        (r#""f":"multi","value":{"ops":[{"f":"get","path":"/a"}]}"#, "a multi has no get"),
        (r#""f":"close","value":null"#, "names no session"),
        (r#""f":"pop","value":{"path":"/a"}"#, "has no pop"),
    ] {
        let error = read(&format!(r#"{{"process":0,"type":"invoke",{line}}}"#)).unwrap_err();
        assert!(error.starts_with("line 1: ") && error.contains(reason), "{error}");
    }
    let left = r#"{"process":0,"type":"invoke","f":"leave","session":"0x1"}
{"process":0,"type":"ok","f":"leave","session":"0x1"}"#;
    assert!(read(left).unwrap_err().contains("leave it open"));
}

#[test]
fn equal_trees_are_equal_states_however_they_came_about() {
    let calls = read(
        &[
            done!("create", r#"{"path":"/a"}"#, "null"),
            done!("create", r#"{"path":"/b"}"#, "null"),
            done!("set", r#"{"path":"/a","data":"x"}"#, "null"),
            done!("set", r#"{"path":"/b","data":"y"}"#, "null"),
        ]
        .join("\n"),
    )
    .unwrap();
    let tree = Tree::default();
    let run = |order: [usize; 4]| {
        order.into_iter().fold(tree.initial(), |state, at| tree.apply(&state, &calls[at].op).unwrap())
    };
    assert!(run([0, 1, 2, 3]) == run([1, 3, 0, 2]));
    assert!(run([0, 1, 2, 2]) != run([0, 1, 2, 3]));
}

#[test]
fn subtrees_that_nothing_crosses_are_parts() {
    let parted = |lines: &[&str]| Tree::default().parted(&read(&lines.join("\n")).unwrap()).is_parted();
    let a = done!("create", r#"{"path":"/a","flags":["ephemeral"]}"#, "null");
    let b = done!("set", r#"{"path":"/b/c/d"}"#, "null");
    let below = done!("create", r#"{"path":"/b/s","flags":["sequential"]}"#, "null");
    assert!(parted(&[a, b, below]));
    for crossing in [
        done!("children", r#"{"path":"/"}"#, "null"),
        done!("create", r#"{"path":"/s","flags":["sequential"]}"#, "null"),
        done!("multi", r#"{"ops":[{"f":"check","path":"/a"},{"f":"check","path":"/b"}]}"#, "null"),
        done!("close", "null", "null"),
    ] {
        assert!(!parted(&[a, b, crossing]), "{crossing}");
    }
    assert!(parted(&[a, done!("close", "null", "null")]));
    let base = Tree::below("/b/c").unwrap();
    let inside = read(&[b, done!("set", r#"{"path":"/b/c/e"}"#, "null")].join("\n")).unwrap();
    let base = base.parted(&inside);
    assert!(base.part(&inside[0].op).is_some() && base.part(&inside[0].op) != base.part(&inside[1].op));
    assert!(!Tree::below("/b/c").unwrap().parted(&read(a).unwrap()).is_parted());
}

pub(super) fn drawn(calls: &[Call<Op>]) -> String {
    calls.iter().map(|call| format!("\n{} {}..{} {}", call.process, call.call, call.ret, call.op)).collect()
}

/// How many histories of each kind a test looks at.
pub(super) fn rounds(few: u64) -> u64 {
    std::env::var("CHECKER_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(few)
}

pub(super) fn varied(seed: u64) -> Plan {
    let mut random = Chance(seed ^ 0xA5A5);
    Plan {
        ops: 4 + random.below(9),
        clients: 2 + random.below(4),
        roots: 1 + random.below(2),
        names: 1 + random.below(2),
        values: random.below(3),
        lost: [0, 100, 300][random.below(3_usize)],
        stats: random.per_mille(600),
        zxids: random.per_mille(700),
        crossing: random.per_mille(500),
        sessions: random.per_mille(600),
        ..Plan::small(seed)
    }
}

#[test]
fn what_a_simulated_ensemble_does_is_valid_and_parts_agree_with_the_whole() {
    let mut parted = 0;
    for seed in 0..rounds(1500) {
        let mut records = simulate(&varied(seed));
        let calls = calls_of(records.clone());
        assert!(has_order(&Tree::default(), &calls), "seed {seed}: {}", drawn(&calls));
        falsify(&mut records, &mut Chance(seed));
        let Ok(calls) = pair(&Tree::default(), records.into_iter().map(Ok)) else { continue };
        let tree = Tree::default().parted(&calls);
        if !tree.is_parted() {
            continue;
        }
        parted += 1;
        let mut parts: Vec<u64> = calls.iter().filter_map(|call| tree.part(&call.op)).collect();
        parts.sort_unstable();
        parts.dedup();
        let by_parts = parts.into_iter().all(|part| {
            let own: Vec<_> =
                calls.iter().filter(|call| tree.part(&call.op) == Some(part)).cloned().collect();
            has_order(&tree, &own)
        });
        assert_eq!(by_parts, has_order(&tree, &calls), "seed {seed}: {}", drawn(&calls));
    }
    assert!(parted > rounds(1500) / 20, "{parted} fell into parts");
}

#[test]
fn every_rule_that_is_broken_is_noticed() {
    for breach in Breach::ALL {
        let mut noticed = 0;
        for seed in 0..300 {
            let plan =
                Plan { ops: 24, clients: 2, roots: 1, lost: 0, breach: Some(breach), ..Plan::small(seed) };
            noticed += u32::from(!has_order(&Tree::default(), &calls_of(simulate(&plan))));
        }
        assert!(noticed > 5, "{breach:?} noticed in {noticed} of 300");
    }
}
