//! Wall clocks of members, shifted.

use harness_core::mechanism::Mechanism;
use harness_core::mechanism::clock::{CLOCK, Clock};
use harness_core::proof::Proof;
use harness_systems::System;
use runs::cluster_kind::ClusterKind;
use runs::events::{Event, Stamped};
use runs::member::MemberId;

use super::{Asked, At, Driver};
use crate::clock::{RunNs, milliseconds};
use crate::cluster::{Async, Cluster};
use crate::mechanisms::proof::clocks;

/// What does it.
pub(super) const DRIVERS: &[&dyn Driver] = &[&Shifts];

struct Shifts;

impl Driver for Shifts {
    fn mechanism(&self) -> &'static Mechanism {
        &CLOCK
    }

    fn suits(&self, system: &dyn System) -> Result<(), String> {
        let traits = system.traits();
        if traits.is_a_group && traits.runs_only_in(ClusterKind::Process) {
            return Err(format!(
                "a member of {} may be several processes, and a clock is shifted in one; run it in \
                 containers, by a Compose file",
                system.name()
            ));
        }
        Ok(())
    }

    fn can(&self, cluster: &dyn Cluster) -> Result<(), String> {
        cluster.can_shift_clocks()
    }

    fn inject<'a>(&'a self, at: &'a At<'a>, asked: Asked<'a>) -> Async<'a, bool> {
        Box::pin(async move {
            let Clock { members, offset_ns } = at.act()?;
            asked()?;
            at.cluster.shift_clock(members, *offset_ns).await?;
            Ok(true)
        })
    }

    fn bites<'a>(&'a self, at: &'a At<'a>) -> Async<'a, Proof> {
        Box::pin(async move { Ok(read(at, at.action.members()).await) })
    }

    fn undo<'a>(&'a self, at: &'a At<'a>, injected: RunNs) -> Async<'a, Option<Proof>> {
        Box::pin(async move {
            let members = at.action.members();
            at.cluster.shift_clock(members, 0).await?;
            Ok(gaps(&**at.cluster, members, injected).map(|words| Proof::new(true, words)))
        })
    }

    fn gone<'a>(&'a self, at: &'a At<'a>) -> Async<'a, Option<Proof>> {
        Box::pin(async move { Ok(Some(read(at, at.action.members()).await)) })
    }

    /// A clock that was shifted when its member was killed is shifted in the new process too.
    fn holds_again<'a>(&'a self, at: &'a At<'a>, members: &'a [MemberId]) -> Async<'a, Option<Proof>> {
        Box::pin(async move {
            let own = at.action.members();
            let shifted: Vec<MemberId> =
                members.iter().copied().filter(|member| own.contains(member)).collect();
            Ok(if shifted.is_empty() { None } else { Some(read(at, &shifted).await) })
        })
    }
}

async fn read(at: &At<'_>, members: &[MemberId]) -> Proof {
    clocks::are_as_asked(&**at.cluster, members, at.in_force).await
}

/// The starts of these members since `from` that came up with the true time first, in words.
fn gaps(cluster: &dyn Cluster, members: &[MemberId], from: RunNs) -> Option<String> {
    let gap = |stamped: &Stamped| match stamped.event {
        Event::Clock { gap_ns: Some(gap_ns), .. } => Some(format!(
            "n{} was started again while it was shifted, and ran unshifted for {:.1} ms",
            stamped.node.0,
            milliseconds(gap_ns)
        )),
        _ => None,
    };
    let events = cluster.events().events();
    let own = events.iter().filter(|stamped| stamped.time >= from && members.contains(&stamped.node));
    let gaps: Vec<String> = own.filter_map(gap).collect();
    (!gaps.is_empty()).then(|| gaps.join("; "))
}
