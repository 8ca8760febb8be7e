//! After everything has healed: is every acknowledged write still there, and do all members agree?
//!
//! A register forgets what is overwritten, but its version counts: with `a` changes acknowledged and `o` of
//! unknown fate since the version was 0, the version at the end lies between `a` and `a + o`, on every
//! member. Fewer means that an acknowledged change was lost, more that one was made that nobody asked for, or
//! twice. Besides, no reply may have shown a version beyond the last one, and the last value must come from
//! somebody who may have written it last. Where no versions are told, that is all that a register shows: of
//! two changes of which one was lost it still holds the other, so nothing is claimed of what was overwritten.
//!
//! Of a history whose end is missing ([`Extent::Beginning`]) only the lower bounds hold: more changes came,
//! and other values, but none of what was acknowledged may be undone.
//!
//! Sets, lists and numbered places are read whole at the end ([`FinalState::list`]): there every acknowledged
//! element is looked for on every member by name ([`check_elements`]).

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::figures;
use crate::history::{Extent, History, Op, OpKind, Outcome, What, describe};
use crate::verdict::{CheckResult, Verdict};
use crate::versions::counterexample;

/// The names of the two checks.
pub const DURABILITY: &str = "durability";
/// See [`DURABILITY`].
pub const CONVERGENCE: &str = "convergence";

/// What one member held of one key at the end, read from that member itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FinalState {
    /// The member.
    pub member: u64,
    /// The key.
    pub key: u64,
    /// How often it had been changed, where the system tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<i64>,
    /// Its value; none when the node is missing or holds no number.
    pub value: Option<i64>,
    /// The mzxid of its node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mzxid: Option<u64>,
    /// Its elements, where it is no register.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub list: Option<Vec<i64>>,
}

impl FinalState {
    /// Whether two members held the same of a key.
    #[must_use]
    pub fn holds_the_same(&self, other: &Self) -> bool {
        let held = |state: &Self| (state.version, state.value, state.mzxid);
        held(self) == held(other) && self.list == other.list
    }
}

/// Why a final state can't be, and the operations that show it.
type Loss<'a> = (String, Vec<&'a Op>);

/// What the history says about a key's end.
struct Expected<'a> {
    acknowledged: Vec<&'a Op>,
    open: Vec<&'a Op>,
    /// The operation that showed the highest version.
    newest: Option<&'a Op>,
    ops: usize,
    /// Whether these are all that there were.
    is_whole: bool,
    /// Whether changes take effect in the order of real time, so that a later one replaces an earlier one.
    in_real_time: bool,
}

impl<'a> Expected<'a> {
    fn of(ops: &[&'a Op], extent: Extent, in_real_time: bool) -> Self {
        let pick = |wanted: fn(&Op) -> bool| ops.iter().copied().filter(|op| wanted(op)).collect::<Vec<_>>();
        let shown = ops.iter().copied().filter(|op| op.outcome == Outcome::Ok && op.version.is_some());
        Self {
            acknowledged: pick(Op::is_acknowledged_change),
            open: pick(Op::is_open_change),
            newest: shown.max_by_key(|op| op.version),
            ops: ops.len(),
            is_whole: extent.is_whole(),
            in_real_time,
        }
    }

    /// Changes that made a version after 0. The one that made version 0 created the node.
    fn counted(&self) -> i64 {
        count(self.acknowledged.iter().filter(|op| op.version != Some(0)).count())
    }

    /// The least version that a member may hold at the end. Of changes that tell no version one may be the
    /// one that created the node.
    fn least(&self) -> i64 {
        let created = self.acknowledged.iter().any(|op| op.version == Some(0));
        let untold = self.acknowledged.iter().any(|op| op.version.is_none());
        self.counted() - i64::from(!created && untold)
    }

    fn judge(&self, state: &FinalState) -> Result<(), Loss<'a>> {
        // Where no versions are told the value has to do.
        state.version.map_or(Ok(()), |version| self.judge_version(state, version))?;
        self.judge_value(state)
    }

    fn judge_version(&self, state: &FinalState, version: i64) -> Result<(), Loss<'a>> {
        let FinalState { member, key, .. } = *state;
        if let Some(newest) = self.newest.filter(|newest| newest.version > Some(version)) {
            let shown = newest.version.unwrap_or_default();
            let why = format!(
                "{} showed version {shown}, but at the end member {member} holds version {version} of key \
                    {key}",
                describe(newest)
            );
            return Err((why, vec![newest]));
        }
        let (acknowledged, open) = (self.counted(), count(self.open.len()));
        if version < self.least() {
            let why = format!(
                "{} changes of key {key} were acknowledged, but member {member} holds version {version}: {} \
                 of them are lost",
                figures::count(acknowledged),
                figures::count(self.least() - version)
            );
            // Which of them is not known, so none is shown: the last one may well be there.
            return Err((why, Vec::new()));
        }
        if self.is_whole && version > acknowledged + open {
            let why = format!(
                "{} changes of key {key} were acknowledged and {} may have happened, but member {member} \
                 holds version {version}",
                figures::count(acknowledged),
                figures::count(open)
            );
            return Err((why, Vec::new()));
        }
        Ok(())
    }

    fn judge_value(&self, state: &FinalState) -> Result<(), Loss<'a>> {
        let FinalState { member, key, version, value, .. } = *state;
        if self.acknowledged.is_empty() && self.open.is_empty() {
            return Ok(());
        }
        if let Some(version) = version
            && let Some(last) = self.acknowledged.iter().find(|op| op.version == Some(version))
            && last.kind().written() != value
        {
            let why = format!(
                "{} and made version {version}, but member {member} holds {} at that version",
                describe(last),
                shown(value)
            );
            return Err((why, vec![last]));
        }
        // Whoever wrote last may be missing.
        if !self.is_whole {
            return Ok(());
        }
        let wrote = |op: &&&Op| op.kind().written() == value;
        if self.open.iter().any(|op| wrote(&op)) {
            return Ok(());
        }
        let mut writers = self.acknowledged.iter().filter(wrote).peekable();
        if writers.peek().is_none() {
            let why = format!(
                "member {member} holds {} for key {key}, which no change that may have happened wrote",
                shown(value)
            );
            return Err((why, Vec::new()));
        }
        let replaced_by = |writer: &Op| {
            self.acknowledged.iter().copied().find(|later| {
                (self.in_real_time && later.call > writer.ret)
                    || (later.version.is_some() && later.version > writer.version)
            })
        };
        // Several writers of one value: it is enough that one of them may have been the last.
        let mut lost = None;
        for writer in writers {
            match replaced_by(writer) {
                Some(later) => lost = Some((*writer, later)),
                None => return Ok(()),
            }
        }
        let Some((writer, later)) = lost else { return Ok(()) };
        let why = format!(
            "member {member} holds {} for key {key}, but {} came after {}",
            shown(value),
            describe(later),
            describe(writer)
        );
        Err((why, vec![writer, later]))
    }
}

fn shown(value: Option<i64>) -> String {
    value.map_or_else(|| "nothing readable".to_owned(), |value| value.to_string())
}

fn count(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// Judges the final state of every key on each of `members`. A member that could not be asked makes the
/// answer unknown, unless another shows a violation. `in_real_time` says whether it is promised that a change
/// takes effect after all that had been acknowledged before it was called.
#[must_use]
pub fn check(
    history: &History,
    extent: Extent,
    in_real_time: bool,
    states: &[FinalState],
    members: &[u64],
) -> CheckResult {
    let by_key = history.by_key().into_iter();
    let expected: BTreeMap<u64, Expected<'_>> =
        by_key.map(|(key, ops)| (key, Expected::of(&ops, extent, in_real_time))).collect();
    for state in states {
        let Some(expected) = expected.get(&state.key) else { continue };
        if let Err((why, culprits)) = expected.judge(state) {
            let summary = format!("key {} is not what it must be on member {}", state.key, state.member);
            let evidence = json!({"member": state.member, "key": state.key, "version": state.version,
                "value": state.value, "acknowledged": expected.counted(), "open": expected.open.len()});
            return CheckResult::new(DURABILITY, Verdict::Invalid, summary)
                .with_evidence(evidence)
                .with_counterexample(counterexample(why, &culprits, expected.ops));
        }
    }
    let changes: usize = expected.values().map(|expected| expected.acknowledged.len()).sum();
    let open: usize = expected.values().map(|expected| expected.open.len()).sum();
    let by_version = states.iter().all(|state| state.version.is_some());
    let evidence = json!({"acknowledged": changes, "open": open, "states": states.len(),
        "by_version": by_version});
    if let Some(missing) = missing(states, members, expected.keys().copied()) {
        return CheckResult::new(DURABILITY, Verdict::Unknown, missing).with_evidence(evidence);
    }
    if changes == 0 && open == 0 {
        let summary = "nothing was changed, so nothing could be lost";
        return CheckResult::nothing_judged(DURABILITY, summary).with_evidence(evidence);
    }
    if !by_version && !extent.is_whole() {
        let summary = "without versions and without the history's end, nothing tells which value may be last";
        return CheckResult::nothing_judged(DURABILITY, summary).with_evidence(evidence);
    }
    let summary = shows(Shown { by_version, is_whole: extent.is_whole(), changes, open }, members.len());
    CheckResult::new(DURABILITY, Verdict::Valid, summary).with_evidence(evidence)
}

/// What final states were held against.
struct Shown {
    by_version: bool,
    is_whole: bool,
    changes: usize,
    open: usize,
}

/// What final states show that are all as they may be, and no more.
fn shows(Shown { by_version, is_whole, changes, open }: Shown, members: usize) -> String {
    let (changes, open) = (figures::count(changes), figures::count(open));
    match (by_version, is_whole) {
        (true, true) => format!(
            "each of {members} members counts as many changes as were acknowledged ({changes}; {open} of \
             unknown fate), and holds last values that may be the last"
        ),
        (true, false) => format!(
            "each of {members} members counts no fewer changes than the {changes} that were acknowledged in \
             what is there of the history"
        ),
        (false, _) => format!(
            "each last value on each of {members} members may be the last of {changes} acknowledged changes \
             ({open} of unknown fate); without versions, what was overwritten shows no loss"
        ),
    }
}

/// Judges the elements that every member holds at the end: each that was acknowledged and that nobody tried
/// to delete is there. `named` says which element an operation put there; of nodes that end by themselves it
/// says none.
#[must_use]
pub fn check_elements(
    history: &History,
    states: &[FinalState],
    members: &[u64],
    named: impl Fn(&Op) -> Option<i64>,
) -> CheckResult {
    let by_key = history.by_key();
    let mut expected: BTreeMap<u64, Vec<(i64, &Op)>> = BTreeMap::new();
    for (key, ops) in &by_key {
        let deleted: BTreeSet<i64> = ops.iter().filter_map(|op| deletes(op)).collect();
        let there =
            ops.iter().filter(|op| op.outcome == Outcome::Ok).filter_map(|op| Some((named(op)?, *op)));
        let there: Vec<(i64, &Op)> =
            there.filter(|(_, op)| !name(op).is_some_and(|name| deleted.contains(&name))).collect();
        expected.insert(*key, there);
    }
    judge_elements(&expected, states, members)
}

/// The same of transactions, each of which puts elements into several lists.
#[must_use]
pub fn check_transactions(history: &History, states: &[FinalState], members: &[u64]) -> CheckResult {
    let mut expected: BTreeMap<u64, Vec<(i64, &Op)>> = BTreeMap::new();
    for op in history.ops() {
        for micro in op.micros().into_iter().flat_map(|micros| micros.iter()) {
            let there = expected.entry(micro.key).or_default();
            if let (Outcome::Ok, What::Append(element)) = (op.outcome, &micro.what) {
                there.push((*element, op));
            }
        }
    }
    judge_elements(&expected, states, members)
}

fn judge_elements(
    expected: &BTreeMap<u64, Vec<(i64, &Op)>>,
    states: &[FinalState],
    members: &[u64],
) -> CheckResult {
    let acknowledged = expected.values().map(Vec::len).sum();
    if let Some(lost) = Lost::of(states, expected) {
        return lost.told(acknowledged, members.len());
    }
    let evidence = json!({"acknowledged": acknowledged, "states": states.len()});
    if acknowledged == 0 && missing(states, members, expected.keys().copied()).is_none() {
        let summary = "no element was acknowledged, so none could be lost";
        return CheckResult::nothing_judged(DURABILITY, summary).with_evidence(evidence);
    }
    match missing(states, members, expected.keys().copied()) {
        Some(missing) => CheckResult::new(DURABILITY, Verdict::Unknown, missing).with_evidence(evidence),
        None => {
            let summary = format!(
                "all {} acknowledged elements are on each of {} members",
                figures::count(acknowledged),
                members.len()
            );
            CheckResult::new(DURABILITY, Verdict::Valid, summary).with_evidence(evidence)
        }
    }
}

/// Acknowledged elements that are missing at the end.
struct Lost<'a> {
    /// The first that was found: whose state, and how many of its key's are missing there.
    first: (&'a FinalState, i64, &'a Op, usize, usize),
    /// By key and element: who acknowledged it, and how many members lack it.
    all: BTreeMap<(u64, i64), (&'a Op, usize)>,
}

impl<'a> Lost<'a> {
    fn of(states: &'a [FinalState], expected: &BTreeMap<u64, Vec<(i64, &'a Op)>>) -> Option<Self> {
        let mut first = None;
        let mut all: BTreeMap<(u64, i64), (&Op, usize)> = BTreeMap::new();
        for state in states {
            let Some(expected) = expected.get(&state.key) else { continue };
            let held: BTreeSet<i64> = state.list.iter().flatten().copied().collect();
            let lost: Vec<&(i64, &Op)> =
                expected.iter().filter(|(element, _)| !held.contains(element)).collect();
            if let Some((element, op)) = lost.first() {
                first.get_or_insert((state, *element, *op, lost.len(), expected.len()));
            }
            for (element, op) in lost {
                all.entry((state.key, *element)).or_insert((op, 0)).1 += 1;
            }
        }
        Some(Self { first: first?, all })
    }

    fn told(&self, acknowledged: usize, members: usize) -> CheckResult {
        let (state, element, op, lacks, of) = self.first;
        let why = format!(
            "{}, but at the end member {} does not hold {element}; it lacks {lacks} of {of} acknowledged \
             elements of key {}",
            describe(op),
            state.member,
            state.key
        );
        let gone = self.all.values().filter(|(_, lack)| *lack >= members).count();
        let moments = self.all.values().filter_map(|(op, _)| op.complete_ns);
        let (from, to) = (moments.clone().min().unwrap_or_default(), moments.max().unwrap_or_default());
        let seconds = |ns: u64| format!("{}.{}", ns / 1_000_000_000, ns / 100_000_000 % 10);
        let summary = format!(
            "{} of {} acknowledged elements are missing at the end, {} of them on every member; they were \
             acknowledged from {} s to {} s",
            figures::count(self.all.len()),
            figures::count(acknowledged),
            figures::count(gone),
            seconds(from),
            seconds(to)
        );
        let elements: Vec<i64> = self.all.keys().take(MAX_NAMED).map(|(_, element)| *element).collect();
        let evidence = json!({
            "member": state.member, "key": state.key, "lost": self.all.len(), "on_every_member": gone,
            "acknowledged": acknowledged, "elements": elements, "from_ns": from, "to_ns": to,
        });
        CheckResult::new(DURABILITY, Verdict::Invalid, summary)
            .with_evidence(evidence)
            .with_counterexample(counterexample(why, &[op], of))
    }
}

/// Lost elements that evidence names at most.
const MAX_NAMED: usize = 20;

fn name(op: &Op) -> Option<i64> {
    match op.kind() {
        OpKind::Create { name, .. } => Some(name),
        _ => None,
    }
}

/// What an operation deleted, or may have.
fn deletes(op: &Op) -> Option<i64> {
    match op.kind() {
        OpKind::Delete { name } if op.outcome != Outcome::Fail => Some(name),
        _ => None,
    }
}

/// Judges whether all members hold the same at the end.
#[must_use]
pub fn check_convergence(history: &History, states: &[FinalState], members: &[u64]) -> CheckResult {
    let mut first: BTreeMap<u64, &FinalState> = BTreeMap::new();
    for state in states {
        let other = *first.entry(state.key).or_insert(state);
        if !other.holds_the_same(state) {
            let held = |state: &FinalState| match &state.list {
                Some(list) => format!("{} elements", list.len()),
                None => match state.version {
                    Some(version) => format!("version {version} and value {}", shown(state.value)),
                    None => format!("value {}", shown(state.value)),
                },
            };
            let summary = format!(
                "key {} has {} on member {}, {} on member {}",
                state.key,
                held(other),
                other.member,
                held(state),
                state.member
            );
            return CheckResult::new(CONVERGENCE, Verdict::Invalid, summary)
                .with_evidence(json!({"states": [other, state]}));
        }
    }
    let evidence = json!({"members": members.len(), "keys": first.len()});
    match missing(states, members, history.keys().into_iter()) {
        Some(missing) => CheckResult::new(CONVERGENCE, Verdict::Unknown, missing).with_evidence(evidence),
        None => {
            let summary = format!("all {} members hold the same {} keys", members.len(), first.len());
            CheckResult::new(CONVERGENCE, Verdict::Valid, summary).with_evidence(evidence)
        }
    }
}

/// Says which final state was not read, if one was not. A member of which nothing was read comes first.
#[must_use]
pub fn missing(states: &[FinalState], members: &[u64], keys: impl Iterator<Item = u64>) -> Option<String> {
    if members.is_empty() || states.is_empty() {
        return Some("no member's final state was read".to_owned());
    }
    let read: std::collections::BTreeSet<(u64, u64)> =
        states.iter().map(|state| (state.member, state.key)).collect();
    let keys: Vec<u64> = keys.collect();
    let of = |member: u64| {
        let unread = keys.iter().copied().filter(|key| !read.contains(&(member, *key))).collect::<Vec<u64>>();
        (member, unread)
    };
    let unread: Vec<_> =
        members.iter().map(|&member| of(member)).filter(|(_, unread)| !unread.is_empty()).collect();
    if let Some((member, _)) = unread.iter().find(|(_, unread)| unread.len() == keys.len()) {
        return Some(format!("nothing of the final state of member {member} was read"));
    }
    let (member, first) = unread.first()?;
    Some(format!("the final state of key {} on member {member} was not read", first.first()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::{Event, EventKind, Function, Value};

    /// Writes to key 0, one after the other: (value, version), or no version for an unknown fate.
    fn writes(ops: &[(i64, Option<i64>)]) -> History {
        let mut events = Vec::new();
        for (&(value, version), at) in ops.iter().zip(0_u64..) {
            let kind = if version.is_some() { EventKind::Ok } else { EventKind::Info };
            events.push(Event::new(at, EventKind::Invoke, Function::WRITE, 0, Value::One(value), at * 10));
            let mut end = Event::new(at, kind, Function::WRITE, 0, Value::One(value), at * 10 + 5);
            end.version = version;
            events.push(end);
        }
        History::from_events(events).unwrap()
    }

    fn state(member: u64, version: i64, value: i64) -> FinalState {
        FinalState { member, key: 0, version: Some(version), value: Some(value), mzxid: None, list: None }
    }

    fn verdict(history: &History, version: i64, value: i64) -> Verdict {
        check(history, Extent::Whole, true, &[state(1, version, value)], &[1]).verdict
    }

    #[test]
    fn the_final_version_counts_acknowledged_changes_and_at_most_the_open_ones() {
        let history = writes(&[(10, Some(0)), (11, Some(1)), (12, None), (13, Some(3))]);
        assert_eq!(verdict(&history, 3, 13), Verdict::Valid);
        // Version 1 would lose the write of 13, version 4 would need a change that nobody asked for.
        assert_eq!(verdict(&history, 1, 11), Verdict::Invalid);
        assert_eq!(verdict(&history, 4, 13), Verdict::Invalid);
    }

    #[test]
    fn a_change_replaces_an_earlier_one_only_where_real_time_is_promised() {
        let history = History::from_events(
            writes(&[(10, Some(0)), (11, Some(1))]).ops().iter().zip(0_u64..).flat_map(|(op, at)| {
                let event =
                    |kind, time| Event::new(at, kind, Function::WRITE, 0, op.asked.clone(), 10 * at + time);
                [event(EventKind::Invoke, 0), event(EventKind::Ok, 5)]
            }),
        )
        .unwrap();
        let last = FinalState { version: None, ..state(1, 0, 10) };
        let verdict = |in_real_time| {
            check(&history, Extent::Whole, in_real_time, std::slice::from_ref(&last), &[1]).verdict
        };
        assert_eq!((verdict(true), verdict(false)), (Verdict::Invalid, Verdict::Valid));
    }

    #[test]
    fn a_valid_final_state_claims_what_was_counted_and_no_more() {
        let history = writes(&[(10, Some(0)), (11, Some(1)), (12, None)]);
        let summary = |state: FinalState, extent| check(&history, extent, true, &[state], &[1]).summary;
        let told = |version: Option<i64>| FinalState { version, ..state(1, 1, 11) };
        assert_eq!(
            summary(told(Some(1)), Extent::Whole),
            "each of 1 members counts as many changes as were acknowledged (2; 1 of unknown fate), and holds \
             last values that may be the last"
        );
        assert_eq!(
            summary(told(None), Extent::Whole),
            "each last value on each of 1 members may be the last of 2 acknowledged changes (1 of unknown \
             fate); without versions, what was overwritten shows no loss"
        );
        assert!(summary(told(Some(1)), Extent::Beginning).contains("no fewer changes than the 2"));
        assert!(check(&history, Extent::Beginning, true, &[told(None)], &[1]).nothing_judged);
        let nothing = check(&writes(&[]), Extent::Whole, true, &[told(None)], &[1]);
        assert!(nothing.nothing_judged, "{}", nothing.summary);
    }

    #[test]
    fn a_lost_update_without_versions_is_not_told_as_a_change_that_is_there() {
        let cas = |process, to, at| {
            [EventKind::Invoke, EventKind::Ok].map(|kind| {
                let time = at + u64::from(kind == EventKind::Ok);
                Event::new(process, kind, Function::CAS, 0, Value::Pair(Some(1), to), time)
            })
        };
        let both = History::from_events([cas(1, 2, 0), cas(2, 3, 5)].concat()).unwrap();
        let last = FinalState { version: None, ..state(1, 0, 3) };
        let result = check(&both, Extent::Whole, true, &[last], &[1]);
        assert!(!result.summary.contains("all 2"), "{}", result.summary);
        assert!(result.summary.ends_with("what was overwritten shows no loss"), "{}", result.summary);
    }

    /// Writes of 10, 11 and so on, one after the other, whose answers tell no version.
    fn untold(number: i64) -> History {
        let mut events = Vec::new();
        for (value, at) in (10..10 + number).zip(0_u64..) {
            events.push(Event::new(at, EventKind::Invoke, Function::WRITE, 0, Value::One(value), at * 10));
            events.push(Event::new(at, EventKind::Ok, Function::WRITE, 0, Value::One(value), at * 10 + 5));
        }
        History::from_events(events).unwrap()
    }

    #[test]
    fn one_lost_change_is_found_where_answers_tell_no_version() {
        let history = untold(3);
        let by_value = |value| {
            let state = FinalState { version: None, ..state(1, 0, value) };
            check(&history, Extent::Whole, true, &[state], &[1]).verdict
        };
        assert_eq!(by_value(12), Verdict::Valid);
        assert_eq!(by_value(11), Verdict::Invalid, "the last one is lost");
        // A member may tell versions though answers do not, and the first change may have made version 0.
        assert_eq!(verdict(&history, 3, 12), Verdict::Valid);
        assert_eq!(verdict(&history, 2, 12), Verdict::Valid);
        assert_eq!(verdict(&history, 1, 12), Verdict::Invalid, "one in the middle is lost");
    }

    #[test]
    fn a_register_that_a_member_lacks_altogether_is_lost() {
        let lacking = FinalState { version: None, value: None, ..state(1, 0, 0) };
        for history in [untold(2), writes(&[(10, Some(0)), (11, Some(1))])] {
            let result = check(&history, Extent::Whole, true, std::slice::from_ref(&lacking), &[1]);
            assert_eq!(result.verdict, Verdict::Invalid, "{}", result.summary);
        }
    }

    #[test]
    fn an_open_write_may_be_the_last_one() {
        let history = writes(&[(10, Some(0)), (11, Some(1)), (12, None)]);
        assert_eq!(verdict(&history, 1, 11), Verdict::Valid);
        assert_eq!(verdict(&history, 2, 12), Verdict::Valid);
        assert_eq!(verdict(&history, 2, 99), Verdict::Invalid);
    }

    #[test]
    fn a_value_that_an_acknowledged_write_replaced_is_no_final_value() {
        let history = writes(&[(10, Some(0)), (11, Some(1)), (12, None), (13, Some(2))]);
        let result = check(&history, Extent::Whole, true, &[state(1, 3, 11)], &[1]);
        assert_eq!(result.verdict, Verdict::Invalid);
        assert!(result.counterexample.unwrap().sentence.contains("came after"));
    }

    #[test]
    fn a_member_that_was_not_read_leaves_the_answer_unknown() {
        let history = writes(&[(10, Some(0))]);
        let states = [state(1, 0, 10)];
        let unread = check(&history, Extent::Whole, true, &states, &[1, 2]);
        assert_eq!(unread.verdict, Verdict::Unknown);
        assert!(unread.summary.contains("nothing of the final state of member 2"), "{}", unread.summary);
        assert_eq!(check_convergence(&history, &states, &[1, 2]).verdict, Verdict::Unknown);
        assert_eq!(check(&history, Extent::Whole, true, &[], &[]).verdict, Verdict::Unknown);
    }

    #[test]
    fn an_acknowledged_element_that_a_member_lacks_is_lost() {
        let lines = [(Function::ADD, 1, EventKind::Ok), (Function::ADD, 2, EventKind::Info)];
        let mut events = Vec::new();
        for ((f, value, kind), process) in lines.into_iter().zip(0..) {
            events.push(Event::new(process, EventKind::Invoke, f, 0, Value::One(value), 1));
            events.push(Event::new(process, kind, f, 0, Value::One(value), 2));
        }
        let history = History::from_events(events).unwrap();
        let state = |list: &[i64]| FinalState { value: None, list: Some(list.to_vec()), ..state(1, 0, 0) };
        let added = |op: &Op| match op.kind() {
            OpKind::Add { value } => Some(value),
            _ => None,
        };
        let verdict = |list: &[i64]| check_elements(&history, &[state(list)], &[1], added).verdict;
        assert_eq!((verdict(&[1]), verdict(&[2, 1])), (Verdict::Valid, Verdict::Valid));
        assert_eq!(verdict(&[2]), Verdict::Invalid);
        assert_eq!(
            check_convergence(&history, &[state(&[1]), FinalState { member: 2, ..state(&[1, 2]) }], &[1, 2])
                .verdict,
            Verdict::Invalid
        );
    }

    #[test]
    fn members_that_disagree_have_not_converged() {
        let history = writes(&[(10, Some(0)), (11, None)]);
        let agree = [state(1, 1, 11), state(2, 1, 11)];
        assert_eq!(check_convergence(&history, &agree, &[1, 2]).verdict, Verdict::Valid);
        let disagree = [state(1, 1, 11), state(2, 0, 10)];
        assert_eq!(check_convergence(&history, &disagree, &[1, 2]).verdict, Verdict::Invalid);
    }
}
