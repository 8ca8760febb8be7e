//! How late notifications came.
//!
//! A delay begins when the write was acknowledged and the watcher was waiting to be told: at the first of its
//! requests that was not over by then. It ends with the answer that told the change. A change that was told
//! before its write was acknowledged came with no delay.

use std::fmt;

use serde_json::{Value, json};

use super::told::{Told, Watcher};
use crate::history::{Op, Outcome};

const MS: u64 = 1_000_000;

/// Delays, in ns.
#[derive(Default)]
pub(super) struct Delays(Vec<u64>);

/// The delays of a whole history, in ns.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spread {
    half: u64,
    most: u64,
    nearly_all: u64,
    last: u64,
}

impl Delays {
    /// Those of what a watcher was told.
    pub(super) fn add(&mut self, told: &Told<'_>, watcher: &Watcher<'_>) {
        let asked: Vec<&Op> = watcher.requests.iter().copied().filter(|op| op.was_sent()).collect();
        for (at, (by, _)) in &watcher.told {
            let write = told.changes[*at].write;
            let done = write.complete_ns.filter(|_| write.outcome == Outcome::Ok);
            let (Some(done), Some(came)) = (done, by.complete_ns) else { continue };
            let over = |op: &&Op| op.complete_ns.is_some_and(|over| over <= done);
            let waiting = asked.get(asked.partition_point(over)).map_or(done, |op| op.invoke_ns);
            self.0.push(came.saturating_sub(done.max(waiting)));
        }
    }

    /// How they are spread; none where there are none.
    pub(super) fn told(&mut self) -> Option<Spread> {
        self.0.sort_unstable();
        let last = *self.0.last()?;
        let part = |percent: usize| self.0.get(self.0.len() * percent / 100).copied().unwrap_or(last);
        Some(Spread { half: part(50), most: part(95), nearly_all: part(99), last })
    }
}

impl Spread {
    #[expect(clippy::cast_precision_loss, reason = "milliseconds for people")]
    fn ms(ns: u64) -> f64 {
        (ns / 10_000) as f64 / 100.0
    }

    pub(super) fn evidence(self) -> Value {
        json!({
            "p50": Self::ms(self.half), "p95": Self::ms(self.most), "p99": Self::ms(self.nearly_all),
            "max": Self::ms(self.last),
        })
    }
}

impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = |ns: u64| ns.div_ceil(MS);
        write!(
            f,
            "half of them within {} ms of their acknowledgement, 99 % within {} ms, the last after {} ms",
            ms(self.half),
            ms(self.nearly_all),
            ms(self.last)
        )
    }
}
