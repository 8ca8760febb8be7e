//! Was the load strong enough to find something?
//!
//! A run in which hardly anything happened is valid by accident. So before, during and after each fault there
//! must be operations that definitely succeeded, of each kind: before, to have something to lose; during, as
//! far as a quorum remained, to make the two sides differ; after, to see what is left. A fault that divides
//! the members must have had clients on both of its sides. And the harness itself must have kept up: a load
//! generator that was late measured itself.
//!
//! Around all faults operations are counted in one pass over the history, because there are as many faults as
//! the run is long.

use std::collections::{BTreeMap, BTreeSet};

use checker::figures::count;
use checker::history::{Function, History, Interval, Op, Outcome, Presence, counts_during};
use checker::verdict::{CheckResult, Verdict};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::Shares;
use crate::beside::{Beside, FaultWindow, Requirements};

/// Definite successes by kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally(pub BTreeMap<Function, u64>);

impl Tally {
    fn new(counts: BTreeMap<Function, u64>, functions: &[Function]) -> Self {
        let mut tally: BTreeMap<Function, u64> = functions.iter().map(|f| (*f, 0)).collect();
        tally.extend(counts);
        Self(tally)
    }

    /// Of a whole history.
    fn of(history: &History, functions: &[Function]) -> Self {
        let mut counts = BTreeMap::new();
        for f in history.ops().iter().filter_map(succeeded) {
            *counts.entry(f).or_default() += 1;
        }
        Self::new(counts, functions)
    }

    /// How many of one kind.
    #[must_use]
    pub fn get(&self, f: Function) -> u64 {
        self.0.get(&f).copied().unwrap_or(0)
    }

    /// How many of all kinds.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.0.values().sum()
    }

    fn lacking(&self, requirements: &Requirements) -> Vec<Function> {
        let too_few = |f: &Function| self.get(*f) < requirements.minimum_each;
        requirements.functions.iter().copied().filter(too_few).collect()
    }
}

/// Operations by clients on one side of a fault, whatever became of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SideLoad {
    /// The members of this side.
    pub nodes: Vec<u64>,
    /// Operations under way there while the fault was in force.
    pub operations: u64,
}

/// The load around one fault.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FaultLoad {
    /// The fault's name.
    pub fault: String,
    /// Its kind.
    pub kind: String,
    /// Whether a quorum remained.
    pub quorum: bool,
    /// Since the fault before it had gone.
    pub before: Tally,
    /// While it was in force: invoked and completed.
    pub during: Tally,
    /// Until the next fault.
    pub after: Tally,
    /// Clients on each side.
    pub sides: Vec<SideLoad>,
    /// What was too little, in words.
    pub lacking: Vec<String>,
}

/// What a load shows that was strong enough.
fn strong(succeeded: u64, rate: f64, faults: usize) -> String {
    let around = match faults {
        0 => String::new(),
        1 => " before, during and after the one fault".to_owned(),
        number => format!(" before, during and after each of {} faults", count(number)),
    };
    format!("{} operations succeeded ({rate:.0} a second), of every kind{around}", count(succeeded))
}

/// The check `load`: unknown when the load was too weak.
#[must_use]
pub fn strength(history: &History, beside: &Beside) -> CheckResult {
    let requirements = &beside.requirements;
    let overall = Tally::of(history, &requirements.functions);
    let faults = around_faults(history, beside);
    let mut lacking: Vec<String> = Vec::new();
    for f in overall.lacking(requirements) {
        lacking.push(format!(
            "fewer than {} successful {f} operations in the whole run",
            requirements.minimum_each
        ));
    }
    let rate = rate(history, overall.total());
    let Around { lacks, left_out, too_soon } = lacks_around(&faults, &short_calms(beside, rate));
    lacking.extend(lacks);
    if rate < requirements.minimum_rate {
        lacking.push(format!(
            "{rate:.1} successful operations a second where {:.1} are required",
            requirements.minimum_rate
        ));
    }
    let late = beside.harness_lag_ns.filter(|&lag| lag > requirements.maximum_lag_ns);
    if let Some(lag) = late {
        lacking.push(format!(
            "the harness itself was {} ms late, more than {} ms",
            lag / 1_000_000,
            requirements.maximum_lag_ns / 1_000_000
        ));
    }
    let (verdict, summary) = if lacking.is_empty() {
        (Verdict::Valid, strong(overall.total(), rate, faults.len()) + &left_out_in_words(&left_out))
    } else if too_soon == lacking.len() {
        (Verdict::Unknown, format!("faults came too soon to find a violation: {}", first_of(&lacking)))
    } else {
        // A harness that was late is not helped by more load.
        let helps = lacking.len() > too_soon + usize::from(late.is_some());
        let more = beside.advice.as_deref().unwrap_or(MORE);
        let more = if helps { format!("; {more}") } else { String::new() };
        let lacking = first_of(&lacking);
        (Verdict::Unknown, format!("the load was too weak to find a violation: {lacking}{more}"))
    };
    CheckResult::new("load", verdict, summary).with_evidence(json!({
        "overall": overall, "rate": rate, "faults": faults, "lacking": lacking, "left_out": left_out,
        "harness_lag_ns": beside.harness_lag_ns,
    }))
}

/// What is lacking around faults.
struct Around {
    /// In words.
    lacks: Vec<String>,
    /// The same of faults so few that they are left out of what is claimed; then nothing else is lacking.
    left_out: Vec<String>,
    /// How many of the lacks are that the next fault came too soon.
    too_soon: usize,
}

fn lacks_around(faults: &[FaultLoad], short: &[ShortCalm]) -> Around {
    // Each fault has one calm before it at most, and one after it.
    let short_after: BTreeMap<usize, &ShortCalm> = short.iter().map(|calm| (calm.after, calm)).collect();
    let short_before: BTreeSet<usize> = short.iter().map(|calm| calm.before).collect();
    let mut around = Around { lacks: Vec::new(), left_out: Vec::new(), too_soon: 0 };
    let mut shares = Shares::default();
    for (place, fault) in faults.iter().enumerate() {
        let before = around.lacks.len();
        // Where there was hardly any calm, more load would not have helped.
        let told = |what: &&String| {
            !(short_after.contains_key(&place) && what.ends_with(AFTER)
                || short_before.contains(&place) && what.ends_with(BEFORE))
        };
        let words = |what: &String| format!("{} ({}): {what}", fault.fault, fault.kind);
        around.lacks.extend(fault.lacking.iter().filter(told).map(words));
        if let Some(calm) = short_after.get(&place) {
            let next = &faults[calm.before];
            let lacks = |fault: &FaultLoad, when: &str| fault.lacking.iter().any(|what| what.ends_with(when));
            if lacks(fault, AFTER) || lacks(next, BEFORE) {
                around.lacks.push(format!(
                    "{} was seen gone {} ms before {} began, too little to show anything between them: \
                        lengthen --interval",
                    fault.fault,
                    calm.length_ns / 1_000_000,
                    next.fault
                ));
                around.too_soon += 1;
            }
        }
        shares.add(&fault.kind, around.lacks.len() > before);
    }
    let are_clients = around.lacks.iter().all(|lack| lack.contains(NO_CLIENT));
    if shares.may_be_left_out() || are_clients && shares.may_be_left_out_for_clients() {
        around = Around { lacks: Vec::new(), left_out: around.lacks, too_soon: 0 };
    }
    around
}

/// Lacks that are told in a sentence; the others are counted.
const MOST_TOLD: usize = 3;

/// The first lacks in words, and how many more there are.
fn first_of(lacks: &[String]) -> String {
    let first = lacks.iter().take(MOST_TOLD).map(String::as_str).collect::<Vec<_>>().join("; ");
    match lacks.len().saturating_sub(MOST_TOLD) {
        0 => first,
        more => format!("{first}; and {} more", count(more)),
    }
}

/// The faults that are no part of what is claimed, because the load around them was too weak.
fn left_out_in_words(left_out: &[String]) -> String {
    if left_out.is_empty() {
        return String::new();
    }
    format!(", but these, which are no part of what is claimed: {}", first_of(left_out))
}

/// What strengthens a load, where nobody knows why it was weak.
const MORE: &str =
    "more comes of a longer --interval with a longer --time-limit, of --rate and of --concurrency";

/// How a lack of clients on a side begins, in words.
const NO_CLIENT: &str = "no client on the side of member";
/// How a lack of successes before a fault ends, in words.
const BEFORE: &str = " before it";
/// The same after a fault.
const AFTER: &str = " after it";
/// A calm shorter than this is too short for any load.
const SHORTEST_CALM_NS: u64 = 100_000_000;

/// The calm between two faults, by their places.
struct ShortCalm {
    after: usize,
    before: usize,
    length_ns: u64,
}

/// The calms that were too short for this rate to show anything in them.
#[expect(clippy::cast_precision_loss, reason = "estimates; 2^53 ns are a hundred days")]
fn short_calms(beside: &Beside, rate: f64) -> Vec<ShortCalm> {
    let Requirements { minimum_each, functions, .. } = &beside.requirements;
    let least = (*minimum_each as f64) * (functions.len() as f64);
    let mut by_onset: Vec<usize> = (0..beside.faults.len()).collect();
    by_onset.sort_by_key(|place| beside.faults[*place].onset_ns);
    let between = |pair: &[usize]| {
        let (after, before) = (pair[0], pair[1]);
        let length_ns = beside.faults[before].onset_ns.checked_sub(beside.faults[after].healed_ns?)?;
        Some(ShortCalm { after, before, length_ns })
    };
    let calms = by_onset.windows(2).filter_map(between);
    calms
        .filter(|calm| calm.length_ns < SHORTEST_CALM_NS || calm.length_ns as f64 * rate < least * 1e9)
        .collect()
}

/// Successes per second between the first and the last moment of the history.
#[expect(clippy::cast_precision_loss, reason = "a rate for a person; 2^53 operations do not happen")]
fn rate(history: &History, successes: u64) -> f64 {
    let moments = history.ops().iter().flat_map(|op| [Some(op.invoke_ns), op.complete_ns]).flatten();
    let (first, last) = moments.fold((u64::MAX, 0), |(first, last), at| (first.min(at), last.max(at)));
    match last.checked_sub(first) {
        None | Some(0) => successes as f64,
        Some(span_ns) => successes as f64 * 1e9 / span_ns as f64,
    }
}

/// The kind of an operation that definitely succeeded. A transaction that changes nothing is a read: where
/// all others are refused nothing is tested.
fn succeeded(op: &Op) -> Option<Function> {
    let looks = op.f == Function::TXN && !op.is_change();
    (op.outcome == Outcome::Ok).then_some(if looks { Function::READ } else { op.f })
}

/// The load around every fault.
fn around_faults(history: &History, beside: &Beside) -> Vec<FaultLoad> {
    let functions = &beside.requirements.functions;
    let calms = Calms::of(&beside.faults);
    // Three for each fault: before, during and after it. After one that never went there is nothing.
    let intervals: Vec<Interval> = (beside.faults.iter().enumerate())
        .flat_map(|(at, fault)| {
            let (onset, healed) = (fault.onset_ns, fault.healed_ns.unwrap_or(u64::MAX));
            [(calms.since(at, onset), onset), (onset, healed), (healed, calms.until(at, healed))]
        })
        .collect();
    let mut tallies =
        counts_during(history, &intervals, succeeded).into_iter().map(|counts| Tally::new(counts, functions));
    let divided = beside.faults.iter().any(|fault| !fault.sides.is_empty());
    let presence = if divided { Presence::of(history) } else { Presence::default() };
    let mut next = || tallies.next().unwrap_or_default();
    let load = |fault| around(fault, [next(), next(), next()], &presence, &beside.requirements);
    beside.faults.iter().map(load).collect()
}

/// Where faults ended and began, each with its place, in the order of time.
struct Calms {
    healed: Vec<(u64, usize)>,
    begun: Vec<(u64, usize)>,
}

impl Calms {
    fn of(faults: &[FaultWindow]) -> Self {
        let places = || faults.iter().enumerate();
        let mut healed: Vec<(u64, usize)> =
            places().filter_map(|(at, fault)| Some((fault.healed_ns?, at))).collect();
        let mut begun: Vec<(u64, usize)> = places().map(|(at, fault)| (fault.onset_ns, at)).collect();
        healed.sort_unstable();
        begun.sort_unstable();
        Self { healed, begun }
    }

    /// When the last other fault had gone by `onset`; the beginning of the run if there was none.
    fn since(&self, at: usize, onset: u64) -> u64 {
        let gone = &self.healed[..self.healed.partition_point(|(healed, _)| *healed <= onset)];
        gone.iter().rev().find(|(_, other)| *other != at).map_or(0, |(healed, _)| *healed)
    }

    /// When the next other fault began after `healed`; the end of time if there was none.
    fn until(&self, at: usize, healed: u64) -> u64 {
        let later = &self.begun[self.begun.partition_point(|(onset, _)| *onset < healed)..];
        later.iter().find(|(_, other)| *other != at).map_or(u64::MAX, |(onset, _)| *onset)
    }
}

fn around(
    fault: &FaultWindow,
    [before, during, after]: [Tally; 3],
    presence: &Presence,
    requirements: &Requirements,
) -> FaultLoad {
    let in_force = (fault.onset_ns, fault.healed_ns.unwrap_or(u64::MAX));
    let sides: Vec<SideLoad> = fault
        .sides
        .iter()
        .map(|nodes| {
            let members: BTreeSet<u64> = nodes.iter().copied().collect();
            let operations = members.into_iter().map(|member| presence.under_way(member, in_force)).sum();
            SideLoad { nodes: nodes.clone(), operations }
        })
        .collect();
    let mut lacking = Vec::new();
    let mut require = |when: &str, tally: &Tally| {
        let kinds: Vec<&str> = tally.lacking(requirements).into_iter().map(Function::as_str).collect();
        if !kinds.is_empty() {
            lacking.push(format!("too few successful {} {when} it", kinds.join(", ")));
        }
    };
    require("before", &before);
    if fault.quorum {
        require("during", &during);
    }
    require("after", &after);
    for side in sides.iter().filter(|side| side.operations == 0) {
        let nodes: Vec<String> = side.nodes.iter().map(u64::to_string).collect();
        lacking.push(format!("{NO_CLIENT} {}", nodes.join(", ")));
    }
    FaultLoad {
        fault: fault.fault.clone(),
        kind: fault.kind.clone(),
        quorum: fault.quorum,
        before,
        during,
        after,
        sides,
        lacking,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use checker::history::{Event, EventKind, Value};

    /// One success of each kind at each of these seconds, by a client of the given member.
    fn history(seconds: &[(u64, u64)]) -> History {
        let mut events = Vec::new();
        let mut value = 0;
        for &(second, node) in seconds {
            for f in Function::REGISTER {
                value += 1;
                let (asked, told) = match f {
                    Function::READ => (Value::Null, Value::One(0)),
                    Function::WRITE => (Value::One(value), Value::One(value)),
                    _ => (Value::Pair(Some(0), value), Value::Pair(Some(0), value)),
                };
                let at = second * 1_000_000_000 + u64::try_from(value).unwrap();
                let process = u64::try_from(value).unwrap();
                let mut invoke = Event::new(process, EventKind::Invoke, f, 0, asked, at);
                invoke.node = Some(node);
                events.push(invoke);
                events.push(Event::new(process, EventKind::Ok, f, 0, told, at + 500));
            }
        }
        History::from_events(events).unwrap()
    }

    fn fault(name: &str, onset: u64, healed: u64, quorum: bool) -> FaultWindow {
        FaultWindow {
            fault: name.to_owned(),
            kind: "partition-leader".to_owned(),
            onset_ns: onset * 1_000_000_000,
            healed_ns: Some(healed * 1_000_000_000),
            quorum,
            sides: vec![vec![1], vec![2, 3]],
        }
    }

    fn beside(faults: Vec<FaultWindow>) -> Beside {
        Beside { faults, ..Beside::default() }
    }

    #[test]
    fn a_load_around_each_fault_and_on_both_sides_is_strong_enough() {
        let history = history(&[(1, 1), (3, 1), (3, 2), (5, 1), (7, 2), (7, 1), (9, 3)]);
        let result = strength(&history, &beside(vec![fault("F1", 2, 4, true), fault("F2", 6, 8, true)]));
        assert_eq!(result.verdict, Verdict::Valid, "{}", result.summary);
        assert_eq!(result.evidence["faults"][0]["during"]["cas"], 2);
    }

    #[test]
    fn one_fault_of_a_few_may_lack_clients_on_a_side_and_is_named_and_none_may_lack_successes() {
        let faults =
            |last| (0..last).map(|at| fault(&format!("F{at}"), at * 4 + 2, at * 4 + 4, true)).collect();
        // Around each fault, and in it on both sides, but for one moment that is left out.
        let told = |last: u64, without: &[(u64, u64)]| {
            let mut moments = vec![(1, 1)];
            for at in 0..last {
                moments.extend([(at * 4 + 3, 1), (at * 4 + 3, 2), (at * 4 + 5, 1)]);
            }
            moments.retain(|moment| !without.contains(moment));
            let result = strength(&history(&moments), &beside(faults(last)));
            (result.verdict, result.summary)
        };
        let (verdict, summary) = told(9, &[(11, 2)]);
        assert_eq!(verdict, Verdict::Valid, "{summary}");
        assert!(
            summary.ends_with(
                "but these, which are no part of what is claimed: F2 (partition-leader): no client on the \
                 side of member 2, 3"
            ),
            "{summary}"
        );
        assert_eq!(told(9, &[(11, 2), (15, 2)]).0, Verdict::Unknown, "two of a few");
        assert_eq!(told(4, &[(11, 2)]).0, Verdict::Unknown, "one of four");
        assert_eq!(told(9, &[(37, 1)]).0, Verdict::Unknown, "nothing succeeded after the last");
    }

    #[test]
    fn silence_during_a_fault_matters_only_where_a_quorum_remained() {
        let history = history(&[(1, 1), (5, 1)]);
        let mut window = fault("F1", 2, 4, true);
        window.sides.clear();
        let silent = strength(&history, &beside(vec![window.clone()]));
        assert_eq!(silent.verdict, Verdict::Unknown);
        assert!(
            silent.summary.contains("F1 (partition-leader): too few successful read, write, cas during it")
        );
        window.quorum = false;
        assert_eq!(strength(&history, &beside(vec![window])).verdict, Verdict::Valid);
    }

    #[test]
    fn one_weak_fault_of_many_is_left_out_and_said() {
        let seconds: Vec<(u64, u64)> = (0..200).filter(|at| *at != 53).map(|at| (at, at % 2 + 1)).collect();
        let windows = |number: u64, step: u64| {
            let window = |at: u64| FaultWindow {
                sides: Vec::new(),
                ..fault(&format!("F{at}"), at * step + 2, at * step + 4, true)
            };
            beside((0..number).map(window).collect())
        };
        let mut lonely = windows(40, 5);
        lonely.faults[10].onset_ns = 52_500_000_000;
        lonely.faults[10].healed_ns = Some(53_500_000_000);
        let result = strength(&history(&seconds), &lonely);
        assert_eq!(result.verdict, Verdict::Valid, "{}", result.summary);
        assert!(
            result.summary.ends_with(
                "each of 40 faults, but these, which are no part of what is claimed: F10 \
                 (partition-leader): too few successful read, write, cas during it"
            ),
            "{}",
            result.summary
        );
        lonely.faults.truncate(12);
        assert_eq!(strength(&history(&seconds), &lonely).verdict, Verdict::Unknown, "of a short run");
    }

    #[test]
    fn advice_stands_behind_what_is_lacking() {
        let history = history(&[(1, 1), (5, 1)]);
        let advice = Some("try --rate 20".to_owned());
        let weak = Beside { advice, ..beside(vec![fault("F1", 2, 4, true)]) };
        let result = strength(&history, &weak);
        assert!(result.summary.ends_with("; try --rate 20"), "{}", result.summary);
    }

    #[test]
    fn a_side_without_clients_is_named() {
        let history = history(&[(1, 1), (3, 2), (5, 1)]);
        let result = strength(&history, &beside(vec![fault("F1", 2, 4, true)]));
        assert!(result.summary.contains("no client on the side of member 1"), "{}", result.summary);
    }

    #[test]
    fn the_calm_after_a_fault_ends_with_the_next_one() {
        let history = history(&[(1, 1), (3, 1), (3, 2), (7, 1), (7, 2), (9, 1)]);
        let result = strength(&history, &beside(vec![fault("F1", 2, 4, true), fault("F2", 6, 8, true)]));
        assert_eq!(result.verdict, Verdict::Unknown);
        assert!(
            result.summary.contains("F1 (partition-leader): too few successful read, write, cas after it")
        );
        assert!(
            result.summary.contains("F2 (partition-leader): too few successful read, write, cas before it")
        );
    }

    #[test]
    fn where_the_next_fault_came_too_soon_the_interval_is_blamed_and_not_the_load() {
        let seconds: Vec<(u64, u64)> =
            (0..60).map(|second| (second, second % 2 + 1)).filter(|(at, _)| *at != 10).collect();
        let history = history(&seconds);
        let mut beside = beside(vec![fault("F1", 5, 10, true), fault("F2", 10, 15, true)]);
        beside.faults[1].onset_ns += 2_000_000;
        let result = strength(&history, &beside);
        assert_eq!(
            result.summary,
            "faults came too soon to find a violation: F1 was seen gone 2 ms before F2 began, too little to \
             show anything between them: lengthen --interval"
        );
        beside.faults[1].onset_ns = 30_000_000_000;
        beside.faults[1].healed_ns = Some(32_000_000_000);
        let result = strength(&history, &beside);
        assert_eq!(result.verdict, Verdict::Valid, "{}", result.summary);
    }

    #[test]
    fn what_is_counted_around_all_faults_together_is_what_is_counted_around_each() {
        let history = history(&(0..90).map(|second| (second, second % 3 + 1)).collect::<Vec<_>>());
        // In turns, overlapping, one within another, one at a single moment and one that never went.
        let mut faults: Vec<FaultWindow> =
            [(2, 4), (6, 14), (12, 20), (13, 15), (30, 30), (40, 50), (50, 60), (70, 80)]
                .map(|(onset, healed)| fault("F", onset, healed, true))
                .to_vec();
        faults[7].healed_ns = None;
        for (at, counted) in around_faults(&history, &beside(faults.clone())).iter().enumerate() {
            let others =
                || faults.iter().enumerate().filter(|(other, _)| *other != at).map(|(_, fault)| fault);
            let (onset, healed) = (faults[at].onset_ns, faults[at].healed_ns.unwrap_or(u64::MAX));
            let since = others().filter_map(|other| other.healed_ns).filter(|gone| *gone <= onset).max();
            let until = others().map(|other| other.onset_ns).filter(|next| *next >= healed).min();
            let number = |from: u64, to: u64| {
                let within = |op: &&Op| op.invoke_ns >= from && op.complete_ns.is_some_and(|at| at <= to);
                history.ops().iter().filter(within).count() as u64
            };
            assert_eq!(counted.before.total(), number(since.unwrap_or(0), onset), "before {at}");
            assert_eq!(counted.during.total(), number(onset, healed), "during {at}");
            assert_eq!(counted.after.total(), number(healed, until.unwrap_or(u64::MAX)), "after {at}");
        }
    }

    #[test]
    fn a_slow_load_and_a_late_harness_are_weak() {
        let history = history(&[(1, 1), (11, 1)]);
        let mut beside = beside(Vec::new());
        assert_eq!(strength(&history, &beside).verdict, Verdict::Valid);
        beside.requirements.minimum_rate = 100.0;
        beside.harness_lag_ns = Some(3_000_000_000);
        let result = strength(&history, &beside);
        assert_eq!(result.verdict, Verdict::Unknown);
        assert!(result.summary.contains("0.6 successful operations a second"), "{}", result.summary);
        assert!(result.summary.contains("3000 ms late"), "{}", result.summary);
    }
}
