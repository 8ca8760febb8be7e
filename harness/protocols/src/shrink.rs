//! Fewer steps that still break the same property.
//!
//! Halves of the steps are left out, then quarters, down to single ones, again and again until none can go
//! (Zeller, Hildebrandt: "Simplifying and Isolating Failure-Inducing Input", TSE 2002). A step that can't
//! happen any more, because what it rests on is gone, is left out with it.

use crate::configuration::{Configuration, Step};
use crate::protocol::{Broken, Id, Protocol};

/// Makes steps fewer.
#[must_use]
pub fn shrink<P: Protocol>(protocol: &P, members: u8, steps: &[Step<P>], rule: &str) -> Vec<Step<P>> {
    let mut kept = replay(protocol, members, steps, rule).map_or_else(|| steps.to_vec(), |(steps, _)| steps);
    let mut size = kept.len().div_ceil(2);
    while size > 0 {
        let mut at = 0;
        let mut went = false;
        while at < kept.len() {
            let end = (at + size).min(kept.len());
            let fewer: Vec<Step<P>> = kept[..at].iter().chain(&kept[end..]).cloned().collect();
            match replay(protocol, members, &fewer, rule) {
                Some((left, _)) => (kept, went) = (left, true),
                None => at = end,
            }
        }
        if size == 1 && !went {
            break;
        }
        size = if size == 1 { 1 } else { size / 2 };
    }
    kept
}

/// The steps that happened until the property was broken, if it was.
#[must_use]
pub fn replay<P: Protocol>(
    protocol: &P,
    members: u8,
    steps: &[Step<P>],
    rule: &str,
) -> Option<(Vec<Step<P>>, Broken)> {
    let mut configuration = Configuration::new(protocol.clone(), members, false);
    for id in Id::all(members) {
        configuration.apply(&Step::Start(id), 0, &mut |_| 0);
    }
    let mut happened = Vec::new();
    for step in steps {
        if !configuration.can(step) {
            continue;
        }
        configuration.apply(step, 0, &mut |_| 0);
        happened.push(step.clone());
        if let Some(broken) = configuration.broken() {
            return (broken.rule == rule).then(|| (happened, broken.clone()));
        }
    }
    None
}
