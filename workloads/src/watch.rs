//! The workload `watch`: unique values written to a few registers, and watchers that are told of each change.
//!
//! A watcher follows one register. It is no client: whoever is free asks for it what changed behind the
//! position that its last answer told, and waits a little for news. Mostly that is the same client at the
//! same member, so that what a client keeps open (a stream, a subscription) lives for a while; now and then
//! another one goes on at another member. A lost answer is asked for again from the same position. Where the
//! position can't be resumed from any more, the watcher begins anew, as another one.
//!
//! When the load is over each member's registers are read, and each watcher is asked on, at each member from
//! the same position, until it has told what the reads show. [`checker::watch`] says what is judged and why
//! that is sound. What was acknowledged must be there at the end as well, as of registers.

use std::collections::BTreeMap;

use checker::durability::FinalState;
use checker::history::{EventKind, Function, Value};
use checker::verdict::CheckResult;
use checker::watch;
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use crate::case::{Case, durable_registers};
use crate::op::{Body, Object, Op};
use crate::outcome::{Outcome, Refusal};
use crate::promise::Promise;
use crate::workload::{Definition, Generator, as_agreed};

pub(crate) const WORKLOAD: Definition = Definition {
    name: "watch",
    summary: "writes to hot keys, and watchers of them: no change is lost, early, doubled or out of order",
    object: Object::REGISTER,
    functions: &[Function::WRITE, Function::WATCH],
    dispensable: &[],
    marks: &[Function::WATCH],
    words: &[],
    generator: |params, rng| Box::new(Watches::new(params.keys, params.read_percent, rng)),
    records_sessions: false,
    sessions_expire: false,
    goes_along: false,
    applications: None,
    is_settled: as_agreed,
    judged_by: of_watches,
    promises: &[told],
    durability: Some(durable_registers),
};

/// A promise as one of watches.
fn of_watches(promise: Promise) -> Option<Promise> {
    match promise {
        Promise::Linearizable => Some(Promise::EveryChange),
        Promise::EveryChange | Promise::Latest | Promise::Nothing => Some(promise),
        _ => None,
    }
}

/// Watchers of one register.
const WATCHERS: u64 = 4;
/// How long a watcher waits for news while there is load.
const WAIT_MS: u64 = 200;
/// How long at the end, before it is known what is to be told.
const SHORT_WAIT_MS: u64 = 50;
/// How often a client goes on with the watcher that it asked for last, in percent.
const STAYS: u8 = 90;

/// The check that watchers are told what is promised.
fn told(case: &Case<'_>) -> CheckResult {
    let promised = match case.beside.promise {
        Promise::Latest => watch::Promised::Latest,
        _ => watch::Promised::EveryChange,
    };
    // Who knows only the beginning does not know what was told later.
    let well_since_ns = case.beside.well_since_ns.filter(|_| case.extent.is_whole());
    watch::check(case.history, promised, well_since_ns)
}

/// Who is told how a register changes.
#[derive(Clone, Debug)]
struct Watcher {
    number: i64,
    key: u64,
    /// The position of its last answer.
    from: Option<i64>,
    /// The value that it was told last.
    told: Option<i64>,
    is_asked: bool,
    /// When it was asked for last, in requests.
    asked: u64,
}

/// The generator.
#[derive(Clone, Debug)]
struct Watches {
    rng: ChaCha8Rng,
    keys: u64,
    watch_percent: u8,
    next_value: i64,
    watchers: Vec<Watcher>,
    /// Which watcher each process asked for last.
    own: BTreeMap<u64, usize>,
    requests: u64,
    /// What was read of each register last.
    read: BTreeMap<u64, i64>,
}

impl Watches {
    fn new(keys: u64, watch_percent: u8, rng: ChaCha8Rng) -> Self {
        let watcher =
            |(number, key)| Watcher { number, key, from: None, told: None, is_asked: false, asked: 0 };
        let all = (0..WATCHERS).flat_map(|_| 0..keys);
        Self {
            rng,
            keys,
            watch_percent,
            next_value: 0,
            watchers: (0..).zip(all).map(watcher).collect(),
            own: BTreeMap::new(),
            requests: 0,
            read: BTreeMap::new(),
        }
    }

    fn key(&mut self) -> u64 {
        self.rng.random_range(0..self.keys)
    }

    fn fresh_value(&mut self) -> i64 {
        let value = self.next_value;
        self.next_value += 1;
        value
    }

    /// A request for the watcher that the process had, or for the one that waits for the longest time; none
    /// where all are being asked.
    fn watch(&mut self, process: u64) -> Option<Op> {
        let stays = self.rng.random_range(0..100) < STAYS;
        let own = self.own.get(&process).copied().filter(|at| stays && !self.watchers[*at].is_asked);
        let waits = |at: &usize| !self.watchers[*at].is_asked;
        let longest = || (0..self.watchers.len()).filter(waits).min_by_key(|at| self.watchers[*at].asked);
        let at = own.or_else(longest)?;
        self.own.retain(|_, other| *other != at);
        self.own.insert(process, at);
        self.requests += 1;
        let watcher = &mut self.watchers[at];
        (watcher.is_asked, watcher.asked) = (true, self.requests);
        Some(watcher.request(WAIT_MS))
    }

    fn answered(&mut self, number: i64, outcome: &Outcome) {
        let Some(at) = self.watchers.iter().position(|watcher| watcher.number == number) else { return };
        let watcher = &mut self.watchers[at];
        watcher.is_asked = false;
        match (outcome.kind, &outcome.value) {
            (EventKind::Ok, Value::List(told)) => {
                watcher.from = told.first().copied();
                watcher.told = told.iter().skip(1).step_by(2).next_back().copied().or(watcher.told);
            }
            _ if outcome.refusal == Some(Refusal::Missing) => {
                (watcher.from, watcher.told) = (None, None);
                let last = self.watchers.iter().map(|watcher| watcher.number).max().unwrap_or_default();
                self.watchers[at].number = last + 1;
            }
            _ => {}
        }
    }
}

impl Watcher {
    fn request(&self, wait_ms: u64) -> Op {
        register(self.key, Body::Watch { watcher: self.number, from: self.from, wait_ms })
    }
}

impl Generator for Watches {
    fn setup(&mut self) -> Vec<Op> {
        (0..self.keys).map(|key| register(key, Body::MakeRegister { value: self.fresh_value() })).collect()
    }

    fn next_op(&mut self, process: u64) -> Op {
        if self.rng.random_range(0..100) < self.watch_percent
            && let Some(watch) = self.watch(process)
        {
            return watch;
        }
        let (key, value) = (self.key(), self.fresh_value());
        register(key, Body::Write { value })
    }

    fn next_read(&mut self) -> Op {
        let key = self.key();
        register(key, Body::Read)
    }

    fn next_look(&mut self, process: u64) -> Op {
        self.watch(process).unwrap_or_else(|| self.next_read())
    }

    fn complete(&mut self, process: u64, op: &Op, outcome: &Outcome) {
        match (&op.body, &outcome.value) {
            (Body::Watch { watcher, .. }, _) => self.answered(*watcher, outcome),
            (Body::Read, Value::One(value)) if outcome.kind == EventKind::Ok => {
                self.read.insert(op.key, *value);
            }
            _ => {}
        }
        if outcome.retires() {
            self.own.remove(&process);
        }
    }

    /// Each register is read, and whoever was not told what was read is asked for.
    fn final_reads(&self) -> Vec<Op> {
        let reads = (0..self.keys).map(|key| register(key, Body::Read));
        let open = |watcher: &&Watcher| {
            watcher.from.is_some()
                && self.read.get(&watcher.key).is_none_or(|read| watcher.told != Some(*read))
        };
        let watch = |watcher: &Watcher| {
            let is_known = self.read.contains_key(&watcher.key);
            watcher.request(if is_known { WAIT_MS } else { SHORT_WAIT_MS })
        };
        reads.chain(self.watchers.iter().filter(open).map(watch)).collect()
    }

    fn is_told(&self, states: &[FinalState]) -> bool {
        let is_told = |watcher: &Watcher| {
            let mut held = states.iter().filter(|state| state.key == watcher.key);
            watcher.from.is_none() || held.all(|state| watcher.told == state.value)
        };
        self.watchers.iter().all(is_told)
    }
}

fn register(key: u64, body: Body) -> Op {
    Op::new(Object::REGISTER, key, body)
}

#[cfg(test)]
mod tests {
    use super::*;
    use checker::history::History;
    use checker::verdict::Verdict;
    use rand::SeedableRng;

    fn watches(seed: u64) -> Watches {
        Watches::new(2, 50, ChaCha8Rng::seed_from_u64(seed))
    }

    /// A log for each register, which answers as it should.
    #[derive(Default)]
    struct Logs(BTreeMap<u64, Vec<i64>>);

    impl Logs {
        fn answer(&mut self, op: &Op) -> Outcome {
            let log = self.0.entry(op.key).or_default();
            let end = i64::try_from(log.len()).expect("short");
            match op.body {
                Body::MakeRegister { value } | Body::Write { value } => {
                    log.push(value);
                    Outcome::told(op.value(), None)
                }
                Body::Watch { from, .. } => {
                    let from = from.unwrap_or(end);
                    let new = (from..end).flat_map(|at| [log[usize::try_from(at).expect("small")], at + 1]);
                    Outcome::told(Value::List([end].into_iter().chain(new).collect()), None)
                }
                Body::Read => Outcome::told(Value::One(*log.last().expect("made")), None),
                _ => panic!("no operation of a watch: {op:?}"),
            }
        }
    }

    #[test]
    fn watchers_of_logs_that_keep_their_promise_are_told_all_and_the_last_change_in_the_end() {
        let (mut watches, mut logs) = (watches(3), Logs::default());
        let (mut events, mut now) = (Vec::new(), 0);
        let mut perform = |watches: &mut Watches, process: u64, op: &Op| {
            let outcome = logs.answer(op);
            watches.complete(process, op, &outcome);
            events.extend([op.event(process, now), outcome.event(op, process, now + 1)]);
            now += 2;
        };
        for op in watches.setup() {
            perform(&mut watches, 99, &op);
        }
        for at in 0..600 {
            let op = if at % 7 == 0 { watches.next_look(at % 7) } else { watches.next_op(at % 7) };
            perform(&mut watches, at % 7, &op);
        }
        for op in watches.final_reads() {
            perform(&mut watches, 77, &op);
        }
        let state = |key, value| FinalState { member: 1, key, version: None, value, mzxid: None, list: None };
        let states: Vec<FinalState> =
            watches.read.iter().map(|(key, value)| state(*key, Some(*value))).collect();
        assert!(watches.is_told(&states) && !watches.is_told(&[state(0, Some(-5))]));
        assert_eq!(watches.final_reads().len(), 2, "nobody is asked for who was told");
        let history = History::from_events(events).expect("a history");
        let result = watch::check(&history, watch::Promised::EveryChange, Some(0));
        assert_eq!(result.verdict, Verdict::Valid, "{}", result.summary);
        assert_eq!(result.evidence["watchers"], 8, "{}", result.summary);
    }

    #[test]
    fn a_watcher_is_asked_for_by_one_process_at_a_time_and_goes_on_from_its_position() {
        let mut watches = watches(1);
        let asked: Vec<Op> = (0..8).map_while(|process| watches.watch(process)).collect();
        assert_eq!(asked.len(), 8, "four of each key");
        assert_eq!(watches.watch(9), None, "all are being asked");
        let told = Outcome::told(Value::List([41, 5, -1].into()), None);
        watches.complete(0, &asked[0], &told);
        let Some(Body::Watch { from, .. }) = watches.watch(9).map(|op| op.body) else { panic!("it is free") };
        assert_eq!(from, Some(41));
    }

    #[test]
    fn a_watcher_whose_answer_is_lost_stays_and_one_whose_position_is_gone_begins_anew() {
        let mut watches = watches(1);
        let asked = watches.watch(0).expect("a watcher");
        let told = Outcome::told(Value::List([41, 5, -1].into()), None);
        watches.complete(0, &asked, &told);
        let again = watches.watchers[0].request(WAIT_MS);
        watches.complete(0, &again, &Outcome::lost(&again, "no answer in time"));
        assert_eq!(watches.watchers[0].request(WAIT_MS), again);
        let gone = Outcome::without_result(EventKind::Fail, &again, watch::GONE.to_owned());
        watches.complete(0, &again, &Outcome { refusal: Some(Refusal::Missing), ..gone });
        let anew = &watches.watchers[0];
        assert!(anew.number >= 8 && anew.from.is_none() && anew.told.is_none());
    }
}
