//! Confirms that orders prove a verdict, without knowing how they were found.
//!
//! The history is read again, each part gets its order, and [`crate::confirm`] does the rest. Searches,
//! witnesses and pruning are not used; whoever trusts these lines and those need not trust the others.

use std::collections::{BTreeMap, HashMap};

use crate::confirm::{RealTime, Span, Unfit, confirm, places};
use crate::history::LoadError;
use crate::model::{Call, Model};
use crate::verdict::PartOrder;

/// Why orders prove nothing.
#[derive(Debug, thiserror::Error)]
pub enum Unconfirmed {
    /// The history can't be read, or is not of this model.
    #[error(transparent)]
    History(#[from] LoadError),
    /// There is no verifier for this condition.
    #[error("an order proves nothing about this condition")]
    Condition,
    /// A part has no order, or two.
    #[error("{0} has no order, or more than one")]
    Part(String),
    /// An operation is named that is not of this part, or stands twice.
    #[error("record {0} is no operation of its part, or stands twice")]
    Twice(u64),
    /// An operation that happened is missing.
    #[error("the operation of record {0} happened and is not in the order")]
    Missing(u64),
    /// An operation stands after one that was called only when it had returned.
    #[error("the operation of record {0} had returned before one that stands before it was called")]
    RealTime(u64),
    /// An operation stands after one that its own process or session called only when it had returned.
    #[error("the operation of record {0} stands after one that its own process called later")]
    Program(u64),
    /// Replayed, the answer would be another.
    #[error("replayed in this order, the operation of record {0} would have another answer")]
    Answer(u64),
}

/// Confirms that these orders explain the history, and says how many operations they hold. `group` is in
/// whose order an operation stands: its process, or its session. An order without a part is of the whole, all
/// parts together.
///
/// # Errors
/// [`Unconfirmed`] names the first thing that does not fit.
pub fn confirm_orders<M: Model>(
    model: &M,
    calls: &[Call<M::Op>],
    group: impl Fn(&Call<M::Op>) -> u64,
    witness: &[PartOrder],
    real_time: RealTime,
) -> Result<usize, Unconfirmed> {
    // Only linearizability is local: no other condition of the whole follows from orders of its parts.
    if let [PartOrder { part: None, order }] = witness {
        let all: Vec<&Call<M::Op>> = calls.iter().collect();
        return one_order(model, &all, &group, order, real_time);
    }
    if real_time != RealTime::All {
        return Err(Unconfirmed::Part(part_name(None)));
    }
    let mut parts: BTreeMap<Option<u64>, Vec<&Call<M::Op>>> = BTreeMap::new();
    for call in calls {
        parts.entry(model.part(&call.op)).or_default().push(call);
    }
    let mut orders: BTreeMap<Option<u64>, &[u64]> = BTreeMap::new();
    for PartOrder { part, order } in witness {
        if orders.insert(*part, order).is_some() {
            return Err(Unconfirmed::Part(part_name(*part)));
        }
    }
    let mut confirmed = 0;
    for (part, calls) in parts {
        let order = orders.remove(&part).ok_or_else(|| Unconfirmed::Part(part_name(part)))?;
        confirmed += one_order(model, &calls, &group, order, real_time)?;
    }
    match orders.into_iter().find(|(_, order)| !order.is_empty()) {
        Some((_, order)) => Err(Unconfirmed::Twice(order[0])),
        None => Ok(confirmed),
    }
}

fn one_order<M: Model>(
    model: &M,
    calls: &[&Call<M::Op>],
    group: &impl Fn(&Call<M::Op>) -> u64,
    order: &[u64],
    real_time: RealTime,
) -> Result<usize, Unconfirmed> {
    let places = places(calls.iter().map(|call| call.index), order).map_err(Unconfirmed::Twice)?;
    let span = |at: usize| {
        let call = calls[at];
        let bound = real_time.binds(model.changes(&call.op));
        Span { call: call.call, ret: call.ret, group: Some(group(call)), bound }
    };
    let mut states: HashMap<Option<u64>, M::State> = HashMap::new();
    let answers = |at: usize| {
        let op = &calls[at].op;
        let state = states.entry(model.part(op)).or_insert_with(|| model.initial());
        model.apply(state, op).map(|next| *state = next).is_some()
    };
    let index = |at: usize| calls[at].index;
    match confirm(calls.len(), span, places, answers) {
        Ok(()) => Ok(order.len()),
        Err(Unfit::Twice(at)) => Err(Unconfirmed::Twice(index(at))),
        Err(Unfit::Missing(at)) => Err(Unconfirmed::Missing(index(at))),
        Err(Unfit::RealTime(at)) => Err(Unconfirmed::RealTime(index(at))),
        Err(Unfit::Program(at)) => Err(Unconfirmed::Program(index(at))),
        Err(Unfit::Answer(at)) => Err(Unconfirmed::Answer(index(at))),
    }
}

fn part_name(part: Option<u64>) -> String {
    part.map_or_else(|| "the whole".to_owned(), |part| format!("part {part}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::{NEVER, Rank, Record};

    /// A register of each key: writes, and reads with what they saw.
    struct Registers;

    #[derive(Clone, Copy, Debug)]
    enum Op {
        Write(u64, i64),
        Read(u64, i64),
    }

    impl Model for Registers {
        type Op = Op;
        type State = i64;

        fn name(&self) -> &'static str {
            "registers"
        }

        fn initial(&self) -> i64 {
            0
        }

        fn apply(&self, state: &i64, op: &Op) -> Option<i64> {
            match *op {
                Op::Write(_, value) => Some(value),
                Op::Read(_, value) => (value == *state).then_some(*state),
            }
        }

        fn decode(&self, _: &Record, _: Option<&Record>) -> Result<Option<Op>, String> {
            Ok(None)
        }

        fn part(&self, op: &Op) -> Option<u64> {
            match *op {
                Op::Write(key, _) | Op::Read(key, _) => Some(key),
            }
        }

        fn changes(&self, op: &Op) -> bool {
            matches!(op, Op::Write(..))
        }
    }

    fn call(index: u64, op: Op, call: Rank, ret: Rank) -> Call<Op> {
        Call { op, call, ret, process: index, index, invoke_ns: 0, complete_ns: None }
    }

    /// Key 1: two writes at once and a read after both; key 2: a write without an answer.
    fn calls() -> Vec<Call<Op>> {
        vec![
            call(0, Op::Write(1, 1), 0, 3),
            call(1, Op::Write(1, 2), 1, 2),
            call(4, Op::Read(1, 1), 4, 5),
            call(6, Op::Write(2, 9), 6, NEVER),
        ]
    }

    fn orders(first: &[u64], second: &[u64]) -> Vec<PartOrder> {
        vec![
            PartOrder { part: Some(1), order: first.to_vec() },
            PartOrder { part: Some(2), order: second.to_vec() },
        ]
    }

    fn confirmed(
        calls: &[Call<Op>],
        witness: &[PartOrder],
        real_time: RealTime,
    ) -> Result<usize, Unconfirmed> {
        confirm_orders(&Registers, calls, |call| call.process, witness, real_time)
    }

    fn refusal(first: &[u64], second: &[u64]) -> String {
        confirmed(&calls(), &orders(first, second), RealTime::All).expect_err("no proof").to_string()
    }

    #[test]
    fn an_order_is_confirmed_with_and_without_what_was_never_answered() {
        for second in [&[][..], &[6]] {
            let operations = confirmed(&calls(), &orders(&[1, 0, 4], second), RealTime::All);
            assert_eq!(operations.expect("a proof"), 3 + second.len());
        }
    }

    #[test]
    fn whatever_does_not_fit_is_named() {
        assert!(refusal(&[0, 1, 4], &[]).contains("record 4 would have another answer"));
        assert!(refusal(&[1, 0], &[]).contains("record 4 happened and is not"));
        assert!(refusal(&[1, 0, 4, 4], &[]).contains("record 4 is no operation of its part"));
        assert!(refusal(&[1, 0, 6, 4], &[]).contains("record 6 is no operation of its part"));
        assert!(refusal(&[4, 1, 0], &[]).contains("record 4 would have another answer"));
        let none = confirmed(&calls(), &orders(&[1, 0, 4], &[])[..1], RealTime::All);
        assert!(none.expect_err("no proof").to_string().contains("part 2 has no order"));
    }

    /// Process 1 writes; then process 2 reads that nothing was written, and writes.
    fn stale() -> Vec<Call<Op>> {
        let by = |process, call: Call<Op>| Call { process, ..call };
        vec![
            by(1, call(0, Op::Write(1, 1), 0, 1)),
            by(2, call(2, Op::Read(1, 0), 2, 3)),
            by(2, call(4, Op::Write(1, 2), 4, 5)),
        ]
    }

    #[test]
    fn each_condition_keeps_what_it_says_and_no_more() {
        let whole = |order: &[u64]| [PartOrder { part: None, order: order.to_vec() }];
        let refusal = |order: &[u64], real_time| match confirmed(&stale(), &whole(order), real_time) {
            Ok(_) => String::new(),
            Err(why) => why.to_string(),
        };
        assert!(refusal(&[2, 0, 4], RealTime::All).contains("record 0 had returned before"));
        assert_eq!(refusal(&[2, 0, 4], RealTime::Updates), "");
        assert!(refusal(&[2, 4, 0], RealTime::Updates).contains("record 0 had returned before"));
        assert_eq!(refusal(&[2, 4, 0], RealTime::None), "");
        assert!(
            refusal(&[4, 2, 0], RealTime::None).contains("record 2 stands after one that its own process")
        );
    }
}
