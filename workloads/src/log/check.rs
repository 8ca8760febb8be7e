//! What must be true of a log.
//!
//! - **`log`**: a record that is read was sent. An offset holds one record, for every reader and for ever.
//!   What was read, or acknowledged at an offset, is read by everybody who reads past that offset from then
//!   on; so no gap fills later that somebody has read past. Records that one process sent one after the other
//!   stand in that order. A record that stands at two offsets is a duplicate: duplicates are counted, and
//!   where the promise is `exactly-once` they are a violation.
//! - **`durability`**: what was acknowledged is read at the end, on each member.
//!
//! A poll from an offset reads past every offset from there to its last record; where it has fewer records
//! than it asked for it reads to the end of the log, as it was. Where the promise is `linearizable` it shows
//! all that was known before it was called. Elsewhere an end that was another one for another reader accuses
//! nobody: a record may be shown late, until somebody was shown one behind it.
//!
//! (What is looked for is what Jepsen looked for in Kafka, Redpanda and others: lost writes, inconsistent
//! offsets, and orders of one sender that are not kept. Its transactions over logs are not judged here.)

use std::collections::{BTreeMap, HashMap};

use checker::durability::{DURABILITY, missing};
use checker::figures::count;
use checker::history::{Op, Outcome, Rank, Value, describe};
use checker::verdict::{CheckResult, Verdict};
use checker::versions::counterexample;
use serde_json::json;

use super::{POLL, SEND};
use crate::beside::Beside;
use crate::case::Case;
use crate::promise::Promise;

/// A sentence, and the operations that show it.
type Finding<'a> = (String, Vec<&'a Op>);

/// A poll that was answered.
struct Poll<'a> {
    op: &'a Op,
    from: i64,
    /// How many records it asked for.
    most: i64,
    /// Offsets and records, in the order of the answer.
    records: Vec<(i64, i64)>,
}

/// Who said that a record stands at an offset.
struct Placed<'a> {
    record: i64,
    /// The first who knew, by the end of its operation.
    by: &'a Op,
}

/// A log, as its history tells of it.
struct Told<'a> {
    /// By record, in the order of their calls. Elsewhere than in a run one may be sent several times.
    sends: HashMap<i64, Vec<&'a Op>>,
    polls: Vec<Poll<'a>>,
    /// By offset.
    placed: BTreeMap<i64, Placed<'a>>,
}

/// The offset that an acknowledgement told.
fn offset_of(op: &Op) -> Option<i64> {
    if op.f == SEND && op.outcome == Outcome::Ok { op.told.integer() } else { None }
}

impl<'a> Told<'a> {
    fn of(ops: &[&'a Op]) -> Result<Self, Finding<'a>> {
        let mut told = Self { sends: HashMap::new(), polls: Vec::new(), placed: BTreeMap::new() };
        for op in ops.iter().copied() {
            match (op.f, &op.asked) {
                (SEND, Value::One(record)) => {
                    told.sends.entry(*record).or_default().push(op);
                }
                (POLL, Value::Pair(Some(from), most)) if op.outcome == Outcome::Ok => {
                    let records = pairs(op)?;
                    told.polls.push(Poll { op, from: *from, most: *most, records });
                }
                _ => {}
            }
        }
        // Whoever knew first is compared with all others.
        let mut known: Vec<(&'a Op, i64, i64)> = Vec::new();
        for (record, sends) in &told.sends {
            known.extend(sends.iter().filter_map(|op| Some((*op, offset_of(op)?, *record))));
        }
        for poll in &told.polls {
            poll.is_in_order()?;
            known.extend(poll.records.iter().map(|(offset, record)| (poll.op, *offset, *record)));
        }
        known.sort_by_key(|(op, offset, _)| (op.ret, op.call, *offset));
        for (op, offset, record) in known {
            let first = told.placed.entry(offset).or_insert(Placed { record, by: op });
            if first.record != record {
                let sentence =
                    format!("{}, and {}: two records at offset {offset}", describe(first.by), describe(op));
                return Err((sentence, vec![first.by, op]));
            }
        }
        Ok(told)
    }

    /// A record that nobody sent, or that certainly was not.
    fn invented(&self) -> Option<Finding<'a>> {
        self.polls.iter().find_map(|poll| {
            let sent = |record: &i64| self.sends.get(record).map(Vec::as_slice).unwrap_or_default();
            let may_stand = |send: &&Op| send.outcome != Outcome::Fail && send.call <= poll.op.ret;
            let (offset, record) =
                poll.records.iter().find(|(_, record)| !sent(record).iter().any(may_stand))?;
            let send = sent(record).first().copied();
            let why = match send {
                None => "which nobody sent".to_owned(),
                Some(send) => format!("but {}", describe(send)),
            };
            let sentence = format!("{}: at offset {offset} stands {record}, {why}", describe(poll.op));
            Some((sentence, send.into_iter().chain([poll.op]).collect()))
        })
    }

    /// A record that somebody knew, and that a later poll reads past without it.
    fn missing(&self) -> Option<Finding<'a>> {
        self.polls.iter().find_map(|poll| {
            let (last, _) = poll.records.last()?;
            let mut shown = poll.records.iter().peekable();
            for (offset, placed) in self.placed.range(poll.from..=*last) {
                while shown.next_if(|(other, _)| other < offset).is_some() {}
                if shown.peek().is_some_and(|(other, _)| other == offset) {
                    continue;
                }
                let record = placed.record;
                let words = if placed.by.ret < poll.op.call {
                    format!("without {record}, which stood at offset {offset} before")
                } else {
                    format!(
                        "without {record}, which stands at offset {offset} for others: a gap that was \
                         read past"
                    )
                };
                let sentence = format!("{}, {words} ({})", describe(poll.op), describe(placed.by));
                return Some((sentence, vec![placed.by, poll.op]));
            }
            None
        })
    }

    /// A record that was known before a poll was called, and that the poll does not show, although it reads
    /// to the end of the log. Only where polls are linearizable is that wrong.
    fn late(&self) -> Option<Finding<'a>> {
        // When each offset was known at first, and the furthest one that was known by then.
        let mut known: Vec<(Rank, i64, &'a Op)> = Vec::with_capacity(self.placed.len());
        for (offset, placed) in &self.placed {
            let sends = self.sends.get(&placed.record).map(Vec::as_slice).unwrap_or_default();
            let acknowledged = match sends {
                [send] if send.outcome == Outcome::Ok => Some(*send),
                _ => None,
            };
            let first = acknowledged.into_iter().chain([placed.by]).min_by_key(|op| op.ret)?;
            known.push((first.ret, *offset, first));
        }
        known.sort_unstable_by_key(|(when, offset, _)| (*when, *offset));
        let mut furthest: Vec<(Rank, i64, &'a Op)> = Vec::with_capacity(known.len());
        for (when, offset, by) in known {
            if furthest.last().is_none_or(|(_, before, _)| *before < offset) {
                furthest.push((when, offset, by));
            }
        }
        let to_the_end =
            |poll: &&Poll<'_>| usize::try_from(poll.most).is_ok_and(|most| poll.records.len() < most);
        self.polls.iter().filter(to_the_end).find_map(|poll| {
            let before = furthest.partition_point(|(when, ..)| *when < poll.op.call);
            let (_, offset, by) = *furthest.get(before.checked_sub(1)?)?;
            let end = poll.records.last().map_or(poll.from.saturating_sub(1), |(last, _)| *last);
            if offset <= end {
                return None;
            }
            let sentence = format!(
                "{}, to the end of the log, without the record at offset {offset}, which was known ({})",
                describe(poll.op),
                describe(by)
            );
            Some((sentence, vec![by, poll.op]))
        })
    }

    /// Where each record stands first.
    fn places(&self) -> HashMap<i64, i64> {
        let mut places = HashMap::new();
        for (offset, placed) in &self.placed {
            places.entry(placed.record).or_insert(*offset);
        }
        places
    }

    /// Two records of one sender that stand in another order than they were sent. Of one that stands at
    /// several offsets its acknowledgement says which is meant.
    fn out_of_order(&self, ops: &[&'a Op]) -> Option<Finding<'a>> {
        let places = self.places();
        let mut last: HashMap<u64, (i64, &'a Op)> = HashMap::new();
        for op in ops.iter().copied().filter(|op| op.f == SEND && op.outcome == Outcome::Ok) {
            let Some(record) = op.asked.integer() else { continue };
            // Of a record that was sent several times a place does not say which sending it is.
            if self.sends.get(&record).is_none_or(|sends| sends.len() > 1) && offset_of(op).is_none() {
                continue;
            }
            let Some(offset) = offset_of(op).or_else(|| places.get(&record).copied()) else { continue };
            if let Some((before, earlier)) = last.insert(op.process, (offset, op))
                && before >= offset
                && earlier.ret < op.call
            {
                let sentence = format!(
                    "{}, and then {}, but they stand at offsets {before} and {offset}",
                    describe(earlier),
                    describe(op)
                );
                return Some((sentence, vec![earlier, op]));
            }
        }
        None
    }

    /// How many offsets hold a record that stands at an earlier one, and the first of them.
    fn duplicates(&self) -> (usize, Option<Finding<'a>>) {
        let mut first: HashMap<i64, (i64, &'a Op)> = HashMap::new();
        let (mut number, mut finding) = (0, None);
        for (offset, placed) in &self.placed {
            let Some((before, by)) = first.get(&placed.record) else {
                first.insert(placed.record, (*offset, placed.by));
                continue;
            };
            number += 1;
            finding.get_or_insert_with(|| {
                let sentence = format!(
                    "record {} stands at offset {before} ({}) and at offset {offset} ({})",
                    placed.record,
                    describe(by),
                    describe(placed.by)
                );
                (sentence, vec![*by, placed.by])
            });
        }
        (number, finding)
    }
}

impl<'a> Poll<'a> {
    /// Offsets grow, from the one that was asked for.
    fn is_in_order(&self) -> Result<(), Finding<'a>> {
        let mut least = self.from;
        for (offset, record) in &self.records {
            if *offset < least {
                let sentence = format!(
                    "{}: {record} at offset {offset} is not behind the one before it, or before {}, where it \
                     was to begin",
                    describe(self.op),
                    self.from
                );
                return Err((sentence, vec![self.op]));
            }
            least = offset.saturating_add(1);
        }
        Ok(())
    }
}

/// The offsets and records that a poll answered.
fn pairs(op: &Op) -> Result<Vec<(i64, i64)>, Finding<'_>> {
    match op.told.list() {
        Some(list) if list.len() % 2 == 0 => {
            Ok(list.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect())
        }
        _ => Err((format!("{}, which is no list of offsets and records", describe(op)), vec![op])),
    }
}

/// Records whose sending was acknowledged, in the order in which they were sent.
fn acknowledged<'a>(ops: &[&'a Op]) -> impl Iterator<Item = (i64, &'a Op)> {
    let ok = |op: &&&'a Op| op.f == SEND && op.outcome == Outcome::Ok;
    ops.iter().filter(ok).filter_map(|op| Some((op.asked.integer()?, *op)))
}

fn accused(name: &str, key: u64, (sentence, ops): &Finding<'_>, of: usize) -> CheckResult {
    CheckResult::new(name, Verdict::Invalid, format!("log {key}: {sentence}"))
        .with_evidence(json!({"key": key}))
        .with_counterexample(counterexample(sentence.clone(), ops, of))
}

/// The check `log`.
pub(super) fn log(case: &Case<'_>) -> CheckResult {
    const NAME: &str = "log";
    let (mut sent, mut read, mut doubled) = (0, 0, 0);
    for (key, ops) in case.history.by_key() {
        let told = match Told::of(&ops) {
            Ok(told) => told,
            Err(finding) => return accused(NAME, key, &finding, ops.len()),
        };
        let promise = case.beside.promise;
        let (duplicates, finding) = told.duplicates();
        let finding = finding.filter(|_| promise == Promise::ExactlyOnce);
        let late = || if promise == Promise::Linearizable { told.late() } else { None };
        let found = told.invented().or_else(|| told.missing()).or_else(late);
        let found = found.or_else(|| told.out_of_order(&ops)).or(finding);
        if let Some(finding) = found {
            return accused(NAME, key, &finding, ops.len());
        }
        sent += acknowledged(&ops).count();
        read += told.polls.iter().map(|poll| poll.records.len()).sum::<usize>();
        doubled += duplicates;
    }
    let evidence = json!({"sent": sent, "read": read, "duplicates": doubled});
    if read == 0 {
        let words = "no record was read, so nothing was tested";
        return CheckResult::new(NAME, Verdict::Unknown, words).with_evidence(evidence);
    }
    let words = format!(
        "{} records were acknowledged and records were read {} times, each at its own offset, for every \
         reader, in the order of its sender; {} duplicates",
        count(sent),
        count(read),
        count(doubled)
    );
    CheckResult::new(NAME, Verdict::Valid, words).with_evidence(evidence)
}

/// The check that what was acknowledged is read at the end, on each member.
pub(super) fn durable(case: &Case<'_>) -> CheckResult {
    let Beside { final_states, members, .. } = case.beside;
    let by_key = case.history.by_key();
    let mut kept = 0;
    for (key, ops) in &by_key {
        let acknowledged: Vec<(i64, &Op)> = acknowledged(ops).collect();
        for state in final_states.iter().filter(|state| state.key == *key) {
            let list = state.list.as_deref().unwrap_or_default();
            let held: std::collections::HashSet<i64> = list.iter().skip(1).step_by(2).copied().collect();
            let missing: Vec<&(i64, &Op)> =
                acknowledged.iter().filter(|(record, _)| !held.contains(record)).collect();
            if let Some((record, send)) = missing.first() {
                let sentence = format!(
                    "{}, but at the end member {} does not have {record}; it lacks {} acknowledged records \
                     of log {key}",
                    describe(send),
                    state.member,
                    count(missing.len())
                );
                return accused(DURABILITY, *key, &(sentence, vec![*send]), ops.len());
            }
        }
        kept += acknowledged.len();
    }
    if let Some(words) = missing(final_states, members, by_key.iter().map(|(key, _)| *key)) {
        return CheckResult::new(DURABILITY, Verdict::Unknown, words);
    }
    if kept == 0 {
        return CheckResult::nothing_judged(DURABILITY, "no record was acknowledged, so none could be lost");
    }
    let words = format!("all {} acknowledged records are on each of {} members", count(kept), members.len());
    CheckResult::new(DURABILITY, Verdict::Valid, words).with_evidence(json!({"kept": kept}))
}
