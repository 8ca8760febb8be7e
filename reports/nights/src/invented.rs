//! A night and a run that tests change as they need.

use std::collections::BTreeMap;

use crate::index::{Attempt, Begun, Purpose};
use crate::machine::Machine;
use crate::pile::Pile;

/// A night that began at the epoch.
pub(crate) fn begun(night: &str) -> Begun {
    Begun {
        night: night.to_owned(),
        started_utc: jiff::Timestamp::UNIX_EPOCH,
        budget_s: 60,
        seed: 1,
        build: format!("build of {night}"),
        machine: Machine::default(),
        profile: None,
        shard: None,
        cases: BTreeMap::new(),
    }
}

/// The first try of the first run of a case.
pub(crate) fn attempt(case: &str, pile: Pile) -> Attempt {
    Attempt {
        night: "n".to_owned(),
        purpose: Purpose::Case,
        case: case.to_owned(),
        repeat: 1,
        attempt: 1,
        started_utc: jiff::Timestamp::UNIX_EPOCH,
        took_ms: 1.0,
        seed: 1,
        pile,
        status: Some(i32::from(pile.status())),
        why: pile.name().to_owned(),
        folder: None,
        repeat_command: String::new(),
        series: BTreeMap::new(),
        findings: Vec::new(),
        operations: 10,
        elections: 1,
        faults: (1, 1),
        spent_ms: 1,
        machine: String::new(),
    }
}
