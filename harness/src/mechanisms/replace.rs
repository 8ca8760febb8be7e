//! SIGTERM, and a start as another kind of server.

use harness_core::mechanism::Mechanism;
use harness_core::mechanism::replace::{REPLACE, Replace};
use harness_core::proof::Proof;
use harness_systems::System;

use super::kill::run_again;
use super::{Asked, At, Driver};
use crate::clock::RunNs;
use crate::cluster::{Async, Cluster};
use crate::mechanisms::proof::processes;
use crate::systems::CATALOGUE;

/// What does it.
pub(super) const DRIVERS: &[&dyn Driver] = &[&Replaces];

struct Replaces;

impl Driver for Replaces {
    fn mechanism(&self) -> &'static Mechanism {
        &REPLACE
    }

    fn suits(&self, system: &dyn System) -> Result<(), String> {
        if system.traits().replaces {
            return Ok(());
        }
        let some = CATALOGUE.names(|system| system.traits().replaces).join(" or ");
        Err(format!("there is one kind of server only; add --system {some}"))
    }

    fn can(&self, cluster: &dyn Cluster) -> Result<(), String> {
        cluster.can_replace()
    }

    fn inject<'a>(&'a self, at: &'a At<'a>, asked: Asked<'a>) -> Async<'a, bool> {
        Box::pin(async move {
            asked()?;
            at.cluster.retire(at.action.members()).await?;
            Ok(true)
        })
    }

    fn bites<'a>(&'a self, at: &'a At<'a>) -> Async<'a, Proof> {
        Box::pin(async move { processes::are_gone(&**at.cluster, at.action.members()).await })
    }

    fn undo<'a>(&'a self, at: &'a At<'a>, _: RunNs) -> Async<'a, Option<Proof>> {
        Box::pin(async move {
            let Replace { members, by } = at.act()?;
            at.cluster.restart_as(members, *by).await?;
            Ok(None)
        })
    }

    fn gone<'a>(&'a self, at: &'a At<'a>) -> Async<'a, Option<Proof>> {
        Box::pin(async move {
            let Replace { members, by } = at.act()?;
            let answer = processes::answer_as(&**at.cluster, &at.there(members), *by).await?;
            Ok(Some(match run_again(at).await? {
                Some(run) => run.and(answer),
                None => answer,
            }))
        })
    }
}
