//! Whoever left a watch is told of what it sees, whether it may read the node or not.

use node_core::Rules;

use crate::{Spec, USUAL};

pub(crate) static SPEC: Spec = Spec {
    name: "watch-asks-no-list",
    origin: "CVE-2024-23944",
    summary: "a watch tells of nodes that its client may not read",
    rules: &WatchAsksNoList,
    recipe: Err("needs clients that are not let in everywhere"),
    ..USUAL
};

#[derive(Debug)]
struct WatchAsksNoList;

impl Rules for WatchAsksNoList {
    fn watches_ask_lists(&self) -> bool {
        false
    }
}
