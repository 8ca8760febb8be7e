//! The workload `txn`: transactions that append to lists and read them.
//!
//! A transaction is one to four micro-operations on a few hot lists, all of them at once or none. Every
//! element is appended once, so a read says who had written before, and in which order. From that follows
//! which transaction has to come before which, and a cycle of these breaks an isolation level
//! ([`checker::txn`]).
//!
//! There are three kinds, because anomalies differ in what shows them:
//!
//! - *Read, then write*: each list is read right before it is appended to. What is read is what the append
//!   builds on, so a lost update shows at once, and write skew needs two of these on lists that cross. The
//!   literature calls them mini-transactions (arXiv 2504.02344): they are short, and nearly every anomaly
//!   shows in them. Of those that change anything most are of this kind: two concurrent ones are enough for
//!   what a mixture shows only by chance, because there a read and an append rarely meet on one list.
//! - *A mixture*: reads and appends in any order. Appends without a read before them (blind ones), a read
//!   behind the transaction's own append, and two appends to one list are only here; they show writes that
//!   cross (G0) and what is read half-done (G1b).
//! - *A look*: reads of several lists. It changes nothing, and sees torn or old states for which who writes
//!   would be refused.
//!
//! A database that detects conflicts refuses part of the first kind; that is `fail`, and it is no loss: what
//! goes through is what a wrong one would let through. Lists rotate before they grow long, so that every one
//! is read often and to its end, and the order of its elements is known.
//!
//! A list is there as soon as somebody appends to it, so nothing is made; setting up reads what is hot at
//! first, so that clients make their tables. Members are read a last time by a transaction of one read for
//! each list.

use checker::history::{
    Datum, EventKind, Function, History, LoadError, Micro, Op as Recorded, Outcome as Ended, Record,
};
use checker::txn;
use checker::verdict::{CheckResult, OpView, Verdict};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use crate::case::{Case, durable_transactions};
use crate::op::{Body, Object, Op};
use crate::outcome::Outcome;
use crate::params::Params;
use crate::promise::Promise;
use crate::workload::{Definition, Generator, as_agreed};

pub(crate) const WORKLOAD: Definition = Definition {
    name: "txn",
    summary: "transactions that append to lists and read them: some order explains all of them",
    object: Object::LISTS,
    functions: &[Function::TXN],
    dispensable: &[],
    marks: &[Function::TXN],
    words: &[],
    generator: |params, rng| Box::new(Txn::new(params, rng)),
    records_sessions: false,
    sessions_expire: false,
    goes_along: false,
    applications: None,
    is_settled: as_agreed,
    judged_by: of_transactions,
    promises: &[isolation],
    durability: Some(durable_transactions),
};

/// A promise as one of transactions.
fn of_transactions(promise: Promise) -> Option<Promise> {
    match promise {
        Promise::Linearizable => Some(Promise::StrictSerializable),
        Promise::Nothing => Some(promise),
        promise => promise.isolation().map(|_| promise),
    }
}

/// Micro-operations of a transaction at most.
const MOST: usize = 4;
/// Of those that are no look, how many read each list before they append to it.
const READ_THEN_WRITE: f64 = 0.6;

/// The check of the isolation level that is promised; where none is, the strongest one is measured.
fn isolation(case: &Case<'_>) -> CheckResult {
    let condition = case.beside.promise.isolation().unwrap_or_default();
    match txn::check(records(case.history), condition, &case.effort.budget) {
        Ok(judged) => by_whom(case.history, judged.result),
        Err(error) => CheckResult::new(condition.as_str(), Verdict::Unknown, error.to_string()),
    }
}

/// The same with the members and sessions of the transactions that are shown: the checker has no use for
/// them.
fn by_whom(history: &History, mut result: CheckResult) -> CheckResult {
    for view in result.counterexample.iter_mut().flat_map(|found| &mut found.ops) {
        if let Some(op) = history.ops().iter().find(|op| op.index == view.index) {
            let own = OpView::of(op, view.impossible);
            (view.node, view.session) = (own.node, own.session);
        }
    }
    result
}

/// The lines of a history, in the order of its moments. What may take effect at any later time is said to be
/// so at once.
fn records(history: &History) -> impl Iterator<Item = Result<Record, LoadError>> + '_ {
    let calls = history.ops().iter().map(|op| (op.call, false, op, EventKind::Invoke));
    let returns = history.ops().iter().map(|op| match op.outcome {
        Ended::Ok => (op.ret, true, op, EventKind::Ok),
        Ended::Fail => (op.ret, true, op, EventKind::Fail),
        Ended::Info => (op.call, true, op, EventKind::Info),
    });
    let mut lines: Vec<_> = calls.chain(returns).collect();
    lines.sort_unstable_by_key(|(rank, returns, ..)| (*rank, *returns));
    lines.into_iter().map(|(.., op, kind)| Ok(record(op, kind)))
}

fn record(op: &Recorded, kind: EventKind) -> Record {
    let micros = op.micros().into_iter().flat_map(|micros| micros.iter());
    let (value, time) = match kind {
        EventKind::Ok => (micros.map(Datum::from).collect(), op.complete_ns),
        EventKind::Fail => (Vec::new(), op.complete_ns),
        EventKind::Invoke | EventKind::Info => {
            (micros.map(|micro| Datum::from(&micro.asked())).collect(), Some(op.invoke_ns))
        }
    };
    let record = Record::new(op.process, kind, "txn", Datum::Nil, Datum::List(value));
    Record { index: op.index, time, ..record }
}

/// A hot list.
#[derive(Clone, Copy, Debug)]
struct Hot {
    key: u64,
    used: u64,
}

/// The generator.
#[derive(Clone, Debug)]
struct Txn {
    rng: ChaCha8Rng,
    hot: Vec<Hot>,
    /// The next list that is begun when another one is full.
    next_key: u64,
    longest: u64,
    read_percent: u8,
    next_element: i64,
}

impl Txn {
    fn new(&Params { keys, elements, read_percent, .. }: &Params, rng: ChaCha8Rng) -> Self {
        let hot = (0..keys).map(|key| Hot { key, used: 0 }).collect();
        let longest = elements.max(1);
        Self { rng, hot, next_key: keys, longest, read_percent, next_element: 0 }
    }

    fn any(&mut self) -> u64 {
        self.hot[self.rng.random_range(0..self.hot.len())].key
    }

    /// An append to the list at this place, or to the one that follows it when that is full.
    fn append(&mut self, place: usize) -> Micro {
        let hot = &mut self.hot[place];
        if hot.used >= self.longest {
            *hot = Hot { key: self.next_key, used: 0 };
            self.next_key += 1;
        }
        hot.used += 1;
        let element = self.next_element;
        self.next_element += 1;
        Micro::append(hot.key, element)
    }

    /// Each of one or two lists is read and then appended to.
    fn read_then_write(&mut self) -> Vec<Micro> {
        let first = self.rng.random_range(0..self.hot.len());
        let mut places = vec![first];
        let mut micros = Vec::with_capacity(MOST);
        if self.hot.len() > 1 && self.rng.random_bool(0.7) {
            places.push((first + self.rng.random_range(1..self.hot.len())) % self.hot.len());
        }
        // Reads of both and an append to one is the smallest write skew.
        let both = self.rng.random_bool(0.5);
        for (at, place) in places.into_iter().enumerate() {
            if at > 0 && !both {
                micros.insert(0, Micro::read(self.hot[place].key));
            } else {
                let append = self.append(place);
                micros.extend([Micro::read(append.key), append]);
            }
        }
        micros
    }

    fn mixture(&mut self) -> Vec<Micro> {
        let count = self.rng.random_range(1..=MOST);
        (0..count)
            .map(|_| {
                let place = self.rng.random_range(0..self.hot.len());
                match self.rng.random_bool(0.5) {
                    true => self.append(place),
                    false => Micro::read(self.hot[place].key),
                }
            })
            .collect()
    }

    fn look(&mut self) -> Vec<Micro> {
        let count = self.rng.random_range(1..=MOST);
        (0..count).map(|_| Micro::read(self.any())).collect()
    }
}

impl Generator for Txn {
    fn setup(&mut self) -> Vec<Op> {
        self.hot.iter().map(|hot| Op::txn([Micro::read(hot.key)])).collect()
    }

    /// One read of each list that there ever was.
    fn final_reads(&self) -> Vec<Op> {
        (0..self.next_key).map(|key| Op::txn([Micro::read(key)])).collect()
    }

    fn next_read(&mut self) -> Op {
        Op::txn(self.look())
    }

    fn next_op(&mut self, _: u64) -> Op {
        if self.rng.random_range(0..100) < self.read_percent {
            return self.next_read();
        }
        let read_then_write = self.rng.random_bool(READ_THEN_WRITE);
        Op::txn(if read_then_write { self.read_then_write() } else { self.mixture() })
    }

    /// What was refused leaves its room to others: lists that only refusals fill would never be read twice.
    fn complete(&mut self, _: u64, op: &Op, outcome: &Outcome) {
        let Body::Txn { micros } = &op.body else { return };
        for micro in micros.iter().filter(|micro| outcome.kind == EventKind::Fail && micro.is_append()) {
            if let Some(hot) = self.hot.iter_mut().find(|hot| hot.key == micro.key) {
                hot.used = hot.used.saturating_sub(1);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use checker::Budget;
    use checker::history::{Event, Value, What};
    use rand::SeedableRng;

    use super::*;
    use crate::judge::{Beside, Requirements, judge};
    use crate::{Kind, Promise, Workload};

    /// How a store of lists does transactions.
    #[derive(Clone, Copy, PartialEq, Eq)]
    enum Store {
        /// One after the other.
        Sound,
        /// Each pair reads the state before both of them, and is refused only where both append to one list.
        Snapshots,
        /// From this turn on what the second one appends is acknowledged and thrown away.
        Loses(usize),
    }

    type Lists = BTreeMap<u64, Vec<i64>>;

    fn done(lists: &mut Lists, micros: &[Micro]) -> Value {
        let one = |micro: &Micro| {
            let list = lists.entry(micro.key).or_default();
            let what = match micro.what {
                What::Append(element) => {
                    list.push(element);
                    What::Append(element)
                }
                What::Read(_) => What::Read(Some(list.as_slice().into())),
            };
            Micro { key: micro.key, what }
        };
        Value::Txn(micros.iter().map(one).collect())
    }

    fn appends(micros: &[Micro]) -> Vec<u64> {
        micros.iter().filter(|micro| micro.is_append()).map(|micro| micro.key).collect()
    }

    /// Runs pairs of transactions that overlap, and judges what came of them.
    fn results(store: Store, promise: Promise, pairs: usize) -> Vec<CheckResult> {
        let rng = ChaCha8Rng::seed_from_u64(9);
        let mut workload = Workload::new(Kind::TXN, Params::of_keys(3), rng).expect("sound");
        let (mut lists, mut events, mut now) = (Lists::new(), Vec::new(), 0);
        let mut line = |process, kind, op: &Op, value| {
            now += 1000;
            events.push(Event::new(process, kind, op.function(), op.key, value, now));
        };
        for at in 0..pairs {
            let pair = [workload.next_op(0), workload.next_op(1)];
            let micros = pair.each_ref().map(|op| {
                let Value::Txn(micros) = op.value() else { panic!("a transaction") };
                micros
            });
            (0..).zip(&pair).for_each(|(process, op)| line(process, EventKind::Invoke, op, op.value()));
            let before = lists.clone();
            let first = done(&mut lists, &micros[0]);
            line(0, EventKind::Ok, &pair[0], first);
            let meet = appends(&micros[0]).iter().any(|key| appends(&micros[1]).contains(key));
            if store == Store::Snapshots && meet {
                line(1, EventKind::Fail, &pair[1], pair[1].value());
            } else if store == Store::Snapshots {
                let second = done(&mut before.clone(), &micros[1]);
                done(&mut lists, &micros[1]);
                line(1, EventKind::Ok, &pair[1], second);
            } else {
                let kept = lists.clone();
                let second = done(&mut lists, &micros[1]);
                if matches!(store, Store::Loses(turn) if turn <= at) {
                    lists = kept;
                }
                line(1, EventKind::Ok, &pair[1], second);
            }
        }
        let mut finals = Vec::new();
        for op in workload.final_reads() {
            let Value::Txn(micros) = op.value() else { panic!("a transaction") };
            let told = Outcome::told(done(&mut lists, &micros), None);
            line(2, EventKind::Invoke, &op, op.value());
            line(2, EventKind::Ok, &op, told.value.clone());
            finals.extend(workload.final_state(1, &op, &told));
        }
        let history = History::from_events(events).expect("well formed");
        let requirements = Requirements { functions: vec![Function::TXN], ..Requirements::default() };
        let beside =
            Beside { members: vec![1], final_states: finals, promise, requirements, ..Beside::default() };
        judge(Kind::TXN, &history, &beside, &Budget::default())
    }

    fn verdicts(results: &[CheckResult]) -> Vec<(&str, Verdict)> {
        results.iter().map(|result| (result.name.as_str(), result.verdict)).collect()
    }

    #[test]
    fn transactions_one_after_the_other_keep_every_promise() {
        let results = results(Store::Sound, Promise::Linearizable, 400);
        assert!(results.iter().all(|result| result.verdict == Verdict::Valid), "{:?}", verdicts(&results));
        let names: Vec<&str> = results.iter().map(|result| result.name.as_str()).collect();
        assert_eq!(names, ["strict-serializable", "session-order", "durability", "convergence", "load"]);
    }

    #[test]
    fn write_skew_breaks_serializability_and_is_snapshot_isolation() {
        let first = |promise| results(Store::Snapshots, promise, 400).remove(0);
        assert_eq!(first(Promise::SnapshotIsolation).verdict, Verdict::Valid);
        let accused = first(Promise::Serializable);
        assert_eq!((accused.name.as_str(), accused.verdict), ("serializable", Verdict::Invalid));
        let found = accused.counterexample.expect("a counterexample");
        assert!(found.sentence.starts_with("G2-item: T"), "{}", found.sentence);
        assert!(found.rechecked && found.ops.len() <= 4, "{found:?}");
        let measured = first(Promise::Nothing);
        assert_eq!(measured.verdict, Verdict::Valid);
        assert!(measured.summary.starts_with("not promised, and not kept"), "{}", measured.summary);
    }

    #[test]
    fn what_was_acknowledged_and_is_gone_is_lost_to_every_promise() {
        let results = results(Store::Loses(390), Promise::ReadUncommitted, 400);
        let lost = results.iter().find(|result| result.name == "durability").expect("judged");
        assert_eq!(lost.verdict, Verdict::Invalid, "{}", lost.summary);
    }

    #[test]
    fn a_store_that_answers_looks_alone_was_not_tested() {
        let rng = ChaCha8Rng::seed_from_u64(5);
        let mut workload = Workload::new(Kind::TXN, Params::of_keys(3), rng).expect("sound");
        let mut events = Vec::new();
        for at in 0..200 {
            let op = workload.next_op(0);
            let Body::Txn { micros } = &op.body else { panic!("a transaction") };
            let told = match op.is_change() {
                true => Outcome::without_result(EventKind::Fail, &op, "read-only".to_owned()),
                false => Outcome::told(done(&mut Lists::new(), micros), None),
            };
            events.extend([op.event(0, at * 2), told.event(&op, 0, at * 2 + 1)]);
        }
        let history = History::from_events(events).expect("well formed");
        let requirements = Requirements { functions: vec![Function::TXN], ..Requirements::default() };
        let beside = Beside { requirements, ..Beside::default() };
        let results = judge(Kind::TXN, &history, &beside, &Budget::default());
        let load = results.iter().find(|result| result.name == "load").expect("judged");
        assert_eq!(load.verdict, Verdict::Unknown, "{}", load.summary);
        assert!(load.summary.contains("successful txn"), "{}", load.summary);
    }

    #[test]
    fn a_promise_that_is_none_of_transactions_is_none_here_and_the_other_way_round() {
        assert_eq!(Kind::TXN.promised(Promise::Linearizable), Some(Promise::StrictSerializable));
        assert_eq!(Kind::TXN.promised(Promise::LinearizableUpdates), None);
        assert_eq!(Kind::SET.promised(Promise::Serializable), None);
        assert_eq!(Kind::SET.promised(Promise::LinearizableUpdates), Some(Promise::LinearizableUpdates));
        assert!(Kind::TXN.promise_names().contains(&"snapshot-isolation"));
    }

    #[test]
    fn transactions_are_small_and_every_element_is_appended_once() {
        let rng = ChaCha8Rng::seed_from_u64(3);
        let mut workload = Workload::new(Kind::TXN, Params::of_keys(3), rng).expect("sound");
        let (mut elements, mut by_list) = (Vec::new(), BTreeMap::<u64, u64>::new());
        for _ in 0..3000 {
            let Value::Txn(micros) = workload.next_op(0).value() else { panic!("a transaction") };
            assert!((1..=MOST).contains(&micros.len()), "{micros:?}");
            for micro in micros.iter() {
                if let What::Append(element) = micro.what {
                    elements.push(element);
                    *by_list.entry(micro.key).or_default() += 1;
                }
            }
        }
        assert!(elements.is_sorted_by(|one, other| one < other));
        assert!(by_list.values().all(|count| *count <= crate::params::ELEMENTS), "{by_list:?}");
        assert_eq!(workload.final_reads().len(), by_list.len());
    }
}
