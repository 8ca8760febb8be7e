//! Looks from the inside whether a fault bites, and whether it is gone.
//!
//! Asked-for is not done: a rule may hit the wrong pair, a signal may come late, a member may be back before
//! anybody cut it off. So after each injection the network is probed one way at a time, the kernel is asked
//! about processes, a port is asked to answer, a member reads its own clock. What can't be seen is said to be
//! unverified, and a run with such a fault proves nothing.
//!
//! Everything is held against what is in force altogether ([`InForce`]): a probe that another fault keeps
//! from arriving is no leak of this one, and a member that another fault holds dead is not asked.

mod applications;
mod clocks;
mod network;
mod processes;
#[cfg(test)]
mod tests;

use std::time::Duration;

use runs::views;

use crate::cluster::{Cluster, PortState, ProcessState, Traffic};
use harness_core::fault::action::Action;
#[cfg(test)]
use harness_core::fault::application::Harm;
use harness_core::fault::in_force::InForce;
use harness_core::nemeses::RECOVERY_PATIENCE_NS;
use harness_core::proof::Proof;

pub use applications::{
    ApplicationsSeen, application_is_harmed, application_is_well, at_the_end_of_a_cut_application,
};
pub use network::at_the_end_of_a_cut;

/// How long what was done may take to show: a signal, a reset, a clock. What tests look at does not change.
const PATIENCE: Duration = Duration::from_millis(if cfg!(test) { 20 } else { 2_000 });
/// How long members may take to serve again after healing.
const RECOVERY_PATIENCE: Duration =
    if cfg!(test) { PATIENCE } else { Duration::from_nanos(RECOVERY_PATIENCE_NS) };
/// How often a state that only the kernel knows is looked at.
const GLANCE: Duration = Duration::from_millis(2);

/// Whether an injected fault bites, among all that are in force. `before` is the traffic at its injection.
pub async fn bites(
    cluster: &dyn Cluster,
    action: &Action,
    before: &Traffic,
    in_force: &InForce,
) -> anyhow::Result<Proof> {
    let mut proof = match action {
        Action::Cut(cut) => network::cut_bites(cluster, cut, before, in_force).await?,
        Action::Kill { members } | Action::Replace { members, .. } => {
            let wanted = |state: &ProcessState| matches!(state, ProcessState::Gone(_));
            processes::are(cluster, members, wanted, PortState::Refuses).await?
        }
        Action::Pause { members } => {
            let wanted =
                |state: &ProcessState| matches!(state, ProcessState::Stopped | ProcessState::Frozen(_));
            let proof = processes::are(cluster, members, wanted, PortState::Silent).await?;
            proof.and(processes::control(cluster, in_force).await?)
        }
        Action::Clock { members, .. } => clocks::are_as_asked(cluster, members, in_force).await,
        Action::Application { .. } => Proof::new(false, "an application is no member".to_owned()),
        Action::Own { .. } => Proof::new(false, "its own command sees it, and nothing else".to_owned()),
    };
    if proof.detail.matrix.is_none() {
        proof.detail.matrix = Some(in_force.matrix(cluster.members()));
    }
    Ok(proof)
}

/// Whether a fault that was healed is gone; `rest` is what is still in force. When that is nothing, the whole
/// ensemble must be well again.
pub async fn is_gone(cluster: &dyn Cluster, action: &Action, rest: &InForce) -> anyhow::Result<Proof> {
    let mut proof = if rest.is_empty() {
        let well = all_is_well(cluster).await?;
        match action {
            Action::Clock { members, .. } => well.and(clocks::are_as_asked(cluster, members, rest).await),
            Action::Replace { members, by } => well.and(processes::answer_as(cluster, members, *by).await?),
            Action::Cut(_)
            | Action::Kill { .. }
            | Action::Pause { .. }
            | Action::Application { .. }
            | Action::Own { .. } => well,
        }
    } else {
        part_is_gone(cluster, action, rest).await?
    };
    proof.detail.epoch = views::highest_epoch(&cluster.events().views());
    Ok(proof)
}

/// Everybody reaches everybody, every process runs, and every member serves in one epoch.
async fn all_is_well(cluster: &dyn Cluster) -> anyhow::Result<Proof> {
    // A member that ended by itself is not waited for: nobody starts it again.
    cluster.events().wait(RECOVERY_PATIENCE, views::settled).await;
    let serve = views::all_serve(&cluster.events().views());
    let network = network::is_as_expected(cluster, &InForce::default()).await?;
    let running = processes::run(cluster, cluster.members(), serve).await?;
    let views = cluster.events().views();
    let stand = match (serve, views::leader_of(&views)) {
        (true, Some(leader)) => format!("all serve in epoch {} under n{}", leader.epoch, leader.id.0),
        _ => views::laggards(&views),
    };
    Ok(network.and(running).and(Proof::new(serve, stand)))
}

/// What this fault did is undone, as far as the others let it be seen.
async fn part_is_gone(cluster: &dyn Cluster, action: &Action, rest: &InForce) -> anyhow::Result<Proof> {
    let absent = rest.absent();
    let there = |members: &[_]| members.iter().copied().filter(|member| !absent.contains(member)).collect();
    let proof = match action {
        Action::Cut(_) => network::is_as_expected(cluster, rest).await?,
        Action::Kill { members } | Action::Replace { members, .. } | Action::Pause { members } => {
            let members: Vec<_> = there(members);
            let running = processes::run(cluster, &members, true).await?;
            // A clock that was shifted when its member was killed is shifted in the new process too.
            let shifted: Vec<_> = members.into_iter().filter(|member| rest.offset_ns(*member) != 0).collect();
            if shifted.is_empty() {
                running
            } else {
                running.and(clocks::are_as_asked(cluster, &shifted, rest).await)
            }
        }
        Action::Clock { members, .. } => clocks::are_as_asked(cluster, members, rest).await,
        Action::Application { .. } | Action::Own { .. } => return Ok(still_in_force(rest)),
    };
    let proof = match action {
        Action::Replace { members, by } => {
            let members: Vec<_> = there(members);
            proof.and(processes::answer_as(cluster, &members, *by).await?)
        }
        Action::Cut(_)
        | Action::Kill { .. }
        | Action::Pause { .. }
        | Action::Clock { .. }
        | Action::Application { .. }
        | Action::Own { .. } => proof,
    };
    Ok(proof.and(still_in_force(rest)))
}

fn still_in_force(rest: &InForce) -> Proof {
    Proof::new(true, format!("{} still in force", rest.names().join(" ")))
}
