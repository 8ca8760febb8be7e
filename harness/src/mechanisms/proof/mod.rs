//! Looks from the inside at members, their network, processes and clocks, and at applications.
//!
//! Each mechanism ([`crate::mechanisms`]) proves its faults by some of these: the network is probed one way
//! at a time, the kernel is asked about processes, a port is asked to answer, a member reads its own clock.
//! What can't be seen is said to be unverified, and a run with such a fault proves nothing.

pub mod applications;
pub mod clocks;
pub mod given;
pub mod network;
pub mod processes;

use std::time::Duration;

use harness_core::fault::in_force::InForce;
use harness_core::nemeses::RECOVERY_PATIENCE_NS;
use harness_core::proof::Proof;
use runs::views;

use crate::cluster::Cluster;

/// How long what was done may take to show: a signal, a reset, a clock. What tests look at does not change.
const PATIENCE: Duration = Duration::from_millis(if cfg!(test) { 20 } else { 2_000 });
/// How long members may take to serve again after healing.
const RECOVERY_PATIENCE: Duration =
    if cfg!(test) { PATIENCE } else { Duration::from_nanos(RECOVERY_PATIENCE_NS) };
/// How often a state that only the kernel knows is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(2);

/// Everybody reaches everybody, every process runs, and every member serves in one epoch.
pub async fn all_is_well(cluster: &dyn Cluster) -> anyhow::Result<Proof> {
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
