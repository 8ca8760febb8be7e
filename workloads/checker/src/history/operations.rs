//! Events to operations on registers, sets and lists.

use super::pair::{PairError, Pairs, Stamp, ranks};
use super::{Event, EventKind, Function, History, NEVER, Op, Outcome, Value, Vocabulary, kind};

/// Pairs events one by one.
#[derive(Default)]
pub struct Pairing {
    vocabulary: Vocabulary,
    pairs: Pairs<usize>,
    ops: Vec<Op>,
    /// When each was called and returned.
    stamps: Vec<(Stamp, Option<Stamp>)>,
}

impl Pairing {
    /// Pairs events of these words.
    #[must_use]
    pub fn of(vocabulary: Vocabulary) -> Self {
        Self { vocabulary, ..Self::default() }
    }

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
        let changes = kind::changes(event.f, &event.value, &self.vocabulary)?;
        self.pairs.invoke(event.process, self.ops.len())?;
        self.ops.push(Op {
            index: event.index,
            process: event.process,
            key: event.key,
            f: event.f,
            // What stands in the line of a read is not looked at.
            asked: if event.f == Function::READ { Value::Null } else { event.value.clone() },
            told: Value::Null,
            changes,
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
        if (event.f, event.key) != (op.f, op.key) {
            return Err(PairError::Mismatch {
                process: event.process,
                invoked: describe(op.f, op.key),
                completed: describe(event.f, event.key),
            });
        }
        if outcome == Outcome::Ok {
            op.told = kind::told(op, event.value)?;
        }
        op.outcome = outcome;
        // A read of unknown outcome has no effect and no result: it is over, whatever its recorder called it.
        if outcome == Outcome::Info && !op.changes {
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
        let Self { pairs, mut ops, stamps, .. } = self;
        let (open, untimed) = pairs.finish();
        for at in open {
            // A read that never ended has no effect either.
            if !ops[at].changes {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::{Micro, OpKind};

    fn event(process: u64, kind: EventKind, f: Function, value: Value, time: u64) -> Event {
        Event::new(process, kind, f, 0, value, time)
    }

    #[test]
    fn an_operation_without_completion_stays_open_and_its_return_never_comes() {
        let history =
            History::from_events([event(0, EventKind::Invoke, Function::WRITE, Value::One(1), 5)]).unwrap();
        assert_eq!(history.ops()[0].outcome, Outcome::Info);
        assert_eq!(history.ops()[0].ret, NEVER);
    }

    #[test]
    fn a_read_of_unknown_outcome_is_over_and_without_effect() {
        let history = History::from_events([
            event(0, EventKind::Invoke, Function::READ, Value::Null, 5),
            event(0, EventKind::Info, Function::READ, Value::Null, 6),
            event(1, EventKind::Invoke, Function::READ, Value::Null, 7),
        ])
        .unwrap();
        assert!(history.ops().iter().all(|op| op.outcome == Outcome::Fail));
    }

    #[test]
    fn real_time_is_the_order_of_stamps_and_lines_only_break_ties() {
        // Process 1's completion was written late: its line follows an invocation of the same or a later
        // stamp.
        let history = History::from_events([
            event(1, EventKind::Invoke, Function::WRITE, Value::One(1), 1),
            event(2, EventKind::Invoke, Function::WRITE, Value::One(2), 9),
            event(1, EventKind::Ok, Function::WRITE, Value::One(1), 4),
            event(2, EventKind::Ok, Function::WRITE, Value::One(2), 9),
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
        let line = |kind, value, time| event(0, kind, Function::TXN, value, time);
        let pair = |told| {
            History::from_events([line(EventKind::Invoke, txn(&asked), 1), line(EventKind::Ok, told, 2)])
        };
        let told = [Micro::append(6, 1), read(&[3, 4])];
        let history = pair(txn(&told)).unwrap();
        assert_eq!(history.ops()[0].kind(), OpKind::Txn { changes: true });
        assert_eq!(history.ops()[0].micros().map(|micros| &micros[..]), Some(&told[..]));
        for wrong in [txn(&asked), txn(&told[..1]), Value::Null, Value::One(1)] {
            assert_eq!(pair(wrong), Err(PairError::Shape(Function::TXN)));
        }
        let look =
            [line(EventKind::Invoke, txn(&[Micro::read(5)]), 1), line(EventKind::Info, Value::Null, 2)];
        assert_eq!(History::from_events(look).unwrap().ops()[0].outcome, Outcome::Fail);
    }

    #[test]
    fn malformed_sequences_are_refused_by_name() {
        let invoke = || event(0, EventKind::Invoke, Function::WRITE, Value::One(1), 1);
        assert_eq!(History::from_events([invoke(), invoke()]), Err(PairError::Busy(0)));
        let lone = event(3, EventKind::Ok, Function::READ, Value::Null, 1);
        assert_eq!(History::from_events([lone]), Err(PairError::NotInvoked(3)));
        let early = event(0, EventKind::Ok, Function::WRITE, Value::One(1), 0);
        assert_eq!(History::from_events([invoke(), early]), Err(PairError::TimeTravel(0)));
        let other = event(0, EventKind::Ok, Function::WRITE, Value::One(2), 2);
        assert_eq!(History::from_events([invoke(), other]), Err(PairError::Shape(Function::WRITE)));
        let read = event(0, EventKind::Ok, Function::READ, Value::One(1), 2);
        assert!(matches!(History::from_events([invoke(), read]), Err(PairError::Mismatch { .. })));
    }
}
