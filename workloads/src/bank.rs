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
//!   from snapshot isolation upwards; below it the same is measured. A look may be of an early moment, at
//!   which the first accounts were open and nothing was moved; under strict serializability it may not, and
//!   finds what transfers made that were over before it, whatever became of those that were under way.
//! - **`durability`**: at the end each account has on each member what it began with and what acknowledged
//!   transfers made of it, as far as transfers of unknown fate leave that open.
//!
//! (The idea is that of Jepsen's `bank`, which found anomalies in Galera, CockroachDB and others.)

use checker::durability::{DURABILITY, missing};
use checker::figures::count;
use checker::history::{Effect, Function, NEVER, Op as Recorded, Outcome as Ended, Rank, Value, describe};
use checker::verdict::{CheckResult, Verdict};
use checker::versions::counterexample;
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use serde_json::{Value as Json, json};

use crate::beside::Beside;
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
    functions: &[TRANSFER, BALANCES],
    dispensable: &[],
    marks: &[OPEN, TRANSFER],
    words: &[&OPEN_AN_ACCOUNT, &TRANSFER_AN_AMOUNT, &LOOK_AT_BALANCES],
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

/// What a look finds may be.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Moment {
    /// That of some moment, be it before all accounts were open.
    Any,
    /// That of a moment between its call and its answer.
    Now,
}

/// What is wrong with the balances that a look found.
fn wrong(balances: &[i64], moment: Moment) -> Option<String> {
    let accounts = usize::try_from(ACCOUNTS).unwrap_or_default();
    // Accounts are opened in their order, before anything is moved.
    let is_early = balances.len() < accounts && balances.iter().all(|balance| *balance == BEGINNING);
    if moment == Moment::Any && is_early {
        return None;
    }
    if balances.len() != accounts {
        return Some(format!("{} accounts, where {accounts} were opened", balances.len()));
    }
    let sum: i128 = balances.iter().copied().map(i128::from).sum();
    let whole = i128::from(ACCOUNTS * BEGINNING);
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
    let is_strict = case.beside.promise == Promise::StrictSerializable;
    let (mut looks, mut moved) = (0, 0);
    for (key, ops) in case.history.by_key() {
        let transfers = Transfers::of(&ops);
        let told = ops.iter().copied().filter(|op| op.f == BALANCES && op.outcome == Ended::Ok);
        for op in told {
            looks += 1;
            let found = op.told.list().unwrap_or_default();
            let moment = if is_strict { Moment::Now } else { Moment::Any };
            let outside = || if is_strict { transfers.outside(op, &found) } else { None };
            if let Some(what) = wrong(&found, moment).or_else(outside) {
                let sentence = format!("{}: {what}", describe(op));
                return accused(NAME, key, &sentence, &[op], ops.len());
            }
        }
        moved += transfers.acknowledged;
    }
    let evidence = json!({"looks": looks, "transfers": moved});
    let untested = [(looks, "nobody looked at the accounts"), (moved, "no transfer was acknowledged")];
    if let Some((_, why)) = untested.into_iter().find(|(number, _)| *number == 0) {
        let words = format!("{why}, so nothing was tested");
        return CheckResult::new(NAME, Verdict::Unknown, words).with_evidence(evidence);
    }
    let words = format!(
        "{} transfers later each of {} looks found the sum that there was, and no account below zero",
        count(moved),
        count(looks)
    );
    CheckResult::new(NAME, Verdict::Valid, words).with_evidence(evidence)
}

/// Sums of what was moved, by a moment: that of the last entry before it.
type Moved = Vec<(Rank, i128)>;

fn until(moved: &Moved, moment: impl Fn(Rank) -> bool) -> i128 {
    let before = moved.partition_point(|(at, _)| moment(*at));
    before.checked_sub(1).map_or(0, |last| moved[last].1)
}

/// What was moved into an account, or out of it.
#[derive(Default)]
struct Flow {
    /// By the moment at which it was acknowledged: it is moved from then on.
    certain: Moved,
    /// By the moment of its call: it may be moved from then on.
    possible: Moved,
}

/// What transfers make of the accounts of a bank.
struct Transfers {
    acknowledged: usize,
    /// By account: into it, and out of it.
    flows: Vec<[Flow; 2]>,
}

impl Transfers {
    fn of(ops: &[&Recorded]) -> Self {
        let mut flows: Vec<[Flow; 2]> = (0..ACCOUNTS).map(|_| <[Flow; 2]>::default()).collect();
        let mut acknowledged = 0;
        for op in ops.iter().filter(|op| op.f == TRANSFER && op.outcome != Ended::Fail) {
            acknowledged += usize::from(op.outcome == Ended::Ok);
            let Value::List(transfer) = &op.asked else { continue };
            let [from, to, amount] = transfer[..] else { continue };
            let amount = i128::from(amount);
            // Elsewhere somebody may have asked for less than nothing.
            let (from, to) = if amount < 0 { (to, from) } else { (from, to) };
            for (account, way) in [(to, 0), (from, 1)] {
                let Some(flow) = usize::try_from(account).ok().and_then(|at| flows.get_mut(at)) else {
                    continue;
                };
                flow[way].possible.push((op.call, amount.abs()));
                if op.outcome == Ended::Ok {
                    flow[way].certain.push((op.ret, amount.abs()));
                }
            }
        }
        for moved in flows.iter_mut().flatten().flat_map(|flow| [&mut flow.certain, &mut flow.possible]) {
            moved.sort_unstable();
            let mut sum = 0_i128;
            for (_, amount) in moved {
                sum += *amount;
                *amount = sum;
            }
        }
        Self { acknowledged, flows }
    }

    /// What an account has at least and at most for whoever asks from one moment to another.
    fn bounds(&self, account: usize, from: Rank, to: Rank) -> (i128, i128) {
        let [into, out] = &self.flows[account];
        let certain = |flow: &Flow| until(&flow.certain, |at| at < from);
        let possible = |flow: &Flow| until(&flow.possible, |at| at < to);
        let beginning = i128::from(BEGINNING);
        (beginning + certain(into) - possible(out), beginning + possible(into) - certain(out))
    }

    /// An account that has what no transfers make of it by the time of a look.
    fn outside(&self, look: &Recorded, found: &[i64]) -> Option<String> {
        let (account, balance, range) = self.first_outside(found, look.call, look.ret)?;
        Some(format!("account {account} at {balance}, where transfers that were over leave {range}"))
    }

    fn first_outside(&self, found: &[i64], from: Rank, to: Rank) -> Option<(usize, i64, String)> {
        found.iter().take(self.flows.len()).enumerate().find_map(|(account, balance)| {
            let (least, most) = self.bounds(account, from, to);
            let range = if least == most { least.to_string() } else { format!("{least} to {most}") };
            let fits = (least..=most).contains(&i128::from(*balance));
            if fits { None } else { Some((account, *balance, range)) }
        })
    }
}

/// The check that at the end each account has what acknowledged transfers made of it.
fn durable(case: &Case<'_>) -> CheckResult {
    if !case.extent.is_whole() {
        let words = "the history does not say what was moved after its end";
        return CheckResult::new(DURABILITY, Verdict::Unknown, words);
    }
    let Beside { final_states, members, .. } = case.beside;
    let by_key = case.history.by_key();
    let mut acknowledged = 0;
    for (key, ops) in &by_key {
        let transfers = Transfers::of(ops);
        acknowledged += transfers.acknowledged;
        for state in final_states.iter().filter(|state| state.key == *key) {
            let found = state.list.as_deref().unwrap_or_default();
            let member = state.member;
            let accounts = transfers.flows.len();
            let sentence = if found.len() == accounts {
                let outside = transfers.first_outside(found, NEVER, NEVER);
                outside.map(|(account, balance, range)| {
                    format!(
                        "at the end member {member} has {balance} in account {account}, where acknowledged \
                         transfers leave {range}"
                    )
                })
            } else {
                Some(format!("at the end member {member} has {} accounts of {accounts}", found.len()))
            };
            if let Some(sentence) = sentence {
                return accused(DURABILITY, *key, &sentence, &[], ops.len());
            }
        }
    }
    if let Some(words) = missing(final_states, members, by_key.iter().map(|(key, _)| *key)) {
        return CheckResult::new(DURABILITY, Verdict::Unknown, words);
    }
    if acknowledged == 0 {
        return CheckResult::nothing_judged(
            DURABILITY,
            "no transfer was acknowledged, so none could be lost",
        );
    }
    let words = format!(
        "each account has what {} acknowledged transfers made of it, on each of {} members",
        count(acknowledged),
        members.len()
    );
    CheckResult::new(DURABILITY, Verdict::Valid, words)
}

#[cfg(test)]
mod tests;
