//! Which systems this executable can test: its catalogue, with what is registered in it.

use harness_systems::System;
use harness_systems::catalogue::Catalogue;
use harness_zookeeper::ZooKeeper;

/// Every system that can be named. The first is what is tested when nobody says.
pub static CATALOGUE: Catalogue = Catalogue::of(&harness_zookeeper::SYSTEMS);

/// What is tested when nobody says.
pub fn usual() -> impl System {
    ZooKeeper::Node
}
