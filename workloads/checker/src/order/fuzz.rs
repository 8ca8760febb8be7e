//! Small random histories, judged by everything here and by an oracle that tries all orders.
//!
//! The oracle reads the definitions of the conditions and nothing else. Histories have 2 to 5 processes, 1 to
//! 3 keys and up to 9 operations: reads, writes, compare-and-sets that succeed and fail, values that are
//! written twice, operations of unknown fate, sessions that outlive their processes, and versions and zxids
//! that tell the truth or lie. Their answers come from an order that keeps all of real time, that of updates,
//! or none, and some are then falsified. `ORDER_FUZZ=100000 cargo test --release fuzz` goes on for longer.

use std::collections::BTreeSet;

use super::mutate::{self, Mutation};
use super::part::{registers_of, with_sources};
use super::registers::Registers;
use super::search::Found;
use super::{Condition, Guarantee, RealTime, check_by, check_registers, decide, judge_registers};
use crate::budget::{Budget, Meter};
use crate::chance::Chance;
use crate::history::{
    BAD_VERSION, Event, EventKind, Function, History, NEVER, Op, OpKind, Outcome, Record, Value,
};
use crate::model::{Call, Model};
use crate::verdict::{Judged, Verdict};

/// One operation before it has an answer.
#[derive(Clone, Debug)]
struct Asked {
    process: u64,
    session: Option<u64>,
    key: u64,
    kind: OpKind,
    call: u64,
    ret: Option<u64>,
}

impl Asked {
    fn is_update(&self) -> bool {
        !matches!(self.kind, OpKind::Read { .. })
    }

    fn group(&self) -> (bool, u64) {
        self.session.map_or((false, self.process), |session| (true, session))
    }

    fn is_before(&self, other: &Self, real_time: RealTime) -> bool {
        let bound = match real_time {
            RealTime::All => true,
            RealTime::Updates => self.is_update() && other.is_update(),
            RealTime::None => false,
        };
        self.ret.is_some_and(|ret| ret < other.call) && (bound || self.group() == other.group())
    }
}

fn asked(chance: &mut Chance) -> Vec<Asked> {
    let (processes, keys) = (2 + chance.below(4), 1 + chance.below(3));
    let count = 2 + chance.below(8);
    let unique = chance.percent(65);
    let sessions = chance.percent(40);
    let cas_percent = [0, 25, 50][chance.below(3)];
    let open_percent = [0, 10, 30][chance.below(3)];
    let own_keys = chance.percent(15);
    let mut running: Vec<Option<usize>> = vec![None; usize::try_from(processes).unwrap()];
    let mut names: Vec<u64> = (0..processes).collect();
    let mut all: Vec<Asked> = Vec::new();
    let mut next_value = 0_i64;
    for time in 0.. {
        let client = chance.below(running.len());
        match running[client].take() {
            None if all.len() < count => {
                next_value += 1;
                let value = if unique { next_value } else { 1 + next_value % 3 };
                let any = chance.below(4_i64);
                let kind = match chance.below(100) {
                    roll if roll < cas_percent => OpKind::Cas {
                        from: (any > 0).then(|| next_value - any).filter(|&v| v > 0),
                        to: value,
                    },
                    roll if roll < cas_percent + (100 - cas_percent) / 2 => OpKind::Write { value },
                    _ => OpKind::Read { value: None },
                };
                running[client] = Some(all.len());
                // Two clients share the session of the first of them, sometimes.
                let session = sessions.then(|| u64::try_from(client).unwrap() / (1 + chance.below(8) / 7));
                let key = if own_keys { names[client] % keys } else { chance.below(keys) };
                let process = names[client];
                all.push(Asked { process, session, key, kind, call: time, ret: None });
            }
            None if running.iter().all(Option::is_none) => return all,
            None => {}
            Some(op) if all[op].is_update() && chance.percent(open_percent) => names[client] += processes,
            Some(op) if chance.percent(70) => all[op].ret = Some(time),
            Some(op) => running[client] = Some(op),
        }
    }
    all
}

/// A history, and whether its versions and zxids tell the truth.
pub(super) fn random_history(seed: u64) -> (History, bool) {
    let mut chance = Chance(seed);
    let ops = asked(&mut chance);
    let real_time = [RealTime::All, RealTime::Updates, RealTime::None][chance.below(3)];
    let happens: Vec<bool> = ops.iter().map(|op| op.ret.is_some() || chance.percent(50)).collect();
    let mut left: Vec<usize> = (0..ops.len()).filter(|&op| happens[op]).collect();
    let mut holds: [(Option<i64>, i64); 3] = [(None, 0); 3];
    let mut zxid = 0;
    // For each operation: whether it was refused, what it read, and the version and zxid that it was told.
    let mut answers: Vec<(bool, Option<i64>, i64, u64)> = vec![(false, None, 0, 0); ops.len()];
    while !left.is_empty() {
        let ready: Vec<usize> = left
            .iter()
            .copied()
            .filter(|&op| left.iter().all(|&other| !ops[other].is_before(&ops[op], real_time)))
            .collect();
        let op = ready[chance.below(ready.len())];
        left.retain(|&other| other != op);
        let held = &mut holds[usize::try_from(ops[op].key).unwrap()];
        zxid += u64::from(ops[op].is_update());
        let refused = match ops[op].kind {
            OpKind::Write { value } => {
                *held = (Some(value), held.1 + 1);
                false
            }
            OpKind::Cas { from, to } if from == held.0 => {
                *held = (Some(to), held.1 + 1);
                false
            }
            kind => matches!(kind, OpKind::Cas { .. }),
        };
        answers[op] = (refused, held.0, held.1, zxid);
    }
    let mut truthful = true;
    for _ in 0..[0, 0, 1, 2][chance.below(4)] {
        let op = chance.below(ops.len());
        truthful = false;
        match ops[op].kind {
            OpKind::Read { .. } => {
                answers[op].1 = [None, Some(1), Some(2), Some(3), Some(4)][chance.below(5)]
            }
            OpKind::Cas { .. } => answers[op].0 = !answers[op].0,
            _ => (answers[op].2, answers[op].3) = (chance.below(4_i64), chance.below(6)),
        }
    }
    let told = chance.percent(50);
    let mut events: Vec<Event> = Vec::new();
    for (op, answer) in ops.iter().zip(answers) {
        events.extend(lines(op, answer, told));
    }
    events.sort_by_key(|event| event.time);
    (History::from_events(events).unwrap(), truthful)
}

fn lines(
    op: &Asked,
    (refused, read, version, zxid): (bool, Option<i64>, i64, u64),
    told: bool,
) -> Vec<Event> {
    let (f, argument) = match op.kind {
        OpKind::Write { value } => (Function::WRITE, Value::One(value)),
        OpKind::Cas { from, to } => (Function::CAS, Value::Pair(from, to)),
        _ => (Function::READ, Value::Null),
    };
    let mut invoke = Event::new(op.process, EventKind::Invoke, f, op.key, argument.clone(), op.call);
    invoke.session = op.session;
    let Some(ret) = op.ret else { return vec![invoke] };
    let kind = if refused { EventKind::Fail } else { EventKind::Ok };
    let answer = if f == Function::READ { read.map_or(Value::Null, Value::One) } else { argument };
    let mut completed = Event::new(op.process, kind, f, op.key, answer, ret);
    completed.session = op.session;
    completed.error = refused.then(|| BAD_VERSION.into());
    if told && !refused && version > 0 {
        completed.version = Some(version);
        completed.zxid = op.is_update().then_some(zxid);
    }
    vec![invoke, completed]
}

/// Whether any order of the operations is what the condition asks for: all of them are tried.
fn oracle(history: &History, real_time: RealTime) -> bool {
    let happened = |op: &&Op| op.outcome == Outcome::Ok || op.is_refused_cas();
    let ops: Vec<&Op> = history.ops().iter().filter(|op| happened(op) || op.is_open_change()).collect();
    let group = |op: &Op| (op.session.is_some(), op.session.unwrap_or(op.process));
    let before = |a: &Op, b: &Op| {
        let bound = match real_time {
            RealTime::All => true,
            RealTime::Updates => a.is_change() && b.is_change(),
            RealTime::None => false,
        };
        a.ret != NEVER && a.ret < b.call && (bound || group(a) == group(b))
    };
    let must: u32 = ops.iter().enumerate().filter(|(_, op)| happened(op)).map(|(at, _)| 1 << at).sum();
    let mut reached = BTreeSet::from([(0_u32, [None::<i64>; 3])]);
    let mut open: Vec<(u32, [Option<i64>; 3])> = reached.iter().copied().collect();
    while let Some((placed, holds)) = open.pop() {
        if placed & must == must {
            return true;
        }
        for (at, op) in ops.iter().enumerate().filter(|(at, _)| placed & (1 << at) == 0) {
            if (0..ops.len()).any(|other| placed & (1 << other) == 0 && before(ops[other], op)) {
                continue;
            }
            let key = usize::try_from(op.key).unwrap();
            let mut then = holds;
            let right = match op.kind() {
                OpKind::Read { value } => value == holds[key],
                OpKind::Cas { from, .. } if op.outcome == Outcome::Fail => from != holds[key],
                OpKind::Cas { from, .. } if from != holds[key] => false,
                kind => {
                    then[key] = kind.written();
                    true
                }
            };
            if right && reached.insert((placed | (1 << at), then)) {
                open.push((placed | (1 << at), then));
            }
        }
    }
    false
}

/// Registers as a model that knows nothing of sources and readers.
struct Cells;

impl Model for Cells {
    type Op = Op;
    type State = Vec<(u64, i64)>;

    fn name(&self) -> &'static str {
        "cells"
    }

    fn initial(&self) -> Self::State {
        Vec::new()
    }

    fn apply(&self, state: &Self::State, op: &Op) -> Option<Self::State> {
        let held = state.iter().find(|(key, _)| *key == op.key).map(|&(_, value)| value);
        let written = match op.kind() {
            OpKind::Read { value } => return (value == held).then(|| state.clone()),
            OpKind::Cas { from, .. } if op.outcome == Outcome::Fail => {
                return (from != held).then(|| state.clone());
            }
            OpKind::Cas { from, .. } if from != held => return None,
            kind => kind.written()?,
        };
        let mut then: Self::State = state.iter().copied().filter(|(key, _)| *key != op.key).collect();
        then.push((op.key, written));
        then.sort_unstable();
        Some(then)
    }

    fn decode(&self, _: &Record, _: Option<&Record>) -> Result<Option<Op>, String> {
        Err("not read from lines".to_owned())
    }

    fn part(&self, op: &Op) -> Option<u64> {
        Some(op.key)
    }

    fn changes(&self, op: &Op) -> bool {
        op.is_change()
    }
}

fn calls(history: &History) -> Vec<Call<Op>> {
    let says = |op: &&Op| op.outcome == Outcome::Ok || op.is_refused_cas() || op.is_open_change();
    let call = |op: &Op| Call {
        op: op.clone(),
        call: op.call,
        ret: op.ret,
        process: op.process,
        index: op.index,
        invoke_ns: op.invoke_ns,
        complete_ns: op.complete_ns,
    };
    history.ops().iter().filter(says).map(call).collect()
}

fn group_of_call(call: &Call<Op>) -> u64 {
    call.op.session.map_or(call.process, |session| 1_000 + session)
}

fn disagreement(what: &str, judged: &Judged, exists: bool) -> Result<(), String> {
    let expected = if exists { Verdict::Valid } else { Verdict::Invalid };
    if judged.result.verdict != expected {
        return Err(format!(
            "{what} says {}, not {expected}: {}",
            judged.result.verdict, judged.result.summary
        ));
    }
    match &judged.result.counterexample {
        Some(counterexample) if !counterexample.rechecked => Err(format!("{what}: not judged again")),
        None if !exists => Err(format!("{what}: nothing to show")),
        _ if exists && judged.witness.len() != 1 => Err(format!("{what}: no witness")),
        _ => Ok(()),
    }
}

/// Judges one history by everything.
fn judge(seed: u64) -> Result<[bool; 3], String> {
    let (history, truthful) = random_history(seed);
    let budget = Budget::new(5_000_000, 64 << 20);
    let exists = [RealTime::All, RealTime::Updates, RealTime::None].map(|rt| oracle(&history, rt));
    if (exists[0] && !exists[1]) || (exists[1] && !exists[2]) {
        return Err("the oracle finds a stronger condition kept and a weaker one broken".to_owned());
    }
    if !history.ops().iter().any(|op| op.outcome == Outcome::Ok || op.is_refused_cas()) {
        // Nothing was answered, and nothing is claimed.
        return Ok(exists);
    }
    let all = judge_registers(&history, Condition::OrderedSequential, RealTime::All, &budget);
    disagreement("registers, all of real time", &all, exists[0])?;
    let calls = calls(&history);
    for (condition, exists) in [(Condition::OrderedSequential, exists[1]), (Condition::Sequential, exists[2])]
    {
        disagreement(condition.as_str(), &check_registers(&history, condition, &budget), exists)?;
        let general = check_by(&Cells, &calls, group_of_call, condition, &budget);
        disagreement(&format!("{condition:?} by the search alone"), &general, exists)?;
    }
    for condition in Condition::ALL.into_iter().filter(|condition| !guarantees_of(*condition).is_empty()) {
        let result = check_registers(&history, condition, &budget).result;
        let stands = writes_can_stand(&history, &guarantees_of(condition));
        if result.verdict == Verdict::Invalid && truthful && (exists[2] || stands == Some(true)) {
            return Err(format!("a session is accused by {}: {}", condition.as_str(), result.summary));
        }
        if result.verdict == Verdict::Valid && truthful && stands == Some(false) {
            return Err(format!("no session is accused by {}: {}", condition.as_str(), result.summary));
        }
    }
    Ok(exists)
}

fn guarantees_of(condition: Condition) -> Vec<Guarantee> {
    match condition {
        Condition::SessionGuarantees => Guarantee::ALL.to_vec(),
        Condition::Guarantee(one) => vec![one],
        _ => Vec::new(),
    }
}

/// Orders of more writes of a key are not tried.
const MOST_WRITES: usize = 6;

/// Whether the writes of each key can stand in an order, the same for all, that these guarantees allow: all
/// orders are tried. None where a value was written twice, for nobody knows which was read, and where there
/// are too many orders.
fn writes_can_stand(history: &History, guarantees: &[Guarantee]) -> Option<bool> {
    let keys = history.by_key();
    let each: Option<Vec<bool>> =
        keys.iter().map(|(_, ops)| writes_of_a_key_can_stand(ops, guarantees)).collect();
    each.map(|each| each.into_iter().all(|stands| stands))
}

fn writes_of_a_key_can_stand(ops: &[&Op], guarantees: &[Guarantee]) -> Option<bool> {
    let mut writes: Vec<i64> = ops.iter().filter_map(|op| op.kind().written()).collect();
    let apart: BTreeSet<i64> = writes.iter().copied().collect();
    if apart.len() < writes.len() || writes.len() > MOST_WRITES {
        return None;
    }
    let group = |op: &Op| (op.session.is_some(), op.session.unwrap_or(op.process));
    let is_read = |op: &Op| matches!(op.kind(), OpKind::Read { .. });
    let answered = ops.iter().filter(|op| op.outcome == Outcome::Ok);
    let pairs = answered.clone().flat_map(|a| answered.clone().map(move |b| (a, b)));
    let pairs: Vec<(&Op, &Op)> = pairs
        .filter(|(a, b)| a.ret < b.call && group(a) == group(b))
        .filter(|(a, b)| {
            guarantees.contains(&match (is_read(a), is_read(b)) {
                (true, true) => Guarantee::MonotonicReads,
                (false, true) => Guarantee::ReadYourWrites,
                (false, false) => Guarantee::MonotonicWrites,
                (true, false) => Guarantee::WritesFollowReads,
            })
        })
        .map(|(a, b)| (*a, *b))
        .collect();
    let allows = |order: &[i64]| {
        let place = |op: &Op| {
            let shown = match op.kind() {
                OpKind::Read { value } => value,
                kind => kind.written(),
            };
            shown.map(|shown| order.iter().position(|value| *value == shown))
        };
        pairs.iter().all(|(a, b)| match (place(a), place(b)) {
            // What nobody wrote has no place, and nothing is asked of it.
            (Some(None), _) | (_, Some(None)) => true,
            (before, now) => before < now || (before == now && is_read(b)),
        })
    };
    Some(some_order(&mut writes, 0, &allows))
}

/// Whether an order of these, of which the first ones are chosen, is allowed.
fn some_order(values: &mut [i64], chosen: usize, allows: &impl Fn(&[i64]) -> bool) -> bool {
    if chosen == values.len() {
        return allows(values);
    }
    (chosen..values.len()).any(|next| {
        values.swap(chosen, next);
        let found = some_order(values, chosen + 1, allows);
        values.swap(chosen, next);
        found
    })
}

/// A part that a counterexample might keep, chosen at random.
fn part_is_explained(seed: u64) -> bool {
    let whole = Registers::of(&random_history(seed).0);
    let mut chance = Chance(!seed);
    let percent = 30 + chance.below(60);
    let kept: BTreeSet<usize> = (0..whole.entries.len()).filter(|_| chance.percent(percent)).collect();
    let kept = if chance.percent(50) { with_sources(&whole, &kept) } else { kept };
    let part = registers_of(&whole, &kept);
    [RealTime::All, RealTime::Updates, RealTime::None].into_iter().all(|real_time| {
        let plain = |registers: &Registers| {
            let mut meter = Meter::new(&Budget::new(1_000_000, 64 << 20));
            matches!(decide::plain(registers, real_time, &mut meter), Found::Order(_))
        };
        !plain(&whole) || plain(&part)
    })
}

#[test]
fn a_part_of_what_has_an_order_has_one() {
    assert_eq!((0..count()).find(|&seed| !part_is_explained(seed)), None);
    for rule in [Mutation::LoneReaders, Mutation::LoneCas, Mutation::LoneRefusals] {
        let noticed = (0..30_000).find(|&seed| mutate::with(rule, || !part_is_explained(seed)));
        assert!(noticed.is_some(), "{rule:?} went unnoticed");
    }
}

fn count() -> u64 {
    std::env::var("ORDER_FUZZ").ok().and_then(|count| count.parse().ok()).unwrap_or(3_000)
}

#[test]
fn everybody_agrees_with_the_oracle() {
    let mut seen = [[0_u64; 2]; 3];
    let count = count();
    for seed in 0..count {
        match judge(seed) {
            Ok(exists) => (0..3).for_each(|rt| seen[rt][usize::from(exists[rt])] += 1),
            Err(why) => panic!("seed {seed}: {why}\n{:#?}", random_history(seed).0.ops()),
        }
    }
    // A fuzz that only ever meets one answer shows nothing.
    for rt in seen {
        assert!(rt.iter().all(|&met| met > count / 20), "{seen:?}");
    }
    println!("{count} histories; without and with an order for all, updates', no real time: {seen:?}");
}

#[test]
fn every_broken_rule_is_noticed() {
    let rules = [
        Mutation::TimeBindsReads,
        Mutation::NoProgramOrder,
        Mutation::HurryChanges,
        Mutation::ForgetState,
        Mutation::InitialReversed,
        Mutation::OverwrittenWide,
        Mutation::OutdatedWide,
        Mutation::OptionalReaders,
        Mutation::SparesDropped,
        Mutation::OpenDropped,
        Mutation::OpenHappened,
        Mutation::SparesReversed,
        Mutation::AlwaysLocal,
        Mutation::FirstSource,
    ];
    for rule in rules {
        let noticed = (0..30_000).find(|&seed| mutate::with(rule, || judge(seed)).is_err());
        assert!(noticed.is_some(), "{rule:?} went unnoticed");
        println!("{rule:?}: noticed by seed {}", noticed.unwrap_or_default());
    }
}
