//! The leader commits while at most one voter is away. With two away it goes on leading, and their followers
//! on following, because everybody hears of everybody; nothing is acknowledged until one comes back.

use node_core::{Acknowledged, Rules};
use node_wire::ids::Zxid;

use crate::{Recipe, Spec, USUAL};

pub(crate) static SPEC: Spec = Spec {
    name: "stalls-without-two",
    origin: "a leader that leads and commits nothing",
    summary: "a leader that lacks two voters leads on and commits nothing",
    rules: &StallsWithoutTwo,
    // Three members go on without the other two.
    recipe: Ok(Recipe {
        nemesis: "partition-halves",
        workload: "register",
        flags: "--interval 24s --time-limit 50s",
        tries: 3,
    }),
    ..USUAL
};

#[derive(Debug)]
struct StallsWithoutTwo;

impl Rules for StallsWithoutTwo {
    fn commits(&self, acknowledged: Acknowledged) -> Zxid {
        if acknowledged.synchronized + 1 < acknowledged.voters { Zxid::ZERO } else { acknowledged.reached }
    }
}
