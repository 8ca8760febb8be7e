//! SIGKILL, and a new start.

use harness_core::mechanism::Mechanism;
use harness_core::mechanism::kill::{KILL, Kill};
use harness_core::proof::Proof;

use super::{Asked, At, Driver};
use crate::clock::RunNs;
use crate::cluster::{Async, Cluster};
use crate::mechanisms::proof::processes;

/// What does it.
pub(super) const DRIVERS: &[&dyn Driver] = &[&Kills];

struct Kills;

impl Driver for Kills {
    fn mechanism(&self) -> &'static Mechanism {
        &KILL
    }

    fn can(&self, _: &dyn Cluster) -> Result<(), String> {
        Ok(())
    }

    fn inject<'a>(&'a self, at: &'a At<'a>, asked: Asked<'a>) -> Async<'a, bool> {
        Box::pin(async move {
            let Kill { members, .. } = at.act()?;
            asked()?;
            at.cluster.kill(members).await?;
            Ok(true)
        })
    }

    fn bites<'a>(&'a self, at: &'a At<'a>) -> Async<'a, Proof> {
        Box::pin(async move { processes::are_gone(&**at.cluster, at.action.members()).await })
    }

    fn undo<'a>(&'a self, at: &'a At<'a>, _: RunNs) -> Async<'a, Option<Proof>> {
        Box::pin(async move {
            let Kill { members, loses_unsynced } = at.act()?;
            at.cluster.restart(members, *loses_unsynced).await?;
            Ok(None)
        })
    }

    fn gone<'a>(&'a self, at: &'a At<'a>) -> Async<'a, Option<Proof>> {
        Box::pin(run_again(at))
    }
}

/// Whether its members run again, where the ensemble as a whole can't be looked at.
pub(super) async fn run_again(at: &At<'_>) -> anyhow::Result<Option<Proof>> {
    if at.in_force.is_empty() {
        return Ok(None);
    }
    processes::run(&**at.cluster, &at.there(at.action.members()), true).await.map(Some)
}
