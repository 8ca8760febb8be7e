//! The counter of the zxid runs over into the epoch.

use node_core::Rules;
use node_wire::ids::{Epoch, Zxid};

use crate::{Spec, USUAL};

pub(crate) static SPEC: Spec = Spec {
    name: "zxid-rollover",
    origin: "ZOOKEEPER-1277",
    summary: "the counter of the zxid runs over into the epoch",
    rules: &ZxidRollover,
    recipe: Err("needs four thousand million transactions, or a counter that ends early"),
    ..USUAL
};

#[derive(Debug)]
struct ZxidRollover;

impl Rules for ZxidRollover {
    fn next_zxid(&self, last: Zxid, last_counter: u32) -> Option<Zxid> {
        let next = last.next().filter(|zxid| zxid.counter() < last_counter);
        Some(next.unwrap_or_else(|| Zxid::new(Epoch(last.epoch().0.wrapping_add(1)), 0)))
    }
}
