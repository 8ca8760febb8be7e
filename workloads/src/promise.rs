//! What a system promises of a workload, and what a check then says.
//!
//! The checks of a workload ask for the most that any system promises. A system that promises less is judged
//! by less: where its reads may be stale they are left out, and where it promises nothing the same checks
//! *measure*. What they find is told with its numbers, and it is no violation.
//!
//! Of transactions a system promises an isolation level. There `linearizable` means the strongest one.

use checker::order::{Condition as Order, Guarantee};
use checker::txn::Condition;
use checker::verdict::{CheckResult, Verdict};
use serde::{Deserialize, Serialize};

/// In the evidence of a check that measured: whether what was not promised was kept all the same.
pub const KEPT: &str = "kept";

/// What a system promises of a workload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Promise {
    /// Every operation takes effect at one moment between its call and its answer, and what was acknowledged
    /// stays.
    #[default]
    Linearizable,
    /// The same of everything that changes something. A read may be stale, in the order of its session.
    LinearizableUpdates,
    /// One order of all operations explains every answer. It keeps that of each session, and real time among
    /// updates: what ZooKeeper promises.
    OrderedSequential,
    /// One order of all operations explains every answer, and it keeps that of each session.
    Sequential,
    /// Each session reads its own writes, never goes back, and writes after what it wrote and read.
    Session,
    /// Each session reads its own writes.
    ReadYourWrites,
    /// No session reads an older state than it has read.
    MonotonicReads,
    /// The writes of a session take effect in its order.
    MonotonicWrites,
    /// What a session writes takes effect after what it has read.
    WritesFollowReads,
    /// Transactions take effect one after the other, in an order that keeps real time.
    StrictSerializable,
    /// The same in an order that keeps that of each client.
    StrongSessionSerializable,
    /// The same in any order.
    Serializable,
    /// A transaction reads one state and commits on top of it; write skew is allowed.
    SnapshotIsolation,
    /// Only what was committed is read.
    ReadCommitted,
    /// Writes of transactions do not cross.
    ReadUncommitted,
    /// Of logs: what was sent stands there once, at one offset, whatever was tried again on the way.
    ExactlyOnce,
    /// Of queues: what was put is handed out until somebody is done with it. Again, and out of its order, is
    /// allowed.
    AtLeastOnce,
    /// Whoever watches is told every change, once and in order.
    EveryChange,
    /// Whoever watches is told what changed last, in the end, and never goes back. Changes may be left out.
    Latest,
    /// Nothing: what was acknowledged may be lost.
    Nothing,
}

impl Promise {
    /// All of them, the strongest first.
    pub const ALL: [Self; 20] = [
        Self::Linearizable,
        Self::LinearizableUpdates,
        Self::OrderedSequential,
        Self::Sequential,
        Self::Session,
        Self::ReadYourWrites,
        Self::MonotonicReads,
        Self::MonotonicWrites,
        Self::WritesFollowReads,
        Self::StrictSerializable,
        Self::StrongSessionSerializable,
        Self::Serializable,
        Self::SnapshotIsolation,
        Self::ReadCommitted,
        Self::ReadUncommitted,
        Self::ExactlyOnce,
        Self::AtLeastOnce,
        Self::EveryChange,
        Self::Latest,
        Self::Nothing,
    ];

    /// Its name on the command line and in every file.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Linearizable => "linearizable",
            Self::LinearizableUpdates => "linearizable-updates",
            Self::OrderedSequential => "ordered-sequential",
            Self::Sequential => "sequential",
            Self::Session => "session",
            Self::ReadYourWrites => "read-your-writes",
            Self::MonotonicReads => "monotonic-reads",
            Self::MonotonicWrites => "monotonic-writes",
            Self::WritesFollowReads => "writes-follow-reads",
            Self::StrictSerializable => "strict-serializable",
            Self::StrongSessionSerializable => "strong-session-serializable",
            Self::Serializable => "serializable",
            Self::SnapshotIsolation => "snapshot-isolation",
            Self::ReadCommitted => "read-committed",
            Self::ReadUncommitted => "read-uncommitted",
            Self::ExactlyOnce => "exactly-once",
            Self::AtLeastOnce => "at-least-once",
            Self::EveryChange => "every-change",
            Self::Latest => "latest",
            Self::Nothing => "nothing",
        }
    }

    /// One line about it.
    #[must_use]
    pub const fn about(self) -> &'static str {
        match self {
            Self::Linearizable => {
                "every operation takes effect at one moment, and what was acknowledged stays"
            }
            Self::LinearizableUpdates => "the same of all that changes something; a read may be stale",
            Self::OrderedSequential => {
                "one order explains all answers; it keeps that of each session, and real time among updates"
            }
            Self::Sequential => "one order explains all answers, and it keeps that of each session",
            Self::Session => "each session reads its own writes, and never goes back",
            Self::ReadYourWrites => Guarantee::ReadYourWrites.summary(),
            Self::MonotonicReads => Guarantee::MonotonicReads.summary(),
            Self::MonotonicWrites => Guarantee::MonotonicWrites.summary(),
            Self::WritesFollowReads => Guarantee::WritesFollowReads.summary(),
            Self::StrictSerializable => {
                "transactions take effect one after the other, in an order that keeps real time"
            }
            Self::StrongSessionSerializable => {
                "transactions take effect one after the other, in an order that keeps that of each client"
            }
            Self::Serializable => "transactions take effect one after the other, in some order",
            Self::SnapshotIsolation => {
                "a transaction reads one state and commits on top of it; write skew is allowed"
            }
            Self::ReadCommitted => "a transaction reads only what was committed",
            Self::ReadUncommitted => "writes of transactions do not cross",
            Self::ExactlyOnce => "what was sent stands in its log once, at one offset",
            Self::AtLeastOnce => {
                "what was put is handed out until somebody is done with it; again, and in any order"
            }
            Self::EveryChange => "whoever watches is told every change, once and in order",
            Self::Latest => {
                "whoever watches is told what changed last, and never goes back; changes may be left out"
            }
            Self::Nothing => "what was acknowledged may be lost: that is measured, and is no violation",
        }
    }

    /// The promise of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|promise| promise.name() == name)
    }

    /// The isolation level that it is; none for what is promised of single operations.
    #[must_use]
    pub const fn isolation(self) -> Option<Condition> {
        match self {
            Self::StrictSerializable => Some(Condition::StrictSerializable),
            Self::StrongSessionSerializable => Some(Condition::StrongSessionSerializable),
            Self::Serializable => Some(Condition::Serializable),
            Self::SnapshotIsolation => Some(Condition::SnapshotIsolation),
            Self::ReadCommitted => Some(Condition::ReadCommitted),
            Self::ReadUncommitted => Some(Condition::ReadUncommitted),
            _ => None,
        }
    }

    /// The condition below linearizability that it is, of registers.
    #[must_use]
    pub const fn order(self) -> Option<Order> {
        match self {
            Self::OrderedSequential => Some(Order::OrderedSequential),
            Self::Sequential => Some(Order::Sequential),
            Self::Session => Some(Order::SessionGuarantees),
            Self::ReadYourWrites => Some(Order::Guarantee(Guarantee::ReadYourWrites)),
            Self::MonotonicReads => Some(Order::Guarantee(Guarantee::MonotonicReads)),
            Self::MonotonicWrites => Some(Order::Guarantee(Guarantee::MonotonicWrites)),
            Self::WritesFollowReads => Some(Order::Guarantee(Guarantee::WritesFollowReads)),
            _ => None,
        }
    }

    /// Whether updates take effect in real time.
    #[must_use]
    pub const fn keeps_real_time(self) -> bool {
        matches!(self, Self::OrderedSequential) || self.order().is_none()
    }

    /// What a check of the workload says under this promise.
    #[must_use]
    pub(crate) fn judged(self, result: CheckResult) -> CheckResult {
        if self != Self::Nothing || result.verdict != Verdict::Invalid {
            return result;
        }
        let summary = format!("not promised, and not kept: {}", result.summary);
        let mut measured = CheckResult { verdict: Verdict::Valid, summary, ..result };
        if measured.evidence.is_null() {
            measured.evidence = serde_json::json!({});
        }
        measured.evidence[KEPT] = false.into();
        measured
    }
}

impl std::fmt::Display for Promise {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn isolation_levels_have_the_names_of_the_checkers_conditions() {
        for condition in Condition::ALL {
            let promise = Promise::named(condition.as_str()).expect("a promise of that name");
            assert_eq!(promise.isolation(), Some(condition));
        }
        assert_eq!(Promise::Linearizable.isolation(), None);
    }

    #[test]
    fn orders_have_the_names_of_the_checkers_conditions() {
        for condition in Order::ALL {
            let promise = Promise::named(condition.as_str()).expect("a promise of that name");
            assert_eq!(promise.order(), Some(condition));
        }
        assert_eq!(Promise::Linearizable.order(), None);
    }

    #[test]
    fn what_is_not_promised_is_measured_and_accuses_nobody() {
        let found = |verdict| CheckResult::new("set", verdict, "3 of 9 were lost");
        for promise in Promise::ALL {
            assert_eq!(Promise::named(promise.name()), Some(promise));
            let judged = promise.judged(found(Verdict::Invalid));
            let measured = promise == Promise::Nothing;
            assert_eq!(judged.verdict == Verdict::Valid, measured);
            assert!(judged.summary.ends_with("3 of 9 were lost"));
            assert_eq!(judged.evidence.get(KEPT).is_some(), measured);
            assert_eq!(promise.judged(found(Verdict::Unknown)).verdict, Verdict::Unknown);
        }
    }
}
