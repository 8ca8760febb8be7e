//! An entry whose write failed stays in memory and out of the log, the ones behind it are written. This one
//! is its driver's, not the core's.

use crate::{Driver, Spec, USUAL, VIRTUAL_DISK};

pub(crate) static SPEC: Spec = Spec {
    name: "log-hole",
    origin: "ZOOKEEPER-4882",
    summary: "a transaction whose log write failed is committed all the same, the log has a hole",
    driver: Driver::SkipsFailedWrites,
    recipe: Err(VIRTUAL_DISK),
    ..USUAL
};
