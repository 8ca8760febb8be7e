//! What may be promised about transactions, what may be found in a history, and which finding breaks which
//! promise.
//!
//! The anomalies are those of Adya's thesis ("Weak Consistency", 1999) with the names that Elle uses
//! (Kingsbury and Alvaro, VLDB 2020). The conditions form a chain here: each promises all that those before
//! it promise. Snapshot isolation is the generalised one without sessions (Cerone and Gotsman, "Analysing
//! Snapshot Isolation", 2016): every cycle has two adjacent anti-dependencies. So a serializable history is
//! also one of snapshot isolation.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// What is promised, the weakest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Condition {
    /// Writes of transactions do not cross.
    ReadUncommitted,
    /// Only what was committed is read.
    ReadCommitted,
    /// A transaction reads one state and commits on top of it; write skew is allowed.
    SnapshotIsolation,
    /// Some order of whole transactions explains every answer.
    Serializable,
    /// Such an order keeps the order of each process.
    StrongSessionSerializable,
    /// Such an order keeps real time.
    #[default]
    StrictSerializable,
}

impl Condition {
    /// All of them, the weakest first.
    pub const ALL: [Self; 6] = [
        Self::ReadUncommitted,
        Self::ReadCommitted,
        Self::SnapshotIsolation,
        Self::Serializable,
        Self::StrongSessionSerializable,
        Self::StrictSerializable,
    ];

    /// The name in results and on the command line.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ReadUncommitted => "read-uncommitted",
            Self::ReadCommitted => "read-committed",
            Self::SnapshotIsolation => "snapshot-isolation",
            Self::Serializable => "serializable",
            Self::StrongSessionSerializable => "strong-session-serializable",
            Self::StrictSerializable => "strict-serializable",
        }
    }

    /// The next weaker one.
    #[must_use]
    pub fn weaker(self) -> Option<Self> {
        Self::ALL.into_iter().rev().find(|&other| other < self)
    }

    /// The order outside the data that it promises to keep.
    #[must_use]
    pub fn order(self) -> Order {
        match self {
            Self::StrictSerializable => Order::Realtime,
            Self::StrongSessionSerializable => Order::Process,
            _ => Order::Free,
        }
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Condition {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|condition| condition.as_str() == text).ok_or_else(|| {
            let names = Self::ALL.map(Self::as_str).join(", ");
            format!("no condition of transactions is called {text:?}; there are {names}")
        })
    }
}

/// An order that is known from outside the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Order {
    /// None is considered.
    Free,
    /// A process does one thing after another.
    Process,
    /// What had returned came before what was invoked later.
    Realtime,
}

/// The shape of a cycle of dependencies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Shape {
    /// Writes over writes only.
    G0,
    /// Writes over writes and reads of writes, at least one of these.
    G1c,
    /// One anti-dependency: something read that was then overwritten.
    GSingle,
    /// Several anti-dependencies, no two of them adjacent.
    GNonadjacent,
    /// Several, some adjacent: write skew.
    G2Item,
}

impl Shape {
    /// All of them, the worst first.
    pub const ALL: [Self; 5] = [Self::G0, Self::G1c, Self::GSingle, Self::GNonadjacent, Self::G2Item];

    /// The weakest condition that rules it out.
    #[must_use]
    pub fn rules_out(self) -> Condition {
        match self {
            Self::G0 => Condition::ReadUncommitted,
            Self::G1c => Condition::ReadCommitted,
            Self::GSingle | Self::GNonadjacent => Condition::SnapshotIsolation,
            Self::G2Item => Condition::Serializable,
        }
    }
}

/// What a history may show.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Anomaly {
    /// A list holds an element twice.
    DuplicateElements,
    /// A list holds what nobody appended.
    GarbageRead,
    /// Two reads of a list of which neither is a beginning of the other, or a transaction's own appends out
    /// of order.
    IncompatibleOrder,
    /// An element of a transaction that definitely did not happen was read.
    G1a,
    /// What a transaction appended in between was read as the end of a list.
    G1b,
    /// A committed transaction built on an aborted one.
    DirtyUpdate,
    /// A transaction did not see its own appends or saw a list change under it.
    Internal,
    /// A transaction read what it appended only later.
    FutureRead,
    /// Two transactions read the same list and both appended to it.
    LostUpdate,
    /// A cycle of transactions each of which has to come before the next.
    Cycle(Shape, Order),
    /// There is such a cycle, but the search for a small one gave up.
    CycleExists(Condition),
}

impl Anomaly {
    /// The weakest condition that rules it out.
    #[must_use]
    pub fn rules_out(self) -> Condition {
        match self {
            Self::DuplicateElements | Self::GarbageRead | Self::IncompatibleOrder => {
                Condition::ReadUncommitted
            }
            Self::G1a | Self::G1b | Self::DirtyUpdate => Condition::ReadCommitted,
            Self::Internal | Self::FutureRead | Self::LostUpdate => Condition::SnapshotIsolation,
            Self::Cycle(shape, Order::Free) => shape.rules_out(),
            Self::Cycle(_, Order::Process) => Condition::StrongSessionSerializable,
            Self::Cycle(_, Order::Realtime) => Condition::StrictSerializable,
            Self::CycleExists(condition) => condition,
        }
    }
}

impl fmt::Display for Anomaly {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Self::DuplicateElements => "duplicate-elements",
            Self::GarbageRead => "garbage-read",
            Self::IncompatibleOrder => "incompatible-order",
            Self::G1a => "G1a",
            Self::G1b => "G1b",
            Self::DirtyUpdate => "dirty-update",
            Self::Internal => "internal",
            Self::FutureRead => "future-read",
            Self::LostUpdate => "lost-update",
            Self::CycleExists(condition) => return write!(f, "{condition}-cycle-exists"),
            Self::Cycle(shape, order) => {
                f.write_str(match shape {
                    Shape::G0 => "G0",
                    Shape::G1c => "G1c",
                    Shape::GSingle => "G-single",
                    Shape::GNonadjacent => "G-nonadjacent",
                    Shape::G2Item => "G2-item",
                })?;
                match order {
                    Order::Free => "",
                    Order::Process => "-process",
                    Order::Realtime => "-realtime",
                }
            }
        };
        f.write_str(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_condition_is_found_by_its_name() {
        for condition in Condition::ALL {
            assert_eq!(condition.as_str().parse(), Ok(condition));
        }
        assert!("serialisable".parse::<Condition>().unwrap_err().contains("strict-serializable"));
    }

    #[test]
    fn what_breaks_a_condition_breaks_every_stronger_one() {
        assert_eq!(Anomaly::Cycle(Shape::G0, Order::Free).rules_out(), Condition::ReadUncommitted);
        assert_eq!(Anomaly::Cycle(Shape::G2Item, Order::Free).rules_out(), Condition::Serializable);
        assert_eq!(Anomaly::Cycle(Shape::G0, Order::Realtime).rules_out(), Condition::StrictSerializable);
        assert_eq!(Condition::StrictSerializable.weaker(), Some(Condition::StrongSessionSerializable));
        assert_eq!(Condition::ReadUncommitted.weaker(), None);
    }

    #[test]
    fn anomalies_have_the_names_that_others_use() {
        assert_eq!(Anomaly::Cycle(Shape::GSingle, Order::Realtime).to_string(), "G-single-realtime");
        assert_eq!(Anomaly::LostUpdate.to_string(), "lost-update");
    }
}
