//! What a register knows of its own against a brute-force oracle, on many small histories. The searches have
//! theirs ([`crate::search`]).
//!
//! This is where a clever checker is found wrong. Most histories are answers of a simulated register, with up
//! to two of them falsified; the others have answers out of the air. They have two to six processes, few
//! operations, unique or repeated values, operations of unknown fate (some of which took effect, some late)
//! and refused compare-and-sets. The environment variable `CHECKER_FUZZ_CASES` asks for more than the usual
//! number.

use super::blocks::{self, Tested};
use super::problem::{Action, Entry, NIL, Problem, Val, index};
use super::{Decision, check, judge, order, part, repair, witness};
use crate::budget::{Budget, Meter};
use crate::chance::Chance;
use crate::history::NEVER;
use crate::model::register::{Register, calls};
use crate::search::sabotage::{self, Rule};
use crate::search::{Algorithm, Found, plain};

pub(crate) const USUAL_CASES: u64 = 20_000;

pub(crate) fn cases() -> u64 {
    std::env::var("CHECKER_FUZZ_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(USUAL_CASES)
}

/// What a simulated client is in the middle of.
struct Running {
    entry: usize,
    asked: Asked,
    took_effect: bool,
}

#[derive(Clone, Copy)]
enum Asked {
    Read,
    Write(Val),
    Cas(Val, Val),
}

impl Asked {
    /// The entry's action when nobody answers.
    fn unanswered(self) -> Action {
        match self {
            Self::Write(to) => Action::Write(to),
            Self::Cas(from, to) => Action::Cas { from, to },
            Self::Read => unreachable!("reads are answered"),
        }
    }
}

/// What a simulated history is like.
pub(crate) struct Shape {
    pub(crate) processes: u32,
    pub(crate) ops: u32,
    pub(crate) unique: bool,
    pub(crate) versions: bool,
    pub(crate) open_percent: u32,
    pub(crate) cas_percent: u32,
}

impl Shape {
    pub(crate) fn small(chance: &mut Chance) -> Self {
        Self {
            processes: 2 + chance.below(5),
            ops: 2 + chance.below(7),
            unique: chance.percent(60),
            versions: chance.percent(60),
            open_percent: [0, 20, 50][chance.below(3_usize)],
            cas_percent: [0, 30, 60][chance.below(3_usize)],
        }
    }
}

/// A random history: answers of a real register, some of unknown fate, in real-time order of calls and
/// returns.
pub(crate) fn simulated(chance: &mut Chance, shape: &Shape) -> Vec<Entry> {
    let Shape { processes, ops, versions, open_percent, .. } = *shape;
    let mut running: Vec<Option<Running>> = (0..processes).map(|_| None).collect();
    let mut entries: Vec<Entry> = Vec::new();
    let (mut state, mut version, mut next_value) = (NIL, 0_i64, 1);
    // Operations whose client gave up, which may still take effect.
    let mut late: Vec<(usize, Asked)> = Vec::new();
    let mut rank = 0;
    loop {
        let process = usize::try_from(chance.below(processes)).unwrap();
        if !late.is_empty() && chance.percent(10) {
            let (_, asked) = late.swap_remove(0);
            take_effect(asked, &mut state, &mut version);
            continue;
        }
        match running[process].take() {
            None if entries.len() < usize::try_from(ops).unwrap() => {
                let asked = ask(chance, shape, state, &mut next_value);
                let placeholder = Entry {
                    call: rank,
                    ret: NEVER,
                    action: Action::Read(NIL),
                    version: None,
                    op: entries.len(),
                };
                rank += 1;
                running[process] = Some(Running { entry: entries.len(), asked, took_effect: false });
                entries.push(placeholder);
            }
            None if running.iter().all(Option::is_none) => return entries,
            None => {}
            Some(mut op) if !op.took_effect => {
                let entry = &mut entries[op.entry];
                let is_change = !matches!(op.asked, Asked::Read);
                if is_change && chance.percent(open_percent) {
                    entry.action = op.asked.unanswered();
                    if chance.percent(50) {
                        take_effect(op.asked, &mut state, &mut version);
                    } else if chance.percent(70) {
                        late.push((op.entry, op.asked));
                    }
                } else {
                    entry.action = take_effect(op.asked, &mut state, &mut version);
                    entry.version =
                        (versions && !matches!(entry.action, Action::Refused(_))).then_some(version);
                    op.took_effect = true;
                    running[process] = Some(op);
                }
            }
            Some(op) => {
                entries[op.entry].ret = rank;
                rank += 1;
            }
        }
    }
}

/// A random question to a register that holds `state`.
fn ask(chance: &mut Chance, shape: &Shape, state: Val, next_value: &mut Val) -> Asked {
    let known = (*next_value).min(4);
    let mut value = || {
        *next_value += 1;
        if shape.unique { *next_value - 1 } else { 1 + (*next_value * 7 % 3) }
    };
    match chance.below(100) {
        roll if roll < shape.cas_percent => {
            let from = if chance.percent(50) { state } else { chance.below(known) };
            Asked::Cas(from, value())
        }
        roll if roll < shape.cas_percent + (100 - shape.cas_percent) / 2 => Asked::Write(value()),
        _ => Asked::Read,
    }
}

fn take_effect(asked: Asked, state: &mut Val, version: &mut i64) -> Action {
    match asked {
        Asked::Read => Action::Read(*state),
        Asked::Write(to) => {
            (*state, *version) = (to, *version + 1);
            Action::Write(to)
        }
        Asked::Cas(from, to) if from == *state => {
            (*state, *version) = (to, *version + 1);
            Action::Cas { from, to }
        }
        Asked::Cas(from, _) => Action::Refused(from),
    }
}

/// Falsifies one answer.
pub(crate) fn falsify(entries: &mut [Entry], chance: &mut Chance) {
    let at = chance.below(entries.len());
    let other = chance.below(6);
    let entry = &mut entries[at];
    match entry.action {
        Action::Read(_) => entry.action = Action::Read(other),
        Action::Refused(_) if chance.percent(50) => entry.action = Action::Refused(other),
        Action::Refused(from) => entry.action = Action::Cas { from, to: 7 },
        Action::Cas { from, .. } if !entry.is_open() && chance.percent(50) => {
            entry.action = Action::Refused(from);
            entry.version = None;
        }
        Action::Cas { to, .. } => entry.action = Action::Cas { from: other, to },
        Action::Write(_) => entry.version = entry.version.map(|version| version + i64::from(other) - 2),
    }
}

pub(crate) fn random_problem(seed: u64) -> Problem {
    let mut chance = Chance(seed);
    let shape = Shape::small(&mut chance);
    let mut entries = simulated(&mut chance, &shape);
    if chance.percent(40) {
        // Now and then a crowd of operations that never return.
        let crowd = if chance.percent(30) { 60 } else { 0 };
        for entry in &mut entries {
            if chance.percent(crowd) {
                entry.ret = NEVER;
            }
            invent(entry, &mut chance);
        }
    } else {
        for _ in 0..chance.below(3) {
            falsify(&mut entries, &mut chance);
        }
    }
    Problem::new(entries)
}

/// An answer out of the air, from few values, so that values return and refusals need reasons. Some open
/// changes get values that nobody else mentions.
fn invent(entry: &mut Entry, chance: &mut Chance) {
    let value = 1 + chance.below(3);
    let to = if chance.percent(50) { 4 + chance.below(4) } else { value };
    entry.version = None;
    entry.action = match chance.below(10) {
        0..=3 if entry.is_open() => Action::Write(to),
        _ if entry.is_open() => Action::Cas { from: chance.below(3), to },
        0 => Action::Read(chance.below(4)),
        1 => Action::Cas { from: chance.below(3), to: value },
        2..=5 => Action::Write(value),
        _ => Action::Refused(chance.below(6)),
    };
}

/// The definition, tried out: any operation that nobody else has to precede may come next.
pub(crate) fn oracle(problem: &Problem) -> bool {
    fn go(entries: &[Entry], placed: u32, state: Val) -> bool {
        let is_placed = |at: usize| placed >> at & 1 == 1;
        if (0..entries.len()).all(|at| is_placed(at) || entries[at].is_open()) {
            return true;
        }
        let earliest_return =
            (0..entries.len()).filter(|&at| !is_placed(at)).map(|at| entries[at].ret).min().unwrap();
        (0..entries.len()).any(|at| {
            !is_placed(at)
                && entries[at].call < earliest_return
                && entries[at].action.apply(state).is_some_and(|next| go(entries, placed | 1 << at, next))
        })
    }
    go(&problem.entries, 0, NIL)
}

fn meter() -> Meter {
    Meter::new(&Budget::default())
}

/// What the plain search says.
fn plainly(problem: &Problem) -> bool {
    let calls = calls(problem);
    match plain::search(&Register::default(), &calls.iter().collect::<Vec<_>>(), &mut meter()) {
        Found::Order(_) => true,
        Found::NoOrder { .. } => false,
        Found::GaveUp { why, .. } => panic!("gave up on a small history: {why}"),
    }
}

/// How often each kind of history came up.
#[derive(Default)]
struct Met {
    valid: u64,
    invalid: u64,
    by_blocks: u64,
    by_version: u64,
    placed: u64,
    repaired: u64,
}

#[test]
fn every_member_of_the_portfolio_agrees_with_the_oracle() {
    let mut met = Met::default();
    for seed in 0..cases() {
        let problem = random_problem(seed);
        let truth = oracle(&problem);
        if truth {
            met.valid += 1
        } else {
            met.invalid += 1
        }
        let context = || format!("seed {seed}, oracle {truth}: {:#?}", problem.entries);
        assert_eq!(plainly(&problem), truth, "plain {}", context());
        blocks_are_right(&problem, truth, &mut met, &context);
        if let Some(order) = witness::by_version(&problem)
            && order::verify(&problem, &order).is_ok()
        {
            assert!(truth, "witness {}", context());
            met.by_version += 1;
        }
        portfolio_is_right(&problem, truth, &context);
    }
    // The claims above are empty if a kind of history never came up.
    let enough = cases() / 100;
    for (what, count) in [
        ("valid", met.valid),
        ("invalid", met.invalid),
        ("by blocks", met.by_blocks),
        ("by version", met.by_version),
        ("by a placed order", met.placed),
        ("by a repaired order", 100 * met.repaired),
    ] {
        assert!(count >= enough, "only {count} {what}");
    }
}

fn blocks_are_right(problem: &Problem, truth: bool, met: &mut Met, context: &dyn Fn() -> String) {
    match blocks::test(problem) {
        Tested::Refuted(contradiction) => {
            assert!(!truth, "blocks {contradiction:?} {}", context());
            met.by_blocks += 1;
        }
        Tested::Order(order) if !problem.has_refused => {
            assert!(truth, "blocks {}", context());
            assert_eq!(order::verify(problem, &order), Ok(()), "blocks {}", context());
            met.by_blocks += 1;
        }
        Tested::Order(order) => {
            let fits = order::place_what_fits(problem, &order, &mut meter()).unwrap();
            let is_placed = fits.misfits == 0;
            let settled = repair::settle(problem, fits.order, &Budget::default());
            let is_confirmed = settled.is_ok_and(|order| order::verify(problem, &order).is_ok());
            assert!(truth || !is_confirmed, "placed {}", context());
            // With an unobserved open write as the excuse an order may fail to be one; without it may not.
            let strict = is_placed && problem.entries.iter().all(|entry| !entry.is_open());
            assert!(is_confirmed || !strict, "placed {}", context());
            met.placed += u64::from(is_confirmed && is_placed);
            met.repaired += u64::from(is_confirmed && !is_placed);
        }
        Tested::Ambiguous => {}
    }
}

fn portfolio_is_right(problem: &Problem, truth: bool, context: &dyn Fn() -> String) {
    match judge(problem, &Budget::default(), true).decision {
        Decision::Linearizable { witness } => {
            assert!(truth, "portfolio {}", context());
            assert_eq!(order::verify(problem, &witness.unwrap()), Ok(()), "portfolio {}", context());
        }
        Decision::Violation(shrunk) => {
            assert!(!truth, "portfolio {}", context());
            let part = shrunk.part.iter().zip(&shrunk.from).map(|(call, &from)| Entry {
                action: call.op,
                ret: call.ret,
                ..problem.entries[from]
            });
            let part = Problem::new(part.collect());
            assert!(!oracle(&part), "the part is no violation {part:?} {}", context());
            assert!(part.entries.len() <= problem.entries.len());
            // What is shown must be enough: with all changes and nothing else that was looked at, still none.
            let is_shown =
                |at: &usize| !problem.entries[*at].action.changes_nothing() || shrunk.from.contains(at);
            let shown = (0..problem.entries.len()).filter(is_shown).map(|at| problem.entries[at]);
            assert!(!oracle(&Problem::new(shown.collect())), "not enough {part:?} {}", context());
        }
        Decision::Undecided { reason } => panic!("{reason} {}", context()),
    }
}

#[test]
fn an_unobserved_open_write_may_be_the_only_reason_for_a_refusal() {
    let entry = |call, ret, action| Entry { call, ret, action, version: None, op: 0 };
    let mut entries = vec![
        entry(0, 1, Action::Write(1)),
        entry(2, NEVER, Action::Write(2)),
        entry(3, 4, Action::Refused(1)),
    ];
    let with = Problem::new(entries.clone());
    assert!(matches!(check(&with, &Budget::default()).decision, Decision::Linearizable { .. }));
    entries.remove(1);
    let without = Problem::new(entries);
    assert!(matches!(check(&without, &Budget::default()).decision, Decision::Violation(_)));
}

#[test]
fn longer_histories_of_a_real_register_are_valid_and_the_searches_agree_on_falsified_ones() {
    let (mut valid, mut invalid) = (0, 0);
    for seed in 0..cases() / 50 {
        let mut chance = Chance(seed ^ 0x10_0000);
        let shape =
            Shape { ops: 20 + chance.below(30), open_percent: chance.below(15), ..Shape::small(&mut chance) };
        let mut entries = simulated(&mut chance, &shape);
        let truthful = check(&Problem::new(entries.clone()), &Budget::default()).decision;
        assert!(matches!(truthful, Decision::Linearizable { .. }), "seed {seed}: {truthful:?}");
        falsify(&mut entries, &mut chance);
        let problem = Problem::new(entries);
        let truth = plainly(&problem);
        if truth {
            valid += 1
        } else {
            invalid += 1
        }
        match check(&problem, &Budget::default()).decision {
            Decision::Linearizable { .. } => assert!(truth, "portfolio, seed {seed}"),
            Decision::Violation(shrunk) => {
                assert!(!truth, "portfolio, seed {seed}");
                assert!(matches!(shrunk.plain, Found::NoOrder { .. }), "seed {seed}: {shrunk:?}");
            }
            Decision::Undecided { reason } => panic!("seed {seed}: {reason}"),
        }
    }
    assert!(valid > 0 && invalid > 0);
}

/// The size of a run with faults: twenty processes, thousands of operations on a key, hundreds never
/// answered.
#[test]
fn a_key_of_a_long_run_is_decided_by_its_versions_and_refuted_when_a_read_is_falsified() {
    for seed in 0..10 {
        let mut chance = Chance(seed);
        let shape = Shape {
            processes: 20,
            ops: 6000,
            unique: true,
            versions: true,
            open_percent: 8,
            cas_percent: 30,
        };
        let mut entries = simulated(&mut chance, &shape);
        let judged = check(&Problem::new(entries.clone()), &Budget::default());
        assert!(
            matches!(judged.decision, Decision::Linearizable { .. }),
            "seed {seed}: {:?}",
            judged.decision
        );
        assert_eq!(judged.decided_by, Some(Algorithm::Witness), "seed {seed}");
        let reads: Vec<usize> = (0..entries.len())
            .filter(|&at| matches!(entries[at].action, Action::Read(value) if value != NIL))
            .collect();
        let (early, late) = (reads[reads.len() / 4], reads[reads.len() / 2]);
        entries[late].action = entries[early].action;
        match check(&Problem::new(entries), &Budget::default()).decision {
            Decision::Violation(shrunk) => {
                assert!(matches!(shrunk.plain, Found::NoOrder { .. }));
                assert!(shrunk.part.len() <= 8, "seed {seed}: {:#?}", shrunk.part);
            }
            other => panic!("seed {seed}: {other:?}"),
        }
    }
}

#[test]
fn an_open_compare_and_set_explains_one_refusal_only_even_if_its_value_returns() {
    let entry = |call, ret, action| Entry { call, ret, action, version: None, op: 0 };
    let mut entries = vec![
        entry(0, 1, Action::Write(1)),
        entry(2, NEVER, Action::Cas { from: 1, to: 2 }),
        entry(3, 4, Action::Refused(1)),
        entry(5, 6, Action::Write(1)),
        entry(7, 8, Action::Refused(1)),
    ];
    let twice = Problem::new(entries.clone());
    assert!(!oracle(&twice));
    assert!(matches!(check(&twice, &Budget::default()).decision, Decision::Violation(_)));
    entries.push(entry(9, NEVER, Action::Cas { from: 1, to: 3 }));
    // Called before the second refusal returned, as an excuse has to be.
    entries.iter_mut().filter(|entry| entry.call == 7).for_each(|entry| entry.ret = 10);
    let enough = Problem::new(entries);
    assert!(oracle(&enough));
    assert!(matches!(check(&enough, &Budget::default()).decision, Decision::Linearizable { .. }));
}

/// The part of the values that a mask chooses, without the reads and refusals that it chooses.
fn random_part(problem: &Problem, mask: u64) -> Problem {
    let bit = |at: usize| mask >> (at % 48) & 1 == 1;
    let entries = problem.entries.iter().enumerate();
    let entries =
        entries.filter(|(at, entry)| !(entry.action.changes_nothing() && bit(at + 20) && bit(at + 7)));
    let rest = Problem::new(entries.map(|(_, entry)| *entry).collect());
    let values = (0..problem.values()).filter(|&value| bit(value)).map(|value| Val::try_from(value).unwrap());
    let values: Vec<Val> = values.filter(|&value| index(value) < rest.values()).collect();
    part::of_values(&rest, values).0
}

#[test]
fn a_part_of_a_linearizable_history_is_linearizable() {
    let mut parts = 0;
    for seed in 0..cases() {
        let mut chance = Chance(seed ^ 0x5eed_0000);
        let shape = Shape::small(&mut chance);
        let problem = Problem::new(simulated(&mut chance, &shape));
        for _ in 0..4 {
            let part = random_part(&problem, chance.next());
            assert!(oracle(&part), "seed {seed}: the part {:#?} of {:#?}", part.entries, problem.entries);
            parts += usize::from(part.entries.len() > 1 && part.has_refused);
        }
    }
    assert!(u64::try_from(parts).unwrap() > cases() / 20, "only {parts} parts had refusals");
}

/// A history that chance makes too rarely: a refusal that comes while the value is there, and a second change
/// to that value which could excuse it.
fn excused() -> Problem {
    let entry = |call, ret, action| Entry { call, ret, action, version: None, op: 0 };
    Problem::new(vec![
        entry(0, 3, Action::Write(3)),
        entry(1, 5, Action::Read(3)),
        entry(2, 9, Action::Cas { from: 3, to: 1 }),
        entry(4, 6, Action::Refused(3)),
        entry(7, 10, Action::Read(1)),
        entry(8, 12, Action::Cas { from: 1, to: 3 }),
        entry(11, 13, Action::Refused(0)),
        entry(14, 15, Action::Cas { from: 3, to: 2 }),
    ])
}

#[test]
fn a_broken_rule_of_what_is_fair_is_noticed() {
    let is_wrong = |problem: &Problem, mask: u64| oracle(problem) && !oracle(&random_part(problem, mask));
    let notices = || {
        (0..200).any(|mask| is_wrong(&excused(), Chance(mask).next()))
            || (0..40_000).any(|seed| is_wrong(&random_problem(seed), Chance(seed).next()))
    };
    assert!(!notices());
    for rule in [
        Rule::EveryRefusalIsFair,
        Rule::FairWithSeveralSources,
        Rule::FairIfNeededEver,
        Rule::AnyShieldIsFair,
    ] {
        assert!(sabotage::with(rule, notices), "{rule:?}");
    }
}

/// Whether an order with all refusals in it is none.
fn is_misplaced(problem: &Problem) -> bool {
    match blocks::test(problem) {
        Tested::Order(order) => {
            let fits = order::place_what_fits(problem, &order, &mut meter()).unwrap();
            let strict = fits.misfits == 0 && problem.entries.iter().all(|entry| !entry.is_open());
            strict && order::verify(problem, &fits.order).is_err()
        }
        _ => false,
    }
}

#[test]
fn a_broken_rule_of_placing_refusals_is_noticed() {
    let notices = || (0..20_000).any(|seed| is_misplaced(&random_problem(seed)));
    assert!(!notices());
    for rule in [Rule::PlacedWithoutLooking, Rule::PlacedWithoutFloor] {
        assert!(sabotage::with(rule, notices), "{rule:?}");
    }
}
