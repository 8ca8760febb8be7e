//! The queue, driven by hand and drawn.

use std::collections::{BTreeMap, BTreeSet};

use node_session::Moment;

use super::*;
use crate::names::Guid;
use crate::recipe::{Effects, Input, Now, Recipe};
use crate::testbed::{Dice, World};

const BASE: &str = "/queue";

#[derive(Clone)]
enum Party {
    Puts(Producer),
    Works(Consumer),
}

#[derive(Clone, Debug, PartialEq)]
enum Call {
    Produce(ProducerCall),
    Consume(ConsumerCall),
}

#[derive(Clone, Debug, PartialEq)]
enum Told {
    Producer(ProducerTold),
    Consumer(ConsumerTold),
}

impl Recipe for Party {
    type Call = Call;
    type Told = Told;

    fn step(&mut self, now: Now, what: Input<Call>, effects: &mut Effects<Told>) {
        match self {
            Self::Puts(producer) => {
                let mut own = Effects::default();
                let call = |call| if let Call::Produce(call) = call { call } else { panic!() };
                producer.step(now, what.map(call), &mut own);
                effects.asks.extend(own.asks);
                effects.told.extend(own.told.into_iter().map(Told::Producer));
            }
            Self::Works(consumer) => {
                let mut own = Effects::default();
                let call = |call| if let Call::Consume(call) = call { call } else { panic!() };
                consumer.step(now, what.map(call), &mut own);
                effects.asks.extend(own.asks);
                effects.told.extend(own.told.into_iter().map(Told::Consumer));
            }
        }
    }

    fn leave() -> Call {
        Call::Consume(ConsumerCall::Leave)
    }

    fn is_over(&self) -> bool {
        match self {
            Self::Puts(producer) => producer.is_over(),
            Self::Works(consumer) => consumer.is_over(),
        }
    }
}

const PATHS: [&str; 4] = [BASE, "/queue/items", "/queue/claims", "/queue/marks"];

/// One producer, and so many consumers behind it.
fn world(consumers: usize) -> World<Party> {
    let mut world = World::new(&PATHS, [Party::Puts(Producer::new(BASE, Guid(1 << 64)))]);
    for _ in 0..consumers {
        world.add(Party::Works(Consumer::new(BASE)));
    }
    world
}

fn put(world: &mut World<Party>, data: &'static str) {
    world.call(0, Call::Produce(ProducerCall::Put(data.into())));
}

fn consume(world: &mut World<Party>, who: usize, call: ConsumerCall) {
    world.call(who, Call::Consume(call));
}

/// The item that this consumer was told of last.
fn handed(world: &mut World<Party>, who: usize) -> Option<Bytes> {
    world.told(who).into_iter().rev().find_map(|told| match told {
        Told::Consumer(ConsumerTold::Item { data, .. }) => Some(data),
        _ => None,
    })
}

#[test]
fn a_queue_is_set_up_by_its_requests() {
    let paths = set_up(BASE).into_iter().map(|request| match request {
        Request::Create { path, .. } => path,
        other => panic!("{other:?}"),
    });
    assert_eq!(paths.collect::<Vec<_>>(), PATHS);
}

#[test]
fn items_are_handed_out_in_order_each_to_one_and_gone_when_acknowledged() {
    let mut world = world(2);
    for data in ["a", "b", "c"] {
        put(&mut world, data);
    }
    world.settle();
    consume(&mut world, 1, ConsumerCall::Claim);
    consume(&mut world, 2, ConsumerCall::Claim);
    world.settle();
    let mut got = [handed(&mut world, 1).unwrap(), handed(&mut world, 2).unwrap()];
    got.sort();
    assert_eq!(got, ["a", "b"]);
    for who in [1, 2] {
        consume(&mut world, who, ConsumerCall::Acknowledge);
    }
    world.settle();
    assert_eq!(world.tree.children("/queue/items").len(), 1);
    assert!(world.tree.children("/queue/claims").is_empty());
}

#[test]
fn whoever_waits_gets_the_next_item_and_what_another_gave_back_or_lost() {
    let mut world = world(2);
    consume(&mut world, 1, ConsumerCall::Claim);
    world.settle();
    put(&mut world, "a");
    world.settle();
    assert_eq!(handed(&mut world, 1).unwrap(), "a");
    consume(&mut world, 2, ConsumerCall::Claim);
    world.settle();
    assert_eq!(handed(&mut world, 2), None);
    consume(&mut world, 1, ConsumerCall::GiveBack);
    world.settle();
    assert_eq!(handed(&mut world, 2).unwrap(), "a");
    consume(&mut world, 1, ConsumerCall::Claim);
    world.settle();
    world.told(1);
    world.lose(2);
    world.settle();
    assert_eq!(handed(&mut world, 1).unwrap(), "a");
    let name = world.tree.children("/queue/items")[0].clone();
    let over = ConsumerTold::ClaimOver { name, why: Ended::SessionLost };
    assert_eq!(world.told(2), [Told::Consumer(over)]);
}

#[test]
fn a_put_whose_answer_was_lost_is_looked_up_and_not_repeated() {
    for taken in [0, 1] {
        let mut world = world(1);
        put(&mut world, "a");
        world.until(0, |request| matches!(request, Request::Multi(_)));
        world.cut(0, taken);
        if taken == 1 {
            consume(&mut world, 1, ConsumerCall::Claim);
            world.settle();
            consume(&mut world, 1, ConsumerCall::Acknowledge);
            world.settle();
        }
        world.connect(0);
        world.settle();
        assert_eq!(world.told(0), [Told::Producer(ProducerTold::Put(0))]);
        assert_eq!(world.tree.children("/queue/items").len(), 1 - taken, "done already, or put once");
    }
}

#[test]
fn a_put_stays_in_doubt_only_if_its_session_is_lost_and_the_item_is_not_there() {
    for taken in [0, 1] {
        let mut world = world(1);
        put(&mut world, "a");
        world.until(0, |request| matches!(request, Request::Multi(_)));
        world.cut(0, taken);
        world.lose(0);
        world.connect(0);
        world.settle();
        let told = if taken == 1 { ProducerTold::Put(0) } else { ProducerTold::InDoubt(0) };
        assert_eq!(world.told(0), [Told::Producer(told)]);
    }
}

#[test]
fn a_claim_and_an_acknowledgement_whose_answers_were_lost_are_looked_up() {
    for taken in [0, 1] {
        let mut world = world(1);
        put(&mut world, "a");
        world.settle();
        consume(&mut world, 1, ConsumerCall::Claim);
        world.until(1, |request| matches!(request, Request::Multi(_)));
        world.cut(1, taken);
        world.connect(1);
        world.settle();
        assert_eq!(handed(&mut world, 1).unwrap(), "a");
        consume(&mut world, 1, ConsumerCall::Acknowledge);
        world.cut(1, taken);
        world.connect(1);
        world.settle();
        assert!(matches!(world.told(1)[..], [Told::Consumer(ConsumerTold::Acknowledged(_))]));
        assert!(world.tree.children("/queue/items").is_empty());
    }
}

#[test]
fn a_claim_is_over_when_its_certainty_ends_and_then_given_back() {
    let mut world = world(1);
    put(&mut world, "a");
    consume(&mut world, 1, ConsumerCall::Claim);
    world.settle();
    let Party::Works(consumer) = &world.clients[1].recipe else { panic!() };
    assert!(consumer.holds(world.at).is_some());
    world.told(1);
    world.cut(1, 0);
    world.pass(9000);
    let told = world.told(1);
    let [Told::Consumer(ConsumerTold::ClaimOver { why: Ended::Uncertain, .. })] = &told[..] else {
        panic!("{told:?}")
    };
    world.connect(1);
    world.settle();
    assert!(world.tree.children("/queue/claims").is_empty());
}

#[test]
fn whoever_leaves_while_its_claim_is_being_made_leaves_none() {
    for taken in [0, 1] {
        let mut world = world(1);
        put(&mut world, "a");
        world.settle();
        consume(&mut world, 1, ConsumerCall::Claim);
        world.until(1, |request| matches!(request, Request::Multi(_)));
        consume(&mut world, 1, ConsumerCall::Leave);
        world.cut(1, taken);
        world.connect(1);
        world.settle();
        assert!(world.tree.children("/queue/claims").is_empty());
        assert!(world.clients[1].recipe.is_over());
    }
}

/// What all parties were told fits together.
#[derive(Default)]
struct Ledger {
    put: BTreeSet<u64>,
    doubtful: BTreeSet<u64>,
    acknowledged: BTreeSet<ByteString>,
    tokens: BTreeMap<ByteString, u64>,
}

impl Ledger {
    fn follow(&mut self, told: Vec<Told>) {
        for told in told {
            match told {
                Told::Producer(ProducerTold::Put(number)) => assert!(self.put.insert(number)),
                Told::Producer(ProducerTold::InDoubt(number)) => assert!(self.doubtful.insert(number)),
                Told::Consumer(ConsumerTold::Item { name, token, .. }) => {
                    assert!(!self.acknowledged.contains(&name), "handed out after it was acknowledged");
                    let before = self.tokens.insert(name, token.0);
                    assert!(before.is_none_or(|before| before < token.0), "tokens grow");
                }
                Told::Consumer(ConsumerTold::Acknowledged(name)) => {
                    assert!(self.acknowledged.insert(name), "acknowledged twice");
                }
                _ => {}
            }
        }
    }
}

fn acts(world: &mut World<Party>, dice: &mut Dice) {
    for who in [1, 2] {
        match dice.below(6) {
            0 => consume(world, who, ConsumerCall::Claim),
            1 => consume(world, who, ConsumerCall::Acknowledge),
            2 if dice.below(4) == 0 => consume(world, who, ConsumerCall::GiveBack),
            _ => {}
        }
    }
}

#[test]
fn drawn_losses_lose_no_item_and_hand_out_none_to_two() {
    for seed in 1..300 {
        let mut dice = Dice(seed * 0x9e37_79b9);
        let mut world = world(2);
        let mut ledger = Ledger::default();
        let mut sent = 0;
        for _ in 0..400 {
            if sent < 10 && dice.below(10) == 0 {
                put(&mut world, "x");
                sent += 1;
            }
            acts(&mut world, &mut dice);
            world.chance(&mut dice, true);
            for who in 0..3 {
                let told = world.told(who);
                ledger.follow(told);
            }
            let held: Vec<ByteString> = (1..3)
                .filter_map(|who| match &world.clients[who].recipe {
                    Party::Works(consumer) => consumer.holds(world.at).cloned(),
                    Party::Puts(_) => None,
                })
                .collect();
            assert!(held.len() < 2 || held[0] != held[1], "seed {seed}");
        }
        for _ in 0..60 {
            world.heal();
            acts(&mut world, &mut dice);
            for who in 0..3 {
                let told = world.told(who);
                ledger.follow(told);
            }
        }
        assert!(world.at > Moment::ZERO);
        assert_eq!(ledger.put.len() + ledger.doubtful.len(), sent, "seed {seed}");
        assert!(ledger.tokens.len() >= ledger.put.len(), "seed {seed}: all that was put was handed out");
        assert!(ledger.tokens.len() <= sent, "seed {seed}: nothing was put twice");
    }
}
