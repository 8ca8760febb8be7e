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
//! [`crate::versions`] judges). Without versions [`super::views`] asks for an order of each key's writes that
//! keeps what sessions saw, which is exact where a value has one writer. Nothing is then known across keys: a
//! sequentially consistent order of the whole, which implies all four, is asked for first. Where neither is
//! there and some value has several writers, the answer is unknown. Real time between sessions accuses
//! nobody.

use std::collections::{BTreeMap, HashMap};

use serde_json::json;

use super::registers::group_of;
use super::views::{Hop, Views, guarantee, is_read};
use super::{Algorithm, Condition, Guarantee, RealTime, judge_registers, unjudged};
use crate::budget::{Budget, Meter};
use crate::history::{History, Op, OpKind, Outcome, describe};
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
    let mut tally =
        Tally { asked: condition, by_version: 0, by_value: 0, without_version: 0, without_writer: 0 };
    let broken = by_versions(&sessions, &mut tally)
        .err()
        .map_or_else(|| by_values(history, &sessions, &mut tally, budget), |broken| Ok(Some(broken)));
    match broken {
        Ok(None) => {}
        Ok(Some(broken)) => return accused(condition, &broken, &sessions),
        Err(why) => return unjudged(condition, &format!("{why} while looking for an order of writes")),
    }
    let evidence = json!({"sessions": sessions.len(), "by_version": tally.by_version,
                          "by_value": tally.by_value, "without_version": tally.without_version});
    if tally.without_version > 0 {
        return by_one_order(history, &tally, &evidence, budget);
    }
    if tally.by_version + tally.by_value == 0 {
        let why = "no session did anything after something else, so nothing was compared";
        return Judged { result: CheckResult::nothing_judged(condition.as_str(), why), witness: Vec::new() };
    }
    let summary = format!(
        "none of {} sessions was shown the past or had its writes reordered in {} comparisons of versions",
        sessions.len(),
        tally.by_version
    );
    valid(condition, summary, evidence)
}

fn valid(condition: Condition, summary: String, evidence: serde_json::Value) -> Judged {
    let result = CheckResult::new(condition.as_str(), Verdict::Valid, summary)
        .with_evidence(evidence)
        .with_decided_by(Algorithm::Sessions.as_str());
    Judged { result, witness: Vec::new() }
}

fn accused(
    condition: Condition,
    (guarantee, why, culprits): &Broken<'_>,
    sessions: &BTreeMap<u64, Vec<&Op>>,
) -> Judged {
    let guarantee = guarantee.as_str().replace('-', " ");
    let of = sessions.values().map(Vec::len).sum();
    let result =
        CheckResult::new(condition.as_str(), Verdict::Invalid, format!("{guarantee}: broken for a session"))
            .with_evidence(json!({"guarantee": guarantee, "operations": of}))
            .with_decided_by(Algorithm::Sessions.as_str())
            .with_counterexample(counterexample(why.clone(), culprits, of));
    Judged { result, witness: Vec::new() }
}

/// Nothing is broken as far as values tell: one order for all would prove that nothing is, across keys too.
fn by_one_order(history: &History, tally: &Tally, evidence: &serde_json::Value, budget: &Budget) -> Judged {
    let condition = tally.asked;
    let mut judged = judge_registers(history, condition, RealTime::None, budget);
    if judged.result.verdict == Verdict::Valid {
        judged.result.summary = format!("every session guarantee holds: {}", judged.result.summary);
        return judged;
    }
    if tally.without_writer == 0 && tally.by_value > 0 {
        let summary = format!(
            "for each key an order of its writes agrees with what every session was shown, in {} comparisons \
             of values",
            tally.by_value
        );
        return valid(condition, summary, evidence.clone());
    }
    let summary = format!(
        "values show no broken guarantee, but of {} answers nobody knows whose write they show, and no one \
         order for all operations was found",
        tally.without_writer
    );
    let result =
        CheckResult::new(condition.as_str(), Verdict::Unknown, summary).with_evidence(evidence.clone());
    Judged { result, witness: Vec::new() }
}

struct Tally {
    asked: Condition,
    by_version: usize,
    by_value: usize,
    without_version: usize,
    /// Answers whose value has no one writer.
    without_writer: usize,
}

impl Tally {
    fn guarantees(&self) -> Vec<Guarantee> {
        match self.asked {
            Condition::Guarantee(one) => vec![one],
            _ => Guarantee::ALL.to_vec(),
        }
    }

    /// What was found, if it breaks what is asked for.
    fn found<'a>(&self, earlier: &Op, why: String, culprits: Vec<&'a Op>) -> Result<(), Broken<'a>> {
        let broken = guarantee(is_read(earlier), is_read(culprits[culprits.len() - 1]));
        match self.asked {
            Condition::Guarantee(asked) if asked != broken => Ok(()),
            _ => Err((broken, why, culprits)),
        }
    }
}

/// The operations of a session on each key.
fn by_key<'a>(ops: &[&'a Op]) -> BTreeMap<u64, Vec<&'a Op>> {
    let mut keys: BTreeMap<u64, Vec<&Op>> = BTreeMap::new();
    for &op in ops {
        keys.entry(op.key).or_default().push(op);
    }
    keys
}

fn by_versions<'a>(sessions: &BTreeMap<u64, Vec<&'a Op>>, tally: &mut Tally) -> Result<(), Broken<'a>> {
    for ops in sessions.values() {
        for ops in by_key(ops).values() {
            tally.without_version += ops.iter().filter(|op| version(op).is_none()).count();
            tally.by_version += compare(ops, tally, "version", version, false)?;
        }
        // Between keys only writes are ordered by zxid: a read of another key may be older, but not what is
        // written.
        tally.by_version += compare(ops, tally, "zxid", zxid, true)?;
    }
    Ok(())
}

/// What values tell, key by key.
fn by_values<'a>(
    history: &History,
    sessions: &BTreeMap<u64, Vec<&'a Op>>,
    tally: &mut Tally,
    budget: &Budget,
) -> Result<Option<Broken<'a>>, crate::budget::Exhausted> {
    let mut writers: HashMap<(u64, i64), usize> = HashMap::new();
    for op in history.ops().iter().filter(|op| op.outcome != Outcome::Fail) {
        if let Some(value) = op.kind().written() {
            *writers.entry((op.key, value)).or_default() += 1;
        }
    }
    let has_one_writer = |op: &&Op| {
        let value = match op.kind() {
            OpKind::Read { value } => value,
            kind => kind.written(),
        };
        value.is_none_or(|value| writers.get(&(op.key, value)) == Some(&1))
    };
    let guarantees = tally.guarantees();
    let mut keys: BTreeMap<u64, Views<'a>> = BTreeMap::new();
    for ops in sessions.values() {
        for (key, mut ops) in by_key(ops) {
            let all = ops.len();
            ops.retain(has_one_writer);
            tally.without_writer += all - ops.len();
            keys.entry(key).or_default().add(&ops, &guarantees);
        }
    }
    let mut meter = Meter::new(budget);
    for views in keys.values() {
        tally.by_value += views.compared;
        if let Some(hops) = views.contradiction(&mut meter)? {
            return Ok(contradicted(hops));
        }
    }
    Ok(None)
}

/// A circle of pairs, each of which says that what its second answer shows is no older than what its first
/// one does. The pair whose end was called last is shown last.
fn contradicted(mut hops: Vec<Hop<'_>>) -> Option<Broken<'_>> {
    let last = (0..hops.len()).max_by_key(|at| hops[*at].1.call)?;
    let turn = (last + 1) % hops.len();
    hops.rotate_left(turn);
    let (earlier, later) = *hops.last()?;
    let nothing = if later.kind() == (OpKind::Read { value: None }) {
        ", as if nothing had been written"
    } else if hops.len() > 1 {
        "; no order of the writes has all of it"
    } else {
        ""
    };
    let pairs: Vec<String> = hops
        .iter()
        .map(|(earlier, later)| {
            format!("{}, and afterwards, in the same session, {}", describe(earlier), describe(later))
        })
        .collect();
    let mut culprits: Vec<&Op> = hops.iter().flat_map(|(earlier, later)| [*earlier, *later]).collect();
    culprits.retain(|op| op.call != later.call);
    culprits.sort_by_key(|op| op.call);
    culprits.dedup_by_key(|op| op.call);
    culprits.push(later);
    Some((guarantee(is_read(earlier), is_read(later)), format!("{}{nothing}", pairs.join("; ")), culprits))
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
