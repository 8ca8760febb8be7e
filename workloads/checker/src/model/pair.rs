//! Records to calls: asks the model what each pair of an invocation and its completion means.

use super::{Call, Model};
use crate::history::{EventKind, LoadError, NEVER, PairError, Pairs, Record, Stamp, ranks};

/// A call with the stamps of its invocation and its return.
type Timed<O> = (Call<O>, Stamp, Option<Stamp>);

/// Reads calls from records, sorted by call. An invocation is kept until its completion comes, and then only
/// what the model makes of the two.
///
/// # Errors
/// [`LoadError`] names the line that is malformed, contradicts those before it, or says nothing to this
/// model.
pub fn pair<M: Model>(
    model: &M,
    records: impl IntoIterator<Item = Result<Record, LoadError>>,
) -> Result<Vec<Call<M::Op>>, LoadError> {
    let mut pairs: Pairs<(Record, Stamp)> = Pairs::default();
    let mut timed: Vec<Timed<M::Op>> = Vec::new();
    for record in records {
        let record = record?;
        let (line, process) = (record.line, record.process);
        let refuse = |source| LoadError::Pair { line, source };
        let stamp = pairs.stamp(record.time).map_err(refuse)?;
        if record.kind == EventKind::Invoke {
            pairs.invoke(process, (record, stamp)).map_err(refuse)?;
            continue;
        }
        let (invoked, called) = pairs.complete(process).map_err(refuse)?;
        pairs.in_time(process, called, stamp).map_err(refuse)?;
        if invoked.f != record.f {
            let (invoked, completed) = (invoked.f.to_string(), record.f.to_string());
            return Err(refuse(PairError::Mismatch { process, invoked, completed }));
        }
        let returned = Some(record).filter(|completed| completed.kind != EventKind::Info);
        let call = decode(model, &invoked, returned.as_ref())?;
        timed.extend(call.map(|call| (call, called, returned.map(|_| stamp))));
    }
    let (open, untimed) = pairs.finish();
    // In the order of the lines, so that of two that mean nothing the first is named.
    let mut open: Vec<(Record, Stamp)> = open.collect();
    open.sort_unstable_by_key(|&(_, called)| called);
    for (invoked, called) in open {
        timed.extend(decode(model, &invoked, None)?.map(|call| (call, called, None)));
    }
    let ranks = ranks(timed.iter().map(|&(_, called, returned)| (called, returned)), untimed);
    let mut calls: Vec<Call<M::Op>> =
        timed.into_iter().zip(ranks).map(|((known, ..), (call, ret))| Call { call, ret, ..known }).collect();
    calls.sort_unstable_by_key(|call| call.call);
    Ok(calls)
}

/// What the model makes of an operation, if it means anything.
fn decode<M: Model>(
    model: &M,
    invoked: &Record,
    returned: Option<&Record>,
) -> Result<Option<Call<M::Op>>, LoadError> {
    let op = model
        .decode(invoked, returned)
        .map_err(|reason| LoadError::Malformed { line: invoked.line, reason })?;
    Ok(op.map(|op| Call {
        op,
        call: 0,
        ret: NEVER,
        process: invoked.process,
        index: invoked.index,
        invoke_ns: invoked.time.unwrap_or(invoked.index),
        complete_ns: returned.map(|returned| returned.time.unwrap_or(returned.index)),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::Datum;

    /// A counter: `add` needs no answer, `read` is answered with the sum.
    struct Counter;

    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Op {
        Add(i64),
        Read(i64),
    }

    impl Model for Counter {
        type Op = Op;
        type State = i64;

        fn name(&self) -> &'static str {
            "counter"
        }

        fn initial(&self) -> i64 {
            0
        }

        fn apply(&self, state: &i64, op: &Op) -> Option<i64> {
            match *op {
                Op::Add(n) => Some(state + n),
                Op::Read(sum) => (sum == *state).then_some(sum),
            }
        }

        fn decode(&self, invoked: &Record, completed: Option<&Record>) -> Result<Option<Op>, String> {
            let happened = completed.filter(|completed| completed.kind == EventKind::Ok);
            match &*invoked.f {
                "add" if completed.is_some() && happened.is_none() => Ok(None),
                "add" => invoked.value.as_int().map(Op::Add).map(Some).ok_or_else(|| "no number".to_owned()),
                "read" => Ok(happened.and_then(|read| read.value.as_int()).map(Op::Read)),
                other => Err(format!("a counter has no {other}")),
            }
        }

        fn changes(&self, op: &Op) -> bool {
            matches!(op, Op::Add(_))
        }
    }

    fn record(line: u64, process: u64, kind: EventKind, f: &str, value: Datum, time: u64) -> Record {
        let time = Some(time);
        Record { line, index: line - 1, time, ..Record::new(process, kind, f, Datum::Nil, value) }
    }

    #[test]
    fn what_happened_and_what_may_have_is_kept_and_what_says_nothing_is_not() {
        let calls = pair(
            &Counter,
            [
                record(1, 0, EventKind::Invoke, "add", Datum::Int(1), 10),
                record(2, 1, EventKind::Invoke, "add", Datum::Int(2), 11),
                record(3, 2, EventKind::Invoke, "read", Datum::Nil, 12),
                record(4, 3, EventKind::Invoke, "read", Datum::Nil, 13),
                record(5, 0, EventKind::Ok, "add", Datum::Int(1), 14),
                record(6, 1, EventKind::Info, "add", Datum::Int(2), 15),
                record(7, 2, EventKind::Ok, "read", Datum::Int(3), 16),
                record(8, 0, EventKind::Invoke, "add", Datum::Int(4), 17),
                record(9, 0, EventKind::Fail, "add", Datum::Int(4), 18),
            ]
            .map(Ok),
        )
        .unwrap();
        let ops: Vec<(Op, bool)> = calls.iter().map(|call| (call.op, call.is_open())).collect();
        assert_eq!(ops, [(Op::Add(1), false), (Op::Add(2), true), (Op::Read(3), false)]);
        assert!(calls[2].call < calls[0].ret && calls[0].ret < calls[2].ret);
    }

    #[test]
    fn a_line_that_means_nothing_to_the_model_is_named() {
        let error = pair(&Counter, [Ok(record(7, 0, EventKind::Invoke, "pop", Datum::Nil, 1))]).unwrap_err();
        assert_eq!(error.to_string(), "line 7: a counter has no pop");
    }
}
