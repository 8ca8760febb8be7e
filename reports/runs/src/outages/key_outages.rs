//! Outages of single keys, of systems that keep keys in several places.
//!
//! An outage of the whole system is a time in which no write to any key was acknowledged, so where one shard
//! of many is gone there is none. A key has an outage of its own where changes to it were asked for and none
//! was decided, while changes to other keys were. It accuses nobody, and a member that is cut off refuses
//! every key; so only what was asked of members counts that decided changes to other keys meanwhile. The
//! longest outage of the whole system in that time, and what the bench did not send, is not counted.

use std::collections::{BTreeMap, BTreeSet};

use checker::history::{Function, History, Op, Outcome};

use crate::idleness::{merged, without};
use crate::numbers::NS_PER_MS;
use crate::operations::due_ns;
use crate::outages::{self, Context};
use crate::results::{KeyOutage, KeyOutages, Outage};
use crate::silence::{Sign, sign};
use crate::unsent::Unsent;

/// Shorter ones are a key's own pace: one slow answer, or a client that tries again.
const MINIMUM_NS: u64 = 100 * NS_PER_MS;
/// So many changes must have been asked for in vain, and so many to other keys decided meanwhile.
const ENOUGH: usize = 3;
/// Of a key with fewer decided changes nothing is said.
const LEAST_DECIDED: usize = 5;
/// So many keys are named.
const MOST_NAMED: usize = 10;

/// The outages of keys, beside those of the whole system and what the bench did not send. None where fewer
/// than two keys were changed often enough.
pub fn of(
    history: &History,
    context: Context<'_>,
    whole: &[Outage],
    unsent: Option<&Unsent>,
) -> Option<KeyOutages> {
    let found = find(history, context.load_end_ns, whole, unsent)?;
    let spans: Vec<(u64, u64)> =
        found.outages.iter().map(|of_key| (of_key.outage.from_ns, of_key.outage.to_ns)).collect();
    let causes = outages::causes(history, context, &spans);
    let mut of_keys: BTreeMap<u64, KeyOutage> = BTreeMap::new();
    for (KeyOutage { key, outage }, fault) in found.outages.into_iter().zip(causes) {
        let longest = of_keys.entry(key).or_default();
        if outage.ns() > longest.outage.ns() {
            *longest = KeyOutage { key, outage: Outage { fault, ..outage } };
        }
    }
    let with = u64::try_from(of_keys.len()).unwrap_or(u64::MAX);
    let mut longest: Vec<KeyOutage> = of_keys.into_values().collect();
    longest.sort_by_key(|of_key| std::cmp::Reverse(of_key.outage.ns()));
    longest.truncate(MOST_NAMED);
    Some(KeyOutages { keys: found.keys, with, longest })
}

/// What [`find`] found.
#[derive(Debug)]
pub(crate) struct Found {
    /// Keys that were changed often enough to say.
    pub(crate) keys: u64,
    /// Their outages, in the order of time, with nobody to blame.
    pub(crate) outages: Vec<KeyOutage>,
}

/// Every outage of a key. None where fewer than two keys were changed often enough.
pub(crate) fn find(
    history: &History,
    load_end_ns: Option<u64>,
    whole: &[Outage],
    unsent: Option<&Unsent>,
) -> Option<Found> {
    let load_end_ns = load_end_ns.unwrap_or(u64::MAX);
    let mut by_key: BTreeMap<u64, Vec<&Op>> = BTreeMap::new();
    for op in history.ops().iter().filter(|op| op.invoke_ns <= load_end_ns) {
        if sign(op) != Sign::Nothing {
            by_key.entry(op.key).or_default().push(op);
        }
    }
    by_key.retain(|_, ops| ops.iter().filter(|op| sign(op) == Sign::Life).count() >= LEAST_DECIDED);
    if by_key.len() < 2 {
        return None;
    }
    let context = Whole { outages: whole, unsent: unsent.map_or(&[], |unsent| &unsent.stretches) };
    let decided = decided(by_key.values().flatten().copied(), load_end_ns);
    let mut outages = Vec::new();
    for (key, ops) in &by_key {
        let mut lives: Vec<u64> =
            ops.iter().filter_map(|op| life_ns(op)).filter(|at| *at <= load_end_ns).collect();
        lives.sort_unstable();
        let asked_until = ops.last().map_or(0, |op| op.invoke_ns);
        let last = lives.last().copied().unwrap_or(asked_until);
        let gaps = lives.windows(2).map(|pair| (pair[0], pair[1], false));
        for (from, to, open) in gaps.chain([(last, asked_until, true)]) {
            if to.saturating_sub(from) < MINIMUM_NS {
                continue;
            }
            if let Some(from_ns) = begins(*key, ops, (from, to), &decided, &context) {
                let outage = Outage { from_ns, to_ns: to, fault: None, open };
                outages.push(KeyOutage { key: *key, outage });
            }
        }
    }
    outages.sort_by_key(|of_key| (of_key.outage.from_ns, of_key.key));
    Some(Found { keys: u64::try_from(by_key.len()).unwrap_or(u64::MAX), outages })
}

/// What is not a key's own.
struct Whole<'a> {
    /// Outages of the whole system, in the order of time.
    outages: &'a [Outage],
    /// What the bench did not send.
    unsent: &'a [(u64, u64)],
}

impl Whole<'_> {
    /// What does not count of a stretch. Of the outages of the whole system that is the longest one: where
    /// many keys are refused at once, a few of them in a row make short ones.
    fn covering(&self, from: u64, to: u64) -> Vec<(u64, u64)> {
        let first = self.outages.partition_point(|outage| outage.to_ns <= from);
        let within = self.outages[first..].iter().take_while(|outage| outage.from_ns < to);
        let shared = |outage: &Outage| (outage.from_ns.max(from), outage.to_ns.min(to));
        let longest = within.map(shared).max_by_key(|(from, to)| to.saturating_sub(*from));
        merged(longest.into_iter().chain(self.unsent.iter().copied()).collect(), 0)
    }
}

/// A change that was decided: when, at which member, of which key.
type Decided = (u64, Option<u64>, u64);

/// What was decided of all keys, in the order of time.
fn decided<'a>(ops: impl Iterator<Item = &'a Op>, load_end_ns: u64) -> Vec<Decided> {
    let mut decided: Vec<Decided> =
        ops.filter_map(|op| Some((life_ns(op)?, op.node, op.key))).filter(|of| of.0 <= load_end_ns).collect();
    decided.sort_unstable();
    decided
}

/// When it was decided; none where it was not.
fn life_ns(op: &Op) -> Option<u64> {
    op.complete_ns.filter(|_| sign(op) == Sign::Life)
}

/// Whether an operation may wait for other clients, and not for the system.
fn waits_for_others(op: &Op) -> bool {
    matches!(op.f, Function::ACQUIRE | Function::DEQUEUE | Function::ENTER | Function::LEAVE | Function::OPEN)
}

/// From when on a gap between two decided changes of a key is an outage of this key; none where it is none.
/// `ops` are those of the key, in the order of their calls.
fn begins(
    key: u64,
    ops: &[&Op],
    (from, to): (u64, u64),
    decided: &[Decided],
    whole: &Whole<'_>,
) -> Option<u64> {
    let first = ops.partition_point(|op| op.invoke_ns < from);
    let asked: Vec<&Op> = ops[first..ops.partition_point(|op| op.invoke_ns < to)]
        .iter()
        .filter(|op| op.was_sent() && (op.outcome != Outcome::Ok || !waits_for_others(op)))
        .copied()
        .collect();
    if asked.len() < ENOUGH {
        return None;
    }
    let meanwhile =
        &decided[decided.partition_point(|of| of.0 <= from)..decided.partition_point(|of| of.0 < to)];
    let others = meanwhile.iter().filter(|of| of.2 != key);
    let serving: BTreeSet<Option<u64>> = others.clone().map(|of| of.1).collect();
    let asked: Vec<&Op> = asked.into_iter().filter(|op| serving.contains(&op.node)).collect();
    let from = due_ns(asked.first()?).max(from);
    let left = without(&[(from, to)], &whole.covering(from, to));
    let is_left = |at: u64| left.iter().any(|(from, to)| (*from..*to).contains(&at));
    let long: u64 = left.iter().map(|(from, to)| to - from).sum();
    let in_vain = asked.iter().filter(|op| is_left(op.invoke_ns)).count();
    let elsewhere = others.filter(|of| is_left(of.0)).count();
    (long >= MINIMUM_NS && in_vain >= ENOUGH && elsewhere >= ENOUGH).then_some(from)
}

#[cfg(test)]
mod tests {
    use checker::history::{Event, EventKind, Value};

    use super::*;
    use crate::faults::FaultRecord;

    const MS: u64 = NS_PER_MS;

    /// How a write of a test ends, 2 ms after its call.
    #[derive(Clone, Copy, PartialEq)]
    enum End {
        Ok,
        Refused,
        Unanswered,
    }

    /// Writes to keys in turn, one every 5 ms for `until_ms`, each round of keys at the next of three
    /// members; `end` says how one ends, from its moment in ms and its key.
    fn history(keys: u64, until_ms: u64, end: impl Fn(u64, u64) -> End) -> History {
        history_at(keys, until_ms, |at, _| 1 + at / 5 / keys % 3, |at, key, _| end(at, key))
    }

    /// The same at a member that `node` says from moment and key; `end` is told it too.
    fn history_at(
        keys: u64,
        until_ms: u64,
        node: impl Fn(u64, u64) -> u64,
        end: impl Fn(u64, u64, u64) -> End,
    ) -> History {
        let mut events = Vec::new();
        for (process, at) in (0..until_ms).step_by(5).enumerate() {
            let process = u64::try_from(process).expect("small");
            let key = process % keys;
            let node = node(at, key);
            let line = |kind, at: u64| {
                let value = Value::One(i64::try_from(process).expect("small"));
                Event::new(process, kind, Function::WRITE, key, value, at)
            };
            let mut invoke = line(EventKind::Invoke, at * MS);
            invoke.node = Some(node);
            events.push(invoke);
            match end(at, key, node) {
                End::Ok => events.push(line(EventKind::Ok, (at + 2) * MS)),
                End::Refused => {
                    let mut fail = line(EventKind::Fail, (at + 2) * MS);
                    fail.error = Some("no-master".into());
                    events.push(fail);
                }
                End::Unanswered => {}
            }
        }
        History::from_events(events).expect("a history")
    }

    fn outages_of(history: &History, faults: &[FaultRecord]) -> KeyOutages {
        let context = Context { faults, ..Context::default() };
        let whole = outages::from_history(history, context, outages::MINIMUM_NS);
        of(history, context, &whole, None).expect("several keys")
    }

    fn kill(from_ms: u64, gone_ms: u64) -> FaultRecord {
        FaultRecord {
            id: "F1".to_owned(),
            asked_ns: from_ms * MS,
            injected_ns: Some(from_ms * MS),
            verified_healed_ns: Some(gone_ms * MS),
            quorum_remained: true,
            ..FaultRecord::default()
        }
    }

    #[test]
    fn a_key_that_is_refused_while_others_are_changed_has_an_outage_of_its_own() {
        let gone = |at, key| match (1000..4700).contains(&at) && key == 3 {
            true => End::Refused,
            false => End::Ok,
        };
        let faults = [kill(990, 4000)];
        let history = history(4, 6000, gone);
        assert_eq!(outages::from_history(&history, Context::default(), outages::MINIMUM_NS), []);
        let found = outages_of(&history, &faults);
        assert_eq!((found.keys, found.with), (4, 1));
        let worst = found.worst().expect("one");
        let outage = Outage { from_ns: 1015 * MS, to_ns: 4717 * MS, fault: Some("F1".into()), open: false };
        assert_eq!(*worst, KeyOutage { key: 3, outage });
        assert_eq!(outages_of(&history, &[]).worst().expect("one").outage.fault, None);
    }

    #[test]
    fn an_unanswered_key_is_told_to_the_end_and_the_longest_comes_first() {
        let gone = |at, key| match (key, at) {
            (1, 3000..) => End::Unanswered,
            (2, 1000..1500) => End::Refused,
            _ => End::Ok,
        };
        let found = outages_of(&history(4, 6000, gone), &[]);
        let told: Vec<(u64, bool)> =
            found.longest.iter().map(|of_key| (of_key.key, of_key.outage.open)).collect();
        assert_eq!((found.with, told), (2, vec![(1, true), (2, false)]));
    }

    #[test]
    fn what_hits_every_key_is_no_outage_of_one() {
        let of_all = |at, _| if (1000..2000).contains(&at) { End::Unanswered } else { End::Ok };
        assert_eq!(outages_of(&history(4, 4000, of_all), &[]).with, 0, "the whole system did not answer");
        // n3 is cut off, and it happens that one key is asked for there alone.
        let is_then = |at: u64| (1000..2000).contains(&at);
        let node = |at, key| if key == 0 && is_then(at) { 3 } else { 1 + at / 5 / 4 % 3 };
        let cut_off = |at, _, node| if is_then(at) && node == 3 { End::Refused } else { End::Ok };
        let by_chance = history_at(4, 4000, node, cut_off);
        assert_eq!(outages_of(&by_chance, &[]).with, 0, "it refused other keys too");
    }

    #[test]
    fn of_few_changes_and_of_one_key_nothing_is_said() {
        let gone = |at, key| if (1000..2000).contains(&at) && key == 0 { End::Refused } else { End::Ok };
        let one = history(1, 4000, gone);
        let whole = outages::from_history(&one, Context::default(), outages::MINIMUM_NS);
        assert_eq!(of(&one, Context::default(), &whole, None), None);
        assert_eq!(of(&history(400, 4000, gone), Context::default(), &[], None), None);
    }

    #[test]
    fn what_the_bench_did_not_send_is_no_part_of_it() {
        let gone = |at, key| if (1000..1150).contains(&at) && key == 3 { End::Refused } else { End::Ok };
        let history = history(4, 3000, gone);
        let unsent = Unsent { stretches: vec![(1040 * MS, 1120 * MS)], ..Unsent::default() };
        let with = |unsent| of(&history, Context::default(), &[], unsent).expect("several keys").with;
        assert_eq!((with(None), with(Some(&unsent))), (1, 0));
    }
}
