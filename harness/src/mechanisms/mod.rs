//! Ways to break members that run: how each is done, proven, taken back, and seen to be gone.
//!
//! What a mechanism is and decides stands in [`harness_core::mechanism`]. Here each has one object a driver:
//! whether a cluster can do it, what does it, the look that proves it beside a control, what takes it back,
//! and the look that it is gone. The first of its objects that a cluster can do is taken, once a run. Nothing
//! outside of these files knows them one by one.
//!
//! Asked-for is not done: a rule may hit the wrong pair, a signal may come late, a member may be back before
//! anybody cut it off. So every look asks from the inside ([`proof`]), and is held against
//! what is in force altogether: a probe that another fault keeps from arriving is no leak of this one, and a
//! member that another fault holds dead is not asked.

pub mod proof;

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::anyhow;
use harness_core::fault::in_force::InForce;
use harness_core::mechanism::{Act, Action, Mechanism};
use harness_core::proof::Proof;
use harness_systems::System;
use runs::consequence::Consequences;
use runs::member::MemberId;
use runs::views;

use self::proof::all_is_well;
use crate::applications::Applications;
use crate::clock::RunNs;
use crate::cluster::{Async, Cluster};

#[cfg(test)]
mod tests;

macro_rules! mechanisms {
    ($($file:ident,)*) => {
        $(mod $file;)*

        /// Every object.
        const ALL: &[&[&dyn Driver]] = &[$($file::DRIVERS),*];
    };
}

mechanisms! {
    partition,
    reject,
    kill,
    pause,
    clock,
    replace,
    application,
    application_clock,
    own,
    latency,
}

/// What a fault is carried out with, and what is known of it.
#[derive(Clone, Copy)]
pub struct At<'a> {
    /// The members.
    pub cluster: &'a Arc<dyn Cluster>,
    /// The applications, if there are any.
    pub applications: Option<&'a Applications>,
    /// The fault's name in this run.
    pub fault: &'a str,
    /// What it does, and to whom.
    pub action: &'a Action,
    /// What is in force at this moment, as far as it is looked at.
    pub in_force: &'a InForce,
    /// What was kept of faults until their end.
    pub kept: &'a Kept,
}

impl<'a> At<'a> {
    /// What it does, which is this mechanism's own.
    pub fn act<T: Act>(&self) -> anyhow::Result<&'a T> {
        let name = self.action.mechanism().name;
        self.action.of().ok_or_else(|| anyhow!("{}: {name} is done by another mechanism", self.fault))
    }

    /// The applications.
    pub fn applications(&self) -> anyhow::Result<&'a Applications> {
        self.applications.ok_or_else(|| anyhow!("there are no applications"))
    }

    /// Those of these members that no fault holds dead or stopped.
    pub fn there(&self, members: &[MemberId]) -> Vec<MemberId> {
        let absent = self.in_force.absent();
        members.iter().copied().filter(|member| !absent.contains(member)).collect()
    }

    /// Keeps something of the fault until its end.
    pub fn keep<T: Any + Send>(&self, what: T) {
        self.kept.lock().insert(self.fault.to_owned(), Box::new(what));
    }

    /// What was kept of the fault.
    pub fn kept<T: Any + Clone>(&self) -> Option<T> {
        self.kept.lock().get(self.fault)?.downcast_ref().cloned()
    }
}

/// What was kept of faults from their beginning, by name, and what carries each mechanism out.
#[derive(Default)]
pub struct Kept {
    faults: Mutex<BTreeMap<String, Box<dyn Any + Send>>>,
    /// By the mechanism's name.
    drivers: Mutex<BTreeMap<&'static str, &'static dyn Driver>>,
}

impl Kept {
    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, Box<dyn Any + Send>>> {
        self.faults.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What carries out a mechanism. It is chosen once: what could do a thing takes it back, and whether it
    /// could do it anew is never asked, for a try may fail and healing must not.
    ///
    /// # Errors
    /// Why nothing can.
    pub fn driver(
        &self,
        mechanism: &'static Mechanism,
        cluster: &dyn Cluster,
    ) -> Result<&'static dyn Driver, String> {
        let mut drivers = self.drivers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(driver) = drivers.get(mechanism.name) {
            return Ok(*driver);
        }
        let driver = on(mechanism, cluster)?;
        drivers.insert(mechanism.name, driver);
        Ok(driver)
    }

    /// A fault is at its end.
    pub fn forget(&self, fault: &str) {
        self.lock().remove(fault);
    }
}

/// Writes down that it is asked for. To be called right before it is done.
pub type Asked<'a> = Box<dyn FnOnce() -> anyhow::Result<()> + Send + 'a>;

/// One way to do what a mechanism is.
pub trait Driver: Send + Sync {
    /// The mechanism.
    fn mechanism(&self) -> &'static Mechanism;

    /// Whether members of a system can be broken so, whatever they run in; if not, why, and what would make
    /// it possible.
    fn suits(&self, system: &dyn System) -> Result<(), String> {
        let _ = system;
        Ok(())
    }

    /// Whether a cluster can do it; if not, why, and what would make it possible.
    fn can(&self, cluster: &dyn Cluster) -> Result<(), String>;

    /// Looks at what must be known before it is done. True where that took its time, in which another may
    /// have begun to lead.
    fn look_before<'a>(&'a self, at: &'a At<'a>) -> Async<'a, bool> {
        let _ = at;
        Box::pin(async { Ok(false) })
    }

    /// Does it. Nothing stands between `asked` and that. False where nothing was done, because its target is
    /// not any more what it was when it was aimed at.
    fn inject<'a>(&'a self, at: &'a At<'a>, asked: Asked<'a>) -> Async<'a, bool>;

    /// Looks at what is to be known of its beginning, once it is stamped.
    fn settle<'a>(&'a self, at: &'a At<'a>) -> Async<'a, ()> {
        let _ = at;
        Box::pin(async { Ok(()) })
    }

    /// Whether it bites, beside a control that it does not touch.
    fn bites<'a>(&'a self, at: &'a At<'a>) -> Async<'a, Proof>;

    /// Takes it back. What was seen of it at its end, where there was anything to see.
    fn undo<'a>(&'a self, at: &'a At<'a>, injected: RunNs) -> Async<'a, Option<Proof>>;

    /// Whether it is gone, as far as all that is still in force lets that be seen. None where that the whole
    /// ensemble is well says it all; that is looked at when nothing else is in force.
    fn gone<'a>(&'a self, at: &'a At<'a>) -> Async<'a, Option<Proof>>;

    /// Whether it still holds for members whose processes another fault has ended and started again; none
    /// where that makes no difference.
    fn holds_again<'a>(&'a self, at: &'a At<'a>, members: &'a [MemberId]) -> Async<'a, Option<Proof>> {
        let _ = (at, members);
        Box::pin(async { Ok(None) })
    }
}

fn of(mechanism: &'static Mechanism) -> impl Iterator<Item = &'static dyn Driver> {
    ALL.iter().copied().flatten().copied().filter(move |driver| *driver.mechanism() == *mechanism)
}

/// Whether members of a system can be broken so, by any of its objects. A mechanism without one is virtual
/// time's alone, and there any will do.
pub fn suits(mechanism: &'static Mechanism, system: &dyn System) -> Result<(), String> {
    if of(mechanism).next().is_none() {
        return Ok(());
    }
    first(of(mechanism).map(|driver| driver.suits(system)))
}

/// What does it on this cluster; else why nothing can.
pub fn on(mechanism: &'static Mechanism, cluster: &dyn Cluster) -> Result<&'static dyn Driver, String> {
    if of(mechanism).next().is_none() {
        return Err("it is there in virtual time alone; add --cluster sim".to_owned());
    }
    first(of(mechanism).map(|driver| driver.can(cluster).map(|()| driver)))
}

/// The first that can, or why none can.
fn first<T>(all: impl Iterator<Item = Result<T, String>>) -> Result<T, String> {
    let mut reasons = Vec::new();
    for one in all {
        match one {
            Ok(driver) => return Ok(driver),
            Err(why) => reasons.push(why),
        }
    }
    Err(reasons.join("; "))
}

/// Does it, and says when it was done; none where nothing was done. `asked` writes down that it is asked for.
///
/// What fails after that may be in force in part, and no lane heals it: it is taken back here.
pub async fn inject(
    driver: &dyn Driver,
    at: &At<'_>,
    asked: Asked<'_>,
    now: impl Fn() -> RunNs + Sync,
) -> anyhow::Result<Option<RunNs>> {
    let begun = AtomicBool::new(false);
    let asked: Asked<'_> = Box::new(|| {
        asked()?;
        begun.store(true, Ordering::Relaxed);
        Ok(())
    });
    let injecting = async {
        if !driver.inject(at, asked).await? {
            return Ok(None);
        }
        let injected = now();
        driver.settle(at).await?;
        Ok(Some(injected))
    };
    let injected = injecting.await;
    if injected.is_err() && begun.load(Ordering::Relaxed) {
        if let Err(error) = driver.undo(at, now()).await {
            tracing::debug!(fault = at.fault, "what was begun could not be undone: {error:#}");
        }
        at.kept.forget(at.fault);
    }
    injected
}

/// Whether an injected fault bites, among all that are in force.
pub async fn bites(driver: &dyn Driver, at: &At<'_>) -> anyhow::Result<Proof> {
    let mut proof = driver.bites(at).await?;
    if proof.detail.matrix.is_none() {
        proof.detail.matrix = Some(at.in_force.matrix(at.cluster.members()));
    }
    Ok(proof)
}

/// Whether a fault that was healed is gone. When nothing else is in force, the whole ensemble must be well.
pub async fn is_gone(driver: &dyn Driver, at: &At<'_>) -> anyhow::Result<Proof> {
    let rest = at.in_force;
    let mut proofs = Vec::new();
    if rest.is_empty() {
        proofs.push(all_is_well(&**at.cluster).await?);
    }
    proofs.extend(driver.gone(at).await?);
    if at.action.consequences().takes_away() {
        let back = at.there(at.action.members());
        for (fault, action) in rest.actions() {
            let other = at.kept.driver(action.mechanism(), &**at.cluster).map_err(|why| anyhow!(why))?;
            proofs.extend(other.holds_again(&At { fault, action, ..*at }, &back).await?);
        }
    }
    if !rest.is_empty() {
        proofs.push(Proof::new(true, format!("{} still in force", rest.names().join(" "))));
    }
    let nothing = Proof::new(true, String::new());
    let mut proof = proofs.into_iter().reduce(Proof::and).unwrap_or(nothing);
    proof.detail.epoch = views::highest_epoch(&at.cluster.events().views());
    Ok(proof)
}
