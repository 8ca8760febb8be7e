//! An application's part in queues: it puts elements, claims what others put, and acknowledges.
//!
//! An element is an item whose guid is the element's number, so that whoever lists the items knows what is
//! not done. A producer counts its guids up from the first one, and a process makes its elements one after
//! the other: so one producer puts many, and another one takes its place where a number was left out.
//!
//! A claim is told only if its session is the one of the beginning. So whoever is told an element has had no
//! other one since it asked; and whoever is told that there is none has had none when it is told.

use std::collections::BTreeMap;
use std::time::Instant;

use bytestring::ByteString;
use checker::history::Value;
use node_client::{Keeper, Running};
use node_recipes::names::Guid;
use node_recipes::queue::{self, Consumer, ConsumerCall, ConsumerTold, Producer, ProducerCall, ProducerTold};
use node_wire::ids::SessionId;
use tokio::time::timeout_at;
use workloads::op::Object;
use workloads::text;
use zookeeper_mapping::path;

use super::{
    Outcome, given_up, in_doubt, make, moment, now_or_never, number, refused, session_of, told, unclaimed,
};
use harness_systems::application::{monotonic_ns, monotonic_of};

/// Whoever puts, and what it puts next.
struct Puts {
    producer: Running<Producer>,
    /// The number of the put, as the producer counts.
    number: u64,
    /// The element that its guid stands for.
    next: i64,
}

/// What is claimed.
struct Claim {
    element: i64,
    name: ByteString,
}

/// One queue.
#[derive(Default)]
struct Place {
    /// Its znodes are there.
    is_made: bool,
    puts: Option<Puts>,
    consumer: Option<Running<Consumer>>,
    claim: Option<Claim>,
}

impl Place {
    /// The first element, without a claim: a planted bug.
    async fn take_unclaimed(
        &mut self,
        keeper: &Keeper,
        base: &str,
        session: SessionId,
        deadline: Instant,
    ) -> Outcome {
        let Some(first) = unclaimed::first(keeper, base, deadline).await else {
            return refused("not-in-time");
        };
        let Some((since, until)) = certain(keeper, session) else { return refused("uncertain") };
        self.claim = Some(Claim { element: first.element, name: first.name });
        told(Value::List([first.element, first.put, moment(since), moment(until)].into()))
    }
}

/// The queues of an application.
pub(super) struct Queues {
    by_key: BTreeMap<u64, Place>,
    /// A planted bug: elements are not claimed.
    unclaimed: bool,
}

impl Queues {
    /// None yet.
    pub(super) fn new(unclaimed: bool) -> Self {
        Self { by_key: BTreeMap::new(), unclaimed }
    }

    /// The queue, with its znodes.
    async fn place(&mut self, keeper: &Keeper, key: u64, deadline: Instant) -> Option<&mut Place> {
        let place = self.by_key.entry(key).or_default();
        if !place.is_made {
            for request in queue::set_up(&path(Object::QUEUE, key)) {
                if !make(keeper, request, deadline).await {
                    return None;
                }
            }
            place.is_made = true;
        }
        Some(place)
    }

    /// Puts an element.
    pub(super) async fn enqueue(
        &mut self,
        keeper: &Keeper,
        (key, element): (u64, i64),
        deadline: Instant,
    ) -> Outcome {
        let Some(place) = self.place(keeper, key, deadline).await else { return refused("no-queue") };
        let mut puts = match place.puts.take().filter(|puts| puts.next == element) {
            Some(puts) => puts,
            None => {
                let guid = Guid(u128::from(element.unsigned_abs()));
                let producer = keeper.drive(Producer::new(path(Object::QUEUE, key), guid));
                Puts { producer, number: 0, next: element }
            }
        };
        puts.producer.call(ProducerCall::Put(text::of_value(element).into()));
        loop {
            // Dropped, it leaves. What it may have sent is in doubt then.
            let Ok(heard) = timeout_at(deadline.into(), puts.producer.next()).await else {
                return in_doubt("not-in-time");
            };
            let outcome = match heard {
                Some(ProducerTold::Put(at)) if at == puts.number => told(Value::One(element)),
                Some(ProducerTold::InDoubt(at)) if at == puts.number => in_doubt("in-doubt"),
                Some(ProducerTold::NotPut(at)) if at == puts.number => refused("not-put"),
                Some(ProducerTold::Over(_)) | None => return in_doubt("left"),
                Some(_) => continue,
            };
            (puts.number, puts.next) = (puts.number + 1, element + 1);
            place.puts = Some(puts);
            return outcome;
        }
    }

    /// Claims the first element that nobody has.
    pub(super) async fn dequeue(&mut self, keeper: &Keeper, key: u64, deadline: Instant) -> Outcome {
        let is_unclaimed = self.unclaimed;
        let Some(place) = self.place(keeper, key, deadline).await else { return refused("no-queue") };
        let Some(session) = session_of(keeper) else { return refused("no-session") };
        let base = path(Object::QUEUE, key);
        if is_unclaimed {
            return place.take_unclaimed(keeper, &base, session, deadline).await;
        }
        if place.claim.take().is_some() {
            // What it has still is given back by whoever is dropped.
            place.consumer = None;
        }
        let mut consumer = place.consumer.take().unwrap_or_else(|| keeper.drive(Consumer::new(base)));
        consumer.call(ConsumerCall::Claim);
        loop {
            match timeout_at(deadline.into(), consumer.next()).await {
                Ok(Some(ConsumerTold::Item { name, data, token })) => {
                    let known = certain(keeper, session).zip(text::value(&data));
                    let Some(((since, until), element)) = known else {
                        return give_back(consumer, "uncertain").await;
                    };
                    place.consumer = Some(consumer);
                    place.claim = Some(Claim { element, name });
                    let claim = [element, number(token), moment(since), moment(until)];
                    return told(Value::List(claim.into()));
                }
                Ok(Some(ConsumerTold::Over(_)) | None) => return refused("left"),
                // Of a claim before this one.
                Ok(Some(_)) => {}
                Err(_) => return give_back(consumer, "not-in-time").await,
            }
        }
    }

    /// Says that what it has is done.
    pub(super) async fn acknowledge(
        &mut self,
        keeper: &Keeper,
        (key, element): (u64, i64),
        deadline: Instant,
    ) -> Outcome {
        let Some(place) = self.by_key.get_mut(&key) else { return refused("not-holder") };
        let claim = place.claim.take().filter(|claim| claim.element == element);
        if let (true, Some(claim)) = (self.unclaimed, &claim) {
            let base = path(Object::QUEUE, key);
            return match unclaimed::delete(keeper, &base, &claim.name, deadline).await {
                Some(true) => told(Value::One(element)),
                Some(false) => refused("not-holder"),
                None => in_doubt("not-in-time"),
            };
        }
        let (Some(claim), Some(mut consumer)) = (claim, place.consumer.take()) else {
            return refused("not-holder");
        };
        // Whoever drives the recipe goes first: it may know that the claim is over.
        tokio::task::yield_now().await;
        while let Some(heard) = now_or_never(consumer.next()) {
            match heard {
                // Dropped, it gives back what is left of it.
                Some(ConsumerTold::ClaimOver { .. }) => return refused("not-holder"),
                Some(ConsumerTold::Over(_)) | None => return refused("left"),
                Some(_) => {}
            }
        }
        consumer.call(ConsumerCall::Acknowledge);
        loop {
            match timeout_at(deadline.into(), consumer.next()).await {
                Ok(Some(ConsumerTold::Acknowledged(name))) if name == claim.name => {
                    place.consumer = Some(consumer);
                    return told(Value::One(element));
                }
                // It may have been done before.
                Ok(Some(ConsumerTold::ClaimOver { .. })) => return in_doubt("claim-over"),
                Ok(Some(ConsumerTold::Over(_)) | None) => return in_doubt("left"),
                Ok(Some(_)) => {}
                Err(_) => return in_doubt("not-in-time"),
            }
        }
    }

    /// Leaves nothing behind, as far as that can be had.
    pub(super) async fn leave(self) {
        for place in self.by_key.into_values() {
            if let Some(mut consumer) = place.consumer {
                consumer.call(ConsumerCall::Leave);
                while !matches!(consumer.next().await, Some(ConsumerTold::Over(_)) | None) {}
            }
            if let Some(Puts { mut producer, .. }) = place.puts {
                producer.call(ProducerCall::Leave);
                while !matches!(producer.next().await, Some(ProducerTold::Over(_)) | None) {}
            }
        }
    }
}

/// Since when and until when a claim by this session is certain; none where it may be over.
fn certain(keeper: &Keeper, session: SessionId) -> Option<(u64, u64)> {
    let now = monotonic_ns();
    let until = keeper.certain_until().map(monotonic_of)?;
    // Asked behind the look: one that is the same now was so then.
    (session_of(keeper) == Some(session) && now < until).then_some((now, until))
}

/// Gives back what it may have claimed.
async fn give_back(mut consumer: Running<Consumer>, why: &str) -> Outcome {
    consumer.call(ConsumerCall::Leave);
    let over = async { while !matches!(consumer.next().await, Some(ConsumerTold::Over(_)) | None) {} };
    given_up(over, why).await
}
