//! Histories of a simulated store of lists, for the fuzzer: a faultless one, and stores that break their
//! promises in the ways that real ones do.

use super::brute::{Op, Tried};
use crate::chance::Chance;
use crate::history::{Datum, EventKind, NEVER, Outcome, Record};

/// What a store does wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Store {
    /// Nothing.
    Strict,
    /// Transactions read an old state as a whole.
    Stale,
    /// What was acknowledged takes effect later.
    Late,
    /// Transactions read the state at their start, and fail when somebody else appended to what they append
    /// to.
    Snapshot,
    /// The same without failing: what others appended meanwhile is overwritten.
    LostUpdate,
    /// Each operation by itself.
    Fractured,
    /// Failed transactions leave their appends.
    Aborted,
    /// Own appends are not seen.
    Blind,
}

impl Store {
    pub(super) const ALL: [Self; 8] = [
        Self::Strict,
        Self::Stale,
        Self::Late,
        Self::Snapshot,
        Self::LostUpdate,
        Self::Fractured,
        Self::Aborted,
        Self::Blind,
    ];
}

/// How large a history is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Size {
    pub(super) txns: usize,
    pub(super) processes: usize,
    pub(super) keys: usize,
    pub(super) micros: usize,
    pub(super) fault_percent: usize,
    pub(super) open_percent: usize,
}

impl Size {
    pub(super) fn small(chance: &mut Chance) -> Self {
        Self {
            txns: 2 + chance.below(6),
            processes: 1 + chance.below(4),
            keys: 1 + chance.below(3),
            micros: 1 + chance.below(4),
            fault_percent: 20 + chance.below(80),
            open_percent: chance.below(30),
        }
    }
}

/// One simulated transaction.
#[derive(Clone, Debug)]
pub(super) struct Done {
    pub(super) process: u64,
    pub(super) call: u32,
    pub(super) ret: u32,
    pub(super) outcome: Outcome,
    /// As they were answered.
    pub(super) ops: Vec<Op>,
}

type Lists = Vec<Vec<u32>>;

struct Running {
    at: usize,
    /// The state when it started.
    start: Lists,
    /// How many of its operations took effect.
    done: usize,
    fate: Outcome,
    own: Vec<(u32, u32)>,
}

/// Runs a store.
pub(super) fn run(store: Store, size: Size, chance: &mut Chance) -> Vec<Done> {
    let mut world = World { store, size, lists: vec![Vec::new(); size.keys], ..World::default() };
    world.past.push(world.lists.clone());
    let mut running: Vec<Option<Running>> = (0..size.processes).map(|_| None).collect();
    let mut retired = vec![0_u64; size.processes];
    loop {
        let at = chance.below(size.processes);
        match running[at].take() {
            None if world.done.len() < size.txns => {
                let process = u64::try_from(at).unwrap() + retired[at];
                running[at] = Some(world.invoke(process, chance));
            }
            None if running.iter().all(Option::is_none) => break,
            None => {}
            Some(mut txn) => {
                if world.go_on(&mut txn, chance) {
                    running[at] = Some(txn);
                } else if txn.fate == Outcome::Info {
                    retired[at] += 100;
                }
            }
        }
        if chance.percent(30) {
            world.catch_up(chance);
        }
    }
    world.done
}

struct World {
    store: Store,
    size: Size,
    lists: Lists,
    past: Vec<Lists>,
    done: Vec<Done>,
    rank: u32,
    element: u32,
    /// What takes effect later.
    late: Vec<(u32, u32)>,
}

impl Default for World {
    fn default() -> Self {
        let size = Size { txns: 0, processes: 0, keys: 0, micros: 0, fault_percent: 0, open_percent: 0 };
        let (store, done) = (Store::Strict, Vec::new());
        Self { store, size, lists: Vec::new(), past: Vec::new(), done, rank: 0, element: 0, late: Vec::new() }
    }
}

impl World {
    fn tick(&mut self) -> u32 {
        self.rank += 1;
        self.rank - 1
    }

    fn invoke(&mut self, process: u64, chance: &mut Chance) -> Running {
        let ops = (0..1 + chance.below(self.size.micros)).map(|_| {
            let key = u32::try_from(chance.below(self.size.keys)).unwrap();
            if chance.percent(50) {
                return Op::Read(key, Vec::new());
            }
            self.element += 1;
            Op::Append(key, self.element)
        });
        let ops = ops.collect();
        let fate = match chance.below(100) {
            roll if roll < self.size.open_percent => Outcome::Info,
            roll if roll < self.size.open_percent + 15 => Outcome::Fail,
            _ => Outcome::Ok,
        };
        let call = self.tick();
        self.done.push(Done { process, call, ret: NEVER, outcome: fate, ops });
        Running { at: self.done.len() - 1, start: self.lists.clone(), done: 0, fate, own: Vec::new() }
    }

    fn faulty(&self, chance: &mut Chance) -> bool {
        chance.percent(self.size.fault_percent)
    }

    /// One step of a transaction; false after its last.
    fn go_on(&mut self, txn: &mut Running, chance: &mut Chance) -> bool {
        let count = self.done[txn.at].ops.len();
        if txn.done < count {
            if txn.done == 0 && txn.fate != Outcome::Ok && !self.takes_effect(txn.fate, chance) {
                txn.done = count;
            } else if self.store == Store::Fractured {
                self.step(txn, chance);
            } else {
                self.whole(txn, chance);
            }
            return true;
        }
        if txn.fate == Outcome::Info {
            return false;
        }
        self.done[txn.at].ret = self.tick();
        self.done[txn.at].outcome = txn.fate;
        false
    }

    /// Whether a transaction that is not acknowledged has effects.
    fn takes_effect(&self, fate: Outcome, chance: &mut Chance) -> bool {
        match fate {
            Outcome::Ok => true,
            Outcome::Info => chance.percent(50),
            Outcome::Fail => self.store == Store::Aborted && self.faulty(chance),
        }
    }

    fn step(&mut self, txn: &mut Running, _: &mut Chance) {
        match &mut self.done[txn.at].ops[txn.done] {
            Op::Append(key, element) => self.lists[*key as usize].push(*element),
            Op::Read(key, list) => list.clone_from(&self.lists[*key as usize]),
        }
        txn.done += 1;
    }

    fn whole(&mut self, txn: &mut Running, chance: &mut Chance) {
        let faulty = self.faulty(chance);
        let mut seen = match self.store {
            Store::Stale if faulty => self.past[chance.below(self.past.len())].clone(),
            Store::Snapshot | Store::LostUpdate if faulty => txn.start.clone(),
            _ => self.lists.clone(),
        };
        let base = seen.clone();
        let mut own = Vec::new();
        for op in &mut self.done[txn.at].ops {
            match op {
                Op::Append(key, element) => {
                    if !(self.store == Store::Blind && faulty) {
                        seen[*key as usize].push(*element);
                    }
                    own.push((*key, *element));
                }
                Op::Read(key, list) => list.clone_from(&seen[*key as usize]),
            }
        }
        txn.done = self.done[txn.at].ops.len();
        txn.own.clone_from(&own);
        let overtaken = own.iter().any(|&(key, _)| base[key as usize] != self.lists[key as usize]);
        match self.store {
            Store::Snapshot if overtaken => {
                if txn.fate == Outcome::Ok {
                    txn.fate = Outcome::Fail;
                }
                return;
            }
            Store::LostUpdate if overtaken => {
                for &(key, _) in &own {
                    self.lists[key as usize].clone_from(&base[key as usize]);
                }
                own.iter().for_each(|&(key, element)| self.lists[key as usize].push(element));
            }
            Store::Late if faulty => self.late.extend(own),
            _ => own.iter().for_each(|&(key, element)| self.lists[key as usize].push(element)),
        }
        self.past.push(self.lists.clone());
    }

    fn catch_up(&mut self, chance: &mut Chance) {
        if !self.late.is_empty() {
            let (key, element) = self.late.remove(chance.below(self.late.len()));
            self.lists[key as usize].push(element);
        }
    }
}

/// Falsifies one answer.
pub(super) fn falsify(done: &mut [Done], chance: &mut Chance) {
    let at = chance.below(done.len());
    let Some(txn) = done.get_mut(at) else { return };
    let all = 1 + chance.below(8);
    let op = chance.below(txn.ops.len());
    let key = match txn.ops[op] {
        Op::Read(key, _) => key,
        Op::Append(..) => return,
    };
    let own = txn.ops.iter().skip(op).find_map(|later| match later {
        Op::Append(other, element) if *other == key => Some(*element),
        _ => None,
    });
    let Op::Read(_, list) = &mut txn.ops[op] else { return };
    match chance.below(7) {
        6 => list.extend(own),
        0 | 1 => drop(list.pop()),
        2 if list.len() > 1 => {
            let at = chance.below(list.len() - 1);
            list.swap(at, at + 1);
        }
        3 => list.extend(list.clone().first()),
        4 => list.push(u32::try_from(all).unwrap()),
        5 if !list.is_empty() => drop(list.remove(chance.below(list.len()))),
        _ => list.push(999),
    }
}

/// The records of a history; keys and elements are integers or text.
pub(super) fn records(done: &[Done], text: bool) -> Vec<Record> {
    let name = |number: u32| {
        if text && number % 2 == 1 { Datum::text(&format!("e{number}")) } else { Datum::Int(number.into()) }
    };
    let value = |txn: &Done, answered: bool| {
        let micros = txn.ops.iter().map(|op| match op {
            Op::Append(key, element) => vec![Datum::text("append"), name(*key), name(*element)],
            Op::Read(key, list) if answered => {
                let list = list.iter().map(|&element| name(element)).collect();
                vec![Datum::text("r"), name(*key), Datum::List(list)]
            }
            Op::Read(key, _) => vec![Datum::text("r"), name(*key), Datum::Nil],
        });
        Datum::List(micros.map(Datum::List).collect())
    };
    let mut records = Vec::new();
    for txn in done {
        let record = |kind, rank: u32, answered| {
            let mut record = Record::new(txn.process, kind, "txn", Datum::Nil, value(txn, answered));
            record.index = rank.into();
            record.time = Some(u64::from(rank) * 1000);
            record
        };
        records.push(record(EventKind::Invoke, txn.call, false));
        match txn.outcome {
            Outcome::Ok => records.push(record(EventKind::Ok, txn.ret, true)),
            Outcome::Fail => records.push(record(EventKind::Fail, txn.ret, false)),
            Outcome::Info => {}
        }
    }
    records.sort_by_key(|record| record.index);
    records
}

/// The same as the oracle wants it.
pub(super) fn tried(done: &[Done]) -> Vec<Tried> {
    let happened = done.iter().filter(|txn| txn.outcome != Outcome::Fail);
    happened
        .map(|txn| {
            let is_known = |op: &&Op| txn.outcome == Outcome::Ok || matches!(op, Op::Append(..));
            let ops = txn.ops.iter().filter(is_known).cloned().collect();
            let ret = if txn.outcome == Outcome::Ok { txn.ret } else { NEVER };
            Tried { process: txn.process, call: txn.call, ret, ops }
        })
        .collect()
}
