//! Lines to operations: pairs each completion with its invocation and ranks calls and returns.
//!
//! The order of real time is the order of the stamps, and of the lines where stamps are equal or absent. An
//! invocation is stamped before the request leaves and a completion after its answer is in, so "returned at or
//! before the stamp of the call" is true of the operations themselves, whichever line was written first.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Event, EventKind, Function, History, NEVER, Op, OpKind, Outcome, Rank, Value};

/// Why lines do not form a history.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PairError {
    /// A process invoked while its previous operation was still outstanding.
    #[error("process {0} invokes while its previous operation is still outstanding")]
    Busy(u64),
    /// A completion without an invocation.
    #[error("process {0} completes an operation that it did not invoke")]
    NotInvoked(u64),
    /// A completion of something else than what was invoked.
    #[error("process {process} completes a {completed} but had invoked a {invoked}")]
    Mismatch {
        /// The process.
        process: u64,
        /// What it had invoked.
        invoked: String,
        /// What the completion says.
        completed: String,
    },
    /// The value does not have the shape that the function needs.
    #[error("a {0} can not have this value")]
    Shape(Function),
    /// A completion is stamped before its invocation.
    #[error("process {0} completes an operation before the time of its invocation")]
    TimeTravel(u64),
    /// More events than ranks.
    #[error("the history is longer than {MAX_EVENTS} events")]
    TooLong,
}

/// Most events in one history; ranks are 32 bits wide.
pub(super) const MAX_EVENTS: usize = 1 << 31;

/// When a call or a return took place: its stamp and the position of its line.
type Moment = (u64, Rank);

struct Outstanding {
    op: usize,
    called: Moment,
}

/// Pairs events one by one.
#[derive(Default)]
pub struct Pairing {
    ops: Vec<Op>,
    called: Vec<Moment>,
    returned: Vec<Option<Moment>>,
    outstanding: BTreeMap<u64, Outstanding>,
    events: Rank,
    untimed: bool,
}

impl Pairing {
    /// Takes the next event, in the order of the lines.
    ///
    /// # Errors
    /// [`PairError`] when it does not fit what came before.
    pub fn push(&mut self, event: Event) -> Result<(), PairError> {
        if usize::try_from(self.events).map_or(true, |events| events >= MAX_EVENTS) {
            return Err(PairError::TooLong);
        }
        self.untimed |= event.time.is_none();
        let moment = (event.time.unwrap_or(0), self.events);
        self.events += 1;
        match event.kind {
            EventKind::Invoke => self.invoke(&event, moment),
            EventKind::Ok => self.complete(event, moment, Outcome::Ok),
            EventKind::Fail => self.complete(event, moment, Outcome::Fail),
            EventKind::Info => self.complete(event, moment, Outcome::Info),
        }
    }

    fn invoke(&mut self, event: &Event, called: Moment) -> Result<(), PairError> {
        let kind = asked_kind(event.f, &event.value)?;
        let outstanding = Outstanding { op: self.ops.len(), called };
        if self.outstanding.insert(event.process, outstanding).is_some() {
            return Err(PairError::Busy(event.process));
        }
        self.ops.push(Op {
            index: event.index,
            process: event.process,
            key: event.key,
            kind,
            list: None,
            outcome: Outcome::Info,
            invoke_ns: event.time.unwrap_or(0),
            due_ns: event.due,
            complete_ns: None,
            call: 0,
            ret: NEVER,
            node: event.node,
            session: event.session,
            zxid: None,
            version: None,
            mzxid: None,
            expect: event.expect,
            error: None,
        });
        self.called.push(called);
        self.returned.push(None);
        Ok(())
    }

    fn complete(&mut self, event: Event, moment: Moment, outcome: Outcome) -> Result<(), PairError> {
        let Outstanding { op: at, called } =
            self.outstanding.remove(&event.process).ok_or(PairError::NotInvoked(event.process))?;
        if moment.0 < called.0 && !self.untimed {
            return Err(PairError::TimeTravel(event.process));
        }
        let op = &mut self.ops[at];
        let describe = |f: Function, key: u64| format!("{f} of key {key}");
        if (event.f, event.key) != (op.kind.function(), op.key) {
            return Err(PairError::Mismatch {
                process: event.process,
                invoked: describe(op.kind.function(), op.key),
                completed: describe(event.f, event.key),
            });
        }
        if outcome == Outcome::Ok {
            op.kind = completed_kind(op.kind, &event.value)?;
            op.list = list_of(op.kind, &event.value);
        }
        op.outcome = outcome;
        // A read of unknown outcome has no effect and no result: it is over, whatever its recorder called it.
        if outcome == Outcome::Info && !op.kind.is_change() {
            op.outcome = Outcome::Fail;
        }
        if op.outcome != Outcome::Info {
            op.complete_ns = event.time;
            self.returned[at] = Some(moment);
        }
        op.node = event.node.or(op.node);
        op.session = event.session.or(op.session);
        op.zxid = event.zxid;
        op.version = event.version;
        op.mzxid = event.mzxid;
        op.error = event.error;
        Ok(())
    }

    /// Everything was pushed: what is outstanding stays open, and ranks are given.
    ///
    /// # Errors
    /// None today; the signature leaves room for checks over the whole.
    pub fn finish(mut self) -> Result<History, PairError> {
        for open in self.outstanding.values() {
            let op = &mut self.ops[open.op];
            // A read that never ended has no effect either.
            if !op.kind.is_change() {
                op.outcome = Outcome::Fail;
            }
        }
        if self.untimed {
            self.rank_by(|(_, position)| (0, position));
            // Without stamps an event is told and drawn by its rank.
            for op in &mut self.ops {
                op.invoke_ns = u64::from(op.call);
                op.complete_ns = (op.ret != NEVER).then(|| u64::from(op.ret));
            }
        } else {
            self.rank_by(|moment| moment);
        }
        self.ops.sort_by_key(|op| op.call);
        Ok(History { ops: self.ops })
    }

    fn rank_by(&mut self, order: impl Fn(Moment) -> Moment) {
        let calls = self.called.iter().enumerate().map(|(op, &moment)| (order(moment), op, false));
        let returns = self
            .returned
            .iter()
            .enumerate()
            .filter_map(|(op, &moment)| moment.map(|moment| (order(moment), op, true)));
        let mut moments: Vec<(Moment, usize, bool)> = calls.chain(returns).collect();
        moments.sort_unstable();
        for (rank, (_, op, is_return)) in (0..).zip(moments) {
            let op = &mut self.ops[op];
            if is_return { op.ret = rank } else { op.call = rank }
        }
    }
}

/// What an invocation asks for.
fn asked_kind(f: Function, value: &Value) -> Result<OpKind, PairError> {
    Ok(match (f, value) {
        (Function::Read, _) => OpKind::Read { value: None },
        (Function::Write, &Value::One(value)) => OpKind::Write { value },
        (Function::Cas, &Value::Pair(from, to)) => OpKind::Cas { from, to },
        (Function::Add, &Value::One(value)) => OpKind::Add { value },
        (Function::Append, &Value::One(value)) => OpKind::Append { value },
        (Function::Create, Value::Null) => OpKind::Make,
        (Function::Create, &Value::One(name)) => OpKind::Create { name, number: None },
        (Function::Delete, &Value::One(name)) => OpKind::Delete { name },
        (Function::Exists, &Value::One(name)) => OpKind::Exists { name, present: false },
        (Function::Open, Value::Null) => OpKind::Open { timeout_ms: None },
        (Function::Close, Value::Null) => OpKind::Close,
        (Function::Abandon, Value::Null) => OpKind::Abandon,
        (f, _) => return Err(PairError::Shape(f)),
    })
}

/// What an operation turned out to be. A change is what was asked; a completion that names another value would make
/// the recorder a liar, so it is refused rather than believed.
fn completed_kind(asked: OpKind, told: &Value) -> Result<OpKind, PairError> {
    match (asked, told) {
        (OpKind::Read { .. }, &Value::One(value)) => Ok(OpKind::Read { value: Some(value) }),
        (OpKind::Read { .. }, Value::Null | Value::Pair(Some(_), _) | Value::List(_)) => {
            Ok(OpKind::Read { value: None })
        }
        (OpKind::Write { value }, &Value::One(told)) if told == value => Ok(asked),
        (OpKind::Cas { from, to }, &Value::Pair(f, t)) if (f, t) == (from, to) => Ok(asked),
        (OpKind::Write { .. } | OpKind::Cas { .. }, Value::Null) => Ok(asked),
        (
            OpKind::Add { value } | OpKind::Append { value } | OpKind::Delete { name: value },
            &Value::One(told),
        ) if told == value => Ok(asked),
        (OpKind::Create { name, .. }, &Value::One(told)) if told == name => Ok(asked),
        (OpKind::Create { name, .. }, &Value::Pair(told, number)) if told == Some(name) => {
            Ok(OpKind::Create { name, number: Some(number) })
        }
        (OpKind::Exists { name, .. }, &Value::Pair(told, present)) if told == Some(name) => {
            Ok(OpKind::Exists { name, present: present != 0 })
        }
        (OpKind::Open { .. }, &Value::One(timeout_ms)) => Ok(OpKind::Open { timeout_ms: Some(timeout_ms) }),
        (OpKind::Make | OpKind::Close | OpKind::Abandon, Value::Null) => Ok(asked),
        (asked, _) => Err(PairError::Shape(asked.function())),
    }
}

/// The elements that a read returned.
fn list_of(kind: OpKind, told: &Value) -> Option<Arc<[i64]>> {
    if matches!(kind, OpKind::Read { .. }) { told.list() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(process: u64, kind: EventKind, f: Function, value: Value, time: u64) -> Event {
        Event::new(process, kind, f, 0, value, time)
    }

    #[test]
    fn an_operation_without_completion_stays_open_and_its_return_never_comes() {
        let history =
            History::from_events([event(0, EventKind::Invoke, Function::Write, Value::One(1), 5)]).unwrap();
        assert_eq!(history.ops()[0].outcome, Outcome::Info);
        assert_eq!(history.ops()[0].ret, NEVER);
    }

    #[test]
    fn a_read_of_unknown_outcome_is_over_and_without_effect() {
        let history = History::from_events([
            event(0, EventKind::Invoke, Function::Read, Value::Null, 5),
            event(0, EventKind::Info, Function::Read, Value::Null, 6),
            event(1, EventKind::Invoke, Function::Read, Value::Null, 7),
        ])
        .unwrap();
        assert!(history.ops().iter().all(|op| op.outcome == Outcome::Fail));
    }

    #[test]
    fn real_time_is_the_order_of_stamps_and_lines_only_break_ties() {
        // Process 1's completion was written late: its line follows an invocation of the same or a later stamp.
        let history = History::from_events([
            event(1, EventKind::Invoke, Function::Write, Value::One(1), 1),
            event(2, EventKind::Invoke, Function::Write, Value::One(2), 9),
            event(1, EventKind::Ok, Function::Write, Value::One(1), 4),
            event(2, EventKind::Ok, Function::Write, Value::One(2), 9),
        ])
        .unwrap();
        let [first, second] = history.ops() else { panic!("two operations") };
        assert!(first.ret < second.call);
        assert!(second.call < second.ret);
    }

    #[test]
    fn malformed_sequences_are_refused_by_name() {
        let invoke = || event(0, EventKind::Invoke, Function::Write, Value::One(1), 1);
        assert_eq!(History::from_events([invoke(), invoke()]), Err(PairError::Busy(0)));
        let lone = event(3, EventKind::Ok, Function::Read, Value::Null, 1);
        assert_eq!(History::from_events([lone]), Err(PairError::NotInvoked(3)));
        let early = event(0, EventKind::Ok, Function::Write, Value::One(1), 0);
        assert_eq!(History::from_events([invoke(), early]), Err(PairError::TimeTravel(0)));
        let other = event(0, EventKind::Ok, Function::Write, Value::One(2), 2);
        assert_eq!(History::from_events([invoke(), other]), Err(PairError::Shape(Function::Write)));
        let read = event(0, EventKind::Ok, Function::Read, Value::One(1), 2);
        assert!(matches!(History::from_events([invoke(), read]), Err(PairError::Mismatch { .. })));
    }
}
