//! Notifications: what watchers are told of the changes of registers.
//!
//! Each register is written unique values, so a value that is told names its write. A *watcher* asks again
//! and again what changed since the position that its last answer told, wherever it is then connected. So an
//! answer that was lost, a connection that broke, and a client that was replaced take nothing from it: it
//! asks from the same position once more, and what it is told then begins there. What an answer with position
//! `q` says is: from where was asked, up to `q`, this is all. Two things may be promised ([`Promised`]):
//! every change; or the latest one, where those between may be left out. What is judged, and why that is
//! sound:
//!
//! - **Invented, early.** A value that nobody wrote, that a write had which certainly had no effect, or that
//!   was told before its write was invoked. A write whose fate is unknown may have happened, so it may be
//!   told.
//! - **Doubled.** Told again to a watcher behind a position up to which it had been told already. Told again
//!   from an earlier position is no doubling: that was asked for. Where the latest change is promised, the
//!   same one may be told several times in a row.
//! - **In order, none lost.** There must be one order of all changes of a register that explains what
//!   everybody was told. It keeps real time: a write that had ended, or that somebody had been told, before
//!   another was invoked comes before it. It keeps the versions that the system tells, where it does. Where
//!   every change is promised, what one watcher was told next to each other is next to each other in it; so
//!   changes that somebody was told form *blocks*, an acknowledged write that nobody was told is a block of
//!   its own, and two watchers that were told different successors of one change contradict each other. A
//!   watcher that begins says that what is invoked after its first answer comes behind that. Blocks have such
//!   an order exactly if what comes before what has no cycle (`order.rs`). Where the latest change is
//!   promised, what one watcher was told later comes later, and need not be next.
//! - **Told in the end.** When the load is over, members are read and watchers are asked on, until each has
//!   told what the reads show. One that is not told it for [`PATIENCE_NS`], when no fault was in force any
//!   more and it was answered all the while, is not told it: that is a violation. Less than that is unknown.
//!
//! A watcher that is told that its position is gone (a log that was compacted, a client whose server keeps no
//! log) begins anew as another one; what happened between is nobody's. A write of unknown fate that nobody
//! was told has no place in the order. So nothing that is not known accuses.
//!
//! How late notifications came is measured: from when the write was acknowledged *and* its watcher was
//! waiting to be told, to the answer that told it.

mod delay;
mod ending;
mod order;
#[cfg(test)]
mod simulated;
#[cfg(test)]
mod tests;
mod told;

use std::collections::HashMap;

use serde_json::json;

use crate::figures::count;
use crate::history::{History, Op};
use crate::verdict::{CheckResult, Verdict};
use crate::versions::counterexample;

pub use ending::PATIENCE_NS;

use delay::Delays;
use ending::{End, Missed};
use told::Told;

/// The name of the check.
pub const NAME: &str = "watch";

/// The error of a watch whose position can't be resumed from any more.
pub const GONE: &str = "gone";

/// What whoever watches is promised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Promised {
    /// Every change, once and in order.
    EveryChange,
    /// What changed last. Changes may be left out.
    Latest,
}

impl Promised {
    /// The name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::EveryChange => "every-change",
            Self::Latest => "latest",
        }
    }
}

/// What can't be: its kind, a sentence, and the operations that show it.
struct Broken<'a> {
    kind: &'static str,
    why: String,
    ops: Vec<&'a Op>,
}

/// What was told, counted.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    acknowledged: usize,
    told: usize,
    watchers: usize,
    gone: usize,
    resumed: usize,
}

/// Judges what watchers were told. `well_since_ns` is from when on no fault was in force, if that is known:
/// without it nobody is accused of what was not told in the end.
#[must_use]
pub fn check(history: &History, promised: Promised, well_since_ns: Option<u64>) -> CheckResult {
    let mut counts = Counts::default();
    let mut delays = Delays::default();
    let mut missed: Option<(u64, Missed)> = None;
    let end = End::of(history, well_since_ns);
    for (key, ops) in history.by_key() {
        let judged = Told::of(&ops, promised).and_then(|told| {
            order::explain(&told, promised)?;
            Ok(told)
        });
        let told = match judged {
            Ok(told) => told,
            Err(broken) => return accused(key, broken, ops.len()),
        };
        for watcher in told.watchers.values() {
            match end.missed(&ops, &told, watcher) {
                Some(Missed::Violation(broken)) => return accused(key, broken, ops.len()),
                Some(unsettled) => missed = missed.or(Some((key, unsettled))),
                None => {}
            }
            delays.add(&told, watcher);
        }
        told.count(&mut counts);
    }
    settled(counts, &mut delays, missed, promised)
}

fn accused(key: u64, broken: Broken<'_>, of: usize) -> CheckResult {
    let Broken { kind, why, mut ops } = broken;
    ops.dedup_by_key(|op| op.index);
    CheckResult::new(NAME, Verdict::Invalid, format!("key {key}: {kind}"))
        .with_evidence(json!({"key": key, "kind": kind, "operations": of}))
        .with_counterexample(counterexample(why, &ops, of))
}

fn settled(
    counts: Counts,
    delays: &mut Delays,
    missed: Option<(u64, Missed)>,
    promised: Promised,
) -> CheckResult {
    let Counts { acknowledged, told, watchers, gone, resumed } = counts;
    let mut evidence = json!({
        "acknowledged": acknowledged, "told": told, "watchers": watchers, "gone": gone, "resumed": resumed,
    });
    let delay = delays.told();
    if let Some(delay) = &delay {
        evidence["delay_ms"] = delay.evidence();
    }
    if told == 0 {
        let words = "no watcher was told of any change, so nothing was tested";
        return CheckResult::new(NAME, Verdict::Unknown, words).with_evidence(evidence);
    }
    if let Some((key, Missed::Unknown(words))) = missed {
        return CheckResult::new(NAME, Verdict::Unknown, format!("key {key}: {words}"))
            .with_evidence(evidence);
    }
    let none = match promised {
        Promised::EveryChange => "in order: none was lost, doubled, early or invented",
        Promised::Latest => "in order and the last one in the end: none was early or invented",
    };
    let anew = if gone > 0 { format!(", {} begun anew", count(gone)) } else { String::new() };
    let mut words = format!(
        "{} watchers ({} resumed elsewhere or after a break{anew}) were told of {} changes, {none}",
        count(watchers),
        count(resumed),
        count(told)
    );
    if let Some(delay) = delay {
        words.push_str(&format!("; {delay}"));
    }
    CheckResult::new(NAME, Verdict::Valid, words).with_evidence(evidence)
}

/// Places of changes by what they are looked up by.
type Places = HashMap<i64, usize>;
