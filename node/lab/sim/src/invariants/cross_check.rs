//! Agreement of checks: the committed sequence and what clients were told are one story.
//!
//! The invariants inside say which entries were committed, in which order. The checkers outside say whether
//! some order explains what the clients saw. Neither knows of the other, so each can vouch for the other: the
//! committed sequence is replayed here on plain registers, without a tree and without a line of the core, and
//! every answer must be what it leaves at that answer's zxid:
//!
//! - an acknowledged change stands where it says, with its value and version, and a compare-and-set found
//!   what it asked for;
//! - a read shows the last change at or before the zxid of its reply;
//! - a compare-and-set was refused where the version was another;
//! - what definitely failed is nowhere;
//! - an operation that began after another had ended does not stand before it.
//!
//! A history that this explains is linearizable, and one that is not is not explained. When the checkers say
//! otherwise, one of the two is wrong, and it is the bench.

use std::collections::BTreeMap;

use checker::history::{History, NEVER, Op, OpKind, Outcome};
use node_wire::ids::Zxid;
use node_wire::txn::{Entry, Txn};
use workloads::op::Object;
use workloads::text;
use zookeeper_mapping::path;

use super::Invariants;

/// What a register held from an entry on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct State {
    zxid: u64,
    version: i64,
    value: Option<i64>,
}

/// A register's states, in order.
type States = Vec<State>;

impl Invariants {
    /// Replays what was committed and compares every answer about a register with it.
    ///
    /// # Errors
    /// The first answer that is not what the sequence says, in a sentence.
    pub(crate) fn explain(&self, history: &History) -> Result<(), String> {
        let registers = self.replay();
        for (key, ops) in history.by_key() {
            let none = States::new();
            let states = registers.get(&path(Object::REGISTER, key)).unwrap_or(&none);
            for op in &ops {
                explain_op(op, states).map_err(|reason| format!("register {key}: {reason}"))?;
            }
            explain_order(&ops).map_err(|reason| format!("register {key}: {reason}"))?;
        }
        Ok(())
    }

    fn replay(&self) -> BTreeMap<String, States> {
        let mut registers: BTreeMap<String, States> = BTreeMap::new();
        for committed in &self.committed {
            let zxid = committed.mark.zxid;
            let Some(proposed) = self.proposed.get(&zxid) else { continue };
            let Ok(entry) = Entry::decode(proposed.bytes.clone()) else { continue };
            let (path, version, data) = match &entry.txn {
                Txn::Create { path, data, .. } => (path, 0, data),
                Txn::SetData { path, data, version } => (path, *version, data),
                _ => continue,
            };
            let value = data.as_deref().and_then(text::value);
            let states = registers.entry(path.to_string()).or_default();
            states.push(State { zxid: zxid.0, version: i64::from(version), value });
        }
        registers
    }
}

fn explain_op(op: &Op, states: &[State]) -> Result<(), String> {
    let at = |zxid: u64| states.partition_point(|state| state.zxid <= zxid).checked_sub(1);
    match (op.kind(), op.outcome) {
        (OpKind::Read { value }, Outcome::Ok) => {
            let Some(zxid) = op.zxid else { return Ok(()) };
            let state = at(zxid).map(|index| states[index]);
            let shown =
                State { zxid: op.mzxid.unwrap_or_default(), version: op.version.unwrap_or_default(), value };
            if state != Some(shown) {
                return Err(format!("a read at {} showed {shown:?} and not {state:?}", Zxid(zxid)));
            }
        }
        (kind, Outcome::Ok) => {
            let Some(zxid) = op.mzxid.or(op.zxid) else { return Ok(()) };
            let index = at(zxid).filter(|index| states[*index].zxid == zxid);
            let Some(index) = index else {
                return Err(format!("{} was acknowledged and changed nothing", Zxid(zxid)));
            };
            let state = states[index];
            if state.value != kind.written() || op.version.is_some_and(|version| version != state.version) {
                return Err(format!("{:?} was acknowledged where {state:?} stands", (kind, op.version)));
            }
            let before = index.checked_sub(1).map(|before| states[before]);
            if let OpKind::Cas { from, .. } = kind
                && (before.and_then(|state| state.value) != from
                    || op.expect.is_some_and(|expect| before.is_none_or(|state| state.version != expect)))
            {
                return Err(format!("a compare-and-set from {from:?} found {before:?}"));
            }
        }
        (kind, Outcome::Fail) => {
            if let Some(written) = kind.written()
                && states.iter().any(|state| state.value == Some(written))
            {
                return Err(format!("the write of {written} failed and stands in the history"));
            }
            if op.is_refused_cas()
                && let (Some(zxid), Some(expect)) = (op.zxid, op.expect)
                && at(zxid).is_some_and(|index| states[index].version == expect)
            {
                return Err(format!("a compare-and-set was refused at {} by its own version", Zxid(zxid)));
            }
        }
        (_, Outcome::Info) => {}
    }
    Ok(())
}

/// No operation stands before one that had ended when it began. Versions are places: they count changes.
fn explain_order(ops: &[&Op]) -> Result<(), String> {
    let placed = ops.iter().filter(|op| op.outcome == Outcome::Ok && op.ret != NEVER);
    let mut ended: Vec<(u32, i64)> = placed.filter_map(|op| Some((op.ret, op.version?))).collect();
    ended.sort_unstable();
    let mut ended = ended.into_iter().peekable();
    let mut newest = -1;
    for op in ops {
        while let Some((_, version)) = ended.next_if(|(ret, _)| *ret < op.call) {
            newest = newest.max(version);
        }
        let Some(version) = op.version.filter(|_| op.outcome == Outcome::Ok) else { continue };
        let least = newest + i64::from(op.kind().written().is_some());
        if version < least {
            return Err(format!("version {version} came behind version {newest}"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use checker::history::{BAD_VERSION, Event, EventKind, Function, Value};

    use super::*;

    const STATES: [State; 2] =
        [State { zxid: 1, version: 0, value: Some(10) }, State { zxid: 5, version: 1, value: Some(11) }];

    /// One operation, told by its two lines.
    fn op(f: Function, asked: Value, kind: EventKind, told: impl FnOnce(&mut Event)) -> Op {
        let invoke = Event::new(0, EventKind::Invoke, f, 0, asked.clone(), 1);
        let mut complete = Event::new(0, kind, f, 0, asked, 2);
        complete.index = 1;
        told(&mut complete);
        let history = History::from_events([invoke, complete]).expect("a history");
        history.ops()[0].clone()
    }

    fn read(value: i64, version: i64, mzxid: u64, zxid: u64) -> Op {
        op(Function::READ, Value::Null, EventKind::Ok, |line| {
            line.value = Value::One(value);
            (line.version, line.mzxid, line.zxid) = (Some(version), Some(mzxid), Some(zxid));
        })
    }

    fn write(value: i64, version: i64, mzxid: u64) -> Op {
        op(Function::WRITE, Value::One(value), EventKind::Ok, |line| {
            (line.version, line.mzxid, line.zxid) = (Some(version), Some(mzxid), Some(mzxid));
        })
    }

    #[test]
    fn what_the_sequence_says_is_explained() {
        for zxid in 1..5 {
            explain_op(&read(10, 0, 1, zxid), &STATES).expect("the first value");
        }
        explain_op(&read(11, 1, 5, 9), &STATES).expect("the last value");
        explain_op(&write(11, 1, 5), &STATES).expect("a change that stands there");
    }

    #[test]
    fn an_answer_that_the_sequence_does_not_hold_is_told() {
        for wrong in [
            read(10, 0, 1, 5),
            read(11, 0, 5, 5),
            read(12, 1, 5, 5),
            write(11, 1, 4),
            write(12, 1, 5),
            write(11, 2, 5),
            op(Function::WRITE, Value::One(10), EventKind::Fail, |_| {}),
            op(Function::CAS, Value::Pair(Some(10), 20), EventKind::Fail, |line| {
                (line.zxid, line.error) = (Some(4), Some(BAD_VERSION.into()));
            })
            .expecting(0),
        ] {
            assert!(explain_op(&wrong, &STATES).is_err(), "{wrong:?}");
        }
    }

    trait Expecting {
        fn expecting(self, version: i64) -> Self;
    }

    impl Expecting for Op {
        fn expecting(self, version: i64) -> Self {
            Self { expect: Some(version), ..self }
        }
    }

    #[test]
    fn an_operation_does_not_stand_before_one_that_had_ended() {
        let early = Op { call: 0, ret: 1, ..write(11, 1, 5) };
        let late = |op: Op| Op { call: 2, ret: 3, ..op };
        let (stale, fresh) = (late(read(10, 0, 1, 4)), late(read(11, 1, 5, 6)));
        assert!(explain_order(&[&early, &stale]).is_err());
        assert!(explain_order(&[&early, &late(write(12, 1, 6))]).is_err());
        assert!(explain_order(&[&early, &fresh]).is_ok());
        let overlapping = Op { call: 0, ret: 3, ..stale };
        assert!(explain_order(&[&overlapping, &early]).is_ok());
    }
}
