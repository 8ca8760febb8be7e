//! The four guarantees of a session (Terry and others, PDIS 1994), each for itself.
//!
//! | guarantee | of two operations of a session, the second called after the first had returned |
//! |---|---|
//! | monotonic reads | a read shows no older state of a key than a read before it |
//! | read your writes | a read shows no older state of a key than a write before it made |
//! | monotonic writes | a write takes effect after a write before it |
//! | writes follow reads | a write takes effect after what a read before it saw |
//!
//! Where replies show versions, those are the order of a key's states, and zxids are the order of writes
//! across keys: comparing neighbours is then exact, as far as the system speaks the truth about itself (which
//! [`crate::versions`] judges). Without versions two facts remain, where a value has one writer: a write that
//! had returned before another was called is the older one, and a value that was left never comes back. What
//! is found by them is certain. What is not found may still be there: the order of writes in flight together
//! is not known to them, nor anything across keys. Then a sequentially consistent order of the whole is asked
//! for, which implies all four; without one the answer is unknown.

use std::collections::{BTreeMap, HashMap};

use serde_json::json;

use super::registers::group_of;
use super::{Algorithm, Condition, Guarantee, RealTime, judge_registers, unjudged};
use crate::budget::Budget;
use crate::history::{History, Op, OpKind, Outcome, Rank, describe};
use crate::verdict::{CheckResult, Judged, Verdict};
use crate::versions::counterexample;

/// A guarantee that was broken, why, and by which operations.
type Broken<'a> = (Guarantee, String, Vec<&'a Op>);

/// Judges every session by all guarantees, or by the one that is asked for.
pub(super) fn judge(history: &History, condition: Condition, budget: &Budget) -> Judged {
    let mut groups = HashMap::new();
    let mut sessions: BTreeMap<u64, Vec<&Op>> = BTreeMap::new();
    for op in history.ops() {
        let group = group_of(op, &mut groups);
        if op.outcome == Outcome::Ok && matches!(op.f.as_str(), "read" | "write" | "cas") {
            sessions.entry(group).or_default().push(op);
        }
    }
    if sessions.is_empty() {
        return unjudged(condition, "there is no answered operation to judge");
    }
    let writers = Writers::of(history);
    let mut tally = Tally { asked: condition, by_version: 0, by_value: 0, without_version: 0 };
    for ops in sessions.values() {
        if let Err((guarantee, why, culprits)) = judge_session(ops, &writers, &mut tally) {
            let guarantee = guarantee.as_str().replace('-', " ");
            let summary = format!("{guarantee}: broken within one session");
            let result = CheckResult::new(condition.as_str(), Verdict::Invalid, summary)
                .with_evidence(json!({"guarantee": guarantee, "operations": ops.len()}))
                .with_decided_by(Algorithm::Sessions.as_str())
                .with_counterexample(counterexample(why, &culprits, ops.len()));
            return Judged { result, witness: Vec::new() };
        }
    }
    let evidence = json!({"sessions": sessions.len(), "by_version": tally.by_version,
                          "by_value": tally.by_value, "without_version": tally.without_version});
    if tally.without_version > 0 {
        return by_one_order(history, condition, &evidence, budget);
    }
    let summary = format!(
        "none of {} sessions was shown the past or had its writes reordered in {} comparisons of versions",
        sessions.len(),
        tally.by_version
    );
    let result = CheckResult::new(condition.as_str(), Verdict::Valid, summary)
        .with_evidence(evidence)
        .with_decided_by(Algorithm::Sessions.as_str());
    Judged { result, witness: Vec::new() }
}

/// Nothing is broken as far as values tell: one order for all would prove that nothing is.
fn by_one_order(
    history: &History,
    condition: Condition,
    evidence: &serde_json::Value,
    budget: &Budget,
) -> Judged {
    let mut judged = judge_registers(history, condition, RealTime::None, budget);
    if judged.result.verdict == Verdict::Valid {
        judged.result.summary = format!("every session guarantee holds: {}", judged.result.summary);
        return judged;
    }
    let summary = "values and real time show no broken guarantee, but without versions the order of writes \
                   in flight together is not known, and no one order for all operations was found";
    let result =
        CheckResult::new(condition.as_str(), Verdict::Unknown, summary).with_evidence(evidence.clone());
    Judged { result, witness: Vec::new() }
}

struct Tally {
    asked: Condition,
    by_version: usize,
    by_value: usize,
    without_version: usize,
}

impl Tally {
    /// What was found, if it breaks what is asked for.
    fn found<'a>(&self, earlier: &Op, why: String, culprits: Vec<&'a Op>) -> Result<(), Broken<'a>> {
        let broken = guarantee(earlier, culprits[culprits.len() - 1]);
        match self.asked {
            Condition::Guarantee(asked) if asked != broken => Ok(()),
            _ => Err((broken, why, culprits)),
        }
    }
}

/// Who wrote a value, where only one operation did.
struct Writers<'a>(HashMap<(u64, i64), Option<&'a Op>>);

impl<'a> Writers<'a> {
    fn of(history: &'a History) -> Self {
        let mut writers: HashMap<(u64, i64), Option<&Op>> = HashMap::new();
        for op in history.ops().iter().filter(|op| op.outcome != Outcome::Fail) {
            if let Some(value) = op.kind().written() {
                writers.entry((op.key, value)).and_modify(|writer| *writer = None).or_insert(Some(op));
            }
        }
        Self(writers)
    }

    fn of_value(&self, key: u64, value: i64) -> Option<&'a Op> {
        self.0.get(&(key, value)).copied().flatten()
    }
}

fn is_read(op: &Op) -> bool {
    matches!(op.kind(), OpKind::Read { .. })
}

/// The guarantee that two kinds of operations are about.
fn guarantee(earlier: &Op, later: &Op) -> Guarantee {
    match (is_read(earlier), is_read(later)) {
        (true, true) => Guarantee::MonotonicReads,
        (false, true) => Guarantee::ReadYourWrites,
        (false, false) => Guarantee::MonotonicWrites,
        (true, false) => Guarantee::WritesFollowReads,
    }
}

fn judge_session<'a>(ops: &[&'a Op], writers: &Writers<'a>, tally: &mut Tally) -> Result<(), Broken<'a>> {
    let mut keys: BTreeMap<u64, Vec<&Op>> = BTreeMap::new();
    for &op in ops {
        keys.entry(op.key).or_default().push(op);
    }
    for ops in keys.values() {
        tally.without_version += ops.iter().filter(|op| version(op).is_none()).count();
        tally.by_version += compare(ops, tally, "version", version, false)?;
        tally.by_value += by_value(ops, writers, tally)?;
    }
    // Between keys only writes are ordered by zxid: a read of another key may be older, but not what is
    // written.
    tally.by_version += compare(ops, tally, "zxid", zxid, true)?;
    Ok(())
}

/// The version of the state that an operation made or saw. What nobody has written is older than every
/// version.
fn version(op: &Op) -> Option<i64> {
    op.version.or((op.kind() == OpKind::Read { value: None }).then_some(i64::MIN))
}

/// The zxid of the state that an operation made or saw. The header of a read says only where the member
/// stood.
fn zxid(op: &Op) -> Option<i64> {
    let header = if is_read(op) { None } else { op.zxid };
    op.mzxid.or(header).and_then(|zxid| i64::try_from(zxid).ok())
}

/// Compares each operation with the newest that its session had been answered before. `later_writes` asks
/// about writes only.
fn compare<'a>(
    ops: &[&'a Op],
    tally: &Tally,
    what: &str,
    measure: impl Fn(&Op) -> Option<i64>,
    later_writes: bool,
) -> Result<usize, Broken<'a>> {
    let measured: Vec<(&Op, i64)> = ops.iter().filter_map(|&op| Some((op, measure(op)?))).collect();
    let mut returned: Vec<(&Op, i64)> = measured.clone();
    returned.sort_by_key(|(op, _)| op.ret);
    let mut returned = returned.into_iter().peekable();
    let mut newest: [Option<(&Op, i64)>; 2] = [None, None];
    let mut compared = 0;
    for (op, now) in measured {
        while let Some(earlier) = returned.next_if(|(earlier, _)| earlier.ret < op.call) {
            let newest = &mut newest[usize::from(is_read(earlier.0))];
            if newest.is_none_or(|newest| newest.1 < earlier.1) {
                *newest = Some(earlier);
            }
        }
        if later_writes && is_read(op) {
            continue;
        }
        for (earlier, before) in newest.into_iter().flatten() {
            compared += 1;
            if now > before || (now == before && is_read(op)) {
                continue;
            }
            let show = |value: i64| match what {
                _ if value == i64::MIN => "nothing".to_owned(),
                "version" => format!("version {value}"),
                _ => format!("{what} {value:#x}"),
            };
            let why = format!(
                "{} had {}, and afterwards, in the same session, {} had {}",
                describe(earlier),
                show(before),
                describe(op),
                show(now)
            );
            tally.found(earlier, why, vec![earlier, op])?;
        }
    }
    Ok(compared)
}

/// What values and real time tell about one session and key.
fn by_value<'a>(ops: &[&'a Op], writers: &Writers<'a>, tally: &Tally) -> Result<usize, Broken<'a>> {
    let write_seen = |op: &'a Op| match op.kind() {
        OpKind::Read { value } => value.and_then(|value| writers.of_value(op.key, value)),
        kind => kind.written().and_then(|value| writers.of_value(op.key, value)),
    };
    let mut returned: Vec<&'a Op> = ops.to_vec();
    returned.sort_by_key(|op| op.ret);
    let mut returned = returned.into_iter().peekable();
    // Among what the session has seen: the write that was called last, and who saw it.
    let mut newest: Option<(&Op, &Op)> = None;
    // For each write (by its call) the first answer that showed it, and the two answers called last that
    // showed different writes.
    let mut first_seen: HashMap<Rank, &Op> = HashMap::new();
    let mut latest: [Option<(Rank, &Op)>; 2] = [None, None];
    let mut compared = 0;
    for &op in ops {
        while let Some(earlier) = returned.next_if(|earlier| earlier.ret < op.call) {
            let Some(write) = write_seen(earlier) else { continue };
            if newest.is_none_or(|(newest, _)| newest.call < write.call) {
                newest = Some((write, earlier));
            }
            first_seen.entry(write.call).or_insert(earlier);
            note_latest(&mut latest, write.call, earlier);
        }
        let Some((new_write, saw_new)) = newest else { continue };
        compared += 1;
        if op.kind() == (OpKind::Read { value: None }) {
            let why = format!(
                "{}, and afterwards, in the same session, {}, as if nothing had been written",
                describe(saw_new),
                describe(op)
            );
            tally.found(saw_new, why, vec![saw_new, op])?;
            continue;
        }
        let Some(write) = write_seen(op) else { continue };
        if write.ret < new_write.call {
            let why = format!(
                "{}, and afterwards, in the same session, {}, which is older: {} before {}",
                describe(saw_new),
                describe(op),
                describe(write),
                describe(new_write)
            );
            tally.found(saw_new, why, culprits([write, new_write, saw_new, op]))?;
            continue;
        }
        if let Some(&first) = first_seen.get(&write.call)
            && let Some((_, other)) = latest.iter().flatten().find(|(shown, _)| *shown != write.call)
            && first.ret < other.call
        {
            let why = format!(
                "{}, then {}, and afterwards, in the same session, {} again; no value was written twice",
                describe(first),
                describe(other),
                describe(op)
            );
            tally.found(other, why, culprits([first, other, other, op]))?;
        }
    }
    Ok(compared)
}

/// Each operation once, by call, the last one given at the end.
fn culprits(ops: [&Op; 4]) -> Vec<&Op> {
    let last = ops[3];
    let mut culprits: Vec<&Op> = ops.into_iter().filter(|op| op.call != last.call).collect();
    culprits.sort_by_key(|op| op.call);
    culprits.dedup_by_key(|op| op.call);
    culprits.push(last);
    culprits
}

/// Keeps the two answers called last that showed different writes.
fn note_latest<'a>(latest: &mut [Option<(Rank, &'a Op)>; 2], write: Rank, op: &'a Op) {
    let newer = |than: Option<(Rank, &Op)>| than.is_none_or(|(_, than)| than.call < op.call);
    match *latest {
        [Some((first, _)), _] if first == write => {
            if newer(latest[0]) {
                latest[0] = Some((write, op));
            }
        }
        [_, Some((second, _))] if second == write => {
            if newer(latest[1]) {
                latest[1] = Some((write, op));
            }
        }
        [first, second] => {
            let called = |seen: Option<(Rank, &Op)>| seen.map(|(_, seen)| seen.call);
            let older = usize::from(called(second) < called(first));
            if newer(latest[older]) {
                latest[older] = Some((write, op));
            }
        }
    }
}
