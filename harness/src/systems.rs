//! Which systems this executable can test: its catalogue, with what is registered in it.

use harness_systems::System;
use harness_systems::catalogue::{Catalogue, Entry};
use harness_zookeeper::ZooKeeper;

/// What is registered, with the world of each that has one.
static REGISTERED: [Entry; 3] = harness_zookeeper::systems(lab_sim::planned::begin);

/// Every system that can be named. The first is what is tested when nobody says.
pub static CATALOGUE: Catalogue = Catalogue::of(&REGISTERED);

/// What is tested when nobody says.
pub fn usual() -> impl System {
    ZooKeeper::Node
}

#[cfg(test)]
mod tests {
    use harness_systems::catalogue::Meant;
    use runs::cluster_kind::ClusterKind;

    use super::*;

    #[test]
    fn whoever_runs_in_virtual_time_has_a_world_and_nobody_else() {
        for entry in CATALOGUE.systems() {
            // Files that are not unpacked may name others that are not there.
            let Some(Ok(system)) = CATALOGUE.choose(entry.example, Meant::of(5)) else { continue };
            let has_a_world = CATALOGUE.world(&*system).is_some();
            assert_eq!(system.refuses(ClusterKind::Sim).is_none(), has_a_world, "{}", entry.name);
        }
    }
}
