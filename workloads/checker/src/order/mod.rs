//! Conditions other than linearizability: sequential consistency, ordered sequential consistency, session
//! guarantees.
//!
//! All of them ask for one legal order of the operations; they differ in what that order has to keep.
//!
//! | condition | program order | real time |
//! |---|---|---|
//! | sequential consistency (Lamport 1979) | yes | nothing |
//! | ordered sequential consistency (Lev-Ari and others 2017) | yes | among updates |
//! | linearizability (for comparison) | yes | everything |
//!
//! Ordered sequential consistency (Lev-Ari, Bortnikov, Keidar and Shraer, IPL 123, 2017) with updates as the
//! ordered operations is what ZooKeeper promises: updates are linearizable, a session's operations happen in
//! its order, and a read may be stale, but never older than what its session has seen. A refused
//! compare-and-set is an update. Program order is that of the session where the history names it (a session
//! outlives its client's processes), else of the process. Both conditions judge the order alone: a read that
//! shows what is written only later in real time breaks linearizability, not these.
//!
//! Judging either is NP-complete. For registers a portfolio decides in near-linear time almost always:
//!
//! 1. `claims`: the order that the system itself claims (version, zxid), tried once and confirmed.
//! 2. `saturate`: what follows from the answers where a value has one writer; a cycle refutes.
//! 3. `search`: depth first over how far each session has got, guided by both; complete, within the budget.
//!
//! [`crate::confirm`] replays every order before a verdict is valid; `shrink` makes a violation small and has
//! it judged again by the plain search. `guarantees` looks at sessions, by versions and by `views`.

mod claims;
mod cycle;
mod decide;
mod general;
mod graph;
mod guarantees;
mod mutate;
mod object;
mod part;
mod registers;
mod saturate;
mod search;
mod shrink;
mod told;
mod views;

#[cfg(test)]
mod fuzz;
#[cfg(test)]
mod known;
#[cfg(test)]
mod lagging;

use serde_json::json;

use crate::budget::Budget;
pub use crate::confirm::RealTime;
use crate::history::History;
use crate::model::{Call, Model};
use crate::verdict::{CheckResult, Counterexample, Judged, PartOrder, Verdict};
use decide::Decision;
use registers::Registers;

/// What is promised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Condition {
    /// One order for all that keeps the order of each process or session.
    Sequential,
    /// The same, and it keeps the real time among updates.
    OrderedSequential,
    /// Each session reads its own writes, reads and writes in order, and writes after what it read.
    SessionGuarantees,
    /// One of these alone.
    Guarantee(Guarantee),
}

/// One guarantee of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Guarantee {
    /// A read shows no older state than a write before it made.
    ReadYourWrites,
    /// A read shows no older state than a read before it.
    MonotonicReads,
    /// A write takes effect after a write before it.
    MonotonicWrites,
    /// A write takes effect after what a read before it saw.
    WritesFollowReads,
}

impl Guarantee {
    /// All of them.
    pub const ALL: [Self; 4] =
        [Self::ReadYourWrites, Self::MonotonicReads, Self::MonotonicWrites, Self::WritesFollowReads];

    /// The name in results and on the command line.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ReadYourWrites => "read-your-writes",
            Self::MonotonicReads => "monotonic-reads",
            Self::MonotonicWrites => "monotonic-writes",
            Self::WritesFollowReads => "writes-follow-reads",
        }
    }

    /// What it asks of a session, in one line.
    #[must_use]
    pub const fn summary(self) -> &'static str {
        match self {
            Self::ReadYourWrites => "a read shows no older state than its session has written",
            Self::MonotonicReads => "a read shows no older state than its session has read",
            Self::MonotonicWrites => "a write takes effect after those that its session made before",
            Self::WritesFollowReads => "a write takes effect after what its session has read",
        }
    }
}

impl Condition {
    /// All of them, the weakest last.
    pub const ALL: [Self; 7] = [
        Self::OrderedSequential,
        Self::Sequential,
        Self::SessionGuarantees,
        Self::Guarantee(Guarantee::ReadYourWrites),
        Self::Guarantee(Guarantee::MonotonicReads),
        Self::Guarantee(Guarantee::MonotonicWrites),
        Self::Guarantee(Guarantee::WritesFollowReads),
    ];

    /// The name in results and on the command line.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Sequential => "sequential",
            Self::OrderedSequential => "ordered-sequential",
            Self::SessionGuarantees => "session",
            Self::Guarantee(guarantee) => guarantee.as_str(),
        }
    }

    /// The condition of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|condition| condition.as_str() == name)
    }

    /// What one order has to keep. Where a sequentially consistent order exists, every session guarantee
    /// holds.
    fn real_time(self) -> RealTime {
        match self {
            Self::Sequential | Self::SessionGuarantees | Self::Guarantee(_) => RealTime::None,
            Self::OrderedSequential => RealTime::Updates,
        }
    }

    /// The same, in words.
    fn kept(self) -> &'static str {
        match self {
            Self::Sequential | Self::SessionGuarantees | Self::Guarantee(_) => "the order of each session",
            Self::OrderedSequential => "the order of each session and the real time among updates",
        }
    }
}

/// Who decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Algorithm {
    /// The order that the system claimed.
    Claims,
    /// An order along what follows from the answers.
    Guided,
    /// A contradiction in what follows from the answers.
    Cycle,
    /// The search.
    Search,
    /// The comparison within each session.
    Sessions,
}

impl Algorithm {
    fn as_str(self) -> &'static str {
        match self {
            Self::Claims => "claimed-order",
            Self::Guided => "constraint-order",
            Self::Cycle => "constraint-cycle",
            Self::Search => "partial-order-search",
            Self::Sessions => "session-comparison",
        }
    }
}

/// Judges the calls on any object; the order of a process is that of its calls.
///
/// An operation of which the model says that it asks for no change must make none.
#[must_use]
pub fn check<M: Model>(model: &M, calls: &[Call<M::Op>], condition: Condition, budget: &Budget) -> Judged {
    check_by(model, calls, |call| call.process, condition, budget)
}

/// Judges the calls on any object; `group` says in whose order a call stands (its session, for example).
#[must_use]
pub fn check_by<M: Model>(
    model: &M,
    calls: &[Call<M::Op>],
    group: impl Fn(&Call<M::Op>) -> u64,
    condition: Condition,
    budget: &Budget,
) -> Judged {
    general::judge(model, calls, group, condition, condition.real_time(), budget)
}

/// Judges a history of registers, by sessions where it names them and by processes where not.
#[must_use]
pub fn check_registers(history: &History, condition: Condition, budget: &Budget) -> Judged {
    match condition {
        Condition::SessionGuarantees | Condition::Guarantee(_) => {
            guarantees::judge(history, condition, budget)
        }
        Condition::Sequential | Condition::OrderedSequential => {
            judge_registers(history, condition, condition.real_time(), budget)
        }
    }
}

/// Judges a history of registers by this much of real time.
fn judge_registers(history: &History, condition: Condition, real_time: RealTime, budget: &Budget) -> Judged {
    let whole = Registers::of(history);
    let ops = history.ops();
    let count = whole.entries.len();
    if count == 0 {
        return silent(condition, "register");
    }
    let sets = part::apart(whole.entries.iter().map(|entry| (entry.span.group, u64::from(entry.key))));
    let evidence = json!({"ops": count, "keys": whole.keys, "judged_apart": sets.len()});
    let mut orders = Vec::new();
    let mut algorithms = Vec::new();
    let mut undecided: Option<String> = None;
    for set in &sets {
        let local;
        // Positions of a part by itself are not those of the whole.
        let (registers, back) = if sets.len() == 1 {
            (&whole, None)
        } else {
            let kept = set.iter().copied().collect();
            local = part::registers_of(&whole, &kept);
            (&local, Some(entries_by_op(&whole)))
        };
        match decide::decide(registers, real_time, budget) {
            Decision::Order { order, by } => {
                algorithms.push(by);
                orders.push(match back {
                    None => order,
                    Some(back) => {
                        let op = |entry: &u32| registers.entries[graph::at(*entry)].op;
                        order.iter().map(|entry| back[op(entry)]).collect()
                    }
                });
            }
            Decision::None { near, enough, by } => {
                let shrunk = shrink::shrink(registers, real_time, &near, enough, budget);
                let counterexample = told::counterexample(&shrunk, ops, condition, real_time, budget);
                return refuted(condition, counterexample, evidence, by);
            }
            Decision::Undecided { reason } => undecided = Some(reason),
        }
    }
    if let Some(reason) = undecided {
        return unjudged(condition, &format!("not decided within the budget: {reason}"));
    }
    let order = part::together(&whole.spans(), real_time, &orders);
    if let Err(reason) = decide::confirm_registers(&whole, real_time, &order) {
        return unjudged(condition, &format!("an order was found but not confirmed: {reason}"));
    }
    let indices = order.iter().map(|&entry| ops[whole.entries[graph::at(entry)].op].index).collect();
    explained(condition, count, indices, evidence, algorithms)
}

/// For each operation of a history the entry that it became.
fn entries_by_op(whole: &Registers) -> Vec<u32> {
    let ops = whole.entries.iter().map(|entry| entry.op + 1).max().unwrap_or(0);
    let mut entries = vec![graph::NONE; ops];
    for (entry, of) in whole.entries.iter().enumerate() {
        entries[of.op] = graph::number(entry);
    }
    entries
}

fn unjudged(condition: Condition, why: &str) -> Judged {
    Judged { result: CheckResult::new(condition.as_str(), Verdict::Unknown, why), witness: Vec::new() }
}

/// Nothing contradicts an order of nothing.
fn silent(condition: Condition, object: &str) -> Judged {
    let summary = format!("no operation says anything about a {object}");
    Judged { result: CheckResult::new(condition.as_str(), Verdict::Valid, summary), witness: Vec::new() }
}

fn refuted(
    condition: Condition,
    counterexample: Counterexample,
    evidence: serde_json::Value,
    by: Algorithm,
) -> Judged {
    let summary =
        format!("no order that keeps {} explains {} operations", condition.kept(), counterexample.ops.len());
    let result = CheckResult::new(condition.as_str(), Verdict::Invalid, summary)
        .with_evidence(evidence)
        .with_decided_by(by.as_str())
        .with_counterexample(counterexample);
    Judged { result, witness: Vec::new() }
}

fn explained(
    condition: Condition,
    count: usize,
    order: Vec<u64>,
    evidence: serde_json::Value,
    mut algorithms: Vec<Algorithm>,
) -> Judged {
    algorithms.sort_unstable();
    algorithms.dedup();
    let names: Vec<&str> = algorithms.into_iter().map(Algorithm::as_str).collect();
    let summary = format!("an order that keeps {} explains {count} operations", condition.kept());
    let result = CheckResult::new(condition.as_str(), Verdict::Valid, summary)
        .with_evidence(evidence)
        .with_decided_by(names.join(", "));
    Judged { result, witness: vec![PartOrder { part: None, order }] }
}
