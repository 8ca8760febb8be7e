//! Everything that is decided after a run.
//!
//! The judgement is a function of the history and of a few facts that stand beside it ([`Beside`]): what
//! every member held at the end, and when which fault was in force. Nothing here looks at a cluster, so a run
//! can be judged again from its folder at any time, and a simulated run is judged by the same code.
//!
//! Each promise has its own line:
//!
//! | check | promise | judged |
//! |---|---|---|
//! | `history` | the record is whole; without that nothing is valid | always |
//! | `words` | every operation is one that the workload has, so that somebody judges it | where one is not |
//! | named in the workload's file | what the workload's history shows by itself | always |
//! | `session-order` | no session is shown the past | always |
//! | `durability` | every acknowledged change is on every member at the end | where something is to stay |
//! | `convergence` | all members hold the same at the end | of a run |
//! | `load` | the load was strong enough to have found a violation | of a run |
//!
//! The last one never accuses the system: a weak load leaves the run undecided. A history whose end is
//! missing is held against what stands beside it by lower bounds only ([`checker::durability`]), because more
//! happened than it says.
//!
//! Each target is judged by what it promises ([`Promise`](crate::Promise)). A sync and a read after it
//! are linearizable in the bundled node; in Apache ZooKeeper a sync is no quorum operation
//! (ZOOKEEPER-1675), so of a target that promises only what ZooKeeper does the updates are judged as
//! `linearizable-updates` and the reads by their session's order alone; sets, lists and nodes are then
//! judged by what no stale read can excuse, and by the last reads. Where nothing is promised the same
//! checks measure.

mod shares;
mod strength;

use std::collections::BTreeMap;

use checker::figures::count;
use checker::history::{Extent, Function, History, Loaded};
use checker::verdict::{CheckResult, Verdict};
use checker::{Budget, durability, order, sessions};
use serde_json::json;

use crate::workload::Kind;

pub use crate::beside::{Beside, FaultWindow, Requirements};
pub use crate::case::{Case, Effort, Timed};
pub use shares::Shares;
pub use strength::{FaultLoad, SideLoad, Tally, strength};

/// Judges a history that is known to be whole, as the simulator's is.
#[must_use]
pub fn judge(kind: Kind, history: &History, beside: &Beside, budget: &Budget) -> Vec<CheckResult> {
    judge_with(kind, &Case::new(history, Extent::Whole, beside, &Effort::of(budget)))
}

fn judge_with(kind: Kind, case: &Case<'_>) -> Vec<CheckResult> {
    let Case { history, beside, effort, .. } = case;
    let mut results = promises(kind, case);
    results.push(effort.run(|| session_order(case)));
    results.extend(kind.durability().map(|durability| beside.promise.judged(case.run(durability))));
    results
        .push(effort.run(|| durability::check_convergence(history, &beside.final_states, &beside.members)));
    results.push(effort.run(|| strength(history, beside)));
    results
}

/// No session is shown the past; where only one guarantee of a session is promised, its own check judges
/// that.
fn session_order(case: &Case<'_>) -> CheckResult {
    let Case { history, beside, .. } = case;
    match beside.promise.order() {
        Some(order::Condition::Guarantee(one)) => CheckResult::nothing_judged(
            sessions::NAME,
            format!("of a session no more is promised than {}", one.as_str()),
        ),
        _ => sessions::check_in(history, &beside.orders),
    }
}

/// What the history shows by itself.
fn promises(kind: Kind, case: &Case<'_>) -> Vec<CheckResult> {
    let promise = case.beside.promise;
    kind.promises().iter().map(|check| promise.judged(case.run(*check))).collect()
}

/// Judges a history that was read from a file, which may be cut short.
#[must_use]
pub fn judge_loaded(kind: Kind, loaded: &Loaded, beside: &Beside, effort: &Effort<'_>) -> Vec<CheckResult> {
    let mut results = vec![completeness(loaded)];
    results.extend(words(kind, &loaded.history));
    results.extend(judge_with(kind, &Case::new(&loaded.history, loaded.extent, beside, effort)));
    as_far_as_known(results, loaded.extent)
}

/// Judges a history alone, without anything beside it: what `check` does for a file from elsewhere. Which
/// workload it was is told by its operations.
#[must_use]
pub fn judge_history_alone(loaded: &Loaded, effort: &Effort<'_>) -> Vec<CheckResult> {
    let kind = Kind::of_functions(loaded.history.ops().iter().map(|op| op.f));
    let mut results = vec![completeness(loaded)];
    results.extend(words(kind, &loaded.history));
    results.extend(promises(kind, &Case::new(&loaded.history, loaded.extent, &Beside::default(), effort)));
    results.push(effort.run(|| sessions::check(&loaded.history)));
    as_far_as_known(results, loaded.extent)
}

/// Where lines are missing in the middle, what the others say is no violation. What members hold at the end
/// is compared without them.
fn as_far_as_known(results: Vec<CheckResult>, extent: Extent) -> Vec<CheckResult> {
    let allow = |result: CheckResult| {
        if result.name == durability::CONVERGENCE { result } else { extent.allow(result) }
    };
    results.into_iter().map(allow).collect()
}

/// The check `history`: whether the record is whole.
#[must_use]
pub fn completeness(loaded: &Loaded) -> CheckResult {
    let evidence =
        json!({"lines": loaded.events, "operations": loaded.history.ops().len(), "plain": loaded.plain});
    let (verdict, summary) = match &loaded.problem {
        None if loaded.plain => {
            let lines = count(loaded.events);
            (Verdict::Valid, format!("{lines} lines from elsewhere, without a trailer to check"))
        }
        None => (Verdict::Valid, format!("{} lines, as the trailer says", count(loaded.events))),
        Some(problem) => (Verdict::Unknown, problem.clone()),
    };
    CheckResult::new("history", verdict, summary).with_evidence(evidence)
}

/// The check `words`, where some operations are none of the workload's: no check of it looks at them.
fn words(kind: Kind, history: &History) -> Option<CheckResult> {
    let mut unjudged: BTreeMap<Function, usize> = BTreeMap::new();
    for op in history.ops() {
        *unjudged.entry(op.f).or_default() += 1;
    }
    unjudged.retain(|function, _| !kind.may_have(*function));
    let (first, _) = unjudged.first_key_value()?;
    let summary = format!(
        "{} operations are none of the workload {}'s, and nobody judges them: {first}{}",
        count(unjudged.values().sum::<usize>()),
        kind.name(),
        match unjudged.len() {
            1 => String::new(),
            others => format!(" and {} others", others - 1),
        }
    );
    let names: BTreeMap<&str, usize> = unjudged.iter().map(|(word, of)| (word.as_str(), *of)).collect();
    Some(CheckResult::new("words", Verdict::Unknown, summary).with_evidence(json!(names)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use checker::durability::FinalState;
    use checker::history::{EventKind, HistoryWriter, Value, load};

    use crate::Promise;

    /// A small true run: create, write, read, compare-and-set, all by one session.
    fn recorded() -> Vec<u8> {
        let mut writer = HistoryWriter::new(Vec::new());
        let ops = [
            (Function::WRITE, Value::One(1), Value::One(1), 0),
            (Function::WRITE, Value::One(2), Value::One(2), 1),
            (Function::READ, Value::Null, Value::One(2), 1),
            (Function::CAS, Value::Pair(Some(2), 3), Value::Pair(Some(2), 3), 2),
        ];
        for ((f, asked, told, version), at) in ops.into_iter().zip(0_u64..) {
            let mut invoke = checker::history::Event::new(0, EventKind::Invoke, f, 0, asked, at * 100);
            invoke.node = Some(1);
            let mut ok = checker::history::Event::new(0, EventKind::Ok, f, 0, told, at * 100 + 50);
            (ok.version, ok.zxid, ok.session) = (Some(version), Some(100 + at), Some(9));
            writer.write(&mut invoke).unwrap();
            writer.write(&mut ok).unwrap();
        }
        writer.finish().unwrap().into_inner
    }

    fn beside() -> Beside {
        let state =
            |member| FinalState { member, key: 0, version: Some(2), value: Some(3), mzxid: None, list: None };
        Beside { members: vec![1, 2], final_states: vec![state(1), state(2)], ..Beside::default() }
    }

    #[test]
    fn a_true_run_is_valid_on_every_line() {
        let loaded = load(recorded().as_slice()).unwrap();
        let results = judge_loaded(Kind::REGISTER, &loaded, &beside(), &Effort::of(&Budget::default()));
        let names: Vec<&str> = results.iter().map(|result| result.name.as_str()).collect();
        assert_eq!(
            names,
            [
                "history",
                "linearizable",
                "version-order",
                "session-order",
                "durability",
                "convergence",
                "load"
            ]
        );
        for result in &results {
            assert_eq!(result.verdict, Verdict::Valid, "{}: {}", result.name, result.summary);
        }
    }

    #[test]
    fn operations_that_no_check_looks_at_leave_a_run_undecided() {
        let mut writer = HistoryWriter::new(Vec::new());
        for (f, kind, time) in [("purge", EventKind::Invoke, 0), ("purge", EventKind::Ok, 5)] {
            let word = Function::read(f).unwrap();
            writer.write(&mut checker::history::Event::new(0, kind, word, 0, Value::Null, time)).unwrap();
        }
        let loaded = load(writer.finish().unwrap().into_inner.as_slice()).unwrap();
        let effort = Effort::of(&Budget::default());
        for results in
            [judge_loaded(Kind::REGISTER, &loaded, &beside(), &effort), judge_history_alone(&loaded, &effort)]
        {
            assert_eq!(results[1].name, "words");
            assert_eq!(results[1].verdict, Verdict::Unknown);
            assert!(results[1].summary.contains("1 operations are none of the workload register's"));
        }
        for kind in Kind::ALL {
            assert!(kind.functions().iter().all(|function| kind.may_have(*function)), "{kind:?}");
        }
    }

    #[test]
    fn a_stale_read_accuses_only_who_promised_none() {
        let mut writer = HistoryWriter::new(Vec::new());
        let ops = [(0, Function::WRITE, 1, 0), (0, Function::WRITE, 2, 1), (7, Function::READ, 1, 0)];
        for ((process, f, value, version), at) in ops.into_iter().zip(0_u64..) {
            let asked = if f == Function::READ { Value::Null } else { Value::One(value) };
            let mut invoke = checker::history::Event::new(process, EventKind::Invoke, f, 0, asked, at * 100);
            let mut ok =
                checker::history::Event::new(process, EventKind::Ok, f, 0, Value::One(value), at * 100 + 50);
            (ok.version, ok.zxid, ok.session) = (Some(version), Some(100 + at), Some(process + 1));
            writer.write(&mut invoke).unwrap();
            writer.write(&mut ok).unwrap();
        }
        let loaded = load(writer.finish().unwrap().into_inner.as_slice()).unwrap();
        let first = |promise| {
            let beside = Beside { promise, ..Beside::default() };
            judge(Kind::REGISTER, &loaded.history, &beside, &Budget::default()).remove(0)
        };
        assert_eq!(first(Promise::Linearizable).verdict, Verdict::Invalid);
        assert_eq!(
            {
                let first = first(Promise::LinearizableUpdates);
                (first.name, first.verdict)
            },
            ("linearizable-updates".to_owned(), Verdict::Valid)
        );
    }

    /// Reads of one session after two writes of another, each with the version of what it shows.
    fn read_afterwards(shown: &[i64]) -> History {
        let writes = [(0, Function::WRITE, 1), (0, Function::WRITE, 2)].into_iter();
        let ops = writes.chain(shown.iter().map(|&value| (7, Function::READ, value)));
        let mut events = Vec::new();
        for ((process, f, value), at) in ops.zip(0_u64..) {
            let asked = if f == Function::READ { Value::Null } else { Value::One(value) };
            let event = |kind, value, time| {
                let mut event = checker::history::Event::new(process, kind, f, 0, value, time);
                (event.session, event.index) = (Some(process + 1), time);
                event
            };
            let mut ok = event(EventKind::Ok, Value::One(value), 2 * at + 1);
            ok.version = Some(value);
            events.extend([event(EventKind::Invoke, asked, 2 * at), ok]);
        }
        History::from_events(events).unwrap()
    }

    #[test]
    fn orders_below_linearizability_accuse_of_what_they_promise_and_of_nothing_else() {
        use Promise::{
            Linearizable, MonotonicReads, MonotonicWrites, OrderedSequential, ReadYourWrites, Sequential,
            Session, WritesFollowReads,
        };
        let verdict = |shown: &[i64], promise: Promise| {
            let history = read_afterwards(shown);
            let beside = Beside { promise, ..Beside::default() };
            let results = judge(Kind::REGISTER, &history, &beside, &Budget::default());
            let found = results.iter().find_map(|result| result.counterexample.as_ref());
            let verdict = Verdict::of(results.iter().take(3));
            assert_eq!(found.is_some(), verdict == Verdict::Invalid, "{promise}");
            assert_eq!(results[0].verdict, verdict, "{promise}: {}", results[0].summary);
            (results[0].name.clone(), verdict)
        };
        let (stale, back) = (&[1, 2][..], &[2, 1][..]);
        for (promise, check, of_stale, of_back) in [
            (Linearizable, "linearizable", Verdict::Invalid, Verdict::Invalid),
            (OrderedSequential, "ordered-sequential", Verdict::Valid, Verdict::Invalid),
            (Sequential, "sequential-order", Verdict::Valid, Verdict::Invalid),
            (Session, "session-guarantees", Verdict::Valid, Verdict::Invalid),
            (MonotonicReads, "monotonic-reads", Verdict::Valid, Verdict::Invalid),
            (ReadYourWrites, "read-your-writes", Verdict::Valid, Verdict::Valid),
            (MonotonicWrites, "monotonic-writes", Verdict::Valid, Verdict::Valid),
            (WritesFollowReads, "writes-follow-reads", Verdict::Valid, Verdict::Valid),
        ] {
            assert_eq!(verdict(stale, promise), (check.to_owned(), of_stale));
            assert_eq!(verdict(back, promise), (check.to_owned(), of_back));
        }
    }

    #[test]
    fn a_history_cut_short_is_never_valid() {
        let bytes = recorded();
        let cut = bytes.len() - 20;
        let loaded = load(&bytes[..cut]).unwrap();
        let results = judge_loaded(Kind::REGISTER, &loaded, &beside(), &Effort::of(&Budget::default()));
        assert_eq!(Verdict::of(&results), Verdict::Unknown);
    }

    /// What two clients did to key 0, one after the other and overlapping, without a fault; and what is there
    /// at the end.
    fn clean_run() -> (Vec<u8>, Beside) {
        let mut writer = HistoryWriter::new(Vec::new());
        let mut line = |process, kind, f, value, time, version: Option<i64>| {
            let mut event = checker::history::Event::new(process, kind, f, 0, value, time);
            (event.node, event.session) = (Some(1), Some(process + 1));
            (event.version, event.zxid) = (version, version.map(|version| 100 + version.unsigned_abs()));
            writer.write(&mut event).unwrap();
        };
        for at in 0..20_i64 {
            let (now, value) = (at.unsigned_abs() * 100, Value::One(at));
            line(1, EventKind::Invoke, Function::READ, Value::Null, now, None);
            line(0, EventKind::Invoke, Function::WRITE, value.clone(), now + 10, None);
            line(0, EventKind::Ok, Function::WRITE, value.clone(), now + 20, Some(at));
            line(1, EventKind::Ok, Function::READ, value, now + 30, Some(at));
        }
        let state = |member| FinalState {
            member,
            key: 0,
            version: Some(19),
            value: Some(19),
            mzxid: None,
            list: None,
        };
        let beside =
            Beside { members: vec![1, 2], final_states: vec![state(1), state(2)], ..Beside::default() };
        (writer.finish().unwrap().into_inner, beside)
    }

    fn verdict_of(bytes: &[u8], beside: &Beside) -> Verdict {
        let Ok(loaded) = load(bytes) else { return Verdict::Unknown };
        Verdict::of(&judge_loaded(Kind::REGISTER, &loaded, beside, &Effort::of(&Budget::default())))
    }

    #[test]
    fn a_history_of_a_clean_run_never_accuses_wherever_it_is_cut() {
        let (whole, beside) = clean_run();
        assert_eq!(
            verdict_of(&whole, &beside),
            Verdict::Unknown,
            "too few operations for the check of the load"
        );
        for cut in 1..whole.len() {
            assert_eq!(verdict_of(&whole[..cut], &beside), Verdict::Unknown, "cut at {cut}");
        }
    }

    #[test]
    fn a_history_of_a_clean_run_never_accuses_whichever_of_its_lines_are_missing() {
        let (whole, beside) = clean_run();
        let text = String::from_utf8(whole).unwrap();
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        for first in 0..lines.len() {
            for missing in 1..=4.min(lines.len() - first) {
                let left = [&lines[..first], &lines[first + missing..]].concat().concat();
                assert_eq!(
                    verdict_of(left.as_bytes(), &beside),
                    Verdict::Unknown,
                    "{missing} lines from {first}"
                );
            }
        }
    }

    #[test]
    fn a_beginning_still_accuses_who_lost_what_was_acknowledged_in_it() {
        let (whole, mut beside) = clean_run();
        let state = |member| FinalState {
            member,
            version: Some(3),
            value: Some(3),
            ..beside.final_states[0].clone()
        };
        beside.final_states = vec![state(1), state(2)];
        assert_eq!(verdict_of(&whole[..whole.len() / 2], &beside), Verdict::Invalid);
    }

    #[test]
    fn a_member_that_lost_the_last_write_makes_the_run_invalid() {
        let loaded = load(recorded().as_slice()).unwrap();
        let mut beside = beside();
        beside.final_states[1].version = Some(1);
        beside.final_states[1].value = Some(2);
        let results = judge_loaded(Kind::REGISTER, &loaded, &beside, &Effort::of(&Budget::default()));
        assert_eq!(Verdict::of(&results), Verdict::Invalid);
        let invalid: Vec<&str> = results
            .iter()
            .filter(|result| result.verdict == Verdict::Invalid)
            .map(|result| result.name.as_str())
            .collect();
        assert_eq!(invalid, ["durability", "convergence"]);
    }

    #[test]
    fn what_stands_beside_a_history_survives_its_json_form() {
        let beside = beside();
        let text = serde_json::to_string(&beside).unwrap();
        assert_eq!(serde_json::from_str::<Beside>(&text).unwrap(), beside);
    }
}
