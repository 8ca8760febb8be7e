//! What a planned world is told of its links, and a look at them.

use harness_core::condition::{Condition, LinkCondition};
use harness_core::cut::{Pair, Severing};
use harness_core::seed;
use harness_core::virtual_ensemble::{Setting, VirtualEnsemble};
use lab_sim::planned;
use runs::member::MemberId;
use workloads::{Kind, Params, Workload};

fn world() -> Box<dyn VirtualEnsemble> {
    let setting = Setting {
        seed: 7,
        members: 3,
        observers: 0,
        peer_timeout_ms: 250,
        session_timeout_ms: 10_000,
        operation_timeout_us: 500_000,
        clients: 1,
        bug: None,
    };
    let workload = Workload::new(Kind::default(), Params::of_keys(1), seed::stream(7, "operations"));
    planned::begin(setting, workload.expect("a workload"))
}

#[test]
fn a_link_is_free_when_every_fault_on_it_is_lifted() {
    let mut world = world();
    let pair = Pair::new(MemberId(1), MemberId(2));
    let severed =
        |how| Condition::Link(pair, LinkCondition { severed: Some(how), ..LinkCondition::default() });
    for how in [Severing::Silence, Severing::Reject] {
        world.impose(severed(how));
        assert!(!world.passes(pair) && world.passes(pair.back()));
    }
    world.lift(severed(Severing::Silence));
    assert!(!world.passes(pair), "it still rejects");
    world.lift(severed(Severing::Reject));
    assert!(world.passes(pair));
}
