//! A lock: `acquire` and `release`.
//!
//! Who releases is not asked, as in Knossos: a lock that somebody else may release is weaker than one that
//! remembers its owner, and what violates the weaker one violates the stronger one. An `acquire` or a
//! `release` that failed did not happen, and says nothing: it may have failed for any reason.

use super::Model;
use crate::history::{EventKind, Record};

/// A lock that is free at first.
#[derive(Clone, Copy, Debug, Default)]
pub struct Mutex;

/// What can be done with a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MutexOp {
    /// It was free and is held.
    Acquire,
    /// It was held and is free.
    Release,
}

impl Model for Mutex {
    type Op = MutexOp;
    /// Whether it is held.
    type State = bool;

    fn name(&self) -> &'static str {
        "mutex"
    }

    fn initial(&self) -> bool {
        false
    }

    fn apply(&self, &held: &bool, op: &MutexOp) -> Option<bool> {
        match op {
            MutexOp::Acquire => (!held).then_some(true),
            MutexOp::Release => held.then_some(false),
        }
    }

    fn decode(&self, invoked: &Record, completed: Option<&Record>) -> Result<Option<MutexOp>, String> {
        let op = match &*invoked.f {
            "acquire" | "lock" => MutexOp::Acquire,
            "release" | "unlock" => MutexOp::Release,
            other => return Err(format!("a mutex has no {other}")),
        };
        let failed = completed.is_some_and(|completed| completed.kind == EventKind::Fail);
        Ok((!failed).then_some(op))
    }

    fn changes(&self, _op: &MutexOp) -> bool {
        true
    }

    fn same(&self, one: &MutexOp, other: &MutexOp) -> bool {
        one == other
    }

    fn describe(&self, op: &MutexOp) -> String {
        match op {
            MutexOp::Acquire => "acquire".to_owned(),
            MutexOp::Release => "release".to_owned(),
        }
    }

    fn show(&self, &held: &bool) -> Option<String> {
        Some(if held { "held" } else { "free" }.to_owned())
    }
}
