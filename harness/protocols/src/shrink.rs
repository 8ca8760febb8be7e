//! Fewer steps that still break the same property.
//!
//! What is left out, and in which order, is what [`checker::minimize`] does for histories. A step that can't
//! happen any more, because what it rests on is gone, is left out with it.

use checker::minimize::{leave_out, leave_out_singly};

use crate::configuration::{Configuration, Step};
use crate::protocol::{Broken, Id, Protocol};
use crate::told::Told;

/// Steps, and what they break.
pub type Few<P> = (Vec<Step<P>>, Broken);

/// Makes steps fewer; none where they do not break the property by themselves, because it is about what never
/// happens.
#[must_use]
pub fn shrink<P: Protocol>(protocol: &P, members: u8, steps: &[Step<P>], rule: &str) -> Option<Few<P>> {
    let (steps, _) = replay(protocol, members, steps, rule)?;
    let mut kept = vec![true; steps.len()];
    let mut goes = |out: &[usize]| {
        let mut fewer = kept.clone();
        out.iter().for_each(|at| fewer[*at] = false);
        let left = steps.iter().zip(&fewer).filter(|(_, kept)| **kept).map(|(step, _)| step);
        let breaks = replay(protocol, members, left, rule).is_some();
        if breaks {
            kept = fewer;
        }
        breaks
    };
    let left = leave_out((0..steps.len()).collect(), 1, &mut goes);
    leave_out_singly(left, &mut goes);
    let left = steps.iter().zip(&kept).filter(|(_, kept)| **kept).map(|(step, _)| step);
    replay(protocol, members, left, rule)
}

/// The steps that happened until the property was broken, if it was: inside, or by what clients were told.
fn replay<'a, P: Protocol>(
    protocol: &P,
    members: u8,
    steps: impl IntoIterator<Item = &'a Step<P>>,
    rule: &str,
) -> Option<Few<P>> {
    let mut configuration = Configuration::new(protocol.clone(), members, false);
    for id in Id::all(members) {
        configuration.apply(&Step::Start(id), 0, &mut |_| 0);
    }
    let (mut happened, mut told) = (Vec::new(), Told::default());
    for step in steps {
        if !configuration.can(step) {
            continue;
        }
        let came = configuration.apply(step, 0, &mut |_| 0);
        told.happened(step, &came);
        happened.push(step.clone());
        if let Some(broken) = configuration.broken() {
            return (broken.rule == rule).then(|| (happened, broken.clone()));
        }
    }
    let broken = told.broken(protocol.workload())?;
    (broken.rule == rule).then_some((happened, broken))
}
