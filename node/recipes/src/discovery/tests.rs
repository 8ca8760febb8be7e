//! Instances that register, and those who watch them.

use std::collections::BTreeMap;

use node_session::Failure;
use node_wire::client::ErrorCode;

use super::*;
use crate::line::Left;
use crate::recipe::{Effects, Input, Now, Recipe};
use crate::standing;
use crate::testbed::{Dice, World};

const BASE: &str = "/discovery";
const SERVICE: &str = "/discovery/orders";

fn instance(id: &str, port: i32) -> Instance {
    Instance { port: Some(port), ..Instance::new("orders", id) }
}

fn watched(paths: &[&str]) -> World<Instances> {
    World::new(paths, [Instances::watch(BASE, "orders")])
}

fn text(instance: &Instance) -> String {
    String::from_utf8(instance.to_json().into()).unwrap()
}

fn put(world: &mut World<impl Recipe>, name: &str, data: &str) {
    let (path, data) = (child(SERVICE, name), Bytes::copy_from_slice(data.as_bytes()));
    let set = Request::SetData { path: path.clone(), data: data.clone(), version: -1 };
    if world.outside(&set).is_err() {
        let (acl, mode) = (Vec::new(), CreateMode::Persistent);
        // Where its service is not there it can't be put.
        let _refused = world.outside(&Request::Create { path, data, acl, mode });
    }
}

/// What is in the tree.
fn tree(world: &World<impl Recipe>) -> BTreeMap<ByteString, Instance> {
    let names = world.tree.children(SERVICE).into_iter();
    let read = |name: ByteString| {
        let data = world.tree.data(&child(SERVICE, &name))?;
        Some((name, Instance::from_json(&data).ok()?))
    };
    names.filter_map(read).collect()
}

/// Takes what was told, which must fit to what was told before.
fn follow(known: &mut BTreeMap<ByteString, Instance>, told: Vec<Told>) {
    for told in told {
        match told {
            Told::Joined { name, instance } => assert_eq!(known.insert(name, instance), None),
            Told::Changed { name, instance } => {
                let before = known.insert(name, instance.clone()).expect("it was told before");
                assert_ne!(before, instance);
            }
            Told::Left { name } => assert!(known.remove(&name).is_some()),
            Told::Unreadable { name, .. } => assert!(!known.contains_key(&name)),
            Told::Complete | Told::Stale => {}
            Told::Over(why) => panic!("{why}"),
        }
    }
}

#[test]
fn what_is_set_up_has_a_place_for_instances() {
    let mut world: World<Standing> = World::new(&[], []);
    for request in set_up("/a/discovery", "orders") {
        world.outside(&request).unwrap();
    }
    for request in set_up("/a/discovery", "orders") {
        let refused = Failure::Refused { code: ErrorCode::NodeExists, at: None };
        assert_eq!(world.outside(&request), Err(refused));
    }
    world.add(register("/a/discovery", &instance("x", 1)));
    world.settle();
    assert_eq!(world.tree.data("/a/discovery/orders/x").unwrap(), instance("x", 1).to_json());
    assert_eq!(set_up("/", "orders").len(), 1);
}

#[test]
fn instances_are_told_as_they_join_change_and_leave() {
    let mut world = watched(&[BASE, SERVICE]);
    put(&mut world, "a", &text(&instance("a", 1)));
    world.settle();
    let joined = Told::Joined { name: "a".into(), instance: instance("a", 1) };
    assert_eq!(world.told(0), [joined, Told::Complete]);
    put(&mut world, "a", &text(&instance("a", 2)));
    world.settle();
    assert_eq!(world.told(0), [Told::Changed { name: "a".into(), instance: instance("a", 2) }]);
    put(&mut world, "a", &text(&instance("a", 2)));
    world.settle();
    assert_eq!(world.told(0), [], "the same was written again");
    world.delete("/discovery/orders/a");
    world.settle();
    assert_eq!(world.told(0), [Told::Left { name: "a".into() }]);
}

#[test]
fn data_that_is_no_instance_is_told_and_left_out() {
    let mut world = watched(&[BASE, SERVICE]);
    world.settle();
    world.told(0);
    for data in ["", "no JSON", "{\"port\":\"none\"}"] {
        put(&mut world, "a", data);
        world.settle();
        assert!(matches!(&world.told(0)[..], [Told::Unreadable { name, .. }] if name == "a"));
    }
    put(&mut world, "a", &text(&instance("a", 1)));
    world.settle();
    assert!(matches!(world.told(0)[..], [Told::Joined { .. }]));
    put(&mut world, "a", "no JSON");
    world.settle();
    assert!(matches!(world.told(0)[..], [Told::Left { .. }, Told::Unreadable { .. }]));
    world.delete("/discovery/orders/a");
    world.settle();
    assert_eq!(world.told(0), []);
}

#[test]
fn a_service_that_is_not_there_is_waited_for_and_what_is_below_instances_is_none() {
    let mut world = watched(&[]);
    world.settle();
    assert_eq!(world.told(0), [Told::Complete]);
    for path in [BASE, SERVICE, "/discovery/orders/a", "/discovery/orders/a/b", "/discovery/ordersb"] {
        world.make(path, &text(&instance("a", 1)), CreateMode::Persistent);
    }
    world.settle();
    assert!(matches!(&world.told(0)[..], [Told::Joined { name, .. }] if name == "a"));
    world.call(0, Call::Leave);
    assert_eq!(world.told(0), [Told::Over(Left::Resigned)]);
    assert!(world.clients[0].recipe.is_over());
}

#[test]
fn what_changed_while_the_connection_was_gone_is_told_and_nothing_else() {
    for lost in [false, true] {
        let mut world = watched(&[BASE, SERVICE]);
        for id in ["a", "b", "c"] {
            put(&mut world, id, &text(&instance(id, 1)));
        }
        world.settle();
        world.told(0);
        world.cut(0, 0);
        if lost {
            world.lose(0);
        }
        assert_eq!(world.told(0), [Told::Stale]);
        world.delete("/discovery/orders/a");
        put(&mut world, "b", &text(&instance("b", 2)));
        world.connect(0);
        world.settle();
        let changed = Told::Changed { name: "b".into(), instance: instance("b", 2) };
        assert_eq!(world.told(0), [Told::Left { name: "a".into() }, changed, Told::Complete]);
    }
}

#[test]
fn drawn_changes_and_losses_leave_the_instances_as_they_are_in_the_tree() {
    for seed in 1..300 {
        let mut dice = Dice(seed * 0x9e37_79b9);
        let mut world = watched(&[BASE]);
        let mut known = BTreeMap::new();
        for _ in 0..300 {
            let name = ["a", "b", "c"][dice.below(3)];
            match dice.below(12) {
                0..3 => put(&mut world, name, &text(&instance(name, 1))),
                3 => put(&mut world, name, &text(&instance(name, 2))),
                4 => put(&mut world, name, "no JSON"),
                5 => world.make_service(),
                6 | 7 => {
                    let path = if dice.below(3) == 0 { SERVICE.into() } else { child(SERVICE, name) };
                    let _refused = world.outside(&Request::Delete { path, version: -1 });
                }
                _ => {}
            }
            world.chance(&mut dice, true);
            follow(&mut known, world.told(0));
        }
        world.heal();
        follow(&mut known, world.told(0));
        assert_eq!(known, tree(&world), "seed {seed}");
        assert_eq!(world.clients[0].recipe.instances(), &known);
        assert!(world.clients[0].recipe.is_complete());
    }
}

impl<R: Recipe> World<R> {
    fn make_service(&mut self) {
        let request = set_up(BASE, "orders").pop().expect("the service's znode comes last");
        let _refused = self.outside(&request);
    }
}

/// Somebody who registers or watches.
enum Either {
    Registered(Standing),
    Watching(Instances),
}

enum EitherCall {
    Registered(standing::Call),
    Watching(Call),
    Leave,
}

enum EitherTold {
    Registered(standing::Told),
    Watching(Told),
}

fn step<R: Recipe>(
    recipe: &mut R,
    now: Now,
    input: Input<EitherCall>,
    effects: &mut Effects<EitherTold>,
    call: impl Fn(EitherCall) -> Option<R::Call>,
    told: impl Fn(R::Told) -> EitherTold,
) {
    let input = input.map(|given| match given {
        EitherCall::Leave => R::leave(),
        given => call(given).expect("a call of this recipe"),
    });
    let mut own = Effects::default();
    recipe.step(now, input, &mut own);
    effects.asks.append(&mut own.asks);
    effects.told.extend(own.told.into_iter().map(told));
}

impl Recipe for Either {
    type Call = EitherCall;
    type Told = EitherTold;

    fn step(&mut self, now: Now, input: Input<EitherCall>, effects: &mut Effects<EitherTold>) {
        match self {
            Self::Registered(standing) => {
                let call = |call| if let EitherCall::Registered(call) = call { Some(call) } else { None };
                step(standing, now, input, effects, call, EitherTold::Registered);
            }
            Self::Watching(instances) => {
                let call = |call| if let EitherCall::Watching(call) = call { Some(call) } else { None };
                step(instances, now, input, effects, call, EitherTold::Watching);
            }
        }
    }

    fn leave() -> EitherCall {
        EitherCall::Leave
    }

    fn wakes_at(&self) -> Option<node_session::Moment> {
        match self {
            Self::Registered(standing) => standing.wakes_at(),
            Self::Watching(instances) => instances.wakes_at(),
        }
    }

    fn is_over(&self) -> bool {
        match self {
            Self::Registered(standing) => standing.is_over(),
            Self::Watching(instances) => instances.is_over(),
        }
    }
}

#[test]
fn whoever_watches_knows_in_the_end_what_each_that_registered_said_last() {
    for seed in 1..300 {
        let mut dice = Dice(seed * 0x9e37_79b9);
        let ids = ["a", "b", "c"];
        let registered = ids.map(|id| Either::Registered(register(BASE, &instance(id, 0))));
        let watching = Either::Watching(Instances::watch(BASE, "orders"));
        let mut world = World::new(&[BASE, SERVICE], registered.into_iter().chain([watching]));
        let mut last = ids.map(|id| instance(id, 0));
        let mut known = BTreeMap::new();
        let mut take = |world: &mut World<Either>| {
            let watching = world.told(3).into_iter().map(|told| match told {
                EitherTold::Watching(told) => told,
                EitherTold::Registered(told) => panic!("{told:?}"),
            });
            follow(&mut known, watching.collect());
            known.clone()
        };
        for port in 1..200 {
            let who = dice.below(3);
            if dice.below(8) == 0 {
                last[who] = instance(ids[who], port);
                world.call(who, EitherCall::Registered(standing::Call::Set(last[who].to_json())));
            }
            world.chance(&mut dice, true);
            take(&mut world);
        }
        world.heal();
        let all = |instances: &[Instance]| -> BTreeMap<ByteString, Instance> {
            instances.iter().map(|instance| (instance.id.as_str().into(), instance.clone())).collect()
        };
        assert_eq!(take(&mut world), all(&last), "seed {seed}");
        assert!(
            world.told(0).iter().any(|told| matches!(told, EitherTold::Registered(standing::Told::Up(_))))
        );
        world.call(0, EitherCall::Leave);
        world.heal();
        assert_eq!(take(&mut world), all(&last[1..]), "seed {seed}");
        world.call(3, EitherCall::Watching(Call::Leave));
        assert!(world.clients[3].recipe.is_over());
    }
}
