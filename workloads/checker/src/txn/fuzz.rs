//! The checker against the definition, on many small histories; and that the fuzzer would notice a broken
//! rule.

use std::collections::{BTreeMap, HashSet};

use super::brute::{self, Op, Tried};
use super::rule::{Rule, with_broken};
use super::simulated::{Done, Size, Store, falsify, records, run, tried};
use super::{Condition, check};
use crate::budget::{Budget, Meter};
use crate::chance::Chance;
use crate::history::NEVER;
use crate::verdict::{Judged, Verdict};

/// Histories for each run; `TXN_FUZZ_CASES` asks for more.
fn cases() -> u64 {
    std::env::var("TXN_FUZZ_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(10_000)
}

fn random_history(seed: u64) -> (Store, Vec<Done>) {
    let mut chance = Chance(seed);
    let store = Store::ALL[chance.below(Store::ALL.len())];
    let size = Size::small(&mut chance);
    let mut done = run(store, size, &mut chance);
    if chance.percent(25) {
        for _ in 0..1 + chance.below(2) {
            falsify(&mut done, &mut chance);
        }
    }
    (store, done)
}

fn judge(done: &[Done], condition: Condition, text: bool) -> Judged {
    check(records(done, text).into_iter().map(Ok), condition, &Budget::default()).unwrap()
}

/// What the definition says.
fn truth(done: &[Done], condition: Condition) -> bool {
    let mut meter = Meter::new(&Budget::default());
    brute::serializable(&tried(done), condition.order(), &mut meter).unwrap()
}

const SERIALIZABLE: [Condition; 3] =
    [Condition::Serializable, Condition::StrongSessionSerializable, Condition::StrictSerializable];

/// Whether the checker is wrong about a history, or does not decide what it should.
fn disagreement(done: &[Done], text: bool) -> Option<String> {
    for condition in SERIALIZABLE {
        let truth = truth(done, condition);
        let result = judge(done, condition, text).result;
        let agrees = match result.verdict {
            Verdict::Valid => truth,
            Verdict::Invalid => !truth,
            Verdict::Unknown => truth && result.summary.contains("nothing was tested"),
        };
        if !agrees {
            return Some(format!("{condition} is {truth}, but {}: {}", result.verdict, result.summary));
        }
        if let Some(shown) = &result.counterexample
            && !shown.rechecked
        {
            return Some(format!("{condition}: not a violation by itself: {}", shown.sentence));
        }
    }
    None
}

#[test]
fn the_checker_decides_as_the_definition_does() {
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    let mut count = |what: String| *counts.entry(what).or_default() += 1;
    for seed in 0..cases() {
        let (store, done) = random_history(seed);
        if let Some(why) = disagreement(&done, seed % 3 == 0) {
            panic!("seed {seed}, {store:?}: {why}: {done:#?}");
        }
        let judged = judge(&done, Condition::StrictSerializable, false);
        count(format!("strict {}", judged.result.verdict));
        if let Some(anomalies) = judged.result.evidence["anomalies"].as_object() {
            anomalies.keys().for_each(|name| count(name.clone()));
        }
    }
    println!("{counts:#?}");
    // The claim is empty if a kind of history never came up.
    let names = [
        "strict valid",
        "strict invalid",
        "duplicate-elements",
        "garbage-read",
        "incompatible-order",
        "G1a",
        "G1b",
        "dirty-update",
        "internal",
        "future-read",
        "lost-update",
        "G0",
        "G1c",
        "G-single",
        "G-nonadjacent",
        "G2-item",
        "G0-realtime",
        "G1c-process",
        "G1c-realtime",
        "G-single-process",
        "G-single-realtime",
        "G2-item-realtime",
    ];
    for name in names {
        let least = if name.starts_with("strict") { cases() / 10 } else { 1 };
        assert!(counts.get(name).is_some_and(|&count| count >= least), "too few: {name}");
    }
    assert!(!counts.keys().any(|name| name.contains("cycle-exists")), "a small cycle was not named");
}

#[test]
fn a_store_without_faults_is_never_accused() {
    for seed in 0..cases() / 4 {
        let mut chance = Chance(seed ^ 0xfa17);
        let size = Size { txns: 40, processes: 6, ..Size::small(&mut chance) };
        let done = run(Store::Strict, size, &mut chance);
        let judged = judge(&done, Condition::StrictSerializable, false);
        assert_eq!(judged.result.verdict, Verdict::Valid, "seed {seed}: {} {done:#?}", judged.result.summary);
        let order = &judged.witness[0].order;
        assert!(order.len() >= done.iter().filter(|txn| txn.ret != NEVER).count() / 2);
    }
}

#[test]
fn what_breaks_a_condition_breaks_all_stronger_ones() {
    for seed in 0..cases() / 4 {
        let (_, done) = random_history(seed ^ 0x0c0d);
        let verdicts = Condition::ALL.map(|condition| judge(&done, condition, false).result.verdict);
        let broken: Vec<bool> = verdicts.iter().map(|&verdict| verdict == Verdict::Invalid).collect();
        assert!(broken.is_sorted(), "seed {seed}: {verdicts:?}");
        let valid: Vec<bool> = verdicts.iter().map(|&verdict| verdict != Verdict::Valid).collect();
        assert!(valid.is_sorted(), "seed {seed}: {verdicts:?}");
    }
}

/// Snapshot isolation by its definition: starts and commits in some order.
struct Snapshots<'a> {
    txns: &'a [Tried],
    dead: HashSet<(Vec<Stage>, Vec<Vec<u32>>)>,
}

#[derive(Clone, PartialEq, Eq, Hash)]
enum Stage {
    Before,
    Started(Vec<Vec<u32>>),
    After,
}

impl Snapshots<'_> {
    fn go(&mut self, stages: &[Stage], lists: &[Vec<u32>]) -> bool {
        let is_over = |(txn, stage): (&Tried, &Stage)| *stage == Stage::After || txn.ret == NEVER;
        if self.txns.iter().zip(stages).all(is_over) {
            return true;
        }
        if !self.dead.insert((stages.to_vec(), lists.to_vec())) {
            return false;
        }
        for (at, txn) in self.txns.iter().enumerate() {
            let mut next = stages.to_vec();
            match &stages[at] {
                Stage::Before if reads_fit(txn, lists) => {
                    next[at] = Stage::Started(lists.to_vec());
                    if self.go(&next, lists) {
                        return true;
                    }
                }
                Stage::Started(start) => {
                    let mut after = lists.to_vec();
                    let mut overtaken = false;
                    for op in &txn.ops {
                        if let Op::Append(key, element) = op {
                            overtaken |= start[*key as usize] != lists[*key as usize];
                            after[*key as usize].push(*element);
                        }
                    }
                    next[at] = Stage::After;
                    if !overtaken && self.go(&next, &after) {
                        return true;
                    }
                }
                Stage::Before | Stage::After => {}
            }
        }
        false
    }
}

fn reads_fit(txn: &Tried, lists: &[Vec<u32>]) -> bool {
    let mut lists = lists.to_vec();
    txn.ops.iter().all(|op| match op {
        Op::Append(key, element) => {
            lists[*key as usize].push(*element);
            true
        }
        Op::Read(key, list) => lists[*key as usize] == *list,
    })
}

#[test]
fn snapshot_isolation_is_decided_as_its_definition_does() {
    let (mut valid, mut invalid, mut unordered, mut skewed) = (0, 0, 0, 0);
    for seed in 0..cases() {
        let (store, done) = random_history(seed ^ 0x51);
        let tried = tried(&done);
        if tried.len() > 6 {
            continue;
        }
        let mut search = Snapshots { txns: &tried, dead: HashSet::new() };
        let truth = search.go(&vec![Stage::Before; tried.len()], &vec![Vec::new(); 3]);
        let result = judge(&done, Condition::SnapshotIsolation, false).result;
        let context = || format!("seed {seed}, {store:?}, {truth}: {}: {done:#?}", result.summary);
        match result.verdict {
            Verdict::Valid => {
                assert!(truth, "{}", context());
                skewed += u64::from(result.summary.contains("G2-item"));
                valid += 1;
            }
            Verdict::Invalid => {
                assert!(!truth, "{}", context());
                // Where no order of unread appends is left, there is no cycle to be drawn.
                assert!(result.counterexample.as_ref().is_none_or(|found| found.rechecked), "{}", context());
                unordered += u64::from(result.counterexample.is_none());
                invalid += 1;
            }
            Verdict::Unknown if result.summary.contains("nothing was tested") => assert!(truth),
            Verdict::Unknown => panic!("undecided: {}", context()),
        }
    }
    println!("{valid} valid, {skewed} of them with skew, {invalid} invalid, {unordered} of them by no cycle");
    assert!(valid > 0 && invalid > 0 && skewed > 0);
}

/// Breaks a rule and counts the histories until that is noticed.
fn noticed(rule: Rule) -> Option<u64> {
    (0..cases().max(40_000)).find(|&seed| {
        let (_, done) = random_history(seed);
        with_broken(rule, || disagreement(&done, false)).is_some() && disagreement(&done, false).is_none()
    })
}

const RULES: [Rule; 19] = [
    Rule::WriteAfterWrite,
    Rule::ReadAfterWrite,
    Rule::WriteAfterRead,
    Rule::UnseenAfterSeen,
    Rule::UnseenAfterReaders,
    Rule::UnseenAfterReaderThatAppends,
    Rule::ReaderThatAppendsIsNotBeforeItself,
    Rule::ProcessOrder,
    Rule::RealtimeOrder,
    Rule::OpenEndsNever,
    Rule::SeenMeansHappened,
    Rule::OwnAppendsAreSeen,
    Rule::ReadsRepeat,
    Rule::NoUpdateIsLost,
    Rule::NoIntermediateRead,
    Rule::NoAbortedRead,
    Rule::NoGarbage,
    Rule::NoDuplicates,
    Rule::OneOrder,
];

#[test]
fn every_broken_rule_is_noticed() {
    let missed: Vec<Rule> = RULES
        .into_iter()
        .filter(|&rule| {
            let noticed = noticed(rule);
            println!("{rule:?}: {noticed:?}");
            noticed.is_none()
        })
        .collect();
    assert!(missed.is_empty(), "{missed:?}");
}

/// What the inference misses, the replay does not.
#[test]
fn no_broken_rule_makes_a_wrong_history_valid() {
    for rule in RULES {
        for seed in 0..cases() / 4 {
            let (_, done) = random_history(seed);
            for condition in SERIALIZABLE {
                let verdict = with_broken(rule, || judge(&done, condition, false).result.verdict);
                assert!(
                    verdict != Verdict::Valid || truth(&done, condition),
                    "{rule:?}, seed {seed}: {condition}: {done:#?}"
                );
            }
        }
    }
}
