//! SIGSTOP, and SIGCONT.

use harness_core::mechanism::Mechanism;
use harness_core::mechanism::pause::PAUSE;
use harness_core::proof::Proof;

use super::kill::run_again;
use super::{Asked, At, Driver};
use crate::clock::RunNs;
use crate::cluster::{Async, Cluster, PortState, ProcessState};
use crate::mechanisms::proof::processes;

/// What does it.
pub(super) const DRIVERS: &[&dyn Driver] = &[&Pauses];

struct Pauses;

impl Driver for Pauses {
    fn mechanism(&self) -> &'static Mechanism {
        &PAUSE
    }

    fn can(&self, cluster: &dyn Cluster) -> Result<(), String> {
        cluster.can_pause()
    }

    fn inject<'a>(&'a self, at: &'a At<'a>, asked: Asked<'a>) -> Async<'a, bool> {
        Box::pin(async move {
            asked()?;
            at.cluster.pause(at.action.members()).await?;
            Ok(true)
        })
    }

    fn bites<'a>(&'a self, at: &'a At<'a>) -> Async<'a, Proof> {
        Box::pin(async move {
            let wanted =
                |state: &ProcessState| matches!(state, ProcessState::Stopped | ProcessState::Frozen(_));
            let members = at.action.members();
            let proof = processes::are(&**at.cluster, members, wanted, PortState::Silent).await?;
            Ok(proof.and(processes::control(&**at.cluster, at.in_force).await?))
        })
    }

    fn undo<'a>(&'a self, at: &'a At<'a>, _: RunNs) -> Async<'a, Option<Proof>> {
        Box::pin(async move {
            at.cluster.resume(at.action.members()).await?;
            Ok(None)
        })
    }

    fn gone<'a>(&'a self, at: &'a At<'a>) -> Async<'a, Option<Proof>> {
        Box::pin(run_again(at))
    }
}
