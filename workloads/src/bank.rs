//! The workload `bank`: transfers between accounts, and looks at all of them.
//!
//! Money is moved and never made, so whoever looks at all accounts at one moment finds the same sum, and no
//! account below zero. A system whose transactions read or write what others are about to change shows it
//! here: a lost update makes or destroys money, a read of half a transfer finds too much or too little, and
//! two transfers out of one account that do not know of each other overdraw it.
//!
//! Each key is a bank of eight accounts. Three functions:
//!
//! | f | value of the invocation | value of an `ok` |
//! |---|---|---|
//! | `open-account` | `[account, balance]`: once at the beginning, and again changes nothing | the same |
//! | `transfer` | `[from, to, amount]`: in one transaction, and refused where `from` has less | the same |
//! | `balances` | `null` | the balance of each account, in the order of their numbers |
//!
//! What must be true, for each bank:
//!
//! - **`bank`**: every look finds the sum that the bank began with, and no account below zero. That is so
//!   from snapshot isolation upwards; below it the same is measured.
//! - **`durability`**: at the end each account has on each member what it began with and what acknowledged
//!   transfers made of it, as far as transfers of unknown fate leave that open.
//!
//! (The idea is that of Jepsen's `bank`, which found anomalies in Galera, CockroachDB and others.)

use checker::durability::{DURABILITY, FinalState};
use checker::figures::count;
use checker::history::{Effect, Function, Op as Recorded, Outcome as Ended, Value, describe};
use checker::verdict::{CheckResult, Verdict};
use checker::versions::counterexample;
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use serde_json::{Value as Json, json};

use crate::case::Case;
use crate::op::{Object, Op, Word};
use crate::outcome::Outcome;
use crate::promise::Promise;
use crate::workload::{Definition, Generator, as_agreed};

const OPEN: Function = Function::named("open-account");
const TRANSFER: Function = Function::named("transfer");
const BALANCES: Function = Function::named("balances");

/// Opens an account, unless it is there.
static OPEN_AN_ACCOUNT: Word = Word { function: OPEN, effect: Effect::Change, read: as_asked };
/// Moves an amount from one account to another.
static TRANSFER_AN_AMOUNT: Word = Word { function: TRANSFER, effect: Effect::Change, read: as_asked };
/// Looks at all accounts.
static LOOK_AT_BALANCES: Word = Word { function: BALANCES, effect: Effect::Look, read: balances };

const BANK: Object = Object::named("bank");

pub(crate) const WORKLOAD: Definition = Definition {
    name: "bank",
    summary: "transfers between accounts, and looks at all of them: no money is made or lost",
    object: BANK,
    functions: &[OPEN, TRANSFER, BALANCES],
    dispensable: &[OPEN],
    marks: &[TRANSFER],
    looks: &[BALANCES],
    reads_by: BALANCES,
    generator: |params, rng| Box::new(Banks { rng, keys: params.keys, look_percent: params.read_percent }),
    records_sessions: false,
    sessions_expire: false,
    goes_along: false,
    applications: None,
    is_settled: as_agreed,
    judged_by: of_banks,
    promises: &[bank],
    durability: Some(durable),
};

/// A promise as one of banks. What does not promise a snapshot is measured.
fn of_banks(promise: Promise) -> Option<Promise> {
    match promise {
        Promise::Linearizable => Some(Promise::StrictSerializable),
        Promise::StrictSerializable
        | Promise::StrongSessionSerializable
        | Promise::Serializable
        | Promise::SnapshotIsolation => Some(promise),
        Promise::ReadCommitted | Promise::ReadUncommitted | Promise::Nothing => Some(Promise::Nothing),
        _ => None,
    }
}

/// Accounts of a bank, numbered from 0.
const ACCOUNTS: i64 = 8;
/// What each has at the beginning.
const BEGINNING: i64 = 100;
/// The largest amount of a transfer.
const LARGEST: i64 = 5;

/// A change is answered by what was asked, whatever the client says.
fn as_asked(op: &Op, _: &Json) -> Result<Value, &'static str> {
    Ok(op.value())
}

fn balances(_: &Op, told: &Json) -> Result<Value, &'static str> {
    let list: Option<Vec<i64>> =
        told.as_array().and_then(|balances| balances.iter().map(Json::as_i64).collect());
    match list {
        Some(list) => Ok(Value::List(list.into())),
        None => Err("the balance of each account in a list, integers in the order of the accounts' numbers"),
    }
}

/// The generator.
#[derive(Clone, Debug)]
struct Banks {
    rng: ChaCha8Rng,
    keys: u64,
    look_percent: u8,
}

impl Banks {
    fn any(&mut self) -> u64 {
        self.rng.random_range(0..self.keys)
    }

    fn transfer(&mut self) -> Op {
        let from = self.rng.random_range(0..ACCOUNTS);
        let to = (from + self.rng.random_range(1..ACCOUNTS)) % ACCOUNTS;
        let amount = self.rng.random_range(1..=LARGEST);
        Op::said(BANK, self.any(), &TRANSFER_AN_AMOUNT, Value::List([from, to, amount].into()))
    }
}

fn look(key: u64) -> Op {
    Op::said(BANK, key, &LOOK_AT_BALANCES, Value::Null)
}

impl Generator for Banks {
    fn setup(&mut self) -> Vec<Op> {
        let open = |key| {
            (0..ACCOUNTS).map(move |account| {
                Op::said(BANK, key, &OPEN_AN_ACCOUNT, Value::Pair(Some(account), BEGINNING))
            })
        };
        (0..self.keys).flat_map(open).collect()
    }

    fn next_op(&mut self, _: u64) -> Op {
        if self.rng.random_range(0..100) < self.look_percent { self.next_read() } else { self.transfer() }
    }

    fn next_read(&mut self) -> Op {
        look(self.any())
    }

    fn complete(&mut self, _: u64, _: &Op, _: &Outcome) {}

    fn final_reads(&self) -> Vec<Op> {
        (0..self.keys).map(look).collect()
    }
}

/// What is wrong with the balances that a look found.
fn wrong(balances: &[i64]) -> Option<String> {
    let accounts = usize::try_from(ACCOUNTS).unwrap_or_default();
    if balances.len() != accounts {
        return Some(format!("{} accounts, where {accounts} were opened", balances.len()));
    }
    let sum = balances.iter().fold(0_i64, |sum, balance| sum.saturating_add(*balance));
    let whole = ACCOUNTS * BEGINNING;
    if sum != whole {
        let (by, verb) = ((sum - whole).abs(), if sum > whole { "made" } else { "lost" });
        return Some(format!("{sum} in all accounts together, where {whole} was: {by} was {verb}"));
    }
    let overdrawn = (0..).zip(balances).find(|(_, balance)| **balance < 0);
    overdrawn.map(|(account, balance): (u64, _)| format!("account {account} at {balance}, below zero"))
}

fn accused(name: &str, key: u64, sentence: &str, ops: &[&Recorded], of: usize) -> CheckResult {
    CheckResult::new(name, Verdict::Invalid, format!("bank {key}: {sentence}"))
        .with_evidence(json!({"key": key}))
        .with_counterexample(counterexample(sentence.to_owned(), ops, of))
}

/// The check `bank`. The earliest look that finds something wrong is shown.
fn bank(case: &Case<'_>) -> CheckResult {
    const NAME: &str = "bank";
    let (mut looks, mut moved) = (0, 0);
    for (key, ops) in case.history.by_key() {
        let told = ops.iter().filter(|op| op.f == BALANCES && op.outcome == Ended::Ok);
        for op in told {
            looks += 1;
            if let Some(what) = wrong(&op.told.list().unwrap_or_default()) {
                let sentence = format!("{}: {what}", describe(op));
                return accused(NAME, key, &sentence, &[op], ops.len());
            }
        }
        moved += ops.iter().filter(|op| op.f == TRANSFER && op.outcome == Ended::Ok).count();
    }
    let evidence = json!({"looks": looks, "transfers": moved});
    if looks == 0 {
        let words = "nobody looked at the accounts, so nothing was tested";
        return CheckResult::new(NAME, Verdict::Unknown, words).with_evidence(evidence);
    }
    let words = format!(
        "{} transfers later each of {} looks found the sum that there was, and no account below zero",
        count(moved),
        count(looks)
    );
    CheckResult::new(NAME, Verdict::Valid, words).with_evidence(evidence)
}

/// What transfers make of an account: at least and at most.
fn bounds(ops: &[&Recorded], account: i64) -> (i64, i64) {
    let (mut least, mut most) = (BEGINNING, BEGINNING);
    for op in ops.iter().filter(|op| op.f == TRANSFER && op.outcome != Ended::Fail) {
        let Value::List(transfer) = &op.asked else { continue };
        let [from, to, amount] = transfer[..] else { continue };
        let happened = op.outcome == Ended::Ok;
        if from == account {
            least -= amount;
            most -= if happened { amount } else { 0 };
        } else if to == account {
            most += amount;
            least += if happened { amount } else { 0 };
        }
    }
    (least, most)
}

/// The check that at the end each account has what acknowledged transfers made of it.
fn durable(case: &Case<'_>) -> CheckResult {
    if !case.extent.is_whole() {
        let words = "the history does not say what was moved after its end";
        return CheckResult::new(DURABILITY, Verdict::Unknown, words);
    }
    let mut unread = None;
    let mut transfers = 0;
    for (key, ops) in case.history.by_key() {
        transfers += ops.iter().filter(|op| op.f == TRANSFER && op.outcome == Ended::Ok).count();
        let expected: Vec<(i64, i64)> = (0..ACCOUNTS).map(|account| bounds(&ops, account)).collect();
        for member in &case.beside.members {
            let is_one = |state: &&FinalState| (state.member, state.key) == (*member, key);
            let state = case.beside.final_states.iter().find(is_one);
            let Some(list) = state.and_then(|state| state.list.as_ref()) else {
                unread
                    .get_or_insert_with(|| format!("bank {key} was not read at the end on member {member}"));
                continue;
            };
            let outside = |(balance, (least, most)): (&i64, &(i64, i64))| balance < least || balance > most;
            let Some(at) = list.iter().zip(&expected).position(outside) else { continue };
            let (balance, (least, most)) = (list[at], expected[at]);
            let range = if least == most { least.to_string() } else { format!("{least} to {most}") };
            let sentence = format!(
                "at the end member {member} has {balance} in account {at}, where acknowledged transfers \
                 leave {range}"
            );
            return accused(DURABILITY, key, &sentence, &[], ops.len());
        }
    }
    if let Some(words) = unread {
        return CheckResult::new(DURABILITY, Verdict::Unknown, words);
    }
    let words = format!(
        "each account has what {} acknowledged transfers made of it, on each of {} members",
        count(transfers),
        case.beside.members.len()
    );
    CheckResult::new(DURABILITY, Verdict::Valid, words)
}

#[cfg(test)]
mod tests;
