//! Every algorithm against a brute-force oracle, on many small histories.
//!
//! This is where a clever checker is found wrong. Most histories are answers of a simulated register, with up
//! to two of them falsified; the others have answers out of the air. They have two to six processes, few
//! operations, unique or repeated values, operations of unknown fate (some of which took effect, some late)
//! and refused compare-and-sets. The environment variable `CHECKER_FUZZ_CASES` asks for more than the usual
//! number.

use super::blocks::{self, Tested};
use super::mutant::{self, Mutant};
use super::problem::{Action, Entry, NIL, Problem, Val};
use super::{
    Algorithm, Decision, Found, Searched, check, dfs, frontier, judge, order, repair, shrink, witness,
};
use crate::budget::{Budget, Meter};
use crate::chance::Chance;
use crate::history::NEVER;

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

fn search_says(found: Found) -> bool {
    match found {
        Found::Order => true,
        Found::NoOrder { .. } => false,
        Found::GaveUp(why) => panic!("gave up on a small history: {why}"),
    }
}

fn an_order_is_one(problem: &Problem, searched: &Searched) -> bool {
    match (&searched.found, &searched.order) {
        (Found::Order, Some(order)) => order::verify(problem, order).is_ok(),
        (Found::Order, None) => false,
        _ => true,
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
        searches_are_right(&problem, truth, &context);
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

fn searches_are_right(problem: &Problem, truth: bool, context: &dyn Fn() -> String) {
    assert_eq!(search_says(dfs::plain(problem, &mut meter())), truth, "plain {}", context());
    assert_eq!(search_says(dfs::reduced(problem, &mut meter())), truth, "depth first {}", context());
    assert_eq!(search_says(frontier::search(problem, &mut meter())), truth, "frontier {}", context());
    let by_frontier = frontier::search_for(problem, true, &mut meter());
    assert!(an_order_is_one(problem, &by_frontier), "frontier {by_frontier:?} {}", context());
    let by_depth = dfs::search(problem, &mut meter());
    assert!(an_order_is_one(problem, &by_depth), "depth first {by_depth:?} {}", context());
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
            assert!(!oracle(&shrunk.part), "the part is no violation {:?} {}", shrunk.part, context());
            assert!(shrunk.part.entries.len() <= problem.entries.len());
            // What is shown must be enough: with all changes and nothing else that was looked at, still none.
            let is_shown =
                |at: &usize| !problem.entries[*at].action.changes_nothing() || shrunk.from.contains(at);
            let shown = (0..problem.entries.len()).filter(is_shown).map(|at| problem.entries[at]);
            assert!(!oracle(&Problem::new(shown.collect())), "not enough {:?} {}", shrunk.part, context());
        }
        Decision::Undecided { reason } => panic!("{reason} {}", context()),
    }
}

#[test]
fn a_part_of_a_linearizable_history_is_linearizable() {
    let mut parts = 0;
    for seed in 0..cases() {
        let mut chance = Chance(seed ^ 0x5eed_0000);
        let shape = Shape::small(&mut chance);
        let problem = Problem::new(simulated(&mut chance, &shape));
        if !oracle(&problem) {
            panic!("a simulated history has no order, seed {seed}: {:#?}", problem.entries);
        }
        for _ in 0..4 {
            let mask = chance.next();
            let part = shrink::random_part(&problem, mask);
            assert!(oracle(&part), "seed {seed}: the part {:#?} of {:#?}", part.entries, problem.entries);
            parts += usize::from(part.entries.len() > 1 && part.has_refused);
            let stretch = shrink::random_stretch(&problem, chance.next());
            assert!(
                oracle(&stretch),
                "seed {seed}: the time {:#?} of {:#?}",
                stretch.entries,
                problem.entries
            );
        }
    }
    assert!(u64::try_from(parts).unwrap() > cases() / 20, "only {parts} parts had refusals");
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
    assert!(search_says(frontier::search(&with, &mut meter())));
    assert!(search_says(dfs::reduced(&with, &mut meter())));
    assert!(matches!(check(&with, &Budget::default()).decision, Decision::Linearizable { .. }));
    entries.remove(1);
    let without = Problem::new(entries);
    assert!(!search_says(frontier::search(&without, &mut meter())));
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
        let truth = search_says(dfs::plain(&problem, &mut meter()));
        if truth {
            valid += 1
        } else {
            invalid += 1
        }
        assert_eq!(search_says(frontier::search(&problem, &mut meter())), truth, "frontier, seed {seed}");
        assert_eq!(search_says(dfs::reduced(&problem, &mut meter())), truth, "depth first, seed {seed}");
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
                assert!(shrunk.part.entries.len() <= 8, "seed {seed}: {:#?}", shrunk.part.entries);
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
    assert!(!search_says(frontier::search(&twice, &mut meter())));
    assert!(!search_says(dfs::reduced(&twice, &mut meter())));
    entries.push(entry(9, NEVER, Action::Cas { from: 1, to: 3 }));
    // Called before the second refusal returned, as an excuse has to be.
    entries.iter_mut().filter(|entry| entry.call == 7).for_each(|entry| entry.ret = 10);
    let enough = Problem::new(entries);
    assert!(oracle(&enough));
    assert!(search_says(frontier::search(&enough, &mut meter())));
    assert!(search_says(dfs::reduced(&enough, &mut meter())));
}

/// Whether the fuzzing above notices that something is wrong, within so many histories.
fn is_noticed(problem: &Problem, truth: bool, mask: u64) -> bool {
    let says = |found: Found| search_says(found) != truth;
    let orders = || {
        !an_order_is_one(problem, &frontier::search_for(problem, true, &mut meter()))
            || !an_order_is_one(problem, &dfs::search(problem, &mut meter()))
    };
    let placed = || match blocks::test(problem) {
        Tested::Order(order) => {
            let fits = order::place_what_fits(problem, &order, &mut meter()).unwrap();
            let strict = fits.misfits == 0 && problem.entries.iter().all(|entry| !entry.is_open());
            strict && order::verify(problem, &fits.order).is_err()
        }
        _ => false,
    };
    says(frontier::search(problem, &mut meter()))
        || placed()
        || says(dfs::reduced(problem, &mut meter()))
        || orders()
        || (truth && !oracle(&shrink::random_part(problem, mask)))
        || (truth && !oracle(&shrink::random_stretch(problem, mask)))
}

/// Histories that chance makes too rarely.
fn directed(number: u64) -> Option<Problem> {
    let entry = |call, ret, action| Entry { call, ret, action, version: None, op: 0 };
    let entries = match number {
        // Either of two open changes explains the first read, but only the write explains the second.
        0 => vec![
            entry(0, 1, Action::Write(1)),
            entry(2, NEVER, Action::Write(2)),
            entry(3, NEVER, Action::Cas { from: 1, to: 2 }),
            entry(4, 5, Action::Read(2)),
            entry(6, 7, Action::Write(3)),
            entry(8, 9, Action::Read(2)),
        ],
        // Of two writes of one value the one that returns later is needed later.
        1 => vec![
            entry(0, 9, Action::Write(1)),
            entry(1, 3, Action::Write(1)),
            entry(4, 5, Action::Write(2)),
            entry(6, 7, Action::Read(1)),
        ],
        // A refusal that comes while the value is there, and a second change to that value which could excuse
        // it.
        2 => vec![
            entry(0, 3, Action::Write(3)),
            entry(1, 5, Action::Read(3)),
            entry(2, 9, Action::Cas { from: 3, to: 1 }),
            entry(4, 6, Action::Refused(3)),
            entry(7, 10, Action::Read(1)),
            entry(8, 12, Action::Cas { from: 1, to: 3 }),
            entry(11, 13, Action::Refused(0)),
            entry(14, 15, Action::Cas { from: 3, to: 2 }),
        ],
        _ => return None,
    };
    Some(Problem::new(entries))
}

fn noticed_after(mutant: Option<Mutant>, histories: u64) -> Option<u64> {
    (0..histories).find(|&seed| {
        let problem = directed(seed).unwrap_or_else(|| random_problem(seed));
        let truth = oracle(&problem);
        // Which values a part is made of is drawn too; the third history needs this draw.
        let mask = Chance(if seed == 2 { 22_512 } else { seed }).next();
        match mutant {
            Some(mutant) => mutant::with(mutant, || is_noticed(&problem, truth, mask)),
            None => is_noticed(&problem, truth, mask),
        }
    })
}

/// Breaks each rule in turn. What only makes a search slower can't be noticed, and is listed as such.
#[test]
fn every_broken_rule_is_noticed_and_none_when_none_is_broken() {
    const HISTORIES: u64 = 20_000;
    assert_eq!(noticed_after(None, 2_000), None);
    let noticed: Vec<(Mutant, Option<u64>)> =
        Mutant::ALL.into_iter().map(|mutant| (mutant, noticed_after(Some(mutant), HISTORIES))).collect();
    for (mutant, after) in &noticed {
        assert_eq!(after.is_some(), !mutant.is_harmless(), "{mutant:?}: {noticed:?}");
    }
}
