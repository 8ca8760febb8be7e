//! The online test against the brute-force oracle and the offline tests, on many small histories.
//!
//! Histories are those of [`crate::register::fuzz`], made into calls and answers. An operation of unknown
//! fate is given up at some moment, or never answered at all. `CHECKER_FUZZ_CASES` asks for more than the
//! usual number.

use super::online::Blocks;
use super::terms::{Asked, Call, Halt, Rule};
use super::{Moment, Tested, test};
use crate::chance::Chance;
use crate::history::NEVER;
use crate::register::fuzz::{Shape, cases, falsify, oracle, random_problem, simulated};
use crate::register::problem::{Action, NIL, Problem, Val};

pub(crate) fn shown(value: Val) -> Option<i64> {
    (value != NIL).then_some(i64::from(value))
}

/// One step of a history: when, which entry, and what of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Step {
    Call,
    Answer,
    GiveUp,
}

/// The steps of a problem's operations, in the order of time. `None` for an entry is a change that is denied.
pub(crate) fn steps(problem: &Problem, chance: &mut Chance) -> Vec<(Moment, Step, usize)> {
    let end =
        problem.entries.iter().flat_map(|e| [e.call, if e.is_open() { 0 } else { e.ret }]).max().unwrap_or(0);
    let mut steps = Vec::new();
    for (at, entry) in problem.entries.iter().enumerate() {
        steps.push((2 * Moment::from(entry.call) + 2, Step::Call, at));
        if entry.ret != NEVER {
            steps.push((2 * Moment::from(entry.ret) + 2, Step::Answer, at));
        } else if chance.percent(80) {
            let span = end.saturating_sub(entry.call) + 1;
            steps.push((2 * Moment::from(entry.call + chance.below(span)) + 3, Step::GiveUp, at));
        }
    }
    steps.sort_unstable();
    steps
}

/// Runs the online test: whether it is in doubt, or why it ended. Changes in `denied` are answered so.
fn online(
    problem: &Problem,
    denied: &[usize],
    broken: Option<Rule>,
    chance: &mut Chance,
) -> Result<bool, Halt> {
    let mut blocks = Blocks::default();
    blocks.broken = broken;
    let mut under_way: Vec<Option<Call>> = vec![None; problem.entries.len()];
    // What a refused compare-and-set would have written is a value of its own.
    let asked = |at: usize| match problem.entries[at].action {
        Action::Read(_) => Asked::Read,
        Action::Write(to) => Asked::Write(i64::from(to)),
        Action::Cas { from, to } => Asked::Cas { from: shown(from), to: i64::from(to) },
        Action::Refused(from) => Asked::Cas { from: shown(from), to: 1000 + i64::try_from(at).unwrap() },
    };
    let mut now = 0;
    for (_, step, at) in steps(problem, chance) {
        now += 1;
        match (step, under_way[at]) {
            (Step::Call, _) => {
                under_way[at] = Some(blocks.call(asked(at), u64::try_from(at).unwrap(), now)?)
            }
            (Step::GiveUp, Some(call)) => blocks.over(call, now),
            (Step::Answer, Some(call)) if denied.contains(&at) => blocks.denied(call, false, now)?,
            (Step::Answer, Some(call)) => match problem.entries[at].action {
                Action::Read(value) => blocks.done(call, shown(value), now)?,
                Action::Refused(_) => blocks.denied(call, true, now)?,
                Action::Write(_) | Action::Cas { .. } => blocks.done(call, None, now)?,
            },
            (_, None) => unreachable!("answered before it was asked"),
        }
    }
    Ok(blocks.doubt().is_some())
}

/// Whether the online test contradicts the truth; none where it does not decide.
fn is_wrong(case: &Case, truth: bool, broken: Option<Rule>, seed: u64) -> Option<bool> {
    match online(&case.problem, &case.denied, broken, &mut Chance(seed)) {
        Ok(true) | Err(Halt::Search(_)) => None,
        Ok(false) => Some(!truth),
        Err(Halt::Violation(..)) => Some(truth),
    }
}

/// A history, with closed changes of it that are denied.
struct Case {
    problem: Problem,
    denied: Vec<usize>,
}

impl Case {
    /// Small enough for the oracle; every other one has answers out of the air, and some changes are denied.
    fn small(seed: u64) -> Self {
        if seed.is_multiple_of(2) {
            return Self { problem: random_problem(seed), denied: Vec::new() };
        }
        let problem = invented(seed);
        let mut chance = Chance(seed ^ 0xde_0000);
        let entries = problem.entries.iter().enumerate();
        let changes = entries.filter(|(_, entry)| !entry.is_open() && entry.action.written().is_some());
        let denied = changes.filter(|_| chance.percent(10)).map(|(at, _)| at).collect();
        Self { problem, denied }
    }

    fn truth(&self) -> bool {
        let entries = self.problem.entries.iter().enumerate();
        let happened = entries.filter(|(at, _)| !self.denied.contains(at)).map(|(_, &entry)| entry);
        oracle(&Problem::new(happened.collect()))
    }
}

/// More operations, all values different.
fn longer(seed: u64) -> Problem {
    let mut chance = Chance(seed ^ 0x70_0000);
    let shape = Shape { ops: 4 + chance.below(40), unique: true, ..Shape::small(&mut chance) };
    let mut entries = simulated(&mut chance, &shape);
    for _ in 0..chance.below(3) {
        falsify(&mut entries, &mut chance);
        let at = chance.below(entries.len());
        let other = chance.below(u32::try_from(entries.len()).unwrap());
        if let Action::Read(value) = &mut entries[at].action {
            *value = other;
        }
    }
    if chance.percent(80) {
        entries.retain(|entry| !matches!(entry.action, Action::Refused(_)));
    }
    Problem::new(entries)
}

/// Few values, each written once at most, and answers out of the air: what a real register would hardly ever
/// give.
pub(crate) fn invented(seed: u64) -> Problem {
    let mut chance = Chance(seed ^ 0x90_0000);
    let shape = Shape { ops: 4 + chance.below(4), unique: true, cas_percent: 0, ..Shape::small(&mut chance) };
    let mut entries = simulated(&mut chance, &shape);
    let values = 2 + chance.below(2);
    let refusals = chance.percent(40);
    let mut next = 0;
    for entry in &mut entries {
        let is_change = entry.is_open() || chance.percent(40);
        entry.action = if is_change && next < values {
            next += 1;
            if chance.percent(30) {
                Action::Cas { from: chance.below(values + 1), to: next }
            } else {
                Action::Write(next)
            }
        } else if refusals && !entry.is_open() && chance.percent(50) {
            Action::Refused(chance.below(values + 1))
        } else {
            Action::Read(chance.below(values + 1))
        };
    }
    entries.retain(|entry| !entry.is_open() || entry.action.written().is_some());
    Problem::new(entries)
}

#[test]
fn the_online_test_agrees_with_the_oracle_wherever_it_decides() {
    let (mut valid, mut invalid, mut undecided, mut refused) = (0, 0, 0, 0);
    for seed in 0..cases() {
        let case = Case::small(seed);
        let (truth, problem) = (case.truth(), &case.problem);
        refused +=
            u64::from(problem.has_refused && online(problem, &[], None, &mut Chance(seed)) == Ok(false));
        match is_wrong(&case, truth, None, seed) {
            None => undecided += 1,
            Some(wrong) => {
                assert!(!wrong, "seed {seed}, oracle {truth}: {:#?}", problem.entries);
                if truth { valid += 1 } else { invalid += 1 }
            }
        }
    }
    let enough = cases() / 20;
    assert!(valid > enough && invalid > enough && undecided > 0, "{valid} {invalid} {undecided}");
    assert!(refused > enough / 4, "only {refused} valid histories with refusals were decided");
}

#[test]
fn the_online_test_agrees_with_the_offline_one_on_longer_histories() {
    let (mut valid, mut invalid) = (0, 0);
    for seed in 0..cases() {
        let problem = longer(seed);
        let online = online(&problem, &[], None, &mut Chance(seed));
        let context = || format!("seed {seed} {online:?}: {:#?}", problem.entries);
        match test(&problem) {
            Tested::Refuted(_) => {
                invalid += 1;
                assert!(online.is_err(), "{}", context());
            }
            Tested::Order(_) => {
                valid += 1;
                assert!(!matches!(online, Err(Halt::Violation(..))), "{}", context());
            }
            Tested::Ambiguous => {}
        }
    }
    assert!(valid > cases() / 20 && invalid > cases() / 20, "{valid} {invalid}");
}

#[test]
fn every_rule_is_needed() {
    let rules = [
        Rule::GrowsOver,
        Rule::BeganInside,
        Rule::OpenCounts,
        Rule::KillerBeforeOldest,
        Rule::KilledBeforeLast,
        Rule::KillerStays,
        Rule::ShortenBeforeOldest,
        Rule::Inverted,
        Rule::TakenTwice,
        Rule::Cycle,
        Rule::Held,
        Rule::Denied,
        Rule::Repeated,
        Rule::NotBegun,
        Rule::ReplacedInTime,
        Rule::MustFollow,
    ];
    for rule in rules {
        let noticed = (0..cases().max(crate::register::fuzz::USUAL_CASES)).find(|&seed| {
            let case = Case::small(seed);
            if is_wrong(&case, case.truth(), Some(rule), seed) == Some(true) {
                return true;
            }
            // A rule is missed as well when the offline test refutes and the online one has nothing to say.
            let offline =
                if case.denied.is_empty() { [Some(case.problem), Some(longer(seed))] } else { [None, None] };
            offline.into_iter().flatten().any(|problem| {
                let online = online(&problem, &[], Some(rule), &mut Chance(seed));
                match test(&problem) {
                    Tested::Refuted(_) => online.is_ok(),
                    Tested::Order(_) => matches!(online, Err(Halt::Violation(..))),
                    Tested::Ambiguous => false,
                }
            })
        });
        assert!(noticed.is_some(), "{rule:?} can be broken and nobody notices");
    }
}
