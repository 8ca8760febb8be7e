//! Which systems this executable can test: its catalogue, with what is registered in it.

mod protocol;

use harness_systems::System;
use harness_systems::catalogue::{Catalogue, Entry};
use harness_zookeeper::ZooKeeper;

use protocol::OfProtocol;

/// What is registered, with the world of each that has one.
static REGISTERED: [Entry; 4] = {
    let [node, apache, both] = harness_zookeeper::systems(lab_sim::planned::begin);
    [node, apache, both, MULTI_PAXOS]
};

const MULTI_PAXOS: Entry = Entry::built_in(
    "multi-paxos",
    "multi-paxos",
    "Multi-Paxos in virtual time: linearizable registers over a replicated log",
    |text, _| OfProtocol::chosen(text, &harness_paxos::MULTI_PAXOS),
)
.in_virtual_time(|setting, workload| protocol::begin(&harness_paxos::MULTI_PAXOS, &setting, workload));

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
