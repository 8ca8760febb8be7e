//! One way to ask: records, a model, a condition, and what the answer may cost.

use std::collections::HashMap;
use std::num::NonZeroUsize;

use super::independent::{Independent, Records};
use super::keyed::Registers;
use super::{Condition, ModelName, Unconfirmed, confirm_orders};
use crate::budget::Budget;
use crate::confirm::RealTime;
use crate::history::{Datum, EventKind, History, LoadError, Op, OpKind, Outcome, Pairing, Record, event_of};
use crate::model::counter::Counter;
use crate::model::keyed::Keyed;
use crate::model::kv::Kv;
use crate::model::multi_register::MultiRegister;
use crate::model::mutex::Mutex;
use crate::model::queue::Queue;
use crate::model::set::Set;
use crate::model::{Call, Model, pair};
use crate::verdict::{CheckResult, Judged, PartOrder, Verdict};
use crate::{linearizable, order, search, txn, watch};

/// What is asked.
#[derive(Clone, Debug)]
pub struct Question {
    /// What the history is of.
    pub model: ModelName,
    /// What it has to fulfil.
    pub condition: Condition,
    /// What the answer may cost, for each part of the object.
    pub budget: Budget,
    /// Parts that are judged at a time.
    pub threads: NonZeroUsize,
    /// Whether a valid verdict is to come with the order that proves it.
    pub witness: bool,
}

/// Why a question has no answer.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// The model has no such condition.
    #[error("{condition} is no condition of {model}")]
    NoSuchCondition {
        /// The model.
        model: ModelName,
        /// What was asked for.
        condition: Condition,
    },
    /// The history can't be read, or is not of this model.
    #[error(transparent)]
    History(#[from] LoadError),
}

/// Judges the records of a history.
///
/// # Errors
/// [`Refusal`] when the condition does not go with the model, or the records do not.
pub fn judge(records: Records<'_>, question: &Question) -> Result<Judged, Refusal> {
    let Question { model, condition, .. } = *question;
    if !model.conditions().contains(&condition) {
        return Err(Refusal::NoSuchCondition { model, condition });
    }
    let mut records = Independent::new(model, records);
    let is_keyed = records.is_keyed()?;
    if records.are_judged_apart(ordered(condition).is_some()) {
        return apart(records, question);
    }
    let (judged, is_observed) = together(&mut records, is_keyed, question)?;
    Ok(if is_observed { judged } else { unobserved(judged) })
}

/// Judges the history of each key as if there were no other.
fn apart(records: Independent<'_>, question: &Question) -> Result<Judged, Refusal> {
    let keys = by_key(records)?;
    let number = keys.len();
    let mut all: Vec<(Datum, Judged)> = Vec::new();
    let mut any_observed = false;
    for (key, records) in keys {
        let (judged, is_observed) = together(&mut records.into_iter().map(Ok), true, question)?;
        any_observed |= is_observed;
        all.push((key, judged));
    }
    let witness = all.iter_mut().flat_map(|(_, judged)| std::mem::take(&mut judged.witness)).collect();
    let of = |verdict| all.iter().position(|(_, judged)| judged.result.verdict == verdict);
    let told = of(Verdict::Invalid).or_else(|| of(Verdict::Unknown));
    let (key, Judged { mut result, .. }) = all.swap_remove(told.unwrap_or_default());
    if told.is_some() {
        result.summary = format!("of key {key}: {}", result.summary);
        return Ok(Judged { result, witness: Vec::new() });
    }
    result.summary = format!("each of {number} keys by itself; of key {key}: {}", result.summary);
    let judged = Judged { result, witness };
    Ok(if any_observed { judged } else { unobserved(judged) })
}

/// The records of each key, by which was seen first.
fn by_key(records: Independent<'_>) -> Result<Vec<(Datum, Vec<Record>)>, LoadError> {
    let mut keys: Vec<(Datum, Vec<Record>)> = Vec::new();
    let mut places: HashMap<Datum, usize> = HashMap::new();
    for record in records {
        let record = record?;
        let place = *places.entry(record.key.clone()).or_insert_with(|| {
            keys.push((record.key.clone(), Vec::new()));
            keys.len() - 1
        });
        keys[place].1.push(record);
    }
    if keys.is_empty() { Err(LoadError::Empty) } else { Ok(keys) }
}

/// Judges all records as one history; and whether an answer says something about what the object held, or
/// nothing happened that it could be about.
fn together(records: Records<'_>, is_keyed: bool, question: &Question) -> Result<(Judged, bool), Refusal> {
    let Question { model, condition, .. } = *question;
    match model {
        ModelName::CasRegister | ModelName::Register => {
            let history = registers(&mut only(model, records))?;
            let judged = of_registers(&history, question);
            let happened = |op: &Op| op.outcome != Outcome::Fail;
            let is_idle = !history.ops().iter().any(happened);
            Ok((judged, is_idle || history.ops().iter().any(tells)))
        }
        ModelName::Kv => object(&Keyed::new(Kv::default()), records, question),
        ModelName::Mutex if is_keyed => object(&Keyed::new(Mutex), records, question),
        ModelName::Mutex => object(&Mutex, records, question),
        ModelName::Set if is_keyed => object(&Keyed::new(Set::default()), records, question),
        ModelName::Set => object(&Set::default(), records, question),
        ModelName::Queue if is_keyed => object(&Keyed::new(Queue::default()), records, question),
        ModelName::Queue => object(&Queue::default(), records, question),
        ModelName::Counter if is_keyed => object(&Keyed::new(Counter), records, question),
        ModelName::Counter => object(&Counter, records, question),
        ModelName::MultiRegister => of_several_registers(records, question),
        ModelName::Watch => match condition {
            Condition::Notified(promised) => {
                let history = registers(&mut only(model, records))?;
                Ok((Judged { result: watch::check(&history, promised, None), witness: Vec::new() }, true))
            }
            _ => Err(Refusal::NoSuchCondition { model, condition }),
        },
        ModelName::ListAppend => match condition {
            Condition::Transactions(isolation) => {
                Ok((txn::check(records, isolation, &question.budget)?, true))
            }
            _ => Err(Refusal::NoSuchCondition { model, condition }),
        },
    }
}

/// Holds the orders that prove a verdict against the history, and says how many operations they have.
///
/// # Errors
/// [`Unconfirmed`] names the first thing that does not fit.
pub fn confirm(
    records: Records<'_>,
    model: ModelName,
    condition: Condition,
    witness: &[PartOrder],
) -> Result<usize, Unconfirmed> {
    let real_time = match condition {
        Condition::Linearizable => RealTime::All,
        Condition::OrderedSequential => RealTime::Updates,
        Condition::Sequential => RealTime::None,
        Condition::Session
        | Condition::Guarantee(_)
        | Condition::Transactions(_)
        | Condition::Notified(_) => {
            return Err(Unconfirmed::Condition);
        }
    };
    let mut records = Independent::new(model, records);
    let is_keyed = records.is_keyed()?;
    if !records.are_judged_apart(ordered(condition).is_some()) {
        return confirm_together(&mut records, model, is_keyed, witness, real_time);
    }
    let keys = by_key(records)?;
    let places = keys.iter().zip(0..).flat_map(|((_, records), place)| {
        records
            .iter()
            .filter(|record| record.kind == EventKind::Invoke)
            .map(move |record| (record.index, place))
    });
    let places: HashMap<u64, usize> = places.collect();
    let mut orders: Vec<Vec<PartOrder>> = vec![Vec::new(); keys.len()];
    for order in witness {
        let Some(first) = order.order.first() else { continue };
        let place = places.get(first).ok_or(Unconfirmed::Twice(*first))?;
        orders[*place].push(order.clone());
    }
    let mut confirmed = 0;
    for ((_, records), mut orders) in keys.into_iter().zip(orders) {
        if orders.is_empty() {
            // Nothing happened to this key; whoever replays it says if something did.
            orders.push(PartOrder { part: None, order: Vec::new() });
        }
        confirmed += confirm_together(&mut records.into_iter().map(Ok), model, true, &orders, real_time)?;
    }
    Ok(confirmed)
}

/// The same of all records as one history.
fn confirm_together(
    records: Records<'_>,
    model: ModelName,
    is_keyed: bool,
    witness: &[PartOrder],
    real_time: RealTime,
) -> Result<usize, Unconfirmed> {
    match model {
        ModelName::CasRegister | ModelName::Register => {
            confirm_object(&Registers::default(), &mut only(model, records), witness, real_time)
        }
        ModelName::Kv => confirm_object(&Keyed::new(Kv::default()), records, witness, real_time),
        ModelName::Mutex if is_keyed => confirm_object(&Keyed::new(Mutex), records, witness, real_time),
        ModelName::Mutex => confirm_object(&Mutex, records, witness, real_time),
        ModelName::Set if is_keyed => {
            confirm_object(&Keyed::new(Set::default()), records, witness, real_time)
        }
        ModelName::Set => confirm_object(&Set::default(), records, witness, real_time),
        ModelName::Queue if is_keyed => {
            confirm_object(&Keyed::new(Queue::default()), records, witness, real_time)
        }
        ModelName::Queue => confirm_object(&Queue::default(), records, witness, real_time),
        ModelName::Counter if is_keyed => confirm_object(&Keyed::new(Counter), records, witness, real_time),
        ModelName::Counter => confirm_object(&Counter, records, witness, real_time),
        ModelName::MultiRegister => confirm_several_registers(records, witness, real_time),
        ModelName::ListAppend | ModelName::Watch => Err(Unconfirmed::Condition),
    }
}

fn confirm_object<M: Model>(
    model: &M,
    records: Records<'_>,
    witness: &[PartOrder],
    real_time: RealTime,
) -> Result<usize, Unconfirmed> {
    let calls = pair(model, records)?;
    confirm_orders(model, &calls, |call| call.process, witness, real_time)
}

/// The condition as the module of orders names it; none for linearizability, which is searched for by others.
fn ordered(condition: Condition) -> Option<order::Condition> {
    match condition {
        Condition::OrderedSequential => Some(order::Condition::OrderedSequential),
        Condition::Sequential => Some(order::Condition::Sequential),
        Condition::Session => Some(order::Condition::SessionGuarantees),
        Condition::Guarantee(guarantee) => Some(order::Condition::Guarantee(guarantee)),
        Condition::Linearizable | Condition::Transactions(_) | Condition::Notified(_) => None,
    }
}

fn of_registers(history: &History, question: &Question) -> Judged {
    match ordered(question.condition) {
        Some(condition) => order::check_registers(history, condition, &question.budget),
        None => linearizable::judge(history, &question.budget, question.threads.get(), question.witness),
    }
}

/// Any object, by its model alone.
fn object<M>(model: &M, records: Records<'_>, question: &Question) -> Result<(Judged, bool), Refusal>
where
    M: Model + Sync,
    M::Op: Send + Sync,
{
    let calls = pair(model, records)?;
    Ok((searched(model, &calls, |call| call.process, question), observed(model, &calls)))
}

/// Whether an answer says something about what the object held, or nothing happened that it could be about.
fn observed<M: Model>(model: &M, calls: &[Call<M::Op>]) -> bool {
    calls.is_empty() || calls.iter().any(|call| !call.is_open() && model.tells(&call.op))
}

/// Whether an operation's answer says something about what its register held.
fn tells(op: &Op) -> bool {
    let is_read = op.outcome == Outcome::Ok && matches!(op.kind(), OpKind::Read { .. } | OpKind::Cas { .. });
    is_read || op.is_refused_cas() || op.version.is_some()
}

/// Nothing was read, and so nothing was tested: any answer would do.
fn unobserved(judged: Judged) -> Judged {
    if judged.result.verdict != Verdict::Valid {
        return judged;
    }
    let summary = "nothing was observed: no answer says what was there, so nothing was tested";
    let result = CheckResult { summary: summary.to_owned(), verdict: Verdict::Unknown, ..judged.result };
    Judged { result, witness: Vec::new() }
}

fn searched<M>(
    model: &M,
    calls: &[Call<M::Op>],
    group: impl Fn(&Call<M::Op>) -> u64,
    question: &Question,
) -> Judged
where
    M: Model + Sync,
    M::Op: Send + Sync,
{
    match ordered(question.condition) {
        Some(condition) => order::check_by(model, calls, group, condition, &question.budget),
        None => search::judge(model, calls, &question.budget, question.threads.get(), question.witness),
    }
}

/// Several registers: from whatever they may have held at first.
fn of_several_registers(records: Records<'_>, question: &Question) -> Result<(Judged, bool), Refusal> {
    let model = MultiRegister::default();
    let calls = pair(&model, records)?;
    let mut model = model.parted(&calls);
    let Some(beginnings) = MultiRegister::beginnings(&calls) else {
        let why = "too many values may have been there before the history began";
        let result = CheckResult::new(question.condition.name(), Verdict::Unknown, why);
        return Ok((Judged { result, witness: Vec::new() }, true));
    };
    let mut best: Option<Judged> = None;
    for beginning in beginnings {
        model = model.with_first(beginning);
        let judged = searched(&model, &calls, |call| call.process, question);
        if best.as_ref().is_none_or(|best| judged.result.verdict < best.result.verdict) {
            best = Some(judged);
        }
        if best.as_ref().is_some_and(|best| best.result.verdict == Verdict::Valid) {
            break;
        }
    }
    // There is always a beginning, if only that nothing was there.
    let best = best.ok_or(Refusal::History(LoadError::Empty))?;
    Ok((best, observed(&model, &calls)))
}

fn confirm_several_registers(
    records: Records<'_>,
    witness: &[PartOrder],
    real_time: RealTime,
) -> Result<usize, Unconfirmed> {
    let model = MultiRegister::default();
    let calls = pair(&model, records)?;
    let mut model = model.parted(&calls);
    let mut confirmed = Err(Unconfirmed::Condition);
    for beginning in MultiRegister::beginnings(&calls).unwrap_or_default() {
        model = model.with_first(beginning);
        confirmed = confirm_orders(&model, &calls, |call| call.process, witness, real_time);
        if confirmed.is_ok() {
            break;
        }
    }
    confirmed
}

/// The operations of registers.
fn registers(records: Records<'_>) -> Result<History, LoadError> {
    let mut pairing = Pairing::default();
    let mut last = 0;
    for record in records {
        let record = record?;
        last = record.line;
        let event = event_of(record).map_err(|reason| LoadError::Malformed { line: last, reason })?;
        pairing.push(event).map_err(|source| LoadError::Pair { line: last, source })?;
    }
    if last == 0 {
        return Err(LoadError::Empty);
    }
    Ok(pairing.finish())
}

/// Records of the model's functions; any other is refused.
fn only(model: ModelName, records: Records<'_>) -> impl Iterator<Item = Result<Record, LoadError>> {
    records.map(move |record| {
        let record = record?;
        if model.functions().contains(&&*record.f) {
            return Ok(record);
        }
        let reason = format!("a {model} has no {}", record.f);
        Err(LoadError::Malformed { line: record.line, reason })
    })
}
