//! What a check is given: a history, how much of it there is, what stands beside it, and what the answer may
//! take.

use std::cell::OnceCell;
use std::num::NonZeroUsize;

use checker::Budget;
use checker::history::{Extent, History, Op};
use checker::verdict::CheckResult;
use checker::{durability, linearizable, order, versions};

use crate::beside::Beside;

/// A check of a workload's promise: a function of the case alone.
pub type Check = fn(&Case<'_>) -> CheckResult;

/// What a judgement may take, and who measures it.
#[derive(Clone)]
pub struct Effort<'a> {
    /// Steps, memory and a bell, for each part that is searched.
    pub budget: Budget,
    /// Keys that are judged at a time.
    pub threads: NonZeroUsize,
    /// Runs one check and notes how long it took: whoever asks has a clock, nobody here has.
    pub timed: Timed<'a>,
}

/// Runs one check, and may note how long it took.
pub type Timed<'a> = &'a dyn Fn(&mut dyn FnMut() -> CheckResult) -> CheckResult;

impl Effort<'_> {
    /// One key after the other, and nobody measures.
    #[must_use]
    pub fn of(budget: &Budget) -> Self {
        Self { budget: budget.clone(), threads: NonZeroUsize::MIN, timed: &|run| run() }
    }

    /// Runs a check, measured.
    pub(crate) fn run(&self, mut check: impl FnMut() -> CheckResult) -> CheckResult {
        (self.timed)(&mut check)
    }
}

/// What a check is given.
pub struct Case<'a> {
    /// What clients saw.
    pub history: &'a History,
    /// How much of it there is.
    pub extent: Extent,
    /// What stands beside it.
    pub beside: &'a Beside,
    /// What the answer may take.
    pub effort: &'a Effort<'a>,
    updates: OnceCell<History>,
}

impl<'a> Case<'a> {
    /// A history, with what stands beside it.
    #[must_use]
    pub fn new(history: &'a History, extent: Extent, beside: &'a Beside, effort: &'a Effort<'a>) -> Self {
        Self { history, extent, beside, effort, updates: OnceCell::new() }
    }

    /// The history as far as more is promised of it than the order of a session: without its reads, where
    /// these may be stale.
    #[must_use]
    pub fn promised(&self) -> &History {
        if self.beside.reads_may_be_stale() {
            self.updates.get_or_init(|| self.history.updates())
        } else {
            self.history
        }
    }

    /// Runs a check, measured.
    #[must_use]
    pub fn run(&self, check: Check) -> CheckResult {
        self.effort.run(|| check(self))
    }
}

/// The check that every key behaves like one register, or that all of them together do as far as it is
/// promised; then the check has the promise's name. Where reads may be stale only the updates are judged.
#[must_use]
pub fn registers(case: &Case<'_>) -> CheckResult {
    let effort = case.effort;
    if let Some(condition) = case.beside.promise.order() {
        let result = order::check_registers(case.history, condition, &effort.budget).result;
        return CheckResult { name: check_of(condition).to_owned(), ..result };
    }
    let mut result = linearizable::judge(case.promised(), &effort.budget, effort.threads.get(), false).result;
    if case.beside.reads_may_be_stale() {
        result.name = "linearizable-updates".to_owned();
        result
            .summary
            .push_str("; reads are judged by their session's order, which is all they promise here");
    }
    result
}

/// The name of the check of a condition: `sequential` is a workload's.
const fn check_of(condition: order::Condition) -> &'static str {
    match condition {
        order::Condition::Sequential => "sequential-order",
        order::Condition::SessionGuarantees => "session-guarantees",
        condition => condition.as_str(),
    }
}

/// The check that the versions in replies agree with each other and with real time.
#[must_use]
pub fn version_order(case: &Case<'_>) -> CheckResult {
    if !case.beside.promise.keeps_real_time() {
        let why = format!("{} says nothing of real time", case.beside.promise);
        return CheckResult::nothing_judged(versions::NAME, why);
    }
    versions::check_in(case.promised(), &case.beside.orders)
}

/// The check that every acknowledged change of a register is on every member at the end, counted by versions.
#[must_use]
pub fn durable_registers(case: &Case<'_>) -> CheckResult {
    let Beside { final_states, members, promise, .. } = case.beside;
    durability::check(case.history, case.extent, promise.keeps_real_time(), final_states, members)
}

/// The check that what every acknowledged transaction appended is on every member at the end.
#[must_use]
pub fn durable_transactions(case: &Case<'_>) -> CheckResult {
    let Beside { final_states, members, .. } = case.beside;
    durability::check_transactions(case.history, final_states, members)
}

/// The check that every acknowledged element is on every member at the end. `element` says which one an
/// operation put there.
pub(crate) fn durable_elements(case: &Case<'_>, element: fn(&Op) -> Option<i64>) -> CheckResult {
    let Beside { final_states, members, .. } = case.beside;
    durability::check_elements(case.history, final_states, members, element)
}
