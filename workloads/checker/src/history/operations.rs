//! Events to operations on registers, sets and lists.

use std::sync::Arc;

use super::pair::{PairError, Pairs, Stamp, ranks};
use super::{Event, EventKind, Function, History, Micro, NEVER, Op, OpKind, Outcome, Value, is_answered};

/// Pairs events one by one.
#[derive(Default)]
pub struct Pairing {
    pairs: Pairs<usize>,
    ops: Vec<Op>,
    /// When each was called and returned.
    stamps: Vec<(Stamp, Option<Stamp>)>,
}

impl Pairing {
    /// Takes the next event, in the order of the lines.
    ///
    /// # Errors
    /// [`PairError`] when it does not fit what came before.
    pub fn push(&mut self, event: Event) -> Result<(), PairError> {
        let stamp = self.pairs.stamp(event.time)?;
        match event.kind {
            EventKind::Invoke => self.invoke(&event, stamp),
            EventKind::Ok => self.complete(event, stamp, Outcome::Ok),
            EventKind::Fail => self.complete(event, stamp, Outcome::Fail),
            EventKind::Info => self.complete(event, stamp, Outcome::Info),
        }
    }

    fn invoke(&mut self, event: &Event, called: Stamp) -> Result<(), PairError> {
        let kind = asked_kind(event.f, &event.value)?;
        self.pairs.invoke(event.process, self.ops.len())?;
        self.ops.push(Op {
            index: event.index,
            process: event.process,
            key: event.key,
            kind,
            list: None,
            micros: micros_of(&event.value),
            outcome: Outcome::Info,
            invoke_ns: event.time.unwrap_or(0),
            due_ns: event.due,
            complete_ns: None,
            call: 0,
            ret: NEVER,
            node: event.node,
            by: event.by,
            session: event.session,
            zxid: None,
            version: None,
            mzxid: None,
            expect: event.expect,
            error: None,
        });
        self.stamps.push((called, None));
        Ok(())
    }

    fn complete(&mut self, event: Event, returned: Stamp, outcome: Outcome) -> Result<(), PairError> {
        let at = self.pairs.complete(event.process)?;
        self.pairs.in_time(event.process, self.stamps[at].0, returned)?;
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
            if matches!(op.kind, OpKind::Txn { .. }) {
                op.micros = Some(answered(op.micros.as_deref(), &event.value)?);
            }
        }
        op.outcome = outcome;
        // A read of unknown outcome has no effect and no result: it is over, whatever its recorder called it.
        if outcome == Outcome::Info && !op.kind.is_change() {
            op.outcome = Outcome::Fail;
        }
        if op.outcome != Outcome::Info {
            op.complete_ns = event.time;
            self.stamps[at].1 = Some(returned);
        }
        op.node = event.node.or(op.node);
        op.by = event.by.or(op.by);
        op.session = event.session.or(op.session);
        op.zxid = event.zxid;
        op.version = event.version;
        op.mzxid = event.mzxid;
        op.error = event.error;
        Ok(())
    }

    /// Everything was pushed: what is outstanding stays open, and ranks are given.
    #[must_use]
    pub fn finish(self) -> History {
        let Self { pairs, mut ops, stamps } = self;
        let (open, untimed) = pairs.finish();
        for at in open {
            // A read that never ended has no effect either.
            if !ops[at].kind.is_change() {
                ops[at].outcome = Outcome::Fail;
            }
        }
        for (op, (call, ret)) in ops.iter_mut().zip(ranks(stamps.into_iter(), untimed)) {
            (op.call, op.ret) = (call, ret);
            if untimed {
                // Without stamps an event is told and drawn by its rank.
                op.invoke_ns = u64::from(call);
                op.complete_ns = (ret != NEVER).then(|| u64::from(ret));
            }
        }
        ops.sort_by_key(|op| op.call);
        History { ops }
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
        (Function::Acquire, Value::Null) => OpKind::Acquire { token: None },
        (Function::Store, &Value::Pair(Some(token), value)) => OpKind::Store { token, value },
        (Function::Release, &Value::One(token)) => OpKind::Release { token },
        (Function::Enqueue, &Value::One(value)) => OpKind::Enqueue { value },
        (Function::Dequeue, Value::Null) => OpKind::Dequeue { value: None },
        (Function::Acknowledge, &Value::One(value)) => OpKind::Acknowledge { value },
        (Function::Enter, &Value::One(round)) => OpKind::Enter { round },
        (Function::Leave, &Value::One(round)) => OpKind::Leave { round },
        (Function::Txn, Value::Txn(micros)) => OpKind::Txn { changes: micros.iter().any(Micro::is_append) },
        (Function::Watch, &Value::Pair(from, watcher)) => OpKind::Watch { watcher, from },
        (f, _) => return Err(PairError::Shape(f)),
    })
}

/// What an operation turned out to be. A change is what was asked; a completion that names another value
/// would make the recorder a liar, so it is refused rather than believed.
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
        (OpKind::Acquire { .. }, Value::List(told)) if told.len() == TERM => {
            Ok(OpKind::Acquire { token: told.first().copied() })
        }
        (OpKind::Store { token, value }, Value::List(told))
            if told.len() == STORED && told[..2] == [token, value] =>
        {
            Ok(asked)
        }
        (OpKind::Release { token: value }, &Value::One(told)) if told == value => Ok(asked),
        (OpKind::Enqueue { value } | OpKind::Acknowledge { value }, &Value::One(told)) if told == value => {
            Ok(asked)
        }
        (OpKind::Enter { round } | OpKind::Leave { round }, &Value::One(told)) if told == round => Ok(asked),
        (OpKind::Txn { .. }, Value::Txn(_)) => Ok(asked),
        (OpKind::Dequeue { .. }, Value::Null) => Ok(asked),
        (OpKind::Dequeue { .. }, &Value::One(value)) => Ok(OpKind::Dequeue { value: Some(value) }),
        (OpKind::Dequeue { .. }, Value::List(told)) if matches!(told.len(), HANDED_OUT | CLAIM) => {
            Ok(OpKind::Dequeue { value: told.first().copied() })
        }
        (OpKind::Watch { .. }, Value::List(told)) if told.len() % EVENT == 1 => Ok(asked),
        (asked, _) => Err(PairError::Shape(asked.function())),
    }
}

fn micros_of(value: &Value) -> Option<Arc<[Micro]>> {
    if let Value::Txn(micros) = value { Some(Arc::clone(micros)) } else { None }
}

/// What a transaction that was asked for is by its answer.
fn answered(asked: Option<&[Micro]>, told: &Value) -> Result<Arc<[Micro]>, PairError> {
    let told = micros_of(told).filter(|told| asked.is_some_and(|asked| is_answered(asked, told)));
    told.ok_or(PairError::Shape(Function::Txn))
}

/// Numbers in the answer of an acquire: token, since, until.
const TERM: usize = 3;
/// Numbers in the answer of a dequeue that hands out: the element.
const HANDED_OUT: usize = 1;
/// Numbers in the answer of a dequeue that claims: element, token, since, until.
const CLAIM: usize = 4;
/// Numbers in the answer of a guarded write: token, value, looked, until, stored.
const STORED: usize = 5;

/// Numbers for a change in the answer of a watch, behind the position: value, version.
const EVENT: usize = 2;

/// The elements that a read returned, or what the answer of a lock or a watch told.
fn list_of(kind: OpKind, told: &Value) -> Option<Arc<[i64]>> {
    let lists = matches!(
        kind,
        OpKind::Read { .. }
            | OpKind::Acquire { .. }
            | OpKind::Store { .. }
            | OpKind::Dequeue { .. }
            | OpKind::Watch { .. }
    );
    if lists { told.list() } else { None }
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
        // Process 1's completion was written late: its line follows an invocation of the same or a later
        // stamp.
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
    fn a_transaction_has_what_it_read_and_one_that_only_reads_is_over() {
        let read = |list: &[i64]| Micro { key: 5, what: crate::history::What::Read(Some(list.into())) };
        let txn = |micros: &[Micro]| Value::Txn(micros.into());
        let asked = [Micro::append(6, 1), Micro::read(5)];
        let line = |kind, value, time| event(0, kind, Function::Txn, value, time);
        let pair = |told| {
            History::from_events([line(EventKind::Invoke, txn(&asked), 1), line(EventKind::Ok, told, 2)])
        };
        let told = [Micro::append(6, 1), read(&[3, 4])];
        let history = pair(txn(&told)).unwrap();
        assert_eq!(history.ops()[0].kind, OpKind::Txn { changes: true });
        assert_eq!(history.ops()[0].micros.as_deref(), Some(&told[..]));
        for wrong in [txn(&asked), txn(&told[..1]), Value::Null, Value::One(1)] {
            assert_eq!(pair(wrong), Err(PairError::Shape(Function::Txn)));
        }
        let look =
            [line(EventKind::Invoke, txn(&[Micro::read(5)]), 1), line(EventKind::Info, Value::Null, 2)];
        assert_eq!(History::from_events(look).unwrap().ops()[0].outcome, Outcome::Fail);
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
