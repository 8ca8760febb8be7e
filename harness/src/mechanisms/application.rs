//! Applications, which are no members: stopped, killed, cut off, or with a shifted clock.

use harness_core::mechanism::Mechanism;
use harness_core::mechanism::application::{APPLICATION, Harmed};
use harness_core::proof::Proof;

use super::{Asked, At, Driver};
use crate::clock::RunNs;
use crate::cluster::{Async, Cluster};
use crate::mechanisms::proof::applications;

/// What does it.
pub(super) const DRIVERS: &[&dyn Driver] = &[&Harms { mechanism: &APPLICATION, can: || Ok(()) }];

/// Harm to applications, of any kind.
pub(super) struct Harms {
    pub(super) mechanism: &'static Mechanism,
    /// Applications are processes of this machine, whatever members run in.
    pub(super) can: fn() -> Result<(), String>,
}

impl Driver for Harms {
    fn mechanism(&self) -> &'static Mechanism {
        self.mechanism
    }

    fn can(&self, _: &dyn Cluster) -> Result<(), String> {
        (self.can)()
    }

    fn inject<'a>(&'a self, at: &'a At<'a>, asked: Asked<'a>) -> Async<'a, bool> {
        Box::pin(async move {
            let Harmed { holder, harm } = at.act()?;
            at.applications()?.harm(holder, *harm, asked).await
        })
    }

    fn bites<'a>(&'a self, at: &'a At<'a>) -> Async<'a, Proof> {
        Box::pin(async move {
            let Harmed { holder, harm } = at.act()?;
            Ok(applications::application_is_harmed(at.applications()?, holder, *harm).await)
        })
    }

    fn undo<'a>(&'a self, at: &'a At<'a>, _: RunNs) -> Async<'a, Option<Proof>> {
        Box::pin(async move {
            let Harmed { holder, harm } = at.act()?;
            let crossed = at.applications()?.undo(holder, *harm).await?;
            Ok(crossed.map(applications::at_the_end_of_a_cut_application))
        })
    }

    fn gone<'a>(&'a self, at: &'a At<'a>) -> Async<'a, Option<Proof>> {
        Box::pin(async move {
            let Harmed { holder, harm } = at.act()?;
            Ok(Some(applications::application_is_well(at.applications()?, holder, *harm).await))
        })
    }
}
