//! Silence between members, by what carries their words.

use harness_core::cut::Cut;
use harness_core::mechanism::Mechanism;
use harness_core::mechanism::partition::PARTITION;
use harness_core::proof::Proof;

use super::{Asked, At, Driver};
use crate::clock::RunNs;
use crate::cluster::{Async, Cluster, Traffic};
use crate::mechanisms::proof::network;

/// What does it.
pub(super) const DRIVERS: &[&dyn Driver] = &[&Cuts { mechanism: &PARTITION }];

/// Cuts, whatever becomes of what they do not let through.
pub(super) struct Cuts {
    pub(super) mechanism: &'static Mechanism,
}

impl Driver for Cuts {
    fn mechanism(&self) -> &'static Mechanism {
        self.mechanism
    }

    fn can(&self, _: &dyn Cluster) -> Result<(), String> {
        Ok(())
    }

    fn inject<'a>(&'a self, at: &'a At<'a>, asked: Asked<'a>) -> Async<'a, bool> {
        Box::pin(async move {
            let cut: &Cut = at.act()?;
            asked()?;
            at.keep(at.cluster.link(at.fault, &cut.links()).await?);
            Ok(true)
        })
    }

    fn settle<'a>(&'a self, at: &'a At<'a>) -> Async<'a, ()> {
        Box::pin(async move {
            let before: Traffic = at.kept().unwrap_or_default();
            at.keep(before.settled_by(at.cluster.traffic().await?));
            Ok(())
        })
    }

    fn bites<'a>(&'a self, at: &'a At<'a>) -> Async<'a, Proof> {
        Box::pin(async move {
            let before = at.kept().unwrap_or_default();
            network::cut_bites(&**at.cluster, at.act()?, &before, at.in_force).await
        })
    }

    fn undo<'a>(&'a self, at: &'a At<'a>, _: RunNs) -> Async<'a, Option<Proof>> {
        Box::pin(async move {
            let cut: &Cut = at.act()?;
            let way = at.cluster.way_round(&cut.pairs).await;
            let after = at.cluster.heal(at.fault).await?;
            let before = at.kept().unwrap_or_default();
            Ok(Some(network::at_the_end_of_a_cut(cut, &before, &after, way?)))
        })
    }

    fn gone<'a>(&'a self, at: &'a At<'a>) -> Async<'a, Option<Proof>> {
        Box::pin(async move {
            if at.in_force.is_empty() {
                return Ok(None);
            }
            network::is_as_expected(&**at.cluster, at.in_force).await.map(Some)
        })
    }
}
