//! Names: of models, with the functions by which their histories are recognised, and of conditions.

use std::collections::BTreeSet;
use std::fmt;

use crate::order::{self, Guarantee};
use crate::txn::Condition as Isolation;
use crate::watch::Promised;

/// A model by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ModelName {
    /// One register per key, with compare-and-set.
    CasRegister,
    /// One register per key, read and written.
    Register,
    /// Texts under keys.
    Kv,
    /// A lock.
    Mutex,
    /// A set of elements.
    Set,
    /// A queue, first in, first out.
    Queue,
    /// A counter.
    Counter,
    /// Transactions on lists that grow.
    ListAppend,
    /// Registers that are read and written together.
    MultiRegister,
    /// Registers, and watchers that are told how they change.
    Watch,
}

/// A condition by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Condition {
    /// One order that agrees with real time.
    Linearizable,
    /// One order that agrees with each process, and with real time among updates.
    OrderedSequential,
    /// One order that agrees with each process.
    Sequential,
    /// Each session by itself.
    Session,
    /// The same, by one guarantee.
    Guarantee(Guarantee),
    /// Of transactions.
    Transactions(Isolation),
    /// Of watchers.
    Notified(Promised),
}

impl ModelName {
    /// All of them. Where several fit a history's functions, the first is guessed.
    pub const ALL: [Self; 10] = [
        Self::CasRegister,
        Self::Register,
        Self::Kv,
        Self::Mutex,
        Self::Set,
        Self::Queue,
        Self::Counter,
        Self::ListAppend,
        Self::MultiRegister,
        Self::Watch,
    ];

    /// The name on a command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::CasRegister => "cas-register",
            Self::Register => "register",
            Self::Kv => "kv",
            Self::Mutex => "mutex",
            Self::Set => "set",
            Self::Queue => "queue",
            Self::Counter => "counter",
            Self::MultiRegister => "multi-register",
            Self::ListAppend => "list-append",
            Self::Watch => "watch",
        }
    }

    /// What it is of, in a few words.
    #[must_use]
    pub const fn summary(self) -> &'static str {
        match self {
            Self::CasRegister => "a register for each key, with compare-and-set",
            Self::Register => "a register for each key",
            Self::Kv => "a text for each key, the empty one at first",
            Self::Mutex => "a lock, free at first",
            Self::Set => "a set of elements, empty at first",
            Self::Counter => "a counter, 0 at first",
            Self::MultiRegister => "several registers, read and written together by transactions",
            Self::Queue => "a queue, first in, first out, empty at first",
            Self::Watch => "a register for each key, and watchers that are told how it changes",
            Self::ListAppend => "transactions of appends to lists and reads of them, as Elle takes them",
        }
    }

    /// The functions of its histories.
    #[must_use]
    pub const fn functions(self) -> &'static [&'static str] {
        match self {
            Self::CasRegister => &["read", "write", "cas"],
            Self::Register => &["read", "write"],
            Self::Kv => &["get", "put", "append"],
            Self::Mutex => &["acquire", "release", "lock", "unlock"],
            Self::Set => &["add", "remove", "contains", "read"],
            Self::Queue => &["enqueue", "dequeue"],
            Self::Counter => &["add", "read"],
            Self::MultiRegister => &["txn", "read", "write"],
            Self::ListAppend => &["txn"],
            Self::Watch => &["write", "watch", "read"],
        }
    }

    /// The conditions that can be decided for it; the first is meant where none is named.
    #[must_use]
    pub const fn conditions(self) -> &'static [Condition] {
        use Condition::{Linearizable, Notified, OrderedSequential, Sequential, Session, Transactions};
        match self {
            Self::CasRegister | Self::Register => &[
                Linearizable,
                OrderedSequential,
                Sequential,
                Session,
                Condition::Guarantee(Guarantee::ReadYourWrites),
                Condition::Guarantee(Guarantee::MonotonicReads),
                Condition::Guarantee(Guarantee::MonotonicWrites),
                Condition::Guarantee(Guarantee::WritesFollowReads),
            ],
            Self::Kv | Self::Mutex | Self::Set | Self::Queue | Self::Counter | Self::MultiRegister => {
                &[Linearizable, OrderedSequential, Sequential]
            }
            Self::Watch => &[Notified(Promised::EveryChange), Notified(Promised::Latest)],
            Self::ListAppend => &[
                Transactions(Isolation::StrictSerializable),
                Transactions(Isolation::StrongSessionSerializable),
                Transactions(Isolation::Serializable),
                Transactions(Isolation::SnapshotIsolation),
                Transactions(Isolation::ReadCommitted),
                Transactions(Isolation::ReadUncommitted),
            ],
        }
    }

    /// The condition that is meant where none is named.
    #[must_use]
    pub fn usual_condition(self) -> Condition {
        self.conditions().first().copied().unwrap_or(Condition::Linearizable)
    }

    /// One line for a list: what it is of, its functions, its conditions.
    #[must_use]
    pub fn about(self) -> String {
        let conditions: Vec<&str> = self.conditions().iter().map(|condition| condition.name()).collect();
        format!("{}: {} [{}]", self.summary(), self.functions().join(", "), conditions.join(", "))
    }

    /// The model of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|model| model.name() == name)
    }

    /// The model of a history with these functions, or none where none has them all.
    pub fn guess<'a>(functions: impl IntoIterator<Item = &'a str>) -> Option<Self> {
        let functions: BTreeSet<&str> = functions.into_iter().collect();
        if functions.is_empty() {
            return None;
        }
        let fits = |model: &Self| functions.iter().all(|f| model.functions().contains(f));
        Self::ALL.into_iter().find(fits)
    }
}

impl fmt::Display for ModelName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Condition {
    /// All of them.
    pub const ALL: [Self; 16] = [
        Self::Linearizable,
        Self::OrderedSequential,
        Self::Sequential,
        Self::Session,
        Self::Guarantee(Guarantee::ReadYourWrites),
        Self::Guarantee(Guarantee::MonotonicReads),
        Self::Guarantee(Guarantee::MonotonicWrites),
        Self::Guarantee(Guarantee::WritesFollowReads),
        Self::Transactions(Isolation::StrictSerializable),
        Self::Transactions(Isolation::StrongSessionSerializable),
        Self::Transactions(Isolation::Serializable),
        Self::Transactions(Isolation::SnapshotIsolation),
        Self::Transactions(Isolation::ReadCommitted),
        Self::Transactions(Isolation::ReadUncommitted),
        Self::Notified(Promised::EveryChange),
        Self::Notified(Promised::Latest),
    ];

    /// The name on a command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Linearizable => "linearizable",
            Self::OrderedSequential => order::Condition::OrderedSequential.as_str(),
            Self::Sequential => order::Condition::Sequential.as_str(),
            Self::Session => order::Condition::SessionGuarantees.as_str(),
            Self::Guarantee(guarantee) => guarantee.as_str(),
            Self::Transactions(isolation) => isolation.as_str(),
            Self::Notified(promised) => promised.as_str(),
        }
    }

    /// What it asks for, in one line.
    #[must_use]
    pub const fn summary(self) -> &'static str {
        match self {
            Self::Linearizable => {
                "one order of all operations explains every answer and agrees with real time"
            }
            Self::OrderedSequential => {
                "one order agrees with each session, and with real time among updates: what ZooKeeper \
                    promises"
            }
            Self::Sequential => "one order explains every answer and agrees with each session",
            Self::Session => "each session reads its own writes, and never goes back",
            Self::Guarantee(guarantee) => guarantee.summary(),
            Self::Notified(Promised::EveryChange) => "watchers are told every change, once and in order",
            Self::Notified(Promised::Latest) => "watchers are told the latest change, and never go back",
            Self::Transactions(isolation) => match isolation {
                Isolation::StrictSerializable => "one order of whole transactions, in real time",
                Isolation::StrongSessionSerializable => {
                    "one order of whole transactions, in that of each process"
                }
                Isolation::Serializable => "one order of whole transactions explains every answer",
                Isolation::SnapshotIsolation => "each transaction reads one state and commits on top of it",
                Isolation::ReadCommitted => "only what was committed is read",
                Isolation::ReadUncommitted => "writes of transactions do not cross",
            },
        }
    }

    /// Whether an order that can be confirmed proves it.
    #[must_use]
    pub const fn has_witness(self) -> bool {
        match self {
            Self::Linearizable | Self::OrderedSequential | Self::Sequential => true,
            Self::Session | Self::Guarantee(_) | Self::Transactions(_) | Self::Notified(_) => false,
        }
    }

    /// One line for a list: what it asks for, and for which models it can be decided.
    #[must_use]
    pub fn about(self) -> String {
        let models: Vec<&str> = ModelName::ALL
            .into_iter()
            .filter(|model| model.conditions().contains(&self))
            .map(ModelName::name)
            .collect();
        format!("{} [{}]", self.summary(), models.join(", "))
    }

    /// The condition of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|condition| condition.name() == name)
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_again_and_every_model_has_a_condition() {
        for model in ModelName::ALL {
            assert_eq!(ModelName::from_name(model.name()), Some(model));
            assert!(model.conditions().contains(&model.usual_condition()));
        }
        for condition in Condition::ALL {
            assert_eq!(Condition::from_name(condition.name()), Some(condition));
            assert!(
                ModelName::ALL.iter().any(|model| model.conditions().contains(&condition)),
                "{condition}"
            );
        }
    }

    #[test]
    fn a_model_is_guessed_from_the_functions_that_occur() {
        assert_eq!(ModelName::guess(["read", "write"]), Some(ModelName::CasRegister));
        assert_eq!(ModelName::guess(["enqueue"]), Some(ModelName::Queue));
        assert_eq!(ModelName::guess(["read", "add"]), Some(ModelName::Set));
        assert_eq!(ModelName::guess(["append", "get"]), Some(ModelName::Kv));
        assert_eq!(ModelName::guess(["write", "watch"]), Some(ModelName::Watch));
        assert_eq!(ModelName::guess(["read", "frobnicate"]), None);
        assert_eq!(ModelName::guess([]), None);
    }
}
