//! The leader answers a sync without asking its quorum.

use node_core::Rules;

use crate::{Driver, Recipe, Spec, USUAL};

pub(crate) static SPEC: Spec = Spec {
    name: "sync-without-quorum",
    origin: "ZOOKEEPER-1675",
    summary: "the leader answers a sync without asking its quorum",
    rules: &SyncWithoutQuorum,
    driver: Driver::ClientsFirst,
    recipe: Ok(Recipe { nemesis: "pause-leader", workload: "register", flags: "", tries: 3 }),
    ..USUAL
};

#[derive(Debug)]
struct SyncWithoutQuorum;

impl Rules for SyncWithoutQuorum {
    fn sync_asks_quorum(&self) -> bool {
        false
    }
}
