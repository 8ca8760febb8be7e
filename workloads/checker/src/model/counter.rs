//! A counter: `add` adds a number, which may be negative, and `read` shows the sum.
//!
//! An `add` may be answered by the sum after it, as `[n, sum]`; any other answer says only that it happened.

use super::{Call, Model, Since};
use crate::history::{Datum, EventKind, Rank, Record};

/// A counter that is 0 at first.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counter;

/// What can be done with a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CounterOp {
    /// It is larger by the first from here on, and then is the second, where that is known.
    Add(i64, Option<i64>),
    /// Several adds of which only the sum is told, and how many.
    Adds(i64, u64),
    /// This is what it was.
    Read(i64),
}

impl Model for Counter {
    type Op = CounterOp;
    type State = i64;

    fn name(&self) -> &'static str {
        "counter"
    }

    fn initial(&self) -> i64 {
        0
    }

    fn apply(&self, &sum: &i64, op: &CounterOp) -> Option<i64> {
        match *op {
            CounterOp::Add(n, answer) => {
                let next = sum.checked_add(n)?;
                answer.is_none_or(|answer| answer == next).then_some(next)
            }
            CounterOp::Adds(n, _) => sum.checked_add(n),
            CounterOp::Read(answer) => (answer == sum).then_some(sum),
        }
    }

    fn decode(&self, invoked: &Record, completed: Option<&Record>) -> Result<Option<CounterOp>, String> {
        let happened = completed.filter(|completed| completed.kind == EventKind::Ok);
        let failed = completed.is_some() && happened.is_none();
        match (&*invoked.f, happened) {
            ("read", None) => Ok(None),
            ("read", Some(happened)) if happened.value.is_nil() => Ok(None),
            ("read", Some(happened)) => {
                let sum = happened.value.as_int();
                sum.map(|sum| Some(CounterOp::Read(sum)))
                    .ok_or_else(|| format!("a counter is no {}", happened.value))
            }
            ("add", _) if failed => Ok(None),
            ("add", _) => {
                let n = invoked.value.as_int().ok_or_else(|| format!("{} can't be added", invoked.value))?;
                let sum = happened.and_then(|happened| match happened.value.as_list() {
                    Some([Datum::Int(told), Datum::Int(sum)]) if *told == n => Some(*sum),
                    _ => None,
                });
                Ok(Some(CounterOp::Add(n, sum)))
            }
            (other, _) => Err(format!("a counter has no {other}")),
        }
    }

    fn changes(&self, op: &CounterOp) -> bool {
        !matches!(op, CounterOp::Read(_))
    }

    fn tells(&self, op: &CounterOp) -> bool {
        matches!(op, CounterOp::Read(_) | CounterOp::Add(_, Some(_)))
    }

    fn same(&self, one: &CounterOp, other: &CounterOp) -> bool {
        one == other
    }

    fn describe(&self, op: &CounterOp) -> String {
        match *op {
            CounterOp::Add(n, None) => format!("add {n}"),
            CounterOp::Add(n, Some(sum)) => format!("add {n} → {sum}"),
            CounterOp::Adds(n, times) => format!("add {times} times, {n} in all"),
            CounterOp::Read(sum) => format!("read → {sum}"),
        }
    }

    /// Additions can change places with each other. Whoever asks from that moment on is answered after all
    /// that had returned, so for them it is one addition. Answers to those who asked earlier are left out,
    /// their additions stay.
    fn since(&self, calls: &[&Call<CounterOp>], moment: Rank) -> Option<Since<CounterOp>> {
        let mut all: Option<(usize, Call<CounterOp>)> = None;
        let (mut sum, mut times) = (0_i64, 0);
        let mut rest = Vec::new();
        for (at, &call) in calls.iter().enumerate() {
            let added = match call.op {
                CounterOp::Add(n, _) => Some((n, 1)),
                CounterOp::Adds(n, times) => Some((n, times)),
                CounterOp::Read(_) => None,
            };
            match added {
                _ if call.call >= moment => rest.push((at, call.clone())),
                None => {}
                Some((n, more)) if call.ret < moment => {
                    sum = sum.checked_add(n)?;
                    times += more;
                    let (_, whole) = all.get_or_insert_with(|| (at, call.clone()));
                    whole.ret = whole.ret.max(call.ret);
                }
                Some((n, 1)) => rest.push((at, Call { op: CounterOp::Add(n, None), ..call.clone() })),
                Some(_) => rest.push((at, call.clone())),
            }
        }
        let (past, all) = all?;
        rest.push((past, Call { op: CounterOp::Adds(sum, times), ..all }));
        rest.sort_by_key(|(_, call)| call.call);
        Some(Since { past, rest })
    }

    fn show(&self, &sum: &i64) -> Option<String> {
        Some(sum.to_string())
    }
}
