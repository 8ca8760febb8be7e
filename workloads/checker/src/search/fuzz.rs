//! Every search, every rule of shrinking and every model against a brute-force oracle, on many small
//! histories.
//!
//! Most histories are answers of a simulated object, with up to two of them replaced; the others have answers
//! out of the air. They have two to six processes, few operations, values that differ or repeat, and
//! operations of unknown fate, some of which took effect, some late. The environment variable
//! `CHECKER_FUZZ_CASES` asks for more than the usual number. That the fuzzing would notice a wrong rule is
//! shown by breaking each of them.

use super::sabotage::{self, Rule};
use super::shrink::Object;
use super::{Found, depth_first, frontier, judge, plain, shrink};
use crate::budget::{Budget, Meter};
use crate::chance::Chance;
use crate::confirm;
use crate::history::{Datum, EventKind, NEVER, Rank, Record};
use crate::model::counter::{Counter, CounterOp};
use crate::model::keyed::Keyed;
use crate::model::kv::{Kv, KvOp};
use crate::model::mutex::{Mutex, MutexOp};
use crate::model::queue::{Queue, QueueOp};
use crate::model::register::{Action, Register};
use crate::model::set::{Set, SetOp};
use crate::model::{Call, Model, Shortcut, Since};
use crate::verdict::Verdict;

const USUAL_CASES: u64 = 3_000;

fn cases() -> u64 {
    std::env::var("CHECKER_FUZZ_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(USUAL_CASES)
}

/// A model that can be asked at random.
trait Play: Model {
    /// A question with an answer out of the air; `fresh` is a number that was not used before.
    fn invent(&self, chance: &mut Chance, fresh: u32) -> Self::Op;
    /// The same question without an answer; none if nothing is to be said without one.
    fn unanswered(&self, op: &Self::Op) -> Option<Self::Op>;
}

impl Play for Register {
    fn invent(&self, chance: &mut Chance, fresh: u32) -> Action {
        let any = |chance: &mut Chance| chance.below(4);
        let to = if chance.percent(50) { fresh + 4 } else { any(chance) };
        match chance.below(5) {
            0 | 1 => Action::Read(if chance.percent(50) { any(chance) } else { chance.below(fresh + 1) + 4 }),
            2 => Action::Write(to),
            3 => Action::Cas { from: any(chance), to },
            _ => Action::Refused(any(chance)),
        }
    }

    fn unanswered(&self, op: &Action) -> Option<Action> {
        matches!(op, Action::Write(_) | Action::Cas { .. }).then_some(*op)
    }
}

impl Play for Kv {
    fn invent(&self, chance: &mut Chance, _fresh: u32) -> KvOp {
        let texts = ["", "a", "b", "ab", "aa", "ba", "aab"];
        let text = Datum::text(texts[chance.below(7_usize)]);
        let f = ["get", "get", "put", "append", "append"][chance.below(5_usize)];
        let record = |kind| Record::new(0, kind, f, Datum::Nil, text.clone());
        self.decode(&record(EventKind::Invoke), Some(&record(EventKind::Ok))).unwrap().unwrap()
    }

    fn unanswered(&self, op: &KvOp) -> Option<KvOp> {
        (!matches!(op, KvOp::Get(_))).then(|| op.clone())
    }
}

/// Two keys.
impl<M: Play> Play for Keyed<M> {
    fn invent(&self, chance: &mut Chance, fresh: u32) -> Self::Op {
        let op = self.object().invent(chance, fresh);
        self.under(&Datum::Int(chance.below(2)), op).unwrap()
    }

    fn unanswered(&self, (key, op): &Self::Op) -> Option<Self::Op> {
        self.object().unanswered(op).map(|op| (*key, op))
    }
}

impl Play for Counter {
    fn invent(&self, chance: &mut Chance, _fresh: u32) -> CounterOp {
        let n = [-1, 1, 2][chance.below(3_usize)];
        let sum = chance.below(6_i64) - 1;
        match chance.below(5) {
            0 | 1 => CounterOp::Read(sum),
            2 => CounterOp::Add(n, Some(sum)),
            _ => CounterOp::Add(n, None),
        }
    }

    fn unanswered(&self, op: &CounterOp) -> Option<CounterOp> {
        match *op {
            CounterOp::Add(n, _) => Some(CounterOp::Add(n, None)),
            CounterOp::Adds(..) | CounterOp::Read(_) => None,
        }
    }
}

impl Play for Mutex {
    fn invent(&self, chance: &mut Chance, _fresh: u32) -> MutexOp {
        if chance.percent(50) { MutexOp::Acquire } else { MutexOp::Release }
    }

    fn unanswered(&self, op: &MutexOp) -> Option<MutexOp> {
        Some(*op)
    }
}

impl Play for Set {
    fn invent(&self, chance: &mut Chance, _fresh: u32) -> SetOp {
        let element = chance.below(3);
        let answer = [None, Some(true), Some(false)][chance.below(3_usize)];
        let is_whole = self.part(&SetOp::Add(0, None)).is_none();
        match chance.below(if is_whole { 6 } else { 5 }) {
            0 | 1 => SetOp::Add(element, answer),
            2 | 3 => SetOp::Remove(element, answer),
            4 => SetOp::Contains(element, chance.percent(50)),
            _ => SetOp::Read((0..3).filter(|_| chance.percent(50)).collect()),
        }
    }

    fn unanswered(&self, op: &SetOp) -> Option<SetOp> {
        match *op {
            SetOp::Add(element, _) => Some(SetOp::Add(element, None)),
            SetOp::Remove(element, _) => Some(SetOp::Remove(element, None)),
            SetOp::Contains(..) | SetOp::Read(_) => None,
        }
    }
}

impl Play for Queue {
    fn invent(&self, chance: &mut Chance, fresh: u32) -> QueueOp {
        match chance.below(5) {
            0 | 1 => QueueOp::Enqueue(if chance.percent(70) { fresh } else { chance.below(fresh + 1) }),
            2 => QueueOp::Empty,
            _ => QueueOp::Dequeue(chance.below(fresh + 1)),
        }
    }

    fn unanswered(&self, op: &QueueOp) -> Option<QueueOp> {
        Some(match op {
            QueueOp::Enqueue(_) => *op,
            _ => QueueOp::Take,
        })
    }
}

/// A random history: mostly answers of a real object, some of unknown fate.
fn history<M: Play>(model: &M, seed: u64) -> Vec<Call<M::Op>> {
    let mut chance = Chance(seed);
    let chance = &mut chance;
    let processes: u32 = 2 + chance.below(5);
    let ops = usize::try_from(2 + chance.below(7)).unwrap();
    let open_percent = [0, 20, 50][chance.below(3_usize)];
    let wrong_percent = [0, 0, 15, 100][chance.below(4_usize)];
    let mut running: Vec<Option<(usize, bool)>> = vec![None; usize::try_from(processes).unwrap()];
    let mut calls: Vec<Call<M::Op>> = Vec::new();
    let mut late: Vec<M::Op> = Vec::new();
    let (mut state, mut rank, mut fresh): (M::State, Rank, u32) = (model.initial(), 0, 0);
    loop {
        let process = chance.below(processes);
        if !late.is_empty() && chance.percent(20) {
            let at = chance.below(u32::try_from(late.len()).unwrap());
            let op = late.swap_remove(usize::try_from(at).unwrap());
            state = model.apply(&state, &op).unwrap_or(state);
            continue;
        }
        match running[usize::try_from(process).unwrap()].take() {
            None if calls.len() < ops => {
                running[usize::try_from(process).unwrap()] = Some((calls.len(), false));
                let op = model.invent(chance, fresh);
                fresh += 1;
                let index = u64::try_from(calls.len()).unwrap();
                let process = process.into();
                calls.push(Call {
                    op,
                    call: rank,
                    ret: NEVER,
                    process,
                    index,
                    invoke_ns: 0,
                    complete_ns: None,
                });
                rank += 1;
            }
            None if running.iter().all(Option::is_none) => {
                take_answers_of_open(model, &mut calls);
                return calls;
            }
            None => {}
            Some((at, false)) => {
                if chance.percent(open_percent)
                    && let Some(op) = model.unanswered(&calls[at].op)
                {
                    match chance.below(3) {
                        0 => state = model.apply(&state, &op).unwrap_or(state),
                        1 => late.push(op),
                        _ => {}
                    }
                    continue;
                }
                if !chance.percent(wrong_percent)
                    && let Some((op, next)) = right_now(model, &state, chance, fresh)
                {
                    (calls[at].op, state) = (op, next);
                }
                running[usize::try_from(process).unwrap()] = Some((at, true));
            }
            Some((at, true)) => {
                calls[at].ret = rank;
                rank += 1;
            }
        }
    }
}

/// Something that is right in a state, and the state after it, if chance finds it soon.
fn right_now<M: Play>(
    model: &M,
    state: &M::State,
    chance: &mut Chance,
    fresh: u32,
) -> Option<(M::Op, M::State)> {
    (0..20).map(|_| model.invent(chance, fresh)).find_map(|op| {
        let next = model.apply(state, &op)?;
        Some((op, next))
    })
}

/// Takes the answer from each call that never returned, and leaves out those that say nothing without one.
fn take_answers_of_open<M: Play>(model: &M, calls: &mut Vec<Call<M::Op>>) {
    calls.retain(|call| !call.is_open() || model.unanswered(&call.op).is_some());
    calls.iter_mut().filter(|call| call.is_open()).for_each(|call| {
        call.op = model.unanswered(&call.op).unwrap();
    });
}

/// The oracle: every order, one after the other.
fn has_order<M: Model>(model: &M, calls: &[&Call<M::Op>]) -> bool {
    fn go<M: Model>(model: &M, calls: &[&Call<M::Op>], left: &mut Vec<usize>, state: &M::State) -> bool {
        if left.iter().all(|&at| calls[at].is_open()) {
            return true;
        }
        for position in 0..left.len() {
            let at = left[position];
            if left.iter().any(|&other| calls[other].ret < calls[at].call) {
                continue;
            }
            if let Some(next) = model.apply(state, &calls[at].op) {
                left.remove(position);
                let found = go(model, calls, left, &next);
                left.insert(position, at);
                if found {
                    return true;
                }
            }
        }
        false
    }
    go(model, calls, &mut (0..calls.len()).collect(), &model.initial())
}

fn meter() -> Meter {
    Meter::new(&Budget::new(10_000_000, 256 << 20))
}

/// What is wrong with the answers about one history.
fn disagreement<M: Play + Sync>(model: &M, seed: u64) -> Option<String>
where
    M::Op: Send + Sync,
{
    let history = history(model, seed);
    let expected = has_order(model, &history.iter().collect::<Vec<_>>());
    compared(model, &history, expected, &mut Chance(seed ^ 0x5555)).err()
}

/// Compares every answer about a history with the expected one.
///
/// # Errors
/// What is wrong, as in all that it calls.
fn compared<M: Play + Sync>(
    model: &M,
    history: &[Call<M::Op>],
    expected: bool,
    chance: &mut Chance,
) -> Result<(), String>
where
    M::Op: Send + Sync,
{
    let calls: Vec<&Call<M::Op>> = history.iter().collect();
    let stuck_at = searches_agree(model, &calls, expected)?;
    shortcut_is_right(model, &calls, expected)?;
    parts_keep_an_order(model, &calls, expected, chance)?;
    let is_shown = verdict_is_right(model, history, expected)?;
    match (is_shown, stuck_at) {
        (true, Some(stuck_at)) => shrunk_has_no_order(model, &calls, stuck_at),
        (true, None) => Err("a counterexample is shown, and no search got stuck".to_owned()),
        (false, _) => Ok(()),
    }
}

/// Where all searches get stuck, if there is no order.
fn searches_agree<M: Play>(
    model: &M,
    calls: &[&Call<M::Op>],
    expected: bool,
) -> Result<Option<usize>, String> {
    let mut stuck = Vec::new();
    let seen = model.as_seen_by(calls);
    let seen = seen.as_ref().unwrap_or(model);
    let searches = [
        ("plain", plain::search(model, calls, &mut meter())),
        ("frontier", frontier::search(model, calls, true, &mut meter())),
        ("depth first", depth_first::search(model, calls, &mut meter())),
        ("plain, as it is seen", plain::search(seen, calls, &mut meter())),
        ("frontier, as it is seen", frontier::search(seen, calls, true, &mut meter())),
        ("depth first, as it is seen", depth_first::search(seen, calls, &mut meter())),
    ];
    for (name, found) in searches {
        match found {
            Found::Order(order) => {
                if !expected {
                    return Err(format!("{name} finds an order where none is"));
                }
                let order = order.expect("it was asked for");
                if let Err(unfit) = confirm::object(model, calls, &order) {
                    return Err(format!("the order of {name}: {unfit}"));
                }
            }
            Found::NoOrder { .. } if expected => return Err(format!("{name} finds no order")),
            Found::NoOrder { stuck_at } => stuck.push(stuck_at),
            Found::GaveUp { why, .. } => return Err(format!("{name}: {why}")),
        }
    }
    if stuck.windows(2).any(|pair| pair[0] != pair[1]) {
        return Err(format!("stuck at different places: {stuck:?}"));
    }
    Ok(stuck.first().copied())
}

fn shortcut_is_right<M: Play>(model: &M, calls: &[&Call<M::Op>], expected: bool) -> Result<(), String> {
    match model.shortcut(calls) {
        Shortcut::Refuted { sentence, .. } if expected => Err(format!("refuted wrongly: {sentence}")),
        Shortcut::Order(order) if !expected && confirm::object(model, calls, &order).is_ok() => {
            Err("a wrong order was confirmed".to_owned())
        }
        _ => Ok(()),
    }
}

/// What is left of a history that has an order has one too: the parts that shrinking tries, and all since a
/// moment.
fn parts_keep_an_order<M: Play>(
    model: &M,
    calls: &[&Call<M::Op>],
    expected: bool,
    chance: &mut Chance,
) -> Result<(), String> {
    for _ in 0..4 {
        let part = shrink::random_part(model, calls, &mut |bound| chance.below(bound));
        if expected && !has_order(model, &part.iter().collect::<Vec<_>>()) {
            return Err(format!("a part has no order although the whole has: {part:?}"));
        }
    }
    let moment = Rank::try_from(chance.below(2 * calls.len() + 1)).unwrap();
    if let Some(Since { rest, .. }) = model.since(calls, moment)
        && expected
        && !has_order(model, &rest.iter().map(|(_, call)| call).collect::<Vec<_>>())
    {
        return Err(format!("since {moment} there is no order although the whole has one: {rest:?}"));
    }
    Ok(())
}

/// Whether a counterexample is shown.
fn verdict_is_right<M: Play + Sync>(
    model: &M,
    history: &[Call<M::Op>],
    expected: bool,
) -> Result<bool, String>
where
    M::Op: Send + Sync,
{
    let judged = judge(model, history, &Budget::new(10_000_000, 256 << 20), 1, true);
    let verdict = if history.is_empty() {
        Verdict::Unknown
    } else {
        [Verdict::Invalid, Verdict::Valid][usize::from(expected)]
    };
    if judged.result.verdict != verdict {
        return Err(format!("judged {}: {}", judged.result.verdict, judged.result.summary));
    }
    let shown = judged.result.counterexample;
    if shown.as_ref().is_some_and(|shown| !shown.rechecked) {
        return Err("the counterexample was not confirmed".to_owned());
    }
    Ok(shown.is_some())
}

/// Shrinks the part of the object in which the searches got stuck.
fn shrunk_has_no_order<M: Play>(model: &M, calls: &[&Call<M::Op>], stuck_at: usize) -> Result<(), String> {
    let by_part = calls.iter().filter(|call| model.part(&call.op) == model.part(&calls[stuck_at].op));
    let of_part: Vec<&Call<M::Op>> = by_part.copied().collect();
    if let Found::NoOrder { stuck_at } = plain::search(model, &of_part, &mut meter()) {
        let shrunk = shrink::from_stuck(Object::plain(model), &of_part, stuck_at, &Budget::default());
        if has_order(model, &shrunk.calls()) {
            return Err("the counterexample has an order".to_owned());
        }
    }
    Ok(())
}

fn fuzz<M: Play + Sync>(new: impl Fn() -> M)
where
    M::Op: Send + Sync,
{
    let model = new();
    let mut linearizable = 0;
    for seed in 0..cases() {
        if let Some(wrong) = disagreement(&model, seed) {
            let told: Vec<String> = history(&model, seed)
                .iter()
                .map(|call| format!("{:>3} {:>10} p{} {:?}", call.call, call.ret, call.process, call.op))
                .collect();
            panic!("seed {seed}: {wrong}\n{}", told.join("\n"));
        }
        let history = history(&model, seed);
        linearizable += u64::from(has_order(&model, &history.iter().collect::<Vec<_>>()));
    }
    let share = linearizable * 100 / cases();
    assert!((10..90).contains(&share), "{share} % are linearizable: such fuzzing shows little");
}

#[test]
fn the_searches_are_right_about_registers() {
    fuzz(|| Register::default().with_refusals().with_reads_of_nothing());
}

#[test]
fn the_searches_are_right_about_keys_one_by_one() {
    fuzz(|| Keyed::new(Kv::default()));
}

#[test]
fn the_searches_are_right_about_a_map_as_a_whole() {
    fuzz(|| Keyed::whole(Kv::default()));
}

#[test]
fn the_searches_are_right_about_locks() {
    fuzz(|| Mutex);
}

#[test]
fn the_searches_are_right_about_elements_one_by_one() {
    fuzz(Set::default);
}

#[test]
fn the_searches_are_right_about_a_set_as_a_whole() {
    fuzz(Set::whole);
}

#[test]
fn the_searches_are_right_about_counters() {
    fuzz(|| Counter);
}

#[test]
fn the_searches_are_right_about_queues() {
    fuzz(Queue::default);
}

/// Whether the fuzzing notices that a rule is broken.
fn notices(rule: Rule) -> bool {
    fn on<M: Play + Sync>(model: &M, rule: Rule) -> bool
    where
        M::Op: Send + Sync,
    {
        sabotage::with(rule, || (0..USUAL_CASES).any(|seed| disagreement(model, seed).is_some()))
    }
    let register = Register::default().with_refusals().with_reads_of_nothing();
    on(&register, rule) || on(&Queue::default(), rule) || on(&Mutex, rule)
}

#[test]
fn every_broken_rule_is_noticed() {
    for rule in [
        Rule::EagerForAll,
        Rule::AllAreSame,
        Rule::LaterOfSame,
        Rule::SpendthriftWins,
        Rule::FewerObservationsWin,
        Rule::ForgetsThePast,
        Rule::PendingAreDropped,
        Rule::EveryRefusalIsFair,
    ] {
        assert!(notices(rule), "{rule:?}");
    }
}
