//! The workload `log`: records sent to the end of logs, and read on from an offset.
//!
//! A log is what Kafka, Redpanda and Pulsar call a partition, NATS `JetStream` a subject of a stream, and
//! Redis a stream. Each key is one. Two functions:
//!
//! | f | value of the invocation | value of an `ok` |
//! |---|---|---|
//! | `send` | the record, a unique integer | the offset that it got, or `null` where none is told |
//! | `poll` | `[from, most]` | the records from that offset on, `most` at most: `[[offset, record], ...]` |
//!
//! An offset is any integer that grows; numbers may be left out. An answer with fewer records than `most`
//! says that there are no more. In the history offsets and records of a poll stand in one flat list.
//!
//! Each process sends to any log, and reads every log on from where it is. Now and then it reads again what
//! it has read. At the end each log is read from its beginning on each member. `log/check.rs` says what must
//! be true.

mod check;

use std::collections::BTreeMap;

use checker::durability::FinalState;
use checker::history::{Effect, EventKind, Function, Value};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use serde_json::Value as Json;

use crate::op::{Body, Object, Op, Word};
use crate::outcome::Outcome;
use crate::promise::Promise;
use crate::workload::{Definition, Generator, as_agreed};

const SEND: Function = Function::named("send");
const POLL: Function = Function::named("poll");

/// Puts a record at the end of a log.
static SEND_A_RECORD: Word = Word { function: SEND, effect: Effect::Change, read: sent };
/// Reads records from an offset on.
static POLL_RECORDS: Word = Word { function: POLL, effect: Effect::Look, read: polled };

const LOG: Object = Object::named("log");

pub(crate) const WORKLOAD: Definition = Definition {
    name: "log",
    summary: "records sent to logs and read on from an offset: none is lost, moved, or out of its order",
    object: LOG,
    functions: &[SEND, POLL],
    dispensable: &[],
    marks: &[SEND, POLL],
    words: &[&SEND_A_RECORD, &POLL_RECORDS],
    generator: |params, rng| Box::new(Logs::new(params.keys, params.read_percent, rng)),
    records_sessions: false,
    sessions_expire: false,
    goes_along: false,
    applications: None,
    is_settled: as_agreed,
    judged_by: of_logs,
    promises: &[check::log],
    durability: Some(check::durable),
};

/// A promise as one of logs.
fn of_logs(promise: Promise) -> Option<Promise> {
    match promise {
        Promise::Linearizable | Promise::LinearizableUpdates | Promise::ExactlyOnce | Promise::Nothing => {
            Some(promise)
        }
        _ => None,
    }
}

/// The largest integer that a client's line holds.
const MOST: i64 = 1 << 53;

/// The offset that a client was told; nothing where it was told none.
fn sent(_: &Op, told: &Json) -> Result<Value, &'static str> {
    match told {
        Json::Null => Ok(Value::Null),
        told => offset(told).map(Value::One).ok_or("the record's offset, an integer below 2^53, or null"),
    }
}

/// The records that a poll answered, as one list: an offset, its record, the next offset.
fn polled(_: &Op, told: &Json) -> Result<Value, &'static str> {
    const WANTED: &str = "a list of [offset, record], integers below 2^53";
    let Json::Array(records) = told else { return Err(WANTED) };
    let mut flat = Vec::with_capacity(records.len() * 2);
    for record in records {
        let [at, record] = record.as_array().map(Vec::as_slice).unwrap_or_default() else {
            return Err(WANTED);
        };
        flat.extend([offset(at).ok_or(WANTED)?, offset(record).ok_or(WANTED)?]);
    }
    Ok(Value::List(flat.into()))
}

fn offset(told: &Json) -> Option<i64> {
    told.as_i64().filter(|told| (0..MOST).contains(told))
}

/// Records of one process; those of the next one begin behind them.
const RECORDS_OF_A_PROCESS: i64 = 1 << 24;
/// How many records a poll asks for while there is load.
const A_PAGE: i64 = 100;
/// How many at the end: all.
const ALL: i64 = 1 << 30;
/// How often a process reads again what it has read, in percent.
const AGAIN_PERCENT: u8 = 10;

/// The generator.
#[derive(Clone, Debug)]
struct Logs {
    rng: ChaCha8Rng,
    keys: u64,
    poll_percent: u8,
    /// How many records each process has made.
    made: BTreeMap<u64, i64>,
    /// From where each process reads each log on.
    at: BTreeMap<(u64, u64), i64>,
}

impl Logs {
    fn new(keys: u64, poll_percent: u8, rng: ChaCha8Rng) -> Self {
        Self { rng, keys, poll_percent, made: BTreeMap::new(), at: BTreeMap::new() }
    }

    fn any(&mut self) -> u64 {
        self.rng.random_range(0..self.keys)
    }

    fn send(&mut self, process: u64) -> Op {
        let made = self.made.entry(process).or_default();
        *made += 1;
        let first = i64::try_from(process).unwrap_or(i64::MAX).saturating_mul(RECORDS_OF_A_PROCESS);
        let record = first.saturating_add(*made);
        Op::said(LOG, self.any(), &SEND_A_RECORD, Value::One(record))
    }

    fn poll(&mut self, process: u64) -> Op {
        let key = self.any();
        let at = self.at.get(&(process, key)).copied().unwrap_or_default();
        let again = at > 0 && self.rng.random_range(0..100) < AGAIN_PERCENT;
        let from = if again { self.rng.random_range(0..at) } else { at };
        poll(key, from, A_PAGE)
    }
}

fn poll(key: u64, from: i64, most: i64) -> Op {
    Op::said(LOG, key, &POLL_RECORDS, Value::Pair(Some(from), most))
}

impl Generator for Logs {
    fn setup(&mut self) -> Vec<Op> {
        (0..self.keys).map(|key| Op::new(LOG, key, Body::MakePlace)).collect()
    }

    fn next_op(&mut self, process: u64) -> Op {
        if self.rng.random_range(0..100) < self.poll_percent {
            self.poll(process)
        } else {
            self.send(process)
        }
    }

    fn next_read(&mut self) -> Op {
        let key = self.any();
        poll(key, 0, A_PAGE)
    }

    fn next_look(&mut self, process: u64) -> Op {
        self.poll(process)
    }

    /// Whoever was told records goes on behind them.
    fn complete(&mut self, process: u64, op: &Op, outcome: &Outcome) {
        if let (EventKind::Ok, Value::List(told)) = (outcome.kind, &outcome.value)
            && let [.., last, _] = told[..]
        {
            let at = self.at.entry((process, op.key)).or_default();
            *at = (*at).max(last.saturating_add(1));
        }
        if outcome.retires() {
            self.made.remove(&process);
            self.at.retain(|(whose, _), _| *whose != process);
        }
    }

    fn final_reads(&self) -> Vec<Op> {
        (0..self.keys).map(|key| poll(key, 0, ALL)).collect()
    }

    /// A member may learn late of the last records: it is asked until it has as many as the others.
    fn is_told(&self, _: &[FinalState]) -> bool {
        true
    }
}

#[cfg(test)]
mod tests;
